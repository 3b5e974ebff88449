/* SPDX-License-Identifier: MIT */
/*
 * check_snapshots.c -- snapshots that others can query (xac_snapshot.h).
 *
 * GOAL    a query at a snapshot sees exactly that state, in every process and thread, whatever its
 *         view shows of other states; a snapshot ends when it is released, or its process dies; a
 *         named one lives on; ids lead nowhere afterwards.
 * METHOD  random commits, snapshots and queries beside a model of each state; processes that sum up a
 *         snapshot while others move amounts; kills; calls that must fail.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "env.h"

/* Bit 0 of a loop variable: durable; bit 1: beside another participant; bit 2: fast checking; bit 3: stores are
   announced, so that pages are updated in place while alone and not durable. */
#define WAYS    8
#define ALL     16
#define N_PAGES 24

struct board {
    _Atomic uint64_t id, next_id, begin, stop, done, failed_at, is_there;
    _Atomic uint64_t sum[16];
};

static struct board *board;

static void
setup(void)
{
    env_setup();
    board = proc_shared(sizeof *board);
}

/* attach -- as the loop variable says; *companionp 0: none. */
static uint64_t *
attach(int way, pid_t *companionp)
{
    int mode = (way & 1) != 0 ? DURABLE : NONDURABLE;

    env_checking = (way & 8) != 0   ? XAC_CHECKING_TRUSTED
                   : (way & 4) != 0 ? XAC_CHECKING_FAST
                                    : XAC_CHECKING_STRICT;
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS,
                       1000)); /* waiting for the disk is not the point */
    *companionp = (way & 2) != 0 ? env_companion(mode, N_PAGES) : 0;
    return env_attach(mode, N_PAGES);
}

static void
detach(pid_t companion)
{
    if (companion != 0)
        proc_kill(companion);
    env_detach();
}

static uint64_t
snapshot(void)
{
    uint64_t id = 0;

    must_ok(xSnapshot(&id));
    return id;
}

static uint64_t
held(void)
{
    return env_stats().versions_held;
}

/* ---- what a query at a snapshot sees -------------------------------------------------------- */

#define STATES 6

/* A state that is held, and what it is. */
struct state {
    uint64_t id; /* 0: none */
    uint64_t value[N_PAGES];
};

struct model {
    uint64_t now[N_PAGES];
    struct state state[STATES];
    uint64_t seed;
};

/* change -- a transaction that stores to some pages; often to the same, so that they stay writable. */
static void
change(struct model *m, uint64_t *x)
{
    uint64_t n = 1 + rnd_below(&m->seed, 4);

    must_ok(xbegin());
    for (uint64_t i = 0; i < n; i++) {
        uint64_t p = rnd_below(&m->seed, 2) == 0 ? i : rnd_below(&m->seed, N_PAGES);

        m->now[p]++;
        must_ok(setPageAccess(env_cell(x, p), READ_WRITE));
        *env_cell(x, p) = m->now[p];
    }
    must_rc(xend(), COMMITTED);
}

/* look -- some pages of the state that is open, perhaps all. */
static void
look(struct model *m, uint64_t *x, const uint64_t value[N_PAGES])
{
    uint64_t sparse = rnd_below(&m->seed, 3);

    for (uint64_t p = 0; p < N_PAGES; p++) {
        if (sparse == 0 || rnd_below(&m->seed, 3) == 0)
            must_eq(*(volatile uint64_t *)env_cell(x, p), value[p]);
    }
}

/* take -- a snapshot in a free place, of the present state or of a query's; or release the one there. */
static void
take(struct model *m, uint64_t *x)
{
    struct state *s = &m->state[rnd_below(&m->seed, STATES)];

    if (s->id != 0) {
        must_ok(xSnapshotRelease(s->id));
        must_refuse(xbeginQueryAt(s->id), XAC_ENOSTATE);
        s->id = 0;
        return;
    }
    memcpy(s->value, m->now, sizeof s->value);
    if (rnd_below(&m->seed, 2) == 0) {
        s->id = snapshot();
        return;
    }
    must_ok(xbeginQuery());
    look(m, x, m->now);
    s->id = snapshot();
    must_ok(xendQuery());
}

