/* SPDX-License-Identifier: MIT */
/*
 * touch.c -- the experiment `touch`: see touch.h.
 */
#include <config.h>

#include "bench/cost/touch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/worker.h"
#include "bench/main/xbench.h"
#include "bench/systems/sys_xac.h"

#define PAGES_MAX            (UINT64_C(1) << 20)
#define ROUNDS               UINT64_C(1000)
#define ROUNDS_QUICK         UINT64_C(20)
#define ROUNDS_DURABLE       UINT64_C(100)
#define ROUNDS_DURABLE_QUICK UINT64_C(3)
#define ROUNDS_MAX           UINT64_C(1000000)

const char *const bench_access_names[BENCH_N_ACCESSES] = {
    [BENCH_READ] = "read",
    [BENCH_WRITE] = "write",
    [BENCH_READ_WRITE] = "read-then-write",
    [BENCH_FILL] = "fill",
};

const char *const bench_hint_names[BENCH_N_HINTS] = {
    [BENCH_HINT_NONE] = "none",
    [BENCH_HINT_PAGE] = "page",
    [BENCH_HINT_RANGE] = "range",
};

static void
usage(void)
{
    static const struct bench_help options[] = {
        {"pages", "LIST", "pages of a transaction",
         "1,2,4,...,1024; with --durable 1,1024"},
        {"rounds", "N", "so often", "1000, as in the Thesis; with --durable 100"},
        {"durable", NULL, "durable transactions instead of nondurable ones", NULL},
        {"stay-mapped", NULL,
         "pages stay readable from one transaction to the next (XAC_CHECKING_FAST)",
         NULL},
        {"quick", NULL, "20 rounds; with --durable 3", NULL},
        {0},
    };

    puts(
        "What a page costs that a transaction reads or writes: transactions that touch n\n"
        "consecutive pages, without and with the advisory functions (Thesis figures 4-2,\n"
        "4-4, C-2 to C-4, tables 4.2, 4.7, C.5).  A page is read, written (one int), read\n"
        "and then written, or filled; before that nothing is announced, or each page, or\n"
        "the range.  In each round every combination has its turn.\n");
    bench_options_help(options);
}

/* ---- The environment ------------------------------------------------------------------ */

/* fail -- say what libxac said; ret 1. */
static int
fail(const char *what, int rc)
{
    return bench_fail("%s: %s", what, bench_xac_explain(rc));
}

int
bench_touch_open(struct bench_touch *t, const char *dir, struct bench_touch_mode mode,
                 uint64_t n_pages)
{
    char env[BENCH_DIR_BYTES + 16];
    int rc;

    *t = (struct bench_touch){.n_pages = n_pages,
                              .page_bytes = (size_t)sysconf(_SC_PAGESIZE)};
    snprintf(env, sizeof env, "%s/env", dir);
    snprintf(t->file, sizeof t->file, "%s/pages", dir);
    rc = xac_set_option(XAC_OPT_CHECKING,
                        mode.stay_mapped ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT);
    if (rc == 0)
        rc = xac_init(env, mode.durable ? XAC_DURABLE : XAC_NONDURABLE);
    if (rc != 0)
        return fail("xInit", rc);
    t->base = xac_mmap(t->file, n_pages * t->page_bytes);
    if ((void *)t->base != MAP_FAILED)
        return 0;
    rc = errno;
    (void)fail("xMmap", rc);
    (void)xac_shutdown();
    return 1;
}

int
bench_touch_close(struct bench_touch *t)
{
    int rc = xac_munmap(t->file), rc2 = xac_shutdown();

    rc = rc != 0 ? rc : rc2;
    return rc == 0 ? 0 : fail("xShutdown", rc);
}

/* ---- The transactions ------------------------------------------------------------------- */

/* announce -- ret 0 or a code. */
static int
announce(enum bench_hint hint, enum bench_hint when, void *addr, size_t bytes, int access)
{
    if (hint != when)
        return 0;
    return hint == BENCH_HINT_PAGE ? xac_set_page_access(addr, access)
                                   : xac_set_range_access(addr, bytes, access);
}

