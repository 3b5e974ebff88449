/* SPDX-License-Identifier: MIT */
/*
 * check_seq.c -- several processes, one step at a time, against a model.
 *
 * GOAL    while others attach, detach, map, unmap, fork or checkpoint in between: a load
 *         finds what the last committed store left there, a query what was there when it
 *         began, and in the end the file has it all.
 * METHOD  actors are processes that do one random step each in turn, so that the model is a
 *         plain array.  Games are short at first: the first one that fails is small.  Each
 *         starts in an empty directory; its steps are printed if it fails.
 */
#include <config.h>

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"

#define ACTORS  3
#define PAGES   4
#define STEPS   60
#define MODE(i) (((i)&1) == 0 ? NONDURABLE : DURABLE)

enum op {
    ATTACH,
    DETACH,
    MAP,
    UNMAP,
    ADD,     /* increment one page */
    ADD_TWO, /* increment two pages, in two places of each */
    SPOIL,   /* store and abort */
    LOAD,    /* in a transaction */
    LOOK,    /* in a query */
    HOLD,    /* begin a query and look at one page */
    LET_GO,  /* look at all pages and end it */
    CHECKPOINT,
    N_OPS
};

static const char *const names[N_OPS] = {"attach", "detach",  "map",    "unmap",
                                         "add",    "add two", "spoil",  "load",
                                         "look",   "hold",    "let go", "checkpoint"};

struct step {
    int actor;
    enum op op;
    size_t a, b;              /* pages */
    uint64_t expected[PAGES]; /* values that loads must find */
};

struct board {
    _Atomic uint64_t turn;   /* step to do */
    _Atomic uint64_t n_done; /* actors that have finished */
    uint64_t n_steps;
    struct step steps[STEPS];
};

/* What the planner knows. */
struct plan {
    bool attached[ACTORS], mapped[ACTORS], holds[ACTORS];
    uint64_t held[ACTORS][PAGES]; /* state when its query began */
    uint64_t values[PAGES];
};

static struct board *board;
static int mode;
static uint64_t *x; /* in an actor: its mapping */

static volatile uint64_t *
cell(size_t page)
{
    return &x[page * env_page() / sizeof *x];
}

/* ---- actors ------------------------------------------------------------------------------ */

