/* SPDX-License-Identifier: MIT */
/*
 * lru.c -- see lru.h.
 */
#include <config.h>

#include "bench/simulate/lru.h"

#include <stdlib.h>

#include "bench/kit/util.h"

int
bench_lru_init(struct bench_lru *l, uint32_t n_frames, uint32_t n_blocks)
{
    *l = (struct bench_lru){.n_frames = n_frames, .n_blocks = n_blocks};
    l->next = malloc((n_blocks + 1) * sizeof *l->next);
    l->prev = malloc((n_blocks + 1) * sizeof *l->prev);
    l->state = calloc(n_blocks, sizeof *l->state);
    if (n_frames == 0 || l->next == NULL || l->prev == NULL || l->state == NULL)
        return bench_fail("a cache of %u of %u blocks: out of memory", n_frames,
                          n_blocks);
    l->next[n_blocks] = l->prev[n_blocks] = n_blocks;
    return 0;
}

void
bench_lru_fini(struct bench_lru *l)
{
    free(l->next);
    free(l->prev);
    free(l->state);
    *l = (struct bench_lru){0};
}

/* unlink_block -- from the list. */
static void
unlink_block(struct bench_lru *l, uint32_t block)
{
    l->next[l->prev[block]] = l->next[block];
    l->prev[l->next[block]] = l->prev[block];
}

enum bench_lru_state
bench_lru_touch(struct bench_lru *l, uint32_t block)
{
    enum bench_lru_state was = (enum bench_lru_state)l->state[block];
    uint32_t head = l->n_blocks, last = l->prev[head];

    if (was == BENCH_LRU_RESIDENT) {
        unlink_block(l, block);
    } else if (l->n_resident == l->n_frames) {
        unlink_block(l, last);
        l->state[last] = BENCH_LRU_AWAY;
    } else {
        l->n_resident++;
    }
    l->next[block] = l->next[head];
    l->prev[block] = head;
    l->prev[l->next[head]] = block;
    l->next[head] = block;
    l->state[block] = BENCH_LRU_RESIDENT;
    return was;
}

void
bench_lru_lose(struct bench_lru *l, uint32_t block)
{
    if (l->state[block] != BENCH_LRU_RESIDENT)
        return;
    unlink_block(l, block);
    l->n_resident--;
    l->state[block] = BENCH_LRU_LOST;
}
