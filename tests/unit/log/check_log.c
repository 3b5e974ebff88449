/* SPDX-License-Identifier: MIT */
/*
 * check_log.c -- unit tests of libxac/log/log.c and log_segment.c: one process, and failures.
 *
 * GOAL    what was acknowledged is on disk, in log order; after a failed write or sync
 *         nothing is acknowledged; a full disk only waits.
 * METHOD  log_world.h; the files of the log are read back.  check_log_many.c has the
 *         tests with several processes.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xac.h>

#include "base/digest.h"
#include "log/log_segment.h"
#include "log/wakes.h"

#include "tests/common/log_world.h"

/* ---- tests: one process ----------------------------------------------------------- */

START_TEST(append_and_flush_come_back)
{
    uint64_t rng = world_seed;
    uint64_t start = _i == 0 ? XAC_LSN_FIRST : 5 * SEGMENT_BYTES + 4096 * (uint64_t)_i;

    plan.short_writes = _i == 2;
    plan.interrupts = _i == 2;
    must(world_create(SEGMENT_BYTES >> _i, start) == 0);
    for (uint64_t i = 1; i <= 2000; i++)
        must(world_commit(&the_log, (int)world_rnd(&rng, 8), i, &rng) == 0);
    must(world_expect() == 2000);
    must(world_get(w->log.tail) > start + 10 * SEGMENT_BYTES);
    must(world_count_files(XAC_LOG_NEW_NAME) == 0);
    xac_log_detach(&the_log);
}
END_TEST

/* A lone committer's write is begun early; beside another's it is not; and both are
   written once. */
START_TEST(flush_start_is_for_the_lone)
{
    uint64_t rng = world_seed;
    struct xac_block *blk = (struct xac_block *)(void *)w->desc[0].block;
    uint64_t first, second, writes;

    ck_assert_int_eq(world_create(1 << 20, XAC_LSN_FIRST), 0);
    ck_assert(!xac_log_flush_start(&the_log));
    world_block(blk, 0, 1, &rng, 600);
    ck_assert_int_eq(xac_log_make_room(&the_log, blk->length), 0);
    first = world_publish(&the_log, 0);
    writes = world_get(w->log.n_writes);
    ck_assert(xac_log_flush_start(&the_log));
    ck_assert_uint_eq(world_get(w->started), 1);
    ck_assert_uint_lt(world_get(w->log.durable), first);
    ck_assert_uint_eq(world_get(w->log.written), first);
    world_block(blk, 0, 2, &rng, 600);
    second = world_publish(&the_log, 0); /* joins: one sync for both */
    ck_assert_int_eq(xac_log_flush_end(&the_log, first), 0);
    ck_assert_uint_eq(world_get(w->log.durable), second);
    ck_assert_uint_eq(world_get(w->log.n_syncs), 1);
    ck_assert_uint_eq(world_get(w->log.n_writes), writes + 2);
    ck_assert_uint_eq(world_expect(), 2);
    world_block(blk, 0, 3, &rng, 600);
    (void)world_publish(&the_log, 0);
    ck_assert(!xac_log_flush_start(&the_log)); /* the last batch had two */
    ck_assert(xac_lock_none_held());
}
END_TEST

/* has_block -- does the file have a whole block of this log at an LSN? */
static bool
has_block(uint64_t lsn)
{
    const struct xac_block *blk =
        (const struct xac_block *)(const void *)(w->cache + lsn);

    return blk->lsn == lsn && blk->length <= STREAM_BYTES - lsn && xac_block_body_ok(blk);
}

