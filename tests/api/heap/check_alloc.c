/* SPDX-License-Identifier: MIT */
/*
 * check_alloc.c -- the allocator inside a segment, one process.
 *
 * GOAL    memory that is handed out is aligned, inside the segment, nobody else's, and
 *         keeps its contents; what is freed can be had again, all of it; an abort undoes;
 *         what is no heap or no allocation is refused; a longer mapping gives more room.
 * METHOD  a model of what is allocated, with a mark for every 16 bytes of the segment, and
 *         xHeapCheck() after each round.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"

#define UNIT 16

/* ---- the model ---------------------------------------------------------------------- */

#define MODEL_MAX 4096

struct block {
    uint64_t offset, size, salt;
};

static struct block model[MODEL_MAX], saved[MODEL_MAX];
static size_t n_blocks, n_saved;
static unsigned char *taken; /* per unit of the segment */
static unsigned char *base;
static size_t segment_bytes;

static void
fill(unsigned char *p, uint64_t size, uint64_t salt)
{
    for (uint64_t i = 0; i < size; i++)
        p[i] = (unsigned char)(salt + i * 31);
}

static bool
is_filled(const unsigned char *p, uint64_t size, uint64_t salt)
{
    for (uint64_t i = 0; i < size; i++) {
        if (p[i] != (unsigned char)(salt + i * 31))
            return false;
    }
    return true;
}

static void
mark(const struct block *b, bool is_taken)
{
    for (uint64_t u = b->offset / UNIT; u * UNIT < b->offset + b->size; u++) {
        if (taken[u] == is_taken)
            env_fail(__FILE__, __LINE__, "offset %" PRIu64 " overlaps another", u * UNIT);
        taken[u] = is_taken;
    }
}

static bool
model_take(uint64_t size, uint64_t salt)
{
    struct block b = {.size = size, .salt = salt};
    unsigned char *p = xMalloc(base, size);

    if (p == NULL) {
        must_eq(errno, ENOMEM);
        return false;
    }
    must((uintptr_t)p % UNIT == 0);
    must(p >= base && p + size <= base + segment_bytes);
    b.offset = (uint64_t)(p - base);
    if (size == 0)
        b.size = 1; /* its address is its own */
    fill(p, size, salt);
    mark(&b, true);
    must(n_blocks < MODEL_MAX);
    b.size = size;
    model[n_blocks++] = b;
    return true;
}

static void
model_give(size_t i)
{
    struct block b = model[i];

    must(is_filled(base + b.offset, b.size, b.salt));
    must_ok(xFree(base, base + b.offset));
    if (b.size == 0)
        b.size = 1;
    mark(&b, false);
    model[i] = model[--n_blocks];
}

static void
remark(void)
{
    memset(taken, 0, segment_bytes / UNIT);
    for (size_t i = 0; i < n_blocks; i++) {
        struct block b = model[i];

        if (b.size == 0)
            b.size = 1;
        mark(&b, true);
    }
}

static struct xac_heap_totals
totals(void)
{
    struct xac_heap_totals t;

    must_ok(xbeginQuery());
    must_ok(xHeapCheck(base, &t, sizeof t));
    must_ok(xendQuery());
    must_eq(t.bytes, t.bytes_used + t.bytes_free + t.bytes_own);
    return t;
}

static void
open_heap(size_t n_pages)
{
    base = env_attach(NONDURABLE, n_pages);
    segment_bytes = n_pages * env_page();
    taken = calloc(segment_bytes / UNIT, 1);
    must(taken != NULL);
    n_blocks = 0;
}

static void
close_heap(void)
{
    free(taken);
    env_detach();
}

/* ---- random work against the model ----------------------------------------------------- */

