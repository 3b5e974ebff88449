/* SPDX-License-Identifier: MIT */
/*
 * check_copies.c -- environments that were copied, renamed, archived and restored.
 *
 * GOAL    a copy of an environment never changes what belongs to the original; it redoes
 *         what lies in it, and says what to do about the rest.  A directory that was
 *         renamed is no copy.
 * METHOD  a process counts its commits in a file inside or outside of the directory; cp,
 *         mv and tar do what users do with it; then copy and original are recovered.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "actor.h"

#define OUTSIDE ENV_FILE
#define INSIDE  ENV_DIR "/in.db"

enum original {
    LIVE,
    CLOSED,
    CRASHED,
    ORIGINALS
};

/* part_from -- what becomes of the original's process. */
static void
part_from(struct actor *a, int original)
{
    if (original == CLOSED)
        actor_leave(a);
    else if (original == CRASHED)
        proc_kill(a->pid);
}

/* end -- the original comes to its end, and has lost nothing. */
static void
end(struct actor *a, int original, const char *file, uint64_t count)
{
    if (original == LIVE)
        actor_leave(a);
    else
        must_rc(xac_recover(a->dir), 0);
    must_eq(file_u64(file, 0), count);
}

/* copy_after -- an original that has committed 10 times, been copied, committed 10 times
   more and made a checkpoint. */
static struct actor *
copy_after(const char *file, int original)
{
    struct actor *a = actor_start(ENV_DIR, file, 10);

    shell("cp -a " ENV_DIR " copy");
    actor_count(a, 20);
    actor_checkpoint(a);
    part_from(a, original);
    return a;
}

START_TEST(copy_leaves_files_outside_alone)
{
    struct actor *a = copy_after(OUTSIDE, _i);
    struct image *copy = image_take("copy");

    must_eq(file_u64(OUTSIDE, 0), 20);
    must_eq(tool_run("xrecover", "--dry-run", "copy"), 1);
    must_eq(tool_run("xrecover", "", "copy"), 1);
    ck_says(OUTSIDE);
    ck_says("is a copy of an environment");
    ck_says("--outside");
    must_refuse(xac_recover("copy"), XAC_ECOPY);
    must_refuse(xac_init("copy", XAC_DURABLE), XAC_ECOPY);
    must(strstr(xac_last_error(), OUTSIDE) != NULL);
    must_unchanged(copy, "copy");
    must_eq(file_u64(OUTSIDE, 0), 20);
    image_free(copy);
    end(a, _i, OUTSIDE, 20);
}
END_TEST

START_TEST(copy_redoes_what_lies_in_it)
{
    struct actor *a = copy_after(INSIDE, _i), *b;

    must_eq(tool_run("xrecover", "", "copy"), 0);
    ck_says("is a copy of an environment");
    must_eq(file_u64("copy/in.db", 0), 10);
    must_eq(file_u64(INSIDE, 0), 20);
    must_eq(tool_run("xrecover", "", "copy"), 0);
    must(strstr(output, "is a copy") == NULL);
    b = actor_start("copy", "copy/in.db", 15);
    proc_kill(b->pid);
    shell("cp -a copy again"); /* a copy of a copy */
    must_rc(xac_recover("copy"), 0);
    must_eq(file_u64("copy/in.db", 0), 15);
    b = actor_start("again", "again/in.db", 17);
    actor_leave(b);
    must_eq(file_u64("again/in.db", 0), 17);
    must_eq(file_u64("copy/in.db", 0), 15);
    end(a, _i, INSIDE, 20);
}
END_TEST

START_TEST(copy_is_opened_as_it_is)
{
    struct actor *a = copy_after(INSIDE, _i), *b;

    b = actor_start("copy", "copy/in.db", 11);
    actor_leave(b);
    must_eq(file_u64("copy/in.db", 0), 11);
    end(a, _i, INSIDE, 20);
}
END_TEST

START_TEST(copy_takes_files_outside_when_told)
{
    struct actor *a = actor_start(ENV_DIR, OUTSIDE, 10);

    proc_kill(a->pid);
    shell("cp -a " ENV_DIR " copy && rm -r " ENV_DIR);
    must_refuse(xac_recover("copy"), XAC_ECOPY);
    must_eq(tool_run("xrecover", "--outside", "copy"), 0);
    must_eq(file_u64(OUTSIDE, 0), 10);
    a = actor_start("copy", OUTSIDE, 12);
    proc_kill(a->pid);
    must_rc(xac_recover("copy"), 0); /* it is no copy any more */
    must_eq(file_u64(OUTSIDE, 0), 12);
}
END_TEST

START_TEST(clean_copy_is_an_environment)
{
    struct actor *a = actor_start(ENV_DIR, OUTSIDE, 10), *b;

    actor_leave(a);
    shell("cp -a " ENV_DIR " copy");
    b = actor_start("copy", "copy/in.db", 5);
    proc_kill(b->pid);
    must_rc(xac_recover("copy"), 0);
    must_eq(file_u64("copy/in.db", 0), 5);
    must_eq(file_u64(OUTSIDE, 0), 10);
    a = actor_start(ENV_DIR, OUTSIDE, 11);
    actor_leave(a);
    must_eq(file_u64(OUTSIDE, 0), 11);
}
END_TEST

