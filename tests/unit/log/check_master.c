/* SPDX-License-Identifier: MIT */
/*
 * check_master.c -- the master record: two slots, of which one always stands.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "tests/common/recover_env.h"
#include "base/digest.h"
#include "base/sys.h"

static struct xac_master_slot got;

/* write_once -- a record that can be told from the one before. */
static int
write_once(uint64_t mark)
{
    struct xac_master_slot m = s.master;
    bool is_lost;

    m.end_lsn_after = mark;
    return xac_master_write(s.dirfd, &m, &is_lost);
}

static uint64_t
newest_mark(void)
{
    ck_ok(xac_master_read(s.dirfd, &got));
    return got.end_lsn_after;
}

START_TEST(create_makes_an_empty_log)
{
    struct synth other;
    size_t n;

    synth_open(&s, 4096, 65536);
    ck_ok(xac_master_read(s.dirfd, &got));
    ck_assert_mem_eq(&got, &s.master, sizeof got);
    ck_assert_uint_eq(got.generation, 1);
    ck_assert_uint_eq(got.start_lsn, XAC_LSN_FIRST);
    ck_assert_uint_eq(got.segment_bytes, 65536);
    ck_assert_uint_eq(got.page_size, 4096);
    ck_assert_uint_gt(got.time_ns, UINT64_C(1600000000000000000));
    free(synth_get(&s, XAC_MASTER_NAME, &n));
    ck_assert_uint_eq(n, 8192);
    ck_assert_int_eq(faccessat(s.dirfd, XAC_MASTER_NAME ".new", F_OK, 0), -1);
    synth_open(&other, 4096, 65536);
    ck_assert_mem_ne(other.master.identity, s.master.identity, 16);
    synth_close(&other);
}
END_TEST

START_TEST(writes_alternate_between_the_slots)
{
    synth_open(&s, 4096, 65536);
    for (uint64_t i = 0; i < 10; i++) {
        struct xac_master_slot *slot;
        uint8_t *file;
        size_t n;

        ck_ok(write_once(5000 + i));
        ck_assert_uint_eq(newest_mark(), 5000 + i);
        ck_assert_uint_eq(got.sequence, i + 2);
        file = synth_get(&s, XAC_MASTER_NAME, &n);
        slot = (struct xac_master_slot *)(void *)(file + (i % 2 == 0 ? 4096 : 0));
        ck_assert_uint_eq(slot->end_lsn_after, 5000 + i);
        free(file);
    }
}
END_TEST

START_TEST(damaged_newest_slot_leaves_the_older)
{
    synth_open(&s, 4096, 65536);
    ck_ok(write_once(5001));
    ck_ok(write_once(5002)); /* slot 0 */
    for (uint64_t at = 0; at < 512; at++) {
        synth_flip(&s, XAC_MASTER_NAME, at, 0x20);
        ck_assert_uint_eq(newest_mark(), 5001);
        synth_flip(&s, XAC_MASTER_NAME, at, 0x20);
        ck_assert_uint_eq(newest_mark(), 5002);
    }
}
END_TEST

START_TEST(two_damaged_slots_are_reported)
{
    struct synth_picture picture;

    synth_open(&s, 4096, 65536);
    ck_ok(write_once(5001));
    synth_flip(&s, XAC_MASTER_NAME, 100, 1);
    synth_flip(&s, XAC_MASTER_NAME, 4096 + 100, 1);
    synth_picture_take(&s, &picture);
    ck_assert_int_eq(xac_master_read(s.dirfd, &got), XAC_EDAMAGED);
    ck_assert_int_eq(write_once(1), XAC_EDAMAGED);
    ck_assert_int_eq(recover(), XAC_EDAMAGED);
    ck_assert(synth_picture_same(&s, &picture));
    synth_picture_free(&picture);
}
END_TEST

