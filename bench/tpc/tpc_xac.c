/* SPDX-License-Identifier: MIT */
/*
 * tpc_xac.c -- the tables of `tpcb` and `tpcc` on libxac: each a mapped file.
 *
 * TREES     A B+-tree (trees/btree.c) for each table, as the others have.  A transaction is
 *           xac_transact(), with its own back-off; the trees' operations are parts of it.
 * ARRAY     Rows at their places in the file, a byte in front of each says whether it is there.
 *           It is what the interface makes possible, not the same structure as the others'.
 */
#include <config.h>

#include "bench/tpc/tpc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/util.h"
#include "bench/systems/sys_xac.h"
#include "bench/systems/tree_kind.h"

#define BLOCK_BYTES      4096u
#define CHECKPOINT_BYTES (UINT64_C(256) << 20)
#define LOG_FILE_BYTES   (UINT64_C(16) << 20)

struct variant {
    bool is_array;
    uint64_t policy;
};

struct table {
    char file[PATH_MAX];
    unsigned char *base;
    size_t stride; /* of a row in an array                                              */
    union bench_tree tree;
};

struct tables {
    const struct bench_tpc *tpc;
    bool is_array;
    struct table table[BENCH_TPC_TABLES_MAX];
};

/* xac_close -- ret 0 or a code. */
static int
xac_close_tables(void *handle)
{
    struct tables *x = handle;
    int rc = 0, rc2;

    for (unsigned k = 0; k < x->tpc->n_tables; k++) {
        rc2 = x->table[k].base == NULL ? 0 : xac_munmap(x->table[k].file);
        rc = rc != 0 ? rc : rc2;
    }
    rc2 = xac_shutdown();
    free(x);
    return rc != 0 ? rc : rc2;
}

/* open_table -- number k; ret 0 or a code. */
static int
open_table(struct tables *x, unsigned k, const char *dir, bool first)
{
    const struct bench_tpc_table *t = &x->tpc->tables[k];
    const struct bench_tree_config sizes = {.count = t->present,
                                            .key_size = BENCH_KEY_BYTES,
                                            .value_size = t->row_bytes,
                                            .block_size = BLOCK_BYTES};
    const struct bench_tree_kind *kind = &bench_kind_btree_txn;
    struct table *table = &x->table[k];
    size_t size = kind->size(&sizes);
    void *base;

    table->stride = ((size_t)t->row_bytes + 1 + 7) / 8 * 8;
    if (x->is_array)
        size = (table->stride * t->rows + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    snprintf(table->file, sizeof table->file, "%s/%s", dir, t->name);
    base = xac_mmap(table->file, size);
    if (base == MAP_FAILED)
        return errno;
    table->base = base;
    if (x->is_array)
        return 0;
    return first ? kind->create(&table->tree, base, size, &sizes)
                 : kind->open(&table->tree, base, size);
}

static int
xac_open_tables(const struct bench_tpc_system *system, const struct bench_tpc *tpc,
                const char *dir, bool first, void **handlep)
{
    const struct variant *v = system->variant;
    struct tables *x = calloc(1, sizeof *x);
    char env[PATH_MAX];
    int rc = x == NULL ? ENOMEM : xac_set_option(XAC_OPT_POLICY, v->policy);

    snprintf(env, sizeof env, "%s/env", dir);
    if (rc == 0)
        rc = xac_set_option(XAC_OPT_CHECKPOINT_BYTES, CHECKPOINT_BYTES);
    if (rc == 0)
        rc = xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, LOG_FILE_BYTES);
    if (rc == 0)
        rc = xac_init(env, tpc->durable ? XAC_DURABLE : XAC_NONDURABLE);
    if (rc != 0) {
        free(x);
        return rc;
    }
    x->tpc = tpc;
    x->is_array = v->is_array;
    for (unsigned k = 0; k < tpc->n_tables && rc == 0; k++)
        rc = open_table(x, k, dir, first);
    if (rc != 0)
        (void)xac_close_tables(x);
    else
        *handlep = x;
    return rc;
}

