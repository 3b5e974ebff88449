/* SPDX-License-Identifier: MIT */
/*
 * check_addresses.c -- goal: a new file costs one line of xac.addresses, whatever a crash leaves
 * of a line harms no other one, and a process reads only what is new.  Method: two lists on one
 * file, as two processes have them; every part of a line; calls that fail, and counts of calls.
 */
#include <config.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xac.h>

#include "base/err.h"
#include "base/sys.h"
#include "shared/address_list.h"

#include "tests/common/env.h"

#define FIRST XAC_CANDIDATE_FIRST
#define SLOT  XAC_CANDIDATE_SLOT
#define HEAD  "xac-addresses 1\n"
#define A     "0000200000000000 a.db\n"
#define B     "0000200400000000 sub/b.db\n"

static int dirfd;
static struct xac_sys real;
static struct xac_address_list one, two;
static uint64_t bytes_read, n_syncs;

static void
setup(void)
{
    env_setup();
    dirfd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(dirfd, 0);
    real = xac_sys;
}

static void
teardown(void)
{
    xac_sys = real;
    close(dirfd);
    xac_address_list_free(&one);
    xac_address_list_free(&two);
}

static void
put(const char *text, size_t n)
{
    int fd = open(XAC_ADDRESSES_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, n), (ssize_t)n);
    close(fd);
}

static void
holds(const char *want)
{
    char text[512];
    int fd = open(XAC_ADDRESSES_NAME, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);

    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    close(fd);
    ck_assert_uint_eq((size_t)n, strlen(want));
    ck_assert_str_eq(text, want);
}

static uint64_t
inode(void)
{
    struct stat st;

    ck_assert_int_eq(stat(XAC_ADDRESSES_NAME, &st), 0);
    return st.st_ino;
}

static int
add(struct xac_address_list *a, const char *path, uint64_t address)
{
    int rc = xac_address_list_read(a, dirfd);

    return rc == 0 ? xac_address_list_add(a, dirfd, path, address, true) : rc;
}

static uint64_t
found(struct xac_address_list *a, const char *path)
{
    const struct xac_address_line *line;

    ck_assert_int_eq(xac_address_list_read(a, dirfd), 0);
    line = xac_address_list_find(a, path);
    return line == NULL ? 0 : line->address;
}

static int
no_fdatasync(int fd)
{
    (void)fd;
    errno = EIO;
    return -1;
}

/* fill -- lines until others are appended. */
static void
fill(struct xac_address_list *a)
{
    char path[3000];
    struct stat st = {.st_size = 0};

    for (uint64_t i = 0; st.st_size < (off_t)40 << 10; i++) {
        memset(path, 'x', sizeof path - 1);
        path[sizeof path - 1] = '\0';
        (void)snprintf(path, 8, "%06u", (unsigned)i);
        path[6] = '/';
        ck_assert_int_eq(add(a, path, FIRST + (2 + i) * SLOT), 0);
        ck_assert_int_eq(stat(XAC_ADDRESSES_NAME, &st), 0);
    }
}

START_TEST(long_list_is_appended_to)
{
    uint64_t was;

    fill(&one);
    was = inode();
    ck_assert_int_eq(add(&one, "a.db", FIRST), 0);
    ck_assert_int_eq(add(&two, "sub/b.db", FIRST + SLOT), 0);
    ck_assert_uint_eq(inode(), was);
    ck_assert_uint_eq(found(&one, "a.db"), FIRST);
    ck_assert_uint_eq(found(&one, "sub/b.db"), FIRST + SLOT);
    xac_sys.fdatasync = no_fdatasync;
    ck_assert_int_eq(add(&one, "c.db", FIRST + 99 * SLOT), EIO);
    xac_sys = real;
    ck_assert_uint_eq(found(&two, "c.db"), 0);
    ck_assert_uint_eq(found(&two, "a.db"), FIRST);
    ck_assert_uint_eq(inode(), was);
}
END_TEST

START_TEST(short_list_is_replaced)
{
    uint64_t was;

    ck_assert_int_eq(add(&one, "a.db", FIRST), 0);
    was = inode();
    holds(HEAD A);
    ck_assert_int_eq(add(&two, "sub/b.db", FIRST + SLOT), 0);
    holds(HEAD A B);
    ck_assert_uint_ne(inode(), was);
    ck_assert_uint_eq(found(&one, "a.db"), FIRST);
    ck_assert_uint_eq(found(&one, "sub/b.db"), FIRST + SLOT);
    ck_assert_uint_eq(found(&one, "b.db"), 0);
}
END_TEST

static ssize_t
count_pread(int fd, void *buf, size_t n, off_t offset)
{
    ssize_t got = real.pread(fd, buf, n, offset);

    bytes_read += got > 0 ? (uint64_t)got : 0;
    return got;
}

