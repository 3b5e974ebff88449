/* SPDX-License-Identifier: MIT */
/*
 * cobtree.c -- see cobtree.h; bytes in cobtree_layout.h, windows of leaves in
 * cobtree_spread.c, verification in cobtree_check.c.
 *
 * What an operation writes decides what it costs: traps, conflicts, log bytes.
 *   - An ordinary insert shifts the entries between its place and the nearest gap, which is
 *     one or two on average; an ordinary delete clears a bit.  Neither writes the index.
 *   - There is no count of entries.  A window's density is counted when it matters.
 *   - A deleted entry leaves its key in the gap, and spreading gives each gap a neighbour's.
 *     So a search in a leaf need not know the gaps.
 */
#include <config.h>

#include "cobtree_layout.h"

#include <errno.h>

/* ---- Create and open --------------------------------------------------------------- */

static size_t
align_up(size_t v, size_t to)
{
    return (v + to - 1) / to * to;
}

/* Compute what follows from the sizes.  ret 0 or EINVAL. */
static int
layout_set(struct cobtree *t, const struct cobtree_config *config)
{
    if (config->key_size < 1 || config->key_size > COBTREE_KEY_MAX
        || config->value_size > COBTREE_VALUE_MAX)
        return EINVAL;
    t->key_size = config->key_size;
    t->value_size = config->value_size;
    t->leaf_values = (uint32_t)align_up(sizeof(struct cobtree_leaf)
                                            + (size_t)COBTREE_CELLS * t->key_size,
                                        8);
    t->leaf_size = align_up(t->leaf_values + (size_t)COBTREE_CELLS * t->value_size, 8);
    return 0;
}

/* Room for an index of so many levels, and its leaves.  ret bytes of the segment. */
static size_t
height_set(struct cobtree *t, uint32_t height)
{
    size_t leaves = (size_t)1 << height;

    t->height_max = height;
    t->leaves = align_up(sizeof(struct cobtree_header) + (leaves - 1) * t->key_size,
                         COBTREE_PAGE);
    return t->leaves + leaves * t->leaf_size;
}

/* The most levels that a segment has room for.  ret 0 or ENOSPC. */
static int
height_fit(struct cobtree *t, size_t size)
{
    uint32_t height = COBTREE_HEIGHT_MAX;

    while (height_set(t, height) > size)
        if (height-- == 0)
            return ENOSPC;
    return 0;
}

size_t
cobtree_size(const struct cobtree_config *config, uint64_t count)
{
    struct cobtree t;
    uint32_t height = 0;

    if (layout_set(&t, config) != 0)
        return 0;
    while (count > ((uint64_t)COBTREE_WHOLE_MOST << height))
        if (++height > COBTREE_HEIGHT_MAX)
            return 0;
    return align_up(height_set(&t, height), COBTREE_PAGE);
}

static int
create_body(void *tree, struct tree_request *r)
{
    struct cobtree *t = tree;
    struct cobtree_header *header = header_of(t);

    (void)r;
    if (header->magic == COBTREE_MAGIC)
        return EEXIST;
    *header = (struct cobtree_header){.magic = COBTREE_MAGIC,
                                      .version = COBTREE_VERSION,
                                      .key_size = t->key_size,
                                      .value_size = t->value_size,
                                      .height_max = t->height_max};
    memset(leaf_of(t, 0), 0, t->leaf_values);
    return 0;
}

int
cobtree_create(struct cobtree *t, void *base, size_t size,
               const struct cobtree_config *config)
{
    struct cobtree tree = {.base = base};
    struct tree_request r = {0};
    int rc = layout_set(&tree, config);

    if (rc == 0)
        rc = height_fit(&tree, size);
    if (rc == 0)
        rc = tree_update(create_body, &tree, &r);
    return rc != 0 ? rc : cobtree_open(t, base, size);
}

static int
open_body(void *tree, struct tree_request *r)
{
    *(struct cobtree_header *)r->arg = *header_of(tree);
    return 0;
}

