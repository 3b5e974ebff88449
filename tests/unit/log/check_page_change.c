/* SPDX-License-Identifier: MIT */
/*
 * check_page_change.c -- unit tests of libxac/log/page_change.c.
 *
 * GOAL    the records of a change lead from the old page to the new one, and take no more room
 *         than is promised; records that leave the page or themselves are refused.
 * METHOD  random pages and edits (seed XAC_SEED, printed).
 */
#include <config.h>

#include <check.h>
#include <string.h>

#include <xac.h>

#include "log/block.h"

#include "tests/common/env.h"

#define PAGE_MAX 65536u

static uint64_t rng;

static void
setup(void)
{
    env_setup();
    rng = env_seed();
}

static void
fill_random(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)rnd_below(&rng, 256);
}

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
        size_t n = (size_t)512 << rnd_below(&rng, 8);
        uint64_t edits = rnd_below(&rng, 20);

        if (rnd_below(&rng, 4) == 0)
            memset(page_a, 0, n);
        else
            fill_random(page_a, rnd_below(&rng, 50) == 0 ? n : 512);
        memcpy(page_b, page_a, n);
        for (uint64_t e = 0; e < edits; e++) {
            size_t at = rnd_below(&rng, n);
            size_t len = 1 + rnd_below(&rng, rnd_below(&rng, 3) == 0 ? n - at : 24);

            for (size_t i = at; i < at + len && i < n; i++)
                page_b[i] = (uint8_t)rnd_below(&rng, rnd_below(&rng, 3) == 0 ? 1 : 256);
        }
        expect_both(n);
    }
}
END_TEST

START_TEST(put_change_then_apply_gives_the_page)
{
    for (int round = 0; round < 3000; round++) {
        size_t n = (size_t)512 << rnd_below(&rng, 4);
        const uint8_t *source = rnd_below(&rng, 2) == 0 ? page_a : page_d;

        for (size_t i = 0; i < n; i++) {
            page_a[i] = rnd_below(&rng, 3) == 0 ? 0 : (uint8_t)rnd_below(&rng, 256);
            page_d[i] = (uint8_t)rnd_below(&rng, round % 7 == 0 ? 2 : 256);
        }
        memcpy(page_b, page_a, n);
        for (uint64_t moves = rnd_below(&rng, 6); moves > 0; moves--) {
            size_t len = (size_t)rnd_below(&rng, n / 2);

            memcpy(page_b + rnd_below(&rng, n - len), source + rnd_below(&rng, n - len),
                   len);
            page_b[rnd_below(&rng, n)] = (uint8_t)rnd_below(&rng, 256);
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
        page_a[i] = (uint8_t)rnd_below(&rng, 256);
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

/* Ranges at the fewest equal bytes apart, which makes the table as long as can be. */
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

int
main(void)
{
    Suite *s = suite_create("page_change");
    TCase *tc = env_tcase_with(s, "differences", 120, setup);

    tcase_add_test(tc, put_page_then_apply_gives_the_page);
    tcase_add_test(tc, put_change_then_apply_gives_the_page);
    tcase_add_test(tc, put_change_copies_what_moves);
    tcase_add_test(tc, put_page_never_outgrows_its_maximum);
    tcase_add_test(tc, put_page_of_equal_pages_has_no_ranges);
    tcase_add_test(tc, put_page_of_different_pages_has_one_range);
    tcase_add_test(tc, put_page_logs_single_bytes);
    tcase_add_test(tc, put_page_leaves_out_what_is_equal);
    tcase_add_test(tc, put_page_without_room_puts_nothing);
    tcase_add_test(tc, apply_page_refuses_what_leaves_page_or_record);
    return env_main(s);
}
