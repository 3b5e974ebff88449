/* SPDX-License-Identifier: MIT */
/*
 * check_team_members.c -- who may help a transaction, and when: joining, leaving, what is refused, ends of
 * threads, forks, conflicts, several environments, announced accesses.
 */
#include <config.h>

#include "team.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac_env.h>
#include <xac_touch.h>

#define N_PAGES 16

/* in_thread -- run a function in a thread of its own, to its end. */
static void
in_thread(void *(*fn)(void *), void *arg)
{
    pthread_t t;

    must_eq(pthread_create(&t, NULL, fn, arg), 0);
    must_eq(pthread_join(t, NULL), 0);
}

static uint64_t txn;
static uint64_t *x;

/* ---- who may, and what is refused --------------------------------------------------------- */

static void *
join_and_be_refused(void *arg)
{
    (void)arg;
    must_refuse(xJoin(txn + 1000), XAC_ENOTXN);
    must_refuse(xJoin(0), XAC_ENOTXN);
    must_refuse(xLeave(), XAC_ENOTXN);
    must_ok(xJoin(txn));
    must_refuse(xJoin(txn), XAC_EINTXN);
    *env_cell(x, 1) = 5;
    must_refuse(xbegin(), XAC_EINTXN);
    must_refuse(xbeginQuery(), XAC_EINTXN);
    must_refuse(xend(), XAC_ENOTXN);
    must_refuse(xAbort(), XAC_ENOTXN);
    must_refuse(xTeam(&txn), XAC_ENOTXN);
    must(xMalloc(x, 8) == NULL);
    must_ok(setPageAccess(env_cell(x, 2), READ_WRITE));
    *env_cell(x, 2) = 6;
    must_ok(xLeave());
    must_refuse(xbegin(), EBUSY);
    return NULL;
}

START_TEST(members_join_and_leave)
{
    uint64_t again;

    x = team_attach(_i, N_PAGES);
    must_refuse(xTeam(&txn), XAC_ENOTXN);
    must_ok(xbegin());
    must_refuse(xTeam(NULL), EINVAL);
    must_ok(xTeam(&txn));
    must_ok(xTeam(&again));
    must_eq(txn, again);
    must_refuse(xJoin(txn), XAC_EINTXN);
    in_thread(join_and_be_refused, NULL);
    must_rc(xend(), COMMITTED);
    must_refuse(xJoin(txn), XAC_ENOTXN);
    must_eq(env_get(env_cell(x, 1)), 5);
    must_eq(env_get(env_cell(x, 2)), 6);
    env_detach();
}
END_TEST

static pthread_barrier_t gate;

static void *
stay_for_a_while(void *arg)
{
    (void)arg;
    must_ok(xJoin(txn));
    (void)pthread_barrier_wait(&gate);
    *env_cell(x, 1) += 1;
    (void)pthread_barrier_wait(&gate);
    must_ok(xLeave());
    return NULL;
}

START_TEST(end_is_refused_while_a_thread_has_joined)
{
    pthread_t t;

    x = team_attach(_i, N_PAGES);
    must_eq(pthread_barrier_init(&gate, NULL, 2), 0);
    for (int query = 0; query < 2; query++) {
        must_ok(xbegin());
        if (query != 0) /* nested, so that the helper's store is before it */
            *env_cell(x, 1) = 10;
        must_ok(xTeam(&txn));
        must_eq(pthread_create(&t, NULL, stay_for_a_while, NULL), 0);
        (void)pthread_barrier_wait(&gate);
        must_refuse(xend(), EBUSY);
        must_ok(xValidate() == PENDING ? 0 : 1);
        (void)pthread_barrier_wait(&gate);
        must_eq(pthread_join(t, NULL), 0);
        must_rc(xend(), COMMITTED);
    }
    must_eq(env_get(env_cell(x, 1)), 11);
    env_detach();
}
END_TEST

static void *
end_without_leaving(void *arg)
{
    (void)arg;
    must_ok(xJoin(txn));
    *env_cell(x, 3) = 7;
    return NULL;
}

