/* SPDX-License-Identifier: MIT */
/*
 * engine_thesis.c -- see engine_thesis.h.
 *
 * The rest of this engine is that of fault_sigsegv.c.
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

/* Filled in when an engine is chosen, which is before the library asks for it. */
static struct xac_engine_maps maps;
static struct xac_engine engine;
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

/* xac_engine_plug -- in the place of the library's function, which has no engine. */
const struct xac_engine *
xac_engine_plug(void)
{
    return is_chosen ? &engine : NULL;
}

int
bench_engine_choose(const char *name)
{
    maps = *xac_engine_sigsegv.maps;
    maps.reads_first = true;
    maps.show = show;
    engine = xac_engine_sigsegv;
    engine.name = "thesis";
    engine.kind = XAC_ENGINE_THESIS;
    engine.maps = &maps;
    is_chosen = strcmp(name, engine.name) == 0;
    return setenv("XAC_ENGINE", is_chosen ? "" : name, 1) == 0 ? 0 : errno;
}
