/* SPDX-License-Identifier: MIT */
/*
 * swz.h -- what tests of swizzled trees share: spaces, keys that say what their value is, threads.
 */
#ifndef XAC_TEST_SWZ_H
#define XAC_TEST_SWZ_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac_frames.h>

#include "../common/env.h"
#include "swizzle/page.h"

static inline uint64_t
mix(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A value that only this key has; as long as the tree's values are, at most 1024. */
static inline void
value_of(uint64_t key, uint32_t size, unsigned char *value)
{
    for (uint32_t i = 0; i < size; i++)
        value[i] = (unsigned char)(key * 31 + i * 7 + (key >> 8));
}

static inline int
put(struct swz_thread *th, unsigned tree, uint64_t key)
{
    unsigned char k[1024] = {0}, v[1024];
    const struct btree *t = &th->space->trees[tree].layout;

    tree_key_u64(key, k);
    value_of(key, t->value_size, v);
    return swz_insert(th, tree, k, v, TREE_PUT);
}

static inline int
take(struct swz_thread *th, unsigned tree, uint64_t key)
{
    unsigned char k[1024] = {0};

    tree_key_u64(key, k);
    return swz_delete(th, tree, k);
}

/* get -- 0 or ENOENT, or another error; a wrong value fails the test. */
static inline int
get(struct swz_thread *th, unsigned tree, uint64_t key)
{
    unsigned char k[1024] = {0}, v[1024], want[1024];
    const struct btree *t = &th->space->trees[tree].layout;
    int rc;

    tree_key_u64(key, k);
    rc = swz_search(th, tree, k, v);
    value_of(key, t->value_size, want);
    if (rc == 0)
        must(memcmp(v, want, t->value_size) == 0);
    return rc;
}

/* space_of -- in memory, with tree 0 of such keys and values, and a thread. */
static inline struct swz_space *
space_of(struct swz_config config, uint32_t key_size, uint32_t value_size,
         struct swz_thread **thp)
{
    struct swz_space *s = NULL;

    must_ok(swz_open(NULL, &config, &s));
    must_ok(swz_join(s, thp));
    must_ok(swz_tree_create(*thp, 0, key_size, value_size));
    return s;
}

static inline struct swz_stats
stats_of(const struct swz_space *s)
{
    struct swz_stats stats;

    swz_get_stats(s, &stats);
    return stats;
}

static inline void
must_be_whole(struct swz_space *s)
{
    const char *wrong = swz_check(s);

    if (wrong != NULL)
        env_fail(__FILE__, __LINE__, "space: %s", wrong);
}

static inline unsigned
height_of(struct swz_space *s, unsigned tree)
{
    return s->trees[tree].root->level + 1u;
}

/* Threads that run fn(number) at once. */
#define CREW_MAX 16

struct crew_arg {
    void (*fn)(unsigned number);
    unsigned number;
};

static inline void *
crew_main(void *arg)
{
    struct crew_arg *a = arg;

    a->fn(a->number);
    return NULL;
}

static inline void
crew_run(unsigned n, void (*fn)(unsigned))
{
    pthread_t threads[CREW_MAX];
    struct crew_arg args[CREW_MAX];

    must(n <= CREW_MAX);
    for (unsigned i = 0; i < n; i++) {
        args[i] = (struct crew_arg){.fn = fn, .number = i};
        must_eq(pthread_create(&threads[i], NULL, crew_main, &args[i]), 0);
    }
    for (unsigned i = 0; i < n; i++)
        must_eq(pthread_join(threads[i], NULL), 0);
}

#endif /* XAC_TEST_SWZ_H */
