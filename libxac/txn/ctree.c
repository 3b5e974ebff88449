/* SPDX-License-Identifier: MIT */
/*
 * ctree.c -- the chain of commits: see ctree.h.  Garbage collection is in gc.c.
 *
 * Publishing in one section of the publish lock:
 *   e  number and log position into the descriptor, then one store: publishing := slot.
 *      Before that store nothing has happened; after it, it will.  The block goes to the
 *      log, the log's tail moves.
 *   f  versions are linked at the heads of their pages' lists; the ring entry is written.
 *   g  C := number; the slot is PUBLISHED; publishing := none.
 * A survivor that finds `publishing` set redoes e to g with the number and position of
 * the descriptor; every step can be repeated.
 */
#include <config.h>

#include "txn/ctree.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/populate.h"
#include "log/block.h"
#include "shared/env_state.h"
#include "store/version.h"
#include "txn/in_place.h"
#include "txn/policy.h"

_Static_assert(sizeof(struct xac_ring_entry) == 256, "ring entries fill cache lines");

/* Ring entries that are fetched ahead at once, at the most. */
#define PREFETCH_MAX 16

XAC_SIGSAFE static struct xac_chain *
chain_of(const struct xac_env *env)
{
    return &env->ctl->chain;
}

int
xac_chain_init(struct xac_env *env)
{
    struct xac_chain *c = chain_of(env);
    int rc = xac_lock_init(&c->publish, XAC_RANK_PUBLISH);

    xac_assert(atomic_load_explicit(&c->commit, memory_order_relaxed) == 0);
    return rc == 0 ? xac_lock_init(&c->gc, XAC_RANK_GC) : rc;
}

void
xac_chain_enter(struct xac_env *env, struct xac_txn *txn)
{
    uint64_t parent, mark;

    xac_assert(xac_txn_is_live(atomic_load_explicit(&txn->word, memory_order_relaxed)));
    atomic_store_explicit(&txn->begin_ns, xac_clock_coarse_ns(), memory_order_relaxed);
    do {
        parent = xac_chain_commit(env);
        atomic_store_explicit(&txn->parent, parent, memory_order_relaxed);
        atomic_store_explicit(&txn->next, parent, memory_order_relaxed);
        atomic_store_explicit(&txn->start, parent, memory_order_relaxed);
        /* Pairs with the fence in xac_gc_bound: either the gc sees our
           parent, or we see that its mark has passed it. */
        atomic_thread_fence(memory_order_seq_cst);
        mark = atomic_load_explicit(&chain_of(env)->mark, memory_order_relaxed);
    } while (mark > parent);
    xac_assert(parent <= xac_chain_commit(env));
    xac_assert(mark <= parent);
}

/* ---- Steps e to g ------------------------------------------------------------------ */

static struct xac_ring_entry *
ring_at(const struct xac_env *env, uint64_t number)
{
    return &chain_of(env)->ring[number % XAC_RING_ENTRIES];
}

/* ring_begin -- take the place of an old entry. */
static struct xac_ring_entry *
ring_begin(struct xac_env *env, uint64_t number, uint64_t end_lsn, bool is_unlink)
{
    struct xac_ring_entry *r = ring_at(env, number);

    xac_assert(number != 0);
    xac_assert(xac_lock_is_mine(&chain_of(env)->publish));
    xac_assert(atomic_load_explicit(&r->number, memory_order_relaxed) <= number);
    atomic_store_explicit(&r->number, 0, memory_order_relaxed);
    /* Pairs with the fence of readers: a reader of what follows sees the number gone. */
    atomic_thread_fence(memory_order_release);
    r->end_lsn = end_lsn;
    r->is_unlink = is_unlink;
    atomic_store_explicit(&r->n_pages, 0, memory_order_relaxed);
    return r;
}

