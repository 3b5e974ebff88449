/* SPDX-License-Identifier: MIT */
/*
 * env.c -- opening and leaving an environment, and what a fork does to it: see env.h.
 */
#include <config.h>

#include "env/env.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/lockfile.h"
#include "base/memory.h"
#include "base/sys.h"
#include "checkpoint/checkpoint.h"
#include "env/env_enter.h"
#include "env/env_frozen.h"
#include "env/reader.h"
#include "env/region_clear.h"
#include "env/thread.h"
#include "fault/fault_signal.h"
#include "shared/region.h"
#include "shared/registry.h"
#include "store/frozen.h"
#include "store/outofcore.h"
#include "txn/alone.h"
#include "txn/ctx.h"
#include "txn/history.h"
#include "txn/reap.h"
#include "txn/snapshots.h"
#include "view/fault.h"
#include "view/guard.h"
#include "view/view.h"

/* ---- In and out ------------------------------------------------------------------------ */

/* open_writer -- the environment, made if missing; with all rights. */
static int
open_writer(struct xac_env *env, const char *path)
{
    int rc;

    if (xac_sys.mkdirat(AT_FDCWD, path, 0777) != 0 && errno != EEXIST)
        return xac_err(errno, "%s", path);
    rc = xac_env_open_dir(env, path);
    return rc == 0 ? xac_env_enter(env) : rc;
}

/* is_out_of_reach -- an error of a reader that cannot take part. */
static bool
is_out_of_reach(int rc)
{
    return rc == ENOENT || rc == EACCES || rc == EPERM || rc == EROFS
           || rc == XAC_ENOTSHARED || rc == XAC_ENAMESPACE || rc == XAC_ELOCKLOST;
}

/* is_attached -- does anybody take part?  A hint; nothing is made, and nobody waits for. */
static int
is_attached(const struct xac_env *env)
{
    int fd = xac_sys.openat(env->dirfd, XAC_LOCK_NAME, O_RDWR | O_CLOEXEC, 0);
    int rc;

    if (fd < 0)
        return xac_err(errno, "%s/%s", env->dir, XAC_LOCK_NAME);
    rc = xac_region_attached(env->dirfd, env->dir, fd);
    (void)xac_sys.close(fd);
    return rc == 0 ? xac_err(ENOENT, "nobody is attached to %s", env->dir) : rc;
}

/* enter_live -- a reader takes part, if somebody is attached and it may. */
static int
enter_live(struct xac_env *env)
{
    int rc = is_attached(env);

    if (rc != XAC_ELIVE)
        return rc;
    env->reader = XAC_READER_LIVE;
    return xac_env_enter(env);
}

/* open_reader -- live if that is possible, else frozen; then xac_err_text() says why. */
static int
open_reader(struct xac_env *env, const char *path)
{
    int rc = xac_env_open_dir(env, path);

    if (rc != 0)
        return rc == ENOENT ? xac_err(XAC_ENOTENV, "%s: no such directory", path) : rc;
    rc = enter_live(env);
    if (!is_out_of_reach(rc))
        return rc;
    env->reader = XAC_READER_FROZEN;
    rc = xac_env_freeze(env);
    if (rc == 0)
        rc = xac_env_frozen_enter(env);
    if (rc != 0)
        xac_env_unmap(env);
    return rc;
}

/* is_last -- nobody else alive is attached; gate held, the dead are cleaned up. */
static bool
is_last(const struct xac_env *env)
{
    return xac_registry_attached(env) <= 1;
}

/* walk_out -- leave as the dead do, without the gate: others clean up. */
static void
walk_out(struct xac_env *env)
{
    sigset_t signals;

    xac_signals_block(&signals);
    xac_checkpoint_forked(env);
    xac_env_unmap(env);
    xac_handle_close(env->masterfd, &env->master_handle);
    xac_signals_restore(&signals);
}

/* leave -- ret 0 or the first error; the process takes no part then, either. */
static int
leave(struct xac_env *env)
{
    sigset_t signals;
    bool last;
    int rc = xac_env_rejoin(env);

    if (rc == 0)
        rc = xac_env_mend(env);
    if (rc == 0)
        rc = xac_gate_enter(env->lockfd);
    if (rc != 0) {
        walk_out(env);
        return rc;
    }
    xac_signals_block(&signals);
    /* The last one out must know that it is; another participant with a lock on its byte is alive. */
    if (xac_alive_any(env->lockfd))
        xac_reap_some(env);
    else
        xac_reap_dead(env);
    last = is_last(env);
    if (!last)
        xac_checkpoint_leave(env);
    if (last)
        xac_history_end(env);
    xac_snapshots_leave(env, last); /* nothing holds the last checkpoint back */
    rc = xac_reader_settle(env, last);
    if (!last)
        xac_alone_offer(env, true);
    xac_ctx_close(env, &env->ctx);
    xac_registry_leave(env);
    xac_env_set_limits(env);
    if (last) {
        atomic_store_explicit(&env->ctl->closed, 1, memory_order_relaxed);
        if (xac_env_is_durable(env))
            xac_log_wake_followers(&env->ctl->log);
        if (env->frozen == NULL)
            xac_region_remove(env->dirfd, env->region);
    }
    xac_env_unmap(env);
    xac_signals_restore(&signals);
    xac_env_leave_gate(env);
    return rc;
}

