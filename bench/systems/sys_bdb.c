/* SPDX-License-Identifier: MIT */
/*
 * sys_bdb.c -- Berkeley DB 5.3, transactional data store, btree.
 *
 * WHAT      Environment with transactions, log, locks and cache; one DB_BTREE; each put
 *           is a transaction of its own through DB_AUTO_COMMIT, as in the Thesis
 *           (section C.6).  Processes join the environment; the deadlock detector runs
 *           whenever a lock would wait (DB_LOCK_DEFAULT).
 * DURABLE   the default: log written and synced at commit.
 * NOT       DB_TXN_NOT_DURABLE on the database handle, as in the Thesis (section C.6):
 *           no log records for this database.
 */
#include <config.h>

#include "bench/kit/system.h"
#include "bench/kit/util.h"

#include <db.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOCKS_MAX 20000u /* locks and locked objects, far more than ever held at once */

/* How many inserts a process makes between two looks at the log for a checkpoint. */
#define CHECKPOINT_EVERY 1000u

struct bdb {
    DB_ENV *env;
    DB *db;
    uint64_t inserts;          /* by this process                                    */
    uint64_t checkpoint_bytes; /* 0: never                                           */
    bool is_first;             /* this process takes the checkpoints                 */
};

/* set_limits -- what the process that makes the environment decides. */
static int
set_limits(DB_ENV *env, const struct bench_config *config, bool log_zero)
{
    uint64_t giga = UINT64_C(1) << 30;
    int rc = env->set_cachesize(env, (u_int32_t)(config->cache_bytes / giga),
                                (u_int32_t)(config->cache_bytes % giga), 1);

    if (rc == 0)
        rc = env->set_lg_max(env, (u_int32_t)config->log_file_bytes);
    if (rc == 0)
        rc = env->set_lk_max_locks(env, LOCKS_MAX);
    if (rc == 0)
        rc = env->set_lk_max_objects(env, LOCKS_MAX);
    if (rc == 0 && log_zero)
        rc = env->log_set_config(env, DB_LOG_ZERO, 1);
    return rc;
}

/* open_env -- create or join. */
static int
open_env(struct bdb *b, const struct bench_config *config, bool first, bool log_zero)
{
    u_int32_t flags =
        DB_CREATE | DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK | DB_INIT_MPOOL;
    int rc = db_env_create(&b->env, 0);

    if (rc != 0)
        return rc;
    b->env->set_errpfx(b->env, "Berkeley DB");
    rc = b->env->set_lk_detect(b->env, DB_LOCK_DEFAULT);
    if (rc == 0 && first)
        rc = set_limits(b->env, config, log_zero);
    if (rc == 0)
        rc = b->env->open(b->env, config->dir, flags, 0644);
    return rc;
}

/* open_db -- the one database of the environment. */
static int
open_db(struct bdb *b, const struct bench_config *config)
{
    int rc = db_create(&b->db, b->env, 0);

    if (rc == 0)
        rc = b->db->set_pagesize(b->db, (u_int32_t)config->block_bytes);
    if (rc == 0 && !config->durable)
        rc = b->db->set_flags(b->db, DB_TXN_NOT_DURABLE);
    if (rc == 0)
        rc = b->db->open(b->db, NULL, "insert.db", NULL, DB_BTREE,
                         DB_CREATE | DB_AUTO_COMMIT, 0644);
    return rc;
}

/* bdb_close -- worker 0 is the last: the cache is written by its checkpoint. */
static int
bdb_close(void *handle)
{
    struct bdb *b = handle;
    int rc = 0, rc2;

    if (b->db != NULL)
        rc = b->db->close(b->db, 0);
    if (b->env != NULL) {
        if (b->is_first && rc == 0)
            rc = b->env->txn_checkpoint(b->env, 0, 0, DB_FORCE);
        rc2 = b->env->close(b->env, 0);
        if (rc == 0)
            rc = rc2;
    }
    free(b);
    return rc;
}

/* open_either -- log_zero: log files are filled with zeros when they are made. */
static int
open_either(const struct bench_config *config, bool first, bool log_zero, void **handlep)
{
    struct bdb *b = calloc(1, sizeof *b);
    int rc;

    if (b == NULL)
        return ENOMEM;
    b->checkpoint_bytes = config->checkpoint_bytes;
    b->is_first = first;
    rc = open_env(b, config, first, log_zero);
    if (rc == 0)
        rc = open_db(b, config);
    if (rc != 0) {
        (void)bdb_close(b);
        return rc;
    }
    *handlep = b;
    return 0;
}

