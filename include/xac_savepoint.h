/* SPDX-License-Identifier: MIT */
/*
 * xac_savepoint.h -- savepoints: a part of a transaction is rolled back, and the rest goes on; xac.h includes it.
 *
 *     mark = xSavepoint();
 *     ... stores that may turn out to be wrong
 *     if (they_are_wrong)
 *         xRollbackTo(mark);
 *     xRelease(mark);
 *
 * THREADS   The one that has begun the transaction.
 */
#ifndef XAC_SAVEPOINT_H
#define XAC_SAVEPOINT_H

#include <stdint.h>

#include "xac_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Take a savepoint: a place in the running transaction to which xRollbackTo() goes back.
 *
 * Savepoints nest, as deep as memory allows.  They do not depend on the nesting of xbegin() and
 * xend(), and end with the outermost transaction.  A savepoint costs something for each page that is
 * stored to after it, for the first time since: a trap, and room for the page as it was.  Of the pages
 * that were written before, it costs something for those that no savepoint has followed yet.
 *
 * After a savepoint, and after a roll-back, what was announced before counts no more: stores are to be
 * announced again (XAC_CHECKING_TRUSTED), and so is what is given to system calls.
 *
 * In a transaction that threads help (xac_team.h) it is the owner that takes savepoints.  What a helper
 * stores at the same moment, word by word, is before the savepoint or behind it.
 *
 * ret  its mark, which no other savepoint of the process has; or 0, and errno is
 *        EPERM   not inside a transaction, or inside a query, or no xInit() yet
 *        EBUSY   stores have to be announced, and threads have joined: they are to xLeave() before, and may
 *                join again
 *        ENOMEM  no memory, or the transaction has failed because there was no room; other errno
 *                values likewise
 *      xLastError() says more.
 */
XAC_API uint64_t xac_savepoint(void);

/*
 * Roll back to a savepoint: all segments are as they were when it was taken, heaps in them included.
 * The savepoint stays; those that were taken after it are gone.  Variables outside of segments, and the
 * nesting of xbegin(), stay as they are.
 *
 * Pages that the transaction has read or written since still count as read: it aborts if others change
 * them, unless the abort policy lets that pass.  It also works in a transaction that has failed already,
 * because of a conflict or xAbort(), and changes nothing about that.
 *
 * A roll-back stores to what has changed since the savepoint; races of helpers with that are the program's.
 *
 * in   mark  from xSavepoint() in this transaction, not released and not gone
 * ret  0; XAC_FAILED: done, but the outermost xend() will abort; EINVAL: no such mark; XAC_ENOINIT;
 *      XAC_ENOTXN; XAC_EINQUERY; XAC_EFORKED; EBUSY: as xSavepoint(); ENOMEM, EIO and other errno values: not all of it could be
 *      restored, and the outermost xend() will return that error.
 */
XAC_API int xac_rollback_to(uint64_t mark);

/*
 * Release a savepoint, and those that were taken after it: they are forgotten, and nothing else changes.
 *
 * in   mark  as for xRollbackTo()
 * ret  0; EINVAL; XAC_ENOINIT; XAC_ENOTXN; XAC_EINQUERY; XAC_EFORKED.
 */
XAC_API int xac_release(uint64_t mark);

#ifndef XAC_NO_SHORT_NAMES
XAC_API uint64_t xSavepoint(void);
XAC_API int xRollbackTo(uint64_t mark);
XAC_API int xRelease(uint64_t mark);
#endif

#ifdef __cplusplus
}
#endif

#endif /* XAC_SAVEPOINT_H */
