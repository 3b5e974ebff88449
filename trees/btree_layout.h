/* SPDX-License-Identifier: MIT */
/*
 * btree_layout.h -- bytes of a B+-tree in its segment, and how to find them.
 *
 * WHAT      Structures, block and cell addresses, key order, search in a node.
 * NOT HERE  Changing anything (btree.c), verifying (btree_check.c).
 *
 * The segment is an array of blocks.  Integers are in the machine's byte order; a
 * reference is a block number, 0 means none.  Blocks [0, root) hold the header page and
 * one page per arena, block `root` is the root node for ever, the others are nodes, free
 * or unused.
 *
 * HEADER, page 0 of the segment
 *
 *   OFFSET  SIZE  FIELD       MEANING
 *      0      8   magic       BTREE_MAGIC
 *      8      4   version     BTREE_VERSION
 *     12      4   key_size    bytes
 *     16      4   value_size  bytes
 *     20      4   block_size  bytes
 *     24      4   n_blocks    blocks of the segment
 *     28      4   n_arenas    block pools
 *     32      4   root        block number of the root
 *     36      4   allocation  0 sequential, 1 scattered
 *     40     24   reserved    zero
 *     64      4   high_water  first number that no arena has got so far
 *
 * ARENA a, page 1 + a of the segment: blocks to allocate from
 *
 *      0      4   free_head   first of its free blocks, linked through `link`
 *      4      4   free_count  their number
 *      8      4   chunk_next  [chunk_next, chunk_end) are numbers of unused blocks
 *     12      4   chunk_end
 *
 * Unused blocks are numbered from root + 1 up; btree_block_nth() says which block has which
 * number.  With sequential allocation each block's number is its own.
 *
 * NODE, at the start of its block
 *
 *      0      2   level       0 leaf; 1 and up inner; BTREE_LEVEL_FREE
 *      2      2   zero
 *      4      4   link        leaf: next leaf; inner: leftmost child; free: next free
 *      8      4   self        its own block number
 *     12      2   zero2
 *     14      2   n           entries
 *     16    2*cap slots       a permutation of 0 .. cap-1: the first n are the cells in
 *                             use, in key order; the others are the free cells
 *   then, 8-byte aligned: cap keys; then cap values (leaf) or cap child block numbers of
 *   4 bytes (inner), child i being the one right of key i: its keys are >= key i
 *
 * HISTORY   1  first format; `allocation` was reserved, that is sequential.
 */
#ifndef TREES_BTREE_LAYOUT_H
#define TREES_BTREE_LAYOUT_H

#include <assert.h>

#include "btree.h"
#include "tree_op.h"

#define BTREE_MAGIC      UINT64_C(0x3165657274427878) /* "xxBtree1" */
#define BTREE_VERSION    1u
#define BTREE_PAGE       4096u
#define BTREE_ARENAS     8u
#define BTREE_CHUNK      16u /* blocks that an arena takes at a time */
#define BTREE_DEPTH_MAX  40  /* levels: more than 2^32 blocks can make */
#define BTREE_LEVEL_FREE 0xffffu

struct btree_header {
    uint64_t magic;      /* 00-07 */
    uint32_t version;    /* 08-11 */
    uint32_t key_size;   /* 12-15 */
    uint32_t value_size; /* 16-19 */
    uint32_t block_size; /* 20-23 */
    uint32_t n_blocks;   /* 24-27 */
    uint32_t n_arenas;   /* 28-31 */
    uint32_t root;       /* 32-35 */
    uint32_t allocation; /* 36-39 */
    uint32_t reserved[6];
    uint32_t high_water; /* 64-67 */
};

struct btree_arena {
    uint32_t free_head;
    uint32_t free_count;
    uint32_t chunk_next;
    uint32_t chunk_end;
};

struct btree_node {
    uint16_t level;
    uint16_t zero;
    uint32_t link;
    uint32_t self;
    uint16_t zero2;
    uint16_t n;
    uint16_t slots[];
};

