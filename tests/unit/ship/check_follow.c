/* SPDX-License-Identifier: MIT */
/*
 * check_follow.c -- following the log of an environment (libxac/log/follow.h, libxac/ship/source.h).
 *
 * GOAL    A follower is given each durable block once, in log order, whatever its writers do: many
 *         processes, large transactions, checkpoints, new segments, new generations with segments of
 *         other sizes, kill -9 of writers.  It is given nothing that is not durable.  Log that is
 *         missing or damaged is named.
 * METHOD  The follower is the test's own process, which takes no part in the environment.  It redoes
 *         in memory what it is given; that must be the mapped file in the end.  A digest of all blocks
 *         is compared with that of a walk through all segments that shares no code with it.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "follow_env.h"
#include "log/log_name.h"
#include "log/master.h"

/* write_some -- a child: commits, among them large ones, and checkpoints. */
static void
write_some(void *arg)
{
    uint64_t seed = board->seed + (uint64_t)(uintptr_t)arg * 1000;
    uint64_t *x = attach();

    for (uint64_t i = 0; i < board->n; i++) {
        uint64_t kind = rnd_below(&seed, 40);

        (void)change(x, &seed, board->large && kind > 37 ? 2 * PAGES : 1 + kind % 3);
        if (kind == 1)
            must_ok(xCheckpoint());
    }
    env_detach();
}

/* ---- Another reader ------------------------------------------------------------------- */

/* read_log -- bytes of the log from segments of one size; false: it has fewer. */
static bool
read_log(uint64_t segment_bytes, uint64_t lsn, void *to, size_t n)
{
    uint8_t *p = (uint8_t *)to;

    while (n > 0) {
        char path[64] = ENV_DIR "/";
        uint64_t at = lsn % segment_bytes;
        size_t here = n < segment_bytes - at ? n : (size_t)(segment_bytes - at);

        xac_log_segment_name(path + strlen(path), xac_log_segment_of(lsn, segment_bytes));
        if (!file_exists(path) || file_size(path) != XAC_SEGMENT_HEADER + segment_bytes)
            return false;
        file_read(path, XAC_SEGMENT_HEADER + at, p, here);
        p += here;
        lsn += here;
        n -= here;
    }
    return true;
}

/* block_in_log -- the valid block at an LSN, of this generation or, if that is 0, of any; NULL. */
static struct xac_block *
block_in_log(const struct xac_master_slot *m, uint64_t segment_bytes, uint32_t generation,
             uint64_t lsn)
{
    struct xac_log_id id = {.generation = generation};
    struct xac_block head, *blk;

    memcpy(&id.identity, m->identity, sizeof id.identity);
    if (!read_log(segment_bytes, lsn, &head, sizeof head))
        return NULL;
    if (generation == 0)
        id.generation = head.generation;
    if (!xac_block_head_ok(&head, id, lsn))
        return NULL;
    blk = (struct xac_block *)malloc(head.length);
    if (read_log(segment_bytes, lsn, blk, head.length) && xac_block_body_ok(blk))
        return blk;
    free(blk);
    return NULL;
}

/* walk -- digest of all blocks of a log that has been kept, in segments of one size. */
static uint64_t
walk(uint64_t segment_bytes, uint64_t *blocksp)
{
    struct xac_master_slot m;
    int fd = open(ENV_DIR, O_RDONLY | O_DIRECTORY);
    uint64_t lsn = XAC_LSN_FIRST, digest = 0;
    uint32_t generation = 0;

    must_ok(xac_master_read(fd, &m));
    close(fd);
    for (*blocksp = 0;; ++*blocksp) {
        struct xac_block *blk = block_in_log(&m, segment_bytes, generation, lsn);
        uint64_t next = (lsn + 4095) / 4096 * 4096;

        if (blk == NULL)
            blk = block_in_log(&m, segment_bytes, 0, next);
        if (blk == NULL)
            return digest;
        must(blk->generation >= generation);
        generation = blk->generation;
        digest = chain_digest(digest, blk);
        lsn = blk->lsn + blk->length;
        free(blk);
    }
}

/* ---- R01: cursor against the whole log -------------------------------------------------- */

