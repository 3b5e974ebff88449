/* SPDX-License-Identifier: MIT */
/*
 * check_itm_stamp.c -- containers with ordinary pointers, changed by language transactions.
 *
 * GOAL    A list, a red-black tree of a library that knows nothing of transactions, a hash table and
 *         reservations are sound, and hold what was put in, after 1, 2 and 8 threads and two
 *         processes of 1 and of 4 have worked on one durable segment, blocks of threads one by one and side by
 *         side; after kills, too.
 * METHOD  Each thread sums up what it has added; the end is compared with the sums (stamp.h).  Where
 *         processes are killed, the sums lie in the segment and are a part of each step's block.
 */
#include <config.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <xac_itm.h>

#include "env.h"
#include "stamp.h"

#define PAGES       1024
#define STEPS       3000
#define THREADS_MAX 8
#define PROCESSES   2

struct board {
    _Atomic uint64_t attached;
    _Atomic uint64_t step;
    struct stamp_net nets[PROCESSES][THREADS_MAX];
    _Atomic uint64_t known[PROCESSES * THREADS_MAX]; /* committed steps, in this round  */
};

struct worker {
    struct stamp_world *world;
    struct stamp_net *net;
    uint64_t seed;
    uint64_t steps;
    enum stamp_load load;
    pthread_t thread;
};

struct process {
    enum stamp_load load;
    int n_threads;
    int who;
};

static const int threads_of[] = {1, 2, 8};
static struct board *board;

static void
setup(void)
{
    env_setup();
    board = proc_shared(sizeof *board);
}

static void *
work(void *arg)
{
    struct worker *me = arg;

    for (uint64_t i = 0; i < me->steps; i++)
        stamp_step(me->world, me->load, &me->seed, me->net);
    return NULL;
}

