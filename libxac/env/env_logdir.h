/* SPDX-License-Identifier: MIT */
/*
 * env_logdir.h -- which directory the log of an environment lies in (logdir.h).
 *
 * LOCK      The gate.
 */
#ifndef XAC_ENV_LOGDIR_H
#define XAC_ENV_LOGDIR_H

struct xac_env;
struct xac_master_slot;

/*
 * xac_env_logdir_settle -- where the log is to lie, before there is one; nobody is attached.
 * xac_env_logdir_open -- open the directory.
 * xac_env_logdir_join -- the same, if it is also the directory that this process has asked
 * for; EBUSY if it is another one.
 * ret 0 or an error.
 */
int xac_env_logdir_settle(const struct xac_env *env,
                          const struct xac_master_slot *master);
int xac_env_logdir_open(struct xac_env *env, const struct xac_master_slot *master);
int xac_env_logdir_join(struct xac_env *env, const struct xac_master_slot *master);

#endif /* XAC_ENV_LOGDIR_H */
