/* SPDX-License-Identifier: MIT */
/*
 * txn.c -- the end of a transaction: see txn.h.  The letters name the steps of a commit in
 * doc/ARCHITECTURE.md.
 *
 * The end of a transaction is decided first and finished afterwards: commit() does steps a to h and
 * says whether the transaction is published; end_committed() or xac_txn_end_aborted() finishes it.
 */
#include <config.h>

#include "commit/txn.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/lines.h"
#include "base/probe.h"
#include "base/sys.h"
#include "checkpoint/checkpoint.h"
#include "shared/env_state.h"
#include "shared/group.h"
#include "shared/registry.h"
#include "store/outofcore.h"
#include "store/version.h"
#include "txn/alone.h"
#include "txn/commit_block.h"
#include "txn/conflict.h"
#include "txn/ctree.h"
#include "txn/drop.h"
#include "txn/history.h"
#include "txn/policy.h"
#include "txn/reader_limit.h"
#include "txn/reap.h"
#include "txn/turn.h"
#include "view/fault.h"
#include "view/view_scan.h"

/* Pages of the write set that are searched for the bytes of a full image. */
#define SOURCES_MAX 3
_Static_assert(XAC_PLACE_SOURCES + SOURCES_MAX <= XAC_PLACES, "a place for each");

/* How long a process that cannot write the log itself waits for others to do so. */
#define OTHERS_MS 200

/* ---- Steps a and b: what has changed ---------------------------------------------- */

/*
 * old_version -- the page as the transaction saw it first: an image that was kept; or in the version
 * store or its file, then with XAC_OPT_FRAMES in that place of the context; NULL with errno.
 */
static const uint8_t *
old_version(const struct xac_ctx *ctx, const struct xac_entry *e, int place)
{
    struct xac_env *env = ctx->env;
    uint64_t parent = atomic_load_explicit(&ctx->txn->parent, memory_order_relaxed);
    const uint8_t *image = xac_view_image(ctx, xac_entry_page_id(env, e));
    uint64_t commit, vslot;

    if (image != NULL)
        return image;
    vslot = xac_version_find(env, xac_entry_page(env, e), parent, &commit);
    return vslot != 0 ? xac_version_bytes(env, vslot)
                      : xac_view_file_bytes(ctx, xac_entry_page_id(env, e), place);
}

/*
 * first_of -- has the page not been logged since the last checkpoint began?
 *
 * A difference to what the file holds says nothing unless the file holds the page as it is
 * now: a page that comes from the version store is logged in full.
 */
static enum xac_first
first_of(const struct xac_env *env, const struct xac_page *page)
{
    uint64_t newest;

    if (atomic_load_explicit(&page->full_since, memory_order_relaxed)
        >= atomic_load_explicit(&env->ctl->chain.begin_lsn, memory_order_relaxed))
        return XAC_FIRST_NOT;
    (void)xac_version_find(env, page, UINT64_MAX, &newest);
    /* Relaxed: grows, an older value is smaller. */
    return env->ctl->full_images != 0
                   || newest > atomic_load_explicit(&env->ctl->ckpt_bound,
                                                    memory_order_relaxed)
               ? XAC_FIRST_FULL
               : XAC_FIRST_BASE;
}

/* no_version -- its bytes cannot be reached; errno says why. */
static int
no_version(const struct xac_env *env)
{
    return xac_err(errno, "buffer files of %s: reading a version", env->region);
}

