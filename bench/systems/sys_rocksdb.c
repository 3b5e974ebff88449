/* SPDX-License-Identifier: MIT */
/*
 * sys_rocksdb.c -- RocksDB, a log-structured merge tree.
 *
 * WHAT      One database; each worker has options and, for reads in one transaction, a snapshot
 *           of its own.  Only one process can open it, so several workers are threads.
 *           rocksdb        a put replaces: it does not know whether the key is there
 *           rocksdb-nolog  the same without a log; nondurable only
 *           rocksdb-txn    each insert and put is an optimistic transaction; an insert looks
 *                          whether the key is there, and aborts if another one adds it
 *                          meanwhile: the same promise as that of the trees
 * DURABLE   sync: the log is written and synced; one writer does it for the others that wait.
 * NOT       rocksdb: the log is written, not synced.  The others: no log; what is in memory is
 *           written at the close.
 * SETTINGS  no compression: values are random, and no other system compresses.
 *           bloom filter of 10 bits: a search skips files without the key.
 *           hash index in blocks: a search in a block costs one probe, not a binary search.
 *           checksums are not looked at when a block is read: LMDB and Berkeley DB have none.
 *           durable: log files are used again (recycle_log_file_num), so that a commit
 *           overwrites and a sync changes no metadata; the write buffer, at whose end a log
 *           file ends, is small for that, and there are more of them.
 *           not durable: the default write buffer of 64 MiB.
 *           two background jobs, as many as the machine has processors.
 *           no statistics: they cost time.
 */
#include <config.h>

#include <limits.h>
#include <rocksdb/c.h>
#include <stdlib.h>

#define LSM(name) rocksdb_##name
#include "bench/systems/lsm.h"

#define BLOOM_BITS 10

#define WRITE_BUFFER_BYTES         ((size_t)64 << 20)
#define WRITE_BUFFER_BYTES_DURABLE ((size_t)512 << 10)
#define WRITE_BUFFERS_DURABLE      6
#define LOG_FILES_RECYCLED         4

/* rocksdb_block_based_options_set_data_block_index_type(): binary search and hash. */
#define INDEX_AND_HASH 1
#define HASH_RATIO     0.75

enum kind {
    KIND_LOG,
    KIND_NOLOG,
    KIND_TXN
};

struct rocksdb {
    struct lsm lsm;
    rocksdb_optimistictransaction_options_t *txn_options;
    rocksdb_transaction_t *txn; /* used again; NULL before the first                   */
};

/* The database of this process as one with transactions, and how many handles it has. */
static struct {
    rocksdb_optimistictransactiondb_t *txn_db; /* KIND_TXN: db is its base             */
    unsigned users;
} shared;

/* set_table -- how files of the database look. */
static void
set_table(rocksdb_options_t *o, const struct bench_config *config)
{
    rocksdb_block_based_table_options_t *t = rocksdb_block_based_options_create();
    rocksdb_cache_t *cache = rocksdb_cache_create_lru(config->cache_bytes);

    rocksdb_block_based_options_set_block_cache(t, cache);
    rocksdb_block_based_options_set_filter_policy(t,
                                                  rocksdb_filterpolicy_create_bloom_full(
                                                      BLOOM_BITS));
    rocksdb_block_based_options_set_block_size(t, config->block_bytes);
    rocksdb_block_based_options_set_data_block_index_type(t, INDEX_AND_HASH);
    rocksdb_block_based_options_set_data_block_hash_ratio(t, HASH_RATIO);
    rocksdb_options_set_block_based_table_factory(o, t);
    rocksdb_cache_destroy(cache); /* both are counted references */
    rocksdb_block_based_options_destroy(t);
}

