/* SPDX-License-Identifier: MIT */
/*
 * ranges.c -- copies and fills inside of transactions.
 *
 * The names say what the compiler knows of each side: Rn, Wn memory of the thread alone, Rt, Wt any
 * memory; with aR or aW it has been read or written before, which changes nothing here: `loads` is
 * true for Rt, `stores` for Wt.
 */
#include <config.h>

#include <string.h>

#include "itm.h"

/* transfer -- memmove, which is right for memcpy, too. */
static inline void
transfer(void *to, const void *from, size_t n, bool loads, bool stores)
{
    struct xac_itm *t = xac_itm_now;

    if (n == 0)
        return;
    if (t->is_translated) {
        xac_itm_copy(t, to, from, n,
                     &(struct xac_itm_sides){.to_shared = stores, .from_shared = loads});
        return;
    }
    if (loads)
        xac_load(from, n);
    if (stores)
        (void)xac_itm_note(t, to, n, true);
    memmove(to, from, n);
}

/* The ABI has no result here, but gcc uses the one of memcpy, memmove and memset. */
#define TRANSFER(name, loads, stores)                                 \
 XAC_ITM_API void *_ITM_##name(void *to, const void *from, size_t n); \
 void *_ITM_##name(void *to, const void *from, size_t n)              \
 {                                                                    \
  transfer(to, from, n, loads, stores);                               \
  return to;                                                          \
 }

#define TRANSFERS(verb)               \
 TRANSFER(verb##RnWt, false, true)    \
 TRANSFER(verb##RnWtaR, false, true)  \
 TRANSFER(verb##RnWtaW, false, true)  \
 TRANSFER(verb##RtWn, true, false)    \
 TRANSFER(verb##RtWt, true, true)     \
 TRANSFER(verb##RtWtaR, true, true)   \
 TRANSFER(verb##RtWtaW, true, true)   \
 TRANSFER(verb##RtaRWn, true, false)  \
 TRANSFER(verb##RtaRWt, true, true)   \
 TRANSFER(verb##RtaRWtaR, true, true) \
 TRANSFER(verb##RtaRWtaW, true, true) \
 TRANSFER(verb##RtaWWn, true, false)  \
 TRANSFER(verb##RtaWWt, true, true)   \
 TRANSFER(verb##RtaWWtaR, true, true) \
 TRANSFER(verb##RtaWWtaW, true, true)

TRANSFERS(memcpy)
TRANSFERS(memmove)

/* fill -- memset. */
static inline void
fill(void *to, int byte, size_t n)
{
    struct xac_itm *t = xac_itm_now;

    if (n == 0)
        return;
    if (t->is_translated) {
        xac_itm_fill(t, to, byte, n);
        return;
    }
    (void)xac_itm_note(t, to, n, true);
    memset(to, byte, n);
}

#define FILL(name)                                            \
 XAC_ITM_API void *_ITM_##name(void *to, int byte, size_t n); \
 void *_ITM_##name(void *to, int byte, size_t n)              \
 {                                                            \
  fill(to, byte, n);                                          \
  return to;                                                  \
 }

FILL(memsetW)
FILL(memsetWaR)
FILL(memsetWaW)

/* _ITM_LB -- log memory of the thread, for the compiler stores there without a call. */
XAC_ITM_API void _ITM_LB(const void *at, size_t n);
void
_ITM_LB(const void *at, size_t n)
{
    if (n > 0)
        xac_itm_log(xac_itm_now, at, n);
}

/* _ITM_dropReferences -- a hint that nobody needs the range any more: nothing to do. */
XAC_ITM_API void _ITM_dropReferences(void *at, size_t n);
void
_ITM_dropReferences(void *at, size_t n)
{
    (void)at;
    (void)n;
}
