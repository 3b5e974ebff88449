/* SPDX-License-Identifier: MIT */
/*
 * check_rename.c -- xRemove() and xRename().
 *
 * GOAL    the file holds all that was committed, is found under its new name at its address, or is gone;
 *         what cannot be right is refused in words, and the file stays as it was; a process that maps
 *         files meanwhile gets one of the two states; backups, increments and recovery know the new name.
 * METHOD  public header only; files are read past the library.  A child that returns has crashed.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xac_env.h>
#include <xac_snapshot.h>

#include "../common/env.h"
#include "../common/tool_run.h"

#define N_PAGES 16u

static uint64_t *
map(const char *name)
{
    uint64_t *x = xMmap(name, N_PAGES * env_page());

    if (x == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "mapping %s: %s", name, xLastError());
    return x;
}

/* put -- one commit that changes every page of a segment. */
static void
put(uint64_t *x, uint64_t value)
{
    int rc;

    do {
        must_ok(xbegin());
        for (size_t p = 0; p < N_PAGES; p++)
            *env_cell(x, p) = value + p;
    } while ((rc = xend()) == ABORTED);
    must_eq(rc, COMMITTED);
}

static void
must_hold(uint64_t *x, uint64_t value)
{
    must_ok(xbeginQuery());
    for (size_t p = 0; p < N_PAGES; p++)
        must_eq(*env_cell(x, p), value + p);
    must_ok(xendQuery());
}

/* must_have -- a file's pages, read past the library. */
static void
must_have(const char *name, uint64_t value)
{
    for (size_t p = 0; p < N_PAGES; p++)
        must_eq(file_u64(name, p * env_page()), value + p);
}

/* make -- a file with a value, which nobody maps any more. */
static void
make(const char *name, uint64_t value)
{
    put(map(name), value);
    must_ok(xMunmap(name));
}

static int
flags(int i)
{
    return i % 2 == 0 ? DURABLE : NONDURABLE;
}

static void
setup(void)
{
    env_setup();
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
}

static void
must_say(const char *words)
{
    if (strstr(xLastError(), words) == NULL)
        env_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", xLastError(), words);
}

/* ---- What is done ------------------------------------------------------------------ */

START_TEST(removed_file_is_gone)
{
    uint64_t *a;

    env_init(flags(_i));
    for (uint64_t round = 1; round <= 5; round++) {
        a = map("a");
        must_eq(env_get(a), 0); /* nothing of the one before */
        put(a, round * 100);
        must_ok(xMunmap("a"));
        must_ok(xRemove("a"));
        must(!file_exists("a"));
        must_rc(xRemove("a"), ENOENT);
    }
    put(map("a"), 7);
    must_ok(xCheckpoint());
    must_ok(xShutdown());
    must_have("a", 7);
}
END_TEST

START_TEST(renamed_file_has_all_and_its_address)
{
    uint64_t *a, *b;

    env_init(flags(_i));
    a = map("a");
    put(a, 100);
    must_ok(xMunmap("a"));
    must_ok(xRename("a", ENV_DIR "/b"));
    must(!file_exists("a"));
    must_have(ENV_DIR "/b", 100);
    b = map(ENV_DIR "/b");
    must_hold(b, 100);
    must(b == a);
    put(b, 200);
    put(map("a"), 300); /* a new one, elsewhere */
    must_hold(b, 200);
    must_ok(xMunmap(ENV_DIR "/b"));
    must_ok(xRename(ENV_DIR "/b", "c"));
    must_ok(xShutdown());
    must_have("c", 200);
    must_have("a", 300);
    env_init(flags(_i));
    must(map("c") == b);
    must_hold(map("c"), 200);
    must_ok(xShutdown());
}
END_TEST

START_TEST(unknown_files_are_files)
{
    env_init(flags(_i));
    file_write("x", 0, "abc", 3);
    file_write("y", 0, "abc", 3);
    must_ok(xRemove("x"));
    must_ok(xRename("y", "z"));
    must(!file_exists("x") && !file_exists("y"));
    must_eq(file_size("z"), 3);
    must_ok(xShutdown());
}
END_TEST

