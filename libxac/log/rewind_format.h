/* SPDX-License-Identifier: MIT */
/*
 * rewind_format.h -- bytes on disk: xac.rewind, which is there while an old source becomes a standby of the environment
 * that was its standby (rewind_note.h).  Little-endian; sizes are bytes.
 *
 * HEAD, 640 bytes, then n_files times FILE, and nothing behind them.
 *   OFFSET SIZE FIELD          MEANING
 *      0     8  magic          XAC_REWIND_MAGIC
 *      8     4  version        XAC_REWIND_VERSION
 *     12     4  n_files
 *     16     8  whole_lsn      0: the files are not as they are to be.  Else they are, and so is the master
 *                              record, and the directory is whole when its log reaches as far as that
 *     24     8  own_bytes      size of the segments in which the own log has the fork
 *     32     8  body_bytes     of all FILEs
 *     40     8  body_check     XXH3-64 of them
 *     48    48  line           of the source's generation behind the fork:
 *                              4 generation, 4 previous, 8 start_lsn, 8 end_lsn (the fork), 8 segment_bytes, 16 branch
 *     96   512  master         the slot of the master record that the directory gets (log_format.h)
 *    608    24  reserved       zero
 *    632     8  checksum       XXH3-64 of bytes 0..631
 *
 * FILE
 *      0     4  what           enum xac_rewind_what
 *      4     4  path_len       bytes of the path, relative to the directory, without NUL
 *      8     8  n_runs         of pages, with XAC_REWIND_PAGES only
 *     16        path, zeros up to a multiple of 8, then the runs: 8 page, 8 n.  They ascend and do not touch
 *
 * It is VALID if and only if magic, version and both checksums are right, reserved is zero, redo of the slot
 * begins where the line does, the files fill the rest exactly, and their paths stay in the directory.
 *
 * HISTORY
 *   1  first format
 */
#ifndef XAC_REWIND_FORMAT_H
#define XAC_REWIND_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "log/log_format.h"

#define XAC_REWIND_MAGIC   "XACREWD1"
#define XAC_REWIND_VERSION 1u

/* What a file needs. */
enum xac_rewind_what {
    XAC_REWIND_PAGES = 1, /* these pages of the source's, and its length                */
    XAC_REWIND_WHOLE = 2, /* all of the source's                                        */
    XAC_REWIND_GONE = 3   /* the source has none: it is removed                         */
};

struct xac_rewind_head {
    char magic[8];
    uint32_t version;
    uint32_t n_files;
    uint64_t whole_lsn;
    uint64_t own_bytes;
    uint64_t body_bytes;
    uint64_t body_check;
    uint32_t generation;
    uint32_t previous;
    uint64_t start_lsn;
    uint64_t end_lsn;
    uint64_t segment_bytes;
    uint8_t branch[16];
    struct xac_master_slot master;
    uint8_t reserved[24];
    uint64_t checksum;
};
static_assert(sizeof(struct xac_rewind_head) == 640, "format");
static_assert(offsetof(struct xac_rewind_head, generation) == 48, "format");
static_assert(offsetof(struct xac_rewind_head, master) == 96, "format");
static_assert(offsetof(struct xac_rewind_head, checksum) == 632, "format");

struct xac_rewind_entry {
    uint32_t what;
    uint32_t path_len;
    uint64_t n_runs;
};
static_assert(sizeof(struct xac_rewind_entry) == 16, "format");

struct xac_rewind_run {
    uint64_t page;
    uint64_t n;
};
static_assert(sizeof(struct xac_rewind_run) == 16, "format");

#endif /* XAC_REWIND_FORMAT_H */