/* One transaction, for xac_transact(). */
struct attempt {
    const struct bench_tpc_open *open;
    bench_tpc_body *body;
    void *arg;
    uint64_t n;
};

static int
attempt_once(void *arg)
{
    struct attempt *a = arg;
    int rc;

    a->n++;
    rc = a->body(a->open, a->arg);
    return rc == XAC_FAILED ? 0 : rc; /* its end will say so */
}

static int
xac_transact_tables(const struct bench_tpc_open *open, bench_tpc_body *body, void *arg,
                    uint64_t *retriesp)
{
    struct attempt a = {.open = open, .body = body, .arg = arg};
    int rc = xac_transact(attempt_once, &a);

    *retriesp += a.n > 0 ? a.n - 1 : 0;
    return rc == XAC_COMMITTED || rc == BENCH_TPC_GIVE_UP ? 0 : rc;
}

static int
xac_get(void *handle, unsigned table, uint64_t id, void *row, bool for_update)
{
    struct tables *x = handle;
    struct table *t = &x->table[table];
    unsigned char key[BENCH_KEY_BYTES];

    (void)for_update;
    if (x->is_array) {
        const unsigned char *at = t->base + id * t->stride;

        memcpy(row, at + 1, x->tpc->tables[table].row_bytes);
        return *at != 0 ? 0 : ENOENT;
    }
    bench_key_encode(id, key);
    return bench_kind_btree_txn.search(&t->tree, key, row);
}

static int
xac_put(void *handle, unsigned table, uint64_t id, const void *row)
{
    struct tables *x = handle;
    struct table *t = &x->table[table];
    unsigned char key[BENCH_KEY_BYTES];

    if (x->is_array) {
        unsigned char *at = t->base + id * t->stride;

        *at = 1;
        memcpy(at + 1, row, x->tpc->tables[table].row_bytes);
        return 0;
    }
    bench_key_encode(id, key);
    return bench_kind_btree_txn.insert(&t->tree, key, row, TREE_PUT);
}

/* What a scan hands on. */
struct scan {
    bench_tpc_visit *visit;
    void *arg;
};

static int
visit_entry(void *arg, const void *key, const void *value)
{
    struct scan *s = arg;

    return s->visit(s->arg, bench_key_decode(key), value);
}

static int
xac_scan(void *handle, unsigned table, bench_tpc_visit *visit, void *arg)
{
    struct tables *x = handle;
    struct table *t = &x->table[table];
    struct scan s = {visit, arg};
    int rc = 0;

    if (!x->is_array)
        return bench_kind_btree_txn.scan(&t->tree, NULL, visit_entry, &s);
    for (uint64_t id = 0; id < x->tpc->tables[table].rows && rc == 0; id++) {
        const unsigned char *at = t->base + id * t->stride;

        rc = *at != 0 ? visit(arg, id, at + 1) : 0;
    }
    return rc;
}

/* What all of them have in common. */
#define ON_XAC(array, which)                                               \
 .open = xac_open_tables, .transact = xac_transact_tables, .get = xac_get, \
 .put = xac_put, .scan = xac_scan, .close = xac_close_tables,              \
 .explain = bench_xac_explain, .variant = &(const struct variant)          \
 {                                                                         \
  .is_array = (array), .policy = (which)                                   \
 }

const struct bench_tpc_system bench_tpc_trees = {
    .name = "xac",
    .what = "libxac, a B+-tree for each table; default policy: one transaction after the "
            "other",
    ON_XAC(false, XAC_POLICY_SERIAL),
};

const struct bench_tpc_system bench_tpc_trees_oldest = {
    .name = "xac-oldest-wins",
    .what = "the same with XAC_POLICY_OLDEST_WINS: transactions side by side",
    ON_XAC(false, XAC_POLICY_OLDEST_WINS),
};

const struct bench_tpc_system bench_tpc_array = {
    .name = "xac-array",
    .what = "libxac, rows at their places in mapped files: no tree",
    ON_XAC(true, XAC_POLICY_SERIAL),
};