/* The addresses go and come with the files. */
START_TEST(lines_of_addresses_follow)
{
    char text[4096] = "";

    env_init(flags(_i));
    make("a", 1);
    make(ENV_DIR "/b", 2);
    make("gone", 3);
    must_ok(xRename("a", "a2"));
    must_ok(xRename(ENV_DIR "/b", ENV_DIR "/b2"));
    must_ok(xRemove("gone"));
    must_ok(xShutdown());
    file_read(ENV_DIR "/xac.addresses", 0, text,
              (size_t)file_size(ENV_DIR "/xac.addresses"));
    must(strstr(text, "/a2\n") != NULL && strstr(text, " b2\n") != NULL);
    must(strstr(text, "/a\n") == NULL && strstr(text, " b\n") == NULL);
    must(strstr(text, "gone") == NULL);
}
END_TEST

START_TEST(checksums_of_pages_go)
{
    must_ok(xSetOption(XAC_OPT_PAGE_CHECKSUMS, 1));
    env_init(DURABLE);
    make("a", 1);
    make("b", 2);
    must_ok(xCheckpoint());
    must_eq(file_count(ENV_DIR, "xac-sums."), 2);
    must_ok(xRename("a", "c"));
    must_ok(xRemove("b"));
    must_eq(file_count(ENV_DIR, "xac-sums."), 0);
    put(map("c"), 5);
    must_ok(xShutdown());
    must_eq(tool_run("xrecover", "--check", ENV_DIR), 0);
    must_have("c", 5);
}
END_TEST

/* ---- What is refused --------------------------------------------------------------- */

START_TEST(wrong_names_are_refused)
{
    must_rc(xRemove("a"), XAC_ENOINIT);
    must_rc(xRename("a", "b"), XAC_ENOINIT);
    env_init(flags(_i));
    make("a", 1);
    must_refuse(xRemove(NULL), EINVAL);
    must_refuse(xRemove(""), EINVAL);
    must_refuse(xRename(NULL, "b"), EINVAL);
    must_refuse(xRename("a", NULL), EINVAL);
    must_refuse(xRename("", "b"), EINVAL);
    must_refuse(xRename("a", ""), EINVAL);
    must_refuse(xRename("a", "a"), EINVAL);
    must_refuse(xRename("a", ENV_DIR "/../a"), EINVAL);
    must_refuse(xRemove("none"), ENOENT);
    must_refuse(xRename("none", "b"), ENOENT);
    must_refuse(xRename("a", "none/b"), ENOENT);
    must_refuse(xRename("a", "b/"), ENOENT);
    must_refuse(xRemove(ENV_DIR), EINVAL);
    must_refuse(xRemove("."), EINVAL);
    must_refuse(xRename(ENV_DIR, "b"), EINVAL);
    must_refuse(xRemove(ENV_DIR "/xac.addresses"), EINVAL);
    must_refuse(xRename(ENV_DIR "/xac.master", "b"), EINVAL);
    must_refuse(xRename("a", ENV_DIR "/xac.new"), EINVAL);
    must_refuse(xRename("a", ENV_DIR "/xac-new"), EINVAL);
    must_refuse(xRename("a", "new\nline"), EINVAL);
    file_write("b", 0, "b", 1);
    must_refuse(xRename("a", "b"), EEXIST);
    must_eq(file_size("b"), 1);
    must(symlink("a", "link") == 0);
    must(symlink("nothing", "dangling") == 0);
    must_refuse(xRemove("link"), EINVAL);
    must_refuse(xRename("link", "c"), EINVAL);
    must_refuse(xRename("a", "link"), EINVAL); /* itself */
    must_refuse(xRename("a", "dangling"), EEXIST);
    must(link("a", "hard") == 0);
    must_refuse(xRename("a", "hard"), EEXIST);
    must_hold(map("a"), 1);
    must_ok(xShutdown());
}
END_TEST

START_TEST(log_directory_is_the_environments_own)
{
    char to[64], from[64];

    must(mkdir("logs", 0777) == 0);
    must_ok(xSetLogDirectory("logs"));
    env_init(DURABLE);
    make("a", 1);
    (void)snprintf(from, sizeof from, "logs/xac-log.00000001");
    (void)snprintf(to, sizeof to, "logs/xac-log.00000009");
    must(file_exists(from));
    must_refuse(xRemove(from), EINVAL);
    must_refuse(xRename("a", to), EINVAL);
    must_ok(xRename("a", "logs/a"));
    must_ok(xShutdown());
    must_have("logs/a", 1);
}
END_TEST

