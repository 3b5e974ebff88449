/* SPDX-License-Identifier: MIT */
/*
 * replayer.c -- see replayer.h.
 */
#include <config.h>

#include "recovery/replayer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/err.h"
#include "base/identity.h"
#include "base/sys.h"
#include "commit/txn.h"
#include "log/log_format.h"
#include "shared/group.h"
#include "shared/registry.h"
#include "shared/token.h"
#include "store/version.h"
#include "txn/ctree.h"
#include "txn/drop.h"
#include "txn/reap.h"
#include "txn/slot.h"
#include "txn/turn.h"
#include "view/file_register.h"

#define PLACES_LEAST 256 /* a power of two */

int
xac_replayer_init(struct xac_replayer *p, struct xac_env *env)
{
    xac_assert(xac_env_is_standby(env));
    *p = (struct xac_replayer){.env = env, .n_places = PLACES_LEAST};
    p->place = (struct xac_replayed_place *)calloc(p->n_places,
                                                   sizeof(struct xac_replayed_place));
    return p->place != NULL ? 0 : xac_err(ENOMEM, "redo beside readers");
}

void
xac_replayer_fini(struct xac_replayer *p)
{
    free(p->place);
    *p = (struct xac_replayer){.env = NULL};
}

/* ---- How far it is -------------------------------------------------------------------- */

uint64_t
xac_replayer_applied(struct xac_env *env)
{
    struct xac_standby_shared *sb = &env->ctl->standby;
    uint64_t applied = atomic_load_explicit(&sb->applied, memory_order_relaxed);
    sigset_t signals;

    xac_assert(sb->is_one != 0);
    xac_signals_block(&signals);
    xac_chain_lock(
        env); /* what a dead one was publishing is published now, if it will ever be */
    if (sb->redone != 0 && sb->redone <= xac_chain_commit(env)
        && sb->redone_end > applied)
        applied = sb->redone_end;
    /* Release: pairs with the acquire of those who wait for it, as in xac_replayer_passed. */
    atomic_store_explicit(&sb->applied, applied, memory_order_release);
    sb->redone = 0; /* the next numbers are others' */
    xac_chain_unlock(env);
    xac_signals_restore(&signals);
    return applied;
}

void
xac_replayer_durable(struct xac_replayer *p, uint64_t lsn)
{
    struct xac_env *env = p->env;
    sigset_t signals;

    xac_signals_block(&signals);
    xac_chain_lock(env);
    xac_log_stands(&env->log, lsn);
    xac_chain_unlock(env);
    xac_signals_restore(&signals);
    xac_assert(lsn % XAC_BLOCK_ALIGN == 0);
}

void
xac_replayer_mark(struct xac_replayer *p, uint64_t lsn)
{
    struct xac_chain *c = &p->env->ctl->chain;
    sigset_t signals;

    xac_signals_block(&signals);
    xac_chain_lock(p->env);
    xac_assert(atomic_load_explicit(&c->begin_lsn, memory_order_relaxed) <= lsn);
    atomic_store_explicit(&c->begin_lsn, lsn, memory_order_relaxed); /* (4) */
    xac_chain_unlock(p->env);
    xac_signals_restore(&signals);
}

void
xac_replayer_passed(struct xac_replayer *p, uint64_t lsn)
{
    xac_assert(
        lsn >= atomic_load_explicit(&p->env->ctl->standby.applied, memory_order_relaxed));
    /* Release: pairs with the acquire of those who wait for it (token.c, group.c); what is before is published. */
    atomic_store_explicit(&p->env->ctl->standby.applied, lsn, memory_order_release);
    xac_group_tell(p->env);
}

void
xac_replayer_turn(struct xac_replayer *p, const struct xac_lineage_line *line)
{
    xac_assert(xac_env_is_standby(p->env));
    xac_token_turn(p->env, line);
}

/* ---- Files ---------------------------------------------------------------------------- */

