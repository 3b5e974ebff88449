/* SPDX-License-Identifier: MIT */
/*
 * check_itm_beside.c -- blocks of several threads side by side: what they see.
 *
 * GOAL    Each thread has transactions of its own, with ordinary pointers; memory outside of segments is
 *         isolated, also together with segments, in attempts that fail, too.
 * METHOD  Functions that are declared pure let threads wait for each other in the middle of
 *         blocks, and look at what a block has loaded before it is run again.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "beside.h"

#define POLICIES 6

static int attempts; /* not undone */

__attribute__((transaction_pure, noinline)) static void
attempt(void)
{
    attempts++;
}

/* ---- segments ------------------------------------------------------------------------------- */

static void *
commit_ten(void *arg)
{
    (void)arg;
    wait_for(1);
    for (int i = 0; i < 10; i++) {
        __transaction_atomic
        {
            x[0]++;
        }
    }
    go_to(2);
    return NULL;
}

/* Others commit in the middle of it: it sees its snapshot, and is not run again. */
START_TEST(query_runs_once_beside_commits)
{
    uint64_t first = 0, second = 0;
    pthread_t thread;

    attach();
    thread = start(commit_ten, NULL);
    __transaction_atomic
    {
        attempt();
        first = x[0];
        go_to(1);
        wait_for(2);
        second = x[0];
    }
    join(thread);
    must_eq(attempts, 1);
    must_eq(first + second, 0);
    must_eq(env_get(x), 10);
    env_detach();
}
END_TEST

struct node {
    struct node *next;
    uint64_t value;
};

static void *
push_many(void *arg)
{
    struct node **head = (struct node **)CELL(1);

    (void)arg;
    for (uint64_t i = 1; i <= 300; i++) {
        __transaction_atomic
        {
            struct node *n = (struct node *)(x + 1024 + 2 * x[0]);

            x[0]++;
            n->value = i;
            n->next = *head;
            *head = n;
        }
    }
    return NULL;
}

/* What is stored are addresses of the process's mapping, whichever view it goes through. */
START_TEST(pointers_are_those_of_the_process)
{
    pthread_t threads[4];
    uint64_t sum = 0, n = 0;

    attach();
    for (int i = 0; i < 4; i++)
        threads[i] = start(push_many, NULL);
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    must_ok(xbeginQuery());
    for (struct node *p = *(struct node **)CELL(1); p != NULL; p = p->next) {
        must((uint64_t *)p >= x && (uint64_t *)p < x + (size_t)512 * PAGES);
        sum += p->value;
        n++;
    }
    must_ok(xendQuery());
    must_eq(n, 1200);
    must_eq(sum, 4 * 300 * 301 / 2);
    env_detach();
}
END_TEST

/* Two mappings that touch: values and ranges lie half in one, half in the other. */
START_TEST(values_lie_across_mappings)
{
    size_t bytes = 2 * env_page();
    char *a, *b, from[40], to[40];
    uint64_t wide = 0;

    env_init(NONDURABLE);
    a = xMmapAt(ENV_FILE, 0, bytes, 0);
    b = xMmapAt(ENV_FILE, bytes, bytes, 0);
    must(a != MAP_FAILED && b == a + bytes);
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (char)(i + 1);
    for (size_t before = 1; before < 8; before++) {
        uint64_t *across = (uint64_t *)(void *)(b - before);

        __transaction_atomic
        {
            *(uint64_t *)across = 0x0102030405060708u;
            *across += 1;
            wide = *across;
        }
        must_eq(wide, 0x0102030405060709u);
        __transaction_atomic
        {
            *across = 5;
            memcpy(b - 20, from, sizeof from);
            memmove(b - 19, b - 20, 30);
            if (*across != 5)
                __transaction_cancel;
        }
        must_eq(*(wide = 0, &wide), 0);
    }
    __transaction_atomic
    {
        memcpy(b - 20, from, sizeof from);
        memmove(b - 19, b - 20, 30);
        memmove(b - 18, b - 17, 25);
        memcpy(to, b - 20, sizeof to);
    }
    memmove(from + 1, from, 30);
    memmove(from + 2, from + 3, 25);
    must(memcmp(to, from, sizeof to) == 0);
    must_ok(xbeginQuery());
    must(memcmp(b - 20, from, 20) == 0 && memcmp(b, from + 20, 20) == 0);
    must_ok(xendQuery());
    env_detach();
}
END_TEST

