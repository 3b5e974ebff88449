/* SPDX-License-Identifier: MIT */
/*
 * in_place.h -- pages that a participant updates in place, while it is alone (alone.h).
 *
 * WHAT      Nobody else reads then, so a commit needs no new version of a page: the working copy in the
 *           view is the newest contents.  It lies in the in-place file, beside the buffer files, which
 *           others can read: a newcomer makes versions of such pages before its first transaction.
 *           Here: the list of these pages, what they held before the running transaction, and
 *           making versions of them.
 * WHEN      The policy is serial, the environment is not durable, and the program has promised to
 *           announce its stores (XAC_CHECKING_TRUSTED): so it is known before a store that there will be
 *           one.  Deciding that, and mapping the file: view_in_place.c.
 * NOT HERE  Publishing: step f puts the pages of a commit into the list (ctree.c).
 * LOCK      The list, and the fields of a page that say that it is in it: publish.
 *
 * INVARIANTS
 *   (1) A page is in the list if and only if its newest committed contents are in the in-place file
 *       only: in its page there, or, if the running transaction or one that has failed has an image of
 *       it, in the image.  Its head, and its file, are older.
 *   (2) Before a page of the list is stored to, it has an image.  An image of a transaction that has
 *       been published counts for nothing.
 *   (3) A transaction that updates in place fails when somebody comes (`reads_unknown`), and begins only
 *       while its participant is alone, in the epoch in which it has begun to do so.
 *   (4) A newcomer empties the list before its first transaction; if that fails, it does not come.  So
 *       while the list has pages, nobody else has committed since they were put into it.
 *   (5) The word `image` of a page never has the same value twice, but for 0 in its low bits.
 */
#ifndef XAC_IN_PLACE_H
#define XAC_IN_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/env_state.h"
#include "txn/policy.h"

/* Of the word `image`: the version slot; above, how often the word has been stored. */
#define XAC_IMAGE_BITS 40
#define XAC_IMAGE_MASK ((UINT64_C(1) << XAC_IMAGE_BITS) - 1)

/* xac_in_place_may -- may participants of the environment update in place at all? */
static inline bool
xac_in_place_may(const struct xac_env *env)
{
    return env->policy->is_serial
           && !xac_env_is_durable(env)
           /* Relaxed: fixed while anybody has transactions.  With a history versions stay. */
           && atomic_load_explicit(&env->ctl->history, memory_order_relaxed) == 0;
}

/* xac_in_place_has_pages -- has the list pages? */
static inline bool
xac_in_place_has_pages(const struct xac_env *env)
{
    /* Acquire: pairs with the release in xac_in_place_note. */
    return atomic_load_explicit(&env->ctl->in_place_head, memory_order_acquire) != 0;
}

/* xac_in_place_page -- the page of which an entry, or the list, has the offset. */
static inline struct xac_page *
xac_in_place_page(const struct xac_env *env, uint64_t at)
{
    return (struct xac_page *)xac_shm_at(&env->shm, at);
}

/* xac_in_place_note -- step f: the page of an entry is in the list from now on.  Publish held; may be
   repeated. */
void xac_in_place_note(struct xac_env *env, const struct xac_txn *txn,
                       const struct xac_entry *e);

/*
 * xac_in_place_keep -- make an image of a page that is about to be stored to, if it is in the list.
 *
 * in   now  the page
 * ret  0 or an error: the page must not be stored to.
 */
int xac_in_place_keep(struct xac_env *env, struct xac_ctx *ctx, struct xac_entry *e,
                      const uint8_t *now);

/* xac_in_place_forget -- the transaction that has made an entry's image is over, and the page is as it is
   to be. */
void xac_in_place_forget(struct xac_env *env, struct xac_entry *e);

/* xac_in_place_lose -- the same, of one that has died; the version slot stays taken.  May be repeated. */
void xac_in_place_lose(struct xac_env *env, const struct xac_entry *e);

#endif /* XAC_IN_PLACE_H */
