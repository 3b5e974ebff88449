/* SPDX-License-Identifier: MIT */
/*
 * sys_sqlite.c -- SQLite 3 with a write-ahead log.
 *
 * WHAT      One table with an integer primary key, which is SQLite's own B+-tree; keys are
 *           mapped to its signed integers in order.  Statements are prepared once; each
 *           is a transaction of its own (autocommit).  One writer at a time; the others
 *           wait by the busy handler (sqlite3_busy_timeout).
 * SETTINGS  page_size = block_bytes, cache_size = cache_bytes, journal_mode = WAL,
 *           wal_autocheckpoint = checkpoint_bytes, mmap_size = 0.
 * DURABLE   synchronous = FULL: the log is synced at each commit.
 * NOT       synchronous = OFF.
 */
#include <config.h>

#include "bench/kit/system.h"
#include "bench/kit/util.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_MS          60000
#define FRAME_HEAD_BYTES 24u /* of a page in the log */

enum {
    STATEMENT_INSERT,
    STATEMENT_PUT,
    STATEMENT_FIND,
    STATEMENT_SCAN,
    N_STATEMENTS
};

static const char *const statement_texts[N_STATEMENTS] = {
    [STATEMENT_INSERT] = "INSERT INTO kv VALUES(?1, ?2)",
    [STATEMENT_PUT] = "INSERT OR REPLACE INTO kv VALUES(?1, ?2)",
    [STATEMENT_FIND] = "SELECT v FROM kv WHERE k = ?1",
    [STATEMENT_SCAN] = "SELECT k, v FROM kv WHERE k >= ?1 ORDER BY k",
};

struct sqlite {
    sqlite3 *db;
    sqlite3_stmt *statements[N_STATEMENTS];
    uint64_t page_bytes;
    uint64_t n_commits;
    bool durable;
};

static int
sqlite_close(void *handle)
{
    struct sqlite *s = handle;
    int rc;

    for (int i = 0; i < N_STATEMENTS; i++)
        (void)sqlite3_finalize(s->statements[i]);
    rc = sqlite3_close(s->db);
    free(s);
    return rc;
}

/* set_up -- what holds for each connection, and the table. */
static int
set_up(struct sqlite *s, const struct bench_config *config)
{
    char text[512];

    snprintf(
        text, sizeof text,
        "PRAGMA page_size = %llu; PRAGMA journal_mode = WAL; PRAGMA synchronous = %s;"
        "PRAGMA cache_size = -%llu; PRAGMA wal_autocheckpoint = %llu;"
        "CREATE TABLE IF NOT EXISTS kv(k INTEGER PRIMARY KEY, v BLOB NOT NULL);",
        (unsigned long long)config->block_bytes, config->durable ? "FULL" : "OFF",
        (unsigned long long)(config->cache_bytes >> 10),
        (unsigned long long)(config->checkpoint_bytes / config->block_bytes));
    return sqlite3_exec(s->db, text, NULL, NULL, NULL);
}

static int
sqlite_open(const struct bench_config *config, bool first, void **handlep)
{
    struct sqlite *s = calloc(1, sizeof *s);
    char path[PATH_MAX];
    int rc;

    (void)first;
    if (s == NULL)
        return ENOMEM;
    s->page_bytes = config->block_bytes;
    s->durable = config->durable;
    snprintf(path, sizeof path, "%s/insert.sqlite", config->dir);
    rc = sqlite3_open(path, &s->db);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(s->db, BUSY_MS);
    if (rc == SQLITE_OK)
        rc = set_up(s, config);
    for (int i = 0; i < N_STATEMENTS && rc == SQLITE_OK; i++)
        rc = sqlite3_prepare_v2(s->db, statement_texts[i], -1, &s->statements[i], NULL);
    if (rc != SQLITE_OK) {
        (void)sqlite_close(s);
        return rc;
    }
    *handlep = s;
    return 0;
}

/* bind_key -- a key of ours as a signed integer of the same order. */
static int
bind_key(sqlite3_stmt *statement, const void *key)
{
    return sqlite3_bind_int64(statement, 1,
                              (sqlite3_int64)(bench_key_decode(key) ^ UINT64_C(1) << 63));
}

