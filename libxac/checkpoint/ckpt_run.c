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

/* A version slot and the page that it is a version of. */
struct place {
    uint64_t page_id, vslot;
};

static int
by_page(const void *a, const void *b)
{
    uint64_t x = ((const struct place *)a)->page_id;
    uint64_t y = ((const struct place *)b)->page_id;

    return (x > y) - (x < y);
}

/* find_places -- of the version slots that hold versions; ret how many. */
static uint64_t
find_places(const struct xac_env *env, uint64_t n_vslots, struct place *place)
{
    uint64_t n = 0;

    xac_assert(place != NULL);
    for (uint64_t f = 1; f <= n_vslots; f++) {
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
    xac_assert(n <= n_vslots);
    return n;
}

/* make_order -- ret 0 or ENOMEM. */
static int
make_order(struct xac_ckpt_run *run, const struct xac_env *env, uint64_t *n_vslotsp)
{
    size_t room = *n_vslotsp + 1;
    struct place *place = (struct place *)malloc(room * sizeof *place);
    uint64_t n;

    run->order = (uint64_t *)malloc(room * sizeof run->order[0]);
    if (place == NULL || run->order == NULL) {
        free(place);
        return xac_err(ENOMEM, "checkpoint");
    }
    n = find_places(env, *n_vslotsp, place);
    qsort(place, n, sizeof *place, by_page);
    for (uint64_t i = 0; i < n; i++)
        run->order[i] = place[i].vslot;
    free(place);
    *n_vslotsp = n;
    xac_assert(n < room);
    return 0;
}

int
xac_ckpt_run_init(struct xac_ckpt_run *run, const struct xac_env *env,
                  uint64_t *n_vslotsp)
{
    bool is_durable = xac_env_is_durable(env);

    *run = (struct xac_ckpt_run){.most = is_durable ? 1 : XAC_CKPT_RUN_MAX};
    run->bytes = (uint8_t *)malloc(run->most * env->page_size);
    if (run->bytes == NULL)
        return xac_err(ENOMEM, "checkpoint");
    xac_assert(run->most > 0);
    xac_assert(run->n == 0);
    return is_durable ? 0 : make_order(run, env, n_vslotsp);
}

void
xac_ckpt_run_fini(struct xac_ckpt_run *run)
{
    free(run->order);
    free(run->bytes);
    run->order = NULL;
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
