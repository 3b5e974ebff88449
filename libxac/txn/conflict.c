/* SPDX-License-Identifier: MIT */
/*
 * conflict.c -- see conflict.h.
 */
#include <config.h>

#include "txn/conflict.h"

#include <sched.h>

#include "base/clock.h"
#include "base/sys.h"
#include "shared/env_state.h"
#include "shared/registry.h"

/*
 * Access word: offset / 64 of the first entry; above it the lock, 0 if it is free: slot + 1
 * of the owner and the low bits of the slot's serial.  An owner that died is cleaned up
 * after, and its slot used by another process, which does not know of the lock: the serial
 * tells them apart.  (If it happens to be the same, it will not be after one more
 * transaction.)
 */
#define HEAD_BITS   XAC_ACCESS_HEAD_BITS
#define OWNER_BITS  XAC_ACCESS_OWNER_BITS /* as many as there can be processes          */
#define HEAD_MASK   ((UINT64_C(1) << HEAD_BITS) - 1)
#define OWNER_MASK  ((UINT64_C(1) << OWNER_BITS) - 1)
#define SERIAL_MASK ((UINT64_C(1) << (64 - HEAD_BITS - OWNER_BITS)) - 1)

#define SPINS_BEFORE_YIELD 100

/* Time between two looks at whether the owner of a page's lock is alive. */
#define LOCK_LOOK_NS 5000000

/* A process found running is taken to be so for this long. */
#define ALIVE_TRUST_NS 1000000

/* Time between two looks at whether the owner of a commit under way is still running. */
#define COMMITTING_LOOK_NS 5000000

/* Longest wait for one that is running: it may be at I/O, to make room in the log. */
#define COMMITTING_WAIT_NS 200000000

/* Longest wait of a loser for the older one, after its first lost race; it doubles with
   each further one, this often. */
#define LOSER_WAIT_NS      10000000
#define LOSER_WAIT_DOUBLES 7

/* A loser waits by giving up the processor so often, then by short sleeps. */
#define LOSER_YIELDS   100
#define LOSER_SLEEP_NS 50000

/* pause_a_while -- the n-th round of waiting. */
XAC_SIGSAFE static void
pause_a_while(unsigned n)
{
#if defined(__x86_64__) || defined(__i386__)
    if (n % SPINS_BEFORE_YIELD != 0) {
        __builtin_ia32_pause();
        return;
    }
#else
    (void)n;
#endif
    (void)sched_yield();
}

/* lock_of -- the upper part of the access word when slot `self` has the lock. */
XAC_SIGSAFE static uint64_t
lock_of(const struct xac_env *env, uint64_t self)
{
    /* Relaxed: our own; the serial stands still while we hold a page lock. */
    uint64_t word =
        atomic_load_explicit(&xac_txn_at(env, self)->word, memory_order_relaxed);

    xac_assert(self + 1 <= OWNER_MASK);
    return (xac_txn_serial(word) & SERIAL_MASK) << OWNER_BITS | (self + 1);
}

/* is_abandoned -- is the lock's owner dead, or has its slot another user by now? */
XAC_SIGSAFE static bool
is_abandoned(const struct xac_env *env, uint64_t lock)
{
    uint64_t slot = (lock & OWNER_MASK) - 1;
    /* Relaxed: an old value only delays us. */
    uint64_t word =
        atomic_load_explicit(&xac_txn_at(env, slot)->word, memory_order_relaxed);

    xac_assert((lock & OWNER_MASK) != 0);
    return (xac_txn_serial(word) & SERIAL_MASK) != lock >> OWNER_BITS
           || !xac_registry_alive(env, xac_txn_participant(word));
}

/* is_due -- has LOCK_LOOK_NS passed since the last time, or since the first call? */
XAC_SIGSAFE static bool
is_due(uint64_t *look)
{
    uint64_t now = xac_clock_ns();
    bool is_first = *look == 0;

    if (!is_first && now <= *look)
        return false;
    *look = now + LOCK_LOOK_NS;
    return !is_first;
}