START_TEST(other_file_system_is_refused)
{
    char to[64];

    (void)snprintf(to, sizeof to, "/dev/shm/xac-test-rename.%d", (int)getpid());
    env_init(flags(_i));
    make("a", 1);
    must_refuse(xRename("a", to), EXDEV);
    must(!file_exists(to));
    must_hold(map("a"), 1);
    must_ok(xShutdown());
}
END_TEST

START_TEST(own_mappings_and_transactions_are_in_the_way)
{
    uint64_t *a, *b;

    env_init(flags(_i));
    a = map("a");
    b = map("b");
    put(a, 1);
    must_refuse(xRemove("a"), EBUSY);
    must_say("this one");
    must_refuse(xRename("a", "c"), EBUSY);
    must(link("a", "hard") == 0);
    must_refuse(xRemove("hard"), EBUSY);
    must_refuse(xRename("hard", "c"), EBUSY);
    must_ok(xMunmap("a"));
    must_ok(xbegin());
    must_refuse(xRemove("a"), XAC_EINTXN);
    must_refuse(xRename("a", "c"), XAC_EINTXN);
    must_eq(xend(), COMMITTED);
    must_ok(xbeginQuery());
    must_refuse(xRename("a", "c"), XAC_EINTXN);
    must_ok(xendQuery());
    must_ok(xRemove("hard")); /* the other name stays */
    must_have("a", 1);
    put(b, 2);
    must_ok(xShutdown());
}
END_TEST

START_TEST(older_states_are_in_the_way)
{
    uint64_t id, *a;

    env_init(flags(_i));
    a = map("a");
    put(a, 1);
    must_ok(xSnapshot(&id));
    put(a, 100);
    must_ok(xMunmap("a"));
    must_refuse(xRemove("a"), EBUSY);
    must_say("a snapshot");
    must_refuse(xRename("a", "b"), EBUSY);
    a = map("a");
    must_ok(xbeginQueryAt(id));
    must_eq(*a, 1);
    must_ok(xendQuery());
    must_ok(xMunmap("a"));
    must_ok(xSnapshotRelease(id));
    must_ok(xRename("a", "b"));
    must_have("b", 100);
    must_ok(xShutdown());
}
END_TEST

START_TEST(history_is_in_the_way)
{
    must_ok(xSetOption(XAC_OPT_HISTORY, XAC_HISTORY_COMMITS(1000)));
    env_init(flags(_i));
    make("a", 1);
    make("a", 2);
    must_refuse(xRemove("a"), EBUSY);
    must_say("XAC_OPT_HISTORY");
    must_ok(xShutdown());
    must_have("a", 2);
}
END_TEST

static void
take_it(void *arg)
{
    struct xac_env *env = xac_open("env2", NULL);

    (void)arg;
    must(env != NULL);
    must(xac_mmap_in(env, "theirs", 4 * env_page()) != MAP_FAILED);
    must_refuse(xac_remove_in(env, "theirs"), EBUSY);
    env_init(DURABLE);
    must_refuse(xRemove("theirs"), XAC_EINUSE);
    must_refuse(xRename("theirs", "ours"), XAC_EINUSE);
    must_ok(xShutdown());
    must_ok(xac_munmap_in(env, "theirs"));
    must_ok(xac_rename_in(env, "theirs", "b"));
    must_ok(xac_remove_in(env, "b"));
    must_ok(xac_close(env));
    must_rc(xac_remove_in(NULL, "b"), XAC_ENOINIT);
}

START_TEST(file_of_another_environment_is_refused)
{
    proc_run(take_it, NULL);
}
END_TEST

/* ---- Others ------------------------------------------------------------------------ */

static _Atomic uint64_t *phase;

static void
map_and_wait(void *arg)
{
    uint64_t *a;

    env_init(flags(*(int *)arg));
    a = map("a");
    put(a, 41);
    word_store(&phase[0], 1);
    proc_await(&phase[1], 1, 30);
    must_hold(a, 41);
    must_ok(xMunmap("a"));
    word_store(&phase[2], 1);
    proc_await(&phase[3], 1, 30);
    must_hold(map("b"), 41);
    must_ok(xShutdown());
}

START_TEST(another_process_is_in_the_way)
{
    int how = _i;
    char words[40];
    pid_t pid;

    phase = proc_shared(4 * sizeof *phase);
    pid = proc_spawn(map_and_wait, &how);
    env_init(flags(_i));
    proc_await(&phase[0], 1, 30);
    must_refuse(xRemove("a"), EBUSY);
    (void)snprintf(words, sizeof words, "process %d", (int)pid);
    must_say(words);
    must_refuse(xRename("a", "b"), EBUSY);
    word_store(&phase[1], 1);
    proc_await(&phase[2], 1, 30);
    must_ok(xRename("a", "b"));
    must_have("b", 41);
    word_store(&phase[3], 1);
    proc_join(pid);
    must_ok(xShutdown());
}
END_TEST