/* make_options -- of the database. */
static rocksdb_options_t *
make_options(const struct bench_config *config)
{
    rocksdb_options_t *o = rocksdb_options_create();

    set_table(o, config);
    rocksdb_options_set_create_if_missing(o, 1);
    rocksdb_options_set_compression(o, rocksdb_no_compression);
    rocksdb_options_set_max_background_jobs(o, 2);
    rocksdb_options_set_stats_dump_period_sec(o, 0);
    rocksdb_options_set_max_total_wal_size(o, config->checkpoint_bytes);
    rocksdb_options_set_write_buffer_size(o, WRITE_BUFFER_BYTES);
    if (config->durable) {
        rocksdb_options_set_write_buffer_size(o, WRITE_BUFFER_BYTES_DURABLE);
        rocksdb_options_set_max_write_buffer_number(o, WRITE_BUFFERS_DURABLE);
        rocksdb_options_set_recycle_log_file_num(o, LOG_FILES_RECYCLED);
    }
    return o;
}

/* open_db -- the database of this process. */
static int
open_db(const struct bench_config *config, enum kind kind)
{
    rocksdb_options_t *o = make_options(config);
    char path[PATH_MAX], *error = NULL;

    snprintf(path, sizeof path, "%s/rocksdb", config->dir);
    if (kind == KIND_TXN) {
        shared.txn_db = rocksdb_optimistictransactiondb_open(o, path, &error);
        if (error == NULL)
            db = rocksdb_optimistictransactiondb_get_base_db(shared.txn_db);
    } else
        db = rocksdb_open(o, path, &error);
    rocksdb_options_destroy(o);
    return check(error);
}

/* close_db -- pairs with open_db(), also if that failed. */
static void
close_db(void)
{
    if (db != NULL && shared.txn_db != NULL) {
        rocksdb_optimistictransactiondb_close_base_db(db);
        rocksdb_optimistictransactiondb_close(shared.txn_db);
    } else if (db != NULL)
        rocksdb_close(db);
    db = NULL;
    shared.txn_db = NULL;
}

static int
rocks_close(void *handle)
{
    struct rocksdb *r = handle;

    if (r->txn != NULL)
        rocksdb_transaction_destroy(r->txn);
    rocksdb_optimistictransaction_options_destroy(r->txn_options);
    rocksdb_writeoptions_destroy(r->lsm.write);
    rocksdb_readoptions_destroy(r->lsm.read);
    free(r);
    if (--shared.users == 0)
        close_db();
    return 0;
}

static int
open_kind(const struct bench_config *config, enum kind kind, void **handlep)
{
    struct rocksdb *r = calloc(1, sizeof *r);
    int rc = 0;

    if (r == NULL)
        return ENOMEM;
    r->lsm.write = rocksdb_writeoptions_create();
    r->lsm.read = rocksdb_readoptions_create();
    r->txn_options = rocksdb_optimistictransaction_options_create();
    rocksdb_writeoptions_set_sync(r->lsm.write, config->durable);
    rocksdb_writeoptions_disable_WAL(r->lsm.write, kind != KIND_LOG && !config->durable);
    rocksdb_readoptions_set_verify_checksums(r->lsm.read, 0);
    if (shared.users++ == 0)
        rc = open_db(config, kind);
    if (rc != 0) {
        (void)rocks_close(r);
        return rc;
    }
    *handlep = r;
    return 0;
}

static int
rocks_open(const struct bench_config *config, bool first, void **handlep)
{
    (void)first;
    return open_kind(config, KIND_LOG, handlep);
}

static int
rocks_nolog_open(const struct bench_config *config, bool first, void **handlep)
{
    (void)first;
    return open_kind(config, KIND_NOLOG, handlep);
}

static int
rocks_txn_open(const struct bench_config *config, bool first, void **handlep)
{
    (void)first;
    return open_kind(config, KIND_TXN, handlep);
}

/* is_new -- 0, EEXIST, or another error; a key that another one adds makes the commit fail. */
static int
is_new(struct rocksdb *r, const void *key)
{
    char *error = NULL;
    rocksdb_pinnableslice_t *found =
        rocksdb_transaction_get_pinned_for_update(r->txn, r->lsm.read, key,
                                                  BENCH_KEY_BYTES, 1, &error);

    if (found != NULL)
        rocksdb_pinnableslice_destroy(found);
    return found != NULL ? EEXIST : check(error);
}

