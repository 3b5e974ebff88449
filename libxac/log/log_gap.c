/* SPDX-License-Identifier: MIT */
/*
 * log_gap.c -- see log_gap.h.
 */
#include <config.h>

#include "log/log_gap.h"

#include "base/annot.h"
#include "base/clock.h"

/* At most a quarter of what a quick sync takes. */
static const uint64_t gap_ns[XAC_LOG_GAPS] = {0, 8000, 16000, 24000};

/* Flushes that have the same gap: the machine adapts to them. */
#define GAP_RUN 16
/* One run in so many tries another gap. */
#define GAP_TRY_EVERY 8
/* A flush counts for at least one in so many of its kind. */
#define GAP_MEMORY 32
/* A longer gap must save more than one part in so many. */
#define GAP_WORTH 32

void
xac_log_gap_begin(struct xac_log_gap *gap)
{
    uint32_t run = gap->n_flushes++ / GAP_RUN;

    gap->now = run % GAP_TRY_EVERY == 0 ? run / GAP_TRY_EVERY % XAC_LOG_GAPS : gap->best;
    gap->start_ns = xac_clock_ns();
    xac_assert(gap->now < XAC_LOG_GAPS);
}

void
xac_log_gap_wait(const struct xac_log_gap *gap)
{
    xac_assert(gap->now < XAC_LOG_GAPS);
    if (gap->start_ns == 0)
        return;
    while (xac_clock_ns() - gap->start_ns < gap_ns[gap->now])
        ;
}

/* gap_choose -- the gap that costs least, of those that are about the same the shortest. */
static uint32_t
gap_choose(const struct xac_log_gap *gap)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < XAC_LOG_GAPS; i++) {
        uint64_t least = gap->cost_ns[best];

        if (gap->n_tried[i] != 0 && gap->cost_ns[i] < least - least / GAP_WORTH)
            best = i;
    }
    xac_assert(best < XAC_LOG_GAPS);
    return best;
}

void
xac_log_gap_end(struct xac_log_gap *gap, bool is_synced)
{
    uint64_t *cost = &gap->cost_ns[gap->now];
    uint32_t *n = &gap->n_tried[gap->now];
    uint64_t took;

    xac_assert(gap->now < XAC_LOG_GAPS);
    if (gap->start_ns != 0 && is_synced && gap->n_flushes % GAP_RUN >= GAP_RUN / 2) {
        took = xac_clock_ns() - gap->start_ns;
        /* One that waited for somebody else's writes says little. */
        if (*n != 0 && took > 2 * *cost)
            took = 2 * *cost;
        *n += *n < GAP_MEMORY;
        *cost = *cost - *cost / *n + took / *n;
        gap->best = gap_choose(gap);
    }
    gap->start_ns = 0;
    xac_assert(gap->start_ns == 0);
}
