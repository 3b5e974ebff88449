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
    if (!xac_group_leads(env)) /* the daemon closes a standby, and has said why */
        return xac_err(XAC_ENOTLEADER, "%s: %s: %s: close it, and open it again", what,
                       env->dir, leader[0] != '\0' ? leader : "its daemon closes it");
    return xac_err(XAC_ENOTLEADER,
                   "%s: %s does not lead its group any more: close it, and open it "
                   "again%s%s",
                   what, env->dir, leader[0] != '\0' ? "; leader: " : "", leader);
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

int
xac_group_refuse_changes(const struct xac_env *env)
{
    xac_assert(xac_group_leads(env));
    xac_assert(XAC_GROUP_CHANGES_MAX >> env->page_shift > 0);
    return xac_err_whole(
        EFBIG,
        "the transaction changes more than %llu MiB (%llu pages), which is "
        "the most that a group takes at once",
        (unsigned long long)(XAC_GROUP_CHANGES_MAX >> 20),
        (unsigned long long)(XAC_GROUP_CHANGES_MAX >> env->page_shift));
}

/* ---- What the daemon stores --------------------------------------------------------- */

void
xac_group_tell(struct xac_env *env)
{
    xac_assert(env->ctl != NULL);
    xac_wakes_fence();
    xac_wakes_ring(&env->ctl->group.wakes);
}

/* tell_all -- the same; those that follow up to `replicated`, too. */
static void
tell_all(struct xac_env *env)
{
    xac_group_tell(env);
    xac_wakes_ring(&env->ctl->log.followers.wakes); /* behind the same fence */
}

void
xac_group_raise(struct xac_env *env, uint64_t lsn)
{
    struct xac_group_shared *g = &env->ctl->group;
    uint64_t at = xac_group_replicated(env);

    xac_assert(xac_group_leads(env));
    xac_assert(lsn % XAC_BLOCK_ALIGN == 0);
    /* Acquire: pairs with the release in note_written. */
    xac_require(lsn <= atomic_load_explicit(&env->ctl->log.written,
                                            memory_order_acquire)); /* (1) */
    while (at < lsn) {
        /* Release: pairs with the acquire in xac_group_replicated. */
        if (atomic_compare_exchange_weak_explicit(&g->replicated, &at, lsn,
                                                  memory_order_release,
                                                  memory_order_relaxed)) {
            tell_all(env);
            return;
        }
    }
}

