/* SPDX-License-Identifier: MIT */
/*
 * undo.c -- stores: which of them libxac rolls back, and the old bytes of the others.
 *
 * An entry of the log is the bytes, then a struct entry: it is read from its end.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "itm.h"

struct entry {
    uintptr_t at;
    uint32_t n;
    uint32_t is_segment;
};

/* Below the frame of the function that copies: its own locals. */
#define OWN_FRAME_BYTES 512u

void
xac_itm_keep(struct xac_itm *t, const void *at, size_t n, bool is_segment)
{
    struct entry e = {.at = (uintptr_t)at, .n = (uint32_t)n, .is_segment = is_segment};

    xac_itm_assert(n > 0 && n <= XAC_ITM_UNIT);
    t->undo =
        (uint8_t *)xac_itm_grow(t->undo, &t->undo_max, t->undo_bytes + n + sizeof e, 1);
    memcpy(t->undo + t->undo_bytes, at, n);
    memcpy(t->undo + t->undo_bytes + n, &e, sizeof e);
    t->undo_bytes += n + sizeof e;
}

/* note_new -- the first store to a unit.  ret  does it lie in a segment? */
static bool
note_new(struct xac_itm *t, const void *at, size_t n)
{
    uintptr_t unit = (uintptr_t)at / XAC_ITM_UNIT;
    uint64_t *slot = &t->units[unit % XAC_ITM_SLOTS];

    t->distances[unit % XAC_ITM_SLOTS] = 0;
    if (!t->has_env || !xac_touch_is_segment(at)) {
        *slot = t->number | unit;
        return false;
    }
    if (xac_itm_may_restart_as_update(t))
        xac_itm_restart_as_update(t);
    xac_touch_store(at, n);
    *slot = t->number | XAC_ITM_STORED | unit;
    return true;
}

void *
xac_itm_note_slow(struct xac_itm *t, const void *at, size_t n, bool keeps)
{
    const uint8_t *from = (const uint8_t *)at;

    if (t->is_translated)
        return xac_itm_store_translated(t, at, n, keeps);
    while (n > 0) {
        uintptr_t unit = (uintptr_t)from / XAC_ITM_UNIT;
        uint64_t key = t->units[unit % XAC_ITM_SLOTS];
        size_t room = XAC_ITM_UNIT - (uintptr_t)from % XAC_ITM_UNIT;
        size_t part = n < room ? n : room;
        bool is_segment = key == (t->number | XAC_ITM_STORED | unit);

        if (!is_segment && key != (t->number | unit))
            is_segment = note_new(t, from, part);
        if (keeps && (!is_segment || t->is_part || t->n_marks > 1))
            xac_itm_keep(t, from, part, is_segment);
        from += part;
        n -= part;
    }
    return (void *)(uintptr_t)at;
}

void
xac_itm_log(struct xac_itm *t, const void *at, size_t n)
{
    const uint8_t *from = (const uint8_t *)at;

    if (!t->is_translated)
        (void)xac_itm_note(t, at, n, true);
    while (t->is_translated && n > 0) {
        size_t part = n < XAC_ITM_UNIT ? n : XAC_ITM_UNIT;

        xac_itm_keep(t, from, part, false);
        from += part;
        n -= part;
    }
}

/* copy -- without a call, which would have a frame. */
static inline void
copy(uintptr_t to, const uint8_t *from, size_t n)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

/*
 * The frames between this one and that of the begin are dead after the jump: their bytes are left
 * alone, since this function runs in one of them.  Frames below it are dead already.
 */
__attribute__((noinline)) void
xac_itm_undo(struct xac_itm *t, const struct xac_itm_mark *mark, bool with_segments)
{
    uintptr_t low = (uintptr_t)__builtin_frame_address(0) - OWN_FRAME_BYTES;
    uintptr_t high = (uintptr_t)mark->jump.rsp;
    size_t end = t->undo_bytes;

    while (end > mark->undo_bytes) {
        struct entry e;

        xac_itm_assert(end - mark->undo_bytes > sizeof e);
        memcpy(&e, t->undo + end - sizeof e, sizeof e);
        end -= sizeof e + e.n;
        if (e.is_segment != 0 ? with_segments : e.at + e.n <= low || e.at >= high)
            copy(e.at, t->undo + end, e.n);
    }
    xac_itm_assert(end == mark->undo_bytes);
    t->undo_bytes = end;
}
