/* SPDX-License-Identifier: MIT */
/*
 * locked.c -- the policies that need a lock, in place of the clock of ring.c; and BP-Wrapper.
 *
 * The table, the frames and the way a page comes in are the same (fix.c); slot i of the ring
 * holds what a policy knows as slot i less the first of its part.  No read and no write is done under
 * the lock.
 *
 * BP-Wrapper (X. Ding, J. Shan, S. Jiang, IEEE TPDS 2016): hits are noted in a queue of the
 * user's own and told to the policy in batches.  From `threshold` entries on each hit tries the
 * lock; only a full queue waits for it.  So a holder that is not running (of a preempted virtual
 * processor, say) delays others only after that many hits.  A miss under the lock tells its user's
 * hits first.  A queued hit counts if its slot still has the same life of the same frame: what
 * the paper's comparison of tags is, without its ABA.
 *
 * A miss takes a slot from a list of free ones.  If the list is empty, it evicts a batch for it with
 * one lock.  A slot is then in one of these states:
 *
 *      vacant     ring 0                       never used
 *      free       link not 0                   in a list, or in its owner's hands
 *      in limbo   link 0, policy: unknown      has a page; its arrival is in a queue
 *      resident   link 0, policy: known
 *
 * The first entry of any queue that names a slot in limbo makes it known to the policy.  If a hit
 * overtakes the arrival, the arrival counts as a hit.
 */
#include <config.h>

#include "frames/policies/locked.h"

#include <errno.h>

#define LINK_BUSY 1 /* not in a list, and nobody else's */

static struct policy *
policy_of(const struct xac_frames *pool, uint32_t part)
{
    xac_assert_slow(part < pool->region->config.parts);
    return &pool->locked->policies[part];
}

static void
link_set(struct xac_frames *pool, uint32_t slot, uint32_t link)
{
    xac_assert(slot < pool->n_frames);
    /* Release pairs with is_free(): a thread that sees 0 sees the slot as it is now. */
    atomic_store_explicit(&pool->locked->free_links[slot], link, memory_order_release);
}

static bool
is_free(const struct xac_frames *pool, uint32_t slot)
{
    xac_assert_slow(slot < pool->n_frames);
    /* Acquire pairs with link_set(). */
    return atomic_load_explicit(&pool->locked->free_links[slot], memory_order_acquire)
           != 0;
}

static uint64_t
page_of(const struct xac_frames *pool, frame_ref ref)
{
    xac_assert_slow(ref != 0);
    return atomic_load_explicit(&pool_frame(pool, ref)->page_id, memory_order_relaxed);
}

/* ---- Queues ------------------------------------------------------------------------ */

/* admit -- the policy hears of a slot, and says whether it wants to hear of hits there. */
static void
admit(struct xac_frames *pool, uint32_t part, uint32_t slot, frame_ref ref)
{
    struct policy *p = policy_of(pool, part);
    uint32_t i = slot - part_first(pool, part);

    xac_assert(ref != 0);
    xac_assert(i < p->n);
    xac_assert(p->nodes[i].where == 0);
    p->ops->admit(p, i, page_of(pool, ref));
    /* Relaxed: a thread that fixes the page before sees 0 and tells a hit, which is ignored. */
    if (p->ops->ignores != NULL && pool->region->config.batch_all == 0)
        atomic_store_explicit(&pool_frame(pool, ref)->ignored, p->ops->ignores(p, i),
                              memory_order_relaxed);
    xac_assert(p->nodes[i].where != 0);
}

/* limbo_admit -- of a slot that was in limbo. */
static void
limbo_admit(struct xac_frames_user *user, uint32_t part, uint32_t slot, frame_ref ref)
{
    xac_assert(xac_frames_lock_owner(user->pool, part) == user->number);
    admit(user->pool, part, slot, ref);
    pool_count(user, POOL_LIMBO_ENDS, 1);
}

/*
 * hit_tell -- under the lock: one entry, if the slot is still that life's.
 *
 * A life that is not over has the slot it was put into, so that of a slot that is known the frame
 * says all.  Lives that are over, and slots in limbo, are looked up.
 */
