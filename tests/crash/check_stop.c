/* SPDX-License-Identifier: MIT */
/*
 * check_stop.c -- a process is stopped (SIGSTOP), or killed, where it is in the way: others
 * go on, under every policy.
 *
 * Three processes commit as fast as they can.  Worker `hot` and the victim add to the same
 * counter, worker `own` only to one of its own.  Then the victim stops, or dies,
 *
 *   in a transaction   that has stored to the shared counter,
 *   has the turn     (optimistic) after it has lost several races in a row,
 *   at a point         of its commit (xac_kill_point, debug builds),
 *   anywhere           at random moments of normal work.
 *
 * Both workers must commit while it lies there (but where it holds the publish lock,
 * libxac/README.md), everybody must go on afterwards, and the counters must add up to what
 * was acknowledged.  Nothing is asserted of how fast; that is printed: commits per second
 * before, during and after, the longest time without a commit, and the most retries.
 *
 * XAC_STOP_SECONDS=10   of each phase (0.3; 0.03 at points)
 * XAC_LONG=1       points under every policy (oldest-wins and optimistic)
 * XAC_STOPS=200    at random moments, for each policy (20)
 */
#include <config.h>

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/env.h"
#include "base/annot.h"

enum {
    HOT,
    OWN,
    VICTIM,
    N_WORKERS
};

enum phase {
    BEFORE,
    DURING,
    AFTER,
    N_PHASES
};

#define N_POLICIES 6

/* Pages: the counter of HOT and VICTIM, then one for each worker. */
#define N_PAGES (1 + N_WORKERS)

/* Commits that each worker must get done whatever its speed, and a time that only a
   worker that hangs needs. */
#define COMMITS_AT_LEAST 10u
#define HANG_S           10.0

/* Attempts of the victim to hold a page, before it takes what it gets. */
#define HOLD_RETRIES 50u

/* Where the victim stops or dies. */
struct place {
    const char *name;
    const char *point; /* kill point, or NULL: in a transaction                        */
    bool has_turn;     /* optimistic: has the turn                                      */
    bool holds_lock;   /* publish: others wait for a stopped one                       */
    bool eager_only;   /* met only where conflicts are decided at once                 */
    bool serial_only;  /* always met only under the serial policy                      */
    bool loses_turn;   /* serial: a stop there costs the victim one abort               */
};

/* What the processes tell each other. */
struct board {
    _Atomic uint64_t commits[N_WORKERS];
    _Atomic uint64_t retries[N_WORKERS]; /* most of one transaction, since last asked  */
    _Atomic uint64_t aborts[N_WORKERS];
    _Atomic uint64_t end;           /* everybody shuts down                       */
    _Atomic uint64_t order;         /* the victim goes to its place               */
    _Atomic uint64_t held;          /* it is there                                */
    _Atomic uint64_t release;       /* and may go on                              */
    _Atomic uint64_t pause, paused; /* OWN does nothing for a while               */
};

static struct board *board;
static const struct place *place;

static const char *const policy_name[N_POLICIES] = {"oldest-wins", "self-abort",
                                                    "selfish",     "youngest-wins",
                                                    "optimistic",  "serial"};

/* ---- workers --------------------------------------------------------------------------- */

static volatile uint64_t *
counter(unsigned char *file, unsigned page)
{
    return (volatile uint64_t *)(void *)(file + page * env_page());
}

/* attempt -- once; ret XAC_COMMITTED or XAC_ABORTED. */
static int
attempt(unsigned char *file, unsigned w)
{
    int rc;

    must_ok(xac_begin());
    if (w != OWN)
        ++*counter(file, 0);
    ++*counter(file, 1 + w);
    rc = xac_end();
    must(rc == XAC_COMMITTED || rc == XAC_ABORTED);
    return rc;
}

/* commit -- as many attempts as it takes, at once one after the other. */
static void
commit(unsigned char *file, unsigned w, uint64_t retries)
{
    while (attempt(file, w) == XAC_ABORTED) {
        word_add(&board->aborts[w], 1);
        if (++retries > word_load(&board->retries[w]))
            word_store(&board->retries[w], retries);
    }
    word_add(&board->commits[w], 1);
}

