/* SPDX-License-Identifier: MIT */
/*
 * swizzle_curve.c -- from an empty pool on: transactions like TPC-C's on files, with a log.
 *
 * Two spaces of the same content, one with references and one without, work in turn for a short
 * while each, so that what else happens on the machine meets both.
 */
#include <config.h>

#include "bench/swizzle/swizzle.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/kit/util.h"

#define TURN_MS   500u
#define SIDE_PATH 64

/*
 * M. F. Gilbert's runs of TPC-C, on over off: none gained in 10 minutes from an empty pool, whatever
 * its size; in 50 minutes some gained up to so much.
 */
#define THESIS_10_MINUTES 1.0
#define THESIS_50_MINUTES 1.18

/* A side is cold while its pool fills: most pages come into empty frames, and enough do. */
#define COLD_EVICTIONS 0.5  /* for each miss, less than */
#define COLD_MISSES    0.01 /* for each fix, more than */

struct side {
    char directory[SIDE_PATH];
    struct swz_space *space;
    struct swzb_tpcc *tpcc;
    struct swzb_result sum; /* of the sample under way; ops_per_s a sum of the turns' */
};

/* Rates of the intervals of one phase, summed; [0] off, [1] on. */
struct phase {
    double ops[2];
    unsigned n;
};

/* side_open -- cold; fresh: made first. */
static int
side_open(const struct swzb_options *o, struct side *side, bool is_on, double percent)
{
    uint32_t pages = swzb_tpcc_size(side->tpcc, 6, o->scale);
    struct swz_config config = {.n_pages = 8 * pages + 4000000,
                                .n_frames = 4 * pages,
                                .n_threads = 4,
                                .is_plain = !is_on,
                                .is_direct = true};
    int rc = mkdir(side->directory, 0777) != 0 ? errno : 0;

    rc = rc != 0 ? rc : swz_open(side->directory, &config, &side->space);
    if (rc == EINVAL) { /* no O_DIRECT here */
        config.is_direct = false;
        rc = swz_open(side->directory, &config, &side->space);
    }
    if (rc != 0)
        return rc;
    rc = swzb_tpcc_load(side->space, side->tpcc);
    if (swz_close(side->space) != 0 || rc != 0) {
        side->space = NULL;
        return rc != 0 ? rc : EIO;
    }
    config.n_frames = (uint32_t)(pages * percent / 100) + 64;
    config.has_log = true;
    side->space = NULL;
    return swz_open(side->directory, &config, &side->space);
}

/* turn -- a while on one side. */
static int
turn(struct side *side, uint64_t ms)
{
    struct swzb_result r = {0};
    uint64_t *sum = (uint64_t *)&side->sum.stats, *add = (uint64_t *)&r.stats;

    if (swzb_run(side->space, 2, ms, swzb_tpcc_op, side->tpcc, &r) != 0)
        return 1;
    side->sum.ops_per_s += r.ops_per_s;
    side->sum.pool.evictions += r.pool.evictions;
    side->sum.pool.sweep_steps += r.pool.sweep_steps;
    for (size_t i = 0; i < sizeof r.stats / sizeof *sum; i++)
        sum[i] += add[i];
    return 0;
}

static bool
is_cold(const struct swzb_result *r)
{
    return (double)r->pool.evictions < COLD_EVICTIONS * (double)r->stats.misses
           && swzb_miss_rate(r) > COLD_MISSES;
}

/* point_print -- one interval of one side; an object, for the table has both in a line. */
static void
point_print(const struct swzb_options *o, double percent, bool is_on, double from_s,
            const struct swzb_result *r)
{
    if (!o->json)
        return;
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "swizzle");
    bench_json_str(stdout, "part", "curve");
    bench_json_num(stdout, "pool_percent", percent);
    bench_json_str(stdout, "side", is_on ? "on" : "off");
    bench_json_str(stdout, "phase", is_cold(r) ? "cold" : "warm");
    bench_json_num(stdout, "from_s", from_s);
    bench_json_num(stdout, "interval_s", (double)o->seconds / (double)o->intervals);
    bench_json_num(stdout, "tx_per_s", r->ops_per_s);
    bench_json_num(stdout, "misses_per_fix", swzb_miss_rate(r));
    bench_json_num(stdout, "lookups_per_fix", swzb_per_fix(r));
    bench_json_str(stdout, "command", o->command);
    bench_json_end(stdout);
}

/* phases_print -- gain of each phase, and the thesis' beside it; -1: there was none. */
static void
phases_print(const struct swzb_options *o, double percent, const struct phase *phases)
{
    double gain[2];

    for (int i = 0; i < 2; i++)
        gain[i] = phases[i].n == 0 ? -1 : phases[i].ops[1] / phases[i].ops[0];
    if (!o->json) {
        for (int i = 0; i < 2; i++)
            if (phases[i].n > 0)
                printf("curve     pool %.0f %%, %s: on/off %.3f in %u intervals\n",
                       percent, i == 0 ? "cold" : "warm", gain[i], phases[i].n);
        printf("curve     thesis: %.2f in 10 minutes from cold, up to %.2f in 50\n",
               THESIS_10_MINUTES, THESIS_50_MINUTES);
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "swizzle");
    bench_json_str(stdout, "part", "gain");
    bench_json_num(stdout, "pool_percent", percent);
    bench_json_num(stdout, "seconds", (double)o->seconds);
    bench_json_num(stdout, "gain_cold", gain[0]);
    bench_json_num(stdout, "gain_warm", gain[1]);
    bench_json_num(stdout, "tx_per_s_warm_on",
                   phases[1].n == 0 ? -1 : phases[1].ops[1] / phases[1].n);
    bench_json_num(stdout, "thesis_10_minutes", THESIS_10_MINUTES);
    bench_json_num(stdout, "thesis_50_minutes", THESIS_50_MINUTES);
    bench_json_str(stdout, "command", o->command);
    bench_json_end(stdout);
}