static uint64_t
random_size(uint64_t *rnd)
{
    uint64_t page = env_page();

    switch (rnd_below(rnd, 10)) {
    case 0:
        return rnd_below(rnd, 2) * rnd_below(rnd, 18);
    case 1:
        return page / (1 + rnd_below(rnd, 9)) - 8 + rnd_below(rnd, 17);
    case 2:
        return rnd_below(rnd, 3 * page);
    case 3:
        return rnd_below(rnd, 4) == 0 ? rnd_below(rnd, 200 * page) : page;
    case 4:
        return UNIT * rnd_below(rnd, 64) + rnd_below(rnd, 3);
    default:
        return rnd_below(rnd, 300);
    }
}

/* Ops of one transaction; which grows or shrinks the heap. */
static void
work(uint64_t *rnd, uint64_t grow_percent, uint64_t *refused)
{
    uint64_t ops = 1 + rnd_below(rnd, 40);

    while (ops-- > 0) {
        if (n_blocks < MODEL_MAX - 1 && rnd_below(rnd, 100) < grow_percent)
            *refused += !model_take(random_size(rnd), rnd_next(rnd));
        else if (n_blocks > 0)
            model_give(rnd_below(rnd, n_blocks));
    }
}

START_TEST(model_random)
{
    uint64_t rnd = env_seed() + (uint64_t)_i;
    uint64_t rounds = env_number("XAC_ROUNDS", 1500);
    uint64_t aborted = 0, refused = 0, most = 0;

    must_ok(
        xSetOption(XAC_OPT_CHECKING, _i == 3 ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT));
    open_heap(_i == 1 ? 100 : _i == 2 ? 9 : 1024);
    for (uint64_t round = 0; round < rounds; round++) {
        bool is_abort = rnd_below(&rnd, 5) == 0;

        memcpy(saved, model, sizeof saved);
        n_saved = n_blocks;
        must_ok(xbegin());
        work(&rnd, round / 100 % 2 == 0 ? 65 : 40, &refused);
        if (is_abort) {
            must_ok(xAbort());
            must_rc(xend(), ABORTED);
            memcpy(model, saved, sizeof saved);
            n_blocks = n_saved;
            remark();
            aborted++;
        } else {
            must_rc(xend(), COMMITTED);
        }
        if (n_blocks > most)
            most = n_blocks;
        if (round % 10 == 0)
            must_eq(totals().allocations, n_blocks);
    }
    must_ok(xbegin());
    while (n_blocks > 0)
        model_give(n_blocks - 1);
    must_rc(xend(), COMMITTED);
    must_eq(totals().allocations, 0);
    must_eq(totals().bytes_used, 0);
    printf("model: %" PRIu64 " transactions, %" PRIu64 " of them undone, at most %" PRIu64
           " blocks, %" PRIu64 " refused\n",
           rounds, aborted, most, refused);
    if (rounds >= 200) /* a fifth is expected */
        must(most > 20 && aborted > rounds / 10);
    close_heap();
}
END_TEST

START_TEST(take_any_size)
{
    uint64_t page = env_page();
    uint64_t sizes[] = {0,
                        1,
                        15,
                        16,
                        17,
                        31,
                        32,
                        33,
                        127,
                        128,
                        129,
                        160,
                        161,
                        447,
                        448,
                        449,
                        511,
                        512,
                        513,
                        page / 3,
                        page / 2 - 1,
                        page / 2,
                        page / 2 + 1,
                        page - 1,
                        page,
                        page + 1,
                        2 * page,
                        62 * page,
                        63 * page,
                        63 * page + 1,
                        64 * page,
                        64 * page + 1,
                        65 * page,
                        127 * page,
                        128 * page,
                        129 * page + 5,
                        300 * page};

    open_heap(1024);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        must_ok(xbegin());
        must(model_take(sizes[i], i));
        must(model_take(sizes[i], i + 77));
        must_rc(xend(), COMMITTED);
        must_eq(totals().allocations, 2);
        must_ok(xbegin());
        model_give(i % 2);
        model_give(0);
        must_rc(xend(), COMMITTED);
        must_eq(totals().allocations, 0);
    }
    close_heap();
}
END_TEST

