/* SPDX-License-Identifier: MIT */
/*
 * check_log_options.c -- options of the log: delayed sync, what becomes of data files, and a
 * directory of its own.
 *
 * Children commit and are killed; what xRecover() makes of the rest is compared with what
 * they were promised.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"

#define HOUR_MS UINT64_C(3600000)

/* What a child reports. */
struct word {
    _Atomic uint64_t synced; /* last value that was promised to be on disk */
    _Atomic uint64_t done;   /* last value that was committed              */
};

static struct word *words;

/* commit -- one transaction: value i in pages 0 and 1. */
static void
commit(unsigned char *x, uint64_t i)
{
    must_ok(xbegin());
    memcpy(x, &i, sizeof i);
    memcpy(x + env_page(), &i, sizeof i);
    must_rc(xend(), COMMITTED);
    word_store(&words->done, i);
}

static uint64_t
syncs(void)
{
    struct xac_stats s;

    must_ok(xStats(&s, sizeof s));
    return s.log_syncs;
}

/* recovered -- the value after recovery, the same in both pages. */
static uint64_t
recovered(void)
{
    must_ok(xRecover(ENV_DIR));
    must_eq(file_u64(ENV_FILE, 0), file_u64(ENV_FILE, env_page()));
    return file_u64(ENV_FILE, 0);
}

/* ---- delayed sync ------------------------------------------------------------------- */

static void
commit_delayed(void *arg)
{
    unsigned char *x;
    uint64_t before;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, HOUR_MS));
    x = env_attach(DURABLE, 2);
    commit(x, 1);
    must_ok(xSync());
    before = syncs();
    for (uint64_t i = 2; i <= 100; i++)
        commit(x, i);
    must_ok(xbeginQuery());
    must_eq(*(volatile uint64_t *)(void *)x, 100);
    must_ok(xendQuery());
    must_eq(syncs(), before);
    must_ok(xSync());
    must_ok(xSync());
    must_eq(syncs(), before + 1);
    word_store(&words->synced, 100);
    for (uint64_t i = 101; i <= 150; i++)
        commit(x, i);
    proc_sleep_us(20000000); /* killed here */
}

START_TEST(sync_makes_durable_what_was_delayed)
{
    pid_t child;

    env_without_frames("a checkpoint for want of them syncs");
    child = proc_spawn(commit_delayed, NULL);

    proc_await(&words->done, 150, 20);
    proc_kill(child);
    must_eq(recovered(), word_load(&words->synced)); /* nobody has synced the rest */
}
END_TEST

/* survive -- stay attached; what a dead one has committed is still there. */
static void
survive(void *arg)
{
    unsigned char *x = env_attach(DURABLE, 2);

    (void)arg;
    word_store(&words->synced, 1);
    proc_await(&words->done, 1000, 20);
    must_ok(xbeginQuery());
    must_eq(*(volatile uint64_t *)(void *)x, 150);
    must_ok(xendQuery()); /* waits for what it has read */
    proc_sleep_us(20000000);
}

START_TEST(death_of_one_loses_nothing_of_the_delayed)
{
    pid_t survivor, child;

    env_without_frames("a checkpoint for want of them syncs");
    survivor = proc_spawn(survive, NULL);
    proc_await(&words->synced, 1, 20);
    child = proc_spawn(commit_delayed, NULL);
    proc_await(&words->done, 150, 20);
    proc_kill(child);
    word_store(&words->done, 1000);
    proc_sleep_us(300000);
    proc_kill(survivor);
    must_eq(recovered(), 150);
}
END_TEST

static void
commit_after_a_while(void *arg)
{
    unsigned char *x;
    uint64_t before;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, 30));
    x = env_attach(DURABLE, 2);
    commit(x, 1);
    before = syncs();
    proc_sleep_us(100000);
    commit(x, 2); /* the time is up */
    must_eq(syncs(), before + 1);
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, HOUR_MS));
    commit(x, 3);
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, 0));
    commit(x, 4);
    must_eq(syncs(), before + 2);
    must_rc(xSetOption(XAC_OPT_SYNC_DELAY_MS, HOUR_MS + 1), EINVAL);
}

