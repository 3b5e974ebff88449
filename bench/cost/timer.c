/* SPDX-License-Identifier: MIT */
/*
 * timer.c -- the experiment `timer`: what two successive looks at a clock are apart (Thesis
 * C.1, tables C.1 and C.2, figure C-1).
 *
 * As in the Thesis there is nothing between the two looks.  The clocks take turns in runs
 * of RUN, so that a slow moment hits all.
 */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

#include "bench/kit/micro.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"

#define RUN          100u /* pairs of one clock before the next one's turn               */
#define ROUNDS       UINT64_C(10000)
#define ROUNDS_QUICK UINT64_C(10000)
#define ROUNDS_MAX   UINT64_C(100000000)
#define STEPS_MAX    256u /* different delays that are listed; the last one: or more     */

enum clock {
    RDTSC,
    CLOCK_GETTIME,
    GETTIMEOFDAY,
    N_CLOCKS
};

static const struct {
    const char *name;
    const char *what;
    double step_us; /* delays are counted by so much                                   */
} clocks[N_CLOCKS] = {
    [RDTSC] = {"rdtsc", "the processor's time stamp counter", 0.01},
    [CLOCK_GETTIME] = {"clock_gettime", "CLOCK_MONOTONIC, in ns", 0.01},
    [GETTIMEOFDAY] = {"gettimeofday", "in us", 1},
};

/* Delays that occurred, and how often: figure C-1. */
struct steps {
    unsigned n;
    double us[STEPS_MAX], count[STEPS_MAX];
};

static void
usage(void)
{
    puts(
        "The delay between two successive looks at a clock (Thesis tables C.1, C.2, figure\n"
        "C-1): the time stamp counter, clock_gettime, gettimeofday.\n"
        "\n"
        "  --rounds N  pairs of each; default 10000, as in the Thesis\n"
        "  --json      one JSON object per clock, with the different delays in whole\n"
        "              microseconds and how often each occurred\n"
        "  --quick     nothing is shorter: it takes milliseconds\n"
        "  --help");
}

/* delay -- between two looks, in us, or ticks for RDTSC. */
static double
delay(enum clock clock)
{
    struct timespec s0, s1;
    struct timeval v0, v1;
    uint64_t t0, t1;

    switch (clock) {
    case CLOCK_GETTIME:
        clock_gettime(CLOCK_MONOTONIC, &s0);
        clock_gettime(CLOCK_MONOTONIC, &s1);
        return (double)(s1.tv_sec - s0.tv_sec) * 1e6
               + (double)(s1.tv_nsec - s0.tv_nsec) / 1e3;
    case GETTIMEOFDAY:
        gettimeofday(&v0, NULL);
        gettimeofday(&v1, NULL);
        return (double)(v1.tv_sec - v0.tv_sec) * 1e6 + (double)(v1.tv_usec - v0.tv_usec);
    default:
        t0 = bench_ticks();
        t1 = bench_ticks();
        return (double)(t1 - t0);
    }
}

/* count_steps -- of a sorted sample: how often each delay occurs, in steps of the clock. */
static void
count_steps(const struct bench_sample *s, double per_us, double step_us,
            struct steps *out)
{
    out->n = 0;
    for (size_t i = 0; i < s->n; i++) {
        /* Negative if the clock was set back. */
        double us = round(s->v[i] / per_us / step_us) * step_us;

        if (out->n == 0 || (us > out->us[out->n - 1] && out->n < STEPS_MAX)) {
            out->us[out->n] = us;
            out->count[out->n++] = 0;
        }
        out->count[out->n - 1]++;
    }
}

/* report -- one clock. */
static void
report(const struct bench_common *c, enum clock clock, struct bench_sample *s)
{
    struct bench_summary sum = bench_summarize(s);
    struct steps steps;

    if (!c->json) {
        bench_print_row(clocks[clock].name, &sum, 1);
        return;
    }
    count_steps(s, clock == RDTSC ? bench_ticks_per_us() : 1, clocks[clock].step_us,
                &steps);
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "timer");
    bench_json_str(stdout, "clock", clocks[clock].name);
    bench_json_str(stdout, "what", clocks[clock].what);
    if (clock == RDTSC) {
        bench_json_ticks(stdout, &sum);
    } else {
        bench_json_u64(stdout, "n", sum.n);
        bench_json_summary(stdout, "us", &sum, 1);
    }
    bench_json_nums(stdout, "delay_us", steps.us, steps.n);
    bench_json_nums(stdout, "delays", steps.count, steps.n);
    bench_json_str(stdout, "command", c->command);
    bench_json_end(stdout);
}

/* run -- ret exit status. */
static int
run(const struct bench_common *c, uint64_t rounds)
{
    struct bench_sample s[N_CLOCKS] = {{0}};
    int rc = 0;

    for (unsigned k = 0; k < N_CLOCKS && rc == 0; k++)
        rc = bench_sample_init(&s[k], rounds);
    for (uint64_t i = 0; rc == 0 && s[N_CLOCKS - 1].n < rounds; i++)
        for (unsigned j = 0; j < N_CLOCKS; j++) {
            enum clock k = (enum clock)((i + j) % N_CLOCKS);

            for (unsigned r = 0; r < RUN; r++)
                bench_sample_add(&s[k], delay(k));
        }
    if (rc == 0 && !c->json) {
        bench_print_command(c, "rdtsc in cycles, the others in us");
        bench_print_columns("clock", "");
    }
    for (unsigned k = 0; k < N_CLOCKS; k++) {
        if (rc == 0 && (k != RDTSC || BENCH_HAS_CYCLES))
            report(c, (enum clock)k, &s[k]);
        bench_sample_free(&s[k]);
    }
    return rc;
}

int
bench_timer_main(int argc, char **argv)
{
    struct bench_common common;
    uint64_t rounds = 0;
    const struct bench_option options[] = {
        {.name = "rounds", .number = &rounds, .low = 1, .high = ROUNDS_MAX},
        {0},
    };
    int rc;

    if (!bench_options_parse(argc, argv, options, usage, &common, &rc))
        return rc;
    if (rounds == 0)
        rounds = common.quick ? ROUNDS_QUICK : ROUNDS;
    return run(&common, rounds);
}
