/* SPDX-License-Identifier: MIT */
/*
 * tsan.h -- what a program's thread sanitizer must know of a library that it does not see into.
 *
 * WHAT      A program compiled with -fsanitize=thread may use a library that was compiled
 *           without.  The sanitizer then sees neither the library's atomic operations, nor its
 *           loads and stores, but it does see that the library calls memcpy() and the like.  So it
 *           is told two things: to ignore everything between enter and leave; and that
 *           transactions of one process order the actions of its threads, as sections under one
 *           mutex do.
 * COST      Without the sanitizer, one load of a pointer.
 * NOT HERE  A library compiled with -fsanitize=thread: it needs none of this, and has none.
 */
#ifndef XAC_TSAN_H
#define XAC_TSAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/annot.h"

#if defined(__SANITIZE_THREAD__)
# define XAC_TSAN_IS_BUILT_IN 1
#elif defined(__has_feature)
# if __has_feature(thread_sanitizer)
#  define XAC_TSAN_IS_BUILT_IN 1
# endif
#endif
#ifndef XAC_TSAN_IS_BUILT_IN
# define XAC_TSAN_IS_BUILT_IN 0
#endif

/* The sanitizer's runtime defines it; otherwise it is NULL. */
void AnnotateIgnoreReadsBegin(const char *file, int line) __attribute__((weak));

/* xac_tsan_is_told -- is there a sanitizer that must be told? */
XAC_SIGSAFE static inline bool
xac_tsan_is_told(void)
{
    return xac_unlikely(!XAC_TSAN_IS_BUILT_IN && AnnotateIgnoreReadsBegin != NULL);
}

/* xac_tsan_enter, leave -- the library's own code begins and ends in this thread; they nest.  One
   leave too many is ignored, because a child of fork() may leave where its parent entered. */
XAC_SIGSAFE void xac_tsan_enter_told(void);
XAC_SIGSAFE void xac_tsan_leave_told(void);
XAC_SIGSAFE static inline void
xac_tsan_enter(void)
{
    if (xac_tsan_is_told())
        xac_tsan_enter_told();
}
XAC_SIGSAFE static inline void
xac_tsan_leave(void)
{
    if (xac_tsan_is_told())
        xac_tsan_leave_told();
}

/* xac_tsan_acquire, release -- the actions of this thread after acquire come after the actions of
   all threads before their release. */
void xac_tsan_acquire(void);
void xac_tsan_release(void);

/* xac_tsan_is_on -- does the program run under the thread sanitizer, however the library was
   compiled? */
bool xac_tsan_is_on(void);

#endif /* XAC_TSAN_H */
