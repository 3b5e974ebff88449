/* SPDX-License-Identifier: MIT */
/*
 * api.c -- the environment's entry points, and whose turn it is: see api.h.
 */
#include <config.h>

#include "api/api.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/filesystem.h"
#include "base/lock.h"
#include "base/lockfile.h"
#include "base/sized.h"
#include "base/sys.h"
#include "base/tls.h"
#include "base/tsan.h"
#include "checkpoint/checkpoint.h"
#include "env/options.h"
#include "env/reader.h"
#include "env/region_clear.h"
#include "env/stats.h"
#include "log/log_keep.h"
#include "log/master.h"
#include "recovery/recover.h"
#include "shared/region.h"
#include "txn/ctx.h"
#include "view/view.h"

struct xac_env *xac_api_env;

/*
 * Guards opening, closing, the options, and what must not meet a closing; held while the
 * process forks, be it by a signal handler in the middle of it.  Taken before env->threads.
 */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static XAC_TLS int open_depth; /* how often this thread has it */

static void
open_enter(void)
{
    if (open_depth++ == 0)
        (void)pthread_mutex_lock(&open_lock);
}

static void
open_leave(void)
{
    if (--open_depth == 0)
        (void)pthread_mutex_unlock(&open_lock);
}

static sigset_t fork_signals; /* of the thread that forks; under open_lock */

/* Of the default environment; under open_lock. */
static uint64_t value_set[XAC_OPTION_END]; /* by xSetOption(), where is_set says so     */
static bool is_set[XAC_OPTION_END];
static char *log_dir; /* owned; NULL: no wish                                           */

/* ---- Whose turn it is ---------------------------------------------------------------- */

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

void
xac_api_done(struct xac_ctx *ctx)
{
    xac_tsan_release();
    xac_tsan_leave();
    /* Release: pairs with the acquire in take_turn. */
    atomic_store_explicit(&ctx->owner, 0, memory_order_release);
}

int
xac_api_opened(const char *what)
{
    return xac_api_env == NULL ? xac_err(XAC_ENOINIT, "%s", what) : 0;
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

/* start -- take a context's turn, join after a fork. */
static int
start(const char *what, struct xac_ctx *ctx)
{
    int rc = take_turn(ctx, what);

    if (rc != 0)
        return rc;
    rc = xac_env_rejoin(xac_api_env);
    if (rc != 0)
        xac_api_done(ctx);
    return rc;
}

int
xac_api_start(const char *what, struct xac_ctx **ctxp)
{
    int rc = xac_api_opened(what);

    if (rc != 0)
        return rc;
    *ctxp = xac_ctx_mine(xac_api_env);
    return start(what, *ctxp);
}

int
xac_api_start_process(const char *what, struct xac_ctx **ctxp)
{
    int rc = xac_api_opened(what);

    if (rc == 0 && xac_api_is_mine(xac_ctx_mine(xac_api_env)))
        rc = xac_err(XAC_EINTXN, "%s", what);
    if (rc != 0)
        return rc;
    *ctxp = &xac_api_env->ctx;
    return start(what, *ctxp);
}

int
xac_api_start_own(const char *what)
{
    int rc;

    open_enter();
    rc = xac_api_opened(what);
    if (rc == 0 && xac_api_is_mine(xac_ctx_mine(xac_api_env)))
        rc = xac_err(XAC_EINTXN, "%s", what);
    if (rc == 0)
        rc = xac_env_rejoin(xac_api_env);
    if (rc != 0)
        open_leave();
    else
        xac_tsan_enter();
    return rc;
}

void
xac_api_done_own(void)
{
    xac_tsan_leave();
    open_leave();
}

int
xac_api_in_txn(const char *what, struct xac_ctx **ctxp)
{
    int rc = xac_api_opened(what);

    if (rc != 0)
        return rc;
    *ctxp = xac_ctx_mine(xac_api_env);
    if (xac_api_is_mine(*ctxp) && (*ctxp)->depth > 0)
        return 0;
    if ((*ctxp)->orphan_depth > 0)
        return xac_err(XAC_EFORKED, "%s", what);
    return xac_err(XAC_ENOTXN, "%s", what);
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
        return EROFS;
    case XAC_ENOTMAPPED:
        return EINVAL;
    default:
        return rc > 0 ? rc : EIO;
    }
}

static void
before_fork(void)
{
    open_enter();
    if (xac_api_env != NULL)
        xac_env_fork(xac_api_env, &fork_signals);
}

static void
after_fork(void)
{
    sigset_t signals = fork_signals;

    if (xac_api_env != NULL)
        xac_env_fork_done(xac_api_env, &signals);
    open_leave();
}

/* on_fork -- in the child, before anything else runs there. */
static void
on_fork(void)
{
    struct xac_env *env = xac_api_env;
    sigset_t signals = fork_signals;

    if (env != NULL) {
        if (!xac_api_is_mine(&env->ctx))
            env->ctx.depth = 0; /* of a thread that does not exist here */
        xac_env_forked(env, &signals);
        xac_api_done(&env->ctx);
        xac_api_done(xac_ctx_mine(env));
    }
    open_leave();
}

