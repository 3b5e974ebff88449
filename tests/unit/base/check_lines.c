/* SPDX-License-Identifier: MIT */
/*
 * check_lines.c -- lines of a page: which of them are the same in two pages, and copying the others.
 *
 * METHOD  Two pages that differ in single bytes, in random places or in the first and last ones of a
 *         line, for several sizes of a page.  A loop over all bytes checks the copy.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/lines.h"
#include "tests/common/env.h"

#define BYTES_MAX 65536u

static const size_t sizes[] = {4096, 16384, BYTES_MAX};
#define N_SIZES ((int)(sizeof sizes / sizeof sizes[0]))

static _Alignas(4096) uint8_t a[BYTES_MAX], b[BYTES_MAX], to[BYTES_MAX];

/* check_copy -- the lines that are not in `same` are those of `a`, the others stay. */
static void
check_copy(uint64_t same, size_t size)
{
    memset(to, 0x5a, size);
    xac_lines_copy(to, a, same, size);
    for (size_t i = 0; i < size; i++)
        must_eq(to[i], (same >> i / (size / XAC_LINES) & 1) != 0 ? 0x5a : a[i]);
}

START_TEST(tell_lines_that_differ)
{
    size_t size = sizes[_i], line = size / XAC_LINES;

    for (size_t i = 0; i < size; i++)
        a[i] = b[i] = (uint8_t)(i * 7 + i / 256);
    must_eq(xac_lines_same(a, b, size), UINT64_MAX);
    for (size_t i = 0; i < size;
         i += i % line == 0 ? line - 1 : 1) { /* first and last bytes */
        b[i] ^= 1;
        must_eq(xac_lines_same(a, b, size), ~(UINT64_C(1) << i / line));
        must_eq(xac_lines_same(b, a, size), ~(UINT64_C(1) << i / line));
        b[i] ^= 1;
    }
    for (size_t i = 0; i < size; i += line)
        b[i + line / 2] ^= 0x80;
    must_eq(xac_lines_same(a, b, size), 0);
}
END_TEST

START_TEST(copy_lines_that_differ)
{
    uint64_t seed = env_seed();
    size_t size = sizes[_i];

    for (size_t i = 0; i < size; i++)
        a[i] = (uint8_t)rnd_next(&seed) | 1; /* never 0x5a */
    check_copy(0, size);
    check_copy(UINT64_MAX, size);
    for (unsigned i = 0; i < XAC_LINES; i++) {
        check_copy(~(UINT64_C(1) << i), size);
        check_copy(UINT64_C(1) << i, size);
        check_copy(UINT64_MAX << i, size);
        check_copy(UINT64_MAX >> i, size);
    }
    for (int i = 0; i < 200; i++)
        check_copy(rnd_next(&seed) | (i % 2 == 0 ? rnd_next(&seed) : 0), size);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("lines");
    TCase *tc = env_tcase(s, "lines", 60);

    tcase_add_loop_test(tc, tell_lines_that_differ, 0, N_SIZES);
    tcase_add_loop_test(tc, copy_lines_that_differ, 0, N_SIZES);
    return env_main(s);
}
