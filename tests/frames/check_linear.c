/* SPDX-License-Identifier: MIT */
/*
 * check_linear.c -- every short history of a pool is that of pages without a pool (N28).
 *
 * Three threads, two or three pages, one or two frames: pages come and go all the time.  Each operation
 * fixes a page, loads or stores its word, and unfixes it, between two draws from one clock.  An
 * exhaustive search then looks for an order of all operations that keeps their times and in which
 * each load gives what was stored last: what is linearizable.  A history that is not is printed.
 *
 *   XAC_GAMES=n  histories (3,000)
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "store.h"

#define THREADS 3
#define OPS     5 /* of each thread in a history */
#define PAGES   3
#define N       (THREADS * OPS)

struct op {
    uint64_t begin, end; /* draws */
    uint64_t value;      /* stored or loaded */
    unsigned page;
    bool is_store;
};

static struct xac_frames *pool;
static struct store *store;
static pthread_barrier_t barrier;
static _Atomic uint64_t clock_now;
static struct op history[THREADS][OPS];
static uint64_t n_games;
static unsigned n_pages;

static _Thread_local uint64_t delay_seed;

#ifdef XAC_DEBUG
static void
delay(const char *name)
{
    (void)name;
    if (delay_seed != 0 && mix(&delay_seed) % 8 == 0)
        (void)sched_yield();
}
#endif

static void
slow_read(struct store *s, uint64_t page)
{
    (void)s, (void)page;
    if (delay_seed != 0 && mix(&delay_seed) % 4 == 0)
        (void)sched_yield();
}

static void
op_do(struct xac_frames_user *user, struct op *op)
{
    struct xac_frames_pin pin;
    int rc;

    op->begin = atomic_fetch_add(&clock_now, 1);
    do
        rc = xac_frames_fix(user, op->page, 0, &pin);
    while (rc == ENOBUFS); /* others have all frames */
    must_ok(rc);
    if (op->is_store) {
        atomic_store((_Atomic uint64_t *)pin.data, op->value);
        xac_frames_mark_dirty(user, &pin);
    } else {
        op->value = atomic_load((_Atomic uint64_t *)pin.data);
    }
    xac_frames_unfix(user, &pin);
    op->end = atomic_fetch_add(&clock_now, 1);
}

struct player {
    pthread_t thread;
    unsigned number;
};

static void *
player_run(void *arg)
{
    struct player *p = arg;
    uint64_t seed = env_seed() * 4 + p->number;
    struct xac_frames_user *user;

    must_ok(xac_frames_join(pool, &user));
    for (uint64_t game = 0; game < n_games; game++) {
        (void)pthread_barrier_wait(&barrier); /* the last history has been judged */
        for (unsigned i = 0; i < OPS; i++)
            history[p->number][i] =
                (struct op){.page = (unsigned)(mix(&seed) % n_pages),
                            .is_store = mix(&seed) % 2 == 0,
                            .value = 1 + game * N + p->number * OPS + i};
        delay_seed = seed | 1;
        for (unsigned i = 0; i < OPS; i++)
            op_do(user, &history[p->number][i]);
        delay_seed = 0;
        (void)pthread_barrier_wait(&barrier);
    }
    xac_frames_leave(user);
    return NULL;
}

/* ---- The checker -------------------------------------------------------------------- */

struct search {
    unsigned next[THREADS]; /* operations done of each thread */
    uint64_t values[PAGES];
    const uint64_t *at_rest; /* what they are in the end */
};

/* may_be_next -- no other operation that is left has ended before this one began. */
static bool
may_be_next(const struct search *s, const struct op *op)
{
    for (unsigned t = 0; t < THREADS; t++)
        if (s->next[t] < OPS && history[t][s->next[t]].end < op->begin)
            return false;
    return true;
}

/* search -- depth first; ret whether the operations that are left can be put in order. */
static bool
search(struct search *s)
{
    bool left = false;

    for (unsigned t = 0; t < THREADS; t++) {
        const struct op *op = &history[t][s->next[t]];
        uint64_t before;

        if (s->next[t] == OPS)
            continue;
        left = true;
        if (!may_be_next(s, op) || (!op->is_store && s->values[op->page] != op->value))
            continue;
        before = s->values[op->page];
        s->values[op->page] = op->value;
        s->next[t]++;
        if (search(s))
            return true;
        s->next[t]--;
        s->values[op->page] = before;
    }
    return !left && memcmp(s->values, s->at_rest, sizeof s->values) == 0;
}

