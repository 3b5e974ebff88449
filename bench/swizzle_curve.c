/* SPDX-License-Identifier: MIT */
/*
 * swizzle_curve.c -- from an empty pool on: transactions like TPC-C's on files, with a log.
 *
 * Two spaces of the same content, one with references and one without, work in turn for a short
 * while each, so that what else happens on the machine meets both.
 */
#include <config.h>

#include "swizzle.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util.h"

#define SAMPLES   10
#define TURN_MS   500u
#define SIDE_PATH 64

struct side {
    char directory[SIDE_PATH];
    struct swz_space *space;
    struct swzb_tpcc *tpcc;
    struct swzb_result sum; /* of the sample under way; ops_per_s a sum of the turns' */
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
    for (size_t i = 0; i < sizeof r.stats / sizeof *sum; i++)
        sum[i] += add[i];
    return 0;
}

/* samples -- the curve; ratios of the first and of the mean of the later half. */
static int
samples(const struct swzb_options *o, struct side *sides, double percent)
{
    uint64_t turn_ms =
        o->seconds * 1000 / SAMPLES < TURN_MS ? o->seconds * 1000 / SAMPLES : TURN_MS;
    uint64_t turns = o->seconds * 1000 / SAMPLES / turn_ms;
    double ops[2][SAMPLES], warm[2] = {0, 0}, middle = 0, end = 0;
    char what[96];

    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < 2; k++)
            sides[k].sum = (struct swzb_result){0};
        for (uint64_t n = 0; n < 2 * turns; n++) /* ABBA */
            if (turn(&sides[(n & 1) ^ ((n >> 1) & 1)], turn_ms) != 0)
                return 1;
        for (int k = 0; k < 2; k++) {
            ops[k][i] = sides[k].sum.ops_per_s /= (double)turns;
            warm[k] += i >= SAMPLES / 2 ? ops[k][i] : 0;
        }
        for (int k = 0; k < 2; k++) /* the log would grow for ever */
            if (swz_checkpoint(sides[k].space) != 0)
                return 1;
        (void)snprintf(what, sizeof what, "tpc-c, pool %.0f %%, from %.1f s on", percent,
                       (double)o->seconds / SAMPLES * i);
        swzb_print(o, "start", what, &sides[1].sum, &sides[0].sum, ops[1][i] / ops[0][i],
                   ops[1][i] / ops[0][i], ops[1][i] / ops[0][i]);
    }
    (void)snprintf(what, sizeof what, "tpc-c, pool %.0f %%: on/off, warm", percent);
    swzb_verdict(o, "B07", what, warm[1] / warm[0], true, 1.02);
    (void)snprintf(what, sizeof what, "... less that of the first tenth");
    swzb_verdict(o, "B07", what, warm[1] / warm[0] - ops[1][0] / ops[0][0], true, -0.02);
    for (int i = SAMPLES / 2; i < SAMPLES; i++) {
        double *sum = i < SAMPLES * 3 / 4 ? &middle : &end;

        *sum += ops[1][i] / ops[0][i] / (i < SAMPLES * 3 / 4 ? 2 : 3);
    }
    swzb_verdict(o, "B16", "drift of on/off from the third quarter to the last",
                 fabs(end / middle - 1), false, 0.05);
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
    static const double percent[] = {30, 110};
    int rc = 0;

    for (int i = 0; i < 2 && rc == 0; i++) {
        char directory[] = "swizzle-XXXXXX";

        if (o->pool != 0 && i > 0)
            break;
        if (mkdtemp(directory) == NULL)
            return bench_fail("swizzle: no directory: %s", strerror(errno));
        rc = curve(o, directory, o->pool != 0 ? o->pool : percent[i]);
        (void)bench_remove_tree(directory);
    }
    return rc != 0;
}