/* page_lock -- lock a page for slot `self`; ret the list's head. */
XAC_SIGSAFE static uint64_t
page_lock(struct xac_env *env, struct xac_page *page, uint64_t self)
{
    uint64_t word = atomic_load_explicit(&page->access, memory_order_relaxed);
    uint64_t mine = lock_of(env, self);
    uint64_t look = 0;

    xac_assert(mine != 0);
    for (unsigned n = 1;; n++) {
        uint64_t lock = word >> HEAD_BITS;
        uint64_t head = word & HEAD_MASK;
        bool may_take = lock == 0;

        if (!may_take && n % SPINS_BEFORE_YIELD == 0 && is_due(&look))
            /* The list is whole whatever its owner was doing. */
            may_take = is_abandoned(env, lock);
        /* Acquire: pairs with the release in page_unlock. */
        if (may_take
            && atomic_compare_exchange_weak_explicit(&page->access, &word,
                                                     mine << HEAD_BITS | head,
                                                     memory_order_acquire,
                                                     memory_order_relaxed))
            return head;
        if (!may_take) {
            pause_a_while(n);
            word = atomic_load_explicit(&page->access, memory_order_relaxed);
        }
    }
}

XAC_SIGSAFE static void
page_unlock(struct xac_page *page, uint64_t head)
{
    xac_assert((head & ~HEAD_MASK) == 0);
    xac_assert((atomic_load_explicit(&page->access, memory_order_relaxed) >> HEAD_BITS)
               != 0);
    /* Release: pairs with the acquire in page_lock. */
    atomic_store_explicit(&page->access, head, memory_order_release);
}

XAC_SIGSAFE static struct xac_entry *
entry_at(const struct xac_env *env, uint64_t unit)
{
    xac_assert(unit != 0);
    return (struct xac_entry *)xac_shm_at(&env->shm, unit * 64);
}

/* state_of -- xac_registry_state, asked at most once in a while about one that runs. */
XAC_SIGSAFE static enum xac_process_state
state_of(struct xac_ctx *ctx, uint32_t participant)
{
    uint64_t now = xac_clock_ns();
    enum xac_process_state state;

    if (ctx->alive_last == participant && now < ctx->alive_until)
        return XAC_PROCESS_RUNNING;
    state = xac_registry_state(ctx->env, participant);
    if (state == XAC_PROCESS_RUNNING) {
        ctx->alive_last = participant;
        ctx->alive_until = now + ALIVE_TRUST_NS;
    }
    return state;
}

/* What one pass over a page's list found. */
struct others {
    bool has_committing;
    uint64_t committing_slot;
    uint64_t committing_word;
    bool self_loses;
    uint64_t winner;    /* slot that we lose to                                     */
    uint32_t winner_of; /* its participant                                          */
    int kind;           /* conflict kind as we see it                               */
};

/* kind_of -- conflict kind from the side of `mine`. */
XAC_SIGSAFE static int
kind_of(uint32_t mine, uint32_t theirs)
{
    xac_assert(((mine | theirs) & XAC_SET_WRITE) != 0);
    if ((mine & theirs & XAC_SET_WRITE) != 0)
        return XAC_CONFLICT_WRITE_WRITE;
    return (mine & XAC_SET_WRITE) != 0 ? XAC_CONFLICT_WRITE_READ
                                       : XAC_CONFLICT_READ_WRITE;
}

/*
 * look -- pass over all others: would we have to fail, is one of them committing?
 * Fails nobody: all are looked at before any is failed.
 */
XAC_SIGSAFE static struct others
look(struct xac_env *env, struct xac_ctx *ctx, uint64_t head, uint32_t mode)
{
    struct others o = {.has_committing = false};

    xac_assert((mode & XAC_SET_READ) != 0);
    while (head != 0) {
        struct xac_entry *e = entry_at(env, head);
        struct xac_txn *t = xac_txn_at(env, e->slot);
        uint32_t theirs = atomic_load_explicit(&e->mode, memory_order_relaxed);
        /* Acquire: pairs with the exchanges on the word. */
        uint64_t word = atomic_load_explicit(&t->word, memory_order_acquire);

        head = atomic_load_explicit(&e->next, memory_order_relaxed);
        if (e->slot == ctx->slot || ((theirs | mode) & XAC_SET_WRITE) == 0)
            continue;
        if (xac_txn_state(word) == XAC_TXN_COMMITTING) {
            o.has_committing = true;
            o.committing_slot = e->slot;
            o.committing_word = word;
        } else if (xac_txn_state(word) == XAC_TXN_PENDING) {
            if (env->policy->decide(ctx->txn, t) == XAC_FAIL_OTHER)
                continue;
            enum xac_process_state state = state_of(ctx, xac_txn_participant(word));

            if (state == XAC_PROCESS_DEAD)
                ctx->saw_dead = true; /* to be cleaned up after when we end */
            if (state != XAC_PROCESS_RUNNING)
                continue;
            o.self_loses = true;
            o.winner = e->slot;
            o.winner_of = xac_txn_participant(word);
            o.kind = kind_of(mode, theirs);
        }
    }
    return o;
}

