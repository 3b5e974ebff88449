/* SPDX-License-Identifier: MIT */
/*
 * check_steps.c -- a process dies exactly at each named step of a commit, a checkpoint
 * and a garbage collection (xac_kill_point, debug builds), and in each of its system calls in turn;
 * or its system calls fail.  Others must go on, and nothing acknowledged may be lost,
 * nothing half done be seen, by them or after recovery.
 *
 * The file: page 0 has a count per writer and their sum, which every transaction adds to.
 * Then each writer has a row of pages of its own; its transaction n writes n to the first
 * 2, 7 or all of them, so that the row of a writer at n is known.  In the middle of the
 * script the victim makes its mapping and the file a page longer; there each of its
 * transactions from then on writes its number.
 *
 * XAC_STEPS_LONG=1: every system call, every variant (minutes instead of seconds).  The short form has the first and the
 * third occurrence of a step, in some endings; under the address sanitizer the third one of one step in four.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/env.h"
#include "../common/sysfault.h"
#include "base/annot.h"
#include "steps.h"
#include "steps_row.h"
#include "steps_snapshot.h"

enum {
    SURVIVOR,
    VICTIM,
    FORERUNNER, /* dies before the victim, which has to clean up after it              */
    N_WRITERS
};

#define N_PAGES  (1 + N_WRITERS * ROW_PAGES)
#define N_LONGER (N_PAGES + 1)

/* A survivor must have committed again within this time, seconds. */
#define GO_ON_S 2.0

/* Commits of one whole script. */
#define TXNS_OF_SCRIPT 24u

/* No round takes longer, unless something hangs. */
#define HANG_S 20.0

struct counts {
    uint64_t sum;
    uint64_t of[N_WRITERS];
};

/* What the processes of a round tell the test. */
struct board {
    _Atomic uint64_t acknowledged[N_WRITERS];
    _Atomic uint64_t doubtful[N_WRITERS]; /* ended with XAC_EPOISONED: did or did not  */
    _Atomic uint64_t at_end[N_WRITERS]; /* acknowledged, and written to the new page   */
    _Atomic uint64_t stop;              /* survivors shut down                       */
    _Atomic uint64_t pause, paused;     /* the survivor does nothing for a while     */
    _Atomic uint64_t calls;             /* system calls counted in the victim        */
    _Atomic uint64_t fired;             /* the plan of the victim was carried out    */
    char call[32];                      /* name of the system call that failed       */
};

static struct board *board;

/* This process's mapping has the new page. */
static bool is_longer;

/* ---- contents ------------------------------------------------------------------------- */

/* must_be_whole -- one snapshot: sum, counts and rows fit each other. */
static void
must_be_whole(unsigned char *file, unsigned pages, const char *what)
{
    volatile struct counts *c = (volatile struct counts *)(void *)file;
    uint64_t sum = 0;

    for (unsigned w = 0; w < N_WRITERS; w++) {
        sum += c->of[w];
        must_be_row(file, w, c->of[w], pages, what);
    }
    if (sum != c->sum)
        env_fail(__FILE__, __LINE__, "%s: sum %" PRIu64 ", counts %" PRIu64, what, c->sum,
                 sum);
}

/* must_have_all -- nothing acknowledged is missing, nothing else is there. */
static void
must_have_all(unsigned char *file, const char *what)
{
    const struct counts *c = (const struct counts *)(const void *)file;

    for (unsigned w = 0; w < N_WRITERS; w++) {
        uint64_t least = word_load(&board->acknowledged[w]);
        uint64_t most = least + 1 + word_load(&board->doubtful[w]);

        if (c->of[w] < least)
            env_fail(__FILE__, __LINE__,
                     "%s: writer %u: acknowledged %" PRIu64 ", found %" PRIu64, what, w,
                     least, c->of[w]);
        if (c->of[w] > most)
            env_fail(__FILE__, __LINE__,
                     "%s: writer %u: found %" PRIu64 ", at most %" PRIu64, what, w,
                     c->of[w], most);
    }
}

/* end_of -- the new page: number of each writer's last transaction that saw it. */
static volatile uint64_t *
end_of(unsigned char *file)
{
    return (volatile uint64_t *)(void *)(file + N_PAGES * env_page());
}

