/* SPDX-License-Identifier: MIT */
/*
 * worker.h -- random transactions that are written down, by a process or a thread.
 *
 * WHAT      A worker runs random transactions, queries, nested ones, savepoints, hints, aborts, forks,
 *           signal handlers that jump, deaths, stops, checkpoints, snapshots, and queries at those of
 *           all workers on a few cells in two files, some of which share
 *           a page, and records what it reads and writes in a history.  Every value it writes is new.
 * NOT HERE  Who the workers are and how they map the files (stress_iso.c, stress_threads.c);
 *           judging what they have recorded (history.h).
 */
#ifndef XAC_TEST_WORKER_H
#define XAC_TEST_WORKER_H

#include <stdatomic.h>
#include <stdint.h>

#include "history.h"

#define WORKER_CELLS     14
#define WORKER_CELLS_MAX 2 /* of a page */
#define WORKER_PAGES     (WORKER_CELLS / WORKER_CELLS_MAX)
#define WORKERS_MAX      16

/* The files: of even and of odd pages. */
#define WORKER_EVEN "even.db"
#define WORKER_ODD  "odd.db"

struct worker_policy {
    const char *name;
    uint64_t kind; /* enum xac_policy_kind */
};

#define WORKER_POLICIES 6
#define WORKER_SERIAL   5 /* of them */
extern const struct worker_policy worker_policies[WORKER_POLICIES];

/* What all workers of a test do. */
struct worker_setting {
    const struct worker_policy *policy;
    int mode;         /* NONDURABLE or DURABLE */
    const char *kind; /* "processes" or "threads" */
    uint32_t n_workers;
    uint64_t seed;
    uint64_t history; /* XAC_OPT_HISTORY                                                */
    bool has_forks;   /* in the middle of transactions */
    bool has_deaths;  /* killed, and stopped, at random moments of some transactions */
};

/* A snapshot that a worker has taken: when it began and had done so.  `state` is an even number while the
   rest holds still, see run_at(). */
struct worker_snapshot {
    _Atomic uint64_t state, id, begin_ns, end_ns;
};

#define WORKER_SNAPSHOTS 4

/* Shared by the workers of a round. */
struct worker_board {
    struct worker_snapshot snapshot[WORKER_SNAPSHOTS];
    struct worker_snapshot
        past[WORKER_SNAPSHOTS]; /* `id`: the number of a state that was seen */

    _Atomic uint64_t stop;
    _Atomic uint64_t n_txns[WORKERS_MAX]; /* ended so far, by worker                    */
};

struct worker {
    uint32_t number;
    uint32_t n_attached; /* times, see worker_options() */
    const struct worker_setting *setting;
    struct worker_board *board;
    struct history *history;
    uint64_t *cells[2]; /* even and odd pages, for attach() to set                    */
    void (*attach)(struct worker *w); /* before the first transaction, and again ... */
    void (*detach)(struct worker *w); /* ... after this, now and then                */
    bool
        is_compiled; /* hooks announce its accesses, instead of calls and traps          */
    uint32_t generation; /* processes with this number that have been killed         */
    uint64_t rnd;
    uint64_t next_value;
};

/* Options of a participant that attaches: the policy; with hooks or not; and under XAC_POLICY_SERIAL another checking
   and engine than its last time and than its neighbours. */
void worker_options(struct worker *w);

/* A board and histories in memory shared with child processes; they live with the test. */
struct worker_board *worker_board(void);
struct history *worker_histories(size_t n);
void worker_histories_free(struct history *h, size_t n);

/* Attach, run transactions until the board says stop or the history is full, detach. */
void worker_run(struct worker *w);

/* Sleep for XAC_SECONDS, or until the workers have run `n_txns` transactions, if not 0; and call
   `tend`, if not NULL, now and then. */
void worker_let_run(const struct worker_board *board, uint64_t n_txns,
                    void (*tend)(void *arg), void *arg);

/* The worker has been killed in a transaction, which becomes a part of its history. */
void worker_bury(struct worker *w);

/* Judge the histories of a round whose files everybody has left. */
void worker_judge(struct history *h, size_t n, struct history_report *report);

/*
 * Run rounds, each in a directory of its own and with the next seed, until there are
 * XAC_TRANSACTIONS; one round of XAC_SECONDS if that is not set.  Prints totals; all must be
 * right.
 *
 * in   name   of the directories
 * in   round  run the workers of the setting for about n_txns transactions, and judge
 */
void worker_rounds(struct worker_setting *setting, const char *name,
                   void (*round)(const struct worker_setting *setting, uint64_t n_txns,
                                 struct history_report *report));

/* Seconds that worker_rounds() may take. */
double worker_time_limit(void);

#endif /* XAC_TEST_WORKER_H */
