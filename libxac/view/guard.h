/* SPDX-License-Identifier: MIT */
/*
 * guard.h -- explains addresses that are in no mapping: behind the end of a mapping, before its
 * start, or where one has been.
 *
 * WHAT      Knows the mappings of this process, and the last XAC_GUARD_GONE ones that are gone, so
 *           that the fault handler can name the mapping that a stray access has missed.
 *           Around mappings of files nothing is mapped for this purpose: the kernel places
 *           nothing there by itself (address_list.h), so accesses behind them trap, and the
 *           addresses stay free for files that belong there and for mappings that grow.
 *           Views of threads lie between other mappings.  Behind each of them XAC_GUARD_HELD bytes
 *           are *held*, that is, mapped without access.  When a view is gone, its own addresses
 *           are held while it is remembered, up to XAC_GUARD_HELD_MAX bytes in sum.
 * NOT HERE  The message (fault.c).  Addresses inside of a view (fault_areas.h).
 * OWNER     A view has a guard, which belongs to this module; it outlives the view.
 * LOCK      A spin lock of its own, because the fault handler takes it.  Signals are blocked
 *           meanwhile.  Under it no lock is acquired and only memory of this module is touched.
 * THREADS   any.
 *
 * INVARIANTS
 *   (1) No guard makes a mapping fail: if there is no memory for one, there is none.
 *       Held addresses are given up for files that belong there (xac_guard_yield), and if
 *       addresses run out.  If addresses are limited (RLIMIT_AS), those of views that are gone
 *       are not held.
 *   (2) A fault counts only if nothing is mapped at its address, or the address is held.  If the
 *       program has mapped something there, the fault is the program's.
 */
#ifndef XAC_GUARD_H
#define XAC_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/annot.h"

/* An access at most so many bytes behind the end of a mapping, or before its start, has missed it.
   It is less than the gap that the kernel leaves below a stack. */
#define XAC_GUARD_REACH ((size_t)16 << 20)

/* How many mappings are remembered after they are gone. */
#define XAC_GUARD_GONE 64

/* See above: bytes, a multiple of any page size. */
#define XAC_GUARD_HELD     ((size_t)64 << 10)
#define XAC_GUARD_HELD_MAX ((size_t)64 << 20)

struct xac_guard;

/* Where an address lies. */
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
 * xac_guard_map -- map part of a file, private and without access, where the kernel chooses.
 *
 * out  heldp  bytes held behind it: for xac_guard_enter
 * ret  MAP_FAILED with errno.
 */
void *xac_guard_map(size_t length, int fd, uint64_t offset, size_t *heldp);

/*
 * xac_guard_enter -- note a new mapping.
 *
 * in   path    copied
 *      offset  of its start in the file
 *      held    bytes behind it, which belong to the guard from now on
 * ret  NULL: no memory; the other functions accept NULL as a guard.
 */
struct xac_guard *xac_guard_enter(const char *path, uint8_t *base, size_t length,
                                  uint64_t offset, bool is_clone, size_t held);

/* xac_guard_resize -- note its new length; its address stays. */
void xac_guard_resize(struct xac_guard *guard, size_t length);

/* xac_guard_leave -- note that it has been unmapped.  fate: see struct xac_guard_hit; NULL: do not
   remember it. */
void xac_guard_leave(struct xac_guard *guard, const char *fate);

/* xac_guard_yield -- give up held addresses in this range. */
void xac_guard_yield(uint64_t address, size_t length);

/* xac_guard_forget_gone -- forget all mappings that are gone. */
void xac_guard_forget_gone(void);

/* xac_guard_find -- which mapping has this address missed, at which nothing is mapped, or something
   without access?  ret false: it is far from all mappings, or belongs to the program. */
XAC_SIGSAFE bool xac_guard_find(const void *addr, bool is_unmapped,
                                struct xac_guard_hit *hit);

/* xac_guard_fork, fork_done -- before a fork; after it, in the parent and in the child. */
void xac_guard_fork(void);
void xac_guard_fork_done(void);

#endif /* XAC_GUARD_H */