static void
hit_tell(struct xac_frames_user *user, uint32_t part, const struct pool_hit *hit)
{
    struct xac_frames *pool = user->pool;
    struct policy *p = policy_of(pool, part);
    uint32_t i = hit->slot - part_first(pool, part);
    uint64_t state = frame_load(pool_frame(pool, hit->ref));

    xac_assert(xac_frames_lock_owner(pool, part) == user->number);
    xac_assert(i < p->n);
    if (p->nodes[i].where != 0) {
        if (frame_is_of(state, hit->ref) && frame_word(state) != FRAME_GONE)
            p->ops->touch(p, i);
        else
            pool_count(user, POOL_HITS_STALE, 1);
    } else if (!is_free(pool, hit->slot)
               && slot_load(ring_slot(pool, hit->slot)) == hit->ref) {
        limbo_admit(user, part, hit->slot,
                    hit->ref); /* even if its page has been forgotten */
    } else {
        pool_count(user, POOL_HITS_STALE, 1);
    }
}

/* queue_drain -- under the lock: the user's entries, oldest first. */
static void
queue_drain(struct xac_frames_user *user, uint32_t part)
{
    struct pool_queue *q = &user->queues[part];

    xac_assert(xac_frames_lock_owner(user->pool, part) == user->number);
    xac_assert(q->n <= user->pool->region->config.batch_queue);
    if (q->n == 0)
        return;
    for (uint32_t i = 0; i < q->n; i++)
        hit_tell(user, part, &q->hits[i]);
    pool_count(user, POOL_BATCHES, 1);
    pool_count(user, POOL_BATCHED, q->n);
    q->n = q->n_warm = q->n_hits = 0;
}

/*
 * queue_warm -- have in the cache what the critical section is going to change: neighbours in
 * lists, the lists, the lock.  The nodes themselves are on their way since queue_note().
 */
static void
queue_warm(struct xac_frames_user *user, uint32_t part)
{
    struct policy *p = policy_of(user->pool, part);
    struct pool_queue *q = &user->queues[part];

    xac_assert(q->n_warm <= q->n);
    if (user->pool->region->config.batch_cold != 0)
        return;
    for (uint32_t i = q->n_warm; i < q->n; i++)
        xac_frames_policy_warm(p, q->hits[i].slot - part_first(user->pool, part));
    __builtin_prefetch(p->state, 1);
    __builtin_prefetch(&user->pool->locked->parts[part], 1);
    q->n_warm = q->n;
}

/* queue_count -- one hit more since the first entry; tell the batch if it is time. */
static void
queue_count(struct xac_frames_user *user, uint32_t part)
{
    const struct xac_frames_config *c = &user->pool->region->config;
    struct pool_queue *q = &user->queues[part];
    bool locked = false;

    if (++q->n_hits < c->batch_threshold)
        return;
    queue_warm(user, part);
    if (c->batch_queue > 1) {
        locked = xac_frames_trylock(user, part);
        pool_count(user, locked ? POOL_LOCKS : POOL_LOCK_TRIES_FAILED, 1);
        if (locked)
            pool_probe(user->pool, XAC_FRAMES_AT_LOCKED);
        else if (q->n_hits < c->batch_queue)
            return;
    }
    if (!locked) {
        xac_frames_lock(user, part);
        if (c->batch_queue > 1)
            pool_count(user, POOL_BATCHES_FULL, 1);
    }
    queue_drain(user, part);
    xac_frames_unlock(user->pool, part);
}

/* queue_note -- one entry; tell the batch if it is time. */
static void
queue_note(struct xac_frames_user *user, uint32_t part, frame_ref ref, uint32_t slot)
{
    struct xac_frames *pool = user->pool;
    struct pool_queue *q = &user->queues[part];

    xac_assert(ref != 0);
    xac_assert(slot < pool->n_frames);
    xac_assert(q->n < pool->region->config.batch_queue);
    q->hits[q->n++] = (struct pool_hit){.ref = ref, .slot = slot};
    if (pool->region->config.batch_cold == 0)
        __builtin_prefetch(&policy_of(pool, part)->nodes[slot - part_first(pool, part)],
                           1);
    queue_count(user, part);
}

/*
 * xac_frames_locked_hit -- what the policy ignores is not noted, but counted if there are
 * entries: they wait for so many hits, whatever these are (the paper's section 4 and figure 7, where the first
 * entry is not counted, so that the queue overflows).
 */
