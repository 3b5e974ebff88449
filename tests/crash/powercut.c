/* SPDX-License-Identifier: MIT */
/*
 * powercut.c -- power cuts at every point of recorded runs.
 *
 * Several processes run a script (powercut_work.c) on the library, and every write, sync
 * and change of a name is recorded (record.h).  At each event of the trace the power could
 * have failed: of what was not synced then the disk may hold any part (disk.h).  Such crash
 * states are made, in memory, and recovered.  After each, everything acknowledged by that
 * moment must be there, no half transaction, recovery must not fail, another recovery must
 * change nothing, and new transactions must work.  Of some states the recovery itself, and
 * what follows, is recorded and cut again, up to twice.
 *
 *   powercut              until XAC_SECONDS (20) are over, or XAC_STATES were tried
 *   powercut FILE         the trace that a failure left (XAC_KEEP), all of it again
 *   XAC_SEED=n            other histories; the processes' timing is chance all the same
 *   XAC_KEEP=directory    a failure leaves its trace and its crash state there
 *   XAC_SCRIPT=name       this script only
 *   XAC_FAILURES=n        end after so many (20)
 *   XAC_RUNNERS=n         processes that work at the same time (2)
 *
 * The exit code is 0 if all states came out right.
 */
#include <config.h>

#include "powercut.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xxhash.h>

#include "../common/env.h"

#define TRACE_BYTES ((size_t)192 << 20)
#define SEEN_SLOTS  (UINT64_C(1) << 22)
#define RUNNERS_MAX 8u
#define DEPTH_MAX   2u
#define HANG_S      30u
#define STATES_A_TRACE \
 1500u /* about so many are chosen of each                         */
#define STATES_NESTED 40u

/* What all processes count together. */
struct totals {
    _Atomic uint64_t states;
    _Atomic uint64_t traces[32];
    _Atomic uint64_t outcome[32][DISK_KINDS][OUTCOMES]; /* by script                    */
    _Atomic uint64_t depth[DEPTH_MAX + 1];
    _Atomic uint64_t next_trace;
    _Atomic uint64_t shown;
    _Atomic uint64_t
        seen[SEEN_SLOTS]; /* hashes of states that were tried                */
};

/* What an explorer that dies was at. */
struct at {
    uint64_t index; /* of the state in its trace                                        */
    enum disk_kind kind;
    uint64_t depth;
    char what[200];
};

/* Walking through one trace. */
struct walk {
    struct run *run;
    unsigned script;
    struct record_trace *trace[DEPTH_MAX + 1];
    struct at *at;
    uint64_t
        skip; /* states before this one were done by an explorer that died           */
    uint64_t index;
    uint64_t seed;
};

static struct totals *totals;
static double deadline;
static uint64_t states_wanted;
static uint64_t failures_max; /* it ends after these                                   */
static const char *keep;

static bool
is_over(void)
{
    return env_now() > deadline || word_load(&totals->shown) >= failures_max
           || (states_wanted != 0 && word_load(&totals->states) >= states_wanted);
}

/* is_new -- enter a state; false if it has been tried. */
static bool
is_new(const struct disk_state *s, const struct promise *p)
{
    uint64_t key[2] = {disk_state_hash(s), XXH3_64bits(p, sizeof *p)};
    uint64_t h = XXH3_64bits(key, sizeof key) | 1;

    for (uint64_t i = h >> 20;; i++) {
        _Atomic uint64_t *slot = &totals->seen[i % SEEN_SLOTS];
        uint64_t none = 0;

        if (word_load(slot) == h)
            return false;
        if (word_load(slot) == 0
            && atomic_compare_exchange_strong_explicit(slot, &none, h,
                                                       memory_order_relaxed,
                                                       memory_order_relaxed))
            return true;
    }
}

/* ---- Failures -------------------------------------------------------------------------- */

/* keep_failure -- trace and crash state of a failure, so that it can be looked at. */
static void
keep_failure(const struct walk *w, uint64_t no)
{
    char command[1400], path[600];

    if (keep == NULL)
        return;
    snprintf(path, sizeof path, "%s/trace.%llu", keep, (unsigned long long)no);
    if (!record_save(w->trace[0], path, w->run->root, w->script, w->run->seed))
        printf("  %s: %s\n", path, strerror(errno));
    snprintf(command, sizeof command, "cp -r '%s' '%s/state.%llu'", w->run->root, keep,
             (unsigned long long)no);
    if (system(command) != 0)
        printf("  could not copy the state\n");
}

