/* SPDX-License-Identifier: MIT */
/*
 * check_xactree_procs.c -- one tree of libxactree in several processes, some of which are killed,
 * and in several threads.
 *
 * GOAL    after any kill the tree is sound; every transaction is in it whole or not at all; none
 *         that was acknowledged is lost.  Sums over all processes are right.
 * METHOD  each process adds to counters that all share, and puts and deletes entries of its own,
 *         in one transaction: the number of its transaction under its name, and `number` modulo some
 *         entries with values that follow from the number.  It writes to shared memory what
 *         xend() has acknowledged.  The parent kills processes at random moments, all of them
 *         now and then, and compares.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <xactree.h>

#include "env.h"

#define N_WRITERS  3
#define N_COUNTERS 5
#define N_OWN      40
#define VALUE_MAX  900
#define SIZE       ((size_t)32 << 20)

/* A process that writes; in shared memory. */
struct writer {
    unsigned id;
    uint64_t seed;
    uint64_t limit;                /* transactions; 0: until killed                   */
    _Atomic uint64_t acknowledged; /* number of its last transaction that committed   */
};

static size_t
own_key(char *key, unsigned id, uint64_t i)
{
    return (size_t)sprintf(key, "own-%u-%llu", id, (unsigned long long)i);
}

/* Value of an entry that transaction `number` of a process has put. */
static size_t
own_value(unsigned char *value, unsigned id, uint64_t number)
{
    uint64_t rng = number * 64 + id;
    size_t len = rnd_below(&rng, VALUE_MAX);

    for (size_t i = 0; i < len; i++)
        value[i] = (unsigned char)rnd_next(&rng);
    return len;
}

/* The number under a key; 0 if it is not there. */
static uint64_t
number_get(struct xactree *t, const char *key)
{
    uint64_t number = 0;
    size_t len;
    int rc = xactree_get(t, key, strlen(key), &number, sizeof number, &len);

    must(rc == 0 || rc == ENOENT);
    must(rc != 0 || len == sizeof number);
    return number;
}

static void
number_put(struct xactree *t, const char *key, uint64_t number)
{
    int rc = xactree_put(t, key, strlen(key), &number, sizeof number, XACTREE_PUT);

    must(rc == 0 || rc == XAC_FAILED);
}

/*
 * What transaction `number` does: the process's number and a counter each become one more; entry
 * number % N_OWN is put, and the one that was put half a round ago is deleted.
 */
static void
transaction(struct xactree *t, unsigned id, uint64_t number)
{
    unsigned char value[VALUE_MAX];
    char key[40];
    size_t len;
    int rc;

    (void)sprintf(key, "number-%u", id);
    number_put(t, key, number);
    (void)sprintf(key, "counter-%u", (unsigned)(number % N_COUNTERS));
    number_put(t, key, number_get(t, key) + 1);
    len = own_key(key, id, number % N_OWN);
    rc = xactree_put(t, key, len, value, own_value(value, id, number), XACTREE_ADD);
    must(rc == 0 || rc == XAC_FAILED);
    if (number <= N_OWN / 2)
        return;
    len = own_key(key, id, (number - N_OWN / 2) % N_OWN);
    rc = xactree_delete(t, key, len);
    must(rc == 0 || rc == XAC_FAILED);
}

static struct xactree *
tree_attach(void)
{
    struct xactree *t;
    void *base;

    must_ok(xac_init(ENV_DIR, XAC_DURABLE));
    base = xac_mmap(ENV_FILE, SIZE);
    must(base != MAP_FAILED);
    must_ok(xactree_open(&t, NULL, base, SIZE));
    return t;
}

