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
 * what is measured, beside the Thesis'.  To a transaction's begin and end belong two system calls, which
 * block and restore signals; so does each page's share of them.
 *
 * Two processes take turns, one with that engine and one with the engine `thesis`, slice by
 * slice, and in each slice the operations are measured anew: what is compared are the
 * quotients of one slice, and their median is judged.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/cost/engine_thesis.h"
#include "bench/cost/handler.h"
#include "bench/cost/touch.h"
#include "bench/kit/micro.h"
#include "bench/kit/team.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"
#include "bench/systems/sys_xac.h"

#define PAGES_MAX          UINT64_C(65536)
#define SLICES             UINT64_C(9)
#define SLICES_QUICK       UINT64_C(3)
#define ROUNDS             UINT64_C(2000)
#define ROUNDS_QUICK       UINT64_C(500)
#define ROUNDS_MAX         UINT64_C(10000000)
#define TOUCH_ROUNDS       UINT64_C(30)
#define TOUCH_ROUNDS_QUICK UINT64_C(5)
#define TIMES_WANTED       1.3 /* most that a page costs, in sums of its operations        */
#define FASTER_WANTED      3.0 /* least that the Thesis' way costs, in ours                */
#define N_HINTS            2u /* none, page                                               */

enum equation {
    EQUATION_THESIS,
    EQUATION_OURS,
    N_EQUATIONS
};

/* The members of the team. */
enum {
    MEMBER_OURS,
    MEMBER_THESIS,
    N_MEMBERS
};

enum {
    ORDER_OPEN,
    ORDER_TOUCH,
    ORDER_CLOSE
};

static const char *const order_names[] = {"open", "touch", "close"};

struct options {
    struct bench_common common;
    struct bench_numbers pages;
    uint64_t slices, rounds, touch_rounds;
};

/* Of a number of pages, an access and a hint: one of each per slice; us per page. */
struct cell {
    struct bench_sample predicted[N_EQUATIONS], measured[N_MEMBERS];
    struct bench_sample times[N_EQUATIONS], faster; /* quotients                      */
};

struct model {
    struct options o;
    char dir[BENCH_DIR_BYTES];
    struct bench_touch touch; /* in a member                                          */
    bool is_uffd;
    struct cell cell[BENCH_NUMBERS_MAX][BENCH_N_ACCESSES][N_HINTS];
};

/* us of each operation, without the clock's own delay. */
struct constants {
    double us[N_OPS];
};

