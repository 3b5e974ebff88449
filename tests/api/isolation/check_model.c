/* SPDX-License-Identifier: MIT */
/*
 * check_model.c -- sentences of doc/memory-model.md that no other test checks.
 *
 * GOAL    under every policy: one state inside any transaction (those that go on to abort
 *         included), real-time order between processes, no lost neighbours within a page,
 *         locals that keep what a failed attempt stored; a bounded number of attempts under
 *         the optimistic one; nothing is acknowledged before what it rests on is durable.
 * METHOD  a few processes for a while, with an invariant that each of them checks.  Two
 *         processes step by step are in check_model_steps.c.
 *
 * XAC_SECONDS=n  of each such run under each policy (0.6)
 */
#include <config.h>

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>

#include "check_model.h"

static const char *const policy_name[N_POLICIES] = {
    "oldest-wins", "self-abort", "selfish", "youngest-wins", "optimistic", "serial",
};

struct board *board;

void
set_policy(int policy)
{
    board = proc_shared(sizeof *board);
    must_ok(xSetOption(XAC_OPT_POLICY, (uint64_t)policy));
}

volatile uint64_t *
cell(void *base, size_t page, size_t word)
{
    return (uint64_t *)base + page * (env_page() / sizeof(uint64_t)) + word;
}

void
start_together(uint64_t n)
{
    word_add(&board->ready, 1);
    proc_await(&board->ready, n, 30);
}

/* back_off -- a random moment, for policies that leave this to the program. */
static void
back_off(uint64_t *rnd)
{
    proc_sleep_us(rnd_below(rnd, 200));
}

bool
is_over(void)
{
    return word_load(&board->stop) != 0;
}

/* A process of a run: what it does is its function, `number` says who it is. */
struct actor {
    int number;
    int mode;
};

/*
 * run_for_a_while -- n processes, each with a function of its own, for XAC_SECONDS, and
 * until each has committed and number `aborts`, unless that is negative, has aborted.
 */
static void
run_for_a_while(void (*const *fn)(void *), int n, int mode, int aborts)
{
    uint64_t seconds = env_number("XAC_SECONDS", 0);
    struct actor a[4];
    pid_t pid[4];

    for (int i = 0; i < n; i++) {
        a[i] = (struct actor){.number = i, .mode = mode};
        pid[i] = proc_spawn(fn[i], &a[i]);
    }
    proc_await(&board->ready, (uint64_t)n, 30);
    proc_sleep_us(seconds > 0 ? 1000000 * seconds : 600000);
    for (int i = 0; i < n; i++)
        proc_await(&board->commits[i], 1, 20);
    if (aborts >= 0)
        proc_await(&board->aborts[aborts], 1, 20);
    word_store(&board->stop, 1);
    for (int i = 0; i < n; i++)
        proc_join(pid[i]);
}

/* ---- One state, under every policy --------------------------------------------------- */

#define ACCOUNTS 6
#define EACH     1000

static void
must_balance(void *x, uint64_t first, const char *who)
{
    uint64_t total = 0;

    for (uint64_t i = 0; i < ACCOUNTS; i++)
        total += *cell(x, (first + i) % ACCOUNTS, 0);
    if (total != ACCOUNTS * EACH)
        env_fail(__FILE__, __LINE__, "%s saw a total of %" PRIu64, who, total);
}

/* transfer -- once; some give up by themselves; all look around before and after. */
static int
transfer(void *x, uint64_t *rnd)
{
    uint64_t from = rnd_below(rnd, ACCOUNTS), to = rnd_below(rnd, ACCOUNTS);
    uint64_t amount = rnd_below(rnd, 50);
    bool gives_up = rnd_below(rnd, 16) == 0;
    int rc;

    must_ok(xbegin());
    if (rnd_below(rnd, 2) == 0)
        must_balance(x, to, "a transaction that has not stored yet");
    *cell(x, from, 0) -= amount;
    sched_yield();
    *cell(x, to, 0) += amount;
    if (gives_up)
        must_ok(xAbort());
    must_balance(x, from, xValidate() == FAILED ? "a failed one" : "a pending one");
    sched_yield();
    must_balance(x, to, xValidate() == FAILED ? "a failed one" : "a pending one");
    rc = xend();
    must(rc == ABORTED || (rc == COMMITTED && !gives_up));
    return rc;
}

