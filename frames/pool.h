/* SPDX-License-Identifier: MIT */
/*
 * pool.h -- the parts of a pool of frames, and their owners.
 *
 * WHAT      The layout of a pool's memory; the table from pages to frames; page buffers.
 *           The algorithm is Nb-GCLOCK's, corrected where its figures lose updates in C
 *           (frames/README.md lists the corrections).
 * WHERE     One mapping, which processes may share: indices and offsets, no pointers.
 * THREADS   any; nothing here waits, allocates or locks.
 *
 * A user owns one spare descriptor and up to one spare buffer between its calls.  A miss puts
 * the spare into the ring, and the descriptor that leaves the ring is the next spare; while the
 * ring fills, the next spare is one that was never used.  So there is no list of free
 * descriptors, and nobody contends for one.
 *
 * INVARIANTS
 *   P1  A slot of the ring goes from 0 to a reference once, and then from one to another.
 *   P2  vacant only falls; vacant <= slots that are 0.
 *   P3  The table's entry of page k is 0 or refers to a life with the page_id k.
 *   P4  A thread that took a reference out of the ring owns the descriptor.  After the
 *       conditional removal from the table, done or refused, it may begin the next life.
 *   P5  A thread that removes or replaces a table entry of a life that is GONE owns its buffer.
 *   P6  n_frames + n_users descriptors; n_frames + (1 + XAC_FRAMES_MANY) * n_users buffers: between
 *       its calls a user holds one of each at most, during fix() a buffer more, during fix_many()
 *       one for each page, while others may read the same pages into buffers of their own.
 *   P7  A page that the table does not have has its newest bytes in the file: only clean
 *       lives are retired (F4).
 */
#ifndef XAC_FRAMES_POOL_H
#define XAC_FRAMES_POOL_H

#include <string.h>

#include "frames/frame.h"
#include "xac_frames.h"

#define POOL_MAGIC          UINT64_C(0x32736d6172666378) /* "xcframs2" */
#define POOL_CELLS_MAX      64
#define HAND_RUN            16 /* places in turn that one word of the hand gives away */
#define POOL_FREE_BATCH_MAX 64 /* frames evicted more with one lock */
#define DIRTY_PASSED_MAX    16 /* dirty pages that a search for a clean one passes by */

/* xac_frames_point -- where a test may stop or delay a thread (debug builds). */
#define xac_frames_point(name) xac_kill_point("frames: " name)

/* One word of the clock's hand, see hand_take(); the hand has moved by their sum. */
struct pool_cell {
    alignas(FRAME_LINE) xac_shared _Atomic uint64_t moved;
};

enum pool_counter {
    POOL_HITS,
    POOL_MISSES,
    POOL_EVICTIONS,
    POOL_READS,
    POOL_READS_DUPLICATE,
    POOL_WRITES,
    POOL_WRITES_INLINE,
    POOL_LOST_RACES,
    POOL_RESCUES,
    POOL_STALE_REFS,
    POOL_SWEEP_STEPS,
    POOL_FULL_YIELDS,
    POOL_LOCKS,
    POOL_LOCK_WAITS,
    POOL_LOCK_TRIES_FAILED,
    POOL_HITS_STALE,
    POOL_LOCK_SLEEPS,
    POOL_BATCHES,
    POOL_BATCHES_FULL,
    POOL_BATCHED,
    POOL_REFILLS,
    POOL_FREE_IN,
    POOL_FREE_OUT,
    POOL_LIMBO_ENDS,
    POOL_LOCK_WAIT_NS,
    POOL_NO_VICTIM,
    POOL_REFUSED_BARRED,
    POOL_REFUSED_OWNER,
    POOL_OFFERS,
    POOL_N_COUNTERS
};

enum pool_taken {
    SEAT_FREE,
    SEAT_TAKEN,
    SEAT_BROKEN /* its owner died in a call: until xac_frames_repair() */
};

/*
 * A note of a fixed page: the reference, and this bit while it is being fixed or unfixed, when
 * the frame may or may not have the pin.
 */
#define POOL_NOTE_OPEN (UINT64_C(1) << 31)