/* fail_others -- fail every conflicting transaction; false if one got away committing. */
XAC_SIGSAFE static bool
fail_others(struct xac_env *env, const struct xac_ctx *ctx, const struct xac_page *page,
            uint64_t head, uint32_t mode)
{
    uint64_t id = atomic_load_explicit(&page->id, memory_order_relaxed);
    bool all = true;

    xac_assert((mode & XAC_SET_READ) != 0);
    while (head != 0) {
        struct xac_entry *e = entry_at(env, head);
        struct xac_txn *t = xac_txn_at(env, e->slot);
        uint32_t theirs = atomic_load_explicit(&e->mode, memory_order_relaxed);
        /* Acquire: pairs with the exchanges on the word. */
        uint64_t word = atomic_load_explicit(&t->word, memory_order_acquire);

        head = atomic_load_explicit(&e->next, memory_order_relaxed);
        if (e->slot == ctx->slot || ((theirs | mode) & XAC_SET_WRITE) == 0)
            continue;
        /* Who has lost before we came waits for the one it has lost to.
           Relaxed: a hint for xac_conflict_wait. */
        if (xac_txn_state(word) == XAC_TXN_PENDING)
            atomic_store_explicit(&t->lost_to, ctx->slot + 1, memory_order_relaxed);
        if (!xac_txn_fail(t, word, kind_of(theirs, mode), env->pid, id))
            all = false;
    }
    return all;
}

/* fail_self -- the running transaction loses to another participant. */
XAC_SIGSAFE static void
fail_self(struct xac_env *env, struct xac_ctx *ctx, const struct xac_page *page,
          uint32_t winner, int kind)
{
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);

    xac_assert(kind != 0);
    ctx->conflict.found_by_us = 1;
    (void)xac_txn_fail(ctx->txn, word, kind, xac_participant_at(env, winner)->pid,
                       atomic_load_explicit(&page->id, memory_order_relaxed));
}

/*
 * await_publish -- wait for a commit under way; false if its process does not run, so that
 * somebody else has to publish it, or if it takes too long.
 */
XAC_SIGSAFE static bool
await_publish(struct xac_ctx *ctx, const struct others *o)
{
    const struct xac_txn *t = xac_txn_at(ctx->env, o->committing_slot);
    uint32_t owner = xac_txn_participant(o->committing_word);
    uint64_t now = xac_clock_ns();
    uint64_t look = now + COMMITTING_LOOK_NS, until = now + COMMITTING_WAIT_NS;

    xac_assert(xac_txn_state(o->committing_word) == XAC_TXN_COMMITTING);
    for (unsigned n = 1;; n++) {
        /* Acquire: pairs with the release of the publish step. */
        if (atomic_load_explicit(&t->word, memory_order_acquire) != o->committing_word)
            return true;
        if (n % SPINS_BEFORE_YIELD == 0 && (now = xac_clock_ns()) > look) {
            if (now > until || state_of(ctx, owner) != XAC_PROCESS_RUNNING)
                return false;
            look = now + COMMITTING_LOOK_NS;
        }
        pause_a_while(n);
    }
}

XAC_SIGSAFE static bool
is_pending(const struct xac_ctx *ctx)
{
    /* Acquire: pairs with the exchange in xac_txn_fail. */
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_acquire);

    xac_assert(ctx->txn != NULL);
    return xac_txn_state(word) == XAC_TXN_PENDING;
}

