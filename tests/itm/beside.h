/* SPDX-License-Identifier: MIT */
/*
 * beside.h -- what the programs share that test blocks of threads side by side: a segment, a variable
 * outside, threads, and steps that they wait for.
 */
#ifndef XAC_TEST_BESIDE_H
#define XAC_TEST_BESIDE_H

#include <pthread.h>

#include <xac_itm.h>

#include "env.h"

#define PAGES 64

/* The first number of a page; as a constant, for a function call is not allowed in a block. */
#define CELL(page) (x + (size_t)512 * (page))

static uint64_t *x;      /* the segment */
static uint64_t outside; /* of it */
static _Atomic uint64_t step;
static _Atomic uint64_t stop;

static inline void
setup(void)
{
    env_setup();
    must_ok(xac_itm_side_by_side());
}

static inline void
attach(void)
{
    x = env_attach(NONDURABLE, PAGES);
}

static inline pthread_t
start(void *(*fn)(void *), void *arg)
{
    pthread_t thread;

    must(pthread_create(&thread, NULL, fn, arg) == 0);
    return thread;
}

static inline void
join(pthread_t thread)
{
    must(pthread_join(thread, NULL) == 0);
}

__attribute__((transaction_pure, noinline, unused)) static void
go_to(uint64_t n)
{
    if (word_load(&step) < n)
        word_store(&step, n);
}

__attribute__((transaction_pure, noinline, unused)) static void
wait_for(uint64_t n)
{
    proc_await(&step, n, 30);
}

#endif /* XAC_TEST_BESIDE_H */
