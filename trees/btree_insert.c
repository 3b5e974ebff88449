/* SPDX-License-Identifier: MIT */
/*
 * btree_insert.c -- insert into a B+-tree, one entry or many; see btree.h.
 */
#include <config.h>

#include "btree_node.h"

#include <errno.h>

/*
 * Put the root's content one level down, so that it can be split: afterwards the root has
 * one child and no key.
 */
static void
root_push_down(const struct btree *t, struct path *path)
{
    struct btree_node *root = node_write(t, t->root);
    uint32_t block = btree_block_alloc(t);
    struct btree_node *copy = node_init(t, block, root->level);

    copy->link = root->link;
    node_append(t, copy, root, 0);
    node_init(t, t->root, root->level + 1u);
    root->link = block;

    memmove(&path->block[1], &path->block[0], path->depth * sizeof path->block[0]);
    memmove(&path->pos[1], &path->pos[0], path->depth * sizeof path->pos[0]);
    path->block[1] = block;
    path->pos[0] = 0;
    path->depth++;
}

/* Blocks that a split of the leaf takes: one for it and for each full node above it in a
 * row, plus one if the root is among them. */
static uint32_t
blocks_needed(const struct btree *t, const struct path *path)
{
    uint32_t need = 1;

    for (unsigned d = path->depth - 1; d-- > 0; need++) {
        const struct btree_node *node = node_of(t, path->block[d]);

        if (node->n < cap_of(t, node->level))
            return need;
    }
    return need + 1;
}

/* Insert and split the leaf for it. */
static int
insert_split(const struct btree *t, struct path *path, unsigned pos,
             const struct tree_request *r)
{
    unsigned char sep[BTREE_KEY_MAX];
    uint32_t need = blocks_needed(t, path);
    struct btree_node *node;
    unsigned d;
    uint32_t right, child;
    bool append;
    int rc = btree_blocks_reserve(t, need);

    if (rc != 0)
        return rc;
    if (need > path->depth)
        root_push_down(t, path);
    d = path->depth - 1;
    node = node_write(t, path->block[d]);
    append = node->link == 0 && pos == node->n;
    right = btree_block_alloc(t);
    leaf_split(t, node, node_init(t, right, 0), pos, r, append, sep);
    for (;;) {
        pos = path->pos[--d];
        node = node_write(t, path->block[d]);
        if (node->n < t->inner_cap)
            break;
        child = right;
        right = btree_block_alloc(t);
        inner_split(t, node, node_init(t, right, node->level), pos, sep, child, append);
    }
    inner_put(t, node, pos, sep, right);
    return 0;
}

static int
insert_body(void *tree, struct tree_request *r)
{
    struct btree *t = tree;
    struct path path;
    struct btree_node *leaf = descend(t, r->key, true, &path);
    unsigned pos = node_rank(t, leaf, r->key, 0);

    r->existed = entry_is(t, leaf, pos, r->key);
    if (r->existed) {
        unsigned char *value = cell_value(t, leaf, leaf->slots[pos]);

        if (r->mode != TREE_PUT)
            return EEXIST;
        if (t->value_size > 0) {
            tree_hint_range(t->hints, value, t->value_size, TREE_READ_WRITE);
            memcpy(value, r->value, t->value_size);
        }
        return 0;
    }
    if (leaf->n == t->leaf_cap)
        return insert_split(t, &path, pos, r);
    leaf_put(t, leaf, pos, r->key, r->value);
    return 0;
}

int
btree_insert(struct btree *t, const void *key, const void *value, int mode,
             bool *existedp)
{
    struct tree_request r = {.key = key, .value = value, .mode = mode};
    int rc = tree_update(insert_body, t, &r);

    if (existedp != NULL)
        *existedp = r.existed;
    return rc;
}

/* ---- Bulk load --------------------------------------------------------------------- */

/* What btree_load() adds to a request. */
struct load {
    tree_source *source;
    void *arg;
    unsigned fill;  /* entries to leave in a leaf                                     */
    uint64_t count; /* entries put                                                    */
};

static int
load_body(void *tree, struct tree_request *r)
{
    struct btree *t = tree;
    struct load *load = r->arg;
    struct path path;
    struct btree_node *leaf = last_leaf(t, &path);
    const void *key;

    leaf = node_write(t, leaf->self);
    for (load->count = 0; load->source(load->arg, load->count, &key, &r->value);
         load->count++) {
        unsigned n = leaf->n;

        if (n > 0 && key_order(key_at(t, leaf, n - 1), key, t->key_size) >= 0)
            return EINVAL;
        if (n < load->fill) {
            leaf_put(t, leaf, n, key, r->value);
        } else {
            int rc;

            r->key = key;
            rc = insert_split(t, &path, n, r);
            if (rc != 0)
                return rc;
            leaf = node_write(t, last_leaf(t, &path)->self);
        }
    }
    return 0;
}

int
btree_load(struct btree *t, tree_source *source, void *arg, unsigned percent,
           uint64_t *countp)
{
    struct load load = {.source = source, .arg = arg};
    struct tree_request r = {.arg = &load};
    int rc = EINVAL;

    if (percent >= 50 && percent <= 100) {
        load.fill = (t->leaf_cap * percent + 99) / 100;
        rc = tree_update(load_body, t, &r);
    }
    if (countp != NULL)
        *countp = load.count;
    return rc;
}
