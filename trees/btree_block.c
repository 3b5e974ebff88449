/* SPDX-License-Identifier: MIT */
/*
 * btree_block.c -- blocks of a B+-tree, from per-process arenas; see btree_layout.h.
 *
 * Arenas let splits of two processes meet only where the tree does.
 */
#include <config.h>

#include "btree_node.h"

#include <errno.h>

/* Blocks that arena a can give without asking. */
static inline uint32_t
arena_room(const struct btree *t, uint32_t a)
{
    const struct btree_arena *arena = arena_of(t, a);

    return arena->free_count + (arena->chunk_end - arena->chunk_next);
}

int
btree_blocks_reserve(const struct btree *t, uint32_t need)
{
    uint32_t room;

    tree_hint(t->hints, arena_of(t, t->arena), TREE_READ_WRITE);
    room = arena_room(t, t->arena);
    if (room < need)
        room += t->n_blocks - header_of(t)->high_water;
    for (uint32_t a = 0; a < t->n_arenas && room < need; a++)
        if (a != t->arena)
            room += arena_room(t, a);
    return room < need ? ENOSPC : 0;
}

/* Take a block out of an arena.  ret 0 if it has none. */
static uint32_t
arena_take(const struct btree *t, uint32_t a)
{
    struct btree_arena *arena = arena_of(t, a);
    uint32_t block = arena->free_head;

    if (block != 0 || arena->chunk_next != arena->chunk_end)
        tree_hint(t->hints && a != t->arena, arena, TREE_READ_WRITE);
    if (block != 0) {
        arena->free_head = node_write(t, block)->link;
        arena->free_count--;
        return block;
    }
    if (arena->chunk_next == arena->chunk_end)
        return 0;
    return btree_block_nth(t, arena->chunk_next++);
}

/* Move a chunk of unused blocks into our arena; its own chunk is used up. */
static void
arena_refill(const struct btree *t)
{
    struct btree_header *header = header_of(t);
    struct btree_arena *arena = arena_of(t, t->arena);
    uint32_t left = t->n_blocks - header->high_water;
    uint32_t chunk = left < BTREE_CHUNK ? left : BTREE_CHUNK;

    if (chunk == 0)
        return;
    tree_hint(t->hints, header, TREE_READ_WRITE);
    arena->chunk_next = header->high_water;
    arena->chunk_end = header->high_water + chunk;
    header->high_water += chunk;
}

uint32_t
btree_block_alloc(const struct btree *t)
{
    uint32_t block = arena_take(t, t->arena);

    if (block == 0) {
        arena_refill(t);
        block = arena_take(t, t->arena);
    }
    for (uint32_t a = 0; block == 0 && a < t->n_arenas; a++)
        block = arena_take(t, a);
    return block;
}

void
btree_block_free(const struct btree *t, uint32_t block)
{
    struct btree_arena *arena = arena_of(t, t->arena);
    struct btree_node *node = node_write(t, block);

    tree_hint(t->hints, arena, TREE_READ_WRITE);
    node->level = BTREE_LEVEL_FREE;
    node->n = 0;
    node->link = arena->free_head;
    arena->free_head = block;
    arena->free_count++;
}
