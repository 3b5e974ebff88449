/* SPDX-License-Identifier: MIT */
/*
 * tpc.c -- the experiments `tpcb` and `tpcc`: processes, slices, command line, output.
 *
 * The processes of all systems are there at the same time, each system in a directory of its own; slice by
 * slice those of one system run, all the same transactions, while the others wait.
 */
#include <config.h>

#include "bench/tpc/tpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/kit/micro.h"
#include "bench/kit/options.h"
#include "bench/kit/team.h"
#include "bench/kit/util.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"

#define SYSTEMS_MAX     8u
#define SLICES_MAX      1000u
#define LOAD_ROWS       1000u /* of a transaction that loads                           */
#define TURN_TIMEOUT_MS (30u * 60 * 1000)

const struct bench_tpc_system *const bench_tpc_systems[] = {
    &bench_tpc_trees,
    &bench_tpc_trees_oldest,
    &bench_tpc_array,
#ifdef HAVE_BDB
    &bench_tpc_bdb,
#endif
#ifdef HAVE_SQLITE
    &bench_tpc_sqlite,
#endif
    NULL,
};

static struct options {
    struct bench_common common;
    struct bench_words systems;
    struct bench_numbers procs;
    uint64_t scale, size, count, slices, seed;
    bool durable_only, nondurable_only;
    const struct bench_tpc_work *work;
} o;

/* The processes of one system. */
struct crew {
    const struct bench_tpc_system *system;
    struct bench_tpc tpc;
    char dir[BENCH_DIR_BYTES + 16];
    struct bench_team team;
    double *us; /* per transaction, one per slice                                      */
    uint64_t retries;
    struct bench_tpc_open open; /* of a process                                         */
};

enum order_kind {
    ORDER_OPEN,
    ORDER_LOAD,
    ORDER_RUN, /* arg: number of the slice                                              */
    ORDER_CLOSE,
    ORDER_CHECK
};
static const char *const order_names[] = {"open", "load", "run", "close", "check"};

/* ---- A process --------------------------------------------------------------------------- */

/* Rows that one transaction loads. */
struct rows {
    unsigned table;
    uint64_t first, end;
};

static int
load_rows(const struct bench_tpc_open *open, void *arg)
{
    const struct rows *r = arg;
    unsigned char row[BENCH_TPC_ROW_MAX];
    int rc = 0;

    for (uint64_t id = r->first; id < r->end && rc == 0; id++)
        if (open->tpc->work->load(open->tpc, r->table, id, row))
            rc = bench_tpc_put(open, r->table, id, row);
    return rc;
}

/* load -- all tables that have rows before; ret 0 or a code. */
static int
load(const struct bench_tpc_open *open)
{
    unsigned char row[BENCH_TPC_ROW_MAX];
    uint64_t retries = 0;
    int rc = 0;

    for (unsigned k = 0; k < open->tpc->n_tables; k++) {
        uint64_t rows = open->tpc->tables[k].rows;

        if (!open->tpc->work->load(open->tpc, k, 0, row))
            continue;
        for (uint64_t id = 0; id < rows && rc == 0; id += LOAD_ROWS) {
            struct rows r = {k, id, id + LOAD_ROWS < rows ? id + LOAD_ROWS : rows};

            rc = open->system->transact(open, load_rows, &r, &retries);
        }
    }
    return rc;
}

/* run -- this process's share of a slice; ret 0 or a code. */
static int
run(const struct bench_tpc_open *open, unsigned number, uint64_t slice,
    struct bench_answer *answer)
{
    uint64_t end = (slice + 1) * o.count;
    int rc = 0;

    answer->start_ns = bench_now_ns();
    for (uint64_t i = slice * o.count + number; i < end && rc == 0;
         i += open->tpc->n_procs)
        rc = open->system->transact(open, open->tpc->work->body, &i, &answer->count[0]);
    answer->end_ns = bench_now_ns();
    return rc;
}

/* check -- in a process that nobody has used; ret 0 or a code. */
static int
check(struct crew *c)
{
    struct bench_tpc_open *open = &c->open;
    uint64_t retries = 0;
    int rc = c->system->open(c->system, &c->tpc, c->dir, false, &open->handle), rc2;

    if (rc != 0)
        return rc;
    rc = c->system->transact(open, c->tpc.work->check, NULL, &retries);
    rc2 = c->system->close(open->handle);
    return rc != 0 ? rc : rc2;
}