static void
run_worker(void *arg)
{
    unsigned w = *(const unsigned *)arg;
    unsigned char *file = env_attach(XAC_NONDURABLE, N_PAGES);

    while (word_load(&board->end) == 0) {
        bool is_paused = w == OWN && word_load(&board->pause) != 0;

        if (w == OWN)
            word_store(&board->paused, is_paused);
        if (is_paused)
            proc_sleep_us(200);
        else
            commit(file, w, 0);
    }
    must_ok(xac_shutdown());
}

/* ---- the victim ------------------------------------------------------------------------ */

/* stay -- inside a transaction, until released. */
static void
stay(void)
{
    word_store(&board->held, 1);
    while (word_load(&board->release) == 0)
        (void)sched_yield();
}

/*
 * stays_pending -- until HOT has lost to the open transaction: twice, for the first time may
 * have been to an earlier one; or, by policies under which it does not lose, for a while.
 */
static bool
stays_pending(void)
{
    uint64_t want = word_load(&board->aborts[HOT]) + 2;
    double end = env_now() + 0.2;

    while (env_now() < end && word_load(&board->aborts[HOT]) < want) {
        if (xac_validate() != XAC_PENDING)
            return false;
        (void)sched_yield();
    }
    return xac_validate() == XAC_PENDING;
}

/*
 * hold_page -- stay in a transaction that has the shared counter and is pending, so that HOT
 * would lose to it; under policies by which it loses itself, in one that has failed.
 */
static void
hold_page(unsigned char *file)
{
    uint64_t retries = 0;
    int rc;

    for (;;) {
        must_ok(xac_begin());
        ++*counter(file, 0);
        ++*counter(file, 1 + VICTIM);
        if (stays_pending() || retries == HOLD_RETRIES)
            break;
        must_rc(xac_end(), XAC_ABORTED);
        word_add(&board->aborts[VICTIM], 1);
        retries++;
    }
    stay();
    rc = xac_end();
    if (rc == XAC_COMMITTED) {
        word_add(&board->commits[VICTIM], 1);
    } else {
        word_add(&board->aborts[VICTIM], 1);
        commit(file, VICTIM, retries + 1);
    }
}

/* lose_races -- abort until the next attempt has the turn: one commit of HOT in each. */
static void
lose_races(unsigned char *file)
{
    for (int lost = 0; lost < 4; lost++) {
        must_ok(xac_begin());
        ++*counter(file, 0);
        ++*counter(file, 1 + VICTIM);
        proc_await(&board->commits[HOT], word_load(&board->commits[HOT]) + 2, HANG_S);
        must_rc(xac_end(), XAC_ABORTED);
    }
}

#ifdef XAC_DEBUG
static int deadly_signal;

static void
meet(const char *name)
{
    if (word_load(&board->order) == 0 || word_load(&board->held) != 0
        || strcmp(name, place->point) != 0)
        return;
    word_store(&board->held, 1);
    (void)kill(getpid(), deadly_signal);
}
#endif

static void
run_victim(void *arg)
{
    unsigned char *file = env_attach(XAC_NONDURABLE, N_PAGES);

    (void)arg;
#ifdef XAC_DEBUG
    if (place->point != NULL)
        xac_kill_hook = meet;
#endif
    while (word_load(&board->end) == 0) {
        if (place->point == NULL && word_load(&board->order) != 0
            && word_load(&board->held) == 0) {
            if (place->has_turn)
                lose_races(file);
            hold_page(file);
        } else {
            commit(file, VICTIM, 0);
        }
    }
    must_ok(xac_shutdown());
}

/* ---- measuring ------------------------------------------------------------------------- */

struct figures {
    double rate[N_WORKERS];  /* commits per second                                     */
    double gap_s[N_WORKERS]; /* longest time without a commit                          */
    uint64_t retries[N_WORKERS];
};

