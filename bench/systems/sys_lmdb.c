/* SPDX-License-Identifier: MIT */
/*
 * sys_lmdb.c -- LMDB, a B+-tree in a read-only shared mapping, pages copied on write.
 *
 * WHAT      One environment, its unnamed database; each put is a write transaction, of
 *           which there is one at a time over all processes; each find a read
 *           transaction, which is renewed and not made anew.  The page is the system's,
 *           whatever block_bytes says; the cache is the system's page cache.
 * DURABLE   lmdb: the default: data pages are synced at commit, then the meta page is written
 *           through (O_DSYNC).  lmdb-map: the pages are synced by msync(2).
 * NOT       MDB_NOSYNC; lmdb-map: MDB_NOMETASYNC, too.
 * LMDB-MAP  MDB_WRITEMAP: pages are written in the mapping, where lmdb has a copy of each on
 *           the heap and writes it by pwrite(2).  Its file is filled with zeros before the
 *           run, as that of the system mmap is: else each first store to a page of it makes
 *           the file system find room for the page.
 */
#include <config.h>

#include "bench/kit/system.h"
#include "bench/kit/util.h"

#include <errno.h>
#include <lmdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READERS_MAX 512u

struct lmdb {
    MDB_env *env;
    MDB_dbi dbi;
    MDB_txn *reader; /* NULL, or reset, or at work                                  */
    bool is_reading; /* between begin_read() and end_read()                         */
};

static int
lmdb_close(void *handle)
{
    struct lmdb *l = handle;
    int rc = 0;

    if (l->reader != NULL)
        mdb_txn_abort(l->reader);
    if (l->env != NULL) {
        rc = mdb_env_sync(l->env, 1);
        mdb_env_close(l->env);
    }
    free(l);
    return rc;
}

/* tree_bytes -- what all records need, with room to spare. */
static size_t
tree_bytes(const struct bench_config *config)
{
    return bench_tree_bytes(config->count, BENCH_KEY_BYTES + BENCH_VALUE_BYTES, 4096);
}

/*
 * fill -- write zeros behind the two meta pages, and sync them: as many as the tree needs, not
 * the whole map, which is so large that it cannot become full.
 *
 * ret  0 or errno
 */
static int
fill(struct lmdb *l, uint64_t bytes)
{
    mdb_filehandle_t fd;
    int rc = mdb_env_get_fd(l->env, &fd);

    return rc != 0 ? rc
                   : bench_write_zeros(fd, 2 * (uint64_t)sysconf(_SC_PAGESIZE), bytes);
}

