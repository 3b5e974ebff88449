/* SPDX-License-Identifier: MIT */
/*
 * hog.h -- a process that wants memory, too.
 *
 * WHAT      A process in a control group that touches all pages of its memory, again and
 *           again, with a pause between two passes, so that it competes for memory, and
 *           hardly for a processor.  Its memory is anonymous, or the pages of a mapped file.
 * DEATH     It dies with its parent.  If the system kills it to get memory, it prints nothing.
 */
#ifndef XBENCH_HOG_H
#define XBENCH_HOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/kit/memory.h"

struct bench_hog_shared;

struct bench_hog {
    pid_t pid; /* 0: there is none                                                  */
    struct bench_hog_shared *shared;
};

/*
 * bench_hog_start -- and wait until it has touched all its memory once; it pauses then.
 *
 * in   path  of a file that is made and synced; NULL: anonymous memory
 * ret  0, or 1 after a message; bench_hog_stop() in both cases
 */
int bench_hog_start(struct bench_hog *hog, const struct bench_cgroup *g, const char *path,
                    uint64_t bytes);

/* bench_hog_run -- go on, or pause; nothing if there is none. */
void bench_hog_run(struct bench_hog *hog, bool on);

/* bench_hog_bytes -- that it has touched so far; 0 if there is none. */
uint64_t bench_hog_bytes(const struct bench_hog *hog);

/* bench_hog_stop -- any state; the caller that gave the path removes its file. */
void bench_hog_stop(struct bench_hog *hog);

#endif /* XBENCH_HOG_H */
