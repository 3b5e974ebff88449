/* SPDX-License-Identifier: MIT */
/*
 * locked.c -- the policies that need a lock, in place of the clock of ring.c; and BP-Wrapper.
 *
 * The table, the frames and the way a page comes in are the same (fix.c); slot i of the ring
 * holds what the policy knows as slot i.  No read and no write is done under the lock.
 *
 * BP-Wrapper (X. Ding, J. Shan, S. Jiang, IEEE TPDS 2016): hits are noted in a queue of the
 * user's own and told to the policy in batches.  From `threshold` entries on each hit tries the
 * lock; only a full queue waits for it.  So a holder that is not running (of a preempted virtual
 * processor, say) delays others only after that many hits.  A miss tells its user's hits
 * first.  A queued hit counts if its slot still has the same life of the same frame: what
 * the paper's comparison of tags is, without its ABA.
 */
#include <config.h>

#include "pool.h"

#include <errno.h>
#include <sched.h>

#include "futex.h"

#define SPIN_MAX     1024 /* pauses between two looks at a spin lock, at most */
#define SLEEP_MAX_MS 1000 /* then a sleeper looks again */

enum {
    LOCK_FREE,
    LOCK_HELD,
    LOCK_WAITED_FOR
};

/* ---- The lock ---------------------------------------------------------------------- */

static bool
lock_try(struct pool_region *r)
{
    uint32_t is_free = LOCK_FREE;

    /* Acquire pairs with lock_release(). */
    return atomic_load_explicit(&r->lock, memory_order_relaxed) == LOCK_FREE
           && atomic_compare_exchange_strong_explicit(&r->lock, &is_free, LOCK_HELD,
                                                      memory_order_acquire,
                                                      memory_order_relaxed);
}

/* lock_spin -- test and test-and-set, with exponential back-off. */
static void
lock_spin(struct pool_region *r)
{
    for (unsigned pauses = 1; !lock_try(r);
         pauses = pauses < SPIN_MAX ? 2 * pauses : SPIN_MAX)
        for (unsigned i = 0; i < pauses; i++)
            atomic_signal_fence(
                memory_order_seq_cst); /* pairs with nothing: time passes */
}

static void
lock_sleep(struct pool_region *r)
{
    /* Acquire pairs with lock_release(). */
    while (atomic_exchange_explicit(&r->lock, LOCK_WAITED_FOR, memory_order_acquire)
           != LOCK_FREE)
        xac_futex_wait(&r->lock, LOCK_WAITED_FOR, SLEEP_MAX_MS);
}

static void
lock_acquire(struct xac_frames_user *user)
{
    struct pool_region *r = user->pool->region;

    pool_count(user, POOL_LOCKS, 1);
    if (lock_try(r))
        return;
    pool_count(user, POOL_LOCK_WAITS, 1);
    if (r->config.lock == XAC_FRAMES_SPIN)
        lock_spin(r);
    else
        lock_sleep(r);
}

static void
lock_release(struct pool_region *r)
{
    /* Release pairs with lock_try() and lock_sleep(). */
    if (atomic_exchange_explicit(&r->lock, LOCK_FREE, memory_order_release)
        == LOCK_WAITED_FOR)
        xac_futex_wake_all(&r->lock);
}

/* ---- Hits -------------------------------------------------------------------------- */

/* hit_tell -- under the lock: one hit, if the slot is still that life's. */
static void
hit_tell(struct xac_frames_user *user, const struct pool_hit *hit)
{
    struct policy *p = &user->pool->policy;

    if (slot_load(ring_slot(user->pool, hit->slot)) == hit->ref
        && p->nodes[hit->slot].where != 0)
        p->ops->touch(p, hit->slot);
    else
        pool_count(user, POOL_HITS_STALE, 1);
}

/* queue_drain -- under the lock: the user's hits, oldest first. */
static void
queue_drain(struct xac_frames_user *user)
{
    for (uint32_t i = 0; i < user->n_queued; i++)
        hit_tell(user, &user->queue[i]);
    user->n_queued = 0;
}

/*
 * queue_warm -- have in the cache what the critical section is going to change.  Addresses only:
 * neighbours in a list are not looked up, which would read what others change.
 */
static void
queue_warm(struct xac_frames_user *user)
{
    for (uint32_t i = user->n_warm; i < user->n_queued; i++)
        __builtin_prefetch(&user->pool->policy.nodes[user->queue[i].slot], 1);
    __builtin_prefetch(user->pool->policy.state, 1);
    user->n_warm = user->n_queued;
}