/* A user's place.  Its owner's only, but `taken`, and the counters, which others read. */
struct pool_seat {
    alignas(FRAME_LINE) xac_shared _Atomic uint32_t taken; /* enum pool_taken */
    xac_shared _Atomic uint32_t pid;
    xac_shared _Atomic uint32_t in_call; /* in one that a death leaves half done */
    xac_shared _Atomic uint64_t writing; /* the life it has FLUSHING of, during a write */
    uint32_t spare;                      /* index of the descriptor */
    uint32_t buffer;                     /* index + 1 of the spare buffer, 0: none */
    xac_shared _Atomic uint64_t counters[POOL_N_COUNTERS];
};

/* Beginning of a pool's memory.  Fixed after creation where nothing else is said. */
struct pool_region {
    xac_shared _Atomic uint64_t magic; /* stored last */
    struct xac_frames_config config;
    uint64_t cells_offset, ring_offset, seats_offset, frames_offset;
    uint64_t table_offset, links_offset, notes_offset, parts_offset, free_offset;
    uint64_t free_links_offset, policy_offset, data_offset, n_bytes;
    uint32_t n_frames_all, n_buffers;
    alignas(FRAME_LINE) xac_shared _Atomic uint32_t vacant; /* NB_GCLOCK */
    alignas(FRAME_LINE)
        xac_shared _Atomic uint64_t buffers;  /* stack: { tag:32 | index+1 } */
    xac_shared _Atomic uint32_t buffers_used; /* those with a smaller index were in use */
};

/*
 * Somebody who keeps state in frames (frame_side) and references to them, and so has a say
 * in evictions (swizzle/).  Called by the thread that needs a frame, with the policy's lock held if
 * there is one, and with whatever latches its caller holds: they only try, and never wait.
 * `frame` is a descriptor's index.
 */
struct pool_owner {
    /* A cheap look, without effect: the frame cannot leave now.  The policy passes it by. */
    bool (*is_barred)(void *arg, uint32_t frame);
    /* The frame's page is about to leave: withdraw references to it.  false: not now. */
    bool (*evict_begin)(void *arg, uint32_t frame);
    /* After evict_begin() was true: it has left, or not after all. */
    void (*evict_end)(void *arg, uint32_t frame, bool is_gone);
    /* A round of the policy found nobody: evict some page with xac_frames_evict().  The
       policy's lock is not held.  ret whether one has left. */
    bool (*no_victim)(void *arg, struct xac_frames_user *user);
    /* In place of io.write; EAGAIN if its bytes cannot be read now without waiting. */
    int (*write)(void *arg, uint64_t page, uint32_t frame, const void *data);
    void *arg;
};

/*
 * What a pool has in place of the clock of ring.c when its policy needs a lock.  frames/policies/
 * fills this in and is not called in any other way.
 */
struct pool_plug {
    /* Defaults that only its policies have; everything else in *c is complete. */
    void (*complete)(struct xac_frames_config *c);
    /* Room for its part of the pool's memory, from *endp on. */
    void (*lay_out)(struct pool_region *r, uint64_t *endp);
    /* A process's handle on that part: pool->locked; ENOMEM.  init() makes a new pool's. */
    int (*open)(struct xac_frames *pool);
    void (*init)(struct xac_frames *pool);
    void (*close)(struct xac_frames *pool);
    /* A user's: user->queues; ENOMEM. */
    int (*join)(struct xac_frames_user *user);
    void (*leave)(struct xac_frames_user *user);
    /* In place of xac_frames_ring_place(); *outp has left the table already. */
    int (*place)(struct xac_frames_user *user, frame_ref mine, uint64_t page,
                 frame_ref *outp, uint32_t *freshp);
    /* After it: the page is in the table; or it is not, and mine is cancelled. */
    void (*came)(struct xac_frames_user *user, frame_ref mine);
    void (*lost)(struct xac_frames_user *user, frame_ref mine);
    /* A fix found the page; it is pinned. */
    void (*hit)(struct xac_frames_user *user, frame_ref ref);
    /* A user has died: free the locks that it had. */
    void (*reap)(struct xac_frames *pool, uint32_t user);
    /* Nobody is in a call: make its part anew from what the slots have. */
    void (*repair)(struct xac_frames *pool);
    /* Slots never used; NULL or what is wrong with its part of a pool at rest. */
    uint32_t (*n_vacant)(const struct xac_frames *pool);
    const char *(*check)(const struct xac_frames *pool);
};

/*
 * xac_frames_plug -- of a policy; NULL for NB_GCLOCK, and for what is not linked: a program has
 * either frames/policies/ or nb_only.c.
 */
const struct pool_plug *xac_frames_plug(uint32_t policy);

