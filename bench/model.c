/* SPDX-License-Identifier: MIT */
/*
 * model.c -- the experiment `model`: does the cost of a touched page follow from that of the
 * operations it is made of? (Thesis section 4.2.3, equations 4.1 and 4.2, table 4.6)
 *
 * The constants are measured on the spot as by `handler`, the pages as by `touch`, with
 * transactions of 1,024 pages.  Medians, from which the delay of the clock is subtracted.
 *
 * The Thesis' engine maps a page with mmap for every change of access:
 *
 *     read    >= enter + exit + 2 mmap + fault               (4.1; without a trap: no enter, exit)
 *     write   >= 2 enter + 2 exit + 3 mmap + fault + memcpy  (4.2; without traps: two mmap)
 *
 * The engine sigsegv changes protections, takes all pages back by one call, needs one trap
 * for a first write, and at the commit compares the page with its last version and copies it:
 *
 *     read    >= enter + exit + protect + load + back
 *     write   >= enter + exit + protect + store + back + memcmp + memcpy
 *     read, then write >= 2 enter + 2 exit + protect twice + back + memcmp + memcpy
 *
 * The engine uffd has memory copied in, write-protected or not, and drops it:
 *
 *     read    >= enter + exit + copy + drop
 *     write   >= enter + exit + copy + drop + memcmp + memcpy
 *     read, then write: both traps, and unprotect
 *
 * The library uses one of them (XAC_ENGINE chooses); that one's equation is compared with
 * what is measured, beside the Thesis'.
 */
#include <config.h>

#include <stdio.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "handler.h"
#include "micro.h"
#include "touch.h"
#include "worker.h"
#include "xbench.h"

#define PAGES              UINT64_C(1024)
#define ROUNDS             UINT64_C(10000)
#define ROUNDS_QUICK       UINT64_C(2000)
#define ROUNDS_MAX         UINT64_C(10000000)
#define TOUCH_ROUNDS       UINT64_C(1000)
#define TOUCH_ROUNDS_QUICK UINT64_C(20)
#define TIMES_WANTED       1.3 /* most that a page costs, in sums of its operations        */

enum equation {
    EQUATION_THESIS,
    EQUATION_OURS,
    N_EQUATIONS
};

struct options {
    struct bench_common common;
    uint64_t rounds, touch_rounds;
};

/* us of each operation, without the clock's own delay. */
struct constants {
    double us[N_OPS];
};

static void
usage(void)
{
    puts(
        "usage: xbench model [OPTION...]\n"
        "\n"
        "What a touched page should cost by equations 4.1 and 4.2 of the Thesis, and by\n"
        "those for our own engine, and what it does cost (Thesis table 4.6): operations as\n"
        "in xbench handler, pages as in xbench touch with 1,024 pages.\n"
        "\n"
        "  --rounds N        for the operations; default 10000\n"
        "  --touch-rounds N  for the pages; default 1000\n"
        "  --dir DIR         for the files; default the current directory\n"
        "  --json            one JSON object per equation, access and hint\n"
        "  --quick           2000 and 20 rounds\n"
        "  --quiet           no progress bar\n"
        "  --help");
}

/* by_thesis -- equations 4.1 and 4.2, us; negative: they do not speak of that. */
static double
by_thesis(const double us[N_OPS], enum bench_access access, bool is_hinted)
{
    double trap = us[OP_SEGV_ENTER] + us[OP_SEGV_EXIT];

    switch (access) {
    case BENCH_READ:
        return (is_hinted ? 0 : trap) + 2 * us[OP_MMAP] + us[OP_FIRST_READ];
    case BENCH_WRITE:
    case BENCH_FILL:
        return (is_hinted ? 0 : 2 * trap + us[OP_MMAP]) + 2 * us[OP_MMAP]
               + us[OP_FIRST_WRITE] + us[OP_MEMCPY];
    default:
        return -1;
    }
}

/* by_uffd -- the same for the engine uffd. */
static double
by_uffd(const double us[N_OPS], enum bench_access access, bool is_hinted)
{
    double trap = is_hinted ? 0 : us[OP_SIGBUS_ENTER] + us[OP_SIGBUS_EXIT];
    double shown = trap + us[OP_UFFD_COPY] + us[OP_MADV_DONTNEED];
    double commit = us[OP_MEMCMP] + us[OP_MEMCPY];

    switch (access) {
    case BENCH_READ:
        return shown;
    case BENCH_READ_WRITE:
        return shown + trap + us[OP_UFFD_UNPROTECT] + commit;
    default:
        return shown + commit;
    }
}

/* by_sigsegv -- the same for the engine sigsegv. */
static double
by_sigsegv(const double us[N_OPS], enum bench_access access, bool is_hinted)
{
    double trap = is_hinted ? 0 : us[OP_SEGV_ENTER] + us[OP_SEGV_EXIT];
    double back = us[OP_MPROTECT_NONE];
    double commit = us[OP_MEMCMP] + us[OP_MEMCPY];

    switch (access) {
    case BENCH_READ:
        return trap + us[OP_MPROTECT_READ] + us[OP_LOAD_AFTER] + back;
    case BENCH_READ_WRITE:
        return 2 * trap + us[OP_MPROTECT_BOTH] + back + commit;
    default:
        return trap + us[OP_MPROTECT_WRITE] + us[OP_STORE_AFTER] + back + commit;
    }
}

/* report -- one line. */
static void
report(const struct options *o, const char *equation, enum bench_access access,
       enum bench_hint hint, const double us[2])
{
    double predicted = us[0], measured = us[1];
    double unexplained = 100 * (measured - predicted) / measured;
    FILE *f = stdout;