static void
count(const struct walk *w, enum outcome o)
{
    word_add(&totals->outcome[w->script][w->at->kind][o], 1);
    word_add(&totals->states, 1);
    word_add(&totals->depth[w->at->depth], 1);
}

/* report -- one line for each of the first failures. */
static void
report(const struct walk *w, enum outcome o, const char *what)
{
    uint64_t no = atomic_fetch_add_explicit(&totals->shown, 1, memory_order_relaxed);

    if (no >= failures_max)
        return;
    printf("%s: script \"%s\", seed %llu, state %llu (%s, depth %llu): %s%s%s\n",
           outcome_name[o], w->run->script->name, (unsigned long long)w->run->seed,
           (unsigned long long)w->at->index, disk_kind_name[w->at->kind],
           (unsigned long long)w->at->depth, what, w->at->what[0] != '\0' ? "; " : "",
           w->at->what);
    fflush(stdout);
    keep_failure(w, no);
}

/* ---- States ---------------------------------------------------------------------------- */

static void walk_trace(struct walk *w, struct disk *d, struct promise p, unsigned depth,
                       unsigned states);

/* cut_again -- record what follows a crash state, and cut that. */
static void
cut_again(struct walk *w, const struct disk_state *s, struct promise p, unsigned depth,
          uint64_t seed)
{
    struct record_trace *outer = w->trace[depth - 1];
    char db[500];
    int rc;

    if (w->trace[depth] == NULL)
        w->trace[depth] = record_new(TRACE_BYTES / 8);
    record_start(w->trace[depth], w->run->root);
    record_clear(w->trace[depth]);
    disk_state_write(s, w->run->root, w->trace[depth]);
    w->run->trace = w->trace[depth];
    snprintf(db, sizeof db, "%s/%s", w->run->root, work_path[0]);
    rc = rnd_below(&seed, 2) == 0 ? xac_recover(db) : 0;
    if (rc == 0 || rc == XAC_ENOTENV)
        (void)work_continue(w->run, seed);
    record_pause(true);
    walk_trace(w, disk_of_state(s), p, depth, STATES_NESTED);
    w->run->trace = outer;
    record_start(outer, w->run->root);
    record_pause(true);
}

/* try_state -- make, recover, judge and count one state. */
static void
try_state(struct walk *w, const struct disk_state *s, const struct promise *p,
          unsigned depth, uint64_t seed)
{
    char what[400] = "";
    enum outcome o;

    alarm(HANG_S);
    disk_state_write(s, w->run->root, w->trace[depth]);
    o = judge_recovery(w->run, p, rnd_below(&seed, 3) == 0, seed, what, sizeof what);
    alarm(0);
    count(w, o);
    if (o != OUTCOME_RIGHT) {
        disk_state_write(s, w->run->root, w->trace[depth]);
        report(w, o, what);
        if (o == OUTCOME_STUCK)
            _exit(1); /* the library may be left half open                              */
    } else if (depth < DEPTH_MAX && rnd_below(&seed, 60) == 0) {
        cut_again(w, s, *p, depth + 1, seed);
    }
}

/* try_kind -- a state of this kind, if it has not been tried. */
static void
try_kind(struct walk *w, const struct disk *d, const struct promise *p, unsigned depth,
         enum disk_kind kind)
{
    uint64_t seed = rnd_next(&w->seed);
    struct disk_state *s;

    w->index++;
    if (w->index <= w->skip || is_over())
        return;
    s = disk_crash(d, kind, seed);
    if (s == NULL)
        return;
    w->at->index = w->index;
    w->at->kind = kind;
    w->at->depth = depth;
    if (is_new(s, p))
        try_state(w, s, p, depth, seed);
    disk_state_free(s);
}

/* try_point -- power is cut here: some states of it; odds of 65536 for each kind. */
static void
try_point(struct walk *w, const struct disk *d, const struct promise *p, unsigned depth,
          uint64_t odds)
{
    if (rnd_below(&w->seed, 65536) < odds * 2)
        try_kind(w, d, p, depth, DISK_DROP);
    if (disk_pending(d) == 0)
        return;
    for (unsigned kind = 0; kind < DISK_KINDS; kind++) {
        uint64_t times = kind == DISK_RANDOM || kind == DISK_GARBAGE ? 2 : 1;

        for (uint64_t i = 0; i < times; i++) {
            if (rnd_below(&w->seed, 65536) < odds)
                try_kind(w, d, p, depth, (enum disk_kind)kind);
        }
    }
}