static void
ring_add(struct xac_ring_entry *r, uint64_t page, uint64_t same)
{
    uint32_t n = atomic_load_explicit(&r->n_pages, memory_order_relaxed);

    xac_assert(page != 0);
    xac_assert(n <= XAC_RING_PAGES || n == XAC_RING_ALL);
    if (n == XAC_RING_ALL)
        return;
    if (n == XAC_RING_PAGES) {
        n = XAC_RING_ALL;
    } else {
        if (n < XAC_RING_LINES)
            atomic_store_explicit(&r->same[n], same, memory_order_relaxed);
        atomic_store_explicit(&r->page[n], page, memory_order_relaxed);
        n++;
    }
    atomic_store_explicit(&r->n_pages, n, memory_order_relaxed);
}

static void
ring_end(struct xac_ring_entry *r, uint64_t number)
{
    xac_assert(number != 0);
    xac_assert(atomic_load_explicit(&r->number, memory_order_relaxed) == 0);
    /* Release: pairs with the acquire of readers. */
    atomic_store_explicit(&r->number, number, memory_order_release);
}

/* link_version -- step f for one page; does nothing the second time. */
static void
link_version(struct xac_env *env, const struct xac_txn *txn, const struct xac_entry *e)
{
    struct xac_page *page = (struct xac_page *)xac_shm_at(&env->shm, e->page);
    struct xac_vslot *f = xac_vslot_at(env, e->vslot);
    uint64_t head = atomic_load_explicit(&page->head, memory_order_relaxed);

    xac_assert(e->vslot != 0);
    xac_assert(e->page != 0);
    if (head == e->vslot)
        return;
    xac_assert(
        head == 0
        || atomic_load_explicit(&xac_vslot_at(env, head)->commit, memory_order_relaxed)
               < txn->number);
    xac_assert(xac_vslot_state(atomic_load_explicit(&f->word, memory_order_relaxed))
               != XAC_VSLOT_FREE);
    /* Pairs with the fence of readers that still stand on the version slot's last user. */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&f->next, head, memory_order_relaxed);
    atomic_store_explicit(&f->commit, txn->number, memory_order_relaxed);
    atomic_store_explicit(&f->page, e->page, memory_order_relaxed);
    atomic_store_explicit(&f->time_ns, txn->time_ns, memory_order_relaxed);
    atomic_store_explicit(&chain_of(env)->made,
                          atomic_load_explicit(&chain_of(env)->made, memory_order_relaxed)
                              + 1,
                          memory_order_relaxed);
    if (e->first != XAC_FIRST_NOT || txn->all_full)
        atomic_store_explicit(&page->full_since,
                              atomic_load_explicit(&chain_of(env)->begin_lsn,
                                                   memory_order_relaxed),
                              memory_order_relaxed);
    /* Release: pairs with the acquire in sweeps. */
    atomic_store_explicit(&f->word, xac_vslot_word(XAC_VSLOT_VERSION, txn->number),
                          memory_order_release);
    /* Relaxed: the release of the head and that of C come behind it. */
    atomic_store_explicit(&page->written, txn->number, memory_order_relaxed);
    xac_kill_point("f version");
    /* Release: pairs with the acquire in xac_version_find. */
    atomic_store_explicit(&page->head, e->vslot, memory_order_release);
    xac_kill_point("f page");
    xac_assert(atomic_load_explicit(&page->head, memory_order_relaxed) == e->vslot);
    xac_assert(atomic_load_explicit(&f->commit, memory_order_relaxed) == txn->number);
}

/* link_all -- step f: every written page, and the ring entry. */
static void
link_all(struct xac_env *env, const struct xac_txn *txn)
{
    struct xac_ring_entry *r =
        ring_begin(env, txn->number,
                   atomic_load_explicit(&txn->end, memory_order_relaxed), false);
    struct xac_set_walk walk = xac_set_walk(txn);
    const struct xac_entry *e;

    xac_assert(xac_lock_is_mine(&chain_of(env)->publish));
    xac_assert(txn->number != 0);
    while ((e = xac_set_next(env, &walk)) != NULL) {
        if (e->vslot != 0) {
            link_version(env, txn, e);
            ring_add(r, e->page, e->same);
        } else if (e->in_place != 0) {
            xac_in_place_note(env, txn, e);
            ring_add(r, e->page, 0);
        }
    }
    xac_kill_point("f ring");
    ring_end(r, txn->number);
    xac_assert(atomic_load_explicit(&r->number, memory_order_relaxed) == txn->number);
}