/* query -- at a snapshot, or at the present. */
static void
query(struct model *m, uint64_t *x)
{
    const struct state *s = &m->state[rnd_below(&m->seed, STATES)];

    if (s->id != 0 && rnd_below(&m->seed, 3) != 0) {
        must_ok(xbeginQueryAt(s->id));
        look(m, x, s->value);
    } else {
        must_ok(xbeginQuery());
        look(m, x, m->now);
    }
    must_ok(xendQuery());
}

START_TEST(sees_exactly_that_state)
{
    struct model m = {.seed = env_seed() + (uint64_t)_i};
    pid_t companion;
    uint64_t *x = attach(_i, &companion);

    for (int i = 0; i < 4000; i++) {
        switch (rnd_below(&m.seed, 8)) {
        case 0:
            take(&m, x);
            break;
        case 1:
        case 2:
        case 3:
            query(&m, x);
            break;
        case 4:
            if (rnd_below(&m.seed, 20) == 0)
                must_ok(xCheckpoint());
            break;
        default:
            change(&m, x);
        }
    }
    detach(companion);
    for (uint64_t p = 0; p < N_PAGES; p++)
        must_eq(file_u64(ENV_FILE, p * env_page()), m.now[p]);
}
END_TEST

/* What a transaction has stored and what it sees is not disturbed by snapshots of others. */
START_TEST(many_commits_later)
{
    pid_t companion;
    uint64_t *x = attach(_i, &companion);
    uint64_t id;

    env_put(env_cell(x, 3), 7);
    id = snapshot();
    for (uint64_t i = 0; i < 3000; i++) /* more than the ring of commits tells */
        env_put(env_cell(x, i % 5), 100 + i);
    must_ok(xCheckpoint());
    must_ok(xbeginQueryAt(id));
    for (uint64_t p = 0; p < 5; p++)
        must_eq(*(volatile uint64_t *)env_cell(x, p), p == 3 ? 7 : 0);
    must_ok(xSnapshotRelease(id)); /* the query keeps its state */
    must_ok(xendQuery());
    must_ok(xbeginQueryAt(snapshot()));
    must_eq(*(volatile uint64_t *)env_cell(x, 3), 100 + 2998);
    must_ok(xendQuery());
    detach(companion);
}
END_TEST

START_TEST(one_version_of_each_page_is_kept)
{
    pid_t companion;
    uint64_t *x = attach(_i, &companion);
    uint64_t id = snapshot();

    for (uint64_t i = 1; i <= 2000; i++)
        env_put(env_cell(x, i % 4), i);
    must(held() <= 4 + 16); /* garbage is collected every 8 commits */
    must(env_stats().oldest_behind >= 2000);
    must_ok(xSnapshotRelease(id));
    for (uint64_t i = 1; i <= 64; i++)
        env_put(env_cell(x, i % 4), i);
    must_eq(env_stats().oldest_behind, 0);
    detach(companion);
}
END_TEST

/* ---- pages that are updated in place ---------------------------------------------------------- */

static bool
is_in_place(void)
{
    char path[4300], region[4200];

    env_region(ENV_DIR, region);
    (void)snprintf(path, sizeof path, "%s.in-place", region);
    return file_exists(path);
}

/* put_all -- n transactions that store the same to all pages; ret the last value. */
static uint64_t
put_all(uint64_t *x, uint64_t from, uint64_t n)
{
    for (uint64_t i = 1; i <= n; i++) {
        must_ok(xbegin());
        for (uint64_t p = 0; p < N_PAGES; p++) {
            must_ok(setPageAccess(env_cell(x, p), READ_WRITE));
            *env_cell(x, p) = from + i;
        }
        must_rc(xend(), COMMITTED);
    }
    return from + n;
}

