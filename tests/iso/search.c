/* SPDX-License-Identifier: MIT */
/*
 * search.c -- see search.h.
 *
 * Depth first, by running each schedule again from the start: a schedule is the list of
 * choices made where there was more than one way to go on.  A state that has been met
 * before, with the same left to be done, is not followed again.
 */
#include <config.h>

#include "search.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "sim.h"
#include "world.h"

#define CHOICES_MAX 4096
#define EVENTS_MAX  4096

/* Seconds after which a run counts as hanging. */
#define RUN_SECONDS 20

struct choice {
    uint16_t taken, n;
};

/* What has happened, to be told if something is wrong. */
struct event {
    char actor, what;
    char step[3];
    const volatile void *at;
    uint64_t value;
};

/* One run. */
struct run {
    const struct scenario *scenario;
    struct world *world;
    struct model model;
    const char *pc[MODEL_ACTORS];
    uint32_t
        is_within;     /* participants in the middle of a step                          */
    uint32_t is_fresh; /* that have done nothing of their step yet                      */
    int preempts_left, deaths_left;
    int preempted; /* just now; or -1                                                    */
    int n_actors;
    size_t n_choices, n_events;
    bool is_pruned, is_draining;
};

/* By policy and members; 0 members: pages stay mapped, one member and guests. */
static struct world worlds[MODEL_POLICIES][MODEL_ACTORS + 1];
static struct run run;
static struct choice choices[CHOICES_MAX];
static struct event events[EVENTS_MAX];
static uint64_t *random_seed; /* NULL: search all                                       */
static struct tally *tally;

/* has_digit -- is a step more than one letter? */
static bool
has_digit(const char *step)
{
    return strchr("rwsufhotp", *step) != NULL;
}

/* ---- Telling what went wrong ----------------------------------------------------------- */

static void
note(int a, char what, const volatile void *at, uint64_t value)
{
    struct event *e = &events[run.n_events];

    if (run.n_events == EVENTS_MAX)
        return;
    run.n_events++;
    *e = (struct event){.actor = (char)('A' + a), .what = what, .at = at, .value = value};
    if (run.pc[a] != NULL && *run.pc[a] != '\0') {
        e->step[0] = run.pc[a][0];
        e->step[1] = has_digit(run.pc[a]) ? run.pc[a][1] : '\0';
    }
}

static void
tell_event(const struct event *e)
{
    char name[64];

    switch (e->what) {
    case 'p':
        printf("  %c     preempted before %s\n", e->actor,
               world_name(run.world, e->at, name));
        break;
    case 'd':
        printf("  %c     dies%s%s\n", e->actor, e->at == NULL ? "" : " before ",
               e->at == NULL ? "" : world_name(run.world, e->at, name));
        break;
    case '=':
        printf("  %c %-3s done, %llx\n", e->actor, e->step, (unsigned long long)e->value);
        break;
    case 'P':
        printf("  %c     is published as %llu\n", e->actor, (unsigned long long)e->value);
        break;
    default:
        printf("  %c %-3s goes on\n", e->actor, e->step);
    }
}

static void
tell(void)
{
    const struct scenario *s = run.scenario;

    if (s == NULL)
        return;
    printf("scenario \"%s\", policy %d%s, %d preemptions, %d deaths:", s->name,
           (int)s->policy, s->stays_mapped ? ", pages stay mapped" : "", s->preempts,
           s->deaths);
    for (int a = 0; a < run.n_actors; a++)
        printf("  %c: %s", 'A' + a, s->program[a]);
    printf("\n");
    for (size_t i = 0; i < run.n_events; i++)
        tell_event(&events[i]);
    (void)fflush(stdout);
}

_Noreturn void
sim_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    printf("%s:%d: ", file, line);
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    printf("\n");
    (void)fflush(stdout);
    tell();
    search_close(false);
    _exit(1);
}

/* on_signal -- the library has stopped, or does not: tell the schedule. */
static void
on_signal(int sig)
{
    printf("signal %d%s\n", sig, sig == SIGALRM ? ": a run does not end" : "");
    (void)fflush(stdout);
    tell();
    search_close(false);
    _exit(1);
}

