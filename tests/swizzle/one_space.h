/* SPDX-License-Identifier: MIT */
/*
 * one_space.h -- what tests of one tree, with room for all of it, begin with.
 */
#ifndef XAC_TEST_ONE_SPACE_H
#define XAC_TEST_ONE_SPACE_H

#include "swz.h"

#define N_KEYS 400u /* of 200 bytes in 2 KiB pages: a tree of height 3 */

static struct swz_space *space;
static struct swz_thread *th;

/* space_make -- with room for all of it. */
static inline void
space_make(struct swz_config config)
{
    config.n_pages = config.n_pages == 0 ? 4096 : config.n_pages;
    config.n_frames = config.n_frames == 0 ? 1024 : config.n_frames;
    config.n_threads = config.n_threads == 0 ? 4 : config.n_threads;
    config.page_bytes = 2048;
    space = space_of(config, 200, 16, &th);
    for (uint64_t i = 0; i < N_KEYS; i++)
        must_ok(put(th, 0, i));
    must(height_of(space, 0) >= 3);
    must_ok(swz_checkpoint(space)); /* everything clean */
}

static inline void
space_end(void)
{
    must_be_whole(space);
    swz_leave(th);
    must_ok(swz_close(space));
}

static inline void
traverse(void)
{
    for (uint64_t i = 0; i < N_KEYS; i++)
        must_ok(get(th, 0, i));
}

/* evict_all -- whatever can leave; ret how many. */
static inline uint64_t
evict_all(void)
{
    uint64_t n = 0, before;

    do {
        before = n;
        for (uint32_t i = 0; i < space->pool->region->n_frames_all; i++)
            n += xac_frames_evict(th->user, i);
    } while (n != before);
    return n;
}

/* n_references -- words that are references now, all pages together. */
static inline uint64_t
n_references(void)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < space->pool->region->n_frames_all; i++)
        n += side_of(space, i)->n_swizzled;
    return n;
}

/* path_to -- fix the root and the pages to key 0, shared; ret how many. */
static inline unsigned
path_to(struct swz_page *path)
{
    unsigned n = 1;

    swz_page_fix_root(th, 0, false, &path[0]);
    for (; path[n - 1].node->level > 0; n++)
        must_ok(swz_page_fix_child(th, &path[n - 1], (swz_word *)&path[n - 1].node->link,
                                   false, &path[n]));
    return n;
}

static inline void
path_drop(const struct swz_page *path, unsigned n)
{
    while (n > 0)
        page_unfix(th, &path[--n]);
}

#endif /* XAC_TEST_ONE_SPACE_H */
