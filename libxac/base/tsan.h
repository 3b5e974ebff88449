/* SPDX-License-Identifier: MIT */
/*
 * tsan.h -- what a program's thread sanitizer must know of a library that it does not see into.
 *
 * WHAT      A program compiled with -fsanitize=thread may use a library that was compiled
 *           without.  The sanitizer then sees neither the library's atomic operations, nor its
 *           loads and stores, but it does see when the library calls memcpy() and the like.  So it
 *           is told two things: what is done between enter and leave is none of its business;
 *           and transactions of one process order what its threads do, as sections
 *           under one mutex would.
 * COST      Nothing but a look at a pointer without the sanitizer.
 * NOT HERE  A library compiled with -fsanitize=thread: it needs none of this, and has none.
 */
#ifndef XAC_TSAN_H
#define XAC_TSAN_H

#include <stdbool.h>

#include "base/annot.h"

/* xac_tsan_enter, leave -- the library's own code begins and ends in this thread; they nest.
   A leave too many is ignored, since a child of fork() leaves what its parent entered. */
XAC_SIGSAFE void xac_tsan_enter(void);
XAC_SIGSAFE void xac_tsan_leave(void);

/* xac_tsan_acquire, release -- what the thread does now comes after all that was done by threads
   before they called release. */
void xac_tsan_acquire(void);
void xac_tsan_release(void);

/* xac_tsan_is_on -- does the program run under the thread sanitizer, however the library was
   compiled? */
bool xac_tsan_is_on(void);

#endif /* XAC_TSAN_H */
