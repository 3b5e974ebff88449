/* SPDX-License-Identifier: MIT */
/*
 * tsan.c -- see tsan.h.
 */
#include <config.h>

#include "base/tsan.h"

#include <stddef.h>

#include "base/tls.h"

#if defined(__SANITIZE_THREAD__)
# define IS_INSTRUMENTED 1
#elif defined(__has_feature)
# if __has_feature(thread_sanitizer)
#  define IS_INSTRUMENTED 1
# endif
#endif
#ifndef IS_INSTRUMENTED
# define IS_INSTRUMENTED 0
#endif

/* The sanitizer's runtime defines them; otherwise they are NULL. */
#define WEAK __attribute__((weak))
void __tsan_init(void) WEAK;
void __tsan_acquire(void *addr) WEAK;
void __tsan_release(void *addr) WEAK;
void AnnotateIgnoreReadsBegin(const char *file, int line) WEAK;
void AnnotateIgnoreReadsEnd(const char *file, int line) WEAK;
void AnnotateIgnoreWritesBegin(const char *file, int line) WEAK;
void AnnotateIgnoreWritesEnd(const char *file, int line) WEAK;

static char order;            /* only its address is used             */
static XAC_TLS int n_entered; /* 0 if there is nothing to be told     */

XAC_SIGSAFE static bool
is_told(void)
{
    return xac_unlikely(!IS_INSTRUMENTED && AnnotateIgnoreReadsBegin != NULL);
}

XAC_SIGSAFE void
xac_tsan_enter(void)
{
    if (!is_told() || n_entered++ > 0)
        return;
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

XAC_SIGSAFE void
xac_tsan_leave(void)
{
    if (!is_told() || n_entered == 0 || --n_entered > 0)
        return;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

void
xac_tsan_acquire(void)
{
    if (is_told() && __tsan_acquire != NULL)
        __tsan_acquire(&order);
}

void
xac_tsan_release(void)
{
    if (is_told() && __tsan_release != NULL)
        __tsan_release(&order);
}

bool
xac_tsan_is_on(void)
{
    return __tsan_init != NULL;
}
