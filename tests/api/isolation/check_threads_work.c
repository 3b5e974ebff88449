/* SPDX-License-Identifier: MIT */
/*
 * check_threads_work.c -- many threads with views of their own at work.
 *
 * GOAL    sums are right under every policy, among threads and with processes; pools that
 *         make and drop views leave nothing behind; transactions of any size; the heap.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check_threads.h"

#define THREADS 4
#define MOVES   100 /* of each */

/* ---- sums --------------------------------------------------------------------------------- */

static int
move_one(void *arg)
{
    uint64_t *v = ((uint64_t **)arg)[0], *seed = ((uint64_t **)arg)[1], total = 0;

    for (size_t p = 0; p < 4; p++)
        total += *env_cell(v, p);
    must_eq(total, 4000); /* whether it is going to commit or not */
    *env_cell(v, rnd_below(seed, 4)) -= 1;
    *env_cell(v, rnd_below(seed, 4)) += 1;
    *env_cell(v, 4 + rnd_below(seed, 8)) += 1;
    return 0;
}

static void *
move_about(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint64_t seed = env_seed() + (uint64_t)w->i, total;
    uint64_t *v = view_of(w->base);
    uint64_t *in[2] = {v, &seed};

    for (int i = 0; i < MOVES; i++) {
        must_ok(xTransact(move_one, in));
        if (i % 8 != 0)
            continue;
        total = 0;
        must_ok(xbeginQuery());
        for (size_t p = 0; p < 4; p++)
            total += *env_cell(v, p);
        must_eq(total, 4000);
        must_ok(xendQuery());
    }
    return NULL;
}

static void
sleep_a_little(void *arg, unsigned attempts)
{
    word_add((_Atomic uint64_t *)arg, 1);
    proc_sleep_us(attempts < 20 ? attempts * 10 : 200);
}

static void
move_in_process(void *arg)
{
    struct worker w = {.base = (uint64_t *)env_attach(*(int *)arg, N_PAGES), .i = 77};

    word_store(&board->ready, 1);
    step_await(1);
    (void)move_about(&w);
    env_detach();
}

/* Threads, the process's own transactions, and another process; _i: policy, mode. */
START_TEST(totals_are_right_under_every_policy)
{
    int mode = _i % 2 == 0 ? NONDURABLE : DURABLE;
    struct worker w[THREADS];
    uint64_t *x, total = 0, added = 0;
    pid_t child;

    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)_i / 2));
    child = proc_spawn(move_in_process, &mode);
    proc_await(&board->ready, 1, 20);
    x = (uint64_t *)env_attach(mode, N_PAGES);
    must_ok(xbegin());
    for (size_t p = 0; p < 4; p++)
        *env_cell(x, p) = 1000;
    must_rc(xend(), COMMITTED);
    step_to(1);
    must_ok(xac_set_backoff(sleep_a_little, &board->count[0]));
    for (int i = 0; i < THREADS; i++)
        worker_start(&w[i], move_about, x, i);
    must_ok(xac_set_backoff(_i % 3 == 0 ? NULL : sleep_a_little, &board->count[0]));
    for (int i = 0; i < 300; i++)
        env_increment(env_cell(x, 12));
    for (int i = 0; i < THREADS; i++)
        worker_join(&w[i]);
    proc_join(child);
    must_ok(xbeginQuery());
    for (size_t p = 0; p < 4; p++)
        total += *env_cell(x, p);
    for (size_t p = 4; p < 12; p++)
        added += *env_cell(x, p);
    must_eq(total, 4000);
    must_eq(added, (THREADS + 1) * MOVES);
    must_eq(*env_cell(x, 12), 300);
    must_ok(xendQuery());
    env_detach();
}
END_TEST

/* ---- pools -------------------------------------------------------------------------------- */

/* Mappings of this process; of the segment's file only, or all. */
static size_t
mappings(const char *of)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[1024];
    size_t n = 0;

    must(f != NULL);
    while (fgets(line, sizeof line, f) != NULL)
        n += strstr(line, of) != NULL;
    must(fclose(f) == 0);
    return n;
}

static size_t
descriptors(void)
{
    return file_count("/proc/self/fd", "");
}

static size_t
region_bytes(void)
{
    char path[4200];
    struct stat st;

    env_region(ENV_DIR, path);
    must(stat(path, &st) == 0);
    return (size_t)st.st_size;
}