/* collect_page -- one entry of the write set; ret 0 or an error. */
static int
collect_page(struct xac_env *env, struct xac_ctx *ctx, struct xac_entry *e)
{
    const uint8_t *now = xac_view_working_copy(ctx, xac_entry_page_id(env, e));
    const uint8_t *was;
    uint8_t *keep;
    int rc;

    xac_assert(e->vslot == 0);
    xac_assert((atomic_load_explicit(&e->mode, memory_order_relaxed) & XAC_SET_WRITE)
               != 0);
    if (now == NULL)
        return xac_err(errno, "reading a spilled page");
    /* In units most pages are not written at all; reading them would cost more. */
    if (ctx->unit_shift > 0 && xac_view_is_untouched(ctx, xac_entry_page_id(env, e)))
        return 0;
    e->in_place = ctx->is_in_place ? xac_view_in_place(ctx, e) : 0;
    if (e->in_place != 0) { /* it is the newest contents already */
        ctx->txn->n_written++;
        return 0;
    }
    was = old_version(ctx, e, XAC_PLACE_SHOWN);
    if (was == NULL)
        return xac_err(errno, "reading the previous version of a page");
    if (memcmp(now, was, env->page_size) == 0)
        return 0; /* stays in the read set: the value it stored must still be right */
    rc = xac_version_take(env, ctx->slot, &e->vslot);
    if (rc != 0)
        return rc;
    xac_kill_point("b frame");
    ctx->txn->n_written++;
    keep = xac_version_bytes(env, e->vslot);
    if (keep == NULL)
        return no_version(env);
    xac_assert(e->vslot != 0);
    if (xac_alone_tells_lines(env))
        e->same = xac_lines_same(now, was, env->page_size);
    memcpy(keep, now, env->page_size);
    e->first = first_of(env, xac_entry_page(env, e));
    return 0;
}

/* change_of -- how an entry's page is logged, without a source; `from` may lie in that place
   of the context. */
static struct xac_page_change
change_of(const struct xac_ctx *ctx, const struct xac_entry *e, int place)
{
    uint64_t id = xac_entry_page_id(ctx->env, e);

    xac_assert(e->vslot != 0);
    return (struct xac_page_change){
        .file = xac_page_file(id),
        .page = xac_page_no(id),
        .is_base = e->first == XAC_FIRST_BASE,
        .from = e->first == XAC_FIRST_FULL ? NULL : old_version(ctx, e, place),
        .to = xac_version_bytes(ctx->env, e->vslot),
    };
}

/* set_source -- the previous version of the page of another change. */
static void
set_source(struct xac_page_change *c, const struct xac_page_change *source)
{
    xac_assert(source->file != 0);
    c->source_file = source->file;
    c->source_page = source->page;
    c->source = source->from;
}

/*
 * log_full -- a full image, with the source that makes it shortest.
 *
 * in   sources  changes that are logged behind it, as differences: at this place of the
 *               log these pages have their previous versions, and the log since the last
 *               XCHECKPT_BEGIN tells what those are
 */
static int
log_full(struct xac_env *env, struct xac_commit_block *m, struct xac_page_change *c,
         const struct xac_page_change *sources, uint32_t n_sources)
{
    size_t start = m->b.used, least = SIZE_MAX;
    uint32_t records = m->b.records, best = 0;
    int rc = 0;

    xac_assert(n_sources <= SOURCES_MAX);
    xac_assert(c->to != NULL);
    for (uint32_t i = 0; i < n_sources && n_sources > 1 && rc == 0; i++) {
        set_source(c, &sources[i]);
        rc = xac_commit_block_add(env, m, c);
        if (m->b.used < least) {
            least = m->b.used;
            best = i;
        }
        m->b.used = start;
        m->b.records = records;
    }
    if (n_sources > 0)
        set_source(c, &sources[best]);
    return rc == 0 ? xac_commit_block_add(env, m, c) : rc;
}

/*
 * log_pages -- records of all pages of the write set: full images first, since they may
 * copy from what the differences are about to change.
 *
 * Without full images nothing is copied: recovery applies differences to what the file
 * holds, which may be newer, and only bytes that stand in the record are right then.
 */
static int
log_pages(struct xac_env *env, struct xac_ctx *ctx, struct xac_commit_block *m)
{
    struct xac_page_change source[SOURCES_MAX];
    bool copies = env->ctl->full_images != 0;
    uint32_t n_sources = 0;
    int rc = 0;

    for (uint64_t i = 0; copies && i < ctx->n_entries && n_sources < SOURCES_MAX; i++) {
        const struct xac_entry *e = xac_set_entry(ctx, i);

        if (e->vslot != 0 && e->first != XAC_FIRST_FULL) {
            source[n_sources] = change_of(ctx, e, XAC_PLACE_SOURCES + (int)n_sources);
            n_sources++;
        }
    }
    for (int full = 1; full >= 0; full--) {
        for (uint64_t i = 0; i < ctx->n_entries && rc == 0; i++) {
            const struct xac_entry *e = xac_set_entry(ctx, i);
            struct xac_page_change c;

            if (e->vslot == 0 || (e->first == XAC_FIRST_FULL) != (full != 0))
                continue;
            c = change_of(ctx, e, XAC_PLACE_SHOWN);
            if (c.to == NULL || (c.from == NULL && !full))
                return no_version(env);
            if (!full && copies)
                set_source(&c, &c);
            rc = full ? log_full(env, m, &c, source, n_sources)
                      : xac_commit_block_add(env, m, &c);
        }
    }
    return rc;
}

