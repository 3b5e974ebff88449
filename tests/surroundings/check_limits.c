/* SPDX-License-Identifier: MIT */
/*
 * check_limits.c -- one process's limits and rights are its own.
 *
 * GOAL    A participant that cannot write the log (RLIMIT_FSIZE, a segment that it may not
 *         open) is told so and harms nobody: others go on and make its commits durable, and so
 *         does it once the cause is gone.  Nothing acknowledged is lost, nobody is killed by
 *         SIGXFSZ.
 * METHOD  setrlimit(2); modes of the segments, seen by an account that has no privileges.
 */
#include <config.h>

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"

#define PAGES 4

/* limit_files -- no byte at or behind `bytes` of any file can be written. */
static void
limit_files(rlim_t bytes)
{
    struct rlimit limit;

    must(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes;
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* put -- one transaction; ret what xend() says. */
static int
put(uint64_t *cell, uint64_t value)
{
    must_ok(xbegin());
    *cell = value;
    return xend();
}

/* Commits after which the version store need not grow for a few more. */
#define GROWN 64

struct board {
    _Atomic uint64_t turn;
};

static void
limited(void *arg)
{
    struct board *b = arg;
    uint64_t *base = env_attach(DURABLE, PAGES);

    env_put(base, 1);
    word_store(&b->turn, 1);
    proc_await(&b->turn, 2, 30);
    limit_files(0);
    must_rc(put(base, 2), XAC_ENOTDURABLE);
    must(strstr(xLastError(), "File too large") != NULL);
    must_rc(xSync(), XAC_ENOTDURABLE);
    must(xCheckpoint() != 0);
    word_store(&b->turn, 3);
    proc_await(&b->turn, 4, 30); /* the other one has committed, and so flushed */
    must_ok(xSync());
    must_rc(put(base, 5), XAC_ENOTDURABLE);
    word_store(&b->turn, 5);
    limit_files(RLIM_INFINITY);
    must_ok(xSync());
    must_rc(put(base, 6), XAC_COMMITTED);
    must_ok(xCheckpoint());
    env_detach();
}

/* Beside another one that does nothing meanwhile, and then flushes for both. */
START_TEST(limit_of_file_size_harms_nobody)
{
    struct board *b = proc_shared(sizeof *b);
    pid_t pid = proc_spawn(limited, b);
    uint64_t *base;

    proc_await(&b->turn, 1, 30);
    base = env_attach(DURABLE, PAGES);
    word_store(&b->turn, 2);
    proc_await(&b->turn, 3, 30);
    must_eq(env_get(base), 2); /* a query, too, has it on disk before it says so */
    env_put(base + 1, 4);
    word_store(&b->turn, 4);
    proc_await(&b->turn, 5, 30);
    proc_join(pid);
    must_eq(env_get(base), 6);
    must_eq(env_get(base + 1), 4);
    must_ok(xCheckpoint());
    env_detach();
}
END_TEST

static void
flush_for_all(void *arg)
{
    struct board *b = arg;
    uint64_t *base = env_attach(DURABLE, PAGES);

    word_store(&b->turn, 1);
    for (uint64_t n = 1; word_load(&b->turn) < 2; n++) {
        env_put(env_cell(base, 1), n);
        proc_sleep_us(1000);
    }
    env_detach();
}

/* thrice -- change a value, store the same again, and read it; ret as put(). */
static int
thrice(uint64_t *cell, uint64_t value)
{
    int rc = put(cell, value);

    if (rc == XAC_COMMITTED)
        rc = put(cell, value);
    if (rc != XAC_COMMITTED)
        return rc;
    must_ok(xbeginQuery());
    rc = *cell == value ? XAC_COMMITTED : -1;
    must_ok(xendQuery());
    return rc;
}

/*
 * Beside one that commits, every commit is acknowledged: the other one writes it.  So is what has only
 * read, or stored what was there.  The version store has grown before.
 */
START_TEST(others_write_for_one_that_cannot)
{
    struct board *b = proc_shared(sizeof *b);
    uint64_t *base = env_attach(DURABLE, PAGES);
    int rc = XAC_COMMITTED;
    pid_t pid;

    env_put(base, 1);
    env_detach();
    pid = proc_spawn(flush_for_all, b);
    proc_await(&b->turn, 1, 30);
    base = env_attach(DURABLE, PAGES);
    for (uint64_t n = 1; n <= GROWN; n++)
        env_put(base, n);
    limit_files(0);
    for (uint64_t n = GROWN + 1; n <= GROWN + 50 && rc == XAC_COMMITTED; n++)
        rc = thrice(base, n);
    limit_files(RLIM_INFINITY); /* before anything is reported, to a file */
    word_store(&b->turn, 2);
    must_rc(rc, XAC_COMMITTED);
    proc_join(pid);
    must_eq(env_get(base), GROWN + 50);
    env_detach();
}
END_TEST

static void
alone(void *arg)
{
    uint64_t *base = env_attach(DURABLE, PAGES);

    (void)arg;
    for (uint64_t n = 1; n <= 10; n++)
        env_put(base, n);
    limit_files(0);
    for (uint64_t n = 11; n <= 20; n++)
        must_rc(put(base, n), XAC_ENOTDURABLE);
    _exit(0); /* as if killed: what was acknowledged is 10 */
}

START_TEST(alone_nothing_acknowledged_is_lost)
{
    uint64_t *base;

    proc_run(alone, NULL);
    base = env_attach(DURABLE, PAGES);
    must(env_get(base) >= 10 && env_get(base) <= 20);
    env_detach();
}
END_TEST

static void
without_rights(void *arg)
{
    struct board *b = arg;
    uint64_t *base;

    proc_await(&b->turn, 10, 30);
    base = env_attach(DURABLE, PAGES);
    env_put(base + 1, 1);
    word_store(&b->turn, 11);
    proc_await(&b->turn, 12, 30);
    must_rc(put(base + 1, 2), XAC_ENOTDURABLE);
    must(strstr(xLastError(), "Permission denied") != NULL);
    word_store(&b->turn, 13);
    proc_await(&b->turn, 14, 30);
    must_rc(put(base + 1, 3), XAC_COMMITTED);
}

static void
as_nobody(void *arg)
{
    must(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
    without_rights(arg);
}

/* modes -- of all segments. */
static void
modes(mode_t mode)
{
    char name[64];

    for (int i = 1; i < 100; i++) {
        (void)snprintf(name, sizeof name, ENV_DIR "/xac-log.%08d", i);
        if (file_exists(name))
            must(chmod(name, mode) == 0);
    }
}

/* A segment that one participant may not open poisons nothing: others write it. */
START_TEST(segment_of_another_account_poisons_nothing)
{
    struct board *b = proc_shared(sizeof *b);
    uint64_t *base;
    pid_t pid;

    if (geteuid() != 0) {
        printf("skipped: only root may become another user\n");
        return;
    }
    must(chmod(".", 0777) == 0 && mkdir(ENV_DIR, 0777) == 0 && chmod(ENV_DIR, 0777) == 0);
    must_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    pid = proc_spawn(as_nobody, b);
    base = env_attach(DURABLE, PAGES);
    must(chmod(ENV_FILE, 0666) == 0);
    word_store(&b->turn, 10);
    proc_await(&b->turn, 11, 30);
    for (uint64_t n = 1; n < 500; n++) { /* on to segments that it has not open */
        for (uint64_t p = 0; p < PAGES; p++)
            env_put(env_cell(base, p) + 8, n);
    }
    modes(0600);
    word_store(&b->turn, 12);
    proc_await(&b->turn, 13, 30);
    env_put(base, 7);
    modes(0666);
    word_store(&b->turn, 14);
    proc_join(pid);
    must_eq(env_get(base + 1), 3);
    must_ok(xCheckpoint());
    env_detach();
}
END_TEST

static Suite *
limits_suite(void)
{
    Suite *s = suite_create("limits");
    TCase *tc = env_tcase(s, "limits", 60);

    tcase_add_test(tc, limit_of_file_size_harms_nobody);
    tcase_add_test(tc, others_write_for_one_that_cannot);
    tcase_add_test(tc, alone_nothing_acknowledged_is_lost);
    tcase_add_test(tc, segment_of_another_account_poisons_nothing);
    return s;
}

int
main(void)
{
    return env_main(limits_suite());
}
