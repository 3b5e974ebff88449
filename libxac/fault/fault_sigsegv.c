/* SPDX-License-Identifier: MIT */
/*
 * fault_sigsegv.c -- the portable engine (Thesis 3.1): private mappings of the file, and
 * mprotect.
 *
 * The fault's error code tells a write from a read, so that a first write is one trap, not
 * two as in the Thesis.  Where a machine does not say, an access is taken for a read, and the
 * second trap on a readable page for a write (fault_signal.c).
 */
#include <config.h>

#include <errno.h>
#include <sys/mman.h>

#include <xac.h>

#include "base/sys.h"
#include "fault/fault_engine.h"
#include "fault/fault_signal.h"

XAC_SIGSAFE static int
protect(struct xac_area *area, uint64_t first, uint64_t n, enum xac_protection prot)
{
    static const int flags[] = {PROT_NONE, PROT_READ,
                                PROT_READ | PROT_WRITE}; /* by enum xac_protection */

    return xac_sys.mprotect(xac_area_at(area, first), n * area->page_size, flags[prot])
                   == 0
               ? 0
               : errno;
}

/* is_private -- /proc/self/pagemap: present or swapped, and not a page of the file. */
static bool
is_private(const struct xac_area *area, uint64_t page_no)
{
    uint64_t at = (uint64_t)(uintptr_t)xac_area_at(area, page_no);
    uint64_t bits;
    size_t got;

    if (!xac_handle_is_ours(area->pagemap, &area->pagemap_handle)
        || xac_read_full(area->pagemap, &bits, sizeof bits, at / area->page_size * 8,
                         &got)
               != 0
        || got != sizeof bits)
        return true;
    return (bits >> 62) != 0 && (bits >> 61 & 1) == 0;
}

/* moved -- what is mapped there has no access, as it should. */
static int
moved(struct xac_area *area)
{
    xac_signal_moved(area);
    return 0;
}

static int
start(const struct xac_area_owner *owner)
{
    return xac_signal_start(false, owner);
}

/* abandon -- the mappings are the child's own; that is all that is shared. */
static void
abandon(struct xac_area *area)
{
    (void)protect(area, 0, area->n_pages, XAC_PROT_NONE);
}

static int
rejoin(struct xac_area *area)
{
    (void)area;
    return 0;
}

static void
nothing(void)
{
}

static const struct xac_engine_maps maps = {
    .is_private = is_private,
};

const struct xac_engine xac_engine_sigsegv = {
    .name = "sigsegv",
    .kind = XAC_ENGINE_SIGSEGV,
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
    .forked = nothing,
};
