/* SPDX-License-Identifier: MIT */
/*
 * cobtree_layout.h -- bytes of a cache-oblivious B-tree in its segment, and how to find them.
 *
 * WHAT      Structures, addresses, search in the index and in a leaf.
 * NOT HERE  Changing one leaf (cobtree.c), several (cobtree_spread.c), verifying
 *           (cobtree_check.c).
 *
 * Integers are in the machine's byte order.  There are no references: leaf and separator
 * are numbers, and a number says where they are.
 *
 * HEADER, at the start of the segment
 *
 *   OFFSET  SIZE  FIELD       MEANING
 *      0      8   magic       COBTREE_MAGIC
 *      8      4   version     COBTREE_VERSION
 *     12      4   key_size    bytes
 *     16      4   value_size  bytes
 *     20      4   height_max  the index has room for so many levels
 *     24      4   height      and has so many
 *     28     36   reserved    zero
 *
 * INDEX, at offset 64: 2^height - 1 separators of key_size bytes, the nodes of a binary tree
 * of `height` levels in van Emde Boas layout; room for 2^height_max - 1.
 *
 * LEAF i, from the next multiple of 4096 on, one after the other
 *
 *      0      4   used        bit c: cell c holds an entry; the others are gaps
 *      4      4   zero
 *      8     32k  keys        of cells 0 to 31, never descending; a gap's key says no
 *                             more than that
 *   then, 8-byte aligned: the values of cells 0 to 31
 *   and padding to a multiple of 8.
 *
 * HISTORY   1  first format.
 */
#ifndef TREES_COBTREE_LAYOUT_H
#define TREES_COBTREE_LAYOUT_H

#include <assert.h>

#include "cobtree.h"
#include "tree_op.h"

#define COBTREE_MAGIC      UINT64_C(0x317274626f437878) /* "xxCobtr1" */
#define COBTREE_VERSION    1u
#define COBTREE_PAGE       4096u
#define COBTREE_CELLS      32u /* of a leaf; at least log2 of all cells, for the bounds  */
#define COBTREE_HEIGHT_MAX 26u /* so that a product of two numbers of cells has 64 bits */

/* Entries for each leaf, of one leaf and of the whole array. */
#define COBTREE_LEAF_LEAST  4u
#define COBTREE_LEAF_MOST   (COBTREE_CELLS - 1)
#define COBTREE_WHOLE_LEAST (COBTREE_CELLS / 4)
#define COBTREE_WHOLE_MOST  (COBTREE_CELLS / 4 * 3)

struct cobtree_header {
    uint64_t magic;      /* 00-07 */
    uint32_t version;    /* 08-11 */
    uint32_t key_size;   /* 12-15 */
    uint32_t value_size; /* 16-19 */
    uint32_t height_max; /* 20-23 */
    uint32_t height;     /* 24-27 */
    uint32_t reserved[9];
};

struct cobtree_leaf {
    uint32_t used;
    uint32_t zero;
    unsigned char keys[];
};

static_assert(sizeof(struct cobtree_header) == 64, "the index follows");
static_assert(offsetof(struct cobtree_leaf, keys) == 8, "leaf header is 8 bytes");
static_assert(COBTREE_CELLS == 32, "`used` has a bit for each cell");
/* After doubling and after halving the array is well within its bounds. */
static_assert(COBTREE_WHOLE_MOST / 2 > COBTREE_WHOLE_LEAST
                  && COBTREE_WHOLE_LEAST * 2 < COBTREE_WHOLE_MOST,
              "no growing and shrinking in turn");

/* ---- Addresses --------------------------------------------------------------------- */

static inline struct cobtree_header *
header_of(const struct cobtree *t)
{
    return (struct cobtree_header *)(void *)t->base;
}

static inline unsigned char *
separator_at(const struct cobtree *t, uint64_t place)
{
    return t->base + sizeof(struct cobtree_header) + place * t->key_size;
}

