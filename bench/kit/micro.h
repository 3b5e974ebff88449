/* SPDX-License-Identifier: MIT */
/*
 * micro.h -- for experiments that time one small thing many times.
 *
 * WHAT      The processor's time stamp counter as a clock; times collected in memory that
 *           is there before the measurement begins; mean, standard deviation, minimum,
 *           median, 99th percentile and maximum, which are the columns of the Thesis'
 *           app. C; printing them.
 * TICKS     Of the time stamp counter, which on today's processors runs at a constant
 *           rate, whatever the core's own frequency is at the moment.  Where there is no
 *           such counter a tick is a nanosecond of CLOCK_MONOTONIC, and no cycles are
 *           printed.
 * THREADS   none; one process.
 */
#ifndef XBENCH_MICRO_H
#define XBENCH_MICRO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/kit/options.h"
#include "bench/kit/util.h"

#if defined __x86_64__
# define BENCH_HAS_CYCLES 1
#else
# define BENCH_HAS_CYCLES 0
#endif

/* bench_ticks -- now. */
static inline uint64_t
bench_ticks(void)
{
#if BENCH_HAS_CYCLES
    return __builtin_ia32_rdtsc();
#else
    return bench_now_ns();
#endif
}

/* bench_ticks_done -- now, the loads before it having been made; stores may be on the way. */
static inline uint64_t
bench_ticks_done(void)
{
#if BENCH_HAS_CYCLES
    unsigned cpu;

    return __builtin_ia32_rdtscp(&cpu);
#else
    return bench_now_ns();
#endif
}

/* bench_ticks_per_us -- compared with CLOCK_MONOTONIC at the first call (20 ms). */
double bench_ticks_per_us(void);

/* Times of one thing, in the order in which they were taken, in any unit. */
struct bench_sample {
    double *v;
    size_t n, room;
};

/* bench_sample_init -- room for so many; ret 0, or 1 after a message. */
int bench_sample_init(struct bench_sample *s, size_t room);

void bench_sample_free(struct bench_sample *s);

/* bench_sample_add -- beyond the room they are dropped. */
static inline void
bench_sample_add(struct bench_sample *s, double v)
{
    if (s->n < s->room)
        s->v[s->n++] = v;
}

struct bench_summary {
    size_t n;
    double mean, stdev, min, median, p99, max; /* nearest-rank percentiles            */
};

/* bench_summarize -- sorts the sample; of an empty one all numbers are NAN. */
struct bench_summary bench_summarize(struct bench_sample *s);

/* bench_json_summary -- fields <unit>_mean, _stdev, _min, _median, _p99, _max. */
void bench_json_summary(FILE *f, const char *unit, const struct bench_summary *s,
                        double per_unit);

/* bench_json_ticks -- of a summary of ticks, in us and, where there are any, cycles. */
void bench_json_ticks(FILE *f, const struct bench_summary *s);

/* bench_print_command -- the head of a table: what was run, and on what. */
void bench_print_command(const struct bench_common *c, const char *what);

/* bench_print_columns, row -- a table of summaries; unit "": the rows differ in theirs. */
void bench_print_columns(const char *head, const char *unit);
void bench_print_row(const char *label, const struct bench_summary *s, double per_unit);

/*
 * bench_dir_make -- a directory xbench-XXXXXX in common->dir, for the files of a run;
 * bench_dir_remove removes it with all that is in it.
 *
 * ret  0, or 1 after a message.
 */
#define BENCH_DIR_BYTES 400u
int bench_dir_make(const struct bench_common *common, char dir[BENCH_DIR_BYTES]);
int bench_dir_remove(const char *dir);

#endif /* XBENCH_MICRO_H */
