/* SPDX-License-Identifier: MIT */
/*
 * btree_check.c -- verify a B+-tree; see btree_check() in btree.h.
 *
 * Trusts nothing but the handle: every number read from the segment is checked before it
 * is used as an index, and no block is visited twice.
 */
#include <config.h>

#include "btree_layout.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct check {
    const struct btree *t;
    struct btree_report *report;
    unsigned char *seen;      /* one byte per block: it was met                       */
    unsigned char *cell_seen; /* one byte per cell of a node: it is in a slot         */
    uint32_t leaf;            /* leaf visited last, 0 if none                         */
    uint32_t link;            /* its link                                             */
};

/* What a node's place in the tree demands of it. */
struct place {
    const unsigned char *low;  /* no key is less than this; NULL: no bound            */
    const unsigned char *high; /* every key is less than this; NULL: no bound         */
    unsigned level;            /* its level; that of the root is its own              */
    bool right_edge;           /* on the way to the last leaf                         */
};

static int violation(struct check *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Note the violation in words.  ret EUCLEAN. */
static int
violation(struct check *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(c->report->text, sizeof c->report->text, fmt, ap);
    va_end(ap);
    return EUCLEAN;
}

/* Meet a block in the role that `what` says; each block has one role. */
static int
meet(struct check *c, uint32_t block, const char *what, uint32_t from)
{
    if (block < c->t->root || block >= c->t->n_blocks)
        return violation(c, "block %u: refers to %s %u, which is out of range", from,
                         what, block);
    if (c->seen[block])
        return violation(c, "block %u: refers to %s %u, which is in use elsewhere", from,
                         what, block);
    c->seen[block] = 1;
    return 0;
}

/* Header fields and slots, which the other checks rely on. */
static int
check_frame(struct check *c, uint32_t block, const struct btree_node *node,
            const struct place *place)
{
    uint32_t cap = cap_of(c->t, place->level);

    if (node->level != place->level)
        return violation(c, "block %u: level %u, expected %u", block, node->level,
                         place->level);
    if (node->self != block)
        return violation(c, "block %u: calls itself %u", block, node->self);
    if (node->n > cap)
        return violation(c, "block %u: %u entries, room for %u", block, node->n, cap);
    memset(c->cell_seen, 0, cap);
    for (uint32_t i = 0; i < cap; i++) {
        unsigned cell = node->slots[i];

        if (cell >= cap || c->cell_seen[cell])
            return violation(c, "block %u: slot %u names cell %u, which is %s", block, i,
                             cell, cell >= cap ? "out of range" : "in another slot");
        c->cell_seen[cell] = 1;
    }
    return 0;
}

static int
check_fill(struct check *c, uint32_t block, const struct btree_node *node,
           const struct place *place)
{
    bool is_root = block == c->t->root;
    uint32_t least = place->right_edge ? 1 : min_of(c->t, node->level);

    if (is_root)
        least = node->level == 0 ? 0 : 1;
    if (node->n < least)
        return violation(c, "block %u: %u entries, at least %u expected", block, node->n,
                         least);
    return 0;
}

static int
check_order(struct check *c, uint32_t block, const struct btree_node *node,
            const struct place *place)
{
    const struct btree *t = c->t;

    for (unsigned i = 0; i < node->n; i++) {
        const unsigned char *key = key_at(t, node, i);

        if (i > 0 && memcmp(key_at(t, node, i - 1), key, t->key_size) >= 0)
            return violation(c, "block %u: key %u is not above the one before", block, i);
        if (place->low != NULL && memcmp(key, place->low, t->key_size) < 0)
            return violation(c, "block %u: key %u is below the separator", block, i);
        if (place->high != NULL && memcmp(key, place->high, t->key_size) >= 0)
            return violation(c, "block %u: key %u is not below the next separator", block,
                             i);
    }
    return 0;
}

/* The leaves are linked in the order in which the tree leads to them. */
static int
check_leaf(struct check *c, uint32_t block, const struct btree_node *leaf)
{
    if (c->leaf != 0 && c->link != block)
        return violation(c, "block %u: links to leaf %u, expected %u", c->leaf, c->link,
                         block);
    c->leaf = block;
    c->link = leaf->link;
    c->report->leaves++;
    c->report->entries += leaf->n;
    return 0;
}

static int
check_node(struct check *c, uint32_t block, const struct place *place)
{
    const struct btree *t = c->t;
    const struct btree_node *node = node_of(t, block);
    int rc = check_frame(c, block, node, place);

    if (rc == 0)
        rc = check_fill(c, block, node, place);
    if (rc == 0)
        rc = check_order(c, block, node, place);
    if (rc != 0)
        return rc;
    if (node->level == 0)
        return check_leaf(c, block, node);
    c->report->inners++;
    for (unsigned i = 0; i <= node->n; i++) {
        uint32_t child = child_at(t, node, i);
        struct place below = {.low = i > 0 ? key_at(t, node, i - 1) : place->low,
                              .high = i < node->n ? key_at(t, node, i) : place->high,
                              .level = node->level - 1u,
                              .right_edge = place->right_edge && i == node->n};

        rc = meet(c, child, "child", block);
        if (rc == 0)
            rc = check_node(c, child, &below);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* The tree proper, from the root. */
static int
check_tree(struct check *c)
{
    const struct btree_node *root = node_of(c->t, c->t->root);
    struct place place = {.level = root->level, .right_edge = true};
    int rc;

    if (root->level >= BTREE_DEPTH_MAX)
        return violation(c, "block %u: the root's level is %u", c->t->root, root->level);
    c->report->height = root->level;
    c->seen[c->t->root] = 1;
    rc = check_node(c, c->t->root, &place);
    if (rc == 0 && c->link != 0)
        rc = violation(c, "block %u: the last leaf links to %u", c->leaf, c->link);
    return rc;
}

/* An arena's free list and chunk. */
static int
check_arena(struct check *c, uint32_t a, uint32_t high_water)
{
    const struct btree_arena *arena = arena_of(c->t, a);
    uint32_t count = 0, from = 0;

    for (uint32_t b = arena->free_head; b != 0; b = node_of(c->t, b)->link) {
        int rc = meet(c, b, "free block", from);

        if (rc != 0)
            return rc;
        if (node_of(c->t, b)->level != BTREE_LEVEL_FREE)
            return violation(c, "block %u: in the free list, but level %u", b,
                             node_of(c->t, b)->level);
        from = b;
        count++;
    }
    if (count != arena->free_count)
        return violation(c, "arena %u: %u free blocks, its count says %u", a, count,
                         arena->free_count);
    if (arena->chunk_next > arena->chunk_end || arena->chunk_end > high_water
        || (arena->chunk_next <= c->t->root && arena->chunk_end > 0))
        return violation(c, "arena %u: chunk %u to %u, blocks handed out below %u", a,
                         arena->chunk_next, arena->chunk_end, high_water);
    for (uint32_t i = arena->chunk_next; i < arena->chunk_end; i++) {
        int rc = meet(c, btree_block_nth(c->t, i), "unused block", 0);

        if (rc != 0)
            return rc;
    }
    c->report->free += count;
    c->report->unused += arena->chunk_end - arena->chunk_next;
    return 0;
}

/* The header, the arenas, and that no block was lost. */
static int
check_blocks(struct check *c)
{
    const struct btree *t = c->t;
    const struct btree_header *h = header_of(t);
    uint32_t high_water = h->high_water;

    if (h->magic != BTREE_MAGIC || h->version != BTREE_VERSION
        || h->key_size != t->key_size || h->value_size != t->value_size
        || h->block_size != t->block_size || h->n_blocks != t->n_blocks
        || h->n_arenas != t->n_arenas || h->root != t->root
        || h->allocation != t->allocation)
        return violation(c, "header: not what it was when the tree was opened");
    if (high_water <= t->root || high_water > t->n_blocks)
        return violation(c, "header: high-water mark %u of %u blocks", high_water,
                         t->n_blocks);
    for (uint32_t a = 0; a < t->n_arenas; a++) {
        int rc = check_arena(c, a, high_water);

        if (rc != 0)
            return rc;
    }
    for (uint32_t i = t->root + 1; i < t->n_blocks; i++) {
        uint32_t b = btree_block_nth(t, i);

        if (i < high_water && !c->seen[b])
            return violation(c, "block %u: lost, neither in the tree nor free", b);
        if (i >= high_water && c->seen[b])
            return violation(c, "block %u: in use, but above the high-water mark", b);
    }
    c->report->unused += t->n_blocks - high_water;
    return 0;
}

static int
check_body(void *check, struct tree_request *r)
{
    int rc = check_tree(check);

    (void)r;
    return rc != 0 ? rc : check_blocks(check);
}

int
btree_check(struct btree *t, struct btree_report *report)
{
    struct check c = {.t = t, .report = report};
    struct tree_request r = {0};
    uint32_t cap = t->leaf_cap > t->inner_cap ? t->leaf_cap : t->inner_cap;
    int rc = ENOMEM;

    *report = (struct btree_report){.n_blocks = t->n_blocks,
                                    .leaf_cap = t->leaf_cap,
                                    .inner_cap = t->inner_cap,
                                    .key_size = t->key_size,
                                    .value_size = t->value_size,
                                    .block_size = t->block_size};
    c.seen = calloc(t->n_blocks, 1);
    c.cell_seen = malloc(cap);
    if (c.seen != NULL && c.cell_seen != NULL)
        rc = tree_query(check_body, &c, &r);
    free(c.cell_seen);
    free(c.seen);
    return rc;
}
