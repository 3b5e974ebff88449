/* SPDX-License-Identifier: MIT */
/*
 * sys_wiredtiger.c -- WiredTiger, a B-tree with multiversion concurrency.
 *
 * WHAT      One connection, one table; each worker has a session of its own.  Only one process
 *           can open it, so several workers are threads.  Each put is a transaction by itself.
 * DURABLE   the log is written and synced at commit.
 * NOT       no log; pages are written at checkpoints, and there is none until the close.
 * SETTINGS  isolation=snapshot  a scan sees one state, as in the other systems.
 *           overwrite=false  insert() refuses a key that is there, as ours does.
 *           leaf_page_max=4KB  with the default of 32 KiB an insert walks a longer page.
 *           memory_page_max=1MB  the default of 5 MB splits rarely, at once and for long.
 *           checksum=off  LMDB and Berkeley DB have none, either.
 *           eviction_...  the cache holds everything, and so may be full of pages that were
 *           changed; by default an insert helps to write them when they are a fifth of it.
 *           threads_max=2  of eviction; eight, the default, contend for few processors.
 *           zero_fill=true  log files are filled with zeros when they are made, so a commit
 *           changes no metadata.
 *           method=fsync  an fdatasync after the log was written; wiredtiger-dsync has
 *           method=dsync instead, log files opened with O_DSYNC, which is faster with several
 *           writers on some devices.
 *           no statistics: they cost time.
 */
#include <config.h>

#include "bench/kit/system.h"
#include "bench/kit/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wiredtiger.h>

#define SESSIONS_MAX 300u

/* WiredTiger takes no larger one. */
#define CHECKPOINT_BYTES_MAX (UINT64_C(2) << 30)

struct wiredtiger {
    WT_SESSION *session;
    WT_CURSOR *insert; /* refuses a key that is there */
    WT_CURSOR *put;    /* replaces its value          */
    WT_CURSOR *read;
};

/* The connection of this process, and its handles. */
static struct {
    WT_CONNECTION *connection;
    unsigned users;
} shared;

/* connect -- method: how the log is synced.  ret 0 or an error of WiredTiger. */
static int
connect(const struct bench_config *config, const char *method)
{
    uint64_t checkpoint = config->checkpoint_bytes < CHECKPOINT_BYTES_MAX
                              ? config->checkpoint_bytes
                              : CHECKPOINT_BYTES_MAX;
    char log[256] = "", text[640];

    if (config->durable)
        snprintf(log, sizeof log,
                 ",log=(enabled=true,zero_fill=true,file_max=%llu),"
                 "transaction_sync=(enabled=true,method=%s),"
                 "checkpoint=(log_size=%llu)",
                 (unsigned long long)config->log_file_bytes, method,
                 (unsigned long long)checkpoint);
    snprintf(
        text, sizeof text,
        "create,cache_size=%llu,session_max=%u,eviction=(threads_min=1,threads_max=2),"
        "eviction_target=90,eviction_trigger=98,eviction_dirty_target=90,"
        "eviction_dirty_trigger=98%s",
        (unsigned long long)config->cache_bytes, SESSIONS_MAX, log);
    return wiredtiger_open(config->dir, NULL, text, &shared.connection);
}

static int
wiredtiger_close(void *handle)
{
    struct wiredtiger *w = handle;
    int rc = 0, rc2 = 0;

    if (w->session != NULL)
        rc = w->session->close(w->session, NULL);
    free(w);
    if (--shared.users == 0 && shared.connection != NULL) {
        rc2 = shared.connection->close(shared.connection, NULL);
        shared.connection = NULL;
    }
    return rc != 0 ? rc : rc2;
}

/* open_handle -- the session and its cursors. */
static int
open_handle(struct wiredtiger *w)
{
    WT_CONNECTION *c = shared.connection;
    static const char table[] = "table:insert";
    int rc = c->open_session(c, NULL, "isolation=snapshot", &w->session);
    WT_SESSION *s = w->session;

    if (rc == 0)
        rc =
            s->create(s, table,
                      "key_format=u,value_format=u,leaf_page_max=4KB,memory_page_max=1MB,"
                      "checksum=off");
    if (rc == 0)
        rc = s->open_cursor(s, table, NULL, "overwrite=false", &w->insert);
    if (rc == 0)
        rc = s->open_cursor(s, table, NULL, "overwrite=true", &w->put);
    if (rc == 0)
        rc = s->open_cursor(s, table, NULL, NULL, &w->read);
    return rc;
}

static int
open_either(const struct bench_config *config, const char *method, void **handlep)
{
    struct wiredtiger *w = calloc(1, sizeof *w);
    int rc = 0;

    if (w == NULL)
        return ENOMEM;
    if (shared.users++ == 0)
        rc = connect(config, method);
    if (rc == 0)
        rc = open_handle(w);
    if (rc != 0) {
        (void)wiredtiger_close(w);
        return rc;
    }
    *handlep = w;
    return 0;
}

