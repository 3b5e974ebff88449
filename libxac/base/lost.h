/* SPDX-License-Identifier: MIT */
/*
 * lost.h -- a file that has lost its name, found in a process that has it open.
 *
 * WHAT      Somebody may remove the files of a control region while processes are attached:
 *           systemd-logind does so with all that a user has in /dev/shm when he logs out
 *           (RemoveIPC=yes).  A file without a name cannot get one again (linkat(2) says ENOENT),
 *           but who may look at a process that has it open can open it through /proc/PID/fd.
 * NOT HERE  Whether it is the right file: its name is taken for a hint (region.h, control_check.h).
 * THREADS   any.
 *
 * INVARIANTS
 *   (1) What is returned has no name: a file that lies in the /dev/shm of another mount namespace
 *       is not found.
 */
#ifndef XAC_LOST_H
#define XAC_LOST_H

#include "base/annot.h"
#include "base/handle.h"

/*
 * xac_lost_open -- open a file that had this path until it was removed.
 *
 * Who may: a process of the same user as one that has the file open (unless that one has
 * given up being looked at, as set-user-ID programs have), and root.
 * in   path   its last component counts, which no other file has ever had
 * in   flags  of open(2)
 * ret  descriptor; -1 with errno, ENOENT if it is open in no process that one may look at.
 */
XAC_SIGSAFE int xac_lost_open(const char *path, int flags);

/*
 * xac_lost_again -- xac_handle_again() (handle.h) for reading and writing, of a file that may
 * have been removed.
 */
XAC_SIGSAFE int xac_lost_again(int fd, const struct xac_handle *h, int dirfd,
                               const char *path);

#endif /* XAC_LOST_H */
