/* SPDX-License-Identifier: MIT */
/*
 * ckpt_due.h -- when a checkpoint is due: enough has been logged, or there are enough versions.
 *
 * Other processes change these numbers meanwhile, so all answers are hints.
 */
#ifndef XAC_CKPT_DUE_H
#define XAC_CKPT_DUE_H

#include <stdbool.h>
#include <stdint.h>

struct xac_env;

/* xac_ckpt_is_due -- has enough been logged since the last checkpoint began, or are there enough
   versions?  XAC_OPT_CHECKPOINT_BYTES decides both; a bound on memory (outofcore.h) the second. */
bool xac_ckpt_is_due(struct xac_env *env);

/* xac_ckpt_is_pressed -- is the room for versions within a bound, or XAC_OPT_READER_LIMIT, about to
   run out? */
bool xac_ckpt_is_pressed(struct xac_env *env);

/*
 * xac_ckpt_is_late -- is the checkpoint behind the log that was written since it began?  It should
 * end before a quarter of a segment has been logged.
 *
 * in   done, all  how much of the work until its END is done, in any unit; done is at least 1
 */
bool xac_ckpt_is_late(struct xac_env *env, uint64_t begin_lsn, uint64_t done,
                      uint64_t all);

/*
 * xac_ckpt_leave_to_other -- is another process making a checkpoint, so that we need not make one?
 *
 * No if the log that was written since makes one due, if room runs out, or if we have left this
 * same checkpoint to that process before: then it has stopped committing, and so making steps,
 * and the process that notices this begins a new one.  The checkpoint lock is held.
 */
bool xac_ckpt_leave_to_other(struct xac_env *env);

/* xac_ckpt_put_off -- do not begin another checkpoint at once for versions kept for readers. */
void xac_ckpt_put_off(struct xac_env *env);

/* xac_ckpt_first_due -- call it when this process joins. */
void xac_ckpt_first_due(struct xac_env *env);

#endif /* XAC_CKPT_DUE_H */
