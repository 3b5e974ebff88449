/* SPDX-License-Identifier: MIT */
/*
 * touch.h -- the experiment `touch`: what a page costs that a transaction reads or writes
 * (Thesis figures 4-1 to 4-4, tables 4.2, 4.7, C.5).
 *
 * WHAT      A transaction goes through n consecutive pages, as in figure 4-1, or 4-3 with
 *           the advisory function.  One time is that of a whole transaction, from xbegin()
 *           to the return of xend(), over n.
 */
#ifndef XBENCH_TOUCH_H
#define XBENCH_TOUCH_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/kit/micro.h"

/* What is done to a page. */
enum bench_access {
    BENCH_READ,       /* the first int is read                                          */
    BENCH_WRITE,      /* the first int is written, another value each time              */
    BENCH_READ_WRITE, /* it is read, and then written: two traps                        */
    BENCH_FILL,       /* the whole page is written: what the Thesis logs                */
    BENCH_N_ACCESSES
};
extern const char *const bench_access_names[BENCH_N_ACCESSES];

/* What the transaction tells in advance. */
enum bench_hint {
    BENCH_HINT_NONE,
    BENCH_HINT_PAGE,  /* setPageAccess() before each access                            */
    BENCH_HINT_RANGE, /* one setRangeAccess() for all pages                            */
    BENCH_N_HINTS
};
extern const char *const bench_hint_names[BENCH_N_HINTS];

/* Ticks per page; by access and hint. */
struct bench_touched {
    struct bench_sample per_page[BENCH_N_ACCESSES][BENCH_N_HINTS];
};

/* An open environment with a segment. */
struct bench_touch {
    char file[BENCH_DIR_BYTES + 16];
    uint8_t *base;
    uint64_t n_pages; /* of the segment                                               */
    size_t page_bytes;
    unsigned value; /* last one written                                             */
};

/* What the environment is asked for. */
struct bench_touch_mode {
    bool durable;
    bool
        stay_mapped; /* XAC_CHECKING_FAST, else _STRICT                                           */
};

/* bench_touch_open -- an environment in dir; ret 0, or 1 after a message. */
int bench_touch_open(struct bench_touch *t, const char *dir, struct bench_touch_mode mode,
                     uint64_t n_pages);

/* bench_touch_close -- ret 0, or 1 after a message. */
int bench_touch_close(struct bench_touch *t);

/*
 * bench_touch_measure -- rounds in which each combination has its turn, another one first
 * each time; one round before them is not counted.
 *
 * in   n_pages  of each transaction, at most those of the segment
 * out  out      bench_touch_free() in both cases
 * ret  0, or 1 after a message
 */
int bench_touch_measure(struct bench_touch *t, uint64_t n_pages, uint64_t rounds,
                        struct bench_touched *out);
void bench_touch_free(struct bench_touched *touched);

#endif /* XBENCH_TOUCH_H */