static void
must_all_be(uint64_t *x, uint64_t value)
{
    for (uint64_t p = 0; p < N_PAGES; p++)
        must_eq(*(volatile uint64_t *)env_cell(x, p), value);
}

/* Bit 0: taken inside of a query; bit 1: the snapshot is named. */
START_TEST(pages_updated_in_place_are_held)
{
    uint64_t *x, id, now, then;
    bool may;

    env_without_frames("a bound on memory rules out updates in place");
    env_checking = XAC_CHECKING_TRUSTED;
    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_SERIAL));
    x = env_attach(NONDURABLE, N_PAGES);
    may = env_stats().engine == XAC_ENGINE_UFFD;
    for (int round = 0; round < 3; round++) {
        now = then = put_all(x, (uint64_t)round * 10000, 200);
        must_eq(is_in_place(), may);
        if ((_i & 1) != 0)
            must_ok(xbeginQuery());
        id = snapshot();
        if ((_i & 1) != 0) {
            must_all_be(x, now);
            must_ok(xendQuery());
        }
        if ((_i & 2) != 0)
            must_ok(xSnapshotKeep(id, "held", 1000));
        now = put_all(x, now, 200);
        must(!is_in_place());
        must_ok(xbeginQueryAt(id));
        must_all_be(x, then);
        must_ok(xendQuery());
        must_ok(xbeginQuery());
        must_all_be(x, now);
        must_ok(xendQuery());
        must_ok(xSnapshotRelease(id));
    }
    now = put_all(x, now, 200);
    must_eq(is_in_place(), may);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), now);
}
END_TEST

/* ---- ten processes and two writers ----------------------------------------------------------- */

#define READERS 10
#define AMOUNT  1000

static void
move(void *arg)
{
    uint64_t seed = env_seed() + 77 + (uint64_t)getpid();
    uint64_t *x = env_attach(*(int *)arg, N_PAGES);

    while (word_load(&board->stop) == 0) {
        uint64_t a = rnd_below(&seed, N_PAGES), b = rnd_below(&seed, N_PAGES);

        must_ok(xbegin());
        if (*env_cell(x, a) > 0) {
            *env_cell(x, a) -= 1;
            *env_cell(x, b) += 1;
        }
        (void)xend();
    }
    env_detach();
}

/* digest -- of all pages, in the order in which a seed has them touched. */
static uint64_t
digest(uint64_t *x, uint64_t *sump, uint64_t from)
{
    uint64_t d = 0;

    *sump = 0;
    for (uint64_t i = 0; i < N_PAGES; i++) {
        uint64_t p = (from + i) % N_PAGES;
        uint64_t v = *(volatile uint64_t *)env_cell(x, p);

        *sump += v;
        d += v * (p * 2654435761 + 1);
    }
    return d;
}

struct reader {
    int mode;
    unsigned number;
};

static void
read_snapshots(void *arg)
{
    const struct reader *r = (const struct reader *)arg;
    uint64_t *x = env_attach(r->mode, N_PAGES);
    uint64_t last = 0, sum;

    proc_await(&board->id, 1, 60);
    while (word_load(&board->stop) == 0) {
        uint64_t id = word_load(&board->id), d;

        if (id == last) {
            must_ok(xbeginQuery());
            (void)digest(x, &sum, r->number);
            must_ok(xendQuery());
            must_eq(sum, N_PAGES * AMOUNT);
            continue;
        }
        for (int again = 0; again < 3; again++) {
            must_ok(xbeginQueryAt(id));
            d = digest(x, &sum, r->number * 5);
            must_ok(xendQuery());
            must_eq(sum, N_PAGES * AMOUNT);
        }
        word_store(&board->sum[r->number], d);
        word_add(&board->done, 1);
        last = id;
    }
    env_detach();
}

