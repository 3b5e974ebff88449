/* SPDX-License-Identifier: MIT */
/*
 * check_realloc.c -- aligned allocation, realloc, usable sizes, and the segment of an address.
 *
 * GOAL    aligned memory is aligned, as much as was asked for, and nobody else's; realloc keeps the
 *         contents, and a refused one keeps the allocation; all of the usable size can be used;
 *         an abort undoes; wrong arguments are refused; an address leads to its environment.
 * METHOD  random calls against a model that knows the contents of each block, and fills all of its
 *         usable size; xHeapCheck() after each transaction.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac_env.h>

#include "env.h"

#define MODEL_MAX 300
#define PAGES     400

struct block {
    unsigned char *p;
    size_t size, usable, alignment;
    unsigned char salt;
};

static struct block model[MODEL_MAX], saved[MODEL_MAX];
static size_t n_blocks, n_saved;
static unsigned char *base;

#define must_be_null(call, code) \
 do {                            \
  errno = 0;                     \
  must((call) == NULL);          \
  must_eq(errno, (code));        \
  must(*xLastError() != '\0');   \
 } while (0)

static void
fill(unsigned char *p, size_t size, unsigned char salt)
{
    for (size_t i = 0; i < size; i++)
        p[i] = (unsigned char)(salt + i * 31);
}

static bool
is_filled(const unsigned char *p, size_t size, unsigned char salt)
{
    for (size_t i = 0; i < size; i++) {
        if (p[i] != (unsigned char)(salt + i * 31))
            return false;
    }
    return true;
}

/* What the allocator has returned: take it into the model, and fill all that may be used. */
static void
note(struct block *b, unsigned char *p, size_t size, size_t alignment, unsigned char salt)
{
    must((uintptr_t)p % alignment == 0);
    must((uintptr_t)p % 16 == 0);
    *b = (struct block){.p = p, .size = size, .alignment = alignment, .salt = salt};
    b->usable = xUsableSize(base, p);
    must(b->usable >= size);
    must(p >= base && p + b->usable <= base + PAGES * env_page());
    fill(p, b->usable, salt);
}

static uint64_t
random_size(uint64_t *rnd)
{
    switch (rnd_below(rnd, 4)) {
    case 0:
        return rnd_below(rnd, 100);
    case 1:
        return rnd_below(rnd, 2 * env_page());
    case 2:
        return env_page() / (1 + rnd_below(rnd, 9));
    default:
        return rnd_below(rnd, 20) == 0 ? rnd_below(rnd, 150 * env_page())
                                       : rnd_below(rnd, 700);
    }
}

static void
step(uint64_t *rnd)
{
    uint64_t size = random_size(rnd);
    unsigned char salt = (unsigned char)rnd_next(rnd);
    uint64_t at = n_blocks == 0 ? 0 : rnd_below(rnd, n_blocks);
    struct block *b = &model[at];
    uint64_t what = rnd_below(rnd, 10);
    unsigned char *p;

    if (n_blocks == 0 || (what < 4 && n_blocks < MODEL_MAX)) {
        size_t alignment = (size_t)1 << rnd_below(rnd, 13);

        p = xAlignedAlloc(base, alignment, size);
        if (p != NULL)
            note(&model[n_blocks++], p, size, alignment, salt);
        else
            must_eq(errno, ENOMEM);
    } else if (what < 7) {
        size_t kept = size < b->size ? size : b->size;

        p = xRealloc(base, b->p, size);
        if (p == NULL) {
            must_eq(errno, ENOMEM);
            must(is_filled(b->p, b->usable, b->salt));
            return;
        }
        must(is_filled(p, kept, b->salt));
        note(b, p, size, p == b->p ? b->alignment : 16, salt);
    } else {
        must(is_filled(b->p, b->usable, b->salt));
        must_ok(xFree(base, b->p));
        *b = model[--n_blocks];
    }
}