/* must_have_end -- what was acknowledged of the new page is there, and nothing else. */
static void
must_have_end(unsigned char *file, const char *what)
{
    const struct counts *c = (const struct counts *)(const void *)file;

    for (unsigned w = 0; w < N_WRITERS; w++) {
        if (end_of(file)[w] < word_load(&board->at_end[w]) || end_of(file)[w] > c->of[w])
            env_fail(__FILE__, __LINE__, "%s: writer %u: new page at %" PRIu64, what, w,
                     end_of(file)[w]);
    }
}

/* ---- processes ------------------------------------------------------------------------- */

static bool has_history; /* are states of the past kept?                             */

static void
set_options(void)
{
    must_ok(xac_set_option(XAC_OPT_HISTORY, has_history ? XAC_HISTORY_COMMITS(12) : 0));
    must_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    must_ok(xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, 65536));
    must_ok(xac_set_option(XAC_OPT_CHECKPOINT_BYTES, 300000));
}

/* is_rolled_back -- by a conflict, or for lack of something. */
static bool
is_rolled_back(int rc)
{
    struct xac_conflict why;

    must_ok(xac_get_conflict(&why, sizeof why));
    return rc == XAC_ABORTED
           || (rc > 0 && why.kind == XAC_CONFLICT_RESOURCE && why.error == rc);
}

/* note -- remember how a transaction ended; ret false: no use going on. */
static bool
note(unsigned w, uint64_t n, int rc)
{
    if (rc == XAC_COMMITTED)
        word_store(&board->acknowledged[w], n);
    if (rc == XAC_COMMITTED && is_longer)
        word_store(&board->at_end[w], n);
    else if (!is_rolled_back(rc))
        word_add(&board->doubtful[w], 1);
    return rc == XAC_COMMITTED || is_rolled_back(rc);
}

/* try_and_undo -- stores behind a savepoint, which are rolled back, before and behind those that stay; ret
   false: it could not be done. */
static bool
try_and_undo(unsigned char *file, unsigned w)
{
    volatile struct counts *c = (volatile struct counts *)(void *)file;
    uint64_t mark = xac_savepoint(), was = c->of[w];
    int rc;

    if (mark == 0)
        return false;
    c->of[w] = was + 1000;
    write_row(file, w, was + 1000);
    c->sum += 1000;
    rc = xac_rollback_to(mark);
    if (rc != 0 && rc != XAC_FAILED)
        return false;
    must_eq(c->of[w], was);
    must_be_whole(file, 3, "behind a roll-back");
    return xac_release(mark) == 0;
}

/* undo_failed -- of a transaction in which not all could be undone, which is not committed then; ret as
   xac_end(). */
static int
undo_failed(void)
{
    int rc;

    (void)xac_abort();
    rc = xac_end();
    must(rc != XAC_COMMITTED);
    return rc;
}

/*
 * one_txn -- one attempt at the writer's next transaction.
 *
 * ret  XAC_COMMITTED, XAC_ABORTED, or an error; *np its number.
 */
static int
one_txn(unsigned char *file, unsigned w, uint64_t *np)
{
    volatile struct counts *c = (volatile struct counts *)(void *)file;
    int rc = xac_begin();

    if (rc != 0)
        return rc;
    must_be_whole(file, 3, "in a transaction");
    *np = c->of[w] + 1;
    if (*np % 2 == 0 && !try_and_undo(file, w))
        return undo_failed();
    c->of[w] = *np;
    c->sum++;
    write_row(file, w, *np);
    if (*np % 3 == 0 && !try_and_undo(file, w))
        return undo_failed();
    if (is_longer)
        end_of(file)[w] = *np;
    return xac_end();
}

/* commit -- the writer's next transaction, as often as it takes. */
static bool
commit(unsigned char *file, unsigned w)
{
    double end = env_now() + HANG_S / 2;
    struct xac_conflict why;
    unsigned starved = 0;
    uint64_t n;
    int rc;

    do {
        rc = one_txn(file, w, &n);
        if (!note(w, n, rc))
            return false;
        must_ok(xac_get_conflict(&why, sizeof why));
        /* Where everything fails for ever, aborting is all that is left. */
        if (why.kind == XAC_CONFLICT_RESOURCE && ++starved > 20)
            return false;
        if (env_now() > end)
            env_fail(__FILE__, __LINE__, "writer %u aborts for ever", w);
    } while (is_rolled_back(rc));
    return true;
}

/* A participant that may be struck. */
struct plan {
    int flags;
    unsigned writer;
    const char *point; /* kill point, or NULL                                          */
    uint64_t n;        /* occurrence of the point or of system calls                   */
    enum sysfault_what what;
    unsigned kinds; /* of system calls; 0 none                                         */
    int error;
};

