/* SPDX-License-Identifier: MIT */
/*
 * check_threads.c -- threads with views of their own (xView): what a view is, conflicts
 * between threads and with processes, and what is refused.
 *
 * GOAL    a thread with views of its own is to all others like one more process.
 * METHOD  public header only.  Threads go step by step by a board.  Loops run over the five
 *         policies; over both modes of durability; with and without XAC_CHECKING_FAST.
 */
#include <config.h>

#include "check_threads.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct board *board;

void
threads_setup(void)
{
    env_setup();
    board = (struct board *)proc_shared(sizeof *board);
}

TCase *
threads_tcase(Suite *s, const char *name, double timeout_s)
{
    return env_tcase_with(s, name, timeout_s, threads_setup);
}

void
worker_start(struct worker *w, void *(*fn)(void *), uint64_t *base, int i)
{
    w->base = base;
    w->i = i;
    must_eq(pthread_create(&w->thread, NULL, fn, w), 0);
}

void
worker_join(struct worker *w)
{
    must_eq(pthread_join(w->thread, NULL), 0);
}

uint64_t *
view_of(void *base)
{
    void *v = xView(base);

    if (v == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xView: %s", xLastError());
    return (uint64_t *)v;
}

void
step_to(uint64_t step)
{
    word_store(&board->step, step);
}

void
step_await(uint64_t step)
{
    proc_await(&board->step, step, 30);
}

/* ---- what a view is ---------------------------------------------------------------------- */

static void *
look_at_own_views(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint64_t *second = (uint64_t *)(void *)(uintptr_t)word_load(&board->count[0]);
    uint64_t *v = view_of(w->base);
    uint64_t *v2;

    must(v != w->base);
    must((uintptr_t)v % env_page() == 0);
    must(view_of(w->base) == v);
    v2 = view_of(second);
    must(v2 != v && v2 != second && v2 != w->base);
    must(view_of(w->base) == v && view_of(second) == v2);
    must_eq(env_get(env_cell(v, 3)), 33);
    must_ok(xbegin()); /* one transaction, both files, all of both */
    must_eq(*env_cell(v2, 1), 11);
    *env_cell(v, N_PAGES - 1) = 5;
    *env_cell(v2, 1) = 6;
    must_rc(xend(), COMMITTED);
    must_ok(xUnview(v2));
    must_eq(env_get(env_cell(v, N_PAGES - 1)), 5);
    v2 = view_of(second);
    must_eq(env_get(env_cell(v2, 1)), 6);
    word_store(&board->count[1], (uint64_t)(uintptr_t)v);
    return NULL;
}

START_TEST(view_has_an_address_of_its_own_that_stays)
{
    uint64_t *x, *second, *v;
    struct worker w;

    env_checking = _i == 1 ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    second = (uint64_t *)xMmap("second.db", 2 * env_page());
    must(second != MAP_FAILED);
    env_put(env_cell(x, 3), 33);
    env_put(env_cell(second, 1), 11);
    word_store(&board->count[0], (uint64_t)(uintptr_t)second);
    v = view_of(x);
    worker_start(&w, look_at_own_views, x, 0);
    worker_join(&w);
    must((uintptr_t)v != word_load(&board->count[1]));
    must_eq(env_get(env_cell(v, N_PAGES - 1)), 5);
    must_ok(xUnview(v));
    must_eq(env_get(env_cell(second, 1)), 6);
    env_detach();
    must_eq(file_u64(ENV_FILE, (N_PAGES - 1) * env_page()), 5);
    must_eq(file_u64("second.db", env_page()), 6);
}
END_TEST

/* A value goes round: process, thread, other thread, other process, process. */
static void *
pass_on(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint64_t *v = view_of(w->base);
    uint64_t mine = (uint64_t)w->i;

    for (uint64_t round = 0; round < 50; round++) {
        step_await(round * 4 + mine);
        must_eq(env_get(env_cell(v, 0)), round * 4 + mine - 1);
        env_put(env_cell(v, 0), round * 4 + mine);
        step_to(round * 4 + mine + 1);
    }
    return NULL;
}

static void
pass_on_in_process(void *arg)
{
    struct worker w = {.base = (uint64_t *)env_attach(*(int *)arg, N_PAGES), .i = 3};

    word_store(&board->ready, 1);
    for (uint64_t round = 0; round < 50; round++) {
        step_await(round * 4 + 3);
        must_eq(env_get(env_cell(w.base, 0)), round * 4 + 2);
        env_put(env_cell(w.base, 0), round * 4 + 3);
        step_to(round * 4 + 4);
    }
    env_detach();
}

START_TEST(each_commit_is_seen_by_all_others)
{
    int mode = _i % 2 == 0 ? NONDURABLE : DURABLE;
    struct worker w[2];
    pid_t child;
    uint64_t *x;

    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)_i / 2));
    child = proc_spawn(pass_on_in_process, &mode);
    proc_await(&board->ready, 1, 20);
    x = (uint64_t *)env_attach(mode, N_PAGES);
    worker_start(&w[0], pass_on, x, 1);
    worker_start(&w[1], pass_on, x, 2);
    for (uint64_t round = 0; round < 50; round++) {
        step_await(round * 4);
        if (round > 0)
            must_eq(env_get(env_cell(x, 0)), round * 4 - 1);
        env_put(env_cell(x, 0), round * 4);
        step_to(round * 4 + 1);
    }
    worker_join(&w[0]);
    worker_join(&w[1]);
    proc_join(child);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 199);
}
END_TEST

