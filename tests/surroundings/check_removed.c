/* SPDX-License-Identifier: MIT */
/*
 * check_removed.c -- files that are removed, replaced, or out of reach.
 *
 * GOAL    a file that is removed after its last xMunmap() is forgotten: checkpoints go on, the
 *         log stays short, backup, shutdown, recovery and a new file of its name work; one that
 *         cannot be reached for another reason is kept, in the log, until it can, and is seen
 *         in the counters; a file that has lost its name while it is mapped is written.
 * METHOD  what users do to files, between commits; a child that returns has crashed.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/env.h"

#define N_PAGES 16u

static size_t words; /* of a page */

static uint64_t *
map(const char *name)
{
    uint64_t *x = xMmap(name, N_PAGES * env_page());

    if (x == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "mapping %s: %s", name, xLastError());
    return x;
}

/* put -- one commit that changes every page of a segment. */
static void
put(uint64_t *x, uint64_t value)
{
    int rc;

    do {
        must_ok(xbegin());
        for (size_t p = 0; p < N_PAGES; p++) {
            for (size_t i = 0; i < 64; i++)
                x[p * words + i] = value + p;
        }
    } while ((rc = xend()) == ABORTED);
    must_eq(rc, COMMITTED);
}

static void
must_hold(const uint64_t *x, uint64_t value)
{
    must_ok(xbeginQuery());
    for (size_t p = 0; p < N_PAGES; p++)
        must_eq(x[p * words], value + p);
    must_ok(xendQuery());
}

/* must_have -- a file's pages, read past the library. */
static void
must_have(const char *name, uint64_t value)
{
    uint64_t got;

    for (size_t p = 0; p < N_PAGES; p++) {
        file_read(name, (uint64_t)p * env_page(), &got, sizeof got);
        must_eq(got, value + p);
    }
}

static void
setup(void)
{
    env_setup();
    words = env_page() / sizeof(uint64_t);
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 256 << 10));
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, 1));
}

/* log_bytes -- bytes of log in the environment. */
static uint64_t
log_bytes(void)
{
    uint64_t bytes = 0;
    char name[64];
    struct stat st;

    for (unsigned k = 1; k < 4000; k++) {
        (void)snprintf(name, sizeof name, ENV_DIR "/xac-log.%08u", k);
        if (stat(name, &st) == 0)
            bytes += (uint64_t)st.st_size;
    }
    return bytes;
}

START_TEST(removal_after_unmapping_stops_no_checkpoint)
{
    uint64_t *a, *b;
    struct xac_stats s;

    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 1 << 18));
    env_init(_i == 0 ? DURABLE : NONDURABLE);
    a = map("a");
    b = map("b");
    put(a, 1);
    must_ok(xMunmap("a"));
    must(unlink("a") == 0);
    for (uint64_t n = 0; n < 400; n++)
        put(b, n);
    s = env_stats();
    must(s.checkpoints >= 3 || _i != 0);
    must_eq(s.checkpoint_failures, 0);
    must_ok(xCheckpoint());
    s = env_stats();
    must_eq(s.files_forgotten, 1);
    must(log_bytes() < 8 << 20);
    must_ok(xShutdown());
    must_have("b", 399);
    must(access("a", F_OK) != 0);
    env_init(_i == 0 ? DURABLE : NONDURABLE); /* it is not locked */
    b = map("b");
    must_hold(b, 399);
    must_ok(xShutdown());
}
END_TEST

/* A new file under the name of one that was removed, at once or after a checkpoint. */
START_TEST(new_file_takes_the_name_of_a_removed_one)
{
    uint64_t *a;

    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    env_init(DURABLE);
    for (uint64_t round = 1; round <= 5; round++) {
        a = map("a");
        must_eq(env_get(a), 0); /* nothing of the one before */
        put(a, round * 1000);
        must_ok(xMunmap("a"));
        if (_i == 1)
            must_ok(xCheckpoint());
        if (round < 5)
            must(unlink("a") == 0);
        if (_i == 2)
            must_ok(xCheckpoint());
    }
    a = map("a");
    must_hold(a, 5000);
    must_ok(xShutdown());
    must_have("a", 5000);
}
END_TEST

