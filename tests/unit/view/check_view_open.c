/* SPDX-License-Identifier: MIT */
/*
 * check_view_open.c -- what is on disk before a durable transaction can refer to a mapped file.
 *
 * GOAL    A durable environment syncs the bytes of a file and its name before it uses the file,
 *         even if another program has made it and has not synced it.  It does so once.
 * METHOD  The file lies in a directory of its own.  The test counts the syncs of the file and of that
 *         directory while the file is mapped.
 */
#include <config.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "tests/common/env.h"

#define FILE_NAME "files/data"

static struct xac_sys real;
static unsigned n_file_syncs, n_name_syncs;

static int
counted_fsync(int fd)
{
    struct stat st, file_is, dir_is;
    int rc = real.fsync(fd);

    must(fstat(fd, &st) == 0 && stat("files", &dir_is) == 0);
    n_name_syncs += rc == 0 && st.st_ino == dir_is.st_ino;
    n_file_syncs +=
        rc == 0 && stat(FILE_NAME, &file_is) == 0 && st.st_ino == file_is.st_ino;
    return rc;
}

/* map_counting -- map so many pages of the file; the syncs are counted anew. */
static void
map_counting(size_t n_pages)
{
    n_file_syncs = n_name_syncs = 0;
    real = xac_sys;
    xac_sys.fsync = counted_fsync;
    must(xac_mmap(FILE_NAME, n_pages * env_page()) != MAP_FAILED);
    xac_sys = real;
}

/* make_file -- as another program would, without a sync. */
static void
make_file(size_t n_pages)
{
    int fd = open(FILE_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    must(fd >= 0);
    must(ftruncate(fd, (off_t)(n_pages * env_page())) == 0);
    must(close(fd) == 0);
}

static void
start(int durability)
{
    must(mkdir("files", 0777) == 0);
    env_init(durability);
}

START_TEST(a_new_file_is_on_disk)
{
    start(XAC_DURABLE);
    map_counting(2);
    must_eq(n_file_syncs, 1);
    must_eq(n_name_syncs, 1);
    must_ok(xac_shutdown());
}
END_TEST

/* Too short, long enough: its maker may not have synced it, nor the directory. */
START_TEST(a_file_of_another_program_is_on_disk)
{
    start(XAC_DURABLE);
    make_file((size_t)_i);
    map_counting(2);
    must_eq(n_file_syncs, 1);
    must_eq(n_name_syncs, 1);
    must_ok(xac_shutdown());
}
END_TEST

START_TEST(what_is_on_disk_is_not_synced_again)
{
    start(XAC_DURABLE);
    map_counting(2);
    must_ok(xac_munmap(FILE_NAME));
    map_counting(2);
    must_eq(n_file_syncs, 0);
    must_eq(n_name_syncs, 0);
    must_ok(xac_munmap(FILE_NAME));
    map_counting(3); /* longer */
    must_eq(n_file_syncs, 1);
    must_eq(n_name_syncs, 0);
    must_ok(xac_shutdown());
}
END_TEST

START_TEST(nothing_is_synced_if_nothing_is_durable)
{
    start(XAC_NONDURABLE);
    make_file(1);
    map_counting(2);
    must_eq(n_file_syncs, 0);
    must_eq(n_name_syncs, 0);
    must_ok(xac_shutdown());
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("view_open");
    TCase *tc = env_tcase(s, "view_open", 60);

    tcase_add_test(tc, a_new_file_is_on_disk);
    tcase_add_loop_test(tc, a_file_of_another_program_is_on_disk, 0, 4);
    tcase_add_test(tc, what_is_on_disk_is_not_synced_again);
    tcase_add_test(tc, nothing_is_synced_if_nothing_is_durable);
    return env_main(s);
}