/* wrong -- a judgement of the model. */
static void
wrong(int a, const char *what)
{
    if (what != NULL && !run.is_draining)
        sim_fail(__FILE__, __LINE__, "participant %c: %s", 'A' + a, what);
}

/* ---- Choices --------------------------------------------------------------------------- */

uint64_t
search_random_below(uint64_t *seed, uint64_t n)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed % n;
}

/* choose -- one of n ways; the first time the first. */
static int
choose(int n)
{
    struct choice *c = &choices[run.n_choices];

    if (random_seed != NULL)
        return (int)search_random_below(random_seed, (uint64_t)n);
    sim_must(run.n_choices < CHOICES_MAX);
    if (c->n == 0)
        c->n = (uint16_t)n;
    if (c->n != n)
        sim_fail(__FILE__, __LINE__, "the same choices led elsewhere: %d ways, not %d", n,
                 c->n);
    run.n_choices++;
    return c->taken;
}

/* next_schedule -- the choices of the next run; false: all have been tried. */
static bool
next_schedule(void)
{
    size_t n = run.n_choices;

    while (n > 0 && choices[n - 1].taken + 1 == choices[n - 1].n) {
        n--;
        choices[n] = (struct choice){0};
    }
    if (n == 0)
        return false;
    choices[n - 1].taken++;
    return true;
}

static bool
others_can_run(int a)
{
    for (int i = 0; i < run.n_actors; i++) {
        if (i != a && sim_is_runnable(i))
            return true;
    }
    return false;
}

static enum sim_choice
decide(const volatile void *at, bool is_store)
{
    int a = sim_current();
    bool may_preempt = run.preempts_left > 0, may_die, is_fresh;
    int n, c;

    may_die = run.deaths_left > 0 && is_store && (run.scenario->mortals >> a & 1) != 0;
    if ((!may_preempt && !may_die) || run.is_draining || !world_is_point(run.world, at))
        return SIM_GO_ON;
    is_fresh = (run.is_fresh >> a & 1) != 0;
    run.is_fresh &= ~(1u << a);
    may_preempt = may_preempt && !is_fresh && others_can_run(a);
    n = 1 + may_preempt + may_die;
    c = n > 1 ? choose(n) : 0;
    if (c == 0)
        return SIM_GO_ON;
    run.model.is_exact = 0;
    if (c == 1 && may_preempt) {
        run.preempts_left--;
        run.preempted = a;
        note(a, 'p', at, 0);
        return SIM_PREEMPT;
    }
    run.deaths_left--;
    note(a, 'd', at, 0);
    return SIM_DIE;
}

static void
stored(const volatile void *at)
{
    int a;

    if (run.scenario == NULL)
        return;
    a = world_publisher(run.world, at);
    if (a == -1)
        return;
    if (a >= 0 && a < run.n_actors) {
        note(a, 'P', NULL, run.world->last_number);
        wrong(a, model_published(&run.model, a));
    }
    model_numbered(&run.model);
    world_numbered(run.world, run.model.n_states - 1);
}

static void
died(int a)
{
    world_die(run.world, a);
    model_died(&run.model, a);
    run.is_within |= 1u << a;
    sim_clock_advance(10000000);
    tally->deaths++;
}

/* ---- Steps ----------------------------------------------------------------------------- */

static void
step_begin(int a, bool is_query)
{
    model_begins(&run.model, a, is_query);
    world_begin(run.world, a, is_query);
    wrong(a, model_begun(&run.model, a, world_age(run.world, a),
                         world_has_turn(run.world, a)));
}

/* step_access -- read a page; or store in it, something new or what it holds. */
static uint64_t
step_access(int a, char how, int page)
{
    bool is_write = how != 'r';
    uint64_t value;

    model_wants(&run.model, a, page, is_write);
    value = world_read(run.world, a, page, is_write);
    wrong(a, model_saw(&run.model, a, page, value, is_write));
    if (how == 'w')
        value = (uint64_t)(a + 1) << 16 | run.model.actor[a].n_begun << 8
                | (uint64_t)(run.pc[a] - run.scenario->program[a]);
    if (is_write) {
        model_stored(&run.model, a, page, value);
        world_store(run.world, a, page, value);
    }
    return value;
}

