/* SPDX-License-Identifier: MIT */
/*
 * btree_node.h -- what the sources of the B+-tree share: changing a node, following a key.
 *
 * WHAT      Announced access to nodes, entries put into and taken out of one node, descent.
 * NOT HERE  The bytes (btree_layout.h), anything that concerns two nodes at a time.
 */
#ifndef TREES_BTREE_NODE_H
#define TREES_BTREE_NODE_H

#include "btree_layout.h"

/* Nodes from the root down to a leaf. */
struct path {
    unsigned depth;                  /* nodes; the last is the leaf                   */
    uint32_t block[BTREE_DEPTH_MAX]; /* block numbers                                 */
    unsigned pos[BTREE_DEPTH_MAX];   /* index of the child followed                   */
};

/* A node about to be read, or about to be changed. */
static inline struct btree_node *
node_read(const struct btree *t, uint32_t block)
{
    struct btree_node *node = node_of(t, block);

    tree_hint(t->hints, node, TREE_READ);
    return node;
}

static inline struct btree_node *
node_write(const struct btree *t, uint32_t block)
{
    struct btree_node *node = node_of(t, block);

    tree_hint(t->hints, node, TREE_READ_WRITE);
    return node;
}

/* Make an empty node of the block, whatever it held. */
static inline struct btree_node *
node_init(const struct btree *t, uint32_t block, unsigned level)
{
    struct btree_node *node = node_write(t, block);
    unsigned cap = cap_of(t, level);

    node->level = (uint16_t)level;
    node->zero = 0;
    node->link = 0;
    node->self = block;
    node->zero2 = 0;
    node->n = 0;
    for (unsigned i = 0; i < cap; i++)
        node->slots[i] = (uint16_t)i;
    return node;
}

/* Open a gap for a new entry of rank i.  ret its cell, to be filled in. */
static inline unsigned
slot_open(struct btree_node *node, unsigned i)
{
    uint16_t cell = node->slots[node->n];

    memmove(&node->slots[i + 1], &node->slots[i], (node->n - i) * sizeof cell);
    node->slots[i] = cell;
    node->n++;
    return cell;
}

/* Take the entry of rank i out; its cell keeps its bytes and becomes free. */
static inline void
slot_close(struct btree_node *node, unsigned i)
{
    uint16_t cell = node->slots[i];

    node->n--;
    memmove(&node->slots[i], &node->slots[i + 1], (node->n - i) * sizeof cell);
    node->slots[node->n] = cell;
}

/* Write an entry of rank i into a leaf that has room.  `value` NULL: size 0. */
static inline void
leaf_put(const struct btree *t, struct btree_node *leaf, unsigned i, const void *key,
         const void *value)
{
    unsigned cell = slot_open(leaf, i);
    unsigned char *k = cell_key(t, leaf, cell), *v = cell_value(t, leaf, cell);

    tree_hint(t->hints && t->block_size > BTREE_PAGE, k, TREE_READ_WRITE);
    memcpy(k, key, t->key_size);
    if (t->value_size == 0)
        return;
    tree_hint(t->hints && t->block_size > BTREE_PAGE, v, TREE_READ_WRITE);
    memcpy(v, value, t->value_size);
}

/* Write key i, and the child right of it, into an inner node that has room. */
static inline void
inner_put(const struct btree *t, struct btree_node *inner, unsigned i, const void *key,
          uint32_t child)
{
    unsigned cell = slot_open(inner, i);

    memcpy(cell_key(t, inner, cell), key, t->key_size);
    *cell_child(t, inner, cell) = child;
}

/* Append entries from .. n-1 of one node to another of its level. */
static inline void
node_append(const struct btree *t, struct btree_node *to, const struct btree_node *node,
            unsigned from)
{
    for (unsigned i = from; i < node->n; i++) {
        unsigned cell = node->slots[i];

        if (node->level == 0)
            leaf_put(t, to, to->n, cell_key(t, node, cell), cell_value(t, node, cell));
        else
            inner_put(t, to, to->n, cell_key(t, node, cell), *cell_child(t, node, cell));
    }
}

/*
 * Follow `key` (NULL: the leftmost way) to its leaf.
 *
 * in   writing  the leaf is going to be changed
 * out  path     the nodes passed; may be NULL
 */
static inline struct btree_node *
descend(const struct btree *t, const unsigned char *key, bool writing, struct path *path)
{
    uint32_t block = t->root;
    unsigned depth = 0;
    struct btree_node *node = node_read(t, block);

    while (node->level != 0) {
        unsigned pos = key != NULL ? node_rank(t, node, key, 1) : 0;

        if (path != NULL) {
            path->block[depth] = block;
            path->pos[depth++] = pos;
        }
        block = child_at(t, node, pos);
        node = writing && node->level == 1 ? node_write(t, block) : node_read(t, block);
    }
    if (path != NULL) {
        path->block[depth] = block;
        path->depth = depth + 1;
    }
    return node;
}

/* Go on from the node that is last in `path`, always right, to the last leaf below it. */
static inline struct btree_node *
descend_last(const struct btree *t, struct path *path)
{
    struct btree_node *node = node_read(t, path->block[path->depth - 1]);

    while (node->level != 0) {
        path->pos[path->depth - 1] = node->n;
        path->block[path->depth] = child_at(t, node, node->n);
        node = node_read(t, path->block[path->depth++]);
    }
    return node;
}

/* The last leaf of the tree. */
static inline struct btree_node *
last_leaf(const struct btree *t, struct path *path)
{
    path->block[0] = t->root;
    path->depth = 1;
    return descend_last(t, path);
}

/* Whether entry i of a leaf has this key. */
static inline bool
entry_is(const struct btree *t, const struct btree_node *leaf, unsigned i,
         const unsigned char *key)
{
    return i < leaf->n && memcmp(key_at(t, leaf, i), key, t->key_size) == 0;
}

/* ---- Blocks (btree_block.c) ---------------------------------------------------------- */

#ifdef TREE_SERIAL
# define btree_blocks_reserve btree_serial_blocks_reserve
# define btree_block_alloc    btree_serial_block_alloc
# define btree_block_free     btree_serial_block_free
#endif

/* btree_blocks_reserve -- make sure of `need` blocks, change nothing.  ret 0 or ENOSPC. */
int btree_blocks_reserve(const struct btree *t, uint32_t need);

/* btree_block_alloc -- a block that btree_blocks_reserve() has made sure of. */
uint32_t btree_block_alloc(const struct btree *t);

/* btree_block_free -- give a block back to our arena. */
void btree_block_free(const struct btree *t, uint32_t block);

#endif /* TREES_BTREE_NODE_H */
