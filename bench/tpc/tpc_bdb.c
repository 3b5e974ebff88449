/* SPDX-License-Identifier: MIT */
/*
 * tpc_bdb.c -- the tables of `tpcb` and `tpcc` on Berkeley DB 5.3: a DB_BTREE each, in one
 * environment with transactions, settings as in bench/systems/sys_bdb.c.  A row that will be put is read with
 * DB_RMW, so that two transactions that both have read it do not wait for each other.
 */
#include <config.h>

#include "bench/tpc/tpc.h"

#include <db.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kit/util.h"

#define LOCKS_MAX        100000u
#define PAGE_BYTES       4096u
#define LOG_FILE_BYTES   (16u << 20)
#define CHECKPOINT_KB    (256u << 10)
#define CHECKPOINT_EVERY 1000u /* transactions between two looks                        */
#define CACHE_LEAST      (UINT64_C(64) << 20)

struct bdb {
    const struct bench_tpc *tpc;
    DB_ENV *env;
    DB *db[BENCH_TPC_TABLES_MAX];
    DB_TXN *txn; /* that is open                                                        */
    bool is_first;
    uint64_t n_done;
};

/* cache_bytes -- room for all tables, and as much again. */
static uint64_t
cache_bytes(const struct bench_tpc *t)
{
    uint64_t sum = CACHE_LEAST;

    for (unsigned k = 0; k < t->n_tables; k++)
        sum += 4 * t->tables[k].present * (t->tables[k].row_bytes + 40u);
    return sum;
}

/* open_env -- create or join. */
static int
open_env(struct bdb *b, const char *dir, bool first)
{
    uint64_t giga = UINT64_C(1) << 30, cache = cache_bytes(b->tpc);
    int rc = db_env_create(&b->env, 0);

    if (rc != 0)
        return rc;
    b->env->set_errpfx(b->env, "Berkeley DB");
    rc = b->env->set_lk_detect(b->env, DB_LOCK_DEFAULT);
    if (rc == 0 && first)
        rc = b->env->set_cachesize(b->env, (u_int32_t)(cache / giga),
                                   (u_int32_t)(cache % giga), 1);
    if (rc == 0 && first)
        rc = b->env->set_lg_max(b->env, LOG_FILE_BYTES);
    if (rc == 0 && first)
        rc = b->env->set_lk_max_locks(b->env, LOCKS_MAX);
    if (rc == 0 && first)
        rc = b->env->set_lk_max_objects(b->env, LOCKS_MAX);
    if (rc == 0)
        rc = b->env->open(b->env, dir,
                          DB_CREATE | DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK
                              | DB_INIT_MPOOL,
                          0644);
    return rc;
}

static int
bdb_close(void *handle)
{
    struct bdb *b = handle;
    int rc = 0, rc2;

    for (unsigned k = 0; k < b->tpc->n_tables; k++) {
        rc2 = b->db[k] == NULL ? 0 : b->db[k]->close(b->db[k], 0);
        rc = rc != 0 ? rc : rc2;
    }
    if (b->env != NULL) {
        if (b->is_first && rc == 0)
            rc = b->env->txn_checkpoint(b->env, 0, 0, DB_FORCE);
        rc2 = b->env->close(b->env, 0);
        rc = rc != 0 ? rc : rc2;
    }
    free(b);
    return rc;
}

/* open_table -- number k. */
static int
open_table(struct bdb *b, unsigned k)
{
    int rc = db_create(&b->db[k], b->env, 0);
    DB *db = b->db[k];

    if (rc == 0)
        rc = db->set_pagesize(db, PAGE_BYTES);
    if (rc == 0 && !b->tpc->durable)
        rc = db->set_flags(db, DB_TXN_NOT_DURABLE);
    return rc != 0 ? rc
                   : db->open(db, NULL, b->tpc->tables[k].name, NULL, DB_BTREE,
                              DB_CREATE | DB_AUTO_COMMIT, 0644);
}

