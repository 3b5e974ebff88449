/* SPDX-License-Identifier: MIT */
/*
 * check_rename_stop.c -- a process is stopped (SIGSTOP) while another one removes or renames files.
 *
 * GOAL    Nothing is lost or mixed up, and nobody waits for the stopped process: the call succeeds, or says
 *         who is in the way.  When the process goes on, it sees what its transaction or query has begun with,
 *         and files by the names that they have now.
 * METHOD  Each page of a file holds one number.  The victim stops itself in a transaction, in a query, or outside of
 *         both; or it is stopped at random moments while it renames a file itself.
 *
 * XAC_STOPS=n: random moments (20).
 */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/env.h"

#define PAGES   8u
#define WAIT_MS 300

/* Numbers: at first, stored by the one that goes on, added by the victim; of another file of that name. */
#define FIRST   7u
#define STORED  9u
#define ADDED   63u
#define ANOTHER 5u

enum place {
    IN_TXN,       /* that has stored to both files                                     */
    IN_QUERY,     /* that has read one page of each                                    */
    IN_OTHER_TXN, /* that knows nothing of the file                                    */
    IN_OTHER_QUERY,
    OUTSIDE, /* the file is not mapped any more                                        */
    N_PLACES
};

struct plan {
    enum place place;
    int flags;
    uint64_t policy;
    bool is_removal;
};

static struct board {
    _Atomic uint64_t ready, go, done, next, end;
} * board;

static void
setup(void)
{
    env_setup();
    board = (struct board *)proc_shared(sizeof *board);
}

/* plan_of -- by the number of a loop. */
static struct plan
plan_of(int i)
{
    return (struct plan){.place = (enum place)(i / 8),
                         .flags = (i & 1) == 0 ? DURABLE : NONDURABLE,
                         .policy =
                             (i & 2) == 0 ? XAC_POLICY_SERIAL : XAC_POLICY_OLDEST_WINS,
                         .is_removal = (i & 4) != 0};
}

static uint64_t *
map(const char *name)
{
    uint64_t *x = (uint64_t *)xMmap(name, PAGES * env_page());

    if (x == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "mapping %s: %s", name, xLastError());
    return x;
}

/* store -- into all pages of a file that is mapped, in one transaction. */
static void
store(uint64_t *x, uint64_t value)
{
    int rc;

    do {
        must_ok(xbegin());
        for (unsigned p = 0; p < PAGES; p++)
            *env_cell(x, p) = value;
    } while ((rc = xend()) == ABORTED);
    must_rc(rc, COMMITTED);
}

static void
must_hold(uint64_t *x, uint64_t value)
{
    must_ok(xbeginQuery());
    for (unsigned p = 0; p < PAGES; p++)
        must_eq(*env_cell(x, p), value);
    must_ok(xendQuery());
}

/* put, must_have -- the same with a file that is mapped for it. */
static void
put(const char *name, uint64_t value)
{
    store(map(name), value);
    must_ok(xMunmap(name));
}

static void
must_have(const char *name, uint64_t value)
{
    must_hold(map(name), value);
    must_ok(xMunmap(name));
}

/* ---- Stopped at a place ------------------------------------------------------------------- */

/* stop_in_txn -- one that adds to b, and to a if that is mapped; somebody else stores to them meanwhile. */
static void
stop_in_txn(uint64_t *a, uint64_t *b)
{
    int rc = ABORTED;
    int n = 0;

    for (; rc == ABORTED; n++) {
        must_ok(xbegin());
        for (unsigned p = 0; p < PAGES; p++) {
            *env_cell(b, p) += ADDED;
            if (a != NULL)
                *env_cell(a, p) += ADDED;
        }
        if (n == 0)
            (void)raise(SIGSTOP);
        rc = xend();
    }
    must_rc(rc, COMMITTED);
    must(n > 1);
}

static void
stop_in_query(uint64_t *a, uint64_t *b)
{
    must_ok(xbeginQuery());
    must_eq(*b, FIRST);
    if (a != NULL)
        must_eq(*a, FIRST);
    (void)raise(SIGSTOP);
    for (unsigned p = 0; p < PAGES; p++) {
        must_eq(*env_cell(b, p), FIRST);
        if (a != NULL)
            must_eq(*env_cell(a, p), FIRST);
    }
    must_ok(xendQuery());
}

/* last_of -- a file in the end, to which the victim has added or not. */
static uint64_t
last_of(const struct plan *p, bool is_added)
{
    if (p->place == OUTSIDE)
        return FIRST;
    return is_added ? STORED + ADDED : STORED;
}

static void
run_victim(void *arg)
{
    const struct plan *p = (const struct plan *)arg;
    uint64_t *a, *b;

    must_ok(xSetOption(XAC_OPT_POLICY, p->policy));
    env_init(p->flags);
    a = map("a");
    b = map("b");
    store(a, FIRST);
    store(b, FIRST);
    if (p->place != IN_TXN && p->place != IN_QUERY) {
        must_ok(xMunmap("a"));
        a = NULL;
    }
    if (p->place == OUTSIDE)
        (void)raise(SIGSTOP);
    else if (p->place == IN_TXN || p->place == IN_OTHER_TXN)
        (void)stop_in_txn(a, b);
    else
        stop_in_query(a, b);
    if (a != NULL)
        must_ok(xMunmap("a"));
    word_store(&board->done, 1);
    proc_await(&board->next, 1, 60);
    /* Files by the names that they have now. */
    must_have("a", ANOTHER);
    if (!p->is_removal)
        must_have("c", last_of(p, p->place == IN_TXN));
    must_ok(xShutdown());
}

