/* SPDX-License-Identifier: MIT */
/*
 * clock.h -- time that passes: nanoseconds of the monotonic clock, one for all processes.
 *
 * HANDLER   both, clock_gettime(2) is async-signal-safe.
 */
#ifndef XAC_CLOCK_H
#define XAC_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "base/annot.h"

XAC_SIGSAFE static inline uint64_t
xac_clock_read(clockid_t clock)
{
    struct timespec ts;

    (void)clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* xac_clock_ns -- exact. */
XAC_SIGSAFE static inline uint64_t
xac_clock_ns(void)
{
    return xac_clock_read(CLOCK_MONOTONIC);
}

/* xac_clock_coarse_ns -- the same clock at its last tick, up to 10 ms ago; much cheaper. */
XAC_SIGSAFE static inline uint64_t
xac_clock_coarse_ns(void)
{
    return xac_clock_read(CLOCK_MONOTONIC_COARSE);
}

#endif /* XAC_CLOCK_H */
