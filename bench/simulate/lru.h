/* SPDX-License-Identifier: MIT */
/*
 * lru.h -- a simulated cache: so many blocks, any block anywhere, the least recently used one goes.
 *
 * WHAT      The ideal cache of M bytes in blocks of B (M. Frigo et al., Cache-Oblivious Algorithms,
 *           FOCS 1999), but that it does not look into the future: with twice the memory LRU misses
 *           at most twice as often as the ideal one.
 * NOT HERE  Which blocks a program touches (traced.h).
 * THREADS   none.
 *
 * INVARIANTS
 *   1. n_resident <= n_frames blocks are in the list, the most recently used first; their state is
 *      BENCH_LRU_RESIDENT, and no other block's is.
 */
#ifndef XBENCH_LRU_H
#define XBENCH_LRU_H

#include <stdint.h>

/* What has become of a block. */
enum bench_lru_state {
    BENCH_LRU_AWAY = 0, /* never here, or pushed out                                   */
    BENCH_LRU_RESIDENT = 1,
    BENCH_LRU_LOST = 2 /* was here until somebody else stored to it                    */
};

struct bench_lru {
    uint32_t n_frames, n_resident, n_blocks;
    uint32_t *next, *prev; /* [n_blocks] is the head of the list                       */
    uint8_t *state;        /* enum bench_lru_state                                     */
};

/* bench_lru_init -- an empty cache for blocks 0 .. n_blocks - 1; ret 0, or 1 after a message. */
int bench_lru_init(struct bench_lru *l, uint32_t n_frames, uint32_t n_blocks);

/* bench_lru_fini -- any state, all zeros too. */
void bench_lru_fini(struct bench_lru *l);

/* bench_lru_touch -- use a block; ret what it was before: any but RESIDENT is a miss. */
enum bench_lru_state bench_lru_touch(struct bench_lru *l, uint32_t block);

/* bench_lru_lose -- somebody else has stored to a block. */
void bench_lru_lose(struct bench_lru *l, uint32_t block);

#endif /* XBENCH_LRU_H */
