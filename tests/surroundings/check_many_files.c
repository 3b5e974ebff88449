/* SPDX-License-Identifier: MIT */
/*
 * check_many_files.c -- more files than descriptors, and than one log block can name.
 *
 * GOAL    files that are mapped in turn cost no descriptors once they are unmapped, and are
 *         left by checkpoints; hundreds that are mapped at a time fit the smallest log buffer;
 *         checkpoint, crash and recovery bring back every one.
 * METHOD  XAC_FILES=n files in turn (1,000 by default) with a limit of 256 descriptors.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/env.h"

#define AT_A_TIME 400u

static char name_[64];

static const char *
name_of(uint64_t n)
{
    (void)snprintf(name_, sizeof name_, "files/%03u/f%06u", (unsigned)(n / 1000),
                   (unsigned)n);
    return name_;
}

static void
limit_descriptors(rlim_t n)
{
    struct rlimit limit = {.rlim_cur = n, .rlim_max = n};

    must(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void
make_dirs(uint64_t n)
{
    char dir[64];

    must(mkdir("files", 0700) == 0);
    for (uint64_t i = 0; i <= n / 1000; i++) {
        (void)snprintf(dir, sizeof dir, "files/%03u", (unsigned)i);
        must(mkdir(dir, 0700) == 0);
    }
}

/* put_in_turn -- map, write and unmap so many files, and crash. */
static void
put_in_turn(void *arg)
{
    uint64_t n = *(const uint64_t *)arg;
    double start = env_now();
    int fd;

    limit_descriptors(256);
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, 1));
    env_init(DURABLE);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t *x = xMmap(name_of(i), env_page());

        if (x == MAP_FAILED)
            env_fail(__FILE__, __LINE__, "file %u: %s", (unsigned)i, xLastError());
        env_put(x, i + 1);
        must_ok(xMunmap(name_of(i)));
        if (i == n / 2)
            must_ok(xCheckpoint());
    }
    /* The program's own descriptors are to be had. */
    for (int i = 0; i < 150; i++) {
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        must(fd >= 0);
    }
    printf("%u files in turn: %.1f s; known at the end: %u\n", (unsigned)n,
           env_now() - start, (unsigned)env_stats().files);
    must(env_stats().files <= n - n / 2);
    must_eq(env_stats().checkpoint_failures, 0);
    (void)fflush(stdout);
}

START_TEST(files_in_turn)
{
    uint64_t n = env_number("XAC_FILES", 1000);
    double start;

    make_dirs(n);
    proc_run(put_in_turn, &n);
    start = env_now();
    must_ok(xRecover(ENV_DIR));
    printf("recovery: %.1f s\n", env_now() - start);
    for (uint64_t i = 0; i < n; i++)
        must_eq(file_u64(name_of(i), 0), i + 1);
}
END_TEST

/* leave_all -- once everything is home, nothing is known any more. */
START_TEST(unmapped_files_are_left)
{
    make_dirs(300);
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    env_init(_i == 0 ? DURABLE : NONDURABLE);
    for (uint64_t i = 0; i < 300; i++) {
        uint64_t *x = xMmap(name_of(i), env_page());

        must(x != MAP_FAILED);
        env_put(x, i + 1);
        must_ok(xMunmap(name_of(i)));
    }
    must_eq(env_stats().files, 300);
    must_ok(xCheckpoint());
    must_eq(env_stats().files, 0);
    for (uint64_t i = 0; i < 300; i += 7) { /* and known again when they are mapped */
        uint64_t *x = xMmap(name_of(i), env_page());

        must(x != MAP_FAILED);
        must_eq(env_get(x), i + 1);
        env_put(x, i + 2);
        must_ok(xMunmap(name_of(i)));
    }
    must_ok(xCheckpoint());
    must_eq(env_stats().files, 0);
    must_ok(xShutdown());
    for (uint64_t i = 0; i < 300; i++)
        must_eq(file_u64(name_of(i), 0), i % 7 == 0 ? i + 2 : i + 1);
}
END_TEST

static void
put_at_a_time(void *arg)
{
    static uint64_t *x[AT_A_TIME];
    const int *crashes = arg;

    must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 64 << 10));
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 64 << 10));
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 1 << 20));
    env_init(DURABLE);
    for (uint64_t i = 0; i < AT_A_TIME; i++) {
        x[i] = xMmap(name_of(i), env_page());
        if (x[i] == MAP_FAILED)
            env_fail(__FILE__, __LINE__, "file %u: %s", (unsigned)i, xLastError());
    }
    for (uint64_t round = 1; round <= 3; round++) {
        for (uint64_t i = 0; i < AT_A_TIME; i++)
            env_put(x[i], i + round);
        must_ok(xCheckpoint());
    }
    for (uint64_t i = 0; i < AT_A_TIME; i += 3)
        env_put(x[i], i + 4);
    must_eq(env_stats().checkpoint_failures, 0);
    if (*crashes == 0)
        must_ok(xShutdown());
}

START_TEST(files_at_a_time_with_a_small_log_buffer)
{
    int crashes = _i;

    make_dirs(AT_A_TIME);
    proc_run(put_at_a_time, &crashes);
    must_ok(xRecover(ENV_DIR));
    for (uint64_t i = 0; i < AT_A_TIME; i++)
        must_eq(file_u64(name_of(i), 0), i % 3 == 0 ? i + 4 : i + 3);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("many_files");
    TCase *tc = env_tcase(s, "many_files", 600);

    tcase_add_test(tc, files_in_turn);
    tcase_add_loop_test(tc, unmapped_files_are_left, 0, 2);
    tcase_add_loop_test(tc, files_at_a_time_with_a_small_log_buffer, 0, 2);
    return env_main(s);
}
