/* SPDX-License-Identifier: MIT */
/*
 * frames_load.c -- see frames_load.h.
 */
#include <config.h>

#include "bench/frames/frames_load.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/kit/util.h"

#define LOOK_EVERY 64 /* fixes between two looks at the stop flag */
#define SCAN_PAGES 100
#define TIMES_MAX  (1u << 20) /* timed fixes of a thread */
#define WARM       4 /* references before a measurement, times the pages, at most */

/* References, of loads that draw alike; the last are kept for the next that does. */
struct refs {
    struct load load;
    uint64_t n;
    uint32_t *pages;
    unsigned n_holders;
};

struct worker {
    struct run *run;
    pthread_t thread;
    uint32_t *times;
    uint64_t n_times;
    _Atomic uint64_t n_fixes;
    unsigned number;
    int rc;
};

struct run {
    const struct load *load;
    struct xac_frames *pool;
    struct worker *workers;
    struct refs *refs;
    uint64_t n_refs; /* of all threads, dealt out in blocks of LOOK_EVERY */
    uint64_t n_warm; /* of them played before */
    pthread_rwlock_t table_lock;
    pthread_mutex_t seek_lock;
    _Atomic bool over;
    bool counted; /* fixes are counted one by one, for a reader while they go on */
    enum load_stop stop;
    _Atomic int armed, stopped, go_on; /* bench_load_stopped() */
};

static _Thread_local struct worker *self;

/* ---- Pages --------------------------------------------------------------------------- */

static double
uniform(uint64_t seed, uint64_t i)
{
    return (double)(bench_key(seed, i) >> 11) / (double)(UINT64_C(1) << 53);
}

/* zipf_draw -- by search in the sums of all probabilities. */
static int
zipf_draw(const struct load *load, uint64_t seed, uint32_t *refs, uint64_t n)
{
    uint64_t n_pages = load->config.n_pages;
    double *sums = malloc(n_pages * sizeof *sums), sum = 0;

    if (sums == NULL)
        return bench_fail("frames: no memory for references");
    for (uint64_t k = 0; k < n_pages; k++)
        sums[k] = sum += pow((double)(k + 1), -load->exponent);
    for (uint64_t i = 0; i < n; i++) {
        double want = uniform(seed, i) * sum;
        uint64_t low = 0, high = n_pages - 1;

        while (low < high) {
            uint64_t middle = (low + high) / 2;

            if (sums[middle] < want)
                low = middle + 1;
            else
                high = middle;
        }
        /* Neighbours in popularity are not neighbours in number. */
        refs[i] = (uint32_t)(low * 40503 % n_pages);
    }
    free(sums);
    return 0;
}

int
bench_load_draw(const struct load *load, uint64_t seed, uint32_t *refs, uint64_t n)
{
    uint64_t n_pages = load->config.n_pages, left = 0, at = 0;
    /* Scans are so likely that this share of the references is theirs. */
    double share = load->scan_percent / 100.0;
    double begin = share / (share + SCAN_PAGES * (1 - share));

    if (load->draw == LOAD_ZIPF)
        return zipf_draw(load, seed, refs, n);
    for (uint64_t i = 0; i < n; i++) {
        double u = uniform(seed, 2 * i);

        if (left == 0 && uniform(seed, 2 * i + 1) < begin) {
            left = SCAN_PAGES;
            at = bench_key(~seed, i) % n_pages;
        }
        if (left > 0)
            refs[i] = (uint32_t)(at++ % n_pages);
        else if (load->draw == LOAD_UNIFORM)
            refs[i] = (uint32_t)((double)n_pages * u);
        else
            refs[i] = (uint32_t)((double)n_pages * pow(u, 1 / load->exponent));
        left -= left > 0;
    }
    return 0;
}

/* ---- Harm ---------------------------------------------------------------------------- */

static void
sleep_us(unsigned us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};

    (void)nanosleep(&t, NULL);
}

static void
work_ns(uint64_t ns)
{
    uint64_t since = bench_now_ns();

    while (bench_now_ns() - since < ns)
        continue;
}