/* ---- conflicts -------------------------------------------------------------------------- */

/* Read page 0; the other one writes it and commits; write page 1 by what was read. */
static void *
overtake(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint64_t *v = view_of(w->base);
    struct xac_conflict why;

    step_await(1);
    must_ok(xbegin());
    must_eq(*env_cell(v, 1), 0);
    *env_cell(v, 0) = 7;
    word_store(&board->count[0], (uint64_t)xend());
    must_ok(xConflict(&why, sizeof why));
    must((why.kind == XAC_CONFLICT_NONE) == (word_load(&board->count[0]) == COMMITTED));
    step_to(2);
    return NULL;
}

/* Both read what the other writes: only one may commit.  _i / 2: policy; _i % 2: the one that
   reads first shares the process's mapping, or has a view of its own. */
START_TEST(skew_is_a_conflict_between_threads)
{
    struct xac_conflict why;
    struct worker w;
    uint64_t *x, *mine;
    int rc;

    env_checking = XAC_CHECKING_STRICT; /* or a newcomer revokes (memory model, 34) */
    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)_i / 2));
    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    mine = _i % 2 == 0 ? x : view_of(x);
    worker_start(&w, overtake, x, 0);
    must_ok(xbegin());
    must_eq(*env_cell(mine, 0), 0);
    step_to(1);
    step_await(2);
    must_eq(*env_cell(mine, 0), 0); /* the same snapshot still */
    *env_cell(mine, 1) = *env_cell(mine, 0) + 1;
    rc = xend();
    worker_join(&w);
    must((rc == COMMITTED) != (word_load(&board->count[0]) == COMMITTED));
    must_ok(xConflict(&why, sizeof why));
    if (rc == ABORTED) {
        must(why.kind == XAC_CONFLICT_READ_WRITE || why.kind == XAC_CONFLICT_VALIDATION);
        must(strstr(why.file, ENV_FILE) != NULL);
        must_eq(why.file_offset, 0);
        must(why.address == mine);
        must(why.other_pid == getpid() || why.kind == XAC_CONFLICT_VALIDATION);
    } else {
        must_eq(why.kind, XAC_CONFLICT_NONE);
    }
    must_eq(env_get(env_cell(mine, 0)), rc == COMMITTED ? 0 : 7);
    must_eq(env_get(env_cell(mine, 1)), rc == COMMITTED ? 1 : 0);
    env_detach();
}
END_TEST

/*
 * The process was alone, so nobody knows what its open transaction has read, when a thread
 * of its own begins to have transactions: it must abort.  _i: with reads only before the
 * thread comes, or a write, too.
 */
