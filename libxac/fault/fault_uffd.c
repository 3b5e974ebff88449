/* SPDX-License-Identifier: MIT */
/*
 * fault_uffd.c -- the engine for Linux: anonymous memory watched by userfaultfd.
 *
 * A page without access is not there; it is filled, write-protected or not, in one system
 * call, and taken back by dropping it.  No mapping is split, so a page costs about half of
 * what mprotect costs, and a transaction may touch any number of them.
 *
 * Faults come as SIGBUS to the thread that made them, and system calls that are given such
 * an address fail with EFAULT, as on pages without access.
 *
 * THE DESCRIPTOR.  If a program closes descriptors that are not its own, the kernel must not
 * stop watching: a missing page would read as zeros.  So it is also registered with a ring of
 * io_uring, of which no descriptor is kept, but a mapping: that belongs to the address space.
 * Nothing is ever submitted to it; where it cannot be had, nor is this engine.
 * A request to a descriptor that is not ours any more fails.  Then the process gets new
 * ones, and an area is given to them when it is next asked about: its memory is moved away and
 * back, which ends the old watch, and is watched anew.  Between the two any access traps, as
 * nothing is there.  The ring stays for areas that have not been asked about.
 *
 * SCANS.  A second descriptor watches areas that are scanned (view_scan.c): it, too, has missing
 * pages trap, but a store to a protected page is let through by the kernel, which PAGEMAP_SCAN
 * tells of afterwards.  An area belongs to one of the two.  Swapped pages count as well.
 *
 * ALIASES.  With XAC_OPT_FRAMES, areas that show the same pages share a memfd.  A page that is
 * in it, but has no access in one of them, traps there as a minor fault, and is given access
 * without being filled (UFFDIO_CONTINUE, protected only since Linux 6.4).
 *
 * TWINS.  An area may be mapped from a memfd, twice (area->twin).  The second mapping is not watched.
 * So a page that has access can be given other bytes without a system call, even if it is protected;
 * one that has none must not be stored to there, for it would appear without a trap.
 *
 * FORK.  A child is not watched.  The areas are not inherited (MADV_DONTFORK), and it arms
 * areas of its own when it rejoins.
 */
#include <config.h>

#include <errno.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>

#include <xac.h>

#include "base/handle.h"
#include "base/kernel.h"
#include "base/lock.h"
#include "base/sys.h"
#include "fault/fault_engine.h"
#include "fault/fault_signal.h"

/* Ranges that one process_madvise takes back. */
#define RANGES_MAX 64

static int uffd = -1;
static int scanner = -1; /* see SCANS; below 0: -errno, why there is none              */
static struct xac_handle uffd_handle, scanner_handle;
static _Atomic unsigned watch; /* counts the descriptors that there have been; relaxed */
static atomic_flag reviving;   /* somebody makes new ones                              */
static unsigned n_users; /* areas that are armed, and one more while it is started     */
static bool has_batches; /* process_madvise on ourselves works                     */
static void *ring;       /* what holds the descriptor open, mapped; NULL if not there  */
static size_t ring_bytes;

/* ---- The descriptor ------------------------------------------------------------------ */

/* pin -- see THE DESCRIPTOR; ret 0 or errno. */
XAC_SIGSAFE static int
pin(void)
{
    struct io_uring_params p = {0};
    const int fds[] = {uffd, scanner};
    int fd = xac_sys.io_uring_setup(1, &p);
    void *at;
    int rc = 0;

    if (fd < 0)
        return errno;
    ring_bytes = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
    at = xac_sys.mmap(NULL, ring_bytes, PROT_READ, MAP_SHARED, fd, IORING_OFF_SQ_RING);
    if (at == MAP_FAILED)
        rc = errno;
    else
        ring = at;
    if (rc == 0
        && (xac_sys.madvise(ring, ring_bytes, MADV_DONTFORK) != 0
            || xac_sys.io_uring_register(fd, IORING_REGISTER_FILES, fds,
                                         scanner >= 0 ? 2 : 1)
                   < 0))
        rc = errno;
    (void)xac_sys.close(fd);
    return rc;
}

