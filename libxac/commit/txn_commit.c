/* SPDX-License-Identifier: MIT */
/*
 * txn_commit.c -- the life of a commit: find what changed, build the log block, publish,
 * wait until it is durable.  The steps are those of doc/ARCHITECTURE.md.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/sys.h"
#include "commit/txn.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/outofcore.h"
#include "store/version.h"
#include "txn/commit_block.h"
#include "txn/ctree.h"
#include "txn/optimistic.h"
#include "txn/policy.h"
#include "txn/reap.h"
#include "view/view.h"

/* Pages of the write set that are searched for the bytes of a full image. */
#define SOURCES_MAX 3
_Static_assert(XAC_PLACE_SOURCES + SOURCES_MAX <= XAC_PLACES, "a place for each");

/* How long a process that cannot write the log itself waits for others to do so. */
#define OTHERS_MS 200

/* ---- Steps a and b: what changed --------------------------------------------------- */

/*
 * old_version -- the page as the transaction saw it first, in the version store or in
 * its file, then with XAC_OPT_FRAMES in that place of the context; NULL with errno.
 */
static const uint8_t *
old_version(const struct xac_ctx *ctx, const struct xac_entry *e, int place)
{
    struct xac_env *env = ctx->env;
    uint64_t parent = atomic_load_explicit(&ctx->txn->parent, memory_order_relaxed);
    uint64_t commit;
    uint64_t vslot = xac_version_find(env, xac_entry_page(env, e), parent, &commit);

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

    if (now == NULL)
        return xac_err(errno, "reading a spilled page");
    /* In units most pages are not written at all; reading them would cost more. */
    if (ctx->unit_shift > 0 && xac_view_is_untouched(ctx, xac_entry_page_id(env, e)))
        return 0;
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
    }
    if (rc == 0 && is_durable && txn->n_written > 0) {
        rc = log_pages(env, ctx, &m);
        if (rc == 0)
            rc = xac_commit_block_end(env, txn, &m);
    }
    txn->record = m.at;
    txn->record_size = m.size;
    return rc;
}

/* ---- Steps c to j ------------------------------------------------------------------ */

/* change_state -- PENDING to another state; false if somebody has failed us. */
static bool
change_state(struct xac_env *env, struct xac_txn *txn, enum xac_txn_state to)
{
    uint64_t word = atomic_load_explicit(&txn->word, memory_order_relaxed);

    if (xac_txn_state(word) != XAC_TXN_PENDING)
        return false;
    /* Release: pairs with the acquire of who finishes us; the descriptor is complete.
       Acquire: pairs with the exchange in xac_txn_fail. */
    return atomic_compare_exchange_strong_explicit(
        &txn->word, &word, xac_txn_word(xac_txn_serial(word), env->self, to),
        memory_order_acq_rel, memory_order_acquire);
}

/* give_up -- the transaction aborts for want of something; ret XAC_ABORTED. */
static int
give_up(struct xac_env *env, struct xac_ctx *ctx, int error)
{
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);

    ctx->error = error;
    if (error == ETIMEDOUT && xac_wait_is_over())
        (void)xac_err(error, "xend: waited for another participant for %u ms",
                      env->options.wait_ms);
    (void)xac_txn_fail(ctx->txn, word, XAC_CONFLICT_RESOURCE, env->pid, 0);
    return XAC_ABORTED;
}

/*
 * publish -- steps d to h, again and again until the transaction is published.
 *
 * ret  0; ECANCELED if it has been taken back; what making room or the block may return.
 */
static int
publish(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);
    int rc = 0;

    while (rc == 0) {
        switch (xac_chain_publish(env, ctx->slot, xac_txn_serial(word))) {
        case XAC_PUBLISH_DONE:
            return 0;
        case XAC_PUBLISH_ROOM:
            rc = xac_commit_block_make_room(env, ctx->txn);
            break;
        case XAC_PUBLISH_REBUILD:
            rc = xac_commit_block_rebuild(env, ctx->slot);
            break;
        case XAC_PUBLISH_CONFLICT:
        case XAC_PUBLISH_TOKEN:   /* of optimistic environments only */
        case XAC_PUBLISH_TIMEOUT: /* not without a limit */
        case XAC_PUBLISH_GONE:
            return ECANCELED; /* taken back by a newcomer (alone.h) */
        }
    }
    return rc;
}

/*
 * commit_valid -- a transaction that wrote something, in an optimistic environment, or in any if
 * it may have to give up: it is PENDING until it has the lock, so that nobody publishes it then.
 *
 * ret  0 if published; XAC_ABORTED.
 */
