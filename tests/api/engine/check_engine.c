/* SPDX-License-Identifier: MIT */
/*
 * check_engine.c -- what is the same under every engine, and what each has of its own.
 *
 * GOAL    XAC_ENGINE chooses, xStats() tells; where userfaultfd is refused, mprotect takes
 *         over; a program that closes descriptors which are not its own never reads what is
 *         not there.  Queries trap for what has been written only.  A participant that is alone traps
 *         as rarely as XAC_CHECKING_FAST promises.
 * METHOD  loops over the engines; a seccomp filter; counters.
 */
#include <config.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "visits.h"

static const struct {
    const char *name;
    uint64_t kind;
} engines[] = {{"uffd", XAC_ENGINE_UFFD},
               {"sigsegv", XAC_ENGINE_SIGSEGV},
               {"scan", XAC_ENGINE_SCAN}};

#define N_ENGINES 3

/* choose -- an engine; false if this system has not got it. */
static bool
choose(int i)
{
    bool has;

    must(setenv("XAC_ENGINE", engines[i].name, 1) == 0);
    env_init(NONDURABLE);
    has = env_stats().engine == engines[i].kind;
    must((env_stats().engine_error == 0) == has);
    env_detach();
    return has;
}

/* ---- every engine ---------------------------------------------------------------------- */

#define PAGES 64

/* step -- one transaction of a few random loads and stores, beside a model. */
static void
step(uint64_t *base, uint64_t *model, uint64_t *seed)
{
    uint64_t draft[PAGES];
    bool gives_up = rnd_below(seed, 4) == 0;
    int rc;

    memcpy(draft, model, sizeof draft);
    must_ok(xbegin());
    for (int k = 0; k < 10; k++) {
        uint64_t p = rnd_below(seed, PAGES);

        if (rnd_below(seed, 3) == 0)
            must_ok(
                setPageAccess(env_cell(base, p), rnd_below(seed, 2) ? READ : READ_WRITE));
        must_eq(*env_cell(base, p), draft[p]);
        if (rnd_below(seed, 2) == 0)
            *env_cell(base, p) = draft[p] = rnd_next(seed);
    }
    if (gives_up)
        must_ok(xAbort());
    rc = xend();
    must_eq(rc, gives_up ? ABORTED : COMMITTED);
    if (rc == COMMITTED)
        memcpy(model, draft, sizeof draft);
}

static void
go_on_in_a_child(void *arg)
{
    uint64_t *base = arg, seed = env_seed(), model[PAGES];

    for (int p = 0; p < PAGES; p++)
        model[p] = env_get(env_cell(base, (uint64_t)p));
    for (int k = 0; k < 50; k++)
        step(base, model, &seed);
    env_detach();
}

START_TEST(transactions_follow_the_model)
{
    bool is_alone = _i >= N_ENGINES;
    uint64_t model[PAGES] = {0}, seed = env_seed();
    uint64_t *base;
    pid_t companion = 0;

    if (!choose(_i % N_ENGINES))
        return;
    env_checking = XAC_CHECKING_FAST;
    if (!is_alone)
        companion = env_companion(NONDURABLE, PAGES);
    base = env_attach(NONDURABLE, PAGES);
    for (int k = 0; k < 500; k++)
        step(base, model, &seed);
    proc_run(go_on_in_a_child, base);
    for (int p = 0; p < PAGES; p++)
        model[p] = env_get(env_cell(base, (uint64_t)p));
    for (int k = 0; k < 100; k++)
        step(base, model, &seed);
    if (!is_alone)
        proc_kill(companion); /* nor is it the last one then */
    env_detach();
    base = env_attach(NONDURABLE, PAGES);
    for (int p = 0; p < PAGES; p++)
        must_eq(env_get(env_cell(base, (uint64_t)p)), model[p]);
    env_detach();
}
END_TEST

