/* SPDX-License-Identifier: MIT */
/*
 * check_claims.c -- one file in two environments.
 *
 * GOAL    a mapped file belongs to one environment at a time: another one is refused, is
 *         told which has it, and changes nothing.  A crashed environment keeps its files
 *         until it is recovered; a recovery does not undo what another environment has
 *         done since.
 * METHOD  processes of two environments count in the same file, at the same time and one
 *         after the other; between them the mark is removed, as where there are no
 *         extended attributes.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "actor.h"

#define MARK  "user.xac.claim"
#define OTHER "other"

/* has_marks -- false, with words, if the file system does not have such attributes. */
static bool
has_marks(void)
{
    int fd = open("probe", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool has = fd >= 0 && fsetxattr(fd, "user.probe", "x", 1, 0) == 0;

    must(close(fd) == 0 && unlink("probe") == 0);
    if (!has)
        printf("no extended attributes here: nothing tested\n");
    return has;
}

static void
must_be_refused(struct actor *a, const char *words)
{
    must(actor_was_refused(a));
    if (strstr(a->words, words) == NULL)
        env_fail(__FILE__, __LINE__, "%s: not a word of \"%s\"", a->words, words);
}

START_TEST(second_environment_is_refused)
{
    struct actor *a = actor_new(ENV_DIR, ENV_FILE), *b = actor_new(OTHER, ENV_FILE);
    uint64_t size;

    a->flags = b->flags = _i == 0 ? XAC_DURABLE : XAC_NONDURABLE;
    actor_enter(a);
    actor_count(a, 10);
    size = file_size(ENV_FILE);
    actor_enter(b);
    must_be_refused(b, has_marks() ? "/" ENV_DIR : "another");
    must_eq(word_load(&b->code), EBUSY);
    must_ok(xac_init("third", XAC_DURABLE));
    must(xac_mmap(ENV_FILE, 8 * env_page()) == MAP_FAILED);
    must(strstr(xac_last_error(), xac_strerror(XAC_EINUSE)) != NULL);
    must(xac_mmap(ENV_FILE, env_page()) == MAP_FAILED);
    must_eq(file_size(ENV_FILE), size);
    must_ok(xac_shutdown());
    actor_count(a, 1000);
    actor_leave(a);
    must_eq(file_u64(ENV_FILE, 0), 1000);
    actor_enter(b);
    must(!actor_was_refused(b));
    actor_count(b, 2000);
    actor_enter(a);
    must_be_refused(a, "/" OTHER);
    actor_leave(b);
    must_eq(file_u64(ENV_FILE, 0), 2000);
}
END_TEST

START_TEST(crashed_environment_keeps_its_file)
{
    struct actor *a, *b = actor_new(OTHER, ENV_FILE);

    if (!has_marks())
        return;
    a = actor_start(ENV_DIR, ENV_FILE, 10);
    proc_kill(a->pid);
    actor_enter(b);
    must_be_refused(b, "recover it first");
    must_eq(file_u64(ENV_FILE, 0), 0);
    must_rc(xac_recover(ENV_DIR), 0);
    actor_enter(b);
    must(!actor_was_refused(b));
    actor_count(b, 20);
    proc_kill(b->pid);
    actor_enter(a); /* which has nothing to redo */
    must_be_refused(a, "recover it first");
    must(rename(OTHER, "away") == 0); /* nobody finds it, so it is gone */
    actor_enter(a);
    must(!actor_was_refused(a));
    actor_leave(a);
}
END_TEST

/* Where there are no marks, another environment gets the file; but what it does there is not
   undone. */
START_TEST(recovery_does_not_undo_what_others_did)
{
    struct actor *a = actor_start(ENV_DIR, ENV_FILE, 10), *b = actor_new(OTHER, ENV_FILE);

    proc_kill(a->pid);
    (void)removexattr(ENV_FILE, MARK);
    actor_enter(b);
    must(!actor_was_refused(b));
    actor_count(b, 3);
    actor_checkpoint(b);
    must_refuse(xac_recover(ENV_DIR), XAC_EINUSE);
    must_refuse(xac_init(ENV_DIR, XAC_DURABLE), XAC_EINUSE);
    must_eq(tool_run("xrecover", "--accept-replaced", ENV_DIR), 1);
    must_eq(file_u64(ENV_FILE, 0), 3);
    actor_leave(b);
    if (!has_marks())
        return;
    must_refuse(xac_recover(ENV_DIR), XAC_EINUSE);
    must(strstr(xac_last_error(), "/" OTHER " has mapped it since") != NULL);
    must_eq(tool_run("xrecover", "--accept-replaced", ENV_DIR), 1);
    shell("rm -r " OTHER);
    must_refuse(xac_recover(ENV_DIR), XAC_EINUSE);
    must(strstr(xac_last_error(), "which is gone") != NULL);
    must_eq(file_u64(ENV_FILE, 0), 3);
    must_eq(tool_run("xrecover", "--accept-replaced", ENV_DIR), 0);
    must_eq(file_u64(ENV_FILE, 0), 10);
    must_rc(xac_recover(ENV_DIR), 0);
}
END_TEST

START_TEST(copy_and_original_share_no_file)
{
    struct actor *a = actor_start(ENV_DIR, ENV_FILE, 10),
                 *b = actor_new("copy", ENV_FILE);

    actor_leave(a);
    shell("cp -a " ENV_DIR " copy");
    actor_enter(a);
    actor_count(a, 20);
    actor_enter(b);
    must_be_refused(b, "/" ENV_DIR);
    actor_leave(a);
    actor_enter(b);
    must(!actor_was_refused(b));
    actor_count(b, 30);
    actor_enter(a);
    must_be_refused(a, "/copy");
    actor_leave(b);
    must_eq(file_u64(ENV_FILE, 0), 30);
}
END_TEST

/* The copy of a file has its attributes, but is another file. */
START_TEST(copied_file_is_free)
{
    struct actor *a = actor_start(ENV_DIR, ENV_FILE, 10),
                 *b = actor_new(OTHER, "copied.db");

    actor_checkpoint(a);
    shell("cp -a " ENV_FILE " copied.db");
    actor_enter(b);
    must(!actor_was_refused(b));
    actor_count(b, 12);
    actor_leave(b);
    actor_leave(a);
    must_eq(file_u64(ENV_FILE, 0), 10);
    must_eq(file_u64("copied.db", 0), 12);
}
END_TEST

START_TEST(renamed_environment_keeps_its_files)
{
    struct actor *a = actor_start(ENV_DIR, ENV_FILE, 10), *b = actor_new(OTHER, ENV_FILE);

    proc_kill(a->pid);
    must(rename(ENV_DIR, "moved") == 0);
    (void)snprintf(a->dir, sizeof a->dir, "moved");
    actor_enter(a);
    must(!actor_was_refused(a));
    actor_enter(b);
    must_be_refused(b, has_marks() ? "/moved" : "another");
    actor_leave(a);
    must_eq(file_u64(ENV_FILE, 0), 10);
}
END_TEST

/* Unmapped, but changes of it are still to be written. */
struct unmapped {
    _Atomic uint64_t is_unmapped, go_on, done;
    bool is_bounded; /* frames, and no mapping of the file itself                     */
};

static void
unmap_and_write(void *arg)
{
    struct unmapped *u = (struct unmapped *)arg;
    uint64_t *cell = (uint64_t *)env_attach(XAC_DURABLE, 1);

    env_put(cell, 7);
    must_ok(xac_munmap(ENV_FILE));
    word_store(&u->is_unmapped, 1);
    proc_await(&u->go_on, 1, 60);
    must_rc(xac_checkpoint(), EBUSY);
    word_store(&u->done, 1);
    proc_await(&u->go_on, 2, 60);
    must_ok(xac_shutdown());
}

START_TEST(unmapped_file_is_kept_until_it_is_written)
{
    struct unmapped *u = (struct unmapped *)proc_shared(sizeof *u);
    struct actor *b = actor_new(OTHER, ENV_FILE);
    pid_t pid = proc_spawn(unmap_and_write, u);

    proc_await(&u->is_unmapped, 1, 60);
    if (has_marks()) {
        actor_enter(b);
        must_be_refused(b, "/" ENV_DIR);
        must(removexattr(ENV_FILE, MARK) == 0);
    }
    actor_enter(b);
    must(!actor_was_refused(b));
    word_store(&u->go_on, 1); /* a checkpoint keeps off */
    proc_await(&u->done, 1, 60);
    must_eq(file_u64(ENV_FILE, 0), 0);
    actor_leave(b);
    word_store(&u->go_on, 2);
    proc_join(pid);
    must_eq(file_u64(ENV_FILE, 0), 7);
}
END_TEST

static void
forget_it(void *arg)
{
    struct unmapped *u = (struct unmapped *)arg;

    env_put((uint64_t *)env_attach(XAC_DURABLE, 1), 7);
    must_ok(xac_munmap(ENV_FILE));
    must_ok(xac_forget(ENV_FILE));
    word_store(&u->is_unmapped, 1);
    proc_await(&u->go_on, 1, 60);
    must_ok(xac_checkpoint()); /* which does not write it again */
    must_ok(xac_shutdown());
}

START_TEST(forgotten_file_is_free)
{
    struct unmapped *u = (struct unmapped *)proc_shared(sizeof *u);
    struct actor *b = actor_new(OTHER, ENV_FILE);
    pid_t pid = proc_spawn(forget_it, u);

    proc_await(&u->is_unmapped, 1, 60);
    actor_enter(b);
    must(!actor_was_refused(b));
    actor_count(b, 8);
    word_store(&u->go_on, 1);
    proc_join(pid);
    actor_leave(b);
    must_eq(file_u64(ENV_FILE, 0), 8);
}
END_TEST

/* lock_it -- what other programs do: lock some bytes, or all, or for reading what they are
   not to know of; for ever. */
static void
lock_it(void *arg)
{
    _Atomic uint64_t *ready = (_Atomic uint64_t *)arg;
    const struct flock locks[] = {
        {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 100},
        {.l_type = F_WRLCK, .l_whence = SEEK_SET},
        {.l_type = F_RDLCK, .l_whence = SEEK_SET},
        {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = INT64_C(1) << 62},
    };
    struct flock lk = locks[word_load(ready) - 1];
    int fd = open(ENV_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    must(fd >= 0 && fcntl(fd, F_SETLK, &lk) == 0);
    word_store(ready, 9);
    for (;;)
        proc_sleep_us(1000000);
}

START_TEST(locks_of_other_programs_do_not_matter)
{
    _Atomic uint64_t *ready = (_Atomic uint64_t *)proc_shared(sizeof *ready);
    struct actor *a;
    pid_t pid;

    word_store(ready, (uint64_t)_i + 1);
    pid = proc_spawn(lock_it, ready);
    proc_await(ready, 9, 60);
    a = actor_start(ENV_DIR, ENV_FILE, 10);
    actor_checkpoint(a);
    proc_kill(a->pid);
    must_rc(xac_recover(ENV_DIR), 0);
    must_eq(file_u64(ENV_FILE, 0), 10);
    proc_kill(pid);
}
END_TEST

START_TEST(processes_of_one_environment_share_it)
{
    struct actor *a = actor_start(ENV_DIR, ENV_FILE, 10),
                 *b = actor_new(ENV_DIR, ENV_FILE);

    actor_enter(b);
    must(!actor_was_refused(b));
    actor_leave(a);
    actor_leave(b);
    must_eq(file_u64(ENV_FILE, 0), 10);
}
END_TEST

/* ---- At the same time ------------------------------------------------------------------ */

#define ROUNDS 300

/* lose_all -- a process that has closed all descriptors, and begins one more transaction. */
static void
lose_all(void *arg)
{
    struct unmapped *u = (struct unmapped *)arg;
    uint64_t *cell;

    if (u->is_bounded)
        must_ok(xac_set_option(XAC_OPT_FRAMES, 256));
    cell = (uint64_t *)env_attach(XAC_DURABLE, 1);
    env_put(cell, 1);
    closefrom(3);
    proc_sleep_us(50000); /* it is not looked at every time */
    env_put(cell, 2);
    word_store(&u->done, 1);
    proc_await(&u->go_on, 1, 60);
    env_put(cell, 3);
    must_ok(xac_shutdown());
}

/* A mapping of the file keeps the description, and the hold with it; with frames there is
   none, and without its descriptors a process would keep the file by the mark alone. */
START_TEST(file_is_held_again_when_all_was_closed)
{
    struct unmapped *u = (struct unmapped *)proc_shared(sizeof *u);
    struct actor *b = actor_new(OTHER, ENV_FILE);
    pid_t pid;

    u->is_bounded = _i == 1;
    pid = proc_spawn(lose_all, u);
    proc_await(&u->done, 1, 60);
    (void)removexattr(ENV_FILE, MARK);
    actor_enter(b);
    must_be_refused(b, "another environment");
    word_store(&u->go_on, 1);
    proc_join(pid);
    must_eq(file_u64(ENV_FILE, 0), 3);
}
END_TEST

struct race {
    _Atomic uint64_t started[2], tried[2]; /* rounds                                  */
    _Atomic uint64_t has[2];               /* in this round                           */
    _Atomic uint64_t won, both;
};

struct racer {
    struct race *race;
    int self;
};

static void
race(void *arg)
{
    struct racer *r = (struct racer *)arg;
    struct race *at = r->race;

    must_ok(xac_init(r->self == 0 ? ENV_DIR : OTHER, XAC_NONDURABLE));
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        void *base;

        word_store(&at->started[r->self], round);
        while (word_load(&at->started[1 - r->self]) < round)
            ;
        base = xac_mmap(ENV_FILE, env_page());
        word_store(&at->has[r->self], base != MAP_FAILED);
        word_store(&at->tried[r->self], round);
        while (word_load(&at->tried[1 - r->self]) < round)
            ;
        if (base == MAP_FAILED)
            continue;
        word_add(&at->won, 1);
        if (word_load(&at->has[1 - r->self]) != 0)
            word_add(&at->both, 1);
        must_ok(xac_munmap(ENV_FILE));
    }
    must_ok(xac_shutdown());
}

START_TEST(two_at_once_never_both_get_it)
{
    struct race *at = (struct race *)proc_shared(sizeof *at);
    struct racer racer[2] = {{at, 0}, {at, 1}};
    pid_t pid[2];

    for (int i = 0; i < 2; i++)
        pid[i] = proc_spawn(race, &racer[i]);
    for (int i = 0; i < 2; i++)
        proc_join(pid[i]);
    printf("%d rounds, one got it in %llu\n", ROUNDS,
           (unsigned long long)word_load(&at->won));
    must_eq(word_load(&at->both), 0);
    must(word_load(&at->won) > 0);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("claims");
    TCase *tc = env_tcase(s, "claims", 120);

    tcase_add_loop_test(tc, second_environment_is_refused, 0, 2);
    tcase_add_test(tc, crashed_environment_keeps_its_file);
    tcase_add_test(tc, recovery_does_not_undo_what_others_did);
    tcase_add_test(tc, copy_and_original_share_no_file);
    tcase_add_test(tc, copied_file_is_free);
    tcase_add_test(tc, renamed_environment_keeps_its_files);
    tcase_add_test(tc, unmapped_file_is_kept_until_it_is_written);
    tcase_add_test(tc, forgotten_file_is_free);
    tcase_add_loop_test(tc, locks_of_other_programs_do_not_matter, 0, 4);
    tcase_add_test(tc, processes_of_one_environment_share_it);
    tcase_add_loop_test(tc, file_is_held_again_when_all_was_closed, 0, 2);
    tcase_add_test(tc, two_at_once_never_both_get_it);
    return actor_main(s);
}
