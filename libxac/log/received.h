/* SPDX-License-Identifier: MIT */
/*
 * received.h -- the mark up to which a standby has synced its log: the file xac.received (received_format.h).
 *
 * WHAT      Each block says how far its writer had synced the log when it was built.  In a standby that speaks of the
 *           source.  The mark says it of the log here.  While it counts, it takes the place of what the
 *           blocks say, and a torn tail is told from damage by it.
 * NOT HERE  Writing the log (replica.h); judging its end (recovery/recover.h).
 * OWNER     struct xac_received belongs to the caller.
 * LOCK      Writing: that of the log's writer (replica.h).  Reading: none.  A reader that reads the log after the
 *           mark finds all of it that the mark speaks of.
 * THREADS   one at a time.
 *
 * INVARIANTS
 *   (1) The mark is not ahead: all log before it is synced before it is written.
 *   (2) A slot is written only while the other one is on disk: whatever a power cut leaves of the one, the file has
 *       a valid slot.
 *   (3) The mark counts for a generation from its first slot of that generation on, which is on disk when
 *       xac_received_begin() returns, until another generation begins.
 */
#ifndef XAC_RECEIVED_H
#define XAC_RECEIVED_H

#include <stdbool.h>
#include <stdint.h>

#include "log/log_format.h"

/* The mark as it is read. */
struct xac_received_mark {
    bool counts;  /* else the blocks do                                               */
    uint64_t lsn; /* the log is synced up to here, at least                            */
};

/* The mark while log is written. */
struct xac_received {
    int dirfd; /* of the environment; not owned                                       */
    uint8_t identity[16];
    uint32_t generation;
    int fd;         /* -1: it does not count yet                                      */
    unsigned slot;  /* that may be written: the other one is on disk (2)              */
    bool is_synced; /* nothing has been written since                                 */
};

/*
 * xac_received_read -- in  master  of the log that will be read.
 *
 * ret  0, also if there is no file: then it does not count; XAC_EDAMAGED: there is one, without a valid slot;
 *      XAC_EVERSION; errno; words noted.
 */
int xac_received_read(int dirfd, const struct xac_master_slot *master,
                      struct xac_received_mark *out);

/* xac_received_open -- of the log of this generation; opens nothing yet. */
void xac_received_open(struct xac_received *r, int dirfd,
                       const struct xac_master_slot *master);
void xac_received_close(struct xac_received *r);

/* xac_received_begin -- from now on it counts; the log is synced up to `lsn`.  ret 0, when it is on disk, or
   errno, words noted. */
int xac_received_begin(struct xac_received *r, uint64_t lsn);

/* xac_received_note -- if it counts: the log is synced up to `lsn`.  The file is not synced.  ret 0 or errno,
   words noted. */
int xac_received_note(struct xac_received *r, uint64_t lsn);

/* xac_received_sync -- what has been noted is on disk when this returns 0; or errno, words noted. */
int xac_received_sync(struct xac_received *r);

#endif /* XAC_RECEIVED_H */
