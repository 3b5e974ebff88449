/* SPDX-License-Identifier: MIT */
/*
 * check_iso.c -- isolation, interleaving by interleaving.
 *
 * GOAL    whatever the order of the steps of two or three transactions: the committed ones
 *         are serializable, in an order that respects which ended before which began; each
 *         aborted one saw the state after some of them; each query saw exactly what had
 *         committed when it began; and somebody gets through.
 * METHOD  actors are processes; a game is a list of steps (actor, operation), which they
 *         do one at a time in that order.  The judge knows the programs, the values read and
 *         the commits, and tries all serial orders.
 *
 * The named programs are those of Adya, "Weak Consistency" (MIT 1999), and of Fekete,
 * O'Neil and O'Neil, "A read-only transaction anomaly under snapshot isolation" (2004).
 */
#include <config.h>

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"

#define ACTORS 3
#define CELLS  3
#define OPS    8
#define STEPS  (ACTORS * OPS)

/*
 * Programs are strings: 'a'..'c' loads the cell, 'A'..'C' stores a new value in it, '(' and
 * ')' are xbegin and xend, '[' and ']' xbeginQuery and xendQuery, '!' is xAbort, '*'
 * xCheckpoint, '{' and '}' a nested transaction.
 */
struct game {
    _Atomic uint64_t number;  /* of the game; actors wait for the next one             */
    _Atomic uint64_t turn;    /* step to do; n_steps when all are done                 */
    _Atomic uint64_t n_ready; /* actors attached                                       */
    uint64_t n_steps;
    int actor[STEPS];       /* who does the step                                      */
    char op[STEPS];         /* what                                                   */
    uint64_t value[STEPS];  /* read, or to be stored                                  */
    int outcome[ACTORS];    /* of xend(): COMMITTED, ABORTED; 0 for a query           */
    uint64_t before[CELLS]; /* state at the start                                     */
    uint64_t after[CELLS];  /* and at the end, by a query of actor 0                  */
};

static struct game *game;
static int mode;
static pid_t actors[ACTORS];
static uint64_t n_committed, n_aborted, n_games;

/* ---- actors ------------------------------------------------------------------------------ */

static void
wait_for_turn(const _Atomic uint64_t *word, uint64_t value)
{
    for (unsigned i = 0; word_load(word) != value; i++) {
        if (i > 200)
            proc_sleep_us(20);
        else
            sched_yield();
    }
}

static void
do_step(uint64_t *cells, uint64_t i, int self)
{
    size_t page = env_page() / sizeof *cells;
    char op = game->op[i];

    switch (op) {
    case '(':
    case '{':
        must_ok(xbegin());
        break;
    case '[':
        must_ok(xbeginQuery());
        break;
    case ')':
        game->outcome[self] = xend();
        must(game->outcome[self] == COMMITTED || game->outcome[self] == ABORTED);
        break;
    case '}': {
        int rc = xend();

        must(rc == PENDING || rc == FAILED);
        break;
    }
    case ']':
        must_ok(xendQuery());
        break;
    case '!':
        must_ok(xAbort());
        break;
    case '*':
        must_ok(xCheckpoint());
        break;
    default:
        if (op >= 'a')
            game->value[i] = *(volatile uint64_t *)&cells[(size_t)(op - 'a') * page];
        else
            *(volatile uint64_t *)&cells[(size_t)(op - 'A') * page] = game->value[i];
    }
}

static void
look(const uint64_t *cells, uint64_t *values)
{
    must_ok(xbeginQuery());
    for (size_t c = 0; c < CELLS; c++)
        values[c] = *(const volatile uint64_t *)&cells[c * env_page() / sizeof *cells];
    must_ok(xendQuery());
}

/* win_something -- an actor that lost several times in a row would have a turn under the optimistic
   policy, in which the others wait for it; in a game they would wait for ever. */
static void
win_something(uint64_t *cells, int self)
{
    must_ok(xbegin());
    cells[(size_t)(CELLS + self) * env_page() / sizeof *cells]++;
    must_rc(xend(), COMMITTED);
}

static void
actor(void *arg)
{
    int self = *(const int *)arg;
    uint64_t *cells = env_attach(mode, CELLS + ACTORS);

    word_add(&game->n_ready, 1);
    for (uint64_t number = 1;; number++) {
        wait_for_turn(&game->number, number);
        if (game->n_steps == 0)
            break;
        for (uint64_t i = 0; i < game->n_steps; i++) {
            if (game->actor[i] != self)
                continue;
            wait_for_turn(&game->turn, i);
            do_step(cells, i, self);
            word_store(&game->turn, i + 1);
        }
        wait_for_turn(&game->turn, game->n_steps);
        if (self == 0)
            look(cells, game->after);
        if (game->outcome[self] == ABORTED)
            win_something(cells, self);
        word_add(&game->n_ready, 1);
    }
    env_detach();
}