/* run_round -- writers, of which some may be killed, while the follower reads. */
static void
run_round(struct xac_source *s, struct image *im, int round)
{
    pid_t pid[WRITERS];
    bool kills = round % 3 == 1;
    int left = WRITERS;

    board->seed = env_seed() + (uint64_t)round * 100000;
    board->n = 60;
    board->large = round % 2 == 0;
    for (int i = 0; i < WRITERS; i++)
        pid[i] = proc_spawn(write_some, (void *)(intptr_t)i);
    while (left > 0) {
        int status;

        if (s->follow.buf == NULL && file_exists(ENV_DIR "/xac.master"))
            begin(s);
        if (s->follow.buf != NULL) {
            (void)drain(s, im);
            xac_source_wait(s, 20);
        }
        if (kills && rnd_below(&board->seed, 8) == 0 && pid[left % WRITERS] != 0)
            (void)kill(pid[left % WRITERS], SIGKILL);
        for (int i = 0; i < WRITERS; i++) {
            if (pid[i] == 0 || waitpid(pid[i], &status, WNOHANG) != pid[i])
                continue;
            must(status == 0 || (kills && WIFSIGNALED(status)));
            pid[i] = 0;
            left--;
        }
    }
}

/* settle -- a participant comes and leaves: nothing is left to redo. */
static void
settle(void *arg)
{
    (void)arg;
    (void)attach();
    env_detach();
}

START_TEST(cursor_hands_out_the_whole_log)
{
    struct xac_source s = {.dirfd = -1};
    struct image im;
    uint64_t blocks, digest;

    image_init(&im);
    for (int round = 0; round < 9; round++)
        run_round(&s, &im, round);
    proc_run(settle, NULL);
    (void)drain(&s, &im);
    must_be_file(&im);
    digest = walk(board->segment_bytes, &blocks);
    must_eq(im.blocks, blocks);
    must(im.digest == digest);
    must(im.commits >= word_load(&board->acknowledged));
    must(im.commits <= word_load(&board->acknowledged) + 9 * WRITERS);
    printf("%llu blocks, %llu commits, %llu data files, %llu generations, %llu bytes\n",
           (unsigned long long)im.blocks, (unsigned long long)im.commits,
           (unsigned long long)im.datafiles, (unsigned long long)im.generations,
           (unsigned long long)im.end);
    must(im.generations >= 9 && im.datafiles > 5);
    must(im.end > 20 * board->segment_bytes);
    xac_source_close(&s);
    free(im.page);
}
END_TEST

/* Segments of another size after some rounds; sizes go up and down. */
START_TEST(cursor_goes_on_in_segments_of_another_size)
{
    static const uint64_t sizes[] = {64, 128, 64, 256, 256, 64};
    struct xac_source s = {.dirfd = -1};
    struct image im, again;

    board->cursor_segment_bytes = sizes[0] * KIB;
    image_init(&im);
    for (int round = 0; round < 6; round++) {
        board->segment_bytes = sizes[round] * KIB;
        run_round(&s, &im, round);
        if (round % 2 != 0)
            proc_run(settle, NULL); /* a generation without a block */
    }
    proc_run(settle, NULL);
    (void)drain(&s, &im);
    must_be_file(&im);
    xac_source_close(&s);
    begin(&s);
    image_init(&again);
    (void)drain(&s, &again);
    must(im.digest == again.digest && im.blocks == again.blocks);
    must(im.generations >= 6);
    xac_source_close(&s);
    free(im.page);
    free(again.page);
}
END_TEST

/* ---- At rest ----------------------------------------------------------------------------- */

static void
write_and_die(void *arg)
{
    uint64_t *x = attach(), seed = board->seed;

    (void)arg;
    for (uint64_t i = 0; i < board->n; i++)
        (void)change(x, &seed, 2);
    (void)raise(SIGKILL);
}

static _Atomic uint64_t n_syncs;

static int
counted_sync(int fd)
{
    word_add(&n_syncs, 1);
    return fdatasync(fd);
}

/* Everything that was acknowledged is there, though all processes have been killed and nobody has
   recovered; and the log goes on behind the recovery. */
START_TEST(log_of_a_crashed_environment_is_read_to_its_end)
{
    struct xac_source s = {.dirfd = -1};
    struct image im;

    image_init(&im);
    xac_sys.fdatasync = counted_sync;
    for (int round = 0; round < 4; round++) {
        board->seed = env_seed() + (uint64_t)round;
        board->n = 30 + (uint64_t)round;
        (void)proc_wait(proc_spawn(write_and_die, NULL));
        word_store(&n_syncs, 0);
        if (round == 0)
            begin(&s);
        (void)drain(&s, &im);
        must(word_load(&n_syncs) > 0); /* what is handed out is durable */
        must_eq(im.commits, word_load(&board->acknowledged));
        must_eq(drain(&s, &im), 0);
        xac_source_wait(&s, 0);
    }
    must_eq(im.generations, 4);
    proc_run(settle, NULL);
    (void)drain(&s, &im);
    must_be_file(&im);
    xac_source_close(&s);
    free(im.page);
}
END_TEST

