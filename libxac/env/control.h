/* SPDX-License-Identifier: MIT */
/*
 * control.h -- filling in the head of a new control region (layout.h).
 */
#ifndef XAC_CONTROL_H
#define XAC_CONTROL_H

struct xac_env;
struct xac_master_slot;

/* xac_control_init -- fill in the head of a new region, env->ctl, from the options; ret 0 or an
   error. */
int xac_control_init(struct xac_env *env, const struct xac_master_slot *master);

/* xac_control_init_log -- the same for the log of a durable environment; log directory open. */
int xac_control_init_log(struct xac_env *env, const struct xac_master_slot *master);

#endif /* XAC_CONTROL_H */
