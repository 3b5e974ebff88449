/* SPDX-License-Identifier: MIT */
/*
 * check_threads.h -- what the parts of check_threads share: threads that work on views of
 * their own (xView), and a board on which they tell each other how far they are.
 */
#ifndef XAC_CHECK_THREADS_H
#define XAC_CHECK_THREADS_H

#include <check.h>
#include <pthread.h>

#include "env.h"

#define N_PAGES 16

struct board {
    _Atomic uint64_t step;
    _Atomic uint64_t stop;
    _Atomic uint64_t ready;
    _Atomic uint64_t count[16];
};

extern struct board *board; /* shared with child processes, too */

/* A thread of a test. */
struct worker {
    pthread_t thread;
    uint64_t *base; /* of the process's mapping, in                            */
    int i;          /* its number, in                                          */
};

/* Checked fixture: env_setup() and a new board. */
void threads_setup(void);

/* A test case with that fixture. */
TCase *threads_tcase(Suite *s, const char *name, double timeout_s);

/* Start fn(worker) in a thread; wait for its end. */
void worker_start(struct worker *w, void *(*fn)(void *), uint64_t *base, int i);
void worker_join(struct worker *w);

/* xView(), which must succeed. */
uint64_t *view_of(void *base);

/* Announce a step; wait for one. */
void step_to(uint64_t step);
void step_await(uint64_t step);

/* The other parts of the suite. */
void add_ends(Suite *s); /* check_threads_ends.c: ends of threads, forks, crashes    */
void add_work(Suite *s); /* check_threads_work.c: many threads at work               */

#endif /* XAC_CHECK_THREADS_H */