START_TEST(thread_that_ends_has_left)
{
    x = team_attach(_i, N_PAGES);
    must_ok(xbegin());
    must_ok(xTeam(&txn));
    in_thread(end_without_leaving, NULL);
    must_rc(xend(), COMMITTED);
    must_eq(env_get(env_cell(x, 3)), 7);
    env_detach();
}
END_TEST

/* ---- what stops the program -------------------------------------------------------------------- */

static void *
store_one(void *arg)
{
    *env_cell((uint64_t *)arg, 4) = 1;
    return NULL;
}

static void *
join_and_store(void *arg)
{
    must_ok(xJoin(txn));
    return store_one(arg);
}

static void
store_without_joining(void *arg)
{
    x = team_attach(*(int *)arg, N_PAGES);
    must_ok(xbegin());
    must_ok(xTeam(&txn));
    in_thread(store_one, x);
}

static void
store_behind_the_end(void *arg)
{
    x = team_attach(*(int *)arg, N_PAGES);
    must_ok(xbegin());
    must_rc(xend(), COMMITTED);
    in_thread(store_one, x);
}

static void
store_in_query(void *arg)
{
    x = team_attach(*(int *)arg, N_PAGES);
    must_ok(xbeginQuery());
    must_ok(xTeam(&txn));
    in_thread(join_and_store, x);
    must_ok(xendQuery()); /* with scans it is noticed here, at the latest */
}

/* leave_transact -- the function leaves a thread behind that has joined. */
static void *
join_and_wait(void *arg)
{
    must_ok(xJoin(txn));
    (void)pthread_barrier_wait(&gate);
    (void)pthread_barrier_wait(&gate);
    return store_one(arg);
}

static int
leave_behind(void *arg)
{
    pthread_t t;

    must_ok(xTeam(&txn));
    must_eq(pthread_create(&t, NULL, join_and_wait, arg), 0);
    (void)pthread_barrier_wait(&gate);
    return 0;
}

static void
store_when_let_down(void *arg)
{
    x = team_attach(*(int *)arg, N_PAGES);
    must_eq(pthread_barrier_init(&gate, NULL, 2), 0);
    must_refuse(xTransact(leave_behind, x), EBUSY);
    must_ok(xbegin()); /* nothing is open */
    must_rc(xend(), COMMITTED);
    (void)pthread_barrier_wait(&gate);
    proc_sleep_us(5000000);
}

static const struct {
    void (*fn)(void *arg);
    const char *words;
} stops[] = {
    {store_without_joining, "by a thread that has no transaction"},
    {store_behind_the_end, "no transaction"},
    {store_in_query, "query"},
    {store_when_let_down, "no transaction"},
};

START_TEST(others_stop_the_program)
{
    const int modes[] = {0, 7};
    char text[4096];

    for (size_t m = 0; m < 2; m++) {
        int mode = modes[m];
        int status = proc_capture(stops[_i].fn, &mode, text, sizeof text);

        if (!WIFSIGNALED(status) || strstr(text, stops[_i].words) == NULL)
            env_fail(__FILE__, __LINE__, "%d: status %#x: %s", _i, (unsigned)status,
                     text);
    }
}
END_TEST

static void
trusted_team(void *arg)
{
    (void)arg;
    must_ok(xSetOption(XAC_OPT_TEAM, 1));
    must_ok(xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_TRUSTED));
    must_refuse(xInit(ENV_DIR, NONDURABLE), EINVAL);
    must_ok(xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_FAST));
    must_ok(xInit(ENV_DIR, NONDURABLE));
    must_refuse(xSetOption(XAC_OPT_TEAM, 0), EBUSY);
    must_ok(xShutdown());
}

START_TEST(promise_to_announce_all_is_refused)
{
    proc_run(trusted_team, NULL);
}
END_TEST

/* ---- conflicts -------------------------------------------------------------------------------- */

static struct {
    _Atomic uint64_t go, done;
} * board;

static void
store_as_another(void *arg)
{
    uint64_t *mine;

    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t) * (const int *)arg));
    mine = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    word_store(&board->done, 1);
    proc_await(&board->go, 1, 30);
    must_ok(xbegin());
    *env_cell(mine, 0) = 100;
    *env_cell(mine, 5) = 100;
    must_rc(xend(), COMMITTED);
    word_store(&board->done, 2);
    env_detach();
}

