/* SPDX-License-Identifier: MIT */
/*
 * tree_serial.h -- what the tests of the serial trees do alike: segments between guard
 * pages, insertion in several orders, filling a segment to the last byte.
 *
 * Included in the place of tree_model.h, after the same choices (see there).
 */
#ifndef XAC_TEST_TREE_SERIAL_H
#define XAC_TEST_TREE_SERIAL_H

#include <sys/mman.h>

#include "tree_model.h"

#define GUARD ((size_t)4096)

/* A zero-filled segment between two pages without access. */
static inline unsigned char *
segment_new(size_t size)
{
    unsigned char *p = mmap(NULL, size + 2 * GUARD, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    must(p != MAP_FAILED);
    must(mprotect(p + GUARD, size, PROT_READ | PROT_WRITE) == 0);
    return p + GUARD;
}

static inline void
segment_free(unsigned char *segment, size_t size)
{
    must(munmap(segment - GUARD, size + 2 * GUARD) == 0);
}

/* Key numbers that keys of this size have, at most `most`. */
static inline uint64_t
keys_of(size_t key_size, uint64_t most)
{
    return key_size == 1 ? 256 : most;
}

/* A tree's life: growing, changing, shrinking. */
static inline void
model_run_life(struct model *m, struct model_tree *t, uint64_t *rng, uint64_t n_keys)
{
    model_run(m, t, rng, 4000 / ENV_DEAR, n_keys, 80);
    model_run(m, t, rng, 3000 / ENV_DEAR, n_keys, 50);
    model_run(m, t, rng, 3000 / ENV_DEAR, n_keys, 15);
}

/* ---- orders ------------------------------------------------------------------------- */

enum order {
    ASCENDING,
    DESCENDING,
    SHUFFLED,
    INWARD,
    N_ORDERS
};

/* The i-th of n numbers. */
static inline uint64_t
order_id(int order, uint64_t i, uint64_t n)
{
    if (order == ASCENDING)
        return i;
    if (order == DESCENDING)
        return n - 1 - i;
    if (order == INWARD) /* from both ends to the middle */
        return i % 2 == 0 ? i / 2 : n - 1 - i / 2;
    return i * 7919 % n; /* n is no multiple of the prime 7919 */
}

static inline void
model_insert_all(struct model *m, struct model_tree *t, int order, uint64_t n,
                 uint64_t *rng)
{
    unsigned char key[MODEL_KEY_MAX], value[4096];

    for (uint64_t i = 0; i < n; i++) {
        model_key(m, order_id(order, i, n), key);
        model_value(m, rng, value);
        must_ok(TREE(insert)(t, key, value, TREE_ADD, NULL));
        model_put(m, key, value);
    }
    model_compare(m, t);
}

static inline void
model_delete_all(struct model *m, struct model_tree *t, int order, uint64_t n)
{
    unsigned char key[MODEL_KEY_MAX];

    for (uint64_t i = 0; i < n; i++) {
        model_key(m, order_id(order, i, n), key);
        model_step_delete(m, t, key);
        if (i % 499 == 0)
            model_compare(m, t);
    }
}

/* ---- a full segment ------------------------------------------------------------------ */

/*
 * model_fill -- insert random keys until 20 inserts have failed for lack of room; one that
 * fails changes no byte of the segment.
 *
 * in   prepare  called before each insert; NULL for none
 */
static inline void
model_fill(struct model *m, struct model_tree *t, uint64_t *rng,
           const unsigned char *segment, size_t size,
           void (*prepare)(struct model_tree *, uint64_t *))
{
    unsigned char key[MODEL_KEY_MAX], value[4096];
    unsigned char *before = malloc(size);
    int failed = 0;

    must(before != NULL);
    while (failed < 20) {
        int rc;

        model_key(m, rnd_below(rng, (uint64_t)1 << 40), key);
        model_value(m, rng, value);
        if (prepare != NULL)
            prepare(t, rng);
        if (failed > 0)
            memcpy(before, segment, size);
        rc = TREE(insert)(t, key, value, TREE_ADD, NULL);
        if (rc == 0) {
            model_put(m, key, value);
            continue;
        }
        must_eq(rc, ENOSPC);
        if (failed++ == 0)
            continue; /* from here on there is a picture of the moment before */
        must(memcmp(before, segment, size) == 0);
    }
    free(before);
    model_compare(m, t);
}

/* model_refill -- delete all but `left` entries, then insert n. */
static inline void
model_refill(struct model *m, struct model_tree *t, uint64_t *rng, size_t left, size_t n)
{
    unsigned char key[MODEL_KEY_MAX];

    while (m->n > left) {
        memcpy(key, model_at(m, rnd_below(rng, m->n)), m->key_size);
        model_step_delete(m, t, key);
    }
    model_run(m, t, rng, n, (uint64_t)1 << 40, 100);
}

/* ---- damage -------------------------------------------------------------------------- */

/* model_sample -- a tree of n zero values, to be damaged. */
static inline void
model_sample(struct model_tree *t, const struct TREE(config) * config, int order,
             uint64_t n)
{
    unsigned char key[MODEL_KEY_MAX], value[4096] = {0};
    struct model m;

    model_init(&m, config);
    for (uint64_t i = 0; i < n; i++) {
        model_key(&m, order_id(order, i, n), key);
        must_ok(TREE(insert)(t, key, value, TREE_ADD, NULL));
    }
}

/* model_expect_damage -- the check finds damage number i, and has words for it. */
static inline void
model_expect_damage(struct model_tree *t, int i)
{
    struct TREE(report) report;

    must_eq(TREE(check)(t, &report), EUCLEAN);
    must(report.text[0] != '\0');
    printf("damage %d: %s\n", i, report.text);
}

#endif /* XAC_TEST_TREE_SERIAL_H */
