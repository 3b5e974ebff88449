/* SPDX-License-Identifier: MIT */
/*
 * check_envs.c -- several environments in one process (xac_env.h).
 *
 * GOAL    environments of a process do not see each other's pages, options, counters or
 *         transactions; a thread may have a transaction in each; fork(), exit(), the end of a
 *         thread, unwinding and kills take care of all of them; one handler of SIGSEGV and
 *         SIGBUS serves them and leaves the program's faults to the program.
 * METHOD  "left" (durable) and "right", each with one file; the default one is a third.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac_env.h>

#include "env.h"

#define N_PAGES 4

struct side {
    const char *dir, *file;
    int flags;
    struct xac_env *env;
    uint64_t *x;
};

static struct side sides[2] = {{"left", "left.db", XAC_DURABLE, NULL, NULL},
                               {"right", "right.db", XAC_NONDURABLE, NULL, NULL}};
static struct side *const left = &sides[0], *const right = &sides[1];
static uint64_t policy = XAC_OPTION_UNSET; /* of both                                   */

static void
side_open(struct side *s)
{
    struct xac_options o;

    xac_options_init(&o, sizeof o);
    o.flags = s->flags;
    o.value[XAC_OPT_POLICY] = policy;
    s->env = xac_open(s->dir, &o);
    if (s->env == NULL)
        env_fail(__FILE__, __LINE__, "xac_open: %s", xac_last_error());
    s->x = (uint64_t *)xac_mmap_in(s->env, s->file, N_PAGES * env_page());
    if (s->x == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xac_mmap_in: %s", xac_last_error());
}

static void
both_open(void)
{
    side_open(left);
    side_open(right);
}

static void
both_close(void)
{
    must_ok(xac_close(left->env));
    must_ok(xac_close(right->env));
}

/* increment -- a number of a side, until it commits. */
static void
increment(const struct side *s, uint64_t *x, size_t page)
{
    int rc;

    do {
        must_ok(xac_begin_in(s->env));
        ++*env_cell(x, page);
    } while ((rc = xac_end_in(s->env)) == XAC_ABORTED);
    must_rc(rc, XAC_COMMITTED);
}

/* get -- a number, in a query. */
static uint64_t
get(const struct side *s, size_t page)
{
    uint64_t value;

    must_ok(xac_begin_query_in(s->env));
    value = *env_cell(s->x, page);
    must_ok(xac_end_query_in(s->env));
    return value;
}

/* ---- a thread for each ------------------------------------------------------------------- */

#define N_INCREMENTS 2000

static void *
increment_many(void *arg)
{
    const struct side *s = (const struct side *)arg;

    for (int i = 0; i < N_INCREMENTS; i++)
        increment(s, s->x, (size_t)i % N_PAGES);
    return NULL;
}

START_TEST(threads_run_transactions_in_two_environments)
{
    struct xac_stats stats;
    pthread_t t[2];

    both_open();
    for (int i = 0; i < 2; i++)
        must_ok(pthread_create(&t[i], NULL, increment_many, &sides[i]));
    for (int i = 0; i < 2; i++)
        must_ok(pthread_join(t[i], NULL));
    for (int i = 0; i < 2; i++) {
        must_ok(xac_get_stats_in(sides[i].env, &stats, sizeof stats));
        must_eq(stats.commits, N_INCREMENTS);
        must_eq(stats.aborts_conflict, 0);
        must_eq(stats.participants, 1);
    }
    both_close();
    must_eq(file_u64("left.db", 0), N_INCREMENTS / N_PAGES);
    must_eq(file_u64("right.db", 0), N_INCREMENTS / N_PAGES);
}
END_TEST

/* Each thread with views of its own in both environments, transactions crosswise. */
static void *
increment_own_views(void *arg)
{
    uint64_t *v[2];

    for (int i = 0; i < 2; i++) {
        v[i] = (uint64_t *)xac_view_in(sides[i].env, sides[i].x);
        must(v[i] != MAP_FAILED && v[i] != sides[i].x);
    }
    for (int i = 0; i < 200; i++) {
        must_ok(xac_begin_in(left->env));
        ++*env_cell(v[0], 0);
        increment(right, v[1], 0);
        (void)xac_end_in(left->env);
        increment(left, v[0], 1);
    }
    if (arg == NULL)
        must_ok(xac_unview_in(left->env, v[0])); /* the other one goes with the thread */
    return NULL;
}

START_TEST(thread_has_views_in_two_environments)
{
    pthread_t t[2];

    both_open();
    for (int i = 0; i < 2; i++)
        must_ok(pthread_create(&t[i], NULL, increment_own_views, i == 0 ? NULL : t));
    for (int i = 0; i < 2; i++)
        must_ok(pthread_join(t[i], NULL));
    must_eq(get(left, 1), 400);
    must_eq(get(right, 0), 400);
    both_close(); /* no thread has views any more */
}
END_TEST

/* ---- a transaction in each --------------------------------------------------------------- */

/* Begin left, begin right; end left first (bit 0), abort left (bit 1), abort right (bit 2). */
START_TEST(transactions_of_a_thread_overlap_in_any_way)
{
    const struct side *first = _i & 1 ? left : right;
    bool is_aborted[2] = {(_i & 2) != 0, (_i & 4) != 0};

    both_open();
    must_ok(xac_begin_in(left->env));
    *left->x = 1;
    must_ok(xac_begin_in(right->env));
    *right->x = 2;
    *env_cell(left->x, 1) = 3;        /* the outer one goes on */
    must_ok(xac_begin_in(left->env)); /* nested */
    must_rc(xac_end_in(left->env), XAC_PENDING);
    for (int i = 0; i < 2; i++) {
        if (is_aborted[i])
            must_ok(xac_abort_in(sides[i].env));
    }
    for (int i = 0; i < 2; i++) {
        const struct side *s = i == 0 ? first : first == left ? right : left;

        must_rc(xac_end_in(s->env), is_aborted[s - sides] ? XAC_ABORTED : XAC_COMMITTED);
        must_refuse(xac_end_in(s->env), XAC_ENOTXN);
    }
    must_eq(get(left, 0), is_aborted[0] ? 0 : 1);
    must_eq(get(left, 1), is_aborted[0] ? 0 : 3);
    must_eq(get(right, 0), is_aborted[1] ? 0 : 2);
    must_ok(xac_begin_query_in(left->env)); /* a query there, a transaction here */
    must_ok(xac_begin_in(right->env));
    *right->x = *left->x + 10;
    must_ok(xac_end_query_in(left->env));
    must_rc(xac_end_in(right->env), XAC_COMMITTED);
    both_close();
}
END_TEST

START_TEST(close_needs_the_end_of_its_transactions_only)
{
    both_open();
    must_ok(xac_begin_in(left->env));
    *left->x = 7;
    must_refuse(xac_close(left->env), XAC_EINTXN);
    must_ok(xac_close(right->env));
    *env_cell(left->x, 1) = 8; /* the handler is still there */
    must_rc(xac_end_in(left->env), XAC_COMMITTED);
    must_eq(get(left, 1), 8);
    must_ok(xac_close(left->env));
    must_eq(file_u64("left.db", 0), 7);
}
END_TEST

static void
touch_other(void *arg)
{
    (void)arg;
    both_open();
    must_ok(xac_begin_in(left->env));
    *right->x = 1;
}

START_TEST(transaction_opens_no_segment_of_another_environment)
{
    char text[4096];
    int status = proc_capture(touch_other, NULL, text, sizeof text);

    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    must(strstr(text, "right.db") != NULL
         && strstr(text, "outside a transaction") != NULL);
}
END_TEST

/* ---- with the default environment --------------------------------------------------------- */

START_TEST(default_environment_is_one_among_others)
{
    uint64_t *x = (uint64_t *)env_attach(DURABLE, 1);

    both_open();
    must_ok(xbegin());
    *x = 5;
    increment(left, left->x, 0);
    must_eq(get(right, 0), 0);
    must_rc(xend(), COMMITTED);
    must_eq(xac_mmap(left->file, env_page()) == MAP_FAILED ? errno : 0, EBUSY);
    must_ok(xMunmap(ENV_FILE));
    env_detach();
    must_refuse(xbegin(), XAC_ENOINIT);
    increment(left, left->x, 0);
    must_eq(get(left, 0), 2);
    both_close();
    must_eq(file_u64(ENV_FILE, 0), 5);
}
END_TEST

static void
must_not_open(const char *dir, const struct xac_options *o, int want)
{
    errno = 0;
    env_stale_message();
    must(xac_open(dir, o) == NULL);
    must_eq(errno, want);
    must(xac_last_error()[0] != '\0');
}

START_TEST(environment_is_open_once_in_a_process)
{
    both_open();
    must_ok(symlink("left", "link"));
    must_not_open("left", NULL, XAC_EALREADY);
    must_not_open("link/.", NULL, XAC_EALREADY);
    must_refuse(xInit("link", DURABLE), XAC_EALREADY);
    must_ok(xac_close(left->env));
    must_ok(xInit("link", DURABLE));
    must_not_open("left", NULL, XAC_EALREADY);
    must_ok(xShutdown());
    must_ok(xac_close(right->env));
}
END_TEST

START_TEST(file_belongs_to_one_environment)
{
    both_open();
    must(xac_mmap_in(right->env, left->file, env_page()) == MAP_FAILED && errno == EBUSY);
    must(strstr(xac_last_error(), "left") != NULL);
    must_refuse(xac_munmap_at_in(right->env, left->x), XAC_ENOTMAPPED);
    must_refuse(xac_munmap_in(right->env, left->file), XAC_ENOTMAPPED);
    must_refuse(xac_set_page_access_in(right->env, left->x, XAC_READ), XAC_ENOTMAPPED);
    both_close();
}
END_TEST

START_TEST(calls_without_environment_are_refused)
{
    static char path[2 * 4096];

    must_refuse(xac_begin_in(NULL), XAC_ENOINIT);
    must_refuse(xac_end_in(NULL), XAC_ENOINIT);
    must_refuse(xac_begin_query_in(NULL), XAC_ENOINIT);
    must_refuse(xac_end_query_in(NULL), XAC_ENOINIT);
    must_refuse(xac_validate_in(NULL), XAC_ENOINIT);
    must_refuse(xac_abort_in(NULL), XAC_ENOINIT);
    must_refuse(xac_close(NULL), XAC_ENOINIT);
    must_refuse(xac_checkpoint_in(NULL), XAC_ENOINIT);
    must_refuse(xac_sync_in(NULL), XAC_ENOINIT);
    must_refuse(xac_set_option_in(NULL, XAC_OPT_WAIT_MS, 1), XAC_ENOINIT);
    must_refuse(xac_set_backoff_in(NULL, NULL, NULL), XAC_ENOINIT);
    must(xac_mmap_in(NULL, "x", env_page()) == MAP_FAILED && errno == EPERM);
    must(xac_malloc_in(NULL, NULL, 1) == NULL && errno == EPERM);
    memset(path, 'x', sizeof path - 1); /* too long for a message, too */
    must_not_open(path, NULL, ENAMETOOLONG);
    must(strstr(xac_last_error(), strerror(ENAMETOOLONG)) != NULL);
}
END_TEST

/* ---- options and errors -------------------------------------------------------------------- */

START_TEST(options_are_of_one_environment)
{
    struct xac_options o;

    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_OPTIMISTIC));
    xac_options_init(&o, sizeof o);
    must_eq(o.value[XAC_OPT_POLICY], XAC_OPTION_UNSET);
    o.value[XAC_OPT_POLICY] = 17;
    must_not_open("left", &o, EINVAL);
    o.value[XAC_OPT_POLICY] = XAC_POLICY_SELFISH;
    o.reserved = 1;
    must_not_open("left", &o, EINVAL);
    o.reserved = 0;
    o.value[0] = 1; /* no option has this number: it is not looked at */
    o.flags = 77;
    must_not_open("left", &o, EINVAL);
    o.flags = XAC_DURABLE;
    o.size = 3;
    must_not_open("left", &o, EINVAL);
    o.size = offsetof(struct xac_options, value); /* of a program that knows none */
    left->env = xac_open("left", &o);
    must(left->env != NULL);
    o.size = sizeof o;
    o.log_directory = "elsewhere";
    right->env = xac_open("right", &o);
    must(right->env != NULL);
    must_ok(access("elsewhere", F_OK));
    must_refuse(xac_set_option_in(left->env, XAC_OPT_POLICY, 0), EBUSY);
    must_refuse(xac_set_option_in(left->env, XAC_OPT_WAIT_MS, UINT64_MAX), EINVAL);
    must_refuse(xac_set_option_in(left->env, 999, 0), EINVAL);
    must_ok(xac_set_option_in(left->env, XAC_OPT_SYNC_DELAY_MS, 1000));
    both_close();
}
END_TEST

