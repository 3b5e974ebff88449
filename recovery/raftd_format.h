/* SPDX-License-Identifier: MIT */
/*
 * raftd_format.h -- bytes that xraftd stores in Raft's log and snapshots.  Little-endian; sizes are bytes.
 *
 * ENTRY: a HEAD, 64 bytes, a body, and zeros up to a multiple of 8
 *   OFFSET SIZE FIELD        MEANING
 *      0     4  magic        XAC_RAFTD_MAGIC
 *      4     2  version      XAC_RAFTD_VERSION
 *      6     2  kind         enum raftd_kind
 *      8     4  generation   of the log; of OPEN: the one that begins
 *     12     4  length       of the body
 *     16     8  lsn          of the block that comes first, or next; of OPEN: the cut, where the generation before
 *                            ends
 *     24    16  nonce        of the OPEN of this generation
 *     40     8  body_check   XXH3-64 of the body
 *     48     8  reserved     zero
 *     56     8  head_check   XXH3-64 of bytes 0..55
 *
 * BATCH: whole blocks, as they lie in the log, one behind the other
 * DATA: a piece of the data file that the next block names
 *      0     8  serial
 *      8     8  offset       of the piece; 0: the file begins
 *     16        bytes
 * NOTE: a piece of xac.addresses, which is not in the log
 *      0     8  length       of all pieces together
 *      8     8  offset       of this one; 0: a new one begins
 *     16        bytes
 * OPEN, 32 bytes: a node becomes the writer of a generation
 *      0     8  start        LSN at which it begins
 *      8     8  segment_bytes
 *     16     4  node
 *     20    12  reserved     zero
 * NODE, 16 bytes: a number is used, and never again
 *      0     4  node
 *      4    12  reserved     zero
 *
 * An entry is VALID if and only if magic, version, kind and both checksums are right, what is reserved is zero, the
 * length is at most XAC_RAFTD_BODY_MAX and one that an entry of its kind can have, the blocks of a BATCH fill it, stand
 * one behind the other and are of its generation, and an OPEN begins at its cut rounded up to 4096.
 *
 * DESCRIPTOR, 128 bytes: a snapshot of Raft; it says up to where the log of the environment stands for Raft's
 *      0     4  magic        XAC_RAFTD_SNAPSHOT_MAGIC
 *      4     2  version      XAC_RAFTD_VERSION
 *      6     2  reserved     zero
 *      8    16  group        id
 *     24     4  generation   that is accepted
 *     28     4  node         its writer; 0: it is older than the group
 *     32     8  start        LSN at which it begins
 *     40     8  end          up to where its log is accepted
 *     48     8  cut          where the generation before ends
 *     56     8  segment_bytes
 *     64    16  nonce        of its OPEN
 *     80     8  serial       of the data file whose pieces came last
 *     88     8  data_end     bytes of it that have come; 0: none
 *     96     4  last_node    the highest number that a NODE has had; 0: there was none
 *    100    20  reserved     zero
 *    120     8  check        XXH3-64 of bytes 0..119
 *
 * HISTORY
 *   1  first format
 */
#ifndef XAC_RAFTD_FORMAT_H
#define XAC_RAFTD_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define XAC_RAFTD_MAGIC          UINT32_C(0x54465258) /* "XRFT" */
#define XAC_RAFTD_SNAPSHOT_MAGIC UINT32_C(0x53465258) /* "XRFS" */
#define XAC_RAFTD_VERSION        1u

#define XAC_RAFTD_NONCE_BYTES 16u
#define XAC_RAFTD_GROUP_BYTES 16u

/* A block of the log is not longer than that. */
#define XAC_RAFTD_BODY_MAX (UINT32_C(1) << 30)

enum raftd_kind {
    RAFTD_NONE = 0,
    RAFTD_BATCH = 1,
    RAFTD_DATA = 2,
    RAFTD_NOTE = 3,
    RAFTD_OPEN = 4,
    RAFTD_NODE = 5,
    RAFTD_KINDS
};

struct xac_raftd_head {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
    uint32_t generation;
    uint32_t length;
    uint64_t lsn;
    uint8_t nonce[XAC_RAFTD_NONCE_BYTES];
    uint64_t body_check;
    uint64_t reserved;
    uint64_t head_check;
};
static_assert(sizeof(struct xac_raftd_head) == 64, "format");
static_assert(offsetof(struct xac_raftd_head, head_check) == 56, "format");

/* Of DATA and NOTE; the two have the same form. */
struct xac_raftd_piece {
    uint64_t what; /* serial, or length                                              */
    uint64_t offset;
    /* bytes */
};
static_assert(sizeof(struct xac_raftd_piece) == 16, "format");

struct xac_raftd_open {
    uint64_t start;
    uint64_t segment_bytes;
    uint32_t node;
    uint8_t reserved[12];
};
static_assert(sizeof(struct xac_raftd_open) == 32, "format");

struct xac_raftd_node {
    uint32_t node;
    uint8_t reserved[12];
};
static_assert(sizeof(struct xac_raftd_node) == 16, "format");

struct xac_raftd_descriptor {
    uint32_t magic;
    uint16_t version;
    uint16_t reserved;
    uint8_t group[XAC_RAFTD_GROUP_BYTES];
    uint32_t generation;
    uint32_t node;
    uint64_t start;
    uint64_t end;
    uint64_t cut;
    uint64_t segment_bytes;
    uint8_t nonce[XAC_RAFTD_NONCE_BYTES];
    uint64_t serial;
    uint64_t data_end;
    uint32_t last_node;
    uint8_t reserved2[20];
    uint64_t check;
};
static_assert(sizeof(struct xac_raftd_descriptor) == 128, "format");
static_assert(offsetof(struct xac_raftd_descriptor, check) == 120, "format");

#endif /* XAC_RAFTD_FORMAT_H */
