/* SPDX-License-Identifier: MIT */
/*
 * larger_bdb.c -- Berkeley DB 5.3 beside the trees of `larger`.
 *
 * WHAT      One DB_BTREE in a file, without environment, transactions and log, as the
 *           Thesis' db_load; pages of 4096 bytes, a cache of the size asked for.  The file's
 *           pages are in the page cache as well, which the limit of memory covers.
 */
#include <config.h>

#include <db.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/larger/larger.h"

/* open_db -- the database of the file; ret 0 or a code. */
static int
open_db(struct bench_larger_set *s, u_int32_t flags)
{
    DB *db;
    int rc = db_create(&db, NULL, 0);

    if (rc != 0)
        return rc;
    rc = db->set_cachesize(db, 0, (u_int32_t)s->pool_bytes, 1);
    if (rc == 0)
        rc = db->set_pagesize(db, (u_int32_t)s->block_bytes);
    if (rc == 0)
        rc = db->open(db, NULL, s->path, NULL, DB_BTREE, flags, 0644);
    if (rc != 0) {
        (void)db->close(db, 0);
        return rc;
    }
    s->base = db;
    return 0;
}

static int
bdb_create(struct bench_larger_set *s)
{
    return open_db(s, DB_CREATE | DB_EXCL);
}

static int
bdb_reopen(struct bench_larger_set *s)
{
    return open_db(s, 0);
}

static int
bdb_forget(struct bench_larger_set *s)
{
    DB *db = s->base;
    struct stat st;
    int rc = db->close(db, 0), fd;

    if (rc != 0)
        return rc;
    fd = open(s->path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (fsync(fd) != 0 || fstat(fd, &st) != 0)
        rc = errno;
    if (rc == 0)
        rc = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (rc == 0)
        s->size_bytes = (uint64_t)st.st_size;
    close(fd);
    return rc;
}

/* bdb_insert -- a key and an empty value. */
static int
bdb_insert(struct bench_larger_set *s, const void *key)
{
    DB *db = s->base;
    DBT k = {.data = (void *)(uintptr_t)key, .size = BENCH_LARGER_KEY}, v = {0};

    return db->put(db, NULL, &k, &v, 0);
}

static int
bdb_search(struct bench_larger_set *s, const void *key)
{
    DB *db = s->base;
    DBT k = {.data = (void *)(uintptr_t)key, .size = BENCH_LARGER_KEY}, v = {0};
    int rc = db->get(db, NULL, &k, &v, 0);

    return rc == DB_NOTFOUND ? ENOENT : rc;
}

static int
bdb_scan(struct bench_larger_set *s, tree_visit *visit, void *arg)
{
    DB *db = s->base;
    DBT k = {0}, v = {0};
    DBC *cursor;
    int rc = db->cursor(db, NULL, &cursor, 0), rc2;

    if (rc != 0)
        return rc;
    while ((rc = cursor->get(cursor, &k, &v, DB_NEXT)) == 0) {
        rc = visit(arg, k.data, v.data);
        if (rc != 0)
            break;
    }
    rc2 = cursor->close(cursor);
    if (rc == DB_NOTFOUND)
        rc = 0;
    return rc != 0 ? rc : rc2;
}

const struct bench_larger_kind bench_larger_bdb = {
    .create = bdb_create,
    .forget = bdb_forget,
    .reopen = bdb_reopen,
    .insert = bdb_insert,
    .search = bdb_search,
    .scan = bdb_scan,
};
