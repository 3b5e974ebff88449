/* SPDX-License-Identifier: MIT */
/*
 * contention_options.c -- command line of the experiment `contention`.
 */
#include <config.h>

#include "bench/contention/contention.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/util.h"

#define SLICES_MAX  1000u
#define SECONDS_MAX 3600.0

const struct bench_hot_policy bench_hot_policies[] = {
    {"oldest-wins", XAC_POLICY_OLDEST_WINS}, {"self-abort", XAC_POLICY_SELF_ABORT},
    {"selfish", XAC_POLICY_SELFISH},         {"youngest-wins", XAC_POLICY_YOUNGEST_WINS},
    {"optimistic", XAC_POLICY_OPTIMISTIC},   {NULL, 0},
};

const struct bench_hot_length bench_hot_lengths[] = {
    {"short", 1, 1},
    {"long", 16, 4},
    {NULL, 0, 0},
};

enum option_code {
    OPT_POLICIES = 1,
    OPT_PROCS,
    OPT_PAGES,
    OPT_LENGTHS,
    OPT_SECONDS,
    OPT_SLICES,
    OPT_SEED,
    OPT_DIR,
    OPT_JSON,
    OPT_QUIET,
    OPT_HELP
};

static const struct option long_options[] = {
    {"policies", required_argument, NULL, OPT_POLICIES},
    {"procs", required_argument, NULL, OPT_PROCS},
    {"pages", required_argument, NULL, OPT_PAGES},
    {"lengths", required_argument, NULL, OPT_LENGTHS},
    {"seconds-per-cell", required_argument, NULL, OPT_SECONDS},
    {"slices", required_argument, NULL, OPT_SLICES},
    {"seed", required_argument, NULL, OPT_SEED},
    {"dir", required_argument, NULL, OPT_DIR},
    {"json", no_argument, NULL, OPT_JSON},
    {"quiet", no_argument, NULL, OPT_QUIET},
    {"help", no_argument, NULL, OPT_HELP},
    {0},
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

/* split -- call parse(o, item) for each item of "a,b,c". */
static int
split(struct bench_hot_options *o, const char *name, char *list, unsigned *np,
      int (*parse)(struct bench_hot_options *o, const char *item))
{
    char *save = NULL;

    *np = 0;
    for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
        if (*np == BENCH_HOT_LIST_MAX)
            return bench_fail("--%s: more than %u", name, BENCH_HOT_LIST_MAX);
        if (parse(o, p) != 0)
            return 1;
        *np += 1;
    }
    return *np > 0 ? 0 : bench_fail("--%s: the list is empty", name);
}

static int
parse_policy(struct bench_hot_options *o, const char *item)
{
    for (const struct bench_hot_policy *p = bench_hot_policies; p->name != NULL; p++)
        if (strcmp(p->name, item) == 0) {
            o->policies[o->n_policies] = p;
            return 0;
        }
    return bench_fail("--policies: no policy \"%s\"", item);
}

static int
parse_length(struct bench_hot_options *o, const char *item)
{
    for (const struct bench_hot_length *l = bench_hot_lengths; l->name != NULL; l++)
        if (strcmp(l->name, item) == 0) {
            o->lengths[o->n_lengths] = l;
            return 0;
        }
    return bench_fail("--lengths: no length \"%s\": short or long is wanted", item);
}

static int
parse_procs(struct bench_hot_options *o, const char *item)
{
    return bench_parse_number("procs", item, 1, BENCH_HOT_PROCS_MAX,
                              &o->procs[o->n_procs]);
}

static int
parse_pages(struct bench_hot_options *o, const char *item)
{
    return bench_parse_number("pages", item, 1, BENCH_HOT_PAGES_MAX,
                              &o->pages[o->n_pages]);
}

/* parse_option -- one option; only dispatches.  ret 0, or 1 after a message. */
static int
parse_option(struct bench_hot_options *o, int code, char *arg)
{
    switch (code) {
    case OPT_POLICIES:
        return split(o, "policies", arg, &o->n_policies, parse_policy);
    case OPT_PROCS:
        return split(o, "procs", arg, &o->n_procs, parse_procs);
    case OPT_PAGES:
        return split(o, "pages", arg, &o->n_pages, parse_pages);
    case OPT_LENGTHS:
        return split(o, "lengths", arg, &o->n_lengths, parse_length);
    case OPT_SECONDS:
        return parse_seconds(arg, &o->seconds);
    case OPT_SLICES:
        return bench_parse_number("slices", arg, 1, SLICES_MAX, &o->slices);
    case OPT_SEED:
        return bench_parse_number("seed", arg, 0, UINT64_MAX, &o->seed);
    case OPT_DIR:
        o->dir = arg;
        return 0;
    case OPT_JSON:
        o->json = true;
        return 0;
    case OPT_QUIET:
        o->quiet = true;
        return 0;
    default: /* getopt has said what is wrong */
        return 1;
    }
}

/* set_defaults -- the usual table. */
static void
set_defaults(struct bench_hot_options *o)
{
    *o = (struct bench_hot_options){
        .procs = {2, 8},
        .n_procs = 2,
        .pages = {1, 8, 64, 4096},
        .n_pages = 4,
        .seconds = 1,
        .slices = 5,
        .seed = 1,
        .dir = ".",
    };
    for (const struct bench_hot_policy *p = bench_hot_policies; p->name != NULL; p++)
        o->policies[o->n_policies++] = p;
    for (const struct bench_hot_length *l = bench_hot_lengths; l->name != NULL; l++)
        o->lengths[o->n_lengths++] = l;
}

int
bench_hot_parse(int argc, char **argv, struct bench_hot_options *o)
{
    struct stat st;
    int code;

    set_defaults(o);
    bench_join_command(o->command, sizeof o->command, argc, argv);
    while ((code = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (code == OPT_HELP || code == 'h') {
            o->help = true;
            return 0;
        }
        if (parse_option(o, code, optarg) != 0)
            return 1;
    }
    if (optind < argc)
        return bench_fail("contention: unexpected argument \"%s\"", argv[optind]);
    if (stat(o->dir, &st) != 0 || !S_ISDIR(st.st_mode))
        return bench_fail("--dir %s: no such directory", o->dir);
    return strlen(o->dir) <= 300 ? 0 : bench_fail("--dir: the name is too long");
}
