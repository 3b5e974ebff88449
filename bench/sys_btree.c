/* SPDX-License-Identifier: MIT */
/*
 * sys_btree.c -- our B+-tree on a transactional segment of libxac.
 *
 * WHAT      trees/btree.h on one segment (sys_xac.h); each insert is one transaction,
 *           which the tree repeats until it commits.
 */
#include <config.h>

#include "sys_xac.h"
#include "util.h"

#include <errno.h>
#include <stdlib.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "trees/btree.h"

struct xac_tree {
    struct btree tree;
    struct xac_segment segment;
};

static int
btree_system_open(const struct bench_config *config, bool first, void **handlep)
{
    const struct btree_config sizes = {.key_size = BENCH_KEY_BYTES,
                                       .value_size = BENCH_VALUE_BYTES,
                                       .block_size = (uint32_t)config->block_bytes};
    size_t size = bench_tree_bytes(config->count, config->block_bytes);
    struct xac_tree *x = calloc(1, sizeof *x);
    int rc;

    if (x == NULL)
        return ENOMEM;
    rc = bench_xac_open(&x->segment, config, size);
    if (rc == 0) {
        if (first)
            rc = btree_create(&x->tree, x->segment.base, size, &sizes);
        else
            rc = btree_open(&x->tree, x->segment.base, size);
        if (rc != 0)
            (void)bench_xac_close(&x->segment);
    }
    if (rc != 0) {
        free(x);
        return rc;
    }
    x->tree.hints = config->hints;
    *handlep = x;
    return 0;
}

static int
btree_system_close(void *handle)
{
    struct xac_tree *x = handle;
    int rc = bench_xac_close(&x->segment);

    free(x);
    return rc;
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

static int
scan_from(void *tree, const void *from, tree_visit *visit, void *arg)
{
    return btree_scan(tree, from, NULL, visit, arg);
}

static int
btree_system_scan(void *handle, bench_visit *visit, void *arg)
{
    struct xac_tree *x = handle;

    return bench_xac_scan(&x->tree, scan_from, visit, arg);
}

/* btree_stay_open -- the same, the segment readable between transactions. */
static int
btree_stay_open(const struct bench_config *config, bool first, void **handlep)
{
    int rc = xac_set_option(XAC_OPT_STAY_MAPPED, 1);

    return rc != 0 ? rc : btree_system_open(config, first, handlep);
}

/* Bytes of log between the checkpoints of btree-ckpt. */
#define CKPT_BYTES (UINT64_C(1) << 20)

/* btree_ckpt_open -- the same with checkpoints all the time. */
static int
btree_ckpt_open(const struct bench_config *config, bool first, void **handlep)
{
    struct bench_config often = *config;

    often.checkpoint_bytes = CKPT_BYTES;
    return btree_system_open(&often, first, handlep);
}

const struct bench_system bench_btree_ckpt = {
    .name = "btree-ckpt",
    .what = "btree with a checkpoint for each MiB of log, whatever --checkpoint says",
    .durably = "as btree",
    .abilities = BENCH_MULTI | BENCH_HINTS | BENCH_KEEPS,
    .open = btree_ckpt_open,
    .insert = btree_system_insert,
    .find = btree_system_find,
    .scan = btree_system_scan,
    .counters = bench_xac_counters,
    .close = btree_system_close,
    .explain = bench_xac_explain,
};

const struct bench_system bench_btree_stay = {
    .name = "btree-stay",
    .what = "btree with XAC_OPT_STAY_MAPPED: no traps for reads while alone",
    .durably = "as btree",
    .abilities = BENCH_NONDURABLE | BENCH_HINTS | BENCH_KEEPS,
    .open = btree_stay_open,
    .insert = btree_system_insert,
    .find = btree_system_find,
    .scan = btree_system_scan,
    .counters = bench_xac_counters,
    .close = btree_system_close,
    .explain = bench_xac_explain,
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
    .counters = bench_xac_counters,
    .close = btree_system_close,
    .explain = bench_xac_explain,
};
