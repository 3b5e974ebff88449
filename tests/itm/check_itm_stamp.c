/* SPDX-License-Identifier: MIT */
/*
 * check_itm_stamp.c -- containers with ordinary pointers, changed by language transactions.
 *
 * GOAL    A list, a red-black tree of a library that knows nothing of transactions, a hash table and
 *         reservations are sound, and hold what was put in, after 1, 2 and 8 threads and two
 *         processes have worked on one durable segment; after kills, too.
 * METHOD  Each thread sums up what it has added; the end is compared with the sums (stamp.h).
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

START_TEST(two_processes_of_two_threads)
{
    struct process p = {.load = (enum stamp_load)_i, .n_threads = 2};
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

static void
work_for_ever(void *arg)
{
    const struct process *p = arg;
    struct stamp_net net = {0};
    uint64_t seed = env_seed() + (uint64_t)p->who;
    uint64_t *base = env_attach(DURABLE, PAGES);
    struct stamp_world *w = stamp_find(base);

    word_add(&board->attached, 1);
    for (;;)
        stamp_step(w, p->load, &seed, &net);
}

/* Killed in the middle, again and again: what was published is sound, and the heap as well. */
START_TEST(kills_leave_sound_containers)
{
    struct process p = {.load = (enum stamp_load)_i};
    uint64_t rnd = env_seed();
    uint64_t *base = env_attach(DURABLE, PAGES);

    must(stamp_create(base) != NULL);
    env_detach();
    for (int round = 0; round < 5; round++) {
        uint64_t attached = word_load(&board->attached);
        pid_t pids[PROCESSES];
        const char *wrong;
        struct stamp_net any = {0};

        for (p.who = 0; p.who < PROCESSES; p.who++)
            pids[p.who] = proc_spawn(work_for_ever, &p);
        proc_await(&board->attached, attached + PROCESSES, 60);
        proc_sleep_us(rnd_below(&rnd, 50000));
        for (int i = 0; i < PROCESSES; i++)
            proc_kill(pids[i]);
        base = env_attach(DURABLE, PAGES);
        struct stamp_world *w = stamp_find(base);
        must_ok(xbeginQuery());
        wrong = stamp_wrong(w, p.load, &any);
        if (wrong != NULL && strstr(wrong, "the sums") == NULL)
            env_fail(__FILE__, __LINE__, "%s: %s", stamp_names[p.load], wrong);
        must_ok(xHeapCheck(base, NULL, 0));
        must_ok(xendQuery());
        env_detach();
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("itm_stamp");
    TCase *tc = env_tcase_with(s, "itm_stamp", 120, setup);

    tcase_add_loop_test(tc, threads_of_one_process, 0, 3 * STAMP_LOADS);
    tcase_add_loop_test(tc, two_processes_of_two_threads, 0, STAMP_LOADS);
    tcase_add_loop_test(tc, kills_leave_sound_containers, 0, STAMP_LOADS);
    return env_main(s);
}