static int
wiredtiger_fsync_open(const struct bench_config *config, bool first, void **handlep)
{
    (void)first;
    return open_either(config, "fsync", handlep);
}

static int
wiredtiger_dsync_open(const struct bench_config *config, bool first, void **handlep)
{
    (void)first;
    return open_either(config, "dsync", handlep);
}

/* write_one -- one transaction, again after each conflict. */
static int
write_one(WT_CURSOR *c, const void *key, const void *value, uint64_t *retriesp)
{
    const WT_ITEM k = {.data = key, .size = BENCH_KEY_BYTES};
    const WT_ITEM v = {.data = value, .size = BENCH_VALUE_BYTES};
    int rc;

    for (;; ++*retriesp) {
        c->set_key(c, &k);
        c->set_value(c, &v);
        rc = c->insert(c);
        if (rc != WT_ROLLBACK)
            return rc;
    }
}

static int
wiredtiger_insert(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    return write_one(((struct wiredtiger *)handle)->insert, key, value, retriesp);
}

static int
wiredtiger_put(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    return write_one(((struct wiredtiger *)handle)->put, key, value, retriesp);
}

static int
wiredtiger_find(void *handle, const void *key, void *value)
{
    WT_CURSOR *c = ((struct wiredtiger *)handle)->read;
    WT_ITEM k = {.data = key, .size = BENCH_KEY_BYTES}, v;
    int rc, rc2;

    c->set_key(c, &k);
    rc = c->search(c);
    if (rc == 0)
        rc = c->get_value(c, &v);
    if (rc == 0 && v.size != BENCH_VALUE_BYTES)
        rc = EINVAL;
    if (rc == 0)
        memcpy(value, v.data, BENCH_VALUE_BYTES);
    rc2 = c->reset(c); /* gives up the page and the snapshot */
    if (rc == WT_NOTFOUND)
        return ENOENT;
    return rc != 0 ? rc : rc2;
}

/* seek -- the cursor on the first record from this key on. */
static int
seek(WT_CURSOR *c, const void *from)
{
    WT_ITEM k = {.data = from, .size = BENCH_KEY_BYTES};
    int rc, order;

    if (from == NULL)
        return c->next(c);
    c->set_key(c, &k);
    rc = c->search_near(c, &order);
    return rc == 0 && order < 0 ? c->next(c) : rc;
}

static int
wiredtiger_scan(void *handle, const void *from, bench_visit *visit, void *arg)
{
    WT_CURSOR *c = ((struct wiredtiger *)handle)->read;
    WT_ITEM k, v;
    int rc, rc2;

    for (rc = seek(c, from); rc == 0; rc = c->next(c)) {
        rc = c->get_key(c, &k);
        if (rc == 0)
            rc = c->get_value(c, &v);
        if (rc == 0 && (k.size != BENCH_KEY_BYTES || v.size != BENCH_VALUE_BYTES))
            rc = EINVAL;
        if (rc == 0)
            rc = visit(arg, k.data, v.data);
        if (rc != 0)
            break;
    }
    rc2 = c->reset(c);
    if (rc == WT_NOTFOUND)
        rc = 0;
    return rc != 0 ? rc : rc2;
}

static int
wiredtiger_begin_read(void *handle)
{
    WT_SESSION *s = ((struct wiredtiger *)handle)->session;

    return s->begin_transaction(s, NULL);
}

static int
wiredtiger_end_read(void *handle)
{
    WT_SESSION *s = ((struct wiredtiger *)handle)->session;

    return s->commit_transaction(s, NULL);
}

static const char *
wiredtiger_explain(int code)
{
    return wiredtiger_strerror(code);
}

#define WIREDTIGER_OPERATIONS                                                 \
 .insert = wiredtiger_insert, .put = wiredtiger_put, .find = wiredtiger_find, \
 .scan = wiredtiger_scan, .begin_read = wiredtiger_begin_read,                \
 .end_read = wiredtiger_end_read, .close = wiredtiger_close,                  \
 .explain = wiredtiger_explain

const struct bench_system bench_wiredtiger = {
    .name = "wiredtiger",
    .what =
        "WiredTiger, one table, 4 KiB leaves, overwrite=false, all changed pages stay in "
        "the cache",
    .durably =
        "log written and synced at commit, zero_fill, method=fsync; nondurable: no log",
    .abilities = BENCH_THREADS | BENCH_NONDURABLE | BENCH_KEEPS,
    .open = wiredtiger_fsync_open,
    WIREDTIGER_OPERATIONS,
};

const struct bench_system bench_wiredtiger_dsync = {
    .name = "wiredtiger-dsync",
    .what = "the same, its log opened with O_DSYNC",
    .durably = "log written through at commit, zero_fill, method=dsync",
    .abilities = BENCH_THREADS | BENCH_KEEPS,
    .open = wiredtiger_dsync_open,
    WIREDTIGER_OPERATIONS,
};