/* stop_here -- the first worker, once armed, until it is let go on. */
static void
stop_here(struct run *r)
{
    int is_armed = 1;

    if (self == NULL || self->number != 0
        || !atomic_compare_exchange_strong_explicit(&r->armed, &is_armed, 0,
                                                    memory_order_relaxed,
                                                    memory_order_relaxed))
        return;
    atomic_store_explicit(&r->stopped, 1, memory_order_relaxed);
    while (atomic_load_explicit(&r->go_on, memory_order_relaxed) == 0)
        sleep_us(100);
}

static void
probe(void *arg, enum xac_frames_step step)
{
    struct run *r = arg;
    const struct load *l = r->load;
    static _Thread_local uint64_t n;

    if (step != l->harm_at)
        return;
    if (l->harm == HARM_BUSY)
        work_ns((uint64_t)l->harm_us * 1000);
    else if (l->harm == HARM_SLEEP && self != NULL
             && bench_key(self->number, n++) % l->harm_every == 0)
        sleep_us(l->harm_us);
    else if (l->harm == HARM_STOP && r->stop == STOP_AT_STEP)
        stop_here(r);
}

static int
page_read(void *arg, uint64_t page, void *data)
{
    struct run *r = arg;

    if (r->stop == STOP_READ)
        stop_here(r);
    if (self == NULL) /* warm() */
        return 0;
    if (r->load->seek_lock)
        (void)pthread_mutex_lock(&r->seek_lock);
    if (r->load->read_us > 0)
        sleep_us(r->load->read_us);
    memcpy(data, &page, sizeof page);
    if (r->load->seek_lock)
        (void)pthread_mutex_unlock(&r->seek_lock);
    return 0;
}

static int
page_write(void *arg, uint64_t page, const void *data)
{
    struct run *r = arg;

    (void)page;
    (void)data;
    if (r->stop == STOP_WRITE)
        stop_here(r);
    return 0;
}

/* ---- Threads ------------------------------------------------------------------------- */

/* fix_one -- ret 0 or errno. */
static int
fix_one(struct run *r, struct xac_frames_user *user, uint64_t page)
{
    struct xac_frames_pin pin;
    int rc;

    if (r->load->table_lock)
        (void)pthread_rwlock_rdlock(&r->table_lock);
    rc = xac_frames_fix(user, page, 0, &pin);
    if (r->load->table_lock)
        (void)pthread_rwlock_unlock(&r->table_lock);
    if (rc != 0)
        return rc == ENOBUFS ? 0 : rc;
    if (r->stop == STOP_FIXED)
        stop_here(r);
    if (r->stop == STOP_WRITE)
        xac_frames_mark_dirty(user, &pin);
    xac_frames_unfix(user, &pin);
    return 0;
}

/*
 * block_of -- the worker's k-th references.  References that warmed the pool come last, so that no
 * page is in a frame because this very reference has just been played.
 */
static const uint32_t *
block_of(const struct worker *w, uint64_t k)
{
    const struct run *r = w->run;
    uint64_t at = r->n_warm + (k * r->load->n_threads + w->number) * LOOK_EVERY;

    return &r->refs->pages[at % r->n_refs];
}

static void *
worker_run(void *arg)
{
    struct worker *w = arg;
    struct run *r = w->run;
    const struct load *l = r->load;
    struct xac_frames_user *user;
    uint64_t n = atomic_load_explicit(&w->n_fixes, memory_order_relaxed);

    self = w;
    w->rc = xac_frames_join(r->pool, &user);
    if (w->rc != 0)
        return NULL;
    while (w->rc == 0 && !atomic_load_explicit(&r->over, memory_order_relaxed)) {
        const uint32_t *refs = block_of(w, n / LOOK_EVERY);

        for (int i = 0; i < LOOK_EVERY && w->rc == 0; i++, n++) {
            uint64_t since = l->times ? bench_now_ns() : 0;

            w->rc = fix_one(r, user, refs[n % LOOK_EVERY]);
            if (l->times && w->n_times < TIMES_MAX)
                w->times[w->n_times++] = (uint32_t)(bench_now_ns() - since);
            if (l->compute_ns > 0)
                work_ns(l->compute_ns);
            if (r->counted)
                atomic_store_explicit(&w->n_fixes, n + 1, memory_order_relaxed);
            if (l->read_us > 0 && atomic_load_explicit(&r->over, memory_order_relaxed)) {
                n++;
                break; /* the next block then begins in its middle */
            }
        }
        atomic_store_explicit(&w->n_fixes, n, memory_order_relaxed);
    }
    xac_frames_leave(user);
    return NULL;
}

