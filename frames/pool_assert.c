/* SPDX-License-Identifier: MIT */
/*
 * pool_assert.c -- whether a pool is sound while others use it: see the invariants of pool.h and
 * frame.h.  check.c proves more, of a pool at rest.
 *
 * No lock is taken, and others go on, so only what stays true at every instant is checked: what is
 * fixed; bounds; and of a life what does not change as long as it lasts, which the number of the
 * life tells before and after.
 */
#include <config.h>

#include "pool.h"

#define LOOK_AT 64 /* slots, and pages, that one call looks at */

static uint32_t
load32(xac_shared _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* life_assert -- what a reference names, if its life is not over; page UINT64_MAX: any. */
static void
life_assert(const struct xac_frames *pool, frame_ref ref, uint64_t page)
{
    struct frame *f;
    uint64_t state, id;
    uint32_t word;

    xac_require((uint32_t)ref != 0);
    xac_require(frame_ref_index(ref) < pool->region->n_frames_all);
    f = pool_frame(pool, ref);
    state = frame_load(f);
    word = frame_word(state);
    id = atomic_load_explicit(&f->page_id, memory_order_relaxed);
    /* Pairs with frame_begin(): if the next life has begun, the state tells. */
    atomic_thread_fence(memory_order_acquire);
    if (!frame_is_of(state, ref) || !frame_is_of(frame_load(f), ref)
        || word == FRAME_GONE)
        return;
    xac_require(id < pool->n_pages);                                       /* P3 */
    xac_require(page == UINT64_MAX || id == page);                         /* P3 */
    xac_require((word & FRAME_FLUSHING) == 0 || (word & FRAME_PINS) >= 1); /* F5 */
    xac_require(load32(&f->data) <= pool->region->n_buffers);              /* F2 */
}

/* fixed_assert -- what was stored when the pool was made. */
static void
fixed_assert(const struct xac_frames *pool)
{
    const struct pool_region *r = pool->region;

    xac_require(r->config.n_frames >= 1);
    xac_require(r->n_frames_all == r->config.n_frames + r->config.n_users); /* P6 */
    xac_require(r->config.page_bytes == 0
                || r->n_buffers
                       == r->config.n_frames
                              + (1 + XAC_FRAMES_MANY) * r->config.n_users); /* P6 */
    xac_require(r->data_offset <= r->n_bytes);
}

void
xac_pool_assert(const struct xac_frames *pool)
{
    struct pool_region *r = pool->region;
    /* Each call begins elsewhere, so that all are looked at in the course of time. */
    uint64_t from = atomic_load_explicit(&pool->cells[0].moved, memory_order_relaxed);

    fixed_assert(pool);
    xac_require(load32(&r->vacant) <= r->config.n_frames); /* P2 */
    xac_require(load32(&r->buffers_used) <= r->n_buffers); /* P6 */
    for (uint32_t i = 0; i < r->config.n_users; i++)
        if (load32(&pool->seats[i].taken) == SEAT_FREE) {
            xac_require(pool->seats[i].spare < r->n_frames_all); /* P6 */
            xac_require(pool->seats[i].buffer <= r->n_buffers);  /* P6 */
        }
    for (uint64_t i = from; i < from + LOOK_AT && i < from + pool->n_frames; i++) {
        frame_ref ref = slot_load(ring_slot(pool, (uint32_t)(i % pool->n_frames)));

        if (ref != 0) /* P1 */
            life_assert(pool, ref, UINT64_MAX);
    }
    for (uint64_t i = from; i < from + LOOK_AT && i < from + pool->n_pages; i++) {
        frame_ref ref = slot_load(&pool->table[i % pool->n_pages]);

        if (ref != 0)
            life_assert(pool, ref, i % pool->n_pages);
    }
}

void
xac_pool_user_assert(const struct xac_frames_user *user)
{
    const struct xac_frames *pool = user->pool;

    xac_require(load32(&user->seat->taken) == SEAT_TAKEN);
    xac_require(user->seat->spare < pool->region->n_frames_all); /* P6 */
    xac_require(user->seat->buffer <= pool->region->n_buffers);  /* P6 */
    for (uint32_t i = 0; i < pool->pins_max; i++) {
        frame_ref ref = atomic_load_explicit(&user->notes[i], memory_order_relaxed);
        uint64_t state;

        if (ref == 0 || (ref & POOL_NOTE_OPEN) != 0)
            continue;
        state = frame_load(pool_frame(pool, ref));
        xac_require(frame_is_of(state, ref));               /* F2: what is fixed stays */
        xac_require(frame_word(state) != FRAME_GONE);       /* F2 */
        xac_require((frame_word(state) & FRAME_PINS) >= 1); /* F2 */
    }
}
