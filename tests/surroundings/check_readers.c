/* SPDX-License-Identifier: MIT */
/*
 * check_readers.c -- XAC_READONLY: users that may read but not write.
 *
 * GOAL    a reader sees a state that some moment has seen, and at least what had been
 *         acknowledged; it is told whether that is the newest or a frozen one; it changes
 *         nothing, blocks nobody and leaves nothing behind; every call that would write is
 *         refused in words.
 * METHOD  root makes the environment in a directory of its own, children become the user
 *         `nobody`.  Writers move amounts between accounts in two files, one within the
 *         environment and one outside, so that the sum never changes.  Pictures of the
 *         directory, times included, are compared.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"

#define NOBODY    65534
#define INSIDE    "db/inside.db"
#define OUTSIDE   "outside.db"
#define N_PAGES   1000 /* of each file */
#define FIRST_SUM UINT64_C(1000000)
#define N_LOOKS   15

struct board {
    _Atomic uint64_t stop;
    _Atomic uint64_t step;
    _Atomic uint64_t ready;
    _Atomic uint64_t acknowledged[2]; /* transfers of each writer */
};

static struct board *board;
static uint64_t *file[2]; /* mapped */
static uint64_t own_mode; /* XAC_OPT_MODE of the writer; 0: as the directory says */

/* set_dir -- name a directory in the environment of the process. */
static void
set_dir(const char *variable, const char *name)
{
    char *path = realpath(name, NULL);

    must(path != NULL);
    must_ok(setenv(variable, path, 1));
    free(path);
}

static void
setup(void)
{
    env_setup();
    board = proc_shared(sizeof *board);
    umask(022);
    own_mode = 0644;
    must_ok(chmod(".", 0755));
    must_ok(mkdir("tmp", 0777));
    must_ok(chmod("tmp", 01777));
    set_dir("TMPDIR", "tmp");
}

static bool
is_root(void)
{
    if (geteuid() == 0)
        return true;
    printf("not root: not tested\n");
    return false;
}

static void
become_nobody(void)
{
    must_ok(setgroups(0, NULL));
    must_ok(setresgid(NOBODY, NOBODY, NOBODY));
    must_ok(setresuid(NOBODY, NOBODY, NOBODY));
}

static void
map_both(void)
{
    file[0] = xMmap(INSIDE, N_PAGES * env_page());
    file[1] = xMmap(OUTSIDE, N_PAGES * env_page());
    if (file[0] == MAP_FAILED || file[1] == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xMmap: %s", xLastError());
}

static void
write_in(int flags)
{
    if (own_mode != 0)
        must_ok(xSetOption(XAC_OPT_MODE, own_mode));
    must_ok(xInit(ENV_DIR, flags));
    map_both();
}

static void
read_in(enum xac_reader_kind kind)
{
    must_ok(xInit(ENV_DIR, XAC_READONLY));
    must_eq(env_stats().reader, kind);
    map_both();
}

/* ---- accounts ---------------------------------------------------------------------------- */

/* First number of each page: an account.  Second number of page i: transfers of writer i. */

static void
open_accounts(void *arg)
{
    write_in(*(int *)arg);
    must_ok(xbegin());
    for (size_t i = 0; i < N_PAGES; i++)
        *env_cell(file[0], i) = FIRST_SUM / N_PAGES;
    file[1][0] = 0;
    must_rc(xend(), COMMITTED);
    env_detach();
}

static void
make_accounts(int flags)
{
    proc_run(open_accounts, &flags);
}

static void
transfer(unsigned who, uint64_t *rng)
{
    int rc;

    do {
        uint64_t *from = env_cell(file[rnd_below(rng, 2)], rnd_below(rng, N_PAGES));
        uint64_t *to = env_cell(file[rnd_below(rng, 2)], rnd_below(rng, N_PAGES));
        uint64_t n;

        must_ok(xbegin());
        n = *from < 10 ? *from : 10;
        *from -= n;
        *to += n;
        env_cell(file[0], who)[1]++;
    } while ((rc = xend()) == ABORTED);
    must_eq(rc, COMMITTED);
}

/* writer -- moves amounts until told to stop. */
static void
writer(void *arg)
{
    unsigned who = *(unsigned *)arg;
    uint64_t rng = env_seed() + who;

    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 1 << 20));
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 1 << 20));
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, 1));
    write_in(DURABLE);
    word_add(&board->ready, 1);
    while (word_load(&board->stop) == 0) {
        if (word_load(&board->acknowledged[who]) % 100 == 99)
            must_ok(xCheckpoint());
        transfer(who, &rng);
        word_add(&board->acknowledged[who], 1);
    }
    must(env_stats().checkpoints > 5);
    env_detach();
}

