/* SPDX-License-Identifier: MIT */
/*
 * area.c -- see area.h.
 */
#include <config.h>

#include "fault/area.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/sys.h"

int
xac_area_map_file(struct xac_area *a, uint64_t page_no, uint64_t n)
{
    return xac_sys.mmap(xac_area_at(a, page_no), n * a->page_size, PROT_NONE,
                        MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, a->owner->fd(a),
                        (off_t)((a->first + page_no) * a->page_size))
                   == MAP_FAILED
               ? errno
               : 0;
}

void
xac_area_open_pagemap(struct xac_area *a)
{
    a->pagemap = xac_handle_keep(xac_sys.openat(AT_FDCWD, "/proc/self/pagemap",
                                                O_RDONLY | O_CLOEXEC, 0),
                                 &a->pagemap_handle);
}

int
xac_area_pagemap(struct xac_area *a)
{
    if (a->pagemap >= 0 && !xac_handle_is_ours(a->pagemap, &a->pagemap_handle))
        xac_area_open_pagemap(a);
    return a->pagemap;
}
