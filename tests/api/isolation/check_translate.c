/* SPDX-License-Identifier: MIT */
/*
 * check_translate.c -- transactions at translated addresses (xac_translate.h).
 *
 * GOAL    They run beside those of other threads, see each segment of the process, also one that is
 *         new, and keep nobody from unmapping, resizing and closing while none is open.  Between
 *         them the thread uses the process's mappings.
 * METHOD  The main thread gives a second one orders, one at a time.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <xac_translate.h>

#include "env.h"

#define PAGES 16

static uint64_t *x;

/* at -- where a number of the process's mapping lies in the open transaction. */
static volatile uint64_t *
at(const uint64_t *cell)
{
    void *place = NULL;

    must_ok(xac_translate(cell, &place));
    must(place != (const void *)cell);
    must(xac_translate_back(place) == (const void *)cell);
    return (volatile uint64_t *)place;
}

static void
add(const uint64_t *cell, uint64_t n)
{
    int rc;

    do {
        must_ok(xac_begin_translated(0));
        *at(cell) += n;
        rc = xend();
    } while (rc == ABORTED);
    must_rc(rc, COMMITTED);
}

/* ---- a thread that does what it is told --------------------------------------------------- */

static struct other {
    pthread_t thread;
    _Atomic uint64_t asked;
    _Atomic uint64_t done;
    void (*fn)(void);
} other;

static void *
obey(void *arg)
{
    (void)arg;
    for (uint64_t i = 1;; i++) {
        proc_await(&other.asked, i, 60);
        if (other.fn == NULL)
            return NULL;
        other.fn();
        word_store(&other.done, i);
    }
}

static void
tell(void (*fn)(void))
{
    other.fn = fn;
    word_add(&other.asked, 1);
    if (fn != NULL)
        proc_await(&other.done, word_load(&other.asked), 60);
}

static void
other_start(void)
{
    must(pthread_create(&other.thread, NULL, obey, NULL) == 0);
}

static void
other_end(void)
{
    tell(NULL);
    must(pthread_join(other.thread, NULL) == 0);
}

/* ---- beside each other ----------------------------------------------------------------------- */

static void
add_one(void)
{
    add(x, 1);
}

static void
add_plainly(void)
{
    env_increment(x);
}

/* A query of one thread keeps its snapshot while others commit, translated and not. */
START_TEST(query_sees_its_snapshot_beside_commits)
{
    uint64_t before, in_query;

    x = env_attach(NONDURABLE, PAGES);
    other_start();
    add(x, 5);
    before = xac_position();
    must_ok(xac_begin_translated(1));
    must_eq(*at(x), 5);
    tell(add_one);
    tell(add_plainly);
    must_eq(*at(x), 5);
    in_query = xac_position();
    must(in_query >= before);
    must_ok(xendQuery());
    must(xac_position() >= in_query + 2);
    must_eq(env_get(x), 7);
    other_end();
    env_detach();
}
END_TEST

static volatile uint64_t *foreign;

static void
begin_and_store(void)
{
    must_ok(xac_begin_translated(0));
    foreign = at(x + 1);
    *foreign = 77;
}

static void
end(void)
{
    must_rc(xend(), COMMITTED);
}

/* What a transaction has stored is its own until it ends. */
START_TEST(stores_are_seen_after_the_end)
{
    x = env_attach(NONDURABLE, PAGES);
    other_start();
    add(x, 1);
    tell(begin_and_store);
    must_ok(xac_begin_translated(1));
    must(at(x + 1) != foreign);
    must_eq(*at(x + 1), 0);
    must_ok(xendQuery());
    must_eq(env_get(x + 1), 0);
    tell(end);
    must_ok(xac_begin_translated(1));
    must_eq(*at(x + 1), 77);
    must_ok(xendQuery());
    other_end();
    env_detach();
}
END_TEST

/* ---- mappings that come and go ------------------------------------------------------------- */

static uint64_t *second;

static void
store_second(void)
{
    add(second + 3, 9);
}

START_TEST(new_segments_are_seen)
{
    void *place = NULL;

    x = env_attach(NONDURABLE, PAGES);
    other_start();
    tell(add_one);
    must_ok(xac_begin_translated(1));
    must_rc(xac_translate(&place, &place), XAC_ENOTMAPPED);
    must_ok(xendQuery());
    second = xMmap("second.db", 4 * env_page());
    must(second != MAP_FAILED);
    tell(store_second);
    must_eq(env_get(second + 3), 9);
    other_end();
    env_detach();
}
END_TEST

static void
map_second(void)
{
    second = xMmap("second.db", 4 * env_page());
    must(second != MAP_FAILED);
}

/* The transaction began without the segment: it is told so, and nothing else is taken for it. */
START_TEST(segment_that_came_later_needs_another_begin)
{
    void *place = NULL;

    x = env_attach(NONDURABLE, PAGES);
    other_start();
    must_ok(xac_begin_translated(0));
    tell(map_second);
    must_rc(xac_translate(second, &place), EAGAIN);
    must_rc(xac_translate(&place, &place), EAGAIN);
    must_ok(xac_translate(x, &place));
    must_rc(xend(), COMMITTED);
    must_ok(xac_begin_translated(0));
    must_ok(xac_translate(second, &place));
    must_rc(xac_translate(&place, &place), XAC_ENOTMAPPED);
    must_rc(xend(), COMMITTED);
    must_rc(xac_translate(second, &place), XAC_ENOTXN);
    must(xac_translate_back(place) == NULL);
    other_end();
    env_detach();
}
END_TEST

static void
query_begin(void)
{
    must_ok(xac_begin_translated(1));
    must_eq(*at(second + 3), 9);
}

