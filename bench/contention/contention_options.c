/* SPDX-License-Identifier: MIT */
/*
 * contention_options.c -- command line of the experiment `contention`.
 */
#include <config.h>

#include "bench/contention/contention.h"

#include <stdlib.h>
#include <string.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/util.h"

#define SLICES_MAX  1000u
#define SECONDS_MAX 3600.0

const struct bench_hot_policy bench_hot_policies[] = {
    {"oldest-wins", XAC_POLICY_OLDEST_WINS},
    {"self-abort", XAC_POLICY_SELF_ABORT},
    {"selfish", XAC_POLICY_SELFISH},
    {"youngest-wins", XAC_POLICY_YOUNGEST_WINS},
    {"optimistic", XAC_POLICY_OPTIMISTIC},
    {"serial", XAC_POLICY_SERIAL},
    {NULL, 0},
};

const struct bench_hot_length bench_hot_lengths[] = {
    {"short", 1, 1},
    {"long", 16, 4},
    {NULL, 0, 0},
};

/* parse_seconds -- a positive decimal number. */
static int
parse_seconds(const char *text, double *outp)
{
    char *end;
    double v = strtod(text, &end);

    if (end == text || *end != '\0' || !(v >= 0.001 && v <= SECONDS_MAX))
        return bench_fail("--seconds-per-cell %s: a number from 0.001 to %g is wanted",
                          text, SECONDS_MAX);
    *outp = v;
    return 0;
}

/* set_policies -- those of the command line, or all. */
static int
set_policies(struct bench_hot_options *o, const struct bench_words *words)
{
    for (const struct bench_hot_policy *p = bench_hot_policies; p->name != NULL; p++)
        if (words->n == 0)
            o->policies[o->n_policies++] = p;
    for (unsigned i = 0; i < words->n; i++) {
        const struct bench_hot_policy *p = bench_hot_policies;

        while (p->name != NULL && strcmp(p->name, words->v[i]) != 0)
            p++;
        if (p->name == NULL)
            return bench_fail("--policies: no policy \"%s\"", words->v[i]);
        o->policies[o->n_policies++] = p;
    }
    return 0;
}

/* set_lengths -- those of the command line, or both. */
static int
set_lengths(struct bench_hot_options *o, const struct bench_words *words)
{
    for (const struct bench_hot_length *l = bench_hot_lengths; l->name != NULL; l++)
        if (words->n == 0)
            o->lengths[o->n_lengths++] = l;
    for (unsigned i = 0; i < words->n; i++) {
        const struct bench_hot_length *l = bench_hot_lengths;

        while (l->name != NULL && strcmp(l->name, words->v[i]) != 0)
            l++;
        if (l->name == NULL)
            return bench_fail("--lengths: no length \"%s\": short or long is wanted",
                              words->v[i]);
        o->lengths[o->n_lengths++] = l;
    }
    return 0;
}

bool
bench_hot_parse(int argc, char **argv, struct bench_hot_options *o, int *statusp)
{
    struct bench_words policies = {0}, lengths = {0};
    const char *seconds = "1";
    const struct bench_option table[] = {
        {.name = "policies", .words = &policies},
        {.name = "procs", .numbers = &o->procs, .low = 1, .high = BENCH_HOT_PROCS_MAX},
        {.name = "pages", .numbers = &o->pages, .low = 1, .high = BENCH_HOT_PAGES_MAX},
        {.name = "lengths", .words = &lengths},
        {.name = "seconds-per-cell", .text = &seconds},
        {.name = "slices", .number = &o->slices, .low = 1, .high = SLICES_MAX},
        {.name = "seed", .number = &o->seed, .low = 0, .high = UINT64_MAX},
        BENCH_OPTION_DIR(&o->common),
        {0},
    };

    *o = (struct bench_hot_options){
        .procs = {2, {2, 8}},
        .pages = {4, {1, 8, 64, 4096}},
        .slices = 5,
        .seed = 1,
    };
    if (!bench_options_parse(argc, argv, table, bench_hot_usage, &o->common, statusp))
        return false;
    if (bench_options_no_quick(&o->common) != 0 || set_policies(o, &policies) != 0
        || set_lengths(o, &lengths) != 0 || parse_seconds(seconds, &o->seconds) != 0)
        *statusp = 2;
    return *statusp == 0;
}