START_TEST(ten_processes_read_one_state)
{
    int mode = _i % 2 == 0 ? NONDURABLE : DURABLE;
    struct reader reader[READERS];
    uint64_t rounds = 10 * env_number("XAC_SECONDS", 1);
    pid_t writers[2], readers[READERS];
    uint64_t *x;

    env_checking = _i < 2 ? XAC_CHECKING_STRICT : XAC_CHECKING_FAST;
    x = env_attach(mode, N_PAGES);
    must_ok(xbegin());
    for (uint64_t p = 0; p < N_PAGES; p++)
        *env_cell(x, p) = AMOUNT;
    must_rc(xend(), COMMITTED);
    env_detach();
    for (int i = 0; i < 2; i++)
        writers[i] = proc_spawn(move, &mode);
    for (unsigned i = 0; i < READERS; i++) {
        reader[i] = (struct reader){.mode = mode, .number = i};
        readers[i] = proc_spawn(read_snapshots, &reader[i]);
    }
    x = env_attach(mode, N_PAGES);
    word_store(&board->id, snapshot());
    for (uint64_t round = 1; round <= rounds; round++) {
        uint64_t before = word_load(&board->id);

        proc_await(&board->done, READERS * round, 60);
        for (int i = 1; i < READERS; i++)
            must_eq(word_load(&board->sum[i]), word_load(&board->sum[0]));
        word_store(&board->id, snapshot());
        must_ok(xSnapshotRelease(before)); /* all have done with it */
    }
    word_store(&board->stop, 1);
    for (int i = 0; i < READERS; i++)
        proc_join(readers[i]);
    for (int i = 0; i < 2; i++)
        proc_join(writers[i]);
    env_detach();
}
END_TEST

/* ---- who holds it ------------------------------------------------------------------------------ */

static void
take_and_wait(void *arg)
{
    (void)env_attach(*(int *)arg, N_PAGES);
    word_store(&board->id, snapshot());
    word_store(&board->next_id, snapshot());
    must_ok(xSnapshotKeep(word_load(&board->next_id), "report", 3600));
    word_store(&board->is_there, 1);
    proc_await(&board->stop, 1, 60);
    env_detach();
}

/* Bit 0: durable; bit 1: the holder leaves; else it is killed. */
START_TEST(dead_holder_loses_them_but_the_named_ones)
{
    int mode = (_i & 1) != 0 ? DURABLE : NONDURABLE;
    pid_t holder = proc_spawn(take_and_wait, &mode);
    uint64_t *x, id = 0;

    proc_await(&board->is_there, 1, 20);
    x = env_attach(mode, N_PAGES);
    env_put(env_cell(x, 1), 5);
    must_ok(xbeginQueryAt(word_load(&board->id)));
    must_eq(*(volatile uint64_t *)env_cell(x, 1), 0);
    must_ok(xendQuery());
    if ((_i & 2) != 0) {
        word_store(&board->stop, 1);
        proc_join(holder);
    } else {
        proc_kill(holder);
    }
    must_ok(xCheckpoint()); /* looks for the dead */
    must_refuse(xbeginQueryAt(word_load(&board->id)), XAC_ENOSTATE);
    must_refuse(xSnapshotRelease(word_load(&board->id)), XAC_ENOSTATE);
    must_ok(xSnapshotFind("report", &id));
    must_eq(id, word_load(&board->next_id));
    must_ok(xbeginQueryAt(id));
    must_eq(*(volatile uint64_t *)env_cell(x, 1), 0);
    must_ok(xendQuery());
    must_ok(xSnapshotRelease(id));
    must_refuse(xSnapshotFind("report", &id), XAC_ENOSTATE);
    for (uint64_t i = 0; i < 64; i++)
        env_put(env_cell(x, 1), i);
    must_eq(env_stats().oldest_behind, 0);
    env_detach();
}
END_TEST

