/* SPDX-License-Identifier: MIT */
/*
 * log_segment.h -- making the files of the log, for log.c.
 *
 * A segment is made under XAC_LOG_NEW_NAME, filled with zeros by real writes (or an old one
 * renamed to that), given its header and synced before it gets its name: whatever has a
 * segment's name is complete.
 *
 * The segment in which the log of a run begins has its full length from the start, too, but blocks
 * on disk for 64 KiB of it only, if it is new.  They are doubled, by zeros that are synced, when half
 * of them is used: an environment that never logs much takes little room.
 *
 * INVARIANTS
 *   (1) No segment is made that the next ring_bytes of the log do not need.
 *   (2) A file that has the name of an old segment and does not prove to be one is neither
 *       used again nor removed.
 *   (3) No byte of the log before `prepared` is filled with zeros: it may have been written.
 */
#ifndef XAC_LOG_SEGMENT_H
#define XAC_LOG_SEGMENT_H

#include <stdint.h>

#include "base/clock.h"
#include "base/probe.h"
#include "base/sys.h"
#include "base/times.h"
#include "log/log_format.h"
#include "log/log_state.h"

/*
 * xac_log_segment_prepare -- make segments, or more of one, until `prepared` is at least `upto`.
 *
 * in   upto  at most the ring's bytes behind `prepared`
 * ret  0; errno values, XAC_EFOREIGN and so on (words noted); nothing is poisoned.
 */
int xac_log_segment_prepare(struct xac_log *log, uint64_t upto);

/*
 * xac_log_segment_prepare_ahead -- the same for what comes next, unless somebody else is at it.
 *
 * A failure is forgotten until xac_log_segment_prepare succeeds.
 */
void xac_log_segment_prepare_ahead(struct xac_log *log);

/*
 * xac_log_segment_sync -- sync what has been written to one, up to an LSN; flush lock held.
 *
 * ret  0 or -1 with errno.
 */
static inline int
xac_log_segment_sync(struct xac_log_shared *sh, int fd, uint64_t to)
{
    uint64_t begin_ns = xac_clock_ns(), ns;

    xac_assert(fd >= 0);
    if (xac_sys.fdatasync(fd) != 0)
        return -1;
    ns = xac_clock_ns() - begin_ns;
    xac_times_add(&sh->sync_times, ns);
    (void)atomic_fetch_add_explicit(&sh->n_syncs, 1, memory_order_relaxed);
    XAC_PROBE2(sync, ns, to);
    return 0;
}

/* xac_log_segment_mark -- write the header of segment `number`, and sync the whole file; ret 0 or errno. */
int xac_log_segment_mark(int fd, const uint8_t identity[16], uint64_t number,
                         uint64_t segment_bytes, uint32_t page_size);

/*
 * xac_log_segment_publish -- give what has been made under XAC_LOG_NEW_NAME the name of a segment, durably.
 *
 * If that fails, or making it has, neither name stays: a segment that another attempt found there would
 * count as one that has always been.
 * in   rc     of making it
 * in   bytes  that have been asked for, for the words
 * ret  0 or an error, words noted.
 */
int xac_log_segment_publish(int dirfd, const char *name, uint64_t bytes, int rc);

/* xac_log_segment_verify -- a segment that exists already: its length, then as xac_log_segment_check(); out st. */
int xac_log_segment_verify(int fd, const char *name, const uint8_t identity[16],
                           uint64_t number, uint64_t segment_bytes, uint32_t page_size,
                           struct stat *st);

/*
 * xac_log_segment_check -- verify the header of a segment.
 *
 * in   head           as read from offset 0
 * ret  0; XAC_EDAMAGED, XAC_EVERSION, XAC_EFOREIGN, XAC_EPAGESIZE (words noted).
 */
int xac_log_segment_check(const struct xac_segment_header *head, const char *name,
                          const uint8_t identity[16], uint64_t number,
                          uint64_t segment_bytes, uint32_t page_size);

#endif /* XAC_LOG_SEGMENT_H */