START_TEST(missing_file_is_enoent)
{
    synth_open(&s, 4096, 65536);
    ck_assert_int_eq(unlinkat(s.dirfd, XAC_MASTER_NAME, 0), 0);
    ck_assert_int_eq(xac_master_read(s.dirfd, &got), ENOENT);
    ck_assert_int_eq(write_once(1), ENOENT);
}
END_TEST

/* put_slot -- a slot with a right checksum. */
static void
put_slot(int i, const struct xac_master_slot *slot)
{
    struct xac_master_slot m = *slot;
    size_t n;
    uint8_t *file = synth_get(&s, XAC_MASTER_NAME, &n);

    m.checksum = xac_xxh64(&m, offsetof(struct xac_master_slot, checksum));
    memcpy(file + i * 4096, &m, sizeof m);
    synth_put(&s, XAC_MASTER_NAME, file, n);
    free(file);
}

START_TEST(other_version_is_refused)
{
    struct xac_master_slot m;

    synth_open(&s, 4096, 65536);
    m = s.master;
    m.version = _i == 0 ? XAC_FORMAT_VERSION_LEAST - 1 : XAC_FORMAT_VERSION + 1;
    m.sequence = 2;
    put_slot(1, &m);
    ck_assert_int_eq(xac_master_read(s.dirfd, &got), XAC_EVERSION);
    ck_assert_int_eq(recover(), XAC_EVERSION);
}
END_TEST

/* What version 4 had reserved says nothing in it, and must be zero. */
START_TEST(version_4_knows_no_directory)
{
    struct xac_master_slot m;
    struct xac_identity dir;

    synth_open(&s, 4096, 65536);
    ck_ok(xac_master_read(s.dirfd, &m));
    ck_ok(xac_identity_of(s.dirfd, &dir));
    ck_assert(!xac_master_is_copied(&m, &dir));
    dir.inode++;
    ck_assert(xac_master_is_copied(&m, &dir));
    m.version = 4;
    m.sequence = 2;
    put_slot(1, &m);
    ck_ok(xac_master_read(s.dirfd, &got));
    ck_assert_uint_eq(got.sequence, 1);
    xac_master_put_dir(&m, &(struct xac_identity){.inode = 0});
    put_slot(1, &m);
    ck_ok(xac_master_read(s.dirfd, &got));
    ck_assert_uint_eq(got.sequence, 2);
    ck_assert(!xac_master_is_copied(&got, &dir));
    ck_ok(recover());
    ck_ok(xac_master_read(s.dirfd, &got));
    ck_assert_uint_eq(got.version, XAC_FORMAT_VERSION);
    dir.inode--;
    ck_assert_uint_eq(got.dir_inode, dir.inode);
    ck_assert_uint_eq(got.dir_birth_ns, dir.birth_ns);
}
END_TEST

START_TEST(other_page_size_is_refused)
{
    synth_open(&s, 4096, 65536);
    page_bytes = 16384;
    ck_assert_int_eq(xac_master_read(s.dirfd, &got), XAC_EPAGESIZE);
    ck_assert_int_eq(recover(), XAC_EPAGESIZE);
    page_bytes = 4096;
    ck_ok(recover());
}
END_TEST

START_TEST(impossible_values_are_damage)
{
    struct xac_master_slot m;

    synth_open(&s, 4096, 65536);
    m = s.master;
    if (_i == 0)
        m.segment_bytes = 65537;
    if (_i == 1)
        m.redo_lsn = 4095;
    if (_i == 2)
        m.segment_bytes = 0;
    put_slot(0, &m);
    ck_assert_int_eq(xac_master_read(s.dirfd, &got), XAC_EDAMAGED);
}
END_TEST

START_TEST(nonzero_reserved_bytes_make_a_slot_invalid)
{
    struct xac_master_slot m;

    synth_open(&s, 4096, 65536);
    m = s.master;
    m.reserved[sizeof m.reserved - 1] = 1;
    put_slot(0, &m);
    ck_assert_int_eq(xac_master_read(s.dirfd, &got), XAC_EDAMAGED);
}
END_TEST

/* ---- Failing calls ---------------------------------------------------------------- */

