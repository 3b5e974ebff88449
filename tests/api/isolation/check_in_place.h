/* SPDX-License-Identifier: MIT */
/*
 * check_in_place.h -- what the tests of pages that are updated in place have in common.
 *
 * Each page has a count that tells all its bytes, and the first one the sum of all others.  A file
 * beside the control region tells that pages are updated in place at all.
 */
#ifndef CHECK_IN_PLACE_H
#define CHECK_IN_PLACE_H

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"

#define PAGES 48

/* Begins behind which a process that is alone has looked at its views, in any case. */
#define ENOUGH 200

/* What the processes of a test tell each other. */
struct board {
    _Atomic uint64_t committed; /* transactions, of all                                 */
    _Atomic uint64_t phase;     /* see the tests                                        */
    _Atomic uint64_t stop;
};

static struct board *board;

static inline void
setup(void)
{
    env_setup();
    env_without_frames("a bound on memory rules out updates in place");
    must(setenv("XAC_ENGINE", "uffd", 1) == 0);
    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_SERIAL));
    env_checking = XAC_CHECKING_TRUSTED;
    board = proc_shared(sizeof *board);
}

/* has_engine -- pages that stay writable need userfaultfd. */
static inline bool
has_engine(void)
{
    return env_stats().engine_error == 0;
}

/* in_place_file -- the file that others read such pages from. */
static inline void
in_place_file(char path[4300])
{
    char region[4200];

    env_region(ENV_DIR, region);
    (void)snprintf(path, 4300, "%s.in-place", region);
}

static inline bool
is_in_place(void)
{
    char path[4300];

    in_place_file(path);
    return file_exists(path);
}

/* ---- Pages that tell what they should hold ------------------------------------------------- */

static inline size_t
words(void)
{
    return env_page() / sizeof(uint64_t);
}

static inline uint64_t
word_of(uint64_t page, uint64_t count, size_t i)
{
    return count == 0 ? 0
           : i == 0   ? count
                      : (count << 16 | page) * 0x9e3779b97f4a7c15 + i;
}

static inline void
set_page(uint64_t *base, uint64_t page, uint64_t count)
{
    uint64_t *at = env_cell(base, page);

    for (size_t i = 0; i < words(); i++)
        at[i] = word_of(page, count, i);
}

/* change -- announce a page, and count it up. */
static inline void
change(uint64_t *base, uint64_t page)
{
    must_ok(setPageAccess(env_cell(base, page), READ_WRITE));
    set_page(base, page, *env_cell(base, page) + 1);
}

/* step -- stores of a transaction: to some pages, and as often to their sum. */
static inline void
step(uint64_t *base, uint64_t n_pages, uint64_t *seed)
{
    uint64_t n = 1 + rnd_below(seed, rnd_below(seed, 8) == 0 ? n_pages / 2 : 4), sum = 0;

    for (uint64_t k = 0; k < n; k++, sum++)
        change(base, 1 + rnd_below(seed, n_pages - 1));
    must_ok(setPageAccess(base, READ_WRITE));
    set_page(base, 0, *base + sum);
}

/* must_be_whole -- one state: all bytes of each page are of one count, and the first page has the sum.
   ret the sum. */
static inline uint64_t
must_be_whole(uint64_t *base, uint64_t n_pages)
{
    uint64_t sum = 0;

    for (uint64_t p = 0; p < n_pages; p++) {
        const uint64_t *at = env_cell(base, p);

        for (size_t i = 0; i < words(); i++) {
            if (at[i] != word_of(p, at[0], i))
                env_fail(__FILE__, __LINE__, "page %llu at %llu: word %zu is of another",
                         (unsigned long long)p, (unsigned long long)at[0], i);
        }
        sum += p > 0 ? at[0] : 0;
    }
    must_eq(*base, sum);
    return sum;
}

static inline void
must_be_whole_now(uint64_t *base, uint64_t n_pages)
{
    must_ok(xbeginQuery());
    (void)must_be_whole(base, n_pages);
    must_ok(xendQuery());
}

/* try -- one transaction with a random end; ret whether it has committed. */
static inline bool
try(uint64_t *base, uint64_t n_pages, uint64_t *seed)
{
    bool gives_up = rnd_below(seed, 4) == 0, is_nested = rnd_below(seed, 4) == 0;
    int rc;

    must_ok(xbegin());
    if (rnd_below(seed, 16) == 0)
        (void)must_be_whole(base, n_pages);
    if (is_nested)
        must_ok(xbegin());
    step(base, n_pages, seed);
    if (is_nested) {
        rc = xend();
        must(rc == PENDING || rc == FAILED);
    }
    if (rnd_below(seed, 4) == 0)
        step(base, n_pages, seed);
    if (gives_up)
        must_ok(xAbort());
    rc = xend();
    must(rc == COMMITTED || rc == ABORTED);
    must(!gives_up || rc == ABORTED);
    return rc == COMMITTED;
}

/* write_all -- each page is written once and more, in many transactions. */
static inline void
write_all(uint64_t *base, uint64_t n_pages)
{
    for (uint64_t k = 0; k < ENOUGH || k < n_pages; k++) {
        must_ok(xbegin());
        change(base, 1 + k % (n_pages - 1));
        must_ok(setPageAccess(base, READ_WRITE));
        set_page(base, 0, *base + 1);
        must_rc(xend(), COMMITTED);
    }
}

/* enter -- transactions until pages are updated in place, and until they all have been. */
static inline void
enter(uint64_t *base, uint64_t n_pages)
{
    write_all(base, n_pages);
    must(!has_engine() || is_in_place());
}

static inline uint64_t *
attach(void)
{
    return env_attach(NONDURABLE, PAGES);
}

/* look -- a process of its own sees a whole state with this sum. */
struct look {
    uint64_t sum;
    bool is_any; /* sum */
};

static inline void
look(void *arg)
{
    const struct look *l = arg;
    uint64_t *base = attach(), sum;

    must_ok(xbeginQuery());
    sum = must_be_whole(base, PAGES);
    must_ok(xendQuery());
    must(l->is_any || sum == l->sum);
    env_detach();
}

/* A process that was there first, and waits for orders. */
struct other {
    _Atomic uint64_t order, done;
    struct look look;
};

static struct other *other;

static inline void
serve(void *arg)
{
    (void)arg;
    for (uint64_t n = 1;; n++) {
        proc_await(&other->order, n, 60);
        look(&other->look);
        word_store(&other->done, n);
    }
}

static inline void
process_comes(void *arg)
{
    const struct look *l = arg;

    other->look = *l;
    word_add(&other->order, 1);
    proc_await(&other->done, word_load(&other->order), 60);
}

/* serve_looks -- from now on process_comes() works; before anybody attaches. */
static inline pid_t
serve_looks(void)
{
    other = proc_shared(sizeof *other);
    return proc_spawn(serve, NULL);
}

#endif /* CHECK_IN_PLACE_H */