static int
obey(void *arg, unsigned number, const struct bench_order *order,
     struct bench_answer *answer)
{
    struct crew *c = arg;

    switch (order->kind) {
    case ORDER_OPEN:
        return c->system->open(c->system, &c->tpc, c->dir, number == 0, &c->open.handle);
    case ORDER_LOAD:
        return load(&c->open);
    case ORDER_RUN:
        return run(&c->open, number, order->arg, answer);
    case ORDER_CHECK:
        return check(c);
    default:
        return c->system->close(c->open.handle);
    }
}

/* ---- The crew ---------------------------------------------------------------------------- */

/* crew_start -- the number-th one; ret 0, or 1 after a message. */
static int
crew_start(struct crew *c, unsigned number, const char *dir)
{
    const struct bench_order open = {.kind = ORDER_OPEN},
                             load_it = {.kind = ORDER_LOAD,
                                        .timeout_ms = TURN_TIMEOUT_MS};
    struct bench_answer answer;
    int rc;

    snprintf(c->dir, sizeof c->dir, "%s/%u", dir, number);
    c->open = (struct bench_tpc_open){.tpc = &c->tpc, .system = c->system};
    c->us = calloc(o.slices, sizeof *c->us);
    if (c->us == NULL || mkdir(c->dir, 0755) != 0)
        return bench_fail("%s: %s", c->dir, strerror(errno));
    c->team = (struct bench_team){.label = c->system->name,
                                  .order_names = order_names,
                                  .arg = c,
                                  .obey = obey,
                                  .explain = c->system->explain};
    rc = bench_team_start(&c->team, c->tpc.n_procs);
    for (unsigned w = 0; w < c->tpc.n_procs && rc == 0; w++) {
        rc = bench_team_ask(&c->team, w, &open, &answer);
        if (rc == 0 && w == 0)
            rc = bench_team_ask(&c->team, w, &load_it, &answer);
    }
    return rc;
}

/* crew_slice -- ret 0, or 1 after a message. */
static int
crew_slice(struct crew *c, uint64_t slice)
{
    const struct bench_order go = {.kind = ORDER_RUN,
                                   .arg = slice,
                                   .timeout_ms = TURN_TIMEOUT_MS};
    struct bench_answer answers[BENCH_TEAM_MAX];

    if (bench_team_ask_all(&c->team, &go, answers) != 0)
        return 1;
    c->us[slice] = (double)bench_team_ns(&c->team, answers) / 1e3 / (double)o.count;
    for (unsigned w = 0; w < c->tpc.n_procs; w++)
        c->retries += answers[w].count[0];
    return 0;
}

/* crew_end -- close everywhere, then a new process looks; ret 0, or 1 after a message. */
static int
crew_end(struct crew *c)
{
    const struct bench_order close_it = {.kind = ORDER_CLOSE},
                             look = {.kind = ORDER_CHECK, .timeout_ms = TURN_TIMEOUT_MS};
    struct bench_answer answer;
    int rc = 0;

    for (unsigned w = c->tpc.n_procs; w-- > 0 && rc == 0;)
        rc = bench_team_ask(&c->team, w, &close_it, &answer);
    bench_team_stop(&c->team);
    if (rc == 0)
        rc = bench_team_start(&c->team, 1);
    return rc != 0 ? rc : bench_team_ask(&c->team, 0, &look, &answer);
}

/* ---- Report ------------------------------------------------------------------------------ */

/* over -- another system's time over this one's, median of the slices; NAN: it did not run. */
static double
over(const struct crew *crews, unsigned n, const struct crew *c, const char *name)
{
    double ratio[SLICES_MAX];

    for (unsigned i = 0; i < n; i++)
        if (strcmp(crews[i].system->name, name) == 0) {
            for (uint64_t s = 0; s < o.slices; s++)
                ratio[s] = crews[i].us[s] / c->us[s];
            return bench_median(ratio, o.slices);
        }
    return -1; /* does not apply */
}

