/* SPDX-License-Identifier: MIT */
/*
 * logdir.h -- the directory of the log: that of the environment, or another one, for example on
 * another disk (Thesis 4.3 puts log and data on two disks).
 *
 * WHAT      Segments and data files lie there; the master record stays.  The environment's
 *           directory has a note with its path, XAC_LOGDIR_NOTE, and the directory a mark
 *           with the environment's identity, XAC_LOGDIR_MARK.  So a missing mount, a directory
 *           that was moved, and the log of another environment are noticed before anything is
 *           written.
 * NOT HERE  The files in it (log, recover_scan).
 * LOCK      Functions that write hold the gate.
 *
 * INVARIANTS
 *   (1) The mark is durable before the note is, the note before a segment is made.
 *   (2) The directory is decided before the log exists: no segment lies elsewhere.
 *   (3) A copy of an environment has the original's note and identity.  It uses the directory
 *       that the note names only if that belongs to it now (xac_logdir_recover).
 */
#ifndef XAC_LOGDIR_H
#define XAC_LOGDIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/names.h"
#include "log/log_format.h"

/*
 * xac_logdir_noted -- the directory that the note names.
 *
 * out  pathp  absolute, to be freed; NULL if there is no note
 * ret  0; XAC_EDAMAGED if it cannot be read; errno values.
 */
int xac_logdir_noted(int dirfd, char **pathp);

/*
 * xac_logdir_open -- the directory in which the log of an environment lies.
 *
 * in   moved     its place now, if it is not that of the note; else NULL
 * out  fdp       to be closed
 * out  pathp     the path for the note, to be freed; NULL: the environment's own
 * ret  0; ENOENT if it does not exist or has no mark; XAC_EFOREIGN if the mark is that of
 *      another environment; EINVAL if the log lies with the environment, but `moved` is given;
 *      other errno values.
 */
int xac_logdir_open(int dirfd, const char *moved, const uint8_t identity[16], int *fdp,
                    char **pathp);

/*
 * xac_logdir_recover -- the same for a recovery, which decides the place of the log from now on.
 *
 * in   is_copy   the environment's directory is a copy of another one (master.h), and files
 *                outside of it do not belong to it
 * in   may_note  note a new place
 * ret  as above; XAC_ECOPY if the log of a copy lies elsewhere, and `moved` names no other
 *      place than the note.
 */
int xac_logdir_recover(int dirfd, const struct xac_master_slot *master, const char *moved,
                       bool is_copy, bool may_note, int *fdp);

/* xac_logdir_note -- write the note; ret 0 or an error. */
int xac_logdir_note(int dirfd, const char *path);

/*
 * xac_logdir_make -- make a directory for the log of an environment that has none yet, if it is
 * missing; mark it and note it.
 *
 * ret  0; XAC_EFOREIGN if another environment has its log there; errno values.
 */
int xac_logdir_make(int dirfd, const char *path, const uint8_t identity[16]);

#endif /* XAC_LOGDIR_H */