/* What the segments have is known before it is synced: whole blocks, and those who go ahead are woken. */
START_TEST(written_is_what_the_segments_have)
{
    xac_shared _Atomic uint32_t *word = &w->log.followers.written_wakes;
    struct xac_block *blk = (struct xac_block *)(void *)w->desc[0].block;
    uint64_t rng = world_seed, before, first, second;
    uint32_t seen;

    /* 1: the first block goes over the border of a segment, whose sync fails. */
    must(world_create(4 * SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    while (_i == 1
           && SEGMENT_BYTES - world_get(w->log.tail) % SEGMENT_BYTES > RECORD_MAX / 2)
        must(world_commit(&the_log, 0, world_get(w->acked) + 1, &rng) == 0);
    before = world_get(w->log.durable);
    must(world_get(w->log.written) == before);
    do {
        world_block(blk, 0, 1, &rng, RECORD_MAX);
    } while (_i == 1 && blk->length <= SEGMENT_BYTES - before % SEGMENT_BYTES);
    must(xac_log_make_room(&the_log, blk->length) == 0);
    first = world_publish(&the_log, 0);
    world_block(blk, 0, 2, &rng, 600);
    must(xac_log_make_room(&the_log, blk->length) == 0);
    second = world_publish(&the_log, 0);
    while (!xac_wakes_is_announced(word, seen = xac_wakes_read(word)))
        ;
    world_plan_failure(_i == 2 ? CALL_PWRITE_REST : CALL_FDATASYNC, XAC_LOG_PREFIX, 0, 1,
                       EIO);
    plan.short_writes = _i == 2;
    must(xac_log_wait_durable(&the_log, second) == XAC_EPOISONED);
    must(world_get(w->log.durable) == before);
    must(world_get(w->log.written) == (_i == 0 ? second : before));
    must((xac_wakes_read(word) != seen) == (_i == 0));
    must(_i != 0 || (has_block(before) && has_block(first)));
    xac_log_assert(&the_log);
}
END_TEST

/* Nobody waits: rings of blocks go to disk because they are full; larger than a segment,
   so that one flush touches several. */
START_TEST(make_room_flushes_a_full_ring)
{
    uint64_t rng = world_seed;
    uint64_t syncs;

    must(world_create(4 * SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    for (uint64_t i = 1; i <= 3000; i++) {
        struct xac_block *blk = (struct xac_block *)(void *)w->desc[0].block;

        world_block(blk, 0, i, &rng, RECORD_MAX);
        must(xac_log_make_room(&the_log, blk->length) == 0);
        must(world_publish(&the_log, 0) != 0);
        xac_log_assert(&the_log);
    }
    must(xac_log_wait_durable(&the_log, world_get(w->log.tail)) == 0);
    must(world_expect() == 3000);
    syncs = world_get(w->log.n_syncs);
    must(syncs < 3000 / 5);
    must(plan.n[CALL_FDATASYNC] == syncs);
}
END_TEST

START_TEST(append_twice_is_append_once)
{
    struct xac_block *blk = (struct xac_block *)(void *)w->desc[0].block;
    uint64_t rng = world_seed;
    uint64_t end;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    world_block(blk, 0, 1, &rng, 2000);
    must(xac_log_make_room(&the_log, blk->length) == 0);
    end = world_publish(&the_log, 0);
    must(end != 0);
    must(world_commit(&the_log, 1, 1, &rng) == 0);
    blk->records_check++;
    xac_log_append(&the_log, blk);
    must(world_get(w->log.tail) > end);
    must(world_commit(&the_log, 1, 2, &rng) == 0);
    must(world_expect() == 3);
}
END_TEST

START_TEST(create_continues_in_existing_segments)
{
    uint64_t rng = world_seed;
    uint64_t start;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    for (uint64_t i = 1; i <= 300; i++)
        must(world_commit(&the_log, 0, i, &rng) == 0);
    start = (world_get(w->log.tail) + 4095) & ~UINT64_C(4095);
    xac_log_detach(&the_log);
    plan.n[CALL_RENAME] = 0;
    must(world_create(SEGMENT_BYTES, start) == 0);
    must(plan.n[CALL_RENAME] == 0);
    w->commit = 0;
    for (uint64_t i = 1; i <= 300; i++)
        must(world_commit(&the_log, 0, i, &rng) == 0);
    must(world_expect() == 300);
}
END_TEST

START_TEST(create_refuses_what_is_in_the_way)
{
    static const struct {
        size_t offset;
        uint8_t value;
        bool reseal;
        int error;
    } cases[] = {{0, 'Y', true, XAC_EDAMAGED},  {8, 1, true, XAC_EVERSION},
                 {12, 1, true, XAC_EPAGESIZE},  {16, 'X', true, XAC_EFOREIGN},
                 {31, 'X', true, XAC_EFOREIGN}, {32, 2, true, XAC_EDAMAGED},
                 {42, 2, true, XAC_EDAMAGED},   {48, 1, true, XAC_EDAMAGED},
                 {503, 1, true, XAC_EDAMAGED},  {100, 1, false, XAC_EDAMAGED},
                 {504, 1, false, XAC_EDAMAGED}};
    char name[XAC_LOG_NAME_MAX];
    struct xac_segment_header good;
    int fd;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    xac_log_segment_name(name, 1);
    must(strcmp(name, "xac-log.00000001") == 0);
    fd = openat(dir_fd, name, O_RDWR);
    must(pread(fd, &good, sizeof good, 0) == sizeof good);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct xac_segment_header head = good;

        ((uint8_t *)&head)[cases[i].offset] = cases[i].value;
        if (cases[i].reseal)
            head.checksum =
                xac_xxh64(&head, offsetof(struct xac_segment_header, checksum));
        must(pwrite(fd, &head, sizeof head, 0) == sizeof head);
        ck_assert_int_eq(world_create(SEGMENT_BYTES, XAC_LSN_FIRST), cases[i].error);
    }
    must(pwrite(fd, &good, sizeof good, 0) == sizeof good);
    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    must(ftruncate(fd, (off_t)(XAC_SEGMENT_HEADER + SEGMENT_BYTES - 1)) == 0);
    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == XAC_EDAMAGED);
    (void)close(fd);
}
END_TEST

START_TEST(segment_is_zero_filled_and_allocated)
{
    uint8_t *bytes;
    struct stat st;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    bytes = world_read(XAC_LSN_FIRST);
    for (uint64_t i = 0; i < SEGMENT_BYTES; i++)
        must(bytes[i] == 0);
    free(bytes);
    must(fstatat(dir_fd, "xac-log.00000001", &st, 0) == 0);
    must((uint64_t)st.st_size == XAC_SEGMENT_HEADER + SEGMENT_BYTES);
    must((uint64_t)st.st_blocks * 512 >= (uint64_t)st.st_size);
}
END_TEST

/* room -- bytes that a segment has on disk, in units of 64 KiB: less than one are its header and what
   the file system adds.  Its length is always that of the whole. */
static uint64_t
room(const char *name)
{
    struct stat st;

    must(fstatat(dir_fd, name, &st, 0) == 0);
    must((uint64_t)st.st_size == XAC_SEGMENT_HEADER + world_segment_bytes);
    return (uint64_t)st.st_blocks * 512 / SEGMENT_BYTES * SEGMENT_BYTES;
}

/* The first segment begins with 64 KiB and doubles, always ahead of the tail; the others are whole.
   That costs a few syncs at first, and after that one for each commit. */
START_TEST(first_segment_grows)
{
    uint64_t rng = world_seed, n = 0, doubled = 0, before, syncs;

    world_segment_bytes = 1 << 20;
    must(world_create(1 << 18, XAC_LSN_FIRST) == 0);
    must(room("xac-log.00000001") == 65536);
    while (world_get(w->log.tail) < world_segment_bytes / 4 * 3) {
        before = room("xac-log.00000001");
        syncs = world_get(plan.n[CALL_FDATASYNC]);
        must(world_commit(&the_log, 0, ++n, &rng) == 0);
        must(world_get(w->log.prepared) > world_get(w->log.tail));
        if (room("xac-log.00000001") == before) {
            must(world_get(plan.n[CALL_FDATASYNC]) == syncs + 1);
        } else {
            must(room("xac-log.00000001") == 2 * before);
            must(world_get(plan.n[CALL_FDATASYNC]) == syncs + 2);
            doubled++;
        }
    }
    must(doubled == 4);
    must(room("xac-log.00000002") == world_segment_bytes);
    while (world_get(w->log.tail) < 3 * world_segment_bytes) {
        syncs = world_get(plan.n[CALL_FDATASYNC]);
        must(world_commit(&the_log, 0, ++n, &rng) == 0);
        must(world_get(plan.n[CALL_FDATASYNC]) <= syncs + 2); /* 2 at a border */
    }
    must(room("xac-log.00000003") == world_segment_bytes);
    must(world_expect() == n);
}
END_TEST

/* Where a run ends the next one goes on: nothing that was written is filled with zeros. */
START_TEST(first_segment_goes_on_growing)
{
    uint64_t rng = world_seed, start = XAC_LSN_FIRST;
    uint8_t *before, *after;

    world_segment_bytes = 1 << 20;
    for (int run = 0; run < 12; run++) {
        must(world_create(1 << 18, start) == 0);
        before = world_read(start);
        w->commit = 0;
        for (uint64_t i = 1; i <= 100; i++)
            must(world_commit(&the_log, 0, i, &rng) == 0);
        must(world_expect() == 100);
        after = world_read(start);
        must(memcmp(before, after, start) == 0);
        free(before);
        free(after);
        start = (world_get(w->log.tail) + 4095) & ~UINT64_C(4095);
        xac_log_detach(&the_log);
        must(room("xac-log.00000001") < 4 * start);
    }
    must(start > world_segment_bytes / 4);
}
END_TEST

START_TEST(flusher_prepares_segments_ahead)
{
    uint64_t rng = world_seed;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    for (uint64_t i = 1; i <= 1000; i++) {
        uint64_t durable;
        uint64_t prepared;

        must(world_commit(&the_log, 0, i, &rng) == 0);
        durable = world_get(w->log.durable);
        prepared = world_get(w->log.prepared);
        must(prepared >= durable + SEGMENT_BYTES / 2);
        must(prepared < durable + 3 * SEGMENT_BYTES);
    }
}
END_TEST

/* ---- tests: failures -------------------------------------------------------------- */

/* The i-th sync of the log, or write behind the first byte, fails once, for a moment. */
START_TEST(failed_flush_poisons_for_ever)
{
    uint64_t rng = world_seed;
    uint64_t after = (uint64_t)_i / 2 * 7;
    uint64_t durable;
    uint64_t acked;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    plan.short_writes = _i % 2 == 0;
    world_plan_failure(_i % 2 == 0 ? CALL_PWRITE_REST : CALL_FDATASYNC, XAC_LOG_PREFIX,
                       after, 1, _i % 3 == 0 ? ENOSPC : EIO);
    for (uint64_t i = 1; world_get(w->refused) == 0; i++)
        (void)world_commit(&the_log, 0, i, &rng);
    durable = world_get(w->log.durable);
    acked = world_get(w->acked);
    /* A flush may take several writes, at the end of ring and segment; with short ones the first flush alone may
       take more than there were before the failure. */
    must(acked <= after && (acked > 0 || after == 0 || plan.short_writes));
    must(world_get(w->log.poisoned) == plan.error);
    must(xac_log_wait_durable(&the_log, durable) == 0);
    must(xac_log_wait_durable(&the_log, durable + 8) == XAC_EPOISONED);
    must(xac_log_make_room(&the_log, 8) == XAC_EPOISONED);
    for (uint64_t i = 1; i < 10; i++)
        must(world_commit(&the_log, 1, i, &rng) == XAC_EPOISONED);
    must(world_get(w->log.durable) == durable);
    must(world_get(plan.n[plan.fail]) == plan.after + 1);
    must(world_expect() == acked);
}
END_TEST

/* What fails before the first byte harms nobody: the next flush writes all of it. */
START_TEST(flush_that_cannot_begin_poisons_nothing)
{
    uint64_t rng = world_seed, acked = 0;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    for (uint64_t i = 1; i <= 200; i++) {
        uint64_t durable = world_get(w->log.durable);
        int rc;

        if (i % 3 == 0)
            world_plan_failure(i % 2 == 0 ? CALL_PWRITE : CALL_OPEN, XAC_LOG_PREFIX, 0,
                               UINT64_MAX, i % 2 == 0 ? EFBIG : EACCES);
        if (world_commit(&the_log, 0, i, &rng) == 0) {
            acked = i;
        } else {
            must(i % 3 == 0 && world_get(w->log.durable) == durable);
            /* A large block may be refused before it is in the log: then all that is there is durable. */
            rc = world_get(w->log.tail) > durable ? XAC_ENOTDURABLE : 0;
            must(xac_log_sync(&the_log) == rc);
            must(xac_log_wait_others(&the_log, world_get(w->log.tail), 0) == rc);
        }
        must(world_get(w->log.poisoned) == 0);
        plan.fail = CALL_NONE;
    }
    must(acked == 200);
    must(xac_log_sync(&the_log) == 0);
    must(world_get(w->log.durable) == world_get(w->log.tail));
    must(world_get(w->refused) > 30);
    (void)world_expect();
}
END_TEST

/* A link in the place of a segment leads to another file, which is not written. */
START_TEST(segment_that_is_a_link_is_not_written)
{
    uint64_t rng = world_seed;
    uint64_t serial = 1;
    struct stat st;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    must(world_commit(&the_log, 0, serial, &rng) == 0);
    closefrom(dir_fd + 1);
    must(renameat(dir_fd, "xac-log.00000001", dir_fd, "away") == 0);
    must(close(openat(dir_fd, "victim", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) == 0);
    must(symlinkat("victim", dir_fd, "xac-log.00000001") == 0);
    must(world_commit(&the_log, 0, ++serial, &rng) != 0);
    must(fstatat(dir_fd, "victim", &st, 0) == 0 && st.st_size == 0);
    the_log.seg_no[0] = the_log.seg_no[1] = 0; /* as if it had never been open */
    must(world_commit(&the_log, 0, ++serial, &rng) != 0);
    must(fstatat(dir_fd, "victim", &st, 0) == 0 && st.st_size == 0);
    must(world_get(w->log.poisoned) == 0);
    must(renameat(dir_fd, "away", dir_fd, "xac-log.00000001") == 0);
    must(xac_log_sync(&the_log) == 0);
    must(world_expect() == serial);
}
END_TEST

/* Every call in making a segment fails in turn: no segment, no remains, no poison; once
   it does not fail any more, there is a segment. */
START_TEST(failed_prepare_is_reported_and_passes)
{
    static const enum call calls[] = {CALL_OPEN,  CALL_FALLOCATE, CALL_PWRITE,
                                      CALL_FSYNC, CALL_RENAME,    CALL_CLOSE,
                                      CALL_UNLINK};
    uint64_t rng = world_seed;
    uint64_t n = 0;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        world_plan_failure(calls[c], XAC_LOG_NEW_NAME, 0, UINT64_MAX, ENOSPC);
        do
            n++;
        while (world_commit(&the_log, 0, n, &rng) == 0);
        must(world_get(w->log.poisoned) == 0);
        must(world_get(w->refused) == 0);
        for (int i = 0; i < 5; i++)
            must(xac_log_make_room(&the_log, SEGMENT_BYTES / 4) == ENOSPC);
        if (calls[c] != CALL_UNLINK)
            must(world_count_files(XAC_LOG_NEW_NAME) == 0);
        plan.fail = CALL_NONE;
        must(xac_log_make_room(&the_log, SEGMENT_BYTES / 4) == 0);
        must(world_count_files(XAC_LOG_NEW_NAME) == 0);
    }
    world_plan_failure(CALL_FSYNC, ".", 0, UINT64_MAX, ENOSPC);
    do
        n++;
    while (world_commit(&the_log, 0, n, &rng) == 0);
    must((uint64_t)world_count_files(XAC_LOG_PREFIX)
         == world_get(w->log.prepared) / SEGMENT_BYTES);
    plan.fail = CALL_NONE;
    for (int i = 0; i < 100; i++)
        must(world_commit(&the_log, 0, ++n, &rng) == 0);
    must(world_expect() == world_get(w->acked));
}
END_TEST

/* The same when the first segment grows. */
START_TEST(failed_growth_is_reported_and_passes)
{
    static const enum call calls[] = {CALL_FALLOCATE, CALL_PWRITE, CALL_FDATASYNC};
    uint64_t rng = world_seed, n = 0, before;

    world_segment_bytes = 1 << 20;
    must(world_create(1 << 16, XAC_LSN_FIRST) == 0);
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        before = world_get(w->log.prepared);
        world_plan_failure(calls[c], XAC_LOG_PREFIX, 0, UINT64_MAX, ENOSPC);
        for (int i = 0; i < 5; i++)
            must(xac_log_segment_prepare(&the_log, before + 1) == ENOSPC);
        must(world_get(w->log.prepared) == before);
        must(world_get(w->log.poisoned) == 0 && world_get(w->refused) == 0);
        plan.fail = CALL_NONE;
        must(xac_log_make_room(&the_log, 1 << 14) == 0);
    }
    /* A full disk ends commits when the allocated part of the segment is full, and not before. */
    world_plan_failure(CALL_FALLOCATE, XAC_LOG_PREFIX, 0, UINT64_MAX, ENOSPC);
    do
        n++;
    while (world_commit(&the_log, 0, n, &rng) == 0);
    must(world_get(w->log.tail) + (1 << 14) > world_get(w->log.prepared));
    must(world_get(w->log.poisoned) == 0 && world_get(w->refused) == 0);
    plan.fail = CALL_NONE;
    for (int i = 0; i < 100; i++)
        must(world_commit(&the_log, 0, ++n, &rng) == 0);
    must(world_expect() == world_get(w->acked));
}
END_TEST

/* On a full disk the flusher tries once to make a segment ahead, not at each commit. */
START_TEST(failed_prepare_ahead_is_not_repeated)
{
    uint64_t rng = world_seed;
    uint64_t n = 0;
    uint64_t tries = 0;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    world_plan_failure(CALL_OPEN, XAC_LOG_NEW_NAME, 0, UINT64_MAX, ENOSPC);
    while (world_commit(&the_log, 0, ++n, &rng) == 0)
        tries = world_get(plan.n[CALL_OPEN]) - plan.after;
    must(n > 1); /* blocks may be large */
    must(tries == 1);
}
END_TEST

/* The process has used up its descriptors. */
START_TEST(flush_does_without_a_free_descriptor)
{
    uint64_t rng = world_seed;
    uint64_t n = 0;

    must(world_create(SEGMENT_BYTES, XAC_LSN_FIRST) == 0);
    for (uint64_t k = 1; k <= 20; k++)
        must(xac_log_segment_prepare(&the_log, k * SEGMENT_BYTES) == 0);
    while (dup(dir_fd) >= 0)
        ;
    while (world_get(w->log.tail) < 10 * SEGMENT_BYTES)
        must(world_commit(&the_log, 0, ++n, &rng) == 0);
    closefrom(dir_fd + 1);
    the_log.seg_fd[0] = the_log.seg_fd[1] = -1;
    must(world_expect() == n);
}
END_TEST

static Suite *
log_suite(void)
{
    Suite *s = suite_create("log");
    TCase *one = tcase_create("one process");
    TCase *fail = tcase_create("failures");

    tcase_add_checked_fixture(one, world_setup, world_teardown);
    tcase_set_timeout(one, 60);
    tcase_add_loop_test(one, append_and_flush_come_back, 0, 3);
    tcase_add_test(one, flush_start_is_for_the_lone);
    tcase_add_loop_test(one, written_is_what_the_segments_have, 0, 3);
    tcase_add_test(one, make_room_flushes_a_full_ring);
    tcase_add_test(one, append_twice_is_append_once);
    tcase_add_test(one, create_continues_in_existing_segments);
    tcase_add_test(one, create_refuses_what_is_in_the_way);
    tcase_add_test(one, segment_is_zero_filled_and_allocated);
    tcase_add_test(one, first_segment_grows);
    tcase_add_test(one, first_segment_goes_on_growing);
    tcase_add_test(one, flusher_prepares_segments_ahead);
    suite_add_tcase(s, one);

    tcase_add_checked_fixture(fail, world_setup, world_teardown);
    tcase_set_timeout(fail, 60);
    tcase_add_loop_test(fail, failed_flush_poisons_for_ever, 0, 12);
    tcase_add_test(fail, flush_that_cannot_begin_poisons_nothing);
    tcase_add_test(fail, segment_that_is_a_link_is_not_written);
    tcase_add_test(fail, failed_prepare_is_reported_and_passes);
    tcase_add_test(fail, failed_growth_is_reported_and_passes);
    tcase_add_test(fail, failed_prepare_ahead_is_not_repeated);
    tcase_add_test(fail, flush_does_without_a_free_descriptor);
    suite_add_tcase(s, fail);

    return s;
}

int
main(void)
{
    return world_main(log_suite());
}