/* ---- full and empty ---------------------------------------------------------------------- */

/* Fill the segment with blocks of a size, in transactions of 500; ret how many fit. */
static uint64_t
fill_up(uint64_t size, uint64_t *offsets)
{
    uint64_t n = 0;
    bool is_full = false;

    while (!is_full) {
        must_ok(xbegin());
        for (int i = 0; i < 500 && !is_full; i++) {
            unsigned char *p = xMalloc(base, size);

            is_full = p == NULL;
            if (!is_full)
                offsets[n++] = (uint64_t)(p - base);
            else /* now, for a commit may change errno */
                must_eq(errno, ENOMEM);
        }
        must_rc(xend(), COMMITTED);
    }
    must(strstr(xLastError(), "no room") != NULL);
    return n;
}

static void
empty_out(uint64_t *offsets, uint64_t n, uint64_t *rnd)
{
    while (n > 0) {
        must_ok(xbegin());
        for (int i = 0; i < 500 && n > 0; i++) {
            uint64_t at = rnd_below(rnd, n);

            must_ok(xFree(base, base + offsets[at]));
            offsets[at] = offsets[--n];
        }
        must_rc(xend(), COMMITTED);
    }
}

START_TEST(fill_and_empty_gives_the_same_room)
{
    uint64_t page = env_page();
    uint64_t sizes[] = {16, 48, 100, 400, 512, 1000, page / 2, page, 3 * page, 64 * page};
    uint64_t *offsets = malloc(8 * 1024 * page / UNIT);
    uint64_t rnd = env_seed();
    struct xac_heap_totals before, after;

    must(offsets != NULL);
    open_heap(512);
    must_ok(xbegin());
    must(xRoot(base) != NULL);
    must_rc(xend(), COMMITTED);
    before = totals();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t first = fill_up(sizes[i], offsets);
        uint64_t second;

        must(first * sizes[i] >= segment_bytes / 100 * 85);
        must_eq(totals().allocations, first);
        empty_out(offsets, first, &rnd);
        must_eq(totals().allocations, 0);
        second = fill_up(sizes[i], offsets);
        must_eq(second, first);
        empty_out(offsets, second, &rnd);
        printf("%" PRIu64 " bytes: %" PRIu64 " blocks, %.1f %% of the segment\n",
               sizes[i], first,
               100.0 * (double)(first * sizes[i]) / (double)segment_bytes);
    }
    /* Nothing is left behind: the largest allocation is possible as in the beginning. */
    must_ok(xbegin());
    must(xMalloc(base, before.largest_free) != NULL);
    must_rc(xend(), COMMITTED);
    after = totals();
    must_eq(after.allocations, 1);
    must(after.bytes_used >= before.largest_free);
    must_ok(xbegin());
    must(xMalloc(base, before.largest_free) == NULL);
    must_rc(xend(), COMMITTED);
    free(offsets);
    close_heap();
}
END_TEST

/* Every other block freed: the holes are found again. */
START_TEST(take_finds_holes)
{
    uint64_t page = env_page();
    uint64_t sizes[] = {16, 200, 1000, page};
    uint64_t *offsets = malloc(8 * 1024 * page / UNIT);

    must(offsets != NULL);
    open_heap(200);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t n = fill_up(sizes[i], offsets);
        uint64_t kept = 0, got;

        must_ok(xbegin());
        for (uint64_t k = 0; k < n; k++) {
            if (k % 2 == 0)
                offsets[kept++] = offsets[k];
            else
                must_ok(xFree(base, base + offsets[k]));
        }
        must_rc(xend(), COMMITTED);
        got = fill_up(sizes[i], offsets + kept);
        must_eq(kept + got, n);
        must_ok(xbegin());
        for (uint64_t k = 0; k < n; k++)
            must_ok(xFree(base, base + offsets[k]));
        must_rc(xend(), COMMITTED);
        must_eq(totals().allocations, 0);
    }
    free(offsets);
    close_heap();
}
END_TEST

