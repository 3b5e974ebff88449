/* SPDX-License-Identifier: MIT */
/*
 * reap.h -- finishing what the dead have begun, and the commits of who is stopped.
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
 * xac_reap_dead -- clean up after every participant that is dead: publish what was
 * COMMITTING, take back the rest, free slots and entry.  What is COMMITTING of one that is
 * stopped is published if that can be done at once, else taken back; what is PENDING of it
 * and far behind is failed.  Signals blocked.
 */
void xac_reap_dead(struct xac_env *env);

/*
 * xac_reap_some -- the same for a few participants, others each time; for all if they are
 * few.  For whoever comes or goes: if each of 1,000 looked at all, they would look 1,000,000
 * times, one after the other behind the gate.
 */
void xac_reap_some(struct xac_env *env);

/* xac_reap_finish -- publish a COMMITTING transaction of another, alive or dead. */
void xac_reap_finish(struct xac_env *env, uint64_t slot, uint64_t serial);

#endif /* XAC_REAP_H */
