/* SPDX-License-Identifier: MIT */
/*
 * flush.c -- writing pages back, and forgetting them.
 *
 * The dirty bit goes off before the bytes are read and comes on again with every change
 * after that, so that no change is lost; FLUSHING keeps a second writer away.
 */
#include <config.h>

#include "frames/pool.h"

#include <errno.h>
#include <sched.h>

XAC_SIGSAFE int
xac_frames_write(struct xac_frames_user *user, struct frame *f)
{
    struct xac_frames *pool = user->pool;
    uint64_t page = atomic_load_explicit(&f->page_id, memory_order_relaxed);
    /* Acquire pairs with page_in(): the bytes. */
    uint32_t data = atomic_load_explicit(&f->data, memory_order_acquire);
    const void *bytes = pool_data(pool, data);
    frame_ref ref =
        frame_ref_make((uint32_t)(frame_load(f) >> 32), (uint32_t)(f - pool->frames));
    int rc = 0;

    xac_assert((frame_word(frame_load(f)) & FRAME_FLUSHING) != 0);
    xac_assert(atomic_load_explicit(&user->seat->writing, memory_order_relaxed) == 0);
    if (bytes == NULL) /* a simulation */
        return 0;
    /* Release pairs with xac_frames_reap(). */
    atomic_store_explicit(&user->seat->writing, ref, memory_order_release);
    if (pool->io.before_write != NULL)
        rc = pool->io.before_write(pool->io.arg, page, bytes);
    if (rc == 0) {
        rc = pool->owner == NULL ? pool->io.write(pool->io.arg, page, bytes)
                                 : pool->owner->write(pool->owner->arg, page,
                                                      frame_ref_index(ref), bytes);
        pool_count(user, POOL_WRITES, pool->owner == NULL || rc != EAGAIN);
    }
    /* Pairs with xac_frames_reap(). */
    atomic_store_explicit(&user->seat->writing, 0, memory_order_release);
    xac_assert(atomic_load_explicit(&user->seat->writing, memory_order_relaxed) == 0);
    return rc;
}

/* somebody_died -- in a call, and xac_frames_repair() has not come yet. */
static bool
somebody_died(const struct xac_frames *pool)
{
    for (uint32_t i = 0; i < pool->region->config.n_users; i++)
        if (atomic_load_explicit(&pool->seats[i].taken, memory_order_relaxed)
            == SEAT_BROKEN)
            return true;
    return false;
}

/* flush_pinned -- write it if dirty; wait for another's write, which may have begun too early. */
static int
flush_pinned(struct xac_frames_user *user, struct frame *f, frame_ref ref)
{
    int rc;

    xac_assert((frame_word(frame_load(f)) & FRAME_PINS) >= 1);
    xac_assert(frame_is_of(frame_load(f), ref));
    while ((frame_word(frame_load(f)) & (FRAME_DIRTY | FRAME_FLUSHING)) != 0) {
        if (!frame_flush_begin(f, ref, false)) {
            if (somebody_died(user->pool)) /* perhaps the one who had begun */
                return EOWNERDEAD;
            (void)sched_yield();
            continue;
        }
        rc = xac_frames_write(user, f);
        frame_flush_end(f, rc == 0);
        return rc;
    }
    return 0;
}

/* flush_ref -- flush a life, if it is not over: what is GONE was clean. */
static int
flush_ref(struct xac_frames_user *user, frame_ref ref)
{
    struct frame *f = pool_frame(user->pool, ref);
    int rc = 0;

    if (ref == 0)
        return 0;
    pool_in_call(user, true);
    if (frame_try_pin(f, ref)) {
        xac_frames_point("flush");
        rc = flush_pinned(user, f, ref);
        frame_unpin(f);
    }
    pool_in_call(user, false);
    return rc;
}

int
xac_frames_flush(struct xac_frames_user *user, uint64_t page)
{
    if (page >= user->pool->region->config.n_pages)
        return EINVAL;
    return flush_ref(user, slot_load(&user->pool->table[page]));
}