static uint64_t
step_end(int a)
{
    bool is_query = run.model.actor[a].status == MODEL_QUERY;
    bool is_committed;

    model_ends(&run.model, a);
    is_committed = world_end(run.world, a);
    wrong(a, model_ended(&run.model, a, is_committed));
    if (!is_query && is_committed)
        tally->commits++;
    else if (!is_query)
        tally->aborts++;
    return is_committed;
}

/* step_level -- roll back to a savepoint, or release it. */
static uint64_t
step_level(int a, char how, int level)
{
    bool has = model_has_mark(&run.model, a, level);
    bool ok = how == 'u' ? world_roll_back(run.world, a, level)
                         : world_release(run.world, a, level);

    if (ok != has)
        wrong(a, ok ? "a savepoint that is gone is there" : "a savepoint is not there");
    else if (ok && how == 'u')
        model_rolled_back(&run.model, a, level);
    else if (ok)
        model_released(&run.model, a, level);
    return ok;
}

static uint64_t
step_mark(int a)
{
    int level = (int)run.model.actor[a].n_marks;

    sim_must(level < MODEL_MARKS);
    world_savepoint(run.world, a, level);
    model_marked(&run.model, a);
    return (uint64_t)level;
}

/* step_held -- take a snapshot, or release it. */
static uint64_t
step_held(int a, char how, int held)
{
    bool was_gone, ok;

    if (how == 'h') {
        sim_must(run.model.held[held].is_taken == 0);
        model_holds(&run.model, a, held);
        world_hold(run.world, a, held);
        model_holding(&run.model, a, held);
        return 1;
    }
    was_gone = model_lets_go(&run.model, held);
    ok = world_let_go(run.world, a, held);
    wrong(a, model_let_go(&run.model, held, was_gone, ok));
    return ok;
}

/* step_begin_at -- begin a query at a snapshot, or in the past; if it is refused, go to its end. */
static uint64_t
step_begin_at(int a, char how, int n)
{
    uint32_t state;
    bool was_gone, ok;

    if (how == 't') {
        was_gone = model_begins_at(&run.model, a, n);
        ok = world_begin_at(run.world, a, n);
        wrong(a, model_begun_at(&run.model, a, n, was_gone, ok));
    } else {
        state = model_past(&run.model, n);
        model_begins(&run.model, a, true);
        ok = world_begin_past(run.world, a, state);
        wrong(a, model_begun_past(&run.model, a, state, ok));
    }
    if (!ok)
        run.pc[a] = strchr(run.pc[a], 'e');
    return ok;
}

static void
step_join(int a)
{
    model_joins(&run.model);
    world_join(run.world, a);
    model_joined(&run.model, a);
}

static uint64_t
do_step(int a, const char *s)
{
    switch (*s) {
    case 'b':
    case 'q':
        step_begin(a, *s == 'q');
        return 0;
    case 'm':
        return step_mark(a);
    case 'u':
    case 'f':
        return step_level(a, *s, s[1] - '0');
    case 'h':
    case 'o':
        return step_held(a, *s, s[1] - '0');
    case 't':
    case 'p':
        return step_begin_at(a, *s, s[1] - '0');
    case 'r':
    case 'w':
    case 's':
        return step_access(a, *s, s[1] - '0');
    case 'e':
        return step_end(a);
    case 'a':
        world_abort(run.world, a);
        model_gave_up(&run.model, a);
        return 0;
    case 'c':
        world_gc(run.world, a);
        return 0;
    case 'k':
        world_checkpoint(run.world, a);
        return 0;
    case 'x':
        world_reap(run.world, a);
        return 0;
    case 'j':
        step_join(a);
        return 0;
    case 'l':
        world_leave(run.world, a);
        model_leave(&run.model, a);
        return 0;
    default:
        sim_fail(__FILE__, __LINE__, "no such step: %c", *s);
    }
}

static const char *
behind(const char *s)
{
    s += has_digit(s) ? 2 : 1;
    while (*s == ' ')
        s++;
    return s;
}