START_TEST(thread_revokes_what_its_process_read_alone)
{
    struct xac_conflict why;
    struct worker w;
    uint64_t *x;

    env_let_overlap(); /* the thread commits while the process's transaction is open */
    env_checking = XAC_CHECKING_FAST;
    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    env_put(env_cell(x, 5), 1);
    must_ok(xbegin());
    must_eq(*env_cell(x, 0), 0);
    if (_i == 1)
        *env_cell(x, 2) = 2;
    worker_start(&w, overtake, x, 0);
    step_to(1);
    step_await(2);
    must_eq(word_load(&board->count[0]), COMMITTED);
    must_eq(*env_cell(x, 0), 0);
    *env_cell(x, 1) = 1;
    must_rc(xend(), ABORTED);
    must_ok(xConflict(&why, sizeof why));
    must_eq(why.kind, XAC_CONFLICT_REVOKED);
    worker_join(&w);
    must_eq(env_get(env_cell(x, 0)), 7);
    must_eq(env_get(env_cell(x, 1)), 0);
    must_eq(env_get(env_cell(x, 2)), 0);
    must_eq(env_get(env_cell(x, 5)), 1);
    env_detach();
}
END_TEST

/* Under stay-mapped, threads come and go while the process goes on with its own. */
static void *
visit(void *arg)
{
    struct worker *w = (struct worker *)arg;

    while (word_load(&board->stop) == 0) {
        uint64_t *v = view_of(w->base);

        for (int i = 0; i < 3; i++)
            env_increment(env_cell(v, 0));
        word_add(&board->count[0], 3);
        must_ok(xUnview(v));
        proc_sleep_us(300);
    }
    return NULL;
}

START_TEST(stays_mapped_while_threads_come_and_go)
{
    struct worker w[2];
    uint64_t *x;

    env_checking = XAC_CHECKING_FAST;
    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)_i));
    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    worker_start(&w[0], visit, x, 0);
    worker_start(&w[1], visit, x, 1);
    for (int i = 0; i < 3000; i++) {
        env_increment(env_cell(x, 0));
        if (i % 100 == 0)
            proc_sleep_us(1000);
    }
    word_store(&board->stop, 1);
    worker_join(&w[0]);
    worker_join(&w[1]);
    must(word_load(&board->count[0]) > 0);
    must_eq(env_get(env_cell(x, 0)), 3000 + word_load(&board->count[0]));
    env_detach();
}
END_TEST

/* ---- all that can be called ------------------------------------------------------------- */

static int
add_five(void *arg)
{
    *(uint64_t *)arg += 5;
    return 0;
}

static int
add_and_give_up(void *arg)
{
    *(uint64_t *)arg += 5;
    return 77;
}

static void *
call_everything(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint64_t *v = view_of(w->base);
    size_t page = env_page();
    int fd = open("plain", O_RDWR | O_CREAT, 0666);

    must(ftruncate(fd, (off_t)(2 * page)) == 0 && pwrite(fd, "front", 5, 0) == 5);
    must_refuse(xend(), XAC_ENOTXN);
    must_ok(setPageAccess(env_cell(v, 1), READ_WRITE));        /* outside: does nothing */
    must_refuse(setPageAccess(w->base, READ), XAC_ENOTMAPPED); /* not its own */
    must_ok(xbegin());
    must_ok(setRangeAccess(env_cell(v, 4), 2 * page, READ_WRITE));
    must_eq(pread(fd, env_cell(v, 4), 2 * page, 0), 2 * page);
    must_ok(setPageAccess(env_cell(v, 6), READ_WRITE));
    *env_cell(v, 6) = 6;
    must_ok(xbegin());
    must_rc(xValidate(), PENDING);
    must_rc(xend(), PENDING);
    must_ok(xbeginQuery());
    must_refuse(setPageAccess(env_cell(v, 7), READ_WRITE), XAC_EINQUERY);
    must_refuse(xbegin(), XAC_EINQUERY);
    must_ok(xendQuery());
    must_rc(xend(), COMMITTED);
    must_eq(env_get(env_cell(v, 4)) & 0xffffffffff, UINT64_C(0x746e6f7266));
    must_ok(xbegin());
    *env_cell(v, 6) = 7;
    must_ok(xAbort());
    must_rc(xValidate(), FAILED);
    must_eq(*env_cell(v, 6), 7);
    must_rc(xend(), ABORTED);
    must_eq(env_get(env_cell(v, 6)), 6);
    must_ok(xTransact(add_five, env_cell(v, 6)));
    must_rc(xTransact(add_and_give_up, env_cell(v, 6)), 77);
    must_eq(env_get(env_cell(v, 6)), 11);
    must_ok(xCheckpoint());
    must_ok(xbegin());
    must_refuse(xCheckpoint(), XAC_EINTXN);
    must_refuse(xShutdown(), XAC_EINTXN);
    must_refuse(xMunmap(ENV_FILE), XAC_EINTXN);
    must_refuse(xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_STRICT), XAC_EINTXN);
    must_refuse(xUnview(v), XAC_EINTXN);
    must_rc(xend(), COMMITTED);
    close(fd);
    return NULL;
}

