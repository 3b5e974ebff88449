/* SPDX-License-Identifier: MIT */
/*
 * checkpoint.h -- bringing committed versions to their files, so that the log and the
 * version store need not keep them (Thesis 3.2, 2.1).
 *
 * WHAT      xCheckpoint, xArchive; log blocks that concern files.
 * LOCK      checkpoint (one step at a time), then gc and publish in short steps.
 * OWNER     A checkpoint that is due runs in the process that finds it so, a bounded step
 *           at each of its commits.  Its progress is private to the process, except
 *           the query that holds the bound.  If another process begins a checkpoint
 *           (xCheckpoint(), or because as much again has been logged), this one ends: what
 *           was copied was right, and the new one copies what is left.
 *
 * INVARIANTS
 *   (1) A file is overwritten only with the newest version at or below a bound below
 *       which nobody live looks, and only when that version is durable.
 *   (2) The master record names a checkpoint only after the files have been synced.
 *   (3) Versions are unlinked only after that, as an unlink.
 *   (4) A page is written to its file only while the log holds, behind the redo position of
 *       the master record and durable, a full image of it.  So no version is written twice:
 *       once its file has been synced, a checkpoint may have counted the page as closed
 *       and died, or been ended, before it took the version out.
 */
#ifndef XAC_CHECKPOINT_H
#define XAC_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/annot.h"
#include "checkpoint/ckpt_due.h"
#include "shared/env_state.h"

struct xac_master_slot;

/*
 * xac_checkpoint_run -- one checkpoint.
 *
 * in   is_final  the last participant is leaving: mark the environment clean
 * ret  0; XAC_EPOISONED; errno values (nothing is lost).
 */
int xac_checkpoint_run(struct xac_env *env, bool is_final);

/* xac_checkpoint_try -- the same within other work; returns EBUSY instead of waiting for a running
   checkpoint. */
int xac_checkpoint_try(struct xac_env *env);

/* xac_checkpoint_step -- one step of the checkpoint that is under way in this process, or of a new
   one, if nobody else is at it. */
void xac_checkpoint_step(struct xac_env *env);

/* xac_checkpoint_if_due -- the same if one is under way, or if enough has been logged for
   another. */
static inline void
xac_checkpoint_if_due(struct xac_env *env)
{
    if (atomic_load_explicit(&env->has_ckpt, memory_order_relaxed)
        || xac_ckpt_is_due(env))
        xac_checkpoint_step(env);
}

/* xac_checkpoint_leave -- give up one that is under way in this process. */
void xac_checkpoint_leave(struct xac_env *env);

/* xac_checkpoint_forked -- in a child: it is the parent's. */
void xac_checkpoint_forked(struct xac_env *env);

/*
 * xac_archive_list -- names of the log files that nobody needs, as xac_archive() gives them.
 *
 * in   path    of the directory in which the log lies
 * in   master  its record, synced; redo_lsn that of backups under way, if it is smaller
 */
int xac_archive_list(const char *path, const struct xac_master_slot *master,
                     char ***namesp, size_t *countp);

/*
 * xac_archive_remove_data -- remove the data files that xac_archive_list() would name.
 *
 * The checkpoint lock is held.  One that cannot be removed is left to the next call.
 */
void xac_archive_remove_data(struct xac_env *env, const struct xac_master_slot *master);

/* xac_archive_names -- see xac_archive() in xac.h. */
int xac_archive_names(struct xac_env *env, char ***namesp, size_t *countp);

#endif /* XAC_CHECKPOINT_H */