/* count -- a way to wait that must not be called. */
static void
count(void *arg, unsigned attempts)
{
    (void)attempts;
    ++*(int *)arg;
}

static int n_runs;

static int
add_one(void *arg)
{
    const struct side *s = (const struct side *)arg;

    ++*s->x;
    n_runs++;
    return 0;
}

/* The conflict: a child process holds the page in an older transaction until told. */
struct holder {
    const struct side *side;
    _Atomic uint64_t *step;
};

static void
hold_page(void *arg)
{
    const struct holder *h = (const struct holder *)arg;

    increment(h->side, h->side->x, 1); /* it is a participant of its own now */
    must_ok(xac_begin_in(h->side->env));
    ++*h->side->x;
    word_store(h->step, 1);
    proc_await(h->step, 2, 30);
    (void)xac_end_in(h->side->env);
}

static void
count_and_release(void *arg, unsigned attempts)
{
    const struct holder *h = (const struct holder *)arg;

    (void)attempts;
    word_store(h->step, 2);
}

START_TEST(backoff_is_of_one_environment)
{
    struct holder h = {.side = right, .step = (_Atomic uint64_t *)proc_shared(64)};
    int n_left = 0, n_default = 0;
    pid_t pid;

    policy = XAC_POLICY_OLDEST_WINS; /* the function meets a conflict */
    both_open();
    must_ok(xac_set_backoff(count, &n_default));
    must_ok(xac_set_backoff_in(left->env, count, &n_left));
    must_ok(xac_set_backoff_in(right->env, count_and_release, &h));
    pid = proc_spawn(hold_page, &h);
    proc_await(h.step, 1, 30);
    must_ok(xac_transact_in(right->env, add_one, right));
    must_eq(word_load(h.step), 2);
    must_eq(n_left + n_default, 0);
    must(n_runs >= 2);
    proc_join(pid);
    must_ok(xac_set_backoff(NULL, NULL));
    both_close();
}
END_TEST

