/* SPDX-License-Identifier: MIT */
/*
 * log_name.h -- positions in the log, and the names of the files that hold them.
 */
#ifndef XAC_LOG_NAME_H
#define XAC_LOG_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"

/* Positions end here, far from where sums of them could overflow.  What claims to lie behind is
   no log of ours. */
#define XAC_LSN_LIMIT (UINT64_C(1) << 62)

/* xac_log_last_segment -- number of the last segment of that size that there can be. */
static inline uint64_t
xac_log_last_segment(uint64_t segment_bytes)
{
    xac_assert(segment_bytes != 0);
    return XAC_LSN_LIMIT / segment_bytes;
}

/* Names: buf of XAC_LOG_NAME_MAX bytes. */
#define XAC_LOG_NAME_MAX 48
void xac_log_segment_name(char *buf, uint64_t number);
void xac_log_datafile_name(char *buf, uint32_t generation, uint64_t serial);

/* Is a name exactly that of a segment, or of a data file?  ret true, and its numbers. */
bool xac_log_segment_named(const char *name, uint64_t *numberp);
bool xac_log_datafile_named(const char *name, uint32_t *generationp, uint64_t *serialp);

/* xac_log_segment_of -- number of the segment that holds an LSN, from 1. */
static inline uint64_t
xac_log_segment_of(uint64_t lsn, uint64_t segment_bytes)
{
    xac_assert(segment_bytes != 0);
    return lsn / segment_bytes + 1;
}

#endif /* XAC_LOG_NAME_H */