/* ---- undoing, the root -------------------------------------------------------------------- */

START_TEST(abort_undoes_all)
{
    struct xac_heap_totals before, after;
    uint64_t rnd = env_seed();
    struct image *im;

    open_heap(300);
    must_ok(xbegin());
    must(xMalloc(base, 100) != NULL); /* made and undone */
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    must_eq(totals().bytes, 0);
    must_ok(xbegin());
    for (int i = 0; i < 100; i++)
        must(model_take(random_size(&rnd) % 5000, rnd_next(&rnd)));
    must_rc(xend(), COMMITTED);
    before = totals();
    must_ok(xCheckpoint());
    im = image_take(".");
    must_ok(xbegin());
    for (int i = 0; i < 50; i++)
        must_ok(xFree(base, base + model[2 * i].offset));
    for (int i = 0; i < 200; i++)
        must(xMalloc(base, random_size(&rnd) % 5000) != NULL);
    must(xMalloc(base, 100 * env_page()) != NULL);
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    after = totals();
    must(memcmp(&before, &after, sizeof before) == 0);
    must_ok(xCheckpoint());
    must_unchanged(im, ".");
    image_free(im);
    must_ok(xbegin());
    while (n_blocks > 0)
        model_give(0);
    must_rc(xend(), COMMITTED);
    close_heap();
}
END_TEST

START_TEST(root_is_zero_and_stays)
{
    unsigned char *root;

    open_heap(8);
    must_ok(xbeginQuery());
    root = xRoot(base);
    must(root != NULL && (uintptr_t)root % 64 == 0);
    for (int i = 0; i < XAC_ROOT_SIZE; i++)
        must_eq(root[i], 0);
    must_ok(xendQuery());
    must_eq(totals().bytes, 0); /* a query makes no heap */
    must_ok(xbegin());
    must(xRoot(base) == root);
    fill(root, XAC_ROOT_SIZE, 3);
    must_rc(xend(), COMMITTED);
    must_eq(totals().allocations, 0);
    close_heap();

    open_heap(8);
    must_ok(xbegin());
    root = xRoot(base);
    must(is_filled(root, XAC_ROOT_SIZE, 3));
    must(xMalloc(base, 40) != NULL);
    must(is_filled(root, XAC_ROOT_SIZE, 3));
    must_rc(xend(), COMMITTED);
    close_heap();
}
END_TEST

/* ---- refusing -------------------------------------------------------------------------- */

#define must_be_null(call, code) \
 do {                            \
  errno = 0;                     \
  must((call) == NULL);          \
  must_eq(errno, (code));        \
  must(*xLastError() != '\0');   \
 } while (0)

START_TEST(calls_out_of_turn_are_refused)
{
    struct xac_heap_totals t;
    unsigned char *p;

    must_be_null(xMalloc(&t, 8), EPERM);
    must_be_null(xRoot(&t), EPERM);
    must_refuse(xFree(&t, &t), XAC_ENOINIT);
    must_refuse(xHeapCheck(&t, &t, sizeof t), XAC_ENOINIT);
    open_heap(16);
    must_be_null(xMalloc(base, 8), EPERM);
    must_be_null(xRoot(base), EPERM);
    must_refuse(xFree(base, NULL), XAC_ENOTXN);
    must_refuse(xHeapCheck(base, &t, sizeof t), XAC_ENOTXN);
    must_ok(xbeginQuery());
    must_be_null(xMalloc(base, 8), EPERM);
    must_refuse(xFree(base, NULL), XAC_EINQUERY);
    must_ok(xendQuery());
    must_ok(xbegin());
    must_be_null(xMalloc(base + env_page(), 8), EINVAL);
    must_be_null(xMalloc(NULL, 8), EINVAL);
    must_be_null(xMalloc(&t, 8), EINVAL);
    must_be_null(xRoot(base + 64), EINVAL);
    must_refuse(xFree(base + 64, NULL), XAC_ENOTMAPPED);
    must_be_null(xMalloc(base, SIZE_MAX), ENOMEM);
    must_be_null(xMalloc(base, SIZE_MAX - 4000), ENOMEM);
    must_be_null(xMalloc(base, segment_bytes), ENOMEM);
    p = xMalloc(base, 8);
    must(p != NULL);
    must_ok(xFree(base, NULL));
    must_ok(xbeginQuery());
    must_be_null(xMalloc(base, 8), EPERM);
    must_refuse(xFree(base, p), XAC_EINQUERY);
    must_ok(xHeapCheck(base, &t, sizeof t));
    must_eq(t.allocations, 1);
    must_ok(xHeapCheck(base, NULL, 0));
    must_ok(xendQuery());
    must_ok(xFree(base, p));
    must_rc(xend(), COMMITTED);
    close_heap();
}
END_TEST

