/* SPDX-License-Identifier: MIT */
/*
 * check_recover.c -- recovery of logs that are as a crash can leave them: what is redone,
 * what is left alone, and how the log ends.
 *
 * Killed recoveries are in check_recover_crash.c, damage in check_recover_damage.c.
 */
#include <config.h>

#include <string.h>
#include <sys/stat.h>

#include "tests/common/recover_env.h"
#include "log/log.h"
#include "recovery/recover_redo.h"

/* ---- What is redone --------------------------------------------------------------- */

START_TEST(empty_environment_starts_a_generation)
{
    struct xac_master_slot m;

    synth_open(&s, 4096, 65536);
    ck_ok(recover());
    ck_assert(rep.was_clean && !rep.damaged);
    ck_assert_uint_eq(rep.blocks, 0);
    ck_assert_str_eq(rep.end_reason, "end of the last segment");
    ck_ok(xac_master_read(s.dirfd, &m));
    ck_assert_mem_eq(&m, &next, sizeof m);
    ck_assert_uint_eq(m.generation, 2);
    ck_assert_uint_eq(m.start_lsn, XAC_LSN_FIRST);
    ck_assert_uint_eq(m.flags, XAC_MASTER_CLEAN);
    ck_assert_mem_eq(m.identity, s.master.identity, 16);
}
END_TEST

START_TEST(one_transaction_is_redone)
{
    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "f", 3);
    synth_begin(&s);
    synth_change(&s, 0, 1);
    synth_commit(&s);
    ck_assert(!synth_same(&s, 0));
    ck_ok(dry_run());
    ck_assert_uint_eq(rep.pages_redone, 1);
    ck_assert(!synth_same(&s, 0));
    ck_ok(recover());
    ck_assert(synth_same(&s, 0));
    ck_assert(!rep.was_clean);
    ck_assert_uint_eq(rep.blocks, 2);
    ck_assert_uint_eq(rep.transactions, 1);
    ck_assert_uint_eq(rep.transactions_redone, 1);
    ck_assert_uint_eq(rep.pages_redone, 1);
    ck_assert_uint_eq(rep.files, 1);
    ck_assert_uint_eq(rep.last_commit, 1);
    ck_assert_uint_eq(rep.end_lsn, s.tail);
    ck_assert_str_eq(rep.end_reason, "no block: zeros");
    ck_assert_uint_eq(next.start_lsn, (s.tail + 4095) / 4096 * 4096);
}
END_TEST

START_TEST(aborted_and_unfinished_transactions_are_not_redone)
{
    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "f", 3);
    synth_begin(&s);
    synth_change(&s, 0, 1);
    (void)synth_append(&s, false); /* a block without its XCOMMIT */
    ck_assert(xac_put_txn(&s.b, XAC_XABORT, 7));
    (void)synth_append(&s, false);
    ck_ok(recover());
    ck_assert_uint_eq(rep.transactions, 0);
    ck_assert_uint_eq(rep.files, 0);
    ck_assert(!synth_same(&s, 0));
}
END_TEST

/* Segment sizes: many borders, few borders. */
static const uint64_t segment_sizes[] = {4096, 8192, 65536, 1 << 20};

START_TEST(many_transactions_are_redone_in_order)
{
    synth_open(&s, 4096, segment_sizes[_i]);
    (void)synth_file(&s, "a", 5);
    (void)synth_file(&s, "b", 40);
    (void)synth_file(&s, "c", 1);
    synth_transactions(&s, 1000);
    ck_ok(recover());
    for (size_t i = 0; i < 3; i++)
        ck_assert(synth_same(&s, i));
    ck_assert_uint_eq(rep.transactions, 1000);
    ck_assert_uint_eq(rep.last_commit, 1000);
    ck_assert_uint_eq(rep.files, 3);
    ck_assert(rep.synced_lsn <= rep.end_lsn);
}
END_TEST

static const int page_sizes[] = {4096, 16384, 65536};