START_TEST(commit_syncs_when_the_delay_is_over)
{
    proc_run(commit_after_a_while, NULL);
    must_eq(recovered(), 4);
}
END_TEST

static void
commit_and_leave(void *arg)
{
    unsigned char *x;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, HOUR_MS));
    x = env_attach(DURABLE, 2);
    for (uint64_t i = 1; i <= 30; i++)
        commit(x, i);
    must_ok(xShutdown());
}

static void
wait_attached(void *arg)
{
    (void)arg;
    (void)env_attach(DURABLE, 2);
    word_store(&words->synced, 1);
    proc_sleep_us(20000000);
}

/* A participant that leaves syncs, also if it is not the last. */
START_TEST(shutdown_syncs_what_was_delayed)
{
    pid_t other = proc_spawn(wait_attached, NULL);

    proc_await(&words->synced, 1, 20);
    proc_run(commit_and_leave, NULL);
    proc_kill(other);
    must_eq(recovered(), 30);
}
END_TEST

START_TEST(sync_needs_an_environment)
{
    must_rc(xSync(), XAC_ENOINIT);
    must_ok(xInit(ENV_DIR, NONDURABLE));
    must_ok(xSync());
    must_ok(xShutdown());
}
END_TEST

/* ---- data files of large transactions --------------------------------------------------- */

#define RECYCLE_PAGES 40u

#define LARGE_RUN 60u

/* write_large -- transactions that go to data files, 160 KiB each, and nothing else; a
   checkpoint is due after 1 MiB. */
static void
write_large(void *arg)
{
    const uint64_t *recycle = arg;
    struct xac_stats stats;
    unsigned char *x;

    must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 65536));
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, UINT64_C(1) << 20));
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, *recycle));
    x = env_attach(DURABLE, RECYCLE_PAGES);
    for (uint64_t i = 1, r = 1; i <= LARGE_RUN; i++) {
        must_ok(xbegin());
        for (size_t k = 8; k < RECYCLE_PAGES * env_page(); k += 8) {
            r = r * 6364136223846793005 + 1442695040888963407;
            memcpy(x + k, &r, sizeof r);
        }
        memcpy(x, &i, sizeof i);
        memcpy(x + env_page(), &i, sizeof i);
        must_rc(xend(), COMMITTED);
        word_store(&words->done, i);
    }
    must_ok(xStats(&stats, sizeof stats));
    word_store(&words->synced, stats.checkpoints);
}

START_TEST(large_transactions_make_a_checkpoint_due)
{
    uint64_t recycle = 1;

    for (int run = 0; run < 3; run++) {
        proc_run(write_large, &recycle); /* dies without xShutdown() */
        must(word_load(&words->synced) >= LARGE_RUN / 10);
        must(file_count(ENV_DIR, "xac-data.")
             < 30); /* of two rounds, and until one is over */
        must_eq(recovered(), LARGE_RUN);
    }
}
END_TEST

/* archive_running -- remove what xArchive() names. */
static void
archive_running(void)
{
    char **name;
    size_t n;

    must_ok(xArchive(&name, &n));
    for (size_t i = 0; i < n; i++)
        must(remove(name[i]) == 0);
    free(name);
}

static void
archive_all(void *arg)
{
    (void)arg;
    (void)env_attach(DURABLE, RECYCLE_PAGES);
    archive_running();
}

/* write_and_archive -- remove what is named while the environment runs. */
static void
write_and_archive(void *arg)
{
    write_large(arg);
    must_eq(file_count(ENV_DIR, "xac-data."), LARGE_RUN);
    archive_running();
    must(file_count(ENV_DIR, "xac-data.") < 30);
    must(file_count(ENV_DIR, "xac-data.") > 0);
}

START_TEST(data_files_are_archived_like_segments)
{
    uint64_t recycle = 0;

    env_without_frames("a checkpoint for want of them makes data files unnecessary");
    proc_run(write_and_archive, &recycle);
    must_eq(recovered(), LARGE_RUN); /* nothing is missing */
    proc_run(archive_all, NULL);
    must_eq(file_count(ENV_DIR, "xac-data."), 0);
}
END_TEST

