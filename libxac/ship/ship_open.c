/* SPDX-License-Identifier: MIT */
/*
 * ship_open.c -- see ship_open.h.
 */
#include <config.h>

#include "ship/ship_open.h"

#include <stdbool.h>
#include <stddef.h>

#include <xac.h>

#include "base/annot.h"
#include "env/env.h"
#include "env/options.h"
#include "recovery/standby.h"

int
xac_ship_open(const char *dir, struct xac_env **envp, struct xac_standby **sp)
{
    const bool is_set[XAC_OPTION_END] = {false};
    struct xac_env_options options;
    int rc;

    xac_assert(*envp == NULL);
    xac_assert(*sp == NULL);
    xac_options_default(&options);
    rc = xac_options_outside(is_set, &options);
    options.policy = XAC_POLICY_SERIAL; /* replayer.h */
    options.frames = 0;
    options.standbyp = sp;
    if (rc == 0)
        rc = xac_env_open(dir, XAC_DURABLE, &options, envp);
    if (rc != 0)
        return rc;
    return *sp != NULL ? xac_standby_admit(*sp, *envp) : xac_standby_join(*envp, sp);
}
