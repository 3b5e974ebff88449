/* SPDX-License-Identifier: MIT */
/*
 * handler_uffd.c -- the experiment `handler`: guard pages and userfaultfd.
 *
 * Faults under userfaultfd are delivered as SIGBUS to the thread that touched the page
 * (UFFD_FEATURE_SIGBUS), which resolves them itself, as an engine of the library would.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/cost/handler.h"
#include "libxac/base/kernel.h"

#define WHY_BYTES 96u

/* A page under userfaultfd. */
struct watched {
    int fd;
    uint8_t *page;
    char why[WHY_BYTES]; /* it cannot be                                               */
};

static struct watched missing = {.fd = -1}, guarded = {.fd = -1}, minor = {.fd = -1};
static uint8_t content[BENCH_PAGE] __attribute__((aligned(BENCH_PAGE)));
static uint8_t *move_from; /* NULL: cannot move                                        */

/* because -- note why there is nothing to measure; ret the words. */
static const char *
because(char why[WHY_BYTES], const char *what)
{
    snprintf(why, WHY_BYTES, "%s: %s", what, strerror(errno));
    return why;
}

/* anonymous -- a page of memory; MAP_FAILED with errno. */
static void *
anonymous(void)
{
    return mmap(NULL, BENCH_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0);
}

/* watch -- have w->page registered; ret 0, or 1 with w->why. */
static int
watch(struct watched *w, uint64_t features, uint64_t mode)
{
    struct uffdio_api api = {.api = UFFD_API, .features = features};
    struct uffdio_register reg = {
        .range = {.start = (uint64_t)(uintptr_t)w->page, .len = BENCH_PAGE},
        .mode = mode,
    };

    w->fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    if (w->fd < 0) {
        because(w->why, "userfaultfd");
        return 1;
    }
    if (ioctl(w->fd, UFFDIO_API, &api) != 0)
        because(w->why, "UFFDIO_API");
    else if (ioctl(w->fd, UFFDIO_REGISTER, &reg) != 0)
        because(w->why, "UFFDIO_REGISTER");
    else
        return 0;
    close(w->fd);
    w->fd = -1;
    return 1;
}

/* unwatch -- release everything. */
static void
unwatch(struct watched *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
    if (w->page != NULL)
        munmap(w->page, BENCH_PAGE);
    w->page = NULL;
}

/* drop -- the page shows nothing again; ret ticks, or < 0 after a message. */
static double
drop(uint8_t *page)
{
    uint64_t t0 = bench_ticks(), t1;
    int rc = madvise(page, BENCH_PAGE, MADV_DONTNEED);

    t1 = bench_ticks();
    if (rc != 0) {
        (void)bench_fail("madvise: %s", strerror(errno));
        return -1;
    }
    return (double)(t1 - t0);
}

/* ---- Missing pages: copy, zero, move ------------------------------------------------ */

static int
fill_copy(uint8_t *page)
{
    struct uffdio_copy c = {.dst = (uint64_t)(uintptr_t)page,
                            .src = (uint64_t)(uintptr_t)content,
                            .len = BENCH_PAGE};

    return ioctl(missing.fd, UFFDIO_COPY, &c) == 0 ? 0 : errno;
}

static int
fill_zero(uint8_t *page)
{
    struct uffdio_zeropage z = {
        .range = {.start = (uint64_t)(uintptr_t)page, .len = BENCH_PAGE}};

    return ioctl(missing.fd, UFFDIO_ZEROPAGE, &z) == 0 ? 0 : errno;
}

static int
fill_move(uint8_t *page)
{
    struct uffdio_move m = {.dst = (uint64_t)(uintptr_t)page,
                            .src = (uint64_t)(uintptr_t)move_from,
                            .len = BENCH_PAGE};

    return ioctl(missing.fd, UFFDIO_MOVE, &m) == 0 ? 0 : errno;
}

/* fill -- one of them without a trap; ret 0 or errno. */
static int
fill(struct bench_handler *h, enum bench_op op, int (*how)(uint8_t *page))
{
    uint64_t t0 = bench_ticks(), t1;
    int rc = how(missing.page);

    t1 = bench_ticks();
    if (rc == 0) {
        bench_op_add(h, op, (double)(t1 - t0));
        rc = drop(missing.page) < 0 ? EIO : 0;
    }
    return rc;
}