static void
body(int a)
{
    while (*run.pc[a] != '\0') {
        uint64_t value = do_step(a, run.pc[a]);

        note(a, '=', NULL, value);
        run.pc[a] = behind(run.pc[a]);
        run.is_within &= ~(1u << a);
        run.is_fresh |= 1u << a;
        tally->steps++;
        if (*run.pc[a] != '\0')
            sim_between();
    }
}

/* ---- States met before ------------------------------------------------------------------ */

static uint64_t *met;
static size_t met_size, met_used;

static void
met_clear(void)
{
    if (met_size > 1u << 16) {
        free(met);
        met = NULL;
        met_size = 0;
    }
    if (met == NULL) {
        met_size = 1u << 16;
        met = calloc(met_size, sizeof *met);
        sim_must(met != NULL);
    } else if (met_used > 0) {
        memset(met, 0, met_size * sizeof *met);
    }
    met_used = 0;
}

static bool
met_insert(uint64_t *table, size_t size, uint64_t key)
{
    size_t i = key & (size - 1);

    while (table[i] != 0 && table[i] != key)
        i = (i + 1) & (size - 1);
    if (table[i] == key)
        return false;
    table[i] = key;
    return true;
}

/* met_add -- false if the state has been met before. */
static bool
met_add(uint64_t key)
{
    if (met_used * 2 > met_size) {
        uint64_t *more = calloc(met_size * 2, sizeof *more);

        sim_must(more != NULL);
        for (size_t i = 0; i < met_size; i++) {
            if (met[i] != 0)
                (void)met_insert(more, met_size * 2, met[i]);
        }
        free(met);
        met = more;
        met_size *= 2;
    }
    if (!met_insert(met, met_size, key == 0 ? 1 : key))
        return false;
    met_used++;
    return true;
}

/* Scheduler's share of a state. */
struct standing {
    uint64_t hash, clock;
    const char *pc[MODEL_ACTORS];
    int state[MODEL_ACTORS], is_runnable[MODEL_ACTORS];
    uint32_t is_within, is_fresh;
    int preempts_left, deaths_left, preempted;
};

static uint64_t
state_key(void)
{
    struct standing st;
    uint64_t h;

    memset(&st, 0, sizeof st);
    st.hash = world_hash(run.world, xac_xxh64(&run.model, sizeof run.model));
    st.clock = sim_clock();
    st.is_within = run.is_within;
    st.is_fresh = run.is_fresh;
    st.preempts_left = run.preempts_left;
    st.deaths_left = run.deaths_left;
    st.preempted = run.preempted;
    for (int a = 0; a < run.n_actors; a++) {
        st.pc[a] = run.pc[a];
        st.state[a] = (int)sim_state(a);
        st.is_runnable[a] = sim_is_runnable(a);
    }
    h = xac_xxh64(&st, sizeof st);
    for (int a = 0; a < run.n_actors; a++) {
        enum sim_state s = sim_state(a);
        const void *regs, *stack;
        size_t n_regs, n_stack;

        if (s != SIM_MIDWAY && s != SIM_BLOCKED && s != SIM_SPINNING)
            continue;
        sim_place(a, &regs, &n_regs, &stack, &n_stack);
        h = h * 31 + xac_xxh64(regs, n_regs);
        h = h * 31 + xac_xxh64(stack, n_stack);
    }
    return h;
}

/* ---- One schedule ------------------------------------------------------------------------ */

/* ready -- who can run next; one who was preempted just now only if nobody else can. */
static int
ready(int *list)
{
    int n = 0;

    for (int a = 0; a < run.n_actors; a++) {
        if (a != run.preempted && sim_is_runnable(a))
            list[n++] = a;
    }
    if (n == 0 && run.preempted >= 0 && sim_is_runnable(run.preempted))
        list[n++] = run.preempted;
    return n;
}

/* prune -- stop following what has been followed. */
static void
prune(void)
{
    if (random_seed != NULL || run.is_draining)
        return;
    if (choices[run.n_choices].n != 0)
        return; /* on the way to where the schedule is new */
    if (met_add(state_key()))
        return;
    run.is_pruned = true;
    /* A guest that is attaching cannot be put away in the middle. */
    run.is_draining = run.scenario->stays_mapped;
}

