/* SPDX-License-Identifier: MIT */
/*
 * frame.h -- one frame's descriptor: its page, how often it is fixed, whether it is gone.
 *
 * WHAT      The frame state machine of Nb-GCLOCK (ICDE 2010, figure 2) in one 64-bit word
 *           together with the number of the descriptor's life and the dirty bit, so that
 *           "nobody uses it and the file has it" and "it is gone" are one compare-and-swap.
 * NOT       Which page makes room for which: ring.c and the policies.
 * WHERE     In the pool's memory, which processes may share; type-stable: a descriptor is
 *           used again, never given back.  References carry the life's number, so that an
 *           old one never pins (no hazard pointers, no ABA).
 * THREADS   any; nothing here waits.  May run in a fault handler.
 *
 *      life begins: pins 1     pin: x -> x+1, x >= 0      unpin: x -> x-1, x >= 1
 *      retire: 0 and clean -> GONE                         cancel: 1 -> GONE, never published
 *
 * INVARIANTS
 *   F1  GONE ends a life; only the next life's beginning changes the word again.
 *   F2  While a thread has a pin the frame is not GONE and page_id and data do not change,
 *       but data from none to some.
 *   F3  Of a frame that is GONE, data does not change until the next life.
 *   F4  Only a frame that is neither DIRTY nor FLUSHING becomes GONE by retire.
 *   F5  At most one thread has FLUSHING set.
 */
#ifndef XAC_FRAMES_FRAME_H
#define XAC_FRAMES_FRAME_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"

#define FRAME_LINE     64 /* bytes of a cache line */
#define FRAME_GONE     UINT32_MAX
#define FRAME_DIRTY    (UINT32_C(1) << 30)
#define FRAME_FLUSHING (UINT32_C(1) << 29)
#define FRAME_PINS     (FRAME_FLUSHING - 1)

/* Reference to a life of a descriptor: { life:32 | index + 1:32 }; 0 is none. */
typedef uint64_t frame_ref;

/*
 * Words for the owner of the pool (pool_owner), in the descriptor's cache line.  The pool never
 * touches them; they outlive lives, and an owner leaves them as it found them when it allows
 * a life to end.
 */
struct frame_side {
    xac_shared _Atomic uint64_t latch;
    xac_shared _Atomic uint32_t n_swizzled;
    xac_shared _Atomic uint32_t parent;
    xac_shared _Atomic uint32_t flags;
    xac_shared _Atomic uint32_t offset;
    xac_shared _Atomic uint64_t lsn;
};

struct frame {
    alignas(FRAME_LINE) xac_shared _Atomic uint64_t state; /* { life:32 | word:32 } */
    xac_shared _Atomic uint64_t page_id;                   /* fixed during a life */
    xac_shared _Atomic uint32_t data; /* buffer's index + 1; 0: not read yet */
    xac_shared _Atomic int32_t
        weight; /* a hint; may run below 0 by the number of threads */
    xac_shared _Atomic uint32_t
        slot; /* where a locking policy has it; fixed during a life */
    xac_shared _Atomic uint32_t
        ignored; /* 1: a locking policy need not be told of hits */
    struct frame_side side;
};

static_assert(sizeof(struct frame) == FRAME_LINE, "a descriptor is one cache line");

XAC_SIGSAFE static inline frame_ref
frame_ref_make(uint32_t life, uint32_t index)
{
    xac_assert_slow(index < UINT32_MAX);
    return (uint64_t)life << 32 | (index + 1);
}

XAC_SIGSAFE static inline uint32_t
frame_ref_index(frame_ref ref)
{
    return (uint32_t)ref - 1;
}

XAC_SIGSAFE static inline uint64_t
frame_state_make(frame_ref ref, uint32_t word)
{
    return (ref & ~(uint64_t)UINT32_MAX) | word;
}

XAC_SIGSAFE static inline uint32_t
frame_word(uint64_t state)
{
    return (uint32_t)state;
}

/* frame_is_of -- the state is of the life that the reference names. */
XAC_SIGSAFE static inline bool
frame_is_of(uint64_t state, frame_ref ref)
{
    return state >> 32 == ref >> 32;
}

/*
 * frame_load -- the state now.  Acquire pairs with the release of the thread that stored it: a frame
 * that is GONE has its last data, one that is unpinned has its user's stores.
 */
XAC_SIGSAFE static inline uint64_t
frame_load(struct frame *f)
{
    return atomic_load_explicit(&f->state, memory_order_acquire);
}

/*
 * frame_cas -- one step of the state.  It pairs with all other steps and with unpin: a thread that
 * retires or writes the frame has seen all stores of its users.
 */
XAC_SIGSAFE static inline bool
frame_cas(struct frame *f, uint64_t *seen, uint64_t next)
{
    return atomic_compare_exchange_strong_explicit(&f->state, seen, next,
                                                   memory_order_acq_rel,
                                                   memory_order_acquire);
}

