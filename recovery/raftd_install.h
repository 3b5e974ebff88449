/* SPDX-License-Identifier: MIT */
/*
 * raftd_install.h -- a copy that has come over the network takes the place of a member's environment.
 *
 * WHAT      Moves a standby that lies in RAFTD_COPY to the directory of the member.  Killed at any moment, it goes on the
 *           next time.
 * NOT HERE  Receiving the copy (raftd_fetch.h).
 * LOCK      The gate of the directory.
 * THREADS   one.
 *
 * INVARIANTS
 *   (1) What the member has stays until the copy is whole, and reaches as far as it must: a majority may count on it.
 *   (2) The name of the copy's directory says how far it is: RAFTD_COPY it is being received; RAFTD_COPIED it is whole, and
 *       the old files of the library go; RAFTD_MOVING they are gone, and the new ones come.  Each name is synced before
 *       anything is done by it.
 *   (3) The old master record goes first, and the new one comes last: in between the directory is no environment.
 *   (4) Of files that are not the library's only those go whose names the copy has.
 */
#ifndef XAC_RAFTD_INSTALL_H
#define XAC_RAFTD_INSTALL_H

/* Relative to the directory of the member. */
#define RAFTD_COPY   "raft/copy"
#define RAFTD_COPIED "raft/copied"
#define RAFTD_MOVING "raft/moving"

/* raftd_install -- the copy in RAFTD_COPY is whole; nobody takes part in the directory, nor in the copy.  ret 0; XAC_ELIVE: others
   use it; errno; words noted. */
int raftd_install(int dirfd, const char *dir);

/* raftd_install_resume -- what a former life has begun; ret as raftd_install(); 0 also if it has not. */
int raftd_install_resume(int dirfd, const char *dir);

#endif /* XAC_RAFTD_INSTALL_H */
