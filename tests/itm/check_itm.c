/* SPDX-License-Identifier: MIT */
/*
 * check_itm.c -- language transactions of one process: what commits, and what is as it was before.
 *
 * GOAL    A block commits once, on segments and on ordinary memory; after a restart and after a cancel
 *         everything but what is to stay is as before, also where blocks are nested.
 * METHOD  A restart is forced by xAbort() in a function that is declared pure.  Values of each type
 *         that the compiler has a call for.
 */
#include <config.h>

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <xac_itm.h>

#include "env.h"

#define PAGES 64

/* The first number of a page; as a constant, for a function call is not allowed in a block. */
#define CELL(page) (x + (size_t)512 * (page))

static uint64_t *x;      /* the segment */
static uint64_t outside; /* of it */
static int attempts;     /* not undone */

static void
attach(void)
{
    x = env_attach(NONDURABLE, PAGES);
    attempts = 0;
}

/* fail_first -- the first n attempts fail. */
__attribute__((transaction_pure, noinline)) static void
fail_first(int n)
{
    if (++attempts <= n)
        must_ok(xAbort());
}

/* ---- commit, restart, cancel ------------------------------------------------------------------ */

START_TEST(commit_takes_effect_once)
{
    attach();
    outside = 0;
    for (int i = 0; i < 1000; i++) {
        __transaction_atomic
        {
            x[0]++;
            *CELL(3) += x[0];
            outside++;
        }
    }
    must_eq(env_get(x), 1000);
    must_eq(env_get(CELL(3)), 1000 * 1001 / 2);
    must_eq(outside, 1000);
    must_eq(env_stats().commits, 1000);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 1000);
}
END_TEST

static uint64_t *volatile escaped;

START_TEST(restart_finds_everything_as_before)
{
    uint64_t local = 1, seen = 0, array[40], *heap;

    attach();
    outside = 5;
    heap = calloc(3000, sizeof *heap);
    must(heap != NULL);
    memset(array, 0, sizeof array);
    escaped = array;
    __transaction_atomic
    {
        local++;
        outside++;
        seen = outside;
        x[0]++;
        for (int i = 0; i < 40; i++)
            array[i]++;
        for (int i = 0; i < 3000; i++)
            heap[i]++;
        heap[7] += heap[8];
        fail_first(5);
        *CELL(1) = local;
    }
    must_eq(attempts, 6);
    must_eq(local, 2);
    must_eq(outside, 6);
    must_eq(seen, 6);
    must_eq(array[0] + array[39], 2);
    must_eq(heap[0] + heap[2999], 2);
    must_eq(heap[7], 2);
    must_eq(env_get(x), 1);
    must_eq(env_get(CELL(1)), 2);
    free(heap);
    env_detach();
}
END_TEST

START_TEST(cancel_leaves_nothing)
{
    uint64_t local = 1;

    attach();
    outside = 5;
    env_put(x, 7);
    __transaction_atomic
    {
        local = 2;
        outside = 6;
        x[0] = 8;
        *CELL(9) = 1;
        if (x[0] == 8)
            __transaction_cancel;
    }
    must_eq(local, 1);
    must_eq(outside, 5);
    must_eq(env_get(x), 7);
    must_eq(env_get(CELL(9)), 0);
    must_eq(env_stats().aborts_user, 1);
    __transaction_atomic
    {
        x[0]++;
    }
    must_eq(env_get(x), 8);
    env_detach();
}
END_TEST

/* The inner block is cancelled alone: stores before it and after it stay, in each attempt. */
START_TEST(cancel_of_nested_block_leaves_the_outer_one)
{
    uint64_t local = 0;

    attach();
    outside = 0;
    env_put(x, 1);
    __transaction_atomic
    {
        x[0] = 2;
        x[1] = 2;
        outside = 2;
        __transaction_atomic
        {
            x[0] = 3;
            *CELL(1) = 3;
            outside = 3;
            local = 3;
            __transaction_atomic
            {
                x[2] = 4;
            }
            if (x[2] == 4)
                __transaction_cancel;
        }
        x[1] += x[0];
        outside++;
        fail_first(2);
    }
    must_eq(attempts, 3);
    must_eq(local, 0);
    must_eq(outside, 3);
    must_eq(env_get(x), 2);
    must_eq(env_get(x + 1), 4);
    must_eq(env_get(x + 2), 0);
    must_eq(env_get(CELL(1)), 0);
    env_detach();
}
END_TEST