/* update -- an insert or a put. */
static int
update(struct sqlite *s, int which, const void *key, const void *value,
       uint64_t *retriesp)
{
    sqlite3_stmt *statement = s->statements[which];
    int rc = bind_key(statement, key), again;

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_blob(statement, 2, value, BENCH_VALUE_BYTES, SQLITE_STATIC);
    if (rc != SQLITE_OK)
        return rc;
    do {
        rc = sqlite3_step(statement);
        again = rc == SQLITE_BUSY;
        *retriesp += (uint64_t)again;
        (void)sqlite3_reset(statement);
    } while (again);
    s->n_commits++;
    return rc == SQLITE_DONE ? 0 : rc;
}

static int
sqlite_insert(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    return update(handle, STATEMENT_INSERT, key, value, retriesp);
}

static int
sqlite_put(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    return update(handle, STATEMENT_PUT, key, value, retriesp);
}

static int
sqlite_find(void *handle, const void *key, void *value)
{
    struct sqlite *s = handle;
    sqlite3_stmt *statement = s->statements[STATEMENT_FIND];
    int rc = bind_key(statement, key);

    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        rc = sqlite3_column_bytes(statement, 0) == (int)BENCH_VALUE_BYTES ? 0 : EINVAL;
        if (rc == 0)
            memcpy(value, sqlite3_column_blob(statement, 0), BENCH_VALUE_BYTES);
    } else if (rc == SQLITE_DONE)
        rc = ENOENT;
    (void)sqlite3_reset(statement);
    return rc;
}

static int
sqlite_scan(void *handle, const void *from, bench_visit *visit, void *arg)
{
    static const unsigned char zero[BENCH_KEY_BYTES];
    struct sqlite *s = handle;
    sqlite3_stmt *statement = s->statements[STATEMENT_SCAN];
    unsigned char key[BENCH_KEY_BYTES];
    int rc = bind_key(statement, from != NULL ? from : zero), stop = 0;

    if (rc != SQLITE_OK)
        return rc;
    while (stop == 0 && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        uint64_t k = (uint64_t)sqlite3_column_int64(statement, 0) ^ UINT64_C(1) << 63;

        bench_key_encode(k, key);
        if (sqlite3_column_bytes(statement, 1) != (int)BENCH_VALUE_BYTES)
            stop = EINVAL;
        else
            stop = visit(arg, key, sqlite3_column_blob(statement, 1));
    }
    (void)sqlite3_reset(statement);
    return stop != 0 ? stop : rc == SQLITE_DONE ? 0 : rc;
}

static int
sqlite_begin_read(void *handle)
{
    struct sqlite *s = handle;

    return sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL);
}

static int
sqlite_end_read(void *handle)
{
    struct sqlite *s = handle;

    return sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
}

/* sqlite_counters -- with a write-ahead log the pages that the cache writes go there. */
static int
sqlite_counters(void *handle, struct bench_counters *out)
{
    struct sqlite *s = handle;
    int pages, high;
    int rc = sqlite3_db_status(s->db, SQLITE_DBSTATUS_CACHE_WRITE, &pages, &high, 0);

    if (rc != SQLITE_OK)
        return rc;
    out->log_bytes = (uint64_t)pages * (s->page_bytes + FRAME_HEAD_BYTES);
    out->syncs = s->durable ? s->n_commits : 0; /* one at each commit, by its manual */
    return 0;
}

static const char *
sqlite_explain(int code)
{
    return sqlite3_errstr(code);
}

const struct bench_system bench_sqlite = {
    .name = "sqlite",
    .what = "SQLite 3, WAL, integer primary key, one INSERT per transaction",
    .durably = "synchronous=FULL: log synced at each commit; nondurable: synchronous=OFF",
    .abilities = BENCH_MULTI | BENCH_NONDURABLE | BENCH_KEEPS | BENCH_LOCAL_COUNTS,
    .open = sqlite_open,
    .insert = sqlite_insert,
    .put = sqlite_put,
    .find = sqlite_find,
    .scan = sqlite_scan,
    .begin_read = sqlite_begin_read,
    .end_read = sqlite_end_read,
    .counters = sqlite_counters,
    .close = sqlite_close,
    .explain = sqlite_explain,
};
