/* SPDX-License-Identifier: MIT */
/*
 * env.h -- an environment in one process: opened, left, and what a fork does to it.
 *
 * OWNER     Who opens it; the public interface (api.h) does.
 * THREADS   Opened, closed and mapped into by one thread at a time (api.c sees to it).
 */
#ifndef XAC_ENV_H
#define XAC_ENV_H

#include <signal.h>

#include "shared/env_state.h"

/*
 * xac_env_open -- open or create the environment in a directory, recovering it if
 * nobody live is attached, and join.
 *
 * out  envp  to be closed by xac_env_close
 * ret  0 or an error as in xac_init().
 */
int xac_env_open(const char *path, int flags, const struct xac_env_options *options,
                 struct xac_env **envp);

/*
 * xac_env_close -- leave; the last one out checkpoints and deletes the region.
 * Views are unmapped already.  A child that has not joined does so first.  ret 0 or the first
 * error: of joining, of the checkpoint; env is freed.
 */
int xac_env_close(struct xac_env *env);

/*
 * xac_env_fork, fork_done -- before a fork, and after it in the parent: what threads of
 * this process share stands still in between.
 * xac_env_forked -- the same in the child: give up what is the parent's.
 *
 * in  first  of all environments that the process has open, linked by `next`
 */
void xac_env_fork(struct xac_env *first, sigset_t *signals);
void xac_env_fork_done(struct xac_env *first, const sigset_t *signals);
void xac_env_forked(struct xac_env *first, const sigset_t *signals);

/* xac_env_rejoin -- become a participant of one's own, if the process is a child that has
   not; by any thread.  ret 0 or an error. */
int xac_env_rejoin(struct xac_env *env);

#endif /* XAC_ENV_H */
