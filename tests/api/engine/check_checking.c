/* SPDX-License-Identifier: MIT */
/*
 * check_checking.c -- XAC_OPT_CHECKING and XAC_OPT_ENGINE: which setting decides, and what holds.
 *
 * GOAL    The default is FAST; the deprecated options set what xac_options.h says; the variable
 *         XAC_CHECKING counts more than the program.
 * METHOD  The value that holds is told by what traps, and by what is committed.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "env.h"

#define NOTHING UINT64_MAX

/* load -- a transaction that loads a number; ret traps for it. */
static uint64_t
load(const uint64_t *x)
{
    uint64_t before = env_traps();

    must_ok(xbegin());
    must_eq(*(volatile const uint64_t *)x, 0);
    must_rc(xend(), COMMITTED);
    return env_traps() - before;
}

/* store -- a transaction that stores a number, announced or not; ret is it noticed? */
static bool
store(uint64_t *x, uint64_t value, bool is_announced)
{
    uint64_t before = env_stats().commits;

    must_ok(xbegin());
    if (is_announced)
        must_ok(setPageAccess(x, READ_WRITE));
    *(volatile uint64_t *)x = value;
    must_rc(xend(), COMMITTED);
    return env_stats().commits != before;
}

/* engine_maps -- does the engine map the file, and make all of its pages readable at once (view.h)?
   The others fill pages, one by one. */
static bool
engine_maps(void)
{
    return env_stats().engine == XAC_ENGINE_SIGSEGV;
}

/* load_twice -- in a view with nothing readable in it; ret is the second load noticed, too?  The
   first one is noticed in any case if the engine fills pages. */
static bool
load_twice(const uint64_t *x)
{
    uint64_t first = load(x), second = load(x);

    must_eq(first, second == 1 || !engine_maps());
    return second == 1;
}

/* level -- the enum xac_checking that holds, by what can be observed. */
static uint64_t
level(uint64_t *x)
{
    uint64_t *y = env_cell(x, 1);

    if (load_twice(x))
        return XAC_CHECKING_STRICT;
    must(store(y, 1, true));
    return store(y, 2, false) ? XAC_CHECKING_FAST : XAC_CHECKING_TRUSTED;
}

static const struct choice {
    const char *variable;
    uint64_t stay_mapped, declared, checking; /* what the program sets                  */
    uint64_t wanted;
} choices[] = {
    {NULL, NOTHING, NOTHING, NOTHING, XAC_CHECKING_FAST},
    {"", NOTHING, NOTHING, NOTHING, XAC_CHECKING_FAST},
    {NULL, NOTHING, NOTHING, XAC_CHECKING_STRICT, XAC_CHECKING_STRICT},
    {NULL, NOTHING, NOTHING, XAC_CHECKING_FAST, XAC_CHECKING_FAST},
    {NULL, NOTHING, NOTHING, XAC_CHECKING_TRUSTED, XAC_CHECKING_TRUSTED},
    {NULL, 0, NOTHING, NOTHING, XAC_CHECKING_STRICT},
    {NULL, 1, NOTHING, NOTHING, XAC_CHECKING_FAST},
    {NULL, 0, NOTHING, XAC_CHECKING_FAST, XAC_CHECKING_FAST},
    {NULL, 1, NOTHING, XAC_CHECKING_STRICT, XAC_CHECKING_STRICT},
    {NULL, NOTHING, XAC_DECLARED_NONE, NOTHING, XAC_CHECKING_FAST},
    {NULL, NOTHING, XAC_DECLARED_TRUSTED, NOTHING, XAC_CHECKING_TRUSTED},
    {NULL, 1, XAC_DECLARED_TRUSTED, NOTHING, XAC_CHECKING_TRUSTED},
    {"strict", NOTHING, NOTHING, NOTHING, XAC_CHECKING_STRICT},
    {"strict", NOTHING, NOTHING, XAC_CHECKING_FAST, XAC_CHECKING_STRICT},
    {"strict", 1, NOTHING, NOTHING, XAC_CHECKING_STRICT},
    {"fast", NOTHING, NOTHING, XAC_CHECKING_STRICT, XAC_CHECKING_FAST},
};
#define N_CHOICES ((int)(sizeof choices / sizeof choices[0]))

