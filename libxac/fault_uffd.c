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
 *
 * FORK.  A child is not watched.  The views are not inherited (MADV_DONTFORK), and it arms
 * views of its own when it rejoins.
 */
#include <config.h>

#include <errno.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <xac.h>

#include "fault.h"
#include "fault_signal.h"
#include "sys.h"
#include "view.h"

/* Of newer headers. */
#ifndef PIDFD_SELF
# define PIDFD_SELF (-10000)
#endif

/* Ranges that one process_madvise takes back. */
#define RANGES_MAX 64

static int uffd = -1;
static unsigned n_views; /* that are armed                                         */
static bool is_wanted;   /* started                                                */
static bool has_batches; /* process_madvise on ourselves works                     */
static void *ring;       /* what holds the descriptor open, mapped; NULL if not there  */
static size_t ring_bytes;

/* ---- The descriptor ------------------------------------------------------------------ */

/* pin -- see THE DESCRIPTOR; ret 0 or errno. */
static int
pin(void)
{
    struct io_uring_params p = {0};
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
            || xac_sys.io_uring_register(fd, IORING_REGISTER_FILES, &uffd, 1) < 0))
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
    if (uffd >= 0)
        (void)xac_sys.close(uffd);
    uffd = -1;
}

/* open_it -- the process's descriptor, if it has none; ret 0 or errno. */
static int
open_it(void)
{
    struct uffdio_api api = {.api = UFFD_API,
                             .features =
                                 UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    struct iovec none = {.iov_base = NULL, .iov_len = 0};
    int rc = 0;

    if (uffd >= 0)
        return 0;
    /* O_NONBLOCK: a poll of a blocking one ends at once. */
    uffd = xac_sys.userfaultfd(O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (uffd < 0)
        return errno;
    if (xac_sys.ioctl(uffd, UFFDIO_API, &api) != 0)
        rc = errno;
    if (rc == 0)
        rc = pin();
    if (rc != 0)
        close_it();
    has_batches = xac_sys.process_madvise(PIDFD_SELF, &none, 1, MADV_DONTNEED) == 0;
    return rc;
}

/* ---- Views ----------------------------------------------------------------------------- */

/* arm -- missing memory at the view's addresses, watched; ret 0 or errno. */
static int
arm(struct xac_view *view)
{
    struct uffdio_register reg = {
        .range = {.start = (uint64_t)(uintptr_t)view->base, .len = view->length},
        .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
    };
    const uint64_t needed =
        UINT64_C(1) << _UFFDIO_COPY | UINT64_C(1) << _UFFDIO_WRITEPROTECT;
    int rc = open_it();

    if (rc != 0)
        return rc;
    /* Without access until it is watched. */
    if (xac_sys.mmap(view->base, view->length, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0)
        == MAP_FAILED)
        return errno;
    if (xac_sys.madvise(view->base, view->length, MADV_DONTFORK) != 0
        || xac_sys.ioctl(uffd, UFFDIO_REGISTER, &reg) != 0)
        return errno;
    if ((reg.ioctls & needed) != needed)
        return ENOTSUP;
    /* Where there are no huge pages, that is an error and as it should be. */
    (void)xac_sys.madvise(view->base, view->length, MADV_NOHUGEPAGE);
    return xac_sys.mprotect(view->base, view->length, PROT_READ | PROT_WRITE) == 0
               ? 0
               : errno;
}

static int
attach(struct xac_view *view)
{
    int rc = arm(view);

    if (rc == 0)
        rc = xac_signal_attach(view);
    if (rc == 0)
        n_views++;
    return rc;
}

/* let_go -- of the descriptor, if that was the last view of a process that has stopped. */
static void
let_go(void)
{
    n_views--;
    if (n_views == 0 && !is_wanted)
        close_it();
}

static void
detach(struct xac_view *view)
{
    if (view->engine == NULL)
        return;
    xac_signal_detach(view);
    let_go();
}

static int
leave(struct xac_view *view)
{
    int rc = xac_view_map_file(view, 0, view->length / view->page_size);

    if (rc == 0)
        let_go();
    return rc;
}

static int
moved(struct xac_view *view)
{
    xac_signal_moved(view);
    return arm(view);
}

/* abandon -- what is there is not inherited, so the addresses are free. */
static void
abandon(struct xac_view *view)
{
    (void)xac_sys.mmap(view->base, view->length, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* ---- Pages ----------------------------------------------------------------------------- */

/* ask -- an ioctl, again and again while somebody forks; ret 0 or errno. */
XAC_SIGSAFE static int
ask(unsigned long request, void *arg)
{
    while (xac_sys.ioctl(uffd, request, arg) != 0) {
        if (errno != EAGAIN)
            return errno;
        (void)sched_yield();
    }
    return 0;
}

XAC_SIGSAFE static int
protect(struct xac_view *view, uint64_t first, uint64_t n, enum xac_protection prot)
{
    struct uffdio_writeprotect wp = {
        .range = {.start = (uint64_t)(uintptr_t)(view->base + first * view->page_size),
                  .len = n * view->page_size},
        .mode = prot == XAC_PROT_READ ? UFFDIO_WRITEPROTECT_MODE_WP
                                      : UFFDIO_WRITEPROTECT_MODE_DONTWAKE,
    };

    if (prot == XAC_PROT_NONE)
        return xac_engine_discard(view, first, n);
    return ask(UFFDIO_WRITEPROTECT, &wp);
}

XAC_SIGSAFE static int
fill(struct xac_view *view, uint64_t first, uint64_t n, const uint8_t *bytes,
     enum xac_protection prot)
{
    uint64_t done = 0, length = n * view->page_size;
    uint64_t at = (uint64_t)(uintptr_t)(view->base + first * view->page_size);

    while (done < length) {
        struct uffdio_copy copy = {
            .dst = at + done,
            .src = (uint64_t)(uintptr_t)bytes + done,
            .len = length - done,
            .mode = UFFDIO_COPY_MODE_DONTWAKE
                    | (prot == XAC_PROT_READ ? UFFDIO_COPY_MODE_WP : 0),
        };

        if (xac_sys.ioctl(uffd, UFFDIO_COPY, &copy) == 0)
            return 0;
        if (errno != EAGAIN) {
            int rc = errno;

            if (done > 0) /* if that fails, filling it again will */
                (void)xac_engine_discard(view, first, n);
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

static int
take_back(struct xac_view *view, const struct xac_page_range *range, size_t n)
{
    struct iovec at[RANGES_MAX];
    size_t bytes = 0, done = 0;
    int rc = 0;

    for (; done < n && done < RANGES_MAX; done++) {
        at[done].iov_base = view->base + range[done].first * view->page_size;
        at[done].iov_len = range[done].n * view->page_size;
        bytes += at[done].iov_len;
    }
    if (n > 1 && has_batches
        && xac_sys.process_madvise(PIDFD_SELF, at, done, MADV_DONTNEED) == (ssize_t)bytes)
        return done < n ? take_back(view, range + done, n - done) : 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = xac_engine_discard(view, range[i].first, range[i].n);
    return rc;
}

static bool
is_private(const struct xac_view *view, uint64_t page_no)
{
    (void)view;
    (void)page_no;
    return true;
}

/* ---- The process ----------------------------------------------------------------------- */

static int
start(void)
{
    int rc = open_it();

    if (rc == 0)
        rc = xac_signal_start(true);
    if (rc != 0 && n_views == 0)
        close_it();
    is_wanted = rc == 0;
    return rc;
}

static void
stop(void)
{
    is_wanted = false;
    if (n_views == 0)
        close_it();
    xac_signal_stop();
}

static void
forked(void)
{
    ring = NULL; /* not inherited */
    close_it();
}

const struct xac_engine xac_engine_uffd = {
    .name = "uffd",
    .kind = XAC_ENGINE_UFFD,
    .attach = attach,
    .detach = detach,
    .leave = leave,
    .moved = moved,
    .protect = protect,
    .discard = xac_engine_discard,
    .fill = fill,
    .take_back = take_back,
    .is_private = is_private,
    .abandon = abandon,
    .rejoin = arm,
    .start = start,
    .stop = stop,
    .forked = forked,
};
