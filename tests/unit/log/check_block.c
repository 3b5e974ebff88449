/* SPDX-License-Identifier: MIT */
/*
 * check_block.c -- unit tests of libxac/log/block.c and block_check.c.
 *
 * GOAL    a block that is built is valid and comes back; anything else is refused.
 * METHOD  a block with every kind of record.  Each of its bytes is flipped.  Each of its
 *         fields is spoilt and the checksums are made right again, so that the check of
 *         the field itself is tested; random records (seed XAC_SEED,
 *         printed).
 */
#include <config.h>

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/digest.h"
#include "log/block.h"

#include "tests/common/env.h"

static const struct xac_log_id id = {UINT64_C(0x0123456789abcdef), 7};

#define LSN UINT64_C(0x12340)

static uint8_t page_a[512];
static uint8_t page_b[512];
static uint8_t page_c[512];
static uint8_t page_d[512];
static uint64_t rng;

static void
setup(void)
{
    env_setup();
    rng = env_seed();
}

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
    ck_assert(!poke(XAC_XDATAFILE, 8, 8, 0));  /* serial        */
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
        size_t len = 16 + 8 * rnd_below(&rng, 12);
        struct xac_block *b = (struct xac_block *)malloc(sizeof *b + len);
        uint64_t *words = (uint64_t *)(void *)(b + 1);
        uint8_t digest[XAC_DIGEST_MAX];
        const struct xac_record *rec = NULL;

        ck_assert_ptr_nonnull(b);
        for (size_t i = 0; i < len / 8; i++)
            words[i] = rnd_below(&rng, 4) == 0
                           ? rnd_below(&rng, UINT64_MAX)
                           : rnd_below(&rng, 32) | rnd_below(&rng, 8) << 32;
        words[0] = (1 + rnd_below(&rng, 8))
                   | (uint64_t)(rnd_below(&rng, 2) == 0 ? len : 8 * rnd_below(&rng, 20))
                         << 32;
        *b = (struct xac_block){.magic = XAC_BLOCK_MAGIC,
                                .length = (uint32_t)(sizeof *b + len),
                                .identity = id.identity,
                                .generation = id.generation,
                                .n_records = (uint16_t)(1 + rnd_below(&rng, 3)),
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

int
main(void)
{
    Suite *s = suite_create("block");
    TCase *tc = env_tcase_with(s, "blocks", 120, setup);

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
    return env_main(s);
}