static void
print_json(const struct crew *crews, unsigned n, const struct crew *c)
{
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", o.work->name);
    bench_json_str(stdout, "system", c->system->name);
    bench_json_bool(stdout, "durable", c->tpc.durable);
    bench_json_u64(stdout, "processes", c->tpc.n_procs);
    bench_json_u64(stdout, "scale", o.scale);
    bench_json_u64(stdout, "size", o.size);
    bench_json_u64(stdout, "slices", o.slices);
    bench_json_u64(stdout, "transactions", c->tpc.steps);
    bench_json_num(stdout, "us_per_transaction_median", bench_median(c->us, o.slices));
    bench_json_nums(stdout, "us_per_transaction_slices", c->us, o.slices);
    bench_json_num(stdout, "transactions_per_second",
                   1e6 / bench_median(c->us, o.slices));
    bench_json_num(stdout, "bdb_time_over_this_median", over(crews, n, c, "bdb"));
    bench_json_num(stdout, "sqlite_time_over_this_median", over(crews, n, c, "sqlite"));
    bench_json_u64(stdout, "retries", c->retries);
    bench_json_bool(stdout, "verified", true);
    bench_json_u64(stdout, "seed", o.seed);
    bench_json_str(stdout, "command", o.common.command);
    bench_json_end(stdout);
}

static void
print_ratio(double ratio)
{
    if (ratio < 0)
        printf(" %11s", "-");
    else
        printf(" %11.2f", ratio);
}

static void
print(const struct crew *crews, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct crew *c = &crews[i];
        double us = bench_median(c->us, o.slices);

        if (o.common.json) {
            print_json(crews, n, c);
            continue;
        }
        printf("%-16s %7s %5u %10.1f %10.0f", c->system->name,
               c->tpc.durable ? "yes" : "no", c->tpc.n_procs, us, 1e6 / us);
        print_ratio(over(crews, n, c, "bdb"));
        print_ratio(over(crews, n, c, "sqlite"));
        printf(" %8llu\n", (unsigned long long)c->retries);
    }
    fflush(stdout);
}

static void
usage(void)
{
    printf("%s: %s.\n"
           "Each is one serializable transaction over several tables.  At the end a new\n"
           "process finds that the tables agree with each other and with what was done.\n"
           "It is no benchmark of the TPC, and its figures are none of theirs.\n"
           "\n"
           "  --systems LIST   default all:\n",
           o.work->name, o.work->what);
    for (size_t i = 0; bench_tpc_systems[i] != NULL; i++)
        printf("                     %-16s %s\n", bench_tpc_systems[i]->name,
               bench_tpc_systems[i]->what);
    puts(
        "  --procs LIST     default 1,2,4,8\n"
        "  --durable        durable transactions only\n"
        "  --nondurable     nondurable ones only; default both\n"
        "  --scale N        branches, warehouses; default 10 (tpcb), 2 (tpcc)\n"
        "  --size N         accounts of a branch, items of a warehouse; default 10000\n"
        "  --count N        transactions of a slice, shared by the processes; default 2000\n"
        "  --slices K       default 7; in each, every system does the same transactions\n"
        "  --seed S         default 1\n"
        "  --dir DIR        for the files; default the current directory\n"
        "  --quick          1 and 2 processes, 3 slices of 100, 1000 accounts or items\n"
        "  --json, --quiet, --help\n"
        "\n"
        "bdb/this: Berkeley DB's time over this system's in the same slice, median.");
}

/* ---- A run ------------------------------------------------------------------------------- */

/* crews_of -- those that the command line names and that the work has; ret how many. */
static unsigned
crews_of(struct crew *crews, unsigned n_procs, bool durable)
{
    unsigned n = 0;

    for (size_t i = 0; bench_tpc_systems[i] != NULL; i++) {
        bool wanted = o.systems.n == 0;

        for (unsigned k = 0; k < o.systems.n; k++)
            wanted |= strcmp(o.systems.v[k], bench_tpc_systems[i]->name) == 0;
        /* Numbers of orders leave gaps, which an array would have to pass over. */
        if (!wanted
            || (bench_tpc_systems[i] == &bench_tpc_array && o.work == &bench_tpc_c))
            continue;
        crews[n].system = bench_tpc_systems[i];
        crews[n].tpc = (struct bench_tpc){.work = o.work,
                                          .scale = o.scale,
                                          .size = o.size,
                                          .steps = o.count * o.slices,
                                          .seed = o.seed,
                                          .n_procs = n_procs,
                                          .durable = durable};
        o.work->set_up(&crews[n].tpc);
        n++;
    }
    return n;
}

