/* SPDX-License-Identifier: MIT */
/*
 * xbench.c -- front end of the benchmarks: xbench COMMAND|EXPERIMENT [OPTION...].
 */
#include <config.h>

#include "bench/main/xbench.h"

#include <stdio.h>
#include <string.h>

#include "bench/kit/system.h"
#include "bench/kit/util.h"

const struct bench_system *const bench_systems[] = {
    &bench_btree,
    &bench_btree_serial,
    &bench_btree_serial_announced,
    &bench_btree_oldest_wins,
    &bench_btree_declared,
#ifdef HAVE_COMPILED
    &bench_btree_compiled,
    &bench_btree_serial_compiled,
#endif
    &bench_btree_strict,
    &bench_btree_ckpt,
    &bench_btree_sums,
    &bench_btree_diffs,
    &bench_btree_md5,
    &bench_btree_two_syncs,
    &bench_cobtree,
    &bench_cobtree_strict,
#ifdef HAVE_BDB
    &bench_bdb,
    &bench_bdb_zero,
#endif
#ifdef HAVE_LMDB
    &bench_lmdb,
    &bench_lmdb_map,
#endif
#ifdef HAVE_SQLITE
    &bench_sqlite,
#endif
#ifdef HAVE_WIREDTIGER
    &bench_wiredtiger,
    &bench_wiredtiger_dsync,
#endif
#ifdef HAVE_ROCKSDB
    &bench_rocksdb,
    &bench_rocksdb_nolog,
    &bench_rocksdb_txn,
#endif
#ifdef HAVE_LEVELDB
    &bench_leveldb,
#endif
#ifdef HAVE_PMDK
    &bench_pmdk,
#endif
    &bench_mmap,
    &bench_mmap_co,
    &bench_undo_rms,
    &bench_undo_rhino,
    &bench_sync,
    &bench_sync_twice,
    NULL,
};

const struct bench_missing bench_missing_systems[] = {
#ifndef HAVE_COMPILED
    {"btree-compiled", "accesses announced by the compiler"},
    {"btree-serial-compiled", "accesses announced by the compiler"},
#endif
#ifndef HAVE_BDB
    {"bdb", "Berkeley DB"},
    {"bdb-zero", "Berkeley DB"},
#endif
#ifndef HAVE_LMDB
    {"lmdb", "LMDB"},
    {"lmdb-map", "LMDB"},
#endif
#ifndef HAVE_SQLITE
    {"sqlite", "SQLite"},
#endif
#ifndef HAVE_WIREDTIGER
    {"wiredtiger", "WiredTiger"},
    {"wiredtiger-dsync", "WiredTiger"},
#endif
#ifndef HAVE_ROCKSDB
    {"rocksdb", "RocksDB"},
    {"rocksdb-nolog", "RocksDB"},
    {"rocksdb-txn", "RocksDB"},
#endif
#ifndef HAVE_LEVELDB
    {"leveldb", "LevelDB"},
#endif
#ifndef HAVE_PMDK
    {"pmdk", "PMDK"},
#endif
    {NULL, NULL},
};

const struct bench_system *
bench_system_find(const char *name)
{
    for (size_t i = 0; bench_systems[i] != NULL; i++)
        if (strcmp(bench_systems[i]->name, name) == 0)
            return bench_systems[i];
    return NULL;
}

bool
bench_system_missing(const char *name)
{
    for (const struct bench_missing *m = bench_missing_systems; m->name != NULL; m++)
        if (strcmp(m->name, name) == 0)
            return true;
    return false;
}

void
bench_systems_print(void)
{
    for (size_t i = 0; bench_systems[i] != NULL; i++)
        printf("  %-22s %s\n  %-22s durable: %s\n", bench_systems[i]->name,
               bench_systems[i]->what, "", bench_systems[i]->durably);
    for (const struct bench_missing *m = bench_missing_systems; m->name != NULL; m++)
        printf("  (not in this build: %s: configure did not find %s)\n", m->name,
               m->library);
}

struct command {
    const char *name;
    const char *what;
    int (*run)(int argc, char **argv);
};

static int list_main(int argc, char **argv);

static const struct command commands[] = {
    {"list", "experiments and systems in this build", list_main},
    {"run", "run experiments and keep the results", bench_run_main},
    {"report", "make a page of the results", bench_report_main},
};

