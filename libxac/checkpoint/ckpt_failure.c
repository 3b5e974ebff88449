/* SPDX-License-Identifier: MIT */
/*
 * ckpt_failure.c -- see ckpt_failure.h.
 */
#include <config.h>

#include "checkpoint/ckpt_failure.h"

#include <time.h>

#include <xac.h>

#include "base/clock.h"
#include "base/err.h"
#include "shared/env_state.h"

void
xac_ckpt_note_failure(struct xac_env *env, int rc)
{
    struct xac_rare_counters *n = &env->ctl->counters;

    xac_assert(env->ctl != NULL);
    if (rc == 0 || rc == XAC_EPOISONED)
        return;
    xac_count(&n->ckpt_failures, 1);
    atomic_store_explicit(&n->ckpt_error, rc, memory_order_relaxed);
    atomic_store_explicit(&n->ckpt_error_ns, xac_clock_read(CLOCK_REALTIME),
                          memory_order_relaxed);
    xac_assert(atomic_load_explicit(&n->ckpt_failures, memory_order_relaxed) > 0);
}

void
xac_ckpt_complain(const struct xac_env *env, int rc)
{
    static _Atomic bool has_complained;

    if (rc != 0 && rc != XAC_EPOISONED)
        xac_say_once(
            &has_complained,
            "a checkpoint of %s failed, and the log cannot be shortened until it "
            "succeeds: %s (%s)",
            env->dir, xac_last_error(), xac_strerror(rc));
}