START_TEST(data_files_go_at_any_moment_of_death)
{
    uint64_t recycle = 1;

    for (unsigned run = 0; run < 12; run++) {
        pid_t child;
        uint64_t done, found;

        word_store(&words->done, 0);
        child = proc_spawn(write_large, &recycle);
        proc_await(&words->done, 6, 20);
        proc_sleep_us(run * 2500);
        proc_kill(child);
        done = word_load(&words->done);
        found = recovered();
        must(found == done || found == done + 1);
    }
    proc_run(write_large, &recycle);
    must(file_count(ENV_DIR, "xac-data.") < 30); /* those of the dead are gone, too */
}
END_TEST

/* ---- versions ----------------------------------------------------------------------------- */

#define VERSIONS 20000u /* 78 MiB of them, in a log of 2 */

/* A program that changes a little on many pages has a checkpoint before its memory is full of
   their versions, however short its log is. */
START_TEST(versions_make_a_checkpoint_due)
{
    struct xac_stats stats;
    unsigned char *x;

    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, UINT64_C(64) << 20));
    must_ok(xSetOption(XAC_OPT_FULL_IMAGES, 0));
    x = env_attach(DURABLE, VERSIONS);
    for (size_t page = 0; page < VERSIONS;) {
        must_ok(xbegin());
        for (size_t end = page + 500; page < end; page++)
            x[page * env_page()] = 1;
        must_rc(xend(), COMMITTED);
    }
    /* It goes by steps of the commits that follow. */
    for (unsigned n = 0; n < VERSIONS; n++) {
        must_ok(xbegin());
        x[0]++;
        must_rc(xend(), COMMITTED);
        must_ok(xStats(&stats, sizeof stats));
        if (stats.checkpoints > 0)
            break;
    }
    must(stats.checkpoints > 0);
    must(stats.log_bytes < UINT64_C(32) << 20);
    env_detach();
}
END_TEST

/* ---- a directory of its own --------------------------------------------------------------- */

#define LOG_DIR "log-disk"

static char log_dir[] = LOG_DIR, log_dir_again[] = "./" LOG_DIR;

/* write_there -- some transactions, one of them large; arg: log directory to ask for. */
static void
write_there(void *arg)
{
    unsigned char *x;

    must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 65536));
    must_ok(xSetLogDirectory((const char *)arg));
    x = env_attach(DURABLE, RECYCLE_PAGES);
    for (uint64_t i = 1, r = 1; i <= 20; i++) {
        must_ok(xbegin());
        for (size_t k = 8; i == 10 && k < RECYCLE_PAGES * env_page(); k += 8) {
            r = r * 6364136223846793005 + 1442695040888963407;
            memcpy(x + k, &r, sizeof r);
        }
        memcpy(x, &i, sizeof i);
        memcpy(x + env_page(), &i, sizeof i);
        must_rc(xend(), COMMITTED);
    }
    word_store(&words->done, 20);
}

static void
must_not_open(const char *asked, int code)
{
    must_ok(xSetLogDirectory(asked));
    must_rc(xInit(ENV_DIR, DURABLE), code);
    must(strstr(xLastError(), "log") != NULL);
}

START_TEST(log_lies_in_a_directory_of_its_own)
{
    proc_run(write_there, log_dir);
    must(file_count(LOG_DIR, "xac-log.") && file_count(LOG_DIR, "xac-data."));
    must(!file_count(ENV_DIR, "xac-log.") && !file_count(ENV_DIR, "xac-data."));
    must_eq(recovered(), 20); /* it is found */
    proc_run(write_there, NULL);
    must(!file_count(ENV_DIR, "xac-log."));
    must_eq(recovered(), 20);
    proc_run(write_there, log_dir_again); /* another name of the same */
    must_eq(recovered(), 20);
}
END_TEST

START_TEST(log_directory_may_be_moved)
{
    proc_run(write_there, log_dir);
    must(rename(LOG_DIR, "moved") == 0);
    must_rc(xRecover(ENV_DIR), ENOENT);
    must(strstr(xLastError(), LOG_DIR) != NULL);
    must_not_open(NULL, ENOENT);
    must_not_open("nowhere", ENOENT);
    must_ok(xSetLogDirectory("moved"));
    must_eq(recovered(), 20);
    must_ok(xSetLogDirectory(NULL));
    must_eq(recovered(), 20); /* it was remembered */
    proc_run(write_there, NULL);
    must(file_count("moved", "xac-log."));
}
END_TEST