/* draws_alike -- the same seed gives the same references, of one as many as are wanted. */
static bool
draws_alike(const struct load *a, const struct load *b)
{
    return a->draw == b->draw && a->config.n_pages == b->config.n_pages
           && a->scan_percent == b->scan_percent
           && memcmp(&a->exponent, &b->exponent, sizeof a->exponent) == 0;
}

static uint64_t
n_refs_of(const struct load *load)
{
    uint64_t n = load->n_refs == 0 ? LOAD_REFS : load->n_refs;

    return n * load->n_threads / (2 * LOOK_EVERY) * (2 * LOOK_EVERY);
}

static void
refs_drop(struct refs *refs)
{
    if (refs != NULL && --refs->n_holders == 0) {
        free(refs->pages);
        free(refs);
    }
}

/* refs_hold -- n of them at least; NULL after a message. */
static struct refs *
refs_hold(const struct load *load, uint64_t n)
{
    static struct refs *kept;
    int rc;

    if (kept == NULL || !draws_alike(&kept->load, load) || kept->n < n) {
        refs_drop(kept);
        kept = malloc(sizeof *kept);
        if (kept != NULL)
            *kept = (struct refs){.load = *load,
                                  .n = n,
                                  .pages = malloc(n * sizeof *kept->pages),
                                  .n_holders = 1};
        if (kept == NULL || kept->pages == NULL)
            rc = bench_fail("frames: no memory for references");
        else
            rc = bench_load_draw(load, 1, kept->pages, n);
        if (rc != 0) {
            refs_drop(kept);
            kept = NULL;
            return NULL;
        }
    }
    kept->n_holders++;
    return kept;
}

/* warm -- the frames are full before anything is measured. */
static int
warm(struct run *r)
{
    const struct xac_frames_config *c = &r->load->config;
    struct xac_frames_user *user;
    struct xac_frames_pin pin;
    int rc = xac_frames_join(r->pool, &user);

    if (rc != 0)
        return rc;
    for (uint64_t page = 0; page < c->n_frames && page < c->n_pages && rc == 0; page++) {
        rc = xac_frames_fix(user, page, c->page_bytes != 0 ? XAC_FRAMES_NEW : 0, &pin);
        if (rc == 0)
            xac_frames_unfix(user, &pin);
    }
    /* Then those that belong there, if not all do. */
    if (c->n_frames < c->n_pages && r->load->draw != LOAD_UNIFORM) {
        uint64_t most = WARM * c->n_pages;

        for (uint64_t i = r->n_warm > most ? r->n_warm - most : 0;
             i < r->n_warm && rc == 0; i++) {
            rc = xac_frames_fix(user, r->refs->pages[i], 0, &pin);
            if (rc == 0)
                xac_frames_unfix(user, &pin);
        }
    }
    if (rc == 0 && c->page_bytes != 0)
        rc = xac_frames_flush_all(user);
    xac_frames_leave(user);
    return rc;
}