#define ARGUMENTS_INDENT 22u

#define N_COMMANDS (sizeof commands / sizeof commands[0])

/* list_main -- what can be measured, with what settings. */
static int
list_main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        (void)bench_fail("list takes no arguments");
        return 2;
    }
    puts("experiments:");
    for (const struct bench_experiment *x = bench_experiments; x->name != NULL; x++) {
        printf("  %-19s %s\n", x->name, x->what);
        if (x->thesis[0] != '\0')
            printf("  %-19s Thesis: %s\n", "", x->thesis);
    }
    puts("systems:");
    bench_systems_print();
    return 0;
}

/* usage -- to f. */
static void
usage(FILE *f)
{
    fputs(
        "usage: xbench list\n"
        "       xbench run NAME...|all [--quick | --medium] [--perf] [--out DIR] [--dir DIR]\n"
        "                  [-- ARG...]\n"
        "       xbench report [--out DIR] [--html FILE] [--figures DIR] [--markdown FILE]\n"
        "       xbench EXPERIMENT [OPTION...]\n"
        "       xbench run|report|EXPERIMENT --help\n"
        "\n"
        "Without options an experiment measures what `xbench run --medium` does, and prints a\n"
        "table.  Exit code: 0 all is measured, and what can be verified is right; 1 a failure;\n"
        "2 a wrong argument; 3 all is measured, and a row with a line to pass has not passed\n"
        "it (frames, swizzle).\n"
        "\n"
        "Commands:\n",
        f);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(f, "  %-19s %s\n", commands[i].name, commands[i].what);
    fputs("\nExperiments:\n", f);
    for (const struct bench_experiment *x = bench_experiments; x->name != NULL; x++)
        fprintf(f, "  %-19s %s\n", x->name, x->what);
}

/* arguments_alone -- of an experiment that is given no options; "": its own defaults. */
static const char *
arguments_alone(const struct bench_experiment *x)
{
    return x->medium != NULL ? x->medium : x->full != NULL ? x->full : "";
}

/* print_arguments -- if there are any. */
static void
print_arguments(const char *when, const char *arguments)
{
    if (arguments == NULL || arguments[0] == '\0')
        return;
    printf("  %-19s ", when);
    bench_wrap(stdout, arguments, ARGUMENTS_INDENT, ARGUMENTS_INDENT);
}

/* help -- what an experiment is and has; then the experiment says which options it takes. */
static int
help(const struct bench_experiment *x)
{
    char word[] = "--help", *argv[] = {word, NULL};

    printf("xbench %s: %s\n", x->name, x->what);
    print_arguments("Thesis", x->thesis);
    print_arguments("always", x->fixed);
    print_arguments("without options", arguments_alone(x));
    print_arguments("xbench run", x->full != NULL ? x->full : "the defaults below");
    print_arguments("xbench run --quick", x->quick);
    putchar('\n');
    fflush(stdout); /* it may become another program */
    return bench_experiment_call(x, x->fixed != NULL ? arguments_alone(x) : "", 1, argv);
}

/* is_given -- one of two words. */
static bool
is_given(int argc, char **argv, const char *word, const char *other)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], word) == 0 || strcmp(argv[i], other) == 0)
            return true;
    return false;
}

/*
 * experiment_main -- an experiment by itself, with what it always has.
 *
 * Without options it gets those of `run --medium`.  One that is made of another has them as its defaults: an
 * option that is not given keeps its value, unless --quick chooses others.
 */
static int
experiment_main(const struct bench_experiment *x, int argc, char **argv)
{
    bool has_own =
        argc == 0 || (x->fixed != NULL && !is_given(argc, argv, "--quick", ""));

    if (is_given(argc, argv, "--help", "-h"))
        return help(x);
    return bench_experiment_call(x, has_own ? arguments_alone(x) : "", argc, argv);
}

int
main(int argc, char **argv)
{
    const struct bench_experiment *x;

    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        usage(stdout);
        return 0;
    }
    for (size_t i = 0; argc >= 2 && i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    x = argc >= 2 ? bench_experiment_find(argv[1]) : NULL;
    if (x != NULL)
        return experiment_main(x, argc - 2, argv + 2);
    if (argc >= 2)
        (void)bench_fail("no experiment \"%s\"; see xbench list", argv[1]);
    usage(stderr);
    return 2;
}
