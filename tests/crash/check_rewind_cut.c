/* SPDX-License-Identifier: MIT */
/*
 * check_rewind_cut.c -- power cuts while an old source becomes a standby of the environment that was its standby.
 *
 * GOAL    After a power cut at any moment the old source is the environment that it was, or nobody can use it, or it is a
 *         standby of the new one; and another rewind makes it that, with files and log of the new source.
 * METHOD  All that the old source does is recorded, from its first call on (record.h), so that its files are the same ones
 *         in each state.  A child rewinds it.  At each event of that power could have failed: states of the disk are
 *         made (disk.h), judged, and rewound.  XAC_STATES=n states.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include "tests/crash/cut_walk.h"
#include "tests/unit/ship/rewind_env.h"

#define NOTE_BEGUN 1 /* the rewind                                                     */

/* How many states of each sort there were. */
struct sorts {
    uint64_t before, under_way, whole;
};

static struct sorts *sorts;

/* ---- What is recorded -------------------------------------------------------------------------- */

/* rewind_once -- a child. */
static void
rewind_once(void *arg)
{
    struct xac_receive_report rep;

    (void)arg;
    must_ok(receive(true, &rep));
}

static int (*plain_renameat)(int dirfd, const char *from, int dirfd2, const char *to);

/* note_second -- when xac.rewind gets its name for the second time, only log is wanting. */
static int
note_second(int dirfd, const char *from, int dirfd2, const char *to)
{
    static int n;
    int rc = plain_renameat(dirfd, from, dirfd2, to);

    if (strcmp(to, XAC_REWIND_NAME) == 0 && ++n == 2)
        record_note(NOTE_BEGUN, 0, 0);
    return rc;
}

/* rewind_noted -- a child. */
static void
rewind_noted(void *arg)
{
    plain_renameat = xac_sys.renameat;
    xac_sys.renameat = note_second;
    rewind_once(arg);
}

static void
rewind_recorded(void)
{
    pid_t source;

    record_note(NOTE_BEGUN, 0, 0);
    source = link_start();
    proc_run(rewind_once, NULL);
    link_finish(source);
}

/* ---- What is left of it -------------------------------------------------------------------------- */

static void
take_note(const struct record_event *note)
{
    must_eq(note->ino, NOTE_BEGUN);
}

/* judge_state -- what lies in the root. */
static void
judge_state(void)
{
    if (old_has(XAC_REWIND_NAME)) {
        must_refuse(xInit(OLD, DURABLE), XAC_ENOTENV);
        sorts->under_way++;
    } else if (old_has(XAC_FOLLOW_NAME)) {
        if (scene->log_dir[0] == '\0') /* a copy of it would have the same log */
            must_eq(must_be_whole(), scene->n[1]);
        sorts->whole++;
    } else {
        struct xac_recover_options look = {.dry_run = true};
        int fd = open(OLD, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        must_ok(xac_recover_dir(fd, &look, NULL, NULL));
        (void)close(fd);
        sorts->before++;
    }
    must_rewind();
    if (scene->log_dir[0] == '\0')
        must_eq(must_be_whole(), scene->n[1]);
}

/* ---- Cuts ------------------------------------------------------------------------------------------ */

/* cut -- OLD and NEW have parted. */
static void
cut(void)
{
    uint64_t n;

    sorts = (struct sorts *)proc_shared(sizeof *sorts);
    rewind_recorded();
    n = cut_walk(70 / ENV_DEAR, take_note, judge_state);
    printf("%llu states: %llu before, %llu under way, %llu whole\n",
           (unsigned long long)n, (unsigned long long)sorts->before,
           (unsigned long long)sorts->under_way, (unsigned long long)sorts->whole);
    must(n > 20 / ENV_DEAR && sorts->under_way > 20 / ENV_DEAR);
}

START_TEST(commits)
{
    cut_begin();
    (void)part((struct session){.n = 6, .g_pages = 16});
    session((struct session){.n = 8, .g_pages = 20, .extra = "of-old", .dies = true});
    session((struct session){.side = 1, .n = 7, .g_pages = 24});
    cut();
}
END_TEST

START_TEST(checkpoints_data_files_and_generations)
{
    struct session old = {.n = 6, .g_pages = 20, .checkpoint_every = 4, .large_every = 5};
    struct session new = {
        .side = 1, .n = 6, .g_pages = 24, .checkpoint_every = 4, .large_every = 5};

    cut_begin();
    (void)part((struct session){.n = 6, .g_pages = 16, .large_every = 5});
    session(old);
    session(new);
    old.dies = true;
    session(old);
    session(new);
    cut();
}
END_TEST

/* It was the power that failed, and left pages torn, checkpoints half done, or a generation that had hardly begun. */
START_TEST(power_that_failed_before)
{
    uint64_t n;

    cut_begin();
    sorts = (struct sorts *)proc_shared(sizeof *sorts);
    (void)part((struct session){.n = 6, .g_pages = 16});
    session((struct session){.side = 1, .n = 7, .g_pages = 24});
    record_note(NOTE_BEGUN, 0, 0);
    session((struct session){
        .n = 12, .g_pages = 20, .checkpoint_every = 3, .large_every = 5, .dies = true});
    n = cut_walk(70 / ENV_DEAR, take_note, judge_state);
    must(n > 20 / ENV_DEAR && sorts->before == n);
}
END_TEST

/* Both have a generation of the same number at the same place, and nothing else syncs the directory of the log. */
START_TEST(log_in_another_directory)
{
    pid_t source;
    uint64_t n;

    cut_begin();
    sorts = (struct sorts *)proc_shared(sizeof *sorts);
    (void)snprintf(scene->log_dir, sizeof scene->log_dir, "%s/log", cut_root);
    (void)part((struct session){.n = 6, .g_pages = 16});
    session((struct session){.n = 8, .g_pages = 20, .dies = true});
    session((struct session){.side = 1, .n = 7, .g_pages = 24});
    source = link_start();
    proc_run(rewind_noted, NULL);
    link_finish(source);
    n = cut_walk(400 / ENV_DEAR, take_note, judge_state);
    must(n > 10 / ENV_DEAR && sorts->under_way > 5 / ENV_DEAR);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("rewind_cut");
    TCase *t = env_tcase_with(s, "rewind_cut", 600, setup_scene);

    env_in_memory();
    tcase_add_test(t, commits);
    tcase_add_test(t, checkpoints_data_files_and_generations);
    tcase_add_test(t, power_that_failed_before);
    tcase_add_test(t, log_in_another_directory);
    return env_main(s);
}
