/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "bench/kit/micro.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/kit/machine.h"

#define CALIBRATION_NS UINT64_C(20000000)

double
bench_ticks_per_us(void)
{
    static double rate;
    uint64_t ns, t, ns_end, t_end;

    if (rate > 0)
        return rate;
    ns = bench_now_ns();
    t = bench_ticks();
    do {
        ns_end = bench_now_ns();
        t_end = bench_ticks();
    } while (ns_end - ns < CALIBRATION_NS);
    rate = (double)(t_end - t) * 1e3 / (double)(ns_end - ns);
    return rate;
}

int
bench_sample_init(struct bench_sample *s, size_t room)
{
    *s = (struct bench_sample){.v = malloc(room * sizeof *s->v), .room = room};
    if (s->v == NULL)
        return bench_fail("out of memory");
    memset(s->v, 0xff, room * sizeof *s->v); /* no page faults later */
    return 0;
}

void
bench_sample_free(struct bench_sample *s)
{
    free(s->v);
    *s = (struct bench_sample){0};
}

/* compare -- for qsort(3). */
static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct bench_summary
bench_summarize(struct bench_sample *s)
{
    struct bench_summary out = {0, NAN, NAN, NAN, NAN, NAN, NAN};
    double sum = 0, squares = 0;

    if (s->n == 0)
        return out;
    qsort(s->v, s->n, sizeof *s->v, compare);
    for (size_t i = 0; i < s->n; i++)
        sum += s->v[i];
    out.n = s->n;
    out.mean = sum / (double)s->n;
    for (size_t i = 0; i < s->n; i++)
        squares += (s->v[i] - out.mean) * (s->v[i] - out.mean);
    out.stdev = s->n > 1 ? sqrt(squares / (double)(s->n - 1)) : 0;
    out.min = s->v[0];
    out.max = s->v[s->n - 1];
    out.median = bench_median(s->v, s->n);
    out.p99 = s->v[(size_t)ceil(0.99 * (double)s->n) - 1];
    return out;
}

void
bench_json_summary(FILE *f, const char *unit, const struct bench_summary *s,
                   double per_unit)
{
    const struct {
        const char *name;
        double value;
    } fields[] = {{"mean", s->mean},     {"stdev", s->stdev}, {"min", s->min},
                  {"median", s->median}, {"p99", s->p99},     {"max", s->max}};
    char key[64];

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        snprintf(key, sizeof key, "%s_%s", unit, fields[i].name);
        bench_json_num(f, key, fields[i].value / per_unit);
    }
}

void
bench_json_ticks(FILE *f, const struct bench_summary *s)
{
    bench_json_u64(f, "n", s->n);
    bench_json_summary(f, "us", s, bench_ticks_per_us());
    if (BENCH_HAS_CYCLES)
        bench_json_summary(f, "cycles", s, 1);
}

void
bench_print_command(const struct bench_common *c, const char *what)
{
    struct utsname un;

    uname(&un);
    printf("$ %s\n%s %s, %ld cpus, %s; clock of %.0f MHz\n%s\n\n", c->command, un.sysname,
           un.release, sysconf(_SC_NPROCESSORS_ONLN), bench_fs_name(c->dir),
           bench_ticks_per_us(), what);
}

void
bench_print_columns(const char *head, const char *unit)
{
    printf("%-28s %8s %10s %10s %10s %10s %10s %10s\n", head, "n", "mean", "stdev", "min",
           "median", "p99", "max");
    if (unit[0] != '\0')
        printf("%-28s %8s %10s %10s %10s %10s %10s %10s\n", "", "", unit, unit, unit,
               unit, unit, unit);
}

void
bench_print_row(const char *label, const struct bench_summary *s, double per_unit)
{
    printf("%-28s %8zu %10.4g %10.4g %10.4g %10.4g %10.4g %10.4g\n", label, s->n,
           s->mean / per_unit, s->stdev / per_unit, s->min / per_unit,
           s->median / per_unit, s->p99 / per_unit, s->max / per_unit);
    fflush(stdout);
}

int
bench_dir_make(const struct bench_common *common, char dir[BENCH_DIR_BYTES])
{
    snprintf(dir, BENCH_DIR_BYTES, "%s/xbench-XXXXXX", common->dir);
    if (mkdtemp(dir) == NULL)
        return bench_fail("%s: %s", dir, strerror(errno));
    return 0;
}

int
bench_dir_remove(const char *dir)
{
    int rc = bench_remove_tree(dir);

    return rc == 0 ? 0 : bench_fail("%s: cannot be removed: %s", dir, strerror(rc));
}