static void
let_run(int a)
{
    if (sim_state(a) == SIM_BETWEEN && *run.pc[a] == 'd') {
        note(a, 'd', NULL, 0);
        sim_kill(a);
        return;
    }
    note(a, ' ', NULL, 0);
    run.is_within |= 1u << a;
    run.preempted = -1;
    sim_run(a);
    if (sim_state(a) == SIM_BLOCKED || sim_state(a) == SIM_SPINNING)
        run.model.is_exact = 0;
}

static void
run_reset(const struct scenario *s)
{
    memset(&run, 0, sizeof run);
    run.preempted = -1;
    while (run.n_actors < MODEL_ACTORS && s->program[run.n_actors] != NULL)
        run.n_actors++;
    run.world = &worlds[s->policy][s->stays_mapped ? 0 : run.n_actors];
    if (run.world->dir == NULL)
        world_open(run.world, s->stays_mapped ? 1 : run.n_actors, s->policy,
                   s->stays_mapped);
    world_restore(run.world);
    run.scenario = s;
    run.preempts_left = s->preempts;
    run.deaths_left = s->deaths;
    run.is_fresh = UINT32_MAX;
    model_init(&run.model, s->policy, run.world->n_members, s->stays_mapped);
    run.model.window = s->window;
    world_keep_history(run.world, s->window);
    sim_reset();
    for (int a = 0; a < run.n_actors; a++) {
        run.pc[a] = s->program[a];
        sim_spawn(a, body);
    }
}

static void
run_once(const struct scenario *s)
{
    int list[MODEL_ACTORS];

    (void)alarm(RUN_SECONDS);
    run_reset(s);
    for (;;) {
        int n = ready(list);

        if (n == 0 && sim_time_passes())
            continue;
        if (n == 0)
            break;
        if (n > 1)
            prune();
        if (run.is_pruned && !run.is_draining)
            break;
        let_run(list[n > 1 && !run.is_draining ? choose(n) : 0]);
        if (!run.is_draining)
            world_check(run.world, &run.model, run.is_within);
    }
    for (int a = 0; a < run.n_actors && !run.is_pruned; a++) {
        if (sim_state(a) != SIM_DONE && sim_state(a) != SIM_DEAD)
            sim_fail(__FILE__, __LINE__, "participant %c waits for ever", 'A' + a);
    }
    if (!run.is_pruned)
        world_check_end(run.world, &run.model);
    tally->schedules += !run.is_pruned;
    tally->pruned += run.is_pruned;
    run.scenario = NULL;
}

/* ---- Many -------------------------------------------------------------------------------- */

void
search_open(void)
{
    static const struct sim_hooks hooks = {decide, stored, died};
    struct sigaction sa;

    sim_init(&hooks);
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_signal;
    (void)sigaction(SIGABRT, &sa, NULL);
    (void)sigaction(SIGSEGV, &sa, NULL);
    (void)sigaction(SIGALRM, &sa, NULL);
    sim_reset();
}

void
search_close(bool is_orderly)
{
    run.scenario = NULL;
    for (int i = 0; i < MODEL_POLICIES * (MODEL_ACTORS + 1); i++) {
        struct world *w = &worlds[i / (MODEL_ACTORS + 1)][i % (MODEL_ACTORS + 1)];

        if (w->dir == NULL)
            continue;
        if (is_orderly)
            world_close(w);
        else
            world_remove(w);
    }
}

void
search_all(const struct scenario *s, struct tally *t)
{
    tally = t;
    random_seed = NULL;
    memset(choices, 0, sizeof choices);
    met_clear();
    do {
        run_once(s);
    } while (next_schedule());
    t->states += met_used;
    t->scenarios++;
}

void
search_random(const struct scenario *s, uint64_t n, uint64_t *seed, struct tally *t)
{
    tally = t;
    random_seed = seed;
    for (uint64_t i = 0; i < n; i++)
        run_once(s);
    t->scenarios++;
}
