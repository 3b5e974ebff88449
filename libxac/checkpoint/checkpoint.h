/* SPDX-License-Identifier: MIT */
/*
 * checkpoint.h -- bringing committed versions to their files, so that the log and the
 * version store need not keep them (Thesis 3.2, 2.1).
 *
 * WHAT      xCheckpoint: which process does the steps of a checkpoint, and when.
 * NOT HERE  The steps (ckpt_steps.h); which log files may go then (archive.h).
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
 *   (5) In a group, durable means that a majority has it, too: shared/group.h, (3).
 */
#ifndef XAC_CHECKPOINT_H
#define XAC_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"
#include "checkpoint/ckpt_due.h"
#include "checkpoint/ckpt_shipped.h"
#include "shared/env_state.h"
#include "shared/group.h"

/*
 * xac_checkpoint_run -- one checkpoint.
 *
 * in   is_final  the last participant is leaving: mark the environment clean
 * ret  0; XAC_EPOISONED; errno values (nothing is lost).
 */
int xac_checkpoint_run(struct xac_env *env, bool is_final);

/*
 * xac_checkpoint_redone -- one of a standby, by its replayer: the files get what is published, as far as readers
 * allow it.  The master record is left to the caller.
 *
 * in/out  shipped  see ckpt_shipped.h
 * ret  as xac_checkpoint_run()
 */
int xac_checkpoint_redone(struct xac_env *env, struct xac_ckpt_shipped *shipped);

/* xac_checkpoint_try -- the same within other work; returns EBUSY instead of waiting for a running
   checkpoint. */
int xac_checkpoint_try(struct xac_env *env);

/* xac_checkpoint_step -- one step of the checkpoint that is under way in this process, or of a new
   one, if nobody else is at it. */
void xac_checkpoint_step(struct xac_env *env);

/* xac_checkpoint_if_due -- the same if one is under way, or if enough has been logged for
   another; not when the environment has been deposed. */
static inline void
xac_checkpoint_if_due(struct xac_env *env)
{
    if ((atomic_load_explicit(&env->has_ckpt, memory_order_relaxed)
         || xac_ckpt_is_due(env))
        && !xac_group_is_deposed(env))
        xac_checkpoint_step(env);
}

/* xac_checkpoint_leave -- give up one that is under way in this process. */
void xac_checkpoint_leave(struct xac_env *env);

/* xac_checkpoint_forked -- in a child: it is the parent's. */
void xac_checkpoint_forked(struct xac_env *env);

#endif /* XAC_CHECKPOINT_H */
