/* SPDX-License-Identifier: MIT */
/*
 * cobtree_spread.c -- windows of leaves: counted, spread evenly, the whole array grown and
 * shrunk; bulk load.  See DENSITY in cobtree.h.
 *
 * Spreading is in place, and moves each entry at most once.  Both the old and the new
 * places ascend with the entries' ranks.  So an entry that moves left comes to where there is
 * nobody or another that moves left and is of lesser rank: for if that one stayed or moved
 * right, its new place were not left of this one's.  Hence first all that move left, in
 * rising order, then, for the mirrored reason, all that move right, in falling order.
 */
#include <config.h>

#include "cobtree_layout.h"

#include <errno.h>

/* Neighbouring leaves, and what they hold. */
struct window {
    uint64_t first;   /* leaf                                                         */
    uint64_t leaves;  /* number of them                                               */
    uint64_t entries; /* in them                                                      */
};

/* ---- Places in a window ------------------------------------------------------------ */

/* Cell, counted from the window's first, of entry j of a window that is spread evenly. */
static inline uint64_t
place_even(const struct window *w, uint64_t j)
{
    return j * (w->leaves * COBTREE_CELLS) / w->entries;
}

/*
 * Set the bits of the leaf that is number i of an evenly spread window.
 *
 * in,out  jp  its first entry; that of the next leaf
 */
static uint32_t
bits_even(const struct window *w, uint64_t i, uint64_t *jp)
{
    uint64_t base = i * COBTREE_CELLS;
    uint32_t bits = 0;

    for (; *jp < w->entries; ++*jp) {
        uint64_t at = place_even(w, *jp) - base;

        if (at >= COBTREE_CELLS)
            break;
        bits |= UINT32_C(1) << at;
    }
    return bits;
}

static void
cell_copy(const struct cobtree *t, uint64_t first, uint64_t to, uint64_t from)
{
    struct cobtree_leaf *leaf = leaf_of(t, first + to / COBTREE_CELLS);
    const struct cobtree_leaf *old = leaf_of(t, first + from / COBTREE_CELLS);
    unsigned cell = to % COBTREE_CELLS, cell_old = from % COBTREE_CELLS;

    memcpy(leaf_key(t, leaf, cell), leaf_key(t, old, cell_old), t->key_size);
    memcpy(leaf_value(t, leaf, cell), leaf_value(t, old, cell_old), t->value_size);
}

/* Write separator s, 0 < s, which is node number s of the index in order. */
static void
separator_write(const struct cobtree *t, uint64_t s, const unsigned char *key)
{
    unsigned up = (unsigned)__builtin_ctzll(s), depth = t->veb.height - 1 - up;
    uint64_t i = UINT64_C(1) << depth | s >> (up + 1);

    memcpy(separator_at(t, veb_place(&t->veb, depth, i)), key, t->key_size);
}

/*
 * Complete a leaf with its entries in their cells: the bits, the keys of its gaps, and the
 * separator before it, unless it is the window's first: that one still holds.
 */
static void
leaf_finish(const struct cobtree *t, const struct window *w, uint64_t number,
            uint32_t used)
{
    struct cobtree_leaf *leaf = leaf_of(t, number);
    unsigned last = bits_next(used, 0);

    leaf->used = used;
    for (unsigned cell = 0; cell < COBTREE_CELLS; cell++) {
        if (used >> cell & 1)
            last = cell;
        else
            memcpy(leaf_key(t, leaf, cell), leaf_key(t, leaf, last), t->key_size);
    }
    if (number > w->first)
        separator_write(t, number, leaf_key(t, leaf, 0));
}

/* ---- Spread ------------------------------------------------------------------------ */

/* Move what moves left. */
static void
spread_left(const struct cobtree *t, const struct window *from, const struct window *to)
{
    uint64_t j = 0;

    for (uint64_t i = 0; i < from->leaves; i++)
        for (uint32_t bits = leaf_of(t, from->first + i)->used; bits != 0;
             bits &= bits - 1, j++) {
            uint64_t old = i * COBTREE_CELLS + bits_next(bits, 0);
            uint64_t place = place_even(to, j);

            if (place < old)
                cell_copy(t, to->first, place, old);
        }
}

/* Move what moves right. */
static void
spread_right(const struct cobtree *t, const struct window *from, const struct window *to)
{
    uint64_t j = from->entries;

    for (uint64_t i = from->leaves; i-- > 0;) {
        uint32_t bits = leaf_of(t, from->first + i)->used;

        while (bits != 0) {
            unsigned cell = bits_last(bits);
            uint64_t old = i * COBTREE_CELLS + cell;
            uint64_t place = place_even(to, --j);

            bits ^= UINT32_C(1) << cell;
            if (place > old)
                cell_copy(t, to->first, place, old);
        }
    }
}

/*
 * Spread the entries of a window over so many leaves from its first on, evenly.  The bits
 * of the old leaves are needed to the end of both passes, so they change last.
 */
static void
spread(const struct cobtree *t, const struct window *from, uint64_t leaves)
{
    struct window to = *from;
    uint64_t j = 0, most = from->leaves > leaves ? from->leaves : leaves;

    to.leaves = leaves;
    tree_hint_range(t->hints, leaf_of(t, to.first), most * t->leaf_size, TREE_READ_WRITE);
    spread_left(t, from, &to);
    spread_right(t, from, &to);
    for (uint64_t i = 0; i < leaves; i++)
        leaf_finish(t, &to, to.first + i, bits_even(&to, i, &j));
}