int
cobtree_open(struct cobtree *t, void *base, size_t size)
{
    struct cobtree tree = {.base = base};
    struct cobtree_header h;
    struct tree_request r = {.arg = &h};
    int rc = size < COBTREE_PAGE ? ENOENT : tree_query(open_body, &tree, &r);

    if (rc != 0)
        return rc;
    if (h.magic != COBTREE_MAGIC)
        return ENOENT;
    if (h.version != COBTREE_VERSION)
        return ENOTSUP;
    rc = layout_set(&tree, &(struct cobtree_config){.key_size = h.key_size,
                                                    .value_size = h.value_size});
    if (rc != 0 || h.height_max > COBTREE_HEIGHT_MAX || h.height > h.height_max)
        return EUCLEAN;
    if (height_set(&tree, h.height_max) > size)
        return ENOSPC;
    *t = tree;
    return 0;
}

/* ---- One leaf ---------------------------------------------------------------------- */

/* A place in the tree: a cell of a leaf. */
struct spot {
    struct cobtree_leaf *leaf;
    uint64_t number; /* of the leaf                                                   */
    unsigned rank;   /* cells of the leaf with lesser keys, gaps included             */
    unsigned cell;   /* first entry of the leaf that is not less; COBTREE_CELLS: none */
    bool found;      /* it has the key                                                */
};

/* Look for `key`, in a leaf that is going to be changed if `access` says so. */
static inline struct spot
find(struct cobtree *t, const unsigned char *key, int access)
{
    struct spot s = {.number = index_search(t, key)};

    s.leaf = leaf_of(t, s.number);
    tree_hint_range(t->hints, s.leaf, t->leaf_values, access);
    s.rank = leaf_rank(t, s.leaf, key);
    s.cell = bits_next(s.leaf->used, s.rank);
    s.found = s.cell < COBTREE_CELLS
              && memcmp(leaf_key(t, s.leaf, s.cell), key, t->key_size) == 0;
    return s;
}

static inline void
value_write(const struct cobtree *t, struct cobtree_leaf *leaf, unsigned cell,
            const void *value)
{
    if (t->value_size > 0)
        memcpy(leaf_value(t, leaf, cell), value, t->value_size);
}

/* Move `n` cells that follow `from` to where they follow `to`; they may overlap. */
static inline void
cells_shift(const struct cobtree *t, struct cobtree_leaf *leaf, unsigned to,
            unsigned from, unsigned n)
{
    memmove(leaf_key(t, leaf, to), leaf_key(t, leaf, from), (size_t)n * t->key_size);
    memmove(leaf_value(t, leaf, to), leaf_value(t, leaf, from),
            (size_t)n * t->value_size);
}

/*
 * Put an entry of some rank into a leaf that has a gap: into the gap nearest to its place,
 * after the entries in between have moved over.  Keys stay in order (invariant 3).
 */
static void
leaf_put(const struct cobtree *t, struct cobtree_leaf *leaf, unsigned rank,
         const struct tree_request *r)
{
    uint32_t gaps = ~leaf->used;
    uint32_t gaps_left = gaps & (uint32_t)((UINT64_C(1) << rank) - 1);
    unsigned right = bits_next(gaps, rank), cell = rank, gap = right;

    if (right == COBTREE_CELLS
        || (gaps_left != 0 && rank - 1 - bits_last(gaps_left) < right - rank)) {
        gap = bits_last(gaps_left);
        cell = rank - 1;
    }
    tree_hint_range(t->hints, leaf_value(t, leaf, gap < cell ? gap : cell),
                    (size_t)((gap < cell ? cell - gap : gap - cell) + 1) * t->value_size,
                    TREE_READ_WRITE);
    if (gap < cell)
        cells_shift(t, leaf, gap, gap + 1, cell - gap);
    else
        cells_shift(t, leaf, cell + 1, cell, gap - cell);
    memcpy(leaf_key(t, leaf, cell), r->key, t->key_size);
    value_write(t, leaf, cell, r->value);
    leaf->used |= UINT32_C(1) << gap;
}

/* ---- Insert and delete --------------------------------------------------------------- */

static int
insert_body(void *tree, struct tree_request *r)
{
    struct cobtree *t = tree;
    struct spot s = find(t, r->key, TREE_READ_WRITE);

    r->existed = s.found;
    if (s.found) {
        if (r->mode != TREE_PUT)
            return EEXIST;
        tree_hint_range(t->hints, leaf_value(t, s.leaf, s.cell), t->value_size,
                        TREE_READ_WRITE);
        value_write(t, s.leaf, s.cell, r->value);
        return 0;
    }
    if (bits_count(s.leaf->used) == COBTREE_CELLS) {
        int rc = cobtree_make_room(t, s.number);

        if (rc != 0)
            return rc;
        s = find(t, r->key, TREE_READ_WRITE);
    }
    leaf_put(t, s.leaf, s.rank, r);
    return 0;
}

