/* SPDX-License-Identifier: MIT */
/*
 * repair.c -- after a process has died: what it had fixed, and what it was in the middle of.
 *
 * reap() relies on the dead users' notes while others go on: a note that is not open is one pin.
 * repair() relies on ring, table and the notes of the living only, and on nobody else being
 * there: a life that ring and table both have is a page; all else is nobody's.
 */
#include <config.h>

#include "frames/pool.h"

#include <errno.h>
#include <stdlib.h>

/* ---- Reap -------------------------------------------------------------------------- */

/* notes_end -- give the user's pins back; false if a note is open. */
static bool
notes_end(struct xac_frames *pool, uint32_t user)
{
    uint32_t most = pool->region->config.pins_max;
    bool all = true;

    xac_assert(user < pool->region->config.n_users);
    for (uint32_t i = 0; i < most; i++) {
        xac_shared _Atomic uint64_t *note = &pool->notes[(size_t)user * most + i];
        /* Acquire pairs with note_set(). */
        uint64_t ref = atomic_load_explicit(note, memory_order_acquire);

        if ((ref & POOL_NOTE_OPEN) != 0)
            all = false;
        else if (ref != 0)
            frame_unpin(pool_frame(pool, ref));
        atomic_store_explicit(note, 0, memory_order_relaxed);
    }
    return all;
}

/* write_end -- what the user was writing is dirty again. */
static void
write_end(struct xac_frames *pool, struct pool_seat *seat)
{
    /* Acquire pairs with xac_frames_write(). */
    frame_ref ref = atomic_load_explicit(&seat->writing, memory_order_acquire);

    if (ref != 0)
        frame_flush_end(pool_frame(pool, ref), false);
    atomic_store_explicit(&seat->writing, 0, memory_order_relaxed);
    xac_assert(atomic_load_explicit(&seat->writing, memory_order_relaxed) == 0);
}

int
xac_frames_reap(struct xac_frames *pool, int32_t pid)
{
    int rc = 0;

    xac_assert(pid > 0);
    if (pool->region->config.pins_max == 0)
        return EINVAL;
    for (uint32_t i = 0; i < pool->region->config.n_users; i++) {
        struct pool_seat *seat = &pool->seats[i];
        bool whole;

        if (atomic_load_explicit(&seat->taken, memory_order_relaxed) != SEAT_TAKEN
            || atomic_load_explicit(&seat->pid, memory_order_relaxed) != (uint32_t)pid)
            continue;
        whole = notes_end(pool, i);
        /* Acquire pairs with pool_in_call(). */
        whole = atomic_load_explicit(&seat->in_call, memory_order_acquire) == 0 && whole;
        write_end(pool, seat);
        if (pool->plug != NULL)
            pool->plug->reap(pool, i);
        rc = whole ? rc : EAGAIN;
        /* Release pairs with xac_frames_join(). */
        atomic_store_explicit(&seat->taken, whole ? SEAT_FREE : SEAT_BROKEN,
                              memory_order_release);
    }
    return rc;
}

/* ---- Repair ------------------------------------------------------------------------ */

struct repair {
    struct xac_frames *pool;
    unsigned char *frame_used, *buffer_used;
    uint32_t next; /* descriptors below are used */
};

/* pins_noted -- by users who are there. */
static uint32_t
pins_noted(const struct xac_frames *pool, frame_ref ref)
{
    const struct xac_frames_config *c = &pool->region->config;
    uint32_t n = 0;

    for (uint32_t user = 0; user < c->n_users; user++) {
        if (atomic_load_explicit(&pool->seats[user].taken, memory_order_relaxed)
            != SEAT_TAKEN)
            continue;
        for (uint32_t i = 0; i < c->pins_max; i++)
            n += atomic_load_explicit(&pool->notes[(size_t)user * c->pins_max + i],
                                      memory_order_relaxed)
                 == ref;
    }
    return n;
}

/* life_set -- what the life is: a page with the pins that are noted, or over. */
static void
life_set(struct repair *r, frame_ref ref)
{
    struct xac_frames *pool = r->pool;
    struct frame *f = pool_frame(pool, ref);
    uint32_t word = frame_word(frame_load(f));
    uint32_t data = atomic_load_explicit(&f->data, memory_order_relaxed);
    uint64_t page = atomic_load_explicit(&f->page_id, memory_order_relaxed);
    bool lives = word != FRAME_GONE && slot_load(&pool->table[page]) == ref;

    xac_assert(ref != 0);
    r->frame_used[frame_ref_index(ref)] = 1;
    if (lives) { /* a write that was under way may not have been done */
        word = pins_noted(pool, ref)
               | ((word & (FRAME_DIRTY | FRAME_FLUSHING)) != 0 ? FRAME_DIRTY : 0);
        if (data != 0)
            r->buffer_used[data - 1] = 1;
    } else {
        word = FRAME_GONE;
    }
    atomic_store_explicit(&f->state, frame_state_make(ref, word), memory_order_relaxed);
}

