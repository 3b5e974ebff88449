/* SPDX-License-Identifier: MIT */
/*
 * tsan.c -- see tsan.h.
 */
#include <config.h>

#include "base/tsan.h"

#include <stddef.h>

#include "base/tls.h"

/* The sanitizer's runtime defines them; otherwise they are NULL. */
#define WEAK __attribute__((weak))
void __tsan_init(void) WEAK;
void __tsan_acquire(void *addr) WEAK;
void __tsan_release(void *addr) WEAK;
void AnnotateIgnoreReadsEnd(const char *file, int line) WEAK;
void AnnotateIgnoreWritesBegin(const char *file, int line) WEAK;
void AnnotateIgnoreWritesEnd(const char *file, int line) WEAK;

static char order;            /* only its address is used             */
static XAC_TLS int n_entered; /* 0 if there is nothing to be told     */

XAC_SIGSAFE void
xac_tsan_enter_told(void)
{
    if (n_entered++ > 0)
        return;
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

XAC_SIGSAFE void
xac_tsan_leave_told(void)
{
    if (n_entered == 0 || --n_entered > 0)
        return;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

void
xac_tsan_acquire(void)
{
    if (xac_tsan_is_told() && __tsan_acquire != NULL)
        __tsan_acquire(&order);
}

void
xac_tsan_release(void)
{
    if (xac_tsan_is_told() && __tsan_release != NULL)
        __tsan_release(&order);
}

bool
xac_tsan_is_on(void)
{
    return __tsan_init != NULL;
}