START_TEST(only_what_is_new_is_read)
{
    char path[32];

    for (unsigned i = 0; i < 3000; i++) {
        (void)snprintf(path, sizeof path, "files/f%06u", i);
        ck_assert_int_eq(add(i % 2 == 0 ? &one : &two, path, FIRST + i), 0);
    }
    ck_assert_uint_eq(found(&two, "files/f000000"), FIRST);
    xac_sys.pread = count_pread;
    for (unsigned i = 3000; i < 3100; i++) {
        (void)snprintf(path, sizeof path, "files/f%06u", i);
        ck_assert_int_eq(add(&one, path, FIRST + i), 0);
        ck_assert_uint_eq(found(&two, path), FIRST + i);
    }
    ck_assert_uint_eq(bytes_read, 101 * strlen("0000200000000000 files/f000000\n"));
    for (unsigned i = 0; i < 3100; i++) {
        (void)snprintf(path, sizeof path, "files/f%06u", i);
        ck_assert_uint_eq(found(&two, path), FIRST + i);
    }
}
END_TEST

/* part_is_cut -- n bytes behind a whole line are no line, for readers and for those that append. */
static void
part_is_cut(const char *part, size_t n)
{
    char text[128] = HEAD A;

    memcpy(text + strlen(HEAD A), part, n);
    put(text, strlen(HEAD A) + n);
    xac_address_list_free(&one);
    xac_address_list_free(&two);
    ck_assert_uint_eq(found(&one, "a.db"), FIRST);
    ck_assert_uint_eq(one.n_lines, 1);
    ck_assert_int_eq(add(&two, "sub/b.db", FIRST + SLOT), 0);
    holds(HEAD A B);
    ck_assert_uint_eq(found(&one, "sub/b.db"), FIRST + SLOT);
}

START_TEST(part_of_a_line_is_none)
{
    static const char zeros[40] = "";
    static const char *const bad[] = {
        "\n",
        "0000200400000000 \n",
        "0000200400000000\tsub/b.db\n",
        "000020040000000g sub/b.db\n",
        "000200400000000 sub/b.db\n",
        "\n\n\n",
    };

    for (size_t n = 0; n < strlen(B); n++)
        part_is_cut(B, n);
    for (size_t n = 1; n < sizeof zeros; n++)
        part_is_cut(zeros, n);
    part_is_cut("0000200400000000 su\0\0\0\0\n", 24);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        part_is_cut(bad[i], strlen(bad[i]));
}
END_TEST

START_TEST(line_behind_none_is_damage)
{
    static const char text[] = HEAD A "0000200x00000000 c.db\n" B;

    put(text, strlen(text));
    ck_assert_int_eq(xac_address_list_read(&one, dirfd), XAC_EDAMAGED);
    ck_assert_ptr_nonnull(strstr(xLastError(), "xac.addresses: line 3"));
    ck_assert_int_eq(xac_address_list_read(&one, dirfd), XAC_EDAMAGED);
    ck_assert_int_eq(add(&two, "sub/b.db", FIRST), XAC_EDAMAGED);
    holds(text);
}
END_TEST

START_TEST(last_line_of_a_path_counts)
{
    static const char text[] = HEAD A B "0000200800000000 a.db\n";

    put(text, strlen(text));
    ck_assert_uint_eq(found(&one, "a.db"), FIRST + 2 * SLOT);
    for (unsigned i = 0; i < 200; i++) { /* also when the table has grown */
        char path[16];

        (void)snprintf(path, sizeof path, "%u", i);
        ck_assert_int_eq(add(&one, path, 4096), 0);
    }
    ck_assert_uint_eq(found(&one, "a.db"), FIRST + 2 * SLOT);
}
END_TEST

START_TEST(other_file_is_read_from_its_beginning)
{
    ck_assert_int_eq(add(&one, "a.db", FIRST), 0);
    ck_assert_int_eq(unlink(XAC_ADDRESSES_NAME), 0);
    ck_assert_uint_eq(found(&one, "a.db"), 0);
    ck_assert_int_eq(add(&one, "a.db", FIRST), 0);
    put(HEAD, strlen(HEAD)); /* the same file, shorter */
    ck_assert_uint_eq(found(&one, "a.db"), 0);
    put("", 0);
    ck_assert_uint_eq(found(&one, "a.db"), 0);
    ck_assert_int_eq(add(&one, "sub/b.db", FIRST + SLOT), 0);
    holds(HEAD B);
    put("xac-addresses 2\n", 16);
    ck_assert_int_eq(xac_address_list_read(&one, dirfd), XAC_EVERSION);
    ck_assert_int_eq(truncate(XAC_ADDRESSES_NAME, (off_t)XAC_ADDRESSES_BYTES_MAX + 1), 0);
    ck_assert_int_eq(xac_address_list_read(&one, dirfd), EFBIG);
    ck_assert_int_eq(unlink(XAC_ADDRESSES_NAME), 0);
    ck_assert_int_eq(mkfifo(XAC_ADDRESSES_NAME, 0600), 0);
    ck_assert_int_eq(xac_address_list_read(&one, dirfd), EINVAL);
}
END_TEST

