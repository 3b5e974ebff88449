/* SPDX-License-Identifier: MIT */
/*
 * check_twin.c -- a view whose pages others write again and again gets memory with a twin, and the
 * system or a limit of the process does not let it.
 *
 * GOAL    A transaction may begin with an error, but the process goes on, and the next one begins and
 *         sees what has been committed.  Nothing kills the process.
 * METHOD  The test writes a few pages on demand.  A child loads all of them in a transaction, again and
 *         again.  While it begins, the n-th system call fails, or all from the n-th one on; or a limit
 *         is set before the twin is made.  In debug builds the test commits while the pages of a query
 *         are brought up to date.
 */
#include <config.h>

#include <errno.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "base/annot.h"
#include "base/sys.h"
#include "tests/common/env.h"
#include "tests/common/sysfault.h"

#define PAGES     64u
#define WRITTEN   8u /* pages of a round */
#define ROUNDS    8u /* the twin is made in the third one */
#define CALLS_MAX 100u

struct board {
    _Atomic uint64_t asked, done;
    _Atomic uint64_t n_hit; /* begins in which a call has failed                        */
    uint64_t value[PAGES];  /* what the test has committed                              */
};

/* What goes wrong in the child. */
struct trouble {
    enum sysfault_what what;
    uint64_t n;
    int error;
    int limit; /* RLIMIT_...; -1: none                                                  */
};

static struct board *board;
static uint64_t *x;

static void
setup(void)
{
    env_setup();
    env_without_frames("twins are for views without them");
    board = proc_shared(sizeof *board);
    must(setenv("XAC_ENGINE", "uffd", 1) == 0);
    env_checking = XAC_CHECKING_FAST;
    must_ok(xac_set_option(XAC_OPT_POLICY, XAC_POLICY_SERIAL));
    x = (uint64_t *)env_attach(XAC_NONDURABLE, PAGES);
}

/* bytes_mapped -- by this process. */
static rlim_t
bytes_mapped(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long n = 0;

    must(f != NULL && fscanf(f, "%lu", &n) == 1 && fclose(f) == 0);
    return n * env_page();
}

/* set_limit -- so low that there is no twin: no file may be written, or no descriptor be opened, or no
   room is for as much memory again. */
static void
set_limit(int what)
{
    struct rlimit limit;

    must(getrlimit((__rlimit_resource_t)what, &limit) == 0);
    limit.rlim_cur = what == RLIMIT_AS ? bytes_mapped() + PAGES / 2 * env_page() : 0;
    must(setrlimit((__rlimit_resource_t)what, &limit) == 0);
}

/* begin -- in trouble; if that is an error, again without. */
static void
begin(const struct trouble *t)
{
    int rc;

    if (t->limit < 0)
        sysfault_arm(t->what, SYSFAULT_FILES | SYSFAULT_MEMORY, t->n, t->error);
    rc = xac_begin();
    if (t->limit < 0 && sysfault_hit() != NULL)
        word_add(&board->n_hit, 1);
    else
        must_ok(rc);
    if (t->limit < 0)
        sysfault_disarm();
    if (rc != 0)
        must_ok(xac_begin());
}

/* abort_one -- store to a page and abort; the page stays as it was. */
static void
abort_one(size_t page)
{
    must_ok(xac_begin());
    *env_cell(x, page) = UINT64_MAX;
    must_ok(xac_abort());
    must_rc(xac_end(), XAC_ABORTED);
    must_eq(env_get(env_cell(x, page)), board->value[page]);
}

/* ask -- for a round of the test. */
static void
ask(uint64_t round)
{
    word_store(&board->asked, round);
    proc_await(&board->done, round, 20);
}

/* must_show -- in a transaction or query. */
static void
must_show(const uint64_t values[PAGES])
{
    for (size_t page = 0; page < PAGES; page++)
        must_eq(*(volatile uint64_t *)env_cell(x, page), values[page]);
}

static void
look_again_and_again(void *arg)
{
    const struct trouble *t = (const struct trouble *)arg;

    (void)env_get(x); /* a participant of its own, with all that it needs */
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        ask(round);
        if (t->limit >= 0 && round == 2)
            set_limit(t->limit);
        begin(t);
        must_show(board->value);
        must_rc(xac_end(), XAC_COMMITTED);
        abort_one(round * 11 % PAGES);
    }
}

/* write_round -- a few pages; each round others, but some again. */
static void
write_round(uint64_t round)
{
    must_ok(xac_begin());
    for (uint64_t i = 0; i < WRITTEN; i++) {
        size_t page = (round * 3 + i * 5) % PAGES;

        board->value[page]++;
        *env_cell(x, page) = board->value[page];
    }
    must_rc(xac_end(), XAC_COMMITTED);
}

