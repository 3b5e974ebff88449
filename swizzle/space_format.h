/* SPDX-License-Identifier: MIT */
/*
 * space_format.h -- bytes of a space on disk.
 *
 * FILE "pages": n_pages pages of page_bytes.  Page 0 is the header, page 1 + t the root of tree t,
 * for ever; the others are nodes, free, or unused.  A node is as in trees/btree_layout.h, except
 * that the field `zero` is the number of its tree.  A free page has level BTREE_LEVEL_FREE,
 * and the next free one in `link`.  References are page numbers, below 2^31: bit 31 is never set
 * on disk.
 *
 * HEADER
 *   OFFSET  SIZE  FIELD       MEANING
 *      0      8   magic       SWZ_MAGIC
 *      8      4   version     SWZ_VERSION
 *     12      4   page_bytes
 *     16      4   n_pages
 *     20      4   high_water  first page never used
 *     24      4   free_head   first free page; 0: none
 *     28      4   reserved    zero
 *     32    128   trees       SWZ_TREES times { key_size, value_size }; key_size 0: no tree
 *
 * FILE "log": changes of the pages since the epoch began, when "pages" had all earlier ones.
 *
 *      0      8   magic       SWZ_LOG_MAGIC
 *      8      8   epoch       1, 2, ...: counts checkpoints
 *   then records:
 *      0      4   n_bytes     of the record, a multiple of 8, this header included
 *      4      4   n_used      of them, without padding
 *      8      8   sum         XXH3-64 of the bytes from offset 16 to n_used, plus epoch, plus
 *                             the record's offset in the file
 *     16          changes     { page 4, offset 2, length 2, bytes }, one after the other
 *
 * A record is valid if and only if its sum is right; the log ends before the first that is not.
 * Each record is one operation.  Playing all records in order over any mixture of old and
 * newer bytes of pages gives the newest: every byte changed in the epoch is in it.
 *
 * HISTORY   1  first format
 */
#ifndef SWIZZLE_SPACE_FORMAT_H
#define SWIZZLE_SPACE_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "space.h"

#define SWZ_MAGIC      UINT64_C(0x31307a7773636178) /* "xacswz01" */
#define SWZ_VERSION    1u
#define SWZ_LOG_MAGIC  UINT64_C(0x31306c7773636178) /* "xacswl01" */
#define SWZ_FIRST_PAGE (1u + SWZ_TREES)             /* never a root */

struct swz_tree_format {
    uint32_t key_size;
    uint32_t value_size;
};

struct swz_header {
    uint64_t magic;      /* 00-07 */
    uint32_t version;    /* 08-11 */
    uint32_t page_bytes; /* 12-15 */
    uint32_t n_pages;    /* 16-19 */
    uint32_t high_water; /* 20-23 */
    uint32_t free_head;  /* 24-27 */
    uint32_t reserved;   /* 28-31 */
    struct swz_tree_format trees[SWZ_TREES];
};

struct swz_log_header {
    uint64_t magic;
    uint64_t epoch;
};

struct swz_record {
    uint32_t n_bytes;
    uint32_t n_used;
    uint64_t sum;
};

struct swz_piece {
    uint32_t page;
    uint16_t offset;
    uint16_t length;
};

static_assert(sizeof(struct swz_tree_format) == 8, "format");
static_assert(sizeof(struct swz_header) == 160, "format");
static_assert(offsetof(struct swz_header, trees) == 32, "format");
static_assert(sizeof(struct swz_log_header) == 16, "format");
static_assert(sizeof(struct swz_record) == 16, "format");
static_assert(sizeof(struct swz_piece) == 8, "format");

#endif /* SWIZZLE_SPACE_FORMAT_H */