/* A nested block that may be cancelled, and is not. */
START_TEST(nested_block_commits_with_the_outer_one)
{
    attach();
    outside = 0;
    for (int round = 0; round < 3; round++) {
        attempts = 0;
        __transaction_atomic
        {
            x[0]++;
            __transaction_atomic
            {
                x[0]++;
                outside++;
                if (x[0] == 1000)
                    __transaction_cancel;
            }
            x[0]++;
            if (round == 1)
                __transaction_cancel;
            fail_first(1);
        }
    }
    must_eq(env_get(x), 6);
    must_eq(outside, 2);
    env_detach();
}
END_TEST

__attribute__((transaction_may_cancel_outer, noinline)) static void
give_up(uint64_t *cell)
{
    *cell = 77;
    __transaction_cancel [[outer]];
}

START_TEST(cancel_of_outer_block_from_a_function)
{
    attach();
    outside = 1;
    __transaction_atomic [[outer]]
    {
        x[0] = 1;
        outside = 2;
        __transaction_atomic
        {
            x[1] = 1;
            give_up(&x[2]);
        }
        x[3] = 1;
    }
    must_eq(outside, 1);
    for (int i = 0; i < 4; i++)
        must_eq(env_get(x + i), 0);
    __transaction_atomic
    {
        x[3] = 1;
    }
    must_eq(env_get(x + 3), 1);
    env_detach();
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------- */

START_TEST(memory_follows_the_transaction)
{
    enum {
        BYTES = 20000
    };
    size_t before;
    char *old = malloc(BYTES), *got = NULL;

    attach();
    must(old != NULL);
    memset(old, 3, BYTES);
    __transaction_atomic
    {
        got = malloc(BYTES), free(got);
    } /* the lists exist */
    before = mallinfo2().uordblks;
    for (int i = 0; i < 100; i++) {
        __transaction_atomic
        {
            got = malloc(BYTES);
            got[0] = 1;
            free(old);
            x[0]++;
            __transaction_cancel;
        }
        attempts = 0;
        __transaction_atomic
        {
            got = calloc(1, BYTES);
            got[1] = 1;
            x[0]++;
            fail_first(2);
            free(got);
        }
    }
    must(mallinfo2().uordblks < before + BYTES);
    must_eq(old[0] + old[BYTES - 1], 6);
    before = mallinfo2().uordblks;
    __transaction_atomic
    {
        free(old);
    }
    must(mallinfo2().uordblks + BYTES <= before);
    must_eq(env_get(x), 100);
    env_detach();
}
END_TEST

START_TEST(heap_of_a_segment_follows_the_transaction)
{
    struct xac_heap_totals totals;
    uint64_t *first = NULL, *p;
    void **root = NULL;

    attach();
    for (int i = 0; i < 20; i++) {
        attempts = 0;
        __transaction_atomic
        {
            root = xRoot(x);
            p = xMalloc(x, 64);
            p[0] = (uint64_t)i;
            if (i == 0)
                first = p;
            __transaction_atomic
            {
                uint64_t *q = xMalloc(x, 3000);

                q[1] = 1;
                xFree(x, first);
                if (i != 19)
                    __transaction_cancel;
            }
            fail_first(1);
            root[0] = p;
        }
    }
    must_ok(xbeginQuery());
    must_ok(xHeapCheck(x, &totals, sizeof totals));
    must_eq(totals.allocations, 20); /* 20, and one of 3000 bytes, without the first */
    must_eq(*(uint64_t *)root[0], 19);
    must_ok(xendQuery());
    env_detach();
}
END_TEST

/* ---- every kind of access, but bit-fields, which gcc 12 compiles wrongly ------------------------- */

typedef int vector8 __attribute__((vector_size(8)));
typedef float vector16 __attribute__((vector_size(16)));

struct inner {
    uint16_t a[3];
    char text[37];
};

struct __attribute__((packed)) all {
    char before;
    uint8_t u1;
    uint16_t u2;
    uint32_t u4;
    uint64_t u8;
    float f;
    double d;
    long double e;
    float _Complex cf;
    double _Complex cd;
    struct inner s;
    char bytes[5000];
    char filled[900];
    uint64_t last;
};

__attribute__((transaction_safe, noinline)) static void
change_all(struct all *p, const struct all *q, int k)
{
    p->u1 = (uint8_t)(q->u1 + k);
    p->u2 = (uint16_t)(q->u2 + k);
    p->u4 = q->u4 + (uint32_t)k;
    p->u8 = q->u8 + (uint64_t)k;
    p->f = q->f + (float)k;
    p->d = q->d + k;
    p->e = q->e + k;
    p->cf = q->cf + (float)k;
    p->cd = q->cd + k;
    p->s = q->s;
    p->s.a[2] = (uint16_t)k;
    memcpy(p->bytes, q->bytes, sizeof p->bytes);
    memmove(p->bytes + 1, p->bytes, sizeof p->bytes - 1);
    memset(p->filled, k, sizeof p->filled);
    p->last += 3;
}

/* fill -- bytes that differ from each other; `with` gives other ones. */
static void
fill(struct all *p, int with)
{
    for (size_t i = 0; i < sizeof *p; i++)
        ((uint8_t *)p)[i] = (uint8_t)(i * 31 % 61 + (size_t)with);
}

/* try_all -- at one place of the segment, and in the process's memory; cancelled, then not. */
static void
try_all(struct all *shared, struct all *mine, const struct all *source, int k)
{
    struct all want, before;

    must_ok(xbegin());
    must_ok(setRangeAccess(shared, sizeof *shared, READ_WRITE));
    fill(shared, 7);
    must_rc(xend(), COMMITTED);
    fill(mine, 7);
    fill(&want, 7);
    fill(&before, 7);
    change_all(&want, source, k);
    for (int cancels = 1; cancels >= 0; cancels--) {
        attempts = 0;
        __transaction_atomic
        {
            change_all(shared, source, k);
            change_all(mine, source, k);
            if (cancels != 0)
                __transaction_cancel;
            fail_first(1);
        }
        must_ok(xbeginQuery());
        must(memcmp(shared, cancels ? &before : &want, sizeof want) == 0);
        must_ok(xendQuery());
        must(memcmp(mine, cancels ? &before : &want, sizeof want) == 0);
    }
}

/* Across pages at every alignment. */
START_TEST(each_type_is_rolled_back_and_committed)
{
    struct all *mine = calloc(2, sizeof *mine);

    attach();
    must(mine != NULL);
    fill(mine + 1, 1);
    for (size_t at = 4096 - 70; at < 4096 + 9; at++)
        try_all((struct all *)((char *)x + at), mine, mine + 1, (int)at);
    free(mine);
    env_detach();
}
END_TEST

/* ---- the stack -------------------------------------------------------------------------------- */

__attribute__((transaction_safe, noinline)) static void
store_bytes(char *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (char)i;
}

/* deep -- its frame is gone when the block ends, and the library's own functions lie there. */
__attribute__((transaction_safe, noinline)) static int
deep(int n, uint64_t *cell)
{
    char local[300];

    ++*cell; /* without a side effect it is called as it is, without its transactional version */
    store_bytes(local, sizeof local);
    return n > 0 ? deep(n - 1, cell) + local[n] : local[0];
}

/* scribble -- what is restored by mistake is no return address. */
__attribute__((noinline)) static void
scribble(void)
{
    volatile char local[16000];

    for (size_t i = 0; i < sizeof local; i++)
        local[i] = 0x5a;
}

START_TEST(dead_frames_are_left_alone)
{
    char local[100];
    int sum = 0;

    attach();
    memset(local, 9, sizeof local);
    for (int i = 0; i < 20; i++) {
        attempts = 0;
        scribble();
        __transaction_atomic
        {
            sum += deep(i, x + 1);
            store_bytes(local, 50);
            x[0]++;
            fail_first(2);
            if (i == 19)
                __transaction_cancel;
        }
        must_eq(local[50], 9);
    }
    must_eq(local[1], 1);
    must_eq(env_get(x), 19);
    must_eq(sum, 18 * 19 * 20 / 6); /* of 1, 1 + 2, ... */
    env_detach();
}
END_TEST

START_TEST(vectors_are_rolled_back_and_committed)
{
    vector8 *small;
    vector16 *large, outer = {1, 2, 3, 4};

    attach();
    small = (vector8 *)x;
    large = (vector16 *)CELL(1);
    __transaction_atomic
    {
        *small += 3;
        *large += outer;
        outer = *large + 1;
        fail_first(2);
    }
    must_eq(attempts, 3);
    must_ok(xbeginQuery());
    must((*small)[0] == 3 && (*small)[1] == 3);
    must((*large)[0] == 1 && (*large)[3] == 4);
    must_ok(xendQuery());
    must(outer[0] == 2 && outer[3] == 5);
    env_detach();
}
END_TEST

/* A loop of stores, and of copies, that the compiler may turn into memset and memcpy. */
START_TEST(loops_are_rolled_back)
{
    enum {
        N = 3 * 512
    };
    uint64_t *mine = malloc(N * sizeof *mine);

    attach();
    must(mine != NULL);
    for (uint64_t i = 0; i < N; i++)
        mine[i] = i;
    __transaction_atomic
    {
        for (int i = 0; i < N; i++)
            x[i] = mine[i];
        for (int i = 0; i < N; i++)
            mine[i] = 0;
        fail_first(2);
        if (mine[N - 1] == 0 && x[N - 1] == 0)
            x[0] = 99;
    }
    for (uint64_t i = 0; i < N; i++)
        must(env_get(x + i) == i && mine[i] == 0);
    free(mine);
    env_detach();
}
END_TEST

/* The program promises to announce its stores: then a barrier that did not would lose one. */
static void
setup_trusted(void)
{
    env_setup();
    env_checking = XAC_CHECKING_TRUSTED;
}

/* Blocks of threads may run side by side: then they work on views, at translated addresses. */
static void
setup_beside(void)
{
    env_setup();
    must_ok(xac_itm_side_by_side());
}

int
main(void)
{
    Suite *s = suite_create("itm");
    TCase *tcs[3] = {env_tcase(s, "itm", 60),
                     env_tcase_with(s, "trusted", 60, setup_trusted),
                     env_tcase_with(s, "beside", 60, setup_beside)};

    for (int i = 0; i < 3; i++) {
        TCase *tc = tcs[i];

        tcase_add_test(tc, commit_takes_effect_once);
        tcase_add_test(tc, restart_finds_everything_as_before);
        tcase_add_test(tc, cancel_leaves_nothing);
        tcase_add_test(tc, cancel_of_nested_block_leaves_the_outer_one);
        tcase_add_test(tc, nested_block_commits_with_the_outer_one);
        tcase_add_test(tc, cancel_of_outer_block_from_a_function);
        tcase_add_test(tc, memory_follows_the_transaction);
        tcase_add_test(tc, heap_of_a_segment_follows_the_transaction);
        tcase_add_test(tc, each_type_is_rolled_back_and_committed);
        tcase_add_test(tc, dead_frames_are_left_alone);
        tcase_add_test(tc, vectors_are_rolled_back_and_committed);
        tcase_add_test(tc, loops_are_rolled_back);
    }
    return env_main(s);
}
