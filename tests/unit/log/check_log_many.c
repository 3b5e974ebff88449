/* SPDX-License-Identifier: MIT */
/*
 * check_log_many.c -- unit tests of libxac/log/log.c and futex.c: threads and processes that
 * commit together, and some that are killed.
 *
 * GOAL    every acknowledged block is on disk, in log order, also if processes died meanwhile; one
 *         sync serves many; a failed one is told to all.
 * METHOD  log_world.h; kills at random times, and before, within and after every call.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <xac.h>

#include "log/log_segment.h"

#include "tests/common/log_world.h"

/* work -- commit until `rounds` are done, an error, or told to stop; 0 rounds: no end. */
static int
work(struct xac_log *log, int worker, uint64_t rounds)
{
    uint64_t rng = world_seed + (uint64_t)worker + 1000 * w->serial[worker];
    int rc = 0;

    for (uint64_t i = 0; rc == 0 && (rounds == 0 || i < rounds); i++) {
        if (world_get(w->stop) != 0)
            break;
        rc = world_commit(log, worker, ++w->serial[worker], &rng);
        pthread_testcancel();
    }
    return rc;
}

/* take_over -- finish what a dead predecessor was publishing from the same descriptor. */
static void
take_over(struct xac_log *log)
{
    sigset_t old;

    xac_signals_block(&old);
    if (xac_lock_acquire(&w->publish) == XAC_LOCK_OWNER_DIED) {
        if (w->publishing != 0)
            world_finish(log);
        w->redone++;
        xac_lock_repaired(&w->publish);
    }
    xac_lock_release(&w->publish);
    xac_signals_restore(&old);
}

/* spawn -- a child that works, with the plan as it is now. */
static pid_t
spawn(int worker, uint64_t rounds)
{
    struct xac_log log;
    pid_t pid = fork();

    must(pid >= 0);
    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    xac_lock_forget();
    plan.rng += (uint64_t)getpid();
    must(xac_log_attach(&log, &w->log, w->ring, dir_fd) == 0);
    take_over(&log);
    (void)work(&log, worker, rounds);
    xac_log_detach(&log);
    _exit(0);
}

