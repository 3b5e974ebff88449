/* SPDX-License-Identifier: MIT */
/*
 * tpc.h -- the experiments `tpcb` and `tpcc`: tables, transactions over them, and the systems that
 * have them.
 *
 * WHAT      Work like that of TPC-B and of the two frequent transactions of TPC-C, each step one
 *           serializable transaction over several tables, by several processes.  The transactions
 *           are written once, over get() and put() of rows by number; a system has these.
 * NOT HERE  What a benchmark of the TPC asks besides: terminals, think times, prices, audits.  No
 *           figure of these is one of TPC-B or TPC-C.
 * LIFE      As in bench/kit/system.h: process 0 opens first and loads; the others open; they
 *           close, process 0 last; a new process opens again and checks.
 *
 * INVARIANTS
 *   1. What transaction i does follows from i and the seed alone, so every system, with any number of
 *      processes, does the same transactions.
 *   2. A row's number is below `rows` of its table.
 */
#ifndef XBENCH_TPC_H
#define XBENCH_TPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_TPC_TABLES_MAX 9u
#define BENCH_TPC_ROW_MAX    512u

/* A body gives up by this: its transaction is rolled back, and not tried again. */
#define BENCH_TPC_GIVE_UP (-1000001)

struct bench_tpc_table {
    const char *name;
    uint32_t row_bytes;
    uint64_t rows;    /* numbers of rows are below                                     */
    uint64_t present; /* rows that there are at the end, at most                       */
};

struct bench_tpc_work;

/* One run; the same for all systems and processes. */
struct bench_tpc {
    const struct bench_tpc_work *work;
    uint64_t scale; /* branches; warehouses                                            */
    uint64_t size;  /* accounts of a branch; items of a warehouse                      */
    uint64_t steps; /* transactions of the whole run                                   */
    uint64_t seed;
    unsigned n_procs;
    bool durable;
    unsigned n_tables;
    struct bench_tpc_table tables[BENCH_TPC_TABLES_MAX];
};

struct bench_tpc_system;

/* A system that this process has opened. */
struct bench_tpc_open {
    const struct bench_tpc *tpc;
    const struct bench_tpc_system *system;
    void *handle;
};

/* What runs inside of a transaction, perhaps several times; ret 0, BENCH_TPC_GIVE_UP or a code of the system. */
typedef int bench_tpc_body(const struct bench_tpc_open *open, void *arg);

typedef int bench_tpc_visit(void *arg, uint64_t id, const void *row);

struct bench_tpc_system {
    const char *name;
    const char *what;
    const void *variant;

    /* Make (first) or join; dir exists, and is empty at first.  ret 0 or a code. */
    int (*open)(const struct bench_tpc_system *system, const struct bench_tpc *tpc,
                const char *dir, bool first, void **handlep);

    /* A transaction, tried again until it commits or the body gives up. */
    int (*transact)(const struct bench_tpc_open *open, bench_tpc_body *body, void *arg,
                    uint64_t *retriesp);

    /* Inside of one.  for_update: the row will be put.  ret 0, ENOENT, or a code. */
    int (*get)(void *handle, unsigned table, uint64_t id, void *row, bool for_update);
    int (*put)(void *handle, unsigned table, uint64_t id, const void *row);

    /* All rows of a table in order, inside of a transaction. */
    int (*scan)(void *handle, unsigned table, bench_tpc_visit *visit, void *arg);

    /* Release the handle, also if it fails. */
    int (*close)(void *handle);
    const char *(*explain)(int code);
};

struct bench_tpc_work {
    const char *name;
    const char *what;

    /* Fill in the tables, for scale, size, steps. */
    void (*set_up)(struct bench_tpc *tpc);

    /* Row id of a table, as it is loaded; false: it is not there then. */
    bool (*load)(const struct bench_tpc *tpc, unsigned table, uint64_t id, void *row);

    /* Transaction i, arg points to i. */
    bench_tpc_body *body;

    /* Whether the tables hold what all transactions leave, inside of a transaction; ret 0, EBADMSG after a
       message, or a code. */
    bench_tpc_body *check;
};

extern const struct bench_tpc_work bench_tpc_b, bench_tpc_c;

/* All systems of this build, ended by NULL. */
extern const struct bench_tpc_system *const bench_tpc_systems[];
extern const struct bench_tpc_system bench_tpc_trees, bench_tpc_trees_oldest,
    bench_tpc_array, bench_tpc_bdb, bench_tpc_sqlite;

/* ---- What bodies are written with ------------------------------------------------------------- */

/* bench_tpc_get, put -- a row of the open system. */
static inline int
bench_tpc_get(const struct bench_tpc_open *o, unsigned table, uint64_t id, void *row)
{
    return o->system->get(o->handle, table, id, row, false);
}

static inline int
bench_tpc_put(const struct bench_tpc_open *o, unsigned table, uint64_t id,
              const void *row)
{
    return o->system->put(o->handle, table, id, row);
}

/* bench_tpc_add -- to the number that a row begins with; row what it is afterwards, may be NULL. */
int bench_tpc_add(const struct bench_tpc_open *o, unsigned table, uint64_t id,
                  int64_t amount, void *row);

/* bench_tpc_number, set_number -- the n-th 8 bytes of a row. */
int64_t bench_tpc_number(const void *row, unsigned n);
void bench_tpc_set_number(void *row, unsigned n, int64_t v);

/* bench_tpc_sum -- of the n-th numbers of all rows; *np how many rows. */
int bench_tpc_sum(const struct bench_tpc_open *o, unsigned table, unsigned n,
                  int64_t *sump, uint64_t *np);

/* bench_tpc_draw -- number k of transaction i, 0 .. n - 1. */
uint64_t bench_tpc_draw(const struct bench_tpc *tpc, uint64_t i, unsigned k, uint64_t n);

/* bench_tpc_own_row -- a row number for transaction i, near those of its process: of a table with
   rows >= steps + processes. */
uint64_t bench_tpc_own_row(const struct bench_tpc *tpc, uint64_t i);

#endif /* XBENCH_TPC_H */