static void
teller(void *arg)
{
    const struct actor *me = arg;
    uint64_t rnd = env_seed() + (uint64_t)me->number;
    void *x = env_attach(me->mode, ACCOUNTS);

    start_together(3);
    while (!is_over()) {
        if (transfer(x, &rnd) == COMMITTED) {
            word_add(&board->commits[me->number], 1);
        } else {
            word_add(&board->aborts[me->number], 1);
            back_off(&rnd);
        }
        must_ok(xbeginQuery());
        must_balance(x, rnd_below(&rnd, ACCOUNTS), "a query");
        must_ok(xendQuery());
    }
    env_detach();
}

START_TEST(totals_are_constant_under_every_policy)
{
    static void (*const tellers[])(void *) = {teller, teller, teller};
    uint64_t commits = 0, aborts = 0, total = 0;
    void *x;

    set_policy(_i);
    x = env_attach(NONDURABLE, ACCOUNTS);
    must_ok(xbegin());
    for (size_t i = 0; i < ACCOUNTS; i++)
        *cell(x, i, 0) = EACH;
    must_rc(xend(), COMMITTED);
    env_detach();
    run_for_a_while(tellers, 3, NONDURABLE, 0);
    for (int i = 0; i < 3; i++) {
        commits += word_load(&board->commits[i]);
        aborts += word_load(&board->aborts[i]);
    }
    printf("%s: %" PRIu64 " transfers, %" PRIu64 " aborted\n", policy_name[_i], commits,
           aborts);
    for (size_t i = 0; i < ACCOUNTS; i++)
        total += file_u64(ENV_FILE, i * env_page());
    must_eq(total, ACCOUNTS * EACH);
}
END_TEST

/* ---- Real time ----------------------------------------------------------------------- */

/* Stores 1, 2, 3 ... in two pages; says so before in ordinary memory, and after. */
static void
count_up(void *arg)
{
    const struct actor *me = arg;
    uint64_t rnd = env_seed();
    void *x = env_attach(me->mode, 2);
    int rc;

    start_together(3);
    for (uint64_t v = 1; !is_over(); v++) {
        atomic_store_explicit(&board->announced, v, memory_order_relaxed);
        for (;;) {
            must_ok(xbegin());
            *cell(x, 0, 0) = v;
            *cell(x, 1, 0) = v;
            rc = xend();
            if (rc == COMMITTED)
                break;
            must_rc(rc, ABORTED);
            if (is_over())
                goto out;
            back_off(&rnd);
        }
        word_store(&board->acked, v);
        word_add(&board->commits[me->number], 1);
    }
out:
    env_detach();
}

static void
raise_to(_Atomic uint64_t *word, uint64_t value)
{
    uint64_t old = word_load(word);

    while (old < value
           && !atomic_compare_exchange_weak_explicit(word, &old, value,
                                                     memory_order_acq_rel,
                                                     memory_order_acquire))
        ;
}

/* Whatever had ended before our begin must show: commits, and what others have read. */
static void
observe(void *arg)
{
    const struct actor *me = arg;
    bool is_query = me->number == 1;
    uint64_t rnd = env_seed() + (uint64_t)me->number;
    void *x = env_attach(me->mode, 2);

    start_together(3);
    while (!is_over()) {
        uint64_t acked = word_load(&board->acked), seen = word_load(&board->seen);
        uint64_t v;
        int rc;

        must_ok(is_query ? xbeginQuery() : xbegin());
        v = *cell(x, rnd_below(&rnd, 2), 0);
        sched_yield();
        must_eq(*cell(x, 0, 0), v);
        must_eq(*cell(x, 1, 0), v);
        rc = is_query ? xendQuery() : xend();
        must(rc == COMMITTED || (rc == ABORTED && !is_query));
        if (v < acked || v < seen)
            env_fail(__FILE__, __LINE__,
                     "saw %" PRIu64 " after %" PRIu64 " was committed and %" PRIu64
                     " seen",
                     v, acked, seen);
        must(atomic_load_explicit(&board->announced, memory_order_relaxed) >= v);
        raise_to(&board->seen, v);
        word_add(rc == ABORTED ? &board->aborts[me->number] : &board->commits[me->number],
                 1);
        back_off(&rnd);
    }
    env_detach();
}

