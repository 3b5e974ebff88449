/* SPDX-License-Identifier: MIT */
/*
 * fix.c -- fixing a page: found, brought in, or saved from eviction (Nb-GCLOCK, figure 3).
 *
 * Each way out of xac_frames_fix() has one step at which it takes effect: the pin of a frame
 * found, the entry into an empty place of the table, the replacement of an entry with a frame
 * that is GONE.
 */
#include <config.h>

#include "frames/pool.h"

#include <errno.h>

/* hit -- under any policy. */
XAC_SIGSAFE static void
hit(struct xac_frames_user *user, frame_ref ref)
{
    const struct pool_plug *plug = user->pool->plug;

    if (plug == NULL) {
        pool_hit_count(user, pool_frame(user->pool, ref));
    } else {
        pool_count(user, POOL_HITS, 1);
        plug->hit(user, ref);
    }
}

XAC_SIGSAFE void
xac_frames_unmap(struct xac_frames_user *user, frame_ref out)
{
    struct frame *f = pool_frame(user->pool, out);
    uint64_t page = atomic_load_explicit(&f->page_id, memory_order_relaxed);

    xac_assert_slow(out != 0);
    xac_assert_slow(frame_is_of(frame_load(f), out));
    xac_assert(frame_word(frame_load(f)) == FRAME_GONE);
    pool_probe(user->pool, XAC_FRAMES_AT_TAKEN);
    xac_frames_point("removed");
    if (table_remove(user->pool, page, out)) { /* refused: a ghost, or rescued */
        pool_count(user, POOL_EVICTIONS, 1);
        xac_frames_buffer_give(user,
                               atomic_load_explicit(&f->data, memory_order_relaxed));
    }
}

/*
 * rescue -- take the place of a frame that is GONE and still in the table, with its buffer.
 *
 * The buffer is copied before the entry is replaced: a thread that finds the entry must find the
 * bytes, which may be newer than those in the file by now.
 */
XAC_SIGSAFE static bool
rescue(struct xac_frames_user *user, uint64_t page, frame_ref other, frame_ref mine)
{
    struct frame *f = pool_frame(user->pool, mine);
    /* Acquire pairs with page_in(): the buffer's bytes. */
    uint32_t data =
        atomic_load_explicit(&pool_frame(user->pool, other)->data, memory_order_acquire);

    xac_assert_slow(other != 0);
    xac_assert_slow(mine != 0);
    xac_assert_slow(other != mine);
    atomic_store_explicit(&f->data, data, memory_order_relaxed);
    xac_frames_point("copied");
    if (slot_cas(&user->pool->table[page], &other, mine)) {
        pool_count(user, POOL_RESCUES, 1);
        return true;
    }
    atomic_store_explicit(&f->data, 0, memory_order_relaxed); /* not ours after all */
    return false;
}

/*
 * publish -- a private frame becomes the page's, or another one is pinned; ret whether it is ours.
 */
XAC_SIGSAFE static bool
publish(struct xac_frames_user *user, uint64_t page, frame_ref mine, frame_ref *otherp)
{
    struct xac_frames *pool = user->pool;

    xac_assert_slow(mine != 0);
    xac_assert_slow(page < pool->n_pages);
    pool_probe(pool, XAC_FRAMES_AT_PUT);
    for (;;) { /* again only if another thread has changed the entry */
        frame_ref other = 0;

        if (slot_cas(&pool->table[page], &other, mine))
            return true;
        if (frame_try_pin(pool_frame(pool, other), other)) {
            *otherp = other;
            return false;
        }
        if (rescue(user, page, other, mine))
            return true;
    }
}

/* install -- a frame for a page that was not found; out *refp pinned. */
XAC_SIGSAFE static int
install(struct xac_frames_user *user, uint64_t page, frame_ref *refp)
{
    struct xac_frames *pool = user->pool;
    const struct pool_plug *plug = pool->plug;
    uint32_t index = user->seat->spare;
    struct frame *f = &pool->frames[index];
    frame_ref mine = frame_begin(f, index, page);
    frame_ref out = 0;
    int rc = plug == NULL ? xac_frames_ring_place(user, mine, &out, &user->seat->spare)
                          : plug->place(user, mine, page, &out, &user->seat->spare);

    xac_assert_slow(index < pool->region->n_frames_all);
    if (rc != 0) {
        frame_cancel(f, mine); /* still the spare */
        return rc;
    }
    if (out != 0) {
        if (plug == NULL)
            xac_frames_unmap(user, out);
        user->seat->spare = frame_ref_index(out); /* P4 */
    }
    xac_assert(user->seat->spare != index);
    if (publish(user, page, mine, refp)) {
        if (plug != NULL)
            plug->came(user, mine);
        pool_count(user, POOL_MISSES, 1);
        *refp = mine;
    } else {
        frame_cancel(f, mine); /* stays in its place, a ghost, until the hand comes */
        if (plug != NULL)
            plug->lost(user, mine);
        pool_count(user, POOL_LOST_RACES, 1);
        hit(user, *refp);
    }
    xac_assert_slow(*refp != 0);
    return 0;
}

