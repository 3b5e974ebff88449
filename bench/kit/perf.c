/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "bench/kit/perf.h"

#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Events, with the name in the results and what a unit is multiplied by. */
static const struct {
    const char *name;
    uint32_t type;
    uint64_t config;
    double scale;
} events[BENCH_PERF_EVENTS] = {
    {"task_clock_us", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 1e-3},
    {"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1},
    {"major_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1},
    {"context_switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 1},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 1},
    {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 1},
    {"branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 1},
};

unsigned
bench_perf_open(struct bench_perf *p)
{
    unsigned n = 0;

    for (unsigned i = 0; i < BENCH_PERF_EVENTS; i++) {
        struct perf_event_attr attr = {.size = sizeof attr,
                                       .type = events[i].type,
                                       .config = events[i].config,
                                       .inherit = 1,
                                       .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED
                                                      | PERF_FORMAT_TOTAL_TIME_RUNNING};

        p->fds[i] =
            (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        n += p->fds[i] >= 0;
    }
    return n;
}

void
bench_perf_print(const struct bench_perf *p, FILE *f)
{
    const char *comma = "";

    fputc('{', f);
    for (unsigned i = 0; i < BENCH_PERF_EVENTS; i++) {
        uint64_t v[3]; /* count, ns it was to count, ns it did: they share the hardware */

        if (p->fds[i] < 0 || read(p->fds[i], v, sizeof v) != (ssize_t)sizeof v
            || v[2] == 0)
            continue;
        fprintf(f, "%s\"%s\": %.0f", comma, events[i].name,
                (double)v[0] * events[i].scale * ((double)v[1] / (double)v[2]));
        comma = ", ";
    }
    fputc('}', f);
}

void
bench_perf_close(struct bench_perf *p)
{
    for (unsigned i = 0; i < BENCH_PERF_EVENTS; i++)
        if (p->fds[i] >= 0)
            close(p->fds[i]);
}
