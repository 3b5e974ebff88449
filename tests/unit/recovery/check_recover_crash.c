/* SPDX-License-Identifier: MIT */
/*
 * check_recover_crash.c -- recoveries that are killed, lose power, or meet calls that fail,
 * at every write and sync; run again, they come to the same result.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/recover_env.h"
#include "base/names.h"
#include "base/sys.h"
#include "recovery/recover_redo.h"

/* ---- Killed recoveries ------------------------------------------------------------ */

/*
 * A disk that forgets: what was written and not synced is garbage after the kill, and a
 * write that the kill meets is done by half.
 */
struct unsynced {
    int fd;
    ino_t inode;
    off_t offset;
    size_t n;
};

static struct xac_sys real;
static struct unsynced unsynced[20000];
static size_t n_unsynced;
static long calls_left; /* until the kill, or the failure */
static bool power_cut;  /* at the kill */
static int fail_with;   /* 0: kill */

static void
lose_unsynced(void)
{
    for (size_t i = 0; i < n_unsynced; i++) {
        uint8_t *junk = (uint8_t *)malloc(unsynced[i].n);
        ssize_t w;

        memset(junk, 0xa5, unsynced[i].n);
        w = pwrite(unsynced[i].fd, junk, unsynced[i].n, unsynced[i].offset);
        (void)w;
        free(junk);
    }
}

/* strike -- true if this is the call that is not to succeed. */
static bool
strike(void)
{
    if (--calls_left != 0)
        return false;
    if (fail_with != 0)
        return true;
    if (power_cut)
        lose_unsynced();
    _exit(42);
}

static ssize_t
hook_pwrite(int fd, const void *p, size_t n, off_t offset)
{
    struct stat st;

    if (calls_left == 1 && fail_with == 0)
        (void)real.pwrite(fd, p, n / 2, offset);
    if (fstat(fd, &st) == 0 && n_unsynced < 20000)
        unsynced[n_unsynced++] = (struct unsynced){dup(fd), st.st_ino, offset, n};
    if (strike()) {
        errno = fail_with;
        return -1;
    }
    return real.pwrite(fd, p, n, offset);
}

static int
hook_sync(int fd)
{
    struct stat st;
    size_t kept = 0;

    if (strike()) {
        errno = fail_with;
        return -1;
    }
    ck_assert_int_eq(fstat(fd, &st), 0);
    for (size_t i = 0; i < n_unsynced; i++) {
        if (unsynced[i].inode == st.st_ino)
            close(unsynced[i].fd);
        else
            unsynced[kept++] = unsynced[i];
    }
    n_unsynced = kept;
    return 0;
}

static int
hook_ftruncate(int fd, off_t n)
{
    if (strike()) {
        errno = fail_with;
        return -1;
    }
    return real.ftruncate(fd, n);
}

static int
hook_unlinkat(int dirfd, const char *name, int flags)
{
    if (strike()) {
        errno = fail_with;
        return -1;
    }
    return real.unlinkat(dirfd, name, flags);
}

static void
hooks_set(long nth, bool cut, int error)
{
    real = xac_sys;
    calls_left = nth;
    power_cut = cut;
    fail_with = error;
    n_unsynced = 0;
    xac_sys.pwrite = hook_pwrite;
    xac_sys.fdatasync = hook_sync;
    xac_sys.fsync = hook_sync;
    xac_sys.ftruncate = hook_ftruncate;
    xac_sys.unlinkat = hook_unlinkat;
}

