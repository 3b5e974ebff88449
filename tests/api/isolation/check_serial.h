/* SPDX-License-Identifier: MIT */
/*
 * check_serial.h -- what the tests of one writer at a time share: a process that takes the turn, and
 * another one that then commits.
 */
#ifndef XAC_TEST_CHECK_SERIAL_H
#define XAC_TEST_CHECK_SERIAL_H

#include "tests/common/env.h"

#define N_PAGES 4
#define WAYS    4 /* durable or not; each access watched or not */

struct board {
    _Atomic uint64_t has_turn, go, attempts, revoked, n_turns, longest;
};

static struct board *board;
static int mode;

static inline void
setup(void)
{
    env_setup();
    board = (struct board *)proc_shared(sizeof *board);
}

/* choose -- the way of this run of a test. */
static inline void
choose(int way)
{
    mode = (way & 1) != 0 ? XAC_DURABLE : XAC_NONDURABLE;
    env_checking = (way & 2) != 0 ? XAC_CHECKING_STRICT : XAC_CHECKING_FAST;
}

static inline uint64_t *
attach(void)
{
    must_ok(xac_set_option(XAC_OPT_POLICY, XAC_POLICY_SERIAL));
    return (uint64_t *)env_attach(mode, N_PAGES);
}

/* take_turn -- begin, store 1 in page 0, and say so. */
static inline uint64_t *
take_turn(void)
{
    uint64_t *x = attach();

    must_ok(xac_begin());
    *x = 1;
    word_store(&board->has_turn, 1);
    return x;
}

/* commit_beside -- the test can commit, and finds nothing of what the child has stored. */
static inline void
commit_beside(uint64_t *x)
{
    proc_await(&board->has_turn, 1, 20);
    must_ok(xac_begin());
    must_eq(*x, 0);
    *env_cell(x, 1) = 7;
    must_rc(xac_end(), XAC_COMMITTED);
}

#endif /* XAC_TEST_CHECK_SERIAL_H */
