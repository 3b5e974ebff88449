/* SPDX-License-Identifier: MIT */
/*
 * check_frozen.c -- a reader copies files while checkpoints write them and log goes.
 *
 * GOAL    what a frozen reader sees is one moment's state, wherever writer and checkpoints
 *         are while it copies; it starts over when log that it needs has been reused, and
 *         gives up in words when that goes on; it refuses what cannot be made whole.
 * METHOD  the program has an openat() of its own, in which the reader, about to open its
 *         second original, has a writer in another process commit and make checkpoints.
 *         Each page of both files holds the same number.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env.h"

#define FIRST   "db/first.db"
#define SECOND  "second.db"
#define N_PAGES 50

static struct board {
    _Atomic uint64_t asked; /* rounds that the writer is to do, and has done */
    _Atomic uint64_t done;
    _Atomic uint64_t value; /* committed last */
    _Atomic uint64_t ready;
    _Atomic uint64_t stop;
} * board;

static uint64_t *file[2];
static unsigned asks_left; /* how often the reader interrupts itself */
static uint64_t recycle;
static uint64_t full_images;
static int mode;

/* ask -- have the writer do a round, and wait. */
static void
ask(void)
{
    uint64_t n = word_load(&board->asked) + 1;

    word_store(&board->asked, n);
    proc_await(&board->done, n, 60);
}

__attribute__((visibility("default"))) int openat(int dirfd, const char *path, int flags,
                                                  ...);

int
openat(int dirfd, const char *path, int flags, ...)
{
    size_t n = strlen(path), tail = strlen("/" SECOND);
    mode_t made = 0;
    va_list ap;

    if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
        va_start(ap, flags);
        made = va_arg(ap, mode_t);
        va_end(ap);
    }
    if (asks_left > 0 && n >= tail && strcmp(path + n - tail, "/" SECOND) == 0) {
        asks_left--;
        ask();
    }
    return (int)syscall(SYS_openat, dirfd, path, flags, made);
}

static void
map_both(void)
{
    file[0] = xMmap(FIRST, N_PAGES * env_page());
    file[1] = xMmap(SECOND, N_PAGES * env_page());
    if (file[0] == MAP_FAILED || file[1] == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xMmap: %s", xLastError());
}

/* fill -- one transaction stores a number to every page, and so much else that the log has
   to hold all of it. */
static void
fill(uint64_t value)
{
    int rc;

    do {
        must_ok(xbegin());
        for (int f = 0; f < 2; f++)
            for (size_t i = 0; i < N_PAGES * env_page() / sizeof(uint64_t); i++)
                file[f][i] =
                    value
                    + i % (env_page() / sizeof(uint64_t)) * UINT64_C(0x9e3779b97f4a7c15);
    } while ((rc = xend()) == ABORTED);
    must_eq(rc, COMMITTED);
}

/* rounds -- the writer: so much log in each that segments are reused. */
static void
rounds(void *arg)
{
    uint64_t value = 1;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 1 << 16));
    must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 1 << 22)); /* no data file for fill() */
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, recycle));
    must_ok(xSetOption(XAC_OPT_FULL_IMAGES, full_images));
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    must_ok(xSetOption(XAC_OPT_MODE, 0644));
    must_ok(xInit(ENV_DIR, mode));
    map_both();
    fill(value++);
    word_store(&board->ready, 1);
    for (uint64_t round = 1; word_load(&board->stop) == 0; round++) {
        while (word_load(&board->asked) < round && word_load(&board->stop) == 0)
            proc_sleep_us(100);
        for (int i = 0; i < 3; i++) {
            fill(value++);
            must_ok(xCheckpoint());
        }
        word_store(&board->value, value - 1);
        word_store(&board->done, round);
    }
    env_detach();
}

/* must_see_one -- all pages hold the same number; ret it. */
static uint64_t
must_see_one(void)
{
    uint64_t value;

    must_ok(xbeginQuery());
    value = file[0][0];
    for (int f = 0; f < 2; f++)
        for (size_t i = 0; i < N_PAGES; i++)
            must_eq(*env_cell(file[f], i), value);
    must_ok(xendQuery());
    return value;
}

static pid_t
start(void)
{
    pid_t pid;

    board = proc_shared(sizeof *board);
    pid = proc_spawn(rounds, NULL);
    proc_await(&board->ready, 1, 60);
    return pid;
}

static void
finish(pid_t pid)
{
    word_store(&board->stop, 1);
    proc_join(pid);
}

static bool
is_root(void)
{
    if (geteuid() == 0)
        return true;
    printf("not root: not tested\n");
    return false;
}

/* become_nobody -- who may read, but not take part. */
static void
become_nobody(void)
{
    must_ok(setresgid(65534, 65534, 65534));
    must_ok(setresuid(65534, 65534, 65534));
}