/* ---- the judge --------------------------------------------------------------------------- */

struct judgement {
    const char *program[ACTORS]; /* NULL: takes no part */
    int begin[ACTORS], end[ACTORS];
    bool commits[ACTORS];
};

/*
 * Replay one actor's steps on a state; its loads must be what was recorded.
 *
 * ret  false if they are not; the state is then undefined.
 */
static bool
replay(int who, uint64_t *state)
{
    for (uint64_t i = 0; i < game->n_steps; i++) {
        char op = game->op[i];

        if (game->actor[i] != who)
            continue;
        if (op >= 'a' && op < 'a' + CELLS && state[op - 'a'] != game->value[i])
            return false;
        if (op >= 'A' && op < 'A' + CELLS)
            state[op - 'A'] = game->value[i];
    }
    return true;
}

/* Is there a store in the program?  Where the policy is optimistic, a transaction without one
   commits with what it began with, and so before others that have committed meanwhile. */
static bool
has_store(const char *program)
{
    return strpbrk(program, "ABC") != NULL;
}

/* Could `who`, which did not commit, have seen the state after some of the order? */
static bool
spectator_fits(const struct judgement *j, int who, const int *order, int n)
{
    bool is_query = j->program[who][0] == '[';
    uint64_t state[CELLS], trial[CELLS];

    memcpy(state, game->before, sizeof state);
    for (int k = 0; k <= n; k++) {
        bool possible = true;

        for (int i = 0; i < n; i++) {
            bool was_before = j->end[order[i]] < j->begin[who];

            if (i >= k && was_before)
                possible = false;
            if (is_query && i < k && !was_before && has_store(j->program[order[i]]))
                possible = false;
        }
        memcpy(trial, state, sizeof trial);
        if (possible && replay(who, trial))
            return true;
        if (k < n && !replay(order[k], state))
            return false;
    }
    return false;
}

static bool
order_fits(const struct judgement *j, const int *order, int n)
{
    uint64_t state[CELLS];

    memcpy(state, game->before, sizeof state);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) {
            if (j->end[order[i]] < j->begin[order[k]])
                return false;
        }
        if (!replay(order[i], state))
            return false;
    }
    if (memcmp(state, game->after, sizeof state) != 0)
        return false;
    for (int who = 0; who < ACTORS; who++) {
        if (j->program[who] != NULL && j->program[who][0] != '*' && !j->commits[who]
            && !spectator_fits(j, who, order, n))
            return false;
    }
    return true;
}

/* Try all orders of the committed ones. */
static bool
any_order_fits(const struct judgement *j, int *order, int n, int n_placed)
{
    if (n_placed == n)
        return order_fits(j, order, n);
    for (int i = n_placed; i < n; i++) {
        int swap = order[n_placed];
        bool fits;

        order[n_placed] = order[i];
        order[i] = swap;
        fits = any_order_fits(j, order, n, n_placed + 1);
        order[i] = order[n_placed];
        order[n_placed] = swap;
        if (fits)
            return true;
    }
    return false;
}

static void
print_game(const struct judgement *j)
{
    printf("before:");
    for (int c = 0; c < CELLS; c++)
        printf(" %c=%" PRIu64, 'a' + c, game->before[c]);
    printf("\n");
    for (uint64_t i = 0; i < game->n_steps; i++)
        printf("  actor %d  %c  %" PRIu64 "\n", game->actor[i], game->op[i],
               game->value[i]);
    printf("after: ");
    for (int c = 0; c < CELLS; c++)
        printf(" %c=%" PRIu64, 'a' + c, game->after[c]);
    for (int who = 0; who < ACTORS; who++) {
        if (j->program[who] != NULL)
            printf("; actor %d %s", who,
                   j->commits[who] ? "committed" : "did not commit");
    }
    printf("\n");
    fflush(stdout);
}

/* Whether nobody else was between begin and end. */
static bool
ran_alone(const struct judgement *j, int who)
{
    for (int other = 0; other < ACTORS; other++) {
        if (other != who && j->program[other] != NULL && j->begin[other] < j->end[who]
            && j->end[other] > j->begin[who])
            return false;
    }
    return true;
}