/* collect -- steps a and b for the whole write set; ret 0 or an error. */
static int
collect(struct xac_env *env, struct xac_ctx *ctx)
{
    struct xac_txn *txn = ctx->txn;
    bool is_durable = xac_env_is_durable(env);
    struct xac_commit_block m = {.at = txn->record, .size = txn->record_size};
    int rc = 0;

    xac_assert(txn->n_written == 0);
    xac_assert(txn->datafile == 0);
    txn->all_full = 0;
    /* Acquire: pairs with the release in the checkpoint; the count before begin_lsn. */
    txn->ckpt_count =
        atomic_load_explicit(&env->ctl->chain.ckpt_count, memory_order_acquire);
    if (is_durable)
        rc = xac_commit_block_begin(env, txn, &m);
    for (uint64_t i = 0; i < ctx->n_entries && rc == 0; i++) {
        struct xac_entry *e = xac_set_entry(ctx, i);

        if ((atomic_load_explicit(&e->mode, memory_order_relaxed) & XAC_SET_WRITE) != 0)
            rc = collect_page(env, ctx, e);
        if (rc == 0)
            rc = xac_group_check_changes(env, txn->n_written);
    }
    if (rc == 0 && is_durable && txn->n_written > 0) {
        rc = log_pages(env, ctx, &m);
        if (rc == 0)
            rc = xac_commit_block_end(env, txn, &m);
    }
    txn->record = m.at;
    txn->record_size = m.size;
    xac_assert(txn->n_written <= ctx->n_entries);
    xac_assert(txn->record == 0 || txn->record_size != 0);
    return rc;
}

/* ---- Steps c to h: the outcome ---------------------------------------------------- */

/* change_state -- PENDING to another state; false if somebody has failed us. */
static bool
change_state(struct xac_env *env, struct xac_txn *txn, enum xac_txn_state to)
{
    uint64_t word = atomic_load_explicit(&txn->word, memory_order_relaxed);

    xac_assert(xac_txn_may_become(XAC_TXN_PENDING, to));
    xac_assert(xac_txn_participant(word) == env->self);
    if (xac_txn_state(word) != XAC_TXN_PENDING)
        return false;
    /* Release: pairs with the acquire of the process that finishes us; the descriptor is complete.
       Acquire: pairs with the exchange in xac_txn_fail. */
    return atomic_compare_exchange_strong_explicit(
        &txn->word, &word, xac_txn_word(xac_txn_serial(word), env->self, to),
        memory_order_acq_rel, memory_order_acquire);
}

/* give_up -- the transaction aborts because it lacks something. */
static void
give_up(struct xac_env *env, struct xac_ctx *ctx, int error)
{
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);

    xac_assert(error != 0);
    ctx->error = error;
    if (error == ETIMEDOUT && xac_wait_is_over())
        (void)xac_err(error, "xend: waited for another participant for %u ms",
                      xac_wait_limit_ms());
    (void)xac_txn_fail(ctx->txn, word, XAC_CONFLICT_RESOURCE, env->pid, 0);
}

/*
 * publish -- steps d to h, again and again until the transaction is published.
 *
 * in   is_pending  it is, until it has the lock; else COMMITTING
 * ret  0; XAC_ABORTED: it has failed; an error for which it has to be rolled back.
 */