START_TEST(named_one_expires)
{
    uint64_t *x = env_attach(NONDURABLE, N_PAGES);
    uint64_t id = snapshot(), found;

    must_ok(xSnapshotKeep(id, "short", 1));
    must_ok(xSnapshotFind("short", &found));
    must_eq(found, id);
    must_ok(xSnapshotKeep(id, "short", 2)); /* more time */
    proc_sleep_us(1200 * 1000);
    must_ok(xSnapshotFind("short", &found));
    proc_sleep_us(1200 * 1000);
    must_refuse(xSnapshotFind("short", &found), XAC_ENOSTATE);
    must_refuse(xbeginQueryAt(id), XAC_ENOSTATE);
    must_refuse(xSnapshotRelease(id), XAC_ENOSTATE);
    env_put(env_cell(x, 0), 1);
    must_ok(xCheckpoint());
    must_eq(env_stats().oldest_behind, 0);
    must_ok(xSnapshotKeep(snapshot(), "short", 1)); /* the name is free */
    env_detach();
}
END_TEST

START_TEST(held_state_does_not_hold_back_the_last_checkpoint)
{
    uint64_t *x = env_attach(_i == 0 ? NONDURABLE : DURABLE, N_PAGES);
    uint64_t id;

    must_ok(xSnapshotKeep(snapshot(), "old", 3600));
    (void)snapshot();
    env_put(env_cell(x, 2), 9);
    env_detach();
    must_eq(file_u64(ENV_FILE, 2 * env_page()), 9);
    x = env_attach(_i == 0 ? NONDURABLE : DURABLE, N_PAGES);
    must_refuse(xSnapshotFind("old", &id), XAC_ENOSTATE);
    must_eq(env_get(env_cell(x, 2)), 9);
    env_detach();
}
END_TEST

/* ids of the life before lead nowhere. */
START_TEST(ids_are_never_given_out_again)
{
    uint64_t id[50], again;

    (void)env_attach(NONDURABLE, N_PAGES);
    for (int i = 0; i < 50; i++) {
        id[i] = snapshot();
        for (int k = 0; k < i; k++)
            must(id[k] != id[i]);
        if (i % 2 == 0)
            must_ok(xSnapshotRelease(id[i]));
    }
    env_detach();
    (void)env_attach(NONDURABLE, N_PAGES);
    for (int i = 0; i < 50; i++) {
        again = snapshot();
        for (int k = 0; k < 50; k++) {
            must(id[k] != again);
            must_refuse(xbeginQueryAt(id[k]), XAC_ENOSTATE);
        }
    }
    env_detach();
}
END_TEST

/* ---- children and threads ------------------------------------------------------------------------ */

static uint64_t *mapped;

static void
child(void *arg)
{
    uint64_t id = *(uint64_t *)arg, own;

    must_ok(xbeginQueryAt(id));
    must_eq(*(volatile uint64_t *)env_cell(mapped, 0), 1);
    must_ok(xendQuery());
    env_put(env_cell(mapped, 0), 3);
    own = snapshot();
    must_ok(xbeginQueryAt(own));
    must_eq(*(volatile uint64_t *)env_cell(mapped, 0), 3);
    must_ok(xendQuery());
    word_store(&board->next_id, own);
}

START_TEST(child_uses_those_of_its_parent)
{
    uint64_t id;

    mapped = env_attach(_i == 0 ? NONDURABLE : DURABLE, N_PAGES);
    env_put(env_cell(mapped, 0), 1);
    id = snapshot();
    env_put(env_cell(mapped, 0), 2);
    proc_run(child, &id);
    must_ok(xCheckpoint());
    must_refuse(xbeginQueryAt(word_load(&board->next_id)), XAC_ENOSTATE);
    must_ok(xbeginQueryAt(id)); /* the child's end has not ended it */
    must_eq(*(volatile uint64_t *)env_cell(mapped, 0), 1);
    must_ok(xendQuery());
    must_eq(env_get(env_cell(mapped, 0)), 3);
    env_detach();
}
END_TEST

