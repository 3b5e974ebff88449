/* SPDX-License-Identifier: MIT */
/*
 * thread.h -- threads with transactions of their own (xView).
 *
 * WHAT      The process has one context, which its threads share, one at a time.  A
 *           thread that asks for a view of its own gets a context of its own: a
 *           transaction slot and views, private to the thread until it gives up the last
 *           of them or ends; one in each environment in which it has asked. To everybody else it is one more participant's slot.
 *           A thread with translated transactions (xac_translate.h) has a further context, which is
 *           idle between them: then it counts for nobody, and others may take its views, or all of
 *           it.  The context's turn (owner) decides.
 * LOCK      env->threads, a mutex of the process: the list of contexts, the process's
 *           list of views (which only its turn's holder changes, so that holder may read
 *           it without), n_clones of a view; joining after a fork.  Taken before the gate,
 *           with signals blocked; held while the process forks, so that the child finds
 *           everything whole.
 *
 * INVARIANTS
 *   (1) A context in the list belongs to a thread that exists.
 *   (2) A view with clones stays: its file descriptor and shared mapping serve them.
 *   (3) The participant's count of contexts is 1 + the length of the list.
 */
#ifndef XAC_THREAD_H
#define XAC_THREAD_H

#include <signal.h>

#include "base/annot.h"

struct xac_ctx;
struct xac_env;
struct xac_view;

/*
 * xac_thread_view -- the calling thread's own view of the segment that the process has
 * mapped at base; made if there is none yet.  One thread of the process at a time, whatever
 * the environment.
 *
 * ret  0; XAC_ENOTMAPPED; ENOMEM and other errno values.
 */
int xac_thread_view(struct xac_env *env, const void *base, struct xac_view **viewp);

/*
 * xac_thread_unview -- give up the calling thread's own view at base; with the last one
 * goes its context.  ret 0 or XAC_ENOTMAPPED.
 */
int xac_thread_unview(struct xac_env *env, const void *base);

/*
 * xac_thread_leave -- give up all views of the calling thread, if it has any of its own;
 * a transaction still open is aborted.
 */
void xac_thread_leave(struct xac_env *env);

/*
 * xac_thread_translate -- the calling thread's context for translated transactions, with a view of each
 * segment of the process; it is the thread's context from now on, until set_idle.
 *
 * ret  0; ENOMEM and other errno values.
 */
int xac_thread_translate(struct xac_env *env, struct xac_ctx **ctxp);

/* xac_thread_set_idle -- the thread has the process's context again. */
void xac_thread_set_idle(struct xac_ctx *ctx);

/* xac_thread_drop -- before a view of the process is unmapped or resized: contexts that are idle
   give up theirs of it, and none begins until that has been done or has failed. */
void xac_thread_drop(struct xac_env *env, struct xac_view *origin);

/* xac_thread_dismiss -- before the environment is closed, if it is: no context is idle any more.
   xac_api_lock is held, so that no thread ends. */
void xac_thread_dismiss(struct xac_env *env);

/* xac_thread_ended -- the calling thread ends: it leaves all environments.  xac_api_lock held. */
void xac_thread_ended(void);

/* xac_thread_others -- number of other threads that have contexts of their own. */
unsigned xac_thread_others(struct xac_env *env);

/* xac_threads_lock, unlock -- take and leave env->threads. */
void xac_threads_lock(struct xac_env *env, sigset_t *signals);
void xac_threads_unlock(struct xac_env *env, const sigset_t *signals);

/* xac_thread_fork, fork_done -- before a fork, and after it in the parent: no thread is in the
   middle of an access that counts for another's transaction.  env->threads held. */
void xac_thread_fork(struct xac_env *env);
void xac_thread_fork_done(struct xac_env *env);

/*
 * xac_thread_forked -- in a child, after the engine: the other threads are gone, their
 * contexts go, too.  env->threads held.
 */
void xac_thread_forked(struct xac_env *env);

/* xac_thread_forget -- in a child that has not joined, or not with all views: all contexts are
   without transactions and without access.  env->threads held. */
void xac_thread_forget(struct xac_env *env);

/* xac_thread_rejoin -- new slots for the contexts that are left; gate held. */
int xac_thread_rejoin(struct xac_env *env);

#endif /* XAC_THREAD_H */