static struct xac_heap_totals
totals(void)
{
    struct xac_heap_totals t;

    must_ok(xbeginQuery());
    must_ok(xHeapCheck(base, &t, sizeof t));
    for (size_t i = 0; i < n_blocks; i++)
        must_eq(xUsableSize(base, model[i].p), model[i].usable);
    must_ok(xendQuery());
    return t;
}

START_TEST(contents_stay)
{
    uint64_t rnd = env_seed();
    uint64_t rounds = env_number("XAC_ROUNDS", 300);

    must_ok(xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_STRICT));
    base = env_attach(NONDURABLE, PAGES);
    for (uint64_t round = 0; round < rounds; round++) {
        bool is_abort = rnd_below(&rnd, 5) == 0;
        struct xac_heap_totals t;
        uint64_t used = 0;

        memcpy(saved, model, sizeof saved);
        n_saved = n_blocks;
        must_ok(xbegin());
        for (int i = 0; i < 30; i++)
            step(&rnd);
        if (is_abort) {
            must_ok(xAbort());
            must_rc(xend(), ABORTED);
            memcpy(model, saved, sizeof saved);
            n_blocks = n_saved;
        } else {
            must_rc(xend(), COMMITTED);
        }
        t = totals();
        for (size_t i = 0; i < n_blocks; i++)
            used += model[i].usable;
        must_eq(t.allocations, n_blocks);
        must_eq(t.bytes_used, used);
    }
    must_ok(xbegin());
    for (size_t i = 0; i < n_blocks; i++) {
        must(is_filled(model[i].p, model[i].usable, model[i].salt));
        must_ok(xFree(base, model[i].p));
    }
    n_blocks = 0;
    must_rc(xend(), COMMITTED);
    must_eq(totals().bytes_used, 0);
    env_detach();
}
END_TEST

/* What fits in its place stays there; what becomes much smaller gives room back. */
START_TEST(realloc_stays_if_it_can)
{
    unsigned char *p, *q;

    base = env_attach(NONDURABLE, 16);
    must_ok(xbegin());
    p = xRealloc(base, NULL, 100);
    must(p != NULL);
    must_eq(xUsableSize(base, p), 112);
    must(xRealloc(base, p, 112) == p);
    must(xRealloc(base, p, 60) == p);
    fill(p, 60, 9);
    q = xRealloc(base, p, 113);
    must(q != NULL && q != p);
    must(is_filled(q, 60, 9));
    must_eq(xUsableSize(base, p), 0); /* free now */
    p = xRealloc(base, q, 0);
    must(p != NULL);
    must_eq(xUsableSize(base, p), 16);
    must(is_filled(p, 1, 9));
    must_rc(xend(), COMMITTED);
    must_eq(totals().allocations, 1);

    /* A heap that is full: a larger one is refused, a smaller one is not. */
    must_ok(xbegin());
    while (xMalloc(base, env_page()) != NULL)
        continue;
    while ((q = xMalloc(base, 512)) != NULL)
        p = q;
    fill(p, 512, 4);
    must_be_null(xRealloc(base, p, 3 * env_page()), ENOMEM);
    must(is_filled(p, 512, 4));
    while (xMalloc(base, 16) != NULL)
        continue;
    must(xRealloc(base, p, 1) == p);
    must_rc(xend(), COMMITTED);
    env_detach();
}
END_TEST

