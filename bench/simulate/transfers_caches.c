/* SPDX-License-Identifier: MIT */
/*
 * transfers_caches.c -- see transfers.h.
 */
#include <config.h>

#include "bench/simulate/transfers.h"

#include <stdlib.h>

#include "bench/kit/util.h"

int
bench_transfer_init(struct bench_transfer_caches *c, unsigned n_procs,
                    uint64_t block_bytes, uint64_t memory_bytes, uint64_t segment_bytes)
{
    uint32_t n_frames = (uint32_t)(memory_bytes / block_bytes);
    uint32_t n_blocks = (uint32_t)((segment_bytes + block_bytes - 1) / block_bytes);
    int rc;

    *c = (struct bench_transfer_caches){.block_bytes = (uint32_t)block_bytes,
                                        .n_procs = n_procs};
    c->n_pages = (uint32_t)(segment_bytes / BENCH_TRANSFER_PAGE) + 1;
    c->copied = calloc((size_t)n_procs * c->n_pages, sizeof *c->copied);
    if (c->copied == NULL)
        return bench_fail("transfers: out of memory");
    rc = bench_lru_init(&c->shared, n_frames, n_blocks);
    for (unsigned p = 0; p < n_procs && rc == 0; p++) {
        rc = bench_lru_init(&c->own[p], n_frames, n_blocks);
        rc = rc != 0 ? rc : bench_lru_init(&c->versions[p], n_frames, n_blocks);
    }
    return rc;
}

void
bench_transfer_fini(struct bench_transfer_caches *c)
{
    bench_lru_fini(&c->shared);
    for (unsigned p = 0; p < c->n_procs; p++) {
        bench_lru_fini(&c->own[p]);
        bench_lru_fini(&c->versions[p]);
    }
    free(c->copied);
    *c = (struct bench_transfer_caches){0};
}

/* touch -- count a transfer if there is one. */
static void
touch(struct bench_lru *cache, uint32_t block, uint64_t *missesp, uint64_t *lostp)
{
    enum bench_lru_state was = bench_lru_touch(cache, block);

    *missesp += was != BENCH_LRU_RESIDENT;
    *lostp += was == BENCH_LRU_LOST;
}

/* lose -- a block that process p has stored to is gone from all other caches. */
static void
lose(struct bench_lru *caches, unsigned n_procs, unsigned p, uint32_t block)
{
    for (unsigned q = 0; q < n_procs; q++)
        if (q != p)
            bench_lru_lose(&caches[q], block);
}

/* first_block, last_block -- of a page. */
static uint32_t
first_block(const struct bench_transfer_caches *c, uint32_t page)
{
    return (uint32_t)((uint64_t)page * BENCH_TRANSFER_PAGE / c->block_bytes);
}

static uint32_t
last_block(const struct bench_transfer_caches *c, uint32_t page)
{
    return (uint32_t)(((uint64_t)(page + 1) * BENCH_TRANSFER_PAGE - 1) / c->block_bytes);
}

/* copy_pages -- those that a store goes to, unless the attempt has copied them before. */
static void
copy_pages(struct bench_transfer_caches *c, unsigned p, uint32_t attempt,
           const struct bench_access *a)
{
    uint32_t end = (a->at + a->n - 1) / BENCH_TRANSFER_PAGE;

    for (uint32_t page = a->at / BENCH_TRANSFER_PAGE; page <= end; page++) {
        uint32_t *by = &c->copied[(size_t)p * c->n_pages + page];

        for (uint32_t b = first_block(c, page);
             *by != attempt && b <= last_block(c, page); b++)
            touch(&c->versions[p], b, &c->counts.versions, &c->counts.versions_lost);
        *by = attempt;
    }
}

void
bench_transfer_access(struct bench_transfer_caches *c, unsigned p, uint32_t attempt,
                      const struct bench_access *a, bool aborts)
{
    uint32_t end = (a->at + a->n - 1) / c->block_bytes;
    uint64_t none = 0;

    if (a->is_store)
        copy_pages(c, p, attempt, a);
    for (uint32_t b = a->at / c->block_bytes; b <= end; b++) {
        touch(&c->own[p], b, &c->counts.own, &c->counts.own_lost);
        touch(&c->versions[p], b, &c->counts.versions, &c->counts.versions_lost);
        touch(&c->shared, b, &c->counts.shared, &none);
        if (a->is_store && !aborts)
            lose(c->own, c->n_procs, p, b);
    }
}

void
bench_transfer_commit(struct bench_transfer_caches *c, unsigned p,
                      const struct bench_accesses *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct bench_access *a = &all->v[i];
        uint32_t end = (a->at + a->n - 1) / BENCH_TRANSFER_PAGE;

        for (uint32_t page = a->at / BENCH_TRANSFER_PAGE; a->is_store && page <= end;
             page++)
            for (uint32_t b = first_block(c, page); b <= last_block(c, page); b++)
                lose(c->versions, c->n_procs, p, b);
    }
}
