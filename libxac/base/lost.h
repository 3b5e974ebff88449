/* SPDX-License-Identifier: MIT */
/*
 * lost.h -- a file that has lost its name, found in a process that has it open.
 *
 * WHAT      The files of a control region may be removed while processes are attached:
 *           systemd-logind removes all files of a user in /dev/shm when the user logs out
 *           (RemoveIPC=yes).  A file without a name cannot get one again (linkat(2): ENOENT).
 *           But a process that may inspect one that has the file open can open it through
 *           /proc/PID/fd.
 * NOT HERE  Whether it is the right file: its name is only a hint (region.h, control_check.h).
 * THREADS   any.
 *
 * INVARIANTS
 *   (1) The file that is returned has no name: a file in the /dev/shm of another mount namespace
 *       is not found.
 */
#ifndef XAC_LOST_H
#define XAC_LOST_H

#include "base/annot.h"
#include "base/handle.h"

/*
 * xac_lost_open -- open a file that had this path until it was removed.
 *
 * It works for root, and for a process of the same user as one that has the file open, unless that
 * one cannot be inspected, like set-user-ID programs.
 * in   path   only its last component is compared, which no other file has ever had
 * in   flags  of open(2)
 * ret  descriptor; -1 with errno, ENOENT if no process that can be inspected has it open.
 */
XAC_SIGSAFE int xac_lost_open(const char *path, int flags);

/*
 * xac_lost_again -- xac_handle_again() (handle.h) for reading and writing, of a file that may
 * have been removed.
 */
XAC_SIGSAFE int xac_lost_again(int fd, const struct xac_handle *h, int dirfd,
                               const char *path);

#endif /* XAC_LOST_H */
