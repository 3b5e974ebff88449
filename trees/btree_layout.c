/* SPDX-License-Identifier: MIT */
/*
 * btree_layout.c -- geometry of a B+-tree: how many cells a block holds, and where.
 */
#include <config.h>

#include "btree_layout.h"

#include <errno.h>

static uint32_t
align_up(uint32_t v, uint32_t to)
{
    return (v + to - 1) / to * to;
}

/* Lay out `cap` leaf entries.  ret bytes used. */
static uint64_t
leaf_lay_out(struct btree *t, uint32_t cap)
{
    uint32_t align = t->value_size & (~t->value_size + 1);

    /* In blocks of several pages values of 512 bytes, say, should not straddle pages. */
    if (align < 8 || t->block_size <= BTREE_PAGE)
        align = 8;
    if (align > BTREE_PAGE)
        align = BTREE_PAGE;
    t->leaf_cap = cap;
    t->leaf_keys = align_up((uint32_t)sizeof(struct btree_node) + 2 * cap, 8);
    t->leaf_values = align_up(t->leaf_keys + cap * t->key_size, align);
    return t->leaf_values + (uint64_t)cap * t->value_size;
}

/* Lay out `cap` keys of an inner node.  ret bytes used. */
static uint64_t
inner_lay_out(struct btree *t, uint32_t cap)
{
    t->inner_cap = cap;
    t->inner_keys = align_up((uint32_t)sizeof(struct btree_node) + 2 * cap, 8);
    t->inner_children = align_up(t->inner_keys + cap * t->key_size, 8);
    return t->inner_children + (uint64_t)cap * sizeof(uint32_t);
}

/* Most cells that `payload` bytes each leave room for, slots being 16 bits wide. */
static uint32_t
cap_guess(const struct btree *t, uint64_t payload)
{
    uint64_t cap = (t->block_size - sizeof(struct btree_node)) / (2 + payload);

    return cap < UINT16_MAX ? (uint32_t)cap : UINT16_MAX;
}

int
btree_layout_set(struct btree *t, const struct btree_config *config)
{
    uint32_t cap;

    if (config->key_size < 1 || config->key_size > BTREE_KEY_MAX
        || config->value_size > BTREE_BLOCK_MAX || config->block_size < BTREE_BLOCK_MIN
        || config->block_size > BTREE_BLOCK_MAX
        || (config->block_size & (config->block_size - 1)) != 0
        || config->allocation > BTREE_SCATTERED)
        return EINVAL;
    t->key_size = config->key_size;
    t->value_size = config->value_size;
    t->block_size = config->block_size;
    t->allocation = config->allocation;
    cap = cap_guess(t, (uint64_t)t->key_size + t->value_size);
    while (cap >= 3 && leaf_lay_out(t, cap) > t->block_size)
        cap--;
    if (cap < 3)
        return EINVAL;
    cap = cap_guess(t, t->key_size + sizeof(uint32_t));
    while (cap >= 3 && inner_lay_out(t, cap) > t->block_size)
        cap--;
    t->n_arenas = BTREE_ARENAS;
    t->root = align_up((1 + t->n_arenas) * BTREE_PAGE, t->block_size) / t->block_size;
    return cap < 3 ? EINVAL : 0;
}

/* A permutation of the numbers of `bits` bits, which keeps no pattern: three rounds. */
static uint32_t
scramble(uint32_t v, unsigned bits)
{
    uint32_t mask = (uint32_t)((UINT64_C(1) << bits) - 1);

    for (uint32_t odd = 0x9e3779b1; odd != 0x9e3779b1 + 6; odd += 2) {
        v = (v * odd + odd) & mask;
        v ^= v >> (bits + 1) / 2;
    }
    return v;
}

uint32_t
btree_block_nth(const struct btree *t, uint32_t i)
{
    uint32_t first = t->root + 1, n = t->n_blocks - first, v = i - first;
    unsigned bits = 1;

    if (t->allocation == BTREE_SEQUENTIAL)
        return i;
    while (n > UINT64_C(1) << bits)
        bits++;
    do /* a cycle of the permutation comes back below n, as it began there */
        v = scramble(v, bits);
    while (v >= n);
    return first + v;
}