static void
history_print(const uint64_t *values)
{
    for (unsigned page = 0; page < n_pages; page++)
        printf("page %u: %llu\n", page, (unsigned long long)values[page]);
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < OPS; i++)
            printf("thread %u: %llu to %llu: %s page %u: %llu\n", t,
                   (unsigned long long)history[t][i].begin,
                   (unsigned long long)history[t][i].end,
                   history[t][i].is_store ? "store" : "load", history[t][i].page,
                   (unsigned long long)history[t][i].value);
}

/* judge -- the last history, between these values of the pages. */
static bool
judge(const uint64_t *before, const uint64_t *at_rest)
{
    struct search s = {.at_rest = at_rest};

    memcpy(s.values, before, sizeof s.values);
    return search(&s);
}

/* values_now -- what the pages have at rest. */
static void
values_now(struct xac_frames_user *user, uint64_t *values)
{
    for (unsigned page = 0; page < n_pages; page++) {
        struct xac_frames_pin pin;

        must_ok(xac_frames_fix(user, page, 0, &pin));
        values[page] = *(uint64_t *)pin.data;
        xac_frames_unfix(user, &pin);
    }
}

static void
games(uint32_t policy, uint32_t n_frames)
{
    struct xac_frames_config c = {.n_pages = n_pages,
                                  .n_frames = n_frames,
                                  .n_users = THREADS + 1,
                                  .page_bytes = 64,
                                  .policy = policy};
    struct player players[THREADS];
    struct xac_frames_user *user;
    struct xac_frames_io io;
    struct xac_frames_stats s;
    uint64_t values[PAGES] = {0}, overlaps = 0;

    store = store_make(n_pages, 64);
    store->on_read = slow_read;
    io = store_io(store);
    must_ok(xac_frames_create(&c, NULL, &io, &pool));
    must_ok(xac_frames_join(pool, &user));
    must_eq(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
    for (unsigned t = 0; t < THREADS; t++) {
        players[t].number = t;
        must_eq(pthread_create(&players[t].thread, NULL, player_run, &players[t]), 0);
    }
    for (uint64_t game = 0; game < n_games; game++) {
        uint64_t before[PAGES];

        memcpy(before, values, sizeof values);
        (void)pthread_barrier_wait(&barrier);
        (void)pthread_barrier_wait(&barrier);
        overlaps += history[0][0].end - history[0][0].begin > 1;
        values_now(user, values);
        if (!judge(before, values)) {
            history_print(before);
            env_fail(__FILE__, __LINE__, "game %llu: no such order",
                     (unsigned long long)game);
        }
    }
    for (unsigned t = 0; t < THREADS; t++)
        must_eq(pthread_join(players[t].thread, NULL), 0);
    (void)pthread_barrier_destroy(&barrier);
    xac_frames_get_stats(pool, &s, sizeof s);
    printf(
        "policy %u, %u frames: %llu evictions, %llu rescues, %llu races, %llu overlaps\n",
        policy, n_frames, (unsigned long long)s.evictions, (unsigned long long)s.rescues,
        (unsigned long long)s.lost_races, (unsigned long long)overlaps);
    must(s.evictions > n_games);
    xac_frames_leave(user);
    must_be_whole(pool, 0);
    xac_frames_close(pool);
}

START_TEST(find_an_order_of_each_history)
{
    n_games = env_number("XAC_GAMES", 3000) / 3;
#ifdef XAC_DEBUG
    xac_kill_hook = delay;
#endif
    n_pages = 2;
    games(XAC_FRAMES_NB_GCLOCK, 1);
    n_pages = 3;
    games(XAC_FRAMES_NB_GCLOCK, 2);
    games(XAC_FRAMES_LRU, 2);
#ifdef XAC_DEBUG
    xac_kill_hook = NULL;
#endif
}
END_TEST

/* The checker itself: histories that have an order, and one that has none. */
START_TEST(see_a_history_without_an_order)
{
    static const uint64_t zero[PAGES] = {0}, five[PAGES] = {5};

    n_pages = 2;
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < OPS; i++) /* loads of page 1, one after the other */
            history[t][i] = (struct op){.begin = 1000 + 2 * (t * OPS + i),
                                        .end = 1001 + 2 * (t * OPS + i),
                                        .page = 1};
    history[0][0] = (struct op){.begin = 0, .end = 10, .value = 5, .is_store = true};
    history[1][0] = (struct op){.begin = 1, .end = 20, .value = 0};
    must(judge(zero, five));  /* the load before the store */
    must(!judge(zero, zero)); /* the store is lost */
    history[1][0].begin = 11;
    must(!judge(zero, five)); /* the store had ended */
    history[1][0].value = 5;
    must(judge(zero, five));
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("histories of page frames");
    TCase *t = env_tcase(s, "linear", 300);

    tcase_add_test(t, see_a_history_without_an_order);
    tcase_add_test(t, find_an_order_of_each_history);
    return env_main(s);
}
