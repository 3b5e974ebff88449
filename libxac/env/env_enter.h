/* SPDX-License-Identifier: MIT */
/*
 * env_enter.h -- becoming a participant of an environment: its directory, the gate, its control
 * region.
 *
 * WHAT      Joins the region of those who are attached; recovers and makes a new region if nobody
 *           is.
 * NOT HERE  Views and engines; leaving (env.h).  The state that a frozen reader sees
 *           (env_frozen.h).
 * LOCK      xac_env_enter takes the gate.  The caller of all others but xac_env_open_dir holds
 *           it, or nobody else can reach the region.
 */
#ifndef XAC_ENV_ENTER_H
#define XAC_ENV_ENTER_H

#include "shared/env_state.h"

/*
 * xac_env_open_dir -- open the directory, which exists.
 * xac_env_enter -- open the lock file, then join or make.  ENOENT: a reader makes none.
 * xac_env_become -- become a participant with a slot; the others learn that they are not alone.
 * ret  0 or an error.
 */
int xac_env_open_dir(struct xac_env *env, const char *path);
int xac_env_enter(struct xac_env *env);
int xac_env_become(struct xac_env *env);

/* xac_env_unmap -- let go of region, buffers and log. */
void xac_env_unmap(struct xac_env *env);

/* xac_env_leave_gate -- leave the gate.  The lock on xac.master goes first: others who come in
   through the gate must not have to wait for it. */
void xac_env_leave_gate(struct xac_env *env);

/* xac_env_set_limits -- of region and version store; after a participant has come or gone. */
void xac_env_set_limits(struct xac_env *env);

/* xac_env_check_build -- ret 0, or XAC_EVERSION if the mapped region is that of another build
   of the library. */
int xac_env_check_build(const struct xac_env *env);

/* xac_env_check_region -- ret 0, or XAC_EDAMAGED if the mapped region, which is of our build, does
   not hold together (control_check.h). */
int xac_env_check_region(const struct xac_env *env);

#endif /* XAC_ENV_ENTER_H */