/*
 * page_in -- the pinned frame's bytes; out *datap buffer's index + 1.
 *
 * Without a lock: threads that find none each read, one publishes, and the others use what
 * that one has published, never their own copy.
 */
XAC_SIGSAFE static int
page_in(struct xac_frames_user *user, frame_ref ref, uint64_t page, unsigned flags,
        uint32_t *datap)
{
    struct xac_frames *pool = user->pool;
    struct frame *f = pool_frame(pool, ref);
    /* Acquire pairs with the publication below: the bytes. */
    uint32_t data = atomic_load_explicit(&f->data, memory_order_acquire);
    int rc = 0;

    xac_assert_slow(ref != 0);
    if (data == 0) {
        uint32_t buffer;

        pool_in_call(user, true);
        buffer = xac_frames_buffer_take(user);
        xac_assert(buffer != 0);
        xac_frames_point("read");
        if ((flags & XAC_FRAMES_NEW) != 0)
            memset(pool_data(pool, buffer), 0, pool->page_bytes);
        else {
            rc = pool->io.read(pool->io.arg, page, pool_data(pool, buffer));
            pool_count(user, POOL_READS, 1);
        }
        if (rc != 0) {
            xac_frames_buffer_give(user, buffer);
            pool_in_call(user, false);
            /* Another thread may have read it, changed it, and be writing it back by now: what
               we have read may be half of each, and does not matter.  Pairs with its publication. */
            *datap = atomic_load_explicit(&f->data, memory_order_acquire);
            return *datap != 0 ? 0 : rc;
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
        pool_in_call(user, false);
    }
    *datap = data;
    xac_assert_slow(data != 0);
    return 0;
}

/* pin_new -- the page was not found, or only `stale`, which is over. */
XAC_SIGSAFE static int
pin_new(struct xac_frames_user *user, uint64_t page, xac_shared _Atomic uint64_t *note,
        frame_ref stale, frame_ref *refp)
{
    int rc;

    xac_assert_slow(page < user->pool->n_pages);
    if (stale != 0)
        pool_count(user, POOL_STALE_REFS, 1);
    pool_in_call(user, true);
    rc = install(user, page, refp);
    note_set(note, rc == 0 ? *refp : 0);
    pool_in_call(user, false);
    xac_assert_slow(rc != 0 || *refp != 0);
    return rc;
}

/* pin -- the page's frame, found or installed; it may have no bytes yet. */
XAC_SIGSAFE static inline int
pin(struct xac_frames_user *user, uint64_t page, xac_shared _Atomic uint64_t *note,
    frame_ref *refp)
{
    struct xac_frames *pool = user->pool;
    frame_ref ref = slot_load(&pool->table[page]);

    xac_assert_slow(page < pool->n_pages);
    xac_frames_point("found");
    if (ref != 0)
        note_set(note, ref | POOL_NOTE_OPEN);
    if (xac_unlikely(ref == 0 || !frame_try_pin(pool_frame(pool, ref), ref)))
        return pin_new(user, page, note, ref, refp);
    note_set(note, ref);
    hit(user, ref);
    *refp = ref;
    return 0;
}

/* unpin -- its opposite. */
XAC_SIGSAFE static inline void
unpin(struct xac_frames_user *user, xac_shared _Atomic uint64_t *note, frame_ref ref)
{
    xac_assert_slow(ref != 0);
    note_set(note, ref | POOL_NOTE_OPEN);
    frame_unpin(pool_frame(user->pool, ref));
    note_set(note, 0);
}

/* begin -- whether fix() may begin; out *notep where it is noted. */
XAC_SIGSAFE static inline int
begin(struct xac_frames_user *user, uint64_t page, xac_shared _Atomic uint64_t **notep)
{
    *notep = NULL;
    if (xac_unlikely(page >= user->pool->n_pages))
        return EINVAL;
    if (xac_unlikely(user->pool->pins_max != 0)) {
        *notep = note_find(user, 0);
        return *notep == NULL ? EMFILE : 0;
    }
    return 0;
}

/* data_of -- the pinned frame's bytes, brought in if need be; else it is unpinned. */
XAC_SIGSAFE static int
data_of(struct xac_frames_user *user, uint64_t page, unsigned flags,
        xac_shared _Atomic uint64_t *note, struct xac_frames_pin *pinp)
{
    struct xac_frames *pool = user->pool;
    uint32_t data = 0;
    int rc = 0;

    xac_assert_slow(pinp->ref != 0);
    if (pool->page_bytes != 0)
        rc = page_in(user, pinp->ref, page, flags, &data);
    if (rc != 0)
        unpin(user, note, pinp->ref);
    else
        pinp->data = pool_data(pool, data);
    return rc;
}

/* fix -- all that xac_frames_fix() does not do at once. */
XAC_SIGSAFE static __attribute__((noinline)) int
fix(struct xac_frames_user *user, uint64_t page, unsigned flags,
    struct xac_frames_pin *pinp)
{
    struct xac_frames_pin result = {.data = NULL};
    xac_shared _Atomic uint64_t *note;
    int rc = (flags & ~XAC_FRAMES_NEW) != 0 ? EINVAL : begin(user, page, &note);

    if (rc == 0)
        rc = pin(user, page, note, &result.ref);
    if (rc == 0)
        rc = data_of(user, page, flags, note, &result);
    if (rc == 0)
        *pinp = result;
    return rc;
}

/* fix_read -- a page that is in a frame, and pinned, and has no bytes yet. */
XAC_SIGSAFE static __attribute__((noinline)) int
fix_read(struct xac_frames_user *user, uint64_t page, unsigned flags, frame_ref ref,
         struct xac_frames_pin *pinp)
{
    struct xac_frames_pin result = {.ref = ref};
    int rc = data_of(user, page, flags, NULL, &result);

    xac_assert_slow(ref != 0);
    if (rc == 0)
        *pinp = result;
    return rc;
}

/* The hit of Nb-GCLOCK stands here by itself: what it calls it calls last, so it saves nothing. */
XAC_SIGSAFE int
xac_frames_fix(struct xac_frames_user *user, uint64_t page, unsigned flags,
               struct xac_frames_pin *pinp)
{
    struct xac_frames *pool = user->pool;
    uint32_t data = 0;
    struct frame *f;
    frame_ref ref;

    if (xac_unlikely(page >= pool->n_pages || flags > XAC_FRAMES_NEW
                     || pool->pins_max != 0 || pool->plug != NULL))
        return fix(user, page, flags, pinp);
    ref = slot_load(&pool->table[page]);
    xac_frames_point("found");
    if (xac_unlikely(ref == 0))
        return fix(user, page, flags, pinp);
    f = pool_frame(pool, ref);
    if (xac_unlikely(!frame_try_pin(f, ref)))
        return fix(user, page, flags, pinp);
    pool_hit_count(user, f);
    if (pool->page_bytes != 0) {
        /* Acquire pairs with the publication in page_in(): the bytes. */
        data = atomic_load_explicit(&f->data, memory_order_acquire);
        if (xac_unlikely(data == 0))
            return fix_read(user, page, flags, ref, pinp);
    }
    *pinp = (struct xac_frames_pin){.data = pool_data(pool, data), .ref = ref};
    return 0;
}

/* ---- Many -------------------------------------------------------------------------- */

/* Pages that this call has brought into frames, and reads. */
struct many {
    unsigned n;
    unsigned which[XAC_FRAMES_MANY];
    uint64_t pages[XAC_FRAMES_MANY];
    void *datas[XAC_FRAMES_MANY];
    uint32_t buffers[XAC_FRAMES_MANY];
    int rcs[XAC_FRAMES_MANY];
};

/*
 * many_read -- read them together and publish each, unless somebody else has.  ret the first error.
 */
static int
many_read(struct xac_frames_user *user, struct many *m, struct xac_frames_pin *pins)
{
    struct xac_frames *pool = user->pool;
    int rc = 0;

    xac_assert(m->n <= XAC_FRAMES_MANY);
    xac_assert(user->pool->io.read_many != NULL || m->n == 0);
    if (m->n == 0)
        return 0;
    pool_in_call(user, true);
    for (unsigned i = 0; i < m->n; i++) {
        m->buffers[i] = xac_frames_buffer_take(user);
        m->datas[i] = pool_data(pool, m->buffers[i]);
    }
    pool->io.read_many(pool->io.arg, m->n, m->pages, m->datas, m->rcs);
    pool_count(user, POOL_READS, m->n);
    for (unsigned i = 0; i < m->n; i++) {
        uint32_t none = 0;

        rc = rc == 0 ? m->rcs[i] : rc;
        /* Pairs with the load in page_in(), and with the one in rescue(). */
        if (m->rcs[i] == 0
            && atomic_compare_exchange_strong_explicit(
                &pool_frame(pool, pins[m->which[i]].ref)->data, &none, m->buffers[i],
                memory_order_acq_rel, memory_order_acquire))
            continue;
        if (m->rcs[i] == 0)
            pool_count(user, POOL_READS_DUPLICATE, 1);
        xac_frames_buffer_give(user, m->buffers[i]);
    }
    pool_in_call(user, false);
    return rc;
}

/* many_pin -- all of them; those that this call installed are to be read. */
static int
many_pin(struct xac_frames_user *user, unsigned n, const uint64_t *pages,
         struct xac_frames_pin *pins, unsigned *n_pinnedp, struct many *m)
{
    struct xac_frames *pool = user->pool;
    bool together = pool->page_bytes != 0 && pool->io.read_many != NULL;

    xac_assert(n <= XAC_FRAMES_MANY);
    for (*n_pinnedp = 0; *n_pinnedp < n; ++*n_pinnedp) {
        unsigned i = *n_pinnedp;
        xac_shared _Atomic uint64_t *note;
        uint64_t misses = atomic_load_explicit(&user->seat->counters[POOL_MISSES],
                                               memory_order_relaxed);
        int rc = begin(user, pages[i], &note);

        if (rc == 0)
            rc = pin(user, pages[i], note, &pins[i].ref);
        if (rc != 0)
            return rc;
        if (together
            && atomic_load_explicit(&user->seat->counters[POOL_MISSES],
                                    memory_order_relaxed)
                   != misses
            && atomic_load_explicit(&pool_frame(pool, pins[i].ref)->data,
                                    memory_order_relaxed)
                   == 0) {
            m->which[m->n] = i;
            m->pages[m->n++] = pages[i];
        }
    }
    xac_assert(*n_pinnedp == n);
    return 0;
}

int
xac_frames_fix_many(struct xac_frames_user *user, unsigned n, const uint64_t *pages,
                    struct xac_frames_pin *pins)
{
    struct xac_frames *pool = user->pool;
    struct many m = {.n = 0};
    unsigned n_pinned = 0;
    uint32_t data = 0;
    int rc;

    if (n == 0 || n > XAC_FRAMES_MANY)
        return EINVAL;
    if (n > pool->n_frames)
        return ENOBUFS;
    rc = many_pin(user, n, pages, pins, &n_pinned, &m);
    if (rc == 0)
        rc = many_read(user, &m, pins);
    for (unsigned i = 0; i < n_pinned && rc == 0; i++) {
        if (pool->page_bytes != 0) /* those that others are reading */
            rc = page_in(user, pins[i].ref, pages[i], 0, &data);
        pins[i].data = pool_data(pool, data);
    }
    for (unsigned i = 0; i < n_pinned && rc != 0; i++)
        xac_frames_unfix(user, &pins[i]);
    return rc;
}

/* ---- Use --------------------------------------------------------------------------- */

void *
xac_frames_hit(struct xac_frames_user *user, uint32_t frame)
{
    struct xac_frames *pool = user->pool;
    struct frame *f = &pool->frames[frame];
    /* The owner's latch has ordered this life's beginning before us. */
    uint32_t data = atomic_load_explicit(&f->data, memory_order_relaxed);
    uint64_t state = atomic_load_explicit(&f->state, memory_order_relaxed);

    xac_assert_slow(frame < pool->region->n_frames_all);
    hit(user, frame_ref_make((uint32_t)(state >> 32), frame));
    return pool_data(pool, data);
}

void
xac_frames_mark_dirty(struct xac_frames_user *user, const struct xac_frames_pin *pin)
{
    xac_assert(pin->ref != 0);
    frame_mark_dirty(pool_frame(user->pool, pin->ref));
}

XAC_SIGSAFE void
xac_frames_unfix(struct xac_frames_user *user, const struct xac_frames_pin *pin)
{
    xac_assert(pin->ref != 0);
    xac_assert_slow(frame_is_of(frame_load(pool_frame(user->pool, pin->ref)), pin->ref));
    xac_shared _Atomic uint64_t *note = NULL;

    if (xac_unlikely(user->pool->pins_max != 0)) {
        note = note_find(user, pin->ref);
        xac_assert(note != NULL);
    }
    unpin(user, note, pin->ref);
}
