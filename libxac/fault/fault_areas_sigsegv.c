/* SPDX-License-Identifier: MIT */
/*
 * fault_areas_sigsegv.c -- see fault_areas.h: by libsigsegv, which is under the GPL.
 */
#include <config.h>

#include "fault/fault_areas.h"

#include <assert.h>

#include <sigsegv.h>

XAC_SIGSAFE static sigsegv_dispatcher *
tree_of(struct xac_areas *set)
{
    static_assert(sizeof(sigsegv_dispatcher) == sizeof set->root, "it is one pointer");
    return (sigsegv_dispatcher *)(void *)&set->root;
}

void
xac_areas_init(struct xac_areas *set)
{
    sigsegv_init(tree_of(set));
}

void *
xac_areas_insert(struct xac_areas *set, void *base, size_t length, xac_area_fn fn,
                 void *arg)
{
    return sigsegv_register(tree_of(set), base, length, fn, arg);
}

void
xac_areas_remove(struct xac_areas *set, void *ticket)
{
    sigsegv_unregister(tree_of(set), ticket);
}

XAC_SIGSAFE bool
xac_areas_dispatch(struct xac_areas *set, void *addr)
{
    return sigsegv_dispatch(tree_of(set), addr) != 0;
}
