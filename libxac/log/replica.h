/* SPDX-License-Identifier: MIT */
/*
 * replica.h -- writing the log of another environment, block by block as it comes from there.
 *
 * WHAT      Appends blocks unchanged to segments of a directory in which nobody else appends, stores data
 *           files, and syncs both.
 * NOT HERE  Whether a block belongs there, and what it means (recovery/standby.h).
 * OWNER     struct xac_replica belongs to the caller.
 * LOCK      The caller holds the gate of the directory, or is its replayer (recovery/replayer.h).
 * THREADS   one at a time.
 *
 * INVARIANTS
 *   (1) A block that carries a `durable` up to which the log here is not synced is written only when the mark of
 *       xac.received counts (received.h).  That number speaks of the source.  Without the mark a torn
 *       tail would look like damage here after a crash, because a block behind it says that more had been synced.
 *   (2) `durable` moves only when what lies before it is synced, with its segments' names, and data files
 *       that its blocks name, too.  The mark moves behind it.
 *   (3) What has the name of a segment is complete, as in log_segment.h.
 */
#ifndef XAC_REPLICA_H
#define XAC_REPLICA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/block.h"
#include "log/log_format.h"
#include "log/received.h"

struct xac_replica {
    int dirfd; /* of the log; not owned                                               */
    uint8_t identity[16];
    uint32_t page_size;
    uint32_t generation;
    uint64_t segment_bytes;
    uint64_t end;     /* of what has been written                                     */
    uint64_t durable; /* of what is synced; at most `end`                             */
    int fd;           /* segment that is open, -1                                     */
    uint64_t number;  /* its                                                          */
    int datafd;       /* data file that is being stored, -1                           */
    uint64_t serial;  /* its                                                          */
    uint64_t data_bytes; /* stored so far                                             */
    struct xac_received received;
};

/* xac_replica_open -- go on at an LSN up to which the log is there, and synced.  in  dirfd  of the log; envfd  of the
   environment. */
void xac_replica_open(struct xac_replica *r, int dirfd, int envfd,
                      const struct xac_master_slot *master, uint64_t end);
void xac_replica_close(struct xac_replica *r);

/* xac_replica_data -- store a piece of a data file; 0 is the offset of the first one, and they follow
   each other without gaps.  ret 0; XAC_EDAMAGED: they do not; errno. */
int xac_replica_data(struct xac_replica *r, uint64_t serial, uint64_t offset,
                     const void *bytes, size_t n);

/* xac_replica_data_end -- the data file is complete; ret 0 when it and its name are synced, or errno. */
int xac_replica_data_end(struct xac_replica *r);

/* xac_replica_put -- append a valid block that stands at `end`; ret 0 or errno. */
int xac_replica_put(struct xac_replica *r, const struct xac_block *blk);

/* xac_replica_sync -- everything that has been put is durable when this returns 0; or errno.  xac_replica_sync_mark --
   so is the mark, if it counts: damage before it is told from a torn tail after a power cut, too. */
int xac_replica_sync(struct xac_replica *r);
int xac_replica_sync_mark(struct xac_replica *r);

/*
 * xac_replica_clear -- zeros in a part of a log that is not to count: what a crash has left behind the end, before a
 * promotion, for its blocks say of another log what had been synced, and some of them may be whole; and what a deposed
 * leader has written behind the cut.
 *
 * in   dirfd     of the log
 * in   from, to  LSNs; segments that are missing stay so
 * ret  0, synced, or errno, words noted.
 */
int xac_replica_clear(int dirfd, uint64_t segment_bytes, uint64_t from, uint64_t to);

#endif /* XAC_REPLICA_H */