/* A pointer that xMalloc() never returned, or that is free already. */
START_TEST(free_of_wrong_pointers_is_refused)
{
    unsigned char *small, *middle, *pages, *large;
    uint64_t page = env_page();

    open_heap(512);
    must_ok(xbegin());
    must_refuse(xFree(base, base + 64), EINVAL); /* no heap yet */
    small = xMalloc(base, 40);
    middle = xMalloc(base, page / 4);
    pages = xMalloc(base, 3 * page);
    large = xMalloc(base, 130 * page);
    must(small && middle && pages && large);
    memset(pages, 0xff, 3 * page);
    memset(large, 0xff, 130 * page);
    must_refuse(xFree(base, base), EINVAL);
    must_refuse(xFree(base, base - 16), EINVAL);
    must_refuse(xFree(base, base + segment_bytes), EINVAL);
    must_refuse(xFree(base, &small), EINVAL);
    must_refuse(xFree(base, xRoot(base)), EINVAL);
    must_refuse(xFree(base, base + page), EINVAL); /* directory */
    must_refuse(xFree(base, small + 8), EINVAL);
    must_refuse(xFree(base, small + 16), EINVAL);
    must_refuse(xFree(base, small + 48), EINVAL); /* the next slot, free */
    must_refuse(xFree(base, middle + 16), EINVAL);
    must_refuse(xFree(base, middle + page / 4), EINVAL);
    must_refuse(xFree(base, pages + page), EINVAL);
    must_refuse(xFree(base, pages + 32), EINVAL);
    must_refuse(xFree(base, large + page), EINVAL);
    must_refuse(xFree(base, large + 64 * page), EINVAL);
    must_refuse(xFree(base, large + 128 * page), EINVAL);
    must_refuse(xFree(base, large + 48), EINVAL);
    must_refuse(xFree(base, base + 511 * page), EINVAL); /* free chunk */
    must_rc(xend(), COMMITTED);
    must_eq(totals().allocations, 4);
    must_ok(xbegin());
    must_ok(xFree(base, small));
    must_ok(xFree(base, middle));
    must_ok(xFree(base, pages));
    must_ok(xFree(base, large));
    must_refuse(xFree(base, small), EINVAL);
    must_refuse(xFree(base, middle), EINVAL);
    must_refuse(xFree(base, pages), EINVAL);
    must_refuse(xFree(base, large), EINVAL);
    must_rc(xend(), COMMITTED);
    must_eq(totals().allocations, 0);
    close_heap();
}
END_TEST