START_TEST(every_call_works_in_a_view)
{
    struct worker w;
    uint64_t *x;

    env_let_overlap(); /* a thread commits within another one's transaction */
    env_checking = XAC_CHECKING_STRICT; /* or a newcomer revokes (memory model, 34) */
    x = (uint64_t *)env_attach(_i == 0 ? NONDURABLE : DURABLE, N_PAGES);
    must_ok(xbegin()); /* a transaction of the process makes no difference */
    must_eq(*env_cell(x, 0), 0);
    worker_start(&w, call_everything, x, 0);
    worker_join(&w);
    must_rc(xend(), COMMITTED);
    must_eq(env_get(env_cell(x, 6)), 11);
    env_detach();
}
END_TEST

/* A query in a view is a snapshot of its begin while others commit, from the files, too. */
START_TEST(query_in_a_view_is_a_snapshot)
{
    uint64_t *x, *v;
    struct worker w;

    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)_i));
    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    v = view_of(x);
    must_ok(xbeginQuery());
    must_eq(*env_cell(v, 0), 0);
    worker_start(&w, visit, x, 0);
    proc_await(&board->count[0], 300, 20);
    must_eq(*env_cell(v, 0), 0);
    must_eq(*env_cell(v, 1), 0);
    must_ok(xendQuery());
    must(env_get(env_cell(v, 0)) >= 300);
    word_store(&board->stop, 1);
    worker_join(&w);
    must_eq(env_get(env_cell(v, 0)), word_load(&board->count[0]));
    env_detach();
}
END_TEST

/* ---- what is refused --------------------------------------------------------------------- */

static void
refuse_view(void *base, int expected)
{
    env_stale_message();
    errno = 0;
    must(xView(base) == MAP_FAILED);
    must_eq(errno, expected);
    must(strstr(xLastError(), "stale") == NULL && *xLastError() != '\0');
}

START_TEST(view_needs_an_environment)
{
    uint64_t *x;

    refuse_view(&x, EPERM);
    must_refuse(xUnview(&x), XAC_ENOINIT);
    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    must_ok(xUnview(view_of(x)));
    env_detach();
    refuse_view(x, EPERM);
    must_refuse(xUnview(x), XAC_ENOINIT);
}
END_TEST

static void *
wait_in_view(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint64_t *v = view_of(w->base);

    env_increment(env_cell(v, 1));
    word_store(&board->count[0], (uint64_t)(uintptr_t)v);
    step_to(1);
    step_await(2);
    return NULL;
}

START_TEST(view_needs_the_start_of_a_segment)
{
    uint64_t *x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    uint64_t *v, *other;
    struct worker w;

    refuse_view(NULL, EINVAL);
    refuse_view(&w, EINVAL);
    refuse_view(x + 1, EINVAL);
    refuse_view(env_cell(x, 1), EINVAL);
    refuse_view(env_cell(x, N_PAGES), EINVAL);
    must_refuse(xUnview(x), XAC_ENOTMAPPED);
    v = view_of(x);
    refuse_view(v, EINVAL); /* a view of a view */
    worker_start(&w, wait_in_view, x, 0);
    step_await(1);
    other = (uint64_t *)(void *)(uintptr_t)word_load(&board->count[0]);
    refuse_view(other, EINVAL);
    must_refuse(xUnview(other), XAC_ENOTMAPPED);
    must_refuse(xUnview(x), XAC_ENOTMAPPED);
    must_refuse(xUnview(v + 1), XAC_ENOTMAPPED);
    must_refuse(xUnview(NULL), XAC_ENOTMAPPED);
    must_ok(xUnview(v));
    must_refuse(xUnview(v), XAC_ENOTMAPPED);
    step_to(2);
    worker_join(&w);
    must_ok(xMunmap(ENV_FILE));
    refuse_view(x, EINVAL);
    env_detach();
}
END_TEST