/* measure -- watch the workers for a while. */
static void
measure(double seconds, struct figures *f)
{
    uint64_t first[N_WORKERS], last[N_WORKERS];
    double start = env_now(), now = start, since[N_WORKERS];

    memset(f, 0, sizeof *f);
    for (int w = 0; w < N_WORKERS; w++) {
        first[w] = last[w] = word_load(&board->commits[w]);
        since[w] = start;
        word_store(&board->retries[w], 0);
    }
    while (now - start < seconds) {
        proc_sleep_us(500);
        now = env_now();
        for (int w = 0; w < N_WORKERS; w++) {
            uint64_t n = word_load(&board->commits[w]);

            if (now - since[w] > f->gap_s[w])
                f->gap_s[w] = now - since[w];
            if (n != last[w])
                since[w] = now;
            last[w] = n;
        }
    }
    for (int w = 0; w < N_WORKERS; w++) {
        f->rate[w] = (double)(last[w] - first[w]) / (now - start);
        f->retries[w] = word_load(&board->retries[w]);
    }
}

/* must_go_on -- workers in the mask commit. */
static void
must_go_on(unsigned mask)
{
    uint64_t want[N_WORKERS];

    for (int w = 0; w < N_WORKERS; w++)
        want[w] = word_load(&board->commits[w]) + COMMITS_AT_LEAST;
    for (int w = 0; w < N_WORKERS; w++) {
        if ((mask >> w & 1) != 0)
            proc_await(&board->commits[w], want[w], HANG_S);
    }
}

/* must_go_on_alone -- HOT commits, with nobody whose commits might help. */
static void
must_go_on_alone(void)
{
    word_store(&board->pause, 1);
    proc_await(&board->paused, 1, HANG_S);
    must_go_on(1u << HOT);
    word_store(&board->pause, 0);
}

static void
print_head(const char *what)
{
    printf(
        "%s: commits/s of worker hot and own before | during | after;"
        " longest time without a commit during, ms; most retries of hot, in all phases\n",
        what);
}

static void
print_figures(int policy, const struct figures f[N_PHASES])
{
    uint64_t most = 0;

    for (int p = 0; p < N_PHASES; p++)
        most = f[p].retries[HOT] > most ? f[p].retries[HOT] : most;
    printf("| %-13s | %-14s |", policy_name[policy], place->name);
    for (int p = 0; p < N_PHASES; p++)
        printf(" %7.0f %7.0f |", f[p].rate[HOT], f[p].rate[OWN]);
    printf(" %7.1f %7.1f | %5" PRIu64 " |\n", f[DURING].gap_s[HOT] * 1e3,
           f[DURING].gap_s[OWN] * 1e3, most);
    fflush(stdout);
}

/* verify -- in a fresh process: the counters add up. */
static void
verify(void *arg)
{
    bool is_killed = *(const bool *)arg;
    uint64_t slack = is_killed ? 1 : 0; /* committed, not acknowledged              */
    unsigned char *file = env_attach(XAC_NONDURABLE, N_PAGES);
    uint64_t of[N_WORKERS], shared;

    must_ok(xac_begin_query());
    shared = *counter(file, 0);
    for (unsigned w = 0; w < N_WORKERS; w++)
        of[w] = *counter(file, 1 + w);
    must_ok(xac_end_query());
    must_eq(shared, of[HOT] + of[VICTIM]);
    must_eq(of[HOT], word_load(&board->commits[HOT]));
    must_eq(of[OWN], word_load(&board->commits[OWN]));
    must(of[VICTIM] >= word_load(&board->commits[VICTIM]));
    must(of[VICTIM] <= word_load(&board->commits[VICTIM]) + slack);
    must_ok(xac_shutdown());
}

/* must_have_aborted -- under the serial policy: only the victim, once for each stop with the turn;
   between `least` and `most` times. */
static void
must_have_aborted(uint64_t least, uint64_t most)
{
    uint64_t n = word_load(&board->aborts[VICTIM]);

    must_eq(word_load(&board->aborts[HOT]), 0);
    must_eq(word_load(&board->aborts[OWN]), 0);
    if (n < least || n > most)
        env_fail(__FILE__, __LINE__, "%s: aborted %d times", place->name, (int)n);
}

/* ---- one run --------------------------------------------------------------------------- */

static pid_t pid[N_WORKERS];

