/* SPDX-License-Identifier: MIT */
/*
 * ckpt_failure.h -- telling of checkpoints that failed.  What becomes of them is
 * checkpoint.c's.  Any thread.
 */
#ifndef XAC_CKPT_FAILURE_H
#define XAC_CKPT_FAILURE_H

struct xac_env;

/* xac_ckpt_note_failure -- for xStats(), unless rc is 0; of an environment that is poisoned
   everybody knows. */
void xac_ckpt_note_failure(struct xac_env *env, int rc);

/* xac_ckpt_complain -- of a failure that nobody asked for and nobody is told: once in a
   process, for the log grows until it is mended. */
void xac_ckpt_complain(const struct xac_env *env, int rc);

#endif /* XAC_CKPT_FAILURE_H */
