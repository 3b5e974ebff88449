/* SPDX-License-Identifier: MIT */
/*
 * hash.c -- resident pages by number, as in the thesis: buckets with a lock of readers and
 * writers.  To be compared with; see swz_config.has_hash.
 */
#include <config.h>

#include "page.h"

#include <errno.h>
#include <stdlib.h>

static struct swz_bucket *
bucket_of(const struct swz_space *s, uint32_t page)
{
    return &s->hash[(uint32_t)(page * UINT64_C(0x9e3779b97f4a7c15) >> 32) & s->hash_mask];
}

int
swz_hash_open(struct swz_space *s, uint32_t n_frames)
{
    uint32_t n = 1;

    while (n < n_frames / 2) /* two entries for each bucket */
        n *= 2;
    if (posix_memalign((void **)&s->hash, FRAME_LINE, n * sizeof *s->hash) != 0)
        return ENOMEM;
    memset(s->hash, 0, n * sizeof *s->hash);
    s->hash_mask = n - 1;
    return 0;
}

bool
swz_hash_find(const struct swz_space *s, uint32_t page, uint32_t *framep)
{
    struct swz_bucket *b = bucket_of(s, page);
    bool found = false;

    latch_take_s(&b->lock);
    for (int i = 0; i < HASH_ENTRIES && !found; i++) {
        found = b->pages[i] == page;
        if (found)
            *framep = b->frames[i];
    }
    latch_drop(&b->lock, false);
    return found;
}

void
swz_hash_add(struct swz_space *s, uint32_t page, uint32_t frame)
{
    struct swz_bucket *b = bucket_of(s, page);
    int at = -1;

    latch_take_x(&b->lock);
    for (int i = 0; i < HASH_ENTRIES; i++)
        if (b->pages[i] == page) {
            at = i;
            break;
        } else if (b->pages[i] == 0) {
            at = i;
        }
    if (at >= 0) {
        b->pages[at] = page;
        b->frames[at] = frame;
    }
    latch_drop(&b->lock, true);
}

void
swz_hash_remove(struct swz_space *s, uint32_t page)
{
    struct swz_bucket *b = bucket_of(s, page);

    latch_take_x(&b->lock);
    for (int i = 0; i < HASH_ENTRIES; i++)
        if (b->pages[i] == page)
            b->pages[i] = 0;
    latch_drop(&b->lock, true);
}