/* join -- ret true if the child ended by itself, false if by SIGKILL. */
static bool
join(pid_t pid)
{
    int status;

    must(waitpid(pid, &status, 0) == pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return false;
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return true;
}

static double
now_s(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* settle -- in the end: what was appended becomes durable, and all is there. */
static uint64_t
settle(void)
{
    take_over(&the_log);
    must(xac_log_wait_durable(&the_log, world_get(w->log.tail)) == 0);
    xac_log_assert(&the_log);
    return world_expect();
}

/*
 * Waiters that missed a wake-up would sleep until they look by themselves, after 50 ms;
 * then a sync would take that long on average.
 */
START_TEST(processes_share_syncs)
{
    uint64_t rounds = 300;
    pid_t pid[4];
    uint64_t syncs;
    double start = now_s();
    double elapsed;

    must(world_create(4 * SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    plan.sync_us = 300;
    for (int i = 0; i < 4; i++)
        pid[i] = spawn(i, rounds);
    for (int i = 0; i < 4; i++)
        must(join(pid[i]));
    elapsed = now_s() - start;
    syncs = world_get(w->log.n_syncs);
    must(settle() == 4 * rounds);
    must(world_get(w->acked) == 4 * rounds);
    (void)printf("%llu commits, %llu syncs, %.0f us per sync\n",
                 (unsigned long long)(4 * rounds), (unsigned long long)syncs,
                 elapsed / (double)syncs * 1e6);
    must(syncs * 3 < 4 * rounds * 2);
    must(elapsed < 0.02 * (double)syncs);
}
END_TEST

static void *
thread_main(void *arg)
{
    return work(&the_log, (int)(intptr_t)arg, 400) == 0 ? NULL : arg;
}

START_TEST(threads_share_syncs)
{
    pthread_t thread[8];

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    plan.sync_us = 100;
    for (intptr_t i = 0; i < 8; i++)
        must(pthread_create(&thread[i], NULL, thread_main, (void *)i) == 0);
    for (int i = 0; i < 8; i++) {
        void *result;

        must(pthread_join(thread[i], &result) == 0);
        must(result == NULL);
    }
    must(settle() == 8 * 400);
    must(world_get(w->log.n_syncs) < 8 * 400);
}
END_TEST

/* The address sanitizer fails by itself when a cancelled thread exits. */
#ifndef __SANITIZE_ADDRESS__
START_TEST(cancelled_thread_leaves_no_lock)
{
    uint64_t rng = world_seed;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    plan.sync_us = 200;
    for (int i = 0; i < 100; i++) {
        pthread_t thread;

        must(pthread_create(&thread, NULL, thread_main, NULL) == 0);
        world_sleep_us((unsigned)world_rnd(&rng, 3000));
        (void)pthread_cancel(thread);
        must(pthread_join(thread, NULL) == 0);
        must(xac_lock_try(&w->log.flush) == XAC_LOCK_OK);
        xac_lock_release(&w->log.flush);
        must(xac_lock_try(&w->log.prepare) == XAC_LOCK_OK);
        xac_lock_release(&w->log.prepare);
    }
    (void)settle();
}
END_TEST
#endif

START_TEST(killed_processes_lose_nothing_acknowledged)
{
    const int n = 4;
    pid_t pid[4];
    uint64_t rng = world_seed + 5;
    uint64_t blocks;
    double end = now_s() + 4;
    int kills = 0;

    world_segment_bytes = _i == 0 ? SEGMENT_BYTES : 256 * SEGMENT_BYTES; /* which grow */
    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    plan.sync_us = 100;
    for (int i = 0; i < n; i++)
        pid[i] = spawn(i, 0);
    while (now_s() < end && world_get(w->log.tail) < STREAM_BYTES - (1 << 20)) {
        int i = (int)world_rnd(&rng, (uint64_t)n);

        world_sleep_us((unsigned)world_rnd(&rng, 4000));
        must(kill(pid[i], SIGKILL) == 0);
        must(!join(pid[i]));
        kills++;
        pid[i] = spawn(i, 0);
    }
    world_set(w->stop, 1);
    for (int i = 0; i < n; i++)
        must(join(pid[i]));
    blocks = settle();
    (void)printf("%d kills, %llu publishes redone, %llu blocks, %llu acknowledged\n",
                 kills, (unsigned long long)w->redone, (unsigned long long)blocks,
                 (unsigned long long)world_get(w->acked));
    must(world_get(w->acked) <= blocks && world_get(w->acked) > 100);
    must(blocks <= world_get(w->acked) + (uint64_t)kills);
}
END_TEST

/* Dead in the middle of the copy: nobody has seen it; the survivor copies it again. */
START_TEST(killed_appender_is_finished)
{
    uint64_t rng = world_seed;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    for (int round = 0; round < 100; round++) {
        pid_t pid = fork();

        must(pid >= 0);
        if (pid == 0) {
            struct xac_block *blk = (struct xac_block *)(void *)w->desc[0].block;
            uint64_t at;

            world_block(blk, 0, ++w->serial[0], &rng, RECORD_MAX);
            must(xac_log_make_room(&the_log, blk->length) == 0);
            must(xac_lock_acquire(&w->publish) == XAC_LOCK_OK);
            xac_block_seal(blk, world_get(w->log.tail), 0, w->commit + 1);
            w->publishing = 1;
            at = blk->lsn % SEGMENT_BYTES;
            if (at + blk->length <= SEGMENT_BYTES)
                memcpy(w->ring + at, blk, world_rnd(&rng, blk->length));
            if (round % 2 == 0)
                xac_log_append(&the_log, blk);
            (void)raise(SIGKILL);
        }
        must(!join(pid));
        must(world_commit(&the_log, 1, ++w->serial[1], &rng) == 0);
        (void)world_rnd(&rng, 2);
    }
    must(w->redone == 100);
    must(settle() == 200);
}
END_TEST

/* Killed before, within and after each write and sync of the log. */
START_TEST(killed_flusher_is_followed)
{
    int killed = 0;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    for (int round = 0; round < 60; round++) {
        pid_t victim;
        pid_t other[2];

        world_plan_death(round % 2 == 0 ? CALL_PWRITE : CALL_FDATASYNC, XAC_LOG_PREFIX,
                         (uint64_t)round / 6, round / 2 % 3);
        victim = spawn(0, 40);
        plan.kill = CALL_NONE;
        other[0] = spawn(1, 20);
        other[1] = spawn(2, 20);
        killed += !join(victim);
        must(join(other[0]) && join(other[1]));
    }
    must(killed > 30);
    must(world_get(w->acked) >= 60 * 40);
    must(settle() <= world_get(w->acked) + 60);
}
END_TEST

/* Killed before and after each call in making a segment. */
START_TEST(killed_preparer_is_followed)
{
    static const enum call calls[] = {CALL_OPEN,  CALL_FALLOCATE, CALL_PWRITE,
                                      CALL_FSYNC, CALL_RENAME,    CALL_UNLINK};

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    for (int round = 0; round < 14; round++) {
        world_plan_death(round < 12 ? calls[round / 2] : CALL_FSYNC,
                         round < 12 ? XAC_LOG_NEW_NAME : ".", 0, round % 2 == 0 ? 0 : 2);
        must(!join(spawn(0, 0)));
        plan.kill = CALL_NONE;
        must(join(spawn(1, 100)));
        must(world_count_files(XAC_LOG_NEW_NAME) == 0);
    }
    must(settle() <= world_get(w->acked) + 14);
}
END_TEST

START_TEST(failed_sync_is_told_to_all_processes)
{
    const int n = 6;
    pid_t pid[6];

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    plan.sync_us = 2000;
    plan.short_writes = _i % 2 != 0;
    for (int i = 1; i < n; i++)
        pid[i] = spawn(i, 0);
    while (world_get(w->acked)
           == 0) /* else the failure may come before anything is durable */
        world_sleep_us(1000);
    world_plan_failure(_i % 2 == 0 ? CALL_FDATASYNC : CALL_PWRITE_REST, XAC_LOG_PREFIX,
                       10 + (uint64_t)_i, 1, EIO);
    pid[0] = spawn(0, 0);
    for (int i = 0; i < n; i++)
        must(join(pid[i]));
    must(world_get(w->log.poisoned) == EIO);
    must(world_get(w->acked) > 0);
    must(world_expect() == world_get(w->acked));
    must(xac_log_wait_durable(&the_log, world_get(w->log.tail)) == XAC_EPOISONED);
}
END_TEST

static void *
commit_main(void *arg)
{
    int worker = (int)(intptr_t)arg;
    uint64_t rng = world_seed;

    return (void *)(intptr_t)world_commit(&the_log, worker, 1, &rng);
}

/* Poison from elsewhere, while one thread is in a sync and another sleeps. */
START_TEST(poison_wakes_sleepers_and_stops_the_flush)
{
    pthread_t flusher;
    pthread_t sleeper;
    double start;
    void *result;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    plan.sync_us = 1000 * 1000;
    start = now_s();
    must(pthread_create(&flusher, NULL, commit_main, (void *)0) == 0);
    while (world_get(w->log.n_writes) == 0)
        world_sleep_us(1000);
    must(pthread_create(&sleeper, NULL, commit_main, (void *)1) == 0);
    world_sleep_us(200 * 1000);
    xac_log_poison(&the_log, EDOM);
    xac_log_poison(&the_log, EIO);
    must(pthread_join(sleeper, &result) == 0);
    must((int)(intptr_t)result == XAC_EPOISONED);
    must(now_s() < start + 0.9);
    must(pthread_join(flusher, &result) == 0);
    must((int)(intptr_t)result == XAC_EPOISONED);
    must(world_get(w->log.poisoned) == EDOM);
    must(world_get(w->log.durable) == XAC_LSN_FIRST);
}
END_TEST

/* A sleeper wakes when the sync of another is over, and not only at its next look 50 ms later. */
START_TEST(sync_wakes_sleepers_at_once)
{
    double least_s = 1;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    plan.sync_us = 60 * 1000;
    for (int round = 0; round < 8; round++) {
        uint64_t n_writes = world_get(w->log.n_writes), n_syncs;
        pthread_t flusher, sleeper;
        double start;

        must(pthread_create(&flusher, NULL, commit_main, (void *)0) == 0);
        while (world_get(w->log.n_writes) == n_writes)
            world_sleep_us(100);
        /* It sleeps while the first sync is under way, and then makes the second one. */
        must(pthread_create(&sleeper, NULL, commit_main, (void *)1) == 0);
        must(pthread_join(flusher, NULL) == 0);
        start = now_s();
        n_syncs = world_get(w->log.n_syncs);
        must(pthread_join(sleeper, NULL) == 0);
        if (world_get(w->log.n_syncs) == n_syncs + 1 && now_s() - start < least_s)
            least_s = now_s() - start;
    }
    printf("%.1f ms for a sync of 60 ms\n", least_s * 1e3);
    must(least_s < 0.085); /* 0.1 if it looks again 100 ms after it began to sleep */
}
END_TEST

static Suite *
log_suite(void)
{
    Suite *s = suite_create("log, many");
    TCase *many = tcase_create("many");

    tcase_add_checked_fixture(many, world_setup, world_teardown);
    tcase_set_timeout(many, 120);
    tcase_add_test(many, processes_share_syncs);
    tcase_add_test(many, threads_share_syncs);
#ifndef __SANITIZE_ADDRESS__
    tcase_add_test(many, cancelled_thread_leaves_no_lock);
#endif
    tcase_add_loop_test(many, killed_processes_lose_nothing_acknowledged, 0, 2);
    tcase_add_test(many, killed_appender_is_finished);
    tcase_add_test(many, killed_flusher_is_followed);
    tcase_add_test(many, killed_preparer_is_followed);
    tcase_add_loop_test(many, failed_sync_is_told_to_all_processes, 0, 6);
    tcase_add_test(many, poison_wakes_sleepers_and_stops_the_flush);
    tcase_add_test(many, sync_wakes_sleepers_at_once);
    suite_add_tcase(s, many);
    return s;
}

int
main(void)
{
    return world_main(log_suite());
}
