/* SPDX-License-Identifier: MIT */
/*
 * ctree.h -- the consistency tree (Thesis 3.3), kept as a chain of commit numbers.
 *
 * WHAT      Number C of the last published commit; publishing; the ring of recent
 *           commits; garbage collection of versions (gc).
 *
 * INVARIANTS (Thesis 3.3; in words of this representation)
 *   (1) A page in a transaction's read set is read from the closest ancestor that owns
 *       it: the newest version with a commit number not above the transaction's
 *       parent.  (xac_version_find; asserted where pages are shown.)
 *   (2) Only committed transactions have children, and at most one of these is committed:
 *       parents are commit numbers that have been published, and numbers are given out
 *       one by one under the publish lock.
 *   (3) If no transaction touched another page, all pending ones could commit: see
 *       conflict.h.
 *   (4) C, the mark and a page's list heads change by publishing only, which is finished
 *       by a survivor if its process dies.
 *   (5) mark <= C, and no live transaction that was given its parent after the mark was
 *       stored has a parent below it.
 *   (6) Under publish nothing calls the system, and what is stored to or read is in the
 *       page table of this process: what it has made itself; the control structure and the
 *       log buffer as far as needed (xac_log_has_room); the version slots' descriptions
 *       (xac_version_is_ready); for a process that acts for another, all of the region
 *       (xac_chain_populate).  So the holder waits for nobody, unless the system takes memory or
 *       the processor away.  A process that repairs what a dead holder left is excepted.
 *       tests/unit/txn/check_publish.c
 *
 * LOCK      publish, gc.
 */
#ifndef XAC_CTREE_H
#define XAC_CTREE_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/env_state.h"
#include "store/version.h"

/* xac_chain_init -- in a new region; ret 0 or errno. */
int xac_chain_init(struct xac_env *env);

/* xac_chain_commit -- C. */
XAC_SIGSAFE static inline uint64_t
xac_chain_commit(const struct xac_env *env)
{
    /* Acquire: pairs with the release in step g; versions up to C are linked. */
    return atomic_load_explicit(&env->ctl->chain.commit, memory_order_acquire);
}

/*
 * xac_chain_enter -- give a live slot its parent and start, C of now, above the mark, and
 * the time.
 */
void xac_chain_enter(struct xac_env *env, struct xac_txn *txn);

enum xac_publish_result {
    XAC_PUBLISH_DONE,     /* the transaction is PUBLISHED                               */
    XAC_PUBLISH_REBUILD,  /* a checkpoint began since the block was built: build again  */
    XAC_PUBLISH_ROOM,     /* no room in the log, or it is not in the page table: make room
                             (xac_commit_block_make_room), try again                         */
    XAC_PUBLISH_CONFLICT, /* did not stand the validation (policy.h)                   */
    XAC_PUBLISH_TURN,     /* optimistic: another transaction has the turn               */
    XAC_PUBLISH_TIMEOUT, /* the lock was not to be had within the thread's limit (lock.h) */
    XAC_PUBLISH_GONE,    /* the slot is no longer COMMITTING and was not published     */
};

/* xac_chain_populate -- before publishing for another: have all that he may have used in this
   process's page table. */
void xac_chain_populate(struct xac_env *env);

/*
 * xac_chain_publish -- steps d to h: publish a COMMITTING transaction, by its owner or
 * by another.  Takes publish; signals blocked by the caller.
 *
 * in   serial  of the slot's word
 */
enum xac_publish_result xac_chain_publish(struct xac_env *env, uint64_t slot,
                                          uint64_t serial);

/*
 * xac_chain_publish_valid -- the same for a PENDING transaction, by its owner, steps c and d in
 * one: under a policy that decides at the end, where it is validated first, and for one that may have
 * to give up waiting.
 *
 * out  pagep  id of the page that another has written, if XAC_PUBLISH_CONFLICT
 */
enum xac_publish_result xac_chain_publish_valid(struct xac_env *env, uint64_t slot,
                                                uint64_t *pagep);

/*
 * xac_chain_publish_redone -- steps c to h for a PENDING transaction of the replayer (replayer.h): its block
 * stands at `lsn` in the log, durable, up to `end`.  Nothing is appended.
 *
 * ret  false: it has been failed
 */
bool xac_chain_publish_redone(struct xac_env *env, uint64_t slot, uint64_t lsn,
                              uint64_t end);

/*
 * xac_chain_take_back -- fail a COMMITTING transaction that has not been published: it
 * cannot be logged, or nobody knows what it has read.  Takes publish.
 *
 * in   serial  of the slot's word: a later transaction of the slot is left alone
 * ret  the state that it was found in; COMMITTING if it is FAILED now; FREE if it is gone, or
 *      the thread's limit is over.
 */
enum xac_txn_state xac_chain_take_back(struct xac_env *env, uint64_t slot,
                                       uint64_t serial);

/* xac_chain_lock -- take publish, finishing what a dead holder left; and release. */
void xac_chain_lock(struct xac_env *env) XAC_ACQUIRE(publish);
/* xac_chain_lock_limited -- the same; ret 0, or ETIMEDOUT: the thread's limit is over (lock.h). */
int xac_chain_lock_limited(struct xac_env *env) XAC_TRY_ACQUIRE(0, publish);
void xac_chain_unlock(struct xac_env *env) XAC_RELEASE(publish);

