/* SPDX-License-Identifier: MIT */
/*
 * check_in_place_steps.c -- pages that are updated in place, while somebody comes, dies, or lacks room.
 *
 * GOAL    If a process dies at a named step (xac_kill_point, debug builds) of putting pages into the list, of making
 *         images, and of making versions of pages: nobody who lives misses anything committed, or
 *         sees anything else.  Without room for an image, or for versions, there is an error, and nothing is lost.
 * METHOD  Each page holds the number of the last transaction that has committed; kill points and
 *         failing system calls (sysfault.h).
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/env.h"
#include "../common/sysfault.h"
#include "base/annot.h"
#include "base/sys.h"

#define PAGES 24u
#define MANY \
 2048u /* pages whose images find no room in a version store that cannot grow */
#define ENOUGH 200u /* begins behind which the views have been looked at */

struct board {
    _Atomic uint64_t value; /* of all pages, committed                                  */
    _Atomic uint64_t phase;
    _Atomic uint64_t order;
    _Atomic uint64_t met;
};

static struct board *board;

static void
setup(void)
{
    env_setup();
    env_without_frames("a bound on memory rules out updates in place");
    must(setenv("XAC_ENGINE", "uffd", 1) == 0);
    must_ok(xac_set_option(XAC_OPT_POLICY, XAC_POLICY_SERIAL));
    env_checking = XAC_CHECKING_TRUSTED;
    board = proc_shared(sizeof *board);
}

static bool
is_in_place(void)
{
    char region[4200], path[4300];

    env_region(ENV_DIR, region);
    (void)snprintf(path, sizeof path, "%s.in-place", region);
    return file_exists(path);
}

static uint64_t *
attach(void)
{
    return env_attach(XAC_NONDURABLE, PAGES);
}

static void
fill(uint64_t *at, uint64_t value)
{
    for (size_t i = 0; i < env_page() / sizeof *at; i++)
        at[i] = value;
}

/* set -- announce and store to all pages; ret of the announcement. */
static int
set(uint64_t *base, uint64_t value)
{
    for (unsigned p = 0; p < PAGES; p++) {
        int rc = xac_set_page_access(env_cell(base, p), XAC_READ_WRITE);

        if (rc != 0)
            return rc;
        fill(env_cell(base, p), value);
    }
    return 0;
}

/* next -- a transaction that sets all pages to the next value; ret that of xend(). */
static int
next(uint64_t *base)
{
    uint64_t value;
    int rc;

    must_ok(xac_begin());
    value = *base + 1;
    must_ok(set(base, value));
    rc = xac_end();
    if (rc == XAC_COMMITTED)
        word_store(&board->value, value);
    return rc;
}

static void
work(uint64_t *base)
{
    for (unsigned k = 0; k < ENOUGH; k++)
        must_rc(next(base), XAC_COMMITTED);
}

static void
enter(uint64_t *base)
{
    work(base);
    must(env_stats().engine_error != 0 || is_in_place());
}

/* must_hold -- all bytes of all pages have this value, or the next if that may be. */
static void
must_hold(uint64_t *base, uint64_t value, bool or_next)
{
    must_ok(xac_begin_query());
    for (unsigned p = 0; p < PAGES; p++) {
        const uint64_t *at = env_cell(base, p);

        for (size_t i = 0; i < env_page() / sizeof *at; i++) {
            if (at[i] != *base || (at[i] != value && !(or_next && at[i] == value + 1)))
                env_fail(__FILE__, __LINE__, "word %zu of page %u is %llu, not %llu", i,
                         p, (unsigned long long)at[i], (unsigned long long)value);
        }
    }
    must_ok(xac_end_query());
}

/* ---- Deaths --------------------------------------------------------------------------------- */

#ifdef XAC_DEBUG

static const char *point;
static uint64_t times_left;

static void
die(const char *name)
{
    if (strcmp(name, point) != 0 || times_left == 0 || --times_left > 0)
        return;
    word_add(&board->met, 1);
    (void)kill(getpid(), SIGKILL);
}

