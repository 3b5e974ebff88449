/* SPDX-License-Identifier: MIT */
/*
 * frames_table.c -- see frames_table.h.
 */
#include <config.h>

#include "bench/frames/frames_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kit/util.h"

#define LOAD_QUIET 0.5 /* load average before the first row */

static const char *const verdicts[] = {
    [ROW_PASS] = "pass",
    [ROW_FAIL] = "FAIL",
    [ROW_REPORT] = "report",
    [ROW_NOT_RUN] = "not run",
};

void
bench_row(struct table *t, const char *name, const char *claim, const char *line,
          enum row_verdict verdict, const char *measured, ...)
{
    char text[512];
    va_list args;

    va_start(args, measured);
    (void)vsnprintf(text, sizeof text, measured, args);
    va_end(args);
    t->n[verdict]++;
    if (t->json) {
        bench_json_begin(stdout);
        bench_json_str(stdout, "experiment", "frames");
        bench_json_str(stdout, "row", name);
        bench_json_str(stdout, "claim", claim);
        bench_json_str(stdout, "passes_if", line);
        bench_json_str(stdout, "verdict", verdicts[verdict]);
        bench_json_str(stdout, "measured", text);
        bench_json_end(stdout);
    } else {
        printf("%-7s %-8s %s\n%17s%s\n%17s%s\n", name, verdicts[verdict], claim,
               "line: ", line, "", text);
    }
    (void)fflush(stdout);
}

bool
bench_row_wanted(const struct table *t, const char *name)
{
    return t->only == NULL || strcmp(t->only, name) == 0
           || (strncmp(t->only, name, strlen(t->only)) == 0
               && (name[strlen(t->only)] == '-' || t->only[strlen(t->only) - 1] == '-'));
}

/* load_note -- what else runs here, if it is much: then threads' figures mean little. */
static void
load_note(const struct table *t)
{
    double load;

    if (!t->json && getloadavg(&load, 1) == 1 && load > LOAD_QUIET)
        printf(
            "load average %.1f: other programs run here, and figures of threads (all of "
            "nb-1 to nb-6, nb-10 to nb-14, bp-2 to bp-5, bp-8 to bp-10) mean little\n",
            load);
}

int
bench_frames_all(struct table *t)
{
    const struct row *const tables[] = {bench_nb_rows, bench_nb_more_rows, bench_bp_rows};
    uint64_t begin = bench_now_ns();

    load_note(t);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const struct row *row = tables[i]; row->name != NULL; row++)
            if (bench_row_wanted(t, row->name) && row->measure(t) != 0)
                return 1;
    if (t->n[ROW_PASS] + t->n[ROW_FAIL] + t->n[ROW_REPORT] + t->n[ROW_NOT_RUN] == 0)
        return bench_fail("frames: no row begins with \"%s\"", t->only);
    if (!t->json)
        printf("%u pass, %u fail, %u only reported, %u not run; %.0f s\n", t->n[ROW_PASS],
               t->n[ROW_FAIL], t->n[ROW_REPORT], t->n[ROW_NOT_RUN],
               (double)(bench_now_ns() - begin) / 1e9);
    return t->n[ROW_FAIL] > 0 ? BENCH_SHORT : 0;
}