/* sum -- of all accounts in one query, and the transfers of both writers that it sees. */
static uint64_t
sum(uint64_t seen[2])
{
    uint64_t all = 0;

    must_ok(xbeginQuery());
    for (int f = 0; f < 2; f++)
        for (size_t i = 0; i < N_PAGES; i++)
            all += *env_cell(file[f], i);
    for (unsigned w = 0; w < 2; w++)
        seen[w] = env_cell(file[0], w)[1];
    must_ok(xendQuery());
    return all;
}

/* must_see -- the sum is right, and what had been acknowledged is there. */
static void
must_see(const uint64_t least[2], uint64_t seen[2])
{
    must_eq(sum(seen), FIRST_SUM);
    must(seen[0] >= least[0] && seen[1] >= least[1]);
}

/* look_again -- each time a state that is at least as new as what was acknowledged before. */
static void
look_again(enum xac_reader_kind kind)
{
    uint64_t changes = 0;

    for (int i = 0; i < N_LOOKS; i++) {
        uint64_t least[2], seen[2], later[2];

        for (unsigned w = 0; w < 2; w++)
            least[w] = word_load(&board->acknowledged[w]);
        read_in(kind);
        must_see(least, seen);
        proc_sleep_us(2000);
        for (unsigned w = 0; w < 2; w++)
            least[w] =
                kind == XAC_READER_LIVE ? word_load(&board->acknowledged[w]) : seen[w];
        must_see(least, later);
        changes += later[0] + later[1] - seen[0] - seen[1];
        env_detach();
    }
    must((changes != 0) == (kind == XAC_READER_LIVE));
}

static void
look_frozen(void *arg)
{
    (void)arg;
    become_nobody();
    look_again(XAC_READER_FROZEN);
}

static void
look_live(void *arg)
{
    (void)arg;
    become_nobody();
    look_again(XAC_READER_LIVE);
}

/* beside_writers -- run a reader while two writers are at work. */
static void
beside_writers(void (*reader)(void *), void *arg)
{
    static unsigned who[2] = {0, 1};
    pid_t pid[2];

    for (unsigned w = 0; w < 2; w++)
        pid[w] = proc_spawn(writer, &who[w]);
    proc_await(&board->ready, 2, 30);
    proc_await(&board->acknowledged[0], 700, 60);
    proc_run(reader, arg);
    word_store(&board->stop, 1);
    proc_join(pid[0]);
    proc_join(pid[1]);
}

START_TEST(frozen_reader_beside_writers)
{
    if (!is_root())
        return;
    must_ok(mkdir(ENV_DIR, 0755));
    make_accounts(DURABLE);
    beside_writers(look_frozen, NULL);
}
END_TEST

START_TEST(live_reader_beside_writers)
{
    if (!is_root())
        return;
    must_ok(mkdir(ENV_DIR, 0777));
    must_ok(chmod(ENV_DIR, 0777));
    own_mode = 0; /* who may write the directory may take part */
    make_accounts(DURABLE);
    must_ok(chmod(INSIDE, 0644)); /* nobody may not write the data */
    must_ok(chmod(OUTSIDE, 0644));
    beside_writers(look_live, NULL);
}
END_TEST

/* ---- nobody attached ----------------------------------------------------------------------- */

