/* SPDX-License-Identifier: MIT */
/*
 * worker.h -- the processes, or threads, that run one system.
 *
 * WHAT      P processes per system, forked once, told what to do over a socket each, so
 *           that starting them is not measured.  Every answer carries the times of the
 *           work itself (CLOCK_MONOTONIC), so that the message is not measured either.
 *           A system that only one process can open (BENCH_THREADS) has one process with P
 *           threads, which are told the same over sockets of their own.
 * WRITER    A workload may have one (workload.h): one more worker, the last one, which inserts
 *           from the start of a slice until all others have done their steps.
 * PLACE     As those of a team (team.h).  Threads go where the scheduler puts them: threads
 *           that the system starts would inherit the processor of the one that they serve.
 * DEATH     Workers die with their parent (PR_SET_PDEATHSIG).  A worker that dies or
 *           does not answer in time is an error of the run, never a hang.
 */
#ifndef XBENCH_WORKER_H
#define XBENCH_WORKER_H

#include <stdint.h>
#include <sys/types.h>

#include "bench/kit/system.h"
#include "bench/kit/team.h"
#include "bench/kit/workload.h"

#define BENCH_PROCS_MAX BENCH_TEAM_SOCKETS_MAX

struct bench_worker {
    pid_t pid;  /* 0: none, or a thread of worker 0's process */
    int socket; /* of the parent; -1 when stopped */
};

/* One system at work. */
struct bench_crew {
    const struct bench_system *system;
    struct bench_config config; /* config.dir is owned by the crew                     */
    char label[48];             /* for messages: name and hints                        */
    struct bench_job job;
    uint64_t group; /* reads that share a transaction, of systems that can           */
    bool warm; /* look up every record in a slice before its clock starts              */
    unsigned n_workers; /* that do steps                                             */
    unsigned n_members; /* these and the writer                                      */
    struct bench_worker *workers;     /* n_members                                   */
    struct bench_crew_shared *shared; /* memory of the parent and all of them        */
    uint32_t *latencies; /* ns of each step by its number, shared memory; full
                            scale means 4.29 s or more                                 */
};

/* What a slice came to. */
struct bench_outcome {
    uint64_t ns;      /* from the first start to the last end                         */
    uint64_t retries; /* of all workers                                               */
    uint64_t warm_traps; /* page faults handled before the clock started               */
    uint64_t written;    /* by the writer                                              */
    uint64_t writer_ns;  /* that it took                                               */
};

/*
 * bench_crew_start -- fork the workers, open the system in each, worker 0 first.
 *
 * in   config  copied, but for the string dir, which must live as long as the crew
 * in   job     copied, but for its ranks
 * ret  0, or 1 after a message; the crew must be stopped in both cases.
 */
int bench_crew_start(struct bench_crew *crew, const struct bench_config *config,
                     const char *label, const struct bench_job *job, uint64_t group,
                     bool warm, unsigned n_workers);

/* bench_crew_load -- worker 0 inserts the records that are there before; ret as above. */
int bench_crew_load(struct bench_crew *crew);

/*
 * bench_crew_run -- all workers do steps first .. first + n - 1, worker w those with
 * number = first + w modulo the number of workers.
 *
 * ret  0, or 1 after a message.
 */
int bench_crew_run(struct bench_crew *crew, uint64_t first, uint64_t n,
                   struct bench_outcome *out);

/* bench_crew_counters -- totals of the crew; ret 0, or 1 after a message. */
int bench_crew_counters(struct bench_crew *crew, struct bench_counters *out);

/* bench_crew_close -- close the system everywhere, worker 0 last, and end the workers. */
int bench_crew_close(struct bench_crew *crew);

/*
 * bench_crew_verify -- after the close: a new process opens the system, finds that it
 * holds exactly the records that the whole job leaves, in the order of their keys and every
 * value right, and looks up a sample by key.
 */
int bench_crew_verify(struct bench_crew *crew);

/* bench_crew_stop -- kill what still runs, release everything; any state. */
void bench_crew_stop(struct bench_crew *crew);

/* bench_interrupted -- true after SIGINT or SIGTERM, once bench_catch_signals() ran. */
bool bench_interrupted(void);
void bench_catch_signals(void);

#endif /* XBENCH_WORKER_H */