static void
usage(void)
{
    puts(
        "What a touched page should cost by equations 4.1 and 4.2 of the Thesis, and by\n"
        "those for our own engine, and what it does cost (Thesis table 4.6): operations as\n"
        "in xbench handler, pages as in xbench touch; and beside the engine thesis.\n"
        "\n"
        "  --pages LIST      of a transaction; default 1024,16,1\n"
        "  --slices N        in which all take turns; default 9\n"
        "  --rounds N        for the operations, of a slice; default 2000\n"
        "  --touch-rounds N  for the pages, of a slice; default 30\n"
        "  --dir DIR         for the files; default the current directory\n"
        "  --json            one JSON object per equation, pages, access and hint\n"
        "  --quick           3 slices of 500 and 5 rounds\n"
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

/* ---- In a member ------------------------------------------------------------------------- */

/* open_member -- ret 0 or an error; out count[0]: its engine. */
static int
open_member(struct model *m, unsigned number, struct bench_answer *answer)
{
    char dir[BENCH_DIR_BYTES];
    struct xac_stats stats;
    uint64_t most = 0;

    for (unsigned i = 0; i < m->o.pages.n; i++)
        most = m->o.pages.v[i] > most ? m->o.pages.v[i] : most;
    if (number == MEMBER_THESIS && bench_engine_choose("thesis") != 0)
        return errno;
    if ((size_t)snprintf(dir, sizeof dir, "%.*s/%u", (int)sizeof dir - 16, m->dir, number)
            >= sizeof dir
        || mkdir(dir, 0700) != 0)
        return errno;
    if (bench_touch_open(&m->touch, dir, (struct bench_touch_mode){false, false}, most)
            != 0
        || xac_get_stats(&stats, sizeof stats) != 0)
        return EIO; /* after a message */
    if (number == MEMBER_THESIS && stats.engine != XAC_ENGINE_THESIS)
        return ENOTSUP; /* no engine was plugged in */
    answer->count[0] = stats.engine;
    return 0;
}

/* touch_member -- transactions of so many pages; out: picoseconds per page, median. */
static int
touch_member(struct model *m, uint64_t n_pages, struct bench_answer *answer)
{
    struct bench_touched touched;
    int rc = bench_touch_measure(&m->touch, n_pages, m->o.touch_rounds, &touched);

    for (unsigned a = 0; a < BENCH_N_ACCESSES && rc == 0; a++)
        for (unsigned h = 0; h < N_HINTS; h++)
            answer->count[a * N_HINTS + h] =
                (uint64_t)(bench_summarize(&touched.per_page[a][h]).median
                           / bench_ticks_per_us() * 1e6);
    bench_touch_free(&touched);
    return rc == 0 ? 0 : EIO;
}

static int
obey(void *arg, unsigned number, const struct bench_order *order,
     struct bench_answer *answer)
{
    struct model *m = arg;

    if (order->kind == ORDER_OPEN)
        answer->code = open_member(m, number, answer);
    else if (order->kind == ORDER_TOUCH)
        answer->code = touch_member(m, order->arg, answer);
    else
        answer->code = bench_touch_close(&m->touch) == 0 ? 0 : EIO;
    return answer->code;
}

/* ---- The slices -------------------------------------------------------------------------- */

/* predict -- us of a page by an equation; negative: it does not speak of that. */
static double
predict(const struct model *m, const struct constants *k, enum equation eq,
        enum bench_access access, bool is_hinted, uint64_t n_pages)
{
    double us;

    if (eq == EQUATION_THESIS)
        return by_thesis(k->us, access, is_hinted);
    us = m->is_uffd ? by_uffd(k->us, access, is_hinted)
                    : by_sigsegv(k->us, access, is_hinted);
    return us + 2 * k->us[OP_SYSCALL] / (double)n_pages;
}

/* note -- what a slice has said of a number of pages. */
static void
note(struct model *m, unsigned place, const struct constants *k,
     const struct bench_answer answers[N_MEMBERS])
{
    for (unsigned a = 0; a < BENCH_N_ACCESSES; a++)
        for (unsigned h = 0; h < N_HINTS; h++) {
            struct cell *c = &m->cell[place][a][h];
            double us[N_MEMBERS];

            for (unsigned i = 0; i < N_MEMBERS; i++) {
                us[i] = (double)answers[i].count[a * N_HINTS + h] / 1e6;
                bench_sample_add(&c->measured[i], us[i]);
            }
            bench_sample_add(&c->faster, us[MEMBER_THESIS] / us[MEMBER_OURS]);
            for (unsigned eq = 0; eq < N_EQUATIONS; eq++) {
                double p = predict(m, k, (enum equation)eq, (enum bench_access)a, h != 0,
                                   m->o.pages.v[place]);

                if (p < 0)
                    continue;
                bench_sample_add(&c->predicted[eq], p);
                bench_sample_add(&c->times[eq], us[MEMBER_OURS] / p);
            }
        }
}

/* run_slices -- ret 0, or 1 after a message. */
static int
run_slices(struct model *m, struct bench_team *team)
{
    struct bench_order order = {.kind = ORDER_OPEN};
    struct bench_answer answers[N_MEMBERS];
    int rc = 0;

    for (unsigned i = 0; i < N_MEMBERS && rc == 0; i++)
        rc = bench_team_ask(team, i, &order, &answers[i]);
    m->is_uffd = rc == 0
                 && (answers[MEMBER_OURS].count[0] == (uint64_t)XAC_ENGINE_UFFD
                     || answers[MEMBER_OURS].count[0] == (uint64_t)XAC_ENGINE_SCAN);
    for (uint64_t slice = 0; slice < m->o.slices && rc == 0; slice++) {
        struct constants k;

        bench_progress("slices", slice, m->o.slices);
        rc = measure_constants(m->dir, m->o.rounds, &k);
        for (unsigned place = 0; place < m->o.pages.n && rc == 0; place++) {
            order = (struct bench_order){.kind = ORDER_TOUCH, .arg = m->o.pages.v[place]};
            for (unsigned i = 0; i < N_MEMBERS && rc == 0; i++) {
                unsigned member = (unsigned)((slice + i) % N_MEMBERS);

                rc = bench_team_ask(team, member, &order, &answers[member]);
            }
            if (rc == 0)
                note(m, place, &k, answers);
        }
    }
    bench_progress_clear();
    order = (struct bench_order){.kind = ORDER_CLOSE};
    for (unsigned i = 0; i < N_MEMBERS && rc == 0; i++)
        rc = bench_team_ask(team, i, &order, &answers[i]);
    return rc;
}

/* ---- The report ---------------------------------------------------------------------------- */

/* report -- one line. */
static void
report(struct model *m, enum equation eq, unsigned place, unsigned access, unsigned hint)
{
    struct cell *c = &m->cell[place][access][hint];
    const char *equation = eq == EQUATION_THESIS ? "thesis" : "ours";
    double predicted = bench_summarize(&c->predicted[eq]).median;
    double measured = bench_summarize(&c->measured[MEMBER_OURS]).median;
    double thesis = bench_summarize(&c->measured[MEMBER_THESIS]).median;
    double times = bench_summarize(&c->times[eq]).median;
    double faster = bench_summarize(&c->faster).median;
    double unexplained = 100 * (measured - predicted) / measured;
    uint64_t pages = m->o.pages.v[place];
    FILE *f = stdout;

    if (!m->o.common.json) {
        printf("%-8s %6llu %-16s %-6s %9.2f %9.2f %8.2f %9.2f %11.2f\n", equation,
               (unsigned long long)pages, bench_access_names[access],
               bench_hint_names[hint], predicted, measured, times, thesis, faster);
        return;
    }
    bench_json_begin(f);
    bench_json_str(f, "experiment", "model");
    bench_json_str(f, "equation", equation);
    bench_json_str(f, "access", bench_access_names[access]);
    bench_json_str(f, "hint", bench_hint_names[hint]);
    bench_json_u64(f, "pages", pages);
    bench_json_u64(f, "slices", m->o.slices);
    bench_json_num(f, "us_per_page_predicted", predicted);
    bench_json_num(f, "us_per_page_measured", measured);
    bench_json_signed(f, "percent_unexplained", unexplained);
    bench_json_num(f, "measured_over_predicted", times);
    bench_json_num(f, "us_per_page_engine_thesis", thesis);
    bench_json_num(f, "engine_thesis_over_measured", faster);
    bench_json_str(f, "command", m->o.common.command);
    bench_json_end(f);
}

/* judge -- the worst of a number of pages. */
static void
judge(struct model *m, unsigned place, unsigned hint)
{
    double worst = 0, least = 1e9;

    for (unsigned a = 0; a < BENCH_N_ACCESSES; a++) {
        struct cell *c = &m->cell[place][a][hint];
        double times = bench_summarize(&c->times[EQUATION_OURS]).median;
        double faster = bench_summarize(&c->faster).median;

        worst = times > worst ? times : worst;
        least = faster < least ? faster : least;
    }
    printf("%5llu pages, hint %s: at most %.2f times the operations, wanted %.1f: %s; "
           "engine thesis at least %.2f times ours, wanted %.0f: %s\n",
           (unsigned long long)m->o.pages.v[place], bench_hint_names[hint], worst,
           TIMES_WANTED, worst <= TIMES_WANTED ? "met" : "missed", least, FASTER_WANTED,
           least >= FASTER_WANTED ? "met" : "missed");
}

/* report_all -- every access that an equation speaks of. */
static void
report_all(struct model *m)
{
    if (!m->o.common.json) {
        bench_print_command(&m->o.common, "microseconds per page, medians of slices");
        printf(
            "ours: of the engine %s; measured: that engine; thesis: the engine thesis\n",
            m->is_uffd ? "uffd" : "sigsegv");
        printf("%-8s %6s %-16s %-6s %9s %9s %8s %9s %11s\n", "equation", "pages",
               "access", "hint", "predicted", "measured", "times", "thesis",
               "thesis/ours");
    }
    for (unsigned eq = 0; eq < N_EQUATIONS; eq++)
        for (unsigned place = 0; place < m->o.pages.n; place++)
            for (unsigned a = 0; a < BENCH_N_ACCESSES; a++)
                for (unsigned h = 0; h < N_HINTS; h++)
                    if (m->cell[place][a][h].predicted[eq].n > 0)
                        report(m, (enum equation)eq, place, a, h);
    for (unsigned place = 0; place < m->o.pages.n && !m->o.common.json; place++)
        for (unsigned h = 0; h < N_HINTS; h++)
            judge(m, place, h);
}

/* for_samples -- all of them; ret 0, or 1 after a message. */
static int
for_samples(struct model *m, int (*what)(struct bench_sample *s, size_t n))
{
    int rc = 0;

    for (unsigned place = 0; place < m->o.pages.n; place++)
        for (unsigned i = 0; i < BENCH_N_ACCESSES * N_HINTS; i++) {
            struct cell *c = &m->cell[place][i / N_HINTS][i % N_HINTS];

            for (unsigned k = 0; k < 2 && rc == 0; k++) {
                rc = what(&c->predicted[k], m->o.slices);
                rc = rc == 0 ? what(&c->measured[k], m->o.slices) : rc;
                rc = rc == 0 ? what(&c->times[k], m->o.slices) : rc;
            }
            rc = rc == 0 ? what(&c->faster, m->o.slices) : rc;
        }
    return rc;
}

static int
free_sample(struct bench_sample *s, size_t n)
{
    (void)n;
    bench_sample_free(s);
    return 0;
}

/* run -- in a directory; ret 0, or 1 after a message. */
static int
run(struct model *m)
{
    struct bench_team team = {.label = "model",
                              .order_names = order_names,
                              .arg = m,
                              .obey = obey,
                              .explain = bench_xac_explain};
    int rc = for_samples(m, bench_sample_init);

    if (rc == 0) {
        rc = bench_team_start(&team, N_MEMBERS);
        if (rc == 0)
            rc = run_slices(m, &team);
        bench_team_stop(&team);
    }
    if (rc == 0)
        report_all(m);
    (void)for_samples(m, free_sample);
    return rc;
}

/* set_default -- of what has not been given. */
static void
set_default(uint64_t *number, bool is_quick, uint64_t quick, uint64_t full)
{
    if (*number == 0)
        *number = is_quick ? quick : full;
}

int
bench_model_main(int argc, char **argv)
{
    static struct model m;
    struct options *o = &m.o;
    const struct bench_option options[] = {
        {.name = "pages", .numbers = &o->pages, .low = 1, .high = PAGES_MAX},
        {.name = "slices", .number = &o->slices, .low = 1, .high = 1000},
        {.name = "rounds", .number = &o->rounds, .low = 1, .high = ROUNDS_MAX},
        {.name = "touch-rounds",
         .number = &o->touch_rounds,
         .low = 1,
         .high = ROUNDS_MAX},
        BENCH_OPTION_DIR(&o->common),
        {0},
    };
    int rc;

    if (!bench_options_parse(argc, argv, options, usage, &o->common, &rc))
        return rc;
    if (o->pages.n == 0) /* the Thesis' number first: it is the one that is compared */
        o->pages = (struct bench_numbers){3, {1024, 16, 1}};
    set_default(&o->slices, o->common.quick, SLICES_QUICK, SLICES);
    set_default(&o->rounds, o->common.quick, ROUNDS_QUICK, ROUNDS);
    set_default(&o->touch_rounds, o->common.quick, TOUCH_ROUNDS_QUICK, TOUCH_ROUNDS);
    bench_catch_signals();
    bench_progress_enable(o->common.quiet);
    if (bench_dir_make(&o->common, m.dir) != 0)
        return 1;
    rc = run(&m);
    return bench_dir_remove(m.dir) != 0 ? 1 : rc;
}