static int
missing_begin(struct bench_handler *h, bool *skipp)
{
    const uint64_t features[] = {UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MOVE,
                                 UFFD_FEATURE_SIGBUS};
    unsigned i = 0;

    missing.page = anonymous();
    move_from = anonymous();
    if ((void *)missing.page == MAP_FAILED || (void *)move_from == MAP_FAILED)
        return bench_fail("mmap: %s", strerror(errno));
    while (i < 2 && watch(&missing, features[i], UFFDIO_REGISTER_MODE_MISSING) != 0)
        i++;
    if (i > 0) {
        h->missing[OP_UFFD_MOVE] = "the kernel has no UFFDIO_MOVE";
        munmap(move_from, BENCH_PAGE);
        move_from = NULL;
    }
    *skipp = i == 2;
    if (*skipp)
        h->missing[OP_SIGBUS_ENTER] = h->missing[OP_UFFD_COPY] =
            h->missing[OP_SIGBUS_EXIT] = h->missing[OP_UFFD_ZEROPAGE] =
                h->missing[OP_UFFD_MOVE] = missing.why;
    return 0;
}

static int
missing_round(struct bench_handler *h)
{
    struct bench_trap t = {0};
    int rc = bench_trap_touch(missing.page, fill_copy, &t);

    if (rc != 0)
        return bench_fail("UFFDIO_COPY: %s", strerror(rc));
    bench_op_add(h, OP_SIGBUS_ENTER, (double)(t.entered - t.before));
    bench_op_add(h, OP_UFFD_COPY, (double)(t.fixed - t.entered));
    bench_op_add(h, OP_SIGBUS_EXIT, (double)(t.after - t.fixed));
    if (drop(missing.page) < 0)
        return 1;
    rc = fill(h, OP_UFFD_ZEROPAGE, fill_zero);
    if (rc != 0)
        return bench_fail("UFFDIO_ZEROPAGE: %s", strerror(rc));
    if (move_from == NULL)
        return 0;
    memset(move_from, 1, BENCH_PAGE); /* it has gone at the last move */
    rc = fill(h, OP_UFFD_MOVE, fill_move);
    return rc == 0 ? 0 : bench_fail("UFFDIO_MOVE: %s", strerror(rc));
}

static void
missing_end(struct bench_handler *h)
{
    (void)h;
    unwatch(&missing);
    if (move_from != NULL)
        munmap(move_from, BENCH_PAGE);
    move_from = NULL;
}

const struct bench_probe bench_probe_uffd_missing = {missing_begin, missing_round,
                                                     missing_end};

/* ---- Write protection ------------------------------------------------------------------ */

/* protect -- or not; ret 0 or errno. */
static int
protect(uint8_t *page, bool is_on)
{
    struct uffdio_writeprotect wp = {
        .range = {.start = (uint64_t)(uintptr_t)page, .len = BENCH_PAGE},
        .mode = is_on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
    };

    return ioctl(guarded.fd, UFFDIO_WRITEPROTECT, &wp) == 0 ? 0 : errno;
}

static int
unprotect(uint8_t *page)
{
    return protect(page, false);
}

static int
protect_begin(struct bench_handler *h, bool *skipp)
{
    guarded.page = anonymous();
    if ((void *)guarded.page == MAP_FAILED)
        return bench_fail("mmap: %s", strerror(errno));
    memset(guarded.page, 1, BENCH_PAGE);
    *skipp = watch(&guarded, UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP,
                   UFFDIO_REGISTER_MODE_WP)
             != 0;
    if (*skipp)
        h->missing[OP_UFFD_PROTECT] = h->missing[OP_UFFD_UNPROTECT] = guarded.why;
    return 0;
}

static int
protect_round(struct bench_handler *h)
{
    struct bench_trap t = {0};
    uint64_t t0 = bench_ticks(), t1;
    int rc = protect(guarded.page, true);

    t1 = bench_ticks();
    if (rc == 0)
        rc = bench_trap_touch(guarded.page, unprotect, &t);
    if (rc != 0)
        return bench_fail("UFFDIO_WRITEPROTECT: %s", strerror(rc));
    bench_op_add(h, OP_UFFD_PROTECT, (double)(t1 - t0));
    bench_op_add(h, OP_UFFD_UNPROTECT, (double)(t.fixed - t.entered));
    return 0;
}