/* The disk is not there: its mount point is an empty directory. */
START_TEST(log_directory_not_mounted_is_no_new_log)
{
    proc_run(write_there, log_dir);
    must(rename(LOG_DIR, "moved") == 0);
    must(mkdir(LOG_DIR, 0777) == 0);
    must_not_open(NULL, ENOENT);
    must_not_open(LOG_DIR, ENOENT);
    must(!file_count(LOG_DIR, "xac"));
    must(rmdir(LOG_DIR) == 0 && rename("moved", LOG_DIR) == 0);
    must_ok(xSetLogDirectory(NULL));
    must_eq(recovered(), 20);
}
END_TEST

START_TEST(log_directory_of_another_environment_is_refused)
{
    proc_run(write_there, log_dir);
    must_ok(xSetLogDirectory(LOG_DIR));
    must_rc(xInit("other", DURABLE), XAC_EFOREIGN);
    must_ok(xSetLogDirectory("log-2"));
    must_ok(xInit("other", DURABLE));
    must_rc(xSetLogDirectory("log-2"), EBUSY);
    must_ok(xShutdown());
    must_ok(xSetLogDirectory("log-2"));
    must_rc(xRecover(ENV_DIR), XAC_EFOREIGN);
    must_not_open("log-2", XAC_EFOREIGN);
    must_ok(xSetLogDirectory(NULL));
    must_eq(recovered(), 20);
}
END_TEST

/* attach_elsewhere -- beside somebody who has the log in another directory. */
static void
attach_elsewhere(void *arg)
{
    must_ok(xSetLogDirectory("elsewhere"));
    must_rc(xInit(ENV_DIR, DURABLE), *(const int *)arg);
}

START_TEST(log_stays_where_it_is)
{
    int busy = EBUSY;
    pid_t pid;

    proc_run(write_there, NULL);
    must(file_count(ENV_DIR, "xac-log."));
    must_not_open(LOG_DIR, EINVAL);
    must(access(LOG_DIR, F_OK) != 0);
    must_ok(xSetLogDirectory(NULL));
    pid = proc_spawn(wait_attached, NULL);
    proc_await(&words->synced, 1, 20);
    proc_run(attach_elsewhere, &busy);
    proc_kill(pid);
}
END_TEST

static void
archive_there(void *arg)
{
    char **name;
    size_t n;
    unsigned char *x;

    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 65536));
    must_ok(xSetLogDirectory((const char *)arg));
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, 0));
    x = env_attach(DURABLE, RECYCLE_PAGES);
    for (uint64_t i = 1; i <= 10; i++) {
        must_ok(xbegin());
        memset(x + 2 * env_page(), (int)i, env_page());
        for (size_t k = 0; k < 12 * env_page(); k += 8)
            *(volatile uint64_t *)(void *)(x + k) = i * (k + 1);
        memcpy(x, &i, sizeof i);
        memcpy(x + env_page(), &i, sizeof i);
        must_rc(xend(), COMMITTED);
        must_ok(xCheckpoint());
    }
    must_ok(xBackup("copy"));
    must_ok(xArchive(&name, &n));
    must(n > 0);
    for (size_t i = 0; i < n; i++) {
        must(strstr(name[i], "/" LOG_DIR "/xac-") != NULL);
        must(remove(name[i]) == 0);
    }
    free(name);
}

START_TEST(archive_and_backup_follow_the_log)
{
    proc_run(archive_there, log_dir);
    must_eq(recovered(), 10);
    must(file_count("copy", "xac-log.") && !file_count("copy", "xac.logdir"));
    must_ok(xRecover("copy"));
}
END_TEST

/* ---- no full images ------------------------------------------------------------------------ */

#define SCATTERED 30u

/* scatter -- after a checkpoint of full pages eight bytes in each; arg: XAC_OPT_FULL_IMAGES;
   dies attached, in the middle of another checkpoint's life if `synced` says so. */