/* advance -- step g, but for the state: C := number. */
static void
advance(struct xac_env *env, uint64_t number)
{
    struct xac_chain *c = chain_of(env);

    xac_assert(xac_lock_is_mine(&c->publish));
    xac_assert(number <= atomic_load_explicit(&c->commit, memory_order_relaxed) + 1);
    if (atomic_load_explicit(&c->commit, memory_order_relaxed) < number)
        /* Release: pairs with the acquire in xac_chain_commit. */
        atomic_store_explicit(&c->commit, number, memory_order_release);
    xac_assert(atomic_load_explicit(&c->commit, memory_order_relaxed) >= number);
}

/* end_committing -- a transaction that was COMMITTING is PUBLISHED or FAILED; publish is held. */
static void
end_committing(struct xac_txn *txn, uint64_t word, enum xac_txn_state state)
{
    xac_assert(xac_txn_state(word) == XAC_TXN_COMMITTING);
    /* Release: pairs with the acquire loads of the word. */
    atomic_store_explicit(&txn->word,
                          xac_txn_word(xac_txn_serial(word), xac_txn_participant(word),
                                       state),
                          memory_order_release);
}

static void
set_publishing(struct xac_env *env, uint64_t what)
{
    xac_assert(xac_lock_is_mine(&chain_of(env)->publish));
    /* Release: the descriptor is complete before it is named; pairs with the publish
       lock's hand-over to a process that finds its holder dead. */
    atomic_store_explicit(&chain_of(env)->publishing, what, memory_order_release);
}

/* redo_commit -- steps e (behind the store) to g, for the first time or again. */
static void
redo_commit(struct xac_env *env, struct xac_txn *txn)
{
    uint64_t word = atomic_load_explicit(&txn->word, memory_order_relaxed);

    xac_assert(xac_lock_is_mine(&chain_of(env)->publish));
    xac_assert(txn->number != 0);
    if (xac_env_is_durable(env)) {
        /* Once the tail has passed the block its bytes must stay as they are; on a standby it always
           has. */
        if (atomic_load_explicit(&env->log.sh->tail, memory_order_relaxed)
            <= txn->position) {
            struct xac_block *blk =
                (struct xac_block *)xac_shm_at(&env->shm, txn->record);

            xac_block_seal(blk, txn->position,
                           atomic_load_explicit(&env->log.sh->durable,
                                                memory_order_relaxed),
                           txn->number);
            xac_kill_point("e sealed");
            xac_log_append(&env->log, blk);
        }
    }
    xac_kill_point("e tail");
    link_all(env, txn);
    xac_kill_point("f");
    advance(env, txn->number);
    xac_kill_point("g number");
    if (xac_txn_state(word) == XAC_TXN_COMMITTING)
        end_committing(txn, word, XAC_TXN_PUBLISHED);
    xac_kill_point("g state");
    set_publishing(env, 0);
    xac_kill_point("g");
}

/* redo_unlink -- unlink the versions that the descriptor of the unlink names. */
static void
redo_unlink(struct xac_env *env)
{
    const struct xac_unlink *m = &chain_of(env)->unlink;
    uint64_t lsn = xac_env_is_durable(env)
                       ? atomic_load_explicit(&env->log.sh->tail, memory_order_relaxed)
                       : 0;
    struct xac_ring_entry *r = ring_begin(env, m->number, lsn, true);

    xac_assert(xac_lock_is_mine(&chain_of(env)->publish));
    xac_assert(m->n_pages <= XAC_UNLINK_PAGES);
    xac_assert(m->bound < m->number);
    for (uint32_t i = 0; i < m->n_pages; i++) {
        struct xac_page *page = (struct xac_page *)xac_shm_at(&env->shm, m->page[i]);

        xac_version_unlink(env, page, m->bound, m->number);
        ring_add(r, m->page[i], 0);
        xac_kill_point("s page");
    }
    xac_kill_point("s ring");
    ring_end(r, m->number);
    advance(env, m->number);
    xac_kill_point("s number");
    set_publishing(env, 0);
}

