/* SPDX-License-Identifier: MIT */
/*
 * fault_engine.c -- see fault_engine.h.
 */
#include <config.h>

#include "fault/fault_engine.h"

#include <errno.h>
#include <sys/mman.h>

#include <xac.h>

#include "base/err.h"
#include "base/sys.h"
#include "fault/fault_signal.h"
#include "fault/fault_valgrind.h"

static const struct xac_engine *const engines[] = {&xac_engine_uffd, &xac_engine_scan,
                                                   &xac_engine_sigsegv};

static const struct xac_engine *chosen = &xac_engine_sigsegv;
static int
    fell_back; /* errno value for which it is not the one that was wanted, or 0    */
static enum xac_scanning scanning = XAC_SCAN_NEVER;

/* of_kind -- an engine by its number; the first one for XAC_ENGINE_BEST. */
static const struct xac_engine *
of_kind(uint32_t kind)
{
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
        if ((uint32_t)engines[i]->kind == kind)
            return engines[i];
    }
    xac_require(kind == XAC_ENGINE_BEST);
    return engines[0];
}

__attribute__((weak)) const struct xac_engine *
xac_engine_plug(void)
{
    return NULL;
}

int
xac_engine_start(const struct xac_area_owner *owner, uint32_t kind)
{
    const struct xac_engine *plugged = xac_engine_plug();
    const struct xac_engine *wanted = plugged != NULL ? plugged : of_kind(kind);
    bool is_free = plugged == NULL && kind == XAC_ENGINE_BEST;
    int rc = xac_valgrind_check();

    if (rc != 0)
        return rc;
    fell_back = wanted->start(owner);
    chosen = fell_back == 0 ? wanted : &xac_engine_sigsegv;
    scanning = chosen == &xac_engine_scan ? XAC_SCAN_ALWAYS
               : is_free                  ? XAC_SCAN_IF_CHEAPER
                                          : XAC_SCAN_NEVER;
    if (fell_back != 0 && wanted == &xac_engine_scan && xac_engine_uffd.start(owner) == 0)
        chosen = &xac_engine_uffd;
    else if (fell_back != 0)
        rc = chosen->start(owner);
    return rc == 0 ? 0 : xac_err(rc, "installing the fault handler");
}

enum xac_scanning
xac_engine_scanning(void)
{
    return scanning;
}

void
xac_engine_stop(void)
{
    chosen->stop();
}

void
xac_engine_forked(void)
{
    xac_signal_forked();
    chosen->forked();
}

int
xac_engine_kind(int *whyp)
{
    *whyp = fell_back;
    return chosen->kind;
}

/* ---- One area -------------------------------------------------------------------------- */

XAC_SIGSAFE int
xac_engine_discard(struct xac_area *area, uint64_t first, uint64_t n)
{
    return xac_sys.madvise(xac_area_at(area, first), n * area->page_size,
                           xac_area_is_shared(area) ? MADV_REMOVE : MADV_DONTNEED)
                   == 0
               ? 0
               : errno;
}

XAC_SIGSAFE int
xac_batch_flush(struct xac_page_batch *b)
{
    size_t n = b->n;

    b->n = 0;
    return n > 0 ? b->area->ops->fills->take_back(b->area, b->range, n) : 0;
}

XAC_SIGSAFE int
xac_batch_add(struct xac_page_batch *b, struct xac_area *area, uint64_t page_no)
{
    struct xac_page_range *last = b->n > 0 ? &b->range[b->n - 1] : NULL;
    int rc = 0;

    if (last != NULL && b->area == area && last->first + last->n == page_no) {
        last->n++;
        return 0;
    }
    if (b->n == XAC_BATCH_MAX || (b->n > 0 && b->area != area))
        rc = xac_batch_flush(b);
    b->area = area;
    b->range[b->n++] = (struct xac_page_range){.first = page_no, .n = 1};
    return rc;
}

int
xac_engine_attach(struct xac_area *area)
{
    int rc;

    area->ops = chosen;
    rc = area->ops->attach(area);
    if (rc == 0 || area->ops == &xac_engine_sigsegv || area->is_memory_only)
        return rc;
    fell_back = rc;
    area->ops = &xac_engine_sigsegv;
    rc = xac_area_map_file(area, 0, area->n_pages);
    return rc == 0 ? area->ops->attach(area) : rc;
}

int
xac_engine_fall_back(struct xac_area *area)
{
    int rc = area->ops->fills != NULL ? area->ops->fills->leave(area) : 0;

    xac_assert(!area->is_memory_only);
    if (rc == 0)
        area->ops = &xac_engine_sigsegv;
    return rc;
}

/* or_fall_back -- let sigsegv take over if the engine has failed and sigsegv can. */
static int
or_fall_back(struct xac_area *area, int rc)
{
    if (rc == 0 || area->ops->fills == NULL || area->is_memory_only)
        return rc;
    fell_back = rc;
    return xac_engine_fall_back(area);
}

int
xac_engine_moved(struct xac_area *area)
{
    return or_fall_back(area, area->ops->moved(area));
}

int
xac_engine_rejoin(struct xac_area *area)
{
    return or_fall_back(area, area->ops->rejoin(area));
}