/* Each adds 1 to the count in the file under one of two names, maps and unmaps it all the time. */
static void
count(void *arg)
{
    const int *how = arg;
    uint64_t *x;

    proc_await(&phase[3], 1, 30);
    env_init(flags(*how));
    while (word_load(&phase[0]) == 0) {
        char name[2] = {word_load(&phase[1]) % 2 == 0 ? 'a' : 'b', 0};

        x = xMmap(name, N_PAGES * env_page());
        if (x == MAP_FAILED)
            env_fail(__FILE__, __LINE__, "mapping %s: %s", name, xLastError());
        env_increment(x);
        word_add(&phase[2], 1);
        must_ok(xMunmap(name));
        usleep(10000); /* or else somebody has it mapped all the time */
    }
    must_ok(xShutdown());
}

START_TEST(nothing_is_lost_while_others_map_it)
{
    uint64_t renames = 0, sum = 0, removed = 0;
    int how = _i;
    pid_t pid[2];
    double end = env_now() + 4;

    phase = proc_shared(4 * sizeof *phase);
    for (int i = 0; i < 2; i++)
        pid[i] = proc_spawn(count, &how);
    env_init(flags(_i));
    make("a", 0);
    word_store(&phase[3], 1);
    /* What is counted in a file that is made anew is added up when it is removed. */
    while (env_now() < end || renames < 5) {
        const char *from = renames % 2 == 0 ? "a" : "b",
                   *to = renames % 2 == 0 ? "b" : "a";
        int rc = xRename(from, to);

        must(rc == 0 || rc == EBUSY || rc == EEXIST || rc == ENOENT);
        if (rc == 0) {
            renames++;
            word_store(&phase[1], renames);
        } else if (rc == EEXIST) {
            uint64_t *x = map(to);

            if (xMunmap(to) == 0 && link(to, "keep") == 0) {
                (void)x;
                rc = xRemove(to);
                if (rc == 0) {
                    removed += file_u64("keep", 0);
                }
                must(unlink("keep") == 0);
            }
        }
    }
    word_store(&phase[0], 1);
    for (int i = 0; i < 2; i++)
        proc_join(pid[i]);
    must_ok(xShutdown());
    sum = (file_exists("a") ? file_u64("a", 0) : 0)
          + (file_exists("b") ? file_u64("b", 0) : 0);
    must_eq(sum + removed, word_load(&phase[2]));
    must(renames >= 5);
}
END_TEST

static void
back_up(void *arg)
{
    (void)arg;
    proc_await(&phase[2], 1, 30);
    env_init(DURABLE);
    for (unsigned n = 0; word_load(&phase[0]) == 0; n++) {
        char dir[32];

        (void)snprintf(dir, sizeof dir, "copy.%u", n);
        must_ok(xBackup(dir));
        word_store(&phase[1], n + 1);
    }
    must_ok(xShutdown());
}

/* Each backup has the file, under one name. */
START_TEST(backups_go_on_beside_it)
{
    uint64_t n = 0, busy = 0;
    pid_t pid;

    phase = proc_shared(3 * sizeof *phase);
    pid = proc_spawn(back_up, NULL);
    env_init(DURABLE);
    make(ENV_DIR "/a", 5);
    word_store(&phase[2], 1);
    while (word_load(&phase[1]) < 20 && !proc_any_failed()) {
        int rc = n % 2 == 0 ? xRename(ENV_DIR "/a", ENV_DIR "/b")
                            : xRename(ENV_DIR "/b", ENV_DIR "/a");

        must(rc == 0 || rc == EBUSY);
        n += rc == 0;
        busy += rc == EBUSY;
    }
    word_store(&phase[0], 1);
    proc_join(pid);
    must_ok(xShutdown());
    for (unsigned i = 0; i < 20; i++) {
        char a[40], b[40], dir[32];

        (void)snprintf(dir, sizeof dir, "copy.%u", i);
        (void)snprintf(a, sizeof a, "copy.%u/a", i);
        (void)snprintf(b, sizeof b, "copy.%u/b", i);
        must_ok(xRecover(dir));
        must(file_exists(a) != file_exists(b));
        must_have(file_exists(a) ? a : b, 5);
    }
    must(busy > 0);
}
END_TEST