static int
bdb_open(const struct bench_config *config, bool first, void **handlep)
{
    return open_either(config, first, false, handlep);
}

static int
bdb_zero_open(const struct bench_config *config, bool first, void **handlep)
{
    return open_either(config, first, true, handlep);
}

/* maybe_checkpoint -- txn_checkpoint() does nothing until the log has grown enough. */
static int
maybe_checkpoint(struct bdb *b)
{
    if (!b->is_first || b->checkpoint_bytes == 0 || ++b->inserts % CHECKPOINT_EVERY != 0)
        return 0;
    return b->env->txn_checkpoint(b->env, (u_int32_t)(b->checkpoint_bytes / 1024), 0, 0);
}

/* bdb_put -- DB->put() replaces: an insert and an update are the same to it. */
static int
bdb_put(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    struct bdb *b = handle;
    DBT k = {.size = BENCH_KEY_BYTES}, v = {.size = BENCH_VALUE_BYTES};
    int rc;

    /* A put does not write through these; the DBT has no const. */
    k.data = (void *)(uintptr_t)key;
    v.data = (void *)(uintptr_t)value;
    while ((rc = b->db->put(b->db, NULL, &k, &v, 0)) == DB_LOCK_DEADLOCK)
        ++*retriesp;
    return rc != 0 ? rc : maybe_checkpoint(b);
}

static int
bdb_find(void *handle, const void *key, void *value)
{
    struct bdb *b = handle;
    DBT k = {.size = BENCH_KEY_BYTES};
    DBT v = {.data = value, .ulen = BENCH_VALUE_BYTES, .flags = DB_DBT_USERMEM};
    int rc;

    k.data = (void *)(uintptr_t)key;
    rc = b->db->get(b->db, NULL, &k, &v, 0);
    if (rc == 0 && v.size != BENCH_VALUE_BYTES)
        rc = EINVAL;
    return rc == DB_NOTFOUND ? ENOENT : rc;
}

static int
bdb_scan(void *handle, const void *from, bench_visit *visit, void *arg)
{
    struct bdb *b = handle;
    DBC *cursor;
    DBT k = {0}, v = {0};
    u_int32_t how = DB_NEXT;
    int rc, rc2;

    rc = b->db->cursor(b->db, NULL, &cursor, 0);
    if (rc != 0)
        return rc;
    if (from != NULL) {
        k = (DBT){.data = (void *)(uintptr_t)from, .size = BENCH_KEY_BYTES};
        how = DB_SET_RANGE;
    }
    for (; (rc = cursor->get(cursor, &k, &v, how)) == 0; how = DB_NEXT) {
        if (k.size != BENCH_KEY_BYTES || v.size != BENCH_VALUE_BYTES)
            rc = EINVAL;
        else
            rc = visit(arg, k.data, v.data);
        if (rc != 0)
            break;
    }
    rc2 = cursor->close(cursor);
    if (rc == DB_NOTFOUND)
        rc = 0;
    return rc != 0 ? rc : rc2;
}

static int
bdb_counters(void *handle, struct bench_counters *out)
{
    struct bdb *b = handle;
    DB_LOG_STAT *st;
    int rc = b->env->log_stat(b->env, &st, 0);

    if (rc != 0)
        return rc;
    out->log_bytes = ((uint64_t)st->st_w_mbytes << 20) + st->st_w_bytes;
    out->syncs = st->st_scount;
    free(st);
    return 0;
}

static const char *
bdb_explain(int code)
{
    return db_strerror(code);
}

#define BDB_OPERATIONS                                                  \
 .insert = bdb_put, .put = bdb_put, .find = bdb_find, .scan = bdb_scan, \
 .counters = bdb_counters, .close = bdb_close, .explain = bdb_explain

const struct bench_system bench_bdb = {
    .name = "bdb",
    .what = "Berkeley DB 5.3 transactional btree, DB_AUTO_COMMIT puts",
    .durably = "default: log written and synced at each commit; nondurable: "
               "DB_TXN_NOT_DURABLE on the database",
    .abilities = BENCH_MULTI | BENCH_NONDURABLE | BENCH_KEEPS,
    .open = bdb_open,
    BDB_OPERATIONS,
};

const struct bench_system bench_bdb_zero = {
    .name = "bdb-zero",
    .what = "the same, with DB_LOG_ZERO: its log files are zero-filled when made",
    .durably = "as bdb",
    .abilities = BENCH_MULTI | BENCH_NONDURABLE | BENCH_KEEPS,
    .open = bdb_zero_open,
    BDB_OPERATIONS,
};
