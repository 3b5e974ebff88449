/* SPDX-License-Identifier: MIT */
/*
 * workload.h -- what the tree experiments do to a system: which operation comes i-th.
 *
 * WHAT      Records and their keys; workloads, each a function from i to one step, so that
 *           all systems, however many processes they have, do the same; doing a step.
 * RECORDS   Number 0, 1, ...: the first `loaded` are there before the measurement; steps
 *           that insert add the next ones in order of i.
 * YCSB      The core workloads A to F (B. F. Cooper et al., Benchmarking Cloud Serving
 *           Systems with YCSB, SoCC 2010): popularity by a Zipfian distribution with 0.99,
 *           scattered over the records; D reads what was inserted last; E scans up to 100
 *           records.  An update replaces the whole value.
 * INVARIANTS
 *   1. A workload that changes values writes all of them by version, so that each value
 *      found can be checked, whichever version it is.
 */
#ifndef XBENCH_WORKLOAD_H
#define XBENCH_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/kit/system.h"

/* The order of keys in which records come. */
enum bench_keys {
    BENCH_KEYS_RANDOM, /* bench_key()                                                  */
    BENCH_KEYS_SORTED, /* ascending                                                    */
    BENCH_KEYS_PATHS /* paths of files below /usr, as a walk meets them; see keys.c    */
};

struct bench_workload;

/* One run of a workload; copied into the workers when they are forked. */
struct bench_job {
    const struct bench_workload *workload;
    enum bench_keys keys;
    uint64_t seed;
    uint64_t loaded;       /* records there before                                     */
    uint64_t steps;        /* of the whole run                                         */
    uint64_t scan_length;  /* records of a scan, at most                               */
    const uint64_t *ranks; /* BENCH_KEYS_PATHS: the caller's                          */
    double zeta;           /* of the Zipfian distribution; bench_job_prepare()        */
    uint64_t written;      /* workloads with a writer: records that it has inserted   */
};

enum bench_step_kind {
    BENCH_STEP_INSERT,
    BENCH_STEP_PUT,
    BENCH_STEP_FIND,
    BENCH_STEP_SCAN,
    BENCH_STEP_MODIFY /* find, then put; two transactions                             */
};

struct bench_step {
    enum bench_step_kind kind;
    uint64_t record;
    uint64_t version; /* of the value to write                                        */
    uint64_t length;  /* records to scan                                              */
    bool may_miss;    /* the record may not be there yet                              */
};

struct bench_workload {
    const char *name;
    const char *unit;  /* what one step is called: "insert"                           */
    const char *words; /* one line                                                    */
    bool changes;      /* values that are there; see invariant 1                      */
    unsigned insert_every; /* every so-manieth step inserts; 0 none, 1 all            */
    void (*make)(const struct bench_job *job, uint64_t i, struct bench_step *out);
    bool has_writer; /* one more worker inserts all the while, at most a record a step */
};

/* All workloads, ended by a NULL name. */
extern const struct bench_workload bench_workloads[];

/* bench_job_prepare -- works out what steps need, in time O(loaded). */
void bench_job_prepare(struct bench_job *job);

/* bench_job_records -- records there when so many steps are done, at most. */
uint64_t bench_job_records(const struct bench_job *job, uint64_t steps);

/* bench_job_records_left -- records there when the whole job is done. */
uint64_t bench_job_records_left(const struct bench_job *job);

/* bench_job_key -- the key of a record. */
uint64_t bench_job_key(const struct bench_job *job, uint64_t record);

/* bench_job_value -- what is stored under a key; version 0 is what is loaded. */
void bench_job_value(const struct bench_job *job, uint64_t key, uint64_t version,
                     unsigned char *value);

/* bench_job_value_right -- whether this is the value of the key in some version. */
bool bench_job_value_right(const struct bench_job *job, uint64_t key,
                           const unsigned char *value);

/*
 * bench_job_do -- do a step on a system; its bytes are made before *startp.
 *
 * out  startp, endp  of the system's own work, ns of CLOCK_MONOTONIC
 * ret  0 or a code of the system; ENOENT if a record is not there that has to be
 */
int bench_job_do(const struct bench_job *job, const struct bench_system *system,
                 void *handle, const struct bench_step *step, uint64_t *retriesp,
                 uint64_t *startp, uint64_t *endp);

/*
 * bench_keys_paths -- keys.c: the ranks, in order of names, of the files below a folder, in
 * the order in which a walk meets them.
 *
 * ret  0 and *ranksp (the caller frees) and *np; 1 after a message
 */
int bench_keys_paths(const char *folder, uint64_t **ranksp, uint64_t *np);

#endif /* XBENCH_WORKLOAD_H */
