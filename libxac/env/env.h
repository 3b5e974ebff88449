/* SPDX-License-Identifier: MIT */
/*
 * env.h -- an environment as one process has it open: directory, control region, log,
 * the contexts of its transactions.
 *
 * OWNER     The process; one at a time.  The public interface (api.c) holds it.
 * THREADS   Opened, closed and mapped into by one thread at a time (api.c sees to it).
 *           What is not atomic here does not change while it is open, or says its lock.
 */
#ifndef XAC_ENV_H
#define XAC_ENV_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

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
 * xac_env_logdir_settle -- where the log is to lie, before there is one; gate held, nobody
 * attached.
 * xac_env_logdir_open -- open the directory.  xac_env_logdir_join -- the same, if the live
 * participants' is the one that is asked for; EBUSY if it is not.
 * ret 0 or an error.
 */
struct xac_master_slot;
int xac_env_logdir_settle(const struct xac_env *env,
                          const struct xac_master_slot *master);
int xac_env_logdir_open(struct xac_env *env, const struct xac_master_slot *master);
int xac_env_logdir_join(struct xac_env *env, const struct xac_master_slot *master);

/*
 * xac_env_close -- leave; the last one out checkpoints and deletes the region.
 * Views are unmapped already.  ret 0 or the checkpoint's error; env is freed.
 */
int xac_env_close(struct xac_env *env);

/*
 * For reader.c and env_frozen.c.
 * xac_env_open_dir -- the directory, which exists.
 * xac_env_enter -- through the gate: join or make; lock file open.  ENOENT: a reader makes none.
 * xac_env_become -- participant, with a slot; the others learn that they are not alone.
 * xac_env_unmap -- let go of region, buffers and log.
 * ret  0 or an error.
 */
int xac_env_open_dir(struct xac_env *env, const char *path);
int xac_env_enter(struct xac_env *env);
int xac_env_become(struct xac_env *env);
void xac_env_unmap(struct xac_env *env);

/* xac_env_check_build -- ret 0, or XAC_EVERSION if the mapped region is that of another build
   of the library. */
int xac_env_check_build(const struct xac_env *env);

/* xac_env_check_region -- ret 0, or XAC_EDAMAGED if the mapped region, which is of our build, does
   not hold together (control_check.h). */
int xac_env_check_region(const struct xac_env *env);

/*
 * xac_env_fork, fork_done -- before a fork, and after it in the parent: what threads of
 * this process share stands still in between.
 * xac_env_forked -- the same in the child: give up what is the parent's.
 * xac_env_rejoin -- become a participant of one's own, if the process is a child that has
 * not; by any thread.  ret 0 or an error.
 */
void xac_env_fork(struct xac_env *env, sigset_t *signals);
void xac_env_fork_done(struct xac_env *env, const sigset_t *signals);
void xac_env_forked(struct xac_env *env, const sigset_t *signals);
int xac_env_rejoin(struct xac_env *env);

#endif /* XAC_ENV_H */
