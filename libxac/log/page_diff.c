/* SPDX-License-Identifier: MIT */
/*
 * page_diff.c -- XDATA records: the byte ranges in which two pages differ, and applying
 * them; see block.h.
 *
 * Pages are compared in aligned words of 8 bytes.  A range ends where a whole word is
 * equal, so two ranges are at least 8 equal bytes apart, which is more than the 4 bytes
 * that a range costs in the table: a record is never larger than one with a single
 * range over the whole page (xac_page_record_max).
 */
#include <config.h>

#include "log/block.h"

#include <string.h>

#include "base/annot.h"

#define WORD  sizeof(uint64_t)
#define CHUNK (8 * WORD) /* compared in one go while looking for a difference */

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the log is little-endian, and words are searched from their low byte");

/* word_diff -- the word at i of `to`, without the bits that it shares with `from`. */
static inline uint64_t
word_diff(const uint8_t *from, const uint8_t *to, size_t i)
{
    uint64_t f = 0;
    uint64_t t;

    memcpy(&t, to + i, WORD);
    if (from != NULL)
        memcpy(&f, from + i, WORD);
    return f ^ t;
}

static inline bool
chunk_equal(const uint8_t *from, const uint8_t *to, size_t i)
{
    uint64_t d = 0;

    for (size_t k = 0; k < CHUNK; k += WORD)
        d |= word_diff(from, to, i + k);
    return d == 0;
}

/* next_different -- offset of the first word from i on that differs, n if none. */
static inline size_t
next_different(const uint8_t *from, const uint8_t *to, size_t i, size_t n)
{
    for (; i < n && i % CHUNK != 0; i += WORD) {
        if (word_diff(from, to, i) != 0)
            return i;
    }
    while (i < n && chunk_equal(from, to, i))
        i += CHUNK;
    while (i < n && word_diff(from, to, i) == 0)
        i += WORD;
    return i;
}

/*
 * find_ranges -- fill the table of ranges of a record.
 *
 * in   room  bytes that the record may take, a multiple of 8
 * out  rec   n_ranges and the table
 * ret  bytes that the record takes, padding excluded; 0 if it does not fit.
 *
 * Always inlined, so that the comparison with zeros (from == NULL) has no branches.
 */
static inline __attribute__((always_inline)) size_t
find_ranges(struct xac_xdata *rec, size_t room, const uint8_t *from, const uint8_t *to,
            size_t n)
{
    struct xac_range *range = (struct xac_range *)(rec + 1);
    size_t size = sizeof *rec;
    size_t i = next_different(from, to, 0, n);

    xac_assert(n % WORD == 0);
    xac_assert(room % 8 == 0);
    rec->n_ranges = 0;
    while (i < n) {
        uint64_t d = word_diff(from, to, i);
        uint64_t last = d;
        size_t start = i + (size_t)__builtin_ctzll(d) / 8;
        size_t end;

        for (i += WORD; i < n && (d = word_diff(from, to, i)) != 0; i += WORD)
            last = d;
        end = i - (size_t)__builtin_clzll(last) / 8;
        size += sizeof *range + (end - start);
        if (size > room)
            return 0;
        range->offset = (uint16_t)start;
        range->length_less_1 = (uint16_t)(end - start - 1);
        range++;
        rec->n_ranges++;
        i = next_different(from, to, i, n);
    }
    xac_assert(size <= room || size == sizeof *rec);
    return size;
}

size_t
xac_page_record_max(size_t page_size)
{
    xac_assert(page_size <= 65536);
    return (sizeof(struct xac_xdata) + sizeof(struct xac_range) + page_size + 7)
           & ~(size_t)7;
}

bool
xac_put_page(struct xac_builder *b, uint32_t file, uint64_t page, const uint8_t *from,
             const uint8_t *to, size_t page_size)
{
    struct xac_xdata *rec = (struct xac_xdata *)(b->buf + b->used);
    struct xac_range *range = (struct xac_range *)(rec + 1);
    size_t room = (b->size - b->used) & ~(size_t)7;
    size_t size;
    uint8_t *at;

    xac_assert(page_size % CHUNK == 0 && page_size <= 65536);
    xac_assert(file != 0);
    xac_assert(to != NULL);
    xac_assert(b->used % 8 == 0);
    xac_assert(b->used <= b->size);
    if (room < sizeof *rec)
        return false;
    size = from == NULL ? find_ranges(rec, room, NULL, to, page_size)
                        : find_ranges(rec, room, from, to, page_size);
    if (size == 0)
        return false;
    at = (uint8_t *)(range + rec->n_ranges);
    for (uint32_t i = 0; i < rec->n_ranges; i++) {
        size_t len = (size_t)range[i].length_less_1 + 1;

        memcpy(at, to + range[i].offset, len);
        at += len;
    }
    for (; size % 8 != 0; size++)
        *at++ = 0;
    xac_assert(size <= room);
    xac_assert(size % 8 == 0);
    xac_assert(at == (const uint8_t *)rec + size);
    rec->r = (struct xac_record){.type = XAC_XDATA,
                                 .flags = from == NULL ? XAC_XDATA_FULL : 0,
                                 .length = (uint32_t)size};
    rec->file = file;
    rec->page = page;
    b->used += size;
    b->records++;
    return true;
}

bool
xac_apply_page(const struct xac_xdata *rec, uint8_t *page, size_t page_size)
{
    const struct xac_range *range = (const struct xac_range *)(rec + 1);
    size_t left = rec->r.length;
    const uint8_t *at;

    xac_assert(page_size % WORD == 0);
    if (left < sizeof *rec || rec->n_ranges > (left - sizeof *rec) / sizeof *range)
        return false;
    at = (const uint8_t *)(range + rec->n_ranges);
    left -= sizeof *rec + rec->n_ranges * sizeof *range;
    if ((rec->r.flags & XAC_XDATA_FULL) != 0)
        memset(page, 0, page_size);
    for (uint32_t i = 0; i < rec->n_ranges; i++) {
        size_t len = (size_t)range[i].length_less_1 + 1;

        if (len > left || range[i].offset + len > page_size)
            return false;
        memcpy(page + range[i].offset, at, len);
        at += len;
        left -= len;
    }
    return true;
}