static void *
view_and_leave(void *arg)
{
    struct worker *w = (struct worker *)arg;

    for (int i = 0; i < 250; i++) {
        uint64_t *v = view_of(w->base);

        if (i % 4 == 0)
            env_increment(env_cell(v, (size_t)w->i));
        if (i % 3 != 0) /* else a second look at the same view, or the thread's end */
            must_ok(xUnview(v));
    }
    return NULL;
}

struct usage {
    size_t segments, mappings, descriptors, bytes;
};

static struct usage
usage_after(uint64_t *x, int generations)
{
    struct worker w[THREADS];

    for (int g = 0; g < generations; g++) {
        for (int i = 0; i < THREADS; i++)
            worker_start(&w[i], view_and_leave, x, i);
        for (int i = 0; i < THREADS; i++)
            worker_join(&w[i]);
    }
    return (struct usage){mappings(ENV_FILE), mappings(""), descriptors(),
                          region_bytes()};
}

/*
 * open_all -- what the library opens once, when it is first needed: a checkpoint the mapped file,
 * and more versions than a bound on memory has room for the second buffer file.  Views that
 * are slow make both necessary, sooner or later.
 */
static void
open_all(uint64_t *x)
{
    size_t bound = (size_t)env_stats().frames_bound;

    must_ok(xbegin());
    for (size_t p = 0; p <= bound / 8; p++)
        *env_cell(x, N_PAGES + p) = 1;
    must_rc(xend(), COMMITTED);
    must(bound == 0 || env_stats().frames_on_disk > 0);
    must_ok(xCheckpoint());
}

/* 10,000 views, and nothing of them stays: no slot, descriptor, mapping. */
START_TEST(views_by_the_thousand_leave_nothing_behind)
{
    struct usage before, after;
    uint64_t *x = (uint64_t *)env_attach(NONDURABLE, 1024);

    open_all(x);
    before = usage_after(x, 1);
    after = usage_after(x, 10);
    must_eq(after.descriptors, before.descriptors);
    must_eq(after.bytes, before.bytes);
    must_eq(after.segments, before.segments);
#if !defined(__SANITIZE_THREAD__)                 /* which maps more all the time */
    must(after.mappings <= before.mappings + 16); /* stacks and arenas of the C library */
#endif
    for (size_t i = 0; i < THREADS; i++)
        must_eq(env_get(env_cell(x, i)), 11 * 63);
    env_detach();
}
END_TEST

/* Threads that come and go, one for each job. */
static void *
do_one_job(void *arg)
{
    struct worker *w = (struct worker *)arg;

    env_increment(env_cell(view_of(w->base), 0));
    return NULL;
}

START_TEST(threads_by_the_hundred_leave_nothing_behind)
{
    uint64_t *x;
    struct worker w[8];
    size_t bytes = 0;

    env_checking = _i == 1 ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    for (int job = 0; job < 800; job += 8) {
        for (int i = 0; i < 8; i++)
            worker_start(&w[i], do_one_job, x, i);
        for (int i = 0; i < 8; i++)
            worker_join(&w[i]);
        env_increment(env_cell(x, 1));
        if (job == 80)
            bytes = region_bytes();
    }
    must_eq(region_bytes(), bytes);
    must_eq(env_get(env_cell(x, 0)), 800);
    must_eq(env_get(env_cell(x, 1)), 100);
    env_detach();
}
END_TEST

/* ---- size --------------------------------------------------------------------------------- */

#define STEP       78977 /* odd, so that it leads to every page of a power of 2 */
#define N_SCATTERS 8

/* More scattered pages than the kernel has mappings for. */
START_TEST(large_transaction_in_a_view)
{
    size_t n_pages = (size_t)1 << 19, n = 100000;
    uint64_t *x = (uint64_t *)env_attach(NONDURABLE, n_pages), *v = view_of(x);

    must_ok(xbegin());
    for (size_t i = 0; i < n; i++)
        *env_cell(v, i * STEP % n_pages) = i + 1;
    must_rc(xend(), COMMITTED);
    must_ok(xUnview(v));
    must_ok(xbeginQuery());
    for (size_t i = 0; i < n; i++)
        must_eq(*env_cell(x, i * STEP % n_pages), i + 1);
    must_ok(xendQuery());
    env_detach();
}
END_TEST

#define SCATTER_PAGES ((size_t)1 << 15)
#define SCATTERED     ((size_t)16000)

