/* SPDX-License-Identifier: MIT */
/*
 * sys_undo.c -- the B+-tree built without libxac on a store with before-images (undo.h); one process.
 */
#include <config.h>

#include "bench/kit/system.h"
#include "bench/kit/util.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/systems/tree_kind.h"
#include "bench/systems/undo.h"

struct undo_tree {
    struct bench_undo undo;
    union bench_tree tree;
};

static int
undo_close(void *handle)
{
    struct undo_tree *t = handle;
    int rc = bench_undo_close(&t->undo);

    free(t);
    return rc;
}

/* make_tree -- in a transaction; ret 0 or a code. */
static int
make_tree(struct undo_tree *t, const struct bench_tree_config *sizes)
{
    int rc = bench_undo_begin(&t->undo);

    if (rc == 0)
        rc = bench_kind_btree_serial.create(&t->tree, t->undo.base, t->undo.size, sizes);
    return rc != 0 ? rc : bench_undo_commit(&t->undo);
}

static int
undo_open(const struct bench_config *config, bool first, void **handlep)
{
    const struct bench_tree_config sizes = {.count = config->count,
                                            .key_size = BENCH_KEY_BYTES,
                                            .value_size = BENCH_VALUE_BYTES,
                                            .block_size = (uint32_t)config->block_bytes};
    struct undo_tree *t = calloc(1, sizeof *t);
    char path[PATH_MAX];
    int rc;

    if (t == NULL)
        return ENOMEM;
    snprintf(path, sizeof path, "%s/insert.tree", config->dir);
    rc = bench_undo_open(&t->undo, path, bench_kind_btree_serial.size(&sizes),
                         config->system == &bench_undo_rms);
    if (rc == 0)
        rc = first ? make_tree(t, &sizes)
                   : bench_kind_btree_serial.open(&t->tree, t->undo.base, t->undo.size);
    if (rc != 0)
        (void)undo_close(t);
    else
        *handlep = t;
    return rc;
}

/* update -- insert or put; what fails has changed nothing. */
static int
update(struct undo_tree *t, const void *key, const void *value, int mode)
{
    int rc = bench_undo_begin(&t->undo), rc2;

    if (rc != 0)
        return rc;
    rc = bench_kind_btree_serial.insert(&t->tree, key, value, mode);
    rc2 = bench_undo_commit(&t->undo);
    return rc != 0 ? rc : rc2;
}

static int
undo_insert(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    (void)retriesp;
    return update(handle, key, value, TREE_ADD);
}

static int
undo_put(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    (void)retriesp;
    return update(handle, key, value, TREE_PUT);
}

static int
undo_find(void *handle, const void *key, void *value)
{
    struct undo_tree *t = handle;

    return bench_kind_btree_serial.search(&t->tree, key, value);
}

static int
undo_scan(void *handle, const void *from, bench_visit *visit, void *arg)
{
    struct undo_tree *t = handle;

    return bench_kind_btree_serial.scan(&t->tree, from, visit, arg);
}

static int
undo_counters(void *handle, struct bench_counters *out)
{
    const struct undo_tree *t = handle;

    out->syncs = t->undo.syncs;
    out->log_bytes = t->undo.log_bytes;
    out->traps = t->undo.traps;
    return 0;
}

static const char *
undo_explain(int code)
{
    return strerror(code);
}

#define UNDO                                                                           \
 .abilities = BENCH_KEEPS, .open = undo_open, .insert = undo_insert, .put = undo_put,  \
 .find = undo_find, .scan = undo_scan, .counters = undo_counters, .close = undo_close, \
 .explain = undo_explain

const struct bench_system bench_undo_rms = {
    .name = "undo-rms",
    .what = "the same B+-tree on before-images as in RMS, each synced before the store",
    .durably = "a sync for each page; then its pages are synced, then the log's end",
    UNDO,
};

const struct bench_system bench_undo_rhino = {
    .name = "undo-rhino",
    .what =
        "the same as in Rhino, without a system that asks before it writes a page out: a "
        "lower bound",
    .durably =
        "before-images synced once, then the pages, then the log's end; a machine that "
        "fails may tear the tree",
    UNDO,
};
