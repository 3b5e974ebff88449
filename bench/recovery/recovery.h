/* SPDX-License-Identifier: MIT */
/*
 * recovery.h -- the experiment `recovery`: how fast a long log is recovered, in how much
 * memory, and whether killing recoveries on the way harms.
 *
 * A process writes a log that no checkpoint shortens and kills itself.  Then in every
 * round cat(1) reads the log's files, and a process of its own recovers them; both find
 * nothing of them in the page cache.  Master record and mapped file are put back for the
 * next round.  In the last one recoveries are killed at random moments before one runs to
 * its end.  After each, the mapped file is compared with what had been committed.
 */
#ifndef XBENCH_RECOVERY_H
#define XBENCH_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/kit/options.h"

#define BENCH_REC_ROUNDS_MAX 100u

struct bench_rec_options {
    uint64_t log_bytes;    /* at least so much log                                    */
    uint64_t data_bytes;   /* of the mapped file                                      */
    uint64_t txn_pages;    /* random pages that a transaction changes                 */
    uint64_t change_bytes; /* of each                                                 */
    uint64_t rounds;
    uint64_t kills; /* recoveries killed in the last round                            */
    uint64_t seed;
    struct bench_common common; /* dir: a directory is made in it                      */
};

/* One environment, and what is known of it. */
struct bench_rec {
    const struct bench_rec_options *options;
    char dir[400];      /* of the run: env, expected, saved                           */
    uint64_t log_bytes; /* of segments and data files, as cat reads them              */
    double cat_seconds[BENCH_REC_ROUNDS_MAX];
    double recover_seconds[BENCH_REC_ROUNDS_MAX];
    double cat_cpu[BENCH_REC_ROUNDS_MAX]; /* seconds of processor time                */
    double recover_cpu[BENCH_REC_ROUNDS_MAX];
    double write_seconds[BENCH_REC_ROUNDS_MAX]; /* mapped file written and synced      */
    uint64_t n_writes;
    uint64_t peak_kib; /* largest resident set of a recovery                         */
    uint64_t base_kib; /* resident set of a process that does nothing                */
    uint64_t n_killed; /* recoveries killed at work                                   */
};

/* bench_rec_make -- write the log, crash, save what a recovery changes; ret 0 or 1. */
int bench_rec_make(struct bench_rec *r);

/* bench_rec_reset -- put master record, data files and mapped file back; ret 0 or 1. */
int bench_rec_reset(struct bench_rec *r);

/* bench_rec_verify -- the mapped file is what was committed; ret 0 or 1. */
int bench_rec_verify(struct bench_rec *r);

#endif /* XBENCH_RECOVERY_H */