static void
run_threads(const struct process *p, struct stamp_world *w)
{
    struct worker workers[THREADS_MAX];

    for (int i = 0; i < p->n_threads; i++) {
        workers[i] = (struct worker){.world = w,
                                     .net = &board->nets[p->who][i],
                                     .seed = env_seed() + (uint64_t)(p->who * 100 + i),
                                     .steps = STEPS / (uint64_t)p->n_threads,
                                     .load = p->load};
        must(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < p->n_threads; i++)
        must(pthread_join(workers[i].thread, NULL) == 0);
}

static void
be_process(void *arg)
{
    const struct process *p = arg;
    uint64_t *base;

    proc_await(&board->step, 1, 60);
    base = env_attach(DURABLE, PAGES);
    run_threads(p, stamp_find(base));
    env_detach();
}

/* check -- the world holds what all have added, and the heap is sound. */
static void
check(uint64_t *base, enum stamp_load load)
{
    struct stamp_net all = {0};
    const char *wrong;

    for (int p = 0; p < PROCESSES; p++) {
        for (int i = 0; i < THREADS_MAX; i++) {
            all.n += board->nets[p][i].n;
            all.sum += board->nets[p][i].sum;
            all.hits += board->nets[p][i].hits;
        }
    }
    struct stamp_world *w = stamp_find(base);
    must_ok(xbeginQuery());
    wrong = stamp_wrong(w, load, &all);
    if (wrong != NULL)
        env_fail(__FILE__, __LINE__, "%s: %s", stamp_names[load], wrong);
    must_ok(xHeapCheck(base, NULL, 0));
    must_ok(xendQuery());
    must(all.hits > 0);
}

START_TEST(threads_of_one_process)
{
    struct process p = {.load = (enum stamp_load)(_i % STAMP_LOADS),
                        .n_threads = threads_of[_i / STAMP_LOADS]};
    uint64_t *base = env_attach(DURABLE, PAGES);

    run_threads(&p, stamp_create(base));
    check(base, p.load);
    env_detach();
    base = env_attach(DURABLE, PAGES);
    check(base, p.load);
    env_detach();
}
END_TEST

START_TEST(two_processes)
{
    struct process p = {.load = (enum stamp_load)(_i % STAMP_LOADS),
                        .n_threads = _i < STAMP_LOADS ? 1 : 4};
    pid_t pids[PROCESSES];
    uint64_t *base;

    for (p.who = 0; p.who < PROCESSES; p.who++)
        pids[p.who] = proc_spawn(be_process, &p);
    base = env_attach(DURABLE, PAGES);
    must(stamp_create(base) != NULL);
    word_store(&board->step, 1);
    for (int i = 0; i < PROCESSES; i++)
        proc_join(pids[i]);
    check(base, p.load);
    env_detach();
}
END_TEST

/* ---- kills ---------------------------------------------------------------------------------- */

#define KILLED_THREADS 4
#define STORMS         8

/* nets_of -- the threads' sums, which lie in the segment; in a block. */
__attribute__((transaction_safe)) static struct stamp_net *
nets_of(void **root)
{
    return root[1];
}

static void
make_nets(uint64_t *base)
{
    __transaction_atomic
    {
        void **root = xRoot(base);
        struct stamp_net *nets = xMalloc(base, PROCESSES * KILLED_THREADS * sizeof *nets);

        memset(nets, 0, PROCESSES * KILLED_THREADS * sizeof *nets);
        root[1] = nets;
    }
}

struct endless {
    struct process p;
    uint64_t *base;
    int who;
};

static void *
step_for_ever(void *arg)
{
    const struct endless *e = arg;
    struct stamp_world *w = stamp_find(e->base);
    uint64_t seed = env_seed() + (uint64_t)e->who, steps = 0, next = 0;

    word_add(&board->attached, 1);
    for (;;) {
        __transaction_atomic
        {
            next = seed;
            stamp_step(w, e->p.load, &next, nets_of(xRoot(e->base)) + e->who);
        }
        seed = next;
        word_store(&board->known[e->who], ++steps);
    }
    return NULL;
}

static void
work_for_ever(void *arg)
{
    static struct endless all[KILLED_THREADS];
    const struct process *p = arg;
    uint64_t *base = env_attach(DURABLE, PAGES);
    pthread_t thread;

    for (int i = 0; i < KILLED_THREADS; i++) {
        all[i] =
            (struct endless){.p = *p, .base = base, .who = p->who * KILLED_THREADS + i};
        must(pthread_create(&thread, NULL, step_for_ever, &all[i]) == 0);
    }
    (void)pthread_join(thread, NULL);
}

/* check_killed -- the sums are exact, and hold all steps that a thread knew to be committed. */
static void
check_killed(uint64_t *base, enum stamp_load load, uint64_t had[])
{
    struct stamp_net all = {0};
    struct stamp_world *w = stamp_find(base);
    const struct stamp_net *nets;
    const char *wrong;

    must_ok(xbeginQuery());
    nets = nets_of(xRoot(base));
    for (int i = 0; i < PROCESSES * KILLED_THREADS; i++) {
        uint64_t known = word_load(&board->known[i]), have = nets[i].steps - had[i];

        all.n += nets[i].n;
        all.sum += nets[i].sum;
        must(have == known || have == known + 1);
        had[i] = nets[i].steps;
        word_store(&board->known[i], 0);
    }
    wrong = stamp_wrong(w, load, &all);
    if (wrong != NULL)
        env_fail(__FILE__, __LINE__, "%s: %s", stamp_names[load], wrong);
    must_ok(xHeapCheck(base, NULL, 0));
    must_ok(xendQuery());
}

/* Killed in the middle, again and again: sums are exact, containers and heap are sound. */
START_TEST(kills_leave_exact_sums)
{
    struct process p = {.load = (enum stamp_load)_i};
    uint64_t rnd = env_seed(), had[PROCESSES * KILLED_THREADS] = {0};
    uint64_t *base = env_attach(DURABLE, PAGES);

    must(stamp_create(base) != NULL);
    make_nets(base);
    env_detach();
    for (int round = 0; round < STORMS; round++) {
        uint64_t attached = word_load(&board->attached);
        pid_t pids[PROCESSES];

        for (p.who = 0; p.who < PROCESSES; p.who++)
            pids[p.who] = proc_spawn(work_for_ever, &p);
        proc_await(&board->attached, attached + PROCESSES * KILLED_THREADS, 60);
        proc_sleep_us(rnd_below(&rnd, 50000));
        for (int i = 0; i < PROCESSES; i++) {
            proc_kill(pids[i]);
            proc_sleep_us(rnd_below(&rnd, 10000)); /* the other one goes on */
        }
        base = env_attach(DURABLE, PAGES);
        check_killed(base, p.load, had);
        env_detach();
    }
}
END_TEST

/* Blocks of threads may run side by side. */
static void
setup_beside(void)
{
    setup();
    must_ok(xac_itm_side_by_side());
}

int
main(void)
{
    Suite *s = suite_create("itm_stamp");
    TCase *tcs[2] = {env_tcase_with(s, "itm_stamp", 120, setup),
                     env_tcase_with(s, "beside", 120, setup_beside)};

    for (int i = 0; i < 2; i++) {
        TCase *tc = tcs[i];

        tcase_add_loop_test(tc, threads_of_one_process, 0, 3 * STAMP_LOADS);
        tcase_add_loop_test(tc, two_processes, 0, 2 * STAMP_LOADS);
        tcase_add_loop_test(tc, kills_leave_exact_sums, 0, STAMP_LOADS);
    }
    return env_main(s);
}
