/* SPDX-License-Identifier: MIT */
/*
 * places.c -- where the bytes of an address lie for a translated block, and what must be done before they are
 * loaded or stored.
 *
 * Unit by unit: a segment's bytes lie in the thread's view, and are announced there; memory outside needs
 * the lock (outside.c); what lies in frames that the block has made itself belongs to it alone.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include <xac.h>
#include <xac_translate.h>

#include "itm.h"

/* is_own_frame -- a function of the block has it on its stack. */
static inline bool
is_own_frame(const struct xac_itm *t, const void *at)
{
    return (uintptr_t)at >= (uintptr_t)__builtin_frame_address(0)
           && (uintptr_t)at < (uintptr_t)t->marks[0].jump.rsp;
}

/* room -- bytes up to the end of the unit, and not more than n. */
static inline size_t
room(const void *at, size_t n)
{
    size_t most = XAC_ITM_UNIT - (uintptr_t)at % XAC_ITM_UNIT;

    return n < most ? n : most;
}

/* find -- ret  does it lie in a segment?  Then *placep is where. */
static bool
find(struct xac_itm *t, const void *at, uint8_t **placep)
{
    void *place = NULL;
    int rc = xac_translate(at, &place);

    if (rc == EAGAIN) /* it may lie in one that is new */
        xac_itm_restart(t);
    *placep = rc == 0 ? (uint8_t *)place : (uint8_t *)(uintptr_t)at;
    return rc == 0;
}

/* know -- from now on the unit needs no look. */
static void
know(struct xac_itm *t, const void *at, const uint8_t *place, uint64_t stored)
{
    uintptr_t unit = (uintptr_t)at / XAC_ITM_UNIT;

    t->units[unit % XAC_ITM_SLOTS] = t->number | stored | unit;
    t->distances[unit % XAC_ITM_SLOTS] = (uintptr_t)place - (uintptr_t)at;
}

/* load_unit -- bytes of one unit.  ret  their place. */
static uint8_t *
load_unit(struct xac_itm *t, const void *at, size_t n)
{
    uintptr_t unit = (uintptr_t)at / XAC_ITM_UNIT, slot = unit % XAC_ITM_SLOTS;
    uint8_t *place;

    if ((t->units[slot] & ~XAC_ITM_STORED) == (t->number | unit)) {
        place = (uint8_t *)((uintptr_t)at + t->distances[slot]);
        xac_load(place, n);
        return place;
    }
    if (is_own_frame(t, at))
        return (uint8_t *)(uintptr_t)at;
    if (find(t, at, &place))
        xac_load(place, n);
    else
        xac_itm_outside_take(t, XAC_ITM_SHARED);
    know(t, at, place, 0);
    return place;
}

/* store_unit -- likewise, before a store. */
static uint8_t *
store_unit(struct xac_itm *t, const void *at, size_t n, bool keeps)
{
    uintptr_t unit = (uintptr_t)at / XAC_ITM_UNIT, slot = unit % XAC_ITM_SLOTS;
    uint8_t *place = (uint8_t *)((uintptr_t)at + t->distances[slot]);
    bool is_segment = t->units[slot] == (t->number | XAC_ITM_STORED | unit);

    if (!is_segment && is_own_frame(t, at)) {
        place = (uint8_t *)(uintptr_t)at;
    } else if (!is_segment) {
        is_segment = find(t, at, &place);
        if (is_segment && xac_itm_may_restart_as_update(t))
            xac_itm_restart_as_update(t);
        if (is_segment)
            xac_touch_store(place, n);
        else
            xac_itm_outside_take(t, XAC_ITM_EXCLUSIVE);
        know(t, at, place, is_segment ? XAC_ITM_STORED : 0);
    }
    if (keeps && (!is_segment || t->n_marks > 1))
        xac_itm_keep(t, place, n, is_segment);
    return place;
}

/* range -- ret  where the first byte lies, if all have the same distance; else NULL. */
static void *
range(struct xac_itm *t, const void *at, size_t n, bool stores, bool keeps)
{
    const uint8_t *from = (const uint8_t *)at;
    uint8_t *first = NULL;
    bool is_even = true;

    for (size_t done = 0; done < n;) {
        size_t part = room(from + done, n - done);
        uint8_t *place = stores ? store_unit(t, from + done, part, keeps)
                                : load_unit(t, from + done, part);

        if (done == 0)
            first = place;
        is_even = is_even && place == first + done;
        done += part;
    }
    return is_even ? first : NULL;
}

const void *
xac_itm_load_slow(struct xac_itm *t, const void *at, size_t n)
{
    return range(t, at, n, false, false);
}

void *
xac_itm_store_translated(struct xac_itm *t, const void *at, size_t n, bool keeps)
{
    return range(t, at, n, true, keeps);
}

void
xac_itm_pieces(struct xac_itm *t, void *at, void *bytes, size_t n, bool stores)
{
    uint8_t *with = (uint8_t *)bytes, *from = (uint8_t *)at;

    for (size_t done = 0; done < n;) {
        size_t part = room(from + done, n - done);

        if (stores)
            memcpy(store_unit(t, from + done, part, false), with + done, part);
        else
            memcpy(with + done, load_unit(t, from + done, part), part);
        done += part;
    }
}

/* ---- Copies ------------------------------------------------------------------------------ */

/* room_back -- bytes from the begin of the unit to an end, and not more than n. */
static size_t
room_back(const uint8_t *end, size_t n)
{
    size_t most = ((uintptr_t)end - 1) % XAC_ITM_UNIT + 1;

    return n < most ? n : most;
}

/* copy_part -- within one unit on each side. */
static void
copy_part(struct xac_itm *t, uint8_t *to, const uint8_t *from, size_t n,
          const struct xac_itm_sides *are)
{
    const uint8_t *source = are->from_shared ? load_unit(t, from, n) : from;

    memmove(are->to_shared ? store_unit(t, to, n, true) : to, source, n);
}

void
xac_itm_copy(struct xac_itm *t, void *to, const void *from, size_t n,
             const struct xac_itm_sides *are)
{
    uint8_t *d = (uint8_t *)to;
    const uint8_t *s = (const uint8_t *)from;

    if (d > s && d < s + n) { /* from the end on, since the source is overwritten */
        while (n > 0) {
            size_t part = room_back(d + n, room_back(s + n, n));

            n -= part;
            copy_part(t, d + n, s + n, part, are);
        }
        return;
    }
    for (size_t done = 0; done < n;) {
        size_t part = room(d + done, room(s + done, n - done));

        copy_part(t, d + done, s + done, part, are);
        done += part;
    }
}

void
xac_itm_fill(struct xac_itm *t, void *to, int byte, size_t n)
{
    uint8_t *d = (uint8_t *)to;

    for (size_t done = 0; done < n;) {
        size_t part = room(d + done, n - done);

        memset(store_unit(t, d + done, part, true), byte, part);
        done += part;
    }
}

/* ---- Segments that libxac is to be told of --------------------------------------------------- */

void *
xac_itm_place(struct xac_itm *t, void *at)
{
    uint8_t *place = (uint8_t *)at;

    if (t->is_translated && at != NULL)
        (void)find(t, at, &place);
    return place;
}

void *
xac_itm_place_back(const struct xac_itm *t, void *place)
{
    return t->is_translated && place != NULL ? xac_translate_back(place) : place;
}
