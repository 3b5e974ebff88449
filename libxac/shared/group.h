/* SPDX-License-Identifier: MIT */
/*
 * group.h -- what a commit of a group's leader waits for: that a majority has its log.
 *
 * WHAT      A group is several environments with the same log, one on each node (group_note.h).  One of them
 *           leads: its region says up to where a majority has the log, `replicated`, and whether the environment
 *           has been deposed.  The daemon of the node stores both; all others wait for them and look at them.
 * NOT HERE  How the log gets to the others; the daemon's calls (group/member.h).
 * OWNER     struct xac_group_shared lies in the control region.
 * LOCK      none.  A caller that waits may hold the checkpoint lock, as for xac_log_wait_durable().
 * THREADS   any thread; xac_group_is_deposed() also in the fault handler.
 *
 * INVARIANTS
 *   (1) `replicated` only grows while the region lives, and never passes `durable` (the daemon proposes only what
 *       is durable here).
 *   (2) `deposed` is stored once: 1 never becomes 0.  A position that `replicated` has passed stays
 *       acknowledged, whatever comes later.
 *   (3) Nothing is acknowledged, and nothing goes into a mapped file, the checksums of pages, the master record,
 *       a backup or an archive, before `replicated` has passed it: xac_group_bound().  (Files may become longer
 *       before.)
 *   (4) A thread that stores `deposed` stores first, then counts, then wakes; one that waits reads the count first (wakes.h).  So
 *       nobody sleeps on in a deposed environment.
 */
#ifndef XAC_GROUP_H
#define XAC_GROUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"
#include "shared/env_state.h"

/* xac_group_leads -- is the region that of a group's leader, deposed or not? */
XAC_SIGSAFE static inline bool
xac_group_leads(const struct xac_env *env)
{
    return env->ctl != NULL && env->ctl->group.leads != 0;
}

/* xac_group_is_deposed -- may nothing begin any more?  Also of a standby that is about to lead. */
XAC_SIGSAFE static inline bool
xac_group_is_deposed(const struct xac_env *env)
{
    /* Relaxed: the next look sees it; nothing else is read because of it. */
    return atomic_load_explicit(&env->ctl->group.deposed, memory_order_relaxed) != 0;
}

/* xac_group_replicated -- a majority has it up to there; of a leader. */
static inline uint64_t
xac_group_replicated(const struct xac_env *env)
{
    /* Acquire: pairs with the release in xac_group_raise. */
    return atomic_load_explicit(&env->ctl->group.replicated, memory_order_acquire);
}

/* xac_group_bound -- up to where the log may go into files, backups and archives: what is durable here, and on
   the leader of a group what a majority has, too. */
static inline uint64_t
xac_group_bound(const struct xac_env *env)
{
    /* `replicated` first: (1) says that it is not above what `durable` is a moment later. */
    uint64_t most = xac_group_leads(env) ? xac_group_replicated(env) : UINT64_MAX;
    /* Acquire: pairs with the release in flush_held. */
    uint64_t durable = atomic_load_explicit(&env->ctl->log.durable, memory_order_acquire);

    return most < durable ? most : durable;
}

/*
 * xac_group_wait -- return when a majority has everything below lsn, which is durable here.
 * xac_group_await -- the same, of a leader.
 *
 * If `replicated` stands still for XAC_OPT_GROUP_WAIT_MS the environment is deposed: the daemon is dead or stopped,
 * or has no majority and has not said so.
 * ret  0, at once without a group; XAC_EUNCERTAIN: deposed first, words noted; ETIMEDOUT: the thread's limit
 *      (lock.h) is over.
 */
int xac_group_await(struct xac_env *env, uint64_t lsn);
static inline int
xac_group_wait(struct xac_env *env, uint64_t lsn)
{
    return xac_unlikely(xac_group_leads(env)) ? xac_group_await(env, lsn) : 0;
}

/* xac_group_wait_durable -- the same, after xac_log_wait_durable(), whose errors it returns, too. */
int xac_group_wait_durable(struct xac_env *env, uint64_t lsn);

/* xac_group_sync -- the same for everything appended by now. */
int xac_group_sync(struct xac_env *env);

/* xac_group_check -- may something begin?  ret 0; XAC_ENOTLEADER, which names the leader, if that is known.
   xac_group_refuse -- the same, of a deposed environment. */
int xac_group_refuse(const struct xac_env *env, const char *what);
static inline int
xac_group_check(const struct xac_env *env, const char *what)
{
    return xac_unlikely(xac_group_is_deposed(env)) ? xac_group_refuse(env, what) : 0;
}

/* xac_group_check_path -- may a file be mapped?  in  path  as stored.  ret 0; EINVAL: in a group it must lie in the
   directory, so that other nodes have it by the same name. */
int xac_group_check_path(const struct xac_env *env, const char *path);

/* xac_group_raise -- a majority has the log up to there; lower positions than before are ignored.  The daemon. */
void xac_group_raise(struct xac_env *env, uint64_t lsn);

/* xac_group_depose -- nothing is acknowledged from now on but what a majority has. */
void xac_group_depose(struct xac_env *env);

/* xac_group_set_leader -- who leads, in words for people: up to XAC_GROUP_LEADER_BYTES with the NUL count; "" not
   known.  The daemon. */
void xac_group_set_leader(struct xac_env *env, const char *text);

/* xac_group_leader -- the same; at worst a mixture of two, if it is just being changed. */
void xac_group_leader(const struct xac_env *env, char text[XAC_GROUP_LEADER_BYTES]);

#endif /* XAC_GROUP_H */