    if (!o->common.json) {
        printf("%-8s %-16s %-6s %12.2f %12.2f %12.2f %10.1f %% %8.2f\n", equation,
               bench_access_names[access], bench_hint_names[hint], predicted, measured,
               measured - predicted, unexplained, measured / predicted);
        return;
    }
    bench_json_begin(f);
    bench_json_str(f, "experiment", "model");
    bench_json_str(f, "equation", equation);
    bench_json_str(f, "access", bench_access_names[access]);
    bench_json_str(f, "hint", bench_hint_names[hint]);
    bench_json_u64(f, "pages", PAGES);
    bench_json_num(f, "us_per_page_predicted", predicted);
    bench_json_num(f, "us_per_page_measured", measured);
    bench_json_signed(f, "percent_unexplained", unexplained);
    bench_json_num(f, "measured_over_predicted", measured / predicted);
    bench_json_str(f, "command", o->common.command);
    bench_json_end(f);
}

/* report_all -- every access that an equation speaks of. */
static void
report_all(const struct options *o, const struct constants *k,
           struct bench_touched *touched)
{
    struct xac_stats stats = {.engine = 0};
    double worst = 0;
    bool is_uffd =
        xac_get_stats(&stats) == 0 && stats.engine == (uint64_t)XAC_ENGINE_UFFD;

    if (!o->common.json) {
        bench_print_command(&o->common, "microseconds per page");
        printf("ours: of the engine %s\n", is_uffd ? "uffd" : "sigsegv");
        printf("%-8s %-16s %-6s %12s %12s %12s %12s %8s\n", "equation", "access", "hint",
               "predicted", "measured", "difference", "unexplained", "times");
    }
    for (unsigned eq = 0; eq < N_EQUATIONS; eq++)
        for (unsigned a = 0; a < BENCH_N_ACCESSES; a++)
            for (unsigned h = BENCH_HINT_NONE; h <= BENCH_HINT_PAGE; h++) {
                enum bench_access access = (enum bench_access)a;
                bool is_hinted = h != BENCH_HINT_NONE;
                double us[2];

                if (eq == EQUATION_THESIS)
                    us[0] = by_thesis(k->us, access, is_hinted);
                else
                    us[0] = is_uffd ? by_uffd(k->us, access, is_hinted)
                                    : by_sigsegv(k->us, access, is_hinted);
                us[1] = bench_summarize(&touched->per_page[a][h]).median
                        / bench_ticks_per_us();
                if (eq == EQUATION_OURS && us[1] / us[0] > worst)
                    worst = us[1] / us[0];
                if (us[0] >= 0)
                    report(o, eq == EQUATION_THESIS ? "thesis" : "ours", access,
                           (enum bench_hint)h, us);
            }
    if (!o->common.json)
        printf("\nours, at most %.2f times the sum of the operations; wanted %.2f: %s\n",
               worst, TIMES_WANTED, worst <= TIMES_WANTED ? "met" : "missed");
}

/* measure_constants -- ret 0, or 1 after a message. */
static int
measure_constants(const char *dir, uint64_t rounds, struct constants *out)
{
    static struct bench_handler h;
    int rc = bench_handler_measure(&h, dir, rounds);

    for (unsigned op = 0; op < N_OPS && rc == 0; op++)
        out->us[op] = bench_summarize(&h.sample[op]).median / bench_ticks_per_us();
    for (unsigned op = 0; op < N_OPS && rc == 0; op++)
        if (op != OP_TIMER && op != OP_MEMCPY && op != OP_MEMCMP)
            out->us[op] -= out->us[OP_TIMER];
    bench_handler_free(&h);
    return rc;
}

/* run -- in a directory; ret 0, or 1 after a message. */
static int
run(const struct options *o, const char *dir)
{
    struct constants k;
    struct bench_touched touched;
    struct bench_touch t;
    int rc;

    if (measure_constants(dir, o->rounds, &k) != 0
        || bench_touch_open(&t, dir, (struct bench_touch_mode){false, false}, PAGES) != 0)
        return 1;
    rc = bench_touch_measure(&t, PAGES, o->touch_rounds, &touched);
    if (rc == 0)
        report_all(o, &k, &touched);
    bench_touch_free(&touched);
    return bench_touch_close(&t) != 0 ? 1 : rc;
}

int
bench_model_main(int argc, char **argv)
{
    struct options o = {.rounds = 0};
    const struct bench_option options[] = {
        {.name = "rounds", .number = &o.rounds, .low = 1, .high = ROUNDS_MAX},
        {.name = "touch-rounds", .number = &o.touch_rounds, .low = 1, .high = ROUNDS_MAX},
        BENCH_OPTION_DIR(&o.common),
        {0},
    };
    char dir[BENCH_DIR_BYTES];
    int rc;

    if (bench_options_parse(argc, argv, options, &o.common) != 0)
        return 2;
    if (o.common.help) {
        usage();
        return 0;
    }
    if (o.rounds == 0)
        o.rounds = o.common.quick ? ROUNDS_QUICK : ROUNDS;
    if (o.touch_rounds == 0)
        o.touch_rounds = o.common.quick ? TOUCH_ROUNDS_QUICK : TOUCH_ROUNDS;
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    if (bench_dir_make(&o.common, dir) != 0)
        return 1;
    rc = run(&o, dir);
    return bench_dir_remove(dir) != 0 ? 1 : rc;
}