START_TEST(page_sizes_all_work)
{
    page_bytes = page_sizes[_i];
    synth_open(&s, (uint32_t)page_bytes, 65536);
    (void)synth_file(&s, "a", 30);
    synth_transactions(&s, 200);
    synth_checkpoint(&s, NULL, 5);
    synth_transactions(&s, 200);
    ck_ok(recover());
    ck_assert(synth_same(&s, 0));
}
END_TEST

START_TEST(digests_all_work)
{
    synth_open(&s, 4096, 8192);
    (void)synth_file(&s, "a", 30);
    s.checksum = _i;
    synth_transactions(&s, 100);
    synth_begin(&s);
    for (uint64_t p = 0; p < 30; p++)
        synth_change(&s, 0, p);
    (void)synth_commit_large(&s);
    synth_transactions(&s, 100);
    ck_ok(recover());
    ck_assert_uint_eq(rep.datafiles, 1);
    ck_assert_uint_eq(rep.transactions, 201);
    ck_assert(synth_same(&s, 0));
}
END_TEST

/* MiB, for 20 MiB of pages: some are written and read again, or none is. */
static const uint64_t memory_sizes[] = {1, 15, 40};

START_TEST(more_pages_than_memory_holds_are_redone)
{
    struct xac_recover_options o = {.memory_bytes = memory_sizes[_i] << 20};
    uint64_t pages = 5000; /* 20 MiB */

    synth_open(&s, 4096, 1 << 20);
    (void)synth_file(&s, "big", pages);
    for (int round = 0; round < 3; round++) {
        for (uint64_t p = 0; p < pages; p += 10) {
            synth_begin(&s);
            for (uint64_t i = p; i < p + 10 && i < pages; i++)
                synth_change(&s, 0, (i * 7919) % pages);
            synth_commit(&s);
        }
    }
    ck_ok(xac_recover_dir(s.dirfd, &o, &rep, NULL));
    ck_assert_uint_eq(rep.pages_redone, 3 * pages);
    ck_assert(synth_same(&s, 0));
}
END_TEST

START_TEST(large_data_file_is_redone)
{
    char name[XAC_LOG_NAME_MAX];
    uint64_t serial;

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "big", 2000);
    synth_begin(&s);
    for (uint64_t p = 0; p < 2000; p++) {
        /* Pages full of noise, so that the data file is several chunks long. */
        for (size_t i = 0; i < 1200; i++)
            s.file[0].model[p * 4096 + i] = (uint8_t)(1 + synth_random(&s, 255));
        synth_change(&s, 0, p);
    }
    serial = synth_commit_large(&s);
    synth_put(&s, "xac-data.00000001.000000ff", "orphan", 6);
    synth_put(&s, "xac-data.mine", "not ours", 8);
    ck_ok(recover());
    ck_assert(synth_same(&s, 0));
    ck_assert_uint_eq(rep.datafiles, 1);
    ck_assert_uint_eq(rep.orphans_removed, 1);
    ck_assert_uint_eq(rep.pages_redone, 2000);
    xac_log_datafile_name(name, 1, serial);
    ck_assert_int_eq(faccessat(s.dirfd, name, F_OK, 0), 0);
    xac_log_datafile_name(name, 1, 0xff);
    ck_assert_int_eq(faccessat(s.dirfd, name, F_OK, 0), -1);
    ck_assert_int_eq(faccessat(s.dirfd, "xac-data.mine", F_OK, 0), 0);
}
END_TEST

/* ---- Checkpoints ------------------------------------------------------------------ */

