/* SPDX-License-Identifier: MIT */
/*
 * insert.h -- the experiment `insert`, and those made of it: options and results, shared by
 * its parts.  A workload (workload.h) says what the systems do: inserts by default.
 *
 * insert_options.c reads the command line, insert.c runs, insert_report.c prints what came out;
 * calls.c counts system calls of the same runs.
 */
#ifndef XBENCH_INSERT_H
#define XBENCH_INSERT_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/kit/options.h"
#include "bench/kit/system.h"
#include "bench/kit/workload.h"

#define BENCH_LIST_MAX  BENCH_NUMBERS_MAX
#define BENCH_ENTRY_MAX (2 * BENCH_LIST_MAX)

/* Kinds of runs. */
#define BENCH_DURABLE     1u
#define BENCH_NOT_DURABLE 2u

/* What the command line asks for. */
struct bench_insert_options {
    struct bench_common common;
    const char *name;      /* of the experiment                                      */
    uint64_t durabilities; /* BENCH_DURABLE, BENCH_NOT_DURABLE or both                */
    bool hints_on;
    bool hints_off;
    bool kth;  /* give the times of the k-th most expensive steps         */
    bool warm; /* records are touched before a slice's clock starts      */
    struct bench_numbers procs, groups;
    unsigned n_systems;
    const struct bench_system *systems[BENCH_LIST_MAX];
    struct bench_words over; /* names of systems with which every one is compared      */
    unsigned n_workloads;
    const struct bench_workload *workloads[BENCH_LIST_MAX];
    enum bench_keys keys;
    uint64_t *ranks; /* BENCH_KEYS_PATHS                                       */
    uint64_t n_ranks;
    uint64_t count; /* steps                                                  */
    uint64_t loaded;
    uint64_t scan_length;
    uint64_t slices;
    uint64_t seed;
    uint64_t cache_bytes; /* 0: large enough for everything */
    uint64_t block_bytes;
    uint64_t checkpoint_bytes;
    uint64_t sync_bytes;
};

/* The time of another system over this one's.  -1: one of them did not take part. */
struct bench_insert_ratio {
    double median; /* of the ratios of slices                                         */
    double min;
    double max;
    double mean; /* of the whole run: the ratio of the two means                      */
};

/* Result of one system in one run.  A negative number does not apply. */
struct bench_insert_result {
    const struct bench_system *system;
    const struct bench_workload *workload;
    uint64_t group;
    unsigned procs;
    bool durable;
    bool hints;
    const uint32_t *ns; /* of single steps, ascending; only while it is printed   */
    double *slice_us;   /* us per insert, one per slice                            */
    double us_median;
    double us_mean; /* of the whole run                                        */
    double us_min;
    double us_max;
    double p50_us; /* of single inserts                                       */
    double p99_us;
    double max_us;
    double log_bytes; /* per insert                                              */
    double syncs;     /* per insert                                              */
    double per_sync;  /* inserts per sync                                        */
    double traps;     /* per insert                                              */
    uint64_t retries; /* all steps together                                      */
    double writer_us; /* per insert of the writer beside                         */
    struct bench_insert_ratio over[BENCH_LIST_MAX]; /* as in options.over              */
    double over_sync; /* this system's time over the yardstick's: median of slices */
    double over_mmap; /* over that of the same tree without libxac, likewise        */
};

/* bench_insert_parse -- the command line, defaults filled in; as bench_options_parse. */
bool bench_insert_parse(int argc, char **argv, struct bench_insert_options *o,
                        int *statusp);

/* bench_insert_can_run -- whether a system can do that with so many processes or threads. */
bool bench_insert_can_run(const struct bench_system *system,
                          const struct bench_workload *workload, bool durable,
                          unsigned procs);

/* bench_insert_job -- a workload with the options; prepared. */
struct bench_job bench_insert_job(const struct bench_insert_options *o,
                                  const struct bench_workload *workload);

/* bench_insert_config -- settings of a system for a job; `dir` lives as long as they do. */
struct bench_config bench_insert_config(const struct bench_insert_options *o,
                                        const struct bench_job *job,
                                        const struct bench_system *system,
                                        const char *dir, bool durable, bool hints);

/* bench_insert_print_head -- command, machine and settings, and the column heads. */
void bench_insert_print_head(const struct bench_insert_options *o);

/* bench_insert_print_row -- one line of the table, or one JSON object. */
void bench_insert_print_row(const struct bench_insert_options *o,
                            const struct bench_insert_result *r);

/* bench_insert_usage -- the manual. */
void bench_insert_usage(void);

#endif /* XBENCH_INSERT_H */
