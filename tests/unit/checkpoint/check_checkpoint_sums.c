/* SPDX-License-Identifier: MIT */
/*
 * check_checkpoint_sums.c -- files of page checksums that a checkpoint removes: the removal is on
 * disk before the first page is written, by one sync of the directory for all files.
 */
#include <config.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "base/sys.h"

#define SUMS_FILES 20u

static struct xac_sys real;
static struct stat dir_is;
static unsigned n_dir_syncs; /* of the environment directory                        */
static bool
    is_unsynced; /* a file of checksums has gone, and the directory was not synced */
static unsigned n_removed; /* such files                                          */
static uint64_t too_early; /* pages written while that was so                     */

static int
counted_fsync(int fd)
{
    struct stat st;
    int rc = real.fsync(fd);

    if (rc == 0 && fstat(fd, &st) == 0 && st.st_ino == dir_is.st_ino) {
        n_dir_syncs++;
        is_unsynced = false;
    }
    return rc;
}

static int
seen_renameat(int dirfd, const char *from, int dirfd2, const char *to)
{
    int rc = real.renameat(dirfd, from, dirfd2, to);

    if (rc == 0 && strncmp(from, "xac-sums.", 9) == 0) {
        is_unsynced = true;
        n_removed++;
    }
    return rc;
}

static ssize_t
seen_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    char link[64], path[300];
    ssize_t length;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    must(length > 0);
    path[length] = '\0';
    too_early += is_unsynced && strstr(path, "/data.") != NULL;
    return real.pwrite(fd, buf, n, offset);
}

/* map_files -- so many, in the directory; file[i] is where the i-th one starts. */
static void
map_files(unsigned char *file[SUMS_FILES])
{
    env_init(XAC_DURABLE);
    for (unsigned i = 0; i < SUMS_FILES; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, ENV_DIR "/data.%u", i);
        file[i] = xac_mmap(name, env_page());
        must(file[i] != MAP_FAILED);
    }
}

/* change_files -- commit a change of files [first, end), and copy it to them; ret syncs of the
   directory that the checkpoint has made. */
static unsigned
change_files(unsigned char *const *file, unsigned first, unsigned end)
{
    static unsigned value;

    value++;
    must_ok(xac_begin());
    for (unsigned i = first; i < end; i++)
        memset(file[i], (int)value, env_page());
    must_rc(xac_end(), XAC_COMMITTED);
    must(stat(ENV_DIR, &dir_is) == 0);
    n_dir_syncs = n_removed = 0;
    real = xac_sys;
    xac_sys.fsync = counted_fsync;
    xac_sys.renameat = seen_renameat;
    xac_sys.pwrite = seen_pwrite;
    must_ok(xac_checkpoint());
    xac_sys = real;
    must_eq(too_early, 0);
    must(!is_unsynced);
    return n_dir_syncs;
}

START_TEST(sync_the_directory_once)
{
    unsigned char *file[SUMS_FILES];
    unsigned of_one;

    map_files(file);
    of_one = change_files(file, 0, 1);
    must(of_one >= 1);
    must_eq(change_files(file, 0, SUMS_FILES), of_one);
    must_eq(change_files(file, 0, SUMS_FILES), of_one); /* each checkpoint anew */
    must_ok(xac_shutdown());
}
END_TEST

/* Some files have checksums, others not: each removal is on disk before the file is written. */
START_TEST(sync_each_removal_of_checksums)
{
    unsigned char *file[SUMS_FILES];

    map_files(file);
    for (unsigned i = 0; i < SUMS_FILES; i += 5) {
        must_ok(xac_set_option(XAC_OPT_PAGE_CHECKSUMS, 1));
        (void)change_files(file, i, i + 2);
        must_ok(xac_set_option(XAC_OPT_PAGE_CHECKSUMS, 0));
    }
    (void)change_files(file, 0, SUMS_FILES);
    must_eq(n_removed, SUMS_FILES / 5 * 2);
    (void)change_files(file, 0, SUMS_FILES);
    must_eq(n_removed, 0);
    must_ok(xac_shutdown());
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("checkpoint_sums");
    TCase *tc = env_tcase(s, "checkpoint_sums", 60);

    tcase_add_test(tc, sync_the_directory_once);
    tcase_add_test(tc, sync_each_removal_of_checksums);
    return env_main(s);
}