static void
judge(const char *const *program)
{
    struct judgement j = {.program = {NULL}};
    int order[ACTORS], n = 0, n_willing = 0, n_unwilling = 0;
    bool lost[ACTORS] = {false}, alone_lost = false;

    for (int who = 0; who < ACTORS; who++) {
        bool is_txn = program[who] != NULL && program[who][0] == '(';
        bool willing = is_txn && strchr(program[who], '!') == NULL;

        j.program[who] = program[who];
        j.begin[who] = j.end[who] = -1;
        for (int i = 0; i < (int)game->n_steps; i++) {
            if (game->actor[i] != who)
                continue;
            if (j.begin[who] < 0)
                j.begin[who] = i;
            j.end[who] = i;
        }
        j.commits[who] = is_txn && game->outcome[who] == COMMITTED;
        n_willing += willing;
        n_unwilling += is_txn && !willing;
        if (j.commits[who])
            order[n++] = who;
        else
            lost[who] = willing;
        n_committed += j.commits[who];
        n_aborted += is_txn && !j.commits[who];
    }
    for (int who = 0; who < ACTORS; who++)
        alone_lost = alone_lost || (lost[who] && ran_alone(&j, who));
    n_games++;
    if (!any_order_fits(&j, order, n, 0)) {
        print_game(&j);
        env_fail(__FILE__, __LINE__, "not serializable, see the game above");
    }
    if (alone_lost || (n_willing > 0 && n_unwilling == 0 && n == 0)) {
        print_game(&j);
        env_fail(__FILE__, __LINE__, "nobody got through, see the game above");
    }
}

/* ---- games --------------------------------------------------------------------------------- */

static void
start_actors(int wanted_mode)
{
    static int numbers[ACTORS] = {0, 1, 2};

    env_let_overlap();
    mode = wanted_mode;
    n_committed = n_aborted = n_games = 0;
    game = proc_shared(sizeof *game);
    for (int i = 0; i < ACTORS; i++)
        actors[i] = proc_spawn(actor, &numbers[i]);
    proc_await(&game->n_ready, ACTORS, 20);
}

static void
play_steps(void)
{
    uint64_t number = word_load(&game->number);

    word_store(&game->turn, 0);
    word_store(&game->n_ready, 0);
    word_store(&game->number, number + 1);
}

static void
stop_actors(const char *what)
{
    game->n_steps = 0;
    play_steps();
    for (int i = 0; i < ACTORS; i++)
        proc_join(actors[i]);
    printf("%s: %" PRIu64 " games, %" PRIu64 " commits, %" PRIu64 " aborts\n", what,
           n_games, n_committed, n_aborted);
}

/* Play one order of steps: order[i] is the actor of step i. */
static void
play(const char *const *program, const int *order, uint64_t n_steps)
{
    size_t next[ACTORS] = {0};

    for (uint64_t i = 0; i < n_steps; i++) {
        int who = order[i];

        game->actor[i] = who;
        game->op[i] = program[who][next[who]++];
        game->value[i] = (n_games + 1) * 1000 + i + 1;
    }
    game->n_steps = n_steps;
    memcpy(game->before, game->after, sizeof game->before);
    play_steps();
    for (double end = env_now() + 20;;) {
        int status;

        if (word_load(&game->n_ready) == ACTORS)
            break;
        sched_yield();
        if (env_now() < end)
            continue;
        for (int i = 0; i < ACTORS; i++)
            proc_kill(actors[i]);
        status = (int)word_load(&game->turn);
        env_fail(__FILE__, __LINE__, "stuck at step %d ('%c' of actor %d)", status,
                 game->op[status], game->actor[status]);
    }
    judge(program);
}

/* All ways to interleave what is left of the programs. */
static void
play_all(const char *const *program, int *order, uint64_t n_placed, size_t *left)
{
    bool any = false;

    for (int who = 0; who < ACTORS; who++) {
        if (left[who] == 0)
            continue;
        any = true;
        left[who]--;
        order[n_placed] = who;
        play_all(program, order, n_placed + 1, left);
        left[who]++;
    }
    if (!any)
        play(program, order, n_placed);
}

static void
play_every_order(const char *const *program)
{
    int order[STEPS];
    size_t left[ACTORS];

    for (int who = 0; who < ACTORS; who++)
        left[who] = program[who] != NULL ? strlen(program[who]) : 0;
    play_all(program, order, 0, left);
}

static void
play_random_order(const char *const *program, uint64_t *rnd)
{
    int order[STEPS];
    size_t left[ACTORS], n_left = 0;
    uint64_t n = 0;

    for (int who = 0; who < ACTORS; who++) {
        left[who] = program[who] != NULL ? strlen(program[who]) : 0;
        n_left += left[who];
    }
    for (; n_left > 0; n_left--) {
        uint64_t pick = rnd_below(rnd, n_left);
        int who = 0;

        while (pick >= left[who])
            pick -= left[who++];
        left[who]--;
        order[n++] = who;
    }
    play(program, order, n);
}

