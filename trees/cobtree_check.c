/* SPDX-License-Identifier: MIT */
/*
 * cobtree_check.c -- verify a cache-oblivious B-tree; see cobtree_check() in cobtree.h.
 *
 * Trusts nothing but the handle's sizes.  There are no references in the segment that could
 * lead astray: the one number that decides where something lies is the height.
 */
#include <config.h>

#include "cobtree_layout.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

struct check {
    const struct cobtree *t;
    struct cobtree_report *report;
    unsigned height;           /* levels of the index                                 */
    const unsigned char *last; /* greatest key so far; NULL: none                     */
};

static int violation(struct check *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Note the violation in words.  ret EUCLEAN. */
static int
violation(struct check *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(c->report->text, sizeof c->report->text, fmt, ap);
    va_end(ap);
    return EUCLEAN;
}

static int
check_header(struct check *c)
{
    const struct cobtree *t = c->t;
    const struct cobtree_header *h = header_of(t);

    if (h->magic != COBTREE_MAGIC || h->version != COBTREE_VERSION
        || h->key_size != t->key_size || h->value_size != t->value_size
        || h->height_max != t->height_max)
        return violation(c, "header: not what it was when the tree was opened");
    if (h->height > h->height_max)
        return violation(c, "header: height %u, at most %u", h->height, h->height_max);
    c->height = h->height;
    return 0;
}

/* Invariants (1) to (3) of one leaf. */
static int
check_leaf(struct check *c, uint64_t number)
{
    const struct cobtree *t = c->t;
    const struct cobtree_leaf *leaf = leaf_of(t, number);
    struct cobtree_report *report = c->report;
    unsigned n = bits_count(leaf->used);

    if (n < COBTREE_LEAF_LEAST && c->height > 0)
        return violation(c, "leaf %llu: %u entries, at least %u expected",
                         (unsigned long long)number, n, COBTREE_LEAF_LEAST);
    for (unsigned cell = 0; cell < COBTREE_CELLS; cell++) {
        const unsigned char *key = leaf_key(t, leaf, cell);

        if (cell > 0 && memcmp(key - t->key_size, key, t->key_size) > 0)
            return violation(c, "leaf %llu: key %u is below the one before",
                             (unsigned long long)number, cell);
        if ((leaf->used >> cell & 1) == 0)
            continue;
        if (c->last != NULL && memcmp(c->last, key, t->key_size) >= 0)
            return violation(c, "leaf %llu: entry %u is not above the one before",
                             (unsigned long long)number, cell);
        c->last = key;
    }
    report->entries += n;
    if (n < report->least)
        report->least = n;
    if (n > report->most)
        report->most = n;
    return 0;
}

/* Invariant (4); keys do not descend within a leaf, so its first and last key are enough. */
static int
check_separator(struct check *c, uint64_t s, const unsigned char *key)
{
    const struct cobtree *t = c->t;
    const unsigned char *left = leaf_key(t, leaf_of(t, s - 1), COBTREE_CELLS - 1);
    const unsigned char *right = leaf_key(t, leaf_of(t, s), 0);

    if (memcmp(left, key, t->key_size) >= 0)
        return violation(c, "separator %llu: not above leaf %llu", (unsigned long long)s,
                         (unsigned long long)s - 1);
    if (memcmp(right, key, t->key_size) < 0)
        return violation(c, "separator %llu: above leaf %llu", (unsigned long long)s,
                         (unsigned long long)s);
    return 0;
}

/*
 * Walk a part of the index in the order of memory, as veb.h defines it.
 *
 * in   depth, i  its root
 * in   levels    how many it has, at least 1
 * in   place     where it begins
 */
static int
check_index(struct check *c, unsigned depth, uint64_t i, unsigned levels, uint64_t place)
{
    unsigned cut = veb_cut(levels);
    uint64_t n_upper = (UINT64_C(1) << cut) - 1;
    uint64_t n_lower = (UINT64_C(1) << (levels - cut)) - 1;
    int rc;

    if (levels == 1) {
        uint64_t s = 2 * (i - (UINT64_C(1) << depth)) + 1;

        return check_separator(c, s << (c->height - 1 - depth),
                               separator_at(c->t, place));
    }
    rc = check_index(c, depth, i, cut, place);
    place += n_upper;
    for (uint64_t b = 0; rc == 0 && b <= n_upper; b++, place += n_lower)
        rc = check_index(c, depth + cut, (i << cut) + b, levels - cut, place);
    return rc;
}

static int
check_body(void *check, struct tree_request *r)
{
    struct check *c = check;
    struct cobtree_report *report = c->report;
    int rc = check_header(c);

    (void)r;
    if (rc != 0)
        return rc;
    report->height = c->height;
    report->leaves = UINT64_C(1) << c->height;
    report->cells = report->leaves * COBTREE_CELLS;
    report->least = COBTREE_CELLS;
    for (uint64_t i = 0; rc == 0 && i < report->leaves; i++)
        rc = check_leaf(c, i);
    if (rc == 0 && c->height > 0)
        rc = check_index(c, 0, 1, c->height, 0);
    return rc;
}

int
cobtree_check(struct cobtree *t, struct cobtree_report *report)
{
    struct check c = {.t = t, .report = report};
    struct tree_request r = {0};

    *report = (struct cobtree_report){.height_max = t->height_max,
                                      .key_size = t->key_size,
                                      .value_size = t->value_size};
    return tree_query(check_body, &c, &r);
}
