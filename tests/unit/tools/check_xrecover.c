/* SPDX-License-Identifier: MIT */
/*
 * check_xrecover.c -- the tool xrecover: exit codes, words, JSON; what it must not write.
 */
#include <config.h>

#include <string.h>
#include <sys/wait.h>

#include "tests/common/recover_env.h"
#include "tests/common/tool_run.h"
#include "base/lockfile.h"

/* run -- xrecover with some arguments on the environment; ret its exit code. */
static int
run(const char *arguments)
{
    return tool_run("xrecover", arguments, s.dir);
}

static void
some_log(void)
{
    synth_open(&s, 4096, 65536);
    (void)synth_file(&s, "a", 3);
    synth_transactions(&s, 8);
    synth_sync(&s);
    synth_transactions(&s, 1);
}

START_TEST(log_is_redone_and_reported)
{
    some_log();
    ck_assert_int_eq(run(""), 0);
    ck_says("9 committed transactions");
    ck_says("redone: 9 transactions");
    ck_says("last commit 9");
    ck_assert(synth_same(&s, 0));
    ck_assert_int_eq(run("--verbose"), 0);
    ck_says("shut down cleanly");
    ck_says("generation 3 begins");
    ck_assert_int_eq(run("-q"), 0);
    ck_assert_str_eq(output, "");
}
END_TEST

START_TEST(dry_run_writes_nothing)
{
    struct synth_picture picture;

    some_log();
    synth_picture_take(&s, &picture);
    ck_assert_int_eq(run("--dry-run"), 0);
    ck_says("would redo: 9 transactions");
    ck_assert(synth_picture_same(&s, &picture));
    synth_picture_free(&picture);
}
END_TEST

START_TEST(json_has_units_in_its_keys)
{
    char line[64];

    some_log();
    ck_assert_int_eq(run("--json -n"), 0);
    (void)snprintf(line, sizeof line, "\"end_lsn_bytes\": %llu,",
                   (unsigned long long)s.tail);
    ck_says(line);
    ck_says("\"code\": 0,");
    ck_says("\"dry_run\": true,");
    ck_says("\"transactions_redone\": 9,");
    ck_says("\"end_reason\": \"no block: zeros\"\n}");
}
END_TEST

START_TEST(damage_is_refused_then_cut)
{
    struct synth_picture picture;
    uint64_t lsn;

    some_log();
    lsn = s.block_lsn[4];
    synth_flip(&s, "xac-log.00000001", 4096 + lsn + 70, 1);
    ck_assert_int_eq(close(xac_lockfile_open(s.dirfd)), 0);
    synth_picture_take(&s, &picture);
    ck_assert_int_eq(run(""), 3);
    ck_says("xac-log.00000001: offset ");
    ck_says("torn block: checksum");
    ck_says("nothing was written");
    ck_assert_int_eq(run("--json"), 3);
    ck_says("\"code\": -31011,");
    ck_says("\"damaged\": true,");
    ck_assert(synth_picture_same(&s, &picture));
    ck_assert_int_eq(run("--cut"), 0);
    ck_says("the log was cut there");
    synth_picture_free(&picture);
}
END_TEST

START_TEST(live_participant_keeps_it_out)
{
    int fd;

    some_log();
    fd = xac_lockfile_open(s.dirfd);
    ck_assert_int_eq(xac_alive_take(fd, 7), 0);
    ck_assert_int_eq(run(""), 4);
    ck_says("in use by live processes");
    ck_assert_int_eq(run("--dry-run"), 4);
    ck_assert(!synth_same(&s, 0));
    close(fd);
    ck_assert_int_eq(run(""), 0);
}
END_TEST

START_TEST(no_environment_stays_untouched)
{
    struct synth_picture picture;

    some_log();
    ck_assert_int_eq(unlinkat(s.dirfd, "xac.master", 0), 0);
    synth_picture_take(&s, &picture);
    ck_assert_int_eq(run(""), 5);
    ck_says("no xac.master");
    ck_assert(synth_picture_same(&s, &picture));
    synth_picture_free(&picture);
}
END_TEST

START_TEST(replaced_file_needs_consent)
{
    some_log();
    ck_assert_int_eq(renameat(s.dirfd, "a", s.dirfd, "b"), 0);
    ck_assert_int_eq(run(""), 1);
    ck_says("a: missing");
    ck_assert_int_eq(run("--accept-replaced"), 0);
    ck_assert(synth_same(&s, 0));
}
END_TEST

START_TEST(wrong_usage_is_told)
{
    some_log();
    ck_assert_int_eq(run("--nonsense"), 2);
    ck_says("usage: xrecover");
    ck_assert_int_eq(run("another-directory"), 2);
    ck_assert_int_eq(run("--help"), 0);
    ck_says("exit: 0 done");
    ck_assert_int_eq(run("--version"), 0);
    ck_says("(libxac) " PACKAGE_VERSION);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("xrecover");
    TCase *tc = recover_tcase(suite, "xrecover");

    tcase_add_test(tc, log_is_redone_and_reported);
    tcase_add_test(tc, dry_run_writes_nothing);
    tcase_add_test(tc, json_has_units_in_its_keys);
    tcase_add_test(tc, damage_is_refused_then_cut);
    tcase_add_test(tc, live_participant_keeps_it_out);
    tcase_add_test(tc, no_environment_stays_untouched);
    tcase_add_test(tc, replaced_file_needs_consent);
    tcase_add_test(tc, wrong_usage_is_told);
    return recover_main(suite);
}
