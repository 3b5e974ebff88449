/* SPDX-License-Identifier: MIT */
/*
 * rewind_plan.h -- what an old source needs of the environment that was its standby, to be a standby of it.
 *
 * WHAT      Finds the fork, reads in the own log which pages of which files have changed since, or are not in their files
 *           yet, and decides for each file what it needs.  Nothing is changed.
 * NOT HERE  Doing it (rewind.h).
 * LOCK      The caller holds the gate of the directory.
 *
 * INVARIANTS
 *   (1) A page that the plan does not have is in its file as the commits before the fork have left it, and no other
 *       one: so redo from the start of the source's generation behind the fork brings it to its contents there.
 *   (2) A file of which it is not certain that it was there at the fork is wanted as a whole.
 */
#ifndef XAC_REWIND_PLAN_H
#define XAC_REWIND_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "log/lineage.h"
#include "log/rewind_note.h"

/* The environment that is to become a standby. */
struct xac_rewind_own {
    const char *dir; /* its path, for words                                           */
    int dirfd, logfd;
    struct xac_master_slot master;
    uint64_t end_lsn; /* of its log                                                   */
    struct xac_lineage lineage;
};

/* What the source has. */
struct xac_rewind_theirs {
    struct xac_lineage lineage;
    char **file; /* paths relative to its directory, owned                            */
    size_t n_files, files_size;
};

/* xac_rewind_theirs_add -- a path; ret 0 or ENOMEM.  xac_rewind_theirs_free -- all of them. */
int xac_rewind_theirs_add(struct xac_rewind_theirs *t, const char *path);
void xac_rewind_theirs_free(struct xac_rewind_theirs *t);

/*
 * xac_rewind_plan -- sorts the files of the source.
 *
 * out  note  all but the master record; the caller's
 * ret  0; XAC_EFOREIGN: the logs have nothing in common, or parted otherwise than a promotion parts them; XAC_ECUTOFF: the
 *      own log does not tell all that has changed since the fork; XAC_EREPLACED: a file has another name at the
 *      source, or is gone there; as xac_scan_block(); errno.  Words noted.
 */
int xac_rewind_plan(const struct xac_rewind_own *own, struct xac_rewind_theirs *theirs,
                    struct xac_rewind_note *note);

#endif /* XAC_REWIND_PLAN_H */