/* times -- of all files in the directory, added up so that any change shows. */
static uint64_t
times(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *e;
    uint64_t all = 0;

    must(dir != NULL);
    while ((e = readdir(dir)) != NULL) {
        struct stat st;

        must_ok(fstatat(dirfd(dir), e->d_name, &st, 0));
        if (strcmp(e->d_name, "..") == 0)
            continue;
        all += (uint64_t)st.st_mtim.tv_sec * 1000000007 + (uint64_t)st.st_mtim.tv_nsec;
        all += (uint64_t)st.st_ctim.tv_sec * 1000000009 + (uint64_t)st.st_ctim.tv_nsec;
    }
    closedir(dir);
    return all;
}

static void
read_as_nobody(void *arg)
{
    uint64_t seen[2];

    become_nobody();
    read_in(XAC_READER_FROZEN);
    must_see(arg, seen);
    env_detach();
}

static void
read_as_root(void *arg)
{
    uint64_t seen[2];

    read_in(XAC_READER_FROZEN);
    must_see(arg, seen);
    env_detach();
}

/* must_change_nothing -- read by both accounts; bytes, names and times stay. */
static void
must_change_nothing(uint64_t least[2])
{
    struct image *before = image_take(ENV_DIR);
    struct image *outside = image_take(".");
    uint64_t changed = times(ENV_DIR);

    if (geteuid() == 0)
        proc_run(read_as_nobody, least);
    proc_run(read_as_root, least);
    must_unchanged(before, ENV_DIR);
    must_unchanged(outside, ".");
    must_eq(times(ENV_DIR), changed);
    image_free(before);
    image_free(outside);
}

static void
transfer_and_die(void *arg)
{
    uint64_t rng = env_seed();

    write_in(DURABLE);
    for (int i = 0; i < 300; i++) {
        transfer(0, &rng);
        if (i == 150 && *(bool *)arg)
            must_ok(xCheckpoint());
    }
    _exit(0);
}

START_TEST(deserted_environment)
{
    uint64_t least[2] = {0, 0};
    bool with_checkpoint = _i == 1;

    must_ok(mkdir(ENV_DIR, 0755));
    make_accounts(DURABLE);
    must_change_nothing(least);
    proc_run(transfer_and_die, &with_checkpoint);
    least[0] = 300;
    must_change_nothing(least);
    write_in(DURABLE); /* recovers: the log had not been touched */
    must_see(least, least);
    env_detach();
    must_change_nothing(least);
}
END_TEST

START_TEST(not_durable_environment_that_was_left)
{
    uint64_t least[2] = {0, 0};

    must_ok(mkdir(ENV_DIR, 0755));
    make_accounts(NONDURABLE);
    must_change_nothing(least);
}
END_TEST

static void
read_mounted_readonly(void *arg)
{
    uint64_t least[2] = {300, 0}, seen[2];

    (void)arg;
    if (unshare(CLONE_NEWNS) != 0
        || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
        || mount(ENV_DIR, ENV_DIR, NULL, MS_BIND, NULL) != 0
        || mount("none", ENV_DIR, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) != 0) {
        printf("no mount namespaces (%s): not tested\n", strerror(errno));
        return;
    }
    must(open(ENV_DIR "/x", O_RDWR | O_CREAT, 0600) < 0 && errno == EROFS);
    read_in(XAC_READER_FROZEN);
    must_see(least, seen);
    env_detach();
}

static void
hold_open(void *arg)
{
    (void)arg;
    write_in(DURABLE);
    word_store(&board->ready, 1);
    pause();
}

START_TEST(read_only_file_system)
{
    bool with_checkpoint = false;
    pid_t pid;

    if (!is_root())
        return;
    must_ok(mkdir(ENV_DIR, 0755));
    make_accounts(DURABLE);
    proc_run(transfer_and_die, &with_checkpoint);
    proc_run(read_mounted_readonly, NULL);
    pid = proc_spawn(hold_open, NULL); /* and somebody attached by the other mount */
    proc_await(&board->ready, 1, 30);
    proc_run(read_mounted_readonly, NULL);
    proc_kill(pid);
}
END_TEST