static void
stop(const char *name)
{
    if (strcmp(name, point) != 0 || times_left == 0 || --times_left > 0)
        return;
    word_add(&board->met, 1);
    (void)kill(getpid(), SIGSTOP);
}

/* A step of a newcomer, and of the process that is alone; the other steps are of both. */
static const char *const newcomers[] = {"ip version", "ip linked", "ip out"};
static const char *const alones[] = {"f next",   "f listed",  "f in place", "ip image",
                                     "ip kept",  "ip forgot", "f ring",     "g state",
                                     "i entry",  "i dropped", "begin",      "b",
                                     "e number", "g number"};

static void
come(void *arg)
{
    uint64_t *base;

    (void)arg;
    xac_kill_hook = die;
    base = attach();
    must_hold(base, word_load(&board->value), false);
    env_detach();
}

/* A newcomer dies at a step of its admission, before any transaction of the first one, or in one. */
START_TEST(newcomer_dies)
{
    uint64_t order = 0, *base;
    pid_t pid;

    for (unsigned k = 0; k < 12; k++) {
        bool is_in_txn = k % 2 != 0;

        point = newcomers[_i];
        times_left = k % 4 < 2 ? 1 : 1 + k;
        pid = fork();
        must(pid >= 0);
        if (pid == 0) {
            proc_await(&board->order, ++order, 60);
            come(NULL);
            _exit(0);
        }
        order++;
        base = attach();
        enter(base);
        if (is_in_txn) {
            must_ok(xac_begin());
            must_ok(set(base, 5555555));
        }
        word_add(&board->order, 1);
        (void)proc_wait(pid);
        if (is_in_txn)
            must_rc(xac_end(), XAC_ABORTED);
        must_hold(base, word_load(&board->value), false);
        work(base);
        must_hold(base, word_load(&board->value), false);
        must_ok(xac_checkpoint());
        work(base);
        must_hold(base, word_load(&board->value), false);
        env_detach();
        base = attach();
        must_hold(base, word_load(&board->value), false);
        env_detach();
    }
    must_eq(word_load(&board->met), 12);
}
END_TEST

static void
be_alone_until_stopped(void *arg)
{
    uint64_t *base = attach();

    (void)arg;
    enter(base);
    word_store(&board->phase, 1);
    xac_kill_hook = stop;
    for (unsigned k = 0;; k++) {
        if (k % 3 == 2) { /* so that images are given up, too */
            must_ok(xac_begin());
            must_ok(set(base, 6666666));
            must_ok(xac_abort());
            must_rc(xac_end(), XAC_ABORTED);
        }
        if (k % 4 == 3) /* so that pages are put into the list again */
            must_ok(xac_checkpoint());
        (void)next(base);
        word_store(&board->phase, 2 + k);
    }
}

/* finish -- come while the publish lock is held by one that dies then: what it has published half is
   finished.  If it had died before we came, nothing is known. */
static void
finish(void *arg)
{
    const uint64_t *value = arg;
    char was[4200], is[4200];
    uint64_t *base, sum;

    env_region(ENV_DIR, was);
    base = attach();
    env_region(ENV_DIR, is);
    if (strcmp(was, is) == 0) {
        must_hold(base, *value, true);
        must_ok(xac_begin());
        sum = *base;
        must_rc(xac_end(), XAC_COMMITTED);
        for (unsigned i = 0; i < ENOUGH; i++)
            must_rc(next(base), XAC_COMMITTED);
        must_hold(base, sum + ENOUGH, false);
        word_store(&board->order, 1);
    }
    env_detach();
}

static void
die_beside_a_waiter(pid_t pid, uint64_t value)
{
    pid_t waiter = proc_spawn(finish, &value);

    proc_sleep_us(100000); /* most probably it waits then */
    proc_kill(pid);
    proc_join(waiter);
}

