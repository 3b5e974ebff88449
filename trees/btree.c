/* SPDX-License-Identifier: MIT */
/*
 * btree.c -- see btree.h; bytes in btree_layout.h, insert in btree_insert.c,
 * reading in btree_read.c, verification in btree_check.c.
 *
 * What an operation writes decides what it costs: traps, conflicts, log bytes.
 *   - An ordinary insert or delete writes the leaf and nothing else: no counters.
 *   - Cells do not move inside a block.  An insert writes one free cell, shifts 2-byte
 *     slots and changes n; a split copies the upper half out and only lowers n.
 *   - The root never moves, so an operation goes straight to it without the header.
 *   - Blocks come from per-process arenas, so that splits of two processes meet only
 *     where the tree does.
 */
#include <config.h>

#include "btree_node.h"

#include <errno.h>
#include <unistd.h>

/* ---- Create and open --------------------------------------------------------------- */

static int
create_body(void *tree, struct tree_request *r)
{
    struct btree *t = tree;
    struct btree_header *header = header_of(t);

    (void)r;
    if (header->magic == BTREE_MAGIC)
        return EEXIST;
    /* Always: a program may have promised to announce every store (XAC_CHECKING_TRUSTED). */
    tree_hint_range(true, header, ((size_t)t->root + 1) * t->block_size, TREE_READ_WRITE);
    memset(header, 0, sizeof *header);
    header->version = BTREE_VERSION;
    header->key_size = t->key_size;
    header->value_size = t->value_size;
    header->block_size = t->block_size;
    header->n_blocks = t->n_blocks;
    header->n_arenas = t->n_arenas;
    header->root = t->root;
    header->allocation = t->allocation;
    header->high_water = t->root + 1;
    for (uint32_t a = 0; a < t->n_arenas; a++)
        memset(arena_of(t, a), 0, sizeof(struct btree_arena));
    node_init(t, t->root, 0);
    header->magic = BTREE_MAGIC;
    return 0;
}

int
btree_create(struct btree *t, void *base, size_t size, const struct btree_config *config)
{
    struct btree tree = {.base = base};
    struct tree_request r = {0};
    size_t n_blocks;
    int rc = btree_layout_set(&tree, config);

    if (rc != 0)
        return rc;
    n_blocks = size / tree.block_size;
    if (n_blocks <= tree.root)
        return ENOSPC;
    tree.n_blocks = n_blocks < UINT32_MAX ? (uint32_t)n_blocks : UINT32_MAX;
    rc = tree_update(create_body, &tree, &r);
    return rc != 0 ? rc : btree_open(t, base, size);
}

static int
open_body(void *tree, struct tree_request *r)
{
    struct btree *t = tree;
    *(struct btree_header *)r->arg = *header_of(t);
    return 0;
}

int
btree_open(struct btree *t, void *base, size_t size)
{
    struct btree tree = {.base = base};
    struct btree_header header;
    struct tree_request r = {.arg = &header};
    const struct btree_header *h = &header;
    int rc = size < BTREE_PAGE ? ENOENT : tree_query(open_body, &tree, &r);

    if (rc != 0)
        return rc;
    if (h->magic != BTREE_MAGIC)
        return ENOENT;
    if (h->version != BTREE_VERSION)
        return ENOTSUP;
    rc = btree_layout_set(&tree, &(struct btree_config){.key_size = h->key_size,
                                                        .value_size = h->value_size,
                                                        .block_size = h->block_size,
                                                        .allocation = h->allocation});
    if (rc != 0 || h->root != tree.root || h->n_arenas != tree.n_arenas
        || h->n_blocks <= tree.root)
        return EUCLEAN;
    if (h->n_blocks > size / tree.block_size)
        return ENOSPC;
    tree.n_blocks = h->n_blocks;
    tree.arena = (uint32_t)getpid() % tree.n_arenas;
    *t = tree;
    return 0;
}
/* ---- Delete ------------------------------------------------------------------------ */

/*
 * Child `pos` of `parent` has too few entries: merge it with a neighbour when both fill
 * three quarters of a block at most, else share the neighbour's entries.
 */
static void
child_rebalance(const struct btree *t, struct btree_node *parent, unsigned pos)
{
    unsigned at = pos > 0 ? pos - 1 : 0; /* rank of the key between the two */
    uint32_t right_block = child_at(t, parent, at + 1);
    struct btree_node *left = node_write(t, child_at(t, parent, at));
    struct btree_node *right = node_write(t, right_block);
    unsigned char *sep = key_at(t, parent, at);
    unsigned sum = left->n + right->n + (left->level == 0 ? 0u : 1u);

    if (sum <= cap_of(t, left->level) * 3 / 4) {
        node_merge(t, left, right, sep);
        slot_close(parent, at);
        btree_block_free(t, right_block);
        return;
    }
    while (left->n > right->n + 1)
        rotate_right(t, left, right, sep);
    while (right->n > left->n + 1)
        rotate_left(t, left, right, sep);
}

/* While the root has one child only, take its content and free it. */
static void
root_pull_up(const struct btree *t)
{
    struct btree_node *root = node_write(t, t->root);

    while (root->level > 0 && root->n == 0) {
        uint32_t block = root->link;
        const struct btree_node *child = node_read(t, block);

        node_init(t, t->root, child->level);
        root->link = child->link;
        node_append(t, root, child, 0);
        btree_block_free(t, block);
    }
}

static int
delete_body(void *tree, struct tree_request *r)
{
    struct btree *t = tree;
    struct path path;
    struct btree_node *node = descend(t, r->key, true, &path);
    unsigned pos = node_rank(t, node, r->key, 0);
    unsigned d = path.depth - 1;

    if (!entry_is(t, node, pos, r->key))
        return ENOENT;
    slot_close(node, pos);
    while (d > 0 && node->n < min_of(t, node->level)) {
        node = node_write(t, path.block[--d]);
        child_rebalance(t, node, path.pos[d]);
    }
    if (d == 0 && node->level > 0 && node->n == 0)
        root_pull_up(t);
    return 0;
}

int
btree_delete(struct btree *t, const void *key)
{
    struct tree_request r = {.key = key};

    return tree_update(delete_body, t, &r);
}
