/* SPDX-License-Identifier: MIT */
/*
 * compiled.h -- a load and a store that are announced by hooks (doc/compiled.md).
 */
#ifndef XAC_TEST_STRESS_COMPILED_H
#define XAC_TEST_STRESS_COMPILED_H

#include <stdint.h>

/* If HAVE_COMPILED. */
uint64_t compiled_load(const volatile uint64_t *at);
void compiled_store(volatile uint64_t *at, uint64_t value);

#endif /* XAC_TEST_STRESS_COMPILED_H */