/* serve -- a child that asks for so many rounds. */
static void
serve(void (*fn)(void *), void *arg, uint64_t n_rounds)
{
    pid_t child;

    word_store(&board->asked, 0);
    word_store(&board->done, 0);
    child = proc_spawn(fn, arg);
    for (uint64_t round = 1; round <= n_rounds; round++) {
        proc_await(&board->asked, round, 20);
        write_round(round < ROUNDS ? round : ROUNDS); /* at last the same pages again */
        word_store(&board->done, round);
    }
    proc_join(child);
}

/* play -- a child in trouble; ret the begins in which a call has failed. */
static uint64_t
play(struct trouble t)
{
    word_store(&board->n_hit, 0);
    serve(look_again_and_again, &t, ROUNDS);
    return word_load(&board->n_hit);
}

START_TEST(begin_while_calls_fail)
{
    static const int errors[] = {ENOMEM, EINVAL};
    struct trouble t = {.what = _i % 2 == 0 ? SYSFAULT_FAIL : SYSFAULT_FAIL_ALL,
                        .error = errors[_i / 2],
                        .limit = -1};
    uint64_t n_hit = 0;

    for (t.n = 1; play(t) > 0; t.n++) {
        n_hit++;
        must(t.n < CALLS_MAX);
    }
    must(n_hit > 8); /* so many it takes to make a twin */
    env_detach();
}
END_TEST

START_TEST(begin_under_a_limit)
{
    static const int limits[] = {RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_NOFILE};

    (void)play((struct trouble){.limit = limits[_i]});
    env_detach();
}
END_TEST

/* ---- A system that watches no shared memory ---------------------------------------------- */

static struct xac_sys real;
static bool has_memory; /* for a twin, and not asked yet to watch it */

static int
note_memory(const char *name, unsigned flags)
{
    has_memory = true;
    return real.memfd_create(name, flags);
}

static int
refuse_shared(int fd, unsigned long request, void *arg)
{
    if (request == UFFDIO_REGISTER && has_memory) {
        has_memory = false;
        errno = EINVAL;
        return -1;
    }
    return real.ioctl(fd, request, arg);
}

static void
look_without_twins(void *arg)
{
    (void)arg;
    (void)env_get(x);
    real = xac_sys;
    xac_sys.memfd_create = note_memory;
    xac_sys.ioctl = refuse_shared;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        ask(round);
        must_ok(xac_begin());
        must_show(board->value);
        must_rc(xac_end(), XAC_COMMITTED);
    }
    must(!has_memory);
}

START_TEST(begin_where_no_shared_memory_is_watched)
{
    serve(look_without_twins, NULL, ROUNDS);
    env_detach();
}
END_TEST

/* ---- fork ------------------------------------------------------------------------------ */

static void
look(void)
{
    must_ok(xac_begin_query());
    must_show(board->value);
    must_ok(xac_end_query());
}

static void
look_as_a_child(void *arg)
{
    (void)arg;
    look();
    ask(ROUNDS + 1);
    look();
}

static void
fork_with_a_twin(void *arg)
{
    (void)arg;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        ask(round);
        look();
    }
    proc_run(look_as_a_child, NULL);
    look();
}

START_TEST(a_child_has_memory_of_its_own)
{
    serve(fork_with_a_twin, NULL, ROUNDS + 1);
    env_detach();
}
END_TEST

/* ---- Others commit ----------------------------------------------------------------------- */

#ifdef XAC_DEBUG

/* commit_meanwhile -- the begin has chosen its state, and brings the first page up to date. */
static void
commit_meanwhile(const char *name)
{
    if (strcmp(name, "ga page") != 0)
        return;
    xac_kill_hook = NULL;
    ask(ROUNDS + 1);
}

static void
look_while_others_commit(void *arg)
{
    uint64_t before[PAGES];

    (void)arg;
    (void)env_get(x);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        ask(round);
        if (round == ROUNDS)
            xac_kill_hook = commit_meanwhile;
        memcpy(before, board->value, sizeof before);
        must_ok(xac_begin_query());
        must_show(before);
        must_ok(xac_end_query());
    }
    must(xac_kill_hook == NULL);
    must_ok(xac_begin_query());
    must_show(board->value);
    must_ok(xac_end_query());
}

START_TEST(a_query_shows_one_state_while_others_commit)
{
    serve(look_while_others_commit, NULL, ROUNDS + 1);
    env_detach();
}
END_TEST

#endif /* XAC_DEBUG */

int
main(void)
{
    Suite *s = suite_create("twin");
    TCase *tc = env_tcase_with(s, "twin", 120, setup);

    tcase_add_loop_test(tc, begin_while_calls_fail, 0, 4);
    tcase_add_loop_test(tc, begin_under_a_limit, 0, 3);
    tcase_add_test(tc, begin_where_no_shared_memory_is_watched);
    tcase_add_test(tc, a_child_has_memory_of_its_own);
#ifdef XAC_DEBUG
    tcase_add_test(tc, a_query_shows_one_state_while_others_commit);
#endif
    return env_main(s);
}