/* ---- not allowed ----------------------------------------------------------------------------- */

static void
must_be_refused(void *arg)
{
    become_nobody();
    must_refuse(xInit(ENV_DIR, XAC_READONLY), EACCES);
    if (strstr(xLastError(), arg) == NULL)
        env_fail(__FILE__, __LINE__, "%s", xLastError());
}

static void
map_only_one(void *arg)
{
    (void)arg;
    become_nobody();
    must_ok(xInit(ENV_DIR, XAC_READONLY));
    must(xMmap(INSIDE, env_page()) == MAP_FAILED);
    must_eq(errno, EACCES);
    file[1] = xMmap(OUTSIDE, env_page());
    must(file[1] != MAP_FAILED);
    (void)env_get(file[1]);
    env_detach();
}

START_TEST(no_permission)
{
    static char names[][20] = {"xac-log.00000001", "xac.master", ENV_DIR};
    bool with_checkpoint = false;

    if (!is_root())
        return;
    must_ok(mkdir(ENV_DIR, 0755));
    make_accounts(DURABLE);
    proc_run(transfer_and_die, &with_checkpoint);
    must_ok(chmod(INSIDE, 0600));
    proc_run(map_only_one, NULL);
    must_ok(chmod(ENV_DIR "/xac-log.00000001", 0600));
    proc_run(must_be_refused, names[0]);
    must_ok(chmod(ENV_DIR "/xac.master", 0600));
    proc_run(must_be_refused, names[1]);
    must_ok(chmod(ENV_DIR, 0700));
    proc_run(must_be_refused, names[2]);
}
END_TEST

START_TEST(no_environment)
{
    must_refuse(xInit(ENV_DIR, XAC_READONLY), XAC_ENOTENV);
    must(!file_exists(ENV_DIR));
    must_ok(mkdir(ENV_DIR, 0755));
    must_refuse(xInit(ENV_DIR, XAC_READONLY), XAC_ENOTENV);
    must_ok(rmdir(ENV_DIR)); /* it is still empty */
    must_refuse(xInit(ENV_DIR, XAC_READONLY | XAC_DURABLE), EINVAL);
}
END_TEST

/* ---- what would write -------------------------------------------------------------------- */

static int
nothing(void *arg)
{
    (void)arg;
    return 0;
}

static void
store_in_query(void *arg)
{
    read_in(*(enum xac_reader_kind *)arg);
    must_ok(xbeginQuery());
    *env_cell(file[0], 3) = 7;
    must_ok(xendQuery());
}

static void
call_what_writes(void *arg)
{
    enum xac_reader_kind kind = *(enum xac_reader_kind *)arg;
    size_t page = env_page();
    char **names;
    size_t n;

    read_in(kind);
    must_refuse(xbegin(), XAC_EREADONLY);
    must_refuse(xTransact(nothing, NULL), XAC_EREADONLY);
    must_refuse(xCheckpoint(), XAC_EREADONLY);
    must_refuse(xArchive(&names, &n), XAC_EREADONLY);
    must_refuse(xBackup("copy"), XAC_EREADONLY);
    must_refuse(xForget(INSIDE), XAC_EREADONLY);
    must(!file_exists("copy"));
    must_refuse(xSetOption(XAC_OPT_LOG_RECYCLE, 1), XAC_EREADONLY);
    must(xMremap(file[1], (N_PAGES + 1) * page, XAC_MAY_MOVE) == MAP_FAILED);
    must_eq(errno, EROFS);
    must_ok(xMunmap(INSIDE));
    must(xMmap(INSIDE, (N_PAGES + 1) * page) == MAP_FAILED);
    must_eq(errno, EROFS);
    must_eq(file_size(INSIDE), N_PAGES * page);
    must(xMmap("new.db", page) == MAP_FAILED);
    must_eq(errno, ENOENT);
    must(!file_exists("new.db"));
    must_ok(xbeginQuery());
    must_refuse(setPageAccess(file[1], READ_WRITE), XAC_EINQUERY);
    must(xMalloc(file[1], 8) == NULL);
    must_eq(errno, EPERM);
    must_refuse(xbegin(), XAC_EINQUERY);
    must_ok(xendQuery());
    must_ok(xSync());
    env_detach();
}