static void *
fail_left(void *arg)
{
    must_eq(strlen(xac_last_error()), 0);
    must_refuse(xac_end_in(left->env), XAC_ENOTXN);
    (void)arg;
    return NULL;
}

START_TEST(last_error_is_of_one_thread)
{
    char before[512];
    pthread_t t;

    both_open();
    must(xac_mmap_in(right->env, "", env_page()) == MAP_FAILED);
    (void)snprintf(before, sizeof before, "%s", xac_last_error());
    must_ok(pthread_create(&t, NULL, fail_left, NULL));
    must_ok(pthread_join(t, NULL));
    must_eq(strcmp(before, xac_last_error()), 0);
    both_close();
}
END_TEST

/* ---- ends that nobody has asked for -------------------------------------------------------- */

struct acked {
    _Atomic uint64_t n[2];
};

static struct acked *acked;

static void *
increment_for_ever(void *arg)
{
    const struct side *s = (const struct side *)arg;

    for (;;) {
        increment(s, s->x, 0);
        word_add(&acked->n[s - sides], 1);
    }
    return NULL;
}

static void
run_until_killed(void *arg)
{
    pthread_t t;

    (void)arg;
    left->flags = right->flags = XAC_DURABLE;
    both_open();
    must_ok(pthread_create(&t, NULL, increment_for_ever, right));
    (void)increment_for_ever(left);
}

