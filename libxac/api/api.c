/* SPDX-License-Identifier: MIT */
/*
 * api.c -- turns, forks, and the entry points for log and statistics: see api.h.
 */
#include <config.h>

#include "api/api.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include <xac.h>
#include <xac_env.h>

#include "base/digest.h"
#include "base/lock.h"
#include "base/sized.h"
#include "base/tls.h"
#include "base/tsan.h"
#include "checkpoint/archive.h"
#include "checkpoint/checkpoint.h"
#include "env/reader.h"
#include "env/stats.h"
#include "shared/group.h"
#include "txn/ctx.h"

struct xac_env *xac_api_env;
struct xac_env *xac_api_all;

/*
 * Guards opening, closing, the list of environments, the options, and what must not meet a
 * closing.  It is held while the process forks; a signal handler may fork while its own thread
 * has the lock.  Taken before env->threads.
 */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static XAC_TLS int open_depth; /* how often this thread has it */

void
xac_api_lock(void)
{
    if (open_depth++ == 0)
        (void)pthread_mutex_lock(&open_lock);
}

void
xac_api_unlock(void)
{
    if (--open_depth == 0)
        (void)pthread_mutex_unlock(&open_lock);
}

static sigset_t fork_signals; /* of the thread that forks; under open_lock */

/* ---- Turns --------------------------------------------------------------------------- */

/* take_turn -- keep other threads out; ret 0, XAC_EINTXN if we have a transaction, EBUSY. */
static int
take_turn(struct xac_ctx *ctx, const char *what)
{
    pthread_t none = 0;

    if (xac_api_is_mine(ctx))
        return xac_err(XAC_EINTXN, "%s", what);
    /* Acquire: pairs with the release in xac_api_done. */
    if (!atomic_compare_exchange_strong_explicit(&ctx->owner, &none, pthread_self(),
                                                 memory_order_acquire,
                                                 memory_order_relaxed))
        return xac_err(EBUSY, "%s: another thread has a transaction open", what);
    xac_tsan_enter();
    xac_tsan_acquire();
    return 0;
}

_Noreturn void
xac_api_interrupted(const char *what)
{
    static _Atomic bool has_said;

    xac_say_once(
        &has_said,
        xac_half_done.is_inherited
            ? "%s: " XAC_INHERITED_FAULT ": " XAC_INHERITED_HINT
            : "%s: a signal handler called it in the middle of xbegin() or xend(), or "
              "has left it by longjmp() or pthread_exit() (xac.h, rule 5)",
        what);
    abort();
}

int
xac_api_any_opened(const char *what)
{
    return xac_api_opened(xac_api_all, what);
}

int
xac_api_check_sized(const char *what, const void *out, size_t size, size_t first_bytes)
{
    if (out == NULL)
        return xac_err(EINVAL, "%s: NULL", what);
    if (size < first_bytes)
        return xac_err(EINVAL, "%s: a structure of %zu bytes has no room for a field",
                       what, size);
    return 0;
}

/* joined -- join after a fork; the turn is given back if that fails. */
static int
joined(struct xac_ctx *ctx)
{
    int rc = xac_env_rejoin(ctx->env);

    if (rc != 0)
        xac_api_done(ctx);
    return rc;
}

int
xac_api_start(struct xac_env *env, const char *what, struct xac_ctx **ctxp)
{
    int rc = xac_api_opened(env, what);

    if (rc != 0)
        return rc;
    *ctxp = xac_ctx_mine(env);
    rc = take_turn(*ctxp, what);
    return rc == 0 ? joined(*ctxp) : rc;
}

int
xac_api_take_process(struct xac_env *env, const char *what, struct xac_ctx **ctxp)
{
    int rc = xac_api_opened(env, what);

    if (rc == 0 && xac_api_is_mine(xac_ctx_mine(env)))
        rc = xac_err(XAC_EINTXN, "%s", what);
    if (rc != 0)
        return rc;
    *ctxp = &env->ctx;
    return take_turn(*ctxp, what);
}

int
xac_api_start_process(struct xac_env *env, const char *what, struct xac_ctx **ctxp)
{
    int rc = xac_api_take_process(env, what, ctxp);

    return rc == 0 ? joined(*ctxp) : rc;
}

int
xac_api_start_own(struct xac_env *env, const char *what)
{
    int rc;

    xac_api_lock();
    rc = xac_api_opened(env, what);
    if (rc == 0 && xac_api_is_mine(xac_ctx_mine(env)))
        rc = xac_err(XAC_EINTXN, "%s", what);
    if (rc == 0)
        rc = xac_env_rejoin(env);
    if (rc != 0)
        xac_api_unlock();
    else
        xac_tsan_enter();
    return rc;
}

void
xac_api_done_own(void)
{
    xac_tsan_leave();
    xac_api_unlock();
}

int
xac_api_errno(int rc)
{
    switch (rc) {
    case XAC_ENOINIT:
    case XAC_EINTXN:
        return EPERM;
    case XAC_EMAPPED:
        return EEXIST;
    case XAC_EREPLACED:
        return ESTALE;
    case XAC_EINUSE:
        return EBUSY;
    case XAC_EREADONLY:
    case XAC_ENOTLEADER:
        return EROFS;
    case XAC_ENOTMAPPED:
        return EINVAL;
    default:
        return rc > 0 ? rc : EIO;
    }
}

/* ---- fork -------------------------------------------------------------------------------- */

static void
before_fork(void)
{
    xac_api_lock();
    if (xac_api_all != NULL)
        xac_env_fork(xac_api_all, &fork_signals);
}