static void
scatter(void *arg)
{
    struct xac_stats before, after;
    unsigned char *x;

    must_ok(xSetOption(XAC_OPT_FULL_IMAGES, *(const uint64_t *)arg));
    x = env_attach(DURABLE, RECYCLE_PAGES);
    must_ok(xbegin());
    for (size_t i = 0; i < SCATTERED * env_page(); i++)
        x[i] = (unsigned char)(i % 251 + 1);
    must_rc(xend(), COMMITTED);
    must_ok(xCheckpoint());
    must_ok(xStats(&before, sizeof before));
    for (uint64_t round = 1; round <= 3; round++) {
        must_ok(xbegin());
        for (size_t p = 0; p < SCATTERED; p++)
            memcpy(x + p * env_page() + 8 * round, &round, sizeof round);
        must_rc(xend(), COMMITTED);
        if (round == 2 && word_load(&words->synced) != 0)
            must_ok(xCheckpoint());
    }
    must_ok(xStats(&after, sizeof after));
    word_store(&words->done, after.log_bytes - before.log_bytes);
}

/* scattered -- is everything there? */
static void
scattered(void)
{
    unsigned char page[65536];

    must_ok(xRecover(ENV_DIR));
    for (size_t p = 0; p < SCATTERED; p++) {
        file_read(ENV_FILE, p * env_page(), page, env_page());
        for (size_t i = 0; i < env_page(); i++) {
            uint64_t round = i / 8;
            unsigned char want = (unsigned char)((p * env_page() + i) % 251 + 1);

            if (round >= 1 && round <= 3)
                want = (unsigned char)(i % 8 == 0 ? round : 0);
            must_eq(page[i], want);
        }
    }
}

START_TEST(without_full_images_the_log_is_short)
{
    uint64_t full = 1, none = 0, bytes;

    env_without_frames("a checkpoint for want of them has pages logged in full again");
    word_store(&words->synced, (uint64_t)_i);
    proc_run(scatter, &full);
    bytes = word_load(&words->done);
    must(bytes > SCATTERED * env_page());
    scattered();
    proc_run(scatter, &none);
    must(word_load(&words->done) < bytes / 8);
    scattered();
    must_ok(xRecover(ENV_DIR));
    proc_run(scatter, &full); /* and back */
    scattered();
}
END_TEST

/* grow_without -- pages that the file has not had. */
static void
grow_without(void *arg)
{
    unsigned char *x;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_FULL_IMAGES, 0));
    x = env_attach(DURABLE, RECYCLE_PAGES);
    commit(x, 7);
    must_rc(xBackup("copy"), ENOTSUP);
    must(strstr(xLastError(), "XAC_OPT_FULL_IMAGES") != NULL);
}

START_TEST(without_full_images_files_may_be_short)
{
    proc_run(grow_without, NULL);
    must(truncate(ENV_FILE, 0) == 0); /* as if its growth had been lost */
    must_eq(recovered(), 7);
    must_eq(file_u64(ENV_FILE, env_page() + 8), 0);
}
END_TEST

static void
setup(void)
{
    words = proc_shared(sizeof *words);
}

int
main(void)
{
    Suite *s = suite_create("log options");
    TCase *tc = env_tcase(s, "log", 60);

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, sync_makes_durable_what_was_delayed);
    tcase_add_test(tc, death_of_one_loses_nothing_of_the_delayed);
    tcase_add_test(tc, commit_syncs_when_the_delay_is_over);
    tcase_add_test(tc, shutdown_syncs_what_was_delayed);
    tcase_add_test(tc, sync_needs_an_environment);
    tcase_add_test(tc, large_transactions_make_a_checkpoint_due);
    tcase_add_test(tc, data_files_are_archived_like_segments);
    tcase_add_test(tc, data_files_go_at_any_moment_of_death);
    tcase_add_test(tc, versions_make_a_checkpoint_due);
    tcase_add_test(tc, log_lies_in_a_directory_of_its_own);
    tcase_add_test(tc, log_directory_may_be_moved);
    tcase_add_test(tc, log_directory_not_mounted_is_no_new_log);
    tcase_add_test(tc, log_directory_of_another_environment_is_refused);
    tcase_add_test(tc, log_stays_where_it_is);
    tcase_add_test(tc, archive_and_backup_follow_the_log);
    tcase_add_loop_test(tc, without_full_images_the_log_is_short, 0, 2);
    tcase_add_test(tc, without_full_images_files_may_be_short);
    return env_main(s);
}