/* Open environments of the process; the engine serves all of them. */
static unsigned n_open;

/* engine_leave -- stop the engine after the last environment. */
static void
engine_leave(void)
{
    if (--n_open > 0)
        return;
    xac_engine_stop();
    xac_guard_forget_gone();
}

static void
env_free(struct xac_env *env)
{
    xac_handle_close(env->lockfd, &env->lock_handle);
    xac_handle_close(env->dirfd, &env->dir_handle);
    (void)pthread_mutex_destroy(&env->threads);
    if (env->frozen != NULL)
        xac_frozen_free(env->frozen);
    free(env->frozen);
    xac_address_list_free(&env->addresses);
    free(env->dir);
    free(env->log_wish);
    free(env);
}

/* check_team -- where mappings are the pages, others must not see one half written. */
static int
check_team(const struct xac_env *env)
{
    int rc, why;

    if (env->options.team == 0 || xac_engine_kind(&why) != XAC_ENGINE_SIGSEGV)
        return 0;
    rc = xac_poke_works();
    return rc == 0 ? 0
                   : xac_err(ENOTSUP,
                             "XAC_OPT_TEAM: the engine sigsegv needs /proc/self/mem: %s",
                             strerror(rc));
}

/* check_engine -- only uffd shows pages that are not a file's. */
static int
check_engine(const struct xac_env *env)
{
    int why, rc = check_team(env);

    if (rc != 0)
        return rc;
    if (!xac_outofcore_is_on(env) || xac_engine_kind(&why) == XAC_ENGINE_UFFD
        || xac_engine_kind(&why) == XAC_ENGINE_SCAN)
        return 0;
    return why == 0 ? xac_err(ENOTSUP, "XAC_OPT_FRAMES needs the engine uffd")
                    : xac_err(ENOTSUP,
                              "XAC_OPT_FRAMES needs the engine uffd, which "
                              "cannot be had: %s",
                              strerror(why));
}

/* engine_enter -- start the engine for the first environment; it must suit this one. */
static int
engine_enter(const struct xac_env *env)
{
    int rc = n_open == 0 ? xac_engine_start(&xac_view_owner, env->options.engine) : 0;
    int why;

    if (rc != 0)
        return rc;
    n_open++;
    rc = check_engine(env);
    if (rc != 0)
        engine_leave();
    else if (env->ctl != NULL) /* relaxed: for people */
        atomic_store_explicit(&xac_participant_at(env, env->self)->engine,
                              (uint32_t)xac_engine_kind(&why), memory_order_relaxed);
    return rc;
}

int
xac_env_open(const char *path, int flags, const struct xac_env_options *options,
             struct xac_env **envp)
{
    struct xac_env *env = (struct xac_env *)calloc(1, sizeof *env);
    long page_size = sysconf(_SC_PAGESIZE);
    int rc;

    if (env == NULL)
        return xac_err(ENOMEM, "%s", path);
    env->dirfd = env->lockfd = env->masterfd = env->logfd = -1;
    (void)pthread_mutex_init(&env->threads, NULL);
    env->flags = flags;
    env->opened_ns = xac_clock_ns();
    env->page_size = (size_t)page_size;
    env->page_shift = (unsigned)__builtin_ctzl((unsigned long)page_size);
    env->memory_bytes = xac_memory_bytes();
    env->options = *options;
    if (options->announces != 0 && xac_env_checking(env) != XAC_CHECKING_TRUSTED)
        xac_fault_prepare();
    rc = xac_signal_check_stack();
    if (rc == 0 && options->team != 0 && xac_env_checking(env) == XAC_CHECKING_TRUSTED)
        rc = xac_err(EINVAL,
                     "XAC_OPT_TEAM: not with XAC_CHECKING_TRUSTED, for threads that "
                     "make no call cannot announce their stores; let them xJoin()");
    if (rc == 0 && options->log_dir != NULL) {
        env->options.log_dir = env->log_wish = strdup(options->log_dir);
        rc = env->log_wish == NULL ? xac_err(ENOMEM, "%s", path) : 0;
    }
    if (rc == 0)
        rc = flags == XAC_READONLY ? open_reader(env, path) : open_writer(env, path);
    if (rc == 0) {
        rc = engine_enter(env);
        if (rc != 0)
            (void)leave(env);
    }
    if (rc != 0)
        env_free(env);
    else
        *envp = env;
    return rc;
}