int
xac_replayer_file(struct xac_replayer *p, const char *path, int fd, uint64_t length,
                  uint32_t *localp)
{
    struct xac_env *env = p->env;
    struct xac_identity who;
    struct stat st;
    sigset_t signals;
    int rc = xac_identity_of(fd, &who);

    if (rc == 0 && xac_sys.fstat(fd, &st) != 0)
        rc = errno;
    if (rc != 0)
        return xac_err(rc, "%s", path);
    xac_signals_block(&signals);
    xac_registry_enter(env);
    rc = xac_registry_add(env, path, &who, (uint64_t)st.st_size, length, localp);
    xac_registry_exit(env);
    xac_signals_restore(&signals);
    xac_assert(rc != 0 || *localp != 0);
    return rc;
}

/* ---- Pages ---------------------------------------------------------------------------- */

/* place_of -- of a page's entry, or the free one for it. */
static struct xac_replayed_place *
place_of(const struct xac_replayer *p, uint64_t page_id)
{
    uint64_t h = page_id * UINT64_C(0xbf58476d1ce4e5b9);
    size_t i = (size_t)(h ^ (h >> 29)) & (p->n_places - 1);

    xac_assert(p->n_used < p->n_places);
    while (p->place[i].round == p->round && p->place[i].page_id != page_id)
        i = (i + 1) & (p->n_places - 1);
    return &p->place[i];
}

/* grow_places -- so that half of them stay free. */
static int
grow_places(struct xac_replayer *p)
{
    struct xac_replayer grown = *p;

    xac_assert((p->n_places & (p->n_places - 1)) == 0);
    if (2 * p->n_used < p->n_places)
        return 0;
    grown.n_places = 2 * p->n_places;
    grown.place =
        (struct xac_replayed_place *)calloc(grown.n_places, sizeof grown.place[0]);
    if (grown.place == NULL)
        return xac_err(ENOMEM, "redo beside readers");
    for (size_t i = 0; i < p->n_places; i++) {
        if (p->place[i].round == p->round)
            *place_of(&grown, p->place[i].page_id) = p->place[i];
    }
    free(p->place);
    *p = grown;
    return 0;
}

/* load -- the newest contents of a page that the running transaction has not changed. */
static int
load(struct xac_replayer *p, const struct xac_page *page,
     const struct xac_replayed_page *which, uint8_t *to)
{
    size_t size = p->env->page_size, got = 0;
    uint64_t commit, vslot = 0;
    const uint8_t *bytes;
    int rc;

    if (page != NULL)
        vslot = xac_version_find(p->env, page, UINT64_MAX, &commit);
    if (vslot != 0) {
        bytes = xac_version_bytes(p->env, vslot);
        if (bytes == NULL)
            return xac_err(errno, "buffer files of %s: reading a version",
                           p->env->region);
        memcpy(to, bytes, size); /* it stays: only we replace it */
        return 0;
    }
    rc = xac_read_full(which->fd, to, size, which->page * size, &got);
    if (rc == 0 && got < size)
        rc = EIO;
    xac_assert(got <= size);
    return rc == 0 ? 0
                   : xac_err(rc, "file %u of the log: read page %llu", which->file,
                             (unsigned long long)which->page);
}

/* first_of -- does full_since of the page move (4)? */
static enum xac_first
first_of(const struct xac_env *env, const struct xac_page *page, uint32_t flags)
{
    uint64_t newest, id = atomic_load_explicit(&page->id, memory_order_relaxed);

    xac_assert(xac_page_file(id) != 0);
    if ((flags & XAC_XDATA_FULL) != 0)
        return XAC_FIRST_FULL;
    if ((flags & XAC_XDATA_BASE) == 0)
        return XAC_FIRST_NOT;
    (void)xac_version_find(env, page, UINT64_MAX, &newest);
    /* Relaxed: only the replayer makes checkpoints. */
    return newest <= atomic_load_explicit(&env->ctl->ckpt_bound, memory_order_relaxed)
                   && xac_file_at(env, xac_page_file(id))->is_behind == 0
               ? XAC_FIRST_BASE
               : XAC_FIRST_NOT;
}

/* add -- a page that the running transaction changes for the first time. */
static int
add(struct xac_replayer *p, struct xac_page *page, struct xac_replayed_place *place,
    uint64_t page_id)
{
    struct xac_env *env = p->env;
    struct xac_entry *e;
    uint64_t index;
    int rc;

    e = xac_set_add(env, &env->ctx, page, XAC_SET_READ | XAC_SET_WRITE, &index);
    if (e == NULL)
        return xac_err(ENOMEM, "control region %s: redo", env->region);
    rc = xac_version_take(env, env->ctx.slot, &e->vslot);
    if (rc != 0)
        return rc;
    xac_assert(e->vslot != 0);
    env->ctx.txn->n_written++;
    *place = (struct xac_replayed_place){.page_id = page_id,
                                         .index = index,
                                         .round = p->round};
    p->n_used++;
    return 0;
}

