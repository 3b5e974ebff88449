/* SPDX-License-Identifier: MIT */
/*
 * populate.c -- see populate.h.
 */
#include <config.h>

#include "base/populate.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/kernel.h"
#include "base/sys.h"

/* No page is smaller. */
#define PAGE_LEAST 4096u

XAC_SIGSAFE void
xac_populate(void *at, size_t n_bytes)
{
    uintptr_t first = (uintptr_t)at & ~(uintptr_t)(PAGE_LEAST - 1);
    uintptr_t end = (uintptr_t)at + n_bytes;

    end = (end + PAGE_LEAST - 1) & ~(uintptr_t)(PAGE_LEAST - 1);
    if (n_bytes == 0
        || xac_sys.madvise((void *)first, end - first, MADV_POPULATE_WRITE) == 0)
        return;
    /* An older kernel, or larger pages.  Adding 0 stores and changes nothing, also if others store
       there. */
    for (; first < end; first += PAGE_LEAST)
        (void)atomic_fetch_add_explicit((_Atomic uint64_t *)first, 0,
                                        memory_order_relaxed);
}