/* repair -- finish what a dead holder of publish has begun. */
static void
repair(struct xac_env *env)
{
    struct xac_chain *c = chain_of(env);
    /* Acquire: pairs with the release in set_publishing. */
    uint64_t what = atomic_load_explicit(&c->publishing, memory_order_acquire);

    xac_assert(xac_lock_is_mine(&c->publish));
    /* A checkpointer may have died between position and count.  Blocks built with the old
       count have no full images for what now counts as the beginning of a checkpoint. */
    (void)atomic_fetch_add_explicit(&c->ckpt_count, 1, memory_order_release); /* pairs
                                           with the acquire of builders */
    if (what == XAC_PUBLISHING_MOVE)
        redo_unlink(env);
    else if (what != 0)
        redo_commit(env, xac_txn_at(env, what - 1));
    xac_assert(atomic_load_explicit(&c->publishing, memory_order_relaxed) == 0);
    xac_kill_point("redone");
    xac_lock_repaired(&c->publish);
}

XAC_UNGUARDED void
xac_chain_lock(struct xac_env *env)
{
    xac_assert(!xac_lock_is_mine(&chain_of(env)->publish));
    if (xac_lock_acquire(&chain_of(env)->publish) == XAC_LOCK_OWNER_DIED)
        repair(env);
    xac_assert(atomic_load_explicit(&chain_of(env)->publishing, memory_order_relaxed)
               == 0);
}

XAC_UNGUARDED int
xac_chain_lock_limited(struct xac_env *env)
{
    enum xac_lock_result got = xac_lock_acquire_limited(&chain_of(env)->publish);

    if (got == XAC_LOCK_TIMED_OUT)
        return ETIMEDOUT;
    if (got == XAC_LOCK_OWNER_DIED)
        repair(env);
    xac_assert(atomic_load_explicit(&chain_of(env)->publishing, memory_order_relaxed)
               == 0);
    return 0;
}

XAC_UNGUARDED void
xac_chain_unlock(struct xac_env *env)
{
    xac_assert(xac_lock_is_mine(&chain_of(env)->publish));
    xac_assert(atomic_load_explicit(&chain_of(env)->publishing, memory_order_relaxed)
               == 0);
    xac_debug(xac_chain_assert(env));
    xac_lock_release(&chain_of(env)->publish);
}

/* may_publish -- is the log ready for the transaction's block, and the version store? */
static enum xac_publish_result
may_publish(struct xac_env *env, const struct xac_txn *txn)
{
    const struct xac_block *blk;

    xac_assert(xac_lock_is_mine(&chain_of(env)->publish));
    if (xac_unlikely(!xac_version_is_ready(env)))
        return XAC_PUBLISH_ROOM;
    if (!xac_env_is_durable(env))
        return XAC_PUBLISH_DONE;
    if (!txn->all_full
        && txn->ckpt_count
               != atomic_load_explicit(&chain_of(env)->ckpt_count, memory_order_relaxed))
        return XAC_PUBLISH_REBUILD;
    blk = (const struct xac_block *)xac_shm_at(&env->shm, txn->record);
    xac_assert(txn->record != 0);
    return xac_log_has_room(&env->log, blk->length) ? XAC_PUBLISH_DONE : XAC_PUBLISH_ROOM;
}

void
xac_chain_populate(struct xac_env *env)
{
    xac_assert(!xac_lock_is_mine(&chain_of(env)->publish));
    xac_version_ready(env);
    xac_populate(env->shm.base, xac_shm_size(&env->shm));
    if (xac_env_is_durable(env))
        xac_log_ready(&env->log);
}

