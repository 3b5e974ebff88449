/* SPDX-License-Identifier: MIT */
/*
 * btree_read.c -- search, scan and cursors of a B+-tree; see btree.h.
 */
#include <config.h>

#include "btree_node.h"

#include <errno.h>

/* Copy entry i of a leaf to where the caller wants it. */
static int
entry_copy(const struct btree *t, const struct btree_node *leaf, unsigned i,
           const struct tree_request *r)
{
    if (r->key_out != NULL)
        memcpy(r->key_out, key_at(t, leaf, i), t->key_size);
    if (r->value_out != NULL && t->value_size > 0)
        memcpy(r->value_out, cell_value(t, leaf, leaf->slots[i]), t->value_size);
    return 0;
}

static int
search_body(void *tree, struct tree_request *r)
{
    struct btree *t = tree;
    const struct btree_node *leaf = descend(t, r->key, false, NULL);
    unsigned pos = node_rank(t, leaf, r->key, 0);

    return entry_is(t, leaf, pos, r->key) ? entry_copy(t, leaf, pos, r) : ENOENT;
}

int
btree_search(struct btree *t, const void *key, void *value)
{
    struct tree_request r = {.key = key, .value_out = value};

    return tree_query(search_body, t, &r);
}

static int
scan_body(void *tree, struct tree_request *r)
{
    struct btree *t = tree;
    const struct btree_node *leaf = descend(t, r->key, false, NULL);
    unsigned pos = r->key != NULL ? node_rank(t, leaf, r->key, 0) : 0;

    for (;; pos = 0) {
        for (; pos < leaf->n; pos++) {
            const unsigned char *key = key_at(t, leaf, pos);
            int rc;

            if (r->to != NULL && key_order(key, r->to, t->key_size) >= 0)
                return 0;
            rc = r->visit(r->arg, key, cell_value(t, leaf, leaf->slots[pos]));
            if (rc != 0)
                return rc;
        }
        if (leaf->link == 0)
            return 0;
        leaf = node_read(t, leaf->link);
    }
}

int
btree_scan(struct btree *t, const void *from, const void *to, tree_visit *visit,
           void *arg)
{
    struct tree_request r = {.key = from, .to = to, .visit = visit, .arg = arg};

    return tree_query(scan_body, t, &r);
}

/*
 * The entry of rank `pos` of a leaf or, if there is none, the first one right of it.
 *
 * in,out  posp  the rank
 * ret     its leaf, NULL if there is no such entry
 */
static const struct btree_node *
skip_right(const struct btree *t, const struct btree_node *leaf, unsigned *posp)
{
    while (*posp >= leaf->n) {
        if (leaf->link == 0)
            return NULL;
        leaf = node_read(t, leaf->link);
        *posp = 0;
    }
    return leaf;
}

/* The first entry with a key of at least `key`, NULL: of all.  ret as skip_right(). */
static const struct btree_node *
find_not_less(const struct btree *t, const unsigned char *key, unsigned *posp)
{
    const struct btree_node *leaf = descend(t, key, false, NULL);

    *posp = key != NULL ? node_rank(t, leaf, key, 0) : 0;
    return skip_right(t, leaf, posp);
}

static int
seek_body(void *tree, struct tree_request *r)
{
    struct btree *t = tree;
    unsigned pos;
    const struct btree_node *leaf = find_not_less(t, r->key, &pos);

    return leaf != NULL ? entry_copy(t, leaf, pos, r) : ENOENT;
}

int
btree_seek(struct btree *t, const void *from, void *key_out, void *value_out)
{
    struct tree_request r = {.key = from, .key_out = key_out, .value_out = value_out};

    return tree_query(seek_body, t, &r);
}

int
btree_first(struct btree *t, void *key_out, void *value_out)
{
    return btree_seek(t, NULL, key_out, value_out);
}

static int
last_body(void *tree, struct tree_request *r)
{
    struct btree *t = tree;
    struct path path;
    const struct btree_node *leaf = last_leaf(t, &path);

    return leaf->n > 0 ? entry_copy(t, leaf, leaf->n - 1u, r) : ENOENT;
}

int
btree_last(struct btree *t, void *key_out, void *value_out)
{
    struct tree_request r = {.key_out = key_out, .value_out = value_out};

    return tree_query(last_body, t, &r);
}