START_TEST(pages_held_back_are_redone_from_an_earlier_checkpoint)
{
    synth_open(&s, 4096, 8192);
    (void)synth_file(&s, "a", 9);
    (void)synth_file(&s, "b", 9);
    synth_transactions(&s, 60);
    synth_checkpoint(&s, NULL, 0);
    synth_transactions(&s, 60);
    synth_checkpoint(&s, odd_pages, 4);
    synth_transactions(&s, (size_t)_i);
    ck_assert_uint_lt(s.master.redo_lsn, s.master.begin_lsn);
    ck_assert_uint_gt(s.master.redo_lsn, s.master.start_lsn);
    ck_assert(!synth_same(&s, 0));
    ck_ok(recover());
    ck_assert(synth_same(&s, 0));
    ck_assert(synth_same(&s, 1));
    ck_assert_uint_eq(rep.transactions, 60 + 4 + (uint64_t)_i);
}
END_TEST

START_TEST(pages_without_later_changes_are_left_alone)
{
    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 4);
    for (uint64_t p = 0; p < 4; p++) {
        synth_begin(&s);
        synth_change(&s, 0, p);
        synth_commit(&s);
    }
    synth_checkpoint(&s, NULL, 0);
    synth_begin(&s);
    synth_change(&s, 0, 1);
    synth_commit(&s);
    /* A byte that only a needless redo of page 2 would undo. */
    synth_flip(&s, "a", 2 * 4096 + 17, 0xff);
    s.file[0].model[2 * 4096 + 17] ^= 0xff;
    ck_ok(recover());
    ck_assert(synth_same(&s, 0));
    ck_assert_uint_eq(rep.pages_redone, 1);
}
END_TEST

/* A copy from a page that has no full image before it cannot be redone. */
START_TEST(copy_without_a_source_is_damage)
{
    struct xac_page_change c = {.file = 1, .page = 0, .source_file = 1, .source_page = 1};
    uint8_t *page;

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 2);
    page = s.file[0].model;
    for (size_t i = 0; i < 2048; i++)
        page[i] = page[4096 + i] = (uint8_t)synth_random(&s, 256);
    c.to = page;
    c.source = page + 4096;
    synth_begin(&s);
    ck_assert(xac_put_change(&s.b, &c, 4096));
    synth_commit(&s);
    ck_assert_int_eq(recover(), XAC_EDAMAGED);
    ck_assert_str_eq(rep.end_reason,
                     "no full image of a page before its first difference");
}
END_TEST

START_TEST(finished_checkpoint_leaves_nothing_to_do)
{
    struct stat before;
    struct stat after;

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 4);
    synth_transactions(&s, 20);
    synth_checkpoint(&s, NULL, 0);
    s.master.flags = XAC_MASTER_CLEAN;
    synth_master(&s);
    ck_assert_int_eq(fstatat(s.dirfd, "a", &before, 0), 0);
    ck_ok(recover());
    ck_assert_int_eq(fstatat(s.dirfd, "a", &after, 0), 0);
    ck_assert(rep.was_clean);
    ck_assert_uint_eq(rep.transactions_redone, 0);
    ck_assert_uint_eq(rep.files, 0);
    ck_assert_int_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    ck_assert_uint_eq(next.generation, 2);
}
END_TEST

START_TEST(commits_after_a_clean_end_are_redone)
{
    synth_open(&s, 4096, 65536);
    s.master.flags = XAC_MASTER_CLEAN;
    (void)synth_file(&s, "a", 4);
    synth_transactions(&s, 3);
    ck_ok(recover());
    ck_assert(!rep.was_clean);
    ck_assert_uint_eq(rep.transactions_redone, 3);
    ck_assert(synth_same(&s, 0));
}
END_TEST

START_TEST(random_histories_are_recovered)
{
    for (int round = 0; round < 60; round++) {
        uint64_t state = synth_seed() + (uint64_t)round * 1000003 + (uint64_t)_i;

        synth_open(&s, 4096, segment_sizes[round % 3]);
        s.random = state;
        (void)synth_file(&s, "a", 1 + synth_random(&s, 30));
        (void)synth_file(&s, "b", 1 + synth_random(&s, 5));
        for (uint64_t n = synth_random(&s, 6); n > 0; n--) {
            synth_transactions(&s, synth_random(&s, 40));
            if (synth_random(&s, 2) == 0)
                synth_checkpoint(&s, odd_pages, synth_random(&s, 5));
        }
        synth_transactions(&s, synth_random(&s, 10));
        ck_ok(recover());
        ck_assert_msg(synth_same(&s, 0) && synth_same(&s, 1), "round %d", round);
        synth_close(&s);
    }
    synth_open(&s, 4096, 65536); /* for the teardown */
}
END_TEST

