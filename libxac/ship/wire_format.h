/* SPDX-License-Identifier: MIT */
/*
 * wire_format.h -- bytes between a source and its standby.  Little-endian; sizes are bytes.
 *
 * Each side sends frames, one after the other: a HEAD, and a BODY.
 *
 * HEAD, 32 bytes
 *   OFFSET SIZE FIELD        MEANING
 *      0     4  magic        XAC_WIRE_MAGIC
 *      4     2  type         enum xac_wire_type
 *      6     2  reserved     zero
 *      8     4  length       of the body, at most XAC_WIRE_BODY_MAX
 *     12     4  number       frames that this side has sent before, modulo 2^32
 *     16     8  body_check   XXH3-64 of the body
 *     24     8  head_check   XXH3-64 of bytes 0..23
 *
 * HELLO, 96 bytes: the first frame of either side
 *      0     4  version      XAC_WIRE_VERSION; of a standby that is to be rewound XAC_WIRE_VERSION_REWIND
 *      4     4  page_size    of the environment; of a standby without one 0
 *      8    16  identity     of the environment; likewise
 *     24     8  lsn          of the standby: where its log ends; of the source 0
 *     32    64  line         of the standby: LINE of the generation that its log ends in; zeros: it has
 *                            no environment, and wants a copy.  Of the source: zeros
 *
 * LINE, 64 bytes: of a generation, as in xac.history (lineage.h)
 *      0     4  generation
 *      4     4  previous
 *      8     8  start_lsn
 *     16     8  end_lsn      where `previous` ends
 *     24     8  segment_bytes
 *     32    16  branch       zeros: not known
 *     48    16  reserved     zero
 *
 * FILE: a file of the copy begins
 *      0     8  length       of the file
 *      8     8  total        bytes of the whole copy, about
 *     16        path         relative to the copy, without NUL
 *
 * PIECE: of the file that has begun last
 *      0     8  offset       ascending; what no piece has is zero
 *      8        bytes
 *
 * COPIED, 576 bytes: the copy is complete
 *      0   512  master       slot of the master record
 *    512    64  line         of its generation
 *
 * NOTE: a piece of xac.addresses, which is not in the log
 *      0     8  length       of all pieces together
 *      8     8  offset       of this one; 0: a new one begins
 *     16        bytes
 *
 * DATA: a piece of a data file, before the block that names it
 *      0     8  serial
 *      8     8  offset       of the piece; 0: the file begins
 *     16        bytes
 *
 * LOG: the next bytes of a block, as it lies in the log; a block begins in a frame of its own
 *      0     8  lsn          of the first byte
 *      8        bytes
 *
 * TURN, 64 bytes: LINE of the generation that the next block is of
 *
 * BEAT, 16 bytes: the source is there
 *      0     8  lsn          up to where its log can be sent
 *      8     8  time_ns      its clock, nanoseconds since 1970
 *
 * ACK, 24 bytes
 *      0     8  durable      the standby's log is on its disk up to here
 *      8     8  applied      and in its files, or in memory on the way there
 *     16     4  generation   of both
 *     20     4  reserved     zero
 *
 * END, 0 bytes: the source stops; all that was sent is all
 *
 * ERROR: this side stops
 *      0     4  code         as in xac.h
 *      4        words        UTF-8, without NUL
 *
 * Between a source and an environment that is to be rewound (rewind.h), before all other frames but HELLO:
 *
 * FILE: of the source, one for each of its mapped files, without pieces; total is zero
 *
 * LINES: the lines of the source's history, LINE each, ascending; behind the last FILE
 *
 * WANT: bytes of a file; the answer is FILE, with a length of all ones if there is none, then PIECEs, then WANTED
 *      0     4  flags        XAC_WIRE_WANT_WHOLE: all of it, but for what is zeros
 *      4     4  path_len     bytes of the path
 *      8     4  n_runs
 *     12     4  reserved     zero
 *     16        path, zeros up to a multiple of 8, then the runs: 8 offset, 8 length; they ascend
 *
 * WANTED, 0 bytes: all of it that there is has been sent
 *
 * FROM, 80 bytes: log from there on is wanted; the answer is BEAT, with the end of the source's log at this moment
 *      0    64  line         LINE of the generation
 *     64     8  lsn
 *     72     4  flags        XAC_WIRE_FROM_GO: go on as with any standby; else only look whether it is there
 *     76     4  reserved     zero
 *
 * A frame is VALID if and only if magic, type, both checksums and the number are right, reserved is
 * zero, and the length is one that a frame of its type can have.
 *
 * HISTORY
 *   1  first format
 *   2  LINES, WANT, WANTED, FROM.  All else is as in 1, and only who is to be rewound says 2
 */
#ifndef XAC_WIRE_FORMAT_H
#define XAC_WIRE_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "log/log_format.h"