static void
watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, on_fork);
}

/* ---- Opening and closing ------------------------------------------------------------- */

/* options_of_default -- what the program has set, then what its environment says, then the
   defaults; open_lock held; ret 0 or EINVAL. */
static int
options_of_default(struct xac_env_options *out)
{
    xac_options_default(out);
    for (int i = 0; i < XAC_OPTION_END; i++) {
        if (is_set[i])
            xac_option_store(out, i, value_set[i]);
    }
    out->log_dir = log_dir;
    return xac_options_outside(is_set, out);
}

int
xac_init(const char *path, int flags)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct xac_env_options o;
    struct xac_env *made = NULL;
    int rc;

    if (path == NULL || *path == '\0')
        return xac_err(EINVAL, "xInit: no path");
    if (flags != XAC_NONDURABLE && flags != XAC_DURABLE && flags != XAC_READONLY)
        return xac_err(EINVAL, "xInit: unknown flags %#x", (unsigned)flags);
    (void)pthread_once(&once, watch_forks);
    open_enter();
    if (xac_api_env != NULL)
        rc = xac_err(XAC_EALREADY, "xInit");
    else {
        rc = options_of_default(&o);
        if (rc == 0)
            rc = xac_env_open(path, flags, &o, &made);
    }
    if (rc == 0)
        xac_api_env = made;
    open_leave();
    return rc;
}

/* shut_down -- close the environment, whose process context is ours. */
static int
shut_down(struct xac_env *env, struct xac_ctx *ctx)
{
    unsigned others = xac_thread_others(env);
    int rc;

    if (others > 0) {
        xac_api_done(ctx);
        return xac_err(EBUSY, "xShutdown: %u other thread%s views of its own (xView)",
                       others, others == 1 ? " has" : "s have each");
    }
    xac_thread_leave(env);
    xac_view_close_all(env, ctx);
    rc = xac_env_close(env);
    xac_tsan_leave(); /* the turn has gone with the environment */
    xac_api_env = NULL;
    return rc;
}

int
xac_shutdown(void)
{
    struct xac_ctx *ctx;
    int rc;

    open_enter();
    rc = xac_api_start_process("xShutdown", &ctx); /* joins: it leaves what is its own */
    if (rc == 0)
        rc = shut_down(xac_api_env, ctx);
    open_leave();
    return rc;
}

/* ---- The log --------------------------------------------------------------------------- */

/* recover_in -- recover the environment in an open directory. */
static int
recover_in(int dirfd, const char *path)
{
    struct xac_recover_options how = {.log_dir = log_dir};
    struct xac_master_slot master;
    int lockfd, rc;

    rc = xac_master_read(dirfd, &master);
    if (rc != 0)
        return rc == ENOENT ? xac_master_missing(dirfd, false) : rc;
    rc = xac_gate_open(dirfd, path, &lockfd);
    if (rc != 0)
        return rc;
    rc = xac_region_attached(dirfd, path, lockfd);
    if (rc == XAC_ELIVE)
        rc = xac_err(rc, "%s", path);
    if (rc == 0)
        rc = xac_recover_dir(dirfd, &how, NULL, NULL);
    if (rc == 0)
        xac_region_clear(dirfd, lockfd);
    xac_gate_leave(lockfd);
    (void)xac_sys.close(lockfd);
    return rc;
}

int
xac_recover(const char *path)
{
    int dirfd, rc;

    if (path == NULL || *path == '\0')
        return xac_err(EINVAL, "xRecover: no path");
    dirfd = xac_sys.openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (dirfd < 0)
        return xac_err(errno, "%s", path);
    rc = xac_filesystem_check(dirfd, path);
    if (rc == 0)
        rc = recover_in(dirfd, path);
    (void)xac_sys.close(dirfd);
    return rc;
}

int
xac_checkpoint(void)
{
    struct xac_ctx *ctx;
    int rc = xac_api_start("xCheckpoint", &ctx);

    if (rc != 0)
        return rc;
    rc = xac_reader_check_writer(xac_api_env, "xCheckpoint");
    if (rc == 0)
        rc = xac_env_mend(xac_api_env);
    if (rc == 0)
        rc = xac_checkpoint_run(xac_api_env, false);
    xac_api_done(ctx);
    return rc;
}

int
xac_sync(void)
{
    int rc = xac_api_opened("xSync");
    sigset_t signals;

    /* After a fork nothing has been committed by this process.  Relaxed: nothing else is
       read because of it. */
    if (rc != 0 || !xac_env_is_durable(xac_api_env)
        || atomic_load_explicit(&xac_api_env->is_forked, memory_order_relaxed))
        return rc;
    xac_signals_block(&signals);
    rc = xac_log_sync(&xac_api_env->log);
    xac_signals_restore(&signals);
    return rc;
}

