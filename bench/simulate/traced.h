/* SPDX-License-Identifier: MIT */
/*
 * traced.h -- every load and store that an operation of a tree makes in its segment.
 *
 * WHAT      The trees' serial build, compiled with -fsanitize=thread, as xac-cc does it: the compiler
 *           puts a call in front of each access, and copies of bytes are calls as well
 *           (Makefile.inc renames both).  The calls note what lies in the segment that is recorded.
 * NOT HERE  In a build without COMPILED: nothing is noted then.
 * THREADS   none.
 */
#ifndef XBENCH_TRACED_H
#define XBENCH_TRACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_access {
    uint32_t at, n; /* bytes from the segment's start                                  */
    bool is_store;
};

/* What one operation has touched, in order. */
struct bench_accesses {
    struct bench_access *v;
    size_t n, room;
    bool is_cut; /* there was no memory for more                                       */
};

/* bench_traced_record -- from now on note accesses to a segment behind those that are there; NULL: to none. */
void bench_traced_record(struct bench_accesses *to, const void *base, size_t size);

#endif /* XBENCH_TRACED_H */
