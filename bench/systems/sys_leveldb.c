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

#include "bench/kit/system.h"
#include "bench/kit/util.h"

#include <errno.h>
#include <leveldb/c.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOOM_BITS         10
#define WRITE_BUFFER_BYTES ((size_t)64 << 20)

struct leveldb {
    leveldb_writeoptions_t *write;
    leveldb_readoptions_t *read;
    const leveldb_snapshot_t *snapshot; /* between begin_read() and end_read() */
};

/* The database of this process, and its handles. */
static struct {
    leveldb_options_t *options;
    leveldb_cache_t *cache;
    leveldb_filterpolicy_t *filter;
    leveldb_t *db;
    unsigned users;
} shared;

static _Thread_local char error_text[240];

/* check -- words of the library to a code; frees them. */
static int
check(char *error)
{
    if (error == NULL)
        return 0;
    snprintf(error_text, sizeof error_text, "%s", error);
    leveldb_free(error);
    return EIO;
}

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
    shared.db = leveldb_open(shared.options, path, &error);
    return check(error);
}

/* close_db -- pairs with open_db(), also if that failed. */
static void
close_db(void)
{
    if (shared.db != NULL)
        leveldb_close(shared.db);
    leveldb_options_destroy(shared.options);
    leveldb_cache_destroy(shared.cache);
    leveldb_filterpolicy_destroy(shared.filter);
    shared.db = NULL;
}

static int
level_close(void *handle)
{
    struct leveldb *l = handle;

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
    struct leveldb *l = calloc(1, sizeof *l);
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
level_put(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    struct leveldb *l = handle;
    char *error = NULL;

    (void)retriesp; /* nothing conflicts */
    leveldb_put(shared.db, l->write, key, BENCH_KEY_BYTES, value, BENCH_VALUE_BYTES,
                &error);
    return check(error);
}

static int
level_find(void *handle, const void *key, void *value)
{
    struct leveldb *l = handle;
    char *error = NULL, *found;
    size_t n = 0;
    int rc;

    found = leveldb_get(shared.db, l->read, key, BENCH_KEY_BYTES, &n, &error);
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

static int
level_scan(void *handle, const void *from, bench_visit *visit, void *arg)
{
    struct leveldb *l = handle;
    leveldb_iterator_t *it = leveldb_create_iterator(shared.db, l->read);
    char *error = NULL;
    int rc = 0;

    if (from != NULL)
        leveldb_iter_seek(it, from, BENCH_KEY_BYTES);
    else
        leveldb_iter_seek_to_first(it);
    for (; rc == 0 && leveldb_iter_valid(it); leveldb_iter_next(it)) {
        size_t n_key, n_value;
        const char *key = leveldb_iter_key(it, &n_key);
        const char *value = leveldb_iter_value(it, &n_value);

        if (n_key != BENCH_KEY_BYTES || n_value != BENCH_VALUE_BYTES)
            rc = EINVAL;
        else
            rc = visit(arg, key, value);
    }
    if (rc == 0) {
        leveldb_iter_get_error(it, &error);
        rc = check(error);
    }
    leveldb_iter_destroy(it);
    return rc;
}

static int
level_begin_read(void *handle)
{
    struct leveldb *l = handle;

    l->snapshot = leveldb_create_snapshot(shared.db);
    leveldb_readoptions_set_snapshot(l->read, l->snapshot);
    return 0;
}

static int
level_end_read(void *handle)
{
    struct leveldb *l = handle;

    leveldb_readoptions_set_snapshot(l->read, NULL);
    leveldb_release_snapshot(shared.db, l->snapshot);
    return 0;
}

static const char *
level_explain(int code)
{
    return code == EIO ? error_text : strerror(code);
}

const struct bench_system bench_leveldb = {
    .name = "leveldb",
    .what = "LevelDB, no compression, bloom filter of 10 bits, write buffer of 64 MiB",
    .durably = "sync: log written and synced at each put; nondurable: log written",
    .abilities = BENCH_THREADS | BENCH_NONDURABLE | BENCH_KEEPS,
    .open = level_open,
    .insert = level_put,
    .put = level_put,
    .find = level_find,
    .scan = level_scan,
    .begin_read = level_begin_read,
    .end_read = level_end_read,
    .close = level_close,
    .explain = level_explain,
};
