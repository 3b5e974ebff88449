/* SPDX-License-Identifier: MIT */
/*
 * check_past.c -- queries of the past (XAC_OPT_HISTORY), and what differs between two states (xDiff).
 *
 * GOAL    each state in the window can be queried, by its number and by its time, and is exactly what it was;
 *         behind the window the error names the oldest state; memory is bounded by the window.
 * METHOD  random commits beside a model that has all states; queries and differences of random pairs.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <xac_translate.h>

#include "env.h"

/* Bit 0 of a loop variable: durable; bit 1: beside another participant; bits 2 and 3: checking. */
#define WAYS    12
#define N_PAGES 16
#define STATES  3000
#define WINDOW  500

/* A state: its number, the time when its transaction had ended, and what it is. */
struct state {
    uint64_t number, ended_ns;
    uint64_t value[N_PAGES];
};

static struct state *states; /* the first n_states */
static uint64_t n_states, seed;

static uint64_t
now_ns(void)
{
    struct timespec ts;

    must(clock_gettime(CLOCK_REALTIME, &ts) == 0);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t *
attach(int way, uint64_t history, pid_t *companionp)
{
    int mode = (way & 1) != 0 ? DURABLE : NONDURABLE;

    env_checking = (uint64_t)way >> 2;
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, 1000));
    must_ok(xSetOption(XAC_OPT_HISTORY, history));
    *companionp = (way & 2) != 0 ? env_companion(mode, N_PAGES) : 0;
    states = proc_shared(STATES * sizeof *states);
    n_states = 1; /* number 0: all zeros */
    states[0].ended_ns = now_ns();
    seed = env_seed() + (uint64_t)way;
    return env_attach(mode, N_PAGES);
}

static void
detach(pid_t companion)
{
    if (companion != 0)
        proc_kill(companion);
    env_detach();
}

/* change -- one more state. */
static void
change(uint64_t *x)
{
    struct state *s = &states[n_states];
    uint64_t n = 1 + rnd_below(&seed, 3);

    *s = states[n_states - 1];
    must_ok(xbegin());
    for (uint64_t i = 0; i < n; i++) {
        uint64_t p = rnd_below(&seed, 2) == 0 ? i : rnd_below(&seed, N_PAGES);

        must_ok(setPageAccess(env_cell(x, p), READ_WRITE));
        *env_cell(x, p) = s->value[p] = n_states * 100 + i;
    }
    must_rc(xend(), COMMITTED);
    s->ended_ns = now_ns();
    must_ok(xbeginQuery());
    s->number = xac_position();
    must_ok(xendQuery());
    must(s->number > states[n_states - 1].number);
    n_states++;
}

/* must_be -- a query that is open shows that state, and ends. */
static void
must_be(uint64_t *x, const struct state *s)
{
    for (uint64_t p = 0; p < N_PAGES; p++) {
        if (rnd_below(&seed, 2) == 0)
            must_eq(*(volatile uint64_t *)env_cell(x, p), s->value[p]);
    }
    must_ok(xendQuery());
}

/* recent -- a random state of the window.  Checkpoints take numbers, too. */
static const struct state *
recent(void)
{
    uint64_t newest = env_stats().commit_number;
    const struct state *s;

    do
        s = &states[n_states - 1
                    - rnd_below(&seed, WINDOW < n_states ? WINDOW : n_states)];
    while (newest - s->number >= WINDOW - 20);
    return s;
}

/* ---- what differs --------------------------------------------------------------------------- */

struct seen {
    uint64_t *x;
    const struct state *from, *to;
    uint64_t pages; /* bit p: page p was told                                          */
};

static int
see(void *arg, const struct xac_change *c)
{
    struct seen *seen = arg;
    uint64_t p = c->offset / env_page();

    must(strcmp(c->file, ENV_FILE) == 0);
    must_eq(c->offset % env_page(), 0);
    must_eq(c->length, 8);
    must(c->address == env_cell(seen->x, p));
    must_eq(*(const uint64_t *)c->before, seen->from->value[p]);
    must_eq(*(const uint64_t *)c->after, seen->to->value[p]);
    must((seen->pages & UINT64_C(1) << p) == 0);
    must(seen->pages >> p == 0); /* in order */
    seen->pages |= UINT64_C(1) << p;
    return 0;
}