START_TEST(view_is_refused_inside_a_transaction)
{
    uint64_t *x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    uint64_t *second = (uint64_t *)xMmap("second.db", env_page());
    uint64_t *v;

    must_ok(xbegin());
    refuse_view(x, EPERM);
    must_refuse(xUnview(x), XAC_EINTXN);
    must_rc(xend(), COMMITTED);
    must_ok(xbeginQuery());
    refuse_view(x, EPERM);
    must_ok(xendQuery());
    v = view_of(x);
    must_ok(xbegin());
    refuse_view(x, EPERM);
    refuse_view(second, EPERM);
    must_refuse(xUnview(v), XAC_EINTXN);
    *env_cell(v, 0) = 3;
    must_rc(xend(), COMMITTED);
    must(view_of(second) != second);
    must_eq(env_get(v), 3);
    env_detach();
}
END_TEST

START_TEST(segment_and_environment_stay_while_threads_have_views)
{
    uint64_t *x = (uint64_t *)env_attach(_i == 0 ? NONDURABLE : DURABLE, N_PAGES);
    uint64_t *second = (uint64_t *)xMmap("second.db", env_page());
    struct worker w;

    worker_start(&w, wait_in_view, x, 0);
    step_await(1);
    must_refuse(xMunmap(ENV_FILE), EBUSY);
    must_refuse(xShutdown(), EBUSY);
    must_eq(env_get(env_cell(x, 1)), 1); /* and nothing has changed */
    env_put(env_cell(x, 2), 2);
    env_put(second, 3);
    must_ok(xMunmap("second.db")); /* nobody has a view of it */
    second = (uint64_t *)xMmap("second.db", env_page());
    must_eq(env_get(second), 3);
    step_to(2);
    worker_join(&w);
    must_ok(xMunmap(ENV_FILE));
    x = (uint64_t *)xMmap(ENV_FILE, N_PAGES * env_page());
    must_eq(env_get(env_cell(x, 2)), 2);
    /* Who has views himself may shut down. */
    (void)view_of(x);
    must_refuse(xMunmap(ENV_FILE), EBUSY);
    env_detach();
    must_eq(file_u64(ENV_FILE, 2 * env_page()), 2);
    x = (uint64_t *)env_attach(_i == 0 ? NONDURABLE : DURABLE, N_PAGES);
    must_eq(env_get(env_cell(x, 1)), 1); /* and is without views after the next xInit() */
    must_eq(env_get(env_cell(view_of(x), 2)), 2);
    env_detach();
}
END_TEST

/* Once its views are gone the thread shares the process's transactions again. */
static void *
go_back(void *arg)
{
    struct worker *w = (struct worker *)arg;
    uint64_t *v;

    must_refuse(xbegin(), EBUSY); /* the process's, in which another thread is */
    v = view_of(w->base);
    env_increment(env_cell(v, 1));
    must_ok(xUnview(v));
    must_refuse(xbegin(), EBUSY);
    step_to(1);
    step_await(2);
    env_increment(env_cell(w->base, 1));
    return NULL;
}

START_TEST(thread_goes_back_to_the_process_s_transactions)
{
    struct worker w;
    uint64_t *x;

    env_let_overlap(); /* the thread commits while the process's transaction is open */
    env_checking = XAC_CHECKING_STRICT; /* or a newcomer revokes (memory model, 34) */
    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    must_ok(xbegin());
    *env_cell(x, 0) = 1;
    worker_start(&w, go_back, x, 0);
    step_await(1);
    must_rc(xend(), COMMITTED);
    step_to(2);
    worker_join(&w);
    must_eq(env_get(env_cell(x, 1)), 2);
    env_detach();
}
END_TEST

