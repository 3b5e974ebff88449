/* SPDX-License-Identifier: MIT */
/*
 * check_itm_lives.c -- blocks of several threads side by side: threads, segments and environments that come
 * and go, and what is refused.
 *
 * GOAL    Nothing is lost and nothing left behind; what cannot be done stops the program with words, and
 *         commits nothing.
 * METHOD  Sums in a segment and outside; children that are to be stopped.
 */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "beside.h"

/* ---- threads, segments, environments ---------------------------------------------------------- */

static void *
a_few_blocks(void *arg)
{
    for (int i = 0; i < 5; i++) {
        __transaction_atomic
        {
            x[0]++;
            outside++;
        }
    }
    return arg;
}

static unsigned
mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    unsigned n = 0;
    int c;

    must(f != NULL);
    while ((c = fgetc(f)) != EOF)
        n += c == '\n';
    (void)fclose(f);
    return n;
}

START_TEST(short_threads_leave_nothing)
{
    unsigned after_some = 0;

    attach();
    for (int round = 0; round < 100; round++) {
        pthread_t threads[4];

        for (int i = 0; i < 4; i++)
            threads[i] = start(a_few_blocks, NULL);
        for (int i = 0; i < 4; i++)
            join(threads[i]);
        if (round == 20)
            after_some = mappings();
    }
    must(mappings() < after_some + 100);
    must_eq(env_get(x), 2000);
    must_eq(outside, 2000);
    env_detach();
}
END_TEST

__attribute__((transaction_pure, noinline)) static void
end_thread(void)
{
    pthread_exit(NULL);
}

static void *
leave_block(void *arg)
{
    __transaction_atomic
    {
        x[0]++;
        outside++;
        end_thread();
    }
    return arg;
}

/* Whether the end of the thread commits, as an exception does, or rolls back, is the compiler's choice;
   the others go on. */
START_TEST(thread_ends_inside_of_a_block)
{
    attach();
    outside = 0;
    join(start(leave_block, NULL));
    join(start(leave_block, NULL));
    join(start(a_few_blocks, NULL));
    must(env_get(x) == 7 || env_get(x) == 5);
    must(outside == env_get(x) || env_get(x) == 5);
    env_detach();
}
END_TEST

static void *
allocate_until_told(void *arg)
{
    uint64_t *n = arg;

    while (word_load(&stop) == 0 || *n == 0) {
        void *p = NULL;

        __transaction_atomic
        {
            p = xMalloc(x, 3000);
            if (p != NULL)
                memset(p, 1, 3000);
        }
        if (p == NULL)
            proc_sleep_us(100);
        *n += p != NULL;
    }
    return NULL;
}

/* The segment is full, and made longer by another thread between blocks. */
START_TEST(segment_grows_beside_blocks)
{
    struct xac_heap_totals totals;
    uint64_t n[2] = {0};
    pthread_t threads[2];
    int n_grown = 0;

    attach();
    for (int i = 0; i < 2; i++)
        threads[i] = start(allocate_until_told, &n[i]);
    while (n_grown < 6) {
        if (xMremap(x, (size_t)(PAGES + 16 * (n_grown + 1)) * env_page(), 0)
            != MAP_FAILED)
            n_grown++;
        else
            must_eq(errno, EBUSY);
        proc_sleep_us(2000);
    }
    word_store(&stop, 1);
    for (int i = 0; i < 2; i++)
        join(threads[i]);
    must_ok(xbeginQuery());
    must_ok(xHeapCheck(x, &totals, sizeof totals));
    must_ok(xendQuery());
    must_eq(totals.allocations, n[0] + n[1]);
    must(totals.allocations > PAGES);
    env_detach();
}
END_TEST

static void *
work_when_told(void *arg)
{
    for (uint64_t i = 1; i <= 3; i++) {
        wait_for(10 * i);
        (void)a_few_blocks(NULL);
        go_to(10 * i + 1);
    }
    return arg;
}

/* Threads that have no block open keep nobody from closing; and numbers of commits begin anew. */
START_TEST(environments_follow_each_other)
{
    pthread_t thread;
    char name[] = "db0";

    outside = 0;
    thread = start(work_when_told, NULL);
    for (uint64_t i = 1; i <= 3; i++) {
        name[2] = (char)('0' + i);
        must_ok(xInit(name, NONDURABLE));
        x = xMmap(name + 1, (size_t)PAGES * env_page());
        must(x != MAP_FAILED);
        for (int k = 0; k < 400 / (int)(i * i); k++)
            (void)a_few_blocks(NULL);
        go_to(10 * i);
        wait_for(10 * i + 1);
        must_ok(xMunmap(name + 1));
        x = xMmap(name + 1, (size_t)PAGES * env_page());
        must(x != MAP_FAILED);
        (void)a_few_blocks(NULL);
        must_eq(env_get(x), 5 * (400 / (i * i) + 2));
        must_ok(xShutdown());
    }
    join(thread);
    must_eq(outside, 5 * (400 + 100 + 44 + 6));
}
END_TEST

__attribute__((noinline)) static void
unsafe(uint64_t *cell)
{
    __asm__ volatile("" ::: "memory");
    *cell += 10;
}

static void *
irrevocably(void *arg)
{
    for (int i = 0; i < 300; i++) {
        __transaction_relaxed
        {
            x[0]++;
            outside++;
            if (i % 3 == 0) {
                unsafe(x);
                unsafe(&outside);
            }
        }
    }
    return arg;
}

/* Code that is not compiled for it finds the process's mapping. */
START_TEST(irrevocable_blocks_beside_others)
{
    pthread_t threads[4];

    attach();
    outside = 0;
    for (int i = 0; i < 4; i++)
        threads[i] = start(i < 2 ? irrevocably : a_few_blocks, NULL);
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    must_eq(env_get(x), 2 * 1300 + 10);
    must_eq(outside, 2 * 1300 + 10);
    env_detach();
}
END_TEST

