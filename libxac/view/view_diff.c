/* SPDX-License-Identifier: MIT */
/*
 * view_diff.c -- see view_diff.h.
 */
#include <config.h>

#include "view/view_diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/version.h"
#include "view/view.h"

#define UNIT sizeof(uint64_t)

/* What is compared. */
struct diff {
    struct xac_view *v;
    uint64_t from, to;
    uint8_t *before; /* room for a page                                                */
    xac_diff_fn *fn;
    void *arg;
};

/* is_same -- of a unit of both. */
static bool
is_same(const uint8_t *a, const uint8_t *b, size_t at)
{
    xac_assert(at % UNIT == 0);
    return memcmp(a + at, b + at, UNIT) == 0;
}

/* tell -- the ranges of a page that differ. */
static int
tell(const struct diff *d, uint64_t page_no, const uint8_t *after)
{
    const struct xac_area *a = &d->v->area;
    size_t size = a->page_size, end;
    int rc = 0;

    xac_assert(after != NULL);
    for (size_t at = 0; at < size && rc == 0; at = end) {
        struct xac_change change = {.file = d->v->name};

        while (at < size && is_same(d->before, after, at))
            at += UNIT;
        for (end = at; end < size && !is_same(d->before, after, end); end += UNIT)
            ;
        if (at == end)
            break;
        change.offset = (a->first + page_no) * size + at;
        change.length = end - at;
        change.before = d->before + at;
        change.after = after + at;
        change.address = xac_area_at(a, page_no) + at;
        rc = d->fn(d->arg, &change);
    }
    return rc;
}

/* compare -- one page that has been written since the older state. */
static int
compare(const struct diff *d, uint64_t page_no, const struct xac_page *page)
{
    uint64_t old, new;
    const uint8_t *bytes;

    xac_assert(page != NULL);
    xac_assert(page_no < d->v->area.n_pages);
    if (xac_version_find(d->v->env, page, d->from, &old)
        == xac_version_find(d->v->env, page, d->to, &new))
        return 0;
    bytes = xac_view_base_bytes(d->v, page_no, page, d->from);
    if (bytes == NULL)
        return xac_err(errno, "xDiff: %s", d->v->name);
    memcpy(d->before, bytes, d->v->area.page_size);
    bytes = xac_view_base_bytes(d->v, page_no, page, d->to);
    if (bytes == NULL)
        return xac_err(errno, "xDiff: %s", d->v->name);
    return tell(d, page_no, bytes);
}

int
xac_view_diff(struct xac_view *v, uint64_t from, uint64_t to, xac_diff_fn *fn, void *arg)
{
    struct diff d = {.v = v, .from = from, .to = to, .fn = fn, .arg = arg};
    struct xac_file *file = xac_file_at(v->env, v->file);
    uint64_t older = from < to ? from : to;
    int rc = 0;

    xac_assert(fn != NULL);
    d.before = (uint8_t *)malloc(v->area.page_size);
    if (d.before == NULL)
        return xac_err(ENOMEM, "xDiff");
    for (uint64_t p = 0; p < v->area.n_pages && rc == 0; p++) {
        const struct xac_page *page =
            xac_ptab_find(&v->env->shm, &file->root, v->area.first + p);

        /* Relaxed: behind the acquire of C, when the states were held. */
        if (page != NULL
            && atomic_load_explicit(&page->written, memory_order_relaxed) > older)
            rc = compare(&d, p, page);
    }
    free(d.before);
    return rc;
}