/* await_stop -- ret when it is stopped. */
static void
await_stop(pid_t pid)
{
    siginfo_t si;

    must_eq(waitid(P_PID, (id_t)pid, &si, WSTOPPED), 0);
    must_eq(si.si_code, CLD_STOPPED);
}

static int
change(const struct plan *p)
{
    return p->is_removal ? xRemove("a") : xRename("a", "c");
}

/* go_on_beside -- what can be done while the victim lies there. */
static void
go_on_beside(const struct plan *p, pid_t victim)
{
    char who[64];
    int rc;

    (void)snprintf(who, sizeof who, "mapped by process %d", (int)victim);
    if (p->place == OUTSIDE) {
        must_ok(change(p));
        return;
    }
    put("a", STORED);
    put("b", STORED);
    rc = change(p);
    must_eq(rc, EBUSY);
    if (p->place == IN_TXN || p->place == IN_QUERY)
        must(strstr(xLastError(), who) != NULL);
    else
        must(strstr(xLastError(), "stay for a query or transaction") != NULL);
    must_have("a", STORED); /* it is where it was */
    must(!file_exists("c"));
}

START_TEST(others_do_not_wait)
{
    struct plan p = plan_of(_i);
    pid_t victim = proc_spawn(run_victim, &p);

    await_stop(victim);
    must_ok(xSetOption(XAC_OPT_POLICY, p.policy));
    env_init(p.flags);
    go_on_beside(&p, victim);
    must_eq(kill(victim, SIGCONT), 0);
    proc_await(&board->done, 1, 60);
    if (p.place != OUTSIDE)
        must_ok(change(&p));
    must(!file_exists("a"));
    must_eq(file_exists("c"), !p.is_removal);
    put("a", ANOTHER); /* another one */
    word_store(&board->next, 1);
    proc_join(victim);
    must_have("a", ANOTHER);
    must_have("b", last_of(&p, p.place == IN_TXN || p.place == IN_OTHER_TXN));
    must_ok(xShutdown());
}
END_TEST

/* ---- Stopped at random moments ------------------------------------------------------------- */

static void
rename_again_and_again(void *arg)
{
    int rc;

    env_init(*(const int *)arg);
    put("a", FIRST);
    word_store(&board->ready, 1);
    while (word_load(&board->end) == 0) {
        rc = xRename("a", "c");
        must(rc == 0 || rc == EBUSY); /* beside a transaction of the other one */
        if (rc != 0)
            continue;
        while ((rc = xRename("c", "a")) != 0)
            must_eq(rc, EBUSY);
    }
    must_ok(xShutdown());
}

/* add -- to all pages; what is not certain is counted in *unsurep. */
static uint64_t
add(uint64_t *b, uint64_t *unsurep)
{
    int rc = xbegin();

    if (rc == ETIMEDOUT)
        return 0;
    must_ok(rc);
    for (unsigned p = 0; p < PAGES; p++)
        *env_cell(b, p) += 1;
    rc = xend();
    must(rc == COMMITTED || rc == ABORTED || rc == ETIMEDOUT || rc == XAC_EUNCERTAIN);
    *unsurep += rc == XAC_EUNCERTAIN;
    return rc == COMMITTED;
}

START_TEST(stopped_while_it_renames)
{
    uint64_t seed = env_seed(), n = 0, unsure = 0, n_stops = env_number("XAC_STOPS", 20);
    int flags = _i == 0 ? DURABLE : NONDURABLE;
    pid_t victim = proc_spawn(rename_again_and_again, &flags);
    uint64_t *b;

    proc_await(&board->ready, 1, 60);
    must_ok(xSetOption(XAC_OPT_WAIT_MS, WAIT_MS));
    env_init(flags);
    b = map("b");
    for (uint64_t i = 0; i < n_stops; i++) {
        proc_sleep_us(rnd_below(&seed, 5000));
        must_eq(kill(victim, SIGSTOP), 0);
        await_stop(victim);
        n += add(b, &unsure);
        must_eq(kill(victim, SIGCONT), 0);
        n += add(b, &unsure);
    }
    word_store(&board->end, 1);
    proc_join(victim);
    must(n > 0);
    must(env_get(b) >= n && env_get(b) <= n + unsure);
    must_hold(b, env_get(b));
    must(file_exists("a") && !file_exists("c"));
    must_have("a", FIRST);
    must_ok(xShutdown());
    if (flags == DURABLE) {
        must_ok(xRecover(ENV_DIR));
        must_eq(file_u64("a", (PAGES - 1) * env_page()), FIRST);
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("rename_stop");
    TCase *tc = env_tcase_with(s, "rename_stop", 120, setup);

    tcase_add_loop_test(tc, others_do_not_wait, 0, 8 * N_PLACES);
    tcase_add_loop_test(tc, stopped_while_it_renames, 0, 2);
    return env_main(s);
}