int
xac_env_close(struct xac_env *env)
{
    int rc = leave(env);

    engine_leave();
    env_free(env);
    return rc;
}

/* ---- fork ------------------------------------------------------------------------------ */

void
xac_env_fork(struct xac_env *first, sigset_t *signals)
{
    xac_signals_block(signals);
    xac_signals_pin(true);
    for (struct xac_env *env = first; env != NULL; env = env->next)
        (void)pthread_mutex_lock(&env->threads);
    for (struct xac_env *env = first; env != NULL; env = env->next)
        xac_thread_fork(env);
    xac_signal_fork();
    xac_guard_fork();
}

/* go_on -- threads of this process may use what they share again. */
static void
go_on(struct xac_env *first, const sigset_t *signals)
{
    for (struct xac_env *env = first; env != NULL; env = env->next)
        (void)pthread_mutex_unlock(&env->threads);
    xac_signals_pin(false);
    xac_signals_restore(signals);
}

void
xac_env_fork_done(struct xac_env *first, const sigset_t *signals)
{
    xac_guard_fork_done();
    xac_signal_fork_done();
    for (struct xac_env *env = first; env != NULL; env = env->next)
        xac_thread_fork_done(env);
    go_on(first, signals);
}

/* let_go -- of what makes a participant alive; others clean up. */
static void
let_go(struct xac_env *env)
{
    xac_handle_close(env->lockfd, &env->lock_handle);
    xac_handle_close(env->masterfd, &env->master_handle);
    env->lockfd = env->masterfd = -1;
    atomic_flag_clear_explicit(&env->mending, memory_order_relaxed);
    xac_checkpoint_forked(env);
}

/* forked -- in the child, for one environment. */
static void
forked(struct xac_env *env)
{
    xac_view_in_place_forked(env); /* before anything asks for versions of its pages */
    xac_thread_forked(env);
    /* The descriptions are the parent's: as long as we hold them, it seems alive. */
    let_go(env);
    /* Relaxed: no other thread is there yet. */
    atomic_store_explicit(&env->is_forked, true, memory_order_relaxed);
    if (xac_half_done.is_inherited && env->ctl != NULL)
        xac_shm_bar(&env->shm);
}

void
xac_env_forked(struct xac_env *first, const sigset_t *signals)
{
    xac_guard_fork_done();
    xac_engine_forked();
    xac_lock_forget();
    xac_ctx_opened = NULL;
    xac_touched_renew(xac_ctx_opened);
    for (struct xac_env *env = first; env != NULL; env = env->next)
        forked(env);
    go_on(first, signals);
}

/* rejoin -- in a child, once; env->threads held. */
static int
rejoin(struct xac_env *env)
{
    int rc = 0;

    if (env->ctl != NULL)
        xac_env_unmap(env);
    if (xac_env_dirfd(env) < 0)
        return xac_err(XAC_EDESCRIPTOR, "%s: %s", env->dir, strerror(errno));
    env->memory_bytes = xac_memory_bytes(); /* it may be in another control group */
    rc =
        env->reader == XAC_READER_FROZEN ? xac_env_frozen_enter(env) : xac_env_enter(env);
    if (rc == 0)
        rc = xac_view_rejoin_all(env, &env->ctx);
    for (struct xac_ctx *c = env->others; c != NULL && rc == 0; c = c->next)
        rc = xac_view_rejoin_all(env, c);
    if (rc != 0) {
        /* As after the fork: the next call joins with all views, or fails, too. */
        xac_thread_forget(env);
        let_go(env);
        return rc;
    }
    /* Release: pairs with the acquire in xac_env_is_forked. */
    atomic_store_explicit(&env->is_forked, false, memory_order_release);
    return rc;
}

int
xac_env_rejoin(struct xac_env *env)
{
    sigset_t signals;
    int rc = 0;

    if (xac_likely(!xac_env_is_forked(env)))
        return 0;
    xac_threads_lock(env, &signals);
    if (xac_env_is_forked(env))
        rc = rejoin(env);
    xac_threads_unlock(env, &signals);
    return rc;
}