static void *
in_thread(void *arg)
{
    uint64_t id = *(uint64_t *)arg, *v = (uint64_t *)xView(mapped);

    must(v != NULL);
    for (int i = 0; i < 200; i++) {
        must_ok(xbeginQueryAt(id));
        must_eq(*(volatile uint64_t *)env_cell(v, 0), 1);
        must_ok(xendQuery());
        must_ok(xbeginQuery());
        must(*(volatile uint64_t *)env_cell(v, 0) >= 1);
        must_ok(xendQuery());
    }
    must_ok(xUnview(v));
    return NULL;
}

START_TEST(threads_with_views_use_them)
{
    pthread_t thread[3];
    uint64_t id;

    env_checking = _i == 0 ? XAC_CHECKING_STRICT : XAC_CHECKING_FAST;
    mapped = env_attach(NONDURABLE, N_PAGES);
    env_put(env_cell(mapped, 0), 1);
    id = snapshot();
    for (int i = 0; i < 3; i++)
        must(pthread_create(&thread[i], NULL, in_thread, &id) == 0);
    for (uint64_t i = 2; i < 500; i++)
        env_put(env_cell(mapped, 0), i);
    for (int i = 0; i < 3; i++)
        must(pthread_join(thread[i], NULL) == 0);
    env_detach();
}
END_TEST

/* commit_late -- a participant that does not wait for the disk. */
static void
commit_late(void *arg)
{
    uint64_t *x;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, 3600 * 1000));
    x = env_attach(DURABLE, N_PAGES);
    proc_await(&board->begin, 1, 20);
    env_put(env_cell(x, 0), 1);
    word_store(&board->id, snapshot());
    word_store(&board->is_there, 1);
    proc_await(&board->stop, 1, 60);
    env_detach();
}

START_TEST(what_a_query_has_seen_is_durable)
{
    pid_t other = proc_spawn(commit_late, NULL);
    uint64_t *x = env_attach(DURABLE, N_PAGES);
    uint64_t durable;

    word_store(&board->begin, 1);
    proc_await(&board->is_there, 1, 20);
    durable = env_stats().log_durable;
    must(durable < env_stats().log_tail);
    must_ok(xbeginQueryAt(word_load(&board->id)));
    must_eq(*(volatile uint64_t *)env_cell(x, 0), 1);
    must_ok(xendQuery());
    must(env_stats().log_durable > durable);
    must_eq(env_stats().log_durable, env_stats().log_tail);
    word_store(&board->stop, 1);
    proc_join(other);
    env_detach();
}
END_TEST

static void
commit_once(void *arg)
{
    uint64_t *x = env_attach(NONDURABLE, N_PAGES);

    (void)arg;
    proc_await(&board->begin, 1, 20);
    env_put(env_cell(x, 0), 2);
    word_store(&board->is_there, 1);
    proc_await(&board->stop, 1, 60);
    env_detach();
}

START_TEST(snapshot_in_a_query_is_of_its_state)
{
    pid_t other = proc_spawn(commit_once, NULL);
    uint64_t *x = env_attach(NONDURABLE, N_PAGES), id;

    env_put(env_cell(x, 0), 1);
    must_ok(xbeginQuery());
    word_store(&board->begin, 1);
    proc_await(&board->is_there, 1, 20);
    id = snapshot();
    must_ok(xendQuery());
    must_eq(env_get(env_cell(x, 0)), 2);
    must_ok(xbeginQueryAt(id));
    must_eq(*(volatile uint64_t *)env_cell(x, 0), 1);
    must_ok(xendQuery());
    word_store(&board->stop, 1);
    proc_join(other);
    env_detach();
}
END_TEST

/* ---- misuse ---------------------------------------------------------------------------------------- */

