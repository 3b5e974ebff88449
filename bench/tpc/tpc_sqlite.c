/* SPDX-License-Identifier: MIT */
/*
 * tpc_sqlite.c -- the tables of `tpcb` and `tpcc` on SQLite 3: integer primary keys, rows as
 * blobs, prepared statements, BEGIN IMMEDIATE; settings as in bench/systems/sys_sqlite.c.
 */
#include <config.h>

#include "bench/tpc/tpc.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kit/util.h"

#define BUSY_MS          60000
#define PAGE_BYTES       4096u
#define CHECKPOINT_PAGES (UINT64_C(256) << 20 >> 12)
#define CACHE_LEAST      (UINT64_C(64) << 20)

enum {
    GET,
    PUT,
    SCAN,
    N_KINDS
};
static const char *const texts[N_KINDS] = {
    [GET] = "SELECT v FROM %s WHERE k = ?1",
    [PUT] = "INSERT OR REPLACE INTO %s VALUES(?1, ?2)",
    [SCAN] = "SELECT k, v FROM %s ORDER BY k",
};

enum {
    BEGIN,
    COMMIT,
    ROLLBACK,
    N_FRAMES
};
static const char *const frames[N_FRAMES] = {"BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"};

struct sqlite {
    const struct bench_tpc *tpc;
    sqlite3 *db;
    sqlite3_stmt *of[BENCH_TPC_TABLES_MAX][N_KINDS];
    sqlite3_stmt *frame[N_FRAMES];
};

static int
sqlite_close(void *handle)
{
    struct sqlite *s = handle;
    int rc;

    for (unsigned k = 0; k < BENCH_TPC_TABLES_MAX; k++)
        for (unsigned i = 0; i < N_KINDS; i++)
            (void)sqlite3_finalize(s->of[k][i]);
    for (unsigned i = 0; i < N_FRAMES; i++)
        (void)sqlite3_finalize(s->frame[i]);
    rc = sqlite3_close(s->db);
    free(s);
    return rc;
}

/* set_up -- what holds for each connection. */
static int
set_up(struct sqlite *s)
{
    uint64_t cache = CACHE_LEAST;
    char text[512];

    for (unsigned k = 0; k < s->tpc->n_tables; k++)
        cache += 4 * s->tpc->tables[k].present * (s->tpc->tables[k].row_bytes + 40u);
    snprintf(text, sizeof text,
             "PRAGMA page_size = %u; PRAGMA journal_mode = WAL; PRAGMA synchronous = %s;"
             "PRAGMA cache_size = -%llu; PRAGMA wal_autocheckpoint = %llu;",
             PAGE_BYTES, s->tpc->durable ? "FULL" : "OFF",
             (unsigned long long)(cache >> 10), (unsigned long long)CHECKPOINT_PAGES);
    return sqlite3_exec(s->db, text, NULL, NULL, NULL);
}

/* open_table -- number k, with its statements. */
static int
open_table(struct sqlite *s, unsigned k)
{
    const char *name = s->tpc->tables[k].name;
    char text[200];
    int rc;

    snprintf(text, sizeof text,
             "CREATE TABLE IF NOT EXISTS %s(k INTEGER PRIMARY KEY, v BLOB NOT NULL)",
             name);
    rc = sqlite3_exec(s->db, text, NULL, NULL, NULL);
    for (unsigned i = 0; i < N_KINDS && rc == SQLITE_OK; i++) {
        sqlite3_snprintf(sizeof text, text, texts[i], name);
        rc = sqlite3_prepare_v2(s->db, text, -1, &s->of[k][i], NULL);
    }
    return rc;
}