START_TEST(first_store_is_one_trap)
{
    pid_t companion;
    uint64_t *base, before;

    if (!choose(_i))
        return;
    companion = env_companion(NONDURABLE, 4);
    base = env_attach(NONDURABLE, 4);
    must_ok(xbegin());
    before = env_traps();
    *env_cell(base, 1) = 1;
    must_eq(env_traps() - before, 1);
    before = env_traps();
    must_eq(*env_cell(base, 2), 0);
    must_eq(env_traps() - before, 1);
    must_eq(xend(), COMMITTED);
    env_detach();
    proc_kill(companion);
}
END_TEST

START_TEST(refuse_unknown_engines)
{
    /* The benchmarks alone have `thesis`. */
    static const char *const unknown[] = {"magic", "thesis"};

    for (int i = 0; i < 2; i++) {
        must(setenv("XAC_ENGINE", unknown[i], 1) == 0);
        must_refuse(xInit(ENV_DIR, NONDURABLE), EINVAL);
        must(strstr(xLastError(), unknown[i]) != NULL);
    }
    must(unsetenv("XAC_ENGINE") == 0);
    env_init(NONDURABLE);
    env_detach();
}
END_TEST

/*
 * What a new file does not hold yet reads as zeros, and what a checkpoint has written there, as
 * it was written, for every process that maps it: once a version is no longer there, in an environment that
 * goes on.
 */
START_TEST(new_pages_are_zeros_until_a_checkpoint)
{
    uint64_t *base;
    pid_t companion;

    if (!choose(_i))
        return;
    companion = env_companion(NONDURABLE, PAGES);
    base = env_attach(NONDURABLE, PAGES);
    for (uint64_t p = 0; p < PAGES; p++)
        must_eq(env_get(env_cell(base, p)), 0);
    for (uint64_t p = 5; p < PAGES; p += 10)
        env_put(env_cell(base, p), p);
    must_ok(xCheckpoint());
    for (uint64_t n = 1; n < 100 && env_stats().versions_live > 1; n++)
        env_put(env_cell(base, 0), n); /* commits free what has been checkpointed */
    must(env_stats().versions_live <= 1);
    env_detach();
    base = env_attach(NONDURABLE, PAGES);
    for (uint64_t p = 1; p < PAGES; p++)
        must_eq(env_get(env_cell(base, p)), p % 10 == 5 ? p : 0);
    must_ok(xbegin());
    for (uint64_t p = 1; p < PAGES; p++) /* compared with what the file holds */
        *env_cell(base, p) = *env_cell(base, p) + (p % 10 == 6);
    must_eq(xend(), COMMITTED);
    for (uint64_t p = 1; p < PAGES; p++)
        must_eq(env_get(env_cell(base, p)), p % 10 == 5 ? p : p % 10 == 6);
    env_detach();
    proc_kill(companion);
}
END_TEST

/* ---- userfaultfd ------------------------------------------------------------------------- */

/* refuse -- let a system call fail in this process from now on. */
static void
refuse(unsigned number, unsigned error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};

    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void
work_without(void *arg)
{
    const unsigned *number = arg;
    uint64_t model[PAGES] = {0}, seed = env_seed();
    uint64_t *base;

    refuse(*number, EPERM);
    base = env_attach(NONDURABLE, PAGES);
    must_eq(env_stats().engine, XAC_ENGINE_SIGSEGV);
    must_eq(env_stats().engine_error, EPERM);
    for (int k = 0; k < 100; k++)
        step(base, model, &seed);
    env_detach();
}

START_TEST(fall_back_where_it_is_refused)
{
    unsigned number = _i == 0 ? SYS_userfaultfd : SYS_io_uring_setup;

    if (!choose(0))
        return;
    must(unsetenv("XAC_ENGINE") == 0);
    proc_run(work_without, &number);
}
END_TEST

static void
load_after_closing_all(void *arg)
{
    uint64_t *base = env_attach(NONDURABLE, PAGES);
    uint64_t *seen = arg;

    must_ok(xbegin());
    seen[0] = *env_cell(base, 0);
    for (int fd = 3; fd < 1024; fd++)
        (void)close(fd);
    for (uint64_t p = 1; p < PAGES; p++)
        seen[p] = *env_cell(base, p);
    _exit(0);
}

