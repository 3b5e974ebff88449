/* SPDX-License-Identifier: MIT */
/*
 * kernel.h -- definitions of the kernel's interface that are newer than the headers of the
 * distributions that we build on.
 *
 * WHAT      Numbers and structures as in the kernel's include/uapi, each only if the system's
 *           headers do not have it.  The benchmarks use them, too.
 * NOT HERE  Whether the running kernel knows them: their users check that, and have another way.
 */
#ifndef XAC_KERNEL_H
#define XAC_KERNEL_H

#include <linux/fs.h>
#include <linux/types.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/* madvise(2): Linux 5.14; 6.13. */
#ifndef MADV_POPULATE_READ
# define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
# define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_GUARD_INSTALL
# define MADV_GUARD_INSTALL 102
# define MADV_GUARD_REMOVE  103
#endif

/* The calling process in the place of a pidfd: Linux 6.14. */
#ifndef PIDFD_SELF
# define PIDFD_SELF (-10000)
#endif

/* userfaultfd(2): Linux 5.11; 5.13; 6.4; 6.7; 6.8. */
#ifndef UFFD_USER_MODE_ONLY
# define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFDIO_CONTINUE
# define UFFDIO_REGISTER_MODE_MINOR    ((__u64)1 << 2)
# define UFFDIO_CONTINUE_MODE_DONTWAKE ((__u64)1 << 0)
# define _UFFDIO_CONTINUE              0x07
struct uffdio_continue {
    struct uffdio_range range;
    __u64 mode;
    __s64 mapped;
};
# define UFFDIO_CONTINUE _IOWR(UFFDIO, _UFFDIO_CONTINUE, struct uffdio_continue)
#endif
#ifndef UFFDIO_CONTINUE_MODE_WP
# define UFFDIO_CONTINUE_MODE_WP ((__u64)1 << 1)
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
# define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif
#ifndef UFFDIO_MOVE
# define UFFD_FEATURE_MOVE (1 << 16)
struct uffdio_move {
    __u64 dst, src, len, mode;
    __s64 move;
};
# define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
#endif

/* ioctl(2) of /proc/self/pagemap: Linux 6.7. */
#ifndef PAGEMAP_SCAN
# define PAGE_IS_WRITTEN       (1 << 1)
# define PAGE_IS_FILE          (1 << 2)
# define PAGE_IS_PRESENT       (1 << 3)
# define PAGE_IS_SWAPPED       (1 << 4)
# define PM_SCAN_WP_MATCHING   (1 << 0)
# define PM_SCAN_CHECK_WPASYNC (1 << 1)
struct page_region {
    __u64 start, end, categories;
};
struct pm_scan_arg {
    __u64 size, flags, start, end, walk_end, vec, vec_len, max_pages;
    __u64 category_inverted, category_mask, category_anyof_mask, return_mask;
};
# define PAGEMAP_SCAN _IOWR('f', 16, struct pm_scan_arg)
#endif

#endif /* XAC_KERNEL_H */
