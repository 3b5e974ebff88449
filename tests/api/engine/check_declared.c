/* SPDX-License-Identifier: MIT */
/*
 * check_declared.c -- programs that announce every store (XAC_CHECKING_TRUSTED).
 *
 * GOAL    Announced stores are committed, rolled back and revoked, whether pages stay
 *         writable or not; a program that breaks the promise harms no other, and is found where
 *         that is asked for; the heap announces its own stores.
 * METHOD  a model; visitors that come and go; SIGKILL; a few pages with known contents.
 */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "env.h"
#include "visits.h"

static const char *const engines[] = {"uffd", "sigsegv"};
#define N_ENGINES 2

#define PAGES 64

static uint64_t *
cell(uint64_t *base, uint64_t page)
{
    return base + page * env_page() / sizeof *base;
}

static uint64_t
traps(void)
{
    struct xac_stats s;

    must_ok(xStats(&s, sizeof s));
    return s.traps_read + s.traps_write;
}

/* promise -- under an engine, trusted or checked; false if this system has not got it. */
static bool
promise(int engine, bool is_checked)
{
    struct xac_stats s;

    must(setenv("XAC_ENGINE", engines[engine], 1) == 0);
    env_init(NONDURABLE);
    must_ok(xStats(&s, sizeof s));
    env_detach();
    env_checking = is_checked ? XAC_CHECKING_FAST : XAC_CHECKING_TRUSTED;
    if (is_checked)
        env_announce();
    return s.engine_error == 0;
}

/* announced_put -- until it commits. */
static void
announced_put(uint64_t *where, uint64_t value)
{
    int rc;

    do {
        must_ok(xbegin());
        must_ok(setPageAccess(where, READ_WRITE));
        *where = value;
        rc = xend();
        must(rc == COMMITTED || rc == ABORTED);
    } while (rc == ABORTED);
}

START_TEST(refuse_what_is_no_promise)
{
    must_rc(xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_TRUSTED + 1), EINVAL);
    env_checking = XAC_CHECKING_FAST;
    env_init(NONDURABLE);
    must_refuse(xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_TRUSTED), EBUSY);
    must_ok(xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_STRICT));
    env_detach();
    env_checking = XAC_CHECKING_TRUSTED;
    env_init(NONDURABLE);
    must_refuse(xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_FAST), EBUSY);
    env_detach();
}
END_TEST

/* ---- kept promises ----------------------------------------------------------------------- */

/* step -- a transaction of a few ranges that are read or announced and stored to. */
static void
step(uint64_t *base, uint64_t *model, uint64_t *seed)
{
    uint64_t draft[PAGES];
    bool gives_up = rnd_below(seed, 4) == 0;
    int rc;

    memcpy(draft, model, sizeof draft);
    must_ok(xbegin());
    for (int k = 0; k < 5; k++) {
        uint64_t first = rnd_below(seed, PAGES);
        uint64_t n = 1 + rnd_below(seed, rnd_below(seed, 2) == 0 ? 3 : 20);
        bool is_store = rnd_below(seed, 2) == 0;

        n = n > PAGES - first ? PAGES - first : n;
        if (is_store || rnd_below(seed, 2) == 0)
            must_ok(setRangeAccess(cell(base, first), n * env_page(),
                                   is_store ? READ_WRITE : READ));
        for (uint64_t p = first; p < first + n; p++) {
            must_eq(*cell(base, p), draft[p]);
            if (is_store && rnd_below(seed, 4) != 0)
                *cell(base, p) = draft[p] = rnd_next(seed);
        }
    }
    if (gives_up)
        must_ok(xAbort());
    rc = xend();
    must_eq(rc, gives_up ? ABORTED : COMMITTED);
    if (rc == COMMITTED)
        memcpy(model, draft, sizeof draft);
}

struct child {
    uint64_t *base, *model;
};

static void
go_on_in_a_child(void *arg)
{
    struct child *c = arg;
    uint64_t seed = env_seed();

    for (int p = 0; p < PAGES; p++)
        must_eq(env_get(cell(c->base, (uint64_t)p)), c->model[p]);
    for (int k = 0; k < 10; k++)
        step(c->base, c->model, &seed);
    env_detach();
}

