/* SPDX-License-Identifier: MIT */
/*
 * api_participants.c -- entry point for the table of participants: see api.h.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <xac.h>
#include <xac_env.h>

#include "api/api.h"
#include "base/sized.h"
#include "env/participants.h"

int
xac_participants_in(struct xac_env *env,
                    int (*fn)(void *arg, const struct xac_party *party), void *arg,
                    size_t size)
{
    struct xac_party *rows = NULL;
    int rc = xac_api_opened(env, "xParticipants");
    size_t n = 0;
    void *out;

    static_assert(XAC_SIZED_IS_DENSE(struct xac_party, failed_ns), "name the last field");
    if (rc == 0)
        rc = xac_env_rejoin(env);
    if (rc == 0)
        rc = xac_api_check_sized("xParticipants", &rows, size, sizeof rows->pid);
    if (rc == 0 && fn == NULL)
        rc = xac_err(EINVAL, "xParticipants: fn is NULL");
    if (rc != 0)
        return rc;
    out = malloc(size);
    rc = out == NULL ? xac_err(ENOMEM, "xParticipants")
                     : xac_participants_read(env, &rows, &n);
    for (size_t i = 0; i < n && rc == 0; i++) {
        xac_sized_fill(out, size, &rows[i], sizeof rows[i]);
        rc = fn(arg, (const struct xac_party *)out);
    }
    free(rows);
    free(out);
    return rc;
}

int
xac_participants(int (*fn)(void *arg, const struct xac_party *party), void *arg,
                 size_t size)
{
    return xac_participants_in(xac_api_env, fn, arg, size);
}

/* ---- Thesis names ------------------------------------------------------------------------ */

int xParticipants(int (*fn)(void *arg, const struct xac_party *party), void *arg,
                  size_t size) XAC_ALIAS_OF(xac_participants);
