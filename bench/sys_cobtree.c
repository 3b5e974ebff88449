/* SPDX-License-Identifier: MIT */
/*
 * sys_cobtree.c -- our cache-oblivious B-tree on a transactional segment of libxac.
 *
 * WHAT      trees/cobtree.h on one segment (sys_xac.h); each insert is one transaction,
 *           which the tree repeats until it commits.
 */
#include <config.h>

#include "sys_xac.h"
#include "util.h"

#include <errno.h>
#include <stdlib.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "trees/cobtree.h"

struct xac_tree {
    struct cobtree tree;
    struct xac_segment segment;
};

static int
cobtree_system_open(const struct bench_config *config, bool first, void **handlep)
{
    const struct cobtree_config sizes = {.key_size = BENCH_KEY_BYTES,
                                         .value_size = BENCH_VALUE_BYTES};
    size_t size = cobtree_size(&sizes, config->count);
    struct xac_tree *x = calloc(1, sizeof *x);
    int rc;

    if (x == NULL)
        return ENOMEM;
    rc = bench_xac_open(&x->segment, config, size);
    if (rc == 0) {
        if (first)
            rc = cobtree_create(&x->tree, x->segment.base, size, &sizes);
        else
            rc = cobtree_open(&x->tree, x->segment.base, size);
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
cobtree_system_close(void *handle)
{
    struct xac_tree *x = handle;
    int rc = bench_xac_close(&x->segment);

    free(x);
    return rc;
}

static int
cobtree_system_insert(void *handle, const void *key, const void *value,
                      uint64_t *retriesp)
{
    struct xac_tree *x = handle;

    (void)retriesp; /* counted by the library */
    return cobtree_insert(&x->tree, key, value, TREE_ADD, NULL);
}

static int
cobtree_system_find(void *handle, const void *key, void *value)
{
    struct xac_tree *x = handle;

    return cobtree_search(&x->tree, key, value);
}

static int
scan_from(void *tree, const void *from, tree_visit *visit, void *arg)
{
    return cobtree_scan(tree, from, NULL, visit, arg);
}

static int
cobtree_system_scan(void *handle, bench_visit *visit, void *arg)
{
    struct xac_tree *x = handle;

    return bench_xac_scan(&x->tree, scan_from, visit, arg);
}

const struct bench_system bench_cobtree = {
    .name = "cobtree",
    .what =
        "libxac: cache-oblivious B-tree of trees/cobtree.c, one transaction per insert",
    .durably = "log written and synced at each commit; nondurable: no log",
    .abilities = BENCH_MULTI | BENCH_NONDURABLE | BENCH_HINTS | BENCH_KEEPS,
    .open = cobtree_system_open,
    .insert = cobtree_system_insert,
    .find = cobtree_system_find,
    .scan = cobtree_system_scan,
    .counters = bench_xac_counters,
    .close = cobtree_system_close,
    .explain = bench_xac_explain,
};
