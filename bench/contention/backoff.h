/* SPDX-License-Identifier: MIT */
/*
 * backoff.h -- the experiment `backoff`: options, ways to wait, one turn, results.
 *
 * backoff.c reads the command line and runs the turns, backoff_worker.c has the processes, the
 * inserts and the ways to wait, backoff_report.c prints what came out.
 */
#ifndef XBENCH_BACKOFF_H
#define XBENCH_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/contention/contention.h"
#include "bench/kit/micro.h"
#include "bench/systems/tree_kind.h"

/* What a transaction does between an abort and its next attempt. */
struct bench_backoff {
    const char *name;
    const char *what;
    void (*wait)(void *arg, unsigned attempts); /* of xac_set_backoff()                */
};

/* A tree, by name. */
struct bench_backoff_tree {
    const char *name;
    const struct bench_tree_kind *kind;
};

/* All of them, ended by a NULL name. */
extern const struct bench_backoff bench_backoffs[];
extern const struct bench_backoff_tree bench_backoff_trees[];

struct bench_backoff_options {
    struct bench_common common;
    unsigned n_policies, n_backoffs, n_trees;
    const struct bench_hot_policy *policies[BENCH_HOT_LIST_MAX];
    const struct bench_backoff *backoffs[BENCH_HOT_LIST_MAX];
    const struct bench_backoff_tree *trees[BENCH_HOT_LIST_MAX];
    struct bench_numbers procs;
    uint64_t loaded; /* records in the tree before the first insert                    */
    uint64_t count;  /* inserts of a turn, shared by the processes                     */
    uint64_t rounds;
    uint64_t fixed_us; /* that `fixed` sleeps                                          */
    uint64_t seed;
};

/* One turn: an environment, and a tree, that nobody has used before. */
struct bench_backoff_turn {
    const struct bench_backoff_options *options;
    const struct bench_backoff_tree *tree;
    const struct bench_hot_policy *policy;
    const struct bench_backoff *backoff;
    unsigned n_procs;
    char dir[BENCH_DIR_BYTES];
};

/* What it came to. */
struct bench_backoff_counts {
    uint64_t ns; /* from the first start to the last end                               */
    uint64_t commits, aborts;
    uint64_t max_retries; /* of one insert                                             */
    uint64_t longest_ns;  /* insert, with its retries                                  */
    uint64_t waited_ns;   /* in back-offs, all processes together                      */
};

/* All turns of one combination. */
struct bench_backoff_result {
    struct bench_sample us; /* per insert, one per round                               */
    struct bench_backoff_counts all;
};

/*
 * bench_backoff_turn -- processes start, load, insert, close; then a new process finds every
 * record, each with its value, and no other.
 *
 * in   turn  filled in; dir exists and is empty
 * ret  0, or 1 after a message; no process runs any more.
 */
int bench_backoff_turn(struct bench_backoff_turn *turn, struct bench_backoff_counts *out);

void bench_backoff_usage(void);

/* bench_backoff_print_head -- command and machine. */
void bench_backoff_print_head(const struct bench_backoff_options *o);

/*
 * bench_backoff_print -- a tree and a number of processes: a row for each back-off, or one JSON
 * object for each combination.
 *
 * in   results  [back-off * n_policies + policy]
 */
void bench_backoff_print(const struct bench_backoff_options *o, unsigned tree,
                         unsigned n_procs, struct bench_backoff_result *results);

#endif /* XBENCH_BACKOFF_H */
