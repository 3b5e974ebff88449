/* SPDX-License-Identifier: MIT */
/*
 * check_model.h -- what the parts of check_model have in common.
 */
#ifndef XAC_TEST_CHECK_MODEL_H
#define XAC_TEST_CHECK_MODEL_H

#include <check.h>
#include <stdint.h>

#include "env.h"

#define N_POLICIES (XAC_POLICY_SERIAL + 1)

/* Of these, those under which transactions overlap that write. */
#define N_OVERLAPPING (XAC_POLICY_OPTIMISTIC + 1)

/* Words shared by parent and children outside the library. */
struct board {
    _Atomic uint64_t ready;
    _Atomic uint64_t stop;
    _Atomic uint64_t step;
    _Atomic uint64_t commits[4];
    _Atomic uint64_t aborts[4];
    _Atomic uint64_t announced; /* about to be stored, in ordinary memory             */
    _Atomic uint64_t acked;     /* stored by a transaction whose xend() has returned  */
    _Atomic uint64_t seen;      /* by a transaction or query that has ended           */
    _Atomic uint64_t count;
};

extern struct board *board;

/* A fresh board, and the policy of the environment to come. */
void set_policy(int policy);

/* A word of a page of a segment. */
volatile uint64_t *cell(void *base, size_t page, size_t word);

/* Wait until n processes have come here. */
void start_together(uint64_t n);

/* The run is over: the processes are to detach. */
bool is_over(void);

/* Two processes step by step: check_model_steps.c. */
void add_step_tests(Suite *s);

#endif /* XAC_TEST_CHECK_MODEL_H */