/* The process that is alone is stopped at a step; somebody comes; then it is killed, or goes on. */
START_TEST(stopped_at_a_step)
{
    static const uint64_t times[] = {1, 2, 5, 30};

    for (unsigned k = 0; k < 8; k++) {
        uint64_t value, *base;
        int status;
        pid_t pid;

        point = alones[_i];
        times_left = times[k / 2];
        word_store(&board->phase, 0);
        word_store(&board->met, 0);
        pid = proc_spawn(be_alone_until_stopped, NULL);
        must(waitpid(pid, &status, WUNTRACED) == pid);
        must(WIFSTOPPED(status));
        must_eq(word_load(&board->met), 1);
        value = word_load(&board->value);
        if (k % 2 != 0
            && (strncmp(point, "f ", 2) == 0 || strncmp(point, "g ", 2) == 0
                || strncmp(point, "e ", 2) == 0)) {
            die_beside_a_waiter(pid, value);
            continue;
        }
        if (strncmp(point, "f ", 2) == 0 || strncmp(point, "g ", 2) == 0
            || strncmp(point, "e ", 2) == 0)
            must(kill(pid, SIGCONT) == 0); /* as above */
        base = attach();
        must_ok(xac_begin_query());
        value = word_load(&board->value) > value ? word_load(&board->value) : value;
        must_ok(xac_end_query());
        if (kill(pid, 0) == 0 && k % 2 != 0) {
            must_hold(base, value, true);
            proc_kill(pid);
            must_hold(base, word_load(&board->value), true);
        } else {
            must(kill(pid, SIGCONT) == 0);
            proc_await(&board->phase, word_load(&board->phase) + 3, 60);
            proc_kill(pid);
            must_hold(base, word_load(&board->value), true);
        }
        must_ok(xac_begin());
        value = *base;
        must_rc(xac_end(), XAC_COMMITTED);
        for (unsigned i = 0; i < 5; i++)
            must_rc(next(base), XAC_COMMITTED);
        must_hold(base, value + 5, false);
        env_detach();
    }
}
END_TEST

#endif

/* ---- In the middle of a begin ----------------------------------------------------------------- */

static int (*real_fstatfs)(int fd, struct statfs *fs);
static unsigned looks_left;

static int
stop_and_look(int fd, struct statfs *fs)
{
    if (looks_left > 0 && --looks_left == 0)
        (void)raise(SIGSTOP);
    return real_fstatfs(fd, fs);
}

static void
be_stopped_in_a_begin(void *arg)
{
    const unsigned *looks = arg;
    bool has_gone_on = false;
    uint64_t *base = attach();

    looks_left = *looks;
    real_fstatfs = xac_sys.fstatfs;
    xac_sys.fstatfs = stop_and_look;
    for (unsigned k = 0; word_load(&board->order) == 0; k++) {
        if (next(base) == XAC_COMMITTED)
            word_add(&board->met, 1);
        if (looks_left == 0 && !has_gone_on) { /* once more, behind that transaction */
            has_gone_on = true;
            (void)raise(SIGSTOP);
        }
        word_store(&board->phase, k);
    }
    env_detach();
}

/* Stopped in a begin that looks whether its pages may be updated in place, or still may: meanwhile somebody
   comes and commits. */
START_TEST(stopped_in_a_begin)
{
    unsigned looks = (unsigned)_i / 2 + 1;
    pid_t pid = proc_spawn(be_stopped_in_a_begin, &looks);
    uint64_t *base, mine = 0;
    int status;

    must(waitpid(pid, &status, WUNTRACED) == pid);
    must(WIFSTOPPED(status));
    base = attach();
    must_hold(base, word_load(&board->met), false);
    for (; _i % 2 == 0 && mine < 5; mine++)
        must_rc(next(base), XAC_COMMITTED);
    must(kill(pid, SIGCONT) == 0);
    must(waitpid(pid, &status, WUNTRACED) == pid);
    must(WIFSTOPPED(status));
    must_hold(base, word_load(&board->met) + mine, false);
    must(kill(pid, SIGCONT) == 0);
    proc_await(&board->phase, word_load(&board->phase) + 50, 60);
    for (unsigned k = 0; k < 50; k++)
        mine += next(base) == XAC_COMMITTED;
    word_store(&board->order, 1);
    proc_join(pid);
    must_hold(base, word_load(&board->met) + mine, false);
    env_detach();
}
END_TEST

