/* SPDX-License-Identifier: MIT */
/*
 * team.h -- what the tests of helper threads share: modes, in which each of them runs, and threads that
 * begin their work at the same moment.
 */
#ifndef XAC_TEST_TEAM_H
#define XAC_TEST_TEAM_H

#include <check.h>
#include <pthread.h>

#include <xac_team.h>

#include "env.h"

#define TEAM 8

/* How a test runs: engine, policy, durable or not, with a bound on memory, all threads or those that join. */
struct mode {
    const char *name, *engine, *policy;
    int flags;
    uint64_t frames;
    bool is_all;
};
extern const struct mode team_modes[];
extern const int team_n_modes;

/* A companion and the environment, in that mode; ret the base of n pages. */
uint64_t *team_attach(int mode, size_t n_pages);

/* One thread of a team. */
struct helper {
    pthread_t thread;
    uint64_t *base;
    size_t n_pages;
    uint64_t txn;   /* 0: it need not join                     */
    uint64_t round; /* the test's                              */
    int i;          /* its number, 1 to TEAM; 0 is the owner   */
    void (*work)(struct helper *h);
};

/* In an open transaction: the owner and TEAM helpers do the work, which begins in all at the same moment;
   returns when all have left. */
void team_work(int mode, uint64_t *base, size_t n_pages, uint64_t round,
               void (*work)(struct helper *h));

/* The word of a thread in a page. */
static inline uint64_t *
team_word(uint64_t *base, size_t page, int i)
{
    return env_cell(base, page) + 8 * i;
}

void add_members(Suite *s); /* check_team_members.c: joining, leaving, ends, forks */

#endif /* XAC_TEST_TEAM_H */
