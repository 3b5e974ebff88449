/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "bench/systems/tree_kind.h"

#include <errno.h>

#include "bench/kit/util.h"

/* Bytes of a segment for a B+-tree. */
static size_t
btree_segment(const struct bench_tree_config *config)
{
    return bench_tree_bytes(config->count, config->key_size + config->value_size,
                            config->block_size);
}

static size_t
cobtree_segment(const struct bench_tree_config *config)
{
    const struct cobtree_config sizes = {config->key_size, config->value_size};

    return cobtree_size(&sizes, config->count);
}

static void
btree_set_hints(union bench_tree *t, bool on)
{
    t->btree.hints = on;
}

static void
cobtree_set_hints(union bench_tree *t, bool on)
{
    t->cobtree.hints = on;
}

/*
 * The functions of one tree in one build, and the table of them.
 *
 *   kind    name of the table's members here
 *   member  of union bench_tree
 *   call    prefix of the tree's functions
 */
#define TREE_KIND(kind, member, call)                                                   \
 static int of_##kind##_open(union bench_tree *t, void *base, size_t size)              \
 {                                                                                      \
  return call##_open(&t->member, base, size);                                           \
 }                                                                                      \
                                                                                        \
 static int of_##kind##_insert(union bench_tree *t, const void *key, const void *value, \
                               int mode)                                                \
 {                                                                                      \
  return call##_insert(&t->member, key, value, mode, NULL);                             \
 }                                                                                      \
                                                                                        \
 static int of_##kind##_search(union bench_tree *t, const void *key, void *value)       \
 {                                                                                      \
  return call##_search(&t->member, key, value);                                         \
 }                                                                                      \
                                                                                        \
 static int of_##kind##_scan(union bench_tree *t, const void *from, tree_visit *visit,  \
                             void *arg)                                                 \
 {                                                                                      \
  return call##_scan(&t->member, from, NULL, visit, arg);                               \
 }                                                                                      \
                                                                                        \
 const struct bench_tree_kind bench_kind_##kind = {                                     \
     .size = member##_segment,                                                          \
     .create = of_##kind##_create,                                                      \
     .open = of_##kind##_open,                                                          \
     .insert = of_##kind##_insert,                                                      \
     .load = of_##kind##_load,                                                          \
     .search = of_##kind##_search,                                                      \
     .scan = of_##kind##_scan,                                                          \
     .set_hints = member##_set_hints,                                                   \
 }

/* The B+-tree as xac-cc compiles it (Makefile.inc). */
extern __typeof__(btree_create) compiled_btree_create;
extern __typeof__(btree_open) compiled_btree_open;
extern __typeof__(btree_insert) compiled_btree_insert;
extern __typeof__(btree_load) compiled_btree_load;
extern __typeof__(btree_search) compiled_btree_search;
extern __typeof__(btree_scan) compiled_btree_scan;

/* The serial trees with a call in front of each access (bench/simulate/traced.h). */
extern __typeof__(btree_create) traced_btree_serial_create;
extern __typeof__(btree_open) traced_btree_serial_open;
extern __typeof__(btree_insert) traced_btree_serial_insert;
extern __typeof__(btree_load) traced_btree_serial_load;
extern __typeof__(btree_search) traced_btree_serial_search;
extern __typeof__(btree_scan) traced_btree_serial_scan;
extern __typeof__(cobtree_create) traced_cobtree_serial_create;
extern __typeof__(cobtree_open) traced_cobtree_serial_open;
extern __typeof__(cobtree_insert) traced_cobtree_serial_insert;
extern __typeof__(cobtree_load) traced_cobtree_serial_load;
extern __typeof__(cobtree_search) traced_cobtree_serial_search;
extern __typeof__(cobtree_scan) traced_cobtree_serial_scan;

/* The settings of a B+-tree. */
static struct btree_config
btree_settings(const struct bench_tree_config *config)
{
    return (struct btree_config){.key_size = config->key_size,
                                 .value_size = config->value_size,
                                 .block_size = config->block_size,
                                 .allocation = config->scattered ? BTREE_SCATTERED
                                                                 : BTREE_SEQUENTIAL};
}

static int
btree_create_it(union bench_tree *t, void *base, size_t size,
                const struct bench_tree_config *config, __typeof__(btree_create) *create)
{
    const struct btree_config sizes = btree_settings(config);

    return create(&t->btree, base, size, &sizes);
}

static int
cobtree_create_it(union bench_tree *t, void *base, size_t size,
                  const struct bench_tree_config *config,
                  __typeof__(cobtree_create) *create)
{
    const struct cobtree_config sizes = {config->key_size, config->value_size};

    return create(&t->cobtree, base, size, &sizes);
}

static int
btree_load_it(union bench_tree *t, tree_source *source, void *arg, uint64_t count,
              __typeof__(btree_load) *load)
{
    uint64_t n;
    int rc = load(&t->btree, source, arg, 100, &n);

    return rc != 0 || n == count ? rc : EINVAL;
}

static int
cobtree_load_it(union bench_tree *t, tree_source *source, void *arg, uint64_t count,
                __typeof__(cobtree_load) *load)
{
    return load(&t->cobtree, source, arg, count, 100);
}

/* What has other parameters in each tree. */
#define MAKERS(kind, tree, call)                                                  \
 static int of_##kind##_create(union bench_tree *t, void *base, size_t size,      \
                               const struct bench_tree_config *config)            \
 {                                                                                \
  return tree##_create_it(t, base, size, config, call##_create);                  \
 }                                                                                \
                                                                                  \
 static int of_##kind##_load(union bench_tree *t, tree_source *source, void *arg, \
                             uint64_t count)                                      \
 {                                                                                \
  return tree##_load_it(t, source, arg, count, call##_load);                      \
 }

MAKERS(btree_txn, btree, btree)
MAKERS(btree_serial, btree, btree_serial)
MAKERS(cobtree_txn, cobtree, cobtree)
MAKERS(cobtree_serial, cobtree, cobtree_serial)

TREE_KIND(btree_txn, btree, btree);
TREE_KIND(btree_serial, btree, btree_serial);
TREE_KIND(cobtree_txn, cobtree, cobtree);
TREE_KIND(cobtree_serial, cobtree, cobtree_serial);

#ifdef HAVE_COMPILED
MAKERS(btree_compiled, btree, compiled_btree)
TREE_KIND(btree_compiled, btree, compiled_btree);

MAKERS(btree_traced, btree, traced_btree_serial)
MAKERS(cobtree_traced, cobtree, traced_cobtree_serial)
TREE_KIND(btree_traced, btree, traced_btree_serial);
TREE_KIND(cobtree_traced, cobtree, traced_cobtree_serial);
#endif
