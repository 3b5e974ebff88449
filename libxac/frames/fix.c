/* SPDX-License-Identifier: MIT */
/*
 * fix.c -- fixing a page: found, brought in, or saved from eviction (Nb-GCLOCK, figure 3).
 *
 * Each way out of xac_frames_fix() has one step at which it takes effect: the pin of a frame
 * found, the entry into an empty place of the table, the replacement of an entry whose frame
 * is GONE.
 */
#include <config.h>

#include "pool.h"

#include <errno.h>

/* hit -- a fix of a page that is there: its weight, up to the cap, or the policy's notes. */
static void
hit(struct xac_frames_user *user, frame_ref ref)
{
    struct xac_frames *pool = user->pool;
    struct frame *f = pool_frame(pool, ref);
    int32_t weight = atomic_load_explicit(&f->weight, memory_order_relaxed);

    pool_count(user, POOL_HITS, 1);
    if (pool->policy.ops != NULL)
        xac_frames_locked_hit(user, ref);
    else if (weight < (int32_t)pool->region->config.weight_max)
        atomic_fetch_add_explicit(&f->weight, 1, memory_order_relaxed);
}

/* out_settle -- what left the ring also leaves the table; what it had is the user's. */
static void
out_settle(struct xac_frames_user *user, frame_ref out)
{
    struct frame *f = pool_frame(user->pool, out);
    uint64_t page = atomic_load_explicit(&f->page_id, memory_order_relaxed);

    xac_frames_point("removed");
    if (table_remove(user->pool, page, out)) { /* refused: a ghost, or rescued */
        pool_count(user, POOL_EVICTIONS, 1);
        xac_frames_buffer_give(user,
                               atomic_load_explicit(&f->data, memory_order_relaxed));
    }
    user->seat->spare = frame_ref_index(out); /* P4 */
}

/*
 * rescue -- take the place of a frame that is GONE and still in the table, with its buffer.
 *
 * The buffer is copied before the entry is replaced: whoever finds the entry must find the
 * bytes, which may be newer than what it could read from the file by now.
 */
static bool
rescue(struct xac_frames_user *user, uint64_t page, frame_ref other, frame_ref mine)
{
    struct frame *f = pool_frame(user->pool, mine);
    /* Acquire pairs with page_in(): the buffer's bytes. */
    uint32_t data =
        atomic_load_explicit(&pool_frame(user->pool, other)->data, memory_order_acquire);

    atomic_store_explicit(&f->data, data, memory_order_relaxed);
    xac_frames_point("copied");
    if (slot_cas(&user->pool->table[page], &other, mine)) {
        pool_count(user, POOL_RESCUES, 1);
        return true;
    }
    atomic_store_explicit(&f->data, 0, memory_order_relaxed); /* not ours after all */
    return false;
}

/* install -- a frame for a page that was not found; out *refp pinned. */
static int
install(struct xac_frames_user *user, uint64_t page, frame_ref *refp)
{
    struct xac_frames *pool = user->pool;
    uint32_t index = user->seat->spare;
    struct frame *f = &pool->frames[index];
    frame_ref mine = frame_begin(f, index, page);
    frame_ref other, out = 0;
    int rc = pool->policy.ops == NULL
                 ? xac_frames_ring_place(user, mine, &out, &user->seat->spare)
                 : xac_frames_locked_place(user, mine, page, &out, &user->seat->spare);

    if (rc != 0) {
        frame_cancel(f, mine); /* still the spare */
        return rc;
    }
    if (out != 0)
        out_settle(user, out);
    for (;;) { /* again only if another thread has changed the entry */
        other = 0;
        if (slot_cas(&pool->table[page], &other, mine))
            break;
        if (frame_try_pin(pool_frame(pool, other), other)) {
            frame_cancel(f, mine); /* stays in the ring, a ghost, until the hand comes */
            pool_count(user, POOL_LOST_RACES, 1);
            hit(user, other);
            *refp = other;
            return 0;
        }
        if (rescue(user, page, other, mine))
            break;
    }
    pool_count(user, POOL_MISSES, 1);
    *refp = mine;
    return 0;
}

/*
 * page_in -- the pinned frame's bytes; out *datap buffer's index + 1.
 *
 * Without a lock: threads that find none each read, one publishes, and the others use what
 * that one has published, never their own copy.
 */
static int
page_in(struct xac_frames_user *user, frame_ref ref, uint64_t page, unsigned flags,
        uint32_t *datap)
{
    struct xac_frames *pool = user->pool;
    struct frame *f = pool_frame(pool, ref);
    /* Acquire pairs with the publication below: the bytes. */
    uint32_t data = atomic_load_explicit(&f->data, memory_order_acquire);
    int rc = 0;

    if (data == 0) {
        uint32_t buffer = xac_frames_buffer_take(user);

        xac_frames_point("read");
        if ((flags & XAC_FRAMES_NEW) != 0)
            memset(pool_data(pool, buffer), 0, pool->region->config.page_bytes);
        else {
            rc = pool->io.read(pool->io.arg, page, pool_data(pool, buffer));
            pool_count(user, POOL_READS, 1);
        }
        if (rc != 0) {
            xac_frames_buffer_give(user, buffer);
            return rc;
        }
        xac_frames_point("publish");
        /* Pairs with the load above, and with the one in rescue(). */
        if (atomic_compare_exchange_strong_explicit(&f->data, &data, buffer,
                                                    memory_order_acq_rel,
                                                    memory_order_acquire)) {
            data = buffer;
            if ((flags & XAC_FRAMES_NEW) != 0)
                frame_mark_dirty(f);
        } else {
            xac_frames_buffer_give(user, buffer);
            pool_count(user, POOL_READS_DUPLICATE, 1);
        }
    }
    *datap = data;
    return 0;
}

int
xac_frames_fix(struct xac_frames_user *user, uint64_t page, unsigned flags,
               struct xac_frames_pin *pinp)
{
    struct xac_frames *pool = user->pool;
    uint32_t data = 0;
    frame_ref ref;
    int rc;

    if (page >= pool->region->config.n_pages || (flags & ~XAC_FRAMES_NEW) != 0)
        return EINVAL;
    ref = slot_load(&pool->table[page]);
    xac_frames_point("found");
    if (ref != 0 && frame_try_pin(pool_frame(pool, ref), ref)) {
        hit(user, ref);
    } else {
        if (ref != 0)
            pool_count(user, POOL_STALE_REFS, 1);
        rc = install(user, page, &ref);
        if (rc != 0)
            return rc;
    }
    if (pool->region->config.page_bytes != 0) {
        rc = page_in(user, ref, page, flags, &data);
        if (rc != 0) {
            frame_unpin(pool_frame(pool, ref));
            return rc;
        }
    }
    *pinp = (struct xac_frames_pin){.data = pool_data(pool, data), .ref = ref};
    return 0;
}

void
xac_frames_mark_dirty(struct xac_frames_user *user, const struct xac_frames_pin *pin)
{
    frame_mark_dirty(pool_frame(user->pool, pin->ref));
}

void
xac_frames_unfix(struct xac_frames_user *user, const struct xac_frames_pin *pin)
{
    frame_unpin(pool_frame(user->pool, pin->ref));
}