void
xac_frames_locked_hit(struct xac_frames_user *user, frame_ref ref)
{
    struct xac_frames *pool = user->pool;
    struct frame *f = pool_frame(pool, ref);
    uint32_t slot = atomic_load_explicit(&f->slot, memory_order_relaxed);
    uint32_t part = part_of(pool, page_of(pool, ref));

    xac_assert_slow(slot < pool->n_frames);
    if (pool->locked->ops->touches_alone)
        pool->locked->ops->touch(policy_of(pool, part), slot - part_first(pool, part));
    else if (atomic_load_explicit(&f->ignored, memory_order_relaxed) == 0)
        queue_note(user, part, ref, slot);
    else if (user->queues[part].n > 0)
        queue_count(user, part);
}

void
xac_frames_locked_tell(struct xac_frames_user *user)
{
    for (uint32_t part = 0; part < user->pool->region->config.parts; part++)
        if (user->queues[part].n > 0) {
            xac_frames_lock(user, part);
            queue_drain(user, part);
            xac_frames_unlock(user->pool, part);
        }
}

/* ---- A slot under the lock ----------------------------------------------------------- */

struct search {
    struct xac_frames_user *user;
    uint32_t first;   /* slot of the part */
    uint32_t n_dirty; /* passed by, since a clean one may follow; */
    uint32_t n_dirty_max;
    bool take_dirty;
    bool is_batch;    /* more are wanted */
    bool is_flushing; /* what was taken is dirty, pinned by us, and must be written */
};

/* slot_is_barred -- the policy's question: shall it pass this slot by, leaving its count? */
static bool
slot_is_barred(void *arg, uint32_t i)
{
    struct search *s = arg;
    frame_ref ref = slot_load(ring_slot(s->user->pool, s->first + i));
    uint32_t word = frame_word(frame_load(pool_frame(s->user->pool, ref)));

    xac_assert(ref != 0);
    pool_count(s->user, POOL_SWEEP_STEPS, 1);
    return word != FRAME_GONE
           && ((word & FRAME_PINS) != 0 || pool_is_barred(s->user, frame_ref_index(ref)));
}

/*
 * next_warm -- have in the cache what will be offered after the next, if the policy goes through a
 * list; of one that does not, it is some other slot.
 */
static void
next_warm(const struct search *s, const struct policy *p, uint32_t i)
{
    struct xac_frames *pool = s->user->pool;
    uint32_t next = node_prev(p, 0, i);

    xac_assert(i < p->n);
    next = next < p->n ? node_prev(p, 0, next) : POLICY_NONE;
    if (next < p->n) {
        frame_ref ref = slot_load(ring_slot(pool, s->first + next));

        __builtin_prefetch(&p->nodes[next], 1);
        if (ref != 0)
            __builtin_prefetch(pool_frame(pool, ref), 1);
    }
}

/*
 * slot_offer -- the policy's question: can this slot make room?
 *
 * Under the lock, so it ends: after so many dirty pages the search for a clean one is given up.
 * All others that it passes are fixed.
 */
static enum policy_answer
slot_offer(void *arg, uint32_t i)
{
    struct search *s = arg;
    frame_ref ref = slot_load(ring_slot(s->user->pool, s->first + i));
    struct frame *f = pool_frame(s->user->pool, ref);
    uint32_t word = frame_word(frame_load(f)),
             part = part_of(s->user->pool, page_of(s->user->pool, ref));
    bool is_gone;

    xac_assert(ref != 0);
    pool_count(s->user, POOL_OFFERS, 1);
    if (s->is_batch)
        next_warm(s, policy_of(s->user->pool, part), i);
    if (word == FRAME_GONE) { /* dropped: nothing for the policy to remember */
        policy_of(s->user->pool, part)->nodes[i].page = POLICY_NO_PAGE;
        return POLICY_TAKEN;
    }
    if (word == FRAME_DIRTY && s->take_dirty) {
        s->is_flushing = frame_flush_begin(f, ref, true);
        return s->is_flushing ? POLICY_TAKEN : POLICY_REFUSED;
    }
    if (word == FRAME_DIRTY)
        return ++s->n_dirty < s->n_dirty_max ? POLICY_REFUSED : POLICY_ENOUGH;
    if (word != 0 || !pool_evict_begin(s->user, frame_ref_index(ref)))
        return POLICY_REFUSED;
    is_gone = frame_try_retire(f, ref);
    pool_evict_end(s->user, frame_ref_index(ref), is_gone);
    return is_gone ? POLICY_TAKEN : POLICY_REFUSED;
}

