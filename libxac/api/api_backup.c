/* SPDX-License-Identifier: MIT */
/*
 * api_backup.c -- entry point for backups: see api.h.
 */
#include <config.h>

#include <errno.h>

#include <xac.h>
#include <xac_env.h>

#include "api/api.h"
#include "backup/backup.h"
#include "env/reader.h"

/* backup -- in   base  NULL: a full one; who  the function called. */
static int
backup(struct xac_env *env, const char *dir, const char *base, const char *who)
{
    struct xac_ctx *ctx;
    int rc = xac_api_start(env, who, &ctx);

    if (rc != 0)
        return rc;
    rc = xac_reader_check_writer(ctx->env, who);
    if (rc == 0)
        rc = xac_env_poisoned(ctx->env);
    if (rc == 0)
        rc = xac_env_mend(ctx->env);
    if (rc == 0)
        rc = xac_backup_run(ctx->env, dir, base, NULL, NULL);
    xac_api_done(ctx);
    return rc;
}

int
xac_backup_in(struct xac_env *env, const char *dir)
{
    if (dir == NULL || *dir == '\0')
        return xac_err(EINVAL, "xBackup: no directory");
    return backup(env, dir, NULL, "xBackup");
}

int
xac_backup_since_in(struct xac_env *env, const char *dir, const char *base)
{
    if (dir == NULL || *dir == '\0')
        return xac_err(EINVAL, "xBackupSince: no directory");
    if (base == NULL || *base == '\0')
        return xac_err(EINVAL, "xBackupSince: no backup that it is the increment of");
    return backup(env, dir, base, "xBackupSince");
}

int
xac_backup(const char *dir)
{
    return xac_backup_in(xac_api_env, dir);
}

int
xac_backup_since(const char *dir, const char *base)
{
    return xac_backup_since_in(xac_api_env, dir, base);
}

int xBackup(const char *dir) XAC_ALIAS_OF(xac_backup);
int xBackupSince(const char *dir, const char *base) XAC_ALIAS_OF(xac_backup_since);
