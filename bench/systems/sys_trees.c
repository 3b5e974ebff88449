/* SPDX-License-Identifier: MIT */
/*
 * sys_trees.c -- our trees on a transactional segment of libxac.
 *
 * WHAT      A tree (tree_kind.h) on one segment (sys_xac.h); each insert is one
 *           transaction, which the tree repeats until it commits; each search is a query.
 */
#include <config.h>

#include "bench/kit/util.h"
#include "bench/systems/sys_xac.h"
#include "bench/systems/tree_kind.h"

#include <errno.h>
#include <stdlib.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

/* Records visited in one query: bounds the pages that a query holds. */
#define SCAN_CHUNK 4096u

/* Bytes of log between the checkpoints of btree-ckpt. */
#define CKPT_BYTES (UINT64_C(1) << 20)

struct xac_tree {
    const struct bench_tree_kind *kind;
    union bench_tree tree;
    struct xac_segment segment;
};

/* open_kind -- segment and tree; ret 0 or a code. */
static int
open_kind(const struct bench_tree_kind *kind, const struct bench_config *config,
          bool first, void **handlep)
{
    const struct bench_tree_config sizes = {.count = config->count,
                                            .key_size = BENCH_KEY_BYTES,
                                            .value_size = BENCH_VALUE_BYTES,
                                            .block_size = (uint32_t)config->block_bytes};
    size_t size = kind->size(&sizes);
    struct xac_tree *x = calloc(1, sizeof *x);
    int rc;

    if (x == NULL)
        return ENOMEM;
    x->kind = kind;
    rc = bench_xac_open(&x->segment, config, size);
    if (rc == 0) {
        if (first)
            rc = kind->create(&x->tree, x->segment.base, size, &sizes);
        else
            rc = kind->open(&x->tree, x->segment.base, size);
        if (rc != 0)
            (void)bench_xac_close(&x->segment);
    }
    if (rc != 0) {
        free(x);
        return rc;
    }
    kind->set_hints(&x->tree, config->hints);
    *handlep = x;
    return 0;
}

static int
trees_close(void *handle)
{
    struct xac_tree *x = handle;
    int rc = bench_xac_close(&x->segment);

    free(x);
    return rc;
}

static int
trees_insert(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    struct xac_tree *x = handle;

    (void)retriesp; /* counted by the library */
    return x->kind->insert(&x->tree, key, value, TREE_ADD);
}

static int
trees_put(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    struct xac_tree *x = handle;

    (void)retriesp;
    return x->kind->insert(&x->tree, key, value, TREE_PUT);
}

static int
trees_find(void *handle, const void *key, void *value)
{
    struct xac_tree *x = handle;

    return x->kind->search(&x->tree, key, value);
}

/* A piece of a scan. */
struct chunk {
    bench_visit *visit;
    void *arg;
    unsigned n;    /* records seen in this query                                     */
    int rc;        /* what visit returned                                            */
    uint64_t last; /* the last key seen                                              */
};

/* visit_chunk -- callback of a scan; stops it when the chunk is full. */
static int
visit_chunk(void *arg, const void *key, const void *value)
{
    struct chunk *c = arg;

    c->rc = c->visit(c->arg, key, value);
    c->last = tree_u64_key(key);
    c->n++;
    return c->rc != 0 || c->n == SCAN_CHUNK;
}

/* trees_scan -- in queries of SCAN_CHUNK. */
static int
trees_scan(void *handle, const void *from, bench_visit *visit, void *arg)
{
    struct xac_tree *x = handle;
    struct chunk c = {.visit = visit, .arg = arg};
    unsigned char next[BENCH_KEY_BYTES];
    int rc;

    do {
        c.n = 0;
        rc = x->kind->scan(&x->tree, from, visit_chunk, &c);
        if (c.rc != 0 || rc == 0 || c.n != SCAN_CHUNK)
            return c.rc != 0 ? c.rc : rc;
        tree_key_u64(c.last + 1, next);
        from = next;
    } while (c.last != UINT64_MAX);
    return 0;
}

/* open_checking -- open_kind, with that value of XAC_OPT_CHECKING. */
static int
open_checking(enum xac_checking checking, const struct bench_tree_kind *kind,
              const struct bench_config *config, bool first, void **handlep)
{
    int rc = xac_set_option(XAC_OPT_CHECKING, checking);

    return rc != 0 ? rc : open_kind(kind, config, first, handlep);
}

static int
btree_system_open(const struct bench_config *config, bool first, void **handlep)
{
    return open_checking(XAC_CHECKING_STRICT, &bench_kind_btree_txn, config, first,
                         handlep);
}

static int
cobtree_system_open(const struct bench_config *config, bool first, void **handlep)
{
    return open_checking(XAC_CHECKING_STRICT, &bench_kind_cobtree_txn, config, first,
                         handlep);
}

/* btree_stay_open -- the same, the segment readable between transactions. */
static int
btree_stay_open(const struct bench_config *config, bool first, void **handlep)
{
    return open_checking(XAC_CHECKING_FAST, &bench_kind_btree_txn, config, first,
                         handlep);
}