static void
write_on(void *arg)
{
    struct writer *w = arg;
    struct xactree *t = tree_attach();
    char key[40];
    uint64_t number;
    int rc;

    (void)sprintf(key, "number-%u", w->id);
    number = number_get(t, key);
    for (uint64_t i = 0; w->limit == 0 || i < w->limit; i++) {
        bool give_up = rnd_below(&w->seed, 8) == 0;

        do {
            must_ok(xac_begin());
            transaction(t, w->id, number + 1);
            if (give_up)
                must_ok(xac_abort());
            rc = xac_end();
        } while (rc == XAC_ABORTED && !give_up);
        must(rc == XAC_COMMITTED || (give_up && rc == XAC_ABORTED));
        if (rc == XAC_COMMITTED)
            word_store(&w->acknowledged, ++number);
    }
    xactree_close(t);
    env_detach();
}

/* Entries of one process are those of its last N_OWN / 2 transactions.  ret its number */
static uint64_t
expect_own(struct xactree *t, unsigned id)
{
    unsigned char value[VALUE_MAX], expected[VALUE_MAX];
    struct xactree_bytes from, to;
    char key[40], low[40], high[40];
    uint64_t number, count, n;
    size_t len;

    (void)sprintf(key, "number-%u", id);
    number = number_get(t, key);
    n = number < N_OWN / 2 ? number : N_OWN / 2;
    for (uint64_t i = number - n + 1; i <= number; i++) {
        size_t key_len = own_key(key, id, i % N_OWN);

        must_ok(xactree_get(t, key, key_len, value, sizeof value, &len));
        must_eq(len, own_value(expected, id, i));
        must(memcmp(value, expected, len) == 0);
    }
    from = (struct xactree_bytes){low, (size_t)sprintf(low, "own-%u-", id)};
    to = (struct xactree_bytes){high, (size_t)sprintf(high, "own-%u.", id)};
    must_ok(xactree_count(t, &from, &to, &count));
    must_eq(count, n);
    return number;
}

/* In a process of its own, so that the parent never is a participant. */
static void
verify(void *arg)
{
    const struct writer *writers = arg;
    struct xactree *t = tree_attach();
    struct xactree_report report;
    uint64_t sum = 0, counted = 0, acknowledged[N_WRITERS];
    char key[40];

    for (unsigned w = 0; w < N_WRITERS; w++)
        acknowledged[w] = word_load(&writers[w].acknowledged);
    must_ok(xac_begin_query());
    must_ok(xactree_check(t, &report, sizeof report));
    for (unsigned w = 0; w < N_WRITERS; w++) {
        uint64_t number = expect_own(t, w);

        must(number >= acknowledged[w]);
        sum += number;
    }
    for (unsigned c = 0; c < N_COUNTERS; c++) {
        (void)sprintf(key, "counter-%u", c);
        counted += number_get(t, key);
    }
    must_eq(counted, sum);
    must_ok(xac_end_query());
    xactree_close(t);
    env_detach();
}

static void
create(void *arg)
{
    struct xactree *t;
    void *base;

    (void)arg;
    must_ok(xac_init(ENV_DIR, XAC_DURABLE));
    base = xac_mmap(ENV_FILE, SIZE);
    must(base != MAP_FAILED);
    must_ok(xactree_create(&t, NULL, base, SIZE, NULL));
    xactree_close(t);
    env_detach();
}

START_TEST(processes_write_one_tree)
{
    struct writer *writers = proc_shared(N_WRITERS * sizeof *writers);
    pid_t pid[N_WRITERS];

    env_let_overlap();
    proc_run(create, NULL);
    for (unsigned w = 0; w < N_WRITERS; w++) {
        writers[w] = (struct writer){.id = w, .seed = env_seed() + w, .limit = 300};
        pid[w] = proc_spawn(write_on, &writers[w]);
    }
    for (unsigned w = 0; w < N_WRITERS; w++)
        proc_join(pid[w]);
    proc_run(verify, writers);
}
END_TEST