START_TEST(both_are_recovered_after_a_kill)
{
    pid_t pid;

    acked = (struct acked *)proc_shared(sizeof *acked);
    pid = proc_spawn(run_until_killed, NULL);
    proc_await(&acked->n[0], 50 + (uint64_t)_i * 37, 60);
    proc_await(&acked->n[1], 50, 60);
    proc_kill(pid);
    must_ok(xac_recover("left")); /* the other one by xac_open() */
    left->flags = right->flags = XAC_DURABLE;
    both_open();
    for (int i = 0; i < 2; i++) {
        uint64_t n = get(&sides[i], 0), done = word_load(&acked->n[i]);

        must(n == done || n == done + 1);
    }
    both_close();
}
END_TEST

static void
use_both_in_child(void *arg)
{
    (void)arg;
    must_refuse(xac_end_in(left->env), XAC_EFORKED);
    must_refuse(xac_end_query_in(right->env), XAC_EFORKED);
    must_refuse(xac_end_in(left->env), XAC_ENOTXN);
    increment(left, left->x, 1);
    must_ok(xac_begin_in(left->env));
    increment(right, right->x, 1);
    must_rc(xac_end_in(left->env), XAC_COMMITTED);
    both_close();
}

START_TEST(fork_keeps_both)
{
    policy = XAC_POLICY_OLDEST_WINS; /* the child writes beside an open transaction */
    both_open();
    must_ok(xac_begin_in(left->env));
    *left->x = 1;
    must_ok(xac_begin_query_in(right->env));
    must_eq(*right->x, 0);
    proc_run(use_both_in_child, NULL);
    must_eq(*env_cell(right->x, 1), 0); /* the snapshot is older */
    must_ok(xac_end_query_in(right->env));
    (void)xac_end_in(left->env); /* the child may have revoked what it has read */
    increment(left, left->x, 0);
    must_eq(get(left, 1), 1);
    must_eq(get(right, 1), 1);
    both_close();
}
END_TEST