static int
publish(struct xac_env *env, struct xac_ctx *ctx, bool is_pending)
{
    struct xac_txn *txn = ctx->txn;
    uint64_t word = atomic_load_explicit(&txn->word, memory_order_relaxed);
    uint64_t page = 0;
    int rc = 0;

    xac_assert(txn->n_written > 0);
    xac_assert(!xac_lock_is_mine(&env->ctl->chain.publish));
    while (rc == 0) {
        switch (is_pending ? xac_chain_publish_valid(env, ctx->slot, &page)
                           : xac_chain_publish(env, ctx->slot, xac_txn_serial(word))) {
        case XAC_PUBLISH_DONE:
            return 0;
        case XAC_PUBLISH_ROOM:
            rc = xac_commit_block_make_room(env, txn);
            break;
        case XAC_PUBLISH_REBUILD:
            rc = xac_commit_block_rebuild(env, ctx->slot);
            break;
        case XAC_PUBLISH_TURN:
            rc = xac_turn_take(env, ctx);
            break;
        case XAC_PUBLISH_TIMEOUT:
            rc = ETIMEDOUT;
            break;
        case XAC_PUBLISH_CONFLICT:
            (void)xac_txn_fail(txn, word, env->policy->lost, 0, page);
            return XAC_ABORTED;
        case XAC_PUBLISH_GONE: /* taken back by a newcomer (alone.h), or failed */
            return XAC_ABORTED;
        }
    }
    return rc;
}

bool
xac_txn_foresee(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);
    uint64_t page = 0;

    xac_assert(env->policy != NULL);
    if (!ctx->is_query && xac_txn_is_deposed(env, ctx))
        return false;
    if (ctx->is_query || env->policy->validate == NULL
        || env->policy->validate(env, ctx->slot, &page))
        return true;
    (void)xac_txn_fail(ctx->txn, word, env->policy->lost, 0, page);
    return false;
}

/* publish_eager -- under an eager policy: COMMITTING first, so that others wait for it.  ret as
   publish(). */
static int
publish_eager(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);
    int rc;

    xac_assert(!env->policy->decides_at_end);
    if (!change_state(env, ctx->txn, XAC_TXN_COMMITTING))
        return XAC_ABORTED;
    xac_kill_point("c");
    rc = publish(env, ctx, false);
    if (rc == 0 || rc == XAC_ABORTED)
        return rc;
    switch (xac_chain_take_back(env, ctx->slot, xac_txn_serial(word))) {
    case XAC_TXN_PUBLISHED:
        return 0; /* somebody has published it meanwhile */
    case XAC_TXN_COMMITTING:
        return rc;
    default:
        return XAC_ABORTED;
    }
}

/* commit_changes -- steps c to h for what collect() has found; ret as publish(). */
static int
commit_changes(struct xac_env *env, struct xac_ctx *ctx)
{
    int rc = 0;

    if (xac_txn_is_deposed(env, ctx))
        return XAC_ABORTED;
    if (xac_env_is_durable(env))
        rc = xac_commit_block_make_room(env, ctx->txn);
    else if (xac_history_is_on(env))
        ctx->txn->time_ns = xac_clock_read(CLOCK_REALTIME);
    if (rc != 0)
        return rc;
    if (!env->policy->decides_at_end && !xac_wait_is_limited())
        return publish_eager(env, ctx);
    /* PENDING until it has the lock, so that nobody publishes it before.  Most losers are found out
       without the lock. */
    return xac_txn_foresee(env, ctx) ? publish(env, ctx, true) : XAC_ABORTED;
}

/* commit_reads -- a transaction that changed nothing commits at its parent; ret as publish(). */
static int
commit_reads(struct xac_env *env, struct xac_ctx *ctx)
{
    return change_state(env, ctx->txn, XAC_TXN_PUBLISHED) ? 0 : XAC_ABORTED;
}

/*
 * commit -- steps a to h.  Never finishes the transaction: that is the caller's.
 *
 * ret  is it PUBLISHED?  If not, it is FAILED, and ctx->error says what it has lacked, 0 nothing.
 */