static struct xac_sys real;
static size_t torn_at;
static bool is_whole; /* what was there already made up for what was not written */
static char order[16];

static ssize_t
torn_pwrite(int fd, const void *p, size_t n, off_t offset)
{
    uint8_t there[512];

    ck_assert_uint_eq(n, sizeof there);
    (void)real.pwrite(fd, p, torn_at, offset);
    ck_assert_int_eq(pread(fd, there, n, offset), (ssize_t)n);
    is_whole = memcmp(there, p, n) == 0;
    errno = EIO;
    return -1;
}

START_TEST(torn_write_leaves_the_older_or_the_newer)
{
    synth_open(&s, 4096, 65536);
    real = xac_sys;
    for (torn_at = 0; torn_at <= 512; torn_at++) {
        ck_ok(write_once(5001));
        ck_ok(write_once(5002));
        xac_sys.pwrite = torn_pwrite;
        ck_assert_int_eq(write_once(6000), EIO);
        xac_sys = real;
        ck_assert(is_whole || torn_at < 512);
        ck_assert_uint_eq(newest_mark(), is_whole ? 6000 : 5002);
        ck_assert_uint_ge(torn_at + 4, is_whole ? 512 : 0);
    }
}
END_TEST

static int
noting_sync(int fd)
{
    strcat(order, "s");
    return real.fdatasync(fd);
}

static ssize_t
noting_pwrite(int fd, const void *p, size_t n, off_t offset)
{
    strcat(order, "w");
    return real.pwrite(fd, p, n, offset);
}

static ssize_t
noting_pread(int fd, void *p, size_t n, off_t offset)
{
    if (order[0] == '\0' || order[strlen(order) - 1] != 'r')
        strcat(order, "r");
    return real.pread(fd, p, n, offset);
}

START_TEST(write_syncs_reads_writes_syncs)
{
    synth_open(&s, 4096, 65536);
    real = xac_sys;
    xac_sys.fdatasync = noting_sync;
    xac_sys.pwrite = noting_pwrite;
    xac_sys.pread = noting_pread;
    ck_ok(write_once(5001));
    xac_sys = real;
    ck_assert_str_eq(order, "srws");
}
END_TEST

static int
failing_sync(int fd)
{
    (void)fd;
    errno = EIO;
    return -1;
}

START_TEST(failing_sync_writes_nothing)
{
    synth_open(&s, 4096, 65536);
    real = xac_sys;
    xac_sys.fdatasync = failing_sync;
    ck_assert_int_eq(write_once(5001), EIO);
    xac_sys = real;
    ck_assert_uint_eq(newest_mark(), XAC_LSN_FIRST);
    xac_sys.fsync = failing_sync;
    ck_assert_int_eq(xac_master_create(s.dirfd, 4096, 65536, &got), EIO);
    xac_sys = real;
    ck_ok(xac_master_read(s.dirfd, &got));
    ck_assert_mem_eq(got.identity, s.master.identity, 16);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("master");
    TCase *tc = recover_tcase(suite, "master");

    tcase_add_test(tc, create_makes_an_empty_log);
    tcase_add_test(tc, writes_alternate_between_the_slots);
    tcase_add_test(tc, damaged_newest_slot_leaves_the_older);
    tcase_add_test(tc, two_damaged_slots_are_reported);
    tcase_add_test(tc, missing_file_is_enoent);
    tcase_add_loop_test(tc, other_version_is_refused, 0, 2);
    tcase_add_test(tc, version_4_knows_no_directory);
    tcase_add_test(tc, other_page_size_is_refused);
    tcase_add_loop_test(tc, impossible_values_are_damage, 0, 3);
    tcase_add_test(tc, nonzero_reserved_bytes_make_a_slot_invalid);
    tcase_add_test(tc, torn_write_leaves_the_older_or_the_newer);
    tcase_add_test(tc, write_syncs_reads_writes_syncs);
    tcase_add_test(tc, failing_sync_writes_nothing);
    return recover_main(suite);
}
