/* SPDX-License-Identifier: MIT */
/*
 * check_model_steps.c -- sentences of doc/memory-model.md, two processes step by step.
 *
 * GOAL    each policy fails whom it says; an optimistic reader commits at its snapshot; a
 *         store of the same value is a store; system calls stop where access ends; threads
 *         without transaction are kept out.
 * METHOD  parent and child take turns by a word of shared memory, so that each outcome is
 *         foretold.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_model.h"

/* ---- Who fails ----------------------------------------------------------------------- */

/* Parent and child store to page 1.  The parent is older; `young_meets`: it was there first. */
struct meeting {
    int policy;
    bool young_meets;
    int young_status, young_end, young_kind;
};

static struct meeting *meeting; /* shared */

static void
young_one(void *arg)
{
    struct xac_conflict why;
    void *x;

    (void)arg;
    proc_await(&board->step, 1, 20);
    /* Its own wish does not count: the environment has its policy. */
    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)(meeting->policy + 1) % N_OVERLAPPING));
    x = env_attach(NONDURABLE, 2);
    word_store(&board->step, 2);
    proc_await(&board->step, 3, 20);
    must_ok(xbegin());
    *cell(x, 1, 1) = 1;
    word_store(&board->step, 4);
    proc_await(&board->step, 5, 20);
    meeting->young_status = xValidate();
    word_store(&board->step, 6);
    proc_await(&board->step, 7, 20);
    meeting->young_end = xend();
    must_ok(xConflict(&why, sizeof why));
    meeting->young_kind = why.kind;
    word_store(&board->step, 8);
    env_detach();
}

/* old_fails -- whom an eager policy fails. */
static bool
old_fails(const struct meeting *m)
{
    switch (m->policy) {
    case XAC_POLICY_OLDEST_WINS:
        return false;
    case XAC_POLICY_YOUNGEST_WINS:
        return true;
    case XAC_POLICY_SELF_ABORT:
        return !m->young_meets;
    default:
        return m->young_meets;
    }
}

static void
judge_meeting(const struct meeting *m, int old_status, int old_end)
{
    bool is_optimistic = m->policy == XAC_POLICY_OPTIMISTIC;
    bool old_loses = !is_optimistic && old_fails(m);

    /* Optimistic: nobody fails while running; the second one to end was overtaken. */
    must_eq(old_status, old_loses ? FAILED : PENDING);
    must_eq(m->young_status, old_loses || is_optimistic ? PENDING : FAILED);
    must_eq(old_end, old_loses ? ABORTED : COMMITTED);
    must_eq(m->young_end, old_loses ? COMMITTED : ABORTED);
    must_eq(m->young_kind, old_loses       ? XAC_CONFLICT_NONE
                           : is_optimistic ? XAC_CONFLICT_VALIDATION
                                           : XAC_CONFLICT_WRITE_WRITE);
}

START_TEST(policy_says_who_fails)
{
    int old_status, old_end;
    pid_t child;
    void *x;

    set_policy(_i % N_OVERLAPPING);
    meeting = proc_shared(sizeof *meeting);
    meeting->policy = _i % N_OVERLAPPING;
    meeting->young_meets = _i < N_OVERLAPPING;
    child = proc_spawn(young_one, NULL);
    x = env_attach(NONDURABLE, 2);
    word_store(&board->step, 1);
    proc_await(&board->step, 2, 20);
    must_ok(xbegin());
    if (meeting->young_meets)
        *cell(x, 1, 0) = 1;
    word_store(&board->step, 3);
    proc_await(&board->step, 4, 20);
    if (!meeting->young_meets)
        *cell(x, 1, 0) = 1;
    old_status = xValidate();
    word_store(&board->step, 5);
    proc_await(&board->step, 6, 20);
    old_end = xend();
    word_store(&board->step, 7);
    proc_await(&board->step, 8, 20);
    proc_join(child);
    judge_meeting(meeting, old_status, old_end);
    must_eq(env_get((uint64_t *)x + env_page() / 8), old_end == COMMITTED);
    env_detach();
}
END_TEST

/* ---- Different pages ----------------------------------------------------------------- */

static void
store_elsewhere(void *arg)
{
    void *x = env_attach(NONDURABLE, 3);

    (void)arg;
    start_together(2);
    proc_await(&board->step, 1, 20);
    must_ok(xbegin());
    must_eq(*cell(x, 2, 0), 0);
    *cell(x, 1, 0) = 1;
    word_store(&board->step, 2);
    proc_await(&board->step, 3, 20);
    must_rc(xValidate(), PENDING);
    must_rc(xend(), COMMITTED);
    word_store(&board->step, 4);
    env_detach();
}