START_TEST(real_time_order_holds_between_processes)
{
    static void (*const actors[])(void *) = {count_up, observe, observe};
    int policy = _i % N_POLICIES, mode = _i < N_POLICIES ? NONDURABLE : DURABLE;

    set_policy(policy);
    run_for_a_while(actors, 3, mode, -1);
    printf("%s%s: %" PRIu64 " commits, %" PRIu64 " queries, %" PRIu64 " readers, %" PRIu64
           " aborted\n",
           policy_name[policy], mode == DURABLE ? ", durable" : "",
           word_load(&board->commits[0]), word_load(&board->commits[1]),
           word_load(&board->commits[2]), word_load(&board->aborts[2]));
}
END_TEST

/* ---- Bytes of one page --------------------------------------------------------------- */

#define ROUNDS 1000
#define BYTES  20 /* of each of two processes, in turn */

static void
count_bytes(void *arg)
{
    const struct actor *me = arg;
    uint64_t rnd = env_seed() + (uint64_t)me->number;
    unsigned char *x = env_attach(me->mode, 1);

    start_together(2);
    for (size_t i = 0; i < ROUNDS; i++) {
        unsigned char *at;
        int rc;

        for (;;) {
            must_ok(xbegin());
            at = &x[i % BYTES * 2 + (size_t)me->number];
            if (i % 3 == 0)
                __atomic_fetch_add(at, 1, __ATOMIC_RELAXED);
            else
                ++*(volatile unsigned char *)at;
            if (i % 4 == 0)
                sched_yield();
            rc = xend();
            if (rc == COMMITTED)
                break;
            must_rc(rc, ABORTED);
            word_add(&board->aborts[me->number], 1);
            back_off(&rnd);
        }
    }
    env_detach();
}

START_TEST(neighbours_on_a_page_survive)
{
    struct actor a[2] = {{.number = 0}, {.number = 1}};
    unsigned char page[2 * BYTES];
    pid_t pid[2];

    set_policy(_i);
    for (int i = 0; i < 2; i++)
        pid[i] = proc_spawn(count_bytes, &a[i]);
    for (int i = 0; i < 2; i++)
        proc_join(pid[i]);
    printf("%s: 2 x %d bytes, %" PRIu64 " and %" PRIu64 " aborts\n", policy_name[_i],
           ROUNDS, word_load(&board->aborts[0]), word_load(&board->aborts[1]));
    file_read(ENV_FILE, 0, page, sizeof page);
    for (size_t i = 0; i < sizeof page; i++)
        must_eq(page[i], ROUNDS / BYTES);
}
END_TEST

/* ---- More pages than can be kept apart ----------------------------------------------- */

#define MANY 24000 /* pages; every other one is touched by the large transaction */

static void
count_odd_pages(void *arg)
{
    void *x = env_attach(NONDURABLE, MANY);
    uint64_t rnd = env_seed();

    (void)arg;
    start_together(2);
    for (uint64_t i = 0; !is_over(); i++) {
        must_ok(xbegin());
        ++*cell(x, 1 + 2 * (i % 50), 0);
        if (xend() == COMMITTED)
            word_add(&board->count, 1);
        back_off(&rnd);
    }
    env_detach();
}

START_TEST(neighbours_of_very_many_pages_survive)
{
    uint64_t sum = 0, attempts = 0;
    pid_t child;
    void *x;
    int rc;

    set_policy(XAC_POLICY_OLDEST_WINS);
    child = proc_spawn(count_odd_pages, NULL);
    x = env_attach(NONDURABLE, MANY);
    start_together(2);
    proc_await(&board->count, 1, 20);
    do {
        attempts++;
        must_ok(xbegin());
        for (size_t p = 0; p < MANY; p += 2)
            *cell(x, p, 0) = p + 1;
        rc = xend();
    } while (rc == ABORTED);
    must_rc(rc, COMMITTED);
    word_store(&board->stop, 1);
    proc_join(child);
    must_ok(xbeginQuery());
    for (size_t p = 0; p < MANY; p += 2)
        must_eq(*cell(x, p, 0), p + 1);
    for (size_t p = 1; p < MANY; p += 2)
        sum += *cell(x, p, 0);
    must_ok(xendQuery());
    must_eq(sum, word_load(&board->count));
    printf("%d pages, committed by attempt %" PRIu64 ", beside %" PRIu64 " commits\n",
           MANY / 2, attempts, sum);
    env_detach();
}
END_TEST