/* Where data is when xMalloc() comes: in the file, in a version, in this transaction. */
START_TEST(other_data_is_never_taken)
{
    uint64_t at = (_i / 2 % 3 == 0 ? 0 : _i / 2 % 3 == 1 ? 5 : 31) * env_page() + 4088;
    uint64_t word = 0x0102030405060708;
    struct xac_heap_totals t;
    bool is_own = _i / 6 == 2;

    if (_i / 6 == 0) {
        file_write(ENV_FILE, at, &word, sizeof word);
        open_heap(32);
    } else {
        open_heap(32);
        if (!is_own)
            env_put((uint64_t *)(void *)(base + at), word);
    }
    must_ok(xbegin());
    if (is_own)
        *(volatile uint64_t *)(void *)(base + at) = word;
    if (_i % 2 == 0)
        must_be_null(xMalloc(base, 10), EINVAL);
    else
        must_be_null(xRoot(base), EINVAL);
    must(strstr(xLastError(), "no heap") != NULL);
    must_refuse(xHeapCheck(base, &t, sizeof t), EINVAL);
    must_rc(xend(), COMMITTED);
    must_eq(env_get((uint64_t *)(void *)(base + at)), word);
    /* Zero again: a heap can be made. */
    env_put((uint64_t *)(void *)(base + at), 0);
    must_ok(xbegin());
    must(xMalloc(base, 10) != NULL);
    must_rc(xend(), COMMITTED);
    must_eq(totals().allocations, 1);
    close_heap();
}
END_TEST

START_TEST(small_segments)
{
    for (size_t n = 1; n <= 6; n++) {
        char name[32];

        must_ok(xInit(ENV_DIR, NONDURABLE));
        snprintf(name, sizeof name, "f%zu", n);
        base = xMmap(name, n * env_page());
        must(base != MAP_FAILED);
        must_ok(xbegin());
        if (n < 4)
            must_be_null(xMalloc(base, 1), EINVAL);
        else
            must(xMalloc(base, 1) != NULL);
        must_rc(xend(), COMMITTED);
        must_eq(totals().allocations, n >= 4);
        env_detach();
    }
}
END_TEST

/* ---- growth ----------------------------------------------------------------------------- */

/* Mapped longer and longer, past two borders of the directory; all is kept and used. */
START_TEST(longer_mapping_gives_room)
{
    static const size_t pages[] = {4,     7,     63,    64,    66,   500,
                                   16384, 16386, 20000, 40000, 70000};
    uint64_t last = 0, offset = 0;

    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        struct xac_heap_totals t;
        uint64_t n = 0;

        base = env_attach(NONDURABLE, pages[i]);
        must_ok(xbegin());
        if (offset != 0)
            must(is_filled(base + offset, last, i - 1));
        for (unsigned char *p = base;; n++) {
            /* What is too large does not fit; what halves at each refusal does. */
            uint64_t size = (pages[i] * env_page()) >> n;

            if (size < 16)
                break;
            p = xMalloc(base, size);
            if (p == NULL)
                continue;
            must(p + size <= base + pages[i] * env_page());
            last = size < 100000 ? size : 100000;
            fill(p, last, i);
            offset = (uint64_t)(p - base);
        }
        must_rc(xend(), COMMITTED);
        t = totals();
        must(t.bytes <= pages[i] * env_page());
        must(i == 0 || pages[i] == 16386 || t.bytes == pages[i] * env_page());
        printf("%zu pages: heap %" PRIu64 ", used %" PRIu64 ", %" PRIu64 " blocks\n",
               pages[i], t.bytes / env_page(), t.bytes_used / env_page(), t.allocations);
        env_detach();
    }
}
END_TEST

/* New space with data in it is not taken. */
START_TEST(longer_mapping_with_other_data_stays_out)
{
    uint64_t word = 77;

    open_heap(8);
    must_ok(xbegin());
    must(xMalloc(base, 10) != NULL);
    must_rc(xend(), COMMITTED);
    close_heap();
    file_write(ENV_FILE, 20 * env_page(), &word, sizeof word);
    open_heap(32);
    must_ok(xbegin());
    must_be_null(xMalloc(base, 10 * env_page()), ENOMEM);
    must(xMalloc(base, 10) != NULL);
    must_rc(xend(), COMMITTED);
    must_eq(totals().bytes, 8 * env_page());
    must_eq(env_get((uint64_t *)(void *)(base + 20 * env_page())), word);
    close_heap();
}
END_TEST