static void *
load_both(void *arg)
{
    (void)arg;
    must_ok(xJoin(txn));
    must_eq(*env_cell(x, 5), 1);
    *env_cell(x, 6) = 1;
    must_ok(xLeave());
    return NULL;
}

/* A failed transaction goes on with its snapshot, in helpers, too. */
START_TEST(loser_goes_on_in_helpers)
{
    int policy = XAC_POLICY_SELFISH; /* who discovers the conflict wins */
    pid_t other;

    board = proc_shared(sizeof *board);
    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)policy));
    must_eq(setenv("XAC_ENGINE", _i == 0 ? "uffd" : "sigsegv", 1), 0);
    other = proc_spawn(store_as_another, &policy);
    proc_await(&board->done, 1, 30);
    x = (uint64_t *)env_attach(NONDURABLE, N_PAGES);
    env_put(env_cell(x, 0), 1);
    env_put(env_cell(x, 5), 1);
    must_ok(xbegin());
    must_ok(xTeam(&txn));
    must_eq(*env_cell(x, 0), 1);
    word_store(&board->go, 1);
    proc_await(&board->done, 2, 30);
    in_thread(load_both, NULL);
    must_rc(xend(), ABORTED);
    must_eq(env_get(env_cell(x, 5)), 100);
    must_eq(env_get(env_cell(x, 6)), 0);
    proc_join(other);
    env_detach();
}
END_TEST

/* ---- views, environments, forks ---------------------------------------------------------------- */

static void *
own_a_view(void *arg)
{
    uint64_t *v = (uint64_t *)xView(x);

    (void)arg;
    must(v != MAP_FAILED);
    must_ok(xbegin());
    must_ok(xTeam(&txn));
    *env_cell(v, 4) = 8; /* store_one stores 1 */
    in_thread(join_and_store, v);
    must_rc(xend(), COMMITTED);
    return NULL;
}

START_TEST(threads_with_views_have_helpers)
{
    x = team_attach(_i, N_PAGES);
    in_thread(own_a_view, NULL);
    must_eq(env_get(env_cell(x, 4)), 1);
    env_detach();
}
END_TEST

static uint64_t *y;
static uint64_t txn_y;

static void *
join_two(void *arg)
{
    (void)arg;
    must_ok(xJoin(txn));
    must_ok(xJoin(txn_y));
    *env_cell(x, 1) = 11;
    *env_cell(y, 1) = 12;
    must_ok(xLeave());
    *env_cell(x, 2) = 13;
    must_ok(xLeave());
    return NULL;
}

START_TEST(thread_helps_in_two_environments)
{
    struct xac_options o;
    struct xac_env *e;

    x = team_attach(0, N_PAGES);
    xac_options_init(&o, sizeof o);
    o.flags = NONDURABLE;
    e = xac_open("second", &o);
    must(e != NULL);
    y = (uint64_t *)xac_mmap_in(e, "y.db", N_PAGES * env_page());
    must(y != MAP_FAILED);
    must_ok(xbegin());
    must_ok(xac_begin_in(e));
    must_ok(xTeam(&txn));
    must_ok(xac_team_in(e, &txn_y));
    must(txn != txn_y);
    in_thread(join_two, NULL);
    must_rc(xac_end_in(e), COMMITTED);
    must_rc(xend(), COMMITTED);
    must_eq(env_get(env_cell(x, 1)), 11);
    must_eq(env_get(env_cell(x, 2)), 13);
    must_ok(xac_begin_query_in(e));
    must_eq(*env_cell(y, 1), 12);
    must_ok(xac_end_query_in(e));
    must_ok(xac_close(e));
    env_detach();
}
END_TEST

static void
store_and_fork(struct helper *h)
{
    if (h->i == 1) {
        for (int n = 0; n < 10; n++) {
            pid_t child = fork();

            must(child >= 0);
            if (child == 0) {
                if (h->txn != 0 && xLeave() != XAC_ENOTXN)
                    _exit(1);
                _exit(0);
            }
            must_eq(proc_wait(child), 0);
        }
    }
    for (size_t p = 0; p < h->n_pages; p++)
        *team_word(h->base, p, h->i) += 1;
}

