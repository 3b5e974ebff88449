/* SPDX-License-Identifier: MIT */
/*
 * reader.c -- see reader.h.
 */
#include <config.h>

#include "env/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <xac.h>

#include "base/err.h"
#include "checkpoint/checkpoint.h"
#include "shared/env_state.h"
#include "shared/group.h"
#include "shared/registry.h"

int
xac_reader_check_access(const struct xac_env *env)
{
    const int mode = W_OK | X_OK;

    if (env->reader == XAC_READER_NONE
        || (faccessat(env->dirfd, ".", mode, AT_EACCESS) == 0
            && faccessat(env->logfd, ".", mode, AT_EACCESS) == 0))
        return 0;
    return xac_err(errno, "%s", env->dir);
}

/* refuse_follower -- a node of a group that does not lead; it may know who does. */
static int
refuse_follower(const struct xac_env *env, const char *what)
{
    char leader[XAC_GROUP_LEADER_BYTES];

    xac_group_leader(env, leader);
    xac_assert(env->ctl->group.node != 0);
    return xac_err(
        XAC_ENOTLEADER,
        "%s: %s is a node of a group that does not lead: it can be queried, not "
        "written%s%s",
        what, env->dir, leader[0] != '\0' ? "; leader: " : "", leader);
}

int
xac_reader_check_writer(const struct xac_env *env, const char *what)
{
    if (env->reader == XAC_READER_NONE)
        return 0;
    if (!xac_env_is_standby(env))
        return xac_err(XAC_EREADONLY, "%s", what);
    if (env->ctl->group.node != 0)
        return refuse_follower(env, what);
    return xac_err(XAC_ENOTLEADER,
                   "%s: %s is a standby of another environment: it can be queried, not "
                   "written",
                   what, env->dir);
}

int
xac_reader_settle(struct xac_env *env, bool last)
{
    bool is_reader = env->reader != XAC_READER_NONE;
    bool is_due = is_reader ? last && !xac_env_is_durable(env)
                            : last || xac_registry_writers(env) <= 1;

    if (env->reader == XAC_READER_FROZEN || xac_env_is_standby(env))
        return 0;             /* a standby's log has all */
    if (xac_group_leads(env)) /* (4) */
        is_due = last = false;
    if (is_due)
        return xac_checkpoint_run(env, last);
    if (xac_env_is_durable(env) && (last || env->options.sync_delay_ms != 0))
        return xac_group_sync(env);
    return 0;
}
