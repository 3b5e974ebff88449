/* SPDX-License-Identifier: MIT */
/*
 * group.h -- what a commit of a group's leader waits for: that a majority has its log.
 *
 * WHAT      A group is several environments with the same log, one on each node (group_note.h).  One of them
 *           leads: its region says up to where a majority has the log, `replicated`, and whether the environment
 *           has been deposed.  The daemon of the node stores both; all others wait for them and look at them.
 *           At any node those who want to see what is newest ask its daemon.
 * NOT HERE  How the log gets to the others; the daemon's calls (group/member.h).
 * OWNER     struct xac_group_shared lies in the control region.
 * LOCK      none.  A caller that waits may hold the checkpoint lock, as for xac_log_wait_durable().
 * THREADS   any thread; xac_group_is_deposed() also in the fault handler.
 *
 * ASKING    Who wants to see all that was acknowledged before counts `asked`, and wakes the daemon.  The daemon reads the count,
 *           then has a majority say that the log of the one that leads is complete up to a position (a barrier of
 *           Raft that is begun behind the reading), and answers all that had asked by then: position, then count.
 *
 * INVARIANTS
 *   (1) `replicated` only grows while the region lives, and never passes `written` (the daemon proposes only what
 *       is written here).  It may pass `durable`: then a majority has synced what is being synced here.
 *   (2) `deposed` is stored once: 1 never becomes 0.  A position that `replicated` has passed stays
 *       acknowledged, whatever comes later.
 *   (3) Nothing is acknowledged, and nothing goes into a mapped file, the checksums of pages, the master record,
 *       a backup or an archive, before both `durable` and `replicated` have passed it: xac_group_bound().  (Files may
 *       become longer before.)
 *   (4) A thread that stores `deposed` stores first, then counts, then wakes; one that waits reads the count first (wakes.h).  So
 *       nobody sleeps on in a deposed environment.
 *   (5) `answered_lsn` only grows, and is the end of what has been accepted, so no log is cut off below it.  One that finds a later
 *       answer than the one to its own question waits for a little more.
 */
#ifndef XAC_GROUP_H
#define XAC_GROUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"
#include "shared/env_state.h"

/* A transaction of a group changes no more bytes than that, each page counted whole: as such it is logged when it is
   large.  After as many bytes a daemon shortens Raft's log (xraftd --snapshot-mib). */
#define XAC_GROUP_CHANGES_MAX ((uint64_t)64 << 20)

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
    uint64_t most = xac_group_leads(env) ? xac_group_replicated(env) : UINT64_MAX;
    /* Acquire: pairs with the release in flush_held. */
    uint64_t durable = atomic_load_explicit(&env->ctl->log.durable, memory_order_acquire);

    return most < durable ? most : durable;
}

/*
 * xac_group_wait -- return when a majority has everything below lsn; that it is durable here the caller has waited for.
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

/*
 * xac_group_check_changes -- may a transaction change so many pages?
 *
 * The daemons keep a transaction in memory until its last byte counts, because Raft's log is not shortened in the middle
 * of one: each of them once, and that of the leader twice.  So it may be as large as what gathers there otherwise.
 * ret  0, always without a group; EFBIG: more than XAC_GROUP_CHANGES_MAX bytes, words noted.
 * xac_group_refuse_changes -- the same, of one that is too large.
 */
int xac_group_refuse_changes(const struct xac_env *env);
static inline int
xac_group_check_changes(const struct xac_env *env, uint64_t pages)
{
    return xac_unlikely(pages > XAC_GROUP_CHANGES_MAX >> env->page_shift)
                   && xac_group_leads(env)
               ? xac_group_refuse_changes(env)
               : 0;
}

/* xac_group_raise -- a majority has the log up to there; lower positions than before are ignored.  The daemon. */
void xac_group_raise(struct xac_env *env, uint64_t lsn);

/* xac_group_depose -- nothing is acknowledged from now on but what a majority has. */
void xac_group_depose(struct xac_env *env);

/* xac_group_set_leader -- who leads, in words for people: up to XAC_GROUP_LEADER_BYTES with the NUL count; "" not
   known.  The daemon. */
void xac_group_set_leader(struct xac_env *env, const char *text);

/* xac_group_leader -- the same; at worst a mixture of two, if it is just being changed. */
void xac_group_leader(const struct xac_env *env, char text[XAC_GROUP_LEADER_BYTES]);

/* ---- What is newest ------------------------------------------------------------------ */

/*
 * xac_group_latest -- wait until all that was acknowledged, at any node, before the call is here; no lock is held.
 *
 * At a node that follows queries that begin now see it.  At the one that leads `replicated` has passed it, which may be before
 * its writer has published it: the caller waits for that, too, by xac_txn_await_shown() (commit/txn.h).
 *
 * ret  0, at once where nobody else writes or leads; XAC_ENOTLEADER: a standby that is in no group, or deposed; ETIMEDOUT; words
 *      noted.
 */
int xac_group_latest(struct xac_env *env, uint32_t wait_ms);

/* xac_group_asked -- how many have asked; xac_group_answered -- how many have an answer.  The daemon. */
uint64_t xac_group_asked(const struct xac_env *env);
uint64_t xac_group_answered(const struct xac_env *env);

/* xac_group_answer -- the first n that have asked see all up to there, when redo has come so far.  The daemon. */
void xac_group_answer(struct xac_env *env, uint64_t n, uint64_t lsn);

/* xac_group_hear -- sleep until somebody asks who has not been answered, or for so long.  The daemon. */
void xac_group_hear(struct xac_env *env, unsigned timeout_ms);

/* ---- Waiting for what the region says --------------------------------------------------- */

/* Until when somebody waits. */
struct xac_group_patience {
    uint64_t until_ns; /* monotonic                                                    */
};

struct xac_group_patience xac_group_patience(uint32_t wait_ms);

/* xac_group_listen -- before a look at what is waited for; ret for xac_group_sleep(). */
uint32_t xac_group_listen(const struct xac_env *env);

/* xac_group_sleep -- until something may have changed since then; ret 0: look again; ETIMEDOUT. */
int xac_group_sleep(struct xac_env *env, uint32_t seen,
                    const struct xac_group_patience *patience);

/* xac_group_tell -- wake all who wait, behind a change (4). */
void xac_group_tell(struct xac_env *env);

#endif /* XAC_GROUP_H */