/* Descriptors that are not the program's own are closed inside a transaction: it goes on, and
   is not shown pages that are not there. */
START_TEST(closed_descriptors_never_show_what_is_not_there)
{
    uint64_t *seen = proc_shared(PAGES * sizeof *seen);
    uint64_t *base;
    int status;

    if (!choose(_i))
        return;
    base = env_attach(NONDURABLE, PAGES);
    for (uint64_t p = 0; p < PAGES; p++)
        env_put(env_cell(base, p), p + 1);
    env_detach();
    memset(seen, 0xff, PAGES * sizeof *seen);
    status = proc_wait(proc_spawn(load_after_closing_all, seen));
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (uint64_t p = 0; p < PAGES; p++)
        must_eq(seen[p], p + 1);
}
END_TEST

/* ---- beside others --------------------------------------------------------------------- */

struct writer {
    _Atomic uint64_t turn; /* page + 1 to be written                                    */
    _Atomic uint64_t count; /* of commits                                               */
};

static void
write_in_turn(void *arg)
{
    struct writer *w = arg;
    uint64_t *base = env_attach(NONDURABLE, PAGES);

    for (uint64_t n = 1;; n++) {
        proc_await(&w->turn, n, 60);
        env_put(env_cell(base, n % PAGES), n);
        word_store(&w->count, n);
    }
}

/* A query sees the state in which it began, whichever engine shows it. */
START_TEST(queries_see_the_state_they_began_in)
{
    struct writer *w = proc_shared(sizeof *w);
    uint64_t *base;
    pid_t pid;

    if (!choose(_i))
        return;
    pid = proc_spawn(write_in_turn, w);
    base = env_attach(NONDURABLE, PAGES);
    for (uint64_t n = 1; n < 20; n++) {
        word_store(&w->turn, 2 * n - 1);
        proc_await(&w->count, 2 * n - 1, 60);
        must_ok(xbeginQuery());
        word_store(&w->turn, 2 * n);
        proc_await(&w->count, 2 * n, 60);
        must_eq(*env_cell(base, 2 * n - 1), 2 * n - 1);
        must_eq(*env_cell(base, 2 * n), 0);
        must_ok(xendQuery());
        must_eq(env_get(env_cell(base, 2 * n)), 2 * n);
    }
    env_detach();
    proc_kill(pid);
}
END_TEST

/* Pages that others have written, and a view has dropped, when it gets a twin: as in view_begin.c. */
#define DROPS_FOR_TWIN 16

/*
 * Pages that queries have read trap again only if they have been written.  Under the serial policy that
 * is so until DROPS_FOR_TWIN of them have been dropped.  The query that finds that gives its view
 * memory with a twin, where nothing is yet, so all pages may trap in this one; behind it they are
 * refreshed in place, and none traps any more.
 */
START_TEST(queries_keep_what_they_have_read)
{
    struct writer *w = proc_shared(sizeof *w);
    uint64_t model[PAGES] = {0}, seed = env_seed(), n = 0, n_dropped = 0, *base;
    bool is_serial = env_number("XAC_POLICY", XAC_POLICY_SERIAL) == XAC_POLICY_SERIAL;
    bool has_twin = false;
    pid_t pid;

    if (!choose(0))
        return;
    pid = proc_spawn(write_in_turn, w);
    env_checking = XAC_CHECKING_FAST;
    base = env_attach(NONDURABLE, PAGES);
    for (int round = 0; round < 200; round++) {
        uint64_t before, commits = rnd_below(&seed, 10) == 0 ? 300 : rnd_below(&seed, 4);
        uint64_t most = round == 0 || commits > PAGES ? PAGES : commits;

        for (uint64_t k = 0; k < commits; k++) {
            word_store(&w->turn, ++n);
            proc_await(&w->count, n, 60);
            model[n % PAGES] = n;
        }
        if (rnd_below(&seed, 20) == 0) { /* not a query: all begins anew */
            must_ok(xbegin());
            must_eq(*env_cell(base, 1), model[1]);
            must_eq(xend(), COMMITTED);
            most = PAGES;
        }
        if (round > 0) /* before that, there was nothing to drop */
            n_dropped += commits < PAGES ? commits : PAGES;
        if (has_twin) {
            most = 0;
        } else if (is_serial && n_dropped >= DROPS_FOR_TWIN) {
            has_twin = true;
            most = PAGES;
        }
        before = env_traps();
        must_ok(xbeginQuery());
        for (uint64_t p = 0; p < PAGES; p++)
            must_eq(*env_cell(base, p), model[p]);
        must_ok(xendQuery());
        must(env_traps() - before <= most + 1); /* and one of the writer */
        must(commits > 0 || most == PAGES || env_traps() == before);
    }
    env_detach();
    proc_kill(pid);
}
END_TEST

