/* SPDX-License-Identifier: MIT */
/*
 * frames_trace.h -- references to pages in a file or in memory, played through a pool without memory.
 */
#ifndef XBENCH_FRAMES_TRACE_H
#define XBENCH_FRAMES_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include <xac_frames.h>

struct trace {
    uint64_t *pages;
    size_t n, room;
    uint64_t page_max;
};

/*
 * bench_trace_load -- a page number per line, plain or compressed by gzip; the caller frees pages.
 *
 * ret  0, or 1 after a message
 */
int bench_trace_load(struct trace *t, const char *name);

/*
 * bench_trace_play -- all references by so many users in turn, one thread.
 *
 * in   skip   references before those whose hits are counted
 * out  hitsp  of the others
 */
int bench_trace_play(const struct trace *t, const struct xac_frames_config *config,
                     unsigned n_users, size_t skip, uint64_t *hitsp);

/* bench_trace_play_threads -- by threads that draw the next one; hits of all. */
int bench_trace_play_threads(const struct trace *t,
                             const struct xac_frames_config *config, unsigned n_threads,
                             uint64_t *hitsp);

/*
 * bench_trace_hits -- the experiment `frames --hits`: a table of each trace, LRU against stack
 * distances, batches against none, threads against one.
 */
int bench_trace_hits(char **names, int n_names, const uint64_t *sizes, unsigned n_sizes);

extern const char *const bench_policy_names[XAC_FRAMES_N_POLICIES];

#endif /* XBENCH_FRAMES_TRACE_H */
