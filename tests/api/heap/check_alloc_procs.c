/* SPDX-License-Identifier: MIT */
/*
 * check_alloc_procs.c -- the allocator with several processes, and with processes that
 * are killed.
 *
 * GOAL    processes that work on their own objects do not conflict; whatever happens, the
 *         heap is sound and holds exactly the objects that were committed.
 * METHOD  each process keeps its objects on a list of its own in the segment, hung up at
 *         its place in the root area; a fresh process walks the lists and compares their
 *         number with what xHeapCheck() counts.
 *
 * XAC_ROUNDS rounds of killing (12), XAC_SEED.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "env.h"

#define PROCS   4
#define N_PAGES 4096

/* An object of a list; `next` is its offset in the segment, 0 the end. */
struct node {
    uint64_t next;
    uint64_t size;
    uint64_t check; /* of size and owner */
};

/*
 * Beginning of a process's list, in a page that the process has allocated for itself; the
 * root area holds the offsets of these.
 */
struct head {
    uint64_t first;
    uint64_t count;
};

struct board {
    _Atomic uint64_t ready;
    _Atomic uint64_t stop;
    _Atomic uint64_t count[PROCS]; /* objects acknowledged                     */
    _Atomic uint64_t commits[PROCS], aborts[PROCS]; /* after warming up        */
};

static struct board *board;
static unsigned char *base;

static uint64_t
check_of(uint64_t size, uint64_t owner)
{
    return (size + 1) * UINT64_C(0x9e3779b97f4a7c15) + owner;
}

static struct node *
node_at(uint64_t offset)
{
    return (struct node *)(void *)(base + offset);
}

/* head_of -- where a process's list begins; made if missing.  Inside a transaction. */
static struct head *
head_of(uint64_t who)
{
    uint64_t *root = xRoot(base);

    must(root != NULL);
    if (root[who] == 0) {
        unsigned char *p = xMalloc(base, env_page());

        must(p != NULL);
        memset(p, 0, sizeof(struct head));
        root[who] = (uint64_t)(p - base);
    }
    return (struct head *)(void *)(base + root[who]);
}

/* push -- a new object at the front. */
static void
push(struct head *head, uint64_t who, uint64_t size)
{
    struct node *n = xMalloc(base, sizeof *n + size);

    if (n == NULL)
        env_fail(__FILE__, __LINE__, "xMalloc: %s", xLastError());
    n->next = head->first;
    n->size = size;
    n->check = check_of(size, who);
    head->first = (uint64_t)((unsigned char *)n - base);
    head->count++;
}

/* pop -- free the object after the first `skip`; if there are so many. */
static void
pop(struct head *head, uint64_t who, uint64_t skip)
{
    uint64_t *link = &head->first;
    struct node *n;

    while (skip-- > 0 && *link != 0)
        link = &node_at(*link)->next;
    if (*link == 0)
        return;
    n = node_at(*link);
    must_eq(n->check, check_of(n->size, who));
    *link = n->next;
    head->count--;
    must_ok(xFree(base, n));
}

static uint64_t
some_size(uint64_t *rnd)
{
    return rnd_below(rnd, 50) == 0 ? rnd_below(rnd, 20000) : rnd_below(rnd, 300);
}

struct worker {
    uint64_t who;
    uint64_t txns;
    uint64_t warm_up; /* transactions that are not counted */
    uint64_t round;
    uint64_t n_procs;
    uint64_t foreign; /* 1: frees objects of all processes */
    uint64_t objects; /* about so many are kept            */
};

static void
one_transaction(const struct worker *w, uint64_t *rnd)
{
    uint64_t whose = w->foreign ? rnd_below(rnd, w->n_procs) : w->who;
    struct head *head = head_of(whose);
    uint64_t ops = 1 + rnd_below(rnd, 4);

    if (head->count < w->objects / 2)
        ops = 100; /* still warming up */
    while (ops-- > 0) {
        if (head->count < w->objects / 2
            || rnd_below(rnd, 1000) < (head->count < w->objects ? 600 : 400))
            push(head, whose, some_size(rnd));
        else
            pop(head, whose, rnd_below(rnd, w->objects / 100));
    }
}

