/* SPDX-License-Identifier: MIT */
/*
 * engine_thesis.c -- see engine_thesis.h.
 *
 * The rest of this engine is as in fault_sigsegv.c.
 */
#include <config.h>

#include "bench/cost/engine_thesis.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xac.h>

#include "libxac/base/sys.h"
#include "libxac/fault/fault_engine.h"
#include "libxac/fault/fault_signal.h"

static bool is_chosen;

/* show -- one page of the file, mapped privately; a version is copied into it. */
XAC_SIGSAFE static int
show(struct xac_area *area, uint64_t page_no, const uint8_t *bytes,
     enum xac_protection prot)
{
    uint8_t *at = xac_area_at(area, page_no);
    bool is_version = bytes != NULL;
    int flags = is_version || prot == XAC_PROT_WRITE ? PROT_READ | PROT_WRITE : PROT_READ;

    if (xac_sys.mmap(at, area->page_size, flags, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                     area->owner->fd(area),
                     (off_t)((area->first + page_no) * area->page_size))
        == MAP_FAILED)
        return errno;
    if (!is_version)
        return 0;
    memcpy(at, bytes, area->page_size);
    return prot == XAC_PROT_WRITE
               ? 0
               : xac_engine_sigsegv.protect(area, page_no, 1, XAC_PROT_READ);
}

static int
moved(struct xac_area *area)
{
    return xac_engine_sigsegv.moved(area);
}

XAC_SIGSAFE static int
protect(struct xac_area *area, uint64_t first, uint64_t n, enum xac_protection prot)
{
    return xac_engine_sigsegv.protect(area, first, n, prot);
}

static bool
is_private(const struct xac_area *area, uint64_t page_no)
{
    return xac_engine_sigsegv.maps->is_private(area, page_no);
}

static void
abandon(struct xac_area *area)
{
    xac_engine_sigsegv.abandon(area);
}

static int
rejoin(struct xac_area *area)
{
    return xac_engine_sigsegv.rejoin(area);
}

static int
start(const struct xac_area_owner *owner)
{
    return xac_signal_start(false, owner);
}

static void
forked(void)
{
    xac_engine_sigsegv.forked();
}

static const struct xac_engine_maps maps = {
    .reads_first = true,
    .is_private = is_private,
    .show = show,
};

static const struct xac_engine engine = {
    .name = "thesis",
    .kind = XAC_ENGINE_THESIS,
    .maps = &maps,
    .attach = xac_signal_attach,
    .detach = xac_signal_detach,
    .moved = moved,
    .protect = protect,
    .discard = xac_engine_discard,
    .abandon = abandon,
    .rejoin = rejoin,
    .start = start,
    .stop = xac_signal_stop,
    .forked = forked,
};

/* xac_engine_plug -- in the place of the library's function, which has no engine. */
const struct xac_engine *
xac_engine_plug(void)
{
    return is_chosen ? &engine : NULL;
}

int
bench_engine_choose(const char *name)
{
    is_chosen = strcmp(name, engine.name) == 0;
    return setenv("XAC_ENGINE", is_chosen ? "" : name, 1) == 0 ? 0 : errno;
}
