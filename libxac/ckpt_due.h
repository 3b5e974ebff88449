/* SPDX-License-Identifier: MIT */
/*
 * ckpt_due.h -- when a checkpoint is due: enough has been logged, or enough versions are there.
 *
 * All of it is about what others change meanwhile, and so a hint.
 */
#ifndef XAC_CKPT_DUE_H
#define XAC_CKPT_DUE_H

#include <stdbool.h>

struct xac_env;

/* xac_ckpt_is_due -- has enough been logged since the last one began, or are so many versions
   there?  XAC_OPT_CHECKPOINT_BYTES is about both; a bound of memory (outofcore.h) about the
   latter. */
bool xac_ckpt_is_due(struct xac_env *env);

/* xac_ckpt_is_pressed -- is the room for versions within a bound about to run out? */
bool xac_ckpt_is_pressed(struct xac_env *env);

/* xac_ckpt_is_others -- is another process at it, so that we need not be?  Not if as much has
   been logged since as makes one due, or the room runs out: then it has stopped stepping, and
   whoever finds that begins anew.  checkpoint held. */
bool xac_ckpt_is_others(struct xac_env *env);

/* xac_ckpt_put_off -- what readers held back is not worth another run at once. */
void xac_ckpt_put_off(struct xac_env *env);

/* xac_ckpt_first_due -- when this process joins. */
void xac_ckpt_first_due(struct xac_env *env);

#endif /* XAC_CKPT_DUE_H */
