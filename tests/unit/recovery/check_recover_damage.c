/* SPDX-License-Identifier: MIT */
/*
 * check_recover_damage.c -- logs that no crash can leave: damage is found, named with file
 * and offset, refused without a byte written, or cut if asked for; foreign logs.
 */
#include <config.h>

#include <string.h>
#include <sys/stat.h>

#include "tests/common/recover_env.h"
#include "base/digest.h"
#include "log/log.h"

static struct synth_picture picture;

static void
take(void)
{
    synth_picture_take(&s, &picture);
}

/* ck_refused -- recovery refuses, names the place, and has written nothing. */
static void
ck_refused(const char *file, uint64_t offset)
{
    struct synth_picture now;

    synth_picture_take(&s, &now);
    ck_assert_int_eq(recover(), XAC_EDAMAGED);
    ck_assert(rep.damaged);
    ck_assert_str_eq(rep.damage_file, file);
    ck_assert_uint_eq(rep.damage_offset, offset);
    ck_assert_ptr_nonnull(strstr(xac_err_text(), file));
    ck_assert(synth_picture_same(&s, &now));
    synth_picture_free(&now);
}

static int
recover_cutting(void)
{
    struct xac_recover_options o = {.cut = true};

    return xac_recover_dir(s.dirfd, &o, &rep, &next);
}

/* name_of, offset_of -- where an LSN is on disk. */
static const char *
name_of(uint64_t lsn)
{
    static char name[XAC_LOG_NAME_MAX];

    xac_log_segment_name(name, xac_log_segment_of(lsn, s.master.segment_bytes));
    return name;
}

static uint64_t
offset_of(uint64_t lsn)
{
    return XAC_SEGMENT_HEADER + lsn % s.master.segment_bytes;
}

/* small_log -- eight synced transactions, then one that says so, unsynced itself. */
static void
small_log(uint64_t segment_bytes)
{
    synth_open(&s, 4096, segment_bytes);
    (void)synth_file(&s, "a", 3);
    synth_transactions(&s, 8);
    synth_sync(&s);
    synth_transactions(&s, 1);
}

/* block_before -- LSN of the block that holds a position. */
static uint64_t
block_before(uint64_t lsn)
{
    uint64_t at = 0;

    for (size_t i = 0; i < s.n_blocks && s.block_lsn[i] <= lsn; i++)
        at = s.block_lsn[i];
    return at;
}

START_TEST(flipped_bit_in_the_synced_part_is_refused)
{
    uint64_t first;
    uint64_t last;

    small_log(4096);
    first = s.block_lsn[0];
    last = s.block_lsn[s.n_blocks - 1];
    ck_assert_uint_gt(last - first, 600);
    for (uint64_t lsn = first; lsn < last; lsn++) {
        char name[XAC_LOG_NAME_MAX];
        uint64_t block = block_before(lsn);
        uint8_t mask = (uint8_t)(1u << synth_random(&s, 8));

        (void)snprintf(name, sizeof name, "%s", name_of(lsn));
        synth_flip(&s, name, offset_of(lsn), mask);
        ck_refused(name_of(block), offset_of(block));
        synth_flip(&s, name, offset_of(lsn), mask);
    }
    ck_ok(recover());
    ck_assert(synth_same(&s, 0));
}
END_TEST

START_TEST(flipped_bit_in_the_last_batch_looks_torn)
{
    uint64_t last;

    small_log(65536);
    last = s.block_lsn[s.n_blocks - 1];
    for (uint64_t lsn = last; lsn < s.tail; lsn++) {
        synth_flip(&s, name_of(lsn), offset_of(lsn), 4);
        ck_ok(dry_run());
        ck_assert(!rep.damaged);
        ck_assert_uint_eq(rep.end_lsn, last);
        synth_flip(&s, name_of(lsn), offset_of(lsn), 4);
    }
}
END_TEST

/* The header of the block that says "synced" is enough: its own records may be torn. */
START_TEST(header_of_a_torn_block_proves_damage)
{
    small_log(65536);
    synth_flip(&s, name_of(s.tail - 1), offset_of(s.block_lsn[s.n_blocks - 1]) + 70, 1);
    synth_flip(&s, name_of(s.block_lsn[3]), offset_of(s.block_lsn[3]) + 80, 1);
    ck_refused(name_of(s.block_lsn[3]), offset_of(s.block_lsn[3]));
}
END_TEST