START_TEST(killed_processes_leave_whole_transactions)
{
    struct writer *writers = proc_shared(N_WRITERS * sizeof *writers);
    uint64_t rng = env_seed(), rounds = env_number("XAC_ROUNDS", 25), total = 0;
    pid_t pid[N_WRITERS];

    proc_run(create, NULL);
    for (unsigned w = 0; w < N_WRITERS; w++)
        writers[w] = (struct writer){.id = w, .seed = env_seed() + w};
    for (uint64_t round = 0; round < rounds; round++) {
        unsigned n_victims = round % 3 == 0 ? N_WRITERS : 1;

        for (unsigned w = 0; w < N_WRITERS; w++)
            pid[w] = proc_spawn(write_on, &writers[w]);
        proc_await(&writers[0].acknowledged, word_load(&writers[0].acknowledged) + 1, 60);
        proc_sleep_us(rnd_below(&rng, 30000));
        for (unsigned w = 0; w < n_victims; w++)
            must(kill(pid[w], SIGKILL) == 0);
        for (unsigned w = 0; w < n_victims; w++)
            (void)proc_wait(pid[w]);
        proc_run(verify, writers); /* beside those that live, or after all are dead */
        for (unsigned w = n_victims; w < N_WRITERS; w++)
            proc_kill(pid[w]);
        must(!proc_any_failed());
    }
    proc_run(verify, writers);
    for (unsigned w = 0; w < N_WRITERS; w++)
        total += word_load(&writers[w].acknowledged);
    printf("%llu rounds, %llu transactions\n", (unsigned long long)rounds,
           (unsigned long long)total);
    must(total > rounds);
}
END_TEST

/* ---- Threads --------------------------------------------------------------------------- */

#define N_THREADS 3
#define N_PUTS    300

/* A thread with a view of its own, and so with a handle of its own. */
struct worker {
    void *base;
    unsigned id;
};

static void *
work(void *arg)
{
    const struct worker *w = arg;
    void *view = xac_view(w->base);
    struct xactree *t;
    char key[40];

    must(view != MAP_FAILED);
    must_ok(xactree_open(&t, NULL, view, SIZE));
    for (unsigned i = 0; i < N_PUTS; i++) {
        int rc;

        do {
            must_ok(xac_begin());
            number_put(t, "sum", number_get(t, "sum") + 1);
            (void)sprintf(key, "thread-%u-%u", w->id, i);
            number_put(t, key, i);
            rc = xac_end();
        } while (rc == XAC_ABORTED);
        must_rc(rc, XAC_COMMITTED);
    }
    xactree_close(t);
    must_ok(xac_unview(view));
    return NULL;
}

START_TEST(threads_with_views_write_one_tree)
{
    struct xactree_bytes from = {"thread-", 7}, to = {"thread.", 7};
    pthread_t thread[N_THREADS];
    struct worker worker[N_THREADS];
    struct xactree *t;
    uint64_t count;
    void *base;

    env_let_overlap();
    must_ok(xac_init(ENV_DIR, XAC_NONDURABLE));
    base = xac_mmap(ENV_FILE, SIZE);
    must(base != MAP_FAILED);
    must_ok(xactree_create(&t, NULL, base, SIZE, NULL));
    for (unsigned i = 0; i < N_THREADS; i++) {
        worker[i] = (struct worker){base, i};
        must_ok(pthread_create(&thread[i], NULL, work, &worker[i]));
    }
    for (unsigned i = 0; i < N_THREADS; i++)
        must_ok(pthread_join(thread[i], NULL));
    must_ok(xactree_check(t, NULL, 0));
    must_eq(number_get(t, "sum"), N_THREADS * N_PUTS);
    must_ok(xactree_count(t, &from, &to, &count));
    must_eq(count, N_THREADS * N_PUTS);
    xactree_close(t);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("xactree_procs");
    TCase *tc = env_tcase(s, "xactree_procs", 300);

    tcase_add_test(tc, processes_write_one_tree);
    tcase_add_test(tc, threads_with_views_write_one_tree);
    tcase_add_test(tc, killed_processes_leave_whole_transactions);
    return env_main(s);
}