/* ---- Generations ------------------------------------------------------------------ */

START_TEST(generations_follow_each_other)
{
    synth_open(&s, 4096, 8192);
    for (int g = 0; g < 5; g++) {
        if (g == 0)
            (void)synth_file(&s, "a", 9);
        else {
            struct stat st;
            struct xac_xfile head = {.file = 1, .length = (uint64_t)9 * 4096};

            ck_assert_int_eq(fstatat(s.dirfd, "a", &st, 0), 0);
            head.device = st.st_dev;
            head.inode = st.st_ino;
            ck_assert(xac_put_file(&s.b, &head, 0, "a"));
            (void)synth_append(&s, false);
        }
        synth_transactions(&s, 30);
        ck_ok(recover());
        ck_assert(synth_same(&s, 0));
        ck_assert_uint_eq(rep.transactions, 30);
        s.master = next;
        s.tail = s.durable = next.start_lsn;
        memset(s.file[0].is_fresh, 0, 9);
    }
}
END_TEST

START_TEST(stale_blocks_of_an_old_generation_are_no_log)
{
    uint64_t end;

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 4);
    synth_transactions(&s, 4);
    end = s.tail;
    s.master.generation = 0;
    synth_transactions(&s, 4);
    ck_ok(dry_run());
    ck_assert_uint_eq(rep.end_lsn, end);
    ck_assert_uint_eq(rep.transactions, 4);
    ck_assert_uint_eq(rep.discarded_blocks, 0);
    ck_assert_str_eq(rep.end_reason, "block of generation 0, the log's is 1");
}
END_TEST

START_TEST(segment_size_can_change)
{
    struct xac_recover_options o = {.new_segment_bytes = _i == 0 ? 4096 : 1 << 20};

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 50);
    synth_transactions(&s, 400);
    ck_assert_uint_gt(s.tail, 65536);
    ck_ok(xac_recover_dir(s.dirfd, &o, &rep, &next));
    ck_assert(synth_same(&s, 0));
    ck_assert_uint_eq(next.segment_bytes, o.new_segment_bytes);
    ck_assert_uint_ge(next.start_lsn, s.tail);
    /* No old segment has a number that the new log will use. */
    ck_assert_uint_gt(xac_log_segment_of(next.start_lsn, next.segment_bytes),
                      xac_log_segment_of(s.tail - 1, 65536));
    ck_ok(recover());
}
END_TEST

/* ---- Torn tails ------------------------------------------------------------------- */

/* tear -- what lies behind byte k of the last block is zeros or noise. */
static void
tear(uint64_t lsn, const uint8_t *block, size_t n, size_t k, bool noise)
{
    uint8_t *torn = (uint8_t *)malloc(n);

    memcpy(torn, block, k);
    for (size_t i = k; i < n; i++)
        torn[i] = noise ? (uint8_t)(block[i] ^ (1 + synth_random(&s, 255))) : 0;
    synth_write(&s, lsn, torn, n);
    free(torn);
}

