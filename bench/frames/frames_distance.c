/* SPDX-License-Identifier: MIT */
/*
 * frames_distance.c -- stack distances of a trace, without any pool, and what follows from them.
 */
#include <config.h>

#include "bench/frames/frames_trace.h"

#include <stdlib.h>

#include "bench/kit/util.h"

/*
 * The times of the last references of all pages are counted by a tree of sums (Fenwick): those behind a page's last one
 * are of other pages.
 */
static void
sums_add(uint32_t *sums, size_t n, size_t at, int by)
{
    for (at++; at <= n; at += at & -at)
        sums[at] += (uint32_t)by;
}

static uint64_t
sums_upto(const uint32_t *sums, size_t at)
{
    uint64_t sum = 0;

    for (at++; at > 0; at -= at & -at)
        sum += sums[at];
    return sum;
}

int
bench_distances(struct distances *d, const struct trace *t)
{
    uint32_t *sums = calloc(t->n + 1, sizeof *sums);
    size_t *last = calloc(t->page_max + 1, sizeof *last); /* + 1; 0: never */

    *d = (struct distances){.trace = t,
                            .others = malloc(t->n * sizeof *d->others),
                            .before = malloc(t->n * sizeof *d->before)};
    if (sums == NULL || last == NULL || d->others == NULL || d->before == NULL) {
        free(sums);
        free(last);
        return bench_fail("frames: no memory for distances");
    }
    for (size_t i = 0; i < t->n; i++) {
        size_t at = last[t->pages[i]];

        d->others[i] = d->before[i] = BENCH_NO_DISTANCE;
        if (at == 0) {
            d->n_pages++;
        } else {
            d->others[i] = (uint32_t)(d->n_pages - sums_upto(sums, at - 1));
            d->before[i] = d->others[at - 1];
            sums_add(sums, t->n, at - 1, -1);
        }
        sums_add(sums, t->n, i, 1);
        last[t->pages[i]] = i + 1;
    }
    free(sums);
    free(last);
    return 0;
}

void
bench_distances_free(struct distances *d)
{
    free(d->others);
    free(d->before);
    *d = (struct distances){.others = NULL};
}

uint64_t
bench_distances_lru(const struct distances *d, uint64_t n_frames)
{
    uint64_t hits = 0;

    for (size_t i = 0; i < d->trace->n; i++)
        hits += d->others[i] != BENCH_NO_DISTANCE && d->others[i] < n_frames;
    return hits;
}

/* is_within -- do two numbers differ by less than that? */
static bool
is_within(uint64_t a, uint64_t b, uint64_t by)
{
    return (a > b ? a - b : b - a) < by;
}

uint64_t
bench_distances_edge(const struct distances *d, uint64_t n_frames, uint64_t late)
{
    uint64_t n = 0;

    for (size_t i = 0; i < d->trace->n; i++)
        n += d->others[i] != BENCH_NO_DISTANCE && is_within(d->others[i], n_frames, late);
    return n;
}

uint64_t
bench_distances_loop(const struct distances *d, uint64_t n_frames, uint64_t late)
{
    uint64_t n = 0;

    for (size_t i = 0; i < d->trace->n; i++) {
        uint32_t now = d->others[i], before = d->before[i];

        n += now != BENCH_NO_DISTANCE && before != BENCH_NO_DISTANCE
             && is_within(now, before, before / 10 + 1) && is_within(now, n_frames, late);
    }
    return n;
}