static void
close_it(void)
{
    if (ring != NULL)
        (void)xac_sys.munmap(ring, ring_bytes);
    ring = NULL;
    xac_handle_close(uffd, &uffd_handle);
    xac_handle_close(scanner, &scanner_handle);
    uffd = scanner = -1;
}

/* open_one -- a descriptor with these features; -1 with errno. */
XAC_SIGSAFE static int
open_one(uint64_t features, struct xac_handle *handle)
{
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS | features};
    /* O_NONBLOCK: a poll of a blocking one ends at once. */
    int fd = xac_sys.userfaultfd(O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY), rc;

    if (fd < 0 || xac_sys.ioctl(fd, UFFDIO_API, &api) == 0)
        return xac_handle_keep(fd, handle);
    rc = errno;
    (void)xac_sys.close(fd);
    errno = rc;
    return -1;
}

/* open_both -- new descriptors; ret 0 or errno. */
XAC_SIGSAFE static int
open_both(void)
{
    uffd = open_one(UFFD_FEATURE_PAGEFAULT_FLAG_WP, &uffd_handle);
    if (uffd < 0)
        return errno;
    scanner = open_one(UFFD_FEATURE_WP_ASYNC, &scanner_handle);
    scanner = scanner < 0 ? -errno : scanner;
    (void)atomic_fetch_add_explicit(&watch, 1, memory_order_relaxed);
    return pin();
}

/* are_ours -- has no descriptor been lost? */
XAC_SIGSAFE static bool
are_ours(void)
{
    return xac_handle_is_ours(uffd, &uffd_handle)
           && (scanner < 0 || xac_handle_is_ours(scanner, &scanner_handle));
}

/* replace -- descriptors that have been lost; ret 0 or errno. */
XAC_SIGSAFE static int
replace(void)
{
    int rc = 0;

    /* A spin lock, for the fault handler comes here; acquire: pairs with the release. */
    while (atomic_flag_test_and_set_explicit(&reviving, memory_order_acquire))
        (void)sched_yield();
    if (!are_ours()) {
        xac_handle_close(uffd, &uffd_handle);
        xac_handle_close(scanner, &scanner_handle);
        rc = open_both();
    }
    /* Release: pairs with the acquire above. */
    atomic_flag_clear_explicit(&reviving, memory_order_release);
    return rc;
}

/* open_it -- the process's descriptors, if it has none; ret 0 or errno. */
static int
open_it(void)
{
    struct iovec none = {.iov_base = NULL, .iov_len = 0};
    int rc;

    if (uffd >= 0)
        return are_ours() ? 0 : replace();
    rc = open_both();
    if (rc != 0)
        close_it();
    has_batches = xac_sys.process_madvise(PIDFD_SELF, &none, 1, MADV_DONTNEED) == 0;
    return rc;
}

/* ---- Areas ----------------------------------------------------------------------------- */

/* fd_of -- the descriptor that the area belongs to. */
XAC_SIGSAFE static int
fd_of(const struct xac_area *area)
{
    return area->is_scanned ? scanner : uffd;
}

/* enlist -- with the descriptor that it belongs to; ret 0 or errno. */
XAC_SIGSAFE static int
enlist(struct xac_area *area)
{
    struct uffdio_register reg = {
        .range = {.start = (uint64_t)(uintptr_t)area->base, .len = area->length},
        .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
    };
    uint64_t needed = UINT64_C(1) << _UFFDIO_COPY | UINT64_C(1) << _UFFDIO_WRITEPROTECT;

    if (xac_area_shares(area)) {
        reg.mode |= UFFDIO_REGISTER_MODE_MINOR;
        needed |= UINT64_C(1) << _UFFDIO_CONTINUE;
    }
    if (xac_sys.ioctl(fd_of(area), UFFDIO_REGISTER, &reg) != 0)
        return errno;
    area->watch = atomic_load_explicit(&watch, memory_order_relaxed);
    return (reg.ioctls & needed) == needed ? 0 : ENOTSUP;
}

