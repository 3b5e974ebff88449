/* SPDX-License-Identifier: MIT */
/*
 * raftd_stale.h -- Raft's log that lies before its snapshot as a whole.
 *
 * WHAT      When a node takes a snapshot that another one has sent, libraft stores that first, and removes its own log
 *           then.  If the daemon is killed in between, what is left of the log ends before the snapshot, and libraft does
 *           not start with it any more.  The snapshot has all of it, so it can go.
 * NOT HERE  Snapshots themselves (raftd_raft.h).
 * OWNER     The daemon; libraft has not started, or has failed to.
 * LOCK      None.
 * THREADS   One.
 *
 * INVARIANTS
 *   (1) An entry behind the newest snapshot is never removed.
 */
#ifndef XAC_RAFTD_STALE_H
#define XAC_RAFTD_STALE_H

#include <stdbool.h>

/* raftd_stale_remove -- the segments of Raft's log in `dir`, if all of them are closed, and end before the newest
   snapshot.  (libraft closes those that were open before it looks at snapshots.)  ret have they been removed? */
bool raftd_stale_remove(const char *dir);

#endif /* XAC_RAFTD_STALE_H */
