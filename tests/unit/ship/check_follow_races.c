/* SPDX-License-Identifier: MIT */
/*
 * check_follow_races.c -- a follower of the log (libxac/ship/source.h) beside writers that use its
 * segments again, and that wake it.
 *
 * GOAL    Segments that are used again under the follower are named as such, and are no damage.  No
 *         wake-up is lost.  A follower that is killed is followed by another one, from its position on.
 * METHOD  The follower's read is held up until the segment has been used again.  Writer and follower go
 *         in step, so that each commit needs a wake-up.  kill -9 at random times.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "follow_env.h"

/* ---- Used again under the reader ------------------------------------------------------ */

static struct xac_sys real;
static bool stalls_before, stalls_after;

/* stall -- until the writer has used the segments again. */
static void
stall(void)
{
    word_store(&board->go, 1);
    proc_await(&board->done, 1, 60);
}

static ssize_t
stalling_pread(int fd, void *buf, size_t n, off_t offset)
{
    ssize_t got;

    if (stalls_before && offset >= XAC_SEGMENT_HEADER) {
        stalls_before = false;
        stall();
    }
    got = real.pread(fd, buf, n, offset);
    if (stalls_after && offset >= XAC_SEGMENT_HEADER) {
        stalls_after = false;
        stall();
    }
    return got;
}

/* write_on_demand -- a child: some log; and when it is told to, so much that all of that is used
   again. */
static void
write_on_demand(void *arg)
{
    uint64_t *x = attach(), seed = board->seed;

    (void)arg;
    for (uint64_t i = 0; i < 10; i++)
        (void)change(x, &seed, 2);
    word_store(&board->at, 1);
    proc_await(&board->go, 1, 60);
    for (uint64_t i = 0; i < 600; i++) {
        (void)change(x, &seed, 3);
        if (i % 20 == 0)
            must_ok(xCheckpoint());
    }
    word_store(&board->done, 1);
    proc_sleep_us(100000000);
}

START_TEST(recycled_segment_is_named_and_is_no_damage)
{
    struct xac_source s;
    struct xac_followed got;
    pid_t pid;
    int rc = 0;

    board->kept = false;
    pid = proc_spawn(write_on_demand, NULL);
    proc_await(&board->at, 1, 20);
    must_ok(xac_source_open(&s, ENV_DIR));
    must_ok(xac_source_seek(&s, s.master.generation, s.master.start_lsn, 0));
    real = xac_sys;
    stalls_before = _i == 0;
    stalls_after = _i == 1;
    xac_sys.pread = stalling_pread;
    for (uint64_t n = 0; rc == 0 && n < 100; n++) {
        rc = xac_source_next(&s, &got);
        if (_i == 2 && n == 3)
            stall();
    }
    xac_sys = real;
    must_rc(rc, XAC_ECUTOFF);
    must(got.blk == NULL);
    must(strstr(xac_last_error(), "begins at LSN") != NULL);
    must_rc(xac_source_next(&s, &got), XAC_ECUTOFF); /* and again */
    proc_kill(pid);
    xac_source_close(&s);
}
END_TEST

static void
write_and_checkpoint(void *arg)
{
    uint64_t seed = board->seed + (uint64_t)(uintptr_t)arg;
    uint64_t *x = attach();

    while (word_load(&board->go) == 0) {
        (void)change(x, &seed, rnd_below(&seed, 10) == 0 ? 2 * PAGES : 3);
        if (rnd_below(&seed, 8) == 0)
            must_ok(xCheckpoint());
    }
    env_detach();
}

/* follow_for_a_while -- from the present end on, slower than the log is used again. */
static int
follow_for_a_while(uint64_t *seed, uint64_t *blocksp)
{
    struct xac_source s;
    struct xac_followed got;
    uint64_t end = 0;
    int rc;

    must_ok(xac_source_open(&s, ENV_DIR));
    rc = xac_source_seek(&s, s.master.generation, s.master.redo_lsn, 0);
    for (int i = 0; rc == 0 && i < 400; i++) {
        rc = xac_source_next(&s, &got);
        if (rc == 0 && got.blk != NULL) {
            must(end == 0 || got.blk->lsn == end);
            end = got.blk->lsn + got.blk->length;
            ++*blocksp;
        }
        if (rnd_below(seed, 20) == 0)
            proc_sleep_us(rnd_below(seed, 20000));
    }
    xac_source_close(&s);
    return rc;
}

START_TEST(reader_beside_recycling_sees_no_damage)
{
    uint64_t seed = env_seed(), blocks = 0, cut = 0;
    double end = env_now() + 60;
    pid_t pid[2];

    board->kept = false;
    for (int i = 0; i < 2; i++)
        pid[i] = proc_spawn(write_and_checkpoint, (void *)(intptr_t)i);
    while (!file_exists(ENV_DIR "/xac-log.00000002"))
        proc_sleep_us(1000);
    while ((blocks < 2000 || cut < 10) && env_now() < end) {
        int rc = follow_for_a_while(&seed, &blocks);

        if (rc != 0)
            must_rc(rc, XAC_ECUTOFF);
        cut += rc != 0;
    }
    word_store(&board->go, 1);
    for (int i = 0; i < 2; i++)
        proc_join(pid[i]);
    printf("%llu blocks, cut off %llu times\n", (unsigned long long)blocks,
           (unsigned long long)cut);
    must(blocks >= 2000 && cut >= 10);
}
END_TEST

