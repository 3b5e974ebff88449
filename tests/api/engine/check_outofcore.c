/* SPDX-License-Identifier: MIT */
/*
 * check_outofcore.c -- XAC_OPT_FRAMES: files larger than the memory that is allowed for them.
 *
 * GOAL    What transactions may expect does not change with the option: they read and write
 *         more pages than there are frames, commit, abort, survive a crash; nobody is shown an
 *         older page because it was in a frame.  What a mapping shows stays within its share.
 * METHOD  FRAMES frames, the least that is allowed, and a file of ten times as many pages, each
 *         with a number that a model in plain memory knows.  Tests run NONDURABLE and DURABLE
 *         (the loop variable _i) where that makes a difference.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check_outofcore.h"

uint64_t *
attach(int flags)
{
    must_ok(xSetOption(XAC_OPT_FRAMES, FRAMES));
    return env_attach(flags, N_PAGES);
}

void
write_all(uint64_t *x, uint64_t base)
{
    for (size_t p = 0; p < N_PAGES; p++) {
        env_cell(x, p)[0] = base + p;
        env_cell(x, p)[1 + p % 500] = ~(base + p);
    }
}

void
must_hold(uint64_t *x, uint64_t base)
{
    for (size_t p = 0; p < N_PAGES; p++) {
        const uint64_t *cell = env_cell(x, p);

        if (cell[0] != base + p || cell[1 + p % 500] != ~(base + p))
            env_fail(__FILE__, __LINE__, "page %zu: %" PRIu64 ", not %" PRIu64, p,
                     cell[0], base + (uint64_t)p);
    }
}

void
query_must_hold(uint64_t *x, uint64_t base)
{
    must_ok(xbeginQuery());
    must_hold(x, base);
    must_rc(xendQuery(), COMMITTED);
}

size_t
present(const uint64_t *x, size_t n_pages)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    uint64_t word;

    must(fd >= 0);
    for (size_t p = 0; p < n_pages; p++) {
        uint64_t at = ((uintptr_t)x / env_page() + p) * sizeof word;

        must_eq(pread(fd, &word, sizeof word, (off_t)at), sizeof word);
        n += word >> 63;
    }
    (void)close(fd);
    return n;
}

/* ---- More pages than frames ------------------------------------------------------------ */

START_TEST(large_transactions_commit)
{
    uint64_t *x = attach(MODE(_i));
    struct xac_stats s;

    for (uint64_t round = 1; round <= 2; round++) {
        must_ok(xbegin());
        write_all(x, round << 32);
        must(present(x, N_PAGES) <= FRAMES / 8 + 1);
        must_hold(x, round << 32); /* its own stores, back from where they have gone */
        must_rc(xend(), COMMITTED);
        query_must_hold(x, round << 32);
    }
    s = env_stats();
    must_eq(s.frames_bound, FRAMES);
    must(s.pages_spilled >= N_PAGES - FRAMES / 8 && s.pages_fetched_back > 0);
    must(s.pages_dropped > s.pages_spilled);
    must(s.frames_misses > 0);
    env_detach();
    must_eq(file_u64(ENV_FILE, (N_PAGES - 1) * env_page()),
            (UINT64_C(2) << 32) + N_PAGES - 1);
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__) \
    && !defined(__SANITIZE_THREAD__) /* have memory of their own */
/* Bytes of private memory that may be written, as the kernel counts for RLIMIT_DATA. */
static rlim_t
data_bytes(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    unsigned long long kib = 0;
    char line[200];

    must(f != NULL);
    while (fgets(line, sizeof line, f) != NULL)
        (void)sscanf(line, "VmData: %llu", &kib);
    (void)fclose(f);
    must(kib > 0);
    return (rlim_t)kib << 10;
}

/* A transaction that goes to a data file takes no more memory the larger it is. */
START_TEST(large_transactions_commit_in_little_memory)
{
    struct rlimit most, all;
    glob_t found;
    uint64_t *x;

    must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 1 << 16));
    x = attach(DURABLE);
    must_eq(getrlimit(RLIMIT_DATA, &all), 0);
    must_ok(xbegin());
    write_all(x, 5000);
    most = all;
    most.rlim_cur = data_bytes() + FRAMES / 2 * env_page();
    must_eq(setrlimit(RLIMIT_DATA, &most), 0);
    must_rc(xend(), COMMITTED);
    must_eq(setrlimit(RLIMIT_DATA, &all), 0);
    must_eq(glob(ENV_DIR "/xac-data.*", 0, NULL, &found), 0);
    globfree(&found);
    query_must_hold(x, 5000);
    env_detach();
}
END_TEST
#endif

