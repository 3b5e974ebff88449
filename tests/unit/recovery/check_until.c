/* SPDX-License-Identifier: MIT */
/*
 * check_until.c -- backups restored to every moment of a log made by hand, by LSN and by
 * time, through several generations, with recoveries killed on the way; and what is
 * refused.
 */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/common/recover_env.h"
#include "base/names.h"
#include "base/sys.h"
#include "log/backup_note.h"
#include "log/log.h"
#include "log/recover_check.h"

#define PAGES 6
#define MAX   64

/* The file after each commit, and where and when that was. */
static uint8_t state[MAX + 1][PAGES * 4096];
static uint64_t end_of[MAX + 1];
static uint64_t time_of[MAX + 1];
static size_t n_states;

static struct synth_picture backup;

static void
note_state(void)
{
    ck_assert_uint_le(n_states, MAX);
    memcpy(state[n_states], s.file[0].model, sizeof state[0]);
    end_of[n_states] = s.tail;
    time_of[n_states] = n_states == 0 ? 0 : synth_time(s.commit);
    n_states++;
}

static void
commits(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        synth_begin(&s);
        synth_change(&s, 0, synth_random(&s, PAGES));
        if (synth_random(&s, 4) == 0)
            (void)synth_commit_large(&s);
        else
            synth_commit(&s);
        note_state();
    }
}

/* next_generation -- recover, and go on writing behind. */
static void
next_generation(void)
{
    uint64_t time = s.commit;

    ck_ok(recover());
    ck_assert(synth_same(&s, 0));
    s.master = next;
    s.tail = s.durable = next.start_lsn;
    s.commit = time;
    memset(s.file[0].is_fresh, 0, PAGES * sizeof s.file[0].is_fresh[0]);
}

/*
 * A backup made before the first commit, and a log of three generations, all of it in the
 * directory.
 */
static void
long_log(void)
{
    struct xac_backup_note note = {.time_ns = 1};
    uint8_t *master, *file;
    size_t n, m;

    n_states = 0;
    synth_open(&s, 4096, 4096);
    (void)synth_file(&s, "f", PAGES);
    note_state();
    master = synth_get(&s, "xac.master", &n);
    file = synth_get(&s, "f", &m);
    commits(7);
    next_generation();
    synth_refile(&s);
    commits(9);
    next_generation();
    next_generation(); /* an empty one */
    synth_refile(&s);
    commits(6);
    synth_put(&s, "xac.master", master, n);
    synth_put(&s, "f", file, m);
    free(master);
    free(file);
    note.end_lsn = end_of[0];
    ck_ok(xac_backup_note_add(&note, "f", "f"));
    ck_ok(xac_backup_note_write(s.dirfd, &note));
    xac_backup_note_free(&note);
    synth_picture_take(&s, &backup);
}

static int
restore(uint64_t lsn, uint64_t time_ns)
{
    struct xac_recover_options o = {.forward = true,
                                    .until_lsn = lsn,
                                    .until_ns = time_ns};

    return xac_recover_dir(s.dirfd, &o, &rep, &next);
}

static bool
is_state(size_t i)
{
    size_t n;
    uint8_t *bytes = synth_get(&s, "f", &n);
    bool same = n == sizeof state[0] && memcmp(bytes, state[i], n) == 0;

    free(bytes);
    return same;
}

START_TEST(every_commit_can_be_restored_by_lsn)
{
    long_log();
    for (size_t i = 0; i < n_states; i++) {
        synth_picture_restore(&s, &backup);
        ck_ok(restore(end_of[i], 0));
        ck_assert_msg(is_state(i), "state %zu", i);
        ck_assert(faccessat(s.dirfd, XAC_BACKUP_NAME, F_OK, 0) != 0);
        /* What has been cut off is not taken for log again. */
        ck_ok(recover());
        ck_assert(rep.was_clean && is_state(i));
    }
    synth_picture_free(&backup);
}
END_TEST

START_TEST(every_commit_can_be_restored_by_time)
{
    long_log();
    for (size_t i = 0; i < n_states; i++) {
        synth_picture_restore(&s, &backup);
        ck_ok(restore(0, i == 0 ? 1 : time_of[i] + 3));
        ck_assert_msg(is_state(i), "state %zu", i);
        ck_assert(rep.until_reached == (i + 1 < n_states));
        ck_assert_uint_eq(rep.last_time_ns, time_of[i]);
    }
    synth_picture_free(&backup);
}
END_TEST

START_TEST(the_whole_log_can_be_redone)
{
    long_log();
    ck_ok(restore(0, 0));
    ck_assert(is_state(n_states - 1));
    ck_assert(!rep.until_reached);
    ck_assert_uint_eq(rep.transactions, n_states - 1);
    synth_picture_free(&backup);
}
END_TEST

