/* SPDX-License-Identifier: MIT */
/*
 * api_options.c -- entry points for options: see api_options.h.
 */
#include <config.h>

#include "api/api_options.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>
#include <xac_env.h>

#include "api/api.h"
#include "base/sized.h"
#include "env/options.h"
#include "log/log_keep.h"
#include "txn/ctx.h"

static_assert(XAC_OPTION_END <= XAC_OPTIONS, "struct xac_options has room for all");
static_assert(XAC_SIZED_IS_DENSE(struct xac_options, value), "name the last field");

/* Of the default environment; under xac_api_lock. */
static uint64_t value_set[XAC_OPTION_END]; /* by xSetOption(), where is_set says so     */
static bool is_set[XAC_OPTION_END];
static char *log_dir; /* owned; NULL: no wish                                           */
/* Of all environments that are opened: xSetRecoveryProgress(). */
static struct xac_api_progress progress;

/* check_log_dir -- can it be the path of a log directory?  NULL can. */
static int
check_log_dir(const char *what, const char *path)
{
    if (path != NULL && (*path == '\0' || strchr(path, '\n') != NULL))
        return xac_err(EINVAL, "%s: empty, or with a newline", what);
    if (path != NULL && strlen(path) >= PATH_MAX)
        return xac_err(ENAMETOOLONG, "%s", what);
    return 0;
}

/* ---- Options of an environment that is to be opened ------------------------------------------ */

/* gather -- what the program has set, then what its environment says, then the defaults. */
static int
gather(const uint64_t value[], const bool has[XAC_OPTION_END], const char *dir,
       struct xac_env_options *out)
{
    xac_options_default(out);
    for (int i = 0; i < XAC_OPTION_END; i++) {
        if (has[i])
            xac_option_store(out, i, value[i]);
    }
    out->log_dir = dir;
    out->progress = progress.fn;
    out->progress_arg = progress.arg;
    return xac_options_outside(has, out);
}

int
xac_api_options_default(struct xac_env_options *out)
{
    return gather(value_set, is_set, log_dir, out);
}

const char *
xac_api_log_directory(void)
{
    return log_dir;
}

int
xac_api_options_given(const struct xac_options *given, struct xac_env_options *out)
{
    bool has[XAC_OPTION_END] = {false};
    size_t n =
        (given->size - offsetof(struct xac_options, value)) / sizeof given->value[0];
    int rc = check_log_dir("xac_open: log_directory", given->log_directory);

    for (size_t i = 1; i < n && rc == 0; i++) {
        if (given->value[i] == XAC_OPTION_UNSET)
            continue;
        rc = xac_option_check("xac_open", (int)i, given->value[i]);
        if (rc == 0)
            has[i] = true;
    }
    return rc == 0 ? gather(given->value, has, given->log_directory, out) : rc;
}

void
xac_options_init(struct xac_options *out, size_t size)
{
    const size_t known = offsetof(struct xac_options, value);

    if (out == NULL || size < known)
        return; /* xac_open() refuses it */
    memset(out, 0, known);
    memset((char *)out + known, 0xff, size - known); /* XAC_OPTION_UNSET */
    out->size = size;
    out->flags = XAC_DURABLE;
}

/* ---- Options of an environment that is open ---------------------------------------------------- */

/* set_shared -- an option that concerns all participants, who read it at any time. */
static void
set_shared(struct xac_control *ctl, int option, uint64_t v)
{
    if (option == XAC_OPT_CHECKSUM)
        atomic_store_explicit(&ctl->checksum, (uint32_t)v, memory_order_relaxed);
    else if (option == XAC_OPT_PAGE_CHECKSUMS)
        atomic_store_explicit(&ctl->page_checksums, (uint32_t)v, memory_order_relaxed);
    else if (option == XAC_OPT_CHECKPOINT_BYTES)
        atomic_store_explicit(&ctl->checkpoint_bytes, v, memory_order_relaxed);
    else if (option == XAC_OPT_READER_LIMIT)
        atomic_store_explicit(&ctl->reader_limit, v, memory_order_relaxed);
    else if (option == XAC_OPT_LOG_KEEP_BYTES)
        atomic_store_explicit(&ctl->log_keep_bytes, v, memory_order_relaxed);
}

/* set_open -- a valid option of an environment that is open; xac_api_lock held. */
static int
set_open(struct xac_env *env, int option, uint64_t value)
{
    const struct xac_option_row *row;
    int rc = 0;

    option = xac_option_of_today(&env->options, option, &value);
    row = xac_option_find(option);
    if (row->when == XAC_SET_BEFORE)
        return xac_err(EBUSY, "xSetOption: %s must be set before xInit", row->name);
    if (row->whose == XAC_OF_ALL && env->ctl != NULL && env->reader != XAC_READER_NONE)
        return xac_err(XAC_EREADONLY, "xSetOption: %s concerns others", row->name);
    if (row->when == XAC_SET_OUTSIDE && xac_api_is_mine(xac_ctx_mine(env)))
        return xac_err(XAC_EINTXN, "xSetOption: %s", row->name);
    if (xac_option_is_overruled(row))
        return 0;
    if (option == XAC_OPT_CHECKING
        && (value == XAC_CHECKING_TRUSTED)
               != (xac_env_checking(env) == XAC_CHECKING_TRUSTED))
        return xac_err(EBUSY, "xSetOption: XAC_CHECKING_TRUSTED is for before xInit");
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
xac_set_option_in(struct xac_env *env, int option, uint64_t v)
{
    int rc = xac_api_opened(env, "xac_set_option_in");

    if (rc == 0)
        rc = xac_option_check("xSetOption", option, v);
    if (rc != 0)
        return rc;
    xac_api_lock();
    rc = set_open(env, option, v);
    xac_api_unlock();
    return rc;
}

int
xac_set_option(int option, uint64_t v)
{
    int rc = xac_option_check("xSetOption", option, v);

    if (rc != 0)
        return rc;
    xac_api_lock();
    if (xac_api_env != NULL)
        rc = set_open(xac_api_env, option, v);
    if (rc == 0) {
        value_set[option] = v;
        is_set[option] = true;
    }
    xac_api_unlock();
    return rc;
}

int
xac_set_log_directory(const char *path)
{
    char *copy = NULL;
    int rc = check_log_dir("xSetLogDirectory", path);

    if (rc != 0)
        return rc;
    if (path != NULL && (copy = strdup(path)) == NULL)
        return xac_err(ENOMEM, "xSetLogDirectory");
    xac_api_lock();
    if (xac_api_env != NULL) {
        rc = xac_err(EBUSY, "xSetLogDirectory: must be called before xInit");
    } else {
        char *old = log_dir;

        log_dir = copy;
        copy = old;
    }
    xac_api_unlock();
    free(copy);
    return rc;
}

struct xac_api_progress
xac_api_recovery_progress(void)
{
    struct xac_api_progress now;

    xac_api_lock();
    now = progress;
    xac_api_unlock();
    return now;
}

void
xac_set_recovery_progress(void (*fn)(void *arg, uint64_t done, uint64_t total), void *arg)
{
    xac_api_lock();
    progress.fn = fn;
    progress.arg = arg;
    xac_api_unlock();
}

/* ---- Thesis names ------------------------------------------------------------------------ */

int xSetOption(int option, uint64_t v) XAC_ALIAS_OF(xac_set_option);
int xSetLogDirectory(const char *path) XAC_ALIAS_OF(xac_set_log_directory);
void xSetRecoveryProgress(void (*fn)(void *arg, uint64_t done, uint64_t total), void *arg)
    XAC_ALIAS_OF(xac_set_recovery_progress);