START_TEST(flipped_bit_in_a_segment_header_is_refused)
{
    int damaged = 0;

    small_log(65536);
    for (uint64_t at = 0; at < 512; at++) {
        struct synth_picture now;
        int rc;

        synth_flip(&s, "xac-log.00000001", at, 0x10);
        synth_picture_take(&s, &now);
        rc = recover();
        if (rc == XAC_EDAMAGED) {
            ck_assert_str_eq(rep.damage_file, "xac-log.00000001");
            ck_assert_uint_eq(rep.damage_offset, 0);
            damaged++;
        } else {
            /* A wrong version number is reported as what it looks like. */
            ck_assert_int_eq(rc, XAC_EVERSION);
            ck_assert(at >= 8 && at < 12);
        }
        ck_assert(synth_picture_same(&s, &now));
        synth_picture_free(&now);
        synth_flip(&s, "xac-log.00000001", at, 0x10);
    }
    ck_assert_int_eq(damaged, 508);
}
END_TEST

START_TEST(damage_can_be_cut)
{
    uint8_t *before[SYNTH_FILES];
    uint64_t cut;

    synth_open(&s, 4096, 8192);
    (void)synth_file(&s, "a", 3);
    synth_transactions(&s, 20);
    cut = s.tail;
    synth_model_save(&s, before);
    synth_transactions(&s, 20);
    synth_sync(&s);
    synth_transactions(&s, 1);
    synth_flip(&s, name_of(cut), offset_of(cut) + 100, 1);
    ck_refused(name_of(cut), offset_of(cut));
    ck_assert_uint_eq(rep.synced_lsn, s.block_lsn[s.n_blocks - 1]);
    ck_ok(recover_cutting());
    ck_assert(rep.damaged);
    ck_assert_str_eq(rep.damage_file, name_of(cut));
    ck_assert_uint_eq(rep.end_lsn, cut);
    ck_assert_uint_eq(rep.transactions, 20);
    ck_assert_uint_eq(rep.discarded_blocks, 20);
    ck_assert(synth_same_as(&s, before));
    /* What was cut is history. */
    ck_ok(recover());
    ck_assert(!rep.damaged);
    synth_model_free(before);
}
END_TEST

START_TEST(last_checkpoint_end_is_known_synced)
{
    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 3);
    synth_transactions(&s, 8);
    synth_checkpoint(&s, odd_pages, 2);
    for (uint64_t lsn = s.master.redo_lsn; lsn < s.tail; lsn += 5) {
        uint64_t block = block_before(lsn);

        synth_flip(&s, name_of(lsn), offset_of(lsn), 64);
        ck_refused(name_of(block), offset_of(block));
        synth_flip(&s, name_of(lsn), offset_of(lsn), 64);
    }
}
END_TEST

START_TEST(log_cut_within_a_checkpoint_is_redone_from_full_images)
{
    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 6);
    /* A file block within the part that is read, as after a growth of the file. */
    synth_transactions(&s, 30);
    synth_checkpoint(&s, NULL, 3);
    synth_flip(&s, name_of(s.master.end_lsn), offset_of(s.master.end_lsn) + 70, 1);
    ck_refused(name_of(s.master.end_lsn), offset_of(s.master.end_lsn));
    /* Files are named by the block that is gone, unless the log names them too. */
    ck_assert_uint_gt(s.master.redo_lsn, s.block_lsn[0]);
    ck_ok(recover_cutting());
    ck_assert_uint_eq(rep.files, 0);
    ck_assert_uint_eq(rep.transactions, 0);
}
END_TEST

START_TEST(log_cut_within_a_checkpoint_keeps_what_came_before)
{
    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 6);
    synth_transactions(&s, 30);
    synth_checkpoint(&s, odd_pages, 3); /* the redo position covers the XFILE */
    ck_assert_uint_eq(s.master.redo_lsn, s.block_lsn[0]);
    synth_flip(&s, name_of(s.master.end_lsn), offset_of(s.master.end_lsn) + 70, 1);
    ck_ok(recover_cutting());
    ck_assert_uint_eq(rep.end_lsn, s.master.end_lsn);
    ck_assert(synth_same(&s, 0));
}
END_TEST

/* ---- Segments --------------------------------------------------------------------- */

static void
long_log(void)
{
    synth_open(&s, 4096, 4096);
    (void)synth_file(&s, "a", 3);
    synth_transactions(&s, 80);
    synth_sync(&s);
    synth_transactions(&s, 1);
    ck_assert_uint_gt(s.tail, 5 * 4096);
}

START_TEST(missing_segment_is_damage)
{
    long_log();
    ck_assert_int_eq(unlinkat(s.dirfd, "xac-log.00000003", 0), 0);
    ck_refused("xac-log.00000003", 0);
    ck_assert_str_eq(rep.end_reason, "segment is missing");
    ck_ok(recover_cutting());
    ck_assert_uint_le(rep.end_lsn, 2 * 4096);
}
END_TEST

