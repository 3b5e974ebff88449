/* SPDX-License-Identifier: MIT */
/*
 * check_recover_which.c -- which file and which directory is this: what recovery does
 * with other files under known names, with copies, and with older formats of the log.
 *
 * Goal:   a page of the log goes only to the file that was mapped.
 * Method: logs made by hand (synth.h); a replaced statx says when files were born.
 */
#include <config.h>

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/common/recover_env.h"
#include "base/identity.h"
#include "base/sys.h"

static int
recover_accepting(void)
{
    struct xac_recover_options o = {.accept_replaced = true};

    return xac_recover_dir(s.dirfd, &o, &rep, &next);
}

/* ---- Inode numbers that are used again --------------------------------------------- */

static struct xac_sys real;
static int64_t later_s; /* files are born so much later than they say               */
static bool is_birth_hidden; /* the file system does not keep it                   */

static int
statx_other_birth(int dirfd, const char *path, int flags, unsigned mask,
                  struct statx *out)
{
    int rc = real.statx(dirfd, path, flags, mask | STATX_TYPE, out);

    if (!S_ISDIR(out->stx_mode)) /* else it would be a copy of an environment */
        out->stx_btime.tv_sec += later_s;
    if (is_birth_hidden)
        out->stx_mask &= ~STATX_BTIME;
    return rc;
}

/* one_file -- a log with changes of one file; its birth is known if it can be. */
static bool
one_file(void)
{
    struct xac_identity who;

    real = xac_sys;
    xac_sys.statx = statx_other_birth;
    synth_open(&s, 4096, 65536);
    s.born = true;
    (void)synth_file(&s, "a", 8);
    synth_transactions(&s, 30);
    ck_ok(xac_identity_at(s.dirfd, "a", &who));
    if (who.birth_ns == 0)
        printf("this file system does not say when a file was born\n");
    return who.birth_ns != 0;
}

static void
sys_restore(void)
{
    xac_sys = real;
    later_s = 0;
    is_birth_hidden = false;
}

START_TEST(file_born_later_with_the_same_inode_is_another)
{
    struct synth_picture picture;

    if (one_file()) {
        synth_picture_take(&s, &picture);
        later_s = 1;
        ck_assert_int_eq(dry_run(), XAC_EREPLACED);
        ck_assert_int_eq(recover(), XAC_EREPLACED);
        ck_assert_ptr_nonnull(strstr(xac_err_text(), "a: another file that has got"));
        ck_assert(synth_picture_same(&s, &picture));
        ck_ok(recover_accepting());
        ck_assert(synth_same(&s, 0));
        synth_picture_free(&picture);
    }
    sys_restore();
}
END_TEST

START_TEST(file_without_a_birth_is_known_by_its_inode)
{
    if (one_file()) {
        is_birth_hidden = true;
        ck_ok(recover());
        ck_assert(synth_same(&s, 0));
    }
    sys_restore();
}
END_TEST

/* ---- An older format --------------------------------------------------------------- */

/* history_4 -- what version 4 has left: a checkpoint, and changes since. */
static void
history_4(void)
{
    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 8);
    (void)synth_file(&s, "b", 3);
    synth_transactions(&s, 40);
    synth_checkpoint(&s, odd_pages, 10);
    synth_transactions(&s, 20);
    synth_sync(&s);
    synth_make_version_4(&s);
}

START_TEST(version_4_is_recovered_and_becomes_5)
{
    struct xac_master_slot m;

    history_4();
    ck_ok(xac_master_read(s.dirfd, &m));
    ck_assert_uint_eq(m.version, 4);
    ck_ok(recover());
    ck_assert_uint_ge(rep.transactions, 30);
    ck_assert(synth_same(&s, 0) && synth_same(&s, 1));
    ck_ok(xac_master_read(s.dirfd, &m));
    ck_assert_uint_eq(m.version, 5);
    ck_assert_uint_ne(m.dir_inode, 0);
    s.master = next;
    s.tail = s.durable = next.start_lsn;
    s.born = true;
    for (int i = 0; i < 2; i++)
        memset(s.file[i].is_fresh, 0, s.file[i].pages);
    synth_refile(&s); /* in a segment that version 4 has made */
    synth_transactions(&s, 20);
    ck_ok(recover());
    ck_assert_uint_eq(rep.transactions, 20);
    ck_assert(synth_same(&s, 0) && synth_same(&s, 1));
}
END_TEST

START_TEST(version_4_knows_files_by_inode)
{
    uint8_t zeros[4096] = {0};

    history_4();
    ck_assert_int_eq(renameat(s.dirfd, "a", s.dirfd, "old"), 0);
    synth_put(&s, "a", zeros, sizeof zeros);
    ck_assert_int_eq(recover(), XAC_EREPLACED);
    ck_ok(recover_accepting());
    ck_assert(synth_same(&s, 0) && synth_same(&s, 1));
}
END_TEST

/* ---- Ids ---------------------------------------------------------------------------- */

/* Who was to be called so never got the name (xRename), or died before that counted. */
START_TEST(file_with_an_id_that_never_counted_keeps_its_length)
{
    struct stat st;

    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "long", 4000);
    free(s.file[0].model);
    free(s.file[0].full_since);
    free(s.file[0].is_fresh);
    s.n_files = 0;
    (void)synth_file(&s, "f", 3);
    ck_assert_uint_eq(s.file[0].id, 1);
    synth_begin(&s);
    synth_change(&s, 0, 1);
    synth_commit(&s);
    ck_ok(recover());
    ck_assert(synth_same(&s, 0));
    ck_assert_int_eq(fstatat(s.dirfd, "f", &st, 0), 0);
    ck_assert_int_eq(st.st_size, 3 * 4096);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("recover_which");
    TCase *tc;

    tc = recover_tcase(suite, "inodes");
    tcase_add_test(tc, file_born_later_with_the_same_inode_is_another);
    tcase_add_test(tc, file_without_a_birth_is_known_by_its_inode);
    tc = recover_tcase(suite, "ids");
    tcase_add_test(tc, file_with_an_id_that_never_counted_keeps_its_length);
    tc = recover_tcase(suite, "version 4");
    tcase_add_test(tc, version_4_is_recovered_and_becomes_5);
    tcase_add_test(tc, version_4_knows_files_by_inode);
    return recover_main(suite);
}
