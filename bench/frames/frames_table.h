/* SPDX-License-Identifier: MIT */
/*
 * frames_table.h -- the table of `xbench frames --all`: claims of two papers, each with the line that a
 * measurement must pass.
 *
 * Rows are named after the paper: nb-... of Nb-GCLOCK (ICDE 2010), bp-... of BP-Wrapper (TPDS 2016).
 */
#ifndef XBENCH_FRAMES_TABLE_H
#define XBENCH_FRAMES_TABLE_H

#include <stdbool.h>

#include "bench/frames/frames_load.h"

enum row_verdict {
    ROW_PASS,
    ROW_FAIL,
    ROW_REPORT, /* there is no line to pass */
    ROW_NOT_RUN
};

struct table {
    bool quick, json;
    double seconds;   /* of each measurement */
    unsigned rounds;  /* of which the median is taken */
    const char *only; /* rows whose name begins so; NULL: all */
    unsigned n[4];    /* rows by verdict */
};

/* One row; measured is printed as by printf. */
void bench_row(struct table *t, const char *name, const char *claim, const char *line,
               enum row_verdict verdict, const char *measured, ...)
    __attribute__((format(printf, 6, 7)));

#define ROW_IF(passes) ((passes) ? ROW_PASS : ROW_FAIL)

/* bench_row_wanted -- whether a row is to be measured. */
bool bench_row_wanted(const struct table *t, const char *name);

/* Measurements of a row, by name. */
struct row {
    const char *name;
    int (*measure)(struct table *t);
};

/* All rows of each paper, in order; the last has no name. */
extern const struct row bench_nb_rows[], bench_nb_more_rows[], bench_bp_rows[];

/* bench_frames_all -- print the table; ret 0, BENCH_SHORT if a row fails, 1 after a message. */
int bench_frames_all(struct table *t);

/* frames_tree.c: nb-14. */
int bench_row_tree(struct table *t);

/* frames_record.c: bp-H1. */
int bench_row_recorded(struct table *t);

/* frames_cost.c: instructions under valgrind, nb-7; count_main is what runs there. */
int bench_row_instructions(struct table *t);
int bench_frames_count(const char *what);

/* frames_hits.c: nb-8, nb-9, nb-12. */
int bench_row_hits(struct table *t);
int bench_row_order(struct table *t);
int bench_row_cap(struct table *t);

/*
 * bench_queue_hits -- how far hits of 16 users in turn are from those without queues, in points, at
 * most, with queues of sizes[i][0] and thresholds sizes[i][1]; pages as the load draws them, of
 * which a sixteenth is in frames.
 */
int bench_queue_hits(const struct load *load, const uint32_t (*sizes)[2], unsigned n,
                     double *offp);

#endif /* XBENCH_FRAMES_TABLE_H */