static int
commit_valid(struct xac_env *env, struct xac_ctx *ctx)
{
    struct xac_txn *txn = ctx->txn;
    uint64_t word = atomic_load_explicit(&txn->word, memory_order_relaxed);
    uint64_t page = 0;

    /* Most losers are found out without the lock. */
    if (env->policy->is_optimistic && !env->policy->validate(env, txn, &page)) {
        (void)xac_txn_fail(txn, word, XAC_CONFLICT_VALIDATION, 0, page);
        return XAC_ABORTED;
    }
    for (;;) {
        int rc = 0;

        switch (xac_chain_publish_valid(env, ctx->slot, &page)) {
        case XAC_PUBLISH_DONE:
            return 0;
        case XAC_PUBLISH_ROOM:
            rc = xac_commit_block_make_room(env, txn);
            break;
        case XAC_PUBLISH_REBUILD:
            rc = xac_commit_block_rebuild(env, ctx->slot);
            break;
        case XAC_PUBLISH_TOKEN:
            xac_token_wait(env, ctx->slot);
            rc = xac_wait_is_over() ? ETIMEDOUT : 0;
            break;
        case XAC_PUBLISH_TIMEOUT:
            rc = ETIMEDOUT;
            break;
        case XAC_PUBLISH_CONFLICT:
            (void)xac_txn_fail(txn, word, XAC_CONFLICT_VALIDATION, 0, page);
            return XAC_ABORTED;
        case XAC_PUBLISH_GONE:
            return XAC_ABORTED;
        }
        if (rc != 0)
            return give_up(env, ctx, rc);
    }
}

/* commit_eager -- a transaction that wrote something, under an eager policy. */
static int
commit_eager(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);
    int rc;

    if (!change_state(env, ctx->txn, XAC_TXN_COMMITTING))
        return XAC_ABORTED;
    xac_kill_point("c");
    rc = publish(env, ctx);
    if (rc == 0)
        return 0;
    switch (xac_chain_take_back(env, ctx->slot, xac_txn_serial(word))) {
    case XAC_TXN_PUBLISHED:
        return 0; /* somebody has published it meanwhile */
    case XAC_TXN_COMMITTING:
        ctx->error = rc;
        return XAC_ABORTED;
    default:
        return XAC_ABORTED;
    }
}

int
xac_commit_await(struct xac_env *env, uint64_t lsn)
{
    uint32_t delay_ms = env->options.sync_delay_ms;

    int rc;

    if (!xac_env_is_durable(env))
        return 0;
    rc = delay_ms != 0 ? xac_log_wait_delayed(&env->log, delay_ms)
                       : xac_log_wait_durable(&env->log, lsn);
    return rc == ETIMEDOUT
               ? xac_err(XAC_EUNCERTAIN,
                         "waiting for the log, which another process has to sync")
               : rc;
}

/* commit_changes -- a transaction that wrote something. */
static int
commit_changes(struct xac_env *env, struct xac_ctx *ctx)
{
    struct xac_txn *txn = ctx->txn;
    uint64_t n_written = txn->n_written;
    bool is_started;
    uint64_t end;
    int rc = 0;

    if (xac_env_is_durable(env))
        rc = xac_commit_block_make_room(env, txn);
    if (rc != 0)
        return give_up(env, ctx, rc);
    rc = env->policy->is_optimistic || xac_wait_is_limited() ? commit_valid(env, ctx)
                                                             : commit_eager(env, ctx);
    if (rc != 0)
        return rc;
    xac_kill_point("h");
    end = txn->end;
    /* The device works while we take the pages back.  Cleaning up after the dead ranks
       before the flush lock. */
    is_started = xac_env_is_durable(env) && !ctx->saw_dead
                 && env->options.sync_delay_ms == 0 && xac_log_flush_start(&env->log);
    xac_txn_finish(env, ctx, true);
    xac_kill_point("i");
    xac_count_own(&txn->counters.commits, 1);
    xac_count_own(&txn->counters.pages_written, n_written);
    xac_kill_point("j");
    rc = is_started ? xac_log_flush_end(&env->log, end) : xac_commit_await(env, end);
    if (rc == XAC_ENOTDURABLE && xac_registry_attached(env) > 1
        && xac_log_wait_others(&env->log, end, OTHERS_MS) == 0)
        rc = 0;
    if (xac_gc(env))
        xac_reap_dead(env);
    return rc;
}

/* commit_reads -- a transaction that changed nothing commits at its parent. */
static int
commit_reads(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t parent = atomic_load_explicit(&ctx->txn->parent, memory_order_relaxed);
    uint64_t lsn = xac_chain_lsn(env, parent);

    if (!change_state(env, ctx->txn, XAC_TXN_PUBLISHED))
        return XAC_ABORTED;
    xac_txn_finish(env, ctx, true);
    xac_count_own(&ctx->txn->counters.commits_read_only, 1);
    return xac_commit_await(env, lsn);
}

int
xac_commit(struct xac_env *env, struct xac_ctx *ctx)
{
    /* Acquire: pairs with the exchange in xac_txn_fail. */
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_acquire);
    int rc;

    if (ctx->error != 0)
        return give_up(env, ctx, ctx->error);
    if (xac_txn_state(word) == XAC_TXN_FAILED)
        return XAC_ABORTED;
    xac_kill_point("a");
    rc = collect(env, ctx);
    if (rc != 0)
        return give_up(env, ctx, rc);
    xac_kill_point("b");
    return ctx->txn->n_written > 0 ? commit_changes(env, ctx) : commit_reads(env, ctx);
}