static void
diff(uint64_t *x, const struct state *from, const struct state *to)
{
    struct seen seen = {.x = x, .from = from, .to = to};
    uint64_t expected = 0;

    for (uint64_t p = 0; p < N_PAGES; p++)
        expected |= (uint64_t)(from->value[p] != to->value[p]) << p;
    must_ok(xDiff(XAC_AT_COMMIT(from->number), XAC_AT_COMMIT(to->number), see, &seen));
    must_eq(seen.pages, expected);
}

START_TEST(each_state_of_the_window_is_there)
{
    pid_t companion;
    uint64_t *x = attach(_i, XAC_HISTORY_COMMITS(WINDOW), &companion);

    for (int i = 0; i < 3000; i++) {
        switch (rnd_below(&seed, 6)) {
        case 0:
        case 1: {
            const struct state *s = recent();

            must_ok(xbeginQueryAt(XAC_AT_COMMIT(s->number)));
            must_eq(xac_position(), s->number);
            must_be(x, s);
            break;
        }
        case 2:
            diff(x, recent(), recent());
            break;
        case 3:
            must_ok(xbeginQuery());
            must_be(x, &states[n_states - 1]);
            if (rnd_below(&seed, 50) == 0)
                must_ok(xCheckpoint());
            break;
        default:
            change(x);
        }
    }
    detach(companion);
    for (uint64_t p = 0; p < N_PAGES; p++)
        must_eq(file_u64(ENV_FILE, p * env_page()), states[n_states - 1].value[p]);
}
END_TEST

/* ---- by time ---------------------------------------------------------------------------------- */

START_TEST(state_of_a_time)
{
    pid_t companion;
    uint64_t *x = attach(_i, 3600, &companion);

    for (int i = 0; i < 200; i++)
        change(x);
    proc_sleep_us(2000);
    {
        uint64_t between = now_ns();
        const struct state *last = &states[n_states - 1];

        proc_sleep_us(2000);
        for (int i = 0; i < 50; i++)
            change(x);
        must_ok(xbeginQueryAt(XAC_AT_TIME(between)));
        must_eq(xac_position(), last->number);
        must_be(x, last);
        must_ok(xbeginQueryAt(XAC_AT_TIME(now_ns() + 1000000000)));
        must_be(x, &states[n_states - 1]);
    }
    must_refuse(xbeginQueryAt(XAC_AT_TIME(states[0].ended_ns - 3600 * 1000000000ull)),
                XAC_ENOSTATE);
    detach(companion);
}
END_TEST

/* ---- behind the window -------------------------------------------------------------------------- */

START_TEST(older_states_are_refused_and_freed)
{
    static const uint64_t windows[] = {XAC_HISTORY_COMMITS(100),
                                       XAC_HISTORY_BYTES(100 * 4096), 1};
    pid_t companion;
    uint64_t *x = attach(_i % 4, windows[_i / 4], &companion), oldest = 0;
    const char *words;

    for (int i = 0; i < 1000; i++) {
        change(x);
        if (windows[_i / 4] == 1 && i == 500)
            proc_sleep_us(1200000);
    }
    must_refuse(xbeginQueryAt(XAC_AT_COMMIT(states[1].number)), XAC_ENOSTATE);
    words = strstr(xLastError(), "the oldest one is that of commit ");
    must(words != NULL
         && sscanf(words, "the oldest one is that of commit %" SCNu64, &oldest) == 1);
    must(oldest > states[windows[_i / 4] == 1 ? 1 : 100].number);
    must_refuse(xbeginQueryAt(XAC_AT_COMMIT(oldest - 1)), XAC_ENOSTATE);
    must_ok(xbeginQueryAt(XAC_AT_COMMIT(oldest)));
    must_eq(xac_position(), oldest);
    must_ok(xendQuery());
    must_refuse(xbeginQueryAt(XAC_AT_TIME(states[1].ended_ns)), XAC_ENOSTATE);
    must_refuse(xDiff(XAC_AT_COMMIT(1), XAC_AT_COMMIT(oldest), see, NULL), XAC_ENOSTATE);
    must_refuse(xDiff(XAC_AT_COMMIT(oldest), XAC_AT_COMMIT(1), see, NULL), XAC_ENOSTATE);
    if (windows[_i / 4] != 1) {
        must_ok(xCheckpoint());
        must(env_stats().versions_live < 500);
    }
    detach(companion);
}
END_TEST