/* Neighbouring pages stored to, a third one read by both, all at the same time. */
START_TEST(different_pages_do_not_conflict)
{
    pid_t child;
    void *x;

    set_policy(_i);
    child = proc_spawn(store_elsewhere, NULL);
    x = env_attach(NONDURABLE, 3);
    start_together(2);
    must_ok(xbegin());
    *cell(x, 0, 511) = 1;
    word_store(&board->step, 1);
    proc_await(&board->step, 2, 20);
    must_eq(*cell(x, 2, 0), 0);
    word_store(&board->step, 3);
    proc_await(&board->step, 4, 20);
    must_rc(xValidate(), PENDING);
    must_rc(xend(), COMMITTED);
    proc_join(child);
    env_detach();
    must_eq(file_u64(ENV_FILE, 511 * 8), 1);
    must_eq(file_u64(ENV_FILE, env_page()), 1);
}
END_TEST

/* ---- Optimistic ---------------------------------------------------------------------- */

/* Commit 1, 2, ... to page 0 when told: step 2n - 1 asks, 2n says done. */
static void
commit_when_told(void *arg)
{
    void *x = env_attach(NONDURABLE, 3);

    (void)arg;
    start_together(2);
    for (uint64_t n = 1;; n++) {
        proc_await(&board->step, 2 * n - 1, 20);
        if (is_over())
            break;
        must_ok(xbegin());
        *cell(x, 0, 0) = n;
        *cell(x, 1, 0) = n;
        must_rc(xend(), COMMITTED);
        word_store(&board->step, 2 * n);
    }
    env_detach();
}

static void
have_committed(uint64_t n)
{
    word_store(&board->step, 2 * n - 1);
    proc_await(&board->step, 2 * n, 20);
}

/*
 * Overtaken: a transaction that only reads, or stores the values that it found, commits at its
 * snapshot.  One that has changed anything aborts, even if the only page written since is one
 * in which it stored the same value.
 */
START_TEST(optimistic_reader_commits_at_its_snapshot)
{
    struct xac_conflict why;
    pid_t child;
    void *x;

    set_policy(XAC_POLICY_OPTIMISTIC);
    child = proc_spawn(commit_when_told, NULL);
    x = env_attach(NONDURABLE, 3);
    start_together(2);
    must_ok(xbegin());
    have_committed(1);
    must_eq(*cell(x, 0, 0), 0);
    have_committed(2);
    must_eq(*cell(x, 1, 0), 0);
    must_rc(xend(), COMMITTED);

    must_ok(xbegin());
    *cell(x, 0, 0) = 2;
    have_committed(3);
    must_eq(*cell(x, 1, 0), 2);
    must_rc(xend(), COMMITTED);
    must_eq(env_get(x), 3);

    must_ok(xbegin());
    *cell(x, 0, 0) = 3;
    *cell(x, 2, 0) = 77;
    have_committed(4);
    must_rc(xend(), ABORTED);
    must_ok(xConflict(&why, sizeof why));
    must_eq(why.kind, XAC_CONFLICT_VALIDATION);
    must_eq(why.file_offset, 0);
    must_ok(xbegin());
    must_eq(*cell(x, 0, 0), 4);
    must_eq(*cell(x, 2, 0), 0);
    must_rc(xend(), COMMITTED);

    word_store(&board->stop, 1);
    word_store(&board->step, 9);
    proc_join(child);
    env_detach();
}
END_TEST

/* ---- Stores of the same value -------------------------------------------------------- */

static void
meet_the_same_value(void *arg)
{
    void *x = env_attach(NONDURABLE, 2);

    (void)arg;
    start_together(2);
    for (int stores = 0; stores < 2; stores++) {
        struct xac_conflict why;

        proc_await(&board->step, 1 + 2 * (uint64_t)stores, 20);
        must_ok(xbegin());
        if (stores)
            *cell(x, 0, 9) = 5;
        else
            must_eq(*cell(x, 0, 9), 0);
        must_rc(xend(), ABORTED);
        must_ok(xConflict(&why, sizeof why));
        must_eq(why.kind, stores ? XAC_CONFLICT_WRITE_WRITE : XAC_CONFLICT_READ_WRITE);
        must_ok(xbegin()); /* the next one is to be young again */
        must_rc(xend(), COMMITTED);
        word_store(&board->step, 2 + 2 * (uint64_t)stores);
    }
    env_detach();
}

/* Eager: it keeps others off the page while it runs, and publishes nothing. */
START_TEST(same_value_is_a_store_while_it_runs)
{
    struct xac_stats before, after;
    pid_t child;
    void *x;

    set_policy(XAC_POLICY_OLDEST_WINS);
    child = proc_spawn(meet_the_same_value, NULL);
    x = env_attach(NONDURABLE, 2);
    start_together(2);
    must_ok(xStats(&before, sizeof before));
    for (uint64_t round = 0; round < 2; round++) {
        must_ok(xbegin());
        *cell(x, 0, 0) = 0;
        word_store(&board->step, 1 + 2 * round);
        proc_await(&board->step, 2 + 2 * round, 20);
        must_rc(xend(), COMMITTED);
    }
    must_ok(xStats(&after, sizeof after));
    must_eq(after.commit_number, before.commit_number);
    proc_join(child);
    env_detach();
}
END_TEST

/* ---- System calls -------------------------------------------------------------------- */

