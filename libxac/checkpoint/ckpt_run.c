/* SPDX-License-Identifier: MIT */
/*
 * ckpt_run.c -- see ckpt_run.h.
 */
#include <config.h>

#include "checkpoint/ckpt_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "shared/env_state.h"
#include "store/version.h"

/* Version slots that are put into order at a time: some 1 ms. */
#define PART_VSLOTS 4096

static int
by_page(const void *a, const void *b)
{
    uint64_t x = ((const struct xac_ckpt_place *)a)->page_id;
    uint64_t y = ((const struct xac_ckpt_place *)b)->page_id;

    return (x > y) - (x < y);
}

/* find_places -- of the version slots from `first` to `last` that hold versions; ret how many. */
static uint64_t
find_places(const struct xac_env *env, uint64_t first, uint64_t last,
            struct xac_ckpt_place *place)
{
    uint64_t n = 0;

    xac_assert(place != NULL);
    for (uint64_t f = first; f <= last; f++) {
        const struct xac_vslot *vslot = xac_vslot_at(env, f);
        const struct xac_page *page;

        /* Acquire: pairs with the release that made it a version. */
        if (xac_vslot_state(atomic_load_explicit(&vslot->word, memory_order_acquire))
            != XAC_VSLOT_VERSION)
            continue;
        page = (const struct xac_page *)xac_shm_at(
            &env->shm, atomic_load_explicit(&vslot->page, memory_order_relaxed));
        place[n].page_id = atomic_load_explicit(&page->id, memory_order_relaxed);
        place[n++].vslot = f;
    }
    xac_assert(n <= last - first + 1);
    return n;
}

int
xac_ckpt_run_init(struct xac_ckpt_run *run, const struct xac_env *env, uint64_t n_vslots)
{
    bool is_durable = xac_env_is_durable(env);
    uint64_t n_parts = (n_vslots + PART_VSLOTS - 1) / PART_VSLOTS;

    *run = (struct xac_ckpt_run){.most = is_durable ? 1 : XAC_CKPT_RUN_MAX,
                                 .n_vslots = n_vslots};
    run->bytes = (uint8_t *)malloc(run->most * env->page_size);
    if (!is_durable) {
        run->place =
            (struct xac_ckpt_place *)malloc((n_vslots + 1) * sizeof run->place[0]);
        run->part = (struct xac_ckpt_part *)malloc((n_parts + 1) * sizeof run->part[0]);
    }
    if (run->bytes == NULL || (!is_durable && (run->place == NULL || run->part == NULL)))
        return xac_err(ENOMEM, "checkpoint");
    xac_assert(run->most > 0);
    xac_assert(run->n == 0);
    xac_assert(run->n_parts == 0);
    return 0;
}

bool
xac_ckpt_run_order(struct xac_ckpt_run *run, const struct xac_env *env)
{
    uint64_t first = run->n_ordered + 1, last = run->n_ordered + PART_VSLOTS, n;
    struct xac_ckpt_place *place;

    if (run->place == NULL || run->n_ordered == run->n_vslots)
        return true;
    last = last < run->n_vslots ? last : run->n_vslots;
    place = run->place + (first - 1);
    n = find_places(env, first, last, place);
    qsort(place, n, sizeof *place, by_page);
    run->part[run->n_parts++] = (struct xac_ckpt_part){.next = place, .end = place + n};
    run->n_ordered = last;
    xac_assert(run->n_ordered <= run->n_vslots);
    return false;
}

uint64_t
xac_ckpt_run_vslot(struct xac_ckpt_run *run, uint64_t i)
{
    struct xac_ckpt_part *least = NULL;

    xac_assert(run->place == NULL || run->n_ordered == run->n_vslots);
    if (run->place == NULL)
        return i;
    for (uint64_t k = 0; k < run->n_parts; k++) {
        struct xac_ckpt_part *part = &run->part[k];

        if (part->next < part->end
            && (least == NULL || part->next->page_id < least->next->page_id))
            least = part;
    }
    return least != NULL ? least->next++->vslot : 0;
}

void
xac_ckpt_run_fini(struct xac_ckpt_run *run)
{
    free(run->place);
    free(run->part);
    free(run->bytes);
    run->place = NULL;
    run->part = NULL;
    run->bytes = NULL;
    xac_assert(run->bytes == NULL);
}

bool
xac_ckpt_run_takes(const struct xac_ckpt_run *run, uint64_t page_id)
{
    return run->n == 0
           || (run->n < run->most && xac_page_file(page_id) == run->file
               && xac_page_no(page_id) == run->first + run->n);
}

void
xac_ckpt_run_add(struct xac_ckpt_run *run, struct xac_page *page, uint64_t page_id,
                 const uint8_t *bytes, uint64_t page_size)
{
    xac_assert(xac_ckpt_run_takes(run, page_id));
    xac_assert(run->n < run->most);
    xac_assert(page != NULL);
    xac_assert(bytes != NULL);
    xac_assert(xac_page_file(page_id) != 0);
    if (run->n == 0) {
        run->file = xac_page_file(page_id);
        run->first = xac_page_no(page_id);
    }
    memcpy(run->bytes + run->n * page_size, bytes, page_size);
    run->page[run->n++] = page;
    xac_assert(run->n <= run->most);
}
