/* SPDX-License-Identifier: MIT */
/*
 * check_rename_steps.c -- a process that removes and renames files dies at each named step (xac_kill_point,
 * debug builds) and in each of its system calls, or each of them fails, once or from then on, by an error of the
 * device or because there is no room.
 *
 * GOAL    The file is there, whole, under its old or its new name, at its address, or it is removed; nothing
 *         that was committed is lost, for those who live on and after recovery; a call that fails
 *         leaves the file where it was, and the environment can be used.
 * METHOD  Each page of a file holds one number.  A survivor, or a recovery, looks at both names.
 *
 * XAC_STEPS_LONG=1: every system call (minutes instead of seconds).
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/env.h"
#include "../common/sysfault.h"
#include "base/annot.h"

#define PAGES 8u
#define OLD   "old"
#define NEW   "dir/new"
#define DIED  (-999)

/* What the victim does, and how it ends. */
struct plan {
    int flags;
    bool is_removal;
    bool has_company;  /* somebody lives on                                            */
    const char *point; /* kill point, or NULL                                          */
    enum sysfault_what what;
    uint64_t n; /* of the system call                                                  */
    int error;  /* with which it fails                                                 */
};

struct board {
    _Atomic uint64_t address;
    _Atomic uint64_t rc; /* of the call, as int                                        */
    _Atomic uint64_t ended, calls;
    _Atomic uint64_t go, ready, poisoned;
};

static struct board *board;
static const struct plan *struck;

static void
setup(void)
{
    env_setup();
    must_ok(xac_set_option(XAC_OPT_CHECKPOINT_BYTES, 0));
    must_ok(xac_set_option(XAC_OPT_PAGE_CHECKSUMS, 1));
    must(mkdir("dir", 0777) == 0);
    board = proc_shared(sizeof *board);
}

static uint64_t *
map(const char *name)
{
    uint64_t *x = xac_mmap(name, PAGES * env_page());

    if (x == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "mapping %s: %s", name, xac_last_error());
    return x;
}

static void
put(uint64_t *x, uint64_t value)
{
    int rc;

    do {
        must_ok(xac_begin());
        for (unsigned p = 0; p < PAGES; p++)
            *env_cell(x, p) = value;
    } while ((rc = xac_end()) == XAC_ABORTED);
    must_eq(rc, XAC_COMMITTED);
}

static void
must_hold(uint64_t *x, uint64_t value)
{
    must_ok(xac_begin_query());
    for (unsigned p = 0; p < PAGES; p++)
        must_eq(*env_cell(x, p), value);
    must_ok(xac_end_query());
}

#ifdef XAC_DEBUG
static void
meet(const char *name)
{
    if (struck->point != NULL && strcmp(name, struck->point) == 0)
        (void)kill(getpid(), SIGKILL);
}
#endif

/* fails -- does a call fail, and the process lives on? */
static bool
fails(const struct plan *p)
{
    return p->what == SYSFAULT_FAIL || p->what == SYSFAULT_FAIL_ALL;
}

/* run_victim -- a file with 7 in all pages, then the call. */
static void
run_victim(void *arg)
{
    const struct plan *p = arg;
    uint64_t *x;
    int rc;

    struck = p;
    env_init(p->flags);
    x = map(OLD);
    put(x, 6);
    must_ok(xac_checkpoint());
    put(x, 7);
    word_store(&board->address, (uint64_t)(uintptr_t)x);
    must_ok(xac_munmap(OLD));
#ifdef XAC_DEBUG
    if (p->point != NULL)
        xac_kill_hook = meet;
#endif
    sysfault_arm(p->what, SYSFAULT_EVERY, p->n, p->error);
    rc = p->is_removal ? xac_remove(OLD) : xac_rename(OLD, NEW);
    word_store(&board->calls, sysfault_count());
    sysfault_disarm();
    word_store(&board->rc, (uint64_t)(int64_t)rc);
    word_store(&board->ended, 1);
    if (p->has_company || !fails(p))
        return; /* as killed behind it */
    (void)xac_shutdown();
}

/* look -- with the environment open: which name has the file?  It can be used. */
static void
look(const struct plan *p, int rc)
{
    bool is_old = file_exists(OLD), is_new = file_exists(NEW);
    uint64_t *x;

    if (p->is_removal) {
        must(!is_new);
        must(rc != 0 || !is_old);
    } else {
        must(is_old != is_new);
        must(rc != 0 || is_new);
    }
    if (is_old || is_new) {
        x = map(is_old ? OLD : NEW);
        must_eq((uint64_t)(uintptr_t)x, word_load(&board->address));
        must_hold(x, 7);
        put(x, 8);
        must_ok(xac_munmap(is_old ? OLD : NEW));
        if (is_old) /* the next attempt */
            must_ok(p->is_removal ? xac_remove(OLD) : xac_rename(OLD, NEW));
    }
    must(!file_exists(OLD));
    must_eq(file_exists(NEW), !p->is_removal);
    if (!p->is_removal)
        must_hold(map(NEW), 8);
    must_hold(map(OLD), 0); /* a new one */
}

static int
outcome(void)
{
    return word_load(&board->ended) != 0 ? (int)(int64_t)word_load(&board->rc) : DIED;
}

