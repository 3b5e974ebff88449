/* SPDX-License-Identifier: MIT */
/*
 * tree_model.h -- a tree beside a sorted array that must always agree with it.
 *
 * Included by the tests of all trees and builds.  The including source chooses the build
 * (TREE_SERIAL, see trees/tree.h), and with MODEL_COBTREE the cache-oblivious tree: then
 * TREE(insert) is cobtree_insert, and struct model_tree is struct cobtree.
 */
#ifndef XAC_TEST_TREE_MODEL_H
#define XAC_TEST_TREE_MODEL_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"

#ifdef MODEL_COBTREE
# include "cobtree.h"
# define TREE(name)    cobtree_##name
# define model_tree    cobtree
# define MODEL_KEY_MAX COBTREE_KEY_MAX
#else
# include "btree.h"
# define TREE(name)    btree_##name
# define model_tree    btree
# define MODEL_KEY_MAX BTREE_KEY_MAX
#endif

/* Entries, key then value, sorted. */
struct model {
    size_t key_size, value_size, entry_size;
    size_t n, room;
    unsigned char *entries;
};

static inline void
model_init(struct model *m, const struct TREE(config) * config)
{
    *m = (struct model){.key_size = config->key_size, .value_size = config->value_size};
    m->entry_size = m->key_size + m->value_size;
}

static inline void
model_fini(struct model *m)
{
    free(m->entries);
}

static inline unsigned char *
model_at(const struct model *m, size_t i)
{
    return m->entries + i * m->entry_size;
}

