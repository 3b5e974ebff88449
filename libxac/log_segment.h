/* SPDX-License-Identifier: MIT */
/*
 * log_segment.h -- making the files of the log, for log.c.
 *
 * A segment is made under XAC_LOG_NEW_NAME, filled with zeros by real writes (or an old one
 * renamed to that), given its header and synced before it gets its name: whatever has a
 * segment's name is complete.
 *
 * INVARIANTS
 *   (1) No segment is made that the next ring_bytes of the log do not need.
 *   (2) A file that has the name of an old segment and does not prove to be one is neither
 *       used again nor removed.
 */
#ifndef XAC_LOG_SEGMENT_H
#define XAC_LOG_SEGMENT_H

#include <stdint.h>

#include "log.h"

/* The segment in the making.  Not the prefix of a segment's name. */
#define XAC_LOG_NEW_NAME "xac-log-new"

/*
 * xac_log_segment_prepare -- make segments until `prepared` is at least `upto`.
 *
 * in   upto  at most the ring's bytes behind `prepared`
 * ret  0; errno values, XAC_EFOREIGN and so on (words noted); nothing is poisoned.
 */
int xac_log_segment_prepare(struct xac_log *log, uint64_t upto);

/*
 * xac_log_segment_prepare_ahead -- make the next segment if more than half of the last
 * one is full and nobody else is at it.
 *
 * A failure is forgotten until xac_log_segment_prepare succeeds.
 */
void xac_log_segment_prepare_ahead(struct xac_log *log);

#endif /* XAC_LOG_SEGMENT_H */
