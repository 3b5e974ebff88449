/* SPDX-License-Identifier: MIT */
/*
 * guard.c -- see guard.h.
 *
 * A search walks through all mappings.  Only a fault that is not in any of them comes here,
 * and most of those end the program.
 */
#include <config.h>

#include "view/guard.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/lock.h"
#include "base/sys.h"

struct xac_guard {
    struct xac_guard *next; /* newest first                                           */
    uint8_t *base;
    size_t length;
    size_t longest; /* that it has been                                               */
    uint64_t offset;
    size_t held;    /* bytes: behind it, or if it has gone, from its start on        */
    uint64_t event; /* number of the last change of it                               */
    const char *fate;
    bool is_clone;
    char path[];
};

static struct xac_guard *mapped;
static struct xac_guard *gone[XAC_GUARD_GONE]; /* a ring                               */
static unsigned next_gone;
static uint64_t last_event;
static size_t held_of_gone;
static atomic_flag busy; /* the lock of all these                                      */

XAC_SIGSAFE static void
lock(void)
{
    /* Acquire: pairs with the release in unlock. */
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
        (void)sched_yield();
}

XAC_SIGSAFE static void
unlock(void)
{
    /* Release: pairs with the acquire in lock. */
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

static void
begin(sigset_t *signals)
{
    xac_signals_block(signals);
    lock();
}

static void
end(const sigset_t *signals)
{
    unlock();
    xac_signals_restore(signals);
}

/* ---- What is held ------------------------------------------------------------------------- */

/* release -- give back what a guard holds; locked. */
static void
release(struct xac_guard *g)
{
    if (g->held == 0)
        return;
    if (g->fate == NULL) {
        (void)xac_sys.munmap(g->base + g->length, g->held);
    } else {
        (void)xac_sys.munmap(g->base, g->held);
        xac_assert(held_of_gone >= g->held);
        held_of_gone -= g->held;
    }
    g->held = 0;
    xac_assert(g->held == 0);
}

/* release_gone -- of mappings that have gone, the oldest first, until at most so many bytes are
   held; locked. */
static void
release_gone(size_t most)
{
    xac_assert(next_gone < XAC_GUARD_GONE);
    for (unsigned i = 0; i < XAC_GUARD_GONE && held_of_gone > most; i++) {
        struct xac_guard *g = gone[(next_gone + i) % XAC_GUARD_GONE];

        if (g != NULL)
            release(g);
    }
}

/* hold -- the addresses of one that has just gone, if what is behind it is held; locked. */
static void
hold(struct xac_guard *g)
{
    size_t all = g->length + g->held;
    struct rlimit limit;
    void *p = MAP_FAILED;

    xac_assert(g->fate == NULL);
    if (g->held == 0)
        return;
    if (all <= XAC_GUARD_HELD_MAX && getrlimit(RLIMIT_AS, &limit) == 0
        && limit.rlim_cur == RLIM_INFINITY) {
        release_gone(XAC_GUARD_HELD_MAX - all);
        p = xac_sys.mmap(g->base, g->length, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
                             | MAP_FIXED_NOREPLACE,
                         -1, 0);
    }
    if (p != g->base) {
        if (p != MAP_FAILED)
            (void)xac_sys.munmap(p, g->length);
        release(g);
        return;
    }
    g->held = all;
    held_of_gone += all;
    xac_assert(held_of_gone <= XAC_GUARD_HELD_MAX);
}

/* held_from -- where what a guard holds begins. */
XAC_SIGSAFE static uintptr_t
held_from(const struct xac_guard *g)
{
    return (uintptr_t)g->base + (g->fate == NULL ? g->length : 0);
}

/* yield -- one guard; locked. */
static void
yield(struct xac_guard *g, uint64_t address, size_t length)
{
    uintptr_t from = held_from(g);

    xac_assert(length > 0);
    if (g->held != 0 && from < address + length && address < from + g->held)
        release(g);
}

void
xac_guard_yield(uint64_t address, size_t length)
{
    sigset_t signals;

    xac_assert(length > 0);
    begin(&signals);
    for (struct xac_guard *g = mapped; g != NULL; g = g->next)
        yield(g, address, length);
    for (unsigned i = 0; i < XAC_GUARD_GONE; i++) {
        if (gone[i] != NULL)
            yield(gone[i], address, length);
    }
    end(&signals);
}

/* map -- ret MAP_FAILED with errno. */
static void *
map(size_t length, int fd, uint64_t offset)
{
    xac_assert(length > 0);
    return xac_sys.mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE, fd,
                        (off_t)offset);
}

void *
xac_guard_map(size_t length, int fd, uint64_t offset, size_t *heldp)
{
    void *p = map(length + XAC_GUARD_HELD, fd, offset);
    sigset_t signals;

    xac_assert(length > 0);
    xac_assert(length <= SIZE_MAX - XAC_GUARD_HELD);
    *heldp = p != MAP_FAILED ? XAC_GUARD_HELD : 0;
    if (p != MAP_FAILED)
        return p;
    begin(&signals);
    release_gone(0);
    end(&signals);
    return map(length, fd, offset);
}

/* ---- Changes ------------------------------------------------------------------------------ */

