/* SPDX-License-Identifier: MIT */
/*
 * swizzle_run.c -- threads that run one kind of operation for a time, and what is counted.
 */
#include <config.h>

#include "bench/swizzle/swizzle.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/kit/util.h"
#include "swizzle/page.h"

struct crew {
    struct swz_space *space;
    swzb_op *op;
    void *arg;
    unsigned n_threads;
    _Atomic bool stop;
    _Atomic int rc;
};

struct member {
    struct crew *crew;
    pthread_t id;
    uint64_t cpu_ns;
    struct swzb_worker w;
};

uint64_t
swzb_next(uint64_t *seed)
{
    uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void *
member_main(void *arg)
{
    struct member *m = arg;
    struct timespec cpu;
    int rc = 0;

    bench_pin(m->w.number, m->crew->n_threads);
    while (rc == 0 && !atomic_load_explicit(&m->crew->stop, memory_order_relaxed)) {
        uint64_t start = bench_now_ns(), ns;

        for (int i = 0; i < 16 && rc == 0; i++)
            rc = m->crew->op(&m->w);
        m->w.n_ops += rc == 0 ? 16 : 0;
        ns = bench_now_ns() - start;
        m->w.longest_ns = ns > m->w.longest_ns ? ns : m->w.longest_ns;
    }
    swz_thread_counts(m->w.th, &m->w.n_fixes, &m->w.n_misses);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    m->cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
    if (rc != 0)
        atomic_store_explicit(&m->crew->rc, rc, memory_order_relaxed);
    return NULL;
}

/* difference -- of counters: all are 64 bits wide. */
static void
difference(void *a, const void *b, size_t n_bytes)
{
    uint64_t *x = a;
    const uint64_t *y = b;

    for (size_t i = 0; i < n_bytes / sizeof *x; i++)
        x[i] -= y[i];
}

static void
counters(struct swz_space *s, struct swzb_result *r)
{
    swz_get_stats(s, &r->stats);
    swz_get_times(s, &r->times);
    swz_get_pool_stats(s, &r->pool);
}

int
swzb_run(struct swz_space *space, unsigned n_threads, uint64_t ms, swzb_op *op, void *arg,
         struct swzb_result *rp)
{
    struct crew crew = {.space = space, .op = op, .arg = arg, .n_threads = n_threads};
    struct member members[SWZB_THREADS_MAX] = {0};
    struct timespec pause = {.tv_sec = (time_t)(ms / 1000),
                             .tv_nsec = (long)(ms % 1000) * 1000000};
    struct swzb_result before;
    uint64_t start, n = 0, cpu_ns = 1;
    int rc = 0;

    for (unsigned i = 0; i < n_threads && rc == 0; i++) {
        members[i].crew = &crew;
        members[i].w = (struct swzb_worker){.arg = arg, .seed = 77 + i, .number = i};
        rc = swz_join(space, &members[i].w.th);
    }
    if (rc != 0)
        return bench_fail("swizzle: a thread cannot join: %s", strerror(rc));
    counters(space, &before);
    start = bench_now_ns();
    for (unsigned i = 0; i < n_threads; i++) {
        if (pthread_create(&members[i].id, NULL, member_main, &members[i]) != 0)
            return bench_fail("swizzle: no thread");
    }
    (void)nanosleep(&pause, NULL);
    atomic_store_explicit(&crew.stop, true, memory_order_relaxed);
    for (unsigned i = 0; i < n_threads; i++) {
        (void)pthread_join(members[i].id, NULL);
        n += members[i].w.n_ops;
        cpu_ns += members[i].cpu_ns;
    }
    rp->longest_s = 0;
    for (unsigned i = 0; i < n_threads; i++)
        if ((double)members[i].w.longest_ns / 1e9 > rp->longest_s)
            rp->longest_s = (double)members[i].w.longest_ns / 1e9;
    rp->last_miss_rate = (double)members[n_threads - 1].w.n_misses
                         / ((double)members[n_threads - 1].w.n_fixes + 1e-9);
    rp->ops_per_s = (double)n * 1e9 / (double)(bench_now_ns() - start);
    rp->ops_per_cpu_s = (double)n * 1e9 / (double)cpu_ns;
    for (unsigned i = 0; i < n_threads; i++)
        swz_leave(members[i].w.th);
    counters(space, rp);
    difference(&rp->stats, &before.stats, sizeof rp->stats);
    difference(&rp->pool, &before.pool, sizeof rp->pool);
    difference(&rp->times, &before.times, sizeof rp->times);
    rc = atomic_load_explicit(&crew.rc, memory_order_relaxed);
    return rc == 0 ? 0 : bench_fail("swizzle: an operation failed: %s", strerror(rc));
}

/* ns_per_tick -- of swz_ticks(), measured once. */
static double
ns_per_tick(void)
{
    static double ns;

    if (ns == 0) {
        uint64_t t0 = swz_ticks(), n0 = bench_now_ns();

        while (bench_now_ns() - n0 < 20000000) {
        }
        ns = (double)(bench_now_ns() - n0) / (double)(swz_ticks() - t0);
    }
    return ns;
}

double
swzb_ns(const struct swzb_result *r, int is_exclusive, enum swz_way way)
{
    uint64_t n = r->times.n[is_exclusive][way];

    return n == 0 ? -1
                  : (double)r->times.ticks[is_exclusive][way] * ns_per_tick() / (double)n;
}

static double
fixes(const struct swzb_result *r)
{
    return (double)(r->stats.fixes_swizzled + r->stats.lookups) + 1e-9;
}

double
swzb_per_fix(const struct swzb_result *r)
{
    return (double)r->stats.lookups / fixes(r);
}

double
swzb_miss_rate(const struct swzb_result *r)
{
    return (double)r->stats.misses / fixes(r);
}

/* object -- fields of one of the two. */
static void
object(const char *suffix, const struct swzb_result *r)
{
    static const char *const ways[] = {"swizzled", "lookup", "miss"};
    char key[64];

    (void)snprintf(key, sizeof key, "ops_per_s_%s", suffix);
    bench_json_num(stdout, key, r->ops_per_s);
    (void)snprintf(key, sizeof key, "ops_per_cpu_s_%s", suffix);
    bench_json_num(stdout, key, r->ops_per_cpu_s);
    (void)snprintf(key, sizeof key, "lookups_per_fix_%s", suffix);
    bench_json_num(stdout, key, swzb_per_fix(r));
    (void)snprintf(key, sizeof key, "miss_rate_%s", suffix);
    bench_json_num(stdout, key, swzb_miss_rate(r));
    for (int x = 0; x < 2; x++)
        for (int w = 0; w < SWZ_WAYS; w++) {
            (void)snprintf(key, sizeof key, "fix_%s_%s_%s_ns", ways[w], x ? "x" : "s",
                           suffix);
            bench_json_num(stdout, key, swzb_ns(r, x, (enum swz_way)w));
        }
    (void)snprintf(key, sizeof key, "steps_per_eviction_%s", suffix);
    bench_json_num(stdout, key,
                   r->pool.evictions == 0
                       ? -1
                       : (double)r->pool.sweep_steps / (double)r->pool.evictions);
    (void)snprintf(key, sizeof key, "evictions_%s", suffix);
    bench_json_u64(stdout, key, r->pool.evictions);
    (void)snprintf(key, sizeof key, "swizzles_%s", suffix);
    bench_json_u64(stdout, key, r->stats.swizzles);
    (void)snprintf(key, sizeof key, "unswizzles_%s", suffix);
    bench_json_u64(stdout, key, r->stats.unswizzles);
    (void)snprintf(key, sizeof key, "refused_children_%s", suffix);
    bench_json_u64(stdout, key, r->stats.refused_children);
    (void)snprintf(key, sizeof key, "refused_parent_%s", suffix);
    bench_json_u64(stdout, key, r->stats.refused_parent);
    (void)snprintf(key, sizeof key, "longest_s_%s", suffix);
    bench_json_num(stdout, key, r->longest_s);
    (void)snprintf(key, sizeof key, "refused_latch_%s", suffix);
    bench_json_u64(stdout, key, r->stats.refused_latch);
}

double
swzb_barred_ns(const struct swz_space *s)
{
    const struct pool_owner *owner = s->pool->owner;
    uint32_t n = s->pool->region->n_frames_all, n_barred = 0;
    uint64_t n_asked = 0, start = bench_now_ns(), now;

    do {
        for (uint32_t i = 0; i < n; i++)
            n_barred += owner->is_barred(owner->arg, i);
        n_asked += n;
        now = bench_now_ns();
    } while (now - start < 20000000);
    return n_barred == 0 ? -1 : (double)(now - start) / (double)n_asked;
}

void
swzb_print(const struct swzb_options *o, const char *part, const char *what,
           const struct swzb_result *on, const struct swzb_result *off, double ratio,
           double low, double high)
{
    static bool headed;

    if (o->json) {
        bench_json_begin(stdout);
        bench_json_str(stdout, "experiment", "swizzle");
        bench_json_str(stdout, "part", part);
        bench_json_str(stdout, "what", what);
        bench_json_num(stdout, "ratio", ratio);
        bench_json_num(stdout, "ratio_min", low);
        bench_json_num(stdout, "ratio_max", high);
        object("on", on);
        object("off", off);
        bench_json_str(stdout, "command", o->command);
        bench_json_end(stdout);
        (void)fflush(stdout);
        return;
    }
    if (!headed)
        printf("%-9s %-34s %10s %10s %6s %13s %8s %8s %7s %7s %8s\n", "part", "what",
               "on op/s", "off op/s", "ratio", "min - max", "look/fix", "miss %", "S swz",
               "S look", "S miss ns");
    headed = true;
    printf("%-9s %-34s %10.0f %10.0f %6.2f %6.2f-%-6.2f %8.4f %8.3f %7.0f %7.0f %8.0f\n",
           part, what, on->ops_per_s, off->ops_per_s, ratio, low, high, swzb_per_fix(on),
           100 * swzb_miss_rate(on), swzb_ns(on, 0, SWZ_SWIZZLED),
           swzb_ns(off, 0, SWZ_LOOKUP), swzb_ns(on, 0, SWZ_MISS));
    (void)fflush(stdout);
}

static unsigned n_missed; /* rows */

unsigned
swzb_missed(void)
{
    return n_missed;
}

void
swzb_verdict(const struct swzb_options *o, const char *row, const char *what,
             double value, bool at_least, double line)
{
    const char *verdict = isnan(line)     ? "reported"
                          : at_least      ? value >= line ? "pass" : "missed"
                          : value <= line ? "pass"
                                          : "missed";

    n_missed += strcmp(verdict, "missed") == 0;
    if (!o->json) {
        printf("%-9s %-62s %8.3f", row, what, value);
        if (!isnan(line))
            printf("  wanted at %s %.2f", at_least ? "least" : "most", line);
        printf("  %s\n", verdict);
        (void)fflush(stdout);
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "swizzle");
    bench_json_str(stdout, "part", row);
    bench_json_str(stdout, "what", what);
    bench_json_signed(stdout, "value", value);
    bench_json_str(stdout, "wanted",
                   isnan(line) ? ""
                   : at_least  ? "at least"
                               : "at most");
    bench_json_signed(stdout, "line", line);
    bench_json_str(stdout, "verdict", verdict);
    bench_json_str(stdout, "command", o->command);
    bench_json_end(stdout);
}
