/* SPDX-License-Identifier: MIT */
/*
 * handler_map.c -- the experiment `handler`: mappings, protections, first accesses, copies.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/cost/handler.h"

#define WALK_BYTES ((size_t)BENCH_WALK * BENCH_PAGE)
#define COPIES     1000u /* memcpy in a row, as in the Thesis                             */
#define COLD_PAGES \
 16384u /* 64 MiB to pick a page from                                   */

/* ---- The Thesis' loop (section 4.2.3) ------------------------------------------------ */

static struct {
    uint8_t
        *page; /* an address without a mapping, between rounds                       */
    int fd;
} thesis;

/* map_page -- the page of the file, where it was asked for. */
static int
map_page(uint8_t *page)
{
    void *p = mmap(page, BENCH_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                   thesis.fd, 0);

    return p == MAP_FAILED ? errno : 0;
}

/* map_and_touch -- so that leaving the handler does not include the first access. */
static int
map_and_touch(uint8_t *page)
{
    int rc = map_page(page);

    bench_trap_note();
    if (rc == 0)
        *(volatile int *)(void *)page += 1;
    return rc;
}

static int
thesis_begin(struct bench_handler *h, bool *skipp)
{
    void *p = mmap(NULL, BENCH_PAGE, PROT_NONE, MAP_SHARED, h->fd, 0);

    (void)skipp;
    if (p == MAP_FAILED)
        return bench_fail("mmap: %s", strerror(errno));
    thesis.page = p;
    thesis.fd = h->fd;
    munmap(p, BENCH_PAGE);
    return 0;
}

/* thesis_touch -- one turn of the loop; ret 0, or 1 after a message. */
static int
thesis_touch(struct bench_handler *h, int (*fix)(uint8_t *page), enum bench_op exit_op)
{
    struct bench_trap t = {0};
    int rc = bench_trap_touch(thesis.page, fix, &t);
    uint64_t t0, t1;

    if (rc != 0)
        return bench_fail("touching an unmapped page: %s", strerror(rc));
    if (exit_op == OP_SEGV_EXIT) {
        bench_op_add(h, OP_SEGV_ENTER, (double)(t.entered - t.before));
        bench_op_add(h, OP_MMAP, (double)(t.middle - t.entered));
    }
    bench_op_add(h, exit_op, (double)(t.after - t.fixed));
    t0 = bench_ticks();
    rc = munmap(thesis.page, BENCH_PAGE);
    t1 = bench_ticks();
    if (rc != 0)
        return bench_fail("munmap: %s", strerror(errno));
    if (exit_op == OP_SEGV_EXIT)
        bench_op_add(h, OP_MUNMAP, (double)(t1 - t0));
    return 0;
}

static int
thesis_round(struct bench_handler *h)
{
    int rc = thesis_touch(h, map_and_touch, OP_SEGV_EXIT);

    return rc != 0 ? rc : thesis_touch(h, map_page, OP_SEGV_EXIT_ACCESS);
}

static void
thesis_end(struct bench_handler *h)
{
    (void)h;
}

const struct bench_probe bench_probe_thesis = {thesis_begin, thesis_round, thesis_end};

/* ---- First accesses --------------------------------------------------------------------- */

static uint8_t
    *access_at; /* a page that is mapped anew for each access                 */