START_TEST(large_transactions_abort)
{
    uint64_t *x = attach(MODE(_i));

    must_ok(xbegin());
    write_all(x, 1000);
    must_rc(xend(), COMMITTED);
    must_ok(xbegin());
    must_hold(x, 1000);
    write_all(x, 1u << 30);
    must_ok(xAbort());
    must_hold(x, 1u << 30); /* until the end it sees what it has stored */
    must_rc(xend(), ABORTED);
    query_must_hold(x, 1000);
    env_detach();
}
END_TEST

START_TEST(dropped_pages_stay_in_the_read_set)
{
    struct xac_stats before;
    uint64_t *x;
    pid_t other;

    must_ok(xSetOption(XAC_OPT_FRAMES, FRAMES)); /* the companion's, too */
    other = env_companion(MODE(_i), 1);
    x = attach(MODE(_i));
    before = env_stats();

    must_ok(xbegin());
    must_eq(env_cell(x, 0)[0], 0);
    for (size_t p = 1; p < N_PAGES; p++)
        must_eq(env_cell(x, p)[0], 0);
    must(present(x, N_PAGES) <= FRAMES / 8 + 1);
    must_eq(env_cell(x, 0)[0], 0); /* a second trap, and the same page */
    must(env_stats().traps_read > before.traps_read + N_PAGES);
    must_rc(xend(), COMMITTED);
    env_detach();
    proc_kill(other);
}
END_TEST

START_TEST(random_transactions_follow_the_model)
{
    uint64_t *model = calloc(N_PAGES, sizeof *model);
    uint64_t *x = attach(MODE(_i));
    unsigned short rng[3] = {(unsigned short)env_seed(),
                             (unsigned short)(env_seed() >> 16), (unsigned short)_i};

    must(model != NULL);
    for (uint64_t round = 1; round <= 24; round++) {
        size_t n = (size_t)nrand48(rng) % 400;
        bool aborts = nrand48(rng) % 4 == 0;
        uint64_t *next = malloc(N_PAGES * sizeof *next);

        must(next != NULL);
        memcpy(next, model, N_PAGES * sizeof *next);
        must_ok(xbegin());
        for (size_t k = 0; k < n; k++) {
            size_t p = (size_t)nrand48(rng) % N_PAGES;

            must_eq(env_cell(x, p)[0], next[p]);
            if (nrand48(rng) % 2 == 0)
                env_cell(x, p)[0] = next[p] = round << 20 | k;
        }
        if (aborts)
            must_ok(xAbort());
        must_rc(xend(), aborts ? ABORTED : COMMITTED);
        memcpy(model, aborts ? model : next, N_PAGES * sizeof *next);
        free(next);
        if (round % 10 == 0)
            must_ok(xCheckpoint());
    }
    must_ok(xbeginQuery());
    for (size_t p = 0; p < N_PAGES; p++)
        must_eq(env_cell(x, p)[0], model[p]);
    must_rc(xendQuery(), COMMITTED);
    env_detach();
    for (size_t p = 0; p < N_PAGES; p += 97)
        must_eq(file_u64(ENV_FILE, p * env_page()), model[p]);
    free(model);
}
END_TEST

START_TEST(pages_that_stay_mapped_are_bounded)
{
    uint64_t *x;

    env_checking = XAC_CHECKING_FAST;
    x = attach(MODE(_i));
    for (uint64_t round = 1; round <= 2; round++) {
        must_ok(xbegin());
        write_all(x, round << 32);
        must_rc(xend(), COMMITTED);
        query_must_hold(x, round << 32);
        must(present(x, N_PAGES) <= FRAMES / 8 + 8);
    }
    env_detach();
    env_checking = XAC_CHECKING_STRICT;
}
END_TEST

