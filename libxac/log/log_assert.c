/* SPDX-License-Identifier: MIT */
/*
 * log_assert.c -- whether a log is sound: see the invariants of log.h.
 *
 * Positions move while we look.  Each grows, so what is read later may only be larger than it
 * was, and the comparisons allow for that.
 */
#include <config.h>

#include <string.h>

#include "base/lock.h"
#include "log/block.h"
#include "log/log.h"

/* assert_fixed -- what xac_log_create() has stored. */
static void
assert_fixed(const struct xac_log_shared *sh)
{
    xac_require(sh->ring_bytes != 0 && (sh->ring_bytes & (sh->ring_bytes - 1)) == 0);
    xac_require(sh->segment_bytes >= XAC_SEGMENT_HEADER);
    xac_require((sh->segment_bytes & (sh->segment_bytes - 1)) == 0);
    xac_require(sh->start_lsn >= XAC_LSN_FIRST);
    xac_require(sh->start_lsn % XAC_BLOCK_ALIGN == 0);
}

/* ring_read -- bytes of the ring, which may go round its end. */
static void
ring_read(const struct xac_log *log, uint64_t lsn, void *to, size_t n)
{
    uint64_t at = lsn & (log->sh->ring_bytes - 1);
    size_t first = log->sh->ring_bytes - at < n ? (size_t)(log->sh->ring_bytes - at) : n;

    xac_assert(n <= log->sh->ring_bytes);
    memcpy(to, log->ring + at, first);
    memcpy((uint8_t *)to + first, log->ring, n - first);
}

/* assert_flushing -- the flush lock is held, so nobody else moves `durable`. */
static void
assert_flushing(const struct xac_log *log, uint64_t durable, uint64_t tail)
{
    struct xac_log_id id = {.generation = log->sh->generation};
    struct xac_block head;

    xac_require(log->started <= tail);
    for (uint64_t i = 0; i < 2; i++)
        xac_require(log->seg_no[i] == 0 || log->seg_no[i] % 2 == i);
    if (durable == tail)
        return;
    ring_read(log, durable, &head, sizeof head); /* (3) */
    memcpy(&id.identity, log->sh->identity, sizeof id.identity);
    xac_require(xac_block_head_ok(&head, id, durable));
    xac_require(durable + head.length <= tail);
}

void
xac_log_assert(const struct xac_log *log)
{
    const struct xac_log_shared *sh = log->sh;
    /* acquire: pairs with flush_held. */
    uint64_t before = atomic_load_explicit(&sh->durable, memory_order_acquire);
    /* acquire: pairs with note_written. */
    uint64_t written = atomic_load_explicit(&sh->written, memory_order_acquire);
    /* acquire: pairs with xac_log_append. */
    uint64_t tail = atomic_load_explicit(&sh->tail, memory_order_acquire);
    uint64_t after = atomic_load_explicit(&sh->durable, memory_order_acquire);
    uint64_t prepared = atomic_load_explicit(&sh->prepared, memory_order_acquire);

    assert_fixed(sh);
    xac_require(sh->start_lsn <= before);        /* (1) */
    xac_require(before <= written);              /* (1) */
    xac_require(written <= tail);                /* (1) */
    xac_require(tail <= after + sh->ring_bytes); /* (1) */
    xac_require(tail <= prepared);               /* (4) */
    xac_require(tail % XAC_BLOCK_ALIGN == 0);
    if (xac_lock_is_mine(&sh->flush))
        assert_flushing(log, before, tail);
}