/* use -- one page; ret 0 or a code. */
static int
use(struct bench_touch *t, uint8_t *page, enum bench_access access, enum bench_hint hint)
{
    volatile unsigned *first = (volatile unsigned *)(void *)page;
    int rc = 0;

    if (access == BENCH_READ || access == BENCH_READ_WRITE) {
        rc = announce(hint, BENCH_HINT_PAGE, page, 0, XAC_READ);
        if (rc == 0)
            (void)*first;
    }
    if (access == BENCH_READ || rc != 0)
        return rc;
    rc = announce(hint, BENCH_HINT_PAGE, page, 0, XAC_READ_WRITE);
    if (rc != 0)
        return rc;
    if (access == BENCH_FILL)
        memset(page, (int)t->value, t->page_bytes);
    *first = t->value;
    return 0;
}

/* pass -- through all pages; ret 0 or a code. */
static int
pass(struct bench_touch *t, uint64_t n_pages, enum bench_access access,
     enum bench_hint hint)
{
    size_t bytes = n_pages * t->page_bytes;
    int rc = announce(hint, BENCH_HINT_RANGE, t->base, bytes,
                      access == BENCH_READ ? XAC_READ : XAC_READ_WRITE);

    for (uint64_t i = 0; i < n_pages && rc == 0; i++)
        rc = use(t, t->base + i * t->page_bytes, access, hint);
    return rc;
}

/* transact -- one transaction; out ticksp; ret 0, or 1 after a message. */
static int
transact(struct bench_touch *t, uint64_t n_pages, enum bench_access access,
         enum bench_hint hint, double *ticksp)
{
    uint64_t t0, t1;
    int rc, rc2;

    t->value++;
    t0 = bench_ticks();
    rc = xac_begin();
    if (rc != 0)
        return fail("xbegin", rc);
    rc = pass(t, n_pages, access, hint);
    rc2 = xac_end();
    t1 = bench_ticks();
    if (rc != 0)
        return fail("setPageAccess", rc);
    if (rc2 != XAC_COMMITTED)
        return fail("xend", rc2);
    *ticksp = (double)(t1 - t0);
    return 0;
}

/* run_round -- every combination once. */
static int
run_round(struct bench_touch *t, uint64_t n_pages, uint64_t round,
          struct bench_touched *out)
{
    const unsigned n = BENCH_N_ACCESSES * BENCH_N_HINTS;

    for (unsigned i = 0; i < n; i++) {
        unsigned k = (unsigned)((round + i) % n);
        enum bench_access access = (enum bench_access)(k / BENCH_N_HINTS);
        enum bench_hint hint = (enum bench_hint)(k % BENCH_N_HINTS);
        double ticks = 0;

        if (bench_interrupted())
            return bench_fail("interrupted");
        if (transact(t, n_pages, access, hint, &ticks) != 0)
            return 1;
        if (round > 0) /* the first one finds nothing in its place */
            bench_sample_add(&out->per_page[access][hint], ticks / (double)n_pages);
    }
    return 0;
}

int
bench_touch_measure(struct bench_touch *t, uint64_t n_pages, uint64_t rounds,
                    struct bench_touched *out)
{
    char label[40];
    int rc = 0;

    *out = (struct bench_touched){0};
    for (unsigned a = 0; a < BENCH_N_ACCESSES; a++)
        for (unsigned h = 0; h < BENCH_N_HINTS && rc == 0; h++)
            rc = bench_sample_init(&out->per_page[a][h], rounds);
    snprintf(label, sizeof label, "%llu pages", (unsigned long long)n_pages);
    for (uint64_t i = 0; i <= rounds && rc == 0; i++) {
        bench_progress(label, i, rounds);
        rc = run_round(t, n_pages, i, out);
    }
    bench_progress_clear();
    return rc;
}

void
bench_touch_free(struct bench_touched *touched)
{
    for (unsigned a = 0; a < BENCH_N_ACCESSES; a++)
        for (unsigned h = 0; h < BENCH_N_HINTS; h++)
            bench_sample_free(&touched->per_page[a][h]);
}

/* ---- The experiment ---------------------------------------------------------------------- */

struct options {
    struct bench_common common;
    struct bench_numbers pages;
    uint64_t rounds;
    struct bench_touch_mode mode;
};

/* print_json -- one combination; `plain` is without hints. */
static void
print_json(const struct options *o, uint64_t n_pages, enum bench_access access,
           enum bench_hint hint, const struct bench_summary *s, double plain)
{
    FILE *f = stdout;

