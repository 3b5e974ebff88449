/* SPDX-License-Identifier: MIT */
/*
 * page_change.c -- records of the change of one page, and applying them; see block.h.
 *
 * XDATA records hold the byte ranges in which two pages differ.
 * Pages are compared in aligned words of 8 bytes.  A range ends where a whole word is
 * equal, so two ranges are at least 8 equal bytes apart, which is more than the 4 bytes
 * that a range costs in the table: a record is never larger than one with a single
 * range over the whole page (xac_page_record_max).
 *
 * XCOPY records name bytes that a page had elsewhere, or another page had.  Entries that move
 * within a page, or to another page when a node is split, are not logged again but copied at
 * redo.  The source is indexed by its aligned words; the ranges that changed are searched at every
 * byte for a word of the index, and a hit is extended in both directions.
 */
#include <config.h>

#include "log/block.h"

#include <stdlib.h>
#include <string.h>

#include "base/annot.h"

#define WORD  sizeof(uint64_t)
#define CHUNK (8 * WORD) /* compared in one go while looking for a difference */

/* A copy is worth its entry from this length on. */
#define COPY_MIN 16u

/* Copies found in one page at the most; what is left is logged as it is. */
#define COPIES_MAX 64u

/* Entries of the index, a power of two. */
#define INDEX_SIZE 2048u

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the log is little-endian, and words are searched from their low byte");

/* ---- Differences ------------------------------------------------------------------- */

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

    xac_assert_slow(i % CHUNK == 0);
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

/* ---- Copies ------------------------------------------------------------------------ */

static uint32_t
hash_word(uint64_t w)
{
    return (uint32_t)(w * UINT64_C(0x9e3779b97f4a7c15) >> 53);
}

static inline uint64_t
word_at(const uint8_t *page, size_t at)
{
    uint64_t w;

    memcpy(&w, page + at, WORD);
    return w;
}

/* What a search works on. */
struct search {
    const uint8_t *source, *to;
    size_t page_size;
    uint32_t n_copies;
    size_t bytes; /* that the copies save                                          */
    struct xac_copy copy[COPIES_MAX];
    uint16_t index[INDEX_SIZE]; /* number of a word of the source that may be equal    */
};

static_assert(INDEX_SIZE == 1u << 11, "hash_word gives 11 bits");

/* index_source -- each aligned word, the first of several equal ones. */
static void
index_source(struct search *s)
{
    xac_assert(s->page_size % WORD == 0);
    xac_assert(s->page_size / WORD < UINT16_MAX);
    memset(s->index, 0, sizeof s->index);
    for (size_t i = s->page_size / WORD; i-- > 0;)
        s->index[hash_word(word_at(s->source, i * WORD))] = (uint16_t)i;
}

/* indexed -- offset of the word of the source that may be equal. */
static inline size_t
indexed(const struct search *s, uint64_t w)
{
    return s->index[hash_word(w)] * WORD;
}

/*
 * next_indexed -- offset of the first word of the new page in [at, end) that the source has, too;
 * or the first at which no word is left.
 *
 * Zeros are not worth it, for they are mostly gaps.  There is one branch that is rarely taken:
 * bytes that are new, and so mostly not in the index, cost little.
 */
static inline size_t
next_indexed(const struct search *s, size_t at, size_t end)
{
    xac_assert(end <= s->page_size);
    for (; at + WORD <= end; at++) {
        uint64_t w = word_at(s->to, at);

        if (w == word_at(s->source, indexed(s, w)) && w != 0)
            break;
    }
    return at;
}

/*
 * match_at -- the longest copy around a word at `at` of the new page, which the source has.
 *
 * in   low, end  the copy stays in [low, end) of the new page
 * ret  its length, 0 if there is none that is worth it.
 */
static size_t
match_at(const struct search *s, size_t at, size_t low, size_t end, struct xac_copy *out)
{
    size_t from = indexed(s, word_at(s->to, at)), back = 0, n = WORD;

    xac_assert_slow(at >= low);
    xac_assert_slow(at + WORD <= end);
    xac_assert_slow(memcmp(s->to + at, s->source + from, WORD) == 0);
    while (at + n < end && from + n < s->page_size
           && s->to[at + n] == s->source[from + n])
        n++;
    while (at - back > low && from - back > 0
           && s->to[at - back - 1] == s->source[from - back - 1])
        back++;
    if (n + back < COPY_MIN)
        return 0;
    *out = (struct xac_copy){.to = (uint16_t)(at - back),
                             .from = (uint16_t)(from - back),
                             .length_less_1 = (uint16_t)(n + back - 1)};
    return n + back;
}