/* close_file -- as a daemon does with all descriptors that it has not opened itself. */
static void
close_file(const char *name)
{
    for (int fd = 3; fd < 4096; fd++) {
        char link[64], path[4096];
        ssize_t n;

        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof path);
        if (n > 0 && memmem(path, (size_t)n, name, strlen(name)) != NULL)
            (void)close(fd);
    }
}

/* join_late -- while the file is not there, each call tries to join, and fails. */
static void
join_late(void *arg __attribute__((unused)))
{
    close_file(left->file);
    must_ok(rename(left->file, "away.db"));
    for (int i = 0; i < 3; i++)
        must(xac_begin_in(left->env) != 0);
    must_ok(rename("away.db", left->file));
    increment(left, left->x, 0);
    both_close();
}

START_TEST(child_joins_with_all_its_mappings_or_not_at_all)
{
    both_open();
    increment(left, left->x, 0);
    proc_run(join_late, NULL);
    increment(left, left->x, 0);
    both_close();
    must_eq(file_u64(left->file, 0), 3);
}
END_TEST

static void
exit_inside(void *arg)
{
    (void)arg;
    must_ok(xac_begin_in(left->env));
    *left->x = 1;
    must_ok(xac_begin_in(right->env));
    *right->x = 1;
    exit(0);
}

START_TEST(exit_rolls_back_in_both)
{
    struct xac_stats stats;
    char text[4096];

    both_open();
    must_eq(proc_capture(exit_inside, NULL, text, sizeof text), 0);
    must(strstr(text, "exit() was called inside of a transaction") != NULL);
    for (int i = 0; i < 2; i++) {
        must_ok(xac_get_stats_in(sides[i].env, &stats, sizeof stats));
        must_eq(stats.aborts_user, 1);
    }
    increment(left, left->x, 0); /* nobody holds the pages */
    increment(right, right->x, 0);
    must_eq(get(left, 0), 1);
    must_eq(get(right, 0), 1);
    both_close();
}
END_TEST

static void *
end_inside(void *arg)
{
    must_ok(xac_begin_in(right->env));
    *right->x = 1;
    must_ok(xac_begin_in(left->env));
    *left->x = 1;
    return arg;
}

START_TEST(end_of_thread_rolls_back_in_both)
{
    pthread_t t;

    both_open();
    must_ok(pthread_create(&t, NULL, end_inside, NULL));
    must_ok(pthread_join(t, NULL));
    increment(left, left->x, 0);
    increment(right, right->x, 0);
    must_eq(get(left, 0), 1);
    must_eq(get(right, 0), 1);
    both_close();
}
END_TEST

static int
leave_thread(void *arg)
{
    (void)arg;
    *right->x = 1;
    pthread_exit(NULL);
}

static int
transact_within(void *arg)
{
    *left->x = 1;
    return xac_transact_in(right->env, leave_thread, arg);
}

static void *
transact_both(void *arg)
{
    (void)xac_transact_in(left->env, transact_within, NULL);
    return arg;
}

static int
add_right(void *arg)
{
    (void)arg;
    ++*right->x;
    return 0;
}

static int
add_both(void *arg)
{
    ++*left->x;
    return xac_transact_in(right->env, add_right, arg);
}

START_TEST(transact_unwinds_in_both)
{
    pthread_t t;

    both_open();
    must_ok(pthread_create(&t, NULL, transact_both, NULL));
    must_ok(pthread_join(t, NULL));
    must_eq(get(left, 0), 0);
    must_eq(get(right, 0), 0);
    must_ok(xac_transact_in(left->env, add_both, NULL));
    must_eq(get(left, 0), 1);
    must_eq(get(right, 0), 1);
    both_close();
}
END_TEST

