/* SPDX-License-Identifier: MIT */
/*
 * clean.h -- finishing what the dead have begun, and the commits of who is stopped.
 *
 * LOCK      clean (rank CLEAN): one cleaner at a time.  Every step can be repeated, so a
 *           cleaner that dies is followed by the next.
 */
#ifndef XAC_CLEAN_H
#define XAC_CLEAN_H

#include <stdint.h>

#include "base/annot.h"

struct xac_env;

/*
 * xac_clean_dead -- clean up after every participant that is dead: publish what was
 * COMMITTING, take back the rest, free slots and entry.  What is COMMITTING of one that is
 * stopped is published if that can be done at once, else taken back; what is PENDING of it
 * and far behind is failed.  Signals blocked.
 */
void xac_clean_dead(struct xac_env *env);

/*
 * xac_clean_some -- the same for a few participants, others each time; for all if they are
 * few.  For whoever comes or goes: if each of 1,000 looked at all, they would look 1,000,000
 * times, one after the other behind the gate.
 */
void xac_clean_some(struct xac_env *env);

/* xac_clean_finish -- publish a COMMITTING transaction of another, alive or dead. */
void xac_clean_finish(struct xac_env *env, uint64_t slot, uint64_t serial);

#endif /* XAC_CLEAN_H */