static bool
commit(struct xac_env *env, struct xac_ctx *ctx)
{
    /* Acquire: pairs with the exchange in xac_txn_fail. */
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_acquire);
    int rc = ctx->error;

    xac_assert(!ctx->is_query);
    xac_assert(xac_lock_none_held());
    if (rc == 0 && xac_txn_state(word) == XAC_TXN_FAILED)
        return false;
    if (rc == 0) {
        xac_kill_point("a");
        rc = collect(env, ctx);
    }
    if (rc == 0) {
        xac_debug(xac_txn_assert(ctx));
        xac_kill_point("b");
        rc = ctx->txn->n_written > 0 ? commit_changes(env, ctx) : commit_reads(env, ctx);
    }
    if (rc != 0 && rc != XAC_ABORTED)
        give_up(env, ctx, rc);
    return rc == 0;
}

/* ---- Steps i to k: how it ends -------------------------------------------------------- */

void
xac_txn_finish(struct xac_env *env, struct xac_ctx *ctx, bool is_committed)
{
    xac_view_end_all(env, ctx, is_committed);
    xac_txn_drop(env, ctx->slot, ctx->slot, XAC_TXN_IDLE);
    ctx->n_entries = 0;
    xac_assert(xac_txn_state(atomic_load_explicit(&ctx->txn->word, memory_order_relaxed))
               == XAC_TXN_IDLE);
    xac_debug(xac_txn_assert(ctx));
    if (ctx->saw_dead && !xac_wait_is_over()) {
        ctx->saw_dead = false;
        xac_reap_dead(env);
    }
}

/* await_here -- until the log is durable up to lsn.  What this process cannot write, another one may. */
static int
await_here(struct xac_env *env, uint64_t lsn, bool is_started)
{
    uint32_t delay_ms = env->options.sync_delay_ms;
    int rc;

    xac_assert(lsn <= atomic_load_explicit(&env->log.sh->tail, memory_order_relaxed));
    if (is_started)
        rc = xac_log_flush_end(&env->log, lsn);
    else if (delay_ms != 0)
        rc = xac_log_wait_delayed(&env->log, delay_ms);
    else
        rc = xac_log_wait_durable(&env->log, lsn);
    if (rc == ETIMEDOUT)
        return xac_err(XAC_EUNCERTAIN,
                       "waiting for the log, which another process has to sync");
    if (rc == XAC_ENOTDURABLE && xac_registry_attached(env) > 1
        && xac_log_wait_others(&env->log, lsn, OTHERS_MS) == 0)
        return 0;
    return rc;
}

/*
 * await -- step j: until the log is durable up to lsn, and in a group a majority has it, or as long as
 * XAC_OPT_SYNC_DELAY_MS and XAC_OPT_WAIT_MS ask for.
 *
 * in   is_started  the device is writing already: the flush lock is held
 * ret  0, XAC_EPOISONED, XAC_ENOTDURABLE or XAC_EUNCERTAIN
 */
static int
await(struct xac_env *env, uint64_t lsn, bool is_started)
{
    int rc;

    xac_assert(xac_lock_none_held() || is_started);
    if (!xac_env_is_durable(env))
        return 0;
    rc = await_here(env, lsn, is_started);
    if (rc == 0 && env->options.sync_delay_ms == 0)
        rc = xac_group_wait(env, lsn);
    if (rc == ETIMEDOUT)
        return xac_err(XAC_EUNCERTAIN, "waiting for a majority of the group");
    return rc;
}

uint64_t
xac_txn_seen_lsn(const struct xac_env *env, const struct xac_ctx *ctx)
{
    return ctx->is_at
               /* Noted with the snapshot, when the ring still told it. */
               ? atomic_load_explicit(&ctx->txn->end, memory_order_relaxed)
               : xac_chain_lsn(env, atomic_load_explicit(&ctx->txn->parent,
                                                         memory_order_relaxed));
}

void
xac_txn_forgo(struct xac_ctx *ctx)
{
    ctx->txn->is_retry = 0;
    ctx->n_lost = 0;
    ctx->n_cured = 0;
    /* Relaxed: a hint for xac_conflict_wait. */
    atomic_store_explicit(&ctx->txn->age, XAC_AGE_OVER, memory_order_relaxed);
}