/* ---- touching what is not one's own -------------------------------------------------------- */

enum {
    OWN_OUTSIDE,          /* own view, no transaction                                   */
    PROCESS_S_BY_OWNER,   /* the process's mapping, in a transaction of own views       */
    OTHER_S_IN_OWN,       /* another thread's view, the same                            */
    OTHER_S_IN_PROCESS_S, /* another thread's view, in a transaction of the process     */
    OTHER_S_OUTSIDE,      /* another thread's view, without any                         */
    STORE_IN_QUERY,
    N_TOUCHES,
};

static const char *const touch_words[] = {
    [OWN_OUTSIDE] = "outside a transaction",
    [PROCESS_S_BY_OWNER] = "views of its own",
    [OTHER_S_IN_OWN] = "another thread's view",
    [OTHER_S_IN_PROCESS_S] = "another thread's view",
    [OTHER_S_OUTSIDE] = "another thread's view",
    [STORE_IN_QUERY] = "inside a query",
};

static void
touch_wrongly(void *arg)
{
    uint64_t *x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    int what = *(int *)arg;
    uint64_t *v = NULL, *other;
    struct worker w;

    worker_start(&w, wait_in_view, x, 0);
    step_await(1);
    other = (uint64_t *)(void *)(uintptr_t)word_load(&board->count[0]);
    if (what != OTHER_S_IN_PROCESS_S)
        v = view_of(x);
    if (what == STORE_IN_QUERY)
        must_ok(xbeginQuery());
    else if (what != OWN_OUTSIDE && what != OTHER_S_OUTSIDE)
        must_ok(xbegin());
    if (what == OWN_OUTSIDE || what == STORE_IN_QUERY)
        *env_cell(v, 3) = 1;
    else if (what == PROCESS_S_BY_OWNER)
        *env_cell(x, 3) = 1;
    else
        *env_cell(other, 3) = 1;
}

START_TEST(foreign_touch_stops_the_program)
{
    char text[2048];
    int status = proc_capture(touch_wrongly, &_i, text, sizeof text);

    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        env_fail(__FILE__, __LINE__, "case %d: status %#x: %s", _i, status, text);
    if (strstr(text, touch_words[_i]) == NULL || strstr(text, ENV_FILE) == NULL
        || strstr(text, "hint:") == NULL)
        env_fail(__FILE__, __LINE__, "case %d says: %s", _i, text);
}
END_TEST

static Suite *
threads_suite(void)
{
    Suite *s = suite_create("threads");
    TCase *tc = threads_tcase(s, "views", 60);

    tcase_add_loop_test(tc, view_has_an_address_of_its_own_that_stays, 0, 2);
    tcase_add_loop_test(tc, each_commit_is_seen_by_all_others, 0,
                        2 * (XAC_POLICY_SERIAL + 1));
    tcase_add_loop_test(tc, every_call_works_in_a_view, 0, 2);
    tcase_add_loop_test(tc, query_in_a_view_is_a_snapshot, 0, XAC_POLICY_SERIAL + 1);

    tc = threads_tcase(s, "conflicts", 60);
    tcase_add_loop_test(tc, skew_is_a_conflict_between_threads, 0,
                        2 * (XAC_POLICY_OPTIMISTIC + 1));
    tcase_add_loop_test(tc, thread_revokes_what_its_process_read_alone, 0, 2);
    tcase_add_loop_test(tc, stays_mapped_while_threads_come_and_go, 0,
                        XAC_POLICY_SERIAL + 1);

    tc = threads_tcase(s, "refused", 60);
    tcase_add_test(tc, view_needs_an_environment);
    tcase_add_test(tc, view_needs_the_start_of_a_segment);
    tcase_add_test(tc, view_is_refused_inside_a_transaction);
    tcase_add_loop_test(tc, segment_and_environment_stay_while_threads_have_views, 0, 2);
    tcase_add_test(tc, thread_goes_back_to_the_process_s_transactions);
    tcase_add_loop_test(tc, foreign_touch_stops_the_program, 0, N_TOUCHES);
    add_ends(s);
    add_work(s);
    return s;
}

int
main(void)
{
    return env_main(threads_suite());
}
