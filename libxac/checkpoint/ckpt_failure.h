/* SPDX-License-Identifier: MIT */
/*
 * ckpt_failure.h -- reporting checkpoints that failed.  checkpoint.c handles the failure.  Any
 * thread.
 */
#ifndef XAC_CKPT_FAILURE_H
#define XAC_CKPT_FAILURE_H

struct xac_env;

/* xac_ckpt_note_failure -- for xStats(), unless rc is 0 or the environment is poisoned, which all
   participants know. */
void xac_ckpt_note_failure(struct xac_env *env, int rc);

/* xac_ckpt_complain -- print a failure of a checkpoint that no caller has asked for, once in a
   process, because the log grows until the cause is removed. */
void xac_ckpt_complain(const struct xac_env *env, int rc);

#endif /* XAC_CKPT_FAILURE_H */