/* ---- alone ------------------------------------------------------------------------------- */

START_TEST(alone_a_page_traps_once_for_all_loads)
{
    uint64_t *base, before;

    if (!choose(_i))
        return;
    env_checking = XAC_CHECKING_FAST;
    base = env_attach(NONDURABLE, 8);
    env_put(env_cell(base, 0), 10);
    must_eq(env_get(env_cell(base, 1)), 0);
    before = env_traps();
    for (int k = 0; k < 10; k++) {
        must_eq(env_get(env_cell(base, 0)), 10);
        must_eq(env_get(env_cell(base, 1)), 0);
    }
    must_eq(env_traps(), before);
    env_put(env_cell(base, 1), 11); /* one for the store, unless it is found by a scan */
    before += engines[_i].kind != XAC_ENGINE_SCAN;
    must_eq(env_traps(), before);
    must_ok(xbegin());
    must_ok(setPageAccess(env_cell(base, 0), READ_WRITE));
    *env_cell(base, 0) += *env_cell(base, 1);
    must_eq(xend(), COMMITTED);
    must_eq(env_traps(), before); /* none with a hint */
    must_eq(env_get(env_cell(base, 0)), 21);
    env_detach();
}
END_TEST

/* A page that is written again and again is found by comparing, not by traps. */
START_TEST(alone_a_counter_needs_no_traps)
{
    uint64_t *base, before;

    if (!choose(0))
        return;
    env_checking = XAC_CHECKING_FAST;
    base = env_attach(NONDURABLE, 8);
    for (int k = 0; k < 5; k++)
        env_put(env_cell(base, 3), (uint64_t)k);
    before = env_traps();
    for (uint64_t k = 0; k < 100; k++) {
        must_ok(xbegin());
        must_eq(*env_cell(base, 3), k == 0 ? 4 : k - 1);
        *env_cell(base, 3) = k;
        must_eq(xend(), COMMITTED);
    }
    must_eq(env_traps(), before);
    must_eq(env_stats().commits, 104); /* the first one changed nothing */
    must_ok(xbegin());                 /* it is rolled back like any other */
    *env_cell(base, 3) = 1000;
    must_ok(xAbort());
    must_eq(xend(), ABORTED);
    must_eq(env_get(env_cell(base, 3)), 99);
    for (uint64_t k = 0; k < 5; k++)
        env_put(env_cell(base, 3), k);
    base = xMremap(base, 16 * env_page(), XAC_MAY_MOVE);
    must(base != MAP_FAILED);
    env_put(env_cell(base, 9), 9);
    must_eq(env_get(env_cell(base, 3)), 4);
    env_put(env_cell(base, 3), 99);
    env_detach();
    base = env_attach(NONDURABLE, 8);
    must_eq(env_get(env_cell(base, 3)), 99);
    env_detach();
}
END_TEST

/* Sequences, and many pages at a time: what is shown ahead is right and saves traps, and what
   was written is noticed again afterwards, however it was protected. */
