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

int
xac_backup_in(struct xac_env *env, const char *dir)
{
    struct xac_ctx *ctx;
    int rc;

    if (dir == NULL || *dir == '\0')
        return xac_err(EINVAL, "xBackup: no directory");
    rc = xac_api_start(env, "xBackup", &ctx);
    if (rc != 0)
        return rc;
    rc = xac_reader_check_writer(ctx->env, "xBackup");
    if (rc == 0)
        rc = xac_env_poisoned(ctx->env);
    if (rc == 0)
        rc = xac_env_mend(ctx->env);
    if (rc == 0)
        rc = xac_backup_run(ctx->env, dir, NULL, NULL);
    xac_api_done(ctx);
    return rc;
}

int
xac_backup(const char *dir)
{
    return xac_backup_in(xac_api_env, dir);
}

int xBackup(const char *dir) XAC_ALIAS_OF(xac_backup);