#define XAC_WIRE_MAGIC   UINT32_C(0x50485358) /* "XSHP" */
#define XAC_WIRE_VERSION 1u

/* What a standby says that is to be rewound: a source that does not know how to refuses it by the number. */
#define XAC_WIRE_VERSION_REWIND 2u

#define XAC_WIRE_WANT_WHOLE 1u
#define XAC_WIRE_FROM_GO    1u

/* Length in FILE of one that is not there. */
#define XAC_WIRE_NO_FILE UINT64_MAX

#define XAC_WIRE_BODY_MAX  (UINT32_C(1) << 20)
#define XAC_WIRE_PATH_MAX  4096u
#define XAC_WIRE_WORDS_MAX 1024u

enum xac_wire_type {
    XAC_WIRE_NONE = 0,
    XAC_WIRE_HELLO = 1,
    XAC_WIRE_FILE = 2,
    XAC_WIRE_PIECE = 3,
    XAC_WIRE_COPIED = 4,
    XAC_WIRE_NOTE = 5,
    XAC_WIRE_DATA = 6,
    XAC_WIRE_LOG = 7,
    XAC_WIRE_TURN = 8,
    XAC_WIRE_BEAT = 9,
    XAC_WIRE_ACK = 10,
    XAC_WIRE_END = 11,
    XAC_WIRE_ERROR = 12,
    XAC_WIRE_LINES = 13,
    XAC_WIRE_WANT = 14,
    XAC_WIRE_WANTED = 15,
    XAC_WIRE_FROM = 16,
    XAC_WIRE_TYPES
};

struct xac_wire_head {
    uint32_t magic;
    uint16_t type;
    uint16_t reserved;
    uint32_t length;
    uint32_t number;
    uint64_t body_check;
    uint64_t head_check;
};
static_assert(sizeof(struct xac_wire_head) == 32, "format");
static_assert(offsetof(struct xac_wire_head, head_check) == 24, "format");

struct xac_wire_line {
    uint32_t generation;
    uint32_t previous;
    uint64_t start_lsn;
    uint64_t end_lsn;
    uint64_t segment_bytes;
    uint8_t branch[16];
    uint8_t reserved[16];
};
static_assert(sizeof(struct xac_wire_line) == 64, "format");

struct xac_wire_hello {
    uint32_t version;
    uint32_t page_size;
    uint8_t identity[16];
    uint64_t lsn;
    struct xac_wire_line line;
};
static_assert(sizeof(struct xac_wire_hello) == 96, "format");
static_assert(offsetof(struct xac_wire_hello, line) == 32, "format");

struct xac_wire_file {
    uint64_t length;
    uint64_t total;
    /* path */
};
static_assert(sizeof(struct xac_wire_file) == 16, "format");

struct xac_wire_piece {
    uint64_t offset;
    /* bytes */
};
static_assert(sizeof(struct xac_wire_piece) == 8, "format");

struct xac_wire_copied {
    struct xac_master_slot master;
    struct xac_wire_line line;
};
static_assert(sizeof(struct xac_wire_copied) == 576, "format");

struct xac_wire_note {
    uint64_t length;
    uint64_t offset;
    /* bytes */
};
static_assert(sizeof(struct xac_wire_note) == 16, "format");

struct xac_wire_data {
    uint64_t serial;
    uint64_t offset;
    /* bytes */
};
static_assert(sizeof(struct xac_wire_data) == 16, "format");

struct xac_wire_log {
    uint64_t lsn;
    /* bytes */
};
static_assert(sizeof(struct xac_wire_log) == 8, "format");

struct xac_wire_beat {
    uint64_t lsn;
    uint64_t time_ns;
};
static_assert(sizeof(struct xac_wire_beat) == 16, "format");

struct xac_wire_ack {
    uint64_t durable;
    uint64_t applied;
    uint32_t generation;
    uint32_t reserved;
};
static_assert(sizeof(struct xac_wire_ack) == 24, "format");

struct xac_wire_want {
    uint32_t flags;
    uint32_t path_len;
    uint32_t n_runs;
    uint32_t reserved;
    /* path, runs */
};
static_assert(sizeof(struct xac_wire_want) == 16, "format");

struct xac_wire_run {
    uint64_t offset;
    uint64_t length;
};
static_assert(sizeof(struct xac_wire_run) == 16, "format");

struct xac_wire_from {
    struct xac_wire_line line;
    uint64_t lsn;
    uint32_t flags;
    uint32_t reserved;
};
static_assert(sizeof(struct xac_wire_from) == 80, "format");

struct xac_wire_error {
    int32_t code;
    /* words */
};
static_assert(sizeof(struct xac_wire_error) == 4, "format");

#endif /* XAC_WIRE_FORMAT_H */
