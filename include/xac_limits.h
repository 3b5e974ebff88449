/* SPDX-License-Identifier: MIT */
/*
 * xac_limits.h -- functions as transactions that give up: after so many attempts, or after so long.
 *
 * WHAT      xTransactLimited() is xTransact() of xac.h with limits in a structure.  The structure names its
 *           own size, so that later versions can have more limits:
 *
 *               struct xac_limits limits = {.size = sizeof limits, .attempts = 5, .wait_ms = 200};
 */
#ifndef XAC_LIMITS_H
#define XAC_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "xac_api.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xac_env;

/* Limits; all other bytes of it are 0. */
struct xac_limits {
    size_t size; /* of this structure                                                */
    uint32_t
        attempts; /* so often fn is called at most; 0: there is no limit              */
    uint32_t
        wait_ms; /* milliseconds from the call on; 0: there is no limit              */
};

/*
 * As xTransact(), with limits.  After the time no further attempt begins, and the begin and the end of an
 * attempt wait for nobody any more: not for another thread of the process, not for the turn, not for a lock or a
 * sync of another process.  XAC_OPT_WAIT_MS limits each of them besides.  fn itself is not interrupted; what it
 * has done in time, or not, commits if that needs no wait.  Inside a transaction fn is a part of
 * that one, runs once, and the limits do not matter.
 *
 * in   fn, arg  as xTransact().
 * in   limits   copied; a size that is larger than the library knows needs zeros there.
 * ret  as xTransact(); XAC_ABORTED: each of the attempts has aborted; ETIMEDOUT: the time is over,
 *      and the last attempt has been rolled back, or has not begun; EBUSY: it has waited so long for a transaction of
 *      another thread; XAC_EUNCERTAIN: as xend(), or the sync by another process has been
 *      waited for so long; EINVAL: limits is NULL, or has a size or a limit that is not known.
 */
XAC_API int xac_transact_limited(int (*fn)(void *arg), void *arg,
                                 const struct xac_limits *limits);
XAC_API int xac_transact_limited_in(struct xac_env *env, int (*fn)(void *arg), void *arg,
                                    const struct xac_limits *limits);

#ifndef XAC_NO_SHORT_NAMES
XAC_API int xTransactLimited(int (*fn)(void *arg), void *arg,
                             const struct xac_limits *limits);
#endif

#ifdef __cplusplus
}
#endif

#endif /* XAC_LIMITS_H */
