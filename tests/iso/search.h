/* SPDX-License-Identifier: MIT */
/*
 * search.h -- runs the schedules of a scenario, all of them or a random sample.
 *
 * A scenario gives each participant a program, a string of steps:
 *
 *   b q     begin a transaction, a query           e   end it
 *   rP wP   read page P; store a new value in it   sP  store the value that it holds
 *   a       xAbort                                 d   die
 *   c       gc                               k   checkpoint
 *   x       clean up after the dead                j l attach, detach
 *   m       take a savepoint: level 0, 1, ...      uL fL roll back to it, release it
 *   hN oN   hold snapshot N (in a query: of its state), release it
 *   tN pN   begin a query at snapshot N, at the state N commits back; if there is none, the steps up to
 *           its end are left out
 *
 * Between steps any participant may be next.  Within a step another one may take over at
 * any atomic operation of the library, `preempts` times a run; at `deaths` of those that
 * store, a participant of the set `mortals` may die.
 */
#ifndef XAC_TEST_SEARCH_H
#define XAC_TEST_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"

#define STEPS_MAX 64

struct scenario {
    const char *name;
    const char
        *program[MODEL_ACTORS]; /* NULL: no more participants                     */
    enum model_policy policy;
    int preempts;
    int deaths;
    uint32_t
        window; /* states stay that were present at one of so many numbers; 0: none */
    uint32_t mortals;
    bool stays_mapped; /* the first is alone, the others join */
    bool is_long;      /* in the long form only */
};

struct tally {
    uint64_t scenarios;
    uint64_t
        schedules;   /* complete ones                                                 */
    uint64_t pruned; /* cut short at a state from which all had been tried            */
    uint64_t states; /* different ones at which the next to run was chosen            */
    uint64_t steps;
    uint64_t commits, aborts, deaths;
};

/* search_open -- make the environments; search_close -- leave or just delete them. */
void search_open(void);
void search_close(bool is_orderly);

/* search_all -- every schedule of a scenario; ends the program if one is wrong. */
void search_all(const struct scenario *s, struct tally *t);

/* search_random -- n schedules of a scenario. */
void search_random(const struct scenario *s, uint64_t n, uint64_t *seed, struct tally *t);

uint64_t search_random_below(uint64_t *seed, uint64_t n);

#endif /* XAC_TEST_SEARCH_H */