/* ---- Cursors ----------------------------------------------------------------------- */

/*
 * Whether a cursor's entry is still where it was.  A block of level 0 with an entry is a leaf
 * of the tree: those that were given back have another level, unused ones no entries.
 */
static bool
cursor_holds(const struct btree_cursor *c)
{
    const struct btree_node *leaf = node_read(c->t, c->block);

    return leaf->level == 0 && entry_is(c->t, leaf, c->pos, c->key);
}

/* Place the cursor on an entry, and copy that; leaf NULL: there is none. */
static int
cursor_place(struct btree_cursor *c, const struct btree_node *leaf, unsigned pos,
             const struct tree_request *r)
{
    if (leaf == NULL)
        return ENOENT;
    c->block = leaf->self;
    c->pos = pos;
    memcpy(c->key, key_at(c->t, leaf, pos), c->t->key_size);
    return entry_copy(c->t, leaf, pos, r);
}

static int
cursor_seek_body(void *cursor, struct tree_request *r)
{
    struct btree_cursor *c = cursor;
    unsigned pos;
    const struct btree_node *leaf = find_not_less(c->t, r->key, &pos);

    return cursor_place(c, leaf, pos, r);
}

static int
cursor_next_body(void *cursor, struct tree_request *r)
{
    struct btree_cursor *c = cursor;
    const struct btree_node *leaf;
    unsigned pos;

    if (c->block == 0) {
        leaf = find_not_less(c->t, NULL, &pos);
    } else if (cursor_holds(c)) {
        pos = c->pos + 1;
        leaf = skip_right(c->t, node_of(c->t, c->block), &pos);
    } else {
        leaf = find_not_less(c->t, c->key, &pos);
        if (leaf != NULL && entry_is(c->t, leaf, pos, c->key)) {
            pos++;
            leaf = skip_right(c->t, leaf, &pos);
        }
    }
    return cursor_place(c, leaf, pos, r);
}

/*
 * The last entry with a key less than `key`: in its leaf or, if that has none, the last of
 * the leaf before, which is below the nearest node where the path can turn left.
 */
static const struct btree_node *
find_less(const struct btree *t, const unsigned char *key, unsigned *posp)
{
    struct path path;
    const struct btree_node *leaf = descend(t, key, false, &path);
    unsigned n = node_rank(t, leaf, key, 0);

    while (n == 0) {
        do
            path.depth--;
        while (path.depth > 0 && path.pos[path.depth - 1] == 0);
        if (path.depth == 0)
            return NULL;
        path.block[path.depth] = child_at(t, node_of(t, path.block[path.depth - 1]),
                                          --path.pos[path.depth - 1]);
        path.depth++;
        leaf = descend_last(t, &path);
        n = leaf->n;
    }
    *posp = n - 1;
    return leaf;
}

static int
cursor_prev_body(void *cursor, struct tree_request *r)
{
    struct btree_cursor *c = cursor;
    struct btree *t = c->t;
    const struct btree_node *leaf;
    struct path path;
    unsigned pos = 0;

    if (c->block == 0) {
        leaf = last_leaf(t, &path);
        pos = leaf->n - 1u;
        if (leaf->n == 0)
            leaf = NULL;
    } else if (cursor_holds(c) && c->pos > 0) {
        leaf = node_of(t, c->block);
        pos = c->pos - 1;
    } else {
        leaf = find_less(t, c->key, &pos);
    }
    return cursor_place(c, leaf, pos, r);
}

int
btree_cursor_seek(struct btree_cursor *c, const void *from, void *key_out,
                  void *value_out)
{
    struct tree_request r = {.key = from, .key_out = key_out, .value_out = value_out};

    return tree_query(cursor_seek_body, c, &r);
}

int
btree_cursor_next(struct btree_cursor *c, void *key_out, void *value_out)
{
    struct tree_request r = {.key_out = key_out, .value_out = value_out};

    return tree_query(cursor_next_body, c, &r);
}

int
btree_cursor_prev(struct btree_cursor *c, void *key_out, void *value_out)
{
    struct tree_request r = {.key_out = key_out, .value_out = value_out};

    return tree_query(cursor_prev_body, c, &r);
}
