/* SPDX-License-Identifier: MIT */
/*
 * thesis.h -- the numbers that the Thesis published, to be set beside ours.
 *
 * WHAT      Chapters 4 and 5 and appendix C as printed, an entry per quantity, with the values of
 *           all machines.  It says which measurement of ours is the counterpart.
 *           And the machines of section 4.1.
 * UNITS     Cycles are those of the machine in question; what compares is microseconds.
 */
#ifndef XBENCH_THESIS_H
#define XBENCH_THESIS_H

#include <stdio.h>

/* Columns of the Thesis' tables in app. C; a table of means has the first one only. */
enum bench_thesis_column {
    BENCH_THESIS_MEAN,
    BENCH_THESIS_STDEV,
    BENCH_THESIS_MIN,
    BENCH_THESIS_MEDIAN,
    BENCH_THESIS_P99,
    BENCH_THESIS_MAX,
    BENCH_THESIS_COLUMNS
};

/* "3(a)" is machine 3 with disk (a); only what has no such part is described. */
struct bench_thesis_machine {
    const char *name;
    double mhz;
    const char *processor;
    const char *memory;
    const char *disk;
    const char *file_system; /* "": the Thesis does not say                            */
    const char *system;
};

/* What one machine showed. */
struct bench_thesis_value {
    const char *machine;            /* a name of bench_thesis_machines                 */
    unsigned n;                     /* columns printed: the first n                    */
    double v[BENCH_THESIS_COLUMNS]; /* by enum bench_thesis_column                     */
};

/* "field=a:b" in `where`: the number of the line with a over that of the line with b. */
struct bench_thesis_row {
    const char *table; /* "4.2", "C.3"                                                 */
    unsigned page;     /* of the Thesis, as printed on it                              */
    const char *what;
    const char *unit; /* a time: "cycles", "kcycles", "us", "ms"; "percent", "ratio":
                         more is better; any other: less is                           */
    const struct bench_thesis_value *values; /* ended by a NULL machine                */
    const char *experiment; /* of ours                                                 */
    const char *where;      /* which of its lines: "field=value ..."                   */
    const char
        *keys; /* the numbers of that line: <keys>_mean, _stdev, _min, _median, _p99
                         and _max, in us; or one number, <keys>, in us or row's unit   */
};

/* Ended by a NULL name, and a NULL table. */
extern const struct bench_thesis_machine bench_thesis_machines[];
extern const struct bench_thesis_row bench_thesis_rows[];

/* bench_thesis_print -- all machines and rows, a JSON object each, for report.py. */
void bench_thesis_print(FILE *f);

/* bench_thesis_us -- a time in us; negative: not printed, or not a time. */
double bench_thesis_us(const struct bench_thesis_row *row,
                       const struct bench_thesis_value *value,
                       enum bench_thesis_column column);

#endif /* XBENCH_THESIS_H */
