/* SPDX-License-Identifier: MIT */
/*
 * options.h -- the command line of an experiment, from a table.
 *
 * WHAT      Long options with numbers and words, and lists of them; numbers are checked against
 *           their bounds; -h, --help, --json, --quick and --quiet are options of all.
 * HELP      The default that a line of the help names is the value that the option has where --help stands:
 *           what stands before it on the command line counts.  So an experiment that is another one with
 *           fixed arguments shows its own defaults.
 * ERRORS    One message that names the option and what was wanted.
 */
#ifndef XBENCH_OPTIONS_H
#define XBENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_NUMBERS_MAX \
 32u /* items of any list                                         */

/* A list of numbers, "1,2,4". */
struct bench_numbers {
    unsigned n;
    uint64_t v[BENCH_NUMBERS_MAX];
};

/* A list of words, "btree,bdb". */
struct bench_words {
    unsigned n;
    char *v[BENCH_NUMBERS_MAX];
};

/* One option; exactly one of the pointers is set, and is where its value goes. */
struct bench_option {
    const char *name;
    bool *flag;
    uint64_t *constant; /* no argument: it becomes `low`                               */
    uint64_t *number;
    struct bench_numbers *numbers;
    struct bench_words *words;
    const char **text;
    uint64_t low, high; /* bounds of numbers, inclusive                                */
};

/* What every experiment has. */
struct bench_common {
    bool json;       /* one object per measurement instead of a table                  */
    bool quick;      /* fewer rounds: seconds instead of minutes                       */
    bool quiet;      /* no progress bar                                                */
    const char *dir; /* where files go; "." if there is no option for it               */
    char command[1024]; /* the command line, for the record                             */
};

/* What the help says of an option. */
struct bench_help {
    const char
        *name; /* "count"                                                             */
    const char *
        arg; /* "N", "LIST"; of "BYTES" the value is shown as 4K, 256M; NULL: it takes none */
    const char *what;
    const char *
        unset; /* what holds while it has no value: a number out of its bounds, an empty list */
};

/*
 * bench_options_help -- the lines of the options, by a list that ends with a NULL name; called by a `usage` of
 * bench_options_parse().
 *
 * Those that are the same everywhere (--dir, if there is one, --json, --quiet, --help) are added.
 */
void bench_options_help(const struct bench_help *list);

/*
 * bench_options_parse -- read argv by a table that ends with a NULL name.
 *
 * in   argv   [0] is the name of the experiment
 * in   usage  prints the help behind its first line
 * ret  true if the experiment shall run; else *statusp is its exit status: 0 after the help,
 *      2 after a message.
 */
bool bench_options_parse(int argc, char **argv, const struct bench_option *table,
                         void (*usage)(void), struct bench_common *common, int *statusp);

/* bench_options_no_quick -- ret 1, after a message, if --quick was given. */
int bench_options_no_quick(const struct bench_common *common);

/* The entry for --dir; it is checked to be a directory. */
#define BENCH_OPTION_DIR(common)        \
 {                                      \
  .name = "dir", .text = &(common)->dir \
 }

#endif /* XBENCH_OPTIONS_H */