static void
hold_until_told(void *arg)
{
    (void)arg;
    write_in(DURABLE);
    word_store(&board->ready, 1);
    while (word_load(&board->stop) == 0)
        proc_sleep_us(1000);
    env_detach();
}

START_TEST(calls_that_write_are_refused)
{
    static enum xac_reader_kind kind;
    char text[4096];
    pid_t pid = 0;
    int status;

    kind = _i == 0 ? XAC_READER_FROZEN : XAC_READER_LIVE;
    must_ok(mkdir(ENV_DIR, 0755));
    make_accounts(DURABLE);
    if (kind == XAC_READER_LIVE) {
        pid = proc_spawn(hold_until_told, NULL);
        proc_await(&board->ready, 1, 30);
    }
    proc_run(call_what_writes, &kind);
    status = proc_capture(store_in_query, &kind, text, sizeof text);
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    must(strstr(text, "inside.db") != NULL && strstr(text, "query") != NULL);
    word_store(&board->stop, 1);
    if (pid != 0)
        proc_join(pid);
}
END_TEST

/* ---- coming and going ---------------------------------------------------------------------- */

/* live_reader -- attached beside others; looks, waits, and leaves when told. */
static void
live_reader(void *arg)
{
    (void)arg;
    read_in(XAC_READER_LIVE);
    word_store(&board->step, 1);
    while (word_load(&board->stop) == 0)
        proc_sleep_us(1000);
    must_eq(env_get(env_cell(file[0], 5)), 77);
    env_detach();
}

struct leaving {
    int flags;
    bool dies;
};

/* leaving_writer -- commits when a reader is there, and goes, in order or not. */
static void
leaving_writer(void *arg)
{
    const struct leaving *how = arg;

    write_in(how->flags);
    word_store(&board->ready, 1);
    proc_await(&board->step, 1, 30);
    env_put(env_cell(file[0], 5), 77);
    env_put(env_cell(file[1], 5), 78);
    if (how->dies)
        _exit(0);
    env_detach();
}

START_TEST(reader_is_last)
{
    static struct leaving how;
    pid_t pid[2];

    how.flags = _i < 2 ? DURABLE : NONDURABLE;
    how.dies = _i == 1;
    must_ok(mkdir(ENV_DIR, 0755));
    make_accounts(how.flags);
    pid[0] = proc_spawn(leaving_writer, &how);
    proc_await(&board->ready, 1, 30);
    pid[1] = proc_spawn(live_reader, NULL);
    proc_join(pid[0]);
    if (!how.dies) /* who wrote it has brought it to the files, though a reader stays */
        must_eq(file_u64(OUTSIDE, 5 * env_page()), 78);
    word_store(&board->stop, 1);
    proc_join(pid[1]);
    write_in(how.flags);
    must_eq(env_get(env_cell(file[0], 5)), 77);
    must_eq(env_get(env_cell(file[1], 5)), 78);
    env_detach();
}
END_TEST

START_TEST(reader_is_killed)
{
    pid_t pid, holder;

    must_ok(mkdir(ENV_DIR, 0755));
    make_accounts(DURABLE);
    holder = proc_spawn(hold_until_told, NULL);
    proc_await(&board->ready, 1, 30);
    pid = proc_spawn(live_reader, NULL);
    proc_await(&board->step, 1, 30);
    proc_kill(pid);
    write_in(DURABLE);
    env_put(env_cell(file[0], 5), 77);
    must_eq(env_stats().participants, 2);
    env_detach();
    word_store(&board->stop, 1);
    proc_join(holder);
    must_eq(file_u64(INSIDE, 5 * env_page()), 77);
}
END_TEST

static void
freeze_and_wait(void *arg)
{
    (void)arg;
    read_in(XAC_READER_FROZEN);
    must_eq(env_get(env_cell(file[0], 5)), FIRST_SUM / N_PAGES);
    word_store(&board->ready, 1);
    pause();
}