static int
sqlite_open(const struct bench_tpc_system *system, const struct bench_tpc *tpc,
            const char *dir, bool first, void **handlep)
{
    struct sqlite *s = calloc(1, sizeof *s);
    char path[PATH_MAX];
    int rc;

    (void)system;
    (void)first;
    if (s == NULL)
        return ENOMEM;
    s->tpc = tpc;
    snprintf(path, sizeof path, "%s/tpc.sqlite", dir);
    rc = sqlite3_open(path, &s->db);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(s->db, BUSY_MS);
    if (rc == SQLITE_OK)
        rc = set_up(s);
    for (unsigned k = 0; k < tpc->n_tables && rc == SQLITE_OK; k++)
        rc = open_table(s, k);
    for (unsigned i = 0; i < N_FRAMES && rc == SQLITE_OK; i++)
        rc = sqlite3_prepare_v2(s->db, frames[i], -1, &s->frame[i], NULL);
    if (rc != SQLITE_OK)
        (void)sqlite_close(s);
    else
        *handlep = s;
    return rc;
}

/* run -- a statement without rows; ret 0 or a code. */
static int
run(sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement);

    (void)sqlite3_reset(statement);
    return rc == SQLITE_DONE ? 0 : rc;
}

static int
sqlite_transact(const struct bench_tpc_open *open, bench_tpc_body *body, void *arg,
                uint64_t *retriesp)
{
    struct sqlite *s = open->handle;
    int rc;

    while ((rc = run(s->frame[BEGIN])) == SQLITE_BUSY)
        ++*retriesp;
    if (rc != 0)
        return rc;
    rc = body(open, arg);
    if (rc == 0) {
        while ((rc = run(s->frame[COMMIT])) == SQLITE_BUSY)
            ++*retriesp;
        return rc;
    }
    (void)run(s->frame[ROLLBACK]);
    return rc == BENCH_TPC_GIVE_UP ? 0 : rc;
}

static int
sqlite_get(void *handle, unsigned table, uint64_t id, void *row, bool for_update)
{
    struct sqlite *s = handle;
    sqlite3_stmt *statement = s->of[table][GET];
    int bytes = (int)s->tpc->tables[table].row_bytes;
    int rc = sqlite3_bind_int64(statement, 1, (sqlite3_int64)id);

    (void)for_update;
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        rc = sqlite3_column_bytes(statement, 0) == bytes ? 0 : EINVAL;
        if (rc == 0)
            memcpy(row, sqlite3_column_blob(statement, 0), (size_t)bytes);
    } else if (rc == SQLITE_DONE)
        rc = ENOENT;
    (void)sqlite3_reset(statement);
    return rc;
}

static int
sqlite_put(void *handle, unsigned table, uint64_t id, const void *row)
{
    struct sqlite *s = handle;
    sqlite3_stmt *statement = s->of[table][PUT];
    int rc = sqlite3_bind_int64(statement, 1, (sqlite3_int64)id);

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_blob(statement, 2, row, (int)s->tpc->tables[table].row_bytes,
                               SQLITE_STATIC);
    return rc != SQLITE_OK ? rc : run(statement);
}

static int
sqlite_scan(void *handle, unsigned table, bench_tpc_visit *visit, void *arg)
{
    struct sqlite *s = handle;
    sqlite3_stmt *statement = s->of[table][SCAN];
    int bytes = (int)s->tpc->tables[table].row_bytes, rc, stop = 0;

    while (stop == 0 && (rc = sqlite3_step(statement)) == SQLITE_ROW)
        stop = sqlite3_column_bytes(statement, 1) != bytes
                   ? EINVAL
                   : visit(arg, (uint64_t)sqlite3_column_int64(statement, 0),
                           sqlite3_column_blob(statement, 1));
    (void)sqlite3_reset(statement);
    return stop != 0 ? stop : rc == SQLITE_DONE ? 0 : rc;
}

static const char *
sqlite_explain(int code)
{
    return sqlite3_errstr(code);
}

const struct bench_tpc_system bench_tpc_sqlite = {
    .name = "sqlite",
    .what = "SQLite 3, WAL, synchronous=FULL; nondurable: synchronous=OFF",
    .open = sqlite_open,
    .transact = sqlite_transact,
    .get = sqlite_get,
    .put = sqlite_put,
    .scan = sqlite_scan,
    .close = sqlite_close,
    .explain = sqlite_explain,
};
