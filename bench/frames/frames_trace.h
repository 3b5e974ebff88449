/* SPDX-License-Identifier: MIT */
/*
 * frames_trace.h -- references to pages in a file or in memory, played through a pool without memory.
 */
#ifndef XBENCH_FRAMES_TRACE_H
#define XBENCH_FRAMES_TRACE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <xac_frames.h>

#define TRACE_USERS_MAX 16

/* BP-Wrapper's own numbers. */
#define BENCH_BATCH_QUEUE 64
#define BENCH_BATCH_TRY   32

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

/* bench_trace_add -- one reference more; ret 0, or 1 after a message. */
int bench_trace_add(struct trace *t, uint64_t page);

/*
 * bench_trace_pool -- a pool without memory that has all of a trace's pages.
 *
 * in   config  without n_pages and n_users
 *      io      NULL: none
 * out  poolp   the caller closes it
 * ret  0, or 1 after a message
 */
int bench_trace_pool(const struct trace *t, const struct xac_frames_config *config,
                     unsigned n_users, const struct xac_frames_io *io,
                     struct xac_frames **poolp);

/* bench_trace_random -- Knuth's MMIX generator; its upper 31 bits.  *seedp: its state. */
static inline uint64_t
bench_trace_random(uint64_t *seedp)
{
    *seedp = *seedp * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *seedp >> 33;
}

/*
 * bench_trace_record -- pages that n inserts of random keys into our B+-tree touch, of 4 KiB; the
 * caller frees pages, also after a failure.  bench_trace_write -- as bench_trace_load() reads it.
 *
 * ret  0, or 1 after a message
 */
int bench_trace_record(struct trace *t, uint64_t n_inserts, uint64_t seed);
int bench_trace_write(const struct trace *t, const char *name);

/*
 * bench_trace_play -- all references by so many users in turn, one thread.
 *
 * in   skip   references before the first one that is counted
 * out  hitsp  of the others
 */
int bench_trace_play(const struct trace *t, const struct xac_frames_config *config,
                     unsigned n_users, size_t skip, uint64_t *hitsp);

/* ---- frames_history.c: several users at once ------------------------------------------ */

/* In which order all pages were fixed and unfixed. */
struct history {
    uint64_t *events; /* 2 * reference + 1: fixed; 2 * reference: unfixed */
    _Atomic size_t n;
};

/* bench_history_init -- room for that of a trace; the caller frees events.  ret 0, 1 after a message. */
int bench_history_init(struct history *h, const struct trace *t);

/* bench_history_replay -- the same fixes and unfixes by one user; hits. */
int bench_history_replay(const struct trace *t, const struct xac_frames_config *config,
                         struct history *h, uint64_t *hitsp);

/* bench_trace_play_threads -- by threads that draw the next one; hits of all, and what they did. */
int bench_trace_play_threads(const struct trace *t,
                             const struct xac_frames_config *config, unsigned n_threads,
                             struct history *h, uint64_t *hitsp);

/* bench_trace_play_woven -- by users whose steps follow each other by chance, in one thread. */
int bench_trace_play_woven(const struct trace *t, const struct xac_frames_config *config,
                           unsigned n_users, uint64_t seed, struct history *h,
                           uint64_t *hitsp);

/* ---- frames_distance.c: how many other pages are referenced before a page comes back ---- */

/* Of a reference to a page that has not come before. */
#define BENCH_NO_DISTANCE UINT32_MAX

struct distances {
    const struct trace *trace;
    uint32_t *others; /* of each reference                                             */
    uint32_t *before; /* of the page's reference before that                           */
    uint64_t n_pages; /* that come at all                                              */
};

/* bench_distances -- ret 0, or 1 after a message.  Free them in any case. */
int bench_distances(struct distances *d, const struct trace *t);
void bench_distances_free(struct distances *d);

/* bench_distances_lru -- hits of LRU: a reference hits if fewer other pages came since than there are frames. */
uint64_t bench_distances_lru(const struct distances *d, uint64_t n_frames);

/* bench_distances_edge -- references whose number of others is less than `late` away from the frames. */
uint64_t bench_distances_edge(const struct distances *d, uint64_t n_frames,
                              uint64_t late);

/* bench_distances_loop -- those of them that belong to a loop: the number is that of the page's time before, give or take a
   tenth. */
uint64_t bench_distances_loop(const struct distances *d, uint64_t n_frames,
                              uint64_t late);

/* ---- The experiment -------------------------------------------------------------------- */

/*
 * bench_trace_hits -- the experiment `frames --hits`: a table of each trace, LRU against stack
 * distances, batches against none, several users against one.
 */
int bench_trace_hits(char **names, int n_names, const uint64_t *sizes, unsigned n_sizes);

extern const char *const bench_policy_names[XAC_FRAMES_N_POLICIES];

#endif /* XBENCH_FRAMES_TRACE_H */