/* end_changed -- the transaction is published, and has changed something: steps i to k. */
static int
end_changed(struct xac_env *env, struct xac_ctx *ctx)
{
    struct xac_txn *txn = ctx->txn;
    uint64_t n_written = txn->n_written,
             lsn = atomic_load_explicit(&txn->end, memory_order_relaxed);
    bool is_started;
    int rc;

    ctx->ended_lsn = lsn;
    xac_assert(n_written > 0);
    xac_assert(txn->number <= xac_chain_commit(env));
    xac_kill_point("h");
    /* The device works while we take the pages back.  Cleaning up after the dead ranks
       before the flush lock. */
    XAC_PROBE3(commit, txn->number, n_written, lsn);
    is_started = xac_env_is_durable(env) && !ctx->saw_dead
                 && env->options.sync_delay_ms == 0 && xac_log_flush_start(&env->log);
    xac_txn_finish(env, ctx, true);
    xac_kill_point("i");
    xac_count_own(&txn->counters.commits, 1);
    xac_count_own(&txn->counters.pages_written, n_written);
    xac_kill_point("j");
    rc = await(env, lsn, is_started);
    if (xac_gc_is_due(env) && xac_gc(env))
        xac_reap_dead(env);
    return rc;
}

/* end_committed -- the transaction is published, or has changed nothing; ret as xac_txn_end. */
static int
end_committed(struct xac_env *env, struct xac_ctx *ctx)
{
    int rc;

    if (ctx->txn->n_written > 0) {
        rc = end_changed(env, ctx);
    } else {
        uint64_t lsn = xac_txn_seen_lsn(env, ctx);

        ctx->ended_lsn = lsn;
        xac_txn_finish(env, ctx, true);
        xac_count_own(&ctx->txn->counters.commits_read_only, 1);
        rc = await(env, lsn, false);
    }
    if (xac_unlikely(ctx->conflict.kind != XAC_CONFLICT_NONE
                     || ctx->conflict.found_by_us))
        memset(&ctx->conflict, 0, sizeof ctx->conflict);
    xac_txn_forgo(ctx);
    return rc;
}

/*
 * end_query -- a query has nothing to publish, but what it read must be durable.  Signals are
 * blocked only if a lock may have to be taken: to wait for that, or to clean up.
 */
static int
end_query(struct xac_env *env, struct xac_ctx *ctx)
{
    struct xac_txn *txn = ctx->txn;
    uint64_t lsn = xac_txn_seen_lsn(env, ctx);
    bool must_block =
        ctx->saw_dead
        || (xac_env_is_durable(env)
            && (env->options.sync_delay_ms != 0 || xac_group_bound(env) < lsn));
    uint32_t wait_ms = xac_txn_limit_ms(env, ctx->until_ns);
    sigset_t signals;
    bool is_cut;
    int rc;

    xac_assert(ctx->is_query);
    xac_assert(txn->n_written == 0);
    ctx->ended_lsn = lsn;
    if (must_block)
        xac_signals_block(&signals);
    is_cut = xac_txn_is_cut(txn);                      /* behind its last load */
    ctx->is_unrecorded = ctx->is_unrecorded || is_cut; /* nothing stays */
    xac_txn_finish(env, ctx, true);
    xac_count_own(&txn->counters.queries, 1);
    if (xac_unlikely(wait_ms != 0))
        xac_wait_limit(wait_ms);
    rc = await(env, lsn, false);
    if (xac_unlikely(wait_ms != 0))
        xac_wait_limit(0);
    if (must_block)
        xac_signals_restore(&signals);
    return is_cut ? xac_txn_cut_error(env, "xendQuery") : rc;
}

int
xac_txn_cut_error(const struct xac_env *env, const char *what)
{
    return xac_err(
        XAC_ECUTOFF,
        "%s: the query has held back more versions than XAC_OPT_READER_LIMIT allows (%llu "
        "bytes), so its state is not kept any more; what it has read since may be wrong",
        what,
        /* Relaxed: for people. */
        (unsigned long long)atomic_load_explicit(&env->ctl->reader_limit,
                                                 memory_order_relaxed));
}

/* ---- End -------------------------------------------------------------------------- */