/* Without being asked to go on, recovery does not take later log for the backup's. */
START_TEST(plain_recovery_refuses_later_generations)
{
    long_log();
    ck_assert_int_eq(recover(), XAC_EDAMAGED);
    ck_assert(synth_picture_same(&s, &backup));
    synth_picture_free(&backup);
}
END_TEST

START_TEST(missing_log_is_noticed)
{
    char name[XAC_LOG_NAME_MAX];

    long_log();
    xac_log_segment_name(name, xac_log_segment_of(end_of[12], 4096));
    ck_assert_int_eq(unlinkat(s.dirfd, name, 0), 0);
    ck_assert_int_eq(restore(0, 0), XAC_EDAMAGED);
    synth_picture_free(&backup);
}
END_TEST

START_TEST(moments_before_the_backup_are_refused)
{
    struct xac_backup_note note;

    long_log();
    ck_ok(xac_backup_note_read(s.dirfd, &note));
    note.end_lsn = end_of[3];
    note.time_ns = time_of[3];
    ck_ok(xac_backup_note_write(s.dirfd, &note));
    xac_backup_note_free(&note);
    synth_picture_free(&backup);
    synth_picture_take(&s, &backup);
    ck_assert_int_eq(restore(end_of[2], 0), EINVAL);
    ck_assert_int_eq(restore(0, time_of[2]), EINVAL);
    ck_assert(synth_picture_same(&s, &backup));
    ck_ok(restore(end_of[3], 0));
    ck_assert(is_state(3));
    /* No backup any more. */
    ck_assert_int_eq(restore(end_of[5], 0), EINVAL);
    synth_picture_free(&backup);
}
END_TEST

/* A restore that was killed can go on to the same moment, and not to an earlier one once
   pages have been written. */
START_TEST(killed_restore_goes_on)
{
    long_log();
    for (unsigned us = 0; us < 40000; us += 500) {
        size_t target = n_states - 3;
        int status;
        pid_t pid;

        synth_picture_restore(&s, &backup);
        pid = fork();
        if (pid == 0)
            _exit(restore(end_of[target], 0) == 0 ? 0 : 1);
        usleep(us);
        (void)kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
        if (faccessat(s.dirfd, XAC_BACKUP_NAME, F_OK, 0) == 0)
            ck_ok(restore(end_of[target], 0));
        ck_assert(is_state(target));
    }
    synth_picture_free(&backup);
}
END_TEST

START_TEST(notes_that_are_wrong_are_refused)
{
    static const char *const notes[] = {"", "xac-backup 1\n", "xac-backup 1\n1 x\nend\n",
                                        "xac-backup 1\n1 1\nf\nf\n", "other\n1 1\nend\n"};
    struct synth_picture picture;

    long_log();
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        synth_put(&s, XAC_BACKUP_NAME, notes[i], strlen(notes[i]));
        synth_picture_take(&s, &picture);
        ck_assert_int_eq(recover(), XAC_EDAMAGED);
        ck_assert(synth_picture_same(&s, &picture));
        synth_picture_free(&picture);
    }
    synth_put(&s, XAC_BACKUP_NAME, "xac-backup 2\n1 1\nend\n", 21);
    ck_assert_int_eq(recover(), XAC_EVERSION);
    synth_picture_free(&backup);
}
END_TEST

/* ---- Checking the log from before the last checkpoint ------------------------------ */

static unsigned n_damages;
static struct xac_place last_damage;

static void
count_damage(void *arg, const struct xac_place *place)
{
    (void)arg;
    n_damages++;
    last_damage = *place;
}

static struct xac_check_report
check(void)
{
    struct xac_check_report report;

    n_damages = 0;
    ck_ok(xac_check_log(s.dirfd, &next, count_damage, NULL, &report));
    ck_assert_uint_eq(report.damages, n_damages);
    return report;
}

/* flip_block -- a bit in the records of a block; twice is never. */
static void
flip_block(size_t i)
{
    char name[XAC_LOG_NAME_MAX];
    uint64_t lsn = s.block_lsn[i] + 70;

    xac_log_segment_name(name, xac_log_segment_of(lsn, 4096));
    synth_flip(&s, name, XAC_SEGMENT_HEADER + lsn % 4096, 1);
}