static void *
parts_of_plain_transactions(void *arg)
{
    for (int i = 0; i < 500; i++) {
        must_ok(xbegin());
        x[0]++;
        __transaction_atomic
        {
            x[1]++;
            outside++;
        }
        must_rc(xend(), COMMITTED);
        must_ok(xbeginQuery());
        __transaction_atomic
        {
            outside += x[2];
        }
        must_ok(xendQuery());
    }
    return arg;
}

static void *
both(void *arg)
{
    for (int i = 0; i < 1000; i++) {
        __transaction_atomic
        {
            if (i % 2 == 0)
                x[1]++;
            outside++;
            if (i % 2 != 0)
                x[1]++;
        }
    }
    return arg;
}

/* A block that is a part of a transaction by xbegin() has the turn when it asks for the lock. */
START_TEST(parts_beside_blocks)
{
    pthread_t threads[3];

    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_SERIAL));
    attach();
    outside = 0;
    threads[0] = start(parts_of_plain_transactions, NULL);
    threads[1] = start(both, NULL);
    threads[2] = start(both, NULL);
    for (int i = 0; i < 3; i++)
        join(threads[i]);
    must_eq(env_get(x), 500);
    must_eq(env_get(x + 1), 2500);
    must_eq(outside, 2500);
    env_detach();
}
END_TEST

static void *
use_own_view(void *arg)
{
    uint64_t *mine = xView(x);

    must(mine != MAP_FAILED);
    for (int i = 0; i < 500; i++) {
        __transaction_atomic
        {
            mine[1]++;
            outside++;
        }
    }
    must_ok(xUnview(mine));
    (void)both(NULL);
    return arg;
}

/* A thread with views by xView() uses them in blocks, too, and is like others when it has given them up. */
START_TEST(threads_with_views_of_their_own)
{
    pthread_t threads[3];

    attach();
    outside = 0;
    for (int i = 0; i < 3; i++)
        threads[i] = start(i < 2 ? use_own_view : both, NULL);
    for (int i = 0; i < 3; i++)
        join(threads[i]);
    must_eq(env_get(x + 1), 2 * 1500 + 1000);
    must_eq(outside, 2 * 1500 + 1000);
    env_detach();
}
END_TEST

/* ---- what stops ------------------------------------------------------------------------------- */

__attribute__((transaction_pure, noinline)) static void
touch(volatile uint64_t *cell)
{
    *cell = 1;
}

static void
touches_in_pure_function(void *arg)
{
    (void)arg;
    attach();
    __transaction_atomic
    {
        x[0] = 2;
        touch(x);
    }
}

START_TEST(pure_function_that_touches_a_segment_stops)
{
    char text[2000];

    must_eq(WTERMSIG(proc_capture(touches_in_pure_function, NULL, text, sizeof text)),
            SIGABRT);
    must(strstr(text, ENV_FILE) != NULL);
    must(strstr(text, "translated") != NULL && strstr(text, "_pure") != NULL);
    attach();
    must_eq(env_get(x), 0);
    env_detach();
}
END_TEST

static char *large;
#define LARGE ((size_t)256 << 20)

/* no_more_memory -- from now on. */
__attribute__((transaction_pure, noinline)) static void
no_more_memory(void)
{
    struct rlimit l;

    must(getrlimit(RLIMIT_AS, &l) == 0);
    l.rlim_cur = 1 << 20;
    must(setrlimit(RLIMIT_AS, &l) == 0);
}

static void
logs_too_much(void *arg)
{
    (void)arg;
    large = malloc(LARGE);
    must(large != NULL);
    __transaction_atomic
    {
        x[0] = 99;
        no_more_memory();
        memset(large, 1, LARGE);
    }
}

/* The program is stopped with words, and nothing has been committed. */
START_TEST(undo_log_without_memory_stops)
{
    char text[2000];

    attach();
    env_put(x, 4);
    must_eq(WTERMSIG(proc_capture(logs_too_much, NULL, text, sizeof text)), SIGABRT);
    must(strstr(text, "libxac_itm: no memory for the undo log") != NULL);
    must_eq(env_get(x), 4);
    env_detach();
}
END_TEST

START_TEST(choice_comes_before_the_first_block)
{
    attach();
    must_ok(xac_itm_side_by_side());
    (void)a_few_blocks(NULL);
    must_ok(xac_itm_side_by_side());
    env_detach();
}
END_TEST

START_TEST(choice_after_a_block_is_refused)
{
    attach();
    (void)a_few_blocks(NULL);
    must_rc(xac_itm_side_by_side(), EBUSY);
    (void)a_few_blocks(NULL);
    must_eq(env_get(x), 10);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("itm_lives");
    TCase *tc = env_tcase_with(s, "come_and_go", 120, setup);
    tcase_add_test(tc, short_threads_leave_nothing);
    tcase_add_test(tc, thread_ends_inside_of_a_block);
    tcase_add_test(tc, segment_grows_beside_blocks);
    tcase_add_test(tc, environments_follow_each_other);
    tcase_add_test(tc, irrevocable_blocks_beside_others);
    tcase_add_test(tc, parts_beside_blocks);
    tcase_add_test(tc, threads_with_views_of_their_own);
    tc = env_tcase_with(s, "stops", 60, setup);
    tcase_add_test(tc, pure_function_that_touches_a_segment_stops);
    tcase_add_test(tc, undo_log_without_memory_stops);
    tcase_add_test(tc, choice_comes_before_the_first_block);
    tc = env_tcase(s, "choice", 60);
    tcase_add_test(tc, choice_after_a_block_is_refused);
    return env_main(s);
}