START_TEST(short_segment_is_damage)
{
    long_log();
    shorten("xac-log.00000003", 4096 + 1000);
    ck_refused("xac-log.00000003", 4096 + 1000);
    ck_assert_str_eq(rep.end_reason, "segment is too short");
    ck_ok(recover_cutting());
    /* The next log does not use it. */
    ck_assert_uint_gt(xac_log_segment_of(next.start_lsn, 4096),
                      xac_log_segment_of(s.tail - 1, 4096));
}
END_TEST

START_TEST(bad_segment_ahead_is_no_damage_and_not_used)
{
    small_log(4096);
    synth_put(&s, "xac-log.00000005", "nonsense", 8);
    ck_ok(recover());
    ck_assert(!rep.damaged);
    ck_assert(synth_same(&s, 0));
    ck_assert_uint_eq(next.start_lsn, 5 * 4096);
}
END_TEST

static void
put_segment(uint64_t number, const struct xac_segment_header *like)
{
    char name[XAC_LOG_NAME_MAX];
    struct xac_segment_header h = *like;

    h.magic = XAC_SEGMENT_MAGIC;
    h.number = number;
    h.segment_bytes = s.master.segment_bytes;
    h.checksum = xac_xxh64(&h, offsetof(struct xac_segment_header, checksum));
    xac_log_segment_name(name, number);
    synth_put(&s, name, &h, sizeof h);
    shorten(name, (off_t)(XAC_SEGMENT_HEADER + s.master.segment_bytes));
}

START_TEST(segments_of_others_are_refused)
{
    struct xac_segment_header h = {.version = XAC_FORMAT_VERSION, .page_size = 4096};
    int want = XAC_EFOREIGN;

    synth_open(&s, 4096, 4096);
    if (_i == 1)
        h.version = 7;
    if (_i == 2)
        h.page_size = 8192;
    if (_i != 0)
        memcpy(h.identity, s.master.identity, 16);
    want = _i == 1 ? XAC_EVERSION : _i == 2 ? XAC_EPAGESIZE : want;
    put_segment(xac_log_segment_of(s.master.redo_lsn, 4096), &h);
    take();
    ck_assert_int_eq(recover(), want);
    ck_assert(synth_picture_same(&s, &picture));
    synth_picture_free(&picture);
}
END_TEST

/* ---- Master record ---------------------------------------------------------------- */

START_TEST(no_master_is_no_environment)
{
    small_log(4096);
    ck_assert_int_eq(unlinkat(s.dirfd, XAC_MASTER_NAME, 0), 0);
    take();
    ck_assert_int_eq(recover(), XAC_ENOTENV);
    ck_assert(synth_picture_same(&s, &picture));
    synth_picture_free(&picture);
}
END_TEST

START_TEST(older_master_slot_serves_within_a_generation)
{
    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 6);
    synth_transactions(&s, 10);
    synth_checkpoint(&s, NULL, 0); /* slot 1 */
    synth_transactions(&s, 10);
    synth_checkpoint(&s, odd_pages, 2); /* slot 0 */
    synth_transactions(&s, 10);
    synth_flip(&s, XAC_MASTER_NAME, 77, 1);
    ck_ok(recover());
    ck_assert(synth_same(&s, 0));
    ck_assert_uint_eq(rep.transactions, 22);
}
END_TEST

START_TEST(log_newer_than_the_master_is_refused)
{
    struct stat st;
    struct xac_xfile head = {.file = 1, .length = 6 * 4096};

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 6);
    synth_transactions(&s, 10);
    ck_ok(recover()); /* generation 2, slot 1 */
    s.master = next;
    s.tail = s.durable = next.start_lsn;
    ck_assert_int_eq(fstatat(s.dirfd, "a", &st, 0), 0);
    head.device = st.st_dev;
    head.inode = st.st_ino;
    ck_assert(xac_put_file(&s.b, &head, 0, "a"));
    (void)synth_append(&s, false);
    synth_flip(&s, XAC_MASTER_NAME, 4096 + 77, 1);
    ck_refused(XAC_MASTER_NAME, 0);
    ck_assert_int_eq(recover_cutting(), XAC_EDAMAGED);
    synth_flip(&s, XAC_MASTER_NAME, 4096 + 77, 1);
    ck_ok(recover());
}
END_TEST

/* ---- Contents --------------------------------------------------------------------- */

/* with_datafile -- the sixth block is a large transaction; others follow, unsynced. */
static const char *
with_datafile(void)
{
    static char name[XAC_LOG_NAME_MAX];
    uint64_t serial;

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 9);
    synth_transactions(&s, 4);
    synth_begin(&s);
    for (uint64_t p = 0; p < 9; p++)
        synth_change(&s, 0, p);
    serial = synth_commit_large(&s);
    synth_transactions(&s, 2);
    xac_log_datafile_name(name, 1, serial);
    return name;
}