static_assert(offsetof(struct btree_header, high_water) == 64, "header fields");
static_assert(offsetof(struct btree_node, slots) == 16, "node header is 16 bytes");

/* btree_layout_set -- compute a handle's geometry.  ret 0 or EINVAL; *t is then unusable. */
#ifdef TREE_SERIAL
# define btree_layout_set btree_serial_layout_set
#endif
int btree_layout_set(struct btree *t, const struct btree_config *config);

/* btree_block_nth -- the block that has number i, root < i < n_blocks, when first used. */
#ifdef TREE_SERIAL
# define btree_block_nth btree_serial_block_nth
#endif
uint32_t btree_block_nth(const struct btree *t, uint32_t i);

static inline struct btree_header *
header_of(const struct btree *t)
{
    return (struct btree_header *)(void *)t->base;
}

static inline struct btree_arena *
arena_of(const struct btree *t, uint32_t a)
{
    return (struct btree_arena *)(void *)(t->base + (size_t)(1 + a) * BTREE_PAGE);
}

static inline struct btree_node *
node_of(const struct btree *t, uint32_t block)
{
    return (struct btree_node *)(void *)(t->base + (size_t)block * t->block_size);
}

/* Offset of the keys, and number of cells, of a node of this level. */
static inline uint32_t
keys_offset(const struct btree *t, unsigned level)
{
    return level == 0 ? t->leaf_keys : t->inner_keys;
}

static inline uint32_t
cap_of(const struct btree *t, unsigned level)
{
    return level == 0 ? t->leaf_cap : t->inner_cap;
}

/* Fewest entries of a node that is neither the root nor on the right edge. */
static inline uint32_t
min_of(const struct btree *t, unsigned level)
{
    uint32_t quarter = cap_of(t, level) / 4;

    return quarter > 0 ? quarter : 1;
}

/* Address of the key, value or child in a cell. */
static inline unsigned char *
cell_key(const struct btree *t, const struct btree_node *node, unsigned cell)
{
    return (unsigned char *)(uintptr_t)node + keys_offset(t, node->level)
           + (size_t)cell * t->key_size;
}

static inline unsigned char *
cell_value(const struct btree *t, const struct btree_node *leaf, unsigned cell)
{
    return (unsigned char *)(uintptr_t)leaf + t->leaf_values
           + (size_t)cell * t->value_size;
}

static inline uint32_t *
cell_child(const struct btree *t, const struct btree_node *inner, unsigned cell)
{
    return (uint32_t *)(void *)((unsigned char *)(uintptr_t)inner + t->inner_children)
           + cell;
}

/* The same by rank: the i-th entry in key order. */
static inline unsigned char *
key_at(const struct btree *t, const struct btree_node *node, unsigned i)
{
    return cell_key(t, node, node->slots[i]);
}

/* Child i of an inner node, 0 .. n. */
static inline uint32_t
child_at(const struct btree *t, const struct btree_node *inner, unsigned i)
{
    return i == 0 ? inner->link : *cell_child(t, inner, inner->slots[i - 1]);
}

/* node_rank for 8-byte keys, without branches that depend on the keys. */
static inline unsigned
node_rank_word(const struct btree_node *node, const unsigned char *keys, uint64_t key,
               unsigned or_equal)
{
    unsigned base = 0, len = node->n;

    if (len == 0)
        return 0;
    while (len > 1) {
        unsigned half = len / 2;
        uint64_t w = key_word(keys + (size_t)node->slots[base + half - 1] * 8);

        base += ((w < key) | ((w == key) & or_equal)) ? half : 0;
        len -= half;
    }
    {
        uint64_t w = key_word(keys + (size_t)node->slots[base] * 8);

        return base + ((w < key) | ((w == key) & or_equal));
    }
}

/* What a node's 8-byte keys lie between, as far as the nodes above have said: lo <= key < hi. */
struct key_range {
    uint64_t lo, hi;
    bool has_lo, has_hi;
};

