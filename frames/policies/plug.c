/* SPDX-License-Identifier: MIT */
/*
 * plug.c -- the policies that need a lock, as the core calls them (struct pool_plug).
 *
 * Here: their share of a configuration, of a pool's memory and of a user's, and what is done after
 * a death and in a check.  What fixes do is in locked.c.
 */
#include <config.h>

#include "frames/policies/locked.h"

#include <errno.h>
#include <stdlib.h>

#define COUNT_DEFAULT 10 /* GCLOCK_K */
#define FREE_SHARE \
 64 /* lists of free frames by default: this share of the frames, at most */

/* ---- Configuration and memory --------------------------------------------------------- */

/* free_batch -- frames evicted more, of a part; see free_batch in xac_frames.h. */
static uint32_t
free_batch(const struct xac_frames_config *c)
{
    uint32_t n_part = c->n_frames / c->parts;
    uint32_t few = n_part / (FREE_SHARE * c->free_lists);

    xac_assert(c->parts > 0);
    xac_assert(c->free_lists > 0);
    if (c->free_batch != 0 && (uint64_t)c->free_batch * c->free_lists <= n_part)
        return c->free_batch;
    return few < 1 ? 1 : few < POOL_FREE_BATCH_MAX ? few : POOL_FREE_BATCH_MAX;
}

static void
plug_complete(struct xac_frames_config *c)
{
    xac_assert(c->parts > 0);
    if (c->weight_max == 0 && c->policy == XAC_FRAMES_GCLOCK_K)
        c->weight_max = COUNT_DEFAULT;
    if (c->free_lists > 0)
        c->free_batch = free_batch(c);
}

/* policy_bytes -- of the largest part. */
static uint64_t
policy_bytes(const struct xac_frames_config *c)
{
    uint64_t bytes = xac_frames_policy_bytes(xac_frames_policy_ops(c->policy),
                                             (c->n_frames + c->parts - 1) / c->parts);

    xac_assert(c->parts > 0);
    return (bytes + FRAME_LINE - 1) / FRAME_LINE * FRAME_LINE;
}

static void
plug_lay_out(struct pool_region *r, uint64_t *endp)
{
    const struct xac_frames_config *c = &r->config;

    xac_assert(c->n_frames > 0);
    r->parts_offset = region_place(endp, c->parts * sizeof(struct pool_part), FRAME_LINE);
    r->free_offset =
        region_place(endp, (uint64_t)c->parts * c->free_lists * sizeof(struct pool_free),
                     FRAME_LINE);
    r->free_links_offset = region_place(endp, c->n_frames * sizeof(uint32_t), FRAME_LINE);
    r->policy_offset = region_place(endp, c->parts * policy_bytes(c), FRAME_LINE);
    xac_assert(r->free_links_offset >= r->free_offset);
}

static int
plug_open(struct xac_frames *pool)
{
    const struct pool_region *r = pool->region;
    const struct xac_frames_config *c = &r->config;
    char *base = (char *)pool->region;
    struct pool_locked *l = calloc(1, sizeof *l + c->parts * sizeof l->policies[0]);

    xac_assert(c->parts > 0);
    if (l == NULL)
        return ENOMEM;
    l->ops = xac_frames_policy_ops(c->policy);
    l->parts = (struct pool_part *)(base + r->parts_offset);
    l->free = (struct pool_free *)(base + r->free_offset);
    l->free_links = (xac_shared _Atomic uint32_t *)(base + r->free_links_offset);
    for (uint32_t i = 0; i < c->parts; i++) {
        xac_frames_policy_open(&l->policies[i], l->ops,
                               part_first(pool, i + 1) - part_first(pool, i),
                               base + r->policy_offset + i * policy_bytes(c));
        l->policies[i].count_max = c->weight_max;
    }
    pool->locked = l;
    xac_assert(l->ops != NULL);
    return 0;
}

static void
plug_init(struct xac_frames *pool)
{
    struct pool_locked *l = pool->locked;

    xac_assert(l->ops != NULL);
    for (uint32_t i = 0; i < pool->region->config.parts; i++) {
        xac_frames_policy_init(&l->policies[i]);
        atomic_store_explicit(&l->parts[i].vacant, l->policies[i].n,
                              memory_order_relaxed);
    }
}

static void
plug_close(struct xac_frames *pool)
{
    free(pool->locked);
}

/* ---- Users ---------------------------------------------------------------------------- */

static int
plug_join(struct xac_frames_user *user)
{
    const struct xac_frames_config *c = &user->pool->region->config;
    struct pool_queue *queues =
        calloc(c->parts, sizeof queues[0] + c->batch_queue * sizeof queues[0].hits[0]);
    struct pool_hit *hits;

    xac_assert(c->batch_queue > 0);
    xac_assert(user->queues == NULL);
    if (queues == NULL)
        return ENOMEM;
    hits = (struct pool_hit *)&queues[c->parts];
    for (uint32_t i = 0; i < c->parts; i++)
        queues[i].hits = hits + (size_t)i * c->batch_queue;
    user->queues = queues;
    return 0;
}