static ssize_t
half_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    if (n == 1) {
        errno = ENOSPC;
        return -1;
    }
    return real.pwrite(fd, buf, n / 2, offset);
}

START_TEST(failure_leaves_the_lines_that_there_were)
{
    ck_assert_int_eq(add(&one, "a.db", FIRST), 0);
    xac_sys.pwrite = half_pwrite;
    ck_assert_int_eq(add(&one, "sub/b.db", FIRST + SLOT), ENOSPC);
    holds(HEAD A);
    xac_sys = real;
    xac_sys.fdatasync = xac_sys.fsync = no_fdatasync;
    ck_assert_int_eq(add(&one, "sub/b.db", FIRST + SLOT), EIO);
    holds(HEAD A);
    ck_assert_uint_eq(found(&one, "sub/b.db"), 0);
    xac_sys = real;
    ck_assert_int_eq(add(&one, "sub/b.db", FIRST + SLOT), 0);
    holds(HEAD A B);
}
END_TEST

static int
count_fdatasync(int fd)
{
    n_syncs++;
    return real.fdatasync(fd);
}

static void
sync_it(struct xac_address_list *a, const char *path)
{
    ck_assert_int_eq(xac_address_list_read(a, dirfd), 0);
    ck_assert_int_eq(xac_address_list_sync(a, dirfd, xac_address_list_find(a, path)), 0);
}

START_TEST(line_of_another_process_is_synced_once)
{
    fill(&one);
    xac_sys.fdatasync = count_fdatasync;
    ck_assert_int_eq(add(&one, "a.db", FIRST), 0);
    ck_assert_int_eq(add(&one, "sub/b.db", FIRST + SLOT), 0);
    ck_assert_uint_eq(n_syncs, 2);
    sync_it(&one, "a.db");
    sync_it(&one, "sub/b.db");
    ck_assert_uint_eq(n_syncs, 2);
    sync_it(&two, "sub/b.db");
    sync_it(&two, "a.db");
    ck_assert_uint_eq(n_syncs, 3);
    ck_assert_int_eq(add(&one, "c.db", FIRST + 99 * SLOT), 0);
    sync_it(&two, "a.db");
    ck_assert_uint_eq(n_syncs, 4);
    sync_it(&two, "c.db");
    ck_assert_uint_eq(n_syncs, 5);
}
END_TEST

START_TEST(addresses_belong_to_files)
{
    int fd = open("big.db", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(xac_address_list_read(&one, dirfd), 0);
    ck_assert(!xac_address_list_has(&one, dirfd, FIRST, FIRST + SLOT));
    ck_assert_int_eq(add(&one, "none.db", FIRST + SLOT), 0);
    ck_assert_int_eq(add(&one, "big.db", FIRST + 8 * SLOT), 0);
    ck_assert_int_eq(add(&one, "low.db", 4096), 0);
    ck_assert_int_eq(add(&one, "high.db", XAC_CANDIDATE_END), 0);
    ck_assert(!xac_address_list_has(&one, dirfd, FIRST, FIRST + SLOT));
    ck_assert(xac_address_list_has(&one, dirfd, FIRST, FIRST + SLOT + 1));
    ck_assert(xac_address_list_has(&one, dirfd, FIRST + SLOT, FIRST + SLOT + 4096));
    ck_assert(!xac_address_list_has(&one, dirfd, FIRST + 2 * SLOT, FIRST + 8 * SLOT));
    ck_assert(!xac_address_list_has(&one, dirfd, FIRST + 9 * SLOT, FIRST + 10 * SLOT));
    ck_assert_int_eq(ftruncate(fd, (off_t)SLOT + 4096), 0);
    ck_assert(xac_address_list_has(&one, dirfd, FIRST + 9 * SLOT, FIRST + 10 * SLOT));
    ck_assert(!xac_address_list_has(&one, dirfd, FIRST + 10 * SLOT, FIRST + 11 * SLOT));
    close(fd);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("addresses");
    TCase *tc = env_tcase_with(suite, "addresses", 60, setup);

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, short_list_is_replaced);
    tcase_add_test(tc, long_list_is_appended_to);
    tcase_add_test(tc, only_what_is_new_is_read);
    tcase_add_test(tc, part_of_a_line_is_none);
    tcase_add_test(tc, line_behind_none_is_damage);
    tcase_add_test(tc, last_line_of_a_path_counts);
    tcase_add_test(tc, other_file_is_read_from_its_beginning);
    tcase_add_test(tc, failure_leaves_the_lines_that_there_were);
    tcase_add_test(tc, line_of_another_process_is_synced_once);
    tcase_add_test(tc, addresses_belong_to_files);
    return env_main(suite);
}
