/* SPDX-License-Identifier: MIT */
/*
 * xac_touch.h -- tell the library of each load and store, at the price of a few instructions.
 *
 * WHAT      xac_store() announces a store, as setRangeAccess() with READ_WRITE does, and
 *           xac_load() a load.  The address need not lie in a segment, so a compiler, a
 *           just-in-time compiler or a language binding can put a call in front of every access.
 *           The call remembers the units of 4 KiB that the transaction has announced already:
 *           for these it calls nothing.
 * PROMISE   A program that calls xac_store() before each store to its segments keeps the promise of
 *           XAC_CHECKING_TRUSTED.  It chooses that value itself.  With another one the calls save
 *           traps, and what they miss traps.
 * ERRORS    There is nobody to return them to.  What would stop the program at a trap stops it here:
 *           a store in a query, and a page that cannot be shown.
 * THREADS   Any.  Outside of transactions the calls do nothing.  errno is left alone.
 * LAYOUT    The inline functions are compiled into programs.  So struct xac_touched is fixed, and a
 *           new layout gets new names.
 *
 * INVARIANTS
 *   (1) Unless the thread has a transaction or query open, xac_touched_now is NULL, or both of
 *       its numbers are 0.
 *   (2) A unit is noted in a thread's table only if it needs no announcement until the next begin
 *       or end of a transaction of this thread, or savepoint or roll-back in one: it has the access,
 *       or lies in no segment that the transactions of the thread may touch.
 *   (3) What is noted with another number counts for nothing.
 */
#ifndef XAC_TOUCH_H
#define XAC_TOUCH_H

#include <stddef.h>
#include <stdint.h>

#include "xac_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XAC_TOUCH_UNIT   4096 /* bytes; pages are as large, or larger               */
#define XAC_TOUCH_SLOTS  256  /* units that a thread remembers, of each kind        */
#define XAC_TOUCH_NUMBER 52   /* the bits from here on are the number               */

/* What a thread remembers: in slot u % XAC_TOUCH_SLOTS the unit u, and the number. */
struct xac_touched {
    uint64_t store_number; /* 0: no transaction is open                             */
    uint64_t load_number;  /* 0: loads need not be announced                        */
    uint64_t number;       /* of the latest transaction                             */
    uint64_t store[XAC_TOUCH_SLOTS];
    uint64_t load[XAC_TOUCH_SLOTS];
};

/* The calling thread's. */
XAC_API extern __thread struct xac_touched *xac_touched_now
    __attribute__((tls_model("initial-exec")));

/*
 * What the inline functions call where they do not know the unit.
 *
 * in   addr    any address.
 * in   length  bytes; may be 0.
 */
XAC_API void xac_touch_load(const void *addr, size_t length);
XAC_API void xac_touch_store(const void *addr, size_t length);

/* Does the address lie in a segment, or a view, of a transaction or query that the thread has open?
   ret 1 or 0; never an error. */
XAC_API int xac_touch_is_segment(const void *addr);

/* xac_touch_is_noted -- does the range lie in one unit, which is noted? */
static inline int
xac_touch_is_noted(const uint64_t *table, uint64_t number, const void *addr,
                   size_t length)
{
    uintptr_t at = (uintptr_t)addr;
    uint64_t unit = at / XAC_TOUCH_UNIT;

    return table[unit % XAC_TOUCH_SLOTS] == (unit | number)
           && length <= XAC_TOUCH_UNIT - at % XAC_TOUCH_UNIT;
}

/* xac_load -- before `length` bytes at `addr` are read. */
static inline void
xac_load(const void *addr, size_t length)
{
    const struct xac_touched *t = xac_touched_now;

    if (t != NULL && t->load_number != 0
        && !xac_touch_is_noted(t->load, t->load_number, addr, length))
        xac_touch_load(addr, length);
}

/* xac_store -- before `length` bytes at `addr` are written. */
static inline void
xac_store(const void *addr, size_t length)
{
    const struct xac_touched *t = xac_touched_now;

    if (t != NULL && t->store_number != 0
        && !xac_touch_is_noted(t->store, t->store_number, addr, length))
        xac_touch_store(addr, length);
}

#ifdef __cplusplus
}
#endif

#endif /* XAC_TOUCH_H */