static const struct plan *struck;

#ifdef XAC_DEBUG
static uint64_t times_met;

static void
meet(const char *name)
{
    if (strcmp(name, struck->point) != 0 || ++times_met != struck->n)
        return;
    word_store(&board->fired, 1);
    (void)kill(getpid(), SIGKILL);
}
#endif

/* play -- the script; every error ends it early. */
static void
play(unsigned char *file, unsigned w)
{
    volatile struct counts *c = (volatile struct counts *)(void *)file;
    struct steps_snapshot taken, past;

    for (int i = 0; i < 12; i++) {
        if (!commit(file, w))
            return;
    }
    steps_snapshot_take(&c->of[w], w, &taken);
    steps_past_note(&c->of[w], &past);
    is_longer = xac_mremap(file, N_LONGER * env_page(), 0) == file;
    if (xac_checkpoint() == XAC_EPOISONED)
        return;
    for (int i = 0; i < 11; i++) {
        if (!commit(file, w))
            return;
    }
    if (steps_snapshot_begin(&c->of[w], &taken)) {
        must_be_whole(file, ROW_PAGES, "in a query at a snapshot");
        steps_snapshot_end(&taken);
    }
    if (steps_snapshot_begin(&c->of[w], &past)) {
        must_be_whole(file, ROW_PAGES, "in a query of the past");
        (void)xac_end_query();
    }
    if (xac_begin() != 0)
        return;
    write_row(file, w, 999);
    must_ok(xac_abort());
    if (xac_end() != XAC_ABORTED)
        return;
    if (xac_begin_query() != 0)
        return;
    must_be_whole(file, ROW_PAGES, "in a query");
    if (xac_end_query() != 0)
        return;
    (void)xac_checkpoint();
    (void)commit(file, w);
}

/* run_victim -- the script under its plan. */
static void
run_victim(void *arg)
{
    const struct plan *p = arg;
    void *file;

    struck = p;
    set_options();
    sysfault_arm(p->kinds == 0 ? SYSFAULT_COUNT : p->what,
                 p->kinds == 0 ? SYSFAULT_EVERY : p->kinds, p->n, p->error);
#ifdef XAC_DEBUG
    if (p->point != NULL)
        xac_kill_hook = meet;
#endif
    if (xac_init(ENV_DIR, p->flags) == 0) {
        file = xac_mmap(ENV_FILE, N_PAGES * env_page());
        if (file != MAP_FAILED)
            play(file, p->writer);
        (void)xac_shutdown();
    }
    word_store(&board->calls, sysfault_count());
    if (sysfault_hit() != NULL) {
        snprintf(board->call, sizeof board->call, "%s", sysfault_hit());
        word_store(&board->fired, 1);
    }
}

/* run_survivor -- transactions until told to stop. */
static void
run_survivor(void *arg)
{
    const struct plan *p = arg;
    unsigned char *file;

    set_options();
    file = env_attach(p->flags, N_PAGES);
    while (word_load(&board->stop) == 0) {
        word_store(&board->paused, word_load(&board->pause));
        if (word_load(&board->pause) != 0) {
            proc_sleep_us(200);
            continue;
        }
        if (commit(file, p->writer))
            continue;
        if (p->what != SYSFAULT_FAIL)
            env_fail(__FILE__, __LINE__, "a survivor fails: %s", xac_last_error());
        break; /* what failed elsewhere has poisoned the environment */
    }
    if (p->what == SYSFAULT_FAIL)
        (void)xac_shutdown();
    else
        must_ok(xac_shutdown());
}

/* ---- judging ---------------------------------------------------------------------------- */

struct judge {
    int flags;
    bool is_lost; /* not durable, and everybody died: only openable                    */
    const char *what;
};

/* verify -- in a fresh process: all there, by the library and then in the plain file. */
static void
verify(void *arg)
{
    const struct judge *j = arg;
    size_t size = N_LONGER * env_page();
    unsigned char *file, *copy;

    set_options();
    file = env_attach(j->flags, N_LONGER);
    must_ok(xac_begin_query());
    if (!j->is_lost) {
        must_be_whole(file, ROW_PAGES, j->what);
        must_have_all(file, j->what);
        must_have_end(file, j->what);
    }
    must_ok(xac_end_query());
    if (!j->is_lost)
        must(commit(file, FORERUNNER));
    must_ok(xac_shutdown());
    if (j->is_lost)
        return;
    copy = malloc(size);
    must(copy != NULL);
    file_read(ENV_FILE, 0, copy, size);
    must_be_whole(copy, ROW_PAGES, j->what);
    must_have_all(copy, j->what);
    must_have_end(copy, j->what);
    free(copy);
}