static void
work(void *arg)
{
    const struct worker *w = arg;
    uint64_t rnd = env_seed() + w->who + 100 * w->round;
    uint64_t commits = 0, aborts = 0;

    base = env_attach(NONDURABLE, N_PAGES);
    word_add(&board->ready, 1);
    proc_await(&board->ready, w->n_procs, 30);
    for (uint64_t i = 0; i < w->txns; i++) {
        uint64_t again = rnd;
        int rc;

        do {
            rnd = again;
            must_ok(xbegin());
            one_transaction(w, &rnd);
            rc = xend();
            if (i >= w->warm_up) {
                commits += rc == COMMITTED;
                aborts += rc == ABORTED;
            }
        } while (rc == ABORTED);
        must_rc(rc, COMMITTED);
    }
    word_store(&board->commits[w->who], commits);
    word_store(&board->aborts[w->who], aborts);
    env_detach();
}

/* count_all -- walk the lists in a query: objects, heads included. */
static uint64_t
count_all(uint64_t *counts)
{
    const uint64_t *root = xRoot(base);
    uint64_t n = 0;

    for (uint64_t who = 0; who < PROCS; who++) {
        const struct head *head;
        uint64_t in_list = 0;

        counts[who] = 0;
        if (root[who] == 0)
            continue;
        head = (const struct head *)(const void *)(base + root[who]);
        for (uint64_t at = head->first; at != 0; at = node_at(at)->next) {
            must_eq(node_at(at)->check, check_of(node_at(at)->size, who));
            in_list++;
        }
        must_eq(in_list, head->count);
        counts[who] = in_list;
        n += in_list + 1;
    }
    return n;
}

/* verify -- in a process of its own: the heap is sound and holds what the lists hold. */
static void
verify(void *arg)
{
    int mode = *(const int *)arg;
    struct xac_heap_totals t;
    uint64_t counts[PROCS];

    base = env_attach(mode, N_PAGES);
    must_ok(xbeginQuery());
    must_ok(xHeapCheck(base, &t, sizeof t));
    must_eq(t.allocations, count_all(counts));
    must_ok(xendQuery());
    printf("  sound: %" PRIu64 " objects, %.1f MB used, %.1f MB free, %.2f MB own\n",
           t.allocations, 1e-6 * (double)t.bytes_used, 1e-6 * (double)t.bytes_free,
           1e-6 * (double)t.bytes_own);
    env_detach();
}

static double
run_together(uint64_t n_procs, uint64_t txns, uint64_t foreign, uint64_t objects)
{
    struct worker w[PROCS];
    pid_t pid[PROCS];
    uint64_t commits = 0, aborts = 0;
    int mode = NONDURABLE;
    double start = env_now();

    board = proc_shared(sizeof *board);
    for (uint64_t i = 0; i < n_procs; i++) {
        w[i] = (struct worker){.who = i,
                               .txns = txns,
                               .warm_up = txns / 6,
                               .n_procs = n_procs,
                               .foreign = foreign,
                               .objects = objects};
        pid[i] = proc_spawn(work, &w[i]);
    }
    for (uint64_t i = 0; i < n_procs; i++)
        proc_join(pid[i]);
    for (uint64_t i = 0; i < n_procs; i++) {
        commits += word_load(&board->commits[i]);
        aborts += word_load(&board->aborts[i]);
    }
    printf("%" PRIu64 " processes, %" PRIu64 " of %s each: %" PRIu64 " commits, %" PRIu64
           " aborts after warming up (%.2f %%), %.1f s\n",
           n_procs, objects, foreign ? "everybody's objects" : "their own objects",
           commits, aborts, 100.0 * (double)aborts / (double)commits, env_now() - start);
    proc_run(verify, &mode);
    return (double)aborts / (double)commits;
}