START_TEST(renamed_directory_is_no_copy)
{
    struct actor *a = actor_start(ENV_DIR, OUTSIDE, 10);

    proc_kill(a->pid);
    must(rename(ENV_DIR, "moved") == 0);
    must_eq(tool_run("xrecover", "", "moved"), 0);
    must(strstr(output, "is a copy") == NULL);
    must_eq(file_u64(OUTSIDE, 0), 10);
}
END_TEST

START_TEST(restored_archive_is_a_copy)
{
    struct actor *a = actor_start(ENV_DIR, _i == 0 ? INSIDE : OUTSIDE, 10);

    proc_kill(a->pid);
    shell("tar cf archive.tar " ENV_DIR " && mkdir elsewhere && cd elsewhere &&"
          " tar xf ../archive.tar");
    if (_i == 0) {
        must_eq(tool_run("xrecover", "", "elsewhere/" ENV_DIR), 0);
        must_eq(file_u64("elsewhere/" INSIDE, 0), 10);
        must_eq(file_u64(INSIDE, 0), 0);
    } else {
        must_eq(tool_run("xrecover", "", "elsewhere/" ENV_DIR), 1);
        ck_says("is a copy of an environment");
        must_eq(file_u64(OUTSIDE, 0), 0);
    }
    must_rc(xac_recover(ENV_DIR), 0);
    must_eq(file_u64(_i == 0 ? INSIDE : OUTSIDE, 0), 10);
}
END_TEST

/* All that is written to such a copy is written to the original, too. */
START_TEST(copy_of_hard_links_is_refused)
{
    struct actor *a = actor_start(ENV_DIR, INSIDE, 10);
    struct image *was;

    proc_kill(a->pid);
    shell("cp -al " ENV_DIR " copy");
    was = image_take(ENV_DIR);
    must_refuse(xac_recover("copy"), XAC_ECOPY);
    must(strstr(xac_last_error(), "hard link") != NULL);
    must_refuse(xac_init("copy", XAC_DURABLE), XAC_ECOPY);
    must_unchanged(was, ENV_DIR);
    image_free(was);
    must_rc(xac_recover(ENV_DIR), 0);
    must_eq(file_u64(INSIDE, 0), 10);
}
END_TEST

START_TEST(copy_keeps_off_a_log_elsewhere)
{
    struct actor *a = actor_new(ENV_DIR, INSIDE);
    struct image *log;

    (void)snprintf(a->log_dir, sizeof a->log_dir, "log");
    actor_enter(a);
    actor_count(a, 10);
    proc_kill(a->pid);
    shell("cp -a " ENV_DIR " copy && cp -a log log-of-copy");
    log = image_take("log");
    must_refuse(xac_recover("copy"), XAC_ECOPY);
    must_refuse(xac_init("copy", XAC_DURABLE), XAC_ECOPY);
    must(strstr(xac_last_error(), "/log ") != NULL);
    must_eq(tool_run("xrecover", "", "copy"), 1);
    must_eq(tool_run("xrecover", "--log-dir log-of-copy", "copy"), 0);
    must_eq(file_u64("copy/in.db", 0), 10);
    must_rc(xac_recover("copy"), 0); /* it knows now */
    must_unchanged(log, "log");
    image_free(log);
    must_rc(xac_recover(ENV_DIR), 0);
    must_eq(file_u64(INSIDE, 0), 10);
}
END_TEST

START_TEST(backup_is_no_copy)
{
    struct actor *a = actor_start(ENV_DIR, OUTSIDE, 10);

    must_eq(tool_run("xbackup", ENV_DIR, "backup"), 0);
    actor_count(a, 20);
    must_eq(tool_run("xrecover", "", "backup"), 0);
    must(strstr(output, "is a copy") == NULL);
    must_eq(file_u64("backup/xac-outside/1-" OUTSIDE, 0), 10);
    actor_leave(a);
    must_eq(file_u64(OUTSIDE, 0), 20);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("copies");
    TCase *tc = env_tcase(s, "copies", 120);

    tcase_add_loop_test(tc, copy_leaves_files_outside_alone, 0, ORIGINALS);
    tcase_add_loop_test(tc, copy_redoes_what_lies_in_it, 0, ORIGINALS);
    tcase_add_loop_test(tc, copy_is_opened_as_it_is, 0, ORIGINALS);
    tcase_add_test(tc, copy_takes_files_outside_when_told);
    tcase_add_test(tc, clean_copy_is_an_environment);
    tcase_add_test(tc, renamed_directory_is_no_copy);
    tcase_add_loop_test(tc, restored_archive_is_a_copy, 0, 2);
    tcase_add_test(tc, copy_of_hard_links_is_refused);
    tcase_add_test(tc, copy_keeps_off_a_log_elsewhere);
    tcase_add_test(tc, backup_is_no_copy);
    return actor_main(s);
}