/* A process's handle: where the parts are mapped here.  Fixed after creation. */
struct xac_frames {
    struct pool_region *region;
    struct pool_cell *cells;
    xac_shared _Atomic uint64_t *ring; /* of frame_ref; see ring_slot() */
    struct pool_seat *seats;
    struct frame *frames;
    xac_shared _Atomic uint64_t *table; /* of frame_ref, by page */
    xac_shared _Atomic uint32_t *links; /* buffer below in the stack, index + 1 */
    xac_shared _Atomic uint64_t *notes; /* pins_max of each seat */
    char *data;
    uint64_t n_pages; /* of the configuration, and the next three: for fix() */
    uint32_t page_bytes, pins_max;
    int32_t weight_max;
    uint32_t n_frames;
    uint32_t n_lines;             /* of the ring */
    const struct pool_plug *plug; /* NULL: NB_GCLOCK */
    struct pool_locked *locked;   /* the plug's */
    struct xac_frames_io io;
    const struct pool_owner *owner; /* NULL: none.  Set before anybody joins */
    bool own_memory;
};

struct xac_frames_user {
    struct xac_frames *pool;
    struct pool_seat *seat;
    xac_shared _Atomic uint64_t *notes; /* pins_max */
    uint32_t number;
    uint32_t hand_cell;        /* where it moves the hand next */
    struct pool_queue *queues; /* the plug's, of each part */
};

/* ---- Small parts ------------------------------------------------------------------ */

XAC_SIGSAFE static inline struct frame *
pool_frame(const struct xac_frames *pool, frame_ref ref)
{
    return &pool->frames[frame_ref_index(ref)];
}

/* pool_probe -- where an experiment may stop a thread; beside it stands a point for tests. */
XAC_SIGSAFE static inline void
pool_probe(const struct xac_frames *pool, enum xac_frames_step step)
{
    if (xac_unlikely(pool->io.probe != NULL))
        pool->io.probe(pool->io.arg, step);
}

