/* SPDX-License-Identifier: MIT */
/*
 * xbench.c -- front end of the benchmarks: xbench EXPERIMENT [OPTION...].
 */
#include <config.h>

#include "xbench.h"

#include <stdio.h>
#include <string.h>

#include "system.h"
#include "util.h"

const struct bench_system *const bench_systems[] = {
    &bench_btree,   &bench_btree_stay, &bench_btree_ckpt,
    &bench_cobtree,
#ifdef HAVE_BDB
    &bench_bdb,     &bench_bdb_zero,
#endif
    &bench_mmap,    &bench_sync,       NULL,
};

struct subcommand {
    const char *name;
    const char *what;
    int (*run)(int argc, char **argv);
};

static int list_main(int argc, char **argv);

static const struct subcommand subcommands[] = {
    {"list", "experiments and systems in this build", list_main},
    {"insert", "durable and nondurable inserts of random keys, one transaction each",
     bench_insert_main},
    {"contention", "transactions on few pages under each policy", bench_contention_main},
    {"checksum", "the log's checksums of a page and of a small block",
     bench_checksum_main},
    {"recovery", "a long log recovered, beside cat of the same files",
     bench_recovery_main},
    {"frames", "hits of page-replacement policies on a recorded trace",
     bench_frames_main},
};

#define N_SUBCOMMANDS (sizeof subcommands / sizeof subcommands[0])

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
    for (size_t i = 0; i < N_SUBCOMMANDS; i++)
        if (subcommands[i].run != list_main)
            printf("  %-10s %s\n", subcommands[i].name, subcommands[i].what);
    puts("systems:");
    for (size_t i = 0; bench_systems[i] != NULL; i++)
        printf("  %-10s %s\n  %-10s durable: %s\n", bench_systems[i]->name,
               bench_systems[i]->what, "", bench_systems[i]->durably);
#ifndef HAVE_BDB
    puts("  (bdb is not in this build: configure did not find Berkeley DB)");
#endif
    return 0;
}

/* usage -- to f. */
static void
usage(FILE *f)
{
    fputs("usage: xbench EXPERIMENT [OPTION...]\n"
          "       xbench EXPERIMENT --help\n\n",
          f);
    for (size_t i = 0; i < N_SUBCOMMANDS; i++)
        fprintf(f, "  %-10s %s\n", subcommands[i].name, subcommands[i].what);
}

int
main(int argc, char **argv)
{
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        usage(stdout);
        return 0;
    }
    for (size_t i = 0; argc >= 2 && i < N_SUBCOMMANDS; i++)
        if (strcmp(argv[1], subcommands[i].name) == 0)
            return subcommands[i].run(argc - 1, argv + 1);
    if (argc >= 2)
        (void)bench_fail("no experiment \"%s\"", argv[1]);
    usage(stderr);
    return 2;
}