START_TEST(own_objects_do_not_conflict)
{
    must(run_together(_i % 2 == 0 ? 2 : 4, 6000, 0, _i < 2 ? 500 : 6000) < 0.05);
}
END_TEST

START_TEST(foreign_objects_keep_the_heap_sound)
{
    (void)run_together(_i == 0 ? 2 : 4, 2000, 1, 500);
}
END_TEST

/* ---- killed ------------------------------------------------------------------------------- */

static void
work_until_killed(void *arg)
{
    const struct worker *w = arg;
    uint64_t rnd = env_seed() + w->who + 100 * w->round;

    base = env_attach(DURABLE, N_PAGES);
    word_add(&board->ready, 1);
    for (;;) {
        uint64_t count = 0;
        int rc;

        must_ok(xbegin());
        one_transaction(w, &rnd);
        count = head_of(w->who)->count;
        rc = xend();
        if (rc == COMMITTED)
            word_store(&board->count[w->who], count);
        else
            must_rc(rc, ABORTED);
    }
}

START_TEST(killed_processes_leave_a_sound_heap)
{
    uint64_t rounds = env_number("XAC_ROUNDS", 12);
    uint64_t rnd = env_seed();
    int mode = DURABLE;

    board = proc_shared(sizeof *board);
    for (uint64_t round = 0; round < rounds; round++) {
        struct worker w[PROCS];
        pid_t pid[PROCS];

        word_store(&board->ready, 0);
        for (uint64_t i = 0; i < PROCS; i++) {
            w[i] = (struct worker){.who = i,
                                   .round = round,
                                   .n_procs = PROCS,
                                   .foreign = round % 3 == 2,
                                   .objects = 500};
            pid[i] = proc_spawn(work_until_killed, &w[i]);
        }
        proc_await(&board->ready, PROCS, 30);
        proc_sleep_us(20000 + rnd_below(&rnd, 150000));
        for (uint64_t i = 0; i < PROCS; i++)
            proc_kill(pid[i]);
        proc_run(verify, &mode);
    }
}
END_TEST

/* ---- views of different length ---------------------------------------------------------------- */

static void
grow_and_wait(void *arg)
{
    (void)arg;
    proc_await(&board->commits[0], 1, 30);
    base = env_attach(NONDURABLE, 1000);
    must_ok(xbegin());
    must(xMalloc(base, 700 * env_page()) != NULL); /* only fits into the new space */
    must_rc(xend(), COMMITTED);
    word_store(&board->ready, 1);
    proc_await(&board->stop, 1, 30);
    env_detach();
}

START_TEST(shorter_mapping_goes_on)
{
    struct xac_heap_totals t;
    uint64_t n = 0;
    pid_t pid;

    board = proc_shared(sizeof *board);
    pid = proc_spawn(grow_and_wait, NULL);
    base = env_attach(NONDURABLE, 100);
    must_ok(xbegin());
    must(xMalloc(base, 10) != NULL);
    must_rc(xend(), COMMITTED);
    word_store(&board->commits[0], 1);
    proc_await(&board->ready, 1, 30);
    must_ok(xbegin());
    for (;; n++) {
        unsigned char *p = xMalloc(base, 1000);

        if (p == NULL)
            break;
        must(p + 1000 <= base + 100 * env_page());
    }
    must(n > 100);
    must(xMalloc(base, 64 * env_page()) == NULL); /* there is room, but not in sight */
    must_refuse(xHeapCheck(base, &t, sizeof t), EINVAL); /* it does not see all */
    must_rc(xend(), COMMITTED);
    word_store(&board->stop, 1);
    proc_join(pid);
    env_detach();
    base = env_attach(NONDURABLE, 1000);
    must_ok(xbeginQuery());
    must_ok(xHeapCheck(base, &t, sizeof t));
    must_ok(xendQuery());
    must_eq(t.allocations, n + 2);
    env_detach();
}
END_TEST