/* ---- Windows ----------------------------------------------------------------------- */

/* Whether a window of 2^k leaves has room for one entry more. */
static bool
has_room(const struct window *w, unsigned k, unsigned height)
{
    uint64_t most = COBTREE_LEAF_MOST * height
                    - (COBTREE_LEAF_MOST - COBTREE_WHOLE_MOST) * (uint64_t)k;

    return (w->entries + 1) * height <= w->leaves * most;
}

/* Whether a window of 2^k leaves has enough entries. */
static bool
has_enough(const struct window *w, unsigned k, unsigned height)
{
    uint64_t least = COBTREE_LEAF_LEAST * height
                     + (COBTREE_WHOLE_LEAST - COBTREE_LEAF_LEAST) * (uint64_t)k;

    return w->entries * height >= w->leaves * least;
}

/*
 * Find the smallest window around a leaf, of two leaves at least, that is within a bound.
 *
 * out  w  the window; the whole array if there is none
 * ret  whether there is one
 */
static bool
window_find(const struct cobtree *t, uint64_t leaf,
            bool (*within)(const struct window *w, unsigned k, unsigned height),
            struct window *w)
{
    unsigned height = t->veb.height;

    *w = (struct window){leaf, 1, bits_count(leaf_of(t, leaf)->used)};
    for (unsigned k = 1; k <= height; k++) {
        uint64_t sibling = w->first ^ w->leaves;

        for (uint64_t i = 0; i < w->leaves; i++)
            w->entries += bits_count(leaf_of(t, sibling + i)->used);
        w->first &= sibling;
        w->leaves *= 2;
        if (within(w, k, height))
            return true;
    }
    return false;
}

/* Give the whole array 2^height leaves. */
static void
resize(struct cobtree *t, const struct window *whole, unsigned height)
{
    header_of(t)->height = height;
    veb_init(&t->veb, height);
    spread(t, whole, UINT64_C(1) << height);
}

int
cobtree_make_room(struct cobtree *t, uint64_t leaf)
{
    struct window w;
    unsigned height = height_of(t);

    if (window_find(t, leaf, has_room, &w))
        spread(t, &w, w.leaves);
    else if (height == t->height_max)
        return ENOSPC;
    else
        resize(t, &w, height + 1);
    return 0;
}

void
cobtree_fill_up(struct cobtree *t, uint64_t leaf)
{
    struct window w;
    unsigned height = height_of(t);

    if (window_find(t, leaf, has_enough, &w))
        spread(t, &w, w.leaves);
    else
        resize(t, &w, height - 1);
}

/* ---- Bulk load --------------------------------------------------------------------- */

/* What cobtree_load() adds to a request. */
struct load {
    tree_source *source;
    void *arg;
    uint64_t count;
    unsigned percent;
};

/*
 * Put the entries that the source has for one leaf into their cells.
 *
 * in      used  its cells to be used
 * in,out  jp    number of the first entry
 * in,out  last  the key before; NULL if there is none
 * ret     0 or EINVAL
 */
static int
load_leaf(const struct cobtree *t, const struct load *load, struct cobtree_leaf *leaf,
          uint32_t used, uint64_t *jp, const unsigned char **last)
{
    for (; used != 0; used &= used - 1, ++*jp) {
        unsigned cell = bits_next(used, 0);
        const void *key, *value;

        if (!load->source(load->arg, *jp, &key, &value)
            || (*last != NULL && key_order(*last, key, t->key_size) >= 0))
            return EINVAL;
        *last = leaf_key(t, leaf, cell);
        memcpy(leaf_key(t, leaf, cell), key, t->key_size);
        if (t->value_size > 0)
            memcpy(leaf_value(t, leaf, cell), value, t->value_size);
    }
    return 0;
}

/*
 * The first leaf is completed, and the height set, when nothing can go wrong any more: until
 * then the tree is empty.
 */
static int
load_body(void *tree, struct tree_request *r)
{
    struct cobtree *t = tree;
    const struct load *load = r->arg;
    struct window w = {.entries = load->count};
    const unsigned char *last = NULL;
    uint64_t j = 0, placed = 0;
    unsigned height = 0;
    uint32_t used, used_first = 0;

    if (height_of(t) > 0 || leaf_of(t, 0)->used != 0)
        return EEXIST;
    while (load->count * 100 > ((uint64_t)COBTREE_CELLS << height) * load->percent)
        if (++height > t->height_max)
            return ENOSPC;
    w.leaves = UINT64_C(1) << height;
    veb_init(&t->veb, height);
    for (uint64_t i = 0; i < w.leaves; i++) {
        used = bits_even(&w, i, &placed);
        if (load_leaf(t, load, leaf_of(t, i), used, &j, &last) != 0) {
            memset(leaf_of(t, 0)->keys, 0, (size_t)COBTREE_CELLS * t->key_size);
            return EINVAL;
        }
        if (i == 0)
            used_first = used;
        else
            leaf_finish(t, &w, i, used);
    }
    if (load->count > 0)
        leaf_finish(t, &w, 0, used_first);
    header_of(t)->height = height;
    return 0;
}

int
cobtree_load(struct cobtree *t, tree_source *source, void *arg, uint64_t count,
             unsigned percent)
{
    struct load load = {source, arg, count, percent};
    struct tree_request r = {.arg = &load};

    if (percent < 50 || percent > 100 || count > UINT64_C(1) << 40)
        return EINVAL;
    return tree_update(load_body, t, &r);
}