/* victim -- the policy's choice, which nobody else may have now; POLICY_NONE if all are fixed. */
static uint32_t
victim(struct search *s, uint32_t part)
{
    struct policy *p = policy_of(s->user->pool, part);
    uint32_t i;

    xac_assert(xac_frames_lock_owner(s->user->pool, part) == s->user->number);
    if (s->user->pool->owner != NULL || p->ops == &xac_frames_gclock_k)
        p->is_barred = slot_is_barred;
    i = p->ops->victim(p, slot_offer, s);
    if (i == POLICY_NONE)
        return POLICY_NONE;
    xac_assert(i < p->n);
    xac_assert(p->nodes[i].where == 0);
    link_set(s->user->pool, s->first + i, LINK_BUSY);
    return s->first + i;
}

/* slot_write -- outside the lock: the slot's page, then retire it; ret 0 if it is GONE. */
static int
slot_write(struct xac_frames_user *user, uint32_t slot)
{
    frame_ref ref = slot_load(ring_slot(user->pool, slot));
    struct frame *f = pool_frame(user->pool, ref);
    int rc = xac_frames_write(user, f);

    xac_assert(ref != 0);
    pool_count(user, POOL_WRITES_INLINE, 1);
    if (rc == 0 && pool_evict_begin(user, frame_ref_index(ref))) {
        bool is_gone = frame_flush_retire(f, ref);

        pool_evict_end(user, frame_ref_index(ref), is_gone);
        if (is_gone)
            return 0;
    }
    frame_flush_end(f, rc == 0);
    return rc != 0 ? rc : EAGAIN;
}

/* dirty_take -- give up the lock, write, take it; on failure the page stays. */
static int
dirty_take(struct xac_frames_user *user, uint32_t part, uint32_t slot)
{
    int rc;

    xac_assert(xac_frames_lock_owner(user->pool, part) == user->number);
    xac_frames_unlock(user->pool, part);
    rc = slot_write(user, slot);
    xac_frames_lock(user, part);
    if (rc != 0) {
        link_set(user->pool, slot, 0);
        admit(user->pool, part, slot, slot_load(ring_slot(user->pool, slot)));
    }
    xac_assert(xac_frames_lock_owner(user->pool, part) == user->number);
    return rc;
}

/*
 * limbo_end -- all of the part that are in limbo become known: their users may be idle, or dead.
 * But those that are not in the table: they may still be given back.
 */
static bool
limbo_end(struct xac_frames_user *user, uint32_t part)
{
    struct policy *p = policy_of(user->pool, part);
    uint32_t first = part_first(user->pool, part);
    bool any = false;

    xac_assert(xac_frames_lock_owner(user->pool, part) == user->number);
    for (uint32_t i = 0; i < p->n; i++) {
        bool free = is_free(user->pool, first + i);
        frame_ref ref = slot_load(ring_slot(user->pool, first + i));

        if (!free && ref != 0 && p->nodes[i].where == 0
            && slot_load(&user->pool->table[page_of(user->pool, ref)]) == ref) {
            limbo_admit(user, part, first + i, ref);
            any = true;
        }
    }
    return any;
}

/* steal -- from any list of the part. */
static uint32_t
steal(struct xac_frames_user *user, uint32_t part)
{
    uint32_t slot = POLICY_NONE;

    for (uint32_t i = 0; i < user->pool->region->config.free_lists && slot == POLICY_NONE;
         i++)
        slot = xac_frames_free_pop(user, part, i);
    return slot;
}

/* fresh_take -- a slot that was never used. */
static uint32_t
fresh_take(struct xac_frames_user *user, uint32_t part)
{
    xac_shared _Atomic uint32_t *word = &user->pool->locked->parts[part].vacant;
    uint32_t vacant = atomic_load_explicit(word, memory_order_relaxed);

    xac_assert(xac_frames_lock_owner(user->pool, part) == user->number);
    xac_assert(vacant <= policy_of(user->pool, part)->n);
    if (vacant == 0)
        return POLICY_NONE;
    atomic_store_explicit(word, vacant - 1, memory_order_relaxed);
    return part_first(user->pool, part) + policy_of(user->pool, part)->n - vacant;
}

