/* SPDX-License-Identifier: MIT */
/*
 * guard.h -- names for addresses that are in no mapping: behind the end of one, before its start,
 * or where one has been.
 *
 * WHAT      Knows where the mappings of this process lie, and where the last XAC_GUARD_GONE ones
 *           have been, so that the fault handler can say what a stray access has missed.
 *           Nothing is mapped for that where the mappings of files lie, because the kernel places
 *           nothing there by itself (address_list.h): what is behind them traps without that, and the
 *           addresses stay free for files that belong there and for mappings that grow.
 *           Views of threads lie between other mappings.  Behind each of them XAC_GUARD_HELD bytes
 *           are *held*, mapped without access; and when it has gone, its own addresses are, for as
 *           long as it is remembered, up to XAC_GUARD_HELD_MAX bytes in all.
 * NOT HERE  The words (fault.c).  Addresses inside of a view (fault_areas.h).
 * OWNER     A view has a guard, which belongs to this module; it outlives the view.
 * LOCK      A spin lock of its own, because the fault handler takes it; signals are blocked
 *           meanwhile, and nothing is acquired and no memory touched under it but the module's own.
 * THREADS   any.
 *
 * INVARIANTS
 *   (1) No guard makes a mapping fail: if there is no memory for one, there is none.
 *       What is held gives way to files that belong there (xac_guard_yield), and if addresses run
 *       out; and where they are limited (RLIMIT_AS), nothing is held that has gone.
 *   (2) A fault counts only if nothing is mapped at its address, or the address is held.  Whoever
 *       has mapped something there handles faults in it himself.
 */
#ifndef XAC_GUARD_H
#define XAC_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/annot.h"

/* An access so many bytes behind the end of a mapping, or before its start, has missed it: less than
   what the kernel leaves free between a stack that has run over and what lies below it. */
#define XAC_GUARD_REACH ((size_t)16 << 20)

/* Mappings that are remembered when they are gone. */
#define XAC_GUARD_GONE 64

/* See above: bytes, a multiple of any page size. */
#define XAC_GUARD_HELD     ((size_t)64 << 10)
#define XAC_GUARD_HELD_MAX ((size_t)64 << 20)

struct xac_guard;

/* What an address has missed. */
enum xac_astray {
    XAC_ASTRAY_BEHIND, /* the end of a mapping, by `distance` bytes: 0 is the first one    */
    XAC_ASTRAY_BEFORE, /* its start, by `distance` bytes: 1 is the last one before it      */
    XAC_ASTRAY_GONE /* nothing: a mapping has been there                                */
};

struct xac_guard_hit {
    enum xac_astray what;
    bool is_clone;    /* a thread's view                                               */
    size_t distance;  /* see above                                                     */
    size_t length;    /* of the mapping                                                */
    int64_t offset;   /* of the address, in the file                                   */
    const char *fate; /* of one that is gone: "was unmapped by xMunmap()"; static      */
    char path[256];   /* as registered; the end of it if it is longer                  */
};

/*
 * xac_guard_map -- map part of a file, private and without access, where the kernel likes.
 *
 * out  heldp  bytes held behind it: for xac_guard_enter
 * ret  MAP_FAILED with errno.
 */
void *xac_guard_map(size_t length, int fd, uint64_t offset, size_t *heldp);

/*
 * xac_guard_enter -- a mapping has come.
 *
 * in   path    copied
 *      offset  of its start in the file
 *      held    bytes behind it, which belong to the guard from now on
 * ret  NULL: no memory, which the other functions take for a guard, too.
 */
struct xac_guard *xac_guard_enter(const char *path, uint8_t *base, size_t length,
                                  uint64_t offset, bool is_clone, size_t held);

/* xac_guard_resize -- it has another length, where it is. */
void xac_guard_resize(struct xac_guard *guard, size_t length);

/* xac_guard_leave -- it has been unmapped.  fate: see struct xac_guard_hit; NULL: not to be
   remembered. */
void xac_guard_leave(struct xac_guard *guard, const char *fate);

/* xac_guard_yield -- nothing is held there any more. */
void xac_guard_yield(uint64_t address, size_t length);

/* xac_guard_forget_gone -- remember nothing that is gone. */
void xac_guard_forget_gone(void);

/* xac_guard_find -- what has this address missed, at which nothing is mapped, or something without
   access?  ret false: it is far from all mappings, or somebody else's. */
XAC_SIGSAFE bool xac_guard_find(const void *addr, bool is_unmapped,
                                struct xac_guard_hit *hit);

/* xac_guard_fork, fork_done -- before a fork; after it, in the parent and in the child. */
void xac_guard_fork(void);
void xac_guard_fork_done(void);

#endif /* XAC_GUARD_H */