void
xac_frames_locked_hit(struct xac_frames_user *user, frame_ref ref)
{
    struct pool_region *r = user->pool->region;
    uint32_t slot =
        atomic_load_explicit(&pool_frame(user->pool, ref)->slot, memory_order_relaxed);
    bool locked = false;

    user->queue[user->n_queued++] = (struct pool_hit){.ref = ref, .slot = slot};
    if (user->n_queued < r->config.batch_threshold)
        return;
    if (r->config.batch_queue > 1) {
        queue_warm(user);
        locked = lock_try(r);
        pool_count(user, locked ? POOL_LOCKS : POOL_LOCK_TRIES_FAILED, 1);
        if (!locked && user->n_queued < r->config.batch_queue)
            return;
    }
    if (!locked)
        lock_acquire(user);
    queue_drain(user);
    lock_release(r);
    user->n_warm = 0;
}

/* ---- Misses ------------------------------------------------------------------------ */

struct search {
    struct xac_frames_user *user;
    bool take_dirty;
    bool is_flushing; /* what was taken is dirty, pinned by us, and must be written */
};

/* slot_offer -- the policy's question: can this slot make room? */
static bool
slot_offer(void *arg, uint32_t slot)
{
    struct search *s = arg;
    frame_ref ref = slot_load(ring_slot(s->user->pool, slot));
    struct frame *f = pool_frame(s->user->pool, ref);
    uint32_t word = frame_word(frame_load(f));

    if (word == FRAME_GONE)
        return true;
    if (s->take_dirty && word == FRAME_DIRTY)
        return s->is_flushing = frame_flush_begin(f, ref, true);
    return frame_try_retire(f, ref);
}

/* slot_write -- outside the lock: the slot's page, then retire it; ret 0 if it is GONE. */
static int
slot_write(struct xac_frames_user *user, uint32_t slot)
{
    frame_ref ref = slot_load(ring_slot(user->pool, slot));
    struct frame *f = pool_frame(user->pool, ref);
    int rc = xac_frames_write(user, f);

    pool_count(user, POOL_WRITES_INLINE, 1);
    if (rc == 0 && frame_flush_retire(f, ref))
        return 0;
    frame_flush_end(f, rc == 0);
    return rc != 0 ? rc : EAGAIN;
}

/*
 * slot_find -- under the lock, which it may give up and take again: a slot that is nobody's;
 * *outp as in xac_frames_ring_place().
 */
static int
slot_find(struct xac_frames_user *user, uint32_t *slotp, frame_ref *outp,
          uint32_t *freshp)
{
    struct xac_frames *pool = user->pool;
    struct pool_region *r = pool->region;
    uint32_t vacant = atomic_load_explicit(&r->vacant, memory_order_relaxed);
    struct policy *p = &pool->policy;
    int rc = ENOBUFS;

    if (vacant > 0) {
        atomic_store_explicit(&r->vacant, vacant - 1, memory_order_relaxed);
        *slotp = *freshp = pool->n_frames - vacant;
        *outp = 0;
        return 0;
    }
    for (uint32_t tries = 0; tries < r->config.full_tries; tries++) {
        struct search s = {.user = user};
        uint32_t slot = p->ops->victim(p, slot_offer, &s);

        s.take_dirty = slot == POLICY_NONE;
        if (slot == POLICY_NONE)
            slot = p->ops->victim(p, slot_offer, &s);
        if (slot != POLICY_NONE && !s.is_flushing) {
            *slotp = slot;
            *outp = slot_load(ring_slot(pool, slot));
            return 0;
        }
        lock_release(r);
        if (slot == POLICY_NONE) {
            pool_count(user, POOL_FULL_YIELDS, 1);
            (void)sched_yield();
        } else {
            rc = slot_write(user, slot);
        }
        lock_acquire(user);
        if (slot != POLICY_NONE && rc == 0) {
            *slotp = slot;
            *outp = slot_load(ring_slot(pool, slot));
            return 0;
        }
        if (slot != POLICY_NONE)
            p->ops->admit(p, slot, p->nodes[slot].page);
        if (rc == EAGAIN)
            rc = ENOBUFS;
    }
    return rc;
}

int
xac_frames_locked_place(struct xac_frames_user *user, frame_ref mine, uint64_t page,
                        frame_ref *outp, uint32_t *freshp)
{
    struct xac_frames *pool = user->pool;
    struct policy *p = &pool->policy;
    uint32_t slot = POLICY_NONE;
    int rc;

    queue_warm(user);
    lock_acquire(user);
    queue_drain(user);
    rc = slot_find(user, &slot, outp, freshp);
    if (rc == 0) {
        atomic_store_explicit(&pool_frame(pool, mine)->slot, slot, memory_order_relaxed);
        /* Release pairs with slot_load(). */
        atomic_store_explicit(ring_slot(pool, slot), mine, memory_order_release);
        p->ops->admit(p, slot, page);
    }
    lock_release(pool->region);
    user->n_warm = 0;
    return rc;
}

void
xac_frames_locked_leave(struct xac_frames_user *user)
{
    if (user->n_queued == 0)
        return;
    lock_acquire(user);
    queue_drain(user);
    lock_release(user->pool->region);
}