/* ---- Local variables (Thesis 2.2, case 3) -------------------------------------------- */

static void
count_down(void *arg)
{
    const struct actor *me = arg;
    uint64_t rnd = env_seed() + 1;
    void *x = env_attach(me->mode, 1);

    start_together(2);
    while (!is_over()) {
        must_ok(xbegin());
        --*cell(x, 0, 0);
        proc_sleep_us(20);
        if (xend() == COMMITTED)
            word_add(&board->commits[0], 1);
        back_off(&rnd);
    }
    env_detach();
}

/* The first program of figure 2-4, with its names, again and again. */
static void
keep_count_in_locals(void *arg)
{
    const struct actor *me = arg;
    uint64_t a = 0, b = 0, y = 0, z = 0, returns = 0;
    uint64_t rnd = env_seed();
    void *mapped = env_attach(me->mode, 1);
    volatile uint64_t *x = cell(mapped, 0, 0);

    start_together(2);
    while (!is_over()) {
        int rc;

        a++;
        must_ok(xbegin());
        b += x[0];
        y++;
        x[0]++;
        if (a % 8 == 0)
            proc_sleep_us(20);
        z += x[0] - 1;
        rc = xend();
        returns++;
        must(rc == COMMITTED || rc == ABORTED);
        must_eq(a, y);
        must_eq(a, returns);
        must_eq(b, z);
        word_add(rc == COMMITTED ? &board->commits[1] : &board->aborts[1], 1);
        if (rc == ABORTED || a % 8 == 0)
            back_off(&rnd);
    }
    env_detach();
}

START_TEST(locals_keep_what_failed_attempts_stored)
{
    static void (*const actors[])(void *) = {count_down, keep_count_in_locals};
    uint64_t up, down;

    set_policy(_i);
    run_for_a_while(actors, 2, NONDURABLE, 1);
    up = word_load(&board->commits[1]);
    down = word_load(&board->commits[0]);
    printf("%s: %" PRIu64 " up, %" PRIu64 " down, %" PRIu64 " aborted\n", policy_name[_i],
           up, down, word_load(&board->aborts[1]));
    must(file_u64(ENV_FILE, 0) == up - down);
}
END_TEST

/* ---- The optimistic turn ------------------------------------------------------------- */

#define LONG_PAGES 8

static void
pester(void *arg)
{
    const struct actor *me = arg;
    void *x = env_attach(me->mode, LONG_PAGES);

    start_together(3);
    for (size_t p = 0; !is_over(); p++) {
        must_ok(xbegin());
        ++*cell(x, p % LONG_PAGES, (size_t)me->number);
        if (xend() == COMMITTED)
            word_add(&board->commits[me->number], 1);
    }
    env_detach();
}

static void
take_long(void *arg)
{
    const struct actor *me = arg;
    void *x = env_attach(me->mode, LONG_PAGES);
    uint64_t most = 0;

    start_together(3);
    while (!is_over()) {
        uint64_t attempts = 0;
        int rc;

        do {
            attempts++;
            must_ok(xbegin());
            for (size_t p = 0; p < LONG_PAGES; p++) {
                ++*cell(x, p, 2);
                proc_sleep_us(100);
            }
            rc = xend();
        } while (rc == ABORTED);
        must_rc(rc, COMMITTED);
        word_add(&board->commits[2], 1);
        most = attempts > most ? attempts : most;
    }
    printf("at most %" PRIu64 " attempts\n", most);
    must(most > 1 && most <= 8);
    env_detach();
}