START_TEST(tail_torn_anywhere_is_cut)
{
    uint8_t *block;
    size_t tail_zeros = 0;
    uint64_t lsn;
    size_t n;

    synth_open(&s, 4096, 4096);
    (void)synth_file(&s, "a", 4);
    synth_transactions(&s, 5);
    synth_sync(&s);
    synth_begin(&s);
    synth_change(&s, 0, 0);
    synth_change(&s, 0, 1);
    n = s.b.used;
    synth_commit(&s);
    lsn = s.block_lsn[s.n_blocks - 1];
    n = (size_t)(s.tail - lsn);
    block = (uint8_t *)malloc(n);
    synth_read(&s, lsn, block, n);
    while (block[n - 1 - tail_zeros] == 0)
        tail_zeros++;
    for (size_t k = 0; k < n; k++) {
        for (int noise = 0; noise < 2; noise++) {
            bool whole = noise == 0 && k >= n - tail_zeros;

            tear(lsn, block, n, k, noise == 1);
            ck_ok(dry_run());
            ck_assert(!rep.damaged);
            ck_assert_uint_eq(rep.end_lsn, whole ? s.tail : lsn);
            ck_assert_uint_eq(rep.transactions, whole ? 6 : 5);
            if (k >= 64 && !whole)
                ck_assert_uint_eq(rep.discarded_bytes, n);
        }
    }
    free(block);
}
END_TEST

START_TEST(torn_transaction_leaves_no_trace)
{
    uint8_t *before[SYNTH_FILES];
    uint64_t lsn;

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 4);
    synth_transactions(&s, 20);
    synth_model_save(&s, before);
    lsn = s.tail;
    synth_transactions(&s, 10);
    /* All ten unsynced; the first is torn, the others are whole. */
    for (size_t i = 0; i < s.n_blocks; i++) {
        uint64_t at = s.block_lsn[i];

        if (at > lsn) {
            struct xac_block blk;
            struct xac_log_id id = {.generation = 1};

            memcpy(&id.identity, s.master.identity, 8);
            synth_read(&s, at, &blk, sizeof blk);
            xac_block_seal(&blk, at, lsn, blk.commit);
            ck_assert(xac_block_head_ok(&blk, id, at));
            synth_write(&s, at, &blk, sizeof blk);
        }
    }
    synth_write(&s, lsn + 70, "\1\2\3\4", 4);
    ck_ok(recover());
    ck_assert(!rep.damaged);
    ck_assert_uint_eq(rep.end_lsn, lsn);
    ck_assert_uint_eq(rep.discarded_blocks, 9);
    ck_assert_uint_eq(rep.discarded_bytes, s.tail - lsn);
    ck_assert_str_eq(rep.end_reason, "torn block: checksum");
    ck_assert(synth_same_as(&s, before));
    synth_model_free(before);
}
END_TEST

/* ---- Files ------------------------------------------------------------------------ */

START_TEST(short_file_is_extended)
{
    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 8);
    synth_begin(&s);
    synth_change(&s, 0, 2);
    synth_commit(&s);
    shorten("a", 4096);
    ck_ok(recover());
    ck_assert(synth_same(&s, 0));
}
END_TEST

static int
recover_accepting(void)
{
    struct xac_recover_options o = {.accept_replaced = true};

    return xac_recover_dir(s.dirfd, &o, &rep, &next);
}

START_TEST(missing_file_is_refused_or_made)
{
    struct synth_picture picture;

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 8);
    (void)synth_file(&s, "b", 2);
    synth_transactions(&s, 20);
    ck_assert_int_eq(unlinkat(s.dirfd, "a", 0), 0);
    synth_picture_take(&s, &picture);
    ck_assert_int_eq(recover(), XAC_EREPLACED);
    ck_assert_ptr_nonnull(strstr(xac_err_text(), "a: missing"));
    ck_assert(synth_picture_same(&s, &picture));
    ck_ok(recover_accepting());
    ck_assert(synth_same(&s, 0));
    ck_assert(synth_same(&s, 1));
    synth_picture_free(&picture);
}
END_TEST

/* After a start of the machine disks may have other numbers. */
START_TEST(device_may_have_another_number)
{
    synth_open(&s, 4096, 65536);
    s.device_shift = 256;
    (void)synth_file(&s, "a", 8);
    synth_transactions(&s, 30);
    ck_ok(recover());
    ck_assert(synth_same(&s, 0));
}
END_TEST

