/* SPDX-License-Identifier: MIT */
/*
 * frames.h -- the parts of the experiment `frames`: traces in frames.c, threads in
 * frames_threads.c.
 */
#ifndef XBENCH_FRAMES_H
#define XBENCH_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <xac_frames.h>

/* BP-Wrapper's own numbers. */
#define BENCH_BATCH_QUEUE 64
#define BENCH_BATCH_TRY   32

/*
 * bench_frames_threads -- hits by so many threads under one policy, plain and batched; prints two
 * lines, or JSON objects.
 *
 * ret  0, or 1 after a message
 */
int bench_frames_threads(uint32_t policy, const char *name, unsigned n_threads,
                         bool json);

#endif /* XBENCH_FRAMES_H */