static void
protect_end(struct bench_handler *h)
{
    (void)h;
    unwatch(&guarded);
}

const struct bench_probe bench_probe_uffd_protect = {protect_begin, protect_round,
                                                     protect_end};

/* ---- Pages that are there, but not mapped ------------------------------------------------ */

static int
fill_continue(uint8_t *page)
{
    struct uffdio_continue c = {
        .range = {.start = (uint64_t)(uintptr_t)page, .len = BENCH_PAGE}};

    return ioctl(minor.fd, UFFDIO_CONTINUE, &c) == 0 ? 0 : errno;
}

static int
minor_begin(struct bench_handler *h, bool *skipp)
{
    int fd = memfd_create("xbench", MFD_CLOEXEC);

    if (fd < 0 || write(fd, content, BENCH_PAGE) != (ssize_t)BENCH_PAGE)
        return bench_fail("memfd: %s", strerror(errno));
    minor.page = mmap(NULL, BENCH_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if ((void *)minor.page == MAP_FAILED)
        return bench_fail("mmap: %s", strerror(errno));
    *skipp = watch(&minor, UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MINOR_SHMEM,
                   UFFDIO_REGISTER_MODE_MINOR)
             != 0;
    if (*skipp)
        h->missing[OP_UFFD_CONTINUE] = minor.why;
    return 0;
}

static int
minor_round(struct bench_handler *h)
{
    struct bench_trap t = {0};
    int rc = bench_trap_touch(minor.page, fill_continue, &t);

    if (rc != 0)
        return bench_fail("UFFDIO_CONTINUE: %s", strerror(rc));
    bench_op_add(h, OP_UFFD_CONTINUE, (double)(t.fixed - t.entered));
    return drop(minor.page) < 0 ? 1 : 0;
}

static void
minor_end(struct bench_handler *h)
{
    (void)h;
    unwatch(&minor);
}

const struct bench_probe bench_probe_uffd_minor = {minor_begin, minor_round, minor_end};

/* ---- Guard pages ----------------------------------------------------------------------------- */

static uint8_t
    *guard_page; /* of a private mapping of the file, with two neighbours      */

static int
remove_guard(uint8_t *page)
{
    return madvise(page, BENCH_PAGE, MADV_GUARD_REMOVE) == 0 ? 0 : errno;
}

static int
guard_begin(struct bench_handler *h, bool *skipp)
{
    static char why[WHY_BYTES];
    uint8_t *p =
        mmap(NULL, 3 * (size_t)BENCH_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, h->fd, 0);

    if ((void *)p == MAP_FAILED)
        return bench_fail("mmap: %s", strerror(errno));
    guard_page = p + BENCH_PAGE;
    *skipp = madvise(guard_page, BENCH_PAGE, MADV_GUARD_INSTALL) != 0;
    if (*skipp)
        h->missing[OP_GUARD_INSTALL] = h->missing[OP_GUARD_REMOVE] =
            because(why, "MADV_GUARD_INSTALL on a file");
    return 0;
}

static int
guard_round(struct bench_handler *h)
{
    struct bench_trap t = {0};
    uint64_t t0 = bench_ticks(), t1;
    int rc = madvise(guard_page, BENCH_PAGE, MADV_GUARD_INSTALL) == 0 ? 0 : errno;

    t1 = bench_ticks();
    if (rc == 0)
        rc = bench_trap_touch(guard_page, remove_guard, &t);
    if (rc != 0)
        return bench_fail("guard page: %s", strerror(rc));
    bench_op_add(h, OP_GUARD_INSTALL, (double)(t1 - t0));
    bench_op_add(h, OP_GUARD_REMOVE, (double)(t.fixed - t.entered));
    return 0;
}

static void
guard_end(struct bench_handler *h)
{
    (void)h;
    munmap(guard_page - BENCH_PAGE, 3 * (size_t)BENCH_PAGE);
}

const struct bench_probe bench_probe_guard = {guard_begin, guard_round, guard_end};