static int
cobtree_stay_open(const struct bench_config *config, bool first, void **handlep)
{
    return open_checking(XAC_CHECKING_FAST, &bench_kind_cobtree_txn, config, first,
                         handlep);
}

/* btree_declared_open -- btree_stay_open, and the tree has promised to announce every store. */
static int
btree_declared_open(const struct bench_config *config, bool first, void **handlep)
{
    struct bench_config hints = *config;

    hints.hints = true;
    return open_checking(XAC_CHECKING_TRUSTED, &bench_kind_btree_txn, &hints, first,
                         handlep);
}

/* btree_ckpt_open -- btree with checkpoints all the time. */
static int
btree_ckpt_open(const struct bench_config *config, bool first, void **handlep)
{
    struct bench_config often = *config;

    often.checkpoint_bytes = CKPT_BYTES;
    return btree_system_open(&often, first, handlep);
}

/* btree_sums_open -- the same, and checksums of pages are kept. */
static int
btree_sums_open(const struct bench_config *config, bool first, void **handlep)
{
    int rc = xac_set_option(XAC_OPT_PAGE_CHECKSUMS, 1);

    return rc != 0 ? rc : btree_ckpt_open(config, first, handlep);
}

/* btree_diffs_open -- the same without full images. */
static int
btree_diffs_open(const struct bench_config *config, bool first, void **handlep)
{
    int rc = xac_set_option(XAC_OPT_FULL_IMAGES, 0);

    return rc != 0 ? rc : btree_ckpt_open(config, first, handlep);
}

/* What all of them have in common. */
#define TREES_OPERATIONS                                                           \
 .insert = trees_insert, .put = trees_put, .find = trees_find, .scan = trees_scan, \
 .begin_read = bench_xac_begin_read, .end_read = bench_xac_end_read,               \
 .counters = bench_xac_counters, .close = trees_close, .explain = bench_xac_explain

const struct bench_system bench_btree = {
    .name = "btree",
    .what =
        "libxac: B+-tree of trees/btree.c, an insert a transaction, XAC_CHECKING_STRICT",
    .durably = "log written and synced at each commit; nondurable: no log",
    .abilities = BENCH_MULTI | BENCH_NONDURABLE | BENCH_HINTS | BENCH_KEEPS,
    .open = btree_system_open,
    TREES_OPERATIONS,
};

const struct bench_system bench_btree_ckpt = {
    .name = "btree-ckpt",
    .what = "btree with a checkpoint for each MiB of log, whatever --checkpoint says",
    .durably = "as btree",
    .abilities = BENCH_MULTI | BENCH_HINTS | BENCH_KEEPS,
    .open = btree_ckpt_open,
    TREES_OPERATIONS,
};

const struct bench_system bench_btree_sums = {
    .name = "btree-sums",
    .what = "btree-ckpt with XAC_OPT_PAGE_CHECKSUMS",
    .durably = "as btree",
    .abilities = BENCH_MULTI | BENCH_HINTS | BENCH_KEEPS,
    .open = btree_sums_open,
    TREES_OPERATIONS,
};

const struct bench_system bench_btree_diffs = {
    .name = "btree-diffs",
    .what = "btree-ckpt with XAC_OPT_FULL_IMAGES 0: no full images in the log",
    .durably = "as btree, if pages are written as a whole",
    .abilities = BENCH_MULTI | BENCH_HINTS | BENCH_KEEPS,
    .open = btree_diffs_open,
    TREES_OPERATIONS,
};

const struct bench_system bench_btree_stay = {
    .name = "btree-stay",
    .what = "btree with XAC_CHECKING_FAST: no traps for reads while alone",
    .durably = "as btree",
    .abilities = BENCH_NONDURABLE | BENCH_HINTS | BENCH_KEEPS,
    .open = btree_stay_open,
    TREES_OPERATIONS,
};

const struct bench_system bench_btree_declared = {
    .name = "btree-declared",
    .what = "btree-stay with XAC_CHECKING_TRUSTED: stores are noticed by hints only",
    .durably = "as btree",
    .abilities = BENCH_NONDURABLE | BENCH_KEEPS,
    .open = btree_declared_open,
    TREES_OPERATIONS,
};

const struct bench_system bench_cobtree = {
    .name = "cobtree",
    .what =
        "libxac: cache-oblivious B-tree of trees/cobtree.c, one transaction per insert",
    .durably = "log written and synced at each commit; nondurable: no log",
    .abilities = BENCH_MULTI | BENCH_NONDURABLE | BENCH_HINTS | BENCH_KEEPS,
    .open = cobtree_system_open,
    TREES_OPERATIONS,
};

const struct bench_system bench_cobtree_stay = {
    .name = "cobtree-stay",
    .what = "cobtree with XAC_CHECKING_FAST: no traps for reads while alone",
    .durably = "as cobtree",
    .abilities = BENCH_NONDURABLE | BENCH_HINTS | BENCH_KEEPS,
    .open = cobtree_stay_open,
    TREES_OPERATIONS,
};
