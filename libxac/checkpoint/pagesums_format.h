/* SPDX-License-Identifier: MIT */
/*
 * pagesums_format.h -- bytes on disk: xac-sums.%016llx, the checksums of the pages of one
 * mapped file; the name has its inode, hexadecimal.  Little-endian; sizes are bytes.
 *
 * HEADER, at offset 0
 *   OFFSET SIZE FIELD          MEANING
 *      0     8  magic          XAC_PAGESUMS_MAGIC
 *      8     4  version        XAC_PAGESUMS_VERSION
 *     12     4  page_size      of the environment
 *     16    16  identity       of the environment
 *     32     8  device         st_dev and
 *     40     8  inode          st_ino of the mapped file
 *     48     4  path_len       bytes of path, without NUL
 *     52     4  reserved       zero
 *     56     8  birth_ns       time of birth of the mapped file, 0 unknown
 *     64  8120  path           absolute, or relative to the environment directory; then zeros
 *   8184     8  checksum       XXH3-64 of bytes 0..8183
 *   It is VALID if and only if everything matches and the checksum is right.
 *
 * ENTRY of page p, at offset 8192 + 32 * p; all zeros or beyond the end: nothing is known
 *      0     8  page           p
 *      8     8  checksum       XXH3-64 of the page in the mapped file
 *     16     8  lsn            of the checkpoint's begin, or the end of the log that a
 *                              recovery has redone; not 0
 *     24     8  check          XXH3-64 of bytes 0..23
 *   It is VALID if and only if page and check are right.  One that is not says nothing: a
 *   power cut can spoil the sector in which a neighbour was being written.
 *
 * An entry says something of its page only if recovery, starting at the master record's
 * redo position, would not write that page (pagesums.h).
 *
 * HISTORY
 *   1  first format
 *   2  birth_ns, which was reserved (zero) before; the first format is read as this one
 */
#ifndef XAC_PAGESUMS_FORMAT_H
#define XAC_PAGESUMS_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define XAC_PAGESUMS_PREFIX   "xac-sums."
#define XAC_PAGESUMS_NEW      "xac-sums-new"
#define XAC_PAGESUMS_MAGIC    "XACPSUM1"
#define XAC_PAGESUMS_VERSION  2u
#define XAC_PAGESUMS_PATH_MAX 8120u

struct xac_pagesums_head {
    char magic[8];
    uint32_t version;
    uint32_t page_size;
    uint8_t identity[16];
    uint64_t device;
    uint64_t inode;
    uint32_t path_len;
    uint32_t reserved;
    uint64_t birth_ns;
    char path[XAC_PAGESUMS_PATH_MAX];
    uint64_t checksum;
};
static_assert(sizeof(struct xac_pagesums_head) == 8192, "format");
static_assert(offsetof(struct xac_pagesums_head, path) == 64, "format");

struct xac_pagesum {
    uint64_t page;
    uint64_t checksum;
    uint64_t lsn;
    uint64_t check;
};
static_assert(sizeof(struct xac_pagesum) == 32, "format");

#endif /* XAC_PAGESUMS_FORMAT_H */
