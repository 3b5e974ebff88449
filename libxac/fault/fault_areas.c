/* SPDX-License-Identifier: MIT */
/*
 * fault_areas.c -- see fault_areas.h: our own, a sorted array.
 *
 * A process has few views, and changes them rarely; so a change moves the array's elements.
 */
#include <config.h>

#include "fault/fault_areas.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 16 /* elements; doubled when there are more */

struct area {
    uint8_t *base, *end;
    xac_area_fn fn;
    void *arg;
};

XAC_SIGSAFE static struct area *
areas_of(const struct xac_areas *set)
{
    return (struct area *)set->root;
}

/* place_of -- the first range that ends behind an address; n: none. */
XAC_SIGSAFE static size_t
place_of(const struct xac_areas *set, const void *addr)
{
    const struct area *area = areas_of(set);
    size_t low = 0, high = set->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if ((uintptr_t)area[middle].end > (uintptr_t)addr)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void
xac_areas_init(struct xac_areas *set)
{
    xac_assert(set->n == 0);
}

/* grow -- room for one range more; false: no memory. */
static bool
grow(struct xac_areas *set)
{
    size_t room = set->room > 0 ? 2 * set->room : ROOM_FIRST;
    void *p;

    if (set->n < set->room)
        return true;
    p = realloc(set->root, room * sizeof(struct area));
    if (p == NULL)
        return false;
    set->root = p;
    set->room = room;
    return true;
}

void *
xac_areas_insert(struct xac_areas *set, void *base, size_t length, xac_area_fn fn,
                 void *arg)
{
    size_t at = place_of(set, base);
    struct area new = {.base = (uint8_t *)base,
                       .end = (uint8_t *)base + length,
                       .fn = fn,
                       .arg = arg};
    struct area *area;

    xac_assert(base != NULL && length > 0);
    if (!grow(set))
        return NULL;
    area = areas_of(set);
    xac_require(at == set->n || (uintptr_t) new.end <= (uintptr_t)area[at].base);
    memmove(area + at + 1, area + at, (set->n - at) * sizeof *area);
    area[at] = new;
    set->n++;
    return base;
}

void
xac_areas_remove(struct xac_areas *set, void *ticket)
{
    size_t at = place_of(set, ticket);
    struct area *area = areas_of(set);

    xac_require(at < set->n && area[at].base == ticket);
    set->n--;
    memmove(area + at, area + at + 1, (set->n - at) * sizeof *area);
}

XAC_SIGSAFE bool
xac_areas_dispatch(struct xac_areas *set, void *addr)
{
    size_t at = place_of(set, addr);
    const struct area *area = areas_of(set) + at;

    return at < set->n && (uintptr_t)area->base <= (uintptr_t)addr
           && area->fn(addr, area->arg) != 0;
}