START_TEST(killed_frozen_reader_leaves_nothing)
{
    pid_t pid;

    must_ok(mkdir("shm", 0755));
    set_dir("XAC_SHM_DIR", "shm");
    must_ok(mkdir(ENV_DIR, 0755));
    make_accounts(DURABLE);
    pid = proc_spawn(freeze_and_wait, NULL);
    proc_await(&board->ready, 1, 30);
    must_eq(file_count("tmp", ""), 2);
    must_eq(file_count("shm", ""), 2);
    proc_kill(pid);
    must_eq(file_count("tmp", ""), 2);
}
END_TEST

static void
child_looks(void *arg)
{
    uint64_t seen[2];

    must_eq(sum(seen), FIRST_SUM);
    must_eq(env_stats().reader, *(enum xac_reader_kind *)arg);
    must_refuse(xbegin(), XAC_EREADONLY);
    env_detach();
}

START_TEST(reader_forks)
{
    enum xac_reader_kind kind = _i == 0 ? XAC_READER_FROZEN : XAC_READER_LIVE;
    uint64_t seen[2];
    pid_t pid = 0;

    must_ok(mkdir(ENV_DIR, 0755));
    make_accounts(DURABLE);
    if (kind == XAC_READER_LIVE) {
        pid = proc_spawn(hold_until_told, NULL);
        proc_await(&board->ready, 1, 30);
    }
    read_in(kind);
    proc_run(child_looks, &kind);
    must_eq(sum(seen), FIRST_SUM);
    proc_run(child_looks, &kind);
    must_ok(xMunmap(INSIDE));
    must((file[0] = xMmapAt(INSIDE, 4 * env_page(), 8 * env_page(), 0)) != MAP_FAILED);
    must_eq(env_get(file[0]), FIRST_SUM / N_PAGES);
    env_detach();
    word_store(&board->stop, 1);
    if (pid != 0)
        proc_join(pid);
}
END_TEST

static void
read_by_engine(void *arg)
{
    uint64_t seen[2];

    must_ok(setenv("XAC_ENGINE", arg, 1));
    must_ok(xInit(ENV_DIR, XAC_READONLY));
    map_both();
    must_eq(sum(seen), FIRST_SUM);
    must_eq(sum(seen), FIRST_SUM);
    env_detach();
}

START_TEST(every_engine)
{
    static char engine[][8] = {"uffd", "scan", "sigsegv"};
    pid_t pid = 0;

    must_ok(mkdir(ENV_DIR, 0755));
    make_accounts(DURABLE);
    if (_i == 1) {
        pid = proc_spawn(hold_until_told, NULL);
        proc_await(&board->ready, 1, 30);
    }
    for (size_t i = 0; i < sizeof engine / sizeof *engine; i++)
        proc_run(read_by_engine, engine[i]);
    word_store(&board->stop, 1);
    if (pid != 0)
        proc_join(pid);
}
END_TEST

static Suite *
readers_suite(void)
{
    Suite *s = suite_create("readers");
    TCase *tc = env_tcase_with(s, "readers", 180, setup);

    tcase_add_test(tc, frozen_reader_beside_writers);
    tcase_add_test(tc, live_reader_beside_writers);
    tcase_add_loop_test(tc, deserted_environment, 0, 2);
    tcase_add_test(tc, not_durable_environment_that_was_left);
    tcase_add_test(tc, read_only_file_system);
    tcase_add_test(tc, no_permission);
    tcase_add_test(tc, no_environment);
    tcase_add_loop_test(tc, calls_that_write_are_refused, 0, 2);
    tcase_add_loop_test(tc, reader_is_last, 0, 3);
    tcase_add_test(tc, reader_is_killed);
    tcase_add_test(tc, killed_frozen_reader_leaves_nothing);
    tcase_add_loop_test(tc, reader_forks, 0, 2);
    tcase_add_loop_test(tc, every_engine, 0, 2);
    return s;
}

int
main(void)
{
    return env_main(readers_suite());
}
