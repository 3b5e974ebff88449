/* SPDX-License-Identifier: MIT */
/*
 * check_read_ahead.c -- XAC_OPT_READ_AHEAD_BYTES: what is read of a file that is not in the
 * page cache.
 *
 * GOAL    A page that is touched at random is read alone, wherever the device is told to read
 *         ahead to; of a sequence as much is read ahead as the option says.
 * METHOD  Bytes that the process has had read from the device (/proc/self/io), not time.  The
 *         file is written, synced and dropped from the page cache before it is mapped.  Where
 *         there is no device below the file system (TMPDIR in memory) that says so, and only
 *         the advice that the kernel has been given is looked at.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "env.h"

#define N_PAGES ((size_t)8192)
#define AHEAD   ((size_t)256) /* pages, the option                                       */
#define TOUCHED ((size_t)1024)
#define SLACK   ((size_t)16) /* pages' worth of what the file system reads of its own   */

/* read_bytes -- from the device, for this process. */
static uint64_t
read_bytes(void)
{
    FILE *f = fopen("/proc/self/io", "re");
    char line[100];
    uint64_t n = 0;

    must(f != NULL);
    while (fgets(line, sizeof line, f) != NULL)
        (void)sscanf(line, "read_bytes: %" SCNu64, &n);
    must(fclose(f) == 0);
    return n;
}

/* make_cold -- a file of which nothing is in the page cache; ret false: there is no device. */
static bool
make_cold(void)
{
    int fd = open(ENV_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    unsigned char *page = (unsigned char *)malloc(env_page());
    uint64_t before;

    must(fd >= 0 && page != NULL);
    for (size_t p = 0; p < N_PAGES; p++) {
        memset(page, (int)(p % 251 + 1), env_page());
        must_eq(pwrite(fd, page, env_page(), (off_t)(p * env_page())), env_page());
    }
    must_eq(fsync(fd), 0);
    must_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
    must_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    before = read_bytes();
    must_eq(pread(fd, page, env_page(), 0), env_page());
    must_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    free(page);
    must_eq(close(fd), 0);
    if (read_bytes() > before)
        return true;
    printf("no device below this directory: nothing is counted\n");
    return false;
}

/* ask_for -- the option, and the engine that heeds it. */
static void
ask_for(uint64_t bytes)
{
    env_without_frames("they are read past the page cache");
    must_eq(setenv("XAC_ENGINE", "uffd", 1), 0);
    must_ok(xSetOption(XAC_OPT_READ_AHEAD_BYTES, bytes));
}

/* attach -- with the option; NULL: this system has not got the engine. */
static unsigned char *
attach(uint64_t bytes)
{
    unsigned char *x;

    ask_for(bytes);
    x = (unsigned char *)env_attach(NONDURABLE, N_PAGES);
    if (env_stats().engine_error == 0)
        return x;
    printf("no userfaultfd: nothing to test\n");
    env_detach();
    return NULL;
}

static void
must_lie(size_t low, uint64_t pages, size_t high)
{
    if (pages < low || pages > high)
        env_fail(__FILE__, __LINE__, "%" PRIu64 " pages read, not %zu to %zu", pages, low,
                 high);
}

static uint64_t
pages_read_since(uint64_t before)
{
    return (read_bytes() - before) / env_page();
}

/* touch -- a page, by a load or a store; the file's bytes must be there. */
static void
touch(unsigned char *x, size_t page, bool is_store)
{
    volatile unsigned char *at = x + page * env_page();

    must_eq(at[1], page % 251 + 1);
    if (is_store)
        at[0] = 0;
}

/* ---- At random ---------------------------------------------------------------------------- */

/* touch_scattered -- n pages, none beside another, in no order; ret how many were read. */
static uint64_t
touch_scattered(unsigned char *x, size_t first, size_t n, bool is_store)
{
    uint64_t before = read_bytes();

    must_ok(xbegin());
    for (size_t i = 0; i < n; i++)
        touch(x, first + i * 1237 % n * 4, is_store);
    must_rc(xend(), COMMITTED);
    return pages_read_since(before);
}

/* _i: loads, stores; the option allows sequences, or nothing. */
START_TEST(scattered_pages_are_read_alone)
{
    size_t n = N_PAGES / 8;
    bool is_counted = make_cold();
    unsigned char *x = attach(_i / 2 == 0 ? AHEAD * env_page() : 0);
    uint64_t read;

    if (x == NULL)
        return;
    read = touch_scattered(x, 1, n, _i % 2 != 0);
    if (is_counted)
        must_lie(n, read, n + SLACK);
    /* A mapping of another length is advised, too. */
    must(xMremap(x, N_PAGES / 2 * env_page(), 0) == x);
    must(xMremap(x, N_PAGES * env_page(), 0) == x);
    read = touch_scattered(x, N_PAGES / 2 + 1, n, _i % 2 != 0);
    if (is_counted)
        must_lie(n, read, n + SLACK);
    env_detach();
}
END_TEST

/* ---- In order ----------------------------------------------------------------------------- */

enum way {
    QUERY,
    LOADS,
    STORES,
    COMPANY, /* loads, beside another process */
    N_WAYS
};

static void
touch_in_order(unsigned char *x, enum way way)
{
    must_ok(way == QUERY ? xbeginQuery() : xbegin());
    for (size_t p = 0; p < TOUCHED; p++)
        touch(x, p, way == STORES);
}

START_TEST(sequences_are_read_ahead)
{
    bool is_counted = make_cold();
    pid_t other = 0;
    unsigned char *x;
    uint64_t before;

    if (_i == COMPANY) {
        ask_for(AHEAD * env_page());
        other = env_companion(NONDURABLE, N_PAGES);
    }
    x = attach(AHEAD * env_page());
    before = read_bytes();
    if (x != NULL) {
        touch_in_order(x, (enum way)_i);
        /* More than half of what was asked for last is left to be touched. */
        if (is_counted)
            must_lie(TOUCHED + AHEAD / 2 - SLACK, pages_read_since(before),
                     TOUCHED + 2 * AHEAD + SLACK);
        must_ok(_i == QUERY ? xendQuery() : xend());
        env_detach();
    }
    if (other != 0)
        proc_kill(other);
}
END_TEST

START_TEST(nothing_is_read_ahead_if_that_is_asked)
{
    bool is_counted = make_cold();
    unsigned char *x = attach(0);
    uint64_t before = read_bytes();

    if (x == NULL)
        return;
    touch_in_order(x, LOADS);
    if (is_counted) /* the handler shows some pages together, and reads them */
        must_lie(TOUCHED, pages_read_since(before), TOUCHED + 16 + SLACK);
    must_rc(xend(), COMMITTED);
    env_detach();
}
END_TEST

/* What is announced is read, all of it and nothing else. */
START_TEST(announced_pages_are_read)
{
    bool is_counted = make_cold();
    unsigned char *x = attach(_i == 0 ? AHEAD * env_page() : 0);
    uint64_t before = read_bytes();

    if (x == NULL)
        return;
    must_ok(xbegin());
    must_ok(setRangeAccess(x + env_page(), TOUCHED * env_page(), READ));
    if (is_counted)
        must_lie(TOUCHED, pages_read_since(before), TOUCHED + SLACK);
    must_rc(xend(), COMMITTED);
    env_detach();
}
END_TEST

/* ---- What the kernel is told --------------------------------------------------------------- */

/* is_advised -- has the shared mapping of the file the advice MADV_RANDOM? */
static bool
is_advised(void)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[1024];
    bool is_it = false, is_so = false, is_found = false;

    must(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) {
        if (strchr(line, '-') != NULL && strstr(line, "r--s") != NULL)
            is_it = strstr(line, "/" ENV_FILE "\n") != NULL;
        else if (is_it && strncmp(line, "VmFlags:", 8) == 0) {
            is_found = true;
            is_so = strstr(line, " rr ") != NULL;
            is_it = false;
        }
    }
    must(fclose(f) == 0);
    must(is_found);
    return is_so;
}