void
xac_group_depose(struct xac_env *env)
{
    /* Release: pairs with the acquire in xac_group_await.  The fence in xac_group_tell() orders it before the count (4). */
    atomic_store_explicit(&env->ctl->group.deposed, 1, memory_order_release);
    tell_all(env);
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

/* ---- Waiting for what the region says --------------------------------------------------- */

struct xac_group_patience
xac_group_patience(uint32_t wait_ms)
{
    return (struct xac_group_patience){.until_ns =
                                           xac_clock_ns() + UINT64_C(1000000) * wait_ms};
}

uint32_t
xac_group_listen(const struct xac_env *env)
{
    xac_assert(env->ctl != NULL);
    return xac_wakes_read(&env->ctl->group.wakes);
}

int
xac_group_sleep(struct xac_env *env, uint32_t seen,
                const struct xac_group_patience *patience)
{
    xac_shared _Atomic uint32_t *wakes = &env->ctl->group.wakes;
    uint64_t now = xac_clock_ns(), left_ms;

    xac_assert(xac_lock_none_held());
    if (now >= patience->until_ns)
        return ETIMEDOUT;
    left_ms = (patience->until_ns - now) / 1000000 + 1;
    if (xac_wakes_is_announced(wakes, seen))
        xac_futex_wait(wakes, seen, left_ms < LOOK_MS ? (unsigned)left_ms : LOOK_MS);
    return 0;
}

/* ---- What is newest ------------------------------------------------------------------ */

/* ask -- ret the number of the question. */
static uint64_t
ask(struct xac_env *env)
{
    struct xac_group_shared *g = &env->ctl->group;
    /* Release: pairs with the acquire in xac_group_asked. */
    uint64_t n = atomic_fetch_add_explicit(&g->asked, 1, memory_order_release) + 1;

    xac_assert(g->node != 0);
    xac_wakes_fence();
    xac_wakes_ring(&g->asks);
    return n;
}

/* is_there -- is the n-th question answered, and do queries see what the answer says? */
static bool
is_there(const struct xac_env *env, uint64_t n)
{
    const struct xac_group_shared *g = &env->ctl->group;
    uint64_t lsn;

    xac_assert(n > 0);
    if (xac_group_answered(env) < n)
        return false;
    /* Relaxed: xac_group_answered() has acquired it, and a later one is as good (5). */
    lsn = atomic_load_explicit(&g->answered_lsn, memory_order_relaxed);
    if (xac_group_leads(env))
        return xac_group_replicated(env) >= lsn;
    /* Acquire: pairs with the release in xac_replayer_passed. */
    return atomic_load_explicit(&env->ctl->standby.applied, memory_order_acquire) >= lsn;
}

/* too_late -- what has not come. */
static int
too_late(const struct xac_env *env, uint64_t n, uint32_t wait_ms)
{
    xac_assert(env->ctl->group.node != 0);
    xac_assert(n > 0);
    if (xac_group_answered(env) >= n)
        return xac_err(ETIMEDOUT,
                       "%s: redo has not come within %u ms to all that the group has",
                       env->dir, wait_ms);
    return xac_err(ETIMEDOUT,
                   "%s: no majority of the group has said within %u ms what is newest",
                   env->dir, wait_ms);
}

int
xac_group_latest(struct xac_env *env, uint32_t wait_ms)
{
    struct xac_group_patience patience = xac_group_patience(wait_ms);
    uint64_t n;
    int rc;

    xac_assert(xac_lock_none_held());
    if (env->ctl->group.node == 0)
        return !xac_env_is_standby(env)
                   ? 0
                   : xac_err(XAC_ENOTLEADER,
                             "%s: a standby, which does not know what is newest at its "
                             "source: wait for a token of there",
                             env->dir);
    rc = xac_group_check(env, "xbeginQueryLatest");
    n = rc == 0 ? ask(env) : 0;
    while (rc == 0) {
        uint32_t seen = xac_group_listen(env);

        rc = xac_group_check(env, "xbeginQueryLatest");
        if (rc == 0 && is_there(env, n))
            return 0;
        if (rc == 0)
            rc = xac_group_sleep(env, seen, &patience);
    }
    return rc == ETIMEDOUT ? too_late(env, n, wait_ms) : rc;
}

uint64_t
xac_group_asked(const struct xac_env *env)
{
    /* Acquire: pairs with the release in ask. */
    return atomic_load_explicit(&env->ctl->group.asked, memory_order_acquire);
}

uint64_t
xac_group_answered(const struct xac_env *env)
{
    /* Acquire: pairs with the release in xac_group_answer. */
    return atomic_load_explicit(&env->ctl->group.answered, memory_order_acquire);
}

void
xac_group_answer(struct xac_env *env, uint64_t n, uint64_t lsn)
{
    struct xac_group_shared *g = &env->ctl->group;

    xac_assert(n <= atomic_load_explicit(&g->asked, memory_order_relaxed));
    xac_assert(n >= atomic_load_explicit(&g->answered, memory_order_relaxed));
    if (lsn > atomic_load_explicit(&g->answered_lsn, memory_order_relaxed)) /* (5) */
        atomic_store_explicit(&g->answered_lsn, lsn, memory_order_relaxed);
    /* Release: pairs with the acquire in xac_group_answered. */
    atomic_store_explicit(&g->answered, n, memory_order_release);
    xac_group_tell(env);
}

void
xac_group_hear(struct xac_env *env, unsigned timeout_ms)
{
    struct xac_group_shared *g = &env->ctl->group;
    uint32_t seen = xac_wakes_read(&g->asks);

    xac_assert(g->node != 0);
    if (xac_group_asked(env) == xac_group_answered(env)
        && xac_wakes_is_announced(&g->asks, seen))
        xac_futex_wait(&g->asks, seen, timeout_ms);
}