START_TEST(wrong_arguments_are_refused)
{
    uint64_t page = env_page();
    unsigned char *p, *large;

    must_be_null(xRealloc(&p, NULL, 1), EPERM);
    base = env_attach(NONDURABLE, 300);
    must_be_null(xAlignedAlloc(base, 64, 1), EPERM);
    must_be_null(xRealloc(base, NULL, 1), EPERM);
    must_ok(xbegin());
    must_eq(xUsableSize(base, base + 64), 0); /* no heap yet */
    must_eq(errno, EINVAL);
    p = xMalloc(base, 40);
    large = xAlignedAlloc(base, page, 100 * page);
    must(p != NULL && large != NULL);
    must_eq(xUsableSize(base, large), 100 * page);
    memset(large, 0xff, 100 * page);
    must_be_null(xAlignedAlloc(base, 0, 1), EINVAL);
    must_be_null(xAlignedAlloc(base, 48, 1), EINVAL);
    must_be_null(xAlignedAlloc(base, 2 * page, 1), EINVAL);
    must_be_null(xAlignedAlloc(base, page, SIZE_MAX), ENOMEM);
    must_be_null(xAlignedAlloc(base + 64, 16, 1), EINVAL);
    must_be_null(xRealloc(base, p + 16, 100), EINVAL);
    must_be_null(xRealloc(base, p + 48, 100), EINVAL); /* the next slot, free */
    must_be_null(xRealloc(base, large + page, 100), EINVAL);
    must_be_null(xRealloc(base, large + 64 * page, 100), EINVAL);
    must_be_null(xRealloc(base, base + page, 100), EINVAL);
    must_be_null(xRealloc(base, &p, 100), EINVAL);
    must_be_null(xRealloc(base, p, SIZE_MAX), ENOMEM);
    errno = 0;
    must_eq(xUsableSize(base, NULL), 0);
    must_eq(errno, 0);
    must_ok(xbeginQuery());
    must_be_null(xAlignedAlloc(base, 64, 1), EPERM);
    must_be_null(xRealloc(base, p, 1), EPERM);
    must_eq(xUsableSize(base, p), 48);
    must_ok(xendQuery());
    must_rc(xend(), COMMITTED);
    must_eq(totals().allocations, 2);
    env_detach();
}
END_TEST

/* A process that has mapped less of the heap cannot use what ends behind its mapping. */
START_TEST(shorter_mapping_is_told)
{
    uint64_t page = env_page(), offset;
    unsigned char *p;

    base = env_attach(NONDURABLE, 300);
    must_ok(xbegin());
    p = xMalloc(base, 100 * page);
    must(p != NULL);
    offset = (uint64_t)(p - base);
    must_rc(xend(), COMMITTED);
    env_detach();

    base = env_attach(NONDURABLE, offset / page + 70);
    must_ok(xbegin());
    errno = 0;
    must_eq(xUsableSize(base, base + offset), 0);
    must_eq(errno, EINVAL);
    must(strstr(xLastError(), "ends behind the mapping") != NULL);
    must_be_null(xRealloc(base, base + offset, 10), EINVAL);
    must_rc(xend(), COMMITTED);
    env_detach();
}
END_TEST

START_TEST(address_leads_to_its_segment)
{
    struct xac_env *one, *other, *found = NULL;
    unsigned char *a, *b;
    size_t length = 8 * env_page();

    one = xac_open("one", NULL);
    other = xac_open("other", NULL);
    must(one != NULL && other != NULL);
    a = xac_mmap_in(one, "a", length);
    b = xac_mmap_in(other, "b", length);
    must(a != MAP_FAILED && b != MAP_FAILED);
    must_be_null(xac_segment_of(a, &found), EPERM);
    must_ok(xac_begin_in(one));
    must(xac_segment_of(a + length - 1, &found) == a);
    must(found == one);
    must_be_null(xac_segment_of(b, &found),
                 EINVAL); /* no transaction of its environment */
    must_be_null(xac_segment_of(&a, &found), EINVAL);
    must(found == one);
    must_ok(xac_begin_query_in(other));
    must(xac_segment_of(b, &found) == b);
    must(found == other);
    must(xac_segment_of(a, NULL) == a);
    must_ok(xac_end_query_in(other));
    must_rc(xac_end_in(one), COMMITTED);
    must_ok(xac_close(one));
    must_ok(xac_close(other));
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("realloc");
    TCase *tc = env_tcase(s, "realloc", 60);

    tcase_add_test(tc, contents_stay);
    tcase_add_test(tc, realloc_stays_if_it_can);
    tcase_add_test(tc, wrong_arguments_are_refused);
    tcase_add_test(tc, shorter_mapping_is_told);
    tcase_add_test(tc, address_leads_to_its_segment);
    return env_main(s);
}
