/* SPDX-License-Identifier: MIT */
/*
 * follow.h -- reading the log from a position on, block by block, while it grows and while its oldest
 * segments are used again.
 *
 * WHAT      A cursor: a generation, and the LSN of the next block.  It hands out whole valid blocks,
 *           as they lie on disk, each with its data file if it has one.
 * NOT HERE  Up to where the log may be read, and which generation comes next (ship/source).  Reading
 *           past the page cache, what stands behind the end, and whether an end is damage: that is
 *           recovery's reader (recover_scan), for which nothing changes meanwhile.
 * OWNER     struct xac_follow belongs to the caller.
 * LOCK      None.  Nothing here writes.
 * THREADS   one at a time.
 *
 * INVARIANTS
 *   (1) The cursor moves by the length of the block that was handed out, or to the start of the next
 *       generation.  So no block is handed out twice, and none is left out.
 *   (2) A block is handed out only if it ends at or below the limit.
 *   (3) The header of a segment is read after the segment's bytes.  A segment that is used again
 *       gets its new header before its new bytes, so under a right header all bytes are of its log.
 *   (4) A block that names a data file is handed out only if the file is right.
 */
#ifndef XAC_FOLLOW_H
#define XAC_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/block.h"
#include "log/log_format.h"

/* The limit of a generation that is over: its blocks end where the first invalid place is, as for
   the recovery that began the next one. */
#define XAC_FOLLOW_SEALED UINT64_MAX

struct xac_follow {
    int dirfd; /* of the log; not owned                                               */
    uint8_t identity[16];
    uint32_t page_size;
    uint64_t segment_bytes; /* of this generation                                     */
    struct xac_log_id id;   /* the cursor: its generation, ...                        */
    uint64_t lsn;           /* ... and where the next block stands                    */

    uint64_t number; /* of the segment that is open, 0 none                           */
    int fd;          /* it; -1                                                        */
    int datafd;      /* of the block handed out last; -1                              */
    uint8_t *buf;    /* log from lsn on: the bytes [at, n); 8-aligned                 */
    size_t size, at, n;
};

/* What is handed out; good until the next call. */
struct xac_followed {
    const struct xac_block *blk;      /* NULL: nothing                                */
    const struct xac_xdatafile *data; /* the record that names its data file; NULL    */
    int datafd;                       /* that file, open for reading; -1              */
};

/*
 * xac_follow_open -- begin at the block at an LSN, or where it will stand.
 *
 * in   dirfd   of the directory of the log
 * in   master  identity, page size, and generation and segment size at that place
 * ret  0 or ENOMEM; close it in any case.
 */
int xac_follow_open(struct xac_follow *f, int dirfd, const struct xac_master_slot *master,
                    uint64_t lsn);
void xac_follow_close(struct xac_follow *f);

/*
 * xac_follow_next -- the next block, and move behind it.
 *
 * in   limit  of the log that may be read, the end of a block; or XAC_FOLLOW_SEALED
 * out  out    blk NULL: nothing more up to the limit, or in this generation
 * ret  0; XAC_ECUTOFF: what stood there has been removed or used again, in words that name the oldest
 *      log there is; XAC_EDAMAGED: no valid block below the limit, or a wrong data file; errno.
 */
int xac_follow_next(struct xac_follow *f, uint64_t limit, struct xac_followed *out);

/*
 * xac_follow_begins -- does a block of a later generation stand there, in a segment of the same size?
 *
 * out  generationp  its own; 0: none does
 * ret  0 or errno.
 */
int xac_follow_begins(struct xac_follow *f, uint64_t lsn, uint32_t *generationp);

/* xac_follow_turn -- go on with another generation. */
void xac_follow_turn(struct xac_follow *f, uint32_t generation, uint64_t lsn,
                     uint64_t segment_bytes);

/* xac_follow_oldest -- where the oldest segment begins that there is; 0 none; ret 0 or errno. */
int xac_follow_oldest(const struct xac_follow *f, uint64_t *lsnp);

/* xac_follow_cut_off -- say that the log at the cursor is gone; ret XAC_ECUTOFF, or errno. */
int xac_follow_cut_off(const struct xac_follow *f);

#endif /* XAC_FOLLOW_H */