/* ---- Wake-ups --------------------------------------------------------------------------- */

static int
no_sync(int fd)
{
    (void)fd;
    return 0;
}

/* write_in_step -- a child: at most one commit ahead of the follower. */
static void
write_in_step(void *arg)
{
    uint64_t *x, seed = board->seed;

    (void)arg;
    xac_sys.fdatasync = no_sync;
    xac_sys.fsync = no_sync;
    x = attach();
    for (uint64_t i = 1; i <= board->n; i++) {
        uint64_t ahead = rnd_below(&seed, 2); /* 0: nothing wakes it if this does not  */

        while (word_load(&board->at) + 1 + ahead < i)
            ;
        must_ok(xbegin());
        *x = i;
        must_rc(xend(), COMMITTED);
        word_store(&board->done, i);
    }
    env_detach();
}

/*
 * A follower that misses a wake-up sleeps until it looks by itself, after a second.  So each such
 * wait during which there was something to read is counted.
 */
START_TEST(no_wake_up_is_lost)
{
    struct xac_source s = {.dirfd = -1};
    struct xac_followed got;
    uint64_t commits = 0, waits = 0, lost = 0, seed = env_seed();
    pid_t pid;

    board->n = env_number("XAC_WAKES", 30000 / ENV_DEAR);
    board->kept = false;
    pid = proc_spawn(write_in_step, NULL);
    while (!file_exists(ENV_DIR "/xac-log.00000001"))
        proc_sleep_us(1000);
    proc_sleep_us(100000);
    begin(&s);
    while (commits < board->n && lost == 0) {
        must_ok(xac_source_next(&s, &got));
        if (got.blk == NULL) {
            double start = env_now();

            /* Up to as long as a commit takes: it comes before, between and behind our looks. */
            for (uint64_t i = rnd_below(&seed, 1 << 17); i > 0; i--)
                __asm__ volatile("");
            xac_source_wait(&s, 1000);
            waits++;
            lost += env_now() - start > 0.9 && word_load(&board->done) > commits;
        } else if (xac_block_commit(got.blk) != NULL) {
            word_store(&board->at, ++commits);
        }
    }
    printf("%llu commits, %llu waits, %llu lost wake-ups\n", (unsigned long long)commits,
           (unsigned long long)waits, (unsigned long long)lost);
    must_eq(lost, 0);
    must(waits > board->n / 20);
    proc_join(pid);
    xac_source_close(&s);
}
END_TEST

/* ---- Death of the reader ------------------------------------------------------------------- */

/* follow_from_board -- a child: goes on where the last one was killed. */
static void
follow_from_board(void *arg)
{
    struct xac_source s;
    struct xac_followed got;

    (void)arg;
    must_ok(xac_source_open(&s, ENV_DIR));
    must_ok(xac_source_seek(&s, (uint32_t)word_load(&board->generation),
                            word_load(&board->lsn), 0));
    for (;;) {
        must_ok(xac_source_next(&s, &got));
        if (got.blk == NULL) {
            word_store(&board->at, s.limit);
            xac_source_wait(&s, 50);
            continue;
        }
        /* Killed behind this: the same block again. */
        word_add(&board->commits, xac_block_commit(got.blk) != NULL);
        word_store(&board->generation, got.blk->generation);
        word_store(&board->lsn, got.blk->lsn + got.blk->length);
    }
}

START_TEST(killed_reader_is_followed_by_another)
{
    uint64_t seed = env_seed();
    pid_t writer[2], reader;
    uint64_t kills = 0;

    word_store(&board->generation, 1);
    word_store(&board->lsn, XAC_LSN_FIRST);
    for (int i = 0; i < 2; i++)
        writer[i] = proc_spawn(write_and_checkpoint, (void *)(intptr_t)i);
    while (!file_exists(ENV_DIR "/xac-log.00000001"))
        proc_sleep_us(1000);
    while (kills < 60) {
        reader = proc_spawn(follow_from_board, NULL);
        proc_sleep_us(rnd_below(&seed, 30000));
        proc_kill(reader);
        kills++;
    }
    word_store(&board->go, 1);
    for (int i = 0; i < 2; i++)
        proc_join(writer[i]);
    word_store(&board->at, 0);
    reader = proc_spawn(follow_from_board, NULL);
    for (int i = 0; i < 400; i++) {
        proc_sleep_us(20000);
        if (word_load(&board->at) == word_load(&board->lsn))
            break;
    }
    proc_kill(reader);
    printf("%llu commits, %llu read, %llu kills\n",
           (unsigned long long)word_load(&board->acknowledged),
           (unsigned long long)word_load(&board->commits), (unsigned long long)kills);
    must(word_load(&board->commits) >= word_load(&board->acknowledged));
    must(word_load(&board->commits) <= word_load(&board->acknowledged) + kills);
}
END_TEST

static Suite *
races_suite(void)
{
    Suite *s = suite_create("follow, races");
    TCase *t = env_tcase_with(s, "again", 200, setup);

    tcase_add_loop_test(t, recycled_segment_is_named_and_is_no_damage, 0, 3);
    tcase_add_test(t, reader_beside_recycling_sees_no_damage);
    t = env_tcase_with(s, "wakes", 600, setup);
    tcase_add_test(t, no_wake_up_is_lost);
    t = env_tcase_with(s, "death", 200, setup);
    tcase_add_test(t, killed_reader_is_followed_by_another);
    return s;
}

int
main(void)
{
    return env_main(races_suite());
}