/* ---- Crashes and backups ------------------------------------------------------------- */

static void
be_killed(void *arg)
{
    const int *how = arg;
    uint64_t *x;

    env_init(DURABLE);
    put(map("other"), 3);
    make("a", 1);
    make("b", 2);
    if (*how == 0) {
        must_ok(xRemove("a"));
        must_ok(xRename("b", "c"));
    } else if (*how == 1) { /* and mapped again, under all names */
        must_ok(xRemove("a"));
        must_ok(xRename("b", "a"));
        x = map("a");
        must_hold(x, 2);
        env_put(env_cell(x, 3), 77);
        put(map("b"), 50);
    } else if (*how == 2) { /* there and back */
        must_ok(xRename("b", "c"));
        env_put(env_cell(map("c"), 3), 77);
        must_ok(xMunmap("c"));
        must_ok(xRename("c", "b"));
        env_put(env_cell(map("b"), 4), 78);
    } else { /* by name the file of another one */
        must_ok(xRename("b", "t"));
        must_ok(xRename("a", "b"));
        must_ok(xRename("t", "a"));
        env_put(env_cell(map("a"), 3), 77);
        env_put(env_cell(map("b"), 4), 78);
    }
}

/* must_have_but -- as must_have, with other values on two pages. */
static void
must_have_but(const char *name, uint64_t value, uint64_t at3, uint64_t at4)
{
    for (size_t p = 0; p < N_PAGES; p++) {
        uint64_t want = p == 3 && at3 != 0 ? at3 : p == 4 && at4 != 0 ? at4 : value + p;

        must_eq(file_u64(name, p * env_page()), want);
    }
}

START_TEST(recovery_is_right)
{
    int how = _i;

    proc_run(be_killed, &how);
    must_ok(xRecover(ENV_DIR));
    must_have("other", 3);
    if (_i == 0) {
        must(!file_exists("a") && !file_exists("b"));
        must_have("c", 2);
    } else if (_i == 1) {
        must_have_but("a", 2, 77, 0);
        must_have("b", 50);
    } else if (_i == 2) {
        must_have("a", 1);
        must_have_but("b", 2, 77, 78);
        must(!file_exists("c"));
    } else {
        must_have_but("a", 2, 77, 0);
        must_have_but("b", 1, 0, 78);
        must(!file_exists("t"));
    }
}
END_TEST

static void
hold_older_log(void *arg)
{
    (void)arg;
    proc_await(&phase[0], 1, 30);
    env_init(DURABLE);
    (void)map("other");
    must_ok(xbeginQuery());
    word_store(&phase[1], 1);
    proc_await(&phase[2], 1, 30);
}

static void
rename_beside_it(void *arg)
{
    uint64_t *other;

    (void)arg;
    env_init(DURABLE);
    other = map("other");
    put(other, 1);
    put(map("a"), 7);
    word_store(&phase[0], 1);
    proc_await(&phase[1], 1, 30);
    put(other, 2);
    must_ok(xMunmap("a"));
    must_ok(xRename("a", "b"));
    word_store(&phase[2], 1);
}

/* The log that a query needs has what was committed under the old name. */
START_TEST(recovery_does_not_ask_for_the_old_name)
{
    pid_t pid[2];

    phase = proc_shared(3 * sizeof *phase);
    pid[0] = proc_spawn(rename_beside_it, NULL);
    pid[1] = proc_spawn(hold_older_log, NULL);
    proc_join(pid[0]);
    proc_join(pid[1]);
    must_ok(xRecover(ENV_DIR));
    must(!file_exists("a"));
    must_have("b", 7);
    must_have("other", 2);
}
END_TEST

