/* SPDX-License-Identifier: MIT */
/*
 * futex.c -- see futex.h.  Neither of the private forms: the word is shared.
 */
#include <config.h>

#include "base/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

XAC_SIGSAFE void
xac_futex_wait(xac_shared _Atomic uint32_t *word, uint32_t seen, unsigned timeout_ms)
{
    struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                               .tv_nsec = timeout_ms % 1000 * 1000000L};

    /* Why it returned does not matter, so neither does its result. */
    (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0);
}

/* Looks at a word: 5 to 20 us, as long as a short transaction takes. */
#define SPIN_LOOKS 400

uint64_t
xac_futex_spin(const xac_shared _Atomic uint64_t *word, uint64_t wanted)
{
    /* Relaxed: the caller looks again. */
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);

    for (int i = 0; i < SPIN_LOOKS && seen != 0 && seen != wanted; i++) {
        xac_cpu_pause();
        seen = atomic_load_explicit(word, memory_order_relaxed);
    }
    return seen;
}

void
xac_futex_wake_all(xac_shared _Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

XAC_SIGSAFE void
xac_futex_wake_one(xac_shared _Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}