/* publish_now -- steps e to g; the lock is held, the transaction COMMITTING. */
static void
publish_now(struct xac_env *env, uint64_t slot)
{
    struct xac_txn *txn = xac_txn_at(env, slot);

    xac_assert(xac_lock_is_mine(&chain_of(env)->publish));
    xac_assert(xac_txn_state(atomic_load_explicit(&txn->word, memory_order_relaxed))
               == XAC_TXN_COMMITTING);
    txn->number = atomic_load_explicit(&chain_of(env)->commit, memory_order_relaxed) + 1;
    if (xac_env_is_durable(env)) {
        const struct xac_block *blk =
            (const struct xac_block *)xac_shm_at(&env->shm, txn->record);

        txn->position = atomic_load_explicit(&env->log.sh->tail, memory_order_relaxed);
        atomic_store_explicit(&txn->end, txn->position + blk->length,
                              memory_order_relaxed);
    }
    xac_kill_point("e number");
    set_publishing(env, slot + 1);
    xac_kill_point("e");
    redo_commit(env, txn);
    xac_assert(txn->number
               == atomic_load_explicit(&chain_of(env)->commit, memory_order_relaxed));
}

/* prefetch_ring -- the entry that will be written next, before the lock is taken: another
   processor may have written it last.  A hint: others may publish first. */
static void
prefetch_ring(const struct xac_env *env)
{
    uint64_t next =
        atomic_load_explicit(&chain_of(env)->commit, memory_order_relaxed) + 1;

    __builtin_prefetch(ring_at(env, next), 1);
}

/* publish_begin -- take publish for steps d to g; false: the thread's limit is over. */
XAC_TRY_ACQUIRE(true, publish)
XAC_UNGUARDED static bool
publish_begin(struct xac_env *env)
{
    prefetch_ring(env);
    return xac_chain_lock_limited(env) == 0;
}

/* publish_end -- publish the transaction if nothing is in the way and nobody has done it; give
   publish back. */
XAC_RELEASE(publish)
static enum xac_publish_result
publish_end(struct xac_env *env, uint64_t slot, enum xac_publish_result result)
{
    /* Relaxed: under publish, where COMMITTING ends. */
    uint64_t word =
        atomic_load_explicit(&xac_txn_at(env, slot)->word, memory_order_relaxed);

    if (result == XAC_PUBLISH_DONE && xac_txn_state(word) == XAC_TXN_COMMITTING)
        publish_now(env, slot);
    xac_chain_unlock(env);
    return result;
}

/* may_finish -- may a transaction that was COMMITTING be published, or has it been?  publish is
   held. */
static enum xac_publish_result
may_finish(struct xac_env *env, struct xac_txn *txn, uint64_t serial)
{
    /* Acquire: pairs with the exchange to COMMITTING; the descriptor is complete. */
    uint64_t word = atomic_load_explicit(&txn->word, memory_order_acquire);

    if (xac_txn_serial(word) != serial)
        return XAC_PUBLISH_GONE;
    if (xac_txn_state(word) == XAC_TXN_PUBLISHED)
        return XAC_PUBLISH_DONE;
    if (xac_txn_state(word) != XAC_TXN_COMMITTING)
        return XAC_PUBLISH_GONE;
    if (!env->policy->decides_at_end)
        return may_publish(env, txn);
    /* Its owner died holding the lock, validated but not yet publishing.  Others may have
       published since, so that no longer says anything. */
    end_committing(txn, word, XAC_TXN_FAILED);
    return XAC_PUBLISH_GONE;
}

/* take_committing -- step c, from a word that says PENDING; false: somebody has failed it. */
static bool
take_committing(struct xac_txn *txn, uint64_t word)
{
    xac_assert(xac_txn_state(word) == XAC_TXN_PENDING);
    return atomic_compare_exchange_strong_explicit(
        &txn->word, &word,
        xac_txn_word(xac_txn_serial(word), xac_txn_participant(word), XAC_TXN_COMMITTING),
        memory_order_acq_rel, /* pairs with the acquire loads of the word */
        memory_order_acquire);
}

/* may_commit -- may our PENDING transaction be published?  Then it is COMMITTING.  publish is
   held. */
