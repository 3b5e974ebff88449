/* SPDX-License-Identifier: MIT */
/*
 * received_format.h -- bytes of xac.received: how far a standby has synced its log.  Little-endian; sizes are bytes.
 *
 * The file has XAC_RECEIVED_BYTES: two slots, at offsets 0 and XAC_RECEIVED_STRIDE; the rest is zero.
 *
 * SLOT, 64 bytes
 *   OFFSET SIZE FIELD        MEANING
 *      0     8  magic        XAC_RECEIVED_MAGIC
 *      8     4  version      XAC_RECEIVED_VERSION
 *     12     4  generation   of the log
 *     16    16  identity     of the environment
 *     32     8  lsn          the log of that generation had been synced here up to this LSN, a multiple of 8
 *     40    16  reserved     zero
 *     56     8  checksum     XXH3-64 of bytes 0 to 55
 *   A slot is VALID if and only if magic, version and identity match, reserved is zero, and the checksum is
 *   right.  Of the valid slots of the master record's generation the one with the larger lsn counts; those of other
 *   generations do not.
 *
 * HISTORY
 *   1  first format
 */
#ifndef XAC_RECEIVED_FORMAT_H
#define XAC_RECEIVED_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define XAC_RECEIVED_MAGIC   UINT64_C(0x3156434552434158) /* "XACRECV1" */
#define XAC_RECEIVED_VERSION 1u
#define XAC_RECEIVED_STRIDE  4096u
#define XAC_RECEIVED_BYTES   (2 * XAC_RECEIVED_STRIDE)

struct xac_received_slot {
    uint64_t magic;       /* 00 */
    uint32_t version;     /* 08 */
    uint32_t generation;  /* 12 */
    uint8_t identity[16]; /* 16 */
    uint64_t lsn;         /* 32 */
    uint8_t reserved[16]; /* 40 */
    uint64_t checksum;    /* 56 */
};
static_assert(sizeof(struct xac_received_slot) == 64, "format");
static_assert(offsetof(struct xac_received_slot, lsn) == 32, "format");
static_assert(offsetof(struct xac_received_slot, checksum) == 56, "format");

#endif /* XAC_RECEIVED_FORMAT_H */
