/* SPDX-License-Identifier: MIT */
/*
 * frames_threads.h -- the experiment `frames` with --threads.
 */
#ifndef XBENCH_FRAMES_THREADS_H
#define XBENCH_FRAMES_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * bench_frames_threads -- hits by so many threads under one policy, plain and batched; prints two
 * lines, or JSON objects.
 *
 * ret  0, or 1 after a message
 */
int bench_frames_threads(uint32_t policy, const char *name, unsigned n_threads,
                         bool json);

#endif /* XBENCH_FRAMES_THREADS_H */