static enum xac_publish_result
may_commit(struct xac_env *env, uint64_t slot, uint64_t *pagep)
{
    struct xac_txn *txn = xac_txn_at(env, slot);
    const struct xac_policy *policy = env->policy;
    /* Acquire: pairs with the exchange in xac_txn_fail. */
    uint64_t word = atomic_load_explicit(&txn->word, memory_order_acquire);
    enum xac_publish_result result;

    if (xac_txn_state(word) != XAC_TXN_PENDING)
        return XAC_PUBLISH_GONE;
    if (policy->may_publish != NULL && !policy->may_publish(env, slot))
        return XAC_PUBLISH_TURN;
    if (policy->validate != NULL && !policy->validate(env, slot, pagep))
        return XAC_PUBLISH_CONFLICT;
    result = may_publish(env, txn);
    if (result != XAC_PUBLISH_DONE)
        return result;
    /* Under a policy that decides at the end only a newcomer can fail us here (alone.h); it, or
       another one that we are in the way of, may just now. */
    return take_committing(txn, word) ? XAC_PUBLISH_DONE : XAC_PUBLISH_GONE;
}

enum xac_publish_result
xac_chain_publish(struct xac_env *env, uint64_t slot, uint64_t serial)
{
    xac_assert(slot < atomic_load_explicit(&env->ctl->txns.count, memory_order_relaxed));
    if (!publish_begin(env))
        return XAC_PUBLISH_TIMEOUT;
    xac_kill_point("d");
    return publish_end(env, slot, may_finish(env, xac_txn_at(env, slot), serial));
}

enum xac_publish_result
xac_chain_publish_valid(struct xac_env *env, uint64_t slot, uint64_t *pagep)
{
    xac_assert(slot < atomic_load_explicit(&env->ctl->txns.count, memory_order_relaxed));
    if (!publish_begin(env))
        return XAC_PUBLISH_TIMEOUT;
    return publish_end(env, slot, may_commit(env, slot, pagep));
}

bool
xac_chain_publish_redone(struct xac_env *env, uint64_t slot, uint64_t lsn, uint64_t end)
{
    struct xac_standby_shared *sb = &env->ctl->standby;
    struct xac_chain *c = chain_of(env);
    struct xac_txn *txn = xac_txn_at(env, slot);
    uint64_t word;
    bool is_ours;

    xac_assert(sb->is_one != 0);
    xac_assert(
        env->policy->decides_at_end); /* if we die COMMITTING, nobody goes on with it */
    xac_version_ready(env);
    xac_chain_lock(env);
    while (!xac_version_is_ready(env)) {
        xac_chain_unlock(env);
        xac_version_ready(env);
        xac_chain_lock(env);
    }
    /* Relaxed: nobody else commits. */
    xac_require(end <= atomic_load_explicit(&env->log.sh->durable, memory_order_relaxed));
    /* Acquire: pairs with the exchange in xac_txn_fail. */
    word = atomic_load_explicit(&txn->word, memory_order_acquire);
    is_ours = xac_txn_state(word) == XAC_TXN_PENDING && take_committing(txn, word);
    if (is_ours) {
        txn->number = atomic_load_explicit(&c->commit, memory_order_relaxed) + 1;
        txn->position = lsn;
        atomic_store_explicit(&txn->end, end, memory_order_relaxed);
        sb->redone_end = end;
        sb->redone = txn->number;
        xac_kill_point("e number");
        set_publishing(env, slot + 1);
        xac_kill_point("e");
        redo_commit(env, txn);
    }
    xac_chain_unlock(env);
    return is_ours;
}

enum xac_txn_state
xac_chain_take_back(struct xac_env *env, uint64_t slot, uint64_t serial)
{
    struct xac_txn *txn = xac_txn_at(env, slot);
    enum xac_txn_state state = XAC_TXN_FREE;
    uint64_t word;

    xac_assert(slot < atomic_load_explicit(&env->ctl->txns.count, memory_order_relaxed));
    if (xac_chain_lock_limited(env) != 0)
        return state;
    word = atomic_load_explicit(&txn->word, memory_order_relaxed);
    if (xac_txn_serial(word) == serial)
        state = xac_txn_state(word);
    if (state == XAC_TXN_COMMITTING)
        end_committing(txn, word, XAC_TXN_FAILED);
    xac_chain_unlock(env);
    return state;
}

