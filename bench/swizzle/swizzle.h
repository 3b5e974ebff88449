/* SPDX-License-Identifier: MIT */
/*
 * swizzle.h -- the experiment `swizzle`: trees over frames, with references and without.
 *
 * WHAT      The program xbench-swizzle, which `xbench swizzle` starts: it reaches into the library,
 *           so it has a copy of its own.  swizzle.c: parts and options; swizzle_run.c: threads and
 *           what is counted; swizzle_figure.c and swizzle_pressure.c: beside mapped memory, with
 *           enough of it and with little; swizzle_curve.c: from an empty pool on; swizzle_tpc.c: transactions like those of TPC-B and TPC-C.
 */
#ifndef XBENCH_SWIZZLE_H
#define XBENCH_SWIZZLE_H

#include <stdbool.h>
#include <stdint.h>

#include <xac_frames.h>

#include "bench/kit/options.h"
#include "btree.h"
#include "swizzle/space.h"

#define SWZB_THREADS_MAX   8
#define SWZB_INTERVALS_MAX 100

struct swzb_options {
    bool json, quick;
    uint64_t seconds_ms;        /* of one sample */
    uint64_t pairs;             /* with and without references, in turn */
    uint64_t scale;             /* percent of the sizes of the parts */
    uint64_t seconds;           /* of each side of the part `start` */
    uint64_t intervals;         /* of that part, 4 .. SWZB_INTERVALS_MAX */
    struct bench_numbers pools; /* of that part, percent of its pages */
    const char *command;
};

/* One thread at work. */
struct swzb_worker {
    struct swz_thread *th;
    void *arg;
    uint64_t seed;
    uint64_t n_ops;
    uint64_t n_scanned;
    uint64_t n_fixes, n_misses; /* its own, at its end */
    uint64_t longest_ns;        /* of 16 operations */
    unsigned number;
};

/* One operation; ret 0 or an error, which ends the run. */
typedef int swzb_op(struct swzb_worker *w);

struct swzb_result {
    double ops_per_s;
    double ops_per_cpu_s;   /* for each second that a thread had a processor */
    double last_miss_rate;  /* of the thread with the highest number */
    double longest_s;       /* that 16 operations of one thread took */
    struct swz_stats stats; /* differences */
    struct xac_frames_stats pool;
    struct swz_times times;
};

/* swzb_run -- n threads for so long; ret 0, or 1 after a message. */
int swzb_run(struct swz_space *space, unsigned n_threads, uint64_t ms, swzb_op *op,
             void *arg, struct swzb_result *rp);

/* swzb_next -- a random number. */
uint64_t swzb_next(uint64_t *seed);

/* swzb_ns -- mean time of a fix, nanoseconds; -1 if none was timed. */
double swzb_ns(const struct swzb_result *r, int is_exclusive, enum swz_way way);

/* swzb_per_fix -- look-ups in the table for each fix of a page that is no root. */
double swzb_per_fix(const struct swzb_result *r);

/* swzb_miss_rate -- misses for each of those fixes. */
double swzb_miss_rate(const struct swzb_result *r);

/* swzb_barred_ns -- mean time of asking whether a frame's page has children; -1: none has. */
double swzb_barred_ns(const struct swz_space *space);

/* swzb_print -- one measurement: columns, or an object. */
void swzb_print(const struct swzb_options *o, const char *part, const char *what,
                const struct swzb_result *on, const struct swzb_result *off, double ratio,
                double low, double high);

/* swzb_missed -- how many rows with a line have missed it so far. */
unsigned swzb_missed(void);

/*
 * swzb_verdict -- a row of the plan of experiments: what came out, and whether it is at least (or
 * at most) what was expected; NAN: nothing was, it is reported.
 */
void swzb_verdict(const struct swzb_options *o, const char *row, const char *what,
                  double value, bool at_least, double line);

/* ---- swizzle.c ----------------------------------------------------------------------- */

#define SWZB_LEAF_KEYS   226u /* 8-byte keys and values in 4 KiB */
#define SWZB_PAGES_OF(n) ((uint32_t)((n) + (n) / 64 + 512))

/* What look-ups do. */
struct swzb_keys {
    uint64_t n, working; /* keys; of them looked up: the first so many */
    bool skewed;         /* 15 of 16 in one hundredth of the leaves */
};

/* swzb_key_next -- the key that is looked up next. */
uint64_t swzb_key_next(const struct swzb_keys *k, uint64_t *seed);
swzb_op swzb_lookup_op;

/* swzb_fill -- tree 0, of keys 0 to n - 1 in ascending order, so full leaves. */
int swzb_fill(struct swz_space *s, uint64_t n);

/* swzb_space_of -- a tree of n keys in ascending order, so full leaves; no return on failure. */
struct swz_space *swzb_space_of(struct swz_config c, uint64_t n);

/* swzb_warm -- everything in its place: switched, and used. */
int swzb_warm(const struct swzb_options *o, struct swz_space *s, bool is_on,
              unsigned n_threads, swzb_op *op, void *arg);

/* ---- swizzle_figure.c --------------------------------------------------------------- */

/* The part `figure`. */
int swzb_figure(const struct swzb_options *o);

/* The functions of a tree in a mapped file, and how the library finds out what they touch. */
struct swzb_view {
    __typeof__(btree_create) *create;
    __typeof__(btree_open) *open;
    __typeof__(btree_load) *load;
    __typeof__(btree_search) *search;
    uint64_t checking; /* enum xac_checking */
};

/* By traps, as the library does by itself; and by the hooks of a tree compiled as by xac-cc. */
extern const struct swzb_view swzb_view_trapped;
#ifdef HAVE_COMPILED
extern const struct swzb_view swzb_view_compiled;
#endif

/* swzb_key_source -- keys 0, 1, ... for a bulk load; arg: how many, a uint64_t. */
bool swzb_key_source(void *arg, uint64_t i, const void **keyp, const void **valuep);

/* swzb_other_print -- look-ups by something that may have no counters of frames. */
void swzb_other_print(const struct swzb_options *o, const char *part, const char *what,
                      const char *memory, double ops_per_s);

/* ---- swizzle_pressure.c ------------------------------------------------------------- */

/* The part `pressure`; says so, and returns 0, where no control group can be had. */
int swzb_pressure(const struct swzb_options *o);

/* ---- swizzle_curve.c ---------------------------------------------------------------- */

/* The part `start`: from an empty pool on, with and without references in turn. */
int swzb_curve(const struct swzb_options *o);

/* ---- swizzle_tpc.c ------------------------------------------------------------------ */

struct swzb_tpcb {
    uint64_t n_accounts;
    _Atomic uint64_t n_history;
};

/* Make the trees and fill them; pages they take, roughly. */
int swzb_tpcb_load(struct swz_space *space, struct swzb_tpcb *b);
swzb_op swzb_tpcb_op;

#define SWZB_DISTRICTS 10u
struct swzb_tpcc {
    uint32_t n_warehouses, n_customers, n_items; /* customers of a district */
    _Atomic uint64_t n_history;
    _Atomic uint64_t next_order[64][SWZB_DISTRICTS], next_delivery[64][SWZB_DISTRICTS];
};

/* swzb_tpcc_size -- counts for a scale of so many percent; ret pages, roughly. */
uint32_t swzb_tpcc_size(struct swzb_tpcc *c, uint32_t n_warehouses, uint64_t scale);
int swzb_tpcc_load(struct swz_space *space, struct swzb_tpcc *c);
swzb_op swzb_tpcc_op;

#endif /* XBENCH_SWIZZLE_H */
