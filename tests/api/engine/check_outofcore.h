/* SPDX-License-Identifier: MIT */
/*
 * check_outofcore.h -- what the parts of check_outofcore share: an environment with FRAMES
 * frames, the least that is allowed, and a file of ten times as many pages.
 */
#ifndef XAC_CHECK_OUTOFCORE_H
#define XAC_CHECK_OUTOFCORE_H

#include <check.h>

#include "env.h"

#define MODE(i) ((i) == 0 ? NONDURABLE : DURABLE)

#define FRAMES  ((size_t)256)
#define N_PAGES (10 * FRAMES)

/* Attach with a bound; the file is mapped. */
uint64_t *attach(int flags);

/* In a transaction: every page gets the number base + its place, in its first word and in a
   word that depends on it. */
void write_all(uint64_t *x, uint64_t base);

/* In a transaction; in a query of its own: that is what they hold. */
void must_hold(uint64_t *x, uint64_t base);
void query_must_hold(uint64_t *x, uint64_t base);

/* How many of a mapping's n pages have memory, as the kernel says. */
size_t present(const uint64_t *x, size_t n_pages);

/* The other part of the suite, check_outofcore_aliases.c: pages that are mapped twice. */
void add_aliases(Suite *s);

#endif /* XAC_CHECK_OUTOFCORE_H */
