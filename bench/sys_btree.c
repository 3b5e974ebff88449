/* SPDX-License-Identifier: MIT */
/*
 * sys_btree.c -- our B+-tree on a transactional segment of libxac.
 *
 * WHAT      One environment, one segment, trees/btree.h; each insert is one transaction,
 *           which the tree repeats until it commits.
 * DURABLE   xInit(DURABLE): the log is on disk before the insert returns.
 * NOT       xInit(NONDURABLE): no log at all.
 */
#include <config.h>

#include "system.h"
#include "util.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "trees/btree.h"

/* Records visited in one query: bounds the pages that a query holds. */
#define SCAN_CHUNK 4096u

struct xac_tree {
    struct btree tree;
    char file[PATH_MAX];
};

/* A piece of a scan. */
struct chunk {
    bench_visit *visit;
    void *arg;
    unsigned n;    /* records seen in this query                                     */
    int rc;        /* what visit returned                                            */
    uint64_t last; /* the last key seen                                              */
};

/* make_tree -- create it (first) or open it; ret 0 or a code. */
static int
make_tree(struct xac_tree *x, const struct bench_config *config, bool first)
{
    const struct btree_config sizes = {.key_size = BENCH_KEY_BYTES,
                                       .value_size = BENCH_VALUE_BYTES,
                                       .block_size = (uint32_t)config->block_bytes};
    size_t size = bench_tree_bytes(config->count, config->block_bytes);
    void *base = xac_mmap(x->file, size);
    int rc;

    if (base == MAP_FAILED)
        return errno;
    if (first)
        rc = btree_create(&x->tree, base, size, &sizes);
    else
        rc = btree_open(&x->tree, base, size);
    x->tree.hints = config->hints;
    return rc;
}

static int
btree_system_open(const struct bench_config *config, bool first, void **handlep)
{
    struct xac_tree *x = calloc(1, sizeof *x);
    char env[PATH_MAX];
    int rc;

    if (x == NULL)
        return ENOMEM;
    snprintf(env, sizeof env, "%s/env", config->dir);
    snprintf(x->file, sizeof x->file, "%s/insert.tree", config->dir);
    rc = xac_set_option(XAC_OPT_CHECKPOINT_BYTES, config->checkpoint_bytes);
    if (rc == 0)
        rc = xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, config->log_file_bytes);
    if (rc == 0)
        rc = xac_init(env, config->durable ? XAC_DURABLE : XAC_NONDURABLE);
    if (rc == 0) {
        rc = make_tree(x, config, first);
        if (rc != 0)
            (void)xac_shutdown();
    }
    if (rc != 0) {
        free(x);
        return rc;
    }
    *handlep = x;
    return 0;
}

static int
btree_system_close(void *handle)
{
    struct xac_tree *x = handle;
    int rc = xac_munmap(x->file);
    int rc2 = xac_shutdown();

    free(x);
    return rc != 0 ? rc : rc2;
}

static int
btree_system_insert(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    struct xac_tree *x = handle;

    (void)retriesp; /* counted by the library */
    return btree_insert(&x->tree, key, value, TREE_ADD, NULL);
}

static int
btree_system_find(void *handle, const void *key, void *value)
{
    struct xac_tree *x = handle;

    return btree_search(&x->tree, key, value);
}

/* visit_chunk -- callback of btree_scan(); stops it when the chunk is full. */
static int
visit_chunk(void *arg, const void *key, const void *value)
{
    struct chunk *c = arg;

    c->rc = c->visit(c->arg, key, value);
    c->last = tree_u64_key(key);
    c->n++;
    return c->rc != 0 || c->n == SCAN_CHUNK;
}

static int
btree_system_scan(void *handle, bench_visit *visit, void *arg)
{
    struct xac_tree *x = handle;
    struct chunk c = {.visit = visit, .arg = arg};
    unsigned char from[BENCH_KEY_BYTES] = {0};
    int rc;

    do {
        c.n = 0;
        rc = btree_scan(&x->tree, from, NULL, visit_chunk, &c);
        if (c.rc != 0 || rc == 0 || c.n != SCAN_CHUNK)
            return c.rc != 0 ? c.rc : rc;
        tree_key_u64(c.last + 1, from);
    } while (c.last != UINT64_MAX);
    return 0;
}

static int
btree_system_counters(void *handle, struct bench_counters *out)
{
    struct xac_stats st;
    int rc = xac_get_stats(&st);

    (void)handle;
    if (rc != 0)
        return rc;
    out->log_bytes = st.log_bytes;
    out->syncs = st.log_syncs;
    out->traps = st.traps_read + st.traps_write;
    out->retries = st.aborts_conflict + st.aborts_other;
    return 0;
}

/* btree_system_explain -- with the particulars where libxac has some. */
static const char *
btree_system_explain(int code)
{
    static char text[600];
    const char *more = xac_last_error();

    snprintf(text, sizeof text, "%s%s%s", xac_strerror(code), *more != '\0' ? ": " : "",
             more);
    return text;
}

/* btree_stay_open -- the same, the segment readable between transactions. */
static int
btree_stay_open(const struct bench_config *config, bool first, void **handlep)
{
    int rc = xac_set_option(XAC_OPT_STAY_MAPPED, 1);

    return rc != 0 ? rc : btree_system_open(config, first, handlep);
}

const struct bench_system bench_btree_stay = {
    .name = "btree-stay",
    .what = "btree with XAC_OPT_STAY_MAPPED: no traps for reads while alone",
    .durably = "as btree",
    .abilities = BENCH_NONDURABLE | BENCH_HINTS | BENCH_KEEPS,
    .open = btree_stay_open,
    .insert = btree_system_insert,
    .find = btree_system_find,
    .scan = btree_system_scan,
    .counters = btree_system_counters,
    .close = btree_system_close,
    .explain = btree_system_explain,
};

const struct bench_system bench_btree = {
    .name = "btree",
    .what = "libxac: B+-tree of trees/btree.c, one transaction per insert",
    .durably = "log written and synced at each commit; nondurable: no log",
    .abilities = BENCH_MULTI | BENCH_NONDURABLE | BENCH_HINTS | BENCH_KEEPS,
    .open = btree_system_open,
    .insert = btree_system_insert,
    .find = btree_system_find,
    .scan = btree_system_scan,
    .counters = btree_system_counters,
    .close = btree_system_close,
    .explain = btree_system_explain,
};
