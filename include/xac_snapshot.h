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
 * Take a snapshot of the present state; inside of a query of the state that the query sees.
 *
 * out  id   its number, if 0 is returned.  No other snapshot of the environment ever has it.
 * ret  0; EINVAL; XAC_ENOINIT; XAC_EINTXN inside a transaction; EBUSY if another thread of the
 *      process has a transaction open; XAC_EPOISONED; ENOMEM, ENOSPC: no room in the control region;
 *      XAC_EDESCRIPTOR.
 */
XAC_API int xac_snapshot(uint64_t *id);

/*
 * Begin a query at a snapshot.  It sees that state, as xbeginQuery() sees the present one, and is
 * ended by xendQuery().  Once it has begun, the snapshot may be released: the query keeps its state.
 *
 * ret  as xac_begin_query(); XAC_EINTXN inside a transaction or query; XAC_ENOSTATE: there is no such
 *      snapshot, or not any more.
 */
XAC_API int xac_begin_query_at(uint64_t id);

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

#ifndef XAC_NO_SHORT_NAMES
XAC_API int xSnapshot(uint64_t *id);
XAC_API int xbeginQueryAt(uint64_t id);
XAC_API int xSnapshotRelease(uint64_t id);
XAC_API int xSnapshotKeep(uint64_t id, const char *name, uint32_t seconds);
XAC_API int xSnapshotFind(const char *name, uint64_t *id);
#endif

#ifdef __cplusplus
}
#endif

#endif /* XAC_XAC_SNAPSHOT_H */
