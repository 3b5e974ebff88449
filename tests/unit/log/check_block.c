/* SPDX-License-Identifier: MIT */
/*
 * check_block.c -- unit tests of libxac/log/block.c, block_check.c and page_change.c.
 *
 * GOAL    what is built is valid and comes back; what is not exactly that is refused.
 * METHOD  random pages and edits (seed XAC_SEED, printed); a block with every kind of
 *         record, of which every byte is flipped, and whose checksums are made right
 *         again after each single field has been spoilt, so that the check of the field
 *         itself is what is tested.
 */
#include <config.h>

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/digest.h"
#include "log/block.h"

#define PAGE_MAX 65536u

static const struct xac_log_id id = {UINT64_C(0x0123456789abcdef), 7};

#define LSN UINT64_C(0x12340)

static uint64_t seed;
static uint64_t rng;

/* rnd -- SplitMix64, below n. */
static uint64_t
rnd(uint64_t n)
{
    uint64_t z = (rng += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

static void
setup(void)
{
    rng = seed;
}

static void
fill_random(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)rnd(256);
}

/* ---- differences ------------------------------------------------------------------ */

static uint8_t page_a[PAGE_MAX];
static uint8_t page_b[PAGE_MAX];
static uint8_t page_c[PAGE_MAX];
static uint8_t page_d[PAGE_MAX];
static uint64_t diff_buf[(PAGE_MAX + 256) / 8];

static const struct xac_xdata *
first_data(void)
{
    return (const struct xac_xdata *)((struct xac_block *)(void *)diff_buf + 1);
}

/*
 * expect_change -- put a change, see that its records lead to page_b, and that they take
 * no more than one without copies.
 *
 * in   from    page_a or NULL
 * in   source  page_a or page_d
 * ret  bytes of the records.
 */
static size_t
expect_change(const uint8_t *from, const uint8_t *source, size_t n)
{
    const struct xac_page_change c = {.file = 3,
                                      .page = 44,
                                      .source_file = 3,
                                      .source_page = source == page_a ? 44 : 45,
                                      .from = from,
                                      .to = page_b,
                                      .source = source};
    size_t size = sizeof(struct xac_block) + xac_page_record_max(n);
    size_t at = sizeof(struct xac_block);
    struct xac_builder b;

    memset(diff_buf, 0xa5, sizeof diff_buf);
    xac_builder_init(&b, diff_buf, size);
    ck_assert(xac_put_change(&b, &c, n));
    ck_assert_uint_le(b.used, size);
    if (from != NULL)
        memcpy(page_c, from, n);
    else
        memset(page_c, 0xee, n);
    while (at < b.used) {
        const struct xac_record *rec =
            (const struct xac_record *)(const void *)((uint8_t *)diff_buf + at);

        ck_assert(xac_record_ok(rec, b.used - at));
        if (rec->type == XAC_XCOPY)
            ck_assert(xac_apply_copy((const struct xac_xcopy *)rec, source, page_c, n));
        else
            ck_assert(xac_apply_page((const struct xac_xdata *)rec, page_c, n));
        at += rec->length;
    }
    ck_assert_int_eq(memcmp(page_c, page_b, n), 0);
    return b.used - sizeof(struct xac_block);
}

/*
 * expect_diff -- put the difference of page_b against `from` with no more room than is
 * promised to do, and see that it leads from `from` to page_b.
 *
 * ret  bytes of the record.
 */
static size_t
expect_diff(const uint8_t *from, size_t n)
{
    size_t size = sizeof(struct xac_block) + xac_page_record_max(n);
    struct xac_builder b;

    ck_assert_uint_le(size + 8, sizeof diff_buf);
    memset(diff_buf, 0xa5, sizeof diff_buf);
    xac_builder_init(&b, diff_buf, size);
    ck_assert(xac_put_page(&b, 3, 44, from, page_b, n));
    ck_assert_uint_le(b.used, size);
    ck_assert_uint_eq(b.used % 8, 0);
    ck_assert_uint_eq(diff_buf[size / 8], UINT64_C(0xa5a5a5a5a5a5a5a5));
    ck_assert(xac_record_ok(&first_data()->r, b.used - sizeof(struct xac_block)));
    ck_assert_uint_eq(first_data()->r.length, b.used - sizeof(struct xac_block));
    ck_assert_uint_eq(first_data()->r.flags, from == NULL ? XAC_XDATA_FULL : 0);
    ck_assert_uint_eq(first_data()->page, 44);
    if (from != NULL)
        memcpy(page_c, from, n);
    else
        memset(page_c, 0xee, n);
    ck_assert(xac_apply_page(first_data(), page_c, n));
    ck_assert_int_eq(memcmp(page_c, page_b, n), 0);
    return first_data()->r.length;
}

/* both -- the difference between the pages, and page_b as a full image. */
static void
expect_both(size_t n)
{
    (void)expect_diff(page_a, n);
    (void)expect_diff(NULL, n);
}

START_TEST(put_page_then_apply_gives_the_page)
{
    for (int round = 0; round < 6000; round++) {
        size_t n = (size_t)512 << rnd(8);
        uint64_t edits = rnd(20);

        if (rnd(4) == 0)
            memset(page_a, 0, n);
        else
            fill_random(page_a, rnd(50) == 0 ? n : 512);
        memcpy(page_b, page_a, n);
        for (uint64_t e = 0; e < edits; e++) {
            size_t at = rnd(n);
            size_t len = 1 + rnd(rnd(3) == 0 ? n - at : 24);

            for (size_t i = at; i < at + len && i < n; i++)
                page_b[i] = (uint8_t)rnd(rnd(3) == 0 ? 1 : 256);
        }
        expect_both(n);
    }
}
END_TEST

/* Ranges at the fewest equal bytes apart, which makes the table as long as can be. */
START_TEST(put_change_then_apply_gives_the_page)
{
    for (int round = 0; round < 3000; round++) {
        size_t n = (size_t)512 << rnd(4);
        const uint8_t *source = rnd(2) == 0 ? page_a : page_d;

        for (size_t i = 0; i < n; i++) {
            page_a[i] = rnd(3) == 0 ? 0 : (uint8_t)rnd(256);
            page_d[i] = (uint8_t)rnd(round % 7 == 0 ? 2 : 256);
        }
        memcpy(page_b, page_a, n);
        for (uint64_t moves = rnd(6); moves > 0; moves--) {
            size_t len = (size_t)rnd(n / 2);

            memcpy(page_b + rnd(n - len), source + rnd(n - len), len);
            page_b[rnd(n)] = (uint8_t)rnd(256);
        }
        ck_assert_uint_le(expect_change(page_a, source, n), expect_diff(page_a, n));
        ck_assert_uint_le(expect_change(NULL, source, n), expect_diff(NULL, n));
    }
}
END_TEST

/* Entries that move, in the page or to another one, are hardly logged at all. */
START_TEST(put_change_copies_what_moves)
{
    for (size_t i = 0; i < 4096; i++)
        page_a[i] = (uint8_t)rnd(256);
    memcpy(page_b, page_a, 4096);
    memmove(page_b + 1003, page_a + 1000, 2000);
    memset(page_b + 1000, 7, 3);
    ck_assert_uint_gt(expect_diff(page_a, 4096), 2000);
    ck_assert_uint_le(expect_change(page_a, page_a, 4096), 120);

    memcpy(page_d, page_a, 4096);
    memset(page_b, 0, 4096);
    for (size_t i = 0; i < 4; i++)
        memcpy(page_b + 80 + 512 * i, page_d + 80 + 512 * ((i * 3 + 1) % 7), 512);
    page_b[2] = 9;
    ck_assert_uint_gt(expect_diff(NULL, 4096), 2048);
    ck_assert_uint_le(expect_change(NULL, page_d, 4096), 120);
}
END_TEST

START_TEST(put_page_never_outgrows_its_maximum)
{
    for (size_t n = 512; n <= PAGE_MAX; n *= 2) {
        for (size_t period = 1; period <= 40; period++) {
            for (size_t width = 1; width <= period; width++) {
                memset(page_a, 0, n);
                for (size_t i = 0; i < n; i++)
                    page_b[i] = i % period < width;
                expect_both(n);
            }
            if (n > 4096)
                period += 6;
        }
    }
}
END_TEST

START_TEST(put_page_of_equal_pages_has_no_ranges)
{
    for (size_t n = 512; n <= PAGE_MAX; n *= 2) {
        memset(page_b, 0, n);
        ck_assert_uint_eq(expect_diff(NULL, n), sizeof(struct xac_xdata));
        ck_assert_uint_eq(first_data()->n_ranges, 0);
        fill_random(page_a, n);
        memcpy(page_b, page_a, n);
        ck_assert_uint_eq(expect_diff(page_a, n), sizeof(struct xac_xdata));
    }
}
END_TEST

START_TEST(put_page_of_different_pages_has_one_range)
{
    const struct xac_range *range = (const struct xac_range *)(first_data() + 1);

    for (size_t n = 512; n <= PAGE_MAX; n *= 2) {
        memset(page_a, 0x55, n);
        memset(page_b, 0xaa, n);
        ck_assert_uint_eq(expect_diff(page_a, n), xac_page_record_max(n));
        ck_assert_uint_eq(first_data()->n_ranges, 1);
        ck_assert_uint_eq(range->offset, 0);
        ck_assert_uint_eq(range->length_less_1, n - 1);
        ck_assert_uint_eq(expect_diff(NULL, n), xac_page_record_max(n));
    }
}
END_TEST

START_TEST(put_page_logs_single_bytes)
{
    const struct xac_range *range = (const struct xac_range *)(first_data() + 1);

    for (size_t n = 512; n <= PAGE_MAX; n *= 2) {
        fill_random(page_a, n);
        memcpy(page_b, page_a, n);
        for (size_t at = 0; at < n; at = at < 80 || at >= n - 80 ? at + 1 : n - 80) {
            page_b[at] ^= 0x80;
            ck_assert_uint_eq(expect_diff(page_a, n), sizeof(struct xac_xdata) + 8);
            ck_assert_uint_eq(first_data()->n_ranges, 1);
            ck_assert_uint_eq(range->offset, at);
            ck_assert_uint_eq(range->length_less_1, 0);
            page_b[at] = page_a[at];
        }
    }
}
END_TEST

/* A byte changed at each of two places far enough apart costs two short ranges. */
START_TEST(put_page_leaves_out_what_is_equal)
{
    memset(page_a, 1, 4096);
    for (size_t gap = 1; gap < 64; gap++) {
        memcpy(page_b, page_a, 4096);
        page_b[1000] = 2;
        page_b[1000 + gap] = 2;
        (void)expect_diff(page_a, 4096);
        if (gap >= 16)
            ck_assert_uint_eq(first_data()->n_ranges, 2);
        else
            ck_assert_uint_le(first_data()->r.length, sizeof(struct xac_xdata) + 24);
    }
}
END_TEST

START_TEST(put_page_without_room_puts_nothing)
{
    size_t full;

    memset(page_a, 0, 4096);
    fill_random(page_b, 4096);
    memset(page_b + 100, 0, 2000);
    full = expect_diff(page_a, 4096);
    for (size_t room = 0; room < full + 8; room++) {
        size_t size = sizeof(struct xac_block) + room;
        struct xac_builder b;
        bool fits;

        memset(diff_buf, 0xa5, sizeof diff_buf);
        xac_builder_init(&b, diff_buf, size);
        fits = xac_put_page(&b, 3, 44, page_a, page_b, 4096);
        ck_assert_int_eq(fits, room >= full);
        ck_assert_uint_eq(b.used, sizeof(struct xac_block) + (fits ? full : 0));
        ck_assert_uint_eq(b.records, fits ? 1 : 0);
        for (size_t i = size; i < size + 16; i++)
            ck_assert_uint_eq(((uint8_t *)diff_buf)[i], 0xa5);
    }
}
END_TEST

START_TEST(apply_page_refuses_what_leaves_page_or_record)
{
    struct {
        struct xac_xdata x;
        struct xac_range range[2];
        uint8_t bytes[16];
    } rec = {.x = {.r = {.type = XAC_XDATA, .length = 48}, .file = 1, .n_ranges = 2},
             .range = {{500, 3}, {508, 3}}};

    ck_assert(xac_apply_page(&rec.x, page_a, 512));
    rec.range[1].offset = 509;
    ck_assert(!xac_apply_page(&rec.x, page_a, 512));
    ck_assert(xac_apply_page(&rec.x, page_a, 1024));
    rec.range[1].length_less_1 = 12;
    ck_assert(!xac_apply_page(&rec.x, page_a, 1024));
    rec.x.n_ranges = 7;
    ck_assert(!xac_apply_page(&rec.x, page_a, 1024));
    rec.x.n_ranges = UINT32_MAX;
    ck_assert(!xac_apply_page(&rec.x, page_a, 1024));
    rec.x.n_ranges = 0;
    rec.x.r.length = 16;
    ck_assert(!xac_apply_page(&rec.x, page_a, 1024));
}
END_TEST

/* ---- blocks ----------------------------------------------------------------------- */

static uint64_t block_buf[1024];
static struct xac_block *const blk = (struct xac_block *)(void *)block_buf;

/* Where the records of build() are, by type. */
static uint8_t *record[XAC_XCOPY + 1];

static const char path[] = "/some/where/input.db";

/* build -- a sealed block with a record of every type. */
static void
build(int kind)
{
    const struct xac_xfile file = {.file = 3, .length = 8192, .device = 5, .inode = 6};
    const struct xac_xdatafile datafile = {.serial = 9, .length = 10, .n_records = 11};
    const struct xac_page_change change = {.file = 3,
                                           .page = 2,
                                           .source_file = 4,
                                           .source_page = 5,
                                           .from = page_a,
                                           .to = page_c,
                                           .source = page_d};
    struct xac_builder b;
    const struct xac_record *rec = NULL;

    memset(block_buf, 0xff, sizeof block_buf);
    memset(page_a, 0, 512);
    memset(page_b, 0, 512);
    memset(page_b + 17, 0x11, 5);
    memset(page_b + 300, 0x22, 9);
    xac_builder_init(&b, block_buf, sizeof block_buf);
    ck_assert(xac_put_txn(&b, XAC_XBEGIN, 77));
    ck_assert(xac_put_page(&b, 3, 1, page_a, page_b, 512));
    memset(page_c, 0, 512);
    for (size_t i = 0; i < 512; i++)
        page_d[i] = (uint8_t)(i * 37 + (i >> 3));
    memcpy(page_c + 120, page_d + 11, 200);
    memcpy(page_c + 400, page_d + 300, 50);
    ck_assert(xac_put_change(&b, &change, 512));
    ck_assert(xac_put_file(&b, &file, 0, path));
    ck_assert(xac_put_datafile(&b, &datafile));
    ck_assert(xac_put_checkpt_begin(&b, 12));
    ck_assert(xac_put_checkpt_end(&b, 4104, 4096, 0));
    ck_assert(xac_put_txn(&b, XAC_XABORT, 77));
    ck_assert(xac_put_commit(&b, 77));
    ck_assert_int_eq(xac_block_close(&b, id, kind), 0);
    ck_assert_uint_eq(blk->length, b.used);
    xac_block_seal(blk, LSN, LSN - 8, 123);
    memset(record, 0, sizeof record);
    while ((rec = xac_record_next(blk, rec)) != NULL) {
        if (record[rec->type] == NULL)
            record[rec->type] =
                (uint8_t *)block_buf + ((const uint8_t *)rec - (uint8_t *)blk);
    }
}

static bool
valid(void)
{
    return xac_block_head_ok(blk, id, LSN) && xac_block_body_ok(blk);
}

/* reseal -- make the checksums right for whatever the block now holds. */
static void
reseal(void)
{
    uint8_t digest[XAC_DIGEST_MAX];
    int rc = xac_digest(blk->checksum_kind, blk + 1, blk->records_len, digest);

    ck_assert_int_eq(rc, 0);
    memcpy(&blk->records_check, digest, 8);
    memcpy((uint8_t *)(blk + 1) + blk->records_len, digest,
           xac_digest_trailer(blk->checksum_kind));
    xac_block_seal(blk, blk->lsn, blk->durable, blk->commit);
}

START_TEST(build_gives_what_was_put)
{
    static const uint8_t order[] = {XAC_XBEGIN,         XAC_XDATA,        XAC_XCOPY,
                                    XAC_XDATA,          XAC_XFILE,        XAC_XDATAFILE,
                                    XAC_XCHECKPT_BEGIN, XAC_XCHECKPT_END, XAC_XABORT,
                                    XAC_XCOMMIT};
    const struct xac_xcopy *copy;
    const struct xac_record *rec = NULL;
    const struct xac_xfile *file;
    const struct xac_xcheckpt_end *end;

    build(_i);
    ck_assert(valid());
    ck_assert_uint_eq(blk->n_records, 10);
    ck_assert_uint_eq(blk->lsn, LSN);
    ck_assert_uint_eq(blk->durable, LSN - 8);
    ck_assert_uint_eq(blk->commit, 123);
    ck_assert_uint_eq(blk->length,
                      sizeof *blk + blk->records_len + xac_digest_trailer(_i));
    for (size_t i = 0; i < sizeof order; i++) {
        rec = xac_record_next(blk, rec);
        ck_assert_ptr_nonnull(rec);
        ck_assert_uint_eq(rec->type, order[i]);
    }
    ck_assert_ptr_null(xac_record_next(blk, rec));
    ck_assert_uint_eq(((struct xac_xcommit *)(void *)record[XAC_XCOMMIT])->time_ns, 77);
    file = (const struct xac_xfile *)(void *)record[XAC_XFILE];
    ck_assert_uint_eq(file->file, 3);
    ck_assert_uint_eq(file->length, 8192);
    ck_assert_uint_eq(file->device, 5);
    ck_assert_uint_eq(file->inode, 6);
    ck_assert_uint_eq(file->path_len, strlen(path));
    ck_assert_int_eq(memcmp(file + 1, path, strlen(path)), 0);
    end = (const struct xac_xcheckpt_end *)(void *)record[XAC_XCHECKPT_END];
    ck_assert_uint_eq(end->begin_lsn, 4104);
    ck_assert_uint_eq(end->redo_lsn, 4096);
    copy = (const struct xac_xcopy *)(void *)record[XAC_XCOPY];
    ck_assert_uint_eq(copy->file, 3);
    ck_assert_uint_eq(copy->page, 2);
    ck_assert_uint_eq(copy->source_file, 4);
    ck_assert_uint_eq(copy->source_page, 5);
    ck_assert_uint_eq(copy->n_copies, 2);
}
END_TEST

START_TEST(check_refuses_every_flipped_byte)
{
    uint8_t *bytes = (uint8_t *)block_buf;
    uint32_t length;

    build(_i);
    length = blk->length;
    for (uint32_t i = 0; i < length; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (uint8_t)(1 << bit);
            ck_assert_msg(!valid(), "byte %u bit %d", i, bit);
            bytes[i] ^= (uint8_t)(1 << bit);
        }
    }
    ck_assert(valid());
}
END_TEST