/* A thread that gets a view at the n-th system call of a begin that starts to update in place. */
static uint64_t *shared_base;
static unsigned calls_left;
static pthread_t guest;
static _Atomic uint64_t guest_stage;
static int (*real_ftruncate)(int fd, off_t length);
static void *(*real_mmap)(void *at, size_t n, int prot, int flags, int fd, off_t offset);

static void *
be_guest(void *arg)
{
    uint64_t *view = xac_view(shared_base);

    (void)arg;
    must(view != NULL && view != MAP_FAILED);
    must_hold(view, word_load(&board->value), false);
    word_store(&guest_stage, 1);
    proc_await(&guest_stage, 2, 60);
    for (unsigned k = 0; k < 20; k++)
        must_rc(next(view), XAC_COMMITTED);
    must_ok(xac_unview(view));
    return NULL;
}

static void
let_guest_come(void)
{
    if (calls_left == 0 || --calls_left > 0)
        return;
    must_eq(pthread_create(&guest, NULL, be_guest, NULL), 0);
    proc_await(&guest_stage, 1, 60);
}

static int
truncate_with_guest(int fd, off_t length)
{
    if (!pthread_equal(pthread_self(), guest))
        let_guest_come();
    return real_ftruncate(fd, length);
}

static void *
map_with_guest(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if (guest_stage == 0 && calls_left > 0)
        let_guest_come();
    return real_mmap(at, n, prot, flags, fd, offset);
}

START_TEST(thread_comes_in_a_begin)
{
    unsigned n_aborted = 0;

    shared_base = attach();
    real_ftruncate = xac_sys.ftruncate;
    real_mmap = xac_sys.mmap;
    calls_left = (unsigned)_i % 4 + 1;
    if (_i < 4)
        xac_sys.ftruncate = truncate_with_guest;
    else
        xac_sys.mmap = map_with_guest;
    for (unsigned k = 0; k < ENOUGH; k++)
        n_aborted += next(shared_base) == XAC_ABORTED;
    must(n_aborted <= 1); /* revoked */
    calls_left = 0;
    xac_sys.ftruncate = real_ftruncate;
    xac_sys.mmap = real_mmap;
    must(_i % 4 != 0 || word_load(&guest_stage) == 1 || env_stats().engine_error != 0);
    if (word_load(&guest_stage) != 0) {
        word_store(&guest_stage, 2);
        must_eq(pthread_join(guest, NULL), 0);
    }
    for (unsigned k = 0; k < ENOUGH; k++)
        must_rc(next(shared_base), XAC_COMMITTED);
    must_hold(shared_base, word_load(&board->value), false);
    env_detach();
    shared_base = attach();
    must_hold(shared_base, word_load(&board->value), false);
    env_detach();
}
END_TEST

/* ---- No room -------------------------------------------------------------------------------- */

/* set_many -- store to each of MANY pages; ret as set(). */
static int
set_many(uint64_t *base, uint64_t value)
{
    int rc = set(base, value);

    for (unsigned p = PAGES; p < MANY && rc == 0; p++) {
        rc = xac_set_page_access(env_cell(base, p), XAC_READ_WRITE);
        if (rc == 0)
            *env_cell(base, p) = value;
    }
    return rc;
}

/* enter_with_many -- MANY pages are updated in place; they have no images. */
static void
enter_with_many(uint64_t *base)
{
    uint64_t value = word_load(&board->value) + 1;

    enter(base);
    must_ok(xac_begin());
    must_ok(set_many(base, value + ENOUGH));
    must_rc(xac_end(), XAC_COMMITTED);
    word_store(&board->value, value + ENOUGH);
}

