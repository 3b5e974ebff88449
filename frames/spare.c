/* SPDX-License-Identifier: MIT */
/*
 * spare.c -- page buffers nobody uses: one kept by each user, the rest in a stack.
 *
 * A miss frees one buffer and needs one, and so leaves the stack alone.  The stack's head
 * carries a tag that grows with each step, so that a head taken and put back meanwhile is not
 * mistaken for an unchanged one.
 */
#include <config.h>

#include "frames/pool.h"

XAC_SIGSAFE static uint64_t
head_next(uint64_t head, uint32_t top)
{
    return ((head >> 32) + 1) << 32 | top;
}

XAC_SIGSAFE static void
stack_push(struct xac_frames *pool, uint32_t buffer)
{
    struct pool_region *r = pool->region;
    uint64_t head = atomic_load_explicit(&r->buffers, memory_order_relaxed);

    xac_assert(buffer != 0);
    xac_assert(buffer <= pool->region->n_buffers);
    do
        atomic_store_explicit(&pool->links[buffer - 1], (uint32_t)head,
                              memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        /* Release pairs with stack_pop(): it sees the link. */
        &r->buffers, &head, head_next(head, buffer), memory_order_release,
        memory_order_relaxed));
}

/* stack_pop -- 0 if there is none. */
XAC_SIGSAFE static uint32_t
stack_pop(struct xac_frames *pool)
{
    struct pool_region *r = pool->region;
    /* Acquire pairs with stack_push(), here and below. */
    uint64_t head = atomic_load_explicit(&r->buffers, memory_order_acquire);
    uint32_t below;

    do {
        if ((uint32_t)head == 0)
            return 0;
        below =
            atomic_load_explicit(&pool->links[(uint32_t)head - 1], memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(/* pairs with stack_push() */
                                                    &r->buffers, &head,
                                                    head_next(head, below),
                                                    memory_order_acquire,
                                                    memory_order_acquire));
    xac_assert((uint32_t)head <= pool->region->n_buffers);
    return (uint32_t)head;
}

/* fresh_buffer -- one that was never used; 0 if there is none. */
XAC_SIGSAFE static uint32_t
fresh_buffer(struct xac_frames *pool)
{
    struct pool_region *r = pool->region;
    uint32_t used = atomic_load_explicit(&r->buffers_used, memory_order_relaxed);

    do
        if (used == r->n_buffers)
            return 0;
    while (!atomic_compare_exchange_weak_explicit(&r->buffers_used, &used, used + 1,
                                                  memory_order_relaxed,
                                                  memory_order_relaxed));
    xac_assert(used < r->n_buffers);
    return used + 1;
}

XAC_SIGSAFE uint32_t
xac_frames_buffer_take(struct xac_frames_user *user)
{
    uint32_t buffer = user->seat->buffer;

    if (buffer != 0) {
        user->seat->buffer = 0;
        return buffer;
    }
    buffer = stack_pop(user->pool);
    if (buffer == 0)
        buffer = fresh_buffer(user->pool);
    if (buffer == 0) /* pushed between the two looks */
        buffer = stack_pop(user->pool);
    xac_require(buffer != 0); /* P6 */
    xac_assert(buffer <= user->pool->region->n_buffers);
    return buffer;
}

XAC_SIGSAFE void
xac_frames_buffer_give(struct xac_frames_user *user, uint32_t buffer)
{
    xac_assert_slow(buffer <= user->pool->region->n_buffers);
    xac_assert(buffer == 0 || buffer != user->seat->buffer);
    if (buffer == 0)
        return;
    if (user->seat->buffer == 0)
        user->seat->buffer = buffer;
    else
        stack_push(user->pool, buffer);
}
