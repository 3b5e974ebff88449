/* SPDX-License-Identifier: MIT */
/*
 * lines.h -- a page as 64 lines of equal size: which of them are the same in two pages, and copying
 * the others.
 *
 * A set of lines is a word; bit i stands for line i.  With pages of 4 KiB a line is as long as a cache
 * line, so a line that is not touched is not fetched from memory, or from another processor.
 */
#ifndef XAC_LINES_H
#define XAC_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/annot.h"

#define XAC_LINES 64u

/* Compared at once, in a register of any x86-64. */
typedef uint64_t xac_lines_vector __attribute__((vector_size(16), may_alias));

/* xac_lines_same -- the lines that are the same in both pages, which are aligned. */
static inline uint64_t
xac_lines_same(const uint8_t *a, const uint8_t *b, size_t page_size)
{
    size_t line = page_size / XAC_LINES;
    uint64_t same = 0;

    xac_assert(line % (4 * sizeof(xac_lines_vector)) == 0);
    for (unsigned i = 0; i < XAC_LINES; i++) {
        xac_lines_vector d = {0, 0};

        for (size_t at = i * line; at < (i + 1) * line; at += 4 * sizeof d) {
            const xac_lines_vector *x = (const xac_lines_vector *)(const void *)(a + at);
            const xac_lines_vector *y = (const xac_lines_vector *)(const void *)(b + at);

            d |= (x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]);
        }
        same |= (uint64_t)((d[0] | d[1]) == 0) << i;
    }
    return same;
}

/* xac_lines_copy -- the lines of a page that are not in `same`, neighbours at once. */
XAC_SIGSAFE static inline void
xac_lines_copy(uint8_t *to, const uint8_t *from, uint64_t same, size_t page_size)
{
    size_t line = page_size / XAC_LINES;
    uint64_t left = ~same;

    xac_assert(to != from);
    while (left != 0) {
        unsigned first = (unsigned)__builtin_ctzll(left);
        uint64_t rest = ~(left >> first); /* its lowest bit is behind the run */
        unsigned n = rest == 0 ? XAC_LINES : (unsigned)__builtin_ctzll(rest);

        memcpy(to + first * line, from + first * line, n * line);
        left = first + n >= XAC_LINES ? 0 : left >> (first + n) << (first + n);
    }
}

#endif /* XAC_LINES_H */