    bench_json_begin(f);
    bench_json_str(f, "experiment", "touch");
    bench_json_bool(f, "durable", o->mode.durable);
    bench_json_bool(f, "stay_mapped", o->mode.stay_mapped);
    bench_json_str(f, "access", bench_access_names[access]);
    bench_json_str(f, "hint", bench_hint_names[hint]);
    bench_json_u64(f, "pages", n_pages);
    bench_json_u64(f, "n", s->n);
    bench_json_summary(f, "us_per_page", s, bench_ticks_per_us());
    if (BENCH_HAS_CYCLES)
        bench_json_summary(f, "cycles_per_page", s, 1);
    if (hint != BENCH_HINT_NONE)
        bench_json_signed(f, "percent_saved_by_hint", 100 * (plain - s->median) / plain);
    bench_json_str(f, "command", o->common.command);
    bench_json_end(f);
}

/* report -- all combinations with so many pages. */
static void
report(const struct options *o, uint64_t n_pages, struct bench_touched *touched)
{
    for (unsigned a = 0; a < BENCH_N_ACCESSES; a++) {
        double plain = 0;

        for (unsigned h = 0; h < BENCH_N_HINTS; h++) {
            struct bench_summary s = bench_summarize(&touched->per_page[a][h]);
            char label[64];

            if (h == BENCH_HINT_NONE)
                plain = s.median;
            if (o->common.json) {
                print_json(o, n_pages, (enum bench_access)a, (enum bench_hint)h, &s,
                           plain);
                continue;
            }
            snprintf(label, sizeof label, "%5llu %s%s%s", (unsigned long long)n_pages,
                     bench_access_names[a], h == BENCH_HINT_NONE ? "" : ", hint: ",
                     h == BENCH_HINT_NONE ? "" : bench_hint_names[h]);
            bench_print_row(label, &s, bench_ticks_per_us());
        }
    }
}

/* run -- in a directory; ret exit status. */
static int
run(const struct options *o, const char *dir)
{
    uint64_t most = 0;
    struct bench_touched touched;
    struct bench_touch t;
    int rc;

    for (unsigned i = 0; i < o->pages.n; i++)
        most = o->pages.v[i] > most ? o->pages.v[i] : most;
    if (!o->common.json) {
        bench_print_command(&o->common,
                            o->mode.durable
                                ? "durable transactions; microseconds per page"
                                : "nondurable transactions; microseconds per "
                                  "page");
        bench_print_columns("pages, access", "us");
    }
    if (bench_touch_open(&t, dir, o->mode, most) != 0)
        return 1;
    rc = 0;
    for (unsigned i = 0; i < o->pages.n && rc == 0; i++) {
        rc = bench_touch_measure(&t, o->pages.v[i], o->rounds, &touched);
        if (rc == 0)
            report(o, o->pages.v[i], &touched);
        bench_touch_free(&touched);
    }
    return bench_touch_close(&t) != 0 ? 1 : rc;
}

/* set_defaults -- where the command line says nothing. */
static void
set_defaults(struct options *o)
{
    static const struct bench_numbers both_ends = {2, {1, 1024}};

    if (o->pages.n == 0 && o->mode.durable)
        o->pages = both_ends;
    else if (o->pages.n == 0)
        for (uint64_t n = 1; n <= 1024; n *= 2)
            o->pages.v[o->pages.n++] = n;
    if (o->rounds == 0 && o->mode.durable)
        o->rounds = o->common.quick ? ROUNDS_DURABLE_QUICK : ROUNDS_DURABLE;
    else if (o->rounds == 0)
        o->rounds = o->common.quick ? ROUNDS_QUICK : ROUNDS;
}

int
bench_touch_main(int argc, char **argv)
{
    struct options o = {.rounds = 0};
    const struct bench_option options[] = {
        {.name = "pages", .numbers = &o.pages, .low = 1, .high = PAGES_MAX},
        {.name = "rounds", .number = &o.rounds, .low = 1, .high = ROUNDS_MAX},
        {.name = "durable", .flag = &o.mode.durable},
        {.name = "stay-mapped", .flag = &o.mode.stay_mapped},
        BENCH_OPTION_DIR(&o.common),
        {0},
    };
    char dir[BENCH_DIR_BYTES];
    int rc;

    if (!bench_options_parse(argc, argv, options, usage, &o.common, &rc))
        return rc;
    set_defaults(&o);
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    if (bench_dir_make(&o.common, dir) != 0)
        return 1;
    rc = run(&o, dir);
    return bench_dir_remove(dir) != 0 ? 1 : rc;
}