START_TEST(transactions_follow_the_model)
{
    struct child c = {.model = proc_shared(PAGES * sizeof *c.model)};
    uint64_t seed = env_seed();
    bool is_alone = (_i & 1) != 0;
    uint64_t how = (uint64_t)_i / 2 % 3;
    pid_t companion = 0;

    if (!promise(_i / 6, how))
        return;
    if (!is_alone)
        companion = env_companion(NONDURABLE, PAGES);
    c.base = env_attach(NONDURABLE, PAGES);
    for (int round = 0; round < 5; round++) {
        for (int k = 0; k < 60; k++)
            step(c.base, c.model, &seed);
        proc_run(go_on_in_a_child, &c);
    }
    if (!is_alone)
        proc_kill(companion);
    env_detach();
    c.base = env_attach(NONDURABLE, PAGES);
    for (int p = 0; p < PAGES; p++)
        must_eq(env_get(cell(c.base, (uint64_t)p)), c.model[p]);
    env_detach();
}
END_TEST

/* increment -- two pages that always hold the same; ret whether it has committed. */
static bool
increment(uint64_t *base)
{
    int rc;

    must_ok(xbegin());
    must_ok(setPageAccess(cell(base, 3), READ_WRITE));
    must_ok(setPageAccess(cell(base, 6), READ_WRITE));
    ++*cell(base, 3);
    ++*cell(base, 6);
    rc = xend();
    must(rc == COMMITTED || rc == ABORTED);
    return rc == COMMITTED;
}

/* Others come, write the pages that stay writable, and go, at any moment. */
START_TEST(until_somebody_comes)
{
    uint64_t added, *base;

    if (!promise(_i, false))
        return;
    env_let_overlap();
    base = visits_play(increment, 30, &added);
    must_eq(env_get(cell(base, 3)), added);
    must_eq(env_get(cell(base, 6)), added);
    env_detach();
}
END_TEST

static void
increment_for_ever(void *arg)
{
    _Atomic uint64_t *n = arg;
    uint64_t *base = env_attach(DURABLE, 8);

    for (;;)
        word_add(n, increment(base));
}

/* Killed with announced pages stored to: nothing of that is left, all else is. */
START_TEST(killed_in_a_transaction)
{
    _Atomic uint64_t *n = proc_shared(sizeof *n);
    uint64_t seed = env_seed(), *base;

    if (!promise(0, false))
        return;
    for (int k = 0; k < 10; k++) {
        uint64_t seen = word_load(n), value;
        pid_t pid = proc_spawn(increment_for_ever, n);

        proc_await(n, seen + 1, 60);
        proc_sleep_us(rnd_below(&seed, 3000));
        proc_kill(pid);
        base = env_attach(DURABLE, 8);
        value = env_get(cell(base, 3));
        must_eq(env_get(cell(base, 6)), value);
        must(value >= word_load(n) && value <= word_load(n) + (uint64_t)k + 1);
        env_detach();
    }
}
END_TEST

/* ---- broken ones ------------------------------------------------------------------------- */

static void
see_five(void *arg)
{
    uint64_t *base = arg;

    must_eq(env_get(cell(base, 3)), 5);
    env_detach();
}

/* What the header says of a store that was not announced, on a page that stays writable. */
START_TEST(unannounced_is_not_committed)
{
    uint64_t *base, before;

    if (!promise(0, false))
        return;
    env_let_overlap(); /* under the serial policy the page stays when somebody comes */
    base = env_attach(NONDURABLE, 8);
    announced_put(cell(base, 3), 5);
    before = traps();
    must_ok(xbegin());
    *cell(base, 3) = 77;
    must_ok(setPageAccess(cell(base, 4), READ_WRITE));
    *cell(base, 4) = 4;
    must_eq(xend(), COMMITTED);
    must_eq(traps(), before);
    must_eq(env_get(cell(base, 3)), 77);
    proc_run(see_five, base);           /* who comes sees what was committed ... */
    must_eq(env_get(cell(base, 3)), 5); /* ... and so do we from now on */
    must_eq(env_get(cell(base, 4)), 4);

    announced_put(cell(base, 3), 6);
    must_ok(xbegin());
    *cell(base, 3) = 77;
    must_ok(setPageAccess(cell(base, 3), READ_WRITE));
    must_ok(xAbort());
    must_eq(xend(), ABORTED);
    must_eq(env_get(cell(base, 3)), 6);

    before = traps();
    must_eq(env_get(cell(base, 5)), 0); /* never announced: a trap for the load ... */
    env_put(cell(base, 5), 9);          /* ... and one for the store, which counts */
    must_eq(traps(), before + 2);
    env_detach();
    base = env_attach(NONDURABLE, 8);
    must_eq(env_get(cell(base, 5)), 9);
    env_detach();
}
END_TEST

