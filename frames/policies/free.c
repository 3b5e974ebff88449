/* SPDX-License-Identifier: MIT */
/*
 * free.c -- BP-Wrapper's lists of free frames: slots whose page has left, in stacks.
 *
 * A stack's head carries a tag that grows with each step (as in spare.c).  A slot's link is not 0
 * as long as the slot is here, or a thread has just taken it out.
 */
#include <config.h>

#include "frames/policies/locked.h"

#define LINK_BOTTOM 1 /* else the slot below, + 2 */

static xac_shared _Atomic uint64_t *
head_of(const struct xac_frames *pool, uint32_t part, uint32_t list)
{
    xac_assert_slow(part < pool->region->config.parts);
    xac_assert_slow(list < pool->region->config.free_lists);
    return &pool->locked->free[part * pool->region->config.free_lists + list].head;
}

static uint64_t
head_next(uint64_t head, uint32_t top)
{
    return ((head >> 32) + 1) << 32 | top;
}

void
xac_frames_free_push(struct xac_frames_user *user, uint32_t part, uint32_t list,
                     uint32_t slot)
{
    struct xac_frames *pool = user->pool;
    xac_shared _Atomic uint64_t *word = head_of(pool, part, list);
    uint64_t head = atomic_load_explicit(word, memory_order_relaxed);

    xac_assert(slot < pool->n_frames);
    xac_assert(atomic_load_explicit(&pool->locked->free_links[slot], memory_order_relaxed)
               != 0);
    pool_count(user, POOL_FREE_IN, 1);
    do
        atomic_store_explicit(&pool->locked->free_links[slot],
                              (uint32_t)head + LINK_BOTTOM, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        /* Release pairs with xac_frames_free_pop(): it sees the link, and what left. */
        word, &head, head_next(head, slot + 1), memory_order_release,
        memory_order_relaxed));
}

uint32_t
xac_frames_free_pop(struct xac_frames_user *user, uint32_t part, uint32_t list)
{
    struct xac_frames *pool = user->pool;
    xac_shared _Atomic uint64_t *word = head_of(pool, part, list);
    /* Acquire pairs with xac_frames_free_push(), here and below. */
    uint64_t head = atomic_load_explicit(word, memory_order_acquire);
    uint32_t below;

    do {
        if ((uint32_t)head == 0)
            return POLICY_NONE;
        below = atomic_load_explicit(&pool->locked->free_links[(uint32_t)head - 1],
                                     memory_order_relaxed)
                - LINK_BOTTOM;
    } while (
        !atomic_compare_exchange_weak_explicit(/* pairs with xac_frames_free_push() */
                                               word, &head, head_next(head, below),
                                               memory_order_acquire,
                                               memory_order_acquire));
    pool_count(user, POOL_FREE_OUT, 1);
    xac_assert((uint32_t)head <= pool->n_frames);
    xac_assert(atomic_load_explicit(&pool->locked->free_links[(uint32_t)head - 1],
                                    memory_order_relaxed)
               != 0);
    return (uint32_t)head - 1;
}