static int
stop(void *arg, const struct xac_change *c)
{
    (void)c;
    ++*(int *)arg;
    return 77;
}

START_TEST(misuse_is_refused)
{
    uint64_t *x, id;
    int n = 0;

    must_refuse(xDiff(0, 0, stop, &n), XAC_ENOINIT);
    x = env_attach(NONDURABLE, N_PAGES);
    must_refuse(xSetOption(XAC_OPT_HISTORY, 1), EBUSY);
    must_refuse(xbeginQueryAt(XAC_AT_COMMIT(0)), XAC_ENOSTATE);
    must_refuse(xbeginQueryAt(XAC_AT_TIME(now_ns())), XAC_ENOSTATE);
    must_ok(xSnapshot(&id)); /* without a history snapshots can be compared */
    env_put(env_cell(x, 2), 5);
    env_put(env_cell(x, 3), 5);
    must_refuse(xDiff(id, id, NULL, NULL), EINVAL);
    must_ok(xDiff(id, id, stop, &n));
    must_eq(n, 0);
    {
        uint64_t other;

        must_ok(xSnapshot(&other));
        must_rc(xDiff(id, other, stop, &n), 77);
        must_eq(n, 1);
        must_ok(xbegin());
        must_refuse(xDiff(id, other, stop, &n), XAC_EINTXN);
        must_ok(xAbort());
        must_rc(xend(), ABORTED);
    }
    env_detach();
    must_ok(xSetOption(XAC_OPT_HISTORY, 60));
    x = env_attach(NONDURABLE, N_PAGES);
    env_put(env_cell(x, 2), 6);
    must_refuse(xbeginQueryAt(XAC_AT_COMMIT(1000)), XAC_ENOSTATE);
    must_refuse(xbeginQueryAt(XAC_AT_COMMIT(xac_position() + 1)), XAC_ENOSTATE);
    must_refuse(xbeginQueryAt(UINT64_C(3) << 62), XAC_ENOSTATE);
    must_ok(xbeginQueryAt(XAC_AT_COMMIT(0)));
    must_eq(*(volatile uint64_t *)env_cell(x, 2), 5);
    must_ok(xendQuery());
    env_detach();
    must_eq(file_u64(ENV_FILE, 2 * env_page()), 6); /* the history has not held it back */
}
END_TEST

/* A child asks for the states of its parent's past. */
static void
ask(void *arg)
{
    uint64_t *x = *(uint64_t **)arg;

    must_ok(xbeginQueryAt(XAC_AT_COMMIT(states[40].number)));
    must_be(x, &states[40]);
    diff(x, &states[10], &states[90]);
}

START_TEST(child_sees_the_same_past)
{
    pid_t companion;
    uint64_t *x = attach(0, 3600, &companion);

    for (int i = 0; i < 100; i++)
        change(x);
    proc_run(ask, &x);
    detach(companion);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("check_past");
    TCase *tc = env_tcase(s, "past", 120);

    tcase_add_loop_test(tc, each_state_of_the_window_is_there, 0, WAYS);
    tcase_add_loop_test(tc, state_of_a_time, 0, 4);
    tcase_add_loop_test(tc, older_states_are_refused_and_freed, 0, 12);
    tcase_add_test(tc, misuse_is_refused);
    tcase_add_test(tc, child_sees_the_same_past);
    return s;
}

int
main(void)
{
    return env_main(suite());
}