/* workers_make -- with their references, n in all at least. */
static int
workers_make(struct run *r, uint64_t n)
{
    const struct load *load = r->load;

    r->n_refs = n_refs_of(load);
    r->n_warm = r->n_refs / 2;
    r->refs = refs_hold(load, n);
    if (r->refs == NULL)
        return 1;
    r->workers = calloc(load->n_threads, sizeof *r->workers);
    if (r->workers == NULL)
        return bench_fail("frames: no memory for threads");
    for (unsigned i = 0; i < load->n_threads; i++) {
        struct worker *w = &r->workers[i];

        *w = (struct worker){.run = r, .number = i};
        w->times = load->times ? malloc(TIMES_MAX * sizeof *w->times) : NULL;
        if (load->times && w->times == NULL)
            return bench_fail("frames: no memory for times");
    }
    return 0;
}

/* run_open -- pool, n references at least, threads not started. */
static int
run_open(struct run *r, const struct load *load, uint64_t n, enum load_stop stop,
         bool counted)
{
    struct xac_frames_config c = load->config;
    struct xac_frames_io io = {.read = page_read, .write = page_write, .arg = r};
    int rc;

    *r = (struct run){.load = load, .stop = stop, .counted = counted};
    (void)pthread_rwlock_init(&r->table_lock, NULL);
    (void)pthread_mutex_init(&r->seek_lock, NULL);
    c.n_users = load->n_threads + 1;
    if (load->harm != HARM_NONE)
        io.probe = probe;
    if (workers_make(r, n) != 0)
        return 1;
    rc = xac_frames_create(&c, NULL, &io, &r->pool);
    if (rc == 0 && !load->cold)
        rc = warm(r);
    return rc == 0 ? 0 : bench_fail("frames: no pool: %s", strerror(rc));
}

static void
run_close(struct run *r)
{
    if (r->pool != NULL)
        xac_frames_close(r->pool);
    for (unsigned i = 0; i < r->load->n_threads && r->workers != NULL; i++)
        free(r->workers[i].times);
    free(r->workers);
    refs_drop(r->refs);
    (void)pthread_rwlock_destroy(&r->table_lock);
    (void)pthread_mutex_destroy(&r->seek_lock);
}

/* threads_start -- ret how many. */
static unsigned
threads_start(struct run *r)
{
    unsigned n = 0;

    while (n < r->load->n_threads
           && pthread_create(&r->workers[n].thread, NULL, worker_run, &r->workers[n])
                  == 0)
        n++;
    return n;
}

/* threads_end -- ret 0, or 1 after a message. */
static int
threads_end(struct run *r, unsigned n_started)
{
    int rc = n_started == r->load->n_threads ? 0 : EAGAIN;

    atomic_store_explicit(&r->over, true, memory_order_relaxed);
    for (unsigned i = 0; i < n_started; i++) {
        (void)pthread_join(r->workers[i].thread, NULL);
        rc = rc != 0 ? rc : r->workers[i].rc;
    }
    return rc == 0 ? 0 : bench_fail("frames: %s", strerror(rc));
}

static uint64_t
fixes_of(const struct run *r, unsigned first)
{
    uint64_t n = 0;

    for (unsigned i = first; i < r->load->n_threads; i++)
        n += atomic_load_explicit(&r->workers[i].n_fixes, memory_order_relaxed);
    return n;
}

/* ---- Measuring ------------------------------------------------------------------------ */

/* stats_add -- sum += times * more, word by word. */
static void
stats_add(struct xac_frames_stats *sum, const struct xac_frames_stats *more,
          uint64_t times)
{
    uint64_t a[sizeof *sum / 8], b[sizeof *sum / 8];

    memcpy(a, sum, sizeof a);
    memcpy(b, more, sizeof b);
    for (size_t i = 0; i < sizeof a / sizeof a[0]; i++)
        a[i] += times * b[i];
    memcpy(sum, a, sizeof a);
}

