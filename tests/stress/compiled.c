/* SPDX-License-Identifier: MIT */
/*
 * compiled.c -- see compiled.h; compiled as xac-cc does.
 */
#include "compiled.h"

uint64_t
compiled_load(const volatile uint64_t *at)
{
    return *at;
}

void
compiled_store(volatile uint64_t *at, uint64_t value)
{
    *at = value;
}