/* search_range -- find copies in [low, end) of the new page. */
static void
search_range(struct search *s, size_t low, size_t end)
{
    size_t at = next_indexed(s, low, end);

    xac_assert(low < end);
    xac_assert(end <= s->page_size);
    for (; at + WORD <= end && s->n_copies < COPIES_MAX; at = next_indexed(s, at, end)) {
        size_t n = match_at(s, at, low, end, &s->copy[s->n_copies]);

        if (n == 0) {
            at++;
            continue;
        }
        low = at = s->copy[s->n_copies].to + n;
        s->bytes += n - sizeof s->copy[0];
        s->n_copies++;
    }
    xac_assert(s->n_copies <= COPIES_MAX);
}

/* put_copies -- the record of what a search has found; ret false without room. */
static bool
put_copies(struct xac_builder *b, const struct xac_page_change *c, const struct search *s)
{
    size_t size = sizeof(struct xac_xcopy) + s->n_copies * sizeof s->copy[0];
    size_t padded = (size + 7) & ~(size_t)7;
    struct xac_xcopy *rec = (struct xac_xcopy *)(void *)(b->buf + b->used);

    xac_assert(s->n_copies > 0);
    xac_assert(s->n_copies <= COPIES_MAX);
    xac_assert(b->used % 8 == 0);
    if (padded > b->size - b->used)
        return false;
    memset((uint8_t *)rec + padded - 8, 0, 8);
    *rec = (struct xac_xcopy){
        .r = {.type = XAC_XCOPY,
              .flags = c->from == NULL ? XAC_XDATA_FULL : 0,
              .length = (uint32_t)padded},
        .file = c->file,
        .n_copies = s->n_copies,
        .page = c->page,
        .source_page = c->source_page,
        .source_file = c->source_file,
    };
    memcpy(rec + 1, s->copy, s->n_copies * sizeof s->copy[0]);
    b->used += padded;
    b->records++;
    xac_assert(b->used <= b->size);
    return true;
}

/*
 * put_with_copies -- XCOPY, and XDATA for the rest; ret false without room or if a page
 * cannot be allocated for it.
 */
static bool
put_with_copies(struct xac_builder *b, const struct xac_page_change *c,
                const struct search *s, size_t page_size)
{
    const struct xac_xcopy *rec = (const struct xac_xcopy *)(void *)(b->buf + b->used);
    uint8_t *half = (uint8_t *)malloc(page_size); /* the page after the XCOPY */
    bool is_put = half != NULL && put_copies(b, c, s);

    xac_assert(c->source != NULL);
    if (is_put) {
        if (c->from != NULL)
            memcpy(half, c->from, page_size);
        is_put = xac_apply_copy(rec, c->source, half, page_size)
                 && xac_put_page(b, c->file, c->page, half, c->to, page_size);
    }
    free(half);
    return is_put;
}

bool
xac_put_change(struct xac_builder *b, const struct xac_page_change *c, size_t page_size)
{
    const struct xac_xdata *rec = (const struct xac_xdata *)(void *)(b->buf + b->used);
    const struct xac_range *range = (const struct xac_range *)(rec + 1);
    struct xac_builder before = *b, plain;
    struct search s; /* much of it stays as it is */

    xac_assert(!c->is_base || (c->from != NULL && c->source == NULL));
    xac_assert(c->file != 0);
    xac_assert(c->source == NULL || c->source_file != 0);
    if (!xac_put_page(b, c->file, c->page, c->from, c->to, page_size))
        return false;
    if (c->is_base)
        ((struct xac_xdata *)(void *)(before.buf + before.used))->r.flags =
            XAC_XDATA_BASE;
    if (c->source == NULL || rec->r.length < XAC_COPY_WORTH)
        return true;
    s.source = c->source;
    s.to = c->to;
    s.page_size = page_size;
    s.n_copies = 0;
    s.bytes = 0;
    index_source(&s);
    for (uint32_t i = 0; i < rec->n_ranges; i++)
        search_range(&s, range[i].offset, range[i].offset + range[i].length_less_1 + 1u);
    if (s.bytes < 2 * sizeof(struct xac_xcopy))
        return true;
    /* The plain record gives way; it fits again if there turns out to be no room. */
    plain = *b;
    *b = before;
    if (put_with_copies(b, c, &s, page_size) && b->used < plain.used)
        return true;
    *b = before;
    return xac_put_page(b, c->file, c->page, c->from, c->to, page_size);
}

bool
xac_apply_copy(const struct xac_xcopy *rec, const uint8_t *source, uint8_t *page,
               size_t page_size)
{
    const struct xac_copy *copy = (const struct xac_copy *)(rec + 1);

    xac_assert(source != NULL);
    xac_assert(page_size != 0);
    if ((rec->r.flags & XAC_XDATA_FULL) != 0)
        memset(page, 0, page_size);
    for (uint32_t i = 0; i < rec->n_copies; i++) {
        size_t n = (size_t)copy[i].length_less_1 + 1;

        if (copy[i].to + n > page_size || copy[i].from + n > page_size)
            return false;
        memcpy(page + copy[i].to, source + copy[i].from, n);
    }
    return true;
}