/* percentiles -- of all threads' times. */
static int
percentiles(const struct run *r, double *p_ns)
{
    static const double which[] = {50, 99, 99.9};
    uint64_t n = 0, at = 0;
    uint32_t *all;

    for (unsigned i = 0; i < r->load->n_threads; i++)
        n += r->workers[i].n_times;
    all = malloc((n + 1) * sizeof *all);
    if (all == NULL)
        return bench_fail("frames: no memory for times");
    for (unsigned i = 0; i < r->load->n_threads; i++) {
        memcpy(all + at, r->workers[i].times, r->workers[i].n_times * sizeof *all);
        at += r->workers[i].n_times;
    }
    bench_sort_u32(all, n);
    for (int i = 0; i < 3 && n > 0; i++)
        p_ns[i] = bench_percentile(all, n, which[i]);
    free(all);
    return 0;
}

/* One round of one load. */
struct sample {
    double mfix_s, cpu_ns, lock_share, p_ns[3];
    uint64_t n_fixes;
    struct xac_frames_stats stats;
};

/* measure -- let the threads run for the load's seconds, from where they were. */
static int
measure(struct run *r, struct sample *got)
{
    const struct load *load = r->load;
    struct xac_frames_stats before, stats;
    uint64_t begin, ns, cpu, n = fixes_of(r, 0);
    unsigned n_started;

    atomic_store_explicit(&r->over, false, memory_order_relaxed);
    for (unsigned i = 0; i < load->n_threads; i++)
        r->workers[i].n_times = 0;
    xac_frames_get_stats(r->pool, &before, sizeof before);
    begin = bench_now_ns();
    cpu = bench_cpu_ns();
    n_started = threads_start(r);
    sleep_us((unsigned)(load->seconds * 1e6));
    if (threads_end(r, n_started) != 0)
        return 1;
    ns = bench_now_ns() - begin;
    n = fixes_of(r, 0) - n;
    xac_frames_get_stats(r->pool, &stats, sizeof stats);
    stats_add(&stats, &before, -UINT64_C(1));
    *got = (struct sample){.mfix_s = (double)n * 1e3 / (double)ns,
                           .cpu_ns = (double)(bench_cpu_ns() - cpu) / (double)n,
                           .lock_share = (double)stats.lock_wait_ns
                                         / ((double)ns * load->n_threads),
                           .n_fixes = n,
                           .stats = stats};
    return load->times ? percentiles(r, got->p_ns) : 0;
}

/* median_of -- the samples' number at this offset. */
static double
median_of(const struct sample *samples, unsigned n, size_t offset)
{
    double v[LOAD_ROUNDS_MAX];

    for (unsigned k = 0; k < n; k++)
        memcpy(&v[k], (const char *)&samples[k] + offset, sizeof v[k]);
    return bench_median(v, n);
}

/* share -- a of b, times `scale`. */
static double
share(uint64_t a, uint64_t b, double scale)
{
    return b == 0 ? 0 : scale * (double)a / (double)b;
}

/* sum_up -- what the rounds say together. */
static void
sum_up(const struct sample *samples, unsigned n, struct load_got *got)
{
    struct xac_frames_stats *s = &got->stats;

    *got = (struct load_got){
        .mfix_s = median_of(samples, n, offsetof(struct sample, mfix_s)),
        .cpu_ns = median_of(samples, n, offsetof(struct sample, cpu_ns)),
        .lock_share = median_of(samples, n, offsetof(struct sample, lock_share)),
        .n_rounds = n};
    for (size_t i = 0; i < 3; i++)
        got->p_ns[i] =
            median_of(samples, n, offsetof(struct sample, p_ns) + i * sizeof(double));
    for (unsigned k = 0; k < n; k++) {
        got->rounds[k].mfix_s = samples[k].mfix_s;
        got->rounds[k].n_fixes = samples[k].n_fixes;
        got->rounds[k].n_waits = samples[k].stats.lock_waits;
        got->n_fixes += samples[k].n_fixes;
        stats_add(s, &samples[k].stats, 1);
    }
    got->per_million[0] = share(s->locks, got->n_fixes, 1e6);
    got->per_million[1] = share(s->lock_waits, got->n_fixes, 1e6);
    got->per_million[2] = share(s->lock_tries, got->n_fixes, 1e6);
    got->hit_percent = share(s->hits, s->hits + s->misses, 100);
    got->duplicate_percent = share(s->reads_duplicate, s->reads, 100);
    got->stale_per_million = share(s->hits_stale, got->n_fixes, 1e6);
}