int
cobtree_insert(struct cobtree *t, const void *key, const void *value, int mode,
               bool *existedp)
{
    struct tree_request r = {.key = key, .value = value, .mode = mode};
    int rc = tree_update(insert_body, t, &r);

    if (existedp != NULL)
        *existedp = r.existed;
    return rc;
}

static int
delete_body(void *tree, struct tree_request *r)
{
    struct cobtree *t = tree;
    struct spot s = find(t, r->key, TREE_READ_WRITE);

    if (!s.found)
        return ENOENT;
    s.leaf->used &= ~(UINT32_C(1) << s.cell);
    if (bits_count(s.leaf->used) < COBTREE_LEAF_LEAST && header_of(t)->height > 0)
        cobtree_fill_up(t, s.number);
    return 0;
}

int
cobtree_delete(struct cobtree *t, const void *key)
{
    struct tree_request r = {.key = key};

    return tree_update(delete_body, t, &r);
}

/* ---- Reading ----------------------------------------------------------------------- */

/* Copy the entry in a cell to where the caller wants it. */
static int
entry_copy(const struct cobtree *t, const struct cobtree_leaf *leaf, unsigned cell,
           const struct tree_request *r)
{
    if (r->key_out != NULL)
        memcpy(r->key_out, leaf_key(t, leaf, cell), t->key_size);
    if (r->value_out != NULL && t->value_size > 0)
        memcpy(r->value_out, leaf_value(t, leaf, cell), t->value_size);
    return 0;
}

static int
search_body(void *tree, struct tree_request *r)
{
    struct cobtree *t = tree;
    struct spot s = find(t, r->key, TREE_READ);

    return s.found ? entry_copy(t, s.leaf, s.cell, r) : ENOENT;
}

int
cobtree_search(struct cobtree *t, const void *key, void *value)
{
    struct tree_request r = {.key = key, .value_out = value};

    return tree_query(search_body, t, &r);
}

/*
 * Visit the entries from r->key on.
 *
 * ret  what `visit` returned, if not 0; else 0
 */
static int
scan_body(void *tree, struct tree_request *r)
{
    struct cobtree *t = tree;
    uint64_t number = 0, n_leaves = UINT64_C(1) << header_of(t)->height;
    unsigned cell = 0;

    if (r->key != NULL) {
        struct spot s = find(t, r->key, TREE_READ);

        number = s.number;
        cell = s.cell;
    }
    for (; number < n_leaves; number++, cell = 0) {
        const struct cobtree_leaf *leaf = leaf_of(t, number);

        tree_hint_range(t->hints, leaf, t->leaf_size, TREE_READ);
        for (; (cell = bits_next(leaf->used, cell)) < COBTREE_CELLS; cell++) {
            const unsigned char *key = leaf_key(t, leaf, cell);
            int rc;

            if (r->to != NULL && key_order(key, r->to, t->key_size) >= 0)
                return 0;
            rc = r->visit(r->arg, key, leaf_value(t, leaf, cell));
            if (rc != 0)
                return rc;
        }
    }
    return 0;
}

int
cobtree_scan(struct cobtree *t, const void *from, const void *to, tree_visit *visit,
             void *arg)
{
    struct tree_request r = {.key = from, .to = to, .visit = visit, .arg = arg};

    return tree_query(scan_body, t, &r);
}

static int
seek_body(void *tree, struct tree_request *r)
{
    struct cobtree *t = tree;
    uint64_t n_leaves = UINT64_C(1) << header_of(t)->height;
    struct spot s = {.number = 0};

    if (r->key != NULL)
        s = find(t, r->key, TREE_READ);
    for (; s.number < n_leaves; s.number++, s.cell = 0) {
        s.leaf = leaf_of(t, s.number);
        s.cell = bits_next(s.leaf->used, s.cell);
        if (s.cell < COBTREE_CELLS)
            return entry_copy(t, s.leaf, s.cell, r);
    }
    return ENOENT;
}

int
cobtree_seek(struct cobtree *t, const void *from, void *key_out, void *value_out)
{
    struct tree_request r = {.key = from, .key_out = key_out, .value_out = value_out};

    return tree_query(seek_body, t, &r);
}

int
cobtree_first(struct cobtree *t, void *key_out, void *value_out)
{
    return cobtree_seek(t, NULL, key_out, value_out);
}