static int
access_begin(struct bench_handler *h, bool *skipp)
{
    void *p = mmap(NULL, BENCH_PAGE, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    (void)h;
    (void)skipp;
    access_at = p;
    return p != MAP_FAILED ? 0 : bench_fail("mmap: %s", strerror(errno));
}

/* access_once -- map, touch for the first time, and what it took; ret ticks, or < 0. */
static double
access_once(int flags, int fd, bool is_write)
{
    void *page =
        mmap(access_at, BENCH_PAGE, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
    volatile int *p = page;
    uint64_t t0, t1;

    if (page == MAP_FAILED)
        return -1;
    t0 = bench_ticks();
    if (is_write)
        *p += 1;
    else
        (void)*p;
    t1 = bench_ticks();
    return (double)(t1 - t0);
}

static int
access_round(struct bench_handler *h)
{
    const struct {
        enum bench_op op;
        int flags, fd;
        bool is_write;
    } kinds[] = {
        {OP_FIRST_READ, MAP_SHARED, h->fd, false},
        {OP_FIRST_WRITE, MAP_SHARED, h->fd, true},
        {OP_FIRST_READ_PRIVATE, MAP_PRIVATE, h->fd, false},
        {OP_FIRST_WRITE_PRIVATE, MAP_PRIVATE, h->fd, true},
        {OP_FIRST_WRITE_ANON, MAP_PRIVATE | MAP_ANONYMOUS, -1, true},
    };
    uint64_t t0, t1, t2;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        double ticks = access_once(kinds[i].flags, kinds[i].fd, kinds[i].is_write);

        if (ticks < 0)
            return bench_fail("mmap: %s", strerror(errno));
        bench_op_add(h, kinds[i].op, ticks);
    }
    t0 = bench_ticks();
    if (madvise(access_at, BENCH_PAGE, MADV_DONTNEED) != 0)
        return bench_fail("madvise: %s", strerror(errno));
    t1 = bench_ticks();
    if (mmap(access_at, BENCH_PAGE, PROT_NONE, MAP_SHARED | MAP_FIXED, h->fd, 0)
        == MAP_FAILED)
        return bench_fail("mmap: %s", strerror(errno));
    t2 = bench_ticks();
    bench_op_add(h, OP_MADV_DONTNEED, (double)(t1 - t0));
    bench_op_add(h, OP_MMAP_NONE, (double)(t2 - t1));
    return 0;
}

static void
access_end(struct bench_handler *h)
{
    (void)h;
    munmap(access_at, BENCH_PAGE);
}

const struct bench_probe bench_probe_access = {access_begin, access_round, access_end};

/* ---- The walk ------------------------------------------------------------------------------ */

static uint8_t
    *walk_base; /* private copies, without access between rounds              */

static int
walk_begin(struct bench_handler *h, bool *skipp)
{
    void *p = mmap(NULL, WALK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, h->fd, 0);

    (void)skipp;
    if (p == MAP_FAILED)
        return bench_fail("mmap: %s", strerror(errno));
    walk_base = p;
    memset(walk_base, 1, WALK_BYTES);
    return mprotect(walk_base, WALK_BYTES, PROT_NONE) == 0
               ? 0
               : bench_fail("mprotect: %s", strerror(errno));
}

/* walk -- give access to page after page and use it; ret 0, or 1 after a message. */
static int
walk(struct bench_handler *h, int prot, enum bench_op protect_op, enum bench_op access_op)
{
    for (size_t i = 0; i < BENCH_WALK; i++) {
        uint8_t *page = walk_base + i * BENCH_PAGE;
        volatile int *first = (volatile int *)(void *)page;
        uint64_t t0 = bench_ticks(), t1, t2;

        if (mprotect(page, BENCH_PAGE, prot) != 0)
            return bench_fail("mprotect: %s", strerror(errno));
        t1 = bench_ticks();
        if (prot == PROT_READ)
            (void)*first;
        else
            *first = (int)i;
        t2 = bench_ticks_done();
        bench_op_add(h, protect_op, (double)(t1 - t0));
        if (access_op != N_OPS)
            bench_op_add(h, access_op, (double)(t2 - t1));
    }
    return 0;
}

/*
 * walk_both -- give access for reading, then for writing, to page after page: the first call
 * splits off a mapping, which the second one merges with that of the page before.
 */
static int
walk_both(struct bench_handler *h)
{
    for (size_t i = 0; i < BENCH_WALK; i++) {
        uint8_t *page = walk_base + i * BENCH_PAGE;
        volatile int *first = (volatile int *)(void *)page;
        uint64_t t0 = bench_ticks(), t1;
        bool is_refused = mprotect(page, BENCH_PAGE, PROT_READ) != 0;

        if (!is_refused) {
            (void)*first;
            is_refused = mprotect(page, BENCH_PAGE, PROT_READ | PROT_WRITE) != 0;
        }
        t1 = bench_ticks();
        if (is_refused)
            return bench_fail("mprotect: %s", strerror(errno));
        *first = (int)i;
        bench_op_add(h, OP_MPROTECT_BOTH, (double)(t1 - t0));
    }
    return 0;
}

/* take_back -- all pages at once, as at the end of a transaction. */
static int
take_back(struct bench_handler *h)
{
    uint64_t t0 = bench_ticks(), t1;

    if (mprotect(walk_base, WALK_BYTES, PROT_NONE) != 0)
        return bench_fail("mprotect: %s", strerror(errno));
    t1 = bench_ticks();
    bench_op_add(h, OP_MPROTECT_NONE, (double)(t1 - t0) / BENCH_WALK);
    return 0;
}

static int
walk_round(struct bench_handler *h)
{
    int rc;

    if (h->round % BENCH_WALK != 0)
        return 0;
    rc = walk(h, PROT_READ, OP_MPROTECT_READ, OP_LOAD_AFTER);
    if (rc == 0)
        rc = take_back(h);
    if (rc == 0)
        rc = walk(h, PROT_READ | PROT_WRITE, OP_MPROTECT_WRITE, OP_STORE_AFTER);
    if (rc == 0)
        rc = take_back(h);
    if (rc == 0 && mprotect(walk_base, WALK_BYTES, PROT_READ) != 0)
        rc = bench_fail("mprotect: %s", strerror(errno));
    if (rc == 0)
        rc = walk(h, PROT_READ | PROT_WRITE, OP_MPROTECT_UPGRADE, N_OPS);
    if (rc == 0)
        rc = take_back(h);
    if (rc == 0)
        rc = walk_both(h);
    return rc == 0 ? take_back(h) : rc;
}

static void
walk_end(struct bench_handler *h)
{
    (void)h;
    munmap(walk_base, WALK_BYTES);
}

const struct bench_probe bench_probe_walk = {walk_begin, walk_round, walk_end};

/* ---- Copies ---------------------------------------------------------------------------------- */

static struct {
    uint8_t
        *cold; /* COLD_PAGES                                                         */
    uint8_t from[BENCH_PAGE], to[BENCH_PAGE];
} copies;

static int
copy_begin(struct bench_handler *h, bool *skipp)
{
    (void)h;
    (void)skipp;
    copies.cold = malloc((size_t)COLD_PAGES * BENCH_PAGE);
    if (copies.cold == NULL)
        return bench_fail("out of memory");
    memset(copies.cold, 1, (size_t)COLD_PAGES * BENCH_PAGE);
    return 0;
}

/* copy_page -- a memcpy that the compiler can neither leave out nor put elsewhere. */
static inline void
copy_page(uint8_t *to, const uint8_t *from)
{
    memcpy(to, from, BENCH_PAGE);
    __asm__ volatile("" ::"r"(to) : "memory");
}

/* copy_fresh -- between arrays that have never been touched (Thesis table 4.5). */
static int
copy_fresh(struct bench_handler *h)
{
    uint8_t *p = mmap(NULL, 2 * (size_t)BENCH_PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t t0, t1, t2;

    if ((void *)p == MAP_FAILED)
        return bench_fail("mmap: %s", strerror(errno));
    t0 = bench_ticks();
    copy_page(p, p + BENCH_PAGE);
    t1 = bench_ticks();
    for (unsigned i = 0; i < 4; i++)
        copy_page(p, p + BENCH_PAGE);
    t2 = bench_ticks();
    munmap(p, 2 * (size_t)BENCH_PAGE);
    bench_op_add(h, OP_MEMCPY_FIRST, (double)(t1 - t0));
    bench_op_add(h, OP_MEMCPY_NEXT, (double)(t2 - t1) / 4);
    return 0;
}

static int
copy_round(struct bench_handler *h)
{
    uint8_t *cold = copies.cold + bench_key(1, h->round) % COLD_PAGES * BENCH_PAGE;
    uint64_t t0, t1;
    int differs = 0;

    t0 = bench_ticks();
    for (unsigned i = 0; i < COPIES; i++)
        copy_page(copies.to, copies.from);
    t1 = bench_ticks();
    bench_op_add(h, OP_MEMCPY, (double)(t1 - t0) / COPIES);
    bench_op_add(h, OP_MEMCPY_1000, (double)(t1 - t0));
    t0 = bench_ticks();
    for (unsigned i = 0; i < COPIES; i++) {
        differs |= memcmp(copies.to, copies.from, BENCH_PAGE);
        __asm__ volatile("" ::"r"(copies.to), "r"(differs) : "memory");
    }
    t1 = bench_ticks();
    bench_op_add(h, OP_MEMCMP, (double)(t1 - t0) / COPIES);
    t0 = bench_ticks();
    copy_page(copies.to, cold);
    t1 = bench_ticks_done();
    bench_op_add(h, OP_MEMCPY_COLD, (double)(t1 - t0));
    memcpy(copies.from, copies.to, BENCH_PAGE);
    if (differs != 0)
        return bench_fail("memcmp finds a difference to a copy");
    return copy_fresh(h);
}

static void
copy_end(struct bench_handler *h)
{
    (void)h;
    free(copies.cold);
}

const struct bench_probe bench_probe_copy = {copy_begin, copy_round, copy_end};