/* word_at_rank -- the i-th 8-byte key in order; a slot that makes no sense is cell 0. */
static inline __attribute__((always_inline)) uint64_t
word_at_rank(const struct btree_node *node, const unsigned char *keys, unsigned cap,
             unsigned i)
{
    unsigned cell = node->slots[i];

    return key_word(keys + (size_t)(cell < cap ? cell : 0) * 8);
}

/* rank_guess -- where `key` is if keys are evenly spread, 0 .. n - 1; n > 0.  See rank_from(). */
static inline __attribute__((always_inline)) unsigned
rank_guess(const struct btree_node *node, const unsigned char *keys, unsigned cap,
           unsigned n, uint64_t key, unsigned or_equal, const struct key_range *range)
{
    uint64_t lo = range->has_lo ? range->lo : word_at_rank(node, keys, cap, 0);
    uint64_t hi = range->has_hi ? range->hi : word_at_rank(node, keys, cap, n - 1);
    double part;

    if (key <= lo)
        return 0;
    if (key >= hi)
        return n - 1;
    if (hi - lo > INT64_MAX) /* signed integers become doubles faster */
        return n / 2;
    part = (double)(int64_t)(key - lo) / (double)(int64_t)(hi - lo);
    part = part * (double)(int)(n + or_equal) - (double)(int)or_equal;
    return part < (double)(int)n ? (unsigned)(int)(part > 0 ? part : 0) : n - 1;
}

/*
 * rank_from -- node_rank for 8-byte keys that begins at rank i, of `hi` > 0, and goes from there in
 * doubling steps: two cache lines where halving reads one for each step.
 *
 * Reads the node only inside its bytes whatever it holds, so that it may look at one that
 * another thread is changing, if what comes of it is thrown away then.
 *
 * in      keys, cap  where they are, and how many cells there are
 * in,out  range      what is known of the node's keys; then of the keys below the rank found
 */
static inline __attribute__((always_inline)) unsigned
rank_from(const struct btree_node *node, const unsigned char *keys, unsigned cap,
          unsigned hi, unsigned i, uint64_t key, unsigned or_equal,
          struct key_range *range)
{
    unsigned lo = 0, step = 1; /* step 0: halve */
    bool is_right, was_right = false;

    for (bool is_first = true;; is_first = false, was_right = is_right) {
        uint64_t w = word_at_rank(node, keys, cap, i);

        if (w == key && or_equal == 0)
            return i;
        is_right = w < key || w == key;
        if (is_right) {
            lo = i + 1;
            range->lo = w;
            range->has_lo = true;
        } else {
            hi = i;
            range->hi = w;
            range->has_hi = true;
        }
        if (lo >= hi)
            return lo;
        if (step >= hi - lo || (!is_first && is_right != was_right))
            step = 0;
        if (step == 0)
            i = lo + (hi - lo) / 2;
        else
            i = is_right ? lo + step - 1 : hi - step;
        step *= 2;
    }
}

/* node_rank_near -- from where evenly spread keys would be; as rank_from(). */
static inline __attribute__((always_inline)) unsigned
node_rank_near(const struct btree_node *node, const unsigned char *keys, unsigned cap,
               uint64_t key, unsigned or_equal, struct key_range *range)
{
    unsigned n = node->n < cap ? node->n : cap, i;

    if (n == 0)
        return 0;
    i = rank_guess(node, keys, cap, n, key, or_equal, range);
    return rank_from(node, keys, cap, n, i, key, or_equal, range);
}

/*
 * node_rank -- how many keys of a node are less than `key`.
 *
 * in   or_equal  1: less or equal, which is the child to follow; 0: less
 */
static inline unsigned
node_rank(const struct btree *t, const struct btree_node *node, const unsigned char *key,
          unsigned or_equal)
{
    const unsigned char *keys = (const unsigned char *)node + keys_offset(t, node->level);
    unsigned lo = 0, hi = node->n;

    if (t->key_size == 8)
        return node_rank_word(node, keys, key_word(key), or_equal);
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;
        const unsigned char *k = keys + (size_t)node->slots[mid] * t->key_size;

        if (key_order(k, key, t->key_size) < (int)or_equal)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

#endif /* TREES_BTREE_LAYOUT_H */