/* wait_limited -- wait for a child, which must not hang; ret its status. */
static int
wait_limited(pid_t pid, const char *what)
{
    double end = env_now() + HANG_S;
    int status;
    pid_t got;

    while ((got = waitpid(pid, &status, WNOHANG)) == 0) {
        if (env_now() > end)
            env_fail(__FILE__, __LINE__, "%s: process %ld hangs", what, (long)pid);
        proc_sleep_us(500);
    }
    must(got == pid);
    return status;
}

enum ending {
    ALONE,     /* the victim is all there is; then recovery                         */
    GO_ON,     /* a survivor goes on and shuts down                                 */
    HEIR,      /* the same, but a newcomer in the dead one's place is the first to act */
    GO_ON_DIE, /* a survivor goes on and is killed later; then recovery             */
    BESIDE,    /* calls fail, nobody dies: the other one may see it poisoned        */
    DIE_TOGETHER, /* a survivor is killed at the same moment; then recovery            */
    N_ENDINGS
};

static const char *const ending_name[] = {"alone",      "go on",  "heir",
                                          "go on, die", "beside", "die together"};

static int round_no;

/* enter_fresh -- a directory of its own for a round, and a clean board. */
static void
enter_fresh(void)
{
    char name[32];

    memset((void *)board, 0, sizeof *board);
    snprintf(name, sizeof name, "r%d", round_no++);
    must(mkdir(name, 0777) == 0 && chdir(name) == 0);
}

static void
leave_fresh(void)
{
    must(chdir("..") == 0);
}

/* must_go_on -- the survivor commits again, in time. */
static void
must_go_on(const char *what)
{
    uint64_t want = word_load(&board->acknowledged[SURVIVOR]) + 3;
    double start = env_now();

    while (word_load(&board->acknowledged[SURVIVOR]) < want) {
        if (proc_any_failed())
            env_fail(__FILE__, __LINE__, "%s: the survivor failed, see above", what);
        if (env_now() - start > GO_ON_S)
            env_fail(__FILE__, __LINE__, "%s: the survivor does not go on", what);
        proc_sleep_us(200);
    }
}

/* run_reaper -- joins and leaves: that cleans up after the dead, and no more. */
static void
run_reaper(void *arg)
{
    const struct plan *p = arg;

    set_options();
    must_ok(xac_init(ENV_DIR, p->flags));
    must_ok(xac_shutdown());
}

/* newcomer_must_play -- one more joins, perhaps in the place of the dead one. */
static void
newcomer_must_play(int flags, const char *what)
{
    struct plan p = {.flags = flags, .writer = VICTIM};
    uint64_t was = word_load(&board->acknowledged[VICTIM]);

    if (wait_limited(proc_spawn(run_victim, &p), what) != 0)
        env_fail(__FILE__, __LINE__, "%s: the newcomer failed, see above", what);
    if (word_load(&board->acknowledged[VICTIM]) != was + TXNS_OF_SCRIPT
        && word_load(&board->acknowledged[VICTIM]) != was + TXNS_OF_SCRIPT + 1)
        env_fail(__FILE__, __LINE__, "%s: the newcomer ended early", what);
}

/* end_round -- what becomes of the survivor, and what is found afterwards. */
static void
end_round(const struct plan *p, enum ending ending, pid_t survivor, const char *what)
{
    struct judge j = {.flags = p->flags, .what = what};

    if (ending == GO_ON || ending == HEIR || ending == BESIDE) {
        word_store(&board->stop, 1);
        if (wait_limited(survivor, what) != 0)
            env_fail(__FILE__, __LINE__, "%s: the survivor failed, see above", what);
    } else if (ending != ALONE) {
        proc_kill(survivor);
    }
    j.is_lost = p->flags == XAC_NONDURABLE && ending != GO_ON && ending != HEIR;
    if (wait_limited(proc_spawn(verify, &j), what) != 0)
        env_fail(__FILE__, __LINE__, "%s: verification failed, see above", what);
    leave_fresh();
}

/*
 * play_round -- one victim, one ending.
 *
 * in   before  kill point at which a forerunner dies first, or NULL
 * ret  true if the plan was carried out.
 */