static void
set(int option, uint64_t value)
{
    if (value != NOTHING)
        must_ok(xSetOption(option, value));
}

START_TEST(the_choice_holds)
{
    const struct choice *c = &choices[_i];
    uint64_t *x, wanted = c->wanted;

    if (c->variable != NULL)
        must(setenv("XAC_CHECKING", c->variable, 1) == 0);
    set(XAC_OPT_STAY_MAPPED, c->stay_mapped);
    set(XAC_OPT_DECLARED, c->declared);
    set(XAC_OPT_CHECKING, c->checking);
    must_ok(xInit(ENV_DIR, NONDURABLE));
    x = xMmap(ENV_FILE, 2 * env_page());
    must(x != MAP_FAILED);
    if (wanted == XAC_CHECKING_TRUSTED && engine_maps())
        wanted = XAC_CHECKING_FAST; /* it lets no page stay writable */
    must_eq(level(x), wanted);
    env_detach();
}
END_TEST

START_TEST(may_be_changed_while_it_is_open)
{
    static const int options[] = {XAC_OPT_CHECKING, XAC_OPT_STAY_MAPPED};
    uint64_t *x;

    env_checking = XAC_CHECKING_FAST;
    x = env_attach(NONDURABLE, 2);
    must(!load_twice(x));
    must_ok(xSetOption(options[_i], XAC_CHECKING_STRICT));
    must(load_twice(x));
    must_ok(xbegin());
    must_refuse(xSetOption(options[_i], XAC_CHECKING_FAST), XAC_EINTXN);
    must_rc(xend(), COMMITTED);
    must_ok(xSetOption(options[_i], XAC_CHECKING_FAST));
    (void)load(x);
    must_eq(load(x), 0);
    env_detach();
}
END_TEST

START_TEST(variable_counts_while_it_is_open)
{
    uint64_t *x;

    must(setenv("XAC_CHECKING", "strict", 1) == 0);
    env_checking = XAC_CHECKING_FAST;
    x = env_attach(NONDURABLE, 2);
    must_ok(xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_FAST));
    must_ok(xSetOption(XAC_OPT_STAY_MAPPED, 1));
    must_eq(load(x), 1);
    must_eq(load(x), 1);
    env_detach();
}
END_TEST

START_TEST(variable_must_have_a_meaning)
{
    static const char *const words[] = {"trusted", "tight",  "0",
                                        "1",       "Strict", "strict "};

    must(setenv("XAC_CHECKING", words[_i], 1) == 0);
    must_refuse(xInit(ENV_DIR, NONDURABLE), EINVAL);
    must(strstr(xLastError(), words[_i]) != NULL);
    must(strstr(xLastError(), "XAC_CHECKING=") != NULL);
}
END_TEST

/* break_promise -- of a program that has chosen TRUSTED. */
static void
break_promise(void *arg)
{
    uint64_t *x;

    (void)arg;
    env_checking = XAC_CHECKING_TRUSTED;
    x = env_attach(NONDURABLE, 2);
    must_ok(xbegin());
    *(volatile uint64_t *)x = 1;
}

START_TEST(other_checking_finds_broken_promises)
{
    char output[4096];

    must(setenv("XAC_CHECKING", _i == 0 ? "strict" : "fast", 1) == 0);
    (void)proc_capture(break_promise, NULL, output, sizeof output);
    must(strstr(output, "not announced") != NULL);
}
END_TEST

/* ---- participants that differ ------------------------------------------------------------ */

#define N_TURNS 200

