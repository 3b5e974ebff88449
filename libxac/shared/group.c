/* SPDX-License-Identifier: MIT */
/*
 * group.c -- see group.h.
 */
#include <config.h>

#include "shared/group.h"

#include <errno.h>
#include <string.h>

#include <xac.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/futex.h"
#include "log/wakes.h"

/* How long to sleep before looking at the clock, and whether a signal waits. */
#define LOOK_MS 50

/* ---- Waiting ---------------------------------------------------------------------- */

/* What one who waits has seen move. */
struct waiting {
    uint64_t replicated;
    uint64_t since_ns; /* it stands there; 0: not looked yet                            */
};

/* is_silent -- has `replicated` stood still for too long? */
static bool
is_silent(const struct xac_env *env, struct waiting *w, uint64_t at)
{
    uint64_t now = xac_clock_ns();

    if (w->since_ns == 0 || at != w->replicated) {
        w->replicated = at;
        w->since_ns = now;
    }
    xac_assert(now >= w->since_ns);
    return now - w->since_ns >= UINT64_C(1000000) * env->options.group_wait_ms;
}

/* uncertain -- it has been published, and nobody can say whether a majority will have it. */
static int
uncertain(const struct xac_env *env, uint64_t lsn)
{
    char leader[XAC_GROUP_LEADER_BYTES];

    xac_assert(xac_group_is_deposed(env));
    xac_group_leader(env, leader);
    return xac_err(XAC_EUNCERTAIN,
                   "%s does not lead its group any more: a majority may or may not have "
                   "the log up to LSN %llu of generation %u%s%s",
                   env->dir, (unsigned long long)lsn, env->ctl->generation,
                   leader[0] != '\0' ? "; leader: " : "", leader);
}

int
xac_group_await(struct xac_env *env, uint64_t lsn)
{
    struct waiting w = {.since_ns = 0};
    xac_shared _Atomic uint32_t *wakes = &env->ctl->group.wakes;

    xac_assert(lsn % XAC_BLOCK_ALIGN == 0);
    xac_assert(xac_group_leads(env));
    for (;;) {
        uint32_t seen = xac_wakes_read(wakes);
        /* Acquire: pairs with the release in xac_group_depose.  Before `replicated`, so that a position that it had
           passed by then is found to be acknowledged (2). */
        bool is_deposed =
            atomic_load_explicit(&env->ctl->group.deposed, memory_order_acquire) != 0;
        uint64_t at = xac_group_replicated(env);
        unsigned wait_ms;

        if (at >= lsn)
            return 0;
        if (is_deposed)
            return uncertain(env, lsn);
        if (is_silent(env, &w, at)) {
            xac_group_depose(env);
            continue;
        }
        if (!xac_wakes_is_announced(wakes, seen))
            continue;
        wait_ms = xac_wait_slice(LOOK_MS);
        if (wait_ms == 0)
            return ETIMEDOUT;
        xac_futex_wait(wakes, seen, wait_ms);
        if (xac_lock_none_held())
            xac_signals_glance();
    }
}

int
xac_group_wait_durable(struct xac_env *env, uint64_t lsn)
{
    int rc = xac_log_wait_durable(&env->log, lsn);

    xac_assert(env->ctl != NULL);
    return rc == 0 ? xac_group_wait(env, lsn) : rc;
}

int
xac_group_sync(struct xac_env *env)
{
    xac_assert(xac_env_is_durable(env));
    /* Acquire: pairs with xac_log_append. */
    return xac_group_wait_durable(env, atomic_load_explicit(&env->log.sh->tail,
                                                            memory_order_acquire));
}

int
xac_group_refuse(const struct xac_env *env, const char *what)
{
    char leader[XAC_GROUP_LEADER_BYTES];

    xac_assert(what[0] != '\0');
    xac_assert(xac_group_is_deposed(env));
    xac_group_leader(env, leader);
    return xac_err(XAC_ENOTLEADER, "%s: %s %s: close it, and open it again%s%s", what,
                   env->dir,
                   xac_group_leads(env) ? "does not lead its group any more"
                                        : "is about to lead its group",
                   leader[0] != '\0' ? "; leader: " : "", leader);
}

int
xac_group_check_path(const struct xac_env *env, const char *path)
{
    xac_assert(path[0] != '\0');
    xac_assert(env->ctl != NULL);
    if (path[0] != '/' || !xac_group_leads(env))
        return 0;
    return xac_err(EINVAL,
                   "%s: outside of %s: the files of a group lie in the directory of the "
                   "environment",
                   path, env->dir);
}

/* ---- What the daemon stores --------------------------------------------------------- */

/* tell -- wake all who wait, behind a change (4). */
static void
tell(struct xac_env *env)
{
    xac_assert(env->ctl != NULL);
    xac_wakes_fence();
    xac_wakes_ring(&env->ctl->group.wakes);
    xac_wakes_ring(
        &env->ctl->log.followers.wakes); /* those that follow up to `replicated` */
}

void
xac_group_raise(struct xac_env *env, uint64_t lsn)
{
    struct xac_group_shared *g = &env->ctl->group;
    uint64_t at = xac_group_replicated(env);

    xac_assert(xac_group_leads(env));
    xac_assert(lsn % XAC_BLOCK_ALIGN == 0);
    /* Acquire: pairs with the release in flush_held. */
    xac_require(lsn <= atomic_load_explicit(&env->ctl->log.durable,
                                            memory_order_acquire)); /* (1) */
    while (at < lsn) {
        /* Release: pairs with the acquire in xac_group_replicated. */
        if (atomic_compare_exchange_weak_explicit(&g->replicated, &at, lsn,
                                                  memory_order_release,
                                                  memory_order_relaxed)) {
            tell(env);
            return;
        }
    }
}

void
xac_group_depose(struct xac_env *env)
{
    /* Release: pairs with the acquire in xac_group_await.  The fence in tell() orders it before the count (4). */
    atomic_store_explicit(&env->ctl->group.deposed, 1, memory_order_release);
    tell(env);
    xac_assert(xac_group_is_deposed(env));
}

void
xac_group_set_leader(struct xac_env *env, const char *text)
{
    struct xac_group_shared *g = &env->ctl->group;
    char padded[XAC_GROUP_LEADER_BYTES] = "";

    xac_assert(text != NULL);
    xac_assert(env->ctl != NULL);
    strncpy(padded, text, sizeof padded - 1);
    for (size_t i = 0; i < XAC_GROUP_LEADER_WORDS; i++) {
        uint64_t word;

        memcpy(&word, padded + 8 * i, sizeof word);
        atomic_store_explicit(&g->leader[i], word, memory_order_relaxed);
    }
}

void
xac_group_leader(const struct xac_env *env, char text[XAC_GROUP_LEADER_BYTES])
{
    const struct xac_group_shared *g = &env->ctl->group;

    xac_assert(text != NULL);
    for (size_t i = 0; i < XAC_GROUP_LEADER_WORDS; i++) {
        uint64_t word = atomic_load_explicit(&g->leader[i], memory_order_relaxed);

        memcpy(text + 8 * i, &word, sizeof word);
    }
    text[XAC_GROUP_LEADER_BYTES - 1] = '\0';
}