static int
last_body(void *tree, struct tree_request *r)
{
    struct cobtree *t = tree;
    const struct cobtree_leaf *leaf =
        leaf_of(t, (UINT64_C(1) << header_of(t)->height) - 1);

    return leaf->used != 0 ? entry_copy(t, leaf, bits_last(leaf->used), r) : ENOENT;
}

int
cobtree_last(struct cobtree *t, void *key_out, void *value_out)
{
    struct tree_request r = {.key_out = key_out, .value_out = value_out};

    return tree_query(last_body, t, &r);
}

/* ---- Cursors ----------------------------------------------------------------------- */

/* Place the cursor on the entry in a cell, and copy that. */
static int
cursor_place(struct cobtree_cursor *c, uint64_t number, unsigned cell,
             const struct tree_request *r)
{
    const struct cobtree_leaf *leaf = leaf_of(c->t, number);

    c->is_placed = true;
    c->leaf = number;
    c->cell = cell;
    memcpy(c->key, leaf_key(c->t, leaf, cell), c->t->key_size);
    return entry_copy(c->t, leaf, cell, r);
}

/* Where the cursor's key is, or would be.  The entry often is where it was. */
static struct spot
cursor_spot(const struct cobtree_cursor *c)
{
    struct cobtree *t = c->t;
    struct spot s = {.number = c->leaf, .rank = c->cell, .cell = c->cell, .found = true};

    if (c->leaf >> height_of(t) == 0) {
        s.leaf = leaf_of(t, c->leaf);
        tree_hint_range(t->hints, s.leaf, t->leaf_values, TREE_READ);
        if ((s.leaf->used >> c->cell & 1) != 0
            && memcmp(leaf_key(t, s.leaf, c->cell), c->key, t->key_size) == 0)
            return s;
    }
    return find(t, c->key, TREE_READ);
}

/* Place the cursor on the first entry from a cell of a leaf on; COBTREE_CELLS: behind it. */
static int
cursor_place_from(struct cobtree_cursor *c, uint64_t number, unsigned cell,
                  const struct tree_request *r)
{
    uint64_t n_leaves = UINT64_C(1) << height_of(c->t);

    for (; number < n_leaves; number++, cell = 0) {
        cell = bits_next(leaf_of(c->t, number)->used, cell);
        if (cell < COBTREE_CELLS)
            return cursor_place(c, number, cell, r);
    }
    return ENOENT;
}

static int
cursor_seek_body(void *cursor, struct tree_request *r)
{
    struct cobtree_cursor *c = cursor;
    struct spot s = find(c->t, r->key, TREE_READ);

    return cursor_place_from(c, s.number, s.cell, r);
}

static int
cursor_next_body(void *cursor, struct tree_request *r)
{
    struct cobtree_cursor *c = cursor;
    struct spot s = {.number = 0};

    if (c->is_placed)
        s = cursor_spot(c);
    return cursor_place_from(c, s.number, s.cell + s.found, r);
}

static int
cursor_prev_body(void *cursor, struct tree_request *r)
{
    struct cobtree_cursor *c = cursor;
    uint64_t number = UINT64_C(1) << height_of(c->t);
    uint32_t before = 0; /* entries of that leaf with lesser keys */

    if (c->is_placed) {
        struct spot s = cursor_spot(c);

        number = s.number;
        before = s.leaf->used & (uint32_t)((UINT64_C(1) << s.rank) - 1);
    }
    while (before == 0 && number > 0)
        before = leaf_of(c->t, --number)->used;
    return before != 0 ? cursor_place(c, number, bits_last(before), r) : ENOENT;
}

int
cobtree_cursor_seek(struct cobtree_cursor *c, const void *from, void *key_out,
                    void *value_out)
{
    struct tree_request r = {.key = from, .key_out = key_out, .value_out = value_out};

    return tree_query(cursor_seek_body, c, &r);
}

int
cobtree_cursor_next(struct cobtree_cursor *c, void *key_out, void *value_out)
{
    struct tree_request r = {.key_out = key_out, .value_out = value_out};

    return tree_query(cursor_next_body, c, &r);
}

int
cobtree_cursor_prev(struct cobtree_cursor *c, void *key_out, void *value_out)
{
    struct tree_request r = {.key_out = key_out, .value_out = value_out};

    return tree_query(cursor_prev_body, c, &r);
}