static void
survive(void *arg)
{
    const struct plan *p = arg;

    env_init(p->flags);
    word_store(&board->ready, 1);
    proc_await(&board->go, 1, 60);
    if (xac_begin_query() == XAC_EPOISONED) { /* by what failed in the victim */
        word_store(&board->poisoned, 1);
        (void)xac_shutdown();
        return;
    }
    must_ok(xac_end_query());
    look(p, outcome());
    must_ok(xac_shutdown());
}

static void
open_and_look(void *arg)
{
    const struct plan *p = arg;

    env_init(p->flags);
    look(p, outcome());
    must_ok(xac_shutdown());
}

/* open_and_die -- the same, and then once more a crash. */
static void
open_and_die(void *arg)
{
    const struct plan *p = arg;

    env_init(p->flags);
    look(p, outcome());
}

/* look_later -- nobody is attached: recover, look, crash, and recover once more. */
static void
look_later(struct plan *p)
{
    if (p->flags == XAC_DURABLE) {
        proc_run(open_and_die, p);
        must_ok(xac_recover(ENV_DIR));
        if (!p->is_removal)
            must_eq(file_u64(NEW, env_page()), 8);
    } else if (fails(p)) {
        proc_run(open_and_look, p);
    }
}

/* play -- one plan; ret system calls counted. */
static uint64_t
play(struct plan *p)
{
    pid_t survivor = 0;
    int status;

    memset(board, 0, sizeof *board);
    if (p->has_company) {
        survivor = proc_spawn(survive, p);
        proc_await(&board->ready, 1, 60);
    }
    status = proc_wait(proc_spawn(run_victim, p));
    if (!(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
        env_fail(__FILE__, __LINE__, "the victim ends with %#x (n %llu)", status,
                 (unsigned long long)p->n);
    if (p->has_company) {
        word_store(&board->go, 1);
        proc_join(survivor);
    }
    must(word_load(&board->poisoned) == 0 || (fails(p) && p->flags == XAC_DURABLE));
    if (!p->has_company || word_load(&board->poisoned) != 0) /* else it has looked */
        look_later(p);
    must_eq(system("rm -rf " ENV_DIR " old dir; mkdir dir"), 0);
    return word_load(&board->calls);
}

/* Each system call of it, in turn; if there is little time, one in so many. */
static void
play_each(struct plan p, unsigned from, unsigned one_in)
{
    uint64_t step = getenv("XAC_STEPS_LONG") != NULL ? 1 : one_in * ENV_DEAR;
    uint64_t n, calls = UINT64_MAX;

    for (p.n = 1 + from % step; p.n <= calls; p.n += step) {
        n = play(&p);
        if (word_load(&board->ended) != 0 && n < p.n)
            calls = n; /* it was not reached */
    }
    must(p.n > 20);
}

/* variant -- by the number of a loop. */
static struct plan
variant(int i, enum sysfault_what what)
{
    return (struct plan){.flags = (i & 1) == 0 ? XAC_DURABLE : XAC_NONDURABLE,
                         .is_removal = (i & 2) != 0,
                         .has_company = (i & 4) != 0,
                         .what = what};
}

START_TEST(nothing_fails)
{
    struct plan p = variant(_i, SYSFAULT_COUNT);

    (void)play(&p);
    must_eq(outcome(), 0);
}
END_TEST

START_TEST(calls_fail)
{
    struct plan p = variant(_i, _i < 16 ? SYSFAULT_FAIL : SYSFAULT_FAIL_ALL);

    p.error = (_i & 8) == 0 ? EIO : ENOSPC;
    play_each(p, (unsigned)_i + (unsigned)_i / 8, _i < 8 ? 5 : 15);
}
END_TEST

START_TEST(dies_in_a_call)
{
    struct plan p = variant(_i, SYSFAULT_DIE);

    if (p.flags == XAC_DURABLE || p.has_company) /* else there is nothing to look at */
        play_each(p, (unsigned)_i, 5);
}
END_TEST

#ifdef XAC_DEBUG
static const char *const points[] = {"forget logged", "name logged", "name changed",
                                     "name synced", "name done"};
# define N_POINTS (int)(sizeof points / sizeof points[0])

START_TEST(dies_at_a_step)
{
    struct plan p = variant(_i / N_POINTS, SYSFAULT_COUNT);

    p.point = points[_i % N_POINTS];
    if (p.flags != XAC_DURABLE && (!p.has_company || _i % N_POINTS == 0))
        return; /* there is nothing to look at, or a checkpoint has left the file */
    (void)play(&p);
    must_eq(word_load(&board->ended), 0);
}
END_TEST
#endif

int
main(void)
{
    Suite *s = suite_create("rename_steps");
    TCase *t = env_tcase_with(s, "rename_steps", 300, setup);

    tcase_add_loop_test(t, nothing_fails, 0, 8);
    tcase_add_loop_test(t, calls_fail, 0, 32);
    tcase_add_loop_test(t, dies_in_a_call, 0, 8);
#ifdef XAC_DEBUG
    tcase_add_loop_test(t, dies_at_a_step, 0, 8 * N_POINTS);
#endif
    return env_main(s);
}
