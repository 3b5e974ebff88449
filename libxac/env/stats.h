/* SPDX-License-Identifier: MIT */
/*
 * stats.h -- the results of xStats(): counters of the region, and the readers of old versions.
 *
 * THREADS   any; takes no lock.
 */
#ifndef XAC_STATS_H
#define XAC_STATS_H

#include <xac.h>

struct xac_env;

/* xac_stats_read -- fill in all fields, for an environment that is attached. */
void xac_stats_read(const struct xac_env *env, struct xac_stats *out);

#endif /* XAC_STATS_H */