static void
be_killed(void *arg)
{
    const int *how = arg;
    uint64_t *a, *b;

    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    env_init(DURABLE);
    a = map("a");
    b = map("b");
    put(a, 1);
    put(b, 2);
    must_ok(xMunmap("a"));
    if (*how == 0) { /* the checkpoint finds out */
        must(unlink("a") == 0);
        must_ok(xCheckpoint());
    } else if (*how == 1) { /* told so, nothing else happens */
        must_ok(xForget("a"));
        must(unlink("a") == 0);
    } else if (*how == 2) { /* replaced by one that is mapped again */
        must(unlink("a") == 0);
        a = map("a");
        put(a, 77);
    } else { /* told so after the removal */
        must(unlink("a") == 0);
        must_ok(xForget("a"));
    }
    put(b, 3);
}

START_TEST(recovery_does_not_ask_for_a_forgotten_file)
{
    int how = _i;

    proc_run(be_killed, &how);
    must_ok(xRecover(ENV_DIR));
    must_have("b", 3);
    if (_i == 2)
        must_have("a", 77);
    else
        must(access("a", F_OK) != 0);
}
END_TEST

START_TEST(forget_brings_home_what_was_committed)
{
    uint64_t *a;

    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    must_rc(xForget("a"), XAC_ENOINIT);
    env_init(DURABLE);
    must_rc(xForget(NULL), EINVAL);
    must_rc(xForget(""), EINVAL);
    must_ok(xForget("never seen"));
    a = map("a");
    put(a, 9);
    must_refuse(xForget("a"), EBUSY);
    must_ok(xbegin());
    must_refuse(xForget("a"), XAC_EINTXN);
    must_eq(xend(), COMMITTED);
    must_ok(xMunmap("a"));
    must_ok(xForget("a"));
    must_have("a", 9);
    must(rename("a", "elsewhere") == 0);
    must_ok(xCheckpoint());
    must_ok(xForget("a"));
    must_ok(xShutdown());
    must_have("elsewhere", 9);
}
END_TEST

/* A companion maps the file: it is not forgotten, nor given up. */
static _Atomic uint64_t *phase;

static void
map_and_wait(void *arg)
{
    uint64_t *a;

    (void)arg;
    env_init(DURABLE);
    a = map("a");
    put(a, 41);
    word_store(&phase[0], 1);
    proc_await(&phase[1], 1, 30);
    must_hold(a, 41);
    must_ok(xCheckpoint()); /* written through its own descriptor */
    must_eq(env_stats().versions_live, 0);
    word_store(&phase[2], 1);
    proc_await(&phase[3], 1, 30);
    must_ok(xShutdown());
}

START_TEST(file_without_a_name_is_kept_while_it_is_mapped)
{
    struct xac_stats s;
    pid_t pid;

    phase = proc_shared(4 * sizeof *phase);
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    pid = proc_spawn(map_and_wait, NULL);
    env_init(DURABLE);
    proc_await(&phase[0], 1, 30);
    must(link("a", "kept") == 0);
    must(unlink("a") == 0);
    must_rc(xCheckpoint(), ENOENT); /* we cannot reach it, and it is in use */
    must_rc(xForget("a"), EBUSY);
    s = env_stats();
    must_eq(s.checkpoint_failures, 1);
    must_eq(s.checkpoint_error, ENOENT);
    must(s.checkpoint_error_ns != 0);
    must_eq(s.files_forgotten, 0);
    must(s.versions_live >= N_PAGES);
    word_store(&phase[1], 1);
    proc_await(&phase[2], 1, 30);
    must_have("kept", 41);
    word_store(&phase[3], 1);
    proc_join(pid);
    must_ok(xCheckpoint());
    must_ok(xShutdown());
}
END_TEST

/* Its last commit is in no file yet when the mapping goes. */
START_TEST(renamed_file_has_what_was_committed)
{
    bool is_unmapped = _i % 2 == 0;
    uint64_t *a;

    env_init(_i < 2 ? DURABLE : NONDURABLE);
    a = map("a");
    put(a, 1);
    must(rename("a", "moved") == 0);
    put(a, 100);
    if (is_unmapped)
        must_ok(xMunmap("a"));
    must_ok(xShutdown());
    must_have("moved", 100);
    env_init(_i < 2 ? DURABLE : NONDURABLE);
    must_hold(map("moved"), 100);
    must_ok(xShutdown());
}
END_TEST