static int
bdb_open(const struct bench_tpc_system *system, const struct bench_tpc *tpc,
         const char *dir, bool first, void **handlep)
{
    struct bdb *b = calloc(1, sizeof *b);
    int rc;

    (void)system;
    if (b == NULL)
        return ENOMEM;
    b->tpc = tpc;
    b->is_first = first;
    rc = open_env(b, dir, first);
    for (unsigned k = 0; k < tpc->n_tables && rc == 0; k++)
        rc = open_table(b, k);
    if (rc != 0)
        (void)bdb_close(b);
    else
        *handlep = b;
    return rc;
}

/* attempt -- once. */
static int
attempt(const struct bench_tpc_open *open, bench_tpc_body *body, void *arg)
{
    struct bdb *b = open->handle;
    int rc = b->env->txn_begin(b->env, NULL, &b->txn, 0), rc2;

    if (rc != 0)
        return rc;
    rc = body(open, arg);
    if (rc == 0)
        return b->txn->commit(b->txn, 0);
    rc2 = b->txn->abort(b->txn);
    return rc2 != 0 ? rc2 : rc;
}

static int
bdb_transact(const struct bench_tpc_open *open, bench_tpc_body *body, void *arg,
             uint64_t *retriesp)
{
    struct bdb *b = open->handle;
    int rc;

    while ((rc = attempt(open, body, arg)) == DB_LOCK_DEADLOCK)
        ++*retriesp;
    if (rc == BENCH_TPC_GIVE_UP)
        rc = 0;
    if (rc == 0 && b->is_first && ++b->n_done % CHECKPOINT_EVERY == 0)
        rc = b->env->txn_checkpoint(b->env, CHECKPOINT_KB, 0, 0);
    return rc;
}

static int
bdb_get(void *handle, unsigned table, uint64_t id, void *row, bool for_update)
{
    struct bdb *b = handle;
    unsigned char key[BENCH_KEY_BYTES];
    DBT k = {.data = key, .size = sizeof key};
    DBT v = {.data = row,
             .ulen = b->tpc->tables[table].row_bytes,
             .flags = DB_DBT_USERMEM};
    int rc;

    bench_key_encode(id, key);
    rc = b->db[table]->get(b->db[table], b->txn, &k, &v, for_update ? DB_RMW : 0);
    return rc == DB_NOTFOUND ? ENOENT : rc;
}

static int
bdb_put(void *handle, unsigned table, uint64_t id, const void *row)
{
    struct bdb *b = handle;
    unsigned char key[BENCH_KEY_BYTES];
    DBT k = {.data = key, .size = sizeof key};
    DBT v = {.size = b->tpc->tables[table].row_bytes};

    /* A put does not write through this; the DBT has no const. */
    v.data = (void *)(uintptr_t)row;
    bench_key_encode(id, key);
    return b->db[table]->put(b->db[table], b->txn, &k, &v, 0);
}

static int
bdb_scan(void *handle, unsigned table, bench_tpc_visit *visit, void *arg)
{
    struct bdb *b = handle;
    DBT k = {0}, v = {0};
    DBC *cursor;
    int rc = b->db[table]->cursor(b->db[table], b->txn, &cursor, 0), rc2;

    if (rc != 0)
        return rc;
    while ((rc = cursor->get(cursor, &k, &v, DB_NEXT)) == 0) {
        if (k.size != BENCH_KEY_BYTES || v.size != b->tpc->tables[table].row_bytes)
            rc = EINVAL;
        else
            rc = visit(arg, bench_key_decode(k.data), v.data);
        if (rc != 0)
            break;
    }
    rc2 = cursor->close(cursor);
    rc = rc == DB_NOTFOUND ? 0 : rc;
    return rc != 0 ? rc : rc2;
}

static const char *
bdb_explain(int code)
{
    return db_strerror(code);
}

const struct bench_tpc_system bench_tpc_bdb = {
    .name = "bdb",
    .what = "Berkeley DB 5.3, a btree for each table; nondurable: DB_TXN_NOT_DURABLE",
    .open = bdb_open,
    .transact = bdb_transact,
    .get = bdb_get,
    .put = bdb_put,
    .scan = bdb_scan,
    .close = bdb_close,
    .explain = bdb_explain,
};