static void
query_end(void)
{
    must_ok(xendQuery());
}

/* Threads without an open transaction keep nobody from unmapping; one that has one does. */
START_TEST(idle_views_are_taken_back)
{
    uint64_t *longer;

    x = env_attach(NONDURABLE, PAGES);
    map_second();
    other_start();
    tell(store_second);
    tell(query_begin);
    must_refuse(xMunmap("second.db"), EBUSY);
    errno = 0;
    must(xMremap(second, 8 * env_page(), 0) == MAP_FAILED);
    must_eq(errno, EBUSY);
    must_refuse(xShutdown(), EBUSY);
    tell(query_end);
    longer = xMremap(second, 8 * env_page(), XAC_MAY_MOVE);
    must(longer != MAP_FAILED);
    second = longer;
    tell(store_second);
    must_eq(env_get(second + 3), 18);
    add(second + 7 * 512, 1);
    must_ok(xMunmap("second.db"));
    tell(add_one);
    must_ok(xShutdown());
    x = env_attach(NONDURABLE, PAGES);
    tell(add_one);
    tell(add_plainly);
    must_eq(env_get(x), 3);
    other_end();
    env_detach();
}
END_TEST

/* The thread ends after the environment that it had views of. */
START_TEST(thread_ends_after_the_environment)
{
    for (int i = 0; i < 3; i++) {
        other = (struct other){.fn = NULL};
        x = env_attach(NONDURABLE, PAGES);
        other_start();
        tell(add_one);
        env_detach();
        if (i == 1) {
            x = env_attach(NONDURABLE, PAGES);
            tell(add_one);
            other_end();
            env_detach();
        } else {
            other_end();
        }
    }
    must_eq(file_u64(ENV_FILE, 0), 4);
}
END_TEST

/* ---- what else a thread does ------------------------------------------------------------------- */

static _Atomic uint64_t stop;

static void *
map_and_unmap(void *arg)
{
    (void)arg;
    while (word_load(&stop) == 0) {
        uint64_t *p = xMmap("third.db", 4 * env_page());

        must(p != MAP_FAILED || errno == EBUSY);
        while (p != MAP_FAILED && xMunmap("third.db") != 0)
            (void)usleep(10);
    }
    return NULL;
}

/* Transactions begin while others map and unmap: none is lost, none sees half of the segments. */
START_TEST(begins_beside_unmapping)
{
    pthread_t thread;
    uint64_t n = 0;
    int rc;

    x = env_attach(NONDURABLE, PAGES);
    must(pthread_create(&thread, NULL, map_and_unmap, NULL) == 0);
    for (int i = 0; i < 3000; i++) {
        rc = xac_begin_translated(0);
        if (rc == EBUSY)
            continue;
        must_ok(rc);
        *at(x) += 1;
        rc = xend();
        must(rc == COMMITTED || rc == ABORTED);
        n += rc == COMMITTED;
    }
    word_store(&stop, 1);
    must(pthread_join(thread, NULL) == 0);
    must(n > 100);
    must_eq(env_get(x), n);
    env_detach();
}
END_TEST

static void
do_in_child(void *arg)
{
    (void)arg;
    add(x, 10);
    env_increment(x);
}

START_TEST(child_of_fork_begins_anew)
{
    void *place;

    x = env_attach(NONDURABLE, PAGES);
    other_start();
    tell(add_one);
    add(x, 1);
    proc_run(do_in_child, NULL);
    add(x, 1);
    must_eq(env_get(x), 14);
    must_ok(xac_begin_translated(0));
    *at(x) = 100;
    if (fork() == 0) {
        must_rc(xend(), XAC_EFORKED);
        add(x, 1000);
        _exit(0);
    }
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    must(xac_translate(x, &place) == XAC_ENOTXN);
    other_end();
    proc_sleep_us(1000);
    while (env_get(x) != 1014)
        proc_sleep_us(1000);
    env_detach();
}
END_TEST

START_TEST(what_is_refused)
{
    uint64_t *mine;

    must_eq(xac_position(), 0);
    must_refuse(xac_begin_translated(0), XAC_ENOINIT);
    x = env_attach(NONDURABLE, PAGES);
    must_ok(xbegin());
    must_refuse(xac_begin_translated(0), XAC_EINTXN);
    must_rc(xend(), COMMITTED);
    must_ok(xac_begin_translated(1));
    must_refuse(xac_begin_translated(1), XAC_EINTXN);
    must(xView(x) == MAP_FAILED);
    must_refuse(xMunmap(ENV_FILE), XAC_EINTXN);
    must_ok(xendQuery());
    mine = xView(x);
    must(mine != MAP_FAILED);
    must_refuse(xac_begin_translated(0), XAC_EMAPPED);
    must_ok(xbegin());
    mine[0] = 3;
    must_rc(xend(), COMMITTED);
    must_ok(xUnview(mine));
    add(x, 1);
    must_eq(env_get(x), 4);
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("translate");
    TCase *tc = env_tcase(s, "translate", 60);

    tcase_add_test(tc, query_sees_its_snapshot_beside_commits);
    tcase_add_test(tc, stores_are_seen_after_the_end);
    tcase_add_test(tc, new_segments_are_seen);
    tcase_add_test(tc, segment_that_came_later_needs_another_begin);
    tcase_add_test(tc, idle_views_are_taken_back);
    tcase_add_test(tc, thread_ends_after_the_environment);
    tcase_add_test(tc, begins_beside_unmapping);
    tcase_add_test(tc, child_of_fork_begins_anew);
    tcase_add_test(tc, what_is_refused);
    return env_main(s);
}