/* ---- named anomalies ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    const char *program[ACTORS];
} pairs[] = {
    {"dirty write", {"(AB)", "(AB)", NULL}},
    {"dirty read", {"(A!)", "(aa)", NULL}},
    {"intermediate read", {"(AA)", "(aa)", NULL}},
    {"circular information flow", {"(Ab)", "(Ba)", NULL}},
    {"lost update", {"(aA)", "(aA)", NULL}},
    {"read skew", {"(ab)", "(AB)", NULL}},
    {"read skew, and a store", {"(abC)", "(AB)", NULL}},
    {"write skew", {"(abA)", "(abB)", NULL}},
    {"read skew of a query", {"[ab]", "(AB)", NULL}},
    {"query in the middle", {"[aa]", "(aA)", NULL}},
    {"nested", {"({a}B)", "(bA)", NULL}},
    {"checkpoint", {"(abA)", "*", NULL}},
    {"checkpoint and query", {"[abc]", "*", NULL}},
};

START_TEST(all_orders_of_two)
{
    printf("%s: %s | %s\n", pairs[_i].name, pairs[_i].program[0], pairs[_i].program[1]);
    start_actors(NONDURABLE);
    play_every_order(pairs[_i].program);
    stop_actors(pairs[_i].name);
}
END_TEST

/* Fekete, O'Neil, O'Neil: only the reader sees that something is wrong. */
START_TEST(read_only_anomaly)
{
    const char *const as_transaction[] = {"(abA)", "(bB)", "(ab)"};
    const char *const as_query[] = {"(abA)", "(bB)", "[ab]"};
    uint64_t rnd = env_seed();

    start_actors(NONDURABLE);
    for (int i = 0; i < 600; i++)
        play_random_order(i % 2 == 0 ? as_transaction : as_query, &rnd);
    stop_actors("read-only anomaly");
}
END_TEST

/* The very order of the paper: T2 looks, T1 deposits, T3 looks, T2 withdraws. */
START_TEST(read_only_anomaly_as_published)
{
    const char *const program[] = {"(abA)", "(bB)", "[ab]"};
    const int order[] = {0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0};

    start_actors(NONDURABLE);
    for (int i = 0; i < 50; i++)
        play(program, order, sizeof order / sizeof *order);
    stop_actors("read-only anomaly as published");
}
END_TEST

/* ---- random programs ------------------------------------------------------------------------- */

static void
random_program(uint64_t *rnd, char *text)
{
    uint64_t kind = rnd_below(rnd, 10);
    size_t n = 0;

    if (kind == 9) {
        strcpy(text, "*");
        return;
    }
    text[n++] = kind == 8 ? '[' : '(';
    for (uint64_t k = 1 + rnd_below(rnd, 5); k > 0; k--) {
        bool is_store = kind < 8 && rnd_below(rnd, 2) == 0;

        text[n++] = (char)((is_store ? 'A' : 'a') + (char)rnd_below(rnd, CELLS));
    }
    if (kind == 7)
        text[n++] = '!';
    text[n++] = kind == 8 ? ']' : ')';
    text[n] = '\0';
}

START_TEST(random_programs)
{
    uint64_t n = env_number("XAC_GAMES", _i == 0 ? 4000 : 500);
    uint64_t rnd = env_seed() + (uint64_t)_i;
    char text[ACTORS][OPS + 1];
    const char *program[ACTORS];

    start_actors(_i == 0 ? NONDURABLE : DURABLE);
    for (uint64_t i = 0; i < n; i++) {
        for (int who = 0; who < ACTORS; who++) {
            random_program(&rnd, text[who]);
            program[who] = text[who];
        }
        play_random_order(program, &rnd);
    }
    stop_actors(_i == 0 ? "random programs" : "random programs, durable");
}
END_TEST

static Suite *
iso_suite(void)
{
    Suite *s = suite_create("iso");
    TCase *tc = env_tcase(s, "named", 60);

    tcase_add_loop_test(tc, all_orders_of_two, 0, sizeof pairs / sizeof *pairs);
    tcase_add_test(tc, read_only_anomaly);
    tcase_add_test(tc, read_only_anomaly_as_published);

    tc = env_tcase(s, "random", 300);
    tcase_add_loop_test(tc, random_programs, 0, 2);
    return s;
}

int
main(void)
{
    return env_main(iso_suite());
}