/* gather -- the last entries of the set; why it must abort, in words. */
static void
gather(struct xac_env *env, struct xac_ctx *ctx)
{
    if (ctx->error == 0) {
        ctx->error = xac_view_gather(env, ctx);
        ctx->error_lacking = ctx->lacking;
    }
    if (ctx->error != 0)
        xac_error_explain(ctx);
}

/*
 * may_lock -- may the end of a transaction take a lock, so that signals concern it?  Not if
 * it has nothing in its set, which is so when it has only read while alone (alone.h).
 */
static bool
may_lock(const struct xac_env *env, const struct xac_ctx *ctx)
{
    return ctx->n_entries > 0 || ctx->saw_dead || xac_env_is_durable(env);
}

/*
 * may_step -- may a transaction do a step of a checkpoint at its end?  With a limit only if it has
 * just had the lock to publish, for the step takes it without: nobody is stopped with it.
 */
static bool
may_step(const struct xac_ctx *ctx, uint64_t commits)
{
    return !xac_wait_is_over()
           && atomic_load_explicit(&ctx->txn->counters.commits, memory_order_relaxed)
                  != commits;
}

/* must_block -- would somebody wait for a handler at this end who does not wait for one in the
   transaction (lock.h, NOT BLOCKED)? */
static bool
must_block(const struct xac_env *env)
{
    xac_assert(env->policy != NULL);
    return xac_env_is_durable(env)
           || (!env->policy->is_serial && xac_alone_epoch(env) == 0);
}

/* time_begin -- the time, if this commit is one of those that are timed; else 0. */
static uint64_t
time_begin(const struct xac_env *env, const struct xac_ctx *ctx)
{
    uint64_t commits =
        atomic_load_explicit(&ctx->txn->counters.commits, memory_order_relaxed);

    return xac_env_is_durable(env) || commits % XAC_COMMITS_TIMED == 0 ? xac_clock_ns()
                                                                       : 0;
}

/* end_update -- with signals blocked, or let through. */
static int
end_update(struct xac_env *env, struct xac_ctx *ctx, bool is_locking)
{
    bool is_blocked = is_locking && must_block(env);
    bool is_committed;
    sigset_t signals;
    int rc;

    xac_assert(!ctx->is_query);
    if (is_blocked)
        xac_signals_block(&signals);
    else
        xac_half_done_begin();
    is_committed = commit(env, ctx);
    if (xac_turn_is_wanted(ctx->txn)) /* the next one runs while we wait for the disk */
        xac_turn_pass(env, ctx->slot);
    rc = is_committed ? end_committed(env, ctx) : xac_txn_end_aborted(env, ctx);
    if (is_blocked)
        xac_signals_restore(&signals);
    else
        xac_half_done_end();
    return rc;
}

int
xac_txn_end(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t commits =
        atomic_load_explicit(&ctx->txn->counters.commits, memory_order_relaxed);
    uint32_t wait_ms = xac_txn_limit_ms(env, ctx->until_ns);
    uint64_t begin_ns = 0;
    bool is_locking;
    int rc;

    xac_assert(xac_lock_none_held());
    xac_debug(xac_txn_assert(ctx));
    ctx->ended_lsn = XAC_ENDED_NOTHING;
    if (ctx->is_query)
        return end_query(env, ctx);
    gather(env, ctx);
    is_locking = may_lock(env, ctx);
    if (xac_unlikely(wait_ms != 0))
        xac_wait_limit(wait_ms);
    if (is_locking)
        begin_ns = time_begin(env, ctx);
    rc = end_update(env, ctx, is_locking);
    if (begin_ns != 0
        && atomic_load_explicit(&ctx->txn->counters.commits, memory_order_relaxed)
               != commits)
        xac_times_add(&ctx->txn->counters.commit_times, xac_clock_ns() - begin_ns);
    /* With a limit only after a commit has written.  Not after an error: its words are to stay. */
    if (is_locking && (rc == XAC_COMMITTED || rc == XAC_ABORTED)
        && (wait_ms == 0 || may_step(ctx, commits)))
        xac_checkpoint_if_due(env);
    if (xac_unlikely(wait_ms != 0))
        xac_wait_limit(0);
    xac_assert(xac_lock_none_held());
    xac_assert(ctx->n_entries == 0);
    return rc;
}