static int (*plain_openat)(int dirfd, const char *path, int flags, mode_t mode);

/* open_late -- the follower has seen that somebody is attached; before it has the region, he leaves. */
static int
open_late(int dirfd, const char *path, int flags, mode_t mode)
{
    size_t n = strlen(path);

    if (n > 8 && strcmp(path + n - 8, ".control") == 0 && word_load(&board->go) == 0) {
        word_store(&board->go, 1);
        proc_await(&board->at, 1, 20);
    }
    return plain_openat(dirfd, path, flags, mode);
}

/* write_and_leave -- a child, when it is told to. */
static void
write_and_leave(void *arg)
{
    uint64_t *x = attach(), seed = board->seed;

    (void)arg;
    for (uint64_t i = 0; i < board->n; i++)
        (void)change(x, &seed, 2);
    word_store(&board->done, 1);
    proc_await(&board->go, 1, 20);
    env_detach();
    word_store(&board->at, 1);
}

START_TEST(the_last_participant_may_leave_meanwhile)
{
    struct xac_source s;
    struct image im;
    pid_t pid;

    board->n = 20;
    pid = proc_spawn(write_and_leave, NULL);
    proc_await(&board->done, 1, 20);
    image_init(&im);
    plain_openat = xac_sys.openat;
    xac_sys.openat = open_late;
    begin(&s);
    (void)drain(&s, &im);
    must_eq(word_load(&board->at), 1);
    proc_join(pid);
    must_eq(im.commits, 20);
    must_be_file(&im);
    xac_source_close(&s);
    free(im.page);
}
END_TEST

/* A position that the log does not have yet, and places that are none. */
START_TEST(places_that_are_none_are_refused)
{
    struct xac_source s;

    board->n = 5;
    (void)proc_wait(proc_spawn(write_and_die, NULL));
    must_refuse(xac_source_open(&s, "nowhere"), ENOENT);
    xac_source_close(&s);
    must_ok(mkdir("empty", 0777));
    must_refuse(xac_source_open(&s, "empty"), XAC_ENOTENV);
    xac_source_close(&s);
    must_ok(xac_source_open(&s, ENV_DIR));
    must_refuse(xac_source_seek(&s, 1, 4097, 0), EINVAL);
    must_refuse(xac_source_seek(&s, 1, 4096, 5000), EINVAL);
    must_refuse(xac_source_seek(&s, 99, 4096, 0), EINVAL);
    xac_source_close(&s);
    must_ok(xac_source_open(&s, ENV_DIR));
    must_refuse(xac_source_seek(&s, s.master.generation, 4096 * 4096, 0), EINVAL);
    xac_source_close(&s);
}
END_TEST

/* ---- Only what is durable ----------------------------------------------------------------- */

static int
slow_sync(int fd)
{
    if (word_load(&board->at) != 0)
        proc_await(&board->go, 1, 60);
    return fdatasync(fd);
}

/* write_slowly -- a child: the last commit waits in its sync until it is told to go on. */
static void
write_slowly(void *arg)
{
    uint64_t *x, seed = board->seed;

    (void)arg;
    xac_sys.fdatasync = slow_sync;
    x = attach();
    (void)change(x, &seed, 2);
    word_store(&board->at, 1);
    (void)change(x, &seed, 2);
    word_store(&board->done, 1);
    proc_sleep_us(100000000);
}

START_TEST(block_that_is_not_synced_is_not_handed_out)
{
    struct xac_source s;
    struct image im;
    pid_t pid = proc_spawn(write_slowly, NULL);
    uint64_t path_lsn, before;
    struct xac_block head = {.magic = 0};

    image_init(&im);
    proc_await(&board->at, 1, 20);
    begin(&s);
    (void)drain(&s, &im);
    must_eq(im.commits, 1);
    path_lsn = im.end;
    for (int i = 0; i < 500 && head.magic != XAC_BLOCK_MAGIC; i++) {
        proc_sleep_us(10000); /* it is written */
        must(read_log(board->segment_bytes, path_lsn, &head, sizeof head));
    }
    must_eq(head.magic, XAC_BLOCK_MAGIC);
    before = im.blocks;
    for (int i = 0; i < 5; i++) {
        must_eq(drain(&s, &im), 0);
        xac_source_wait(&s, 20);
    }
    word_store(&board->go, 1);
    proc_await(&board->done, 1, 20);
    must(drain(&s, &im) > 0);
    must_eq(im.commits, 2);
    must(im.blocks > before);
    proc_kill(pid);
    xac_source_close(&s);
    free(im.page);
}
END_TEST