struct breach {
    int how;
    bool is_alone;
};

static void
break_promise(void *arg)
{
    const struct breach *b = arg;
    uint64_t *base;

    if (!b->is_alone)
        (void)env_companion(NONDURABLE, 8);
    base = env_attach(NONDURABLE, 8);
    for (uint64_t k = 0; k < 5; k++)
        announced_put(cell(base, 3), k);
    must_ok(xbegin());
    switch (b->how) {
    case 0: /* announced in other transactions only */
        break;
    case 1: /* announced for loads only */
        must_ok(setPageAccess(cell(base, 3), READ));
        break;
    case 2: /* another page is announced */
        must_ok(setPageAccess(cell(base, 2), READ_WRITE));
        *cell(base, 2) = 1;
        break;
    default: /* loaded before */
        must_eq(*cell(base, 3), 4);
    }
    cell(base, 3)[7] = 77;
    dprintf(1, "the program went on\n");
}

START_TEST(checked_promises)
{
    struct breach b = {.how = _i % 4, .is_alone = _i / 4 % 2 != 0};
    char output[4096], where[64];
    int status;

    if (!promise(_i / 8, true))
        return;
    status = proc_capture(break_promise, &b, output, sizeof output);
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    must(strstr(output, "store") != NULL && strstr(output, "not announced") != NULL);
    snprintf(where, sizeof where, "offset %zu ", 3 * env_page() + 56);
    must(strstr(output, where) != NULL && strstr(output, ENV_FILE) != NULL);
}
END_TEST

/* ---- the heap ---------------------------------------------------------------------------- */

#define HELD 200

START_TEST(heap_announces_its_stores)
{
    uint64_t seed = env_seed(), *base;
    void *held[HELD] = {0};

    if (!promise(_i, true))
        return;
    base = env_attach(NONDURABLE, 1024);
    for (int k = 0; k < 1000; k++) {
        void *draft[HELD];
        bool gives_up = rnd_below(&seed, 5) == 0;

        memcpy(draft, held, sizeof held);
        must_ok(xbegin());
        must(xRoot(base) != NULL);
        for (int m = 0; m < 4; m++) {
            uint64_t i = rnd_below(&seed, HELD);
            size_t size = rnd_below(&seed, 8) == 0 ? 50000 : 500;

            if (draft[i] != NULL) {
                must_ok(xFree(base, draft[i]));
                draft[i] = NULL;
            } else {
                draft[i] = xMalloc(base, 1 + rnd_below(&seed, size));
                must(draft[i] != NULL);
            }
        }
        if (gives_up)
            must_ok(xAbort());
        must_eq(xend(), gives_up ? ABORTED : COMMITTED);
        if (!gives_up)
            memcpy(held, draft, sizeof held);
    }
    env_detach();
}
END_TEST

static Suite *
declared_suite(void)
{
    Suite *s = suite_create("declared");
    TCase *tc = env_tcase(s, "kept", 60);

    tcase_add_test(tc, refuse_what_is_no_promise);
    tcase_add_loop_test(tc, transactions_follow_the_model, 0, 6 * N_ENGINES);
    tcase_add_loop_test(tc, until_somebody_comes, 0, N_ENGINES);
    tcase_add_test(tc, killed_in_a_transaction);
    tcase_add_loop_test(tc, heap_announces_its_stores, 0, N_ENGINES);
    tc = env_tcase(s, "broken", 60);
    tcase_add_test(tc, unannounced_is_not_committed);
    tcase_add_loop_test(tc, checked_promises, 0, 8 * N_ENGINES);
    return s;
}

int
main(void)
{
    return env_main(declared_suite());
}