/* sample -- interval i of both sides in turn, and what came of it. */
static int
sample(const struct swzb_options *o, struct side *sides, double percent, unsigned i,
       struct phase *phases, double ratios[])
{
    double interval_s = (double)o->seconds / (double)o->intervals;
    uint64_t ms = o->seconds * 1000 / o->intervals, turn_ms = ms < TURN_MS ? ms : TURN_MS;
    uint64_t turns = ms / turn_ms;
    struct phase *phase;
    char what[96];

    for (int k = 0; k < 2; k++)
        sides[k].sum = (struct swzb_result){0};
    for (uint64_t n = 0; n < 2 * turns; n++) /* ABBA */
        if (turn(&sides[(n & 1) ^ ((n >> 1) & 1)], turn_ms) != 0)
            return 1;
    phase = &phases[is_cold(&sides[0].sum) || is_cold(&sides[1].sum) ? 0 : 1];
    phase->n++;
    for (int k = 0; k < 2; k++) {
        sides[k].sum.ops_per_s /= (double)turns;
        phase->ops[k] += sides[k].sum.ops_per_s;
        point_print(o, percent, k == 1, interval_s * i, &sides[k].sum);
        if (swz_checkpoint(sides[k].space) != 0) /* the log would grow for ever */
            return 1;
    }
    ratios[i] = sides[1].sum.ops_per_s / sides[0].sum.ops_per_s;
    (void)snprintf(what, sizeof what, "tpc-c, pool %.0f %%, from %.1f s on", percent,
                   interval_s * i);
    swzb_print(o, "start", what, &sides[1].sum, &sides[0].sum, ratios[i], ratios[i],
               ratios[i]);
    return 0;
}

static double
mean(const double *v, uint64_t from, uint64_t to)
{
    double sum = 0;

    for (uint64_t i = from; i < to; i++)
        sum += v[i];
    return to > from ? sum / (double)(to - from) : NAN;
}

/* samples -- the curve, and its rows of the plan: the first interval, the later half, quarters. */
static int
samples(const struct swzb_options *o, struct side *sides, double percent)
{
    struct phase phases[2] = {{{0}, 0}, {{0}, 0}};
    double ratios[SWZB_INTERVALS_MAX];
    uint64_t n = o->intervals;
    char what[96];

    for (unsigned i = 0; i < n; i++)
        if (sample(o, sides, percent, i, phases, ratios) != 0)
            return 1;
    phases_print(o, percent, phases);
    (void)snprintf(what, sizeof what, "tpc-c, pool %.0f %%: on/off, warm", percent);
    swzb_verdict(o, "B07", what, mean(ratios, n / 2, n), true, 1.02);
    (void)snprintf(what, sizeof what, "... less that of the first interval");
    swzb_verdict(o, "B07", what, mean(ratios, n / 2, n) - ratios[0], true, -0.02);
    swzb_verdict(o, "B16", "drift of on/off from the third quarter to the last",
                 fabs(mean(ratios, n * 3 / 4, n) / mean(ratios, n / 2, n * 3 / 4) - 1),
                 false, 0.05);
    return 0;
}

static int
curve(const struct swzb_options *o, const char *directory, double percent)
{
    struct side sides[2] = {0};
    int rc = 0;

    for (int k = 0; k < 2 && rc == 0; k++) {
        (void)snprintf(sides[k].directory, SIDE_PATH, "%s/%s", directory,
                       k == 0 ? "off" : "on");
        sides[k].tpcc = calloc(1, sizeof *sides[k].tpcc);
        rc = sides[k].tpcc == NULL ? ENOMEM : side_open(o, &sides[k], k == 1, percent);
    }
    if (rc != 0)
        (void)bench_fail("swizzle: %s: %s", directory, strerror(rc));
    else
        rc = samples(o, sides, percent);
    for (int k = 0; k < 2; k++) {
        if (sides[k].space != NULL && swz_close(sides[k].space) != 0)
            rc = 1;
        free(sides[k].tpcc);
    }
    return rc;
}

int
swzb_curve(const struct swzb_options *o)
{
    int rc = 0;

    for (size_t i = 0; i < o->pools.n && rc == 0; i++) {
        char directory[] = "swizzle-XXXXXX";

        if (mkdtemp(directory) == NULL)
            return bench_fail("swizzle: no directory: %s", strerror(errno));
        rc = curve(o, directory, (double)o->pools.v[i]);
        (void)bench_remove_tree(directory);
    }
    return rc != 0;
}
