/* SPDX-License-Identifier: MIT */
/*
 * transfers.h -- the experiment `transfers`: the caches of several processes.
 *
 * transfers.c has the command line, the trees and the schedule, transfers_caches.c what the
 * caches make of it.
 */
#ifndef XBENCH_TRANSFERS_H
#define XBENCH_TRANSFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/kit/options.h"
#include "bench/simulate/lru.h"
#include "bench/simulate/traced.h"

#define BENCH_TRANSFER_PROCS_MAX 64u
#define BENCH_TRANSFER_PAGE      4096u /* of libxac: what a version is of              */

/* Blocks that were transferred. */
struct bench_transfers {
    uint64_t own;      /* to caches of their own, one for each process                 */
    uint64_t own_lost; /* of these, blocks lost as another process stored to them      */
    uint64_t versions; /* the same, but pages have versions: see below                 */
    uint64_t versions_lost;
    uint64_t shared; /* to one cache of all processes                                 */
};

/*
 * Caches for one size of blocks.
 *
 * OWN       A store takes the block out of all other caches, at once.
 * VERSIONS  As on libxac: the first store of a transaction to a page copies all of it, and when the
 *           transaction commits the page is gone from all other caches.
 * SHARED    One cache, as large as one of those.
 */
struct bench_transfer_caches {
    uint32_t block_bytes;
    unsigned n_procs;
    uint32_t n_pages;
    struct bench_lru own[BENCH_TRANSFER_PROCS_MAX];
    struct bench_lru versions[BENCH_TRANSFER_PROCS_MAX];
    struct bench_lru shared;
    uint32_t *copied; /* [process * n_pages + page]: attempt that has copied it        */
    struct bench_transfers counts;
};

/* bench_transfer_init -- caches of memory_bytes for a segment; ret 0, or 1 after a message. */
int bench_transfer_init(struct bench_transfer_caches *c, unsigned n_procs,
                        uint64_t block_bytes, uint64_t memory_bytes,
                        uint64_t segment_bytes);

/* bench_transfer_fini -- any state, all zeros too. */
void bench_transfer_fini(struct bench_transfer_caches *c);

/*
 * bench_transfer_access -- process p loads or stores.
 *
 * in   attempt  number of the transaction's attempt, from 1 on, different for each
 * in   aborts   the attempt will abort: nobody else sees its stores
 */
void bench_transfer_access(struct bench_transfer_caches *c, unsigned p, uint32_t attempt,
                           const struct bench_access *a, bool aborts);

/* bench_transfer_commit -- process p commits what the accesses say that it has stored. */
void bench_transfer_commit(struct bench_transfer_caches *c, unsigned p,
                           const struct bench_accesses *all);

#endif /* XBENCH_TRANSFERS_H */