static void *
scatter(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint64_t *v = view_of(w->base);

    must_ok(xbegin());
    for (size_t i = (size_t)w->i; i < SCATTERED; i += N_SCATTERS)
        *env_cell(v, i * STEP % SCATTER_PAGES) = i + 1;
    word_add(&board->ready, 1);
    proc_await(&board->ready, N_SCATTERS, 120); /* all are open at once */
    word_store(&board->count[w->i], (uint64_t)xend());
    return NULL;
}

/* All of them together have more pages than there are mappings; three times over, for what
   a view keeps of its mappings. */
START_TEST(scattered_transactions_in_eight_views)
{
    struct worker w[N_SCATTERS];
    uint64_t *x;

    env_let_overlap(); /* eight transactions are open at the same time */
    x = (uint64_t *)env_attach(NONDURABLE, SCATTER_PAGES);
    for (int round = 0; round < 3; round++) {
        word_store(&board->ready, 0);
        for (int i = 0; i < N_SCATTERS; i++)
            worker_start(&w[i], scatter, x, i);
        for (int i = 0; i < N_SCATTERS; i++)
            worker_join(&w[i]);
    }
    must_ok(xbeginQuery());
    for (size_t i = 0; i < SCATTERED; i++) {
        uint64_t is = *env_cell(x, i * STEP % SCATTER_PAGES);

        must(is == i + 1 || (is == 0 && word_load(&board->count[i % N_SCATTERS]) != 0));
    }
    must_ok(xendQuery());
    env_detach();
}
END_TEST

/* ---- the heap ------------------------------------------------------------------------------ */

#define KEPT 64

static void *
allocate_and_free(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint8_t *v = (uint8_t *)view_of(w->base);
    uint64_t rnd = env_seed() + (uint64_t)w->i;
    size_t at[KEPT] = {0}, size[KEPT] = {0}; /* distances from the base */

    for (int i = 0; i < 1500; i++) {
        size_t k = rnd_below(&rnd, KEPT), n = 1 + rnd_below(&rnd, 3000), made = 0;
        int rc;

        do {
            must_ok(xbegin());
            if (at[k] != 0) {
                for (size_t b = 0; b < size[k]; b += 100)
                    must_eq(v[at[k] + b], w->i + 1);
                must_ok(xFree(v, v + at[k]));
            } else {
                uint8_t *p = (uint8_t *)xMalloc(v, n);

                must(p != NULL);
                memset(p, w->i + 1, n);
                made = (size_t)(p - v);
            }
            rc = xend();
        } while (rc == ABORTED);
        must_rc(rc, COMMITTED);
        at[k] = at[k] != 0 ? 0 : made;
        size[k] = n;
        word_store(&board->count[w->i],
                   word_load(&board->count[w->i]) + (at[k] != 0 ? 1 : UINT64_MAX));
    }
    must_ok(xbegin()); /* aborted with the thread */
    (void)xMalloc(v, 100);
    return NULL;
}

START_TEST(threads_share_a_heap)
{
    uint64_t *x, kept = 0;
    struct xac_heap_totals t;
    struct worker w[THREADS];

    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)_i));
    x = (uint64_t *)env_attach(NONDURABLE, 1024);
    for (int i = 0; i < THREADS; i++)
        worker_start(&w[i], allocate_and_free, x, i);
    for (int i = 0; i < THREADS; i++)
        worker_join(&w[i]);
    for (int i = 0; i < THREADS; i++)
        kept += word_load(&board->count[i]);
    must_ok(xbeginQuery());
    must_ok(xHeapCheck(x, &t, sizeof t));
    must_ok(xendQuery());
    must_eq(t.allocations, kept);
    env_detach();
}
END_TEST

void
add_work(Suite *s)
{
    TCase *tc = threads_tcase(s, "sums", 120);

    tcase_add_loop_test(tc, totals_are_right_under_every_policy, 0,
                        2 * (XAC_POLICY_SERIAL + 1));

    tc = threads_tcase(s, "pools", 120);
    tcase_add_test(tc, views_by_the_thousand_leave_nothing_behind);
    tcase_add_loop_test(tc, threads_by_the_hundred_leave_nothing_behind, 0, 2);

    tc = threads_tcase(s, "large", 240);
    tcase_add_test(tc, large_transaction_in_a_view);
    tcase_add_test(tc, scattered_transactions_in_eight_views);

    tc = threads_tcase(s, "heap", 120);
    tcase_add_loop_test(tc, threads_share_a_heap, 0, XAC_POLICY_SERIAL + 1);
}