START_TEST(alone_many_pages_at_a_time)
{
    enum {
        MANY = 3000
    };
    uint64_t *base, before, seed = env_seed();
    static bool is_new[MANY];
    uint64_t n_written = 0;

    if (!choose(0))
        return;
    env_checking = XAC_CHECKING_FAST;
    base = env_attach(NONDURABLE, MANY);
    for (uint64_t p = 0; p < MANY; p += 100)
        env_put(env_cell(base, p), p + 1);
    before = env_traps();
    must_ok(xbeginQuery());
    for (uint64_t p = 0; p < MANY; p++)
        must_eq(*env_cell(base, p), p % 100 == 0 ? p + 1 : 0);
    must_ok(xendQuery());
    must(env_traps() - before <= MANY / 10);
    for (int round = 0; round < 6; round++) {
        uint64_t density = round % 3 == 0 ? 2 : round % 3 == 1 ? 30 : 1000;

        must_ok(xbegin());
        for (uint64_t p = 0; p < MANY; p++)
            if (rnd_below(&seed, density) == 0) {
                *env_cell(base, p) = (uint64_t)round * MANY + p + 7;
                is_new[p] = true;
            }
        must_eq(xend(), COMMITTED);
    }
    for (uint64_t p = 0; p < MANY; p++)
        n_written += is_new[p];
    before = env_traps();
    must_ok(xbegin());
    for (uint64_t p = 0; p < MANY; p++) {
        if (is_new[p])
            *env_cell(base, p) += 1000000;
    }
    must_ok(xAbort());
    must_eq(xend(), ABORTED);
    must(env_traps() - before + 4 >= n_written); /* warm pages need none */
    for (uint64_t p = 0; p < MANY; p++)
        must(env_get(env_cell(base, p)) < 1000000);
    env_detach();
}
END_TEST

/*
 * Pages written in few large pieces, with and without changes between them: to take them back
 * one by one would need more mappings than there are.
 */
START_TEST(alone_more_pages_than_mappings)
{
    enum {
        MANY = 80000
    };
    uint64_t *base;

    if (!choose(1))
        return;
    env_checking = XAC_CHECKING_FAST;
    base = env_attach(NONDURABLE, MANY);
    for (uint64_t round = 1; round < 3; round++) {
        must_ok(xbegin());
        must_ok(setRangeAccess(base, MANY * env_page(), READ_WRITE));
        for (uint64_t p = 0; p < MANY; p += 2)
            *env_cell(base, p) = p + round;
        must_eq(xend(), COMMITTED);
        must_ok(xbeginQuery());
        for (uint64_t p = 0; p < MANY; p += 999)
            must_eq(*env_cell(base, p), p % 2 == 0 ? p + round : 0);
        must_ok(xendQuery());
    }
    env_detach();
}
END_TEST

static void
scan_in_a_child(void *arg)
{
    uint64_t *base = arg;

    for (int k = 0; k < 200; k++) {
        uint64_t first;

        must_ok(xbeginQuery());
        first = *env_cell(base, 0);
        for (uint64_t p = 1; p < PAGES; p++)
            must_eq(*env_cell(base, p), first);
        must_ok(xendQuery());
    }
    env_detach();
}

/* Queries that go through pages in order see one state, though some are shown ahead. */
START_TEST(sequences_beside_a_writer)
{
    uint64_t *base, before, n = 0;
    pid_t pid;

    if (!choose(0))
        return;
    env_checking = _i == 1 ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    base = env_attach(NONDURABLE, PAGES);
    pid = proc_spawn(scan_in_a_child, base);
    while (!proc_any_failed() && kill(pid, 0) == 0 && n < 2000) {
        must_ok(xbegin());
        must_ok(setRangeAccess(base, PAGES * env_page(), READ_WRITE));
        for (uint64_t p = 0; p < PAGES; p++)
            *env_cell(base, p) = n + 1;
        n += xend() == COMMITTED;
    }
    proc_join(pid);
    env_detach(); /* the last one: the file holds all */
    base = env_attach(NONDURABLE, PAGES);
    before = env_traps();
    must_ok(xbeginQuery());
    for (uint64_t p = 0; p < PAGES; p++)
        must_eq(*env_cell(base, p), n);
    must_ok(xendQuery());
    must(env_traps() - before <= PAGES / 4);
    env_detach();
}
END_TEST