/* xac_chain_unlink -- take versions out, as an unlink; publish and gc held. */
void
xac_chain_unlink(struct xac_env *env, struct xac_page *const *pages, uint32_t n,
                 uint64_t bound) XAC_REQUIRES(gc)
XAC_REQUIRES(publish);

/* xac_chain_lsn -- where the log must be durable for a reader with this parent. */
uint64_t xac_chain_lsn(const struct xac_env *env, uint64_t parent);

/*
 * xac_chain_shows -- do queries that begin now see everything that the log has below an LSN?
 *
 * A block is in the log before its versions are published.  Its process may stand still between the two, while others
 * write the log and send it to other nodes.
 *
 * in   lsn  the caller has seen that the tail has passed it
 * ret  false: not known; they do when the caller has had publish.
 */
bool xac_chain_shows(const struct xac_env *env, uint64_t lsn);

/* What a commit wrote. */
struct xac_wrote {
    uint32_t n_pages; /* 0: the number is that of an unlink                             */
    uint64_t same[XAC_RING_LINES]; /* see struct xac_ring_entry                         */
    uint64_t page[XAC_RING_PAGES];
};

/* xac_chain_wrote -- which pages a recent commit wrote; ret false: too many, or the ring does not tell
   any more. */
bool xac_chain_wrote(const struct xac_env *env, uint64_t number, struct xac_wrote *out);

/* xac_wrote_same -- the lines that it left as they were in its i-th page; 0 not known. */
static inline uint64_t
xac_wrote_same(const struct xac_wrote *wrote, uint32_t i)
{
    xac_assert(i < wrote->n_pages);
    return i < XAC_RING_LINES ? wrote->same[i] : 0;
}

/*
 * xac_chain_assert -- stop the program unless (2), (4) and (5) hold as far as the chain tells: with
 * publish held that nothing is half done, and the log's invariants; without it the last entries of
 * the ring.  (1) and (3) are asserted where pages are shown and accesses registered.
 */
void xac_chain_assert(const struct xac_env *env);

/* xac_chain_prefetch -- what xac_chain_wrote() will be asked about, all at the same time: other
   processors may have written it last. */
void xac_chain_prefetch(const struct xac_env *env, uint64_t first, uint64_t last);

/* Commits that may pile up before somebody runs gc. */
#define XAC_GC_EVERY 8

/* Version slots that a run of gc looks at or frees, unless the store grows fast (gc.c). */
#define XAC_GC_WORK 2048u

/* xac_gc_is_due -- after a commit: is it this transaction's turn? */
static inline bool
xac_gc_is_due(const struct xac_env *env)
{
    /* Relaxed: any commit near this one will do. */
    return atomic_load_explicit(&env->ctl->chain.commit, memory_order_relaxed)
               % XAC_GC_EVERY
           == 0;
}

/* xac_gc -- free what nobody can see, if the lock is free.  Signals blocked.  ret true: it has not
   got on for long, so the caller should look for dead participants (xac_reap_dead). */
bool xac_gc(struct xac_env *env);

/* xac_gc_lock -- take gc, repairing by a sweep; and release. */
void xac_gc_lock(struct xac_env *env) XAC_ACQUIRE(gc);
void xac_gc_unlock(struct xac_env *env) XAC_RELEASE(gc);

/*
 * xac_gc_bound -- raise the mark to the floor; the smallest parent that may be in
 * use.  gc held.  ret bound; *startp, if not NULL, the smallest start.
 */
uint64_t xac_gc_bound(struct xac_env *env, uint64_t *startp) XAC_REQUIRES(gc);

/*
 * xac_gc_needs -- what must be kept.  Eager transactions need everything from their
 * parent on, for it moves; a query, or a transaction that has failed, needs what its
 * parent shows and nothing else, so one that runs for long holds back one version of each
 * page.  gc held.
 */
void xac_gc_needs(struct xac_env *env, struct xac_needs *out) XAC_REQUIRES(gc);

/* The oldest snapshot in use, and what is kept for it: for people, not for decisions. */
struct xac_oldest {
    uint32_t
        pid; /* of its process; 0: nobody reads, all else is 0, or a named snapshot */
    uint64_t parent;     /* commit number                                              */
    uint64_t behind;     /* commits since                                              */
    uint64_t age_ns;     /* since its transaction or query began, within some ms       */
    uint64_t n_held;     /* versions that are kept for readers only                    */
    uint64_t n_held_own; /* of these, kept for this snapshot and no other              */
};

/*
 * xac_gc_oldest -- who reads the oldest state.  Takes no lock, so a glimpse: a transaction
 * that begins or ends meanwhile may be in it or not.  Walks the version slots if anybody is behind.
 */
void xac_gc_oldest(const struct xac_env *env, struct xac_oldest *out);

/*
 * xac_gc_settle -- free the version slots in limbo that nobody reads any more: a part of a sweep, or
 * with is_whole all of it.  gc held.
 *
 * in/out  goalp  0 at the first call, then what the calls before have stored
 * ret     true: done is what could be done at the first call.  Two sweeps are enough.
 */
bool xac_gc_settle(struct xac_env *env, bool is_whole, uint64_t *goalp) XAC_REQUIRES(gc);

#endif /* XAC_CTREE_H */