/* take_turns -- a participant of its own adds to two pages that must stay the same. */
static void
take_turns(void *arg)
{
    uint64_t *x, *y;
    int rc;

    env_checking = (uint64_t)(uintptr_t)arg;
    x = env_attach(NONDURABLE, 2);
    y = env_cell(x, 1);
    for (int i = 0; i < N_TURNS; i++) {
        do {
            must_ok(xbegin());
            must_ok(setPageAccess(x, READ_WRITE));
            must_ok(setPageAccess(y, READ_WRITE));
            *(volatile uint64_t *)x += 1;
            *(volatile uint64_t *)y += 1;
        } while ((rc = xend()) == ABORTED);
        must_rc(rc, COMMITTED);
        do {
            must_ok(xbegin());
            rc = *(volatile uint64_t *)x == *(volatile uint64_t *)y;
            if (xend() == COMMITTED)
                must(rc);
        } while (!rc);
    }
    env_detach();
}

/* Each value beside each: nothing is lost, and nobody sees one page without the other. */
START_TEST(participants_may_differ)
{
    pid_t a = proc_spawn(take_turns, (void *)(uintptr_t)(_i / 3));
    pid_t b = proc_spawn(take_turns, (void *)(uintptr_t)(_i % 3));

    proc_join(a);
    proc_join(b);
    must_eq(file_u64(ENV_FILE, 0), 2 * N_TURNS);
    must_eq(file_u64(ENV_FILE, env_page()), 2 * N_TURNS);
}
END_TEST

/* ---- engines --------------------------------------------------------------------------- */

START_TEST(the_engine_is_chosen)
{
    static const struct {
        const char *variable;
        uint64_t option, wanted; /* wanted: 0, the best                                 */
    } rows[] = {{NULL, NOTHING, 0},
                {NULL, XAC_ENGINE_BEST, 0},
                {NULL, XAC_ENGINE_PORTABLE, XAC_ENGINE_SIGSEGV},
                {"portable", NOTHING, XAC_ENGINE_SIGSEGV},
                {"portable", XAC_ENGINE_BEST, XAC_ENGINE_SIGSEGV},
                {"sigsegv", NOTHING, XAC_ENGINE_SIGSEGV},
                {"best", XAC_ENGINE_PORTABLE, 0}};
    struct xac_stats s;

    unsetenv("XAC_ENGINE");
    must_rc(xSetOption(XAC_OPT_ENGINE, XAC_ENGINE_UFFD), EINVAL);
    must_rc(xSetOption(XAC_OPT_ENGINE, XAC_ENGINE_THESIS), EINVAL);
    if (rows[_i].variable != NULL)
        must(setenv("XAC_ENGINE", rows[_i].variable, 1) == 0);
    set(XAC_OPT_ENGINE, rows[_i].option);
    env_init(NONDURABLE);
    s = env_stats();
    if (rows[_i].wanted != 0)
        must_eq(s.engine, rows[_i].wanted);
    else
        must_eq(s.engine, s.engine_error == 0 ? XAC_ENGINE_UFFD : XAC_ENGINE_SIGSEGV);
    must_refuse(xSetOption(XAC_OPT_ENGINE, XAC_ENGINE_BEST), EBUSY);
    env_detach();
}
END_TEST

static Suite *
checking_suite(void)
{
    Suite *s = suite_create("checking");
    TCase *tc = env_tcase(s, "choice", 60);

    tcase_add_loop_test(tc, the_choice_holds, 0, N_CHOICES);
    tcase_add_loop_test(tc, may_be_changed_while_it_is_open, 0, 2);
    tcase_add_test(tc, variable_counts_while_it_is_open);
    tcase_add_loop_test(tc, variable_must_have_a_meaning, 0, 6);
    tcase_add_loop_test(tc, other_checking_finds_broken_promises, 0, 2);
    tcase_add_loop_test(tc, participants_may_differ, 0, 9);
    tcase_add_loop_test(tc, the_engine_is_chosen, 0, 7);
    return s;
}

int
main(void)
{
    unsetenv("XAC_CHECKING"); /* of the run: it is what is tested here */
    return env_main(checking_suite());
}
