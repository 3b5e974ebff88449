/* SPDX-License-Identifier: MIT */
/*
 * ckpt_due.h -- when a checkpoint is due: enough has been logged, or enough versions are there.
 *
 * All of it is about what others change meanwhile, and so a hint.
 */
#ifndef XAC_CKPT_DUE_H
#define XAC_CKPT_DUE_H

#include <stdbool.h>
#include <stdint.h>

struct xac_env;

/* xac_ckpt_is_due -- has enough been logged since the last one began, or are so many versions
   there?  XAC_OPT_CHECKPOINT_BYTES is about both; a bound of memory (outofcore.h) about the
   latter. */
bool xac_ckpt_is_due(struct xac_env *env);

/* xac_ckpt_is_pressed -- is the room for versions within a bound about to run out? */
bool xac_ckpt_is_pressed(struct xac_env *env);

/*
 * xac_ckpt_is_late -- has more been logged since a checkpoint began than suits what is done of it?
 * It is to end before a quarter of a segment has been logged.
 *
 * in   done, all  how much of the work until its END is done, in any unit; done is at least 1
 */
bool xac_ckpt_is_late(struct xac_env *env, uint64_t begin_lsn, uint64_t done,
                      uint64_t all);

/*
 * xac_ckpt_leave_to_other -- is another process at it, so that we need not be?
 *
 * Not if one is due by the log that was written since, if room runs out, or if we have left
 * this very one to it before: then it has stopped committing, and with it stepping, and
 * whoever finds that begins anew.  The checkpoint lock is held.
 */
bool xac_ckpt_leave_to_other(struct xac_env *env);

/* xac_ckpt_put_off -- what readers held back is not worth another run at once. */
void xac_ckpt_put_off(struct xac_env *env);

/* xac_ckpt_first_due -- when this process joins. */
void xac_ckpt_first_due(struct xac_env *env);

#endif /* XAC_CKPT_DUE_H */
