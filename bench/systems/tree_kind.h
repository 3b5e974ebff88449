/* SPDX-License-Identifier: MIT */
/*
 * tree_kind.h -- our trees behind one interface, for what measures them all alike.
 *
 * WHAT      Two trees (trees/btree.h, trees/cobtree.h), each in two builds: transactional
 *           on libxac, and serial on plain memory; the first one also as xac-cc compiles it; both
 *           serial with each access noted (bench/simulate/traced.h).
 */
#ifndef XBENCH_TREE_KIND_H
#define XBENCH_TREE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trees/btree.h"
#include "trees/cobtree.h"

/* What is chosen when a tree is made. */
struct bench_tree_config {
    uint64_t count; /* entries that it must have room for                            */
    uint32_t key_size;
    uint32_t value_size;
    uint32_t block_size; /* bytes; the cache-oblivious tree has none                 */
    bool scattered;      /* blocks anywhere in the segment; likewise                 */
};

/* A handle of either. */
union bench_tree {
    struct btree btree;
    struct cobtree cobtree;
};

struct bench_tree_kind {
    /* Bytes of a segment for it, a multiple of the page and of the block. */
    size_t (*size)(const struct bench_tree_config *config);

    /* As in trees/btree.h; load leaves nothing free, or as little as the tree can. */
    int (*create)(union bench_tree *t, void *base, size_t size,
                  const struct bench_tree_config *config);
    int (*open)(union bench_tree *t, void *base, size_t size);
    int (*insert)(union bench_tree *t, const void *key, const void *value, int mode);
    int (*load)(union bench_tree *t, tree_source *source, void *arg, uint64_t count);
    int (*search)(union bench_tree *t, const void *key, void *value);
    int (*scan)(union bench_tree *t, const void *from, tree_visit *visit, void *arg);
    void (*set_hints)(union bench_tree *t, bool on);
};

extern const struct bench_tree_kind bench_kind_btree_txn;
extern const struct bench_tree_kind bench_kind_btree_serial;
extern const struct bench_tree_kind bench_kind_btree_compiled; /* if HAVE_COMPILED */
extern const struct bench_tree_kind bench_kind_cobtree_txn;
extern const struct bench_tree_kind bench_kind_cobtree_serial;
extern const struct bench_tree_kind bench_kind_btree_traced;   /* if HAVE_COMPILED */
extern const struct bench_tree_kind bench_kind_cobtree_traced; /* if HAVE_COMPILED */

#endif /* XBENCH_TREE_KIND_H */
