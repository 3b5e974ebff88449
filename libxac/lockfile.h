/* SPDX-License-Identifier: MIT */
/*
 * lockfile.h -- byte locks on DIR/xac.lock: the gate, and who is alive.
 *
 * Open-file-description locks, which the kernel drops when the last descriptor of the
 * description goes, at death at the latest, across PID namespaces too.
 *   byte 0      the gate: attaching, detaching, recovery; exclusive
 *   byte 1 + i  held by participant i as long as it lives
 * The file's contents, written under the gate: the path of the control region, a line.
 *
 * OWNER     the descriptor belongs to the process; close-on-exec; a forked child closes
 *           its copy before anything else and opens one of its own.
 */
#ifndef XAC_LOCKFILE_H
#define XAC_LOCKFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "annot.h"

/* xac_lockfile_open -- open or create; ret descriptor or -1 with errno. */
int xac_lockfile_open(int dirfd);

/* xac_gate_enter -- wait for the gate; ret 0 or errno.  xac_gate_leave -- leave it. */
int xac_gate_enter(int fd);
void xac_gate_leave(int fd);

/* xac_alive_take -- take byte 1 + index; ret 0, EAGAIN if another holds it, errno. */
int xac_alive_take(int fd, uint32_t index);
void xac_alive_drop(int fd, uint32_t index);

/* xac_alive_test -- true if another description holds byte 1 + index. */
XAC_SIGSAFE bool xac_alive_test(int fd, uint32_t index);

/* xac_alive_any -- true if another description holds any participant's byte. */
bool xac_alive_any(int fd);

#endif /* XAC_LOCKFILE_H */
