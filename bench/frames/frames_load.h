/* SPDX-License-Identifier: MIT */
/*
 * frames_load.h -- threads that fix and unfix pages of one pool, and what that cost.
 *
 * WHAT      One load is a pool's configuration, how pages are drawn, how many threads, and what
 *           goes wrong on purpose; one measurement of it is a struct load_got.
 * WHERE     A pool without memory for pages unless the load reads; all in this process.
 */
#ifndef XBENCH_FRAMES_LOAD_H
#define XBENCH_FRAMES_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <xac_frames.h>

#define LOAD_THREADS_MAX 256
#define LOAD_REFS        65536u /* of each thread, drawn before, again and again */

/* How pages are drawn. */
enum load_draw {
    LOAD_SKEWED, /* page n_pages * u^(1 / exponent), u uniform, and scans of 100 neighbours */
    LOAD_ZIPF, /* page k with probability of 1 / (k + 1)^exponent */
    LOAD_UNIFORM
};

/* What goes wrong, at what step of xac_frames.h; on the thread that is there. */
enum load_harm {
    HARM_NONE,
    HARM_SLEEP, /* sleep harm_us, once in harm_every times */
    HARM_BUSY,  /* harm_us of work, each time */
    HARM_STOP   /* bench_load_stopped() */
};

struct load {
    const char *name;                /* of the variant, for the row's text */
    struct xac_frames_config config; /* n_users is set from the threads */
    enum load_draw draw;
    double exponent;
    double scan_percent; /* of references */
    unsigned n_threads;
    uint32_t n_refs; /* of each thread; 0: LOAD_REFS */
    double seconds;
    unsigned compute_ns; /* work between two fixes */
    bool
        table_lock; /* a read-write lock around each fix, as a table without one would need */
    unsigned read_us; /* a page's read sleeps so long; 0: there are no bytes */
    bool seek_lock;   /* reads one at a time */
    bool cold;        /* frames are vacant at first */
    bool times;       /* each fix is timed: percentiles */
    enum load_harm harm;
    enum xac_frames_step harm_at;
    unsigned harm_us, harm_every;
};

#define LOAD_ROUNDS_MAX 15

/* What was measured of one load, in rounds that alternate with those of the loads beside it. */
struct load_got {
    /* Medians of the rounds. */
    double mfix_s;     /* millions of fixes per second, all threads */
    double cpu_ns;     /* processor time per fix */
    double lock_share; /* of all threads' time: waiting for the policy's lock */
    double p_ns[3];    /* 50, 99, 99.9 % */
    /* Of all rounds together: what is counted is rare, and comes in bursts. */
    double per_million[3]; /* locks, waits, tries that failed, per million fixes */
    double hit_percent;
    double duplicate_percent; /* of reads */
    double stale_per_million;
    struct xac_frames_stats stats;
    uint64_t n_fixes;
    unsigned n_rounds;
    struct {
        double mfix_s;
        uint64_t n_fixes, n_waits;
    } rounds[LOAD_ROUNDS_MAX];
};

#define GOT_LOCKS(g) ((g)->per_million[0])
#define GOT_WAITS(g) ((g)->per_million[1])
#define GOT_TRIES(g) ((g)->per_million[2])

/*
 * bench_load_run -- measure n loads, interleaved, `rounds` times.
 *
 * ret  0, or 1 after a message
 */
int bench_load_run(const struct load *loads, unsigned n, unsigned rounds,
                   struct load_got *got);

/*
 * bench_load_ratio -- fixes per second of a over those of b, of the same run: the median of
 * the rounds' ratios, since what else runs on the machine changes from round to round.
 */
double bench_load_ratio(const struct load_got *a, const struct load_got *b);

/* bench_load_draw -- n pages as the load draws them; ret 0, or 1 after a message. */
int bench_load_draw(const struct load *load, uint64_t seed, uint32_t *refs, uint64_t n);

/*
 * bench_load_stopped -- one of the load's threads is stopped for so long at its step harm_at,
 * or while it holds a page, reads or writes; what the others do meanwhile.
 *
 * out  sharep  their fixes per second then, over those before
 */
enum load_stop {
    STOP_AT_STEP,
    STOP_FIXED,
    STOP_READ,
    STOP_WRITE
};
int bench_load_stopped(const struct load *load, enum load_stop stop, double seconds,
                       double *sharep);

#endif /* XBENCH_FRAMES_LOAD_H */