/* pool_count -- only its owner adds, so that no atomic addition is needed. */
XAC_SIGSAFE static inline void
pool_count(struct xac_frames_user *user, enum pool_counter what, uint64_t n)
{
    xac_assert_slow(what < POOL_N_COUNTERS);
    xac_shared _Atomic uint64_t *counter = &user->seat->counters[what];

    atomic_store_explicit(counter,
                          atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* pool_hit_count -- under Nb-GCLOCK: a fix of a page that is there adds to its weight, up to the cap. */
XAC_SIGSAFE static inline void
pool_hit_count(struct xac_frames_user *user, struct frame *f)
{
    int32_t weight = atomic_load_explicit(&f->weight, memory_order_relaxed);

    pool_count(user, POOL_HITS, 1);
    if (weight < user->pool->weight_max)
        atomic_fetch_add_explicit(&f->weight, 1, memory_order_relaxed);
}

/*
 * ring_slot -- slot i.  Neighbours lie in different cache lines, so that sweepers who follow
 * each other do not meet (Nb-GCLOCK, figure 14).
 */
XAC_SIGSAFE static inline xac_shared _Atomic uint64_t *
ring_slot(const struct xac_frames *pool, uint32_t i)
{
    uint32_t per_line = FRAME_LINE / sizeof(uint64_t);

    xac_assert_slow(i < pool->n_frames);
    return &pool->ring[i % pool->n_lines * per_line + i / pool->n_lines];
}

/*
 * slot_load, slot_cas -- a reference in the ring or in the table.  Acquire and release pair
 * with each other: a thread that finds a frame finds its fields.
 */
XAC_SIGSAFE static inline frame_ref
slot_load(xac_shared _Atomic uint64_t *slot)
{
    return atomic_load_explicit(slot, memory_order_acquire); /* pairs with slot_cas() */
}

XAC_SIGSAFE static inline bool
slot_cas(xac_shared _Atomic uint64_t *slot, frame_ref *seen, frame_ref next)
{
    xac_frames_point("slot");
    /* Pairs with slot_load(), and with the other steps of the slot. */
    return atomic_compare_exchange_strong_explicit(slot, seen, next, memory_order_acq_rel,
                                                   memory_order_acquire);
}

/* table_remove -- unmap the page if it is still this life's. */
XAC_SIGSAFE static inline bool
table_remove(struct xac_frames *pool, uint64_t page, frame_ref ref)
{
    xac_assert_slow(page < pool->n_pages);
    return slot_cas(&pool->table[page], &ref, 0);
}

/*
 * hand_take -- move it on by one; ret a place that nobody else is told.
 *
 * Of n words each gives away every n-th run of places.  A user that has taken the last place of a run
 * goes on to the next word: so all words go on alike, users are at different ones, and one user alone is told
 * all places in turn.
 */
XAC_SIGSAFE static inline uint64_t
hand_take(struct xac_frames_user *user)
{
    uint32_t n = user->pool->region->config.hand_cells, cell = user->hand_cell;
    uint64_t at = atomic_fetch_add_explicit(&user->pool->cells[cell].moved, 1,
                                            memory_order_relaxed);

    xac_assert_slow(cell < n);
    if (at % HAND_RUN == HAND_RUN - 1)
        user->hand_cell = (cell + 1) & (n - 1);
    return (at / HAND_RUN * n + cell) * HAND_RUN + at % HAND_RUN;
}

/* ---- spare.c: page buffers -------------------------------------------------------- */

/* xac_frames_buffer_take -- index + 1 of a buffer that is the caller's now (P6: there is one). */
XAC_SIGSAFE uint32_t xac_frames_buffer_take(struct xac_frames_user *user);

/* xac_frames_buffer_give -- the opposite; 0 is nothing. */
XAC_SIGSAFE void xac_frames_buffer_give(struct xac_frames_user *user, uint32_t buffer);

/* pool_data -- bytes of buffer index + 1; NULL in a simulation. */
XAC_SIGSAFE static inline void *
pool_data(const struct xac_frames *pool, uint32_t buffer)
{
    xac_assert_slow(pool->page_bytes == 0 || buffer <= pool->region->n_buffers);
    if (pool->page_bytes == 0)
        return NULL;
    return pool->data + (uint64_t)(buffer - 1) * pool->page_bytes;
}

/* ---- The owner's part ---------------------------------------------------------------- */

/* pool_is_barred -- the owner says that the frame cannot leave now. */
XAC_SIGSAFE static inline bool
pool_is_barred(struct xac_frames_user *user, uint32_t frame)
{
    const struct pool_owner *o = user->pool->owner;

    if (o == NULL || !o->is_barred(o->arg, frame))
        return false;
    pool_count(user, POOL_REFUSED_BARRED, 1);
    return true;
}

/* pool_evict_begin, pool_evict_end -- around the step that ends a life. */
XAC_SIGSAFE static inline bool
pool_evict_begin(struct xac_frames_user *user, uint32_t frame)
{
    const struct pool_owner *o = user->pool->owner;

    xac_assert_slow(frame < user->pool->region->n_frames_all);
    if (o == NULL || o->evict_begin(o->arg, frame))
        return true;
    pool_count(user, POOL_REFUSED_OWNER, 1);
    return false;
}

XAC_SIGSAFE static inline void
pool_evict_end(struct xac_frames_user *user, uint32_t frame, bool is_gone)
{
    const struct pool_owner *o = user->pool->owner;

    xac_assert_slow(frame < user->pool->region->n_frames_all);
    if (o != NULL)
        o->evict_end(o->arg, frame, is_gone);
}

/*
 * xac_frames_hit -- a use of a page that was found by its frame and is kept there by the owner:
 * as the hit of a fix, without pin.  ret its bytes
 */
void *xac_frames_hit(struct xac_frames_user *user, uint32_t frame);

/* pool_hit -- the same, if its bytes are known. */
static inline void
pool_hit(struct xac_frames_user *user, uint32_t frame)
{
    if (user->pool->plug == NULL)
        pool_hit_count(user, &user->pool->frames[frame]);
    else
        (void)xac_frames_hit(user, frame);
}

/*
 * xac_frames_evict -- end this page's stay now if it is clean, nobody has it fixed, and the
 * owner allows it.  Its descriptor stays in the ring, a ghost, until the hand comes.
 */
bool xac_frames_evict(struct xac_frames_user *user, uint32_t frame);

/* ---- ring.c: Nb-GCLOCK --------------------------------------------------------------- */

/*
 * xac_frames_ring_place -- put a private frame into the ring; its creator keeps it pinned.
 *
 * out  outp    the life that left the ring for it, GONE; or 0: a slot was vacant, and
 * out  freshp  this descriptor, never used, is the caller's
 * ret  0, ENOBUFS, or the error of a write: then mine is not in the ring
 */
XAC_SIGSAFE int xac_frames_ring_place(struct xac_frames_user *user, frame_ref mine,
                                      frame_ref *outp, uint32_t *freshp);

/* ---- full.c --------------------------------------------------------------------------- */

/* A search that finds all frames fixed, round after round. */
struct pool_full {
    uint32_t n; /* rounds; 0: it has found one that is not */
    uint64_t since;
};

/*
 * xac_frames_full -- after each such round, without locks: have the owner evict, yield, or sleep.
 *
 * in   is_unwritable  some were not fixed, but dirty, and a write has failed
 * ret  false: give up
 */
XAC_SIGSAFE bool xac_frames_full(struct xac_frames_user *user, uint32_t part,
                                 struct pool_full *full, bool is_unwritable);

/* ---- notes: what a user has fixed, for xac_frames_reap() ------------------------------- */

/* note_find -- the user's note with this value, or NULL; 0 finds room. */
XAC_SIGSAFE static inline xac_shared _Atomic uint64_t *
note_find(struct xac_frames_user *user, uint64_t value)
{
    uint32_t n = user->pool->region->config.pins_max;

    for (uint32_t i = 0; i < n; i++)
        if (atomic_load_explicit(&user->notes[i], memory_order_relaxed) == value)
            return &user->notes[i];
    return NULL;
}

/*
 * note_set -- in the order of the program before and after the step of the frame: release pairs
 * with xac_frames_reap(), which comes after the owner's death.
 */
XAC_SIGSAFE static inline void
note_set(xac_shared _Atomic uint64_t *note, uint64_t value)
{
    if (note != NULL)
        atomic_store_explicit(note, value, memory_order_release);
}

/* pool_in_call -- what follows, or has ended, is lost if its process dies. */
XAC_SIGSAFE static inline void
pool_in_call(struct xac_frames_user *user, bool in_call)
{
    /* Release pairs with xac_frames_reap(). */
    atomic_store_explicit(&user->seat->in_call, in_call, memory_order_release);
}

/* ---- Parts: each has a lock, a policy and frames of its own; NB_GCLOCK has one ----------- */

/* part_of -- where a page belongs; part_first -- the first slot of a part. */
XAC_SIGSAFE static inline uint32_t
part_of(const struct xac_frames *pool, uint64_t page)
{
    uint32_t n = pool->region->config.parts;

    xac_assert_slow(n > 0);
    return n == 1 ? 0 : (uint32_t)((page * UINT64_C(0x9e3779b97f4a7c15) >> 32) % n);
}

XAC_SIGSAFE static inline uint32_t
part_first(const struct xac_frames *pool, uint32_t part)
{
    xac_assert_slow(part <= pool->region->config.parts);
    return (uint32_t)((uint64_t)pool->n_frames * part / pool->region->config.parts);
}

/* region_place -- room for a part of the pool's memory; ret its offset. */
static inline uint64_t
region_place(uint64_t *endp, uint64_t bytes, uint64_t align)
{
    uint64_t offset = (*endp + align - 1) / align * align;

    xac_assert((align & (align - 1)) == 0);
    *endp = offset + bytes;
    xac_assert(*endp >= offset);
    return offset;
}

/* ---- fix.c ----------------------------------------------------------------------------- */

/* xac_frames_unmap -- a life that is GONE leaves the table, if it is still there. */
XAC_SIGSAFE void xac_frames_unmap(struct xac_frames_user *user, frame_ref out);

/* ---- pool_assert.c ------------------------------------------------------------------- */

/*
 * xac_pool_assert -- stop the program unless P1, P2, P3, P6, F2 and F5 hold, as far as they can be
 * told while others go on: 64 slots and pages at a call, others at the next.  P4, P5 and P7 say
 * who may do what; F1, F3 and F4 are asserted where the word changes.
 * xac_pool_user_assert -- the same of the caller's own seat, between its calls.
 */
void xac_pool_assert(const struct xac_frames *pool);
void xac_pool_user_assert(const struct xac_frames_user *user);

/* ---- flush.c ------------------------------------------------------------------------- */

/*
 * xac_frames_write -- write a page after frame_flush_begin(), the log first.  The caller ends
 * the flush.
 */
XAC_SIGSAFE int xac_frames_write(struct xac_frames_user *user, struct frame *f);

#endif /* XAC_FRAMES_POOL_H */