START_TEST(head_check_refuses_another_log_or_place)
{
    const struct xac_log_id others[] = {{id.identity + 1, id.generation},
                                        {id.identity, id.generation + 1}};

    build(XAC_CHECKSUM_XXH3);
    ck_assert(xac_block_head_ok(blk, id, LSN));
    ck_assert(!xac_block_head_ok(blk, others[0], LSN));
    ck_assert(!xac_block_head_ok(blk, others[1], LSN));
    ck_assert(!xac_block_head_ok(blk, id, LSN + 8));
    xac_block_seal(blk, LSN + 8, LSN, 123);
    ck_assert(!xac_block_head_ok(blk, id, LSN));
    ck_assert(xac_block_head_ok(blk, id, LSN + 8));
}
END_TEST

/* A field of the header with a value that the header check alone would let pass. */
#define head_refuses(field, value)              \
 do {                                           \
  build(_i);                                    \
  blk->field = (value);                         \
  xac_block_seal(blk, blk->lsn, 0, 0);          \
  ck_assert_msg(!valid(), #field " = " #value); \
 } while (0)

START_TEST(head_check_refuses_senseless_fields)
{
    uint32_t length;
    uint32_t records_len;

    build(_i);
    length = blk->length;
    records_len = blk->records_len;
    head_refuses(reserved, 1);
    head_refuses(checksum_kind, 3);
    head_refuses(checksum_kind, 255);
    head_refuses(n_records, 0);
    head_refuses(n_records, 7);
    head_refuses(n_records, UINT16_MAX);
    head_refuses(length, 0);
    head_refuses(length, length - 8);
    head_refuses(length, length + 4);
    head_refuses(length, 64);
    head_refuses(records_len, 0);
    head_refuses(records_len, records_len + 8);
    head_refuses(records_len, records_len - 4);
    head_refuses(records_len, UINT32_MAX - 7);
    head_refuses(length, UINT32_MAX);
}
END_TEST

START_TEST(check_allows_padding_of_zeros_only)
{
    build(_i);
    memset((uint8_t *)blk + blk->length, 0, 24);
    blk->length += 24;
    reseal();
    ck_assert(valid());
    ((uint8_t *)blk)[blk->length - 24] = 1;
    ck_assert(!valid());
    ((uint8_t *)blk)[blk->length - 24] = 0;
    ((uint8_t *)blk)[blk->length - 1] = 1;
    ck_assert(!valid());
}
END_TEST

/* poke -- a valid block, one field of `bytes` little-endian bytes of one record spoilt,
   its checksums right.  ret true if it is still taken for valid. */
static bool
poke(enum xac_record_type type, size_t offset, size_t bytes, uint64_t value)
{
    build(XAC_CHECKSUM_XXH3);
    memcpy(record[type] + offset, &value, bytes);
    reseal();
    return valid();
}

START_TEST(check_refuses_senseless_records)
{
    static const uint8_t types[] = {XAC_XBEGIN, XAC_XDATA,          XAC_XCOMMIT,
                                    XAC_XABORT, XAC_XCHECKPT_BEGIN, XAC_XCHECKPT_END,
                                    XAC_XFILE,  XAC_XDATAFILE};

    for (size_t i = 0; i < sizeof types; i++) {
        uint8_t t = types[i];
        uint32_t length;

        build(XAC_CHECKSUM_XXH3);
        length = ((struct xac_record *)(void *)record[t])->length;
        ck_assert(poke(t, 0, 1, t));
        ck_assert(!poke(t, 0, 1, 0));
        ck_assert(!poke(t, 0, 1, 9));
        ck_assert(!poke(t, 0, 1, 255));
        ck_assert(poke(t, 1, 1, 2) == (t == XAC_XDATA));
        ck_assert(!poke(t, 1, 1, 0x80));
        ck_assert(!poke(t, 2, 2, 1));
        ck_assert(!poke(t, 4, 4, 0));
        ck_assert(!poke(t, 4, 4, 8));
        ck_assert(!poke(t, 4, 4, length + 4));
        ck_assert(!poke(t, 4, 4, length + 8));
        ck_assert(!poke(t, 4, 4, length - 8));
        ck_assert(!poke(t, 4, 4, UINT32_MAX));
        ck_assert(!poke(t, 4, 4, UINT32_MAX - 7));
    }
}
END_TEST

START_TEST(check_refuses_data_that_leave_the_record)
{
    const struct xac_range *range;

    build(XAC_CHECKSUM_XXH3);
    range = (const struct xac_range *)(void *)(record[XAC_XDATA] + 24);
    ck_assert_uint_eq(range[0].offset, 17);
    ck_assert_uint_eq(range[1].offset, 300);
    ck_assert(!poke(XAC_XDATA, 8, 4, 0));  /* file                           */
    ck_assert(!poke(XAC_XDATA, 12, 4, 1)); /* n_ranges                       */
    ck_assert(!poke(XAC_XDATA, 12, 4, 3));
    ck_assert(!poke(XAC_XDATA, 12, 4, UINT32_MAX));
    ck_assert(!poke(XAC_XDATA, 12, 4, UINT32_C(0x40000000)));
    ck_assert(!poke(XAC_XDATA, 24, 2, 301));   /* ranges that do not ascend      */
    ck_assert(!poke(XAC_XDATA, 28, 2, 21));    /* that overlap                   */
    ck_assert(poke(XAC_XDATA, 28, 2, 22));     /* that touch                     */
    ck_assert(!poke(XAC_XDATA, 28, 2, 65530)); /* behind any page                */
    ck_assert(!poke(XAC_XDATA, 30, 2, 65535)); /* longer than the record         */
    ck_assert(!poke(XAC_XDATA, 30, 2, 0));     /* shorter than the record        */
    ck_assert(!poke(XAC_XDATA, 30, 2, 7));     /* padding that is not zero       */
    ck_assert(!poke(XAC_XDATA, 30, 2, 11));    /* one byte too long              */
    ck_assert(!poke(XAC_XDATA, 46, 1, 1));     /* padding                        */
    ck_assert(poke(XAC_XDATA, 1, 1, XAC_XDATA_FULL));
    ck_assert(poke(XAC_XDATA, 1, 1, XAC_XDATA_BASE));
    ck_assert(!poke(XAC_XDATA, 1, 1, XAC_XDATA_FULL | XAC_XDATA_BASE));
}
END_TEST

/* The time of birth stands between the head and the path, and only with its flag. */
START_TEST(file_record_may_hold_a_birth)
{
    const struct xac_xfile file = {.file = 3, .inode = 6};
    const struct xac_xfile *rec = (const struct xac_xfile *)(const void *)(blk + 1);
    uint64_t birth_ns = _i == 0 ? 0 : UINT64_C(1700000000123456789);
    struct xac_builder b;

    xac_builder_init(&b, block_buf, sizeof block_buf);
    ck_assert(xac_put_file(&b, &file, birth_ns, path));
    ck_assert_int_eq(xac_block_close(&b, id, XAC_CHECKSUM_XXH3), 0);
    xac_block_seal(blk, LSN, 0, 0);
    ck_assert(valid());
    ck_assert_uint_eq(rec->inode, 6);
    ck_assert_uint_eq(xac_xfile_birth(rec), birth_ns);
    ck_assert_uint_eq(rec->path_len, strlen(path));
    ck_assert_int_eq(memcmp(xac_xfile_path(rec), path, strlen(path)), 0);
    ((struct xac_record *)(void *)(blk + 1))->flags = 2;
    reseal();
    ck_assert(!valid());
}
END_TEST

/* sound -- is this a block of one record with right checksums, one field of it spoilt? */
static bool
sound(struct xac_builder *b, size_t offset, size_t bytes, uint64_t value)
{
    ck_assert_int_eq(xac_block_close(b, id, XAC_CHECKSUM_XXH3), 0);
    xac_block_seal(blk, LSN, 0, 0);
    ck_assert(valid());
    memcpy((uint8_t *)(blk + 1) + offset, &value, bytes);
    reseal();
    return valid();
}

/* spread_ok -- END of a checkpoint whose files lie in several blocks, with a field spoilt. */
static bool
spread_ok(size_t offset, size_t bytes, uint64_t value)
{
    const struct xac_xcheckpt_end *rec =
        (const struct xac_xcheckpt_end *)(const void *)(blk + 1);
    struct xac_builder b;

    memset(block_buf, 0xff, sizeof block_buf);
    xac_builder_init(&b, block_buf, sizeof block_buf);
    ck_assert(xac_put_checkpt_end(&b, 4104, 4096, 5000));
    ck_assert_uint_eq(rec->r.length, 32);
    ck_assert_uint_eq(rec->begin_lsn, 4104);
    ck_assert_uint_eq(rec->redo_lsn, 4096);
    ck_assert_uint_eq(xac_checkpt_files(rec), 5000);
    return sound(&b, offset, bytes, value);
}

START_TEST(checkpoint_may_have_its_files_elsewhere)
{
    ck_assert(spread_ok(1, 1, XAC_XCHECKPT_SPREAD));
    ck_assert(!spread_ok(1, 1, 0)); /* longer than without the flag */
    ck_assert(!spread_ok(1, 1, 2));
    ck_assert(!spread_ok(1, 1, 3));
    ck_assert(!spread_ok(4, 4, 24));
    ck_assert(!spread_ok(4, 4, 40));
    ck_assert(!spread_ok(16, 8, 4105)); /* redo behind begin */
    ck_assert(spread_ok(24, 8, 4105));
    ck_assert(!spread_ok(24, 8, 4104)); /* files before the checkpoint began */
    ck_assert(!spread_ok(24, 8, 0));
    build(XAC_CHECKSUM_XXH3);
    ck_assert_uint_eq(xac_checkpt_files((const struct xac_xcheckpt_end *)(const void *)
                                            record[XAC_XCHECKPT_END]),
                      0);
    ck_assert(!poke(XAC_XCHECKPT_END, 1, 1, XAC_XCHECKPT_SPREAD)); /* no room for it */
}
END_TEST

/* forget_ok -- that a file is forgotten, with a field spoilt. */
static bool
forget_ok(size_t offset, size_t bytes, uint64_t value)
{
    const struct xac_xforget *rec = (const struct xac_xforget *)(const void *)(blk + 1);
    struct xac_builder b;

    memset(block_buf, 0xff, sizeof block_buf);
    xac_builder_init(&b, block_buf, sizeof block_buf);
    ck_assert(xac_put_forget(&b, 7));
    ck_assert_uint_eq(rec->r.length, 16);
    ck_assert_uint_eq(rec->file, 7);
    return sound(&b, offset, bytes, value);
}

START_TEST(record_may_forget_a_file)
{
    ck_assert(forget_ok(8, 4, 7));
    ck_assert(forget_ok(8, 4, UINT32_MAX));
    ck_assert(!forget_ok(8, 4, 0));  /* file */
    ck_assert(!forget_ok(12, 4, 1)); /* reserved */
    ck_assert(!forget_ok(1, 1, 1));  /* flags */
    ck_assert(!forget_ok(2, 2, 1));
    ck_assert(!forget_ok(4, 4, 8));
    ck_assert(!forget_ok(4, 4, 24));
    ck_assert(!forget_ok(0, 1, XAC_XFORGET + 1));
}
END_TEST

/* A record that is longer than its contents by a word of zeros, else in order. */
START_TEST(check_refuses_needless_padding)
{
    struct xac_builder b;
    struct xac_xfile *rec;

    for (size_t cut = 0; cut < 16; cut++) {
        const struct xac_xfile file = {.file = 3};

        memset(block_buf, 0xff, sizeof block_buf);
        xac_builder_init(&b, block_buf, sizeof block_buf);
        ck_assert(xac_put_file(&b, &file, 0, "0123456789abcdef"));
        rec = (struct xac_xfile *)(blk + 1);
        memset((char *)(rec + 1) + 16 - cut, 0, cut);
        rec->path_len = (uint32_t)(16 - cut);
        ck_assert_int_eq(xac_block_close(&b, id, XAC_CHECKSUM_XXH3), 0);
        xac_block_seal(blk, LSN, 0, 0);
        ck_assert_int_eq(valid(), cut < 8);
    }
}
END_TEST

START_TEST(check_refuses_tables_that_leave_the_record)
{
    ck_assert(!poke(XAC_XFILE, 8, 4, 0));  /* file */
    ck_assert(!poke(XAC_XFILE, 12, 4, 0)); /* path_len */
    ck_assert(!poke(XAC_XFILE, 12, 4, strlen(path) - 1));
    ck_assert(!poke(XAC_XFILE, 12, 4, strlen(path) + 1));
    ck_assert(!poke(XAC_XFILE, 12, 4, strlen(path) + 5));
    ck_assert(!poke(XAC_XFILE, 12, 4, UINT32_MAX));
    ck_assert(!poke(XAC_XFILE, 42, 1, 0));     /* NUL within the path */
    ck_assert(!poke(XAC_XFILE, 60, 1, 1));     /* padding */
    ck_assert(!poke(XAC_XDATAFILE, 32, 4, 3)); /* checksum_kind */
    ck_assert(!poke(XAC_XDATAFILE, 36, 4, 1)); /* reserved */
    ck_assert(poke(XAC_XDATAFILE, 47, 1, 1));
    ck_assert(!poke(XAC_XDATAFILE, 48, 1, 1)); /* behind the digest */
    ck_assert(!poke(XAC_XDATAFILE, 63, 1, 1));
    ck_assert(!poke(XAC_XCHECKPT_BEGIN, 1, 1, 1));   /* flags */
    ck_assert(!poke(XAC_XCHECKPT_END, 16, 8, 4105)); /* redo behind begin */
    ck_assert(!poke(XAC_XCOPY, 8, 4, 0));            /* file */
    ck_assert(!poke(XAC_XCOPY, 12, 4, 0));           /* n_copies */
    ck_assert(!poke(XAC_XCOPY, 12, 4, 1));
    ck_assert(!poke(XAC_XCOPY, 12, 4, 3));
    ck_assert(!poke(XAC_XCOPY, 12, 4, UINT32_MAX));
    ck_assert(!poke(XAC_XCOPY, 32, 4, 0)); /* source_file */
    ck_assert(!poke(XAC_XCOPY, 36, 4, 1)); /* reserved */
    ck_assert(!poke(XAC_XCOPY, 46, 2, 0)); /* the second copy overlaps the first */
    ck_assert(!poke(XAC_XCOPY, 52, 4, 1)); /* padding */
    ck_assert(!poke(XAC_XCOPY, 1, 1, 2));  /* flags */
    ck_assert(poke(XAC_XCOPY, 1, 1, 1));
}
END_TEST

/* Any bytes, checksums right: the check must not read outside of the block.  The block
   lies at the end of its allocation, where a sanitizer or valgrind would see it. */
START_TEST(check_survives_random_records)
{
    int taken = 0;

    for (int round = 0; round < 200000; round++) {
        size_t len = 16 + 8 * rnd(12);
        struct xac_block *b = (struct xac_block *)malloc(sizeof *b + len);
        uint64_t *words = (uint64_t *)(void *)(b + 1);
        uint8_t digest[XAC_DIGEST_MAX];
        const struct xac_record *rec = NULL;

        ck_assert_ptr_nonnull(b);
        for (size_t i = 0; i < len / 8; i++)
            words[i] = rnd(4) == 0 ? rnd(UINT64_MAX) : rnd(32) | rnd(8) << 32;
        words[0] = (1 + rnd(8)) | (uint64_t)(rnd(2) == 0 ? len : 8 * rnd(20)) << 32;
        *b = (struct xac_block){.magic = XAC_BLOCK_MAGIC,
                                .length = (uint32_t)(sizeof *b + len),
                                .identity = id.identity,
                                .generation = id.generation,
                                .n_records = (uint16_t)(1 + rnd(3)),
                                .records_len = (uint32_t)len};
        ck_assert_int_eq(xac_digest(XAC_CHECKSUM_XXH3, b + 1, len, digest), 0);
        memcpy(&b->records_check, digest, 8);
        xac_block_seal(b, LSN, 0, 0);
        ck_assert(xac_block_head_ok(b, id, LSN));
        if (xac_block_body_ok(b)) {
            taken++;
            while ((rec = xac_record_next(b, rec)) != NULL) {
                if (rec->type == XAC_XDATA)
                    (void)xac_apply_page((const struct xac_xdata *)rec, page_a, 512);
                if (rec->type == XAC_XCOPY)
                    (void)xac_apply_copy((const struct xac_xcopy *)rec, page_b, page_a,
                                         512);
            }
        }
        free(b);
    }
    ck_assert_int_gt(taken, 0);
}
END_TEST

START_TEST(close_needs_room_for_the_digest)
{
    size_t trailer = xac_digest_trailer(_i);

    for (size_t room = 0; room <= trailer; room += 8) {
        struct xac_builder b;

        xac_builder_init(&b, block_buf, sizeof *blk + 16 + room);
        ck_assert(xac_put_commit(&b, 1));
        ck_assert(!xac_put_txn(&b, XAC_XDATA, 1) || room >= 16);
        b.used = sizeof *blk + 16;
        b.records = 1;
        ck_assert_int_eq(xac_block_close(&b, id, _i), room < trailer ? ENOSPC : 0);
    }
}
END_TEST

START_TEST(put_without_room_puts_nothing)
{
    const struct xac_xfile file = {.file = 1};
    const struct xac_xdatafile datafile = {.serial = 1};
    const size_t need[] = {16, 40 + 24, 64, 24, 32, 16};

    for (int which = 0; which < 6; which++) {
        for (size_t room = 0; room <= need[which]; room++) {
            struct xac_builder b;
            bool fits = false;

            memset(block_buf, 0xa5, sizeof block_buf);
            xac_builder_init(&b, block_buf, sizeof *blk + room);
            if (which == 0)
                fits = xac_put_txn(&b, XAC_XBEGIN, 1);
            else if (which == 1)
                fits = xac_put_file(&b, &file, 0, path);
            else if (which == 2)
                fits = xac_put_datafile(&b, &datafile);
            else if (which == 3)
                fits = xac_put_checkpt_end(&b, 2, 1, 0);
            else if (which == 4)
                fits = xac_put_checkpt_end(&b, 2, 1, 3);
            else
                fits = xac_put_forget(&b, 1);
            ck_assert_int_eq(fits, room == need[which]);
            ck_assert_uint_eq(b.used, sizeof *blk + (fits ? room : 0));
            ck_assert_uint_eq(b.records, fits);
            ck_assert_uint_eq(((uint8_t *)block_buf)[b.used], 0xa5);
        }
    }
}
END_TEST

START_TEST(count_of_records_stops_at_65535)
{
    const size_t n = 65540;
    uint64_t *big = (uint64_t *)malloc(sizeof *blk + 16 * n);
    struct xac_block *b_blk = (struct xac_block *)(void *)big;
    struct xac_builder b;

    ck_assert_ptr_nonnull(big);
    xac_builder_init(&b, big, sizeof *blk + 16 * n);
    for (size_t i = 0; i < n; i++)
        ck_assert(xac_put_txn(&b, XAC_XBEGIN, i));
    ck_assert_int_eq(xac_block_close(&b, id, XAC_CHECKSUM_XXH3), 0);
    xac_block_seal(b_blk, LSN, 0, 1);
    ck_assert_uint_eq(b_blk->n_records, 65535);
    ck_assert(xac_block_head_ok(b_blk, id, LSN) && xac_block_body_ok(b_blk));
    free(big);
}
END_TEST

static Suite *
block_suite(void)
{
    Suite *s = suite_create("block");
    TCase *diff = tcase_create("differences");
    TCase *tc = tcase_create("blocks");

    tcase_add_checked_fixture(diff, setup, NULL);
    tcase_set_timeout(diff, 120);
    tcase_add_test(diff, put_page_then_apply_gives_the_page);
    tcase_add_test(diff, put_change_then_apply_gives_the_page);
    tcase_add_test(diff, put_change_copies_what_moves);
    tcase_add_test(diff, put_page_never_outgrows_its_maximum);
    tcase_add_test(diff, put_page_of_equal_pages_has_no_ranges);
    tcase_add_test(diff, put_page_of_different_pages_has_one_range);
    tcase_add_test(diff, put_page_logs_single_bytes);
    tcase_add_test(diff, put_page_leaves_out_what_is_equal);
    tcase_add_test(diff, put_page_without_room_puts_nothing);
    tcase_add_test(diff, apply_page_refuses_what_leaves_page_or_record);
    suite_add_tcase(s, diff);

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, build_gives_what_was_put, 0, 3);
    tcase_add_loop_test(tc, check_refuses_every_flipped_byte, 0, 3);
    tcase_add_test(tc, head_check_refuses_another_log_or_place);
    tcase_add_loop_test(tc, head_check_refuses_senseless_fields, 0, 3);
    tcase_add_loop_test(tc, check_allows_padding_of_zeros_only, 0, 3);
    tcase_add_test(tc, check_refuses_senseless_records);
    tcase_add_test(tc, check_refuses_data_that_leave_the_record);
    tcase_add_loop_test(tc, file_record_may_hold_a_birth, 0, 2);
    tcase_add_test(tc, checkpoint_may_have_its_files_elsewhere);
    tcase_add_test(tc, record_may_forget_a_file);
    tcase_add_test(tc, check_refuses_needless_padding);
    tcase_add_test(tc, check_refuses_tables_that_leave_the_record);
    tcase_add_test(tc, check_survives_random_records);
    tcase_add_loop_test(tc, close_needs_room_for_the_digest, 0, 3);
    tcase_add_test(tc, put_without_room_puts_nothing);
    tcase_add_test(tc, count_of_records_stops_at_65535);
    suite_add_tcase(s, tc);
    return s;
}

int
main(void)
{
    const char *text = getenv("XAC_SEED");
    SRunner *sr;
    int failed;

    seed = text != NULL ? strtoull(text, NULL, 0) : 20240607;
    (void)printf("XAC_SEED=%llu\n", (unsigned long long)seed);
    sr = srunner_create(block_suite());
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