/* frame_nobodys -- a descriptor that is in no slot. */
static uint32_t
frame_nobodys(struct repair *r)
{
    while (r->frame_used[r->next] != 0)
        r->next++;
    r->frame_used[r->next] = 1;
    xac_assert(r->next < r->pool->region->n_frames_all);
    return r->next;
}

/* slots_repair -- lives that are there first; then each vacant slot gets a life that is over. */
static void
slots_repair(struct repair *r)
{
    struct xac_frames *pool = r->pool;

    for (uint32_t i = 0; i < pool->n_frames; i++) {
        frame_ref ref = slot_load(ring_slot(pool, i));

        if (ref != 0)
            life_set(r, ref);
    }
    for (uint32_t i = 0; i < pool->n_frames; i++)
        if (slot_load(ring_slot(pool, i)) == 0) {
            uint32_t index = frame_nobodys(r);
            uint64_t old =
                atomic_load_explicit(&pool->frames[index].state, memory_order_relaxed);
            frame_ref ref;

            if (old != 0) /* as if its life were over: frame_begin() wants that */
                atomic_store_explicit(&pool->frames[index].state, old | FRAME_GONE,
                                      memory_order_relaxed);
            ref = frame_begin(&pool->frames[index], index, 0);
            frame_cancel(&pool->frames[index], ref);
            atomic_store_explicit(ring_slot(pool, i), ref, memory_order_relaxed);
        }
    atomic_store_explicit(&pool->region->vacant, 0, memory_order_relaxed);
}

/* table_repair -- only lives that are in a slot and not over. */
static void
table_repair(struct repair *r)
{
    struct xac_frames *pool = r->pool;

    for (uint64_t page = 0; page < pool->region->config.n_pages; page++) {
        frame_ref ref = slot_load(&pool->table[page]);
        uint64_t state = ref == 0 ? 0 : frame_load(pool_frame(pool, ref));

        if (ref != 0 && (!frame_is_of(state, ref) || frame_word(state) == FRAME_GONE))
            atomic_store_explicit(&pool->table[page], 0, memory_order_relaxed);
    }
}

/* seats_repair -- a spare descriptor for each, whole seats as they are. */
static void
seats_repair(struct repair *r)
{
    struct xac_frames *pool = r->pool;
    uint32_t n = pool->region->config.n_users;

    for (uint32_t i = 0; i < n; i++) {
        struct pool_seat *seat = &pool->seats[i];

        if (atomic_load_explicit(&seat->taken, memory_order_relaxed) == SEAT_BROKEN)
            continue;
        r->frame_used[seat->spare] = 1;
        if (seat->buffer != 0)
            r->buffer_used[seat->buffer - 1] = 1;
    }
}

/* broken_repair -- the seats of the dead get what is left. */
static void
broken_repair(struct repair *r)
{
    struct xac_frames *pool = r->pool;

    for (uint32_t i = 0; i < pool->region->config.n_users; i++) {
        struct pool_seat *seat = &pool->seats[i];

        if (atomic_load_explicit(&seat->taken, memory_order_relaxed) != SEAT_BROKEN)
            continue;
        seat->spare = frame_nobodys(r);
        atomic_store_explicit(&pool->frames[seat->spare].state,
                              atomic_load_explicit(&pool->frames[seat->spare].state,
                                                   memory_order_relaxed)
                                  | FRAME_GONE,
                              memory_order_relaxed);
        xac_assert(seat->spare < pool->region->n_frames_all);
        seat->buffer = 0;
        atomic_store_explicit(&seat->in_call, 0, memory_order_relaxed);
        atomic_store_explicit(&seat->taken, SEAT_FREE, memory_order_relaxed);
    }
}

/* buffers_repair -- all that nobody has are in the stack. */
static void
buffers_repair(struct repair *r)
{
    struct xac_frames *pool = r->pool;
    struct pool_region *region = pool->region;
    uint32_t top = 0;

    for (uint32_t i = 0; i < region->n_buffers; i++)
        if (r->buffer_used[i] == 0) {
            atomic_store_explicit(&pool->links[i], top, memory_order_relaxed);
            top = i + 1;
        }
    atomic_store_explicit(&region->buffers, top, memory_order_relaxed);
    atomic_store_explicit(&region->buffers_used, region->n_buffers, memory_order_relaxed);
}

int
xac_frames_repair(struct xac_frames *pool)
{
    struct pool_region *region = pool->region;
    struct repair r = {.pool = pool};
    int rc = ENOMEM;

    if (region->config.pins_max == 0)
        return EINVAL;
    r.frame_used = calloc(1, (size_t)region->n_frames_all + 1);
    r.buffer_used = calloc(1, (size_t)region->n_buffers + 1);
    if (r.frame_used != NULL && r.buffer_used != NULL) {
        seats_repair(&r);
        slots_repair(&r);
        table_repair(&r);
        broken_repair(&r);
        buffers_repair(&r);
        if (pool->plug != NULL)
            pool->plug->repair(pool);
        rc = 0;
        xac_debug(xac_pool_assert(pool));
    }
    free(r.frame_used);
    free(r.buffer_used);
    return rc;
}