/* protect_again -- what has been shown for loads only; ret 0 or errno. */
XAC_SIGSAFE static int
protect_again(struct xac_area *area)
{
    uint64_t n = 0;
    int rc = 0;

    for (uint64_t at = 0; at < area->n_pages && rc == 0; at += n + (n == 0)) {
        struct uffdio_writeprotect wp = {.mode = UFFDIO_WRITEPROTECT_MODE_WP};

        n = 0;
        while (at + n < area->n_pages && area->owner->is_read_only(area, at + n))
            n++;
        wp.range.start = (uint64_t)(uintptr_t)xac_area_at(area, at);
        wp.range.len = n * area->page_size;
        if (n > 0 && xac_sys.ioctl(fd_of(area), UFFDIO_WRITEPROTECT, &wp) != 0)
            rc = errno;
    }
    return rc;
}

/*
 * revive -- have an area watched by descriptors that are ours; see THE DESCRIPTOR.
 *
 * A scanned area counts as stored to, all of it: the caller compares.
 * ret  0; EALREADY: it is; errno.
 */
XAC_SIGSAFE static int
revive(struct xac_area *area)
{
    const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
    int rc = are_ours() ? 0 : replace();
    void *away;

    if (rc == 0 && area->watch == atomic_load_explicit(&watch, memory_order_relaxed))
        return EALREADY;
    if (rc != 0)
        return rc;
    away = xac_sys.mmap(NULL, area->length, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (away == MAP_FAILED)
        return errno;
    /* The addresses stay taken, and watched, until what has been there is back. */
    if (xac_sys.mremap(area->base, area->length, flags | MREMAP_DONTUNMAP, away)
            == MAP_FAILED
        || xac_sys.mprotect(away, area->length, PROT_NONE) != 0
        || xac_sys.mremap(away, area->length, flags, area->base) == MAP_FAILED)
        return errno;
    rc = enlist(area);
    if (rc == 0 && !area->is_scanned)
        rc = protect_again(area);
    if (rc == 0
        && xac_sys.mprotect(area->base, area->length, PROT_READ | PROT_WRITE) != 0)
        rc = errno;
    return rc;
}

/* is_lost -- may that come from a descriptor that is not ours? */
XAC_SIGSAFE static bool
is_lost(struct xac_area *area, int error)
{
    return (error == EBADF || error == ENOTTY || error == EINVAL || error == ENOENT
            || error == EPERM)
           && revive(area) == 0;
}

/* ask -- an ioctl, again and again while somebody forks; ret 0 or errno. */
XAC_SIGSAFE static int
ask(struct xac_area *area, unsigned long request, void *arg)
{
    while (xac_sys.ioctl(fd_of(area), request, arg) != 0) {
        int rc = errno;

        if (rc == EAGAIN)
            (void)sched_yield();
        else if (!is_lost(area, rc))
            return rc;
    }
    return 0;
}

/* give_access -- to a page that is in the shared memory; ret 0; EEXIST: it has access; EFAULT:
   it is not there; errno. */
XAC_SIGSAFE static int
give_access(struct xac_area *area, uint64_t page_no, enum xac_protection prot)
{
    struct uffdio_continue c = {
        .range = {.start = (uint64_t)(uintptr_t)xac_area_at(area, page_no),
                  .len = area->page_size},
        .mode = UFFDIO_CONTINUE_MODE_DONTWAKE
                | (prot == XAC_PROT_READ ? UFFDIO_CONTINUE_MODE_WP : 0),
    };

    return ask(area, UFFDIO_CONTINUE, &c);
}

/* enlist_shared -- the same, of memory that is shared and empty; ret 0 or errno. */
static int
enlist_shared(struct xac_area *area)
{
    int rc = enlist(area);

    if (rc == 0) /* does the kernel know the flag? */
        rc = give_access(area, 0, XAC_PROT_READ);
    return rc == EFAULT ? 0 : rc == EINVAL ? ENOTSUP : rc;
}

static void
drop_twin(struct xac_area *area)
{
    if (area->twin != NULL)
        (void)xac_sys.munmap(area->twin, area->twin_bytes);
    area->twin = NULL;
}

/* make_twin -- see TWINS; ret a descriptor of its memory, -1: there is no twin. */
static int
make_twin(struct xac_area *area)
{
    int fd = xac_sys.memfd_create("xac-view", MFD_CLOEXEC);
    void *at = MAP_FAILED;

    drop_twin(area);
    if (fd < 0)
        return -1;
    if (xac_sys.ftruncate(fd, (off_t)area->length) == 0)
        at = xac_sys.mmap(NULL, area->length, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (at != MAP_FAILED) {
        area->twin = (uint8_t *)at;
        area->twin_bytes = area->length;
        if (xac_sys.madvise(at, area->length, MADV_DONTFORK) == 0)
            return fd;
        drop_twin(area);
    }
    (void)xac_sys.close(fd);
    return -1;
}

/* arm_with -- memory, of a file or -1, at the area's addresses: missing, and watched; ret 0 or errno. */
static int
arm_with(struct xac_area *area, int fd)
{
    int kind = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, rc;
    off_t offset = xac_area_shares(area) ? (off_t)(area->first * area->page_size)
                   : area->in_place >= 0 ? (off_t)(area->place * area->page_size)
                                         : 0;

    if (xac_sys.mmap(area->base, area->length, PROT_NONE,
                     kind | MAP_NORESERVE | MAP_FIXED, fd, offset)
            == MAP_FAILED
        || xac_sys.madvise(area->base, area->length, MADV_DONTFORK) != 0)
        return errno;
    rc = xac_area_shares(area) ? enlist_shared(area) : enlist(area);
    if (rc != 0)
        return rc;
    /* Where there are no huge pages, that is an error and as it should be. */
    (void)xac_sys.madvise(area->base, area->length, MADV_NOHUGEPAGE);
    return xac_sys.mprotect(area->base, area->length, PROT_READ | PROT_WRITE) == 0
               ? 0
               : errno;
}

/* arm -- missing memory at the area's addresses, watched, with a twin if it is wanted and can be had;
   ret 0 or errno. */
static int
arm(struct xac_area *area)
{
    int rc = open_it(), fd;

    if (rc != 0)
        return rc;
    area->is_scanned = false;
    if (area->in_place >= 0) {
        drop_twin(area);
        return arm_with(area, area->in_place);
    }
    fd = area->wants_twin ? make_twin(area) : -1;
    if (fd >= 0) {
        rc = arm_with(area, fd);
        (void)xac_sys.close(fd);
        if (rc == 0)
            return 0;
        drop_twin(area);
    }
    return arm_with(area, area->memory);
}

static int
attach(struct xac_area *area)
{
    int rc = arm(area);

    if (rc == 0)
        rc = xac_signal_attach(area);
    if (rc == 0)
        n_users++;
    return rc;
}

/* let_go -- of the descriptor, if that was the last area of a process that has stopped. */
static void
let_go(void)
{
    if (--n_users == 0)
        close_it();
}

static void
detach(struct xac_area *area)
{
    if (area->ticket == NULL)
        return;
    drop_twin(area);
    xac_signal_detach(area);
    let_go();
}

static int
leave(struct xac_area *area)
{
    int rc = xac_area_map_file(area, 0, area->length / area->page_size);

    area->is_scanned = area->wants_twin = false;
    drop_twin(area);
    if (rc == 0)
        let_go();
    return rc;
}

static int
moved(struct xac_area *area)
{
    xac_signal_moved(area);
    return arm(area);
}

/* abandon -- mappings are not inherited, so the addresses are free. */
static void
abandon(struct xac_area *area)
{
    area->is_scanned = area->wants_twin = false;
    area->twin = NULL; /* not inherited */
    (void)xac_sys.mmap(area->base, area->length, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* ---- Pages ----------------------------------------------------------------------------- */

XAC_SIGSAFE static int
protect(struct xac_area *area, uint64_t first, uint64_t n, enum xac_protection prot)
{
    struct uffdio_writeprotect wp = {
        .range = {.start = (uint64_t)(uintptr_t)xac_area_at(area, first),
                  .len = n * area->page_size},
        .mode = prot == XAC_PROT_READ ? UFFDIO_WRITEPROTECT_MODE_WP
                                      : UFFDIO_WRITEPROTECT_MODE_DONTWAKE,
    };

    if (prot == XAC_PROT_NONE)
        return xac_engine_discard(area, first, n);
    return ask(area, UFFDIO_WRITEPROTECT, &wp);
}

XAC_SIGSAFE static int
fill(struct xac_area *area, uint64_t first, uint64_t n, const uint8_t *bytes,
     enum xac_protection prot)
{
    uint64_t done = 0, length = n * area->page_size;
    uint64_t at = (uint64_t)(uintptr_t)xac_area_at(area, first);

    if (bytes == NULL)
        return give_access(area, first, prot);
    while (done < length) {
        struct uffdio_copy copy = {
            .dst = at + done,
            .src = (uint64_t)(uintptr_t)bytes + done,
            .len = length - done,
            .mode = UFFDIO_COPY_MODE_DONTWAKE
                    | (prot == XAC_PROT_READ ? UFFDIO_COPY_MODE_WP : 0),
        };

        if (xac_sys.ioctl(fd_of(area), UFFDIO_COPY, &copy) == 0)
            return 0;
        if (errno != EAGAIN) {
            int rc = errno;

            if (is_lost(area, rc))
                continue;
            if (done > 0) /* if that fails, filling it again will */
                (void)xac_engine_discard(area, first, n);
            return rc;
        }
        /* Somebody forks, or only a part has been copied. */
        if (copy.copy > 0)
            done += (uint64_t)copy.copy;
        else
            (void)sched_yield();
    }
    return 0;
}

XAC_SIGSAFE static int
take_back(struct xac_area *area, const struct xac_page_range *range, size_t n)
{
    struct iovec at[RANGES_MAX];
    size_t bytes = 0, done = 0;
    int rc = 0;

    for (; done < n && done < RANGES_MAX; done++) {
        at[done].iov_base = xac_area_at(area, range[done].first);
        at[done].iov_len = range[done].n * area->page_size;
        bytes += at[done].iov_len;
    }
    if (n > 1 && has_batches && !xac_area_is_shared(area)
        && xac_sys.process_madvise(PIDFD_SELF, at, done, MADV_DONTNEED) == (ssize_t)bytes)
        return done < n ? take_back(area, range + done, n - done) : 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = xac_engine_discard(area, range[i].first, range[i].n);
    return rc;
}

/* ---- Scans ----------------------------------------------------------------------------- */

/* look -- pages of a scanned area that have been stored to since they were protected, or all
   that are there; they are protected.  ret how many ranges, or -1 with errno. */
static int
look(struct xac_area *area, uint64_t *atp, bool all, struct page_region *region,
     size_t room)
{
    struct pm_scan_arg a = {
        .size = sizeof a,
        .flags = PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC,
        .start = *atp,
        .end = (uint64_t)(uintptr_t)(area->base + area->length),
        .vec = (uint64_t)(uintptr_t)region,
        .vec_len = room,
        .category_mask = all ? 0 : PAGE_IS_WRITTEN,
        .category_anyof_mask = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
        .return_mask = PAGE_IS_WRITTEN,
    };
    int n = xac_sys.ioctl(area->pagemap, (unsigned long)PAGEMAP_SCAN, &a);

    if (n < 0 && (errno == EBADF || errno == ENOTTY))
        n = xac_sys.ioctl(xac_area_pagemap(area), (unsigned long)PAGEMAP_SCAN, &a);
    *atp = a.walk_end;
    return n;
}

static int
scan(struct xac_area *area, uint64_t *fromp, struct xac_page_range *range, size_t room,
     size_t *np)
{
    struct page_region region[XAC_BATCH_MAX];
    uint64_t base = (uint64_t)(uintptr_t)area->base, at = base + *fromp * area->page_size;
    int n = look(area, &at, false, region, room < XAC_BATCH_MAX ? room : XAC_BATCH_MAX);

    if (n < 0)
        return errno;
    for (int i = 0; i < n; i++) {
        range[i].first = (region[i].start - base) / area->page_size;
        range[i].n = (region[i].end - region[i].start) / area->page_size;
    }
    *fromp = (at - base) / area->page_size;
    *np = (size_t)n;
    return 0;
}

/* protect_all -- all present pages; ret 0 or errno. */
static int
protect_all(struct xac_area *area)
{
    uint64_t at = (uint64_t)(uintptr_t)area->base;
    uint64_t end = at + area->length;

    if (!area->is_scanned)
        return protect(area, 0, area->n_pages, XAC_PROT_READ);
    while (at < end) { /* a write-protection would mark what is not there, too */
        struct page_region region[XAC_BATCH_MAX];

        if (look(area, &at, true, region, XAC_BATCH_MAX) < 0)
            return errno;
    }
    return 0;
}

static int
scan_set(struct xac_area *area, bool is_on)
{
    struct uffdio_range range = {.start = (uint64_t)(uintptr_t)area->base,
                                 .len = area->length};
    int rc;

    if (is_on && (scanner < 0 || area->pagemap < 0))
        return ENOTSUP;
    rc = revive(area);
    if (rc != 0 && rc != EALREADY)
        return rc;
    if (xac_sys.ioctl(fd_of(area), UFFDIO_UNREGISTER, &range) != 0)
        return errno;
    area->is_scanned = is_on;
    rc = enlist(area);
    return rc == 0 ? protect_all(area) : rc;
}

/* ---- The process ----------------------------------------------------------------------- */

static int
start(const struct xac_area_owner *owner)
{
    int rc = open_it();

    if (rc == 0)
        rc = xac_signal_start(true, owner);
    if (rc == 0)
        n_users++;
    else if (n_users == 0)
        close_it();
    return rc;
}

static void
stop(void)
{
    xac_assert(n_users > 0);
    if (--n_users == 0)
        close_it();
    xac_signal_stop();
}

/* start_scans -- as start, and what scans need. */
static int
start_scans(const struct xac_area_owner *owner)
{
    int rc = start(owner);

    if (rc != 0 || scanner >= 0)
        return rc;
    rc = -scanner;
    stop();
    return rc;
}

static void
forked(void)
{
    ring = NULL; /* not inherited */
    close_it();
}

static const struct xac_engine_fills fills = {
    .leave = leave,
    .fill = fill,
    .take_back = take_back,
    .scan_set = scan_set,
    .scan = scan,
};

#define FUNCTIONS                                                                      \
 .fills = &fills, .attach = attach, .detach = detach, .moved = moved,                  \
 .protect = protect, .discard = xac_engine_discard, .abandon = abandon, .rejoin = arm, \
 .stop = stop, .forked = forked

const struct xac_engine xac_engine_uffd = {.name = "uffd",
                                           .kind = XAC_ENGINE_UFFD,
                                           .start = start,
                                           FUNCTIONS};

const struct xac_engine xac_engine_scan = {.name = "scan",
                                           .kind = XAC_ENGINE_SCAN,
                                           .start = start_scans,
                                           FUNCTIONS};
