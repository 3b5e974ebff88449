/* SPDX-License-Identifier: MIT */
/*
 * api_snapshot.c -- entry points for snapshots: see api.h.  xbeginQueryAt() is in api_txn.c.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include <xac.h>
#include <xac_env.h>

#include "api/api.h"
#include "shared/layout.h"
#include "txn/snapshots.h"
#include "view/view.h"
#include "view/view_diff.h"

#define NS_PER_S UINT64_C(1000000000)

_Static_assert(XAC_SNAPSHOT_NAME_MAX + 1 == XAC_SNAPSHOT_NAME_BYTES, "names");

/* start -- for calls that may be made at any time: a child joins first.  ret 0 or an error. */
static int
start(struct xac_env *env, const char *what)
{
    struct xac_ctx *ctx;
    int rc = xac_api_opened(env, what);

    if (rc != 0 || !xac_env_is_forked(env))
        return rc;
    rc = xac_api_start(env, what, &ctx);
    if (rc == 0)
        xac_api_done(ctx);
    return rc;
}

/* take_within -- the state that the caller's query sees. */
static int
take_within(struct xac_env *env, const struct xac_ctx *ctx, uint64_t *id)
{
    sigset_t signals;
    int rc;

    xac_signals_block(&signals);
    rc = xac_snapshots_take(env, ctx->txn, id);
    xac_signals_restore(&signals);
    return rc;
}

/* take_outside -- the present state; the caller has no transaction. */
static int
take_outside(struct xac_env *env, uint64_t *id)
{
    struct xac_ctx *ctx;
    int rc = xac_api_start(env, "xSnapshot", &ctx);

    if (rc != 0)
        return rc;
    rc = xac_env_poisoned(env);
    if (rc == 0)
        rc = xac_env_mend(env);
    if (rc == 0)
        rc = xac_snapshots_take(env, NULL, id);
    xac_api_done(ctx);
    return rc;
}

int
xac_snapshot_in(struct xac_env *env, uint64_t *id)
{
    const struct xac_ctx *ctx;
    int rc = xac_api_opened(env, "xSnapshot");

    if (rc != 0)
        return rc;
    if (id == NULL)
        return xac_err(EINVAL, "xSnapshot: no place for the id");
    ctx = xac_ctx_mine(env);
    if (xac_api_is_mine(ctx) && ctx->depth > 0 && ctx->is_query)
        return take_within(env, ctx, id);
    return take_outside(env, id);
}

int
xac_snapshot_release_in(struct xac_env *env, uint64_t id)
{
    int rc = start(env, "xSnapshotRelease");

    return rc == 0 ? xac_snapshots_release(env, id) : rc;
}

/* check_name -- ret 0, EINVAL or ENAMETOOLONG. */
static int
check_name(const char *what, const char *name)
{
    if (name == NULL || *name == '\0')
        return xac_err(EINVAL, "%s: no name", what);
    if (strlen(name) > XAC_SNAPSHOT_NAME_MAX)
        return xac_err(ENAMETOOLONG, "%s: a name has at most %d bytes", what,
                       XAC_SNAPSHOT_NAME_MAX);
    for (const unsigned char *p = (const unsigned char *)name; *p != '\0'; p++) {
        if (*p < ' ' || *p == 0x7f)
            return xac_err(EINVAL, "%s: a control character in the name", what);
    }
    return 0;
}

int
xac_snapshot_keep_in(struct xac_env *env, uint64_t id, const char *name, uint32_t seconds)
{
    int rc = start(env, "xSnapshotKeep");

    if (rc == 0)
        rc = check_name("xSnapshotKeep", name);
    if (rc == 0 && seconds == 0)
        rc = xac_err(EINVAL, "xSnapshotKeep: it is to live for 0 seconds");
    return rc == 0 ? xac_snapshots_keep(env, id, name, seconds * NS_PER_S) : rc;
}

int
xac_snapshot_find_in(struct xac_env *env, const char *name, uint64_t *id)
{
    int rc = start(env, "xSnapshotFind");

    if (rc == 0)
        rc = check_name("xSnapshotFind", name);
    if (rc == 0 && id == NULL)
        rc = xac_err(EINVAL, "xSnapshotFind: no place for the id");
    return rc == 0 ? xac_snapshots_find(env, name, id) : rc;
}

/* ---- What differs --------------------------------------------------------------------------- */

/* diff_held -- both states are held; the caller has the context's turn. */
static int
diff_held(struct xac_ctx *ctx, uint64_t from, uint64_t to, xac_diff_fn *fn, void *arg)
{
    int rc = 0;

    for (struct xac_view *v = ctx->views; v != NULL && rc == 0; v = v->next)
        rc = xac_view_diff(v, from, to, fn, arg);
    return rc;
}

/* diff -- hold both states meanwhile. */
static int
diff(struct xac_ctx *ctx, uint64_t from, uint64_t to, xac_diff_fn *fn, void *arg)
{
    struct xac_env *env = ctx->env;
    uint64_t id[2], number[2];
    int rc = xac_snapshots_take_at(env, from, &id[0], &number[0]);

    if (rc != 0)
        return rc;
    rc = xac_snapshots_take_at(env, to, &id[1], &number[1]);
    if (rc == 0) {
        rc = diff_held(ctx, number[0], number[1], fn, arg);
        (void)xac_snapshots_release(env, id[1]);
    }
    (void)xac_snapshots_release(env, id[0]);
    return rc;
}

int
xac_diff_in(struct xac_env *env, uint64_t from, uint64_t to, xac_diff_fn *fn, void *arg)
{
    struct xac_ctx *ctx;
    int rc;

    if (fn == NULL)
        return xac_err(EINVAL, "xDiff: no function");
    rc = xac_api_start(env, "xDiff", &ctx);
    if (rc != 0)
        return rc;
    rc = xac_env_mend(env);
    if (rc == 0)
        rc = xac_view_in_place_leave(env, ctx);
    if (rc == 0)
        rc = diff(ctx, from, to, fn, arg);
    xac_api_done(ctx);
    return rc;
}

int
xac_diff(uint64_t from, uint64_t to, xac_diff_fn *fn, void *arg)
{
    return xac_diff_in(xac_api_env, from, to, fn, arg);
}

/* ---- On the default environment ----------------------------------------------------------- */

int
xac_snapshot(uint64_t *id)
{
    return xac_snapshot_in(xac_api_env, id);
}

int
xac_snapshot_release(uint64_t id)
{
    return xac_snapshot_release_in(xac_api_env, id);
}

int
xac_snapshot_keep(uint64_t id, const char *name, uint32_t seconds)
{
    return xac_snapshot_keep_in(xac_api_env, id, name, seconds);
}

int
xac_snapshot_find(const char *name, uint64_t *id)
{
    return xac_snapshot_find_in(xac_api_env, name, id);
}

/* ---- Short names -------------------------------------------------------------------------- */

int xDiff(uint64_t from, uint64_t to, xac_diff_fn *fn, void *arg) XAC_ALIAS_OF(xac_diff);
int xSnapshot(uint64_t *id) XAC_ALIAS_OF(xac_snapshot);
int xSnapshotRelease(uint64_t id) XAC_ALIAS_OF(xac_snapshot_release);
int xSnapshotKeep(uint64_t id, const char *name, uint32_t seconds)
    XAC_ALIAS_OF(xac_snapshot_keep);
int xSnapshotFind(const char *name, uint64_t *id) XAC_ALIAS_OF(xac_snapshot_find);
