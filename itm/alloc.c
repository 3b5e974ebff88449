/* SPDX-License-Identifier: MIT */
/*
 * alloc.c -- memory that is allocated and freed inside of transactions.
 *
 * What a transaction has allocated is freed if it is rolled back; what it frees is freed when it has
 * committed.  The names that begin with _ZGTt are those that the compiler gives to the
 * transactional version of a function: of the operators of C++.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include <xac.h>

#include "itm.h"

XAC_ITM_API void *xac_itm_malloc(void *base, size_t size);
XAC_ITM_API int xac_itm_free(void *base, void *p);
XAC_ITM_API void *xac_itm_root(void *base);

/* allocated -- ret  p. */
static void *
allocated(void *p, void (*fn)(void *arg))
{
    if (p != NULL)
        xac_itm_act(xac_itm_now, &(struct xac_itm_action){.kind = XAC_ITM_ALLOCATED,
                                                          .fn = fn,
                                                          .arg = p});
    return p;
}

static void
freed(void *p, void (*fn)(void *arg))
{
    if (p == NULL)
        return;
    /* As a store: a block that is older may have found it in a segment, and is about to load there. */
    xac_itm_outside_take(xac_itm_now, XAC_ITM_EXCLUSIVE);
    xac_itm_act(xac_itm_now,
                &(struct xac_itm_action){.kind = XAC_ITM_FREED, .fn = fn, .arg = p});
}

/* ---- C ---------------------------------------------------------------------------------- */

XAC_ITM_API void *_ITM_malloc(size_t size);
void *
_ITM_malloc(size_t size)
{
    return allocated(malloc(size), free);
}

XAC_ITM_API void *_ITM_calloc(size_t n, size_t size);
void *
_ITM_calloc(size_t n, size_t size)
{
    return allocated(calloc(n, size), free);
}

XAC_ITM_API void _ITM_free(void *p);
void
_ITM_free(void *p)
{
    freed(p, free);
}

/* ---- C++ -------------------------------------------------------------------------------- */

/* The operators of libstdc++ or of the program, which C programs do not have. */
void *_Znwm(size_t size) __attribute__((weak));
void *_Znam(size_t size) __attribute__((weak));
void *_ZnwmRKSt9nothrow_t(size_t size, const void *nothrow) __attribute__((weak));
void *_ZnamRKSt9nothrow_t(size_t size, const void *nothrow) __attribute__((weak));
void _ZdlPv(void *p) __attribute__((weak));
void _ZdaPv(void *p) __attribute__((weak));

#define NEW(name, free_name)                       \
 XAC_ITM_API void *_ZGTt##name(size_t size);       \
 void *_ZGTt##name(size_t size)                    \
 {                                                 \
  return allocated(_Z##name(size), _Z##free_name); \
 }

#define NEW_NOTHROW(name, free_name)                              \
 XAC_ITM_API void *_ZGTt##name(size_t size, const void *nothrow); \
 void *_ZGTt##name(size_t size, const void *nothrow)              \
 {                                                                \
  return allocated(_Z##name(size, nothrow), _Z##free_name);       \
 }

/* With a size, with nothrow, or with both, as further arguments. */
#define DELETE(name, free_name)                                              \
 XAC_ITM_API void _ZGTt##name(void *p, uintptr_t size, const void *nothrow); \
 void _ZGTt##name(void *p, uintptr_t size, const void *nothrow)              \
 {                                                                           \
  (void)size;                                                                \
  (void)nothrow;                                                             \
  freed(p, _Z##free_name);                                                   \
 }

NEW(nwm, dlPv)
NEW(nam, daPv)
NEW_NOTHROW(nwmRKSt9nothrow_t, dlPv)
NEW_NOTHROW(namRKSt9nothrow_t, daPv)
DELETE(dlPv, dlPv)
DELETE(dlPvm, dlPv)
DELETE(dlPvRKSt9nothrow_t, dlPv)
DELETE(dlPvmRKSt9nothrow_t, dlPv)
DELETE(daPv, daPv)
DELETE(daPvm, daPv)
DELETE(daPvRKSt9nothrow_t, daPv)
DELETE(daPvmRKSt9nothrow_t, daPv)

/* ---- libxac ----------------------------------------------------------------------------- */

/* as_update -- the allocator is about to store. */
static struct xac_itm *
as_update(void)
{
    struct xac_itm *t = xac_itm_now;

    if (t->has_env && xac_itm_may_restart_as_update(t))
        xac_itm_restart_as_update(t);
    return t;
}

/* xMalloc: libxac rolls it back, unless only a nested transaction is cancelled. */
void *
xac_itm_malloc(void *base, size_t size)
{
    struct xac_itm *t = as_update();
    void *place = xac_itm_place(t, base), *p = xac_malloc(place, size);

    if (p != NULL)
        xac_itm_act(t, &(struct xac_itm_action){.kind = XAC_ITM_MALLOCED,
                                                .arg = p,
                                                .base = place});
    return xac_itm_place_back(t, p);
}

/* xFree: before the commit, since a nested transaction may be cancelled. */
int
xac_itm_free(void *base, void *p)
{
    struct xac_itm *t = as_update();

    if (p != NULL)
        xac_itm_act(t, &(struct xac_itm_action){.kind = XAC_ITM_XFREED,
                                                .arg = xac_itm_place(t, p),
                                                .base = xac_itm_place(t, base)});
    return 0;
}

/* xRoot: it makes a heap of a segment of zero bytes, but not in a query. */
void *
xac_itm_root(void *base)
{
    struct xac_itm *t = xac_itm_now;
    void *place = xac_itm_place(t, base), *root = xac_root(place);

    if (root == NULL && errno == EPERM)
        (void)as_update();
    return xac_itm_place_back(t, root != NULL ? root : xac_root(place));
}
