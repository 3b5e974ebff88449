/* SPDX-License-Identifier: MIT */
/*
 * contention.h -- the experiment `contention`: options, results, processes.
 *
 * contention_options.c reads the command line, contention.c runs, contention_worker.c has the
 * processes and the transactions, contention_report.c prints what came out.
 */
#ifndef XBENCH_CONTENTION_H
#define XBENCH_CONTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/kit/options.h"
#include "bench/kit/team.h"

#define BENCH_HOT_LIST_MAX  BENCH_NUMBERS_MAX
#define BENCH_HOT_PROCS_MAX BENCH_TEAM_MAX
#define BENCH_HOT_PAGES_MAX (UINT64_C(1) << 20)

struct bench_hot_policy {
    const char *name;
    uint64_t kind; /* enum xac_policy_kind                                            */
};

/* What a transaction does: reads of random pages, then increments on random pages. */
struct bench_hot_length {
    const char *name;
    unsigned reads;
    unsigned writes;
};

/* All of them, ended by a NULL name. */
extern const struct bench_hot_policy bench_hot_policies[];
extern const struct bench_hot_length bench_hot_lengths[];

/* What the command line asks for. */
struct bench_hot_options {
    struct bench_common common;
    unsigned n_policies, n_lengths;
    const struct bench_hot_policy *policies[BENCH_HOT_LIST_MAX];
    const struct bench_hot_length *lengths[BENCH_HOT_LIST_MAX];
    struct bench_numbers procs, pages;
    double seconds; /* of each policy in each cell, all slices together               */
    uint64_t slices;
    uint64_t seed;
};

/* A cell: the same load for all policies. */
struct bench_hot_cell {
    const struct bench_hot_length *length;
    unsigned procs;
    uint64_t pages;
};

/* What workers count. */
struct bench_hot_counts {
    uint64_t commits;
    uint64_t aborts;
    uint64_t max_retries; /* of one transaction                                       */
    uint64_t min_commits; /* of one worker, in the whole run                          */
    uint64_t ns;          /* from the first start to the last end                     */
};

/* Result of one policy in one cell. */
struct bench_hot_result {
    const struct bench_hot_policy *policy;
    double *slice_rate; /* committed transactions per second, one per slice           */
    double rate_median;
    double rate_min;
    double rate_max;
    struct bench_hot_counts counts; /* of the whole run                               */
};

/* The processes of one policy, in an environment of their own. */
struct bench_hot_crew {
    const struct bench_hot_policy *policy;
    struct bench_hot_cell cell;
    char dir[480];
    uint64_t seed;
    struct bench_team team;
    uint64_t
        commits[BENCH_HOT_PROCS_MAX]; /* of each process so far                     */
};

/*
 * bench_hot_start -- fork the workers, open the environment in each, worker 0 first.
 *
 * in   crew  policy, cell, dir and seed filled in; dir exists and is empty
 * ret  0, or 1 after a message; the crew must be stopped in both cases.
 */
int bench_hot_start(struct bench_hot_crew *crew);

/* bench_hot_run -- all workers, for so long; who is in a transaction finishes it. */
int bench_hot_run(struct bench_hot_crew *crew, uint64_t ns, struct bench_hot_counts *out);

/* bench_hot_close -- close the environment everywhere and end the workers. */
int bench_hot_close(struct bench_hot_crew *crew);

/*
 * bench_hot_check -- after the close: do the counters in the file, read without the
 * library, add up to the increments of `commits` transactions?
 */
int bench_hot_check(const struct bench_hot_crew *crew, uint64_t commits);

/* bench_hot_stop -- kill what still runs; any state. */
void bench_hot_stop(struct bench_hot_crew *crew);

/* bench_hot_parse -- the command line; as bench_options_parse. */
bool bench_hot_parse(int argc, char **argv, struct bench_hot_options *o, int *statusp);

void bench_hot_usage(void);

/* bench_hot_print_head -- command, machine, settings, and the head of the table. */
void bench_hot_print_head(const struct bench_hot_options *o);

/* bench_hot_print_cell -- one line of the table, or one JSON object per policy. */
void bench_hot_print_cell(const struct bench_hot_options *o,
                          const struct bench_hot_cell *cell,
                          const struct bench_hot_result *results);

#endif /* XBENCH_CONTENTION_H */
