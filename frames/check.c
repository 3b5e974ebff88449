/* SPDX-License-Identifier: MIT */
/*
 * check.c -- whether a pool at rest is whole: every descriptor and every buffer is in one
 * place, and ring and table agree.
 */
#include <config.h>

#include "frames/pool.h"

#include <stdlib.h>

/* One walk: what has been seen where. */
struct walk {
    const struct xac_frames *pool;
    unsigned char *frames_seen;  /* times, per descriptor */
    unsigned char *buffers_seen; /* times, per buffer */
    uint64_t n_live;             /* lives in the ring that are not GONE */
    uint64_t n_pins;
};

static uint64_t
load64(xac_shared _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static uint32_t
load32(xac_shared _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* buffer_see -- false if it is out of range or was seen before. */
static bool
buffer_see(struct walk *w, uint32_t buffer)
{
    return buffer == 0
           || (buffer <= w->pool->region->n_buffers
               && w->buffers_seen[buffer - 1]++ == 0);
}

static const char *
slot_check(struct walk *w, frame_ref ref)
{
    struct frame *f = pool_frame(w->pool, ref);
    uint64_t state = load64(&f->state), page = load64(&f->page_id);

    if (frame_ref_index(ref) >= w->pool->region->n_frames_all)
        return "a slot refers to no descriptor";
    if (w->frames_seen[frame_ref_index(ref)]++ != 0)
        return "a descriptor is in two slots";
    if (!frame_is_of(state, ref))
        return "a slot refers to a former life";
    if (frame_word(state) == FRAME_GONE)
        return NULL;
    if ((frame_word(state) & FRAME_FLUSHING) != 0)
        return "a flush was not ended";
    if (page >= w->pool->region->config.n_pages)
        return "a frame has an impossible page";
    if (load64(&w->pool->table[page]) != ref)
        return "a frame is not in the table";
    if (!buffer_see(w, load32(&f->data)))
        return "two frames have one buffer";
    w->n_live++;
    w->n_pins += frame_word(state) & FRAME_PINS;
    return NULL;
}

static const char *
ring_check(struct walk *w)
{
    const struct xac_frames *pool = w->pool;
    uint32_t n_empty = 0, n_vacant = load32(&pool->region->vacant);

    for (uint32_t i = 0; i < pool->n_frames; i++) {
        frame_ref ref = load64(ring_slot(pool, i));
        const char *wrong = ref == 0 ? NULL : slot_check(w, ref);

        n_empty += ref == 0;
        if (wrong != NULL)
            return wrong;
    }
    if (pool->plug != NULL)
        n_vacant = pool->plug->n_vacant(pool);
    return n_empty == n_vacant ? NULL : "vacant is not the number of vacant slots";
}

/* Every entry of the table is of a live frame: then there are as many as live frames. */
static const char *
table_check(struct walk *w)
{
    uint64_t n = 0;

    for (uint64_t page = 0; page < w->pool->region->config.n_pages; page++)
        n += load64(&w->pool->table[page]) != 0;
    return n == w->n_live ? NULL : "the table has a page that no slot has";
}

/* What users hold, what lies in the stack, and what was never used. */
static const char *
rest_check(struct walk *w)
{
    struct pool_region *r = w->pool->region;
    uint32_t fresh = r->config.n_frames - load32(&r->vacant);
    bool locked = w->pool->plug != NULL; /* then slot i got descriptor i first */

    for (uint32_t i = 0; i < r->config.n_users; i++) {
        if (w->frames_seen[w->pool->seats[i].spare]++ != 0)
            return "a spare descriptor is in use";
        if (!buffer_see(w, w->pool->seats[i].buffer))
            return "a spare buffer is in use";
    }
    for (uint32_t i = locked ? 0 : fresh; i < r->config.n_frames; i++)
        if ((!locked || load64(ring_slot(w->pool, i)) == 0) && w->frames_seen[i]++ != 0)
            return "a descriptor was used before its time";
    for (uint32_t b = (uint32_t)load64(&r->buffers); b != 0;
         b = load32(&w->pool->links[b - 1]))
        if (!buffer_see(w, b))
            return "a buffer in the stack is in use";
    for (uint32_t b = load32(&r->buffers_used); b < r->n_buffers; b++)
        if (!buffer_see(w, b + 1))
            return "a buffer was used before its time";
    for (uint32_t i = 0; i < r->n_frames_all; i++)
        if (w->frames_seen[i] != 1)
            return "a descriptor is lost";
    for (uint32_t i = 0; i < r->n_buffers; i++)
        if (w->buffers_seen[i] != 1)
            return "a buffer is lost";
    return NULL;
}

const char *
xac_frames_check(const struct xac_frames *pool, uint64_t *n_pinsp)
{
    struct pool_region *r = pool->region;
    struct walk w = {.pool = pool,
                     .frames_seen = calloc(1, r->n_frames_all),
                     .buffers_seen = calloc(1, (size_t)r->n_buffers + 1)};
    const char *wrong = "no memory to check with";

    if (w.frames_seen != NULL && w.buffers_seen != NULL) {
        wrong = ring_check(&w);
        if (wrong == NULL && pool->plug != NULL)
            wrong = pool->plug->check(pool);
        if (wrong == NULL)
            wrong = table_check(&w);
        if (wrong == NULL)
            wrong = rest_check(&w);
    }
    if (n_pinsp != NULL)
        *n_pinsp = w.n_pins;
    free(w.frames_seen);
    free(w.buffers_seen);
    return wrong;
}