/* open_env -- environment and database; flags of the environment. */
static int
open_env(struct lmdb *l, const struct bench_config *config, unsigned flags)
{
    /* Pages that are free but not yet reused need room, too. */
    size_t bytes = 4 * tree_bytes(config);
    MDB_txn *txn;
    int rc = mdb_env_create(&l->env);

    if (rc == 0)
        rc = mdb_env_set_mapsize(l->env, bytes);
    if (rc == 0)
        rc = mdb_env_set_maxreaders(l->env, READERS_MAX);
    if (rc == 0)
        rc = mdb_env_open(l->env, config->dir, flags, 0644);
    if (rc == 0)
        rc = mdb_txn_begin(l->env, NULL, 0, &txn);
    if (rc != 0)
        return rc;
    rc = mdb_dbi_open(txn, NULL, 0, &l->dbi);
    if (rc == 0)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

/* open_either -- with zeros: the file is filled with them. */
static int
open_either(const struct bench_config *config, unsigned flags, bool zeros, void **handlep)
{
    struct lmdb *l = calloc(1, sizeof *l);
    int rc;

    if (l == NULL)
        return ENOMEM;
    rc = open_env(l, config, flags);
    if (rc == 0 && zeros)
        rc = fill(l, tree_bytes(config));
    if (rc != 0) {
        (void)lmdb_close(l);
        return rc;
    }
    *handlep = l;
    return 0;
}

static int
lmdb_open(const struct bench_config *config, bool first, void **handlep)
{
    (void)first;
    return open_either(config, config->durable ? 0 : MDB_NOSYNC, false, handlep);
}

static int
lmdb_map_open(const struct bench_config *config, bool first, void **handlep)
{
    unsigned relaxed = MDB_NOSYNC | MDB_NOMETASYNC;

    return open_either(config, MDB_WRITEMAP | (config->durable ? 0 : relaxed), first,
                       handlep);
}

/* put -- one write transaction. */
static int
put(struct lmdb *l, const void *key, const void *value, unsigned flags)
{
    /* A put does not write through these; MDB_val has no const. */
    MDB_val k = {BENCH_KEY_BYTES, (void *)(uintptr_t)key};
    MDB_val v = {BENCH_VALUE_BYTES, (void *)(uintptr_t)value};
    MDB_txn *txn;
    int rc = mdb_txn_begin(l->env, NULL, 0, &txn);

    if (rc != 0)
        return rc;
    rc = mdb_put(txn, l->dbi, &k, &v, flags);
    if (rc == 0)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

static int
lmdb_insert(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    (void)retriesp; /* one writer at a time: nothing to retry */
    return put(handle, key, value, MDB_NOOVERWRITE);
}

static int
lmdb_put(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    (void)retriesp;
    return put(handle, key, value, 0);
}

/* read_begin -- the handle's read transaction, on the newest state. */
static int
read_begin(struct lmdb *l)
{
    if (l->is_reading)
        return 0;
    return l->reader != NULL ? mdb_txn_renew(l->reader)
                             : mdb_txn_begin(l->env, NULL, MDB_RDONLY, &l->reader);
}

/* read_end -- pairs with read_begin(). */
static void
read_end(struct lmdb *l)
{
    if (!l->is_reading)
        mdb_txn_reset(l->reader);
}

static int
lmdb_begin_read(void *handle)
{
    struct lmdb *l = handle;
    int rc = read_begin(l);

    l->is_reading = rc == 0;
    return rc;
}

static int
lmdb_end_read(void *handle)
{
    struct lmdb *l = handle;

    l->is_reading = false;
    read_end(l);
    return 0;
}

static int
lmdb_find(void *handle, const void *key, void *value)
{
    struct lmdb *l = handle;
    MDB_val k = {BENCH_KEY_BYTES, (void *)(uintptr_t)key}, v;
    int rc = read_begin(l);

    if (rc != 0)
        return rc;
    rc = mdb_get(l->reader, l->dbi, &k, &v);
    if (rc == 0 && v.mv_size != BENCH_VALUE_BYTES)
        rc = EINVAL;
    if (rc == 0)
        memcpy(value, v.mv_data, BENCH_VALUE_BYTES);
    read_end(l);
    return rc == MDB_NOTFOUND ? ENOENT : rc;
}

/* walk -- what a cursor visits. */
static int
walk(MDB_cursor *cursor, const void *from, bench_visit *visit, void *arg)
{
    MDB_val k = {BENCH_KEY_BYTES, (void *)(uintptr_t)from}, v;
    MDB_cursor_op how = from != NULL ? MDB_SET_RANGE : MDB_FIRST;
    int rc;

    for (; (rc = mdb_cursor_get(cursor, &k, &v, how)) == 0; how = MDB_NEXT) {
        if (k.mv_size != BENCH_KEY_BYTES || v.mv_size != BENCH_VALUE_BYTES)
            return EINVAL;
        rc = visit(arg, k.mv_data, v.mv_data);
        if (rc != 0)
            return rc;
    }
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static int
lmdb_scan(void *handle, const void *from, bench_visit *visit, void *arg)
{
    struct lmdb *l = handle;
    MDB_cursor *cursor;
    int rc = read_begin(l);

    if (rc != 0)
        return rc;
    rc = mdb_cursor_open(l->reader, l->dbi, &cursor);
    if (rc == 0) {
        rc = walk(cursor, from, visit, arg);
        mdb_cursor_close(cursor);
    }
    read_end(l);
    return rc;
}

static const char *
lmdb_explain(int code)
{
    return mdb_strerror(code);
}

#define LMDB_OPERATIONS                                                         \
 .insert = lmdb_insert, .put = lmdb_put, .find = lmdb_find, .scan = lmdb_scan,  \
 .begin_read = lmdb_begin_read, .end_read = lmdb_end_read, .close = lmdb_close, \
 .explain = lmdb_explain

const struct bench_system bench_lmdb = {
    .name = "lmdb",
    .what = "LMDB, one write transaction per insert; pages of the system",
    .durably = "default: pages synced at each commit; nondurable: MDB_NOSYNC",
    .abilities = BENCH_MULTI | BENCH_NONDURABLE | BENCH_KEEPS,
    .open = lmdb_open,
    LMDB_OPERATIONS,
};

const struct bench_system bench_lmdb_map = {
    .name = "lmdb-map",
    .what = "LMDB with MDB_WRITEMAP, its file filled with zeros first",
    .durably = "MDB_WRITEMAP: msync at each commit; nondurable: MDB_WRITEMAP|MDB_NOSYNC|"
               "MDB_NOMETASYNC",
    .abilities = BENCH_MULTI | BENCH_NONDURABLE | BENCH_KEEPS,
    .open = lmdb_map_open,
    LMDB_OPERATIONS,
};