/* Its directory is not there for now: as if the file system were not mounted. */
START_TEST(file_out_of_reach_is_not_forgotten)
{
    uint64_t *a, *b;
    struct xac_stats s;

    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    must(mkdir("dir", 0700) == 0);
    env_init(DURABLE);
    a = map("dir/a");
    b = map("b");
    put(a, 1);
    must_ok(xCheckpoint());
    put(a, 5);
    must_ok(xMunmap("dir/a"));
    must(rename("dir/a", "dir/away") == 0);
    must(mkdir("dir/a", 0700) == 0); /* EISDIR */
    for (uint64_t n = 1; n <= 3; n++) {
        put(b, n);
        must_rc(xCheckpoint(), EISDIR);
        must_have("b", n); /* the others are brought up to date */
        s = env_stats();
        must_eq(s.checkpoint_failures, n);
        must_eq(s.checkpoint_error, EISDIR);
        must_eq(s.files_forgotten, 0);
    }
    must(rmdir("dir/a") == 0);
    must(rename("dir/away", "dir/a") == 0);
    if (_i == 0) {
        must_ok(xCheckpoint());
        must_have("dir/a", 5);
        must_eq(env_stats().checkpoint_failures, 3);
        must_ok(xShutdown());
    } else { /* nor is it at the end, when it comes back */
        must_ok(xShutdown());
    }
    must_have("dir/a", 5);
}
END_TEST

static void
leave_it_out_and_die(void *arg)
{
    uint64_t *a, *b;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    env_init(DURABLE);
    a = map("a");
    b = map("b");
    put(a, 5);
    must_ok(xMunmap("a"));
    must(rename("a", "away") == 0);
    must(mkdir("a", 0700) == 0);
    for (uint64_t n = 1; n <= 50; n++) {
        put(b, n);
        must_rc(xCheckpoint(), EISDIR);
    }
}

START_TEST(log_of_a_file_out_of_reach_stays)
{
    proc_run(leave_it_out_and_die, NULL);
    must_rc(xRecover(ENV_DIR), EISDIR); /* not lost, and not passed over */
    must(rmdir("a") == 0);
    must(rename("away", "a") == 0);
    must_ok(xRecover(ENV_DIR));
    must_have("a", 5);
    must_have("b", 50);
}
END_TEST

START_TEST(backup_passes_over_a_removed_file)
{
    uint64_t *a, *b;

    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    env_init(DURABLE);
    a = map("a");
    b = map(ENV_DIR "/b");
    put(a, 1);
    put(b, 2);
    must_ok(xMunmap("a"));
    if (_i == 1)
        must_ok(xCheckpoint());
    must(unlink("a") == 0);
    must_ok(xBackup("copy"));
    must_ok(xShutdown());
    must_ok(xRecover("copy"));
    must_have("copy/b", 2);
}
END_TEST

/* What nobody asked for is told once, on standard error. */
static void
fail_by_oneself(void *arg)
{
    uint64_t *a, *b;

    (void)arg;
    must(freopen("words", "w", stderr) != NULL);
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 1 << 18));
    env_init(DURABLE);
    a = map("a");
    b = map("b");
    put(a, 1);
    must_ok(xMunmap("a"));
    must(unlink("a") == 0);
    must(mkdir("a", 0700) == 0);
    for (uint64_t n = 0; n < 400; n++)
        put(b, n);
    must(env_stats().checkpoint_failures > 1);
    must(env_stats().checkpoints > 1);
}

START_TEST(failure_is_told_once)
{
    char words_[4096] = "";
    char *first;
    FILE *f;

    proc_run(fail_by_oneself, NULL);
    f = fopen("words", "r");
    must(f != NULL && fread(words_, 1, sizeof words_ - 1, f) > 0);
    must(fclose(f) == 0);
    first = strstr(words_, "a checkpoint of ");
    must(first != NULL);
    must(strstr(first, "Is a directory") != NULL);
    must(strstr(first + 1, "a checkpoint of ") == NULL);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("removed");
    TCase *tc = env_tcase_with(s, "removed", 120, setup);

    tcase_add_loop_test(tc, removal_after_unmapping_stops_no_checkpoint, 0, 2);
    tcase_add_loop_test(tc, new_file_takes_the_name_of_a_removed_one, 0, 3);
    tcase_add_loop_test(tc, recovery_does_not_ask_for_a_forgotten_file, 0, 4);
    tcase_add_test(tc, forget_brings_home_what_was_committed);
    tcase_add_test(tc, file_without_a_name_is_kept_while_it_is_mapped);
    tcase_add_loop_test(tc, renamed_file_has_what_was_committed, 0, 4);
    tcase_add_loop_test(tc, file_out_of_reach_is_not_forgotten, 0, 2);
    tcase_add_test(tc, log_of_a_file_out_of_reach_stays);
    tcase_add_loop_test(tc, backup_passes_over_a_removed_file, 0, 2);
    tcase_add_test(tc, failure_is_told_once);
    return env_main(s);
}