static void
read_interrupted(void *arg)
{
    uint64_t value;

    become_nobody();
    asks_left = *(unsigned *)arg;
    must_ok(xInit(ENV_DIR, XAC_READONLY));
    must_eq(env_stats().reader, XAC_READER_FROZEN);
    must_eq(asks_left, 0);
    map_both();
    value = must_see_one();
    must_eq(value, word_load(&board->value));
    ask();
    must_eq(must_see_one(), value);
    env_detach();
}

static void
setup(void)
{
    env_setup();
    umask(022);
    must_ok(chmod(".", 0755));
    must_ok(mkdir(ENV_DIR, 0755));
    recycle = 0;
    full_images = 1;
    mode = DURABLE;
}

/* Checkpoints write every page between the copies of the first file and of the second. */
START_TEST(checkpoints_between_the_copies)
{
    static unsigned once = 1;
    pid_t pid;

    if (!is_root())
        return;
    pid = start();
    proc_run(read_interrupted, &once);
    finish(pid);
}
END_TEST

/* The log that was needed is reused meanwhile, twice. */
START_TEST(log_reused_between_the_copies)
{
    static unsigned twice = 2;
    pid_t pid;

    if (!is_root())
        return;
    recycle = 1;
    pid = start();
    proc_run(read_interrupted, &twice);
    finish(pid);
}
END_TEST

static void
read_always_interrupted(void *arg)
{
    (void)arg;
    become_nobody();
    asks_left = 1000;
    must_refuse(xInit(ENV_DIR, XAC_READONLY), EAGAIN);
    must(strstr(xLastError(), "has gone") != NULL);
    asks_left = 0;
    must_ok(xInit(ENV_DIR, XAC_READONLY));
    map_both();
    (void)must_see_one();
    env_detach();
}

START_TEST(log_reused_again_and_again)
{
    pid_t pid;

    if (!is_root())
        return;
    recycle = 1;
    pid = start();
    proc_run(read_always_interrupted, NULL);
    finish(pid);
}
END_TEST

static void
read_refused(void *arg)
{
    become_nobody();
    must_refuse(xInit(ENV_DIR, XAC_READONLY), ENOTSUP);
    must(strstr(xLastError(), arg) != NULL);
}

/* Copies of files that are being written cannot be made whole without images, or a log. */
START_TEST(what_cannot_be_made_whole)
{
    static char words[][20] = {"full images", "not durable"};
    pid_t pid;

    if (!is_root())
        return;
    if (_i == 0)
        full_images = 0;
    else
        mode = NONDURABLE;
    pid = start();
    proc_run(read_refused, words[_i]);
    finish(pid);
    must_ok(xInit(ENV_DIR, XAC_READONLY)); /* now that nobody is attached */
    map_both();
    (void)must_see_one();
    env_detach();
}
END_TEST

/* map_of -- one of the files, as it lies in a backup or a copy. */
static void *
map_of(const char *path)
{
    return xMmap(path, N_PAGES * env_page());
}

static void
read_backup(void *arg)
{
    (void)arg;
    must_ok(xInit("backup", XAC_READONLY));
    file[0] = map_of("backup/first.db");
    file[1] = map_of("backup/xac-outside/2-" SECOND);
    if (file[0] == MAP_FAILED || file[1] == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xMmap: %s", xLastError());
    (void)must_see_one();
    must(map_of(SECOND) == MAP_FAILED); /* the original */
    env_detach();
}

/* A backup is looked at where it lies, and remains one. */
START_TEST(backup_is_read)
{
    struct image *before;
    pid_t pid = start();

    ask();
    must_ok(xInit(ENV_DIR, DURABLE));
    must_ok(xBackup("backup"));
    env_detach();
    finish(pid);
    before = image_take("backup");
    proc_run(read_backup, NULL);
    must_unchanged(before, "backup");
    image_free(before);
}
END_TEST

static void
read_copy(void *arg)
{
    (void)arg;
    must_ok(xInit("copy", XAC_READONLY));
    file[0] = map_of("copy/first.db");
    must(file[0] != MAP_FAILED);
    must_eq(env_get(file[0]), word_load(&board->value));
    must(map_of(SECOND) == MAP_FAILED);
    must(strstr(xLastError(), SECOND) != NULL);
    env_detach();
}

/* The copy of an environment does not have what lies outside of it. */
START_TEST(copy_is_read)
{
    pid_t pid = start();

    ask();
    if (_i == 0)
        proc_kill(pid);
    else
        finish(pid);
    must_ok(system("cp -a " ENV_DIR " copy"));
    proc_run(read_copy, NULL);
}
END_TEST

static Suite *
frozen_suite(void)
{
    Suite *s = suite_create("frozen readers");
    TCase *tc = env_tcase_with(s, "frozen", 120, setup);

    tcase_add_test(tc, checkpoints_between_the_copies);
    tcase_add_test(tc, log_reused_between_the_copies);
    tcase_add_test(tc, log_reused_again_and_again);
    tcase_add_test(tc, backup_is_read);
    tcase_add_loop_test(tc, copy_is_read, 0, 2);
    tcase_add_loop_test(tc, what_cannot_be_made_whole, 0, 2);
    return s;
}

int
main(void)
{
    return env_main(frozen_suite());
}