/* ---- Log that is missing ------------------------------------------------------------------ */

/* A segment, at the cursor or further on; the data files, and a wrong one. */
START_TEST(missing_log_is_named)
{
    struct xac_source s;
    struct xac_followed got;
    int rc;

    board->n = 40;
    board->large = true;
    for (int round = 0; round < 3; round++) {
        board->seed = env_seed() + (uint64_t)round;
        proc_run(write_some, NULL);
    }
    must_ok(system(_i == 0   ? "rm " ENV_DIR "/xac-log.00000001"
                   : _i == 1 ? "rm " ENV_DIR "/xac-log.00000004"
                   : _i == 2 ? "rm " ENV_DIR "/xac-data.*"
                             : "for f in " ENV_DIR "/xac-data.*; do printf x |"
                               "dd of=$f bs=1 seek=500 conv=notrunc status=none; done"));
    must_ok(xac_source_open(&s, ENV_DIR));
    rc = xac_source_seek(&s, 1, XAC_LSN_FIRST, 0);
    for (int i = 0; rc == 0 && i < 100000; i++) {
        rc = xac_source_next(&s, &got);
        must(rc != 0 || got.blk != NULL);
    }
    must_rc(rc, _i < 3 ? XAC_ECUTOFF : XAC_EDAMAGED);
    must(strstr(xac_last_error(), _i < 3 ? "begin anew from a backup" : "xac-data.")
         != NULL);
    xac_source_close(&s);
}
END_TEST

/* ---- Damage ------------------------------------------------------------------------------ */

static void
write_and_stay(void *arg)
{
    uint64_t *x = attach(), seed = board->seed;

    (void)arg;
    for (uint64_t i = 0; i < board->n; i++)
        (void)change(x, &seed, 2);
    word_store(&board->done, 1);
    proc_sleep_us(100000000);
}

/* A block that is known to be durable, and is not right. */
START_TEST(damage_below_durable_is_named)
{
    struct xac_source s;
    struct xac_followed got;
    pid_t pid;
    uint64_t byte, lsn;
    char path[64];
    int rc = 0;

    board->n = 20;
    pid = proc_spawn(write_and_stay, NULL);
    proc_await(&board->done, 1, 20);
    begin(&s);
    for (int i = 0; i < 6; i++)
        must_ok(xac_source_next(&s, &got));
    lsn = s.follow.lsn + 100;
    xac_source_close(&s);
    (void)snprintf(path, sizeof path, ENV_DIR "/xac-log.%08llu",
                   (unsigned long long)xac_log_segment_of(lsn, board->segment_bytes));
    byte = file_u64(path, XAC_SEGMENT_HEADER + lsn % board->segment_bytes) ^ 1;
    file_write(path, XAC_SEGMENT_HEADER + lsn % board->segment_bytes, &byte, sizeof byte);
    begin(&s);
    for (int i = 0; i < 6; i++)
        must_ok(xac_source_next(&s, &got));
    rc = xac_source_next(&s, &got);
    must_rc(rc, XAC_EDAMAGED);
    must(got.blk == NULL);
    must(strstr(xac_last_error(), "xac-log.") != NULL);
    proc_kill(pid);
    xac_source_close(&s);
}
END_TEST

static Suite *
follow_suite(void)
{
    Suite *s = suite_create("follow");
    TCase *t = env_tcase_with(s, "whole", 300, setup);

    tcase_add_test(t, cursor_hands_out_the_whole_log);
    tcase_add_test(t, cursor_goes_on_in_segments_of_another_size);
    t = env_tcase_with(s, "rest", 100, setup);
    tcase_add_test(t, log_of_a_crashed_environment_is_read_to_its_end);
    tcase_add_test(t, the_last_participant_may_leave_meanwhile);
    tcase_add_test(t, places_that_are_none_are_refused);
    tcase_add_test(t, block_that_is_not_synced_is_not_handed_out);
    tcase_add_loop_test(t, missing_log_is_named, 0, 4);
    tcase_add_test(t, damage_below_durable_is_named);
    return s;
}

int
main(void)
{
    return env_main(follow_suite());
}