START_TEST(damaged_data_file_is_refused)
{
    const char *name = with_datafile();
    size_t n;

    free(synth_get(&s, name, &n));
    for (size_t at = 0; at < n; at++) {
        synth_flip(&s, name, at, 2);
        ck_refused(name, 0);
        synth_flip(&s, name, at, 2);
    }
    ck_ok(dry_run());
    ck_assert_uint_eq(rep.datafiles, 1);
}
END_TEST

START_TEST(short_data_file_is_refused)
{
    const char *name = with_datafile();

    shorten(name, 100);
    ck_refused(name, 100);
}
END_TEST

START_TEST(missing_data_file_is_refused_or_cut)
{
    const char *name = with_datafile();

    ck_assert_int_eq(unlinkat(s.dirfd, name, 0), 0);
    ck_refused(name, 0);
    ck_assert_str_eq(rep.end_reason, "data file: missing");
    ck_ok(recover_cutting());
    ck_assert_uint_eq(rep.transactions, 4);
    ck_assert_uint_eq(rep.end_lsn, s.block_lsn[5]);
    ck_assert_uint_eq(rep.discarded_blocks, 3);
}
END_TEST

START_TEST(difference_without_full_image_is_refused)
{
    uint64_t lsn;

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 9);
    synth_transactions(&s, 4);
    memset(s.file[0].is_fresh, 1, 9);
    s.file[0].is_fresh[8] = true;
    lsn = s.tail;
    for (uint64_t p = 0; p < 9; p++) {
        synth_begin(&s);
        synth_change(&s, 0, p);
        synth_commit(&s);
    }
    ck_assert_int_eq(recover(), XAC_EDAMAGED);
    ck_assert_uint_ge(rep.damage_offset, offset_of(lsn));
    ck_assert_ptr_nonnull(strstr(xac_err_text(), "no full image"));
}
END_TEST

START_TEST(page_of_an_unknown_file_is_refused)
{
    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 9);
    s.file[0].id = 77;
    synth_transactions(&s, 1);
    ck_refused(name_of(s.block_lsn[1]), offset_of(s.block_lsn[1]));
}
END_TEST

START_TEST(block_that_is_cut_off_needs_no_file)
{
    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 9);
    (void)synth_file(&s, "b", 9);
    (void)synth_file(&s, "c", 9);
    synth_begin(&s);
    synth_change(&s, 0, 1);
    synth_commit(&s);
    s.file[2].id = 77;
    synth_begin(&s);
    synth_change(&s, 1, 1);
    synth_change(&s, 2, 1);
    synth_commit(&s);
    ck_refused(name_of(s.block_lsn[4]), offset_of(s.block_lsn[4]));
    ck_assert_int_eq(unlinkat(s.dirfd, "b", 0), 0);
    ck_ok(recover_cutting());
    ck_assert(synth_same(&s, 0));
    ck_assert_uint_eq(rep.files, 1);
    ck_assert_uint_eq(rep.transactions, 1);
    ck_assert_uint_eq(rep.pages_redone, 1);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("recover_damage");
    TCase *tc;

    tc = recover_tcase(suite, "blocks");
    tcase_add_test(tc, flipped_bit_in_the_synced_part_is_refused);
    tcase_add_test(tc, flipped_bit_in_the_last_batch_looks_torn);
    tcase_add_test(tc, header_of_a_torn_block_proves_damage);
    tcase_add_test(tc, damage_can_be_cut);
    tcase_add_test(tc, last_checkpoint_end_is_known_synced);
    tcase_add_test(tc, log_cut_within_a_checkpoint_is_redone_from_full_images);
    tcase_add_test(tc, log_cut_within_a_checkpoint_keeps_what_came_before);
    tc = recover_tcase(suite, "segments");
    tcase_add_test(tc, flipped_bit_in_a_segment_header_is_refused);
    tcase_add_test(tc, missing_segment_is_damage);
    tcase_add_test(tc, short_segment_is_damage);
    tcase_add_test(tc, bad_segment_ahead_is_no_damage_and_not_used);
    tcase_add_loop_test(tc, segments_of_others_are_refused, 0, 3);
    tc = recover_tcase(suite, "master");
    tcase_add_test(tc, no_master_is_no_environment);
    tcase_add_test(tc, older_master_slot_serves_within_a_generation);
    tcase_add_test(tc, log_newer_than_the_master_is_refused);
    tc = recover_tcase(suite, "contents");
    tcase_add_test(tc, damaged_data_file_is_refused);
    tcase_add_test(tc, short_data_file_is_refused);
    tcase_add_test(tc, missing_data_file_is_refused_or_cut);
    tcase_add_test(tc, difference_without_full_image_is_refused);
    tcase_add_test(tc, page_of_an_unknown_file_is_refused);
    tcase_add_test(tc, block_that_is_cut_off_needs_no_file);
    return recover_main(suite);
}