START_TEST(helpers_fork)
{
    x = team_attach(_i, 64);
    for (uint64_t r = 0; r < 3; r++) {
        must_ok(xbegin());
        team_work(_i, x, 64, r, store_and_fork);
        must_rc(xend(), COMMITTED);
    }
    must_ok(xbeginQuery());
    for (size_t p = 0; p < 64; p++) {
        for (int i = 0; i <= TEAM; i++)
            must_eq(*team_word(x, p, i), 3);
    }
    must_ok(xendQuery());
    env_detach();
}
END_TEST

/* ---- announced accesses ----------------------------------------------------------------------- */

/* Pages that no other thread announces. */
static void
announce_and_store(struct helper *h)
{
    for (size_t p = (size_t)h->i; p < h->n_pages; p += TEAM + 1) {
        uint64_t *w = team_word(h->base, p, h->i);

        xac_load(w, sizeof *w);
        xac_store(w, sizeof *w);
        *w += 1;
    }
    must(h->txn == 0 || xac_touch_is_segment(h->base) == 1);
}

/* With the promise to announce everything, a store that is not announced stays behind an abort, or is lost. */
START_TEST(helpers_announce_their_stores)
{
    env_checking = XAC_CHECKING_TRUSTED;
    x = (uint64_t *)env_attach(NONDURABLE, 32);
    for (uint64_t r = 0; r < 12; r++) {
        must_ok(xbegin());
        team_work(0, x, 32, r, announce_and_store);
        if (r % 2 != 0)
            must_ok(xAbort());
        must_rc(xend(), r % 2 != 0 ? ABORTED : COMMITTED);
    }
    must_ok(xShutdown());
    x = (uint64_t *)env_attach(NONDURABLE, 32);
    must_ok(xbeginQuery());
    for (size_t p = 0; p < 32; p++)
        must_eq(*team_word(x, p, (int)(p % (TEAM + 1))), 6);
    must_ok(xendQuery());
    env_detach();
}
END_TEST

static void
announce_ranges(struct helper *h)
{
    size_t n = h->n_pages / (TEAM + 1);

    must_ok(
        setRangeAccess(env_cell(h->base, n * (size_t)h->i), n * env_page(), READ_WRITE));
    for (size_t p = 0; p < n; p++)
        *team_word(h->base, n * (size_t)h->i + p, 0) += 1;
}

START_TEST(helpers_announce_ranges)
{
    uint64_t traps;

    x = team_attach(_i, 90);
    must_ok(xbegin());
    traps = env_traps();
    team_work(_i, x, 90, 0, announce_ranges);
    if (team_modes[_i].frames == 0)
        must_eq(env_traps(), traps);
    must_rc(xend(), COMMITTED);
    for (size_t p = 0; p < 90; p++)
        must_eq(env_get(team_word(x, p, 0)), 1);
    env_detach();
}
END_TEST

void
add_members(Suite *s)
{
    TCase *tc = env_tcase(s, "members", 60);

    tcase_add_loop_test(tc, members_join_and_leave, 0, team_n_modes);
    tcase_add_loop_test(tc, end_is_refused_while_a_thread_has_joined, 0, 8);
    tcase_add_loop_test(tc, thread_that_ends_has_left, 0, 8);
    tcase_add_loop_test(tc, others_stop_the_program, 0,
                        (int)(sizeof stops / sizeof stops[0]));
    tcase_add_test(tc, promise_to_announce_all_is_refused);
    tcase_add_loop_test(tc, loser_goes_on_in_helpers, 0, 2);
    tcase_add_loop_test(tc, threads_with_views_have_helpers, 0, team_n_modes);
    tcase_add_test(tc, thread_helps_in_two_environments);
    tcase_add_loop_test(tc, helpers_fork, 0, team_n_modes);
    tcase_add_test(tc, helpers_announce_their_stores);
    tcase_add_loop_test(tc, helpers_announce_ranges, 0, team_n_modes);
}