/* 64 GiB of holes: at once. */
START_TEST(huge_sparse_segment)
{
    size_t pages = (size_t)64 << 30 >> 12;
    unsigned char *p;

    base = env_attach(NONDURABLE, pages);
    must_ok(xbegin());
    p = xMalloc(base, (size_t)40 << 30);
    must(p != NULL);
    p[0] = p[((size_t)40 << 30) - 1] = 1;
    must(xMalloc(base, 100) != NULL);
    must(xMalloc(base, (size_t)20 << 30) != NULL);
    must(xMalloc(base, (size_t)20 << 30) == NULL);
    must_rc(xend(), COMMITTED);
    must_eq(totals().allocations, 3);
    must_ok(xbegin());
    must_ok(xFree(base, p));
    must_rc(xend(), COMMITTED);
    must_eq(totals().allocations, 2);
    env_detach();
}
END_TEST

/* ---- what it costs ----------------------------------------------------------------------- */

START_TEST(cost_of_allocating)
{
    enum {
        N = 100000
    };
    static void *p[N];
    struct xac_stats before, after;
    double t0, t1, t2, t3;

    open_heap(8192);
    must_ok(xbegin());
    t0 = env_now();
    for (int i = 0; i < N; i++)
        p[i] = xMalloc(base, 64);
    t1 = env_now();
    for (int i = 0; i < N; i++)
        (void)xFree(base, p[i]);
    t2 = env_now();
    for (int i = 0; i < N; i++)
        (void)xFree(base, xMalloc(base, 64));
    t3 = env_now();
    must_rc(xend(), COMMITTED);
    printf("one transaction, 64 bytes: xMalloc %.0f ns, xFree %.0f ns (pages touched for "
           "the first time included); pair in place %.0f ns\n",
           1e9 * (t1 - t0) / N, 1e9 * (t2 - t1) / N, 1e9 * (t3 - t2) / N);
    for (int is_free = 0; is_free < 2; is_free++) {
        before = env_stats();
        for (int i = 0; i < 2000; i++) {
            must_ok(xbegin());
            if (is_free)
                must_ok(xFree(base, p[i]));
            else
                *(uint64_t *)(p[i] = xMalloc(base, 64)) = 1;
            must_rc(xend(), COMMITTED);
        }
        after = env_stats();
        printf("2000 transactions of one %s: %.2f pages written, %.2f traps each\n",
               is_free ? "xFree" : "xMalloc",
               (double)(after.pages_written - before.pages_written) / 2000,
               (double)(after.traps_read + after.traps_write - before.traps_read
                        - before.traps_write)
                   / 2000);
        must(after.pages_written - before.pages_written < (is_free ? 2600 : 2200));
    }
    must_eq(totals().allocations, 0);
    close_heap();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("alloc");
    TCase *tc = env_tcase(s, "model", 120);

    tcase_add_loop_test(tc, model_random, 0, 4);
    tcase_add_test(tc, take_any_size);
    tcase_add_test(tc, fill_and_empty_gives_the_same_room);
    tcase_add_test(tc, take_finds_holes);
    tcase_add_test(tc, abort_undoes_all);
    tcase_add_test(tc, root_is_zero_and_stays);
    tc = env_tcase(s, "refuse", 60);
    tcase_add_test(tc, calls_out_of_turn_are_refused);
    tcase_add_test(tc, free_of_wrong_pointers_is_refused);
    tcase_add_loop_test(tc, other_data_is_never_taken, 0, 18);
    tcase_add_test(tc, small_segments);
    tc = env_tcase(s, "growth", 60);
    tcase_add_test(tc, longer_mapping_gives_room);
    tcase_add_test(tc, longer_mapping_with_other_data_stays_out);
    tcase_add_test(tc, huge_sparse_segment);
    tc = env_tcase(s, "cost", 60);
    tcase_add_test(tc, cost_of_allocating);
    return env_main(s);
}