START_TEST(the_kernel_is_told_if_that_is_asked)
{
    env_without_frames("files are not mapped");
    must_eq(unsetenv("XAC_READ_AHEAD"), 0);
    (void)env_attach(NONDURABLE, 16);
    must(!is_advised());
    must_refuse(xSetOption(XAC_OPT_READ_AHEAD_BYTES, 0), EBUSY);
    env_detach();
    must_eq(setenv("XAC_READ_AHEAD", "131072", 1), 0);
    (void)env_attach(NONDURABLE, 16);
    must(is_advised());
    env_detach();
    must_ok(xSetOption(XAC_OPT_READ_AHEAD_BYTES, XAC_READ_AHEAD_SYSTEM));
    (void)env_attach(NONDURABLE, 16); /* what the program says, counts */
    must(!is_advised());
    env_detach();
}
END_TEST

START_TEST(wrong_values_are_refused)
{
    static const char *const values[] = {"12k", "-1", "1073741825", "x"};

    must_refuse(xSetOption(XAC_OPT_READ_AHEAD_BYTES, (1 << 30) + 1), EINVAL);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        must_eq(setenv("XAC_READ_AHEAD", values[i], 1), 0);
        must_refuse(xInit(ENV_DIR, NONDURABLE), EINVAL);
        must(strstr(xLastError(), "XAC_READ_AHEAD") != NULL);
    }
    must_eq(setenv("XAC_READ_AHEAD", "1073741824", 1), 0);
    env_init(NONDURABLE);
    env_detach();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("read-ahead");
    TCase *tc = env_tcase(s, "read", 60);

    tcase_add_loop_test(tc, scattered_pages_are_read_alone, 0, 4);
    tcase_add_loop_test(tc, sequences_are_read_ahead, 0, N_WAYS);
    tcase_add_test(tc, nothing_is_read_ahead_if_that_is_asked);
    tcase_add_loop_test(tc, announced_pages_are_read, 0, 2);
    tc = env_tcase(s, "told", 60);
    tcase_add_test(tc, the_kernel_is_told_if_that_is_asked);
    tcase_add_test(tc, wrong_values_are_refused);
    return s;
}

int
main(void)
{
    return env_main(suite());
}