XAC_SIGSAFE bool
xac_conflict_enter(struct xac_env *env, struct xac_ctx *ctx, struct xac_entry *entry,
                   uint32_t mode)
{
    struct xac_page *page = xac_entry_page(env, entry);

    xac_assert(entry->slot == ctx->slot);
    xac_assert((mode & XAC_SET_READ) != 0);
    xac_assert((mode & XAC_SET_LINKED) == 0);
    xac_assert(!env->policy->decides_at_end);
    while (is_pending(ctx)) {
        uint64_t head = page_lock(env, page, ctx->slot);
        xac_kill_point("page locked");
        struct others o = look(env, ctx, head, mode);
        uint32_t old = atomic_load_explicit(&entry->mode, memory_order_relaxed);

        if (o.has_committing) {
            page_unlock(page, head);
            if (await_publish(ctx, &o))
                continue;
            ctx->saw_dead = true; /* or stopped: published at our end, reap.h */
            fail_self(env, ctx, page, xac_txn_participant(o.committing_word),
                      kind_of(mode, XAC_SET_WRITE));
            return false;
        }
        if (o.self_loses) {
            page_unlock(page, head);
            /* Relaxed: our own. */
            atomic_store_explicit(&ctx->txn->lost_to, o.winner + 1, memory_order_relaxed);
            fail_self(env, ctx, page, o.winner_of, o.kind);
            return false;
        }
        if (!fail_others(env, ctx, page, head, mode)) {
            page_unlock(page, head);
            continue; /* one has begun to commit: wait for it */
        }
        atomic_store_explicit(&entry->mode, old | mode | XAC_SET_LINKED,
                              memory_order_relaxed);
        if ((old & XAC_SET_LINKED) == 0) {
            atomic_store_explicit(&entry->next, head, memory_order_relaxed);
            head = xac_shm_offset(&env->shm, entry) / 64;
            xac_assert(head <= HEAD_MASK);
        }
        xac_kill_point("page entered");
        page_unlock(page, head); /* links and unlocks in one store */
        xac_kill_point("page linked");
        return true;
    }
    return false;
}

/* loser_pause -- the n-th round of waiting for an older one. */
static void
loser_pause(unsigned n)
{
    xac_assert(n > 0);
    if (n <= LOSER_YIELDS)
        (void)sched_yield();
    else
        xac_sleep_ns(LOSER_SLEEP_NS);
}

void
xac_conflict_wait(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t lost_to = atomic_load_explicit(&ctx->txn->lost_to, memory_order_relaxed);
    uint64_t mine = atomic_load_explicit(&ctx->txn->age, memory_order_relaxed);
    unsigned doubles = ctx->n_lost > 0 ? ctx->n_lost - 1 : 0;
    uint64_t until, age;
    struct xac_txn *t;

    xac_assert(lost_to != ctx->slot + 1);
    if (!env->policy->loser_waits || lost_to == 0)
        return;
    atomic_store_explicit(&ctx->txn->lost_to, 0, memory_order_relaxed);
    t = xac_txn_at(env, lost_to - 1);
    /* Relaxed: only whether it changes is looked at; nothing is read on its strength. */
    age = atomic_load_explicit(&t->age, memory_order_relaxed);
    doubles = doubles < LOSER_WAIT_DOUBLES ? doubles : LOSER_WAIT_DOUBLES;
    until = xac_clock_ns() + ((uint64_t)LOSER_WAIT_NS << doubles);
    xac_txn_waits(ctx->txn, lost_to, xac_clock_ns());
    for (unsigned n = 1; age < mine; n++) {
        /* Relaxed: as above. */
        uint64_t word = atomic_load_explicit(&t->word, memory_order_relaxed);

        if (atomic_load_explicit(&t->age, memory_order_relaxed) != age
            || state_of(ctx, xac_txn_participant(word)) != XAC_PROCESS_RUNNING
            || xac_clock_ns() > until
            || (n % SPINS_BEFORE_YIELD == 0 && xac_wait_slice(1) == 0))
            break; /* with a limit it goes on earlier, and may lose again */
        loser_pause(n);
    }
    xac_txn_waits_over(ctx->txn);
}

void
xac_conflict_unlink(struct xac_env *env, uint64_t by, struct xac_entry *entry)
{
    struct xac_page *page = xac_entry_page(env, entry);
    uint64_t self = xac_shm_offset(&env->shm, entry) / 64;
    uint64_t head = page_lock(env, page, by);
    uint64_t next = atomic_load_explicit(&entry->next, memory_order_relaxed);

    xac_assert(self != 0);
    if (head == self) {
        head = next;
    } else {
        uint64_t at = head;

        while (at != 0) {
            struct xac_entry *e = entry_at(env, at);

            at = atomic_load_explicit(&e->next, memory_order_relaxed);
            if (at == self) {
                atomic_store_explicit(&e->next, next, memory_order_relaxed);
                break;
            }
        }
    }
    xac_kill_point("page unlinking");
    page_unlock(page, head);
}