int
xac_archive(char ***names, size_t *count)
{
    struct xac_ctx *ctx;
    int rc;

    if (names == NULL || count == NULL)
        return xac_err(EINVAL, "xArchive: NULL");
    rc = xac_api_start("xArchive", &ctx);
    if (rc != 0)
        return rc;
    rc = xac_reader_check_writer(xac_api_env, "xArchive");
    if (rc == 0)
        rc = xac_env_mend(xac_api_env);
    if (rc == 0)
        rc = xac_archive_names(xac_api_env, names, count);
    xac_api_done(ctx);
    return rc;
}

/* ---- Information and options ------------------------------------------------------------ */

const char *
xac_last_error(void)
{
    return xac_err_text();
}

int
xac_get_stats(struct xac_stats *out, size_t size)
{
    struct xac_env *env = xac_api_env;
    struct xac_stats all;
    int rc = xac_api_opened("xStats");

    static_assert(XAC_SIZED_IS_DENSE(struct xac_stats, reader), "name the last field");
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

/* set_shared -- what concerns all participants, who read it at any time. */
static void
set_shared(struct xac_control *ctl, int option, uint64_t value)
{
    if (option == XAC_OPT_CHECKSUM)
        atomic_store_explicit(&ctl->checksum, (uint32_t)value, memory_order_relaxed);
    else if (option == XAC_OPT_PAGE_CHECKSUMS)
        atomic_store_explicit(&ctl->page_checksums, (uint32_t)value,
                              memory_order_relaxed);
    else if (option == XAC_OPT_CHECKPOINT_BYTES)
        atomic_store_explicit(&ctl->checkpoint_bytes, value, memory_order_relaxed);
}

/* set_open -- a valid option of an environment that is open; open_lock held. */
static int
set_open(struct xac_env *env, int option, uint64_t value)
{
    const struct xac_option_row *row = xac_option_find(option);
    int rc = 0;

    if (row->when == XAC_SET_BEFORE)
        return xac_err(EBUSY, "xSetOption: %s must be set before xInit", row->name);
    if (row->whose == XAC_OF_ALL && env->ctl != NULL && env->reader != XAC_READER_NONE)
        return xac_err(XAC_EREADONLY, "xSetOption: %s concerns others", row->name);
    if (row->when == XAC_SET_OUTSIDE && xac_api_is_mine(xac_ctx_mine(env)))
        return xac_err(XAC_EINTXN, "xSetOption: %s", row->name);
    if (option == XAC_OPT_LOG_RECYCLE) {
        rc = xac_env_mend(env);
        if (rc == 0)
            rc = xac_log_keep(env->logfd, value == 0, NULL);
    }
    if (rc != 0)
        return rc;
    xac_option_store(&env->options, option, value);
    if (env->ctl != NULL)
        set_shared(env->ctl, option, value);
    return 0;
}

int
xac_set_option(int option, uint64_t value)
{
    int rc = xac_option_check("xSetOption", option, value);

    if (rc != 0)
        return rc;
    open_enter();
    if (xac_api_env != NULL)
        rc = set_open(xac_api_env, option, value);
    if (rc == 0) {
        value_set[option] = value;
        is_set[option] = true;
    }
    open_leave();
    return rc;
}

int
xac_set_log_directory(const char *path)
{
    char *copy = NULL;
    int rc = 0;

    if (path != NULL && (*path == '\0' || strchr(path, '\n') != NULL))
        return xac_err(EINVAL, "xSetLogDirectory: empty, or with a newline");
    if (path != NULL && strlen(path) >= PATH_MAX)
        return xac_err(ENAMETOOLONG, "xSetLogDirectory");
    if (path != NULL && (copy = strdup(path)) == NULL)
        return xac_err(ENOMEM, "xSetLogDirectory");
    open_enter();
    if (xac_api_env != NULL) {
        rc = xac_err(EBUSY, "xSetLogDirectory: must be called before xInit");
    } else {
        char *old = log_dir;

        log_dir = copy;
        copy = old;
    }
    open_leave();
    free(copy);
    return rc;
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

/* ---- Thesis names ------------------------------------------------------------------------ */

int xInit(const char *path, int flags) XAC_ALIAS_OF(xac_init);
int xShutdown(void) XAC_ALIAS_OF(xac_shutdown);
int xRecover(const char *path) XAC_ALIAS_OF(xac_recover);
int xCheckpoint(void) XAC_ALIAS_OF(xac_checkpoint);
int xSync(void) XAC_ALIAS_OF(xac_sync);
int xArchive(char ***names, size_t *count) XAC_ALIAS_OF(xac_archive);
const char *xLastError(void) XAC_ALIAS_OF(xac_last_error);
int xStats(struct xac_stats *out, size_t size) XAC_ALIAS_OF(xac_get_stats);
int xSetOption(int option, uint64_t value) XAC_ALIAS_OF(xac_set_option);
int xSetLogDirectory(const char *path) XAC_ALIAS_OF(xac_set_log_directory);

const char *
xStrerror(int code)
{
    return xac_strerror(code); /* defined in err.c, so no alias */
}