/* start_all -- in a directory of their own; end_all -- and see what they leave. */
static void
start_all(int policy)
{
    static unsigned number[N_WORKERS] = {HOT, OWN, VICTIM};
    static unsigned run;
    char name[32];

    snprintf(name, sizeof name, "r%u", run++);
    must(mkdir(name, 0777) == 0 && chdir(name) == 0);
    memset((void *)board, 0, sizeof *board);
    must_ok(xac_set_option(XAC_OPT_POLICY, (uint64_t)policy));
    if (policy == XAC_POLICY_SERIAL)
        env_checking = XAC_CHECKING_FAST; /* pages stay beside others */
    for (unsigned w = 0; w < N_WORKERS; w++)
        pid[w] = proc_spawn(w == VICTIM ? run_victim : run_worker, &number[w]);
    must_go_on(1u << HOT | 1u << OWN | 1u << VICTIM);
}

static void
end_all(bool is_killed)
{
    word_store(&board->end, 1);
    for (int w = 0; w < N_WORKERS; w++) {
        if (w == VICTIM && is_killed)
            continue;
        proc_join(pid[w]);
    }
    proc_run(verify, &is_killed);
    must(chdir("..") == 0);
}

/* to_its_place -- the victim goes where it is to stop or die, and does; ret its status. */
static int
to_its_place(int with)
{
    int status;

    word_store(&board->order, 1);
    proc_await(&board->held, 1, HANG_S);
    if (place->point == NULL)
        must(kill(pid[VICTIM], with) == 0);
    must(waitpid(pid[VICTIM], &status, WUNTRACED) == pid[VICTIM]);
    return status;
}

/* seconds -- of each phase. */
static double
seconds(void)
{
    uint64_t s = env_number("XAC_STOP_SECONDS", 0);

    return s > 0 ? (double)s : place->point == NULL ? 0.3 : 0.03;
}

/* play -- before, during, after, for one place. */
static void
play(int policy, int with)
{
    unsigned survivors = 1u << HOT | 1u << OWN;
    bool is_killed = with == SIGKILL;
    struct figures f[N_PHASES];
    int status;

    start_all(policy);
    measure(seconds(), &f[BEFORE]);
    status = to_its_place(with);
    must(is_killed ? WIFSIGNALED(status) : WIFSTOPPED(status));
    if (is_killed || !place->holds_lock)
        must_go_on_alone();
    measure(seconds(), &f[DURING]);
    if (is_killed || !place->holds_lock)
        must_go_on(survivors);
    word_store(&board->release, 1);
    if (!is_killed)
        must(kill(pid[VICTIM], SIGCONT) == 0);
    measure(seconds(), &f[AFTER]);
    must_go_on(is_killed ? survivors : survivors | 1u << VICTIM);
    end_all(is_killed);
    if (policy == XAC_POLICY_SERIAL)
        must_have_aborted(!is_killed && place->loses_turn,
                          !is_killed && place->loses_turn);
    print_figures(policy, f);
}

/* ---- tests ----------------------------------------------------------------------------- */

START_TEST(others_commit_beside_a_stopped_transaction)
{
    static const struct place in_transaction = {.name = "in transaction",
                                                .loses_turn = true};
    static const struct place has_turn = {.name = "has the turn", .has_turn = true};

    if (_i == 0)
        print_head("stopped");
    place = &in_transaction;
    play(_i, SIGSTOP);
    place = &has_turn;
    if (_i == XAC_POLICY_OPTIMISTIC)
        play(_i, SIGSTOP);
}
END_TEST

#ifdef XAC_DEBUG

/* The steps of a commit, doc/ARCHITECTURE.md. */
static const struct place steps[] = {
    {.name = "page locked", .point = "page locked", .eager_only = true},
    {.name = "a", .point = "a", .loses_turn = true},
    {.name = "b", .point = "b", .loses_turn = true},
    {.name = "c", .point = "c", .eager_only = true},
    {.name = "d", .point = "d", .eager_only = true, .holds_lock = true},
    {.name = "e number", .point = "e number", .holds_lock = true},
    {.name = "e", .point = "e", .holds_lock = true},
    {.name = "f version", .point = "f version", .holds_lock = true},
    {.name = "f", .point = "f", .holds_lock = true},
    {.name = "g number", .point = "g number", .holds_lock = true},
    {.name = "g state", .point = "g state", .holds_lock = true},
    {.name = "g", .point = "g", .holds_lock = true},
    {.name = "h", .point = "h"},
    {.name = "i dropped", .point = "i dropped"},
    {.name = "ta", .point = "ta", .serial_only = true},
    {.name = "ts", .point = "ts", .serial_only = true},
    {.name = "tb", .point = "tb", .serial_only = true, .loses_turn = true},
    {.name = "begin", .point = "begin", .serial_only = true, .loses_turn = true},
    {.name = "ga page", .point = "ga page", .serial_only = true, .loses_turn = true},
    {.name = "ga", .point = "ga", .serial_only = true, .loses_turn = true},
    {.name = "td", .point = "td", .serial_only = true},
    {.name = "te", .point = "te", .serial_only = true},
    {.name = "i", .point = "i"},
    {.name = "j", .point = "j"},
};