/* A file that the log has not named for long. */
START_TEST(increments_follow)
{
    uint64_t *x;

    env_init(DURABLE);
    make(ENV_DIR "/a", 1);
    make(ENV_DIR "/b", 2);
    put(map(ENV_DIR "/d"), 4);
    must_ok(xBackup("b0"));
    if (_i == 1)
        make(ENV_DIR "/b", 20);
    must_ok(xRemove(ENV_DIR "/a"));
    must_ok(xRename(ENV_DIR "/b", ENV_DIR "/c"));
    must_ok(xBackupSince("b1", "b0"));
    x = map(ENV_DIR "/c");
    env_put(env_cell(x, 3), 77);
    must_ok(xBackupSince("b2", "b1"));
    must_ok(xMunmap(ENV_DIR "/c"));
    must_ok(xRename(ENV_DIR "/c", ENV_DIR "/a"));
    must_ok(xBackupSince("b3", "b2"));
    must_ok(xShutdown());
    must_eq(tool_run("xbackup", "--verify", "b0 b1 b2 b3"), 0);
    must_eq(tool_run("xbackup", "--restore --recover", "b0 b1 r1"), 0);
    must_eq(tool_run("xbackup", "--restore --recover", "b0 b1 b2 r2"), 0);
    must_eq(tool_run("xbackup", "--restore --recover", "b0 b1 b2 b3 r3"), 0);
    must(!file_exists("r1/a") && !file_exists("r1/b"));
    must_have("r1/c", _i == 1 ? 20 : 2);
    must(!file_exists("r2/a") && !file_exists("r2/b"));
    must_have_but("r2/c", _i == 1 ? 20 : 2, 77, 0);
    must(!file_exists("r3/b") && !file_exists("r3/c"));
    must_have_but("r3/a", _i == 1 ? 20 : 2, 77, 0);
    must_have("r3/d", 4);
}
END_TEST

static void
read_only(void *arg)
{
    (void)arg;
    proc_await(&phase[0], 1, 30);
    must_ok(xInit(ENV_DIR, XAC_READONLY));
    must_refuse(xRemove("a"), XAC_EREADONLY);
    must_refuse(xRename("a", "b"), XAC_EREADONLY);
    must_ok(xShutdown());
}

START_TEST(readers_may_not)
{
    pid_t pid;

    phase = proc_shared(sizeof *phase);
    pid = proc_spawn(read_only, NULL);
    env_init(DURABLE);
    make("a", 1);
    word_store(&phase[0], 1);
    proc_join(pid);
    must_ok(xShutdown());
    proc_run(read_only, NULL);
    must_have("a", 1);
}
END_TEST

/* A failure behind the record of the log: the file is as it was, and can be used. */
START_TEST(name_that_may_not_go_stays)
{
    uint64_t *a;

    if (geteuid() == 0)
        return; /* who may do everything cannot be refused; check_rename_steps.c fails the call */
    must(mkdir("locked", 0777) == 0);
    env_init(flags(_i));
    make("locked/a", 1);
    must(chmod("locked", 0555) == 0);
    must_refuse(xRemove("locked/a"), EACCES);
    must_refuse(xRename("locked/a", "b"), EACCES);
    must(chmod("locked", 0777) == 0);
    a = map("locked/a");
    must_hold(a, 1);
    put(a, 2);
    must_ok(xShutdown());
    must_have("locked/a", 2);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("rename");
    TCase *tc = env_tcase_with(s, "rename", 120, setup);

    tcase_add_loop_test(tc, removed_file_is_gone, 0, 2);
    tcase_add_loop_test(tc, renamed_file_has_all_and_its_address, 0, 2);
    tcase_add_loop_test(tc, unknown_files_are_files, 0, 2);
    tcase_add_loop_test(tc, lines_of_addresses_follow, 0, 2);
    tcase_add_test(tc, checksums_of_pages_go);
    tcase_add_loop_test(tc, wrong_names_are_refused, 0, 2);
    tcase_add_test(tc, log_directory_is_the_environments_own);
    tcase_add_loop_test(tc, other_file_system_is_refused, 0, 2);
    tcase_add_loop_test(tc, own_mappings_and_transactions_are_in_the_way, 0, 2);
    tcase_add_loop_test(tc, older_states_are_in_the_way, 0, 2);
    tcase_add_loop_test(tc, history_is_in_the_way, 0, 2);
    tcase_add_test(tc, file_of_another_environment_is_refused);
    tcase_add_loop_test(tc, another_process_is_in_the_way, 0, 2);
    tcase_add_loop_test(tc, nothing_is_lost_while_others_map_it, 0, 2);
    tcase_add_test(tc, backups_go_on_beside_it);
    tcase_add_loop_test(tc, recovery_is_right, 0, 4);
    tcase_add_test(tc, recovery_does_not_ask_for_the_old_name);
    tcase_add_loop_test(tc, increments_follow, 0, 2);
    tcase_add_test(tc, readers_may_not);
    tcase_add_loop_test(tc, name_that_may_not_go_stays, 0, 2);
    return env_main(s);
}