/* Announced once, a page may be stored to until the end, wherever it has been meanwhile. */
START_TEST(spilled_pages_stay_announced)
{
    uint64_t *x;

    env_announce();
    x = attach(MODE(_i));
    must_ok(xbegin());
    for (size_t p = 0; p < N_PAGES; p++)
        must_ok(setPageAccess(env_cell(x, p), READ_WRITE));
    write_all(x, 3);
    must_rc(xend(), COMMITTED);
    must(env_stats().pages_spilled > 0);
    query_must_hold(x, 3);
    env_detach();
}
END_TEST

/* ---- Crashes ------------------------------------------------------------------------------ */

/* Two large commits, and a third transaction that dies at its end's door. */
static void
commit_and_die(void *arg)
{
    uint64_t *x = attach(DURABLE);

    for (uint64_t round = 1; round <= 2; round++) {
        must_ok(xbegin());
        write_all(x, round << 32);
        must_rc(xend(), COMMITTED);
        if (round == 1 && *(const bool *)arg)
            must_ok(xCheckpoint());
    }
    must_ok(xbegin());
    write_all(x, UINT64_C(3) << 32);
}

START_TEST(large_commits_survive_a_crash)
{
    bool checkpoints = _i != 0;
    uint64_t *x;

    proc_run(commit_and_die, &checkpoints);
    x = attach(DURABLE);
    query_must_hold(x, UINT64_C(2) << 32);
    env_detach();
    must_eq(file_u64(ENV_FILE, 5 * env_page()), (UINT64_C(2) << 32) + 5);
}
END_TEST

/* ---- Several processes ---------------------------------------------------------------------- */

struct shared {
    int flags;
    uint64_t *x; /* as mapped before the fork; NULL: not yet                          */
    _Atomic uint64_t committed, stop, ready;
};

/* Queries find all pages of one round, and never one that is older than what was committed
   before they began. */
static void
look_on(void *arg)
{
    struct shared *sh = arg;
    uint64_t *x = sh->x != NULL ? sh->x : attach(sh->flags);

    proc_await(&sh->committed, 1, 100);
    word_add(&sh->ready, 1);
    while (word_load(&sh->stop) == 0) {
        uint64_t least = word_load(&sh->committed);

        must_ok(xbeginQuery());
        must(env_cell(x, 0)[0] >> 32 >= least);
        for (size_t p = 0; p < N_PAGES; p += 3)
            must_eq(env_cell(x, p)[0], env_cell(x, 0)[0] + p);
        must_rc(xendQuery(), COMMITTED);
    }
    env_detach();
}

START_TEST(nobody_is_shown_an_older_page)
{
    struct shared *sh = proc_shared(sizeof *sh);
    pid_t other[2];
    uint64_t *x;

    sh->flags = MODE(_i);
    for (int k = 0; k < 2; k++)
        other[k] = proc_spawn(look_on, sh);
    x = attach(MODE(_i));
    must_ok(xbegin());
    write_all(x, UINT64_C(1) << 32);
    must_rc(xend(), COMMITTED);
    word_store(&sh->committed, 1);
    for (uint64_t round = 2; round <= 5; round++) {
        must_ok(xbegin());
        write_all(x, round << 32);
        must_rc(xend(), COMMITTED);
        word_store(&sh->committed, round);
        must_ok(xCheckpoint()); /* what the frames hold of the file is old now */
        must(!proc_any_failed());
    }
    word_store(&sh->stop, 1);
    for (int k = 0; k < 2; k++)
        proc_join(other[k]);
    query_must_hold(x, UINT64_C(5) << 32);
    env_detach();
}
END_TEST

/* A transaction that runs longer than the versions it sees have room in memory. */
static void
long_query(void *arg)
{
    struct shared *sh = arg;
    uint64_t *x = sh->x;

    must_ok(xbeginQuery());
    must_eq(env_cell(x, 0)[0], 77);
    word_store(&sh->ready, 1);
    proc_await(&sh->stop, 1, 100);
    must_hold(x, 77);
    must_rc(xendQuery(), COMMITTED);
    env_detach();
}

START_TEST(long_query_beside_checkpoints)
{
    struct shared *sh = proc_shared(sizeof *sh);
    uint64_t *x = attach(MODE(_i));
    pid_t other;

    must_ok(xbegin());
    write_all(x, 77);
    must_rc(xend(), COMMITTED);
    must_ok(xCheckpoint());
    sh->x = x;
    other = proc_spawn(long_query, sh);
    proc_await(&sh->ready, 1, 100);
    for (uint64_t round = 1; round <= 2; round++) {
        must_ok(xbegin());
        write_all(x, round << 32);
        must_rc(xend(), COMMITTED);
        must_ok(xCheckpoint());
    }
    must(env_stats().frames_on_disk > 0);
    word_store(&sh->stop, 1);
    proc_join(other);
    must_ok(xCheckpoint());
    query_must_hold(x, UINT64_C(2) << 32);
    env_detach();
}
END_TEST

