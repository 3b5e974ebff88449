/* SPDX-License-Identifier: MIT */
/*
 * traced.c -- see traced.h.
 */
#include <config.h>

#include "bench/simulate/traced.h"

#include <stdlib.h>
#include <string.h>

static struct {
    struct bench_accesses *to;
    uintptr_t base;
    size_t size;
} recorded;

void
bench_traced_record(struct bench_accesses *to, const void *base, size_t size)
{
    recorded.to = to;
    recorded.base = (uintptr_t)base;
    recorded.size = size;
}

/* note -- an access of n bytes. */
static void
note(const void *at, size_t n, bool is_store)
{
    uintptr_t offset = (uintptr_t)at - recorded.base;
    struct bench_accesses *to = recorded.to;

    if (to == NULL || offset >= recorded.size || n == 0)
        return;
    if (to->n == to->room) {
        size_t room = to->room == 0 ? 1024 : 2 * to->room;
        struct bench_access *v = realloc(to->v, room * sizeof *v);

        if (v == NULL) {
            to->is_cut = true;
            return;
        }
        to->v = v;
        to->room = room;
    }
    to->v[to->n++] = (struct bench_access){(uint32_t)offset, (uint32_t)n, is_store};
}

/* A function that the compiler calls: no header declares it. */
#define HOOK(type, name, ...)           \
 type bench_traced_##name(__VA_ARGS__); \
 type bench_traced_##name(__VA_ARGS__)

#define TOUCH(name, n, is_store) \
 HOOK(void, name, void *at)      \
 {                               \
  note(at, n, is_store);         \
 }

#define KINDS(prefix, n)          \
 TOUCH(prefix##read##n, n, false) \
 TOUCH(prefix##write##n, n, true)

KINDS(, 1)
KINDS(, 2)
KINDS(, 4)
KINDS(, 8)
KINDS(, 16)
KINDS(unaligned_, 2)
KINDS(unaligned_, 4)
KINDS(unaligned_, 8)
KINDS(unaligned_, 16)

HOOK(void, read_range, void *at, size_t n)
{
    note(at, n, false);
}

HOOK(void, write_range, void *at, size_t n)
{
    note(at, n, true);
}

HOOK(void, init, void)
{
}

/* ---- Functions of the C library --------------------------------------------------------------- */

HOOK(void *, memcpy, void *to, const void *from, size_t n)
{
    note(from, n, false);
    note(to, n, true);
    return memcpy(to, from, n);
}

HOOK(void *, memmove, void *to, const void *from, size_t n)
{
    note(from, n, false);
    note(to, n, true);
    return memmove(to, from, n);
}

HOOK(void *, memset, void *to, int byte, size_t n)
{
    note(to, n, true);
    return memset(to, byte, n);
}

HOOK(int, memcmp, const void *a, const void *b, size_t n)
{
    note(a, n, false);
    note(b, n, false);
    return memcmp(a, b, n);
}