/* commit -- 0, EAGAIN after a conflict, or another error. */
static int
commit(struct rocksdb *r)
{
    static const char busy[] = "Resource busy", again[] = "Operation failed. Try again";
    char *error = NULL;
    int rc;

    rocksdb_transaction_commit(r->txn, &error);
    rc = check(error);
    if (rc != 0
        && (strncmp(error_text, busy, sizeof busy - 1) == 0
            || strncmp(error_text, again, sizeof again - 1) == 0))
        return EAGAIN;
    return rc;
}

/* try_write -- one transaction; what it did is forgotten unless it commits. */
static int
try_write(struct rocksdb *r, const void *key, const void *value, bool add)
{
    char *error = NULL;
    int rc;

    r->txn = rocksdb_optimistictransaction_begin(shared.txn_db, r->lsm.write,
                                                 r->txn_options, r->txn);
    rc = add ? is_new(r, key) : 0;
    if (rc == 0) {
        rocksdb_transaction_put(r->txn, key, BENCH_KEY_BYTES, value, BENCH_VALUE_BYTES,
                                &error);
        rc = check(error);
    }
    if (rc == 0)
        rc = commit(r);
    if (rc != 0) {
        error = NULL;
        rocksdb_transaction_rollback(r->txn, &error);
        if (error != NULL)
            rocksdb_free(error);
    }
    return rc;
}

static int
rocks_txn_insert(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    int rc;

    while ((rc = try_write(handle, key, value, true)) == EAGAIN)
        ++*retriesp;
    return rc;
}

static int
rocks_txn_put(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    int rc;

    while ((rc = try_write(handle, key, value, false)) == EAGAIN)
        ++*retriesp;
    return rc;
}

static int
rocks_find(void *handle, const void *key, void *value)
{
    struct rocksdb *r = handle;
    rocksdb_pinnableslice_t *found;
    char *error = NULL;
    const char *bytes;
    size_t n;
    int rc;

    found = rocksdb_get_pinned(db, r->lsm.read, key, BENCH_KEY_BYTES, &error);
    rc = check(error);
    if (rc != 0)
        return rc;
    if (found == NULL)
        return ENOENT;
    bytes = rocksdb_pinnableslice_value(found, &n);
    if (n == BENCH_VALUE_BYTES)
        memcpy(value, bytes, n);
    rocksdb_pinnableslice_destroy(found);
    return n == BENCH_VALUE_BYTES ? 0 : EINVAL;
}

#define ROCKSDB_OPERATIONS                                           \
 .find = rocks_find, .scan = lsm_scan, .begin_read = lsm_begin_read, \
 .end_read = lsm_end_read, .close = rocks_close, .explain = lsm_explain

const struct bench_system bench_rocksdb = {
    .name = "rocksdb",
    .what = "RocksDB, no compression, bloom filter of 10 bits, puts that do not look",
    .durably =
        "sync: log written and synced at each put, its files used again; nondurable: "
        "log written",
    .abilities = BENCH_THREADS | BENCH_NONDURABLE | BENCH_KEEPS,
    .open = rocks_open,
    .insert = lsm_put,
    .put = lsm_put,
    ROCKSDB_OPERATIONS,
};

const struct bench_system bench_rocksdb_nolog = {
    .name = "rocksdb-nolog",
    .what = "the same without a log",
    .durably = "never",
    .abilities = BENCH_THREADS | BENCH_NONDURABLE | BENCH_NEVER_DURABLE | BENCH_KEEPS,
    .open = rocks_nolog_open,
    .insert = lsm_put,
    .put = lsm_put,
    ROCKSDB_OPERATIONS,
};

const struct bench_system bench_rocksdb_txn = {
    .name = "rocksdb-txn",
    .what =
        "the same, each insert and put an optimistic transaction; an insert looks first",
    .durably = "as rocksdb; nondurable: no log",
    .abilities = BENCH_THREADS | BENCH_NONDURABLE | BENCH_KEEPS,
    .open = rocks_txn_open,
    .insert = rocks_txn_insert,
    .put = rocks_txn_put,
    ROCKSDB_OPERATIONS,
};