START_TEST(optimistic_loser_gets_the_turn)
{
    static void (*const actors[])(void *) = {pester, pester, take_long};

    set_policy(XAC_POLICY_OPTIMISTIC);
    run_for_a_while(actors, 3, NONDURABLE, -1);
    printf("%" PRIu64 " and %" PRIu64 " short ones, %" PRIu64 " long ones\n",
           word_load(&board->commits[0]), word_load(&board->commits[1]),
           word_load(&board->commits[2]));
    for (size_t p = 0; p < LONG_PAGES; p++)
        must_eq(file_u64(ENV_FILE, p * env_page() + 16), word_load(&board->commits[2]));
}
END_TEST

/* ---- Durable: acknowledged is on disk ------------------------------------------------ */

#define VALUES 65536

static _Atomic uint64_t *log_before; /* shared: end of the log before value v          */

static uint64_t
log_durable(void)
{
    struct xac_stats s;

    must_ok(xStats(&s, sizeof s));
    return s.log_durable;
}

static void
write_values(void *arg)
{
    void *x = env_attach(DURABLE, 1);
    int rc;

    (void)arg;
    start_together(3);
    for (uint64_t v = 1; v < VALUES && !is_over(); v++) {
        struct xac_stats s;

        must_ok(xStats(&s, sizeof s));
        word_store(&log_before[v], s.log_tail);
        do {
            must_ok(xbegin());
            *cell(x, 0, 0) = v;
            rc = xend();
        } while (rc == ABORTED);
        must_rc(rc, COMMITTED);
        must(log_durable() > s.log_tail);
        word_add(&board->commits[0], 1);
    }
    env_detach();
}

/* The value's block lies behind where the log ended before it; is that on disk? */
static void
read_values(void *arg)
{
    const struct actor *me = arg;
    bool is_query = me->number == 1;
    void *x = env_attach(DURABLE, 1);

    start_together(3);
    while (!is_over()) {
        bool was_early;
        uint64_t v;
        int rc;

        must_ok(is_query ? xbeginQuery() : xbegin());
        v = *cell(x, 0, 0);
        was_early = v > 0 && log_durable() <= word_load(&log_before[v]);
        rc = is_query ? xendQuery() : xend();
        if (rc == ABORTED || v == 0)
            continue;
        must_ok(rc);
        if (log_durable() <= word_load(&log_before[v]))
            env_fail(__FILE__, __LINE__,
                     "%s of value %" PRIu64 " ended before it was "
                     "on disk",
                     is_query ? "query" : "transaction", v);
        word_add(&board->commits[me->number], 1);
        word_add(&board->aborts[me->number], was_early);
    }
    env_detach();
}

START_TEST(ends_wait_for_what_was_read)
{
    static void (*const actors[])(void *) = {write_values, read_values, read_values};

    set_policy(_i == 0 ? XAC_POLICY_OLDEST_WINS : XAC_POLICY_OPTIMISTIC);
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    log_before = proc_shared(VALUES * sizeof *log_before);
    run_for_a_while(actors, 3, DURABLE, -1);
    printf("%" PRIu64 " commits; %" PRIu64 " queries and %" PRIu64 " readers, %" PRIu64
           " and %" PRIu64 " saw a value before it was on disk\n",
           word_load(&board->commits[0]), word_load(&board->commits[1]),
           word_load(&board->commits[2]), word_load(&board->aborts[1]),
           word_load(&board->aborts[2]));
}
END_TEST

static Suite *
model_suite(void)
{
    Suite *s = suite_create("model");
    TCase *tc = env_tcase(s, "runs", 60);

    tcase_add_loop_test(tc, totals_are_constant_under_every_policy, 0, N_POLICIES);
    tcase_add_loop_test(tc, real_time_order_holds_between_processes, 0, N_POLICIES + 1);
    tcase_add_loop_test(tc, neighbours_on_a_page_survive, 0, N_POLICIES);
    tcase_add_loop_test(tc, locals_keep_what_failed_attempts_stored, 0, N_OVERLAPPING);
    tcase_add_test(tc, optimistic_loser_gets_the_turn);
    tcase_add_test(tc, neighbours_of_very_many_pages_survive);
    tcase_add_loop_test(tc, ends_wait_for_what_was_read, 0, 2);
    add_step_tests(s);
    return s;
}

int
main(void)
{
    return env_main(model_suite());
}