/*
 * slot_try -- under the lock, which it may give up and take again: a slot that is nobody's;
 * ENOBUFS if all are fixed, or the error of a write.
 *
 * in   n_dirty_max  after so many dirty ones, the first of them is written
 */
static int
slot_try(struct xac_frames_user *user, uint32_t part, uint32_t n_dirty_max,
         uint32_t *slotp)
{
    struct search s = {.user = user,
                       .first = part_first(user->pool, part),
                       .n_dirty_max = n_dirty_max};
    int rc = 0;

    xac_assert(xac_frames_lock_owner(user->pool, part) == user->number);
    xac_assert(n_dirty_max > 0);
    *slotp = victim(&s, part);
    if (*slotp != POLICY_NONE)
        return 0;
    *slotp = steal(user, part);
    if (*slotp != POLICY_NONE) {
        pool_count(user, POOL_LIMBO_ENDS, 1);
        return 0;
    }
    /* All are fixed, or in limbo: looking through the whole part is for the rare case. */
    if (s.n_dirty == 0 && user->pool->region->config.free_lists > 0
        && limbo_end(user, part))
        *slotp = victim(&s, part);
    if (*slotp != POLICY_NONE)
        return 0;
    s.take_dirty = true;
    *slotp = victim(&s, part);
    if (*slotp != POLICY_NONE && s.is_flushing)
        rc = dirty_take(user, part, *slotp);
    return *slotp == POLICY_NONE ? ENOBUFS : rc;
}

/* slot_find -- the same, again and again; *outp as in xac_frames_ring_place(). */
static int
slot_find(struct xac_frames_user *user, uint32_t part, uint32_t *slotp, frame_ref *outp,
          uint32_t *freshp)
{
    struct xac_frames *pool = user->pool;
    struct pool_full full = {.n = 0};
    int last = ENOBUFS;
    bool go_on;

    *slotp = fresh_take(user, part);
    if (*slotp != POLICY_NONE) {
        *freshp = *slotp;
        *outp = 0;
        return 0;
    }
    do {
        /* What cannot be written keeps nobody from a clean page, wherever that is. */
        int rc =
            slot_try(user, part, last == ENOBUFS ? DIRTY_PASSED_MAX : UINT32_MAX, slotp);

        if (rc == 0) {
            *outp = slot_load(ring_slot(pool, *slotp));
            return 0;
        }
        if (rc == ENOBUFS)
            pool_count(user, POOL_NO_VICTIM, 1);
        else if (rc != EAGAIN)
            last = rc;
        xac_frames_unlock(pool, part);
        go_on = xac_frames_full(user, part, &full, last != ENOBUFS);
        xac_frames_lock(user, part);
    } while (go_on);
    xac_assert(last != 0);
    return last;
}

/* ---- Misses ------------------------------------------------------------------------ */

/* slot_fill -- mine is there now. */
static void
slot_fill(struct xac_frames *pool, uint32_t slot, frame_ref mine)
{
    xac_assert(mine != 0);
    xac_assert(slot < pool->n_frames);
    atomic_store_explicit(&pool_frame(pool, mine)->slot, slot, memory_order_relaxed);
    atomic_store_explicit(&pool_frame(pool, mine)->ignored, 0, memory_order_relaxed);
    /* Release pairs with slot_load(). */
    atomic_store_explicit(ring_slot(pool, slot), mine, memory_order_release);
    link_set(pool, slot, 0);
}

/* more_evict -- under the lock: clean pages only; ret how many. */
static uint32_t
more_evict(struct xac_frames_user *user, uint32_t part, uint32_t *slots)
{
    struct search s = {.user = user,
                       .first = part_first(user->pool, part),
                       .n_dirty_max = DIRTY_PASSED_MAX,
                       .is_batch = true};
    uint32_t most = user->pool->region->config.free_batch, n = 0;

    xac_assert(xac_frames_lock_owner(user->pool, part) == user->number);
    while (n < most && (slots[n] = victim(&s, part)) != POLICY_NONE)
        n++;
    xac_assert(n <= POOL_FREE_BATCH_MAX);
    return n;
}

