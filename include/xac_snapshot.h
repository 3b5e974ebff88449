/* SPDX-License-Identifier: MIT */
/*
 * xac_snapshot.h -- snapshots: states that are held, and that others can query; xac.h includes it.
 *
 * A snapshot holds one state of the environment, until it is released.  Its id is a number, which the
 * program hands to others in any way.  All of them can query exactly that state, as often as they
 * like, while transactions go on.  No transaction is open meanwhile, and no thread is bound.
 *
 *     uint64_t id;
 *     if (xSnapshot(&id) == 0)
 *         tell_the_others(id);
 *     ...
 *     if (xbeginQueryAt(id) == 0) {       in each of them
 *         ...
 *         xendQuery();
 *     }
 *
 * COSTS     One version of each page that has been changed since, as an open query does; and
 *           checkpoints write to the files no state later than that, so that log piles up, too.  xstat
 *           lists all snapshots.
 * ENDS      A snapshot is released by xSnapshotRelease(); when the process that took it ends, in
 *           whatever way; when its time is over, if it has one; and when the last participant leaves
 *           the environment.  A child of fork() does not own the snapshots of its parent, but can
 *           use them.
 * THREADS   Any.
 */
#ifndef XAC_XAC_SNAPSHOT_H
#define XAC_XAC_SNAPSHOT_H

#include <stdint.h>

#include "xac_api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XAC_SNAPSHOT_NAME_MAX 63 /* bytes of a name, without the NUL                    */

/*
 * States of the past, in place of the id of a snapshot.  They can be queried as long as they lie in the
 * window of XAC_OPT_HISTORY.
 *   XAC_AT_COMMIT(n)  the state after the commit with the number n, as xac_position(), xStats(),
 *                     and xlogdump say it; 0: the first state of this history
 *   XAC_AT_TIME(ns)   the state that was present at a time, in ns since 1970 by the system's clock:
 *                     that of the last commit before the first one that is later, as
 *                     xlogdump and xrecover --until say it; in the future: the present state
 */
#define XAC_AT_COMMIT(n) ((UINT64_C(1) << 62) + (uint64_t)(n))
#define XAC_AT_TIME(ns)  ((UINT64_C(2) << 62) + (uint64_t)(ns))

/*
 * Take a snapshot of the present state; inside of a query of the state that the query sees.
 *
 * out  id   its number, if 0 is returned.  No other snapshot of the environment ever has it.
 * ret  0; EINVAL; XAC_ENOINIT; XAC_EINTXN inside a transaction; EBUSY if another thread of the
 *      process has a transaction open; XAC_EPOISONED; ENOMEM, ENOSPC: no room in the control region;
 *      XAC_EDESCRIPTOR; XAC_ECUTOFF: the query has been cut off, see xac_end_query().
 */
XAC_API int xac_snapshot(uint64_t *id);

/*
 * Begin a query at a snapshot, or at a state of the past.  It sees that state, as xbeginQuery() sees the
 * present one, and is ended by xendQuery().  Once it has begun, the snapshot may be released, and
 * the window may have left the state behind: the query keeps it.
 *
 * in   state  the id of a snapshot, XAC_AT_COMMIT() or XAC_AT_TIME().
 * ret  as xac_begin_query(); XAC_EINTXN inside a transaction or query; XAC_ENOSTATE: there is no such
 *      snapshot, or not any more; there is no such commit yet; or the state is older than the window of
 *      XAC_OPT_HISTORY, and xLastError() names the oldest one there is.
 */
XAC_API int xac_begin_query_at(uint64_t state);

/*
 * Release a snapshot.  Any participant may do so.
 *
 * ret  0; XAC_ENOSTATE: there is no such snapshot, or not any more; XAC_ENOINIT.
 */
XAC_API int xac_snapshot_release(uint64_t id);

/*
 * Have a snapshot outlive the process that took it: give it a name, by which others find it, and a
 * time to live.  A snapshot that has been given that name before gets another time.
 *
 * in   name     1 to XAC_SNAPSHOT_NAME_MAX bytes, without control characters; copied.
 * in   seconds  from now on, at least 1.  Versions are freed some time after they are over.
 * ret  0; EINVAL; ENAMETOOLONG; EEXIST: another snapshot has the name, or this one has another name;
 *      XAC_ENOSTATE: there is no such snapshot, or not any more; XAC_ENOINIT.
 */
XAC_API int xac_snapshot_keep(uint64_t id, const char *name, uint32_t seconds);

/*
 * The id of the snapshot that has been given a name by xSnapshotKeep().
 *
 * ret  0; EINVAL; XAC_ENOSTATE: none has the name, or its time is over; XAC_ENOINIT.
 */
XAC_API int xac_snapshot_find(const char *name, uint64_t *id);

/* Bytes of a segment that differ between two states. */
struct xac_change {
    const char *file;   /* as given to xMmap()                                       */
    uint64_t offset;    /* bytes, of the first one within the file                   */
    uint64_t length;    /* bytes, all in one page; a multiple of 8, as the offset    */
    const void *before; /* the bytes in the first state; valid during the call       */
    const void *after;  /* likewise in the second                                    */
    void *address;      /* of the first byte in this process's mapping               */
};

/*
 * Tell what differs between two states, in the segments that the process, or a thread with views of its
 * own, has mapped: page by page in the order of their addresses, and there range by range.  It looks at
 * pages only that have been written since the older state.
 *
 * in   from, to  states as for xbeginQueryAt(), in any order; they are held meanwhile.
 * in   fn   called with arg and a range.  It must not call the library, and must not leave by
 *           longjmp() or an exception.  0: go on; another value: stop.
 * ret  0; what fn has returned; errors of xbeginQueryAt(); EINVAL; ENOMEM, EIO and other errno values: a page
 *      could not be read.
 */
XAC_API int xac_diff(uint64_t from, uint64_t to,
                     int (*fn)(void *arg, const struct xac_change *change), void *arg);

#ifndef XAC_NO_SHORT_NAMES
XAC_API int xDiff(uint64_t from, uint64_t to,
                  int (*fn)(void *arg, const struct xac_change *change), void *arg);
XAC_API int xSnapshot(uint64_t *id);
XAC_API int xbeginQueryAt(uint64_t state);
XAC_API int xSnapshotRelease(uint64_t id);
XAC_API int xSnapshotKeep(uint64_t id, const char *name, uint32_t seconds);
XAC_API int xSnapshotFind(const char *name, uint64_t *id);
#endif

#ifdef __cplusplus
}
#endif

#endif /* XAC_XAC_SNAPSHOT_H */
