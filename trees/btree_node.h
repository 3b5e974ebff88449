/* SPDX-License-Identifier: MIT */
/*
 * btree_node.h -- what the sources of the B+-tree share: changing a node, following a key.
 *
 * WHAT      Announced access to nodes, entries put into and taken out of one node or moved
 *           between two, descent.  What takes nodes, not block numbers, also serves trees whose
 *           blocks lie elsewhere (swizzle/).
 * NOT HERE  The bytes (btree_layout.h), where blocks come from (btree_block.c).
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

/*
 * A node about to be read, or about to be changed: of a block larger than a page, what lies
 * before the cells; the function that puts one in announces it.  Every store is announced, see
 * XAC_CHECKING_TRUSTED.
 */
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

    if (t->block_size <= BTREE_PAGE)
        tree_hint(t->hints, node, TREE_READ_WRITE);
    else
        tree_hint_range(t->hints, node,
                        t->leaf_keys > t->inner_keys ? t->leaf_keys : t->inner_keys,
                        TREE_READ_WRITE);
    return node;
}

/* Bytes of a cell that are about to be stored to: node_write() does not reach those of a block
   larger than a page. */
static inline void
announce_in_cell(const struct btree *t, const void *at, size_t size)
{
    tree_hint_range(t->hints && t->block_size > BTREE_PAGE, at, size, TREE_READ_WRITE);
}

/* Make an empty node of these bytes, whatever they held. */
static inline struct btree_node *
node_init_at(const struct btree *t, struct btree_node *node, uint32_t block,
             unsigned level)
{
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

static inline struct btree_node *
node_init(const struct btree *t, uint32_t block, unsigned level)
{
    return node_init_at(t, node_write(t, block), block, level);
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

    announce_in_cell(t, k, t->key_size);
    memcpy(k, key, t->key_size);
    if (t->value_size == 0)
        return;
    announce_in_cell(t, v, t->value_size);
    memcpy(v, value, t->value_size);
}

/* Write key i, and the child right of it, into an inner node that has room. */
static inline void
inner_put(const struct btree *t, struct btree_node *inner, unsigned i, const void *key,
          uint32_t child)
{
    unsigned cell = slot_open(inner, i);
    unsigned char *k = cell_key(t, inner, cell);

    announce_in_cell(t, k, t->key_size);
    memcpy(k, key, t->key_size);
    announce_in_cell(t, cell_child(t, inner, cell), sizeof child);
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

/* ---- Two nodes at a time --------------------------------------------------------------- */

/*
 * leaf_split -- split a leaf and put an entry of rank `pos` into the half that it belongs to.
 *
 * in   right   an empty node, node_init(): the right half
 * in   append  the entry is the last of the tree: leave the leaf as full as it is
 * out  sep     first key of the right half
 */
static inline void
leaf_split(const struct btree *t, struct btree_node *left, struct btree_node *right,
           unsigned pos, const struct tree_request *r, bool append, unsigned char *sep)
{
    unsigned half = append ? left->n : (left->n + 1u) / 2;
    bool goes_left = pos < half;
    unsigned keep = goes_left ? half - 1 : half;

    right->link = left->link;
    node_append(t, right, left, keep);
    left->link = right->self;
    left->n = (uint16_t)keep;
    if (goes_left)
        leaf_put(t, left, pos, r->key, r->value);
    else
        leaf_put(t, right, pos - keep, r->key, r->value);
    memcpy(sep, key_at(t, right, 0), t->key_size);
}

/*
 * inner_split -- split a full inner node and put a key of rank `pos` and its child into one half;
 * the key in the middle goes up.
 *
 * in      right  an empty node: the right half
 * in,out  sep    the key to put; the key that goes up
 * in      child  the child to put
 */
static inline void
inner_split(const struct btree *t, struct btree_node *left, struct btree_node *right,
            unsigned pos, unsigned char *sep, uint32_t child, bool append)
{
    unsigned half = append ? t->inner_cap - 1 : (t->inner_cap + 1) / 2;
    unsigned keep = pos < half ? half - 1 : half;
    unsigned char up[BTREE_KEY_MAX];

    if (pos == half) { /* the new key itself goes up */
        right->link = child;
        node_append(t, right, left, keep);
        left->n = (uint16_t)keep;
        return;
    }
    memcpy(up, key_at(t, left, keep), t->key_size);
    right->link = child_at(t, left, keep + 1);
    node_append(t, right, left, keep + 1);
    left->n = (uint16_t)keep;
    if (pos < half)
        inner_put(t, left, pos, sep, child);
    else
        inner_put(t, right, pos - keep - 1, sep, child);
    memcpy(sep, up, t->key_size);
}

/* Move the last entry of `left` to the front of `right`; `sep` is the key between them. */
static inline void
rotate_right(const struct btree *t, struct btree_node *left, struct btree_node *right,
             unsigned char *sep)
{
    unsigned cell = left->slots[left->n - 1];
    const unsigned char *key = cell_key(t, left, cell);

    announce_in_cell(t, sep, t->key_size);
    if (left->level == 0) {
        leaf_put(t, right, 0, key, cell_value(t, left, cell));
    } else {
        inner_put(t, right, 0, sep, right->link);
        right->link = *cell_child(t, left, cell);
    }
    memcpy(sep, key, t->key_size);
    left->n--;
}

/* Move the first entry of `right` to the end of `left`. */
static inline void
rotate_left(const struct btree *t, struct btree_node *left, struct btree_node *right,
            unsigned char *sep)
{
    unsigned cell = right->slots[0];
    const unsigned char *key = cell_key(t, right, cell);

    announce_in_cell(t, sep, t->key_size);
    if (left->level == 0) {
        leaf_put(t, left, left->n, key, cell_value(t, right, cell));
        slot_close(right, 0);
        memcpy(sep, key_at(t, right, 0), t->key_size);
        return;
    }
    inner_put(t, left, left->n, sep, right->link);
    right->link = *cell_child(t, right, cell);
    memcpy(sep, key, t->key_size);
    slot_close(right, 0);
}

/* Append `right`, with a first key above `sep`, to `left`. */
static inline void
node_merge(const struct btree *t, struct btree_node *left, const struct btree_node *right,
           const unsigned char *sep)
{
    if (left->level == 0)
        left->link = right->link;
    else
        inner_put(t, left, left->n, sep, right->link);
    node_append(t, left, right, 0);
}

/* ---- From the root to a leaf ----------------------------------------------------------- */

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

    if (writing && node->level == 0)
        node = node_write(t, block);
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