START_TEST(misuse_is_refused)
{
    char name[80];
    uint64_t id = 0, other, *x;

    must_refuse(xSnapshot(&id), XAC_ENOINIT);
    must_refuse(xbeginQueryAt(1), XAC_ENOINIT);
    must_refuse(xSnapshotRelease(1), XAC_ENOINIT);
    must_refuse(xSnapshotKeep(1, "a", 1), XAC_ENOINIT);
    must_refuse(xSnapshotFind("a", &id), XAC_ENOINIT);
    x = env_attach(NONDURABLE, N_PAGES);
    must_refuse(xSnapshot(NULL), EINVAL);
    must_refuse(xbeginQueryAt(0), XAC_ENOSTATE);
    must_refuse(xbeginQueryAt(UINT64_MAX), XAC_ENOSTATE);
    must_rc(xendQuery(), XAC_ENOTXN); /* it has not begun */
    id = snapshot();
    other = snapshot();
    must_refuse(xSnapshotKeep(id, NULL, 1), EINVAL);
    must_refuse(xSnapshotKeep(id, "", 1), EINVAL);
    must_refuse(xSnapshotKeep(id, "a\nb", 1), EINVAL);
    must_refuse(xSnapshotKeep(id, "a", 0), EINVAL);
    memset(name, 'n', sizeof name);
    name[XAC_SNAPSHOT_NAME_MAX + 1] = '\0';
    must_refuse(xSnapshotKeep(id, name, 1), ENAMETOOLONG);
    name[XAC_SNAPSHOT_NAME_MAX] = '\0';
    must_ok(xSnapshotKeep(id, name, 100));
    must_refuse(xSnapshotKeep(other, name, 100), EEXIST);
    must_refuse(xSnapshotKeep(id, "another", 100), EEXIST);
    must_refuse(xSnapshotFind("another", &id), XAC_ENOSTATE);
    must_refuse(xSnapshotFind(name, NULL), EINVAL);
    must_ok(xbegin());
    must_refuse(xSnapshot(&other), XAC_EINTXN);
    must_refuse(xbeginQueryAt(id), XAC_EINTXN);
    must_ok(xbeginQuery());
    must_refuse(xSnapshot(&other), XAC_EINTXN);
    must_ok(xendQuery());
    *env_cell(x, 0) = 1;
    must_ok(xSnapshotRelease(id)); /* that may be done at any time */
    must_rc(xend(), COMMITTED);
    must_ok(xbeginQueryAt(other));
    must_refuse(xbeginQueryAt(other), XAC_EINTXN);
    must_refuse(xbegin(), XAC_EINQUERY);
    must_ok(xbeginQuery()); /* a part of it */
    must_eq(*(volatile uint64_t *)env_cell(x, 0), 0);
    must_ok(xendQuery());
    must_ok(xendQuery());
    env_detach();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("check_snapshots");
    TCase *tc = env_tcase_with(s, "snapshots", 120, setup);

    tcase_add_loop_test(tc, sees_exactly_that_state, 0, ALL);
    tcase_add_loop_test(tc, many_commits_later, 0, WAYS);
    tcase_add_loop_test(tc, one_version_of_each_page_is_kept, 0, WAYS);
    tcase_add_loop_test(tc, pages_updated_in_place_are_held, 0, 4);
    tcase_add_loop_test(tc, ten_processes_read_one_state, 0, 4);
    tcase_add_loop_test(tc, dead_holder_loses_them_but_the_named_ones, 0, 4);
    tcase_add_test(tc, named_one_expires);
    tcase_add_loop_test(tc, held_state_does_not_hold_back_the_last_checkpoint, 0, 2);
    tcase_add_test(tc, ids_are_never_given_out_again);
    tcase_add_loop_test(tc, child_uses_those_of_its_parent, 0, 2);
    tcase_add_loop_test(tc, threads_with_views_use_them, 0, 2);
    tcase_add_test(tc, what_a_query_has_seen_is_durable);
    tcase_add_test(tc, snapshot_in_a_query_is_of_its_state);
    tcase_add_test(tc, misuse_is_refused);
    return s;
}

int
main(void)
{
    return env_main(suite());
}
