/* SPDX-License-Identifier: MIT */
/*
 * memory.h -- memory that is limited, and memory that others have.
 *
 * WHAT      A control group of the memory controller, version 1 or 2, made below this
 *           process's own; needs permission to make one (root, as a rule).  What such a group,
 *           a process, or an environment of libxac has, seen from outside.
 */
#ifndef XBENCH_MEMORY_H
#define XBENCH_MEMORY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bench_cgroup {
    char dir[PATH_MAX];
    bool is_v1;
};

/*
 * bench_cgroup_make -- a group with a limit on all memory, the page cache of its files
 * included.
 *
 * in   number  tells those of one process apart
 * out  why  words, if it cannot be had
 * ret  true, or false
 */
bool bench_cgroup_make(struct bench_cgroup *g, unsigned number, uint64_t limit_bytes,
                       char *why, size_t why_bytes);

/* bench_cgroup_enter -- the calling process moves into it; ret 0 or errno. */
int bench_cgroup_enter(const struct bench_cgroup *g);

/* bench_cgroup_remove -- when all its processes have ended. */
void bench_cgroup_remove(const struct bench_cgroup *g);

/* bench_cgroup_cache_bytes -- page cache charged to it, without shared memory; 0: unknown. */
uint64_t bench_cgroup_cache_bytes(const struct bench_cgroup *g);

/*
 * bench_stop_reading_ahead -- MADV_RANDOM for all mappings of a file in this process; ret 0 or
 * errno.
 *
 * in  end  of the file's path, with the last "/"
 */
int bench_stop_reading_ahead(const char *end);

/* bench_process_bytes -- RssAnon and RssFile of a process; 0 if it is gone. */
uint64_t bench_process_bytes(pid_t pid);

/* bench_env_bytes -- of an environment of libxac: the memory of its control region and of the
   files beside it, mapped or not; 0 if nobody has it open. */
uint64_t bench_env_bytes(const char *env_dir);

#endif /* XBENCH_MEMORY_H */