/* more_free -- outside the lock: their pages leave the table, the slots go into the list. */
static void
more_free(struct xac_frames_user *user, uint32_t part, uint64_t page,
          const uint32_t *slots, uint32_t n)
{
    uint32_t list = (uint32_t)(page % user->pool->region->config.free_lists);

    xac_assert(n <= POOL_FREE_BATCH_MAX);
    xac_assert(user->pool->region->config.free_lists > 0);
    for (uint32_t i = 0; i < n; i++) /* what waits for memory waits for all at once */
        __builtin_prefetch(
            &user->pool
                 ->table[page_of(user->pool, slot_load(ring_slot(user->pool, slots[i])))],
            1);
    for (uint32_t i = 0; i < n; i++) {
        xac_frames_unmap(user, slot_load(ring_slot(user->pool, slots[i])));
        xac_frames_free_push(user, part, list, slots[i]);
    }
}

int
xac_frames_locked_place(struct xac_frames_user *user, frame_ref mine, uint64_t page,
                        frame_ref *outp, uint32_t *freshp)
{
    struct xac_frames *pool = user->pool;
    uint32_t n_lists = pool->region->config.free_lists;
    uint32_t part = part_of(pool, page), slot = POLICY_NONE, n_more = 0;
    uint32_t more[POOL_FREE_BATCH_MAX];
    int rc;

    xac_assert(mine != 0);
    if (n_lists > 0)
        slot = xac_frames_free_pop(user, part, (uint32_t)(page % n_lists));
    user->queues[part].from_free = slot != POLICY_NONE;
    if (slot != POLICY_NONE) {
        *outp = slot_load(ring_slot(pool, slot));
        slot_fill(pool, slot, mine);
        return 0;
    }
    queue_warm(user, part);
    xac_frames_lock(user, part);
    queue_drain(user, part);
    rc = slot_find(user, part, &slot, outp, freshp);
    if (rc == 0) {
        slot_fill(pool, slot, mine);
        admit(pool, part, slot, mine);
        if (n_lists > 0 && *outp != 0) {
            n_more = more_evict(user, part, more);
            pool_count(user, POOL_REFILLS, 1);
        }
    }
    xac_frames_unlock(pool, part);
    if (n_more > 0)
        more_free(user, part, page, more, n_more);
    if (rc == 0 && *outp != 0)
        xac_frames_unmap(user, *outp);
    xac_assert(rc != 0 || slot < pool->n_frames);
    return rc;
}

void
xac_frames_locked_came(struct xac_frames_user *user, frame_ref mine)
{
    struct xac_frames *pool = user->pool;
    uint32_t part = part_of(pool, page_of(pool, mine));

    xac_assert(mine != 0);
    if (user->queues[part].from_free)
        queue_note(user, part, mine,
                   atomic_load_explicit(&pool_frame(pool, mine)->slot,
                                        memory_order_relaxed));
}

void
xac_frames_locked_lost(struct xac_frames_user *user, frame_ref mine)
{
    struct xac_frames *pool = user->pool;
    uint64_t page = page_of(pool, mine);
    uint32_t part = part_of(pool, page);
    uint32_t slot =
        atomic_load_explicit(&pool_frame(pool, mine)->slot, memory_order_relaxed);

    xac_assert(mine != 0);
    xac_assert(slot < pool->n_frames);
    if (!user->queues[part]
             .from_free) /* known, and the next to make room when its turn comes */
        return;
    link_set(pool, slot, LINK_BUSY);
    pool_count(user, POOL_LIMBO_ENDS, 1);
    xac_frames_free_push(user, part, (uint32_t)(page % pool->region->config.free_lists),
                         slot);
}

void
xac_frames_locked_rebuild(struct xac_frames *pool, uint32_t part)
{
    struct policy *p = policy_of(pool, part);
    uint32_t first = part_first(pool, part);

    xac_assert(part < pool->region->config.parts);
    memset(p->state, 0, xac_frames_policy_bytes(p->ops, p->n));
    xac_frames_policy_init(p);
    for (uint32_t i = 0; i < p->n; i++) {
        frame_ref ref = slot_load(ring_slot(pool, first + i));

        if (ref != 0 && !is_free(pool, first + i))
            admit(pool, part, first + i, ref);
    }
}