/* recover_struck -- in a child, up to the n-th call; ret its exit code. */
static int
recover_struck(long nth, bool cut, int error)
{
    int status;
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        /* Memory for four pages, so that the log is read twice and pages come and go. */
        struct xac_recover_options o = {.memory_bytes = UINT64_C(4) * 4096};

        hooks_set(nth, cut, error);
        _exit(xac_recover_dir(s.dirfd, &o, &rep, &next) == 0 ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* crash_scene -- a log with all there is in it, in several segments. */
static void
crash_scene(struct synth_picture *picture)
{
    synth_open(&s, 4096, 8192);
    (void)synth_file(&s, "a", 9);
    (void)synth_file(&s, "b", 5);
    synth_transactions(&s, 40);
    synth_checkpoint(&s, odd_pages, 3);
    synth_begin(&s);
    for (uint64_t p = 0; p < 5; p++)
        synth_change(&s, 1, p);
    (void)synth_commit_large(&s);
    synth_transactions(&s, 20);
    shorten("b", 4096);
    synth_put(&s, "xac-data.00000001.000000ff", "orphan", 6);
    synth_picture_take(&s, picture);
}

static void
ck_recovered(void)
{
    struct xac_master_slot m;

    ck_assert(synth_same(&s, 0));
    ck_assert(synth_same(&s, 1));
    ck_ok(xac_master_read(s.dirfd, &m));
    ck_assert_uint_ge(m.generation, 2);
    ck_assert_uint_ge(m.start_lsn, s.tail);
}

START_TEST(recovery_killed_anywhere_is_repeated)
{
    struct synth_picture picture;
    long nth = 1;
    int rc;

    crash_scene(&picture);
    do {
        synth_picture_restore(&s, &picture);
        rc = recover_struck(nth, _i == 1, 0);
        ck_assert(rc == 42 || rc == 0);
        /* Once more, killed a little later; then to the end. */
        if (rc == 42)
            ck_assert_int_ne(recover_struck(1 + (nth * 7) % 23, _i == 1, 0), 1);
        ck_ok(recover());
        ck_recovered();
        nth++;
    } while (rc == 42);
    ck_assert_int_gt(nth, 20);
    printf("killed at %ld places\n", nth - 2);
    synth_picture_free(&picture);
}
END_TEST

START_TEST(failing_call_fails_the_recovery_and_harms_nothing)
{
    struct synth_picture picture;
    long nth = 1;
    long failed = 0;
    int rc;

    crash_scene(&picture);
    for (int after = 0; after < 5; nth++) {
        synth_picture_restore(&s, &picture);
        rc = recover_struck(nth, false, _i == 0 ? EIO : ENOSPC);
        ck_assert_int_ne(rc, 42);
        failed += rc;
        after += rc == 0; /* a data file that cannot be removed is no failure */
        ck_ok(recover());
        ck_recovered();
    }
    ck_assert_int_gt(failed, 20);
    synth_picture_free(&picture);
}
END_TEST

/* n-th read fails: the recovery stops, nothing has been written. */
static long reads_left;

static ssize_t
hook_pread(int fd, void *p, size_t n, off_t offset)
{
    if (--reads_left == 0) {
        errno = EIO;
        return -1;
    }
    return real.pread(fd, p, n, offset);
}

START_TEST(read_error_is_no_end_of_the_log)
{
    struct synth_picture picture;
    int rc = EIO;
    long nth;

    crash_scene(&picture);
    real = xac_sys;
    xac_sys.pread = hook_pread;
    for (nth = 1; rc != 0; nth++) {
        reads_left = nth;
        rc = dry_run();
        ck_assert_msg(rc == 0 || rc == EIO, "read %ld: %d", nth, rc);
        ck_assert(synth_picture_same(&s, &picture));
    }
    ck_assert_int_gt(nth, 10);
    xac_sys.pread = real.pread;
    synth_picture_free(&picture);
}
END_TEST

static size_t n_syncs;
static size_t n_writes;

static int
count_sync(int fd)
{
    (void)fd;
    ck_assert_uint_eq(n_writes, 0);
    n_syncs++;
    errno = EIO;
    return n_syncs == 4 ? -1 : 0;
}

static ssize_t
count_pwrite(int fd, const void *p, size_t n, off_t offset)
{
    n_writes++;
    return real.pwrite(fd, p, n, offset);
}

START_TEST(log_is_synced_before_anything_is_written)
{
    struct synth_picture picture;

    crash_scene(&picture);
    real = xac_sys;
    xac_sys.fdatasync = count_sync;
    xac_sys.pwrite = count_pwrite;
    ck_assert_int_eq(recover(), EIO);
    xac_sys = real;
    ck_assert_uint_eq(n_syncs, 4);
    ck_assert(synth_picture_same(&s, &picture));
    synth_picture_free(&picture);
}
END_TEST

static size_t n_name_syncs; /* of the directory */

static int
note_sync(int fd)
{
    struct stat dir, st;

    ck_assert(fstat(s.dirfd, &dir) == 0 && fstat(fd, &st) == 0);
    n_name_syncs += st.st_ino == dir.st_ino;
    return real.fsync(fd);
}

static ssize_t
write_after_names(int fd, const void *p, size_t n, off_t offset)
{
    ck_assert_uint_gt(n_name_syncs, 0);
    n_writes++;
    return real.pwrite(fd, p, n, offset);
}

/* Who made the last segment may have died before its name was durable. */
START_TEST(names_are_synced_before_anything_is_written)
{
    struct synth_picture picture;

    crash_scene(&picture);
    real = xac_sys;
    n_name_syncs = n_writes = 0;
    xac_sys.fsync = note_sync;
    xac_sys.pwrite = write_after_names;
    ck_ok(recover());
    xac_sys = real;
    ck_assert_uint_gt(n_writes, 0);
    synth_picture_free(&picture);
}
END_TEST

/* ---- Which sync is for which file --------------------------------------------------- */

#define NUMBERS 64 /* of descriptors */

static ino_t
inode_of(const char *name)
{
    struct stat st;

    ck_assert_int_eq(fstatat(s.dirfd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_ino;
}

static ino_t
inode_of_fd(int fd)
{
    struct stat st;

    ck_assert_int_eq(fstat(fd, &st), 0);
    return st.st_ino;
}

static ino_t watched; /* a file */
static bool
    is_watched_safe; /* it has been synced since it was made, or since the begin */

static int
watch_fdatasync(int fd)
{
    is_watched_safe |= inode_of_fd(fd) == watched;
    return real.fdatasync(fd);
}

static ssize_t
write_when_safe(int fd, const void *p, size_t n, off_t offset)
{
    ck_assert(is_watched_safe);
    n_writes++;
    return real.pwrite(fd, p, n, offset);
}

/* A participant may have died before it synced what it had written there.  Files that are redone
   from that master record do not fit the one that a power cut leaves. */
START_TEST(master_record_is_synced_before_anything_is_written)
{
    struct synth_picture picture;

    crash_scene(&picture);
    watched = inode_of(XAC_MASTER_NAME);
    is_watched_safe = false;
    n_writes = 0;
    real = xac_sys;
    xac_sys.fdatasync = watch_fdatasync;
    xac_sys.pwrite = write_when_safe;
    ck_ok(recover());
    xac_sys = real;
    ck_assert_uint_gt(n_writes, 0);
    synth_picture_free(&picture);
}
END_TEST

static int
watch_fsync(int fd)
{
    if (faccessat(s.dirfd, "a", F_OK, 0) == 0 && inode_of_fd(fd) == inode_of("a"))
        is_watched_safe = true;
    return real.fsync(fd);
}

static int
watch_fchmod(int fd, mode_t mode)
{
    if (inode_of_fd(fd) == inode_of("a"))
        is_watched_safe = false;
    return real.fchmod(fd, mode);
}

/* Its owner and mode, too, which fdatasync(2) need not write. */
START_TEST(file_that_is_made_is_synced_as_a_whole)
{
    struct xac_recover_options o = {.accept_replaced = true};
    struct synth_picture picture;

    crash_scene(&picture);
    ck_assert_int_eq(unlinkat(s.dirfd, "a", 0), 0);
    is_watched_safe = false;
    real = xac_sys;
    xac_sys.fsync = watch_fsync;
    xac_sys.fchmod = watch_fchmod;
    ck_ok(xac_recover_dir(s.dirfd, &o, &rep, &next));
    xac_sys = real;
    ck_assert(is_watched_safe);
    synth_picture_free(&picture);
}
END_TEST

static bool
    is_dirty[NUMBERS]; /* written to through this descriptor, and not synced since */
static size_t n_dirty, n_closed;

static ssize_t
dirty_pwrite(int fd, const void *p, size_t n, off_t offset)
{
    ck_assert_int_lt(fd, NUMBERS);
    is_dirty[fd] = true;
    n_dirty++;
    return real.pwrite(fd, p, n, offset);
}

static int
clean_fdatasync(int fd)
{
    is_dirty[fd] = false;
    return real.fdatasync(fd);
}

static int
close_clean(int fd)
{
    if (fd >= 0 && fd < NUMBERS) {
        ck_assert(!is_dirty[fd]);
        n_closed++;
    }
    return real.close(fd);
}

/* An error that the kernel meets when it writes later is told to descriptors that are open. */
START_TEST(no_descriptor_is_closed_before_its_writes_are_synced)
{
    static const char *const names[SYNTH_FILES] = {"a", "b", "c", "d"};
    struct xac_recover_options o = {.memory_bytes = UINT64_C(4) * 4096};
    struct rlimit old, few;

    synth_open(&s, 4096, 8192);
    for (size_t i = 0; i < SYNTH_FILES; i++)
        (void)synth_file(&s, names[i], 5);
    synth_transactions(&s, 60);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = (struct rlimit){.rlim_cur = 15, .rlim_max = old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    ck_assert_uint_lt(xac_redo_fds_max(), SYNTH_FILES);
    real = xac_sys;
    xac_sys.pwrite = dirty_pwrite;
    xac_sys.fdatasync = xac_sys.fsync = clean_fdatasync;
    xac_sys.close = close_clean;
    ck_ok(xac_recover_dir(s.dirfd, &o, &rep, &next));
    xac_sys = real;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    for (size_t i = 0; i < SYNTH_FILES; i++)
        ck_assert(synth_same(&s, i));
    ck_assert_uint_gt(n_dirty, SYNTH_FILES);
    ck_assert_uint_gt(n_closed, 2 * SYNTH_FILES);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("recover_crash");
    TCase *tc;

    tc = recover_tcase(suite, "kills");
    tcase_add_loop_test(tc, recovery_killed_anywhere_is_repeated, 0, 2);
    tcase_add_loop_test(tc, failing_call_fails_the_recovery_and_harms_nothing, 0, 2);
    tcase_add_test(tc, read_error_is_no_end_of_the_log);
    tcase_add_test(tc, log_is_synced_before_anything_is_written);
    tcase_add_test(tc, names_are_synced_before_anything_is_written);
    tcase_add_test(tc, master_record_is_synced_before_anything_is_written);
    tcase_add_test(tc, file_that_is_made_is_synced_as_a_whole);
    tcase_add_test(tc, no_descriptor_is_closed_before_its_writes_are_synced);
    return recover_main(suite);
}