/* ---- memory outside ------------------------------------------------------------------------ */

static _Atomic uint64_t n_halves; /* of a block that somebody has seen */

__attribute__((transaction_pure, noinline)) static void
must_be_same(uint64_t a, uint64_t b)
{
    if (a != b)
        word_add(&n_halves, 1);
}

static void *
look_in_both_orders(void *arg)
{
    uint64_t *n = arg;

    while (word_load(&stop) == 0) {
        uint64_t a, b;

        __transaction_atomic
        {
            a = x[0];
            must_be_same(a, *CELL(5));
            b = outside;
            must_be_same(a, b);
        }
        __transaction_atomic
        {
            b = outside;
            a = *CELL(5);
            must_be_same(a, b);
        }
        __transaction_atomic
        {
            a = x[0];
            *CELL(7) = a;
            b = outside;
            must_be_same(a, b);
        }
        ++*n;
    }
    return NULL;
}

static void *
change_both(void *arg)
{
    for (int i = 0; i < 3000; i++) {
        if (i % 2 == 0) {
            __transaction_atomic
            {
                x[0]++;
                *CELL(5) = x[0];
                outside++;
                must_be_same(x[0], outside);
            }
        } else {
            __transaction_atomic
            {
                outside++;
                x[0] = outside;
                *CELL(5) = outside;
                if (i % 16 == 7)
                    __transaction_cancel;
            }
        }
    }
    return arg;
}

/* Segments and memory outside change together for everybody, in each attempt. */
START_TEST(nobody_sees_half_of_a_block)
{
    pthread_t threads[4];
    uint64_t n[2] = {0};

    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)_i));
    attach();
    for (int i = 0; i < 4; i++)
        threads[i] = i < 2 ? start(look_in_both_orders, &n[i]) : start(change_both, NULL);
    join(threads[2]);
    join(threads[3]);
    word_store(&stop, 1);
    join(threads[0]);
    join(threads[1]);
    must_eq(word_load(&n_halves), 0);
    must_eq(outside, 2 * (3000 - 188));
    must_eq(env_get(x), outside);
    must_eq(env_get(CELL(5)), outside);
    must(n[0] + n[1] > 0);
    env_detach();
}
END_TEST

static uint64_t other_side;

static void *
copy_over(void *arg)
{
    bool is_first = arg != NULL;

    for (int i = 0; i < 5000; i++) {
        if (is_first) {
            __transaction_atomic
            {
                outside = other_side + 1;
            }
        } else {
            __transaction_atomic
            {
                other_side = outside + 1;
            }
        }
    }
    return NULL;
}

/* Two that load before they store, and would wait for each other. */
START_TEST(loads_before_stores_do_not_block)
{
    pthread_t threads[4];

    attach();
    for (int i = 0; i < 4; i++)
        threads[i] = start(copy_over, i % 2 == 0 ? x : NULL);
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    must(outside + 1 == other_side || other_side + 1 == outside);
    env_detach();
}
END_TEST

static uint64_t seen_inside, seen_outside;

static void *
change_then_look(void *arg)
{
    uint64_t a = 0, b = 0;

    wait_for(1);
    __transaction_atomic
    {
        x[0] = 7;
    }
    __transaction_atomic
    {
        a = x[0];
        b = outside;
    }
    seen_inside = a;
    seen_outside = b;
    go_to(2);
    return arg;
}

/* Somebody has loaded the variable together with a newer segment: it must not be stored to by a block that
   stays before that, for it changes no segment and so has no conflict there. */