/*
 * walk_trace -- follow a trace and cut the power on the way.
 *
 * in   d       the disk as it was at the start; freed
 * in   states  about so many
 */
static void
walk_trace(struct walk *w, struct disk *d, struct promise p, unsigned depth,
           unsigned states)
{
    const struct record_trace *t = w->trace[depth];
    const struct record_event *ev;
    uint64_t n_events = 0, odds;

    for (uint64_t at = 0; (ev = record_at(t, at)) != NULL; at = record_next(ev, at))
        n_events++;
    disk_set_atomic_pages(d, (w->run->script->flags & WITH_NO_IMAGES) != 0);
    odds = n_events == 0 ? 0 : 65536 * (uint64_t)states / (n_events * (DISK_KINDS + 4));
    for (uint64_t at = 0; (ev = record_at(t, at)) != NULL && !is_over();
         at = record_next(ev, at)) {
        if (ev->kind == RECORD_NOTE)
            work_note(ev, &p);
        else
            disk_follow(d, ev, at);
        if (ev->kind != RECORD_SYNC_BEGIN)
            try_point(w, d, &p, depth, odds);
    }
    disk_free(d);
}

/* ---- Processes ------------------------------------------------------------------------- */

/* explore -- in a process of its own: all states of a trace from `skip` on. */
static void
explore(void *arg)
{
    struct walk *w = (struct walk *)arg;
    struct promise none = {.name_tried = 0};

    (void)prctl(PR_SET_DUMPABLE, 0);
    record_start(w->trace[0], w->run->root);
    record_pause(true);
    walk_trace(w, disk_new(record_root(w->trace[0])), none, 0, STATES_A_TRACE);
}

/* explore_all -- explorers one after the other, until one gets to the end. */
static void
explore_all(struct walk *w)
{
    uint64_t seed = w->seed;
    int status = 1;

    while (status != 0 && !is_over()) {
        w->seed = seed;
        w->index = 0;
        status = proc_wait(proc_spawn(explore, w));
        if (WIFSIGNALED(status)) {
            char what[100];

            snprintf(what, sizeof what, "%s",
                     WTERMSIG(status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(status)));
            count(w, OUTCOME_FAILED);
            report(w, OUTCOME_FAILED, what);
        }
        w->skip = w->at->index;
        if (word_load(&totals->shown) >= failures_max)
            break;
    }
}

/* choose_script -- by name, or in turn. */
static unsigned
choose_script(uint64_t no)
{
    const char *name = getenv("XAC_SCRIPT");

    for (unsigned i = 0; name != NULL && i < n_scripts; i++) {
        if (strcmp(scripts[i].name, name) == 0)
            return i;
    }
    must(name == NULL);
    return (unsigned)(no % n_scripts);
}

/* run_runner -- record a trace, explore it, and again. */
static void
run_runner(void *arg)
{
    static struct run run;
    struct walk w = {.run = &run};
    char shm[500];

    snprintf(run.root, sizeof run.root, "%s", (const char *)arg);
    snprintf(shm, sizeof shm, "%s-shm", run.root);
    must(mkdir(run.root, 0777) == 0 && mkdir(shm, 0777) == 0);
    must(setenv("XAC_SHM_DIR", shm, 1) == 0);
    w.trace[0] = record_new(TRACE_BYTES);
    w.at = (struct at *)proc_shared(sizeof *w.at);
    while (!is_over() && word_load(&totals->shown) < failures_max) {
        uint64_t no =
            atomic_fetch_add_explicit(&totals->next_trace, 1, memory_order_relaxed);

        w.script = choose_script(no);
        run.script = &scripts[w.script];
        run.seed = env_seed() + no;
        run.trace = w.trace[0];
        w.skip = 0;
        w.seed = run.seed;
        memset(w.at, 0, sizeof *w.at);
        work_history(&run);
        work_record(&run);
        word_add(&totals->traces[w.script], 1);
        explore_all(&w);
        disk_empty_dir(shm);
    }
}

