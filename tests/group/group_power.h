/* SPDX-License-Identifier: MIT */
/*
 * group_power.h -- a node of a group loses its power: all its processes end at once, and what it has not synced is gone.
 *
 * Raft's own files stay as they are: libraft syncs what it writes before it says so.
 */
#ifndef XAC_TEST_GROUP_POWER_H
#define XAC_TEST_GROUP_POWER_H

#include <stdbool.h>
#include <stdint.h>

#include "group_run.h"

/* What becomes of the log that has been written and not synced. */
enum group_loss {
    GROUP_LOSES_NOTHING, /* the processes end only                                    */
    GROUP_LOSES_ALL,
    GROUP_LOSES_SOME, /* any of its sectors                                           */
    GROUP_LOSSES
};

/* How far the log of a node that leads is. */
struct group_log {
    uint64_t durable, written, tail, segment_bytes;
};

/* group_log_of -- by its region, whether its processes live or not; ret false: there is none of a leader. */
bool group_log_of(const struct group *g, unsigned number, struct group_log *out);

/* group_cut_power -- of a node; the writer is killed if it writes there.  What else uses it has been killed before.  ret bytes of
   log that were not synced. */
uint64_t group_cut_power(struct group *g, unsigned number, enum group_loss loss,
                         uint64_t *seed);

#endif /* XAC_TEST_GROUP_POWER_H */
