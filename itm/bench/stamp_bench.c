/* SPDX-License-Identifier: MIT */
/*
 * stamp_bench.c -- time of the steps of stamp.h: one line of figures.  Compiled twice: over libxac-itm,
 * and with STAMP_VOLATILE for gcc's own libitm.  run.sh compares them.
 *
 *     stamp_xac LOAD THREADS STEPS [durable|nondurable [PROCESSES [beside]]]
 *     stamp_gcc LOAD THREADS STEPS
 */
#include "stamp.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef STAMP_VOLATILE
# include <xac_itm.h>
#endif

#define BYTES       ((size_t)4096 * 4096)
#define THREADS_MAX 64

struct worker {
    struct stamp_world *world;
    struct stamp_net net;
    uint64_t seed;
    uint64_t steps;
    enum stamp_load load;
    pthread_t thread;
};

/* What processes wait for: made before they are forked. */
struct board {
    _Atomic int n_ready;
    _Atomic int go;
    _Atomic uint64_t
        cpu_ns; /* of all processes, for their steps                         */
    _Atomic uint64_t
        last_ns; /* monotonic: when the last one had done its steps           */
};

static void
die(const char *what)
{
#ifndef STAMP_VOLATILE
    fprintf(stderr, "stamp_bench: %s: %s\n", what, xac_last_error());
#else
    fprintf(stderr, "stamp_bench: %s\n", what);
#endif
    exit(EXIT_FAILURE);
}

/* go_on -- all that was stored before is seen after await_step. */
static void
go_on(_Atomic int *word)
{
    /* Release: pairs with the acquire in await_step. */
    atomic_fetch_add_explicit(word, 1, memory_order_release);
}

static uint64_t
clock_ns(clockid_t clock)
{
    struct timespec ts;

    (void)clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *
work(void *arg)
{
    struct worker *me = arg;

    for (uint64_t i = 0; i < me->steps; i++)
        stamp_step(me->world, me->load, &me->seed, &me->net);
    return NULL;
}

/* run -- all steps of a process, by its threads. */
static void
run(struct stamp_world *world, enum stamp_load load, int n_threads, uint64_t steps,
    uint64_t seed)
{
    static struct worker workers[THREADS_MAX];

    for (int i = 0; i < n_threads; i++) {
        workers[i] = (struct worker){.world = world,
                                     .load = load,
                                     .steps = steps / (uint64_t)n_threads,
                                     .seed = seed + (uint64_t)i};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            die("no thread");
    }
    for (int i = 0; i < n_threads; i++)
        (void)pthread_join(workers[i].thread, NULL);
}

/* measure -- run(), with its times on the board. */
static void
measure(struct board *board, struct stamp_world *world, enum stamp_load load,
        int n_threads, uint64_t steps, uint64_t seed)
{
    uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), now, last;

    run(world, load, n_threads, steps, seed);
    now = clock_ns(CLOCK_MONOTONIC);
    cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    /* Relaxed: read when the process has been waited for. */
    atomic_fetch_add_explicit(&board->cpu_ns, cpu, memory_order_relaxed);
    last = atomic_load_explicit(&board->last_ns, memory_order_relaxed);
    while (last < now
           && !atomic_compare_exchange_weak_explicit(&board->last_ns, &last, now,
                                                     memory_order_relaxed,
                                                     memory_order_relaxed))
        ;
}

#ifndef STAMP_VOLATILE
static void
await_step(const _Atomic int *word, int step)
{
    /* Acquire: pairs with the release in go_on. */
    while (atomic_load_explicit(word, memory_order_acquire) < step)
        (void)usleep(100);
}

static void *
attach(int flags)
{
    void *base;

    if (xac_init("db", flags) != 0)
        die("xInit");
    base = xac_mmap_at("stamp.db", 0, BYTES, XAC_SAME_ADDRESS);
    if (base == MAP_FAILED)
        die("xMmapAt");
    return base;
}

/* A further process: it works when the first one says so. */
static void
child(struct board *board, int flags, enum stamp_load load, int n_threads, uint64_t steps,
      int who)
{
    void *base;

    await_step(&board->go, 1);
    base = attach(flags);
    go_on(&board->n_ready);
    await_step(&board->go, 2);
    measure(board, stamp_find(base), load, n_threads, steps, (uint64_t)who * 1000);
    _exit(xac_shutdown() != 0);
}
#endif

int
main(int argc, char **argv)
{
    struct board *board =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int load = 0, n_threads, n_processes = 1;
    struct stamp_world *world;
    uint64_t steps, start;
    double all;

    if (argc < 4 || board == MAP_FAILED)
        die("LOAD THREADS STEPS [durable|nondurable [PROCESSES [beside]]]");
    while (load < STAMP_LOADS && strcmp(stamp_names[load], argv[1]) != 0)
        load++;
    n_threads = atoi(argv[2]);
    steps = strtoull(argv[3], NULL, 10);
    if (load == STAMP_LOADS || n_threads < 1 || n_threads > THREADS_MAX || steps == 0)
        die("LOAD THREADS STEPS [durable|nondurable [PROCESSES [beside]]]");
#ifndef STAMP_VOLATILE
    int flags =
        argc > 4 && strcmp(argv[4], "durable") == 0 ? XAC_DURABLE : XAC_NONDURABLE;

    n_processes = argc > 5 ? atoi(argv[5]) : 1;
    if (argc > 6 && strcmp(argv[6], "beside") == 0 && xac_itm_side_by_side() != 0)
        die("xac_itm_side_by_side");
    for (int i = 1; i < n_processes; i++) {
        if (fork() == 0)
            child(board, flags, (enum stamp_load)load, n_threads, steps, i);
    }
    world = stamp_create(attach(flags));
    go_on(&board->go);
    await_step(&board->n_ready, n_processes - 1);
#else
    world = stamp_create(NULL);
#endif
    run(world, (enum stamp_load)load, 1, steps / 4, 99); /* as it is after a while */
    start = clock_ns(CLOCK_MONOTONIC);
    go_on(&board->go);
    measure(board, world, (enum stamp_load)load, n_threads, steps, 1);
    while (wait(NULL) > 0)
        ;
    all = (double)(steps * (uint64_t)n_processes) * 1e3;
    /* Relaxed: all have ended. */
    printf("%.3f %.3f\n",
           (double)(atomic_load_explicit(&board->last_ns, memory_order_relaxed) - start)
               / all,
           (double)atomic_load_explicit(&board->cpu_ns, memory_order_relaxed) / all);
#ifndef STAMP_VOLATILE
    if (xac_shutdown() != 0)
        die("xShutdown");
#endif
    return 0;
}