static bool
play_round(struct plan p, enum ending ending, const char *before)
{
    static struct plan survivor_plan;
    struct plan forerunner = {.flags = p.flags,
                              .writer = FORERUNNER,
                              .point = before,
                              .n = 1};
    char what[128];
    pid_t survivor = 0;
    bool is_done;
    int status;

    snprintf(what, sizeof what, "%s, %s %" PRIu64 ", %s",
             p.flags ? "durable" : "nondurable",
             p.point != NULL ? p.point : "system call", p.n, ending_name[ending]);
    enter_fresh();
    survivor_plan = (struct plan){.flags = p.flags,
                                  .writer = SURVIVOR,
                                  .what = ending == BESIDE ? p.what : 0};
    if (ending != ALONE) {
        survivor = proc_spawn(run_survivor, &survivor_plan);
        proc_await(&board->acknowledged[SURVIVOR], 2, GO_ON_S * 2);
    }
    if (before != NULL || ending == HEIR) {
        word_store(&board->pause, 1);
        proc_await(&board->paused, 1, GO_ON_S);
    }
    if (before != NULL) {
        (void)wait_limited(proc_spawn(run_victim, &forerunner), what);
        must(word_load(&board->fired) != 0);
    }
    word_store(&board->fired, 0);
    p.writer = VICTIM;
    status = wait_limited(proc_spawn(run_victim, &p), what);
    if (ending == HEIR) {
        if (wait_limited(proc_spawn(run_reaper, &p), what) != 0)
            env_fail(__FILE__, __LINE__, "%s: cleaning up failed, see above", what);
        newcomer_must_play(p.flags, what);
    }
    word_store(&board->pause, 0);
    is_done = word_load(&board->fired) != 0 || WIFSIGNALED(status);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        env_fail(__FILE__, __LINE__, "%s (%s): the victim failed, see above", what,
                 board->call);
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL
        && !(WTERMSIG(status) == SIGABRT && p.kinds == SYSFAULT_MEMORY))
        env_fail(__FILE__, __LINE__, "%s: the victim died of signal %d", what,
                 WTERMSIG(status));
    if (ending == GO_ON || ending == HEIR || ending == GO_ON_DIE)
        must_go_on(what);
    if (ending == GO_ON && p.what != SYSFAULT_COUNT)
        newcomer_must_play(p.flags, what);
    end_round(&p, ending, survivor, what);
    return is_done;
}

static bool
is_long(void)
{
    return env_number("XAC_STEPS_LONG", 0) != 0;
}

/* ---- named steps -------------------------------------------------------------------------- */

#ifdef XAC_DEBUG

# define N_STEPS (sizeof steps / sizeof steps[0])

/* play_step -- a step in every ending; ret how often the victim died there. */
static unsigned
play_step(const struct step *s, int flags)
{
    static const uint64_t occurrences[] = {1, 3, 2, 5, 20, 100};
    unsigned met = 0;

    has_history = s->has_history;
    for (unsigned k = 0; k < (is_long() ? 6 : 2); k++) {
        struct plan p = {.flags = flags,
                         .what = SYSFAULT_DIE,
                         .point = s->name,
                         .n = occurrences[k]};

        if (k > 0 && !is_long() && !env_is_chosen((uint64_t)(s - steps)))
            break;
        for (int e = s->needs_company ? GO_ON : ALONE; e < N_ENDINGS; e++) {
            if (flags == XAC_NONDURABLE && e != GO_ON && e != HEIR)
                continue;
            if (e == BESIDE)
                continue;
            if (!is_long() && (k > 0 || (ENV_DEAR > 1 && met > 0)) && e != ALONE
                && e != HEIR)
                continue;
            met += play_round(p, (enum ending)e, s->before);
        }
    }
    has_history = false;
    return met;
}

/* play_all_steps -- under the default policy, serial, or under one that has all steps. */
static void
play_all_steps(int flags, bool is_eager)
{
    unsigned died = 0, met;

    if (is_eager)
        env_let_overlap();
    for (const struct step *s = steps; s < steps + N_STEPS; s++) {
        if ((s->is_durable_only && flags != XAC_DURABLE)
            || (s->is_eager_only && !is_eager))
            continue;
        met = play_step(s, flags);
        if (met == 0)
            env_fail(__FILE__, __LINE__, "step \"%s\" was never met", s->name);
        died += met;
    }
    printf("%u deaths at %zu steps\n", died, N_STEPS);
}