static void
plug_leave(struct xac_frames_user *user)
{
    xac_assert(user->queues != NULL);
    xac_frames_locked_tell(user);
    free(user->queues);
}

/* ---- After a death -------------------------------------------------------------------- */

/* The lists under the locks that the user had may be half changed. */
static void
plug_reap(struct xac_frames *pool, uint32_t user)
{
    xac_assert(user < pool->region->config.n_users);
    for (uint32_t i = 0; i < pool->region->config.parts; i++)
        if (xac_frames_lock_owner(pool, i) == user) {
            xac_frames_locked_rebuild(pool, i);
            xac_frames_unlock(pool, i);
        }
}

/* Lists of free slots are empty, and each policy knows all of its slots. */
static void
plug_repair(struct xac_frames *pool)
{
    const struct xac_frames_config *c = &pool->region->config;
    struct pool_locked *l = pool->locked;

    xac_assert(l->ops != NULL);
    for (uint32_t i = 0; i < c->parts * c->free_lists; i++)
        atomic_store_explicit(&l->free[i].head, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < pool->n_frames; i++)
        atomic_store_explicit(&l->free_links[i], 0, memory_order_relaxed);
    for (uint32_t part = 0; part < c->parts; part++) {
        atomic_store_explicit(&l->parts[part].lock, 0, memory_order_relaxed);
        atomic_store_explicit(&l->parts[part].vacant, 0, memory_order_relaxed);
        xac_frames_locked_rebuild(pool, part);
    }
}

/* ---- Check ---------------------------------------------------------------------------- */

static uint32_t
plug_n_vacant(const struct xac_frames *pool)
{
    uint32_t n = 0;

    for (uint32_t part = 0; part < pool->region->config.parts; part++)
        n +=
            atomic_load_explicit(&pool->locked->parts[part].vacant, memory_order_relaxed);
    return n;
}

static uint32_t
link_of(const struct xac_frames *pool, uint32_t slot)
{
    xac_assert(slot < pool->n_frames);
    return atomic_load_explicit(&pool->locked->free_links[slot], memory_order_relaxed);
}

/* lists_walk -- slots in the part's lists of free ones; more than there are if one is a circle. */
static uint32_t
lists_walk(const struct xac_frames *pool, uint32_t part)
{
    uint32_t n_lists = pool->region->config.free_lists, n = 0;

    xac_assert(part < pool->region->config.parts);
    for (uint32_t i = 0; i < n_lists; i++)
        for (uint32_t slot = (uint32_t)atomic_load_explicit(
                 &pool->locked->free[part * n_lists + i].head, memory_order_relaxed);
             slot != 0 && n <= pool->n_frames; slot = link_of(pool, slot - 1) - 1)
            n++;
    return n;
}

/* part_check -- each slot is free, resident, vacant, or else in limbo. */
static const char *
part_check(const struct xac_frames *pool, uint32_t part)
{
    const struct policy *p = &pool->locked->policies[part];
    uint32_t first = part_first(pool, part), n_free = 0;

    for (uint32_t i = 0; i < p->n; i++) {
        frame_ref ref = slot_load(ring_slot(pool, first + i));
        bool is_free = link_of(pool, first + i) != 0;
        bool is_known = p->nodes[i].where != 0;

        n_free += is_free;
        if (ref == 0 ? is_free || is_known : is_free && is_known)
            return "a slot is in two states";
        if (is_free && frame_word(frame_load(pool_frame(pool, ref))) != FRAME_GONE)
            return "a free slot has a page";
    }
    return n_free == lists_walk(pool, part) ? NULL
                                            : "a free slot is in no list, or in two";
}

static const char *
plug_check(const struct xac_frames *pool)
{
    const char *wrong = NULL;

    for (uint32_t part = 0; part < pool->region->config.parts && wrong == NULL; part++)
        wrong = part_check(pool, part);
    return wrong;
}

const struct pool_plug *
xac_frames_plug(uint32_t policy)
{
    static const struct pool_plug plug = {
        .complete = plug_complete,
        .lay_out = plug_lay_out,
        .open = plug_open,
        .init = plug_init,
        .close = plug_close,
        .join = plug_join,
        .leave = plug_leave,
        .place = xac_frames_locked_place,
        .came = xac_frames_locked_came,
        .lost = xac_frames_locked_lost,
        .hit = xac_frames_locked_hit,
        .reap = plug_reap,
        .repair = plug_repair,
        .n_vacant = plug_n_vacant,
        .check = plug_check,
    };

    return xac_frames_policy_ops(policy) != NULL ? &plug : NULL;
}
