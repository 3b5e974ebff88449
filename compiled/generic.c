/* SPDX-License-Identifier: MIT */
/*
 * generic.c -- atomic operations on objects of any size, which are calls of libatomic.
 *
 * WHAT      As noticed.c.  A source of its own, for only a program with such calls needs libatomic.
 */
#include <config.h>

#include <stdbool.h>
#include <stddef.h>

#include <xac_touch.h>

/* A function of libatomic, and ours, to which renamed symbols lead. */
#define GENERIC(type, name, ...)                                          \
 type libatomic_##name(__VA_ARGS__) __asm__("__atomic_" #name);           \
 type noticed_##name(__VA_ARGS__) __asm__("xac_noticed___atomic_" #name); \
 type noticed_##name(__VA_ARGS__)

GENERIC(void, load, size_t n, void *at, void *to, int order)
{
    xac_load(at, n);
    xac_store(to, n);
    libatomic_load(n, at, to, order);
}

GENERIC(void, store, size_t n, void *at, void *from, int order)
{
    xac_load(from, n);
    xac_store(at, n);
    libatomic_store(n, at, from, order);
}

GENERIC(void, exchange, size_t n, void *at, void *from, void *to, int order)
{
    xac_load(from, n);
    xac_store(at, n);
    xac_store(to, n);
    libatomic_exchange(n, at, from, to, order);
}

GENERIC(bool, compare_exchange, size_t n, void *at, void *expected, void *from, int order,
        int order_failed)
{
    xac_load(from, n);
    xac_store(at, n);
    xac_store(expected, n);
    return libatomic_compare_exchange(n, at, expected, from, order, order_failed);
}
