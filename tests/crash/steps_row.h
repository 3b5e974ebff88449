/* SPDX-License-Identifier: MIT */
/*
 * steps_row.h -- what the pages of a writer's row hold after its transaction n, for check_steps.c.
 */
#ifndef XAC_TEST_STEPS_ROW_H
#define XAC_TEST_STEPS_ROW_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>

#include "../common/env.h"

#define ROW_PAGES 30u

static inline unsigned
pages_of_txn(uint64_t n)
{
    return n % 10 == 9 ? ROW_PAGES : n % 5 == 4 ? 7 : 2;
}

/* last_write -- number of the transaction, at or before n, that wrote page j of a row. */
static inline uint64_t
last_write(uint64_t n, unsigned j)
{
    while (n > 0 && pages_of_txn(n) <= j)
        n--;
    return n;
}

static inline size_t
words_of_page(void)
{
    return env_page() / sizeof(uint64_t);
}

/* word_of -- word i of a page that transaction n wrote; pages do not compress. */
static inline uint64_t
word_of(uint64_t n, unsigned w, size_t i)
{
    return n == 0 ? 0 : i == 0 ? n : n * 0x9e3779b97f4a7c15 + (i << 8 | w);
}

static inline volatile uint64_t *
row_page(unsigned char *file, unsigned w, unsigned j)
{
    return (volatile uint64_t *)(void *)(file + (1 + w * ROW_PAGES + j) * env_page());
}

/* write_row -- the stores of transaction n of a writer. */
static inline void
write_row(unsigned char *file, unsigned w, uint64_t n)
{
    for (unsigned j = 0; j < pages_of_txn(n); j++) {
        volatile uint64_t *page = row_page(file, w, j);

        for (size_t i = 0; i < words_of_page(); i++)
            page[i] = word_of(n, w, i);
    }
}

/* must_be_row -- the row of a writer is as after its transaction n. */
static inline void
must_be_row(unsigned char *file, unsigned w, uint64_t n, unsigned pages, const char *what)
{
    for (unsigned j = 0; j < pages; j++) {
        volatile uint64_t *page = row_page(file, w, j);
        uint64_t last = last_write(n, j);

        for (size_t i = 0; i < words_of_page(); i++) {
            if (page[i] != word_of(last, w, i))
                env_fail(__FILE__, __LINE__,
                         "%s: half a transaction: writer %u at %" PRIu64
                         ", word %zu of page %u is not of %" PRIu64 " but of %" PRIu64,
                         what, w, n, i, j, last, page[0]);
        }
    }
}

#endif /* XAC_TEST_STEPS_ROW_H */