static void
map(void)
{
    x = xMmap(ENV_FILE, PAGES * env_page());
    if (x == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xMmap: %s", xLastError());
}

static void
must_see(const struct step *s, size_t page)
{
    if (*cell(page) != s->expected[page] || cell(page)[100] != s->expected[page])
        env_fail(__FILE__, __LINE__,
                 "step %td: page %zu holds %" PRIu64 " and %" PRIu64 ", not %" PRIu64,
                 s - board->steps, page, *cell(page), cell(page)[100], s->expected[page]);
}

static void
add(size_t page)
{
    ++*cell(page);
    ++cell(page)[100];
}

static void
do_transaction(const struct step *s)
{
    must_ok(xbegin());
    if (s->op == LOAD || s->op == SPOIL)
        must_see(s, s->a);
    if (s->op != LOAD)
        add(s->a);
    if (s->op == ADD_TWO)
        add(s->b);
    if (s->op == SPOIL)
        must_ok(xAbort());
    must_rc(xend(), s->op == SPOIL ? ABORTED : COMMITTED);
}

static void
do_step(const struct step *s)
{
    switch (s->op) {
    case ATTACH:
        env_init(mode);
        break;
    case DETACH:
        env_detach();
        break;
    case MAP:
        map();
        break;
    case UNMAP:
        must_ok(xMunmap(ENV_FILE));
        break;
    case LOOK:
    case HOLD:
        must_ok(xbeginQuery());
        must_see(s, s->a);
        if (s->op == LOOK)
            must_ok(xendQuery());
        break;
    case LET_GO:
        for (size_t page = 0; page < PAGES; page++)
            must_see(s, page);
        must_ok(xendQuery());
        break;
    case CHECKPOINT:
        must_ok(xCheckpoint());
        break;
    default:
        do_transaction(s);
    }
}

static void
actor(void *arg)
{
    int self = *(const int *)arg;

    for (uint64_t i = 0; i < board->n_steps; i++) {
        const struct step *s = &board->steps[i];

        if (s->actor != self)
            continue;
        for (unsigned k = 0; word_load(&board->turn) != i; k++) {
            if (k > 200)
                proc_sleep_us(20);
            else
                sched_yield();
        }
        do_step(s);
        word_store(&board->turn, i + 1);
    }
}

/* ---- planning ------------------------------------------------------------------------------ */

static bool
may(const struct plan *p, int who, enum op op)
{
    switch (op) {
    case ATTACH:
        return !p->attached[who];
    case DETACH:
        return p->attached[who] && !p->holds[who];
    case MAP:
        return p->attached[who] && !p->mapped[who];
    case UNMAP:
    case HOLD:
        return p->mapped[who] && !p->holds[who];
    case LET_GO:
        return p->holds[who];
    case CHECKPOINT:
        return p->attached[who] && !p->holds[who];
    default:
        return p->mapped[who] && !p->holds[who];
    }
}

static void
plan_step(struct plan *p, struct step *s, uint64_t *rnd)
{
    do {
        s->actor = (int)rnd_below(rnd, ACTORS);
        s->op = (unsigned)rnd_below(rnd, N_OPS);
    } while (!may(p, s->actor, s->op));
    s->a = rnd_below(rnd, PAGES);
    s->b = (s->a + 1 + rnd_below(rnd, PAGES - 1)) % PAGES;
    memcpy(s->expected, p->values, sizeof s->expected);
    if (s->op == LET_GO)
        memcpy(s->expected, p->held[s->actor], sizeof s->expected);
    if (s->op == HOLD)
        memcpy(p->held[s->actor], p->values, sizeof p->values);
    if (s->op == ADD || s->op == ADD_TWO)
        p->values[s->a]++;
    if (s->op == ADD_TWO)
        p->values[s->b]++;
    if (s->op == ATTACH || s->op == DETACH)
        p->attached[s->actor] = s->op == ATTACH;
    if (s->op == MAP || s->op == UNMAP || s->op == DETACH)
        p->mapped[s->actor] = s->op == MAP;
    if (s->op == HOLD || s->op == LET_GO)
        p->holds[s->actor] = s->op == HOLD;
}

/* Everybody lets go and detaches in the end. */
static void
plan_end(struct plan *p)
{
    for (int who = 0; who < ACTORS; who++) {
        struct step *s = &board->steps[board->n_steps];

        if (p->holds[who]) {
            *s = (struct step){.actor = who, .op = LET_GO};
            memcpy(s->expected, p->held[who], sizeof s->expected);
            s++;
            board->n_steps++;
        }
        if (p->attached[who]) {
            *s = (struct step){.actor = who, .op = DETACH};
            board->n_steps++;
        }
    }
}

static void
print_steps(uint64_t seed)
{
    printf("game %" PRIu64 ", %s:\n", seed, mode == DURABLE ? "DURABLE" : "NONDURABLE");
    for (uint64_t i = 0; i < board->n_steps; i++) {
        const struct step *s = &board->steps[i];

        printf("  %2" PRIu64 " actor %d: %s", i, s->actor, names[s->op]);
        if (s->op >= ADD && s->op <= HOLD)
            printf(" %zu", s->a);
        if (s->op == ADD_TWO)
            printf(" %zu", s->b);
        printf("\n");
    }
    fflush(stdout);
}

static void
play(uint64_t seed, uint64_t n_steps)
{
    static int numbers[ACTORS] = {0, 1, 2};
    struct plan plan = {.attached = {false}};
    uint64_t rnd = seed;
    pid_t pid[ACTORS];
    int n_failed = 0;

    memset(board, 0, sizeof *board);
    while (board->n_steps < n_steps)
        plan_step(&plan, &board->steps[board->n_steps++], &rnd);
    plan_end(&plan);
    for (int i = 0; i < ACTORS; i++)
        pid[i] = proc_spawn(actor, &numbers[i]);
    for (double end = env_now() + 20; word_load(&board->turn) < board->n_steps;) {
        if (env_now() > end || proc_any_failed()) {
            n_failed++;
            break;
        }
        proc_sleep_us(100);
    }
    for (int i = 0; i < ACTORS; i++) {
        if (n_failed != 0)
            proc_kill(pid[i]);
        else
            n_failed += proc_wait(pid[i]) != 0;
    }
    for (size_t page = 0; page < PAGES && n_failed == 0 && file_exists(ENV_FILE);
         page++) {
        uint64_t found = file_u64(ENV_FILE, page * env_page());

        if (found != plan.values[page]) {
            printf("file: page %zu holds %" PRIu64 ", not %" PRIu64 "\n", page, found,
                   plan.values[page]);
            n_failed++;
        }
    }
    if (n_failed != 0) {
        print_steps(seed);
        env_fail(__FILE__, __LINE__, "game %" PRIu64 " failed: see its steps above",
                 seed);
    }
}

START_TEST(steps_follow_the_model)
{
    uint64_t n = env_number("XAC_GAMES", _i % 2 == 0 ? 80 : 40);
    uint64_t seed = env_seed() + (uint64_t)_i * 1000000;
    char dir[32];

    mode = MODE(_i);
    env_checking = (_i & 2) != 0 ? XAC_CHECKING_FAST : XAC_CHECKING_STRICT;
    board = proc_shared(sizeof *board);
    for (uint64_t i = 0; i < n; i++) {
        snprintf(dir, sizeof dir, "game-%" PRIu64, i);
        must(mkdir(dir, 0755) == 0 && chdir(dir) == 0);
        play(seed + i, 6 + i * (STEPS - 2 * ACTORS - 6) / n);
        must(chdir("..") == 0);
    }
    printf("%s%s: %" PRIu64 " games\n", mode == DURABLE ? "durable" : "nondurable",
           env_checking != XAC_CHECKING_STRICT ? ", staying mapped" : "", n);
}
END_TEST

static Suite *
seq_suite(void)
{
    Suite *s = suite_create("seq");
    TCase *tc = env_tcase(s, "seq", 120);

    tcase_add_loop_test(tc, steps_follow_the_model, 0, 4);
    return s;
}

int
main(void)
{
    return env_main(seq_suite());
}
