/* SPDX-License-Identifier: MIT */
/*
 * ring.c -- the clock of Nb-GCLOCK (ICDE 2010, figures 4 and 5).
 *
 * Decrement, then test: a page fixed once makes room the first time the hand meets it
 * unfixed.
 *
 * The hand goes on by one with each look, and gives each slot to one sweeper: together they make the
 * round that one would.  The figure moves it after the search, by the distance: sweepers at the same
 * time start at the same slot, each takes a weight from the same frames, each adds its distance, and
 * what lies between where they ended and where the hand is then is passed over.  With eight that
 * overlap all the time hits are other ones by that (doc/frames.md).  A hand of several words gives
 * them away in runs (hand_take()).
 *
 * Clean frames go first: a few dirty ones are passed by.  Were it all of them, they would pile up where
 * nobody flushes, pages in use would leave in their stead, and each search would pass them all.
 * A dirty one is written while it is still in the table and pinned by the sweeper, and retired
 * after that (P7).
 */
#include <config.h>

#include "frames/pool.h"

#include <errno.h>

/* What came of looking at one slot. */
enum look {
    LOOK_TAKEN,
    LOOK_PASS,
    LOOK_BLOCKED
};

struct sweep {
    struct xac_frames_user *user;
    frame_ref mine;
    frame_ref out;    /* what was taken */
    uint32_t n_dirty; /* passed by, since a clean one may follow */
    bool take_dirty;  /* one revolution found nothing clean */
    bool is_alone;    /* goes from slot to slot, wherever the hand is */
    uint32_t at;      /* the slot looked at */
    int write_rc;     /* of the last write that failed */
    struct pool_full full;
};

/* slot_take -- put mine where c, which is GONE, was; false if a helper was faster. */
XAC_SIGSAFE static enum look
slot_take(struct sweep *s, xac_shared _Atomic uint64_t *slot, frame_ref c)
{
    xac_assert_slow(c != 0);
    xac_assert_slow(s->mine != 0);
    s->out = c;
    xac_frames_point("retired");
    pool_probe(s->user->pool, XAC_FRAMES_AT_RETIRED);
    return slot_cas(slot, &c, s->mine) ? LOOK_TAKEN : LOOK_PASS;
}

/* weight_drop -- one visit; ret the weight after it, at most 0 if there was none left. */
XAC_SIGSAFE static int32_t
weight_drop(struct frame *f)
{
    int32_t weight = atomic_load_explicit(&f->weight, memory_order_relaxed);

    if (weight <= 0)
        return 0;
    return atomic_fetch_sub_explicit(&f->weight, 1, memory_order_relaxed) - 1;
}

/* clean_take -- retire it, if nobody uses it and the owner agrees. */
XAC_SIGSAFE static enum look
clean_take(struct sweep *s, xac_shared _Atomic uint64_t *slot, frame_ref c)
{
    struct frame *f = pool_frame(s->user->pool, c);
    bool is_gone;

    xac_assert_slow(c != 0);
    if (!pool_evict_begin(s->user, frame_ref_index(c)))
        return LOOK_BLOCKED;
    xac_frames_point("retire");
    is_gone = frame_try_retire(f, c);
    pool_evict_end(s->user, frame_ref_index(c), is_gone);
    return is_gone ? slot_take(s, slot, c) : LOOK_BLOCKED;
}

/*
 * may_write -- a dirty one's turn: whether it is to make room.  What cannot be written keeps nobody
 * from a clean page, wherever that is.
 */
XAC_SIGSAFE static bool
may_write(struct sweep *s)
{
    return s->take_dirty || (s->write_rc == 0 && ++s->n_dirty > DIRTY_PASSED_MAX);
}

/* dirty_take -- write it and retire it, if nobody uses it meanwhile. */
XAC_SIGSAFE static enum look
dirty_take(struct sweep *s, xac_shared _Atomic uint64_t *slot, frame_ref c)
{
    struct frame *f = pool_frame(s->user->pool, c);
    int rc;

    if (!frame_flush_begin(f, c, true))
        return LOOK_BLOCKED;
    rc = xac_frames_write(s->user, f);
    pool_count(s->user, POOL_WRITES_INLINE, 1);
    xac_frames_point("written");
    if (rc == 0 && pool_evict_begin(s->user, frame_ref_index(c))) {
        bool is_gone = frame_flush_retire(f, c);

        pool_evict_end(s->user, frame_ref_index(c), is_gone);
        if (is_gone)
            return slot_take(s, slot, c);
    }
    frame_flush_end(f, rc == 0);
    if (rc != 0 && rc != EAGAIN)
        s->write_rc = rc;
    return LOOK_BLOCKED;
}