/* entry_of -- of the page; NULL: the running transaction has not changed it. */
static struct xac_entry *
entry_of(const struct xac_replayer *p, const struct xac_replayed_place *place)
{
    return place->round == p->round ? xac_set_entry(&p->env->ctx, place->index) : NULL;
}

int
xac_replayer_page(struct xac_replayer *p, const struct xac_replayed_page *which,
                  uint32_t flags, uint8_t **bytesp)
{
    struct xac_env *env = p->env;
    uint32_t local = which->local;
    uint64_t page_id = xac_page_id(local, which->page);
    struct xac_replayed_place *place;
    struct xac_page *page;
    struct xac_entry *e;
    uint8_t *bytes;
    int rc;

    xac_assert(local != 0);
    rc = grow_places(p);
    if (rc != 0)
        return rc;
    page = xac_ptab_page(&env->shm, &xac_file_at(env, local)->root, local, which->page);
    if (page == NULL)
        return xac_err(ENOMEM, "control region %s: redo", env->region);
    place = place_of(p, page_id);
    e = entry_of(p, place);
    if (e == NULL) {
        rc = add(p, page, place, page_id);
        if (rc != 0)
            return rc;
        e = entry_of(p, place);
        bytes = xac_version_bytes(env, e->vslot);
        if (bytes == NULL)
            return xac_err(errno, "buffer files of %s", env->region);
        if ((flags & XAC_XDATA_FULL) == 0)
            rc = load(p, page, which, bytes);
        e->first = first_of(env, page, flags);
    } else if ((flags & XAC_XDATA_FULL) != 0) {
        e->first = XAC_FIRST_FULL;
    }
    *bytesp = xac_version_bytes(env, e->vslot);
    return rc;
}

int
xac_replayer_read(struct xac_replayer *p, const struct xac_replayed_page *which,
                  uint8_t *to)
{
    struct xac_env *env = p->env;
    uint32_t local = which->local;
    const struct xac_entry *e;

    xac_assert(local != 0);
    e = entry_of(p, place_of(p, xac_page_id(local, which->page)));
    if (e != NULL) {
        memcpy(to, xac_version_bytes(env, e->vslot), env->page_size);
        return 0;
    }
    return load(p, xac_ptab_find(&env->shm, &xac_file_at(env, local)->root, which->page),
                which, to);
}

/* ---- Transactions --------------------------------------------------------------------- */

int
xac_replayer_begin(struct xac_replayer *p)
{
    struct xac_env *env = p->env;

    xac_assert(env->reader == XAC_READER_NONE);
    p->round++;
    p->n_used = 0;
    return xac_txn_begin(env, &env->ctx, false);
}

int
xac_replayer_end(struct xac_replayer *p, uint64_t lsn, uint64_t end, uint64_t time_ns)
{
    struct xac_env *env = p->env;
    struct xac_ctx *ctx = &env->ctx;
    bool is_done = lsn == 0 || ctx->txn->n_written == 0;
    sigset_t signals;
    int rc = 0;

    xac_assert(lsn <= end);
    xac_signals_block(&signals);
    if (!is_done) {
        ctx->txn->time_ns = time_ns;
        is_done = xac_chain_publish_redone(env, ctx->slot, lsn, end);
        if (!is_done)
            rc = xac_err(EIO, "redo: the transaction has been failed");
    }
    if (xac_turn_is_wanted(ctx->txn))
        xac_turn_pass(env, ctx->slot);
    xac_txn_drop(env, ctx->slot, ctx->slot, XAC_TXN_IDLE); /* no view shows its pages */
    ctx->n_entries = 0;
    xac_txn_forgo(ctx);
    if (lsn != 0 && xac_gc_is_due(env) && xac_gc(env))
        xac_reap_dead(env);
    xac_signals_restore(&signals);
    return rc;
}