/* run_crews -- start, slices, end, print; the caller stops what runs. */
static int
run_crews(struct crew *crews, unsigned n, const char *dir)
{
    int rc = 0;

    for (unsigned i = 0; i < n && rc == 0; i++)
        rc = crew_start(&crews[i], i, dir);
    for (uint64_t s = 0; s < o.slices && rc == 0; s++)
        for (unsigned j = 0; j < n && rc == 0; j++) {
            unsigned i = (unsigned)((s + j) % n);

            bench_progress(crews[i].system->name, s * n + j, o.slices * n);
            rc = bench_interrupted() ? bench_fail("interrupted")
                                     : crew_slice(&crews[i], s);
        }
    for (unsigned i = 0; i < n && rc == 0; i++)
        rc = crew_end(&crews[i]);
    bench_progress_clear();
    if (rc == 0)
        print(crews, n);
    return rc;
}

/* run_cell -- all systems with so many processes; ret 0, or 1 after a message. */
static int
run_cell(unsigned n_procs, bool durable)
{
    static struct crew crews[SYSTEMS_MAX];
    char dir[BENCH_DIR_BYTES];
    unsigned n;
    int rc;

    memset(crews, 0, sizeof crews);
    n = crews_of(crews, n_procs, durable);
    if (bench_dir_make(&o.common, dir) != 0)
        return 1;
    rc = run_crews(crews, n, dir);
    for (unsigned i = 0; i < n; i++) {
        bench_team_stop(&crews[i].team);
        free(crews[i].us);
    }
    return bench_dir_remove(dir) != 0 ? 1 : rc;
}

/* check_systems -- ret 0, or 1 after a message. */
static int
check_systems(void)
{
    for (unsigned k = 0; k < o.systems.n; k++) {
        size_t i = 0;

        while (bench_tpc_systems[i] != NULL
               && strcmp(bench_tpc_systems[i]->name, o.systems.v[k]) != 0)
            i++;
        if (bench_tpc_systems[i] == NULL)
            return bench_fail("--systems: no system \"%s\" here", o.systems.v[k]);
    }
    return o.durable_only && o.nondurable_only
               ? bench_fail("--durable and --nondurable exclude each other")
               : 0;
}

/* set_defaults -- where the command line says nothing. */
static void
set_defaults(void)
{
    static const struct bench_numbers procs = {4, {1, 2, 4, 8}}, few = {2, {1, 2}};

    if (o.procs.n == 0)
        o.procs = o.common.quick ? few : procs;
    if (o.scale == 0)
        o.scale = o.work == &bench_tpc_b ? 10 : 2;
    if (o.size == 0)
        o.size = o.common.quick ? 1000 : 10000;
    if (o.count == 0)
        o.count = o.common.quick ? 100 : 2000;
    if (o.slices == 0)
        o.slices = o.common.quick ? 3 : 7;
}

/* tpc_main -- one of the two. */
static int
tpc_main(const struct bench_tpc_work *work, int argc, char **argv)
{
    const struct bench_option table[] = {
        {.name = "systems", .words = &o.systems},
        {.name = "procs", .numbers = &o.procs, .low = 1, .high = BENCH_TEAM_MAX},
        {.name = "scale", .number = &o.scale, .low = 1, .high = 1000},
        {.name = "size", .number = &o.size, .low = 1, .high = 1000000},
        {.name = "count", .number = &o.count, .low = BENCH_TEAM_MAX, .high = 10000000},
        {.name = "slices", .number = &o.slices, .low = 1, .high = SLICES_MAX},
        {.name = "seed", .number = &o.seed, .high = UINT64_MAX},
        {.name = "durable", .flag = &o.durable_only},
        {.name = "nondurable", .flag = &o.nondurable_only},
        BENCH_OPTION_DIR(&o.common),
        {0},
    };
    int rc = 0;

    o = (struct options){.work = work, .seed = 1};
    if (!bench_options_parse(argc, argv, table, usage, &o.common, &rc))
        return rc;
    if (check_systems() != 0)
        return 2;
    set_defaults();
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    if (!o.common.json) {
        bench_print_command(&o.common, o.work->what);
        printf("%-16s %7s %5s %10s %10s %11s %11s %8s\n", "system", "durable", "procs",
               "us", "per s", "bdb/this", "sqlite/this", "retries");
    }
    for (int durable = 1; durable >= 0 && rc == 0; durable--)
        for (unsigned i = 0; i < o.procs.n && rc == 0; i++)
            if (!(durable != 0 ? o.nondurable_only : o.durable_only))
                rc = run_cell((unsigned)o.procs.v[i], durable != 0);
    return rc;
}

int
bench_tpcb_main(int argc, char **argv)
{
    return tpc_main(&bench_tpc_b, argc, argv);
}

int
bench_tpcc_main(int argc, char **argv)
{
    return tpc_main(&bench_tpc_c, argc, argv);
}
