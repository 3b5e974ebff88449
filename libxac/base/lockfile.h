/* SPDX-License-Identifier: MIT */
/*
 * lockfile.h -- byte locks: the gate, and which participants are alive.
 *
 * They are open-file-description locks.  The kernel drops them when the last descriptor of the
 * description is closed, at the latest when the process dies, across PID namespaces too.
 *   byte 0      of xac.lock, the gate: attaching, detaching, recovery; exclusive
 *   byte 1 + i  of xac.lock, held by participant i as long as it lives; also of xac.master, a
 *               file that is never replaced, and of the control region
 * xac.lock contains one line, the path of the control region; it is written under the gate.
 *
 * OWNER     the descriptor belongs to the process; close-on-exec; a forked child closes
 *           its copy before anything else and opens one of its own.
 *
 * INVARIANTS
 *   (1) Only users that may write the environment's files (newfile.h) can open xac.lock: its
 *       mode gives each class read and write, or nothing.
 *   (2) Only locks for writing count.  A user that may only read a file can lock it for
 *       reading, and must not look like a participant.
 *   (3) A process that has passed the gate has locked the file that has the name xac.lock now,
 *       and there is no participant with another file that had the name before: such a
 *       participant would still hold its byte of xac.master.
 */
#ifndef XAC_LOCKFILE_H
#define XAC_LOCKFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"

/* xac_lockfile_open -- open or create; ret descriptor or -1 with errno. */
int xac_lockfile_open(int dirfd);

/* xac_gate_enter -- wait for the gate; ret 0 or errno.  xac_gate_try -- without waiting; ret
   0, EAGAIN or another errno.  xac_gate_leave -- leave it. */
int xac_gate_enter(int fd);
int xac_gate_try(int fd);
void xac_gate_leave(int fd);

/*
 * xac_gate_open -- open the lock file and enter the gate; afterwards the file still has the name.
 *
 * in   dir  path of the directory, for messages
 * out  fdp  the caller's
 * ret  0; XAC_ELOCKLOST if the file is replaced again and again; errno.  Words noted.
 */
int xac_gate_open(int dirfd, const char *dir, int *fdp);

/*
 * xac_attached -- does anybody take part in the environment?
 *
 * The answer is certain with the gate held; otherwise it is a hint.
 * in   dir     path of the directory, for messages
 * in   lockfd  the lock file; -1 if it could not be opened: xac.master tells it too
 * ret  0: no; XAC_ELIVE: yes, without text; XAC_ELOCKLOST: yes, with a file that had the name
 *      xac.lock before; errno.  Text noted.
 */
int xac_attached(int dirfd, const char *dir, int lockfd);

/* xac_alive_take -- take byte 1 + index; ret 0, EAGAIN if another holds it, errno. */
int xac_alive_take(int fd, uint32_t index);
void xac_alive_drop(int fd, uint32_t index);

/* xac_alive_test -- true if another description holds byte 1 + index. */
XAC_SIGSAFE bool xac_alive_test(int fd, uint32_t index);

/* xac_alive_any -- true if another description holds any participant's byte. */
bool xac_alive_any(int fd);

/* xac_lockfile_is_held -- true if another description holds any byte, the gate's included. */
bool xac_lockfile_is_held(int fd);

#endif /* XAC_LOCKFILE_H */
