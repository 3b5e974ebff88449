/* SPDX-License-Identifier: MIT */
/*
 * xactree_format.h -- the first page of a segment of libxactree.
 *
 * Integers are in the machine's byte order.
 *
 *  offset  size  field       meaning
 *      0      8  magic       "xactree1"; reversed on a machine of other byte order
 *      8      4  version     1
 *     12      4  key_max     bytes of the longest key
 *     16      4  piece_size  bytes of a value in one entry
 *     20      4  block_size  bytes of a block
 *     24      8  length      of the tree, bytes, this page included
 *     32     24  reserved    zero
 *     56      8  sum         FNV-1a, 64 bits, of the bytes before
 *
 * The rest of the page is zero.  Behind it stands a B+-tree (btree_layout.h) with entries as
 * vtree.h describes them.  The page is valid if and only if magic, version and sum are right, and
 * key_max, piece_size and block_size are those of the B+-tree.
 *
 * HISTORY   1  first format.
 */
#ifndef TREES_XACTREE_FORMAT_H
#define TREES_XACTREE_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define XACTREE_MAGIC   UINT64_C(0x3165657274636178) /* "xactree1" */
#define XACTREE_VERSION 1u
#define XACTREE_PAGE    4096u

struct xactree_header {
    uint64_t magic;      /* 00-07 */
    uint32_t version;    /* 08-11 */
    uint32_t key_max;    /* 12-15 */
    uint32_t piece_size; /* 16-19 */
    uint32_t block_size; /* 20-23 */
    uint64_t length;     /* 24-31 */
    uint64_t reserved[3];
    uint64_t sum; /* 56-63 */
};

static_assert(sizeof(struct xactree_header) == 64, "header is 64 bytes");
static_assert(offsetof(struct xactree_header, sum) == 56, "the sum is its end");

#endif /* TREES_XACTREE_FORMAT_H */
