/* SPDX-License-Identifier: MIT */
/*
 * frames_threads.c -- the experiment `frames` with --threads: how often the lock of a policy is
 * taken and waited for, with and without BP-Wrapper.
 *
 * All pages are in frames, so that every fix is a hit.  Pages are skewed: a fifth of them have
 * 80 % of the references.  Rounds are interleaved and the medians printed.
 */
#include <config.h>

#include "bench/frames/frames_threads.h"

#include <stdio.h>

#include "bench/frames/frames_load.h"
#include "bench/frames/frames_trace.h"
#include "bench/kit/util.h"

#define N_PAGES 32768u
#define ROUNDS  3

/* print_row -- medians of one policy. */
static void
print_row(const char *name, bool batched, unsigned n_threads, const struct load_got *got,
          bool json)
{
    double rate = got->mfix_s, locks = GOT_LOCKS(got), waits = GOT_WAITS(got);

    if (json) {
        bench_json_begin(stdout);
        bench_json_str(stdout, "experiment", "frames");
        bench_json_str(stdout, "policy", name);
        bench_json_bool(stdout, "batched", batched);
        bench_json_u64(stdout, "threads", n_threads);
        bench_json_num(stdout, "mega_fixes_per_second", rate);
        bench_json_num(stdout, "locks_per_mega_fixes", locks);
        bench_json_num(stdout, "lock_waits_per_mega_fixes", waits);
        bench_json_end(stdout);
    } else
        printf("%-10s %-8s %7u %10.2f %12.0f %12.1f\n", name,
               batched ? "batched" : "plain", n_threads, rate, locks, waits);
    (void)fflush(stdout);
}

int
bench_frames_threads(uint32_t policy, const char *name, unsigned n_threads, bool json)
{
    struct load loads[2];
    struct load_got got[2];

    if (n_threads == 0 || n_threads > LOAD_THREADS_MAX)
        return bench_fail("frames: 1 to %d threads", LOAD_THREADS_MAX);
    for (int batch = 0; batch < 2; batch++)
        loads[batch] =
            (struct load){.config = {.n_pages = N_PAGES,
                                     .n_frames = N_PAGES,
                                     .policy = policy,
                                     .batch_queue = batch != 0 ? BENCH_BATCH_QUEUE : 0,
                                     .batch_threshold = batch != 0 ? BENCH_BATCH_TRY : 0},
                          .exponent = 0.14,
                          .n_threads = n_threads,
                          .seconds = 0.5};
    if (bench_load_run(loads, 2, ROUNDS, got) != 0)
        return 1;
    for (int batch = 0; batch < 2; batch++)
        print_row(name, batch != 0, n_threads, &got[batch], json);
    return 0;
}