static void
store_wrongly(void *arg)
{
    const int *how = arg;
    uint64_t *base;

    env_checking = XAC_CHECKING_FAST;
    base = env_attach(NONDURABLE, 8);
    for (int k = 0; k < 10; k++)
        env_put(env_cell(base, 3), 10);
    for (int k = 0; k < 10; k++)
        env_put(env_cell(base, 3) + 1, (uint64_t)k);
    switch (*how) {
    case 0: /* noticed at the next begin, if not before */
        env_cell(base, 3)[7] = 77;
        must_ok(xbegin());
        break;
    case 1:
        env_cell(base, 3)[7] = 77;
        must_ok(xbeginQuery());
        break;
    case 2:
        must_ok(xbeginQuery());
        env_cell(base, 3)[7] = 77;
        break;
    default:
        must_ok(xbegin());
        must_eq(env_cell(base, 3)[1], 9);
        must_ok(xbeginQuery());
        env_cell(base, 3)[7] = 77;
    }
}

START_TEST(alone_stray_stores_stop_the_program)
{
    char output[4096];
    int how = _i, status;

    if (!choose(0))
        return;
    status = proc_capture(store_wrongly, &how, output, sizeof output);
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    must(strstr(output, ENV_FILE) != NULL && strstr(output, "store") != NULL);
    must(strstr(output, _i < 2 ? "outside a transaction" : "inside a query") != NULL);
    if (_i < 2) {
        char where[64];

        snprintf(where, sizeof where, "offset %zu ", 3 * env_page() + 56);
        must(strstr(output, where) != NULL);
    }
}
END_TEST

/* increment_once -- ret whether it has committed. */
static bool
increment_once(uint64_t *base)
{
    uint64_t seen;
    int rc;

    must_ok(xbegin());
    seen = *env_cell(base, 3);
    *env_cell(base, 3) = seen + 1;
    must_eq(*env_cell(base, 3), seen + 1);
    rc = xend();
    must(rc == COMMITTED || rc == ABORTED);
    return rc == COMMITTED;
}

/* Others come, write the page that is written without traps, and go, at any moment. */
START_TEST(alone_until_somebody_comes)
{
    uint64_t added, *base;

    if (!choose(_i))
        return;
    env_let_overlap();
    env_checking = XAC_CHECKING_FAST;
    base = visits_play(increment_once, 40, &added);
    must_eq(env_get(env_cell(base, 3)), added);
    env_detach();
}
END_TEST

static Suite *
engine_suite(void)
{
    Suite *s = suite_create("engine");
    TCase *tc = env_tcase(s, "every one", 60);

    tcase_add_loop_test(tc, transactions_follow_the_model, 0, 2 * N_ENGINES);
    tcase_add_loop_test(tc, first_store_is_one_trap, 0, N_ENGINES);
    tcase_add_test(tc, refuse_unknown_engines);
    tc = env_tcase(s, "userfaultfd", 60);
    tcase_add_loop_test(tc, new_pages_are_zeros_until_a_checkpoint, 0, N_ENGINES);
    tcase_add_loop_test(tc, fall_back_where_it_is_refused, 0, 2);
    tcase_add_loop_test(tc, closed_descriptors_never_show_what_is_not_there, 0,
                        N_ENGINES);
    tc = env_tcase(s, "beside others", 60);
    tcase_add_loop_test(tc, queries_see_the_state_they_began_in, 0, N_ENGINES);
    tcase_add_test(tc, queries_keep_what_they_have_read);
    tcase_add_loop_test(tc, sequences_beside_a_writer, 0, 2);
    tc = env_tcase(s, "alone", 60);
    tcase_add_loop_test(tc, alone_a_page_traps_once_for_all_loads, 0, N_ENGINES);
    tcase_add_test(tc, alone_a_counter_needs_no_traps);
    tcase_add_test(tc, alone_many_pages_at_a_time);
    tcase_add_test(tc, alone_more_pages_than_mappings);
    tcase_add_loop_test(tc, alone_stray_stores_stop_the_program, 0, 4);
    tcase_add_loop_test(tc, alone_until_somebody_comes, 0, N_ENGINES);
    return s;
}

int
main(void)
{
    return env_main(engine_suite());
}