/* n_refs_most -- of the loads that draw as this one does, so that all can share. */
static uint64_t
n_refs_most(const struct load *loads, unsigned n, const struct load *load)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < n; i++)
        if (draws_alike(&loads[i], load) && n_refs_of(&loads[i]) > most)
            most = n_refs_of(&loads[i]);
    return most;
}

int
bench_load_run(const struct load *loads, unsigned n, unsigned rounds,
               struct load_got *got)
{
    struct sample *all = calloc((size_t)n * LOAD_ROUNDS_MAX, sizeof *all);
    struct run *runs = calloc(n, sizeof *runs);
    unsigned n_open = 0;
    int rc = 0;

    if (all == NULL || runs == NULL)
        rc = bench_fail("frames: no memory");
    for (; rc == 0 && n_open < n; n_open++)
        rc = run_open(&runs[n_open], &loads[n_open],
                      n_refs_most(loads, n, &loads[n_open]), STOP_AT_STEP, false);
    for (unsigned round = 0; round < rounds && rc == 0; round++)
        for (unsigned i = 0; i < n && rc == 0; i++) {
            unsigned at = (i + round) % n;

            rc = measure(&runs[at], &all[(size_t)at * LOAD_ROUNDS_MAX + round]);
        }
    for (unsigned i = 0; i < n && rc == 0; i++)
        sum_up(&all[(size_t)i * LOAD_ROUNDS_MAX], rounds, &got[i]);
    for (unsigned i = 0; i < n_open; i++)
        run_close(&runs[i]);
    free(runs);
    free(all);
    return rc;
}

double
bench_load_ratio(const struct load_got *a, const struct load_got *b)
{
    double v[LOAD_ROUNDS_MAX];

    for (unsigned k = 0; k < a->n_rounds; k++)
        v[k] = a->rounds[k].mfix_s / b->rounds[k].mfix_s;
    return bench_median(v, a->n_rounds);
}

/* rate -- fixes per nanosecond of all but the first thread, for so long. */
static double
rate(const struct run *r, double seconds)
{
    uint64_t since = bench_now_ns(), n = fixes_of(r, 1);

    sleep_us((unsigned)(seconds * 1e6));
    return (double)(fixes_of(r, 1) - n) / (double)(bench_now_ns() - since);
}

/* stopped_rate -- let the first thread stop, and see what the others do. */
static int
stopped_rate(struct run *r, double seconds, double *ratep)
{
    int rc = 0;

    for (unsigned waited = 0;
         atomic_load_explicit(&r->stopped, memory_order_relaxed) == 0 && waited < 20000;
         waited++)
        sleep_us(100);
    if (atomic_load_explicit(&r->stopped, memory_order_relaxed) == 0)
        rc = bench_fail("frames: nobody came to the step");
    sleep_us(10000); /* queues of others may fill up first */
    *ratep = rate(r, seconds);
    atomic_store_explicit(&r->go_on, 1, memory_order_relaxed);
    return rc;
}

int
bench_load_stopped(const struct load *load, enum load_stop stop, double seconds,
                   double *sharep)
{
    double normal = 0, during = 0;
    unsigned n_started;
    struct run r;
    int rc = run_open(&r, load, n_refs_of(load), stop, true);

    if (rc == 0) {
        atomic_store_explicit(&r.armed, load->cold, memory_order_relaxed);
        n_started = threads_start(&r);
        if (!load->cold) {
            sleep_us(20000);
            normal = rate(&r, seconds);
            atomic_store_explicit(&r.armed, 1, memory_order_relaxed);
        }
        rc = stopped_rate(&r, seconds, &during);
        if (load->cold)
            normal = rate(&r, seconds);
        rc = threads_end(&r, n_started) != 0 ? 1 : rc;
        *sharep = during / normal;
    }
    run_close(&r);
    return rc;
}
