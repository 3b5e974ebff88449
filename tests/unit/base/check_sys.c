/* SPDX-License-Identifier: MIT */
/*
 * check_sys.c -- reading and writing all bytes over system calls that return early,
 * are interrupted, make no progress, or fail.
 */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "base/sys.h"

#define FILE_BYTES 10000u

/* What the next calls return: bytes, -errno, or WHOLE; repeated from the start. */
#define WHOLE 1000000
static const int *answers;
static size_t n_answers, n_calls;
static struct xac_sys real;

static ssize_t
answer(ssize_t (*call)(int fd, void *buf, size_t n, off_t offset), int fd, void *buf,
       size_t n, off_t offset)
{
    int a = answers[n_calls++ % n_answers];

    if (a < 0) {
        errno = -a;
        return -1;
    }
    return call(fd, buf, (size_t)a < n ? (size_t)a : n, offset);
}

static ssize_t
odd_pread(int fd, void *buf, size_t n, off_t offset)
{
    return answer(real.pread, fd, buf, n, offset);
}

static ssize_t
real_write(int fd, void *buf, size_t n, off_t offset)
{
    return n == 0 ? 0 : real.pwrite(fd, buf, n, offset);
}

static ssize_t
odd_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    return answer(real_write, fd, (void *)(uintptr_t)buf, n, offset);
}

static void
use(const int *a, size_t n)
{
    answers = a;
    n_answers = n;
    n_calls = 0;
    xac_sys.pread = odd_pread;
    xac_sys.pwrite = odd_pwrite;
}

#define USE(...)                           \
 do {                                      \
  static const int list[] = {__VA_ARGS__}; \
  use(list, sizeof list / sizeof list[0]); \
 } while (0)

static unsigned char bytes[FILE_BYTES], got_bytes[FILE_BYTES + 500];
static int fd;

static void
make_file(void)
{
    real = xac_sys;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    fd = open("f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    must(fd >= 0);
}

static void
must_write_and_read(void)
{
    size_t got = 0;

    must_eq(xac_write_full(fd, bytes, sizeof bytes, 3), 0);
    n_calls = 0;
    memset(got_bytes, 0xee, sizeof got_bytes);
    must_eq(xac_read_full(fd, got_bytes, sizeof got_bytes, 3, &got), 0);
    must_eq(got, FILE_BYTES);
    must(memcmp(got_bytes, bytes, FILE_BYTES) == 0);
    for (size_t i = FILE_BYTES; i < sizeof got_bytes; i++)
        must_eq(got_bytes[i], 0);
}

START_TEST(go_on_after_short_and_interrupted_calls)
{
    USE(WHOLE);
    must_write_and_read();
    USE(1, 100, 4095, 17);
    must_write_and_read();
    USE(-EINTR, 512);
    must_write_and_read();
    USE(-EINTR, -EINTR, -EINTR, 1, -EINTR, 999);
    must_write_and_read();
}
END_TEST

START_TEST(report_failures)
{
    size_t got;

    USE(100, -EIO);
    must_eq(xac_write_full(fd, bytes, sizeof bytes, 0), EIO);
    USE(100, -ENOSPC);
    must_eq(xac_write_full(fd, bytes, sizeof bytes, 0), ENOSPC);
    USE(-EINTR, 0);
    must_eq(xac_write_full(fd, bytes, sizeof bytes, 0), EIO); /* no progress */
    USE(WHOLE);
    must_eq(xac_write_full(fd, bytes, sizeof bytes, 0), 0);
    USE(100, -EIO);
    must_eq(xac_read_full(fd, got_bytes, sizeof bytes, 0, &got), EIO);
    must_eq(xac_read_full(-1, got_bytes, 0, 0, &got), 0);
    must_eq(got, 0);
    must_eq(xac_write_full(-1, bytes, 0, 0), 0);
}
END_TEST

START_TEST(zero_what_lies_behind_the_end)
{
    size_t got = 99;

    USE(WHOLE);
    memset(got_bytes, 0xee, sizeof got_bytes);
    must_eq(xac_read_full(fd, got_bytes, 100, 50, &got), 0);
    must_eq(got, 0);
    for (size_t i = 0; i < 100; i++)
        must_eq(got_bytes[i], 0);
    must_eq(got_bytes[100], 0xee);
}
END_TEST

static int
refuse_direct(int dirfd, const char *path, int flags, mode_t mode)
{
    if ((flags & O_DIRECT) != 0) {
        errno = EINVAL;
        return -1;
    }
    return real.openat(dirfd, path, flags, mode);
}

static int
refuse_all(int dirfd, const char *path, int flags, mode_t mode)
{
    (void)dirfd;
    (void)path;
    (void)flags;
    (void)mode;
    errno = EMFILE;
    return -1;
}

START_TEST(open_uncached_or_else_plain)
{
    bool direct = true;
    int other;

    xac_sys.openat = refuse_direct;
    other = xac_open_read_uncached(AT_FDCWD, "f", &direct);
    must(other >= 0 && !direct);
    must(close(other) == 0);
    xac_sys.openat = refuse_all;
    other = xac_open_read_uncached(AT_FDCWD, "f", &direct);
    must_eq(errno, EMFILE);
    must(other < 0 && !direct);
    xac_sys.openat = real.openat;
    must(xac_open_read_uncached(AT_FDCWD, "none", &direct) < 0);
    must_eq(errno, ENOENT);
    must_eq(xac_sync_dir(-1), EBADF);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("sys");
    TCase *tc = env_tcase(s, "sys", 20);

    tcase_add_checked_fixture(tc, make_file, NULL);
    tcase_add_test(tc, go_on_after_short_and_interrupted_calls);
    tcase_add_test(tc, report_failures);
    tcase_add_test(tc, zero_what_lies_behind_the_end);
    tcase_add_test(tc, open_uncached_or_else_plain);
    return env_main(s);
}
