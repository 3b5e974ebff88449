/* SPDX-License-Identifier: MIT */
/*
 * reap.h -- finishing what dead participants have begun, and commits of stopped ones.
 *
 * LOCK      reap (rank REAP): one reaper at a time.  Every step can be repeated, so a
 *           reaper that dies is followed by the next.
 */
#ifndef XAC_REAP_H
#define XAC_REAP_H

#include <stdint.h>

#include "base/annot.h"

struct xac_env;

/*
 * xac_reap_dead -- reap every dead participant: publish its COMMITTING transactions, take back
 * the others, free its slots and its entry.  COMMITTING transactions of a stopped participant
 * are published if that is possible at once, else taken back; PENDING ones that are far behind
 * are failed.  Signals blocked.
 */
void xac_reap_dead(struct xac_env *env);

/*
 * xac_reap_some -- the same for a few participants, others each time; for all if there are only
 * few.  Participants call it when they join and leave: if each of 1,000 checked all others, that
 * would be 1,000,000 checks, one after the other, with the gate held.
 */
void xac_reap_some(struct xac_env *env);

/* xac_reap_finish -- publish a COMMITTING transaction of another, alive or dead. */
void xac_reap_finish(struct xac_env *env, uint64_t slot, uint64_t serial);

#endif /* XAC_REAP_H */