/* A transfer ends where access ends; what came before is kept; the cure works. */
START_TEST(system_calls_stop_where_access_ends)
{
    pid_t companion = env_companion(NONDURABLE, 3);
    size_t page = env_page();
    char *plain = malloc(2 * page);
    char *x = env_attach(NONDURABLE, 3);
    int fd;

    must(plain != NULL);
    memset(plain, 'p', 2 * page);
    file_write("plain", 0, plain, 2 * page);
    fd = open("plain", O_RDWR);
    must(fd >= 0);
    must_ok(xbegin());
    must_ok(setPageAccess(x, READ));
    must(pread(fd, x, 8, 0) == -1 && errno == EFAULT); /* readable is not writable */
    must_eq(pwrite(fd, x, 8, 0), 8);
    *(volatile char *)&x[page] = 'q';
    must_eq(pread(fd, x + page, 2 * page, 0), (long)page); /* the third is untouched */
    must(memcmp(x + page + 8, plain, page - 8) == 0);
    must_ok(setPageAccess(x + 2 * page, READ_WRITE));
    must_eq(pread(fd, x + page, 2 * page, 0), 2 * (long)page);
    must_rc(xend(), COMMITTED);
    must(pread(fd, x, 8, 0) == -1 && errno == EFAULT); /* outside: refused, not fatal */
    must(pwrite(fd, x + page, 8, 0) == -1 && errno == EFAULT);
    close(fd);
    proc_kill(companion);
    env_detach();
    must_eq(file_u64(ENV_FILE, 2 * page), UINT64_C(0x7070707070707070));
    must_eq(file_u64("plain", 0), 0);
    free(plain);
}
END_TEST

/* ---- Other threads ------------------------------------------------------------------- */

static void *
load_a_byte(void *p)
{
    return (void *)(uintptr_t) * (volatile unsigned char *)p;
}

static void
touch_from_another_thread(void *arg)
{
    pthread_t thread;
    void *x = env_attach(NONDURABLE, 1);

    (void)arg;
    must_ok(xbegin());
    must(pthread_create(&thread, NULL, load_a_byte, x) == 0);
    pthread_join(thread, NULL);
    must_rc(xend(), COMMITTED);
}

START_TEST(thread_without_transaction_is_stopped)
{
    pid_t companion = env_companion(NONDURABLE, 1);
    char text[2048];
    int status = proc_capture(touch_from_another_thread, NULL, text, sizeof text);

    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    if (strstr(text, "thread that has no transaction") == NULL)
        env_fail(__FILE__, __LINE__, "it says: %s", text);
    proc_kill(companion);
}
END_TEST

/* ---- Serial: pages that stay are brought up to date ------------------------------------- */

#define N_STAYING 40
#define N_COMMITS 1100 /* more than the ring of recent commits tells                   */

static void
write_in_turn(void *arg)
{
    int kind = *(const int *)arg;
    uint64_t *x;

    proc_await(&board->step, 1, 20);
    x = env_attach(NONDURABLE, N_STAYING);
    for (int n = 0; n < (kind == 2 ? N_COMMITS : 1); n++) {
        must_ok(xbegin());
        for (size_t p = 0; p < (kind == 1 ? N_STAYING : 1); p++)
            ++*(volatile uint64_t *)env_cell(x, p);
        must_rc(xend(), COMMITTED);
    }
    word_store(&board->step, 2);
    env_detach();
}

/* kind 0: a small commit; 1: one of more pages than the ring tells; 2: too many commits. */
START_TEST(pages_that_stay_are_brought_up_to_date)
{
    bool is_query = _i % 2 == 0;
    int kind = _i / 2;
    uint64_t *x;
    pid_t child;

    set_policy(XAC_POLICY_SERIAL);
    env_checking = XAC_CHECKING_FAST;
    child = proc_spawn(write_in_turn, &kind);
    x = env_attach(NONDURABLE, N_STAYING);
    for (int round = 0; round < 2; round++) {
        uint64_t sum = 0;

        must_ok(is_query ? xbeginQuery() : xbegin());
        for (size_t p = 0; p < N_STAYING; p++)
            sum += *(volatile uint64_t *)env_cell(x, p);
        if (is_query)
            must_ok(xendQuery());
        else
            must_rc(xend(), COMMITTED);
        must_eq(sum, round == 0 ? 0 : kind == 0 ? 1 : kind == 1 ? N_STAYING : N_COMMITS);
        if (round == 0)
            word_store(&board->step, 1);
        proc_await(&board->step, 2, 60);
    }
    proc_join(child);
    env_detach();
}
END_TEST

void
add_step_tests(Suite *s)
{
    TCase *tc = env_tcase(s, "steps", 60);

    tcase_add_loop_test(tc, pages_that_stay_are_brought_up_to_date, 0, 6);
    tcase_add_loop_test(tc, policy_says_who_fails, 0, 2 * N_OVERLAPPING);
    tcase_add_loop_test(tc, different_pages_do_not_conflict, 0, N_OVERLAPPING);
    tcase_add_test(tc, optimistic_reader_commits_at_its_snapshot);
    tcase_add_test(tc, same_value_is_a_store_while_it_runs);
    tcase_add_test(tc, system_calls_stop_where_access_ends);
    tcase_add_test(tc, thread_without_transaction_is_stopped);
}