START_TEST(replaced_file_is_refused_or_accepted)
{
    struct synth_picture picture;
    uint8_t zeros[4096] = {0};

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 8);
    synth_transactions(&s, 30);
    ck_assert_int_eq(renameat(s.dirfd, "a", s.dirfd, "old"), 0);
    synth_put(&s, "a", zeros, sizeof zeros);
    synth_picture_take(&s, &picture);
    ck_assert_int_eq(recover(), XAC_EREPLACED);
    ck_assert_ptr_nonnull(strstr(xac_err_text(), "a: inode"));
    ck_assert(synth_picture_same(&s, &picture));
    ck_assert_int_eq(dry_run(), XAC_EREPLACED);
    ck_ok(recover_accepting());
    ck_assert(synth_same(&s, 0));
    synth_picture_free(&picture);
}
END_TEST

START_TEST(file_with_nothing_to_redo_may_be_gone)
{
    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 8);
    (void)synth_file(&s, "b", 2);
    synth_begin(&s);
    synth_change(&s, 1, 1);
    synth_commit(&s);
    ck_assert_int_eq(unlinkat(s.dirfd, "a", 0), 0);
    ck_ok(recover());
    ck_assert(synth_same(&s, 1));
}
END_TEST

START_TEST(absolute_path_is_found)
{
    char path[256];
    struct xac_xfile head = {.file = 1, .length = 4096};
    struct stat st;

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 1);
    (void)snprintf(path, sizeof path, "%s/./a", s.dir);
    ck_assert_int_eq(stat(path, &st), 0);
    head.device = st.st_dev;
    head.inode = st.st_ino;
    ck_assert(xac_put_file(&s.b, &head, 0, path));
    (void)synth_append(&s, false);
    synth_transactions(&s, 3);
    ck_ok(recover());
    ck_assert(synth_same(&s, 0));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("recover");
    TCase *tc;

    tc = recover_tcase(suite, "redo");
    tcase_add_test(tc, empty_environment_starts_a_generation);
    tcase_add_test(tc, one_transaction_is_redone);
    tcase_add_test(tc, aborted_and_unfinished_transactions_are_not_redone);
    tcase_add_loop_test(tc, many_transactions_are_redone_in_order, 0, 4);
    tcase_add_loop_test(tc, page_sizes_all_work, 0, 3);
    tcase_add_loop_test(tc, digests_all_work, 0, 3);
    tcase_add_loop_test(tc, more_pages_than_memory_holds_are_redone, 0, 3);
    tcase_add_test(tc, large_data_file_is_redone);
    tc = recover_tcase(suite, "log");
    tcase_add_loop_test(tc, pages_held_back_are_redone_from_an_earlier_checkpoint, 0, 30);
    tcase_add_test(tc, copy_without_a_source_is_damage);
    tcase_add_test(tc, pages_without_later_changes_are_left_alone);
    tcase_add_test(tc, finished_checkpoint_leaves_nothing_to_do);
    tcase_add_test(tc, commits_after_a_clean_end_are_redone);
    tcase_add_test(tc, generations_follow_each_other);
    tcase_add_test(tc, stale_blocks_of_an_old_generation_are_no_log);
    tcase_add_loop_test(tc, segment_size_can_change, 0, 2);
    tcase_add_test(tc, tail_torn_anywhere_is_cut);
    tcase_add_test(tc, torn_transaction_leaves_no_trace);
    tcase_add_loop_test(tc, random_histories_are_recovered, 0, 2);
    tc = recover_tcase(suite, "files");
    tcase_add_test(tc, short_file_is_extended);
    tcase_add_test(tc, missing_file_is_refused_or_made);
    tcase_add_test(tc, device_may_have_another_number);
    tcase_add_test(tc, replaced_file_is_refused_or_accepted);
    tcase_add_test(tc, file_with_nothing_to_redo_may_be_gone);
    tcase_add_test(tc, absolute_path_is_found);
    return recover_main(suite);
}