/*
 * Only dirty frames are pinned: one that is not may be its creator's alone, in the ring and not yet
 * in the table, who can cancel it only if nobody else has it pinned.  Dirty ones have been published.
 */
int
xac_frames_flush_all(struct xac_frames_user *user)
{
    int first = 0;

    for (uint32_t i = 0; i < user->pool->n_frames; i++) {
        frame_ref ref = slot_load(ring_slot(user->pool, i));
        uint64_t state = ref == 0 ? 0 : frame_load(pool_frame(user->pool, ref));
        int rc = 0;

        if (frame_is_of(state, ref) && frame_word(state) != FRAME_GONE
            && (frame_word(state) & (FRAME_DIRTY | FRAME_FLUSHING)) != 0)
            rc = flush_ref(user, ref);
        if (first == 0)
            first = rc;
    }
    return first;
}

/* pinned_alone -- the only pin is the caller's, and nobody writes. */
static bool
pinned_alone(uint64_t state)
{
    return (frame_word(state) & ~FRAME_DIRTY) == 1;
}

/* gone_forget -- a frame that is being evicted must not be rescued: take it from the table. */
static bool
gone_forget(struct xac_frames_user *user, uint64_t page, frame_ref ref)
{
    /* Before the removal, after which the evictor may begin the next life. */
    uint32_t data =
        atomic_load_explicit(&pool_frame(user->pool, ref)->data, memory_order_relaxed);

    xac_assert(ref != 0);
    xac_assert(page < user->pool->n_pages);
    if (!table_remove(user->pool, page, ref))
        return false;
    xac_frames_buffer_give(user, data); /* P5 */
    return true;
}

/* invalidate -- see xac_frames_invalidate(). */
static int
invalidate(struct xac_frames_user *user, uint64_t page)
{
    struct xac_frames *pool = user->pool;
    frame_ref ref, none = 0;
    struct frame *f;
    uint64_t seen;
    bool is_back;

    xac_assert(page < pool->n_pages);
    ref = slot_load(&pool->table[page]);
    if (ref == 0)
        return 0;
    f = pool_frame(pool, ref);
    if (!frame_try_pin(f, ref)) {
        (void)gone_forget(user, page, ref);
        return 0;
    }
    if (!pinned_alone(frame_load(f)) || !table_remove(pool, page, ref)) {
        frame_unpin(f);
        return EBUSY;
    }
    seen = frame_load(f);
    while (pinned_alone(seen)) {
        uint32_t data = atomic_load_explicit(&f->data, memory_order_relaxed);

        if (frame_cas(f, &seen, frame_state_make(ref, FRAME_GONE))) {
            xac_frames_buffer_give(user, data); /* a ghost until the hand comes */
            return 0;
        }
    }
    /* Somebody came between, against the rules; the page stays if its place is free. */
    is_back = slot_cas(&pool->table[page], &none, ref);
    xac_require(is_back);
    frame_unpin(f);
    return EBUSY;
}

int
xac_frames_invalidate(struct xac_frames_user *user, uint64_t page)
{
    int rc;

    if (page >= user->pool->region->config.n_pages)
        return EINVAL;
    pool_in_call(user, true);
    rc = invalidate(user, page);
    pool_in_call(user, false);
    return rc;
}

bool
xac_frames_evict(struct xac_frames_user *user, uint32_t frame)
{
    struct xac_frames *pool = user->pool;
    struct frame *f = &pool->frames[frame];
    uint64_t state = frame_load(f);
    uint64_t page = atomic_load_explicit(&f->page_id, memory_order_relaxed);
    frame_ref ref = frame_ref_make((uint32_t)(state >> 32), frame);
    bool is_gone;

    xac_assert(frame < pool->region->n_frames_all);
    if (state == 0 || frame_word(state) != 0 /* never used; in use, dirty, or gone */
        || pool_is_barred(user, frame) || !pool_evict_begin(user, frame))
        return false;
    is_gone = frame_try_retire(f, ref);
    pool_evict_end(user, frame, is_gone);
    if (is_gone && gone_forget(user, page, ref))
        pool_count(user, POOL_EVICTIONS, 1);
    return is_gone;
}
