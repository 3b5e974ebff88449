/* SPDX-License-Identifier: MIT */
/*
 * forgotten.c -- a store that nobody announces, compiled without hooks: see check_checking.sh.
 */
void store_forgotten(int *at);

__attribute__((noinline)) void
store_forgotten(int *at)
{
    *at = 3; /* the forgotten store */
}