/* Without room for an image a page is not given, and nothing committed is lost: again and again. */
START_TEST(no_room_for_images)
{
    uint64_t *base = env_attach(XAC_NONDURABLE, MANY);
    unsigned n_short = 0;

    enter_with_many(base);
    for (unsigned k = 0; k < 40; k++) {
        uint64_t value = word_load(&board->value);
        int rc;

        must_ok(xac_begin());
        sysfault_arm(k % 2 == 0 ? SYSFAULT_FAIL_ALL : SYSFAULT_FAIL,
                     SYSFAULT_GROW | SYSFAULT_FILES | SYSFAULT_MEMORY, 1 + k / 8, ENOSPC);
        rc = k % 4 < 2 ? set_many(base, 4444444)
                       : xac_set_range_access(base, MANY * env_page(), XAC_READ_WRITE);
        n_short += rc != 0;
        if (rc != 0)
            (void)xac_set_page_access(base, XAC_READ_WRITE);
        sysfault_disarm();
        if (rc == 0)
            must_ok(xac_abort());
        rc = xac_end();
        must(rc == XAC_ABORTED || rc == ENOSPC);
        must_hold(base, value, false);
        must_rc(next(base), XAC_COMMITTED);
        if (k % 8 == 7)
            must_ok(xac_checkpoint());
        enter(base);
        must_hold(base, word_load(&board->value), false);
    }
    printf("no room for images %u times\n", n_short);
    must(n_short > 0 || env_stats().engine_error != 0);
    env_detach();
}
END_TEST

static void
come_without_room(void *arg)
{
    int rc;

    (void)arg;
    proc_await(&board->order, 1, 60);
    must_ok(xac_set_option(XAC_OPT_CHECKING, env_checking));
    for (uint64_t n = 1; n < 60; n++) {
        sysfault_arm(SYSFAULT_FAIL_ALL, SYSFAULT_GROW | SYSFAULT_FILES, n, ENOSPC);
        rc = xac_init(ENV_DIR, XAC_NONDURABLE);
        sysfault_disarm();
        if (rc == 0) {
            uint64_t *base = xac_mmap(ENV_FILE, PAGES * env_page());

            must_hold(base, word_load(&board->value), false);
            env_detach();
        }
        word_store(&board->phase, n);
        proc_await(&board->order, n + 1, 60);
    }
    word_store(&board->phase, 1000);
}

/* Somebody comes, and cannot; who is alone goes on, and misses nothing. */
START_TEST(no_room_to_come)
{
    pid_t pid = proc_spawn(come_without_room, NULL);
    uint64_t *base = attach();

    for (uint64_t n = 1; n < 60; n++) {
        enter(base);
        must_ok(xac_begin());
        must_ok(set(base, 3333333));
        word_store(&board->order, n);
        proc_await(&board->phase, n, 60);
        (void)xac_abort();
        must_rc(xac_end(), XAC_ABORTED);
        must_hold(base, word_load(&board->value), false);
        must_rc(next(base), XAC_COMMITTED);
        must_hold(base, word_load(&board->value), false);
    }
    word_store(&board->order, 1000);
    proc_join(pid);
    must_ok(xac_checkpoint());
    must_hold(base, word_load(&board->value), false);
    env_detach();
}
END_TEST

/* Any call fails once, while pages begin to be updated in place, are, and are not any more. */
START_TEST(calls_fail)
{
    uint64_t *base = attach();

    for (uint64_t n = 1; n < 120; n++) {
        unsigned failed = 0;

        must_ok(xac_checkpoint());
        sysfault_arm(SYSFAULT_FAIL, SYSFAULT_GROW | SYSFAULT_FILES | SYSFAULT_MEMORY, n,
                     n % 2 == 0 ? ENOSPC : ENOMEM);
        for (unsigned k = 0; k < ENOUGH; k++) {
            uint64_t value = word_load(&board->value);
            int rc = xac_begin();

            if (rc != 0) {
                failed++;
                continue;
            }
            rc = set(base, value + 1);
            if (rc == 0 && k % 5 == 4)
                must_ok(xac_abort());
            rc = xac_end();
            failed += rc != XAC_COMMITTED && k % 5 != 4;
            if (rc == XAC_COMMITTED)
                word_store(&board->value, value + 1);
        }
        (void)xac_munmap(ENV_FILE);
        sysfault_disarm();
        must(failed <= 3);
        base = xac_mmap(ENV_FILE, PAGES * env_page());
        if (base == MAP_FAILED) {
            must(errno != 0);
            env_fail(__FILE__, __LINE__, "%s", xac_last_error());
        }
        must_hold(base, word_load(&board->value), false);
    }
    env_detach();
}
END_TEST