START_TEST(die_at_each_step_durable)
{
    play_all_steps(XAC_DURABLE, _i != 0);
}
END_TEST

START_TEST(die_at_each_step_nondurable)
{
    play_all_steps(XAC_NONDURABLE, _i != 0);
}
END_TEST

#endif /* XAC_DEBUG */

/* ---- system calls ------------------------------------------------------------------------- */

/* calls_of_script -- how many system calls of these kinds the script makes. */
static uint64_t
calls_of_script(int flags, unsigned kinds, enum ending ending)
{
    struct plan p = {.flags = flags, .what = SYSFAULT_COUNT, .kinds = kinds};

    (void)play_round(p, ending, NULL);
    return word_load(&board->calls);
}

/*
 * strike_calls -- strike at call 1, 2, 3 ... of the script; in the short form at about
 * `rounds` of them.
 */
static void
strike_calls(struct plan p, enum ending ending, uint64_t rounds)
{
    uint64_t n = calls_of_script(p.flags, p.kinds, ending);
    uint64_t step = is_long() || n < rounds / ENV_DEAR ? 1 : n / (rounds / ENV_DEAR);
    uint64_t seed = env_seed() + (uint64_t)p.what + p.kinds;
    unsigned done = 0;

    for (uint64_t i = 1; i <= n; i += step) {
        p.n = i + rnd_below(&seed, step);
        done += play_round(p, ending, NULL);
    }
    printf("%s, %s, errno %d: %" PRIu64 " calls, %u rounds\n",
           p.flags ? "durable" : "nondurable", ending_name[ending], p.error, n, done);
    must(done > 0);
}

START_TEST(die_in_each_system_call)
{
    struct plan p = {.flags = _i, .what = SYSFAULT_DIE, .kinds = SYSFAULT_EVERY};

    if (_i == XAC_DURABLE) {
        strike_calls(p, ALONE, 70);
        strike_calls(p, GO_ON_DIE, 30);
    }
    strike_calls(p, GO_ON, 30);
}
END_TEST

START_TEST(fail_in_each_system_call)
{
    static const int errors[] = {EIO, ENOSPC};
    struct plan p = {.flags = _i,
                     .kinds = SYSFAULT_FILES | SYSFAULT_GROW | SYSFAULT_LOCK};

    for (size_t e = 0; e < 2; e++) {
        p.error = errors[e];
        p.what = SYSFAULT_FAIL;
        strike_calls(p, ALONE, 60);
        p.what = SYSFAULT_FAIL_ALL;
        strike_calls(p, ALONE, 20);
    }
}
END_TEST

/* The log is shared: a process that fails must not make others acknowledge lost commits. */
START_TEST(fail_beside_others)
{
    struct plan p = {.flags = XAC_DURABLE,
                     .what = SYSFAULT_FAIL,
                     .kinds = SYSFAULT_FILES | SYSFAULT_GROW,
                     .error = EIO};

    strike_calls(p, BESIDE, 60);
}
END_TEST

/*
 * A fault that cannot be served stops the program, for the access cannot be refused; what
 * was acknowledged must be there all the same.
 */
START_TEST(fail_to_protect_and_map)
{
    struct plan p = {.flags = XAC_DURABLE,
                     .what = SYSFAULT_FAIL,
                     .kinds = SYSFAULT_MEMORY,
                     .error = ENOMEM};

    strike_calls(p, ALONE, 60);
    p.kinds = SYSFAULT_CLOSE;
    p.error = EIO;
    strike_calls(p, ALONE, 60);
}
END_TEST

static Suite *
steps_suite(void)
{
    Suite *s = suite_create("steps");
    TCase *tc = env_tcase(s, "calls", 3000);

    tcase_add_loop_test(tc, die_in_each_system_call, 0, 2);
    tcase_add_loop_test(tc, fail_in_each_system_call, 0, 2);
    tcase_add_test(tc, fail_beside_others);
    tcase_add_test(tc, fail_to_protect_and_map);
#ifdef XAC_DEBUG
    tc = env_tcase(s, "points", 3000);
    tcase_add_loop_test(tc, die_at_each_step_durable, 0, 2);
    tcase_add_loop_test(tc, die_at_each_step_nondurable, 0, 2);
#endif
    return s;
}

static void
setup_board(void)
{
    board = proc_shared(sizeof *board);
}

int
main(void)
{
    env_in_memory();
    setup_board();
    return env_main(steps_suite());
}