START_TEST(killed_readers_hold_no_frames)
{
    struct shared *sh = proc_shared(sizeof *sh);
    uint64_t *x = attach(MODE(_i));

    sh->x = x;
    must_ok(xbegin());
    write_all(x, UINT64_C(1) << 32);
    must_rc(xend(), COMMITTED);
    word_store(&sh->committed, 1);
    for (uint64_t round = 2; round <= 8; round++) {
        pid_t other = proc_spawn(look_on, sh);

        proc_await(&sh->ready, round - 1, 100);
        proc_sleep_us(2000 + round * 137 % 1000);
        proc_kill(other);
        must_ok(xCheckpoint()); /* cleans up after it */
        must_ok(xbegin());
        write_all(x, round << 32);
        must_rc(xend(), COMMITTED);
        query_must_hold(x, round << 32);
    }
    env_detach();
}
END_TEST

/* ---- Refused -------------------------------------------------------------------------------- */

START_TEST(wrong_values_are_refused)
{
    must_refuse(xSetOption(XAC_OPT_FRAMES, 255), EINVAL);
    must_refuse(xSetOption(XAC_OPT_FRAMES, UINT64_MAX), EINVAL);
    must_eq(setenv("XAC_FRAMES", "12", 1), 0);
    must_refuse(xInit(ENV_DIR, NONDURABLE), EINVAL);
    must_eq(setenv("XAC_FRAMES", "300x", 1), 0);
    must_refuse(xInit(ENV_DIR, NONDURABLE), EINVAL);
    must_eq(setenv("XAC_FRAMES", "300", 1), 0);
    env_init(NONDURABLE);
    must_eq(env_stats().frames_bound, 300);
    must_refuse(xSetOption(XAC_OPT_FRAMES, FRAMES), EBUSY);
    env_detach();
    must_ok(xSetOption(XAC_OPT_FRAMES, 0)); /* what the program says, counts */
    env_init(NONDURABLE);
    must_eq(env_stats().frames_bound, 0);
    env_detach();
    must_eq(unsetenv("XAC_FRAMES"), 0);
}
END_TEST

START_TEST(other_engines_are_refused)
{
    must_eq(setenv("XAC_ENGINE", "sigsegv", 1), 0);
    must_ok(xSetOption(XAC_OPT_FRAMES, FRAMES));
    must_refuse(xInit(ENV_DIR, MODE(_i)), ENOTSUP);
    must_eq(unsetenv("XAC_ENGINE"), 0);
    (void)attach(MODE(_i)); /* nothing is left of the first */
    env_detach();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("outofcore");
    TCase *tc = env_tcase(s, "large", 120);

    tcase_add_loop_test(tc, large_transactions_commit, 0, 2);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    tcase_add_test(tc, large_transactions_commit_in_little_memory);
#endif
    tcase_add_loop_test(tc, large_transactions_abort, 0, 2);
    tcase_add_loop_test(tc, dropped_pages_stay_in_the_read_set, 0, 2);
    tcase_add_loop_test(tc, random_transactions_follow_the_model, 0, 2);
    tcase_add_loop_test(tc, pages_that_stay_mapped_are_bounded, 0, 2);
    tcase_add_loop_test(tc, spilled_pages_stay_announced, 0, 2);
    tcase_add_loop_test(tc, large_commits_survive_a_crash, 0, 2);
    tc = env_tcase(s, "processes", 120);
    tcase_add_loop_test(tc, nobody_is_shown_an_older_page, 0, 2);
    tcase_add_loop_test(tc, long_query_beside_checkpoints, 0, 2);
    tcase_add_loop_test(tc, killed_readers_hold_no_frames, 0, 2);
    tc = env_tcase(s, "refused", 60);
    tcase_add_test(tc, wrong_values_are_refused);
    tcase_add_loop_test(tc, other_engines_are_refused, 0, 2);
    add_aliases(s);
    return s;
}

int
main(void)
{
    return env_main(suite());
}