/* replay -- a trace that was kept. */
static void
replay(const char *path)
{
    static struct run run;
    struct walk w = {.run = &run};
    char shm[500];

    w.trace[0] = record_new(TRACE_BYTES);
    w.at = (struct at *)proc_shared(sizeof *w.at);
    if (!record_load(w.trace[0], path, run.root, &w.script, &run.seed)) {
        printf("%s: %s\n", path, strerror(errno));
        exit(2);
    }
    snprintf(shm, sizeof shm, "mkdir -p '%s'", run.root);
    must(system(shm) == 0);
    snprintf(shm, sizeof shm, "%s-shm", run.root);
    must(mkdir(shm, 0777) == 0 || errno == EEXIST);
    must(setenv("XAC_SHM_DIR", shm, 1) == 0);
    run.script = &scripts[w.script];
    run.trace = w.trace[0];
    w.seed = run.seed;
    work_history(&run);
    explore_all(&w);
    disk_empty_dir(run.root);
    disk_empty_dir(shm);
    must(rmdir(run.root) == 0 && rmdir(shm) == 0);
}

/* ---- The table ------------------------------------------------------------------------- */

static uint64_t
sum_of(unsigned script, unsigned kind, enum outcome o)
{
    uint64_t n = 0;

    for (unsigned s = 0; s < n_scripts; s++) {
        for (unsigned k = 0; k < DISK_KINDS; k++) {
            if ((script == UINT32_MAX || s == script)
                && (kind == UINT32_MAX || k == kind))
                n += word_load(&totals->outcome[s][k][o]);
        }
    }
    return n;
}

static void
print_row(const char *name, unsigned script, unsigned kind)
{
    uint64_t n = 0;

    for (unsigned o = 0; o < OUTCOMES; o++)
        n += sum_of(script, kind, (enum outcome)o);
    printf("%-14s %9llu", name, (unsigned long long)n);
    for (unsigned o = OUTCOME_LOST; o < OUTCOMES; o++)
        printf(" %9llu", (unsigned long long)sum_of(script, kind, (enum outcome)o));
    printf("\n");
}

/* print_table -- ret states that did not come out right. */
static uint64_t
print_table(double seconds)
{
    uint64_t wrong = 0, traces = 0;

    printf("%-14s %9s", "crash states", "tried");
    for (unsigned o = OUTCOME_LOST; o < OUTCOMES; o++)
        printf(" %9s", outcome_name[o]);
    printf("\n");
    for (unsigned s = 0; s < n_scripts; s++) {
        traces += word_load(&totals->traces[s]);
        print_row(scripts[s].name, s, UINT32_MAX);
    }
    printf("\n");
    for (unsigned k = 0; k < DISK_KINDS; k++)
        print_row(disk_kind_name[k], UINT32_MAX, k);
    printf("\n");
    print_row("all", UINT32_MAX, UINT32_MAX);
    for (unsigned o = OUTCOME_LOST; o < OUTCOMES; o++)
        wrong += sum_of(UINT32_MAX, UINT32_MAX, (enum outcome)o);
    printf("%llu traces; %llu states after one cut, %llu after two, %llu after three; "
           "all different; %.0f states per minute\n",
           (unsigned long long)traces, (unsigned long long)word_load(&totals->depth[0]),
           (unsigned long long)word_load(&totals->depth[1]),
           (unsigned long long)word_load(&totals->depth[2]),
           (double)word_load(&totals->states) / seconds * 60);
    return wrong;
}

int
main(int argc, char **argv)
{
    uint64_t runners = env_number("XAC_RUNNERS", 2);
    char root[RUNNERS_MAX][400];
    pid_t pid[RUNNERS_MAX];
    double start = env_now();
    bool is_broken = false;

    env_in_memory();
    keep = getenv("XAC_KEEP") != NULL ? realpath(getenv("XAC_KEEP"), NULL) : NULL;
    failures_max = env_number("XAC_FAILURES", 20);
    states_wanted = env_number("XAC_STATES", 0);
    deadline = start + (double)env_number("XAC_SECONDS", states_wanted != 0 ? 86400 : 20);
    totals = (struct totals *)proc_shared(sizeof *totals);
    env_open();
    if (argc > 1) {
        deadline = start + 86400;
        replay(argv[1]);
        env_close();
        return print_table(env_now() - start) != 0;
    }
    must(runners <= RUNNERS_MAX);
    for (uint64_t i = 0; i < runners; i++) {
        must(getcwd(root[i], 300) != NULL);
        snprintf(root[i] + strlen(root[i]), 64, "/runner%llu", (unsigned long long)i);
        pid[i] = proc_spawn(run_runner, root[i]);
    }
    for (uint64_t i = 0; i < runners; i++)
        is_broken |= proc_wait(pid[i]) != 0;
    env_close();
    return print_table(env_now() - start) != 0 || is_broken;
}
