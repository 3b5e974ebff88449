/* SPDX-License-Identifier: MIT */
/*
 * steps_row.h -- what the pages of a writer's row hold after its transaction n, for check_steps.c.
 */
#ifndef XAC_TEST_STEPS_ROW_H
#define XAC_TEST_STEPS_ROW_H

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

#endif /* XAC_TEST_STEPS_ROW_H */
