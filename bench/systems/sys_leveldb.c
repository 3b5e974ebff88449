/* SPDX-License-Identifier: MIT */
/*
 * sys_leveldb.c -- LevelDB, a log-structured merge tree.
 *
 * WHAT      One database; each worker has options and, for reads in one transaction, a snapshot
 *           of its own.  Only one process can open it, so several workers are threads.  A put
 *           replaces: it does not know whether the key is there.
 * DURABLE   sync: the log is written and synced; one writer does it for the others that wait.
 * NOT       the log is written, not synced.  It cannot be left out.
 * SETTINGS  no compression: values are random, and no other system compresses.
 *           bloom filter of 10 bits: a search skips files without the key.
 *           write buffer of 64 MiB instead of 4: fewer files, less work to merge them.
 */
#include <config.h>

#include <leveldb/c.h>
#include <limits.h>
#include <stdlib.h>

#define LSM(name) leveldb_##name
#include "bench/systems/lsm.h"

#define BLOOM_BITS         10
#define WRITE_BUFFER_BYTES ((size_t)64 << 20)

/* What the database of this process needs, and how many handles it has. */
static struct {
    leveldb_options_t *options;
    leveldb_cache_t *cache;
    leveldb_filterpolicy_t *filter;
    unsigned users;
} shared;

/* open_db -- the database of this process. */
static int
open_db(const struct bench_config *config)
{
    char path[PATH_MAX], *error = NULL;

    snprintf(path, sizeof path, "%s/leveldb", config->dir);
    shared.options = leveldb_options_create();
    shared.cache = leveldb_cache_create_lru(config->cache_bytes);
    shared.filter = leveldb_filterpolicy_create_bloom(BLOOM_BITS);
    leveldb_options_set_create_if_missing(shared.options, 1);
    leveldb_options_set_cache(shared.options, shared.cache);
    leveldb_options_set_filter_policy(shared.options, shared.filter);
    leveldb_options_set_compression(shared.options, leveldb_no_compression);
    leveldb_options_set_block_size(shared.options, config->block_bytes);
    leveldb_options_set_write_buffer_size(shared.options, WRITE_BUFFER_BYTES);
    db = leveldb_open(shared.options, path, &error);
    return check(error);
}

/* close_db -- pairs with open_db(), also if that failed. */
static void
close_db(void)
{
    if (db != NULL)
        leveldb_close(db);
    leveldb_options_destroy(shared.options);
    leveldb_cache_destroy(shared.cache);
    leveldb_filterpolicy_destroy(shared.filter);
    db = NULL;
}

static int
level_close(void *handle)
{
    struct lsm *l = handle;

    leveldb_writeoptions_destroy(l->write);
    leveldb_readoptions_destroy(l->read);
    free(l);
    if (--shared.users == 0)
        close_db();
    return 0;
}

static int
level_open(const struct bench_config *config, bool first, void **handlep)
{
    struct lsm *l = calloc(1, sizeof *l);
    int rc = 0;

    (void)first;
    if (l == NULL)
        return ENOMEM;
    l->write = leveldb_writeoptions_create();
    l->read = leveldb_readoptions_create();
    leveldb_writeoptions_set_sync(l->write, config->durable);
    if (shared.users++ == 0)
        rc = open_db(config);
    if (rc != 0) {
        (void)level_close(l);
        return rc;
    }
    *handlep = l;
    return 0;
}

static int
level_find(void *handle, const void *key, void *value)
{
    struct lsm *l = handle;
    char *error = NULL, *found;
    size_t n = 0;
    int rc;

    found = leveldb_get(db, l->read, key, BENCH_KEY_BYTES, &n, &error);
    rc = check(error);
    if (rc != 0)
        return rc;
    if (found == NULL)
        return ENOENT;
    if (n == BENCH_VALUE_BYTES)
        memcpy(value, found, n);
    leveldb_free(found);
    return n == BENCH_VALUE_BYTES ? 0 : EINVAL;
}

const struct bench_system bench_leveldb = {
    .name = "leveldb",
    .what = "LevelDB, no compression, bloom filter of 10 bits, write buffer of 64 MiB",
    .durably = "sync: log written and synced at each put; nondurable: log written",
    .abilities = BENCH_THREADS | BENCH_NONDURABLE | BENCH_KEEPS,
    .open = level_open,
    .insert = lsm_put,
    .put = lsm_put,
    .find = level_find,
    .scan = lsm_scan,
    .begin_read = lsm_begin_read,
    .end_read = lsm_end_read,
    .close = level_close,
    .explain = lsm_explain,
};
