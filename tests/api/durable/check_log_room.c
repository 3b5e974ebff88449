/* SPDX-License-Identifier: MIT */
/*
 * check_log_room.c -- room that the log takes on disk: segments are reused, until somebody asks for
 * archives; the first one grows; a day of commits stays within its bound.
 *
 * Children commit and are killed; files of the environment are counted and measured.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "env.h"

#define HOUR_MS UINT64_C(3600000)

/* What a child reports. */
struct word {
    _Atomic uint64_t segments; /* there were at the end                            */
    _Atomic uint64_t done; /* last value that was committed                             */
};

static struct word *words;

/* ---- reuse of segments ---------------------------------------------------------------- */

#define RECYCLE_PAGES 40u

static size_t
count_segments(void)
{
    return file_count(ENV_DIR, "xac-log.");
}

/* write_noise -- 600 transactions of 4 KiB. */
static void
write_noise(unsigned char *x)
{
    for (uint64_t i = 1, r = 1; i <= 600; i++) {
        must_ok(xbegin());
        memcpy(x, &i, sizeof i);
        for (size_t k = 0; k < 512; k++) {
            r = r * 6364136223846793005 + 1442695040888963407;
            memcpy(x + (i % (RECYCLE_PAGES - 1) + 1) * env_page() + 8 * k, &r, 8);
        }
        must_rc(xend(), COMMITTED);
        word_store(&words->done, i);
    }
}

#define UNSAID 2 /* XAC_OPT_LOG_RECYCLE is left alone */

/* write_much_here -- more than 2 MiB of log in segments of 64 KiB, checkpoints on the way. */
static unsigned char *
write_much_here(const uint64_t *recycle)
{
    unsigned char *x;

    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 65536));
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 131072));
    if (*recycle != UNSAID)
        must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, *recycle));
    x = env_attach(DURABLE, RECYCLE_PAGES);
    write_noise(x);
    word_store(&words->segments, count_segments());
    return x;
}

static void
write_much(void *arg)
{
    (void)write_much_here((const uint64_t *)arg);
}

START_TEST(recycling_bounds_the_log)
{
    uint64_t recycle = _i == 0 ? 1 : UNSAID;

    for (int run = 0; run < 3; run++) {
        proc_run(write_much, &recycle); /* dies without xShutdown() */
        must(word_load(&words->segments) < 12);
        must_ok(xRecover(ENV_DIR));
        must_eq(file_u64(ENV_FILE, 0), 600);
    }
    must(count_segments() < 16);
}
END_TEST

START_TEST(segments_are_kept_once_asked_for)
{
    uint64_t recycle = 0;

    proc_run(write_much, &recycle);
    must(word_load(&words->segments) > 30);
    recycle = UNSAID;
    proc_run(write_much, &recycle);
    must(word_load(&words->segments) > 60);
    recycle = 1;
    proc_run(write_much, &recycle);
    must(word_load(&words->segments) < 80); /* the old ones were used up first */
    recycle = UNSAID;
    proc_run(write_much, &recycle);
    must(word_load(&words->segments) < 80);
}
END_TEST

static void
archive_once(void *arg)
{
    char **name;
    size_t n;

    (void)arg;
    (void)env_attach(DURABLE, RECYCLE_PAGES);
    must_ok(xArchive(&name, &n));
    free(name);
    must_ok(xShutdown());
}

/* write_beside -- while somebody else archives. */
static void
write_beside(void *arg)
{
    unsigned char *x = write_much_here(arg);

    word_store(&words->done, 10000);
    proc_await(&words->done, 10001, 20);
    write_noise(x);
    write_noise(x);
    word_store(&words->segments, count_segments());
}

/* The first xArchive() of anybody keeps the log: in a run that goes on, and in later ones. */
START_TEST(first_archive_keeps_the_log)
{
    uint64_t recycle = UNSAID;
    pid_t writer = proc_spawn(write_beside, &recycle);
    unsigned before;

    proc_await(&words->done, 10000, 20);
    must(count_segments() < 12);
    proc_run(archive_once, NULL);
    word_store(&words->done, 10001);
    proc_join(writer);
    before = (unsigned)word_load(&words->segments);
    must(before > 60);
    proc_run(write_much, &recycle);
    must(word_load(&words->segments) > before + 30);
}
END_TEST

START_TEST(recycling_survives_death_at_any_moment)
{
    uint64_t recycle = 1;
    size_t before;

    for (int run = 0; run < 15; run++) {
        pid_t child;
        uint64_t done, found;

        word_store(&words->done, 0);
        child = proc_spawn(write_much, &recycle);
        proc_await(&words->done, 30, 20);
        proc_sleep_us((unsigned)run * 3000);
        proc_kill(child);
        done = word_load(&words->done);
        must_ok(xRecover(ENV_DIR));
        found = file_u64(ENV_FILE, 0);
        must(found == done || found == done + 1);
    }
    before = count_segments();
    proc_run(write_much, &recycle);       /* the dead have left enough to reuse */
    must(count_segments() <= before + 4); /* until the first checkpoint is over */
}
END_TEST

