/* SPDX-License-Identifier: MIT */
/*
 * claim.h -- a mapped file belongs to one environment at a time.
 *
 * WHAT      (a) The hold: every open description through which the library maps a file,
 *           writes it in a checkpoint or redoes it has a lock on one byte of its own, far
 *           behind any data, at a place that stands for the environment's directory.  The
 *           kernel drops it with the description.
 *           (b) The mark: an extended attribute of the file (doc/formats.md) with the
 *           environment that has mapped it last.  It survives crashes, and names the
 *           environment in error messages.  If the file system has no such attributes, only
 *           the hold remains.
 *           The master record and the end of the log of a marked environment are read, as by
 *           recovery, to see whether it has something to redo.
 * NOT HERE  Which file it is (identity), which files an environment knows (registry).
 * THREADS   Any; no lock of the library is needed.
 *
 * INVARIANTS
 *   (1) If two environments want a file at the same time, at least one is refused, because each
 *       takes a byte of its own first and then looks for others.
 *   (2) A mark counts only on the file that it was made for: the copy of a file has none.
 *   (3) A mark of another environment is replaced only if that environment is gone, or has no
 *       participants and nothing to redo; or by a recovery, if the user has told it so.
 *   (4) A file that is refused is not changed.
 */
#ifndef XAC_CLAIM_H
#define XAC_CLAIM_H

#include <stdbool.h>

#include "base/annot.h"
#include "base/identity.h"

/* An environment that has, or wants, a file. */
struct xac_claimant {
    struct xac_identity dir; /* its directory ...                                     */
    int dirfd;               /* ... which is open here; not owned                     */
};

/*
 * xac_claim_hold -- hold an open file until its description is closed.
 *
 * A lock of another program on the whole file is not a hold.  If it makes the hold impossible, or
 * if the file system has no locks, there is only the mark.
 * in   takes  false: only look for others
 * in   name   of the file, for messages
 * ret  0; XAC_EINUSE with text; errno values.
 */
int xac_claim_hold(int fd, const struct xac_claimant *who, bool takes, const char *name);

/*
 * xac_claim_hold_again -- the same for a file whose description the program has closed, and
 * the hold with it.
 *
 * ret  0; EBUSY if another environment has taken the file since; errno.
 */
XAC_SIGSAFE int xac_claim_hold_again(int fd, const struct xac_claimant *who);

/*
 * xac_claim_take -- hold a file that is to be mapped, and mark it.
 *
 * ret  as xac_claim_hold; XAC_EINUSE also if the mark is that of an environment that is in
 *      use, or has still to be recovered, which would overwrite the file.
 */
int xac_claim_take(int fd, const struct xac_claimant *who, const char *name);

/*
 * xac_claim_check -- may a recovery redo this file?
 *
 * in   may_take  also if an environment that is gone has mapped it since
 * ret  0; XAC_EINUSE with text.
 */
int xac_claim_check(int fd, const struct xac_claimant *who, bool may_take,
                    const char *name);

/* xac_claim_mark -- mark a file that is held, if that is possible. */
void xac_claim_mark(int fd, const struct xac_claimant *who);

/* xac_claim_drop -- take back our mark, if it is ours, of a file that the environment will
   not write any more. */
void xac_claim_drop(int fd, const struct xac_claimant *who);

#endif /* XAC_CLAIM_H */
