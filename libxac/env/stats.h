/* SPDX-License-Identifier: MIT */
/*
 * stats.h -- what xStats() tells: the region's counters, and who holds versions back.
 *
 * THREADS   any; takes no lock.
 */
#ifndef XAC_STATS_H
#define XAC_STATS_H

#include <xac.h>

struct xac_env;

/* xac_stats_read -- fill in all of it, for an environment that is attached. */
void xac_stats_read(const struct xac_env *env, struct xac_stats *out);

#endif /* XAC_STATS_H */
