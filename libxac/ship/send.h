/* SPDX-License-Identifier: MIT */
/*
 * send.h -- the source's end of a connection (wire_format.h).
 *
 * WHAT      Sends a standby that has nothing a copy, then the log as it becomes durable, and moves the
 *           standby's slot by what it acknowledges.
 * NOT HERE  Reading the log (source.h); making slot and backup, for which one must take part: the
 *           caller gives a function.
 * LOCK      One sender for each slot name: a byte of XAC_SENDING_LOCK.
 * THREADS   one.  The sender is no participant.
 *
 * INVARIANTS
 *   (1) Log is sent only to a standby whose own log fits (lineage.h).
 *   (2) The slot moves to what the standby has acknowledged, and to nothing that has not been sent.
 *   (3) A block is sent behind the generation that it begins, and behind its data file.
 */
#ifndef XAC_SEND_H
#define XAC_SEND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ship/ship_copy.h"

/* The bytes of this file are slot names; and the directory in which the copy for a slot is made. */
#define XAC_SENDING_LOCK   "xac.sending"
#define XAC_SENDING_PREFIX "xac.sending-"

/* How far the standby is behind. */
struct xac_send_lag {
    uint64_t bytes; /* of durable log that it has not acknowledged                    */
    uint64_t ns;    /* since it had all that was durable then, at the most            */
};

struct xac_send_options {
    const char *dir;
    const char *slot;
    int in, out;
    const _Atomic bool *stop; /* set by a signal: end in order; NULL: never           */
    /* Make the slot, anew if it is lost, and a full backup in a directory that does not exist. */
    int (*copy)(void *arg, const char *slot, const char *to);
    int (*hold)(void *arg,
                const char *slot); /* make the slot only, likewise             */
    void *copy_arg;                /* of both                                  */
    const struct xac_backup_progress
        *progress; /* of the copy; NULL: nobody wants to know */
    void (*lag)(void *arg, const struct xac_send_lag *lag); /* NULL: do not */
    void *lag_arg;
    unsigned lag_ms; /* so often; the sender looks ten times a second at least          */
};

/* What has been sent. */
struct xac_send_report {
    bool was_copied;
    bool was_rewound; /* it had been an environment of its own                        */
    uint64_t blocks, bytes;
    uint32_t generation;
    uint64_t acknowledged; /* LSN                                                     */
};

/*
 * xac_send_run -- until `stop`, or until the standby has gone.
 *
 * out  report  filled in as far as it got
 * ret  0: `stop`, and the standby has acknowledged all that was sent; EPIPE: it has gone; EBUSY: another
 *      process sends for this slot; XAC_ECUTOFF: the log that it needs is gone, or the slot; it must
 *      receive anew; XAC_EFOREIGN: it follows another environment, or the two have parted;
 *      XAC_EPAGESIZE, XAC_EVERSION; XAC_EDAMAGED: what it sent is not right; as xac_source_next(); errno;
 *      or what the standby has stopped for.
 */
int xac_send_run(const struct xac_send_options *options, struct xac_send_report *report);

#endif /* XAC_SEND_H */
