/* SPDX-License-Identifier: MIT */
/*
 * log_put.h -- bytes of the log back into the segments that they came from.
 *
 * WHAT      Writes a piece of log, which lies in a file of its own, into segments of a directory; makes those that
 *           are missing.
 * NOT HERE  Which pieces belong together (recovery/archive_plan.c); appending blocks as they come (replica.h).
 * LOCK      The caller has the directory for itself.
 * THREADS   one at a time.
 *
 * INVARIANTS
 *   (1) A segment that is there is written only if its header is right for the piece.
 *   (2) All is synced, but not the names.
 */
#ifndef XAC_LOG_PUT_H
#define XAC_LOG_PUT_H

#include <stdint.h>

#include "base/newfile.h"

/* A piece of log. */
struct xac_log_piece {
    const uint8_t *identity; /* 16 bytes, of the environment                          */
    uint32_t page_size;
    uint64_t segment_bytes;
    uint64_t start, end; /* LSNs                                                      */
    int fd;              /* file that holds it, from offset 0 on                      */
};

/* xac_log_put -- ret 0; XAC_EDAMAGED, XAC_EFOREIGN and others of a wrong segment; EIO: the file is too short; errno;
   with words. */
int xac_log_put(int dirfd, const struct xac_owner *owner,
                const struct xac_log_piece *piece);

#endif /* XAC_LOG_PUT_H */