static void
after_fork(void)
{
    sigset_t signals = fork_signals;

    if (xac_api_all != NULL)
        xac_env_fork_done(xac_api_all, &signals);
    xac_api_unlock();
}

bool
xac_api_is_within(void)
{
    for (struct xac_env *env = xac_api_all; env != NULL; env = env->next) {
        const struct xac_ctx *ctx = xac_ctx_mine(env);

        if (xac_api_is_mine(ctx) && (ctx->depth == 0 || ctx->is_ending))
            return true;
    }
    return false;
}

/* on_fork -- in the child, before anything else runs there. */
static void
on_fork(void)
{
    sigset_t signals = fork_signals;

    if (xac_api_is_within())
        xac_half_done.is_inherited = true;
    xac_tls_forked();
    for (struct xac_env *env = xac_api_all; env != NULL; env = env->next) {
        if (!xac_api_is_mine(&env->ctx))
            env->ctx.depth = 0; /* of a thread that does not exist here */
    }
    if (xac_api_all != NULL)
        xac_env_forked(xac_api_all, &signals);
    for (struct xac_env *env = xac_api_all; env != NULL; env = env->next) {
        xac_api_done(&env->ctx);
        xac_api_done(xac_ctx_mine(env));
    }
    xac_api_unlock();
}

/* watch_forks -- when the library is loaded: from now on a fork() finds everything whole. */
__attribute__((constructor)) static void
watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, on_fork);
}

/* ---- The log --------------------------------------------------------------------------- */

int
xac_checkpoint_in(struct xac_env *env)
{
    struct xac_ctx *ctx;
    int rc = xac_api_start(env, "xCheckpoint", &ctx);

    if (rc != 0)
        return rc;
    rc = xac_reader_check_writer(env, "xCheckpoint");
    if (rc == 0)
        rc = xac_env_mend(env);
    if (rc == 0)
        rc = xac_checkpoint_run(env, false);
    xac_api_done(ctx);
    return rc;
}

int
xac_sync_in(struct xac_env *env)
{
    int rc = xac_api_opened(env, "xSync");
    sigset_t signals;

    /* After a fork nothing has been committed by this process.  Relaxed: nothing else is
       read because of it. */
    if (rc != 0 || !xac_env_is_durable(env)
        || atomic_load_explicit(&env->is_forked, memory_order_relaxed))
        return rc;
    xac_signals_block(&signals);
    rc = xac_group_sync(env);
    xac_signals_restore(&signals);
    return rc;
}

int
xac_archive_in(struct xac_env *env, char ***names, size_t *count)
{
    struct xac_ctx *ctx;
    int rc;

    if (names == NULL || count == NULL)
        return xac_err(EINVAL, "xArchive: NULL");
    rc = xac_api_start(env, "xArchive", &ctx);
    if (rc != 0)
        return rc;
    rc = xac_reader_check_writer(env, "xArchive");
    if (rc == 0)
        rc = xac_env_mend(env);
    if (rc == 0)
        rc = xac_archive_names(env, names, count);
    xac_api_done(ctx);
    return rc;
}

/* ---- Information ------------------------------------------------------------------------ */

const char *
xac_last_error(void)
{
    return xac_err_text();
}

int
xac_get_stats_in(struct xac_env *env, struct xac_stats *out, size_t size)
{
    struct xac_stats all;
    int rc = xac_api_opened(env, "xStats");

    static_assert(XAC_SIZED_IS_DENSE(struct xac_stats, queries_cut),
                  "name the last field");
    if (rc == 0)
        rc = xac_env_rejoin(env);
    if (rc == 0)
        rc = xac_api_check_sized("xStats", out, size, sizeof out->commits);
    if (rc != 0)
        return rc;
    xac_stats_read(env, &all);
    xac_sized_fill(out, size, &all, sizeof all);
    return 0;
}

/* ---- version ----------------------------------------------------------------------------- */

#define TEXT(x)    #x
#define TEXT_OF(x) TEXT(x)
#define VERSION_OF_HEADER \
 TEXT_OF(XAC_VERSION_MAJOR) "." TEXT_OF(XAC_VERSION_MINOR) "." TEXT_OF(XAC_VERSION_PATCH)
static_assert(__builtin_strcmp(VERSION_OF_HEADER, PACKAGE_VERSION) == 0,
              "xac.h and configure.ac name the same version");

const char *
xac_version(void)
{
    return PACKAGE_VERSION;
}

unsigned
xac_version_number(void)
{
    return XAC_VERSION_NUMBER;
}

uint64_t
xac_hash(const void *data, size_t length)
{
    return xac_xxh64(data, length);
}

/* ---- On the default environment ----------------------------------------------------------- */

int
xac_checkpoint(void)
{
    return xac_checkpoint_in(xac_api_env);
}

int
xac_sync(void)
{
    return xac_sync_in(xac_api_env);
}

int
xac_archive(char ***names, size_t *count)
{
    return xac_archive_in(xac_api_env, names, count);
}

int
xac_get_stats(struct xac_stats *out, size_t size)
{
    return xac_get_stats_in(xac_api_env, out, size);
}

/* ---- Thesis names ------------------------------------------------------------------------ */

int xCheckpoint(void) XAC_ALIAS_OF(xac_checkpoint);
int xSync(void) XAC_ALIAS_OF(xac_sync);
int xArchive(char ***names, size_t *count) XAC_ALIAS_OF(xac_archive);
const char *xLastError(void) XAC_ALIAS_OF(xac_last_error);
int xStats(struct xac_stats *out, size_t size) XAC_ALIAS_OF(xac_get_stats);

const char *
xStrerror(int code)
{
    return xac_strerror(code); /* defined in err.c, so no alias */
}
