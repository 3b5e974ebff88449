/* SPDX-License-Identifier: MIT */
/*
 * check_digest.c -- unit tests of libxac/base/digest.c.
 *
 * GOAL    each checksum is the one that its name says, so that logs stay readable.
 * METHOD  published test vectors: RFC 1321 (MD5), FIPS 180 (SHA-1), xxHash's own.
 */
#include <config.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/digest.h"

static void
expect_digest(int kind, const char *text, const char *hex)
{
    uint8_t out[XAC_DIGEST_MAX];
    char got[2 * XAC_DIGEST_MAX + 1];

    memset(out, 0xff, sizeof out);
    ck_assert_int_eq(xac_digest(kind, text, strlen(text), out), 0);
    for (size_t i = 0; i < sizeof out; i++)
        (void)snprintf(got + 2 * i, 3, "%02x", out[i]);
    ck_assert_str_eq(got, hex);
}

START_TEST(digest_matches_md5_vectors)
{
    expect_digest(XAC_CHECKSUM_MD5, "",
                  "d41d8cd98f00b204e9800998ecf8427e0000000000000000");
    expect_digest(XAC_CHECKSUM_MD5, "abc",
                  "900150983cd24fb0d6963f7d28e17f720000000000000000");
}
END_TEST

START_TEST(digest_matches_sha1_vectors)
{
    expect_digest(XAC_CHECKSUM_SHA1, "",
                  "da39a3ee5e6b4b0d3255bfef95601890afd8070900000000");
    expect_digest(XAC_CHECKSUM_SHA1, "abc",
                  "a9993e364706816aba3e25717850c26c9cd0d89d00000000");
}
END_TEST

START_TEST(xxh64_matches_vector)
{
    ck_assert_uint_eq(xac_xxh64("", 0), UINT64_C(0x2d06800538d394c2));
}
END_TEST

START_TEST(digest_xxh3_is_xxh64_in_memory_order)
{
    uint8_t out[XAC_DIGEST_MAX];
    uint64_t h = xac_xxh64("libxac", 6);

    ck_assert_int_eq(xac_digest(XAC_CHECKSUM_XXH3, "libxac", 6, out), 0);
    ck_assert_mem_eq(out, &h, sizeof h);
    for (size_t i = sizeof h; i < sizeof out; i++)
        ck_assert_uint_eq(out[i], 0);
}
END_TEST

START_TEST(trailer_holds_digest)
{
    ck_assert_uint_eq(xac_digest_trailer(XAC_CHECKSUM_XXH3), 0);
    ck_assert_uint_eq(xac_digest_trailer(XAC_CHECKSUM_MD5), 16);
    ck_assert_uint_eq(xac_digest_trailer(XAC_CHECKSUM_SHA1), 24);
}
END_TEST

/* Data files written by pieces can be read whole, and the other way round. */
START_TEST(pieces_have_the_digest_of_the_whole)
{
    static const int kinds[] = {XAC_CHECKSUM_XXH3, XAC_CHECKSUM_MD5, XAC_CHECKSUM_SHA1};
    uint8_t data[5000], whole[XAC_DIGEST_MAX], sum[XAC_DIGEST_MAX];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7 + i / 256);
    for (size_t k = 0; k < 3; k++) {
        struct xac_digester d;

        ck_assert_int_eq(xac_digest(kinds[k], data, sizeof data, whole), 0);
        ck_assert_int_eq(xac_digest_begin(&d, kinds[k]), 0);
        for (size_t at = 0, n = 1; at < sizeof data; at += n, n = n * 3 % 1024) {
            n = n > sizeof data - at ? sizeof data - at : n;
            xac_digest_add(&d, data + at, n);
        }
        memset(sum, 0xff, sizeof sum);
        xac_digest_end(&d, sum);
        xac_digest_free(&d);
        ck_assert_mem_eq(sum, whole, sizeof sum);
    }
}
END_TEST

static Suite *
digest_suite(void)
{
    Suite *s = suite_create("digest");
    TCase *tc = tcase_create("vectors");

    tcase_add_test(tc, digest_matches_md5_vectors);
    tcase_add_test(tc, digest_matches_sha1_vectors);
    tcase_add_test(tc, xxh64_matches_vector);
    tcase_add_test(tc, digest_xxh3_is_xxh64_in_memory_order);
    tcase_add_test(tc, trailer_holds_digest);
    tcase_add_test(tc, pieces_have_the_digest_of_the_whole);
    suite_add_tcase(s, tc);
    return s;
}

int
main(void)
{
    SRunner *sr = srunner_create(digest_suite());
    int failed;

    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
