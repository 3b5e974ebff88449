/* SPDX-License-Identifier: MIT */
/*
 * check_lost_log.c -- the log, or the master record, is removed.
 *
 * GOAL    xInit(), xRecover() and every tool name the file that is missing and say what to do;
 *         nothing is made in its place; what is put back is as good as before.
 * METHOD  an environment that has crashed, or was shut down, without the file.
 */
#include <config.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actor.h"

#define MASTER  ENV_DIR "/xac.master"
#define SEGMENT ENV_DIR "/xac-log.00000001"

/* leave_env -- an environment with ten commits. */
static void
leave_env(bool is_crash)
{
    struct actor *a = actor_start(ENV_DIR, ENV_DIR "/in.db", 10);

    if (is_crash)
        proc_kill(a->pid);
    else
        actor_leave(a);
}

/* must_say -- a tool ends with this code and these words, and changes nothing. */
static void
must_say(const char *tool, const char *options, const char *where, int code,
         const char *words)
{
    struct image *before = image_take(ENV_DIR);

    must_eq(tool_run(tool, options, where), code);
    ck_says(words);
    must_unchanged(before, ENV_DIR);
    image_free(before);
}

/* each_says -- every tool that reads what is missing, and the library. */
static void
each_says(int code, int error, const char *words)
{
    struct image *before = image_take(ENV_DIR);

    must_say("xrecover", "", ENV_DIR, code, words);
    must_say("xrecover", "--dry-run", ENV_DIR, code, words);
    must_say("xrecover", "--check", ENV_DIR, code, words);
    must_say("xlogdump", "", ENV_DIR, code, words);
    must_say("xarchive", "", ENV_DIR, code, words);
    must_say("xbackup", "", ENV_DIR " backup", code, words);
    must_refuse(xac_init(ENV_DIR, XAC_DURABLE), error);
    must(strstr(xac_last_error(), words) != NULL);
    must_refuse(xac_init(ENV_DIR, XAC_READONLY), error);
    must(strstr(xac_last_error(), words) != NULL);
    must_refuse(xac_recover(ENV_DIR), error);
    must(strstr(xac_last_error(), words) != NULL);
    must_unchanged(before, ENV_DIR);
    image_free(before);
}

/* must_be_as_before -- all that was acknowledged is there. */
static void
must_be_as_before(void)
{
    struct actor *a = actor_start(ENV_DIR, ENV_DIR "/in.db", 0);

    must_eq(word_load(&a->count), 10);
    actor_leave(a);
}

START_TEST(removed_log_is_called_missing)
{
    leave_env(_i == 0);
    must(rename(SEGMENT, "kept") == 0);
    each_says(3, XAC_EDAMAGED, "xac-log.00000001: missing");
    must(rename("kept", SEGMENT) == 0);
    must_be_as_before();
}
END_TEST

START_TEST(removed_master_record_is_named)
{
    leave_env(_i == 0);
    must(rename(MASTER, "kept") == 0);
    each_says(5, XAC_ENOTENV, "no xac.master, though there is xac-log.00000001");
    must_say("xstat", "", ENV_DIR, 5, "no xac.master, though there is xac-log.00000001");
    must(!file_exists(MASTER));
    must(rename("kept", MASTER) == 0);
    must_be_as_before();
}
END_TEST

START_TEST(removed_master_record_of_a_log_elsewhere_is_named)
{
    struct actor *a = actor_new(ENV_DIR, ENV_DIR "/in.db");

    must_ok(mkdir("log", 0777));
    must(realpath("log", a->log_dir) != NULL);
    actor_enter(a);
    actor_leave(a);
    must(rename(MASTER, "kept") == 0);
    must_refuse(xac_init(ENV_DIR, XAC_DURABLE), XAC_ENOTENV);
    must(strstr(xac_last_error(), "no xac.master, though there is xac.logdir") != NULL);
    must_eq(tool_run("xrecover", "", "log"), 5);
    ck_says("where an environment has its log");
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("lost log");
    TCase *tc = env_tcase(s, "lost", 60);

    tcase_add_loop_test(tc, removed_log_is_called_missing, 0, 2);
    tcase_add_loop_test(tc, removed_master_record_is_named, 0, 2);
    tcase_add_test(tc, removed_master_record_of_a_log_elsewhere_is_named);
    return actor_main(s);
}