/* ---- Little room ---------------------------------------------------------------------------- */

static bool is_room_short;
static unsigned n_room_looks;

static int
fstatfs_of_short_room(int fd, struct statfs *fs)
{
    int rc = real_fstatfs(fd, fs);

    n_room_looks++;
    if (is_room_short)
        fs->f_bavail = 0;
    return rc;
}

static void
tell_of_room(bool is_short)
{
    is_room_short = is_short;
    if (xac_sys.fstatfs == fstatfs_of_short_room)
        return;
    real_fstatfs = xac_sys.fstatfs;
    xac_sys.fstatfs = fstatfs_of_short_room;
}

/* The in-place file is given up when its file system is short of room, and comes back with the room. */
START_TEST(little_room_is_left_to_others)
{
    uint64_t *base = attach();

    for (unsigned round = 0; round < 3; round++) {
        double began = env_now();

        tell_of_room(true);
        do
            work(base);
        while (is_in_place() && env_now() - began < 60);
        must(!is_in_place());
        must_hold(base, word_load(&board->value), false);
        tell_of_room(false);
        enter(base);
        must_hold(base, word_load(&board->value), false);
    }
    env_detach();
}
END_TEST

/* Looks at the room are system calls: there is one in 10 ms of a clock that ticks every 10 ms or more often. */
START_TEST(looks_at_the_room_are_rare)
{
    uint64_t *base = attach();
    double began;

    tell_of_room(false);
    enter(base);
    must(n_room_looks >= 1 || env_stats().engine_error != 0);
    n_room_looks = 0;
    began = env_now();
    for (unsigned k = 0; k < 1000 * ENOUGH; k++) {
        must_ok(xac_begin_query());
        must_ok(xac_end_query());
    }
    must(n_room_looks <= 3 + (unsigned)((env_now() - began) * 1000 / 10));
    env_detach();
}
END_TEST

/* Behind a transaction that has found no room, the next begin looks. */
START_TEST(no_room_is_looked_for_at_once)
{
    uint64_t *base = env_attach(XAC_NONDURABLE, MANY);
    unsigned n_short = 0;

    tell_of_room(false);
    enter_with_many(base);
    for (unsigned k = 0; k < 8; k++) {
        bool is_short;

        must_ok(xac_begin());
        sysfault_arm(SYSFAULT_FAIL_ALL, SYSFAULT_GROW, 1, ENOSPC);
        is_short = set_many(base, 4444444) != 0;
        sysfault_disarm();
        must(is_short || xac_abort() == 0);
        must(xac_end() != XAC_COMMITTED);
        tell_of_room(is_short);
        must_rc(next(base), XAC_COMMITTED);
        must(!is_short || !is_in_place());
        tell_of_room(false);
        enter_with_many(base);
        n_short += is_short;
    }
    printf("no room for images %u times\n", n_short);
    must(n_short > 0 || env_stats().engine_error != 0);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("in_place_steps");
    TCase *t = env_tcase_with(s, "no_room", 120, setup);

    tcase_add_test(t, no_room_for_images);
    tcase_add_test(t, no_room_to_come);
    tcase_add_test(t, calls_fail);
    tcase_add_test(t, little_room_is_left_to_others);
    tcase_add_test(t, looks_at_the_room_are_rare);
    tcase_add_test(t, no_room_is_looked_for_at_once);
    t = env_tcase_with(s, "begins", 60, setup);
    tcase_add_loop_test(t, stopped_in_a_begin, 0, 8);
    tcase_add_loop_test(t, thread_comes_in_a_begin, 0, 8);
#ifdef XAC_DEBUG
    t = env_tcase_with(s, "deaths", 120, setup);
    tcase_add_loop_test(t, newcomer_dies, 0,
                        (int)(sizeof newcomers / sizeof newcomers[0]));
    t = env_tcase_with(s, "stops", 120, setup);
    tcase_add_loop_test(t, stopped_at_a_step, 0, (int)(sizeof alones / sizeof alones[0]));
#endif
    return env_main(s);
}
