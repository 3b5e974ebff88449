/* SPDX-License-Identifier: MIT */
/*
 * receive.h -- the standby's end of a connection (wire_format.h).
 *
 * WHAT      Says what it has, gets a copy if it has nothing, then takes log, makes it durable,
 *           acknowledges it and redoes it, until the source stops or the connection breaks.
 * NOT HERE  The standby itself (recovery/standby.h), the first copy (ship_copy.h), what an old source needs
 *           (rewind.h).
 * LOCK      The gate of the directory while there is no standby yet; then it is a participant (standby.h).
 * THREADS   one.
 *
 * INVARIANTS
 *   (1) Only what is durable here is acknowledged.
 *   (2) What the source sends is used after it has been checked; memory for a block grows with its bytes.
 */
#ifndef XAC_RECEIVE_H
#define XAC_RECEIVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backup/backup_report.h"

struct xac_receive_options {
    const char *dir;
    int in, out;
    bool
        rewinds; /* an environment of its own follows the source that was its standby: what it has committed
                     since the fork is given up                                        */
    const _Atomic bool *stop; /* set by a signal: rest and return; NULL: never         */
    const struct xac_backup_progress
        *progress; /* of the copy; NULL: nobody wants to know */
    /* When the source says how far it is, each second: bytes of log that are not durable here; NULL: do not. */
    void (*behind)(void *arg, uint64_t bytes);
    void *behind_arg;
    bool
        is_member; /* the caller is the daemon of a group's member, which this is        */
    /* When more is durable here: is it enough?  Then this ends.  NULL: never. */
    bool (*is_enough)(void *arg, uint32_t generation, uint64_t durable);
    void *enough_arg;
};

/* What has been received. */
struct xac_receive_report {
    bool was_copied;
    bool was_rewound;
    uint64_t fork_lsn; /* then: what it had from there on has gone, ...                */
    uint64_t pages;    /* and so many have come for its files                         */
    uint64_t transactions;
    uint32_t generation;
    uint64_t durable; /* 0: nothing is there                                          */
};

/*
 * xac_receive_run -- until the source ends, or `stop`, or it is enough.
 *
 * out  report  filled in as far as it got
 * ret  0: the source has stopped, and all that it has sent is here; or `stop`; or it is enough.  EPIPE: the connection is
 *      cut; what was acknowledged is durable, and the next run goes on there.  EEXIST: something else
 *      lies in the directory; XAC_EFOREIGN, XAC_EPAGESIZE, XAC_EVERSION: the source does not fit;
 *      EINVAL: an environment of its own lies there, which the source has not parted from;
 *      XAC_EDAMAGED: what came is not right; as xac_rewind_run(), xac_standby_start() and xac_standby_take();
 *      errno; or what the source has stopped for.
 */
int xac_receive_run(const struct xac_receive_options *options,
                    struct xac_receive_report *report);

#endif /* XAC_RECEIVE_H */
