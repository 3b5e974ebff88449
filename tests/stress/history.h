/* SPDX-License-Identifier: MIT */
/*
 * history.h -- what transactions have read and written, and whether that can have been.
 *
 * WHAT      Each process records its transactions: which value each cell held, which value
 *           it was given, when it began and ended, and how.  All values written are
 *           different.  The checker knows nothing else.
 * NOT HERE  Running transactions (stress_iso.c).
 *
 * WHAT IS CHECKED
 *   (1) The committed values of a cell form one chain: each was written over the one before
 *       it, and the last is what the cell holds in the end.  (A fork is a lost update.)
 *   (2) Nobody, committed, aborted or query, has read a value that was not the last one a
 *       committed transaction gave the cell: no aborted, intermediate or invented ones.
 *   (3) Nobody has read a value that was overwritten before the reader began (real time).
 *   (4) Nobody has read a value of a transaction that began after the reader ended.
 *   (5) The graph of reads and overwritten values between transactions has no cycle.  Aborted transactions
 *       and queries are in it as readers: each sees one consistent state.
 */
#ifndef XAC_TEST_HISTORY_H
#define XAC_TEST_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum history_outcome {
    HISTORY_COMMITTED,
    HISTORY_ABORTED,
    HISTORY_QUERY,
    HISTORY_UNKNOWN
};

/* One cell that a transaction touched; at most one entry per cell and transaction. */
struct history_access {
    uint32_t cell;
    bool wrote;
    uint64_t seen;  /* value at the first touch                                       */
    uint64_t given; /* value at the last store, if any                                */
};

struct history_txn {
    uint64_t begin_ns, end_ns; /* monotonic; before begin and after end               */
    uint32_t first, count;     /* accesses                                            */
    uint32_t outcome;          /* enum history_outcome                                */
    uint32_t process;
    uint64_t at_ns; /* of a query at a snapshot: when that had been taken; else 0      */
};

/* Recorded by one process, in memory shared with the checker. */
struct history {
    size_t n_txns, n_accesses;
    size_t txns_max, accesses_max;
    struct history_txn *txns;
    struct history_access *accesses;
};

struct history_report {
    size_t n_committed, n_aborted, n_queries, n_edges;
    size_t n_errors; /* 0 if all is well */
    size_t n_at;     /* of the queries, those at snapshots */
};

/*
 * history_settle -- find out what became of unfinished transactions, of processes that were killed: one
 * has committed if somebody has seen a value of it, or one is left at the end.  It becomes a
 * committed transaction, or an aborted one without accesses.
 *
 * in   last    as of history_check()
 */
void history_settle(struct history *histories, size_t n_histories, const uint64_t *last,
                    size_t n_cells);

/*
 * history_check -- judge the histories of all processes together.
 *
 * in   last    final value of each cell; cells start with 0
 * out  report  errors are printed to stderr, the first few in full
 */
void history_check(const struct history *histories, size_t n_histories,
                   const uint64_t *last, size_t n_cells, struct history_report *report);

#endif /* XAC_TEST_HISTORY_H */