/* A log of two generations, synced after each transaction, with a torn tail between. */
static void
old_log(void)
{
    synth_open(&s, 4096, 4096);
    (void)synth_file(&s, "f", PAGES);
    for (int i = 0; i < 40; i++) {
        synth_sync(&s);
        synth_begin(&s);
        synth_change(&s, 0, synth_random(&s, PAGES));
        if (i % 10 == 0)
            (void)synth_commit_large(&s);
        else
            synth_commit(&s);
    }
    for (int i = 0; i < 3; i++) { /* not synced; the second one is torn */
        synth_begin(&s);
        synth_change(&s, 0, 0);
        synth_commit(&s);
    }
    flip_block(s.n_blocks - 2);
    ck_ok(recover());
    s.master = next;
    s.tail = s.durable = next.start_lsn;
    memset(s.file[0].is_fresh, 0, PAGES * sizeof s.file[0].is_fresh[0]);
    synth_refile(&s);
    for (int i = 0; i < 30; i++) {
        synth_sync(&s);
        synth_begin(&s);
        synth_change(&s, 0, synth_random(&s, PAGES));
        synth_commit(&s);
    }
    synth_checkpoint(&s, NULL, 1);
    ck_ok(recover());
}

START_TEST(sound_old_log_is_found_sound)
{
    struct xac_check_report r;

    old_log();
    r = check();
    ck_assert_uint_eq(n_damages, 0);
    ck_assert_uint_ge(r.blocks, 1 + 40 + 1 + 1 + 30);
    ck_assert_uint_eq(r.datafiles, 4);
}
END_TEST

START_TEST(every_damaged_old_block_is_found)
{
    size_t torn = 1 + 40 + 1;

    old_log();
    for (size_t i = 0; i + 4 < s.n_blocks; i++) {
        if (i >= torn - 2 && i <= torn + 1)
            continue; /* the last one synced, and what never was */
        flip_block(i);
        (void)check();
        ck_assert_msg(n_damages == 1, "block %zu: %u", i, n_damages);
        flip_block(i);
    }
    ck_assert_uint_eq(check().damages, 0);
}
END_TEST

START_TEST(damaged_old_data_file_is_found)
{
    char name[XAC_LOG_NAME_MAX];

    old_log();
    xac_log_datafile_name(name, 1, 2);
    synth_flip(&s, name, 30, 1);
    (void)check();
    ck_assert_uint_eq(n_damages, 1);
    ck_assert_str_eq(last_damage.file, name);
    ck_assert_int_eq(unlinkat(s.dirfd, name, 0), 0);
    ck_assert_uint_eq(check().damages, 0); /* archived */
}
END_TEST

START_TEST(missing_old_segment_is_found)
{
    old_log();
    ck_assert_int_eq(unlinkat(s.dirfd, "xac-log.00000003", 0), 0);
    (void)check();
    ck_assert_uint_eq(n_damages, 1);
    ck_assert_str_eq(last_damage.file, "xac-log.00000003");
}
END_TEST

static struct xac_sys real;
static bool is_note_gone; /* its removal is not on disk yet */
static size_t n_removed;

static int
watch_unlinkat(int dirfd, const char *name, int flags)
{
    if (strcmp(name, XAC_BACKUP_NAME) == 0) {
        is_note_gone = true;
        n_removed++;
    }
    return real.unlinkat(dirfd, name, flags);
}

static int
watch_fsync(int fd)
{
    struct stat dir, st;

    ck_assert(fstat(s.dirfd, &dir) == 0 && fstat(fd, &st) == 0);
    is_note_gone &= st.st_ino != dir.st_ino;
    return real.fsync(fd);
}

/* If a power cut brought it back, the next recovery would take the environment for a backup. */
START_TEST(removal_of_the_note_is_synced_when_the_restore_returns)
{
    long_log();
    real = xac_sys;
    xac_sys.unlinkat = watch_unlinkat;
    xac_sys.fsync = watch_fsync;
    ck_ok(restore(UINT64_MAX, 0));
    xac_sys = real;
    ck_assert_uint_eq(n_removed, 1);
    ck_assert(!is_note_gone);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("until");
    TCase *tc = recover_tcase(suite, "until");

    tcase_add_test(tc, every_commit_can_be_restored_by_lsn);
    tcase_add_test(tc, every_commit_can_be_restored_by_time);
    tcase_add_test(tc, the_whole_log_can_be_redone);
    tcase_add_test(tc, plain_recovery_refuses_later_generations);
    tcase_add_test(tc, missing_log_is_noticed);
    tcase_add_test(tc, moments_before_the_backup_are_refused);
    tcase_add_test(tc, killed_restore_goes_on);
    tcase_add_test(tc, removal_of_the_note_is_synced_when_the_restore_returns);
    tcase_add_test(tc, notes_that_are_wrong_are_refused);
    tcase_add_test(tc, sound_old_log_is_found_sound);
    tcase_add_test(tc, every_damaged_old_block_is_found);
    tcase_add_test(tc, damaged_old_data_file_is_found);
    tcase_add_test(tc, missing_old_segment_is_found);
    return recover_main(suite);
}