void
xac_chain_unlink(struct xac_env *env, struct xac_page *const *pages, uint32_t n,
                 uint64_t bound)
{
    struct xac_chain *c = chain_of(env);

    xac_assert(n <= XAC_UNLINK_PAGES);
    xac_assert(xac_lock_is_mine(&c->publish));
    xac_assert(xac_lock_is_mine(&c->gc));
    xac_assert(bound <= atomic_load_explicit(&c->commit, memory_order_relaxed));
    c->unlink.number = atomic_load_explicit(&c->commit, memory_order_relaxed) + 1;
    c->unlink.bound = bound;
    c->unlink.n_pages = n;
    for (uint32_t i = 0; i < n; i++)
        c->unlink.page[i] = xac_shm_offset(&env->shm, pages[i]);
    set_publishing(env, XAC_PUBLISHING_MOVE);
    xac_kill_point("s");
    redo_unlink(env);
    xac_assert(c->unlink.number
               == atomic_load_explicit(&c->commit, memory_order_relaxed));
}

/* ring_lsn -- where the block of a commit ends; ret false: the ring does not tell any more. */
static bool
ring_lsn(const struct xac_env *env, uint64_t number, uint64_t *lsnp)
{
    const struct xac_ring_entry *r = ring_at(env, number);

    xac_assert(number != 0);
    /* Acquire: pairs with the release in ring_end. */
    if (atomic_load_explicit(&r->number, memory_order_acquire) != number)
        return false;
    *lsnp = r->end_lsn;
    /* Pairs with the fence in ring_begin: if the entry was taken over while we read it,
       its number has changed. */
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&r->number, memory_order_relaxed) == number;
}

uint64_t
xac_chain_lsn(const struct xac_env *env, uint64_t parent)
{
    uint64_t lsn, tail;

    if (!xac_env_is_durable(env))
        return 0;
    /* Of the control region: a tool that looks at an environment has no log open.  Acquire:
       pairs with the release in xac_log_append. */
    tail = atomic_load_explicit(&env->ctl->log.tail, memory_order_acquire);
    if (parent == 0)
        return 0;
    return ring_lsn(env, parent, &lsn) ? lsn : tail;
}

bool
xac_chain_shows(const struct xac_env *env, uint64_t lsn)
{
    /* Acquire: pairs with the release in set_publishing.  It names a block before the tail moves behind that, and
       the caller has seen the tail: 0 is of a time when all below `lsn` had been published. */
    uint64_t what =
        atomic_load_explicit(&chain_of(env)->publishing, memory_order_acquire);
    uint64_t number = xac_chain_commit(env), end;

    xac_assert(lsn <= atomic_load_explicit(&env->ctl->log.tail, memory_order_relaxed));
    return what == 0 || (number != 0 && ring_lsn(env, number, &end) && end >= lsn);
}

void
xac_chain_prefetch(const struct xac_env *env, uint64_t first, uint64_t last)
{
    for (uint64_t n = first; n <= last && n - first < PREFETCH_MAX; n++)
        __builtin_prefetch(ring_at(env, n), 0);
}

bool
xac_chain_wrote(const struct xac_env *env, uint64_t number, struct xac_wrote *out)
{
    const struct xac_ring_entry *r = ring_at(env, number);
    bool is_unlink;
    uint32_t n;

    xac_assert(number != 0);
    /* Acquire: pairs with the release in ring_end. */
    if (atomic_load_explicit(&r->number, memory_order_acquire) != number)
        return false;
    n = atomic_load_explicit(&r->n_pages, memory_order_relaxed);
    is_unlink = r->is_unlink;
    if (n > XAC_RING_PAGES && !is_unlink) /* all, or the region is damaged */
        return false;
    for (uint32_t i = 0; i < n && !is_unlink; i++)
        out->page[i] = atomic_load_explicit(&r->page[i], memory_order_relaxed);
    for (uint32_t i = 0; i < XAC_RING_LINES; i++)
        out->same[i] = atomic_load_explicit(&r->same[i], memory_order_relaxed);
    out->n_pages = is_unlink ? 0 : n;
    /* Pairs with the fence in ring_begin: if the entry was taken over while we read it,
       its number has changed. */
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&r->number, memory_order_relaxed) == number;
}