/*
 * frame_begin -- a new life, pinned once by its creator, who alone knows it.
 *
 * The life's number is stored before anything else changes, so that a reference to the
 * former life fails from then on.
 */
XAC_SIGSAFE static inline frame_ref
frame_begin(struct frame *f, uint32_t index, uint64_t page_id)
{
    uint64_t old = atomic_load_explicit(&f->state, memory_order_relaxed);
    uint32_t life = (uint32_t)(old >> 32) + 1;

    xac_assert(frame_word(old) == FRAME_GONE || old == 0);
    if (life == 0)
        life = 1;
    atomic_store_explicit(&f->page_id, page_id, memory_order_relaxed);
    atomic_store_explicit(&f->data, 0, memory_order_relaxed);
    atomic_store_explicit(&f->weight, 1, memory_order_relaxed);
    /* Pairs with frame_load() and frame_try_pin(): they see the fields above. */
    atomic_store_explicit(&f->state, (uint64_t)life << 32 | 1, memory_order_release);
    return frame_ref_make(life, index);
}

/* frame_try_pin -- false if that life is over.  A loop, since adding to GONE would revive it. */
XAC_SIGSAFE static inline bool
frame_try_pin(struct frame *f, frame_ref ref)
{
    uint64_t seen = frame_load(f);

    xac_assert_slow(ref != 0);
    while (frame_is_of(seen, ref) && frame_word(seen) != FRAME_GONE)
        if (frame_cas(f, &seen, seen + 1))
            return true;
    return false;
}

/* frame_unpin -- release pairs with frame_cas() of a thread that retires or writes the page. */
XAC_SIGSAFE static inline void
frame_unpin(struct frame *f)
{
    uint64_t was = atomic_fetch_sub_explicit(&f->state, 1, memory_order_release);

    xac_assert(frame_word(was) != FRAME_GONE && (frame_word(was) & FRAME_PINS) >= 1);
}

/* frame_try_retire -- end a life that is unpinned and clean. */
XAC_SIGSAFE static inline bool
frame_try_retire(struct frame *f, frame_ref ref)
{
    uint64_t seen = frame_state_make(ref, 0);

    xac_assert_slow(ref != 0);
    return frame_cas(f, &seen, frame_state_make(ref, FRAME_GONE));
}

/* frame_cancel -- end a life that only its creator has pinned and nobody else could pin. */
XAC_SIGSAFE static inline void
frame_cancel(struct frame *f, frame_ref ref)
{
    uint64_t seen = frame_state_make(ref, 1);
    bool done = frame_cas(f, &seen, frame_state_make(ref, FRAME_GONE));

    xac_require(done);
    xac_assert(ref != 0);
}

/* frame_mark_dirty -- the unpin that follows publishes it. */
XAC_SIGSAFE static inline void
frame_mark_dirty(struct frame *f)
{
    atomic_fetch_or_explicit(&f->state, FRAME_DIRTY, memory_order_relaxed);
}

/*
 * frame_flush_begin -- become the one who writes: DIRTY off, FLUSHING on, one pin more.
 *
 * in   unpinned_only  only if nobody has it pinned
 */
XAC_SIGSAFE static inline bool
frame_flush_begin(struct frame *f, frame_ref ref, bool unpinned_only)
{
    uint64_t seen = frame_load(f);

    xac_assert_slow(ref != 0);
    for (;;) {
        uint32_t word = frame_word(seen);

        if (!frame_is_of(seen, ref) || word == FRAME_GONE || !(word & FRAME_DIRTY)
            || (word & FRAME_FLUSHING) || (unpinned_only && (word & FRAME_PINS) != 0))
            return false;
        if (frame_cas(f, &seen, seen - FRAME_DIRTY + FRAME_FLUSHING + 1))
            return true;
    }
}

/* frame_flush_end -- written, or not: then it is dirty again. */
XAC_SIGSAFE static inline void
frame_flush_end(struct frame *f, bool written)
{
    xac_assert((frame_word(frame_load(f)) & FRAME_FLUSHING) != 0);
    if (!written)
        frame_mark_dirty(f);
    /* Release pairs with frame_cas() of a thread that retires it: the write is over. */
    atomic_fetch_sub_explicit(&f->state, FRAME_FLUSHING + 1, memory_order_release);
}

/* frame_flush_retire -- end the life after the write, unless somebody came meanwhile. */
XAC_SIGSAFE static inline bool
frame_flush_retire(struct frame *f, frame_ref ref)
{
    uint64_t seen = frame_state_make(ref, FRAME_FLUSHING | 1);

    return frame_cas(f, &seen, frame_state_make(ref, FRAME_GONE));
}

#endif /* XAC_FRAMES_FRAME_H */
