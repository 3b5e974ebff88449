/* SPDX-License-Identifier: MIT */
/*
 * log_gap.h -- the gap that a lone committer leaves between its write and its sync.
 *
 * WHAT      A lone committer stays awake for a moment between its write and its sync.  A sync right behind a
 *           write puts the thread to sleep twice: until the data have arrived, and until the device has emptied
 *           its cache.  If the first wait is over while the thread is still awake, the kernel goes on to the
 *           second at once, and the thread falls asleep once instead of twice.  On a virtual machine that saves
 *           a sixth of the time.  The best gap, which may be 0, is found by trying: one run of flushes in 8
 *           tries another gap, and the others use the one that has cost least.  Several committers need no gap,
 *           for each waits for the writes of others.
 * NOT HERE  Who is alone, writing and syncing (log.c).
 * OWNER     struct xac_log_gap is a part of the process's struct xac_log (log_state.h).
 * LOCK      flush
 * THREADS   any, one at a time.
 */
#ifndef XAC_LOG_GAP_H
#define XAC_LOG_GAP_H

#include <stdbool.h>

#include "log/log_state.h"

/* xac_log_gap_begin -- the device has been told to write. */
void xac_log_gap_begin(struct xac_log_gap *gap);

/* xac_log_gap_wait -- before the sync: wait for the rest of the gap, if a write is under way. */
void xac_log_gap_wait(const struct xac_log_gap *gap);

/* xac_log_gap_end -- the sync is over, or was not needed any more. */
void xac_log_gap_end(struct xac_log_gap *gap, bool is_synced);

#endif /* XAC_LOG_GAP_H */