static inline struct cobtree_leaf *
leaf_of(const struct cobtree *t, uint64_t leaf)
{
    return (struct cobtree_leaf *)(void *)(t->base + t->leaves + leaf * t->leaf_size);
}

static inline unsigned char *
leaf_key(const struct cobtree *t, const struct cobtree_leaf *leaf, unsigned cell)
{
    return (unsigned char *)(uintptr_t)leaf->keys + (size_t)cell * t->key_size;
}

static inline unsigned char *
leaf_value(const struct cobtree *t, const struct cobtree_leaf *leaf, unsigned cell)
{
    return (unsigned char *)(uintptr_t)leaf + t->leaf_values
           + (size_t)cell * t->value_size;
}

/* Levels of the index now.  Sets the handle's measures of it. */
static inline unsigned
height_of(struct cobtree *t)
{
    unsigned height;

    tree_hint(t->hints, header_of(t), TREE_READ);
    height = header_of(t)->height;
    if (t->veb.height != height)
        veb_init(&t->veb, height);
    return height;
}

/* ---- Bits of `used` ---------------------------------------------------------------- */

/* Number of set bits. */
static inline unsigned
bits_count(uint32_t bits)
{
    return (unsigned)__builtin_popcount(bits);
}

/* The first set bit from `at` on, 0 to 32; COBTREE_CELLS if there is none. */
static inline unsigned
bits_next(uint32_t bits, unsigned at)
{
    uint64_t rest = (uint64_t)bits >> at << at;

    return rest != 0 ? (unsigned)__builtin_ctzll(rest) : COBTREE_CELLS;
}

/* The last set bit of some. */
static inline unsigned
bits_last(uint32_t bits)
{
    return 31u - (unsigned)__builtin_clz(bits);
}

/* ---- Search ------------------------------------------------------------------------ */

/* The leaf that `key` belongs to. */
static inline uint64_t
index_search(struct cobtree *t, const unsigned char *key)
{
    uint64_t i = 1, place[VEB_HEIGHT_MAX] = {0};
    unsigned height = height_of(t);
    uintptr_t page = (uintptr_t)t->base / COBTREE_PAGE; /* hinted last */

    for (unsigned d = 0; d < height; d++) {
        const unsigned char *separator;

        if (d > 0)
            place[d] = place[t->veb.above[d]] + veb_below(&t->veb, d, i);
        separator = separator_at(t, place[d]);
        if (t->hints && (uintptr_t)separator / COBTREE_PAGE != page) {
            page = (uintptr_t)separator / COBTREE_PAGE;
            tree_hint(t->hints, separator, TREE_READ);
        }
        i = 2 * i + (key_order(separator, key, t->key_size) <= 0);
    }
    return i - (UINT64_C(1) << height);
}

/* How many cells of a leaf have keys less than `key`, gaps included. */
static inline unsigned
leaf_rank(const struct cobtree *t, const struct cobtree_leaf *leaf,
          const unsigned char *key)
{
    unsigned rank = 0;

    for (unsigned step = COBTREE_CELLS / 2; step > 0; step /= 2)
        if (key_order(leaf_key(t, leaf, rank + step - 1), key, t->key_size) < 0)
            rank += step;
    return rank + (key_order(leaf_key(t, leaf, rank), key, t->key_size) < 0);
}

/* ---- Changing several leaves (cobtree_spread.c) -------------------------------------- */

#ifdef TREE_SERIAL
# define cobtree_make_room cobtree_serial_make_room
# define cobtree_fill_up   cobtree_serial_fill_up
#endif

/*
 * cobtree_make_room -- a leaf is full: spread a window around it, or let the array grow.
 * Afterwards the leaf of every key in it has a gap.  ret 0, or ENOSPC: nothing was changed.
 */
int cobtree_make_room(struct cobtree *t, uint64_t leaf);

/* cobtree_fill_up -- a leaf has too few entries: spread a window around it, or shrink. */
void cobtree_fill_up(struct cobtree *t, uint64_t leaf);

#endif /* TREES_COBTREE_LAYOUT_H */