struct xac_guard *
xac_guard_enter(const char *path, uint8_t *base, size_t length, uint64_t offset,
                bool is_clone, size_t held)
{
    size_t n = strlen(path) + 1;
    struct xac_guard *g = (struct xac_guard *)malloc(sizeof *g + n);
    sigset_t signals;

    xac_assert(path[0] != '\0');
    xac_assert(length > 0);
    if (g == NULL && held > 0)
        (void)xac_sys.munmap(base + length, held);
    if (g == NULL)
        return NULL;
    *g = (struct xac_guard){.base = base,
                            .length = length,
                            .longest = length,
                            .offset = offset,
                            .held = held,
                            .is_clone = is_clone};
    memcpy(g->path, path, n);
    begin(&signals);
    g->event = ++last_event;
    g->next = mapped;
    mapped = g;
    end(&signals);
    return g;
}

void
xac_guard_resize(struct xac_guard *g, size_t length)
{
    sigset_t signals;

    xac_assert(length > 0);
    xac_assert(g == NULL || g->fate == NULL);
    if (g == NULL)
        return;
    begin(&signals);
    g->event = ++last_event;
    g->length = length;
    g->longest = length > g->longest ? length : g->longest;
    end(&signals);
}

void
xac_guard_leave(struct xac_guard *g, const char *fate)
{
    struct xac_guard **link = &mapped, *unwanted = g;
    sigset_t signals;

    xac_assert(g == NULL || g->fate == NULL);
    if (g == NULL)
        return;
    begin(&signals);
    while (*link != g) {
        xac_assert(*link != NULL);
        link = &(*link)->next;
    }
    *link = g->next;
    if (fate == NULL) {
        release(g);
    } else {
        hold(g);
        g->event = ++last_event;
        g->fate = fate;
        unwanted = gone[next_gone];
        if (unwanted != NULL)
            release(unwanted);
        gone[next_gone] = g;
        next_gone = (next_gone + 1) % XAC_GUARD_GONE;
    }
    end(&signals);
    free(unwanted);
}

void
xac_guard_forget_gone(void)
{
    for (unsigned i = 0; i < XAC_GUARD_GONE; i++) {
        struct xac_guard *g;
        sigset_t signals;

        begin(&signals);
        g = gone[i];
        if (g != NULL)
            release(g);
        gone[i] = NULL;
        end(&signals);
        free(g);
    }
}

/* ---- Searches ----------------------------------------------------------------------------- */

/* missed -- what an address outside of it has missed of a mapping; ret false: it is too far. */
XAC_SIGSAFE static bool
missed(const struct xac_guard *g, uintptr_t addr, struct xac_guard_hit *hit)
{
    uintptr_t base = (uintptr_t)g->base, end = base + g->length;

    xac_assert(g->fate == NULL);
    xac_assert(g->length <= g->longest);
    if (addr >= end) {
        hit->what = XAC_ASTRAY_BEHIND;
        hit->distance = addr - end;
        return hit->distance < XAC_GUARD_REACH || addr - base < g->longest;
    }
    hit->what = XAC_ASTRAY_BEFORE;
    hit->distance = base - addr;
    return addr < base && hit->distance <= XAC_GUARD_REACH;
}

/* nearest -- the mapping that has been missed by the least; NULL: none. */
XAC_SIGSAFE static const struct xac_guard *
nearest(uintptr_t addr, struct xac_guard_hit *hit)
{
    const struct xac_guard *found = NULL;
    struct xac_guard_hit at;

    for (const struct xac_guard *g = mapped; g != NULL; g = g->next) {
        if (missed(g, addr, &at) && (found == NULL || at.distance < hit->distance)) {
            found = g;
            hit->what = at.what;
            hit->distance = at.distance;
        }
    }
    xac_assert(found == NULL || found->fate == NULL);
    return found;
}

/* latest -- the last mapping that has been there; NULL: none. */
XAC_SIGSAFE static const struct xac_guard *
latest(uintptr_t addr)
{
    const struct xac_guard *found = NULL;

    for (unsigned i = 0; i < XAC_GUARD_GONE; i++) {
        const struct xac_guard *g = gone[i];

        if (g != NULL && addr >= (uintptr_t)g->base
            && addr - (uintptr_t)g->base < (g->held > 0 ? g->held : g->length)
            && (found == NULL || g->event > found->event))
            found = g;
    }
    xac_assert(found == NULL || found->fate != NULL);
    return found;
}

/* describe -- what the handler says of a mapping. */
XAC_SIGSAFE static void
describe(const struct xac_guard *g, uintptr_t addr, struct xac_guard_hit *hit)
{
    size_t n = strlen(g->path) + 1;
    size_t left_out = n > sizeof hit->path ? n - sizeof hit->path : 0;

    xac_assert(left_out < n);
    xac_assert(n - left_out <= sizeof hit->path);
    hit->is_clone = g->is_clone;
    hit->length = g->length;
    hit->offset = (int64_t)(g->offset + (addr - (uintptr_t)g->base));
    hit->fate = g->fate;
    memcpy(hit->path, g->path + left_out, n - left_out);
}

XAC_SIGSAFE bool
xac_guard_find(const void *addr, bool is_unmapped, struct xac_guard_hit *hit)
{
    const struct xac_guard *g, *was;

    lock();
    g = nearest((uintptr_t)addr, hit);
    was = latest((uintptr_t)addr);
    if (was != NULL && (g == NULL || was->event > g->event)) {
        g = was;
        hit->what = XAC_ASTRAY_GONE;
    }
    if (g != NULL && !is_unmapped && (uintptr_t)addr - held_from(g) >= g->held)
        g = NULL;
    if (g != NULL)
        describe(g, (uintptr_t)addr, hit);
    unlock();
    return g != NULL;
}

/* ---- fork --------------------------------------------------------------------------------- */

void
xac_guard_fork(void)
{
    lock();
}

void
xac_guard_fork_done(void)
{
    unlock();
}