/* slot_look -- the hand is at the slot. */
XAC_SIGSAFE static enum look
slot_look(struct sweep *s, xac_shared _Atomic uint64_t *slot)
{
    frame_ref c;
    struct frame *f;
    uint64_t state;

    xac_frames_point("look");
    c = slot_load(slot);
    if (c == 0) /* promised to somebody who is about to fill it */
        return LOOK_BLOCKED;
    f = pool_frame(s->user->pool, c);
    state = frame_load(f);
    if (!frame_is_of(state, c)) { /* the slot has changed since */
        pool_count(s->user, POOL_STALE_REFS, 1);
        return LOOK_PASS;
    }
    if (frame_word(state) == FRAME_GONE) /* cancelled, or retired by a slower sweeper */
        return slot_take(s, slot, c);
    if ((frame_word(state) & FRAME_PINS) != 0
        || pool_is_barred(s->user, frame_ref_index(c)))
        return LOOK_BLOCKED; /* before the weight: the structural rule */
    if (weight_drop(f) > 0)
        return LOOK_PASS;
    if ((frame_word(state) & FRAME_DIRTY) != 0)
        return may_write(s) ? dirty_take(s, slot, c) : LOOK_PASS;
    return clean_take(s, slot, c);
}

/*
 * hand_next -- to the next slot.
 *
 * Alone, too, once n looks in turn have found no frame that can be had: between them lie others'
 * looks, and all may have been at the same few slots, which are fixed.
 */
XAC_SIGSAFE static void
hand_next(struct sweep *s)
{
    uint32_t n = s->user->pool->n_frames;

    xac_assert_slow(n > 0);
    s->at = s->is_alone ? (s->at + 1) % n : (uint32_t)(hand_take(s->user) % n);
    xac_assert_slow(s->at < n);
}

/* ring_replace -- sweep until a frame makes room for s->mine. */
XAC_SIGSAFE static int
ring_replace(struct sweep *s)
{
    struct xac_frames *pool = s->user->pool;
    uint32_t n = pool->n_frames;
    uint32_t blocked = 0; /* frames found unusable, one after the other */

    xac_assert_slow(s->mine != 0);
    xac_assert_slow(s->out == 0);
    for (uint64_t steps = 1;; steps++) {
        enum look look;

        hand_next(s);
        look = slot_look(s, ring_slot(pool, s->at));
        if (look == LOOK_TAKEN) {
            pool_count(s->user, POOL_SWEEP_STEPS, steps);
            return 0;
        }
        blocked = look == LOOK_BLOCKED ? blocked + 1 : 0;
        if (look == LOOK_PASS)
            s->full.n = 0; /* not every frame is fixed */
        if (blocked >= n) {
            blocked = 0;
            if (!s->is_alone)
                s->is_alone = true;
            else if (!xac_frames_full(s->user, 0, &s->full, s->write_rc != 0)) {
                pool_count(s->user, POOL_SWEEP_STEPS, steps);
                return s->write_rc != 0 ? s->write_rc : ENOBUFS;
            }
        }
        if (steps >= n)
            s->take_dirty = true;
    }
}

XAC_SIGSAFE int
xac_frames_ring_place(struct xac_frames_user *user, frame_ref mine, frame_ref *outp,
                      uint32_t *freshp)
{
    struct xac_frames *pool = user->pool;
    struct sweep s = {.user = user, .mine = mine};
    uint32_t vacant = atomic_load_explicit(&pool->region->vacant, memory_order_relaxed);
    frame_ref none = 0;
    uint64_t i;
    int rc;

    xac_assert_slow(mine != 0);
    xac_assert_slow(vacant <= pool->n_frames);
    do
        if (vacant == 0) {
            rc = ring_replace(&s);
            if (rc == 0)
                *outp = s.out;
            return rc;
        }
    while (!atomic_compare_exchange_weak_explicit(&pool->region->vacant, &vacant,
                                                  vacant - 1, memory_order_relaxed,
                                                  memory_order_relaxed));
    xac_frames_point("reserved");
    pool_probe(pool, XAC_FRAMES_AT_RESERVED);
    for (i = hand_take(user);
         !slot_cas(ring_slot(pool, (uint32_t)(i % pool->n_frames)), &none, mine); i++)
        none = 0;
    *outp = 0;
    *freshp = pool->n_frames - vacant;
    xac_assert_slow(vacant > 0);
    xac_assert(*freshp < pool->n_frames);
    return 0;
}