/* A child of fork() takes from places of its own, not from its parent's. */
static void
child_takes(void *arg)
{
    uint64_t *at = arg;

    must_ok(xbegin());
    *at = (uint64_t)((unsigned char *)xMalloc(base, 64) - base);
    must_rc(xend(), COMMITTED);
}

START_TEST(forked_child_takes_elsewhere)
{
    uint64_t *at = proc_shared(sizeof *at);
    uint64_t own;

    base = env_attach(NONDURABLE, 1000);
    must_ok(xbegin());
    own = (uint64_t)((unsigned char *)xMalloc(base, 64) - base);
    must_rc(xend(), COMMITTED);
    proc_run(child_takes, at);
    must(*at / env_page() / 64 != own / env_page() / 64);
    env_detach();
}
END_TEST

/*
 * A transaction that is undone has taken a chunk and a run in it; another process takes
 * the same and commits.  The first must not go on there, or the two would share pages.
 */
static void
take_when_told(void *arg)
{
    uint64_t *at = arg;

    proc_await(&board->ready, 1, 30);
    base = env_attach(NONDURABLE, 1000);
    child_takes(at);
    word_store(&board->count[0], 1);
    proc_await(&board->stop, 1, 30);
}

START_TEST(undone_choices_are_forgotten)
{
    uint64_t *at = proc_shared(sizeof *at);
    uint64_t undone, own;
    unsigned char *p;
    pid_t pid;

    board = proc_shared(sizeof *board);
    pid = proc_spawn(take_when_told, at);
    base = env_attach(NONDURABLE, 1000);
    must_ok(xbegin());
    must(xMalloc(base, 3 * env_page()) != NULL); /* makes the heap */
    must_rc(xend(), COMMITTED);
    must_ok(xbegin());
    p = xMalloc(base, 60 * env_page()); /* does not fit into the first chunk */
    must(p != NULL);
    must_ok(xFree(base, p));
    undone = (uint64_t)((unsigned char *)xMalloc(base, 64) - base);
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    word_store(&board->ready, 1);
    proc_await(&board->count[0], 1, 30);
    must_eq(*at, undone); /* as the test wants it */
    must_ok(xbegin());
    own = (uint64_t)((unsigned char *)xMalloc(base, 64) - base);
    must_rc(xend(), COMMITTED);
    must(*at / env_page() / 64 != own / env_page() / 64);
    word_store(&board->stop, 1);
    proc_join(pid);
    env_detach();
}
END_TEST

/* What a process leaves half used is used up by those after it. */
static void
take_a_few(void *arg)
{
    uint64_t *highest = arg;

    base = env_attach(NONDURABLE, N_PAGES);
    must_ok(xbegin());
    for (int i = 0; i < 3; i++) {
        uint64_t at = (uint64_t)((unsigned char *)xMalloc(base, 64) - base);

        if (at > *highest)
            *highest = at;
    }
    must_rc(xend(), COMMITTED);
    env_detach();
}

START_TEST(orphaned_space_is_used_up)
{
    uint64_t *highest = proc_shared(sizeof *highest);

    for (int i = 0; i < 60; i++)
        proc_run(take_a_few, highest);
    must(*highest < 8 * env_page()); /* 180 slots: three pages and the heap's own */
}
END_TEST

static Suite *
alloc_suite(void)
{
    Suite *s = suite_create("alloc with processes");
    TCase *tc = env_tcase(s, "together", 120);

    tcase_add_loop_test(tc, own_objects_do_not_conflict, 0, 4);
    tcase_add_loop_test(tc, foreign_objects_keep_the_heap_sound, 0, 2);
    tcase_add_test(tc, shorter_mapping_goes_on);
    tcase_add_test(tc, forked_child_takes_elsewhere);
    tcase_add_test(tc, undone_choices_are_forgotten);
    tcase_add_test(tc, orphaned_space_is_used_up);
    tc = env_tcase(s, "killed", 120);
    tcase_add_test(tc, killed_processes_leave_a_sound_heap);
    return s;
}

int
main(void)
{
    return env_main(alloc_suite());
}
