/* SPDX-License-Identifier: MIT */
/*
 * futex.h -- sleeping on a word in memory that processes share.
 *
 * THREADS   any thread; xac_futex_wait and wake_one: in the fault handler, too.
 */
#ifndef XAC_FUTEX_H
#define XAC_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"

/* xac_cpu_pause -- say that this thread looks at a word again and again. */
XAC_SIGSAFE static inline void
xac_cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    __asm__ volatile(""); /* stay a loop */
#endif
}

/*
 * xac_futex_wait -- sleep while *word holds `seen`.
 *
 * Returns after a wake-up, after timeout_ms milliseconds, at once if the word holds another
 * value, or without a reason.  So the caller looks at the word again.
 */
XAC_SIGSAFE void xac_futex_wait(xac_shared _Atomic uint32_t *word, uint32_t seen,
                                unsigned timeout_ms);

/*
 * xac_futex_spin -- look at a word for some microseconds, before a sleep, until it is 0 or `wanted`.
 * ret  what it was last (relaxed).
 */
uint64_t xac_futex_spin(const xac_shared _Atomic uint64_t *word, uint64_t wanted);

/* xac_futex_wake_all -- wake all threads, of all processes, that sleep on the word. */
void xac_futex_wake_all(xac_shared _Atomic uint32_t *word);

/* xac_futex_wake_one -- wake one of them. */
XAC_SIGSAFE void xac_futex_wake_one(xac_shared _Atomic uint32_t *word);

#endif /* XAC_FUTEX_H */