/* ---- room on disk --------------------------------------------------------------------- */

/* disk_bytes -- that the files whose names begin like that have on disk. */
static uint64_t
disk_bytes(const char *prefix)
{
    DIR *d = opendir(ENV_DIR);
    const struct dirent *e;
    uint64_t bytes = 0;
    struct stat st;

    must(d != NULL);
    while ((e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0
            && fstatat(dirfd(d), e->d_name, &st, 0) == 0)
            bytes += (uint64_t)st.st_blocks * 512;
    }
    (void)closedir(d);
    return bytes;
}

static void
commit_one(void *arg)
{
    unsigned char *x = env_attach(DURABLE, 2);

    must_ok(xbegin());
    memcpy(x, arg, sizeof(uint64_t));
    must_rc(xend(), COMMITTED); /* dies without xShutdown() */
}

/* One integer needs no 16 MiB, in whatever run. */
START_TEST(log_of_one_integer_is_small)
{
    for (uint64_t i = 1; i <= 3; i++) {
        proc_run(commit_one, &i);
        must_eq(file_size(ENV_DIR "/xac-log.00000001"), 4096 + (16 << 20));
        must(disk_bytes("xac-") <= 128 << 10);
        must_ok(xRecover(ENV_DIR));
        must_eq(file_u64(ENV_FILE, 0), i);
    }
}
END_TEST

/* A day: how many integers are committed, and how often three whole pages with one; 0 never. */
struct day {
    uint64_t segment_bytes,
        checkpoint_bytes; /* 0: by default                           */
    uint64_t pages, commits, often, pages_each;
};

/* One commit a second, without options.  Then checkpoints now and then: of few pages; of many pages
   that are written all the time; and of enough pages to give each commit a data file. */
static const struct day days[] = {
    {0, 0, RECYCLE_PAGES, 86400, 0, 3},
    {1 << 18, 4 << 20, RECYCLE_PAGES, 86400, 20, 3},
    {1 << 18, 4 << 20, 1000, 10000, 1, 3},
    {1 << 20, 8 << 20, 1200, 60, 1, 1000},
};

static uint64_t
now_ns(void)
{
    struct timespec t;

    must(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* oldest_age_ns -- of the oldest snapshot in use: a checkpoint has one, too. */
static uint64_t
oldest_age_ns(void)
{
    struct xac_stats s;

    must_ok(xStats(&s, sizeof s));
    return s.oldest_age_ns;
}

/* spend_day -- commit, and look at the log after each.  Nothing waits for a sync: that would only take
   longer. */
static void
spend_day(void *arg)
{
    const struct day *day = arg;
    uint64_t bound = (256 + 16) << 20, most = 0, r = 1, start = now_ns();
    unsigned char *x;

    if (day->segment_bytes != 0) {
        must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, day->segment_bytes));
        must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, day->checkpoint_bytes));
        bound = day->segment_bytes + day->checkpoint_bytes;
    }
    /* Data files count as a whole, and some are written until a checkpoint ends. */
    if (day->pages_each > 3)
        bound += 5 * (day->pages_each + 8) * env_page();
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, HOUR_MS));
    x = env_attach(DURABLE, day->pages);
    for (uint64_t i = 1; i <= day->commits; i++) {
        unsigned char *page = x + i * 3 % (day->pages - day->pages_each + 1) * env_page();

        must_ok(xbegin());
        memcpy(page, &i, sizeof i);
        for (size_t k = 8;
             day->often != 0 && i % day->often == 0 && k < day->pages_each * env_page();
             k += 8) {
            r = r * 6364136223846793005 + 1442695040888963407;
            memcpy(page + k, &r, 8);
        }
        must_rc(xend(), COMMITTED);
        if (day->often != 0 || i % 100 == 0) {
            uint64_t bytes = disk_bytes("xac-");

            most = bytes > most ? bytes : most;
            must(bytes < bound);
            must(oldest_age_ns() <= now_ns() - start + 20000000);
        }
    }
    printf("%" PRIu64 " commits: at most %" PRIu64 " KiB of log on disk, bound %" PRIu64
           " KiB\n",
           day->commits, most >> 10, bound >> 10);
    (void)fflush(stdout);
}

/* By default the log is bounded: by what a checkpoint waits for and one segment.  A second run after
   a crash does not add to it. */
START_TEST(day_of_commits_is_bounded)
{
    struct day day = days[_i];

    for (int run = 0; run < 2; run++) {
        proc_run(spend_day, &day); /* dies without xShutdown() */
        must_ok(xRecover(ENV_DIR));
    }
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
    Suite *s = suite_create("log room");
    TCase *tc = env_tcase(s, "log", 60);

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_loop_test(tc, recycling_bounds_the_log, 0, 2);
    tcase_add_test(tc, segments_are_kept_once_asked_for);
    tcase_add_test(tc, first_archive_keeps_the_log);
    tcase_add_test(tc, recycling_survives_death_at_any_moment);
    tcase_add_test(tc, log_of_one_integer_is_small);
    tcase_add_loop_test(tc, day_of_commits_is_bounded, 0, 4);
    return env_main(s);
}
