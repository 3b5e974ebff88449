/* SPDX-License-Identifier: MIT */
/*
 * allocfault.h -- the n-th allocation of the library fails, once or from then on.
 *
 * The linker puts these functions in the place of those that allocate (alloc_wrap_flags in
 * Makefile.am), for everything that is linked statically: the library's objects, and the
 * test's own, which should allocate nothing while this is armed.  What the C library allocates
 * for itself is not counted, but each call of it that allocates is.
 */
#ifndef XAC_TEST_ALLOCFAULT_H
#define XAC_TEST_ALLOCFAULT_H

#include <stdbool.h>
#include <stdint.h>

/* What counts. */
enum allocfault_kind {
    ALLOCFAULT_MEMORY, /* malloc, strdup, fdopendir, pthread_create, ...                 */
    ALLOCFAULT_SHARED /* blocks and array elements of the control region                */
};

/* allocfault_arm -- from now on the n-th fails, 0 for none; and all behind it. */
void allocfault_arm(enum allocfault_kind kind, uint64_t n, bool for_ever);

/* allocfault_disarm -- everything works again; counting ends. */
void allocfault_disarm(void);

/* allocfault_count -- so many since allocfault_arm(). */
uint64_t allocfault_count(void);

/* allocfault_hit -- name of the function that has failed first; NULL if n was not reached. */
const char *allocfault_hit(void);

/* allocfault_live -- blocks that were allocated here and not freed, since the start. */
int64_t allocfault_live(void);

#endif /* XAC_TEST_ALLOCFAULT_H */
