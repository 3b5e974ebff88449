/* SPDX-License-Identifier: MIT */
/*
 * policy.h -- what happens when two transactions want the same page (Thesis 3.3).
 *
 * WHAT      The abort policies, one small file each, behind one interface.  The policy
 *           belongs to the environment; the first participant chooses it
 *           (XAC_OPT_POLICY).
 *
 * Eager policies decide when a page is touched, so that every pending transaction could commit.
 * The optimistic and the serial policy decide nothing while transactions run.  At its end an
 * optimistic one is validated (policy_optimistic.c); a serial one has had the turn, so that no other
 * one has published meanwhile (policy_serial.c).
 */
#ifndef XAC_POLICY_H
#define XAC_POLICY_H

#include <stdbool.h>

#include <xac.h>

#include "base/annot.h"
#include "txn/slot.h"

/* The decision of a policy when `self` wants a page that `other` has. */
enum xac_verdict {
    XAC_FAIL_OTHER,
    XAC_FAIL_SELF
};

struct xac_policy {
    const char *name;
    /* No checks while running; `decide` is not called.  The parent stays that of the begin. */
    bool decides_at_end;
    /* All that publish have the turn, so what they read need not be known. */
    bool is_serial;
    /* A loser waits for the older one before it tries again (conflict.h). */
    bool loser_waits;
    /* Called with the page locked, in the fault handler; must not block.  Both are
       PENDING.  XAC_FAIL_SELF counts only while the process of the other one runs. */
    enum xac_verdict (*decide)(const struct xac_txn *self, const struct xac_txn *other);
    /* Before a transaction begins that is no query; NULL: nothing.  Takes the turn if it needs it.
       ret 0; ETIMEDOUT: the thread's limit is over. */
    int (*begin)(struct xac_env *env, struct xac_ctx *ctx);
    /* Of a policy that decides at the end, NULL otherwise.  Is what the transaction of the slot has
       read what its successor would read?  Sure only under the publish lock; a no is sure without it.
       out  pagep  id of the first page that another has written; not stored to if there is none */
    bool (*validate)(const struct xac_env *env, uint64_t slot, uint64_t *pagep);
    int lost; /* if not: enum xac_conflict_kind                                          */
    /* May the slot publish now, or must it take the turn?  Under the publish lock; NULL: now. */
    bool (*may_publish)(const struct xac_env *env, uint64_t slot);
};

extern const struct xac_policy xac_policy_oldest_wins;
extern const struct xac_policy xac_policy_youngest_wins;
extern const struct xac_policy xac_policy_self_abort;
extern const struct xac_policy xac_policy_selfish;
extern const struct xac_policy xac_policy_optimistic;
extern const struct xac_policy xac_policy_serial;

/* xac_policy_of -- the policy with that number (enum xac_policy_kind), or NULL. */
const struct xac_policy *xac_policy_of(uint32_t kind);

#endif /* XAC_POLICY_H */
