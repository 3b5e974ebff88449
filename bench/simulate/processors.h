/* SPDX-License-Identifier: MIT */
/*
 * processors.h -- the experiment `processors`: what would be on a machine with more processors
 * than there are.
 *
 * processors.c has the command line and output, processors_costs.c measures what things cost here,
 * processors_frames.c simulates users of page frames, processors_policies.c transactions.
 *
 * A SIMULATION  Each processor runs one user; nobody is preempted.  Costs are those that were
 *           measured here with one thread, and with two; what more processors would change in
 *           them (a second socket, a memory bus that is full) is not in it.
 */
#ifndef XBENCH_PROCESSORS_H
#define XBENCH_PROCESSORS_H

#include <stdint.h>

#include "bench/contention/contention.h"

#define BENCH_SIM_PROCS_MAX 64u

/* Page frames: how the order of pages is kept. */
enum bench_sim_frames {
    BENCH_SIM_NB,     /* Nb-GCLOCK: nothing is locked on a hit                          */
    BENCH_SIM_LRU,    /* LRU, a lock for each hit                                       */
    BENCH_SIM_LRU_64, /* in 64 partitions, each with a lock                             */
    BENCH_SIM_BATCH, /* LRU with BP-Wrapper: batches of 32, a queue of 64               */
    BENCH_SIM_BATCH_64, /* both                                                          */
    BENCH_SIM_N_FRAMES
};

/* Costs, ns; 0: to be measured. */
struct bench_sim_costs {
    double line; /* a line of memory comes from another processor                      */
    double nb;   /* a fix and its unfix that hit, alone: Nb-GCLOCK                      */
    double lru;  /* LRU with a lock                                                    */
    double batch; /* LRU with BP-Wrapper                                                */
    double
        lines_under_lock; /* lines that a critical section takes from the last holder  */
    double
        commit; /* the lock under which transactions are published is held so long    */
};

/* Of page frames. */
struct bench_sim_fixes {
    double
        per_us; /* fixes a microsecond, all processors                                */
    double
        waited; /* share of all processors' time: for locks                           */
};

/*
 * bench_sim_frames_run -- n processors fix and unfix pages that are all in frames, drawn as in the rows of
 * `frames`, with compute_ns between two, for so many ms.
 */
struct bench_sim_fixes bench_sim_frames_run(const struct bench_sim_costs *costs,
                                            enum bench_sim_frames kind, unsigned n,
                                            double compute_ns, double ms,
                                            const uint32_t *refs, uint64_t n_refs);

/* A policy that libxac does not have: as XAC_POLICY_OPTIMISTIC, but only pages that were written are compared, and
   nobody gets the turn (Thesis section 3.3, on the scheme of Inohara et al.). */
#define BENCH_SIM_VO UINT64_C(1000)

/* What a transaction costs that meets nobody, ns; under serial: that has the turn. */
struct bench_sim_txn_costs {
    double own;  /* begin and end                                                       */
    double page; /* each page, the first time                                           */
};

/* Of transactions. */
struct bench_sim_commits {
    double per_second;
    double abort_rate; /* aborts over attempts                                          */
    uint64_t max_retries;
};

/*
 * bench_sim_policy_run -- n processors run transactions on so many pages for so many ms.
 */
struct bench_sim_commits bench_sim_policy_run(const struct bench_sim_costs *costs,
                                              uint64_t policy,
                                              const struct bench_hot_length *length,
                                              uint64_t n_pages, unsigned n,
                                              const struct bench_sim_txn_costs *each,
                                              double ms);

/* ---- processors_costs.c ------------------------------------------------------------------------ */

/* bench_sim_line_ns -- between two processors of this machine; ret 0, or 1 after a message. */
int bench_sim_line_ns(double *out);

/* What two threads did, fixes a microsecond. */
struct bench_sim_measured {
    double per_us[BENCH_SIM_N_FRAMES];
};

/* bench_sim_frames_costs -- nb, lru, batch where they are 0; with one thread, and two.  ret 0, or 1 after a
   message. */
int bench_sim_frames_costs(struct bench_sim_costs *costs, double seconds,
                           struct bench_sim_measured *two);

/*
 * bench_sim_transactions -- commits per second that this machine does: a policy, so many processes
 * and pages, nondurable.
 *
 * ret  0, or 1 after a message
 */
int bench_sim_transactions(const struct bench_hot_policy *policy,
                           const struct bench_hot_length *length, unsigned n_procs,
                           uint64_t n_pages, const char *dir, double seconds,
                           double *out);

#endif /* XBENCH_PROCESSORS_H */
