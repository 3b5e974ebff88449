/* SPDX-License-Identifier: MIT */
/*
 * larger.h -- the experiment `larger`: a group of processes whose memory is limited.
 *
 * WHAT      A control group of the memory controller, version 1 or 2, made below this
 *           process's own; needs permission to make one (root, as a rule).
 */
#ifndef XBENCH_LARGER_H
#define XBENCH_LARGER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_cgroup {
    char dir[PATH_MAX];
    bool is_v1;
};

/*
 * bench_cgroup_make -- a group with a limit on all memory, the page cache of its files
 * included.
 *
 * out  why  words, if it cannot be had
 * ret  true, or false
 */
bool bench_cgroup_make(struct bench_cgroup *g, uint64_t limit_bytes, char *why,
                       size_t why_bytes);

/* bench_cgroup_enter -- the calling process moves into it; ret 0 or errno. */
int bench_cgroup_enter(const struct bench_cgroup *g);

/* bench_cgroup_remove -- when all its processes have ended. */
void bench_cgroup_remove(const struct bench_cgroup *g);

#endif /* XBENCH_LARGER_H */
