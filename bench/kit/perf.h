/* SPDX-License-Identifier: MIT */
/*
 * perf.h -- what the kernel and the processor count over a whole experiment.
 *
 * WHAT      Counters of perf_event_open(2) for a process that is about to be forked and all
 *           that it forks.  Events that this machine or its settings do not give are left
 *           out: hardware events under many virtual machines.
 * LIFE      open, fork and exec or run, wait for the end, print, close.
 */
#ifndef XBENCH_PERF_H
#define XBENCH_PERF_H

#include <stdio.h>

#define BENCH_PERF_EVENTS 8u

struct bench_perf {
    int fds[BENCH_PERF_EVENTS]; /* -1: not to be had                                   */
};

/* bench_perf_open -- counters of this process's future children; ret how many there are. */
unsigned bench_perf_open(struct bench_perf *p);

/* bench_perf_print -- a JSON object {"task_clock_us": 1.2, ...} without a line's end. */
void bench_perf_print(const struct bench_perf *p, FILE *f);

void bench_perf_close(struct bench_perf *p);

#endif /* XBENCH_PERF_H */