static void
play_steps(int policy, int with)
{
    /* The steps are those of one code for all eager policies. */
    if (policy != XAC_POLICY_OLDEST_WINS && policy != XAC_POLICY_OPTIMISTIC
        && policy != XAC_POLICY_SERIAL && env_number("XAC_LONG", 0) == 0)
        return;
    deadly_signal = with;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        bool is_met = policy <= XAC_POLICY_YOUNGEST_WINS || !steps[i].eager_only;

        is_met = is_met && (policy == XAC_POLICY_SERIAL || !steps[i].serial_only);
        place = &steps[i];
        if (with == SIGSTOP && strcmp(place->name, "page locked") == 0)
            continue; /* the lock of a page is not taken from a stopped one */
        if (is_met)
            play(policy, with);
    }
}

START_TEST(others_commit_beside_one_killed_in_commit)
{
    if (_i == 0)
        print_head("killed");
    play_steps(_i, SIGKILL);
}
END_TEST

START_TEST(others_commit_beside_one_stopped_in_commit)
{
    if (_i == 0)
        print_head("stopped in commit");
    play_steps(_i, SIGSTOP);
}
END_TEST

#endif /* XAC_DEBUG */

/*
 * Any moment may be one in which the victim has a lock.  How often is printed: the stops in
 * the second half of which neither worker has committed.
 */
START_TEST(everybody_goes_on_after_stops_at_random_moments)
{
    static const struct place nowhere = {.name = "anywhere"};
    uint64_t n = env_number("XAC_STOPS", 20 / ENV_DEAR), seed = env_seed() + (uint64_t)_i;
    uint64_t stood_still = 0;
    int status;

    place = &nowhere;
    start_all(_i);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t commits[2];

        proc_sleep_us(rnd_below(&seed, 10000));
        must(kill(pid[VICTIM], SIGSTOP) == 0);
        must(waitpid(pid[VICTIM], &status, WUNTRACED) == pid[VICTIM]
             && WIFSTOPPED(status));
        proc_sleep_us(30000);
        commits[0] = word_load(&board->commits[HOT]) + word_load(&board->commits[OWN]);
        proc_sleep_us(30000);
        commits[1] = word_load(&board->commits[HOT]) + word_load(&board->commits[OWN]);
        stood_still += commits[0] == commits[1];
        must(kill(pid[VICTIM], SIGCONT) == 0);
        if (i % 16 == 15)
            must_go_on(1u << HOT | 1u << OWN | 1u << VICTIM);
    }
    must_go_on(1u << HOT | 1u << OWN | 1u << VICTIM);
    end_all(false);
    if (_i == XAC_POLICY_SERIAL)
        must_have_aborted(0, n);
    printf("%s: stopped %" PRIu64 " times at random; %" PRIu64
           " times nobody committed meanwhile\n",
           policy_name[_i], n, stood_still);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("stop");
    TCase *tc = env_tcase(s, "transaction", 3000);

    board = proc_shared(sizeof *board);
    tcase_add_loop_test(tc, others_commit_beside_a_stopped_transaction, 0, N_POLICIES);
    tc = env_tcase(s, "anywhere", 3000);
    tcase_add_loop_test(tc, everybody_goes_on_after_stops_at_random_moments, 0,
                        N_POLICIES);
#ifdef XAC_DEBUG
    tc = env_tcase(s, "killed in commit", 3000);
    tcase_add_loop_test(tc, others_commit_beside_one_killed_in_commit, 0, N_POLICIES);
    tc = env_tcase(s, "stopped in commit", 3000);
    tcase_add_loop_test(tc, others_commit_beside_one_stopped_in_commit, 0, N_POLICIES);
#endif
    return env_main(s);
}
