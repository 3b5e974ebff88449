/* SPDX-License-Identifier: MIT */
/*
 * sized.h -- structures that a caller gives with their size (include/xac_stats.h says why).
 *
 * A program that was compiled with another version of the library may know fewer fields or
 * more.
 *
 * THREADS  Any; the fault handler does not use them.
 * INVARIANT
 *   1. Such a structure has no padding at its end: a new field begins where the old structure
 *      ended, not inside it.
 */
#ifndef XAC_SIZED_H
#define XAC_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* XAC_SIZED_IS_DENSE -- invariant 1, of a type and its last field, for static_assert. */
#define XAC_SIZED_IS_DENSE(type, last) \
 (sizeof(type) == offsetof(type, last) + sizeof((type *)NULL)->last)

/*
 * xac_sized_fill -- copy as much as the caller has room for; fill the rest with zero bytes.
 *
 * in   out, size         the caller's structure; size holds the first field at least
 * in   from, from_bytes  the structure as this library knows it
 */
static inline void
xac_sized_fill(void *out, size_t size, const void *from, size_t from_bytes)
{
    size_t both = size < from_bytes ? size : from_bytes;

    memcpy(out, from, both);
    memset((char *)out + both, 0, size - both);
}

#endif /* XAC_SIZED_H */