/* Rank of the first entry that is not less than `key`. */
static inline size_t
model_rank(const struct model *m, const unsigned char *key)
{
    size_t lo = 0, hi = m->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (memcmp(model_at(m, mid), key, m->key_size) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static inline bool
model_has(const struct model *m, const unsigned char *key, size_t *rankp)
{
    *rankp = model_rank(m, key);
    return *rankp < m->n && memcmp(model_at(m, *rankp), key, m->key_size) == 0;
}

static inline void
model_put(struct model *m, const unsigned char *key, const unsigned char *value)
{
    size_t i;

    if (!model_has(m, key, &i)) {
        if (m->n == m->room) {
            m->room = m->room > 0 ? 2 * m->room : 64;
            m->entries = realloc(m->entries, m->room * m->entry_size);
            must(m->entries != NULL);
        }
        memmove(model_at(m, i + 1), model_at(m, i), (m->n - i) * m->entry_size);
        m->n++;
    }
    memcpy(model_at(m, i), key, m->key_size);
    if (m->value_size > 0)
        memcpy(model_at(m, i) + m->key_size, value, m->value_size);
}

static inline void
model_remove(struct model *m, size_t i)
{
    m->n--;
    memmove(model_at(m, i), model_at(m, i + 1), (m->n - i) * m->entry_size);
}

/* Where a scan stands in the model. */
struct model_cursor {
    const struct model *m;
    size_t next; /* rank expected next                                                */
    size_t stop; /* rank at which the visit ends the scan                             */
};

static inline int
model_visit(void *arg, const void *key, const void *value)
{
    struct model_cursor *c = arg;
    const unsigned char *entry;

    if (c->next == c->stop)
        return -7;
    must(c->next < c->m->n);
    entry = model_at(c->m, c->next++);
    must(memcmp(key, entry, c->m->key_size) == 0);
    must(memcmp(value, entry + c->m->key_size, c->m->value_size) == 0);
    return 0;
}

/* The tree holds exactly the model, and is sound. */
static inline void
model_compare(const struct model *m, struct model_tree *t)
{
    struct model_cursor c = {.m = m, .stop = SIZE_MAX};
    struct TREE(report) report;
    int rc = TREE(check)(t, &report);

    if (rc != 0)
        env_fail(__FILE__, __LINE__, "check: %d %s", rc, report.text);
    must_eq(report.entries, m->n);
    must_ok(TREE(scan)(t, NULL, NULL, model_visit, &c));
    must_eq(c.next, m->n);
}

/* Key number `id`; the numbers are in key order.  One-byte keys: id < 256. */
static inline void
model_key(const struct model *m, uint64_t id, unsigned char *key)
{
    memset(key, 0, m->key_size);
    if (m->key_size < 8) {
        for (size_t i = m->key_size; i-- > 0; id >>= 8)
            key[i] = (unsigned char)id;
        return;
    }
    /* Longer keys share their first 8 bytes by fives. */
    tree_key_u64(m->key_size == 8 ? id << 20 : id / 5, key);
    if (m->key_size > 8)
        key[m->key_size - 1] = (unsigned char)(id % 5);
}

static inline void
model_value(const struct model *m, uint64_t *rng, unsigned char *value)
{
    for (size_t i = 0; i < m->value_size; i += 8) {
        uint64_t word = rnd_next(rng);
        size_t left = m->value_size - i;

        memcpy(value + i, &word, left < 8 ? left : 8);
    }
}

/* Insert, in both modes. */
static inline void
model_step_insert(struct model *m, struct model_tree *t, const unsigned char *key,
                  uint64_t *rng)
{
    unsigned char value[4096];
    size_t i;
    bool had = model_has(m, key, &i), existed = !had;
    int mode = rnd_below(rng, 2) ? TREE_PUT : TREE_ADD;

    model_value(m, rng, value);
    must_rc(TREE(insert)(t, key, m->value_size > 0 ? value : NULL, mode, &existed),
            had && mode == TREE_ADD ? EEXIST : 0);
    must_eq(existed, had);
    if (!had || mode == TREE_PUT)
        model_put(m, key, value);
}

static inline void
model_step_delete(struct model *m, struct model_tree *t, const unsigned char *key)
{
    size_t i;
    bool had = model_has(m, key, &i);

    must_rc(TREE(delete)(t, key), had ? 0 : ENOENT);
    if (had)
        model_remove(m, i);
}

/* Search, seek, first and last. */
static inline void
model_step_read(const struct model *m, struct model_tree *t, const unsigned char *key)
{
    unsigned char k[MODEL_KEY_MAX], v[4096];
    size_t i;
    bool had = model_has(m, key, &i);

    must_rc(TREE(search)(t, key, v), had ? 0 : ENOENT);
    if (had)
        must(memcmp(v, model_at(m, i) + m->key_size, m->value_size) == 0);
    must_rc(TREE(seek)(t, key, k, v), i < m->n ? 0 : ENOENT);
    if (i < m->n) {
        must(memcmp(k, model_at(m, i), m->key_size) == 0);
        must(memcmp(v, model_at(m, i) + m->key_size, m->value_size) == 0);
    }
    must_rc(TREE(first)(t, k, NULL), m->n > 0 ? 0 : ENOENT);
    if (m->n > 0)
        must(memcmp(k, model_at(m, 0), m->key_size) == 0);
    must_rc(TREE(last)(t, k, v), m->n > 0 ? 0 : ENOENT);
    if (m->n > 0)
        must(memcmp(k, model_at(m, m->n - 1), m->key_size) == 0);
}

/* A range [from, to), sometimes stopped half-way. */
static inline void
model_step_scan(const struct model *m, struct model_tree *t, const unsigned char *from,
                const unsigned char *to, uint64_t *rng)
{
    struct model_cursor c = {.m = m, .next = model_rank(m, from), .stop = SIZE_MAX};
    size_t end = model_rank(m, to);

    if (end < c.next)
        end = c.next;
    if (end > c.next && rnd_below(rng, 4) == 0) {
        c.stop = c.next + rnd_below(rng, end - c.next);
        must_rc(TREE(scan)(t, from, to, model_visit, &c), -7);
        must_eq(c.next, c.stop);
        return;
    }
    must_ok(TREE(scan)(t, from, to, model_visit, &c));
    must_eq(c.next, end);
}

/* Random walks of a cursor while the tree changes under it. */
static inline void
model_run_cursor(struct model *m, struct model_tree *t, uint64_t *rng, uint64_t n_keys)
{
    unsigned char key[MODEL_KEY_MAX], got[MODEL_KEY_MAX], value[4096];
    struct TREE(cursor) c = {.t = t};
    bool placed = false;

    for (int step = 0; step < 6000; step++) {
        uint64_t dice = rnd_below(rng, 10);
        bool lean = step % 2000 < 1000, forward = rnd_below(rng, 2);
        size_t rank = model_rank(m, c.key);
        size_t want; /* rank of the entry to come to; m->n or more: none */
        int rc;

        if (dice < 3) {
            model_key(m, rnd_below(rng, n_keys), key);
            if (rnd_below(rng, 10) < (lean ? 7u : 3u))
                model_step_insert(m, t, key, rng);
            else
                model_step_delete(m, t, key);
            continue;
        }
        if (dice == 3) {
            model_key(m, rnd_below(rng, n_keys), key);
            want = model_rank(m, key);
            rc = TREE(cursor_seek)(&c, key, got, value);
        } else if (forward) {
            want = placed ? rank + model_has(m, c.key, &rank) : 0;
            rc = TREE(cursor_next)(&c, got, value);
        } else {
            want = (placed ? rank : m->n) - 1; /* none: wraps to the largest number */
            rc = TREE(cursor_prev)(&c, got, value);
        }
        must_rc(rc, want < m->n ? 0 : ENOENT);
        if (rc != 0)
            continue;
        placed = true;
        must(memcmp(got, model_at(m, want), m->key_size) == 0);
        must(memcmp(value, model_at(m, want) + m->key_size, m->value_size) == 0);
        must(memcmp(c.key, got, m->key_size) == 0);
    }
    model_compare(m, t);
}

/* Source of a load: entries from .. to-1 of a model. */
struct model_source {
    const struct model *m;
    size_t from, to;
};

static inline bool
model_next(void *arg, uint64_t i, const void **keyp, const void **valuep)
{
    const struct model_source *s = arg;

    if (i >= s->to - s->from)
        return false;
    *keyp = model_at(s->m, s->from + i);
    *valuep = model_at(s->m, s->from + i) + s->m->key_size;
    return true;
}

/*
 * Random operations on a tree that starts as the model does.
 *
 * in   n_ops   operations
 * in   n_keys  key numbers are below this
 * in   lean    of 100 changes how many are inserts
 */
static inline void
model_run(struct model *m, struct model_tree *t, uint64_t *rng, size_t n_ops,
          uint64_t n_keys, unsigned lean)
{
    unsigned char key[MODEL_KEY_MAX], to[MODEL_KEY_MAX];

    for (size_t i = 0; i < n_ops; i++) {
        uint64_t dice = rnd_below(rng, 100);

        model_key(m, rnd_below(rng, n_keys), key);
        if (dice < 10) {
            model_step_read(m, t, key);
        } else if (dice < 12) {
            model_key(m, rnd_below(rng, n_keys), to);
            model_step_scan(m, t, key, to, rng);
        } else if (rnd_below(rng, 100) < lean) {
            model_step_insert(m, t, key, rng);
        } else {
            model_step_delete(m, t, key);
        }
        if (i % 499 == 0)
            model_compare(m, t);
    }
    model_compare(m, t);
}

/* Delete everything, in random order. */
static inline void
model_run_empty(struct model *m, struct model_tree *t, uint64_t *rng)
{
    unsigned char key[MODEL_KEY_MAX];

    while (m->n > 0) {
        memcpy(key, model_at(m, rnd_below(rng, m->n)), m->key_size);
        model_step_delete(m, t, key);
        if (m->n % 97 == 0 && m->n < 3000)
            model_compare(m, t);
    }
    model_compare(m, t);
}

#endif /* XAC_TEST_TREE_MODEL_H */