START_TEST(store_outside_is_not_older_than_loads)
{
    pthread_t thread;
    uint64_t got = 0;

    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_OPTIMISTIC));
    attach();
    outside = 0;
    thread = start(change_then_look, NULL);
    __transaction_atomic
    {
        attempt();
        got = x[0];
        go_to(1);
        wait_for(2);
        outside = got + 1;
    }
    join(thread);
    must_eq(seen_inside, 7);
    must_eq(seen_outside, 0);
    must_eq(outside, 8);
    must_eq(attempts, 2);
    env_detach();
}
END_TEST

static uint64_t *shared_heap;

static void *
replace_heap(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        uint64_t *fresh = malloc(64 * sizeof *fresh);

        must(fresh != NULL);
        for (uint64_t k = 0; k < 64; k++)
            fresh[k] = (uint64_t)i;
        __transaction_atomic
        {
            free(shared_heap);
            shared_heap = fresh;
            x[0]++;
        }
    }
    word_store(&stop, 1);
    return arg;
}

static void *
read_heap(void *arg)
{
    while (word_load(&stop) == 0) {
        uint64_t first = 0, last = 0;

        __transaction_atomic
        {
            first = shared_heap[0];
            last = shared_heap[63];
            must_be_same(first, last);
        }
        must_eq(first, last);
    }
    return arg;
}

/* What is freed is not given to others while a block may still load there. */
START_TEST(freed_memory_is_not_seen)
{
    pthread_t threads[3];

    attach();
    shared_heap = calloc(64, sizeof *shared_heap);
    threads[0] = start(read_heap, NULL);
    threads[1] = start(read_heap, NULL);
    threads[2] = start(replace_heap, NULL);
    for (int i = 0; i < 3; i++)
        join(threads[i]);
    must_eq(word_load(&n_halves), 0);
    must_eq(env_get(x), 2000);
    free(shared_heap);
    env_detach();
}
END_TEST

static void *
replace_in_segment(void *arg)
{
    for (uint64_t i = 1; i <= 3000; i++) {
        uint64_t *fresh = malloc(64 * sizeof *fresh);

        must(fresh != NULL);
        for (uint64_t k = 0; k < 64; k++)
            fresh[k] = i;
        __transaction_atomic
        {
            free(*(uint64_t **)CELL(3));
            *(uint64_t **)CELL(3) = fresh;
            *CELL(4) = i;
        }
    }
    word_store(&stop, 1);
    return arg;
}

static void *
read_through_segment(void *arg)
{
    while (word_load(&stop) == 0) {
        __transaction_atomic
        {
            const uint64_t *p = *(uint64_t **)CELL(3);

            if (p != NULL) {
                must_be_same(p[0], *CELL(4));
                must_be_same(p[63], *CELL(4));
            }
        }
    }
    return arg;
}

/* The same, if only a segment tells where it is: free() counts as a store. */
START_TEST(memory_freed_by_way_of_a_segment_is_not_seen)
{
    pthread_t threads[3];

    attach();
    threads[0] = start(read_through_segment, NULL);
    threads[1] = start(read_through_segment, NULL);
    threads[2] = start(replace_in_segment, NULL);
    for (int i = 0; i < 3; i++)
        join(threads[i]);
    must_eq(word_load(&n_halves), 0);
    must_eq(env_get(CELL(4)), 3000);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("itm_beside");
    TCase *tc = env_tcase_with(s, "segments", 60, setup);

    tcase_add_test(tc, query_runs_once_beside_commits);
    tcase_add_test(tc, pointers_are_those_of_the_process);
    tcase_add_test(tc, values_lie_across_mappings);
    tc = env_tcase_with(s, "outside", 120, setup);
    tcase_add_loop_test(tc, nobody_sees_half_of_a_block, 0, POLICIES);
    tcase_add_test(tc, loads_before_stores_do_not_block);
    tcase_add_test(tc, store_outside_is_not_older_than_loads);
    tcase_add_test(tc, freed_memory_is_not_seen);
    tcase_add_test(tc, memory_freed_by_way_of_a_segment_is_not_seen);
    return env_main(s);
}
