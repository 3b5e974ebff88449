/* SPDX-License-Identifier: MIT */
/*
 * check_itm_beside.c -- blocks of several threads side by side.
 *
 * GOAL    Each thread has transactions of its own, with ordinary pointers; memory outside of segments is
 *         isolated, also together with segments, in attempts that fail, too; threads come and go, and so do
 *         segments and environments.
 * METHOD  Functions that are declared pure let threads wait for each other in the middle of
 *         blocks, and look at what a block has loaded before it is run again.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac_itm.h>

#include "env.h"

#define PAGES    64
#define POLICIES 6

/* The first number of a page; as a constant, for a function call is not allowed in a block. */
#define CELL(page) (x + (size_t)512 * (page))

static uint64_t *x;      /* the segment */
static uint64_t outside; /* of it */
static int attempts;     /* not undone */
static _Atomic uint64_t step;

static void
setup(void)
{
    env_setup();
    must_ok(xac_itm_side_by_side());
}

static void
attach(void)
{
    x = env_attach(NONDURABLE, PAGES);
    attempts = 0;
}

static pthread_t
start(void *(*fn)(void *), void *arg)
{
    pthread_t thread;

    must(pthread_create(&thread, NULL, fn, arg) == 0);
    return thread;
}

static void
join(pthread_t thread)
{
    must(pthread_join(thread, NULL) == 0);
}

__attribute__((transaction_pure, noinline)) static void
go_to(uint64_t n)
{
    if (word_load(&step) < n)
        word_store(&step, n);
}

__attribute__((transaction_pure, noinline)) static void
wait_for(uint64_t n)
{
    proc_await(&step, n, 30);
}

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
static _Atomic uint64_t stop;

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
    tc = env_tcase_with(s, "come_and_go", 120, setup);
    tcase_add_test(tc, short_threads_leave_nothing);
    tcase_add_test(tc, thread_ends_inside_of_a_block);
    tcase_add_test(tc, segment_grows_beside_blocks);
    tcase_add_test(tc, environments_follow_each_other);
    tcase_add_test(tc, irrevocable_blocks_beside_others);
    tc = env_tcase_with(s, "stops", 60, setup);
    tcase_add_test(tc, pure_function_that_touches_a_segment_stops);
    tcase_add_test(tc, undo_log_without_memory_stops);
    tcase_add_test(tc, choice_comes_before_the_first_block);
    tc = env_tcase(s, "choice", 60);
    tcase_add_test(tc, choice_after_a_block_is_refused);
    return env_main(s);
}