/* ---- faults of the program ------------------------------------------------------------------ */

static sigjmp_buf back;
static volatile int n_own;

static void
on_own_fault(int sig)
{
    (void)sig;
    n_own++;
    siglongjmp(back, 1);
}

static void
must_be_own_fault(volatile char *p)
{
    int before = n_own;

    if (sigsetjmp(back, 1) == 0)
        *p = 1;
    must_eq(n_own, before + 1);
}

START_TEST(fault_outside_of_all_is_the_programs)
{
    struct sigaction own = {.sa_handler = on_own_fault}, now;
    char *p =
        (char *)mmap(NULL, env_page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    must(p != MAP_FAILED);
    must_ok(sigaction(SIGSEGV, &own, NULL));
    both_open();
    must_be_own_fault(p);
    must_ok(xac_begin_in(left->env));
    must_be_own_fault(p);
    *left->x = 1;
    must_rc(xac_end_in(left->env), XAC_COMMITTED);
    must_ok(xac_close(left->env));
    must_be_own_fault(p);
    increment(right, right->x, 0); /* its faults are still served */
    must_ok(xac_close(right->env));
    must_ok(sigaction(SIGSEGV, NULL, &now));
    must(now.sa_handler == on_own_fault);
    must_be_own_fault(p);
    both_open(); /* and again */
    increment(left, left->x, 0);
    must_be_own_fault(p);
    both_close();
}
END_TEST

/* ---- the allocator, backups ------------------------------------------------------------------ */

START_TEST(heaps_and_backups_are_of_one_environment)
{
    uint64_t *p;

    both_open();
    must_ok(xac_begin_in(left->env));
    p = (uint64_t *)xac_malloc_in(left->env, left->x, 100);
    must(p != NULL);
    *p = 4711;
    memcpy(xac_root_in(left->env, left->x), &(ptrdiff_t){p - left->x}, sizeof(ptrdiff_t));
    must(xac_malloc_in(right->env, left->x, 100) == NULL && errno == EPERM);
    must_rc(xac_end_in(left->env), XAC_COMMITTED);
    must_ok(xac_checkpoint_in(left->env));
    must_ok(xac_backup_in(left->env, "copy"));
    must_refuse(xac_backup_in(right->env, "copy2"), ENOTSUP); /* it is not durable */
    must_ok(xac_begin_query_in(left->env));
    must_ok(xac_heap_check_in(left->env, left->x, NULL, 0));
    must_ok(xac_end_query_in(left->env));
    must_ok(xac_begin_in(left->env));
    must_ok(xac_free_in(left->env, left->x, p));
    must_rc(xac_end_in(left->env), XAC_COMMITTED);
    must_ok(xac_sync_in(left->env));
    both_close();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("envs");
    TCase *tc = env_tcase(s, "envs", 120);

    tcase_add_test(tc, threads_run_transactions_in_two_environments);
    tcase_add_test(tc, thread_has_views_in_two_environments);
    tcase_add_loop_test(tc, transactions_of_a_thread_overlap_in_any_way, 0, 8);
    tcase_add_test(tc, close_needs_the_end_of_its_transactions_only);
    tcase_add_test(tc, transaction_opens_no_segment_of_another_environment);
    tcase_add_test(tc, default_environment_is_one_among_others);
    tcase_add_test(tc, environment_is_open_once_in_a_process);
    tcase_add_test(tc, file_belongs_to_one_environment);
    tcase_add_test(tc, calls_without_environment_are_refused);
    tcase_add_test(tc, options_are_of_one_environment);
    tcase_add_test(tc, backoff_is_of_one_environment);
    tcase_add_test(tc, last_error_is_of_one_thread);
    tcase_add_loop_test(tc, both_are_recovered_after_a_kill, 0, 3);
    tcase_add_test(tc, fork_keeps_both);
    tcase_add_test(tc, child_joins_with_all_its_mappings_or_not_at_all);
    tcase_add_test(tc, exit_rolls_back_in_both);
    tcase_add_test(tc, end_of_thread_rolls_back_in_both);
    tcase_add_test(tc, transact_unwinds_in_both);
    tcase_add_test(tc, fault_outside_of_all_is_the_programs);
    tcase_add_test(tc, heaps_and_backups_are_of_one_environment);
    return env_main(s);
}
