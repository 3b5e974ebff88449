/* SPDX-License-Identifier: MIT */
/*
 * check_cutoff_step.c -- a process dies when it has just cut off a query (XAC_OPT_READER_LIMIT).
 *
 * GOAL    The query ends with XAC_ECUTOFF, others go on, and the version store stays below the limit.
 * METHOD  A reader sleeps in a query.  A writer dies at the kill point behind the exchange to CUT
 *         (xac_kill_point, debug builds), with the lock of gc held.  The test goes on writing, which
 *         repairs that, and then wakes the reader.
 */
#include <config.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/env.h"
#include "base/annot.h"

#define MIB     ((uint64_t)1 << 20)
#define LIMIT   (2 * MIB)
#define N_PAGES ((size_t)(2 * MIB / env_page()))

#ifdef XAC_DEBUG

struct board {
    _Atomic uint64_t reading, written;
};

static struct board *board;

static volatile uint64_t *
attach(int flags)
{
    must_ok(xac_set_option(XAC_OPT_READER_LIMIT, LIMIT));
    must_ok(xac_set_option(XAC_OPT_CHECKPOINT_BYTES, MIB));
    return (volatile uint64_t *)env_attach(flags, N_PAGES);
}

/* write_all -- each page once more; ret the most bytes that the store has had. */
static uint64_t
write_all(volatile uint64_t *x)
{
    uint64_t most = 0;

    for (size_t page = 0; page < N_PAGES; page++) {
        uint64_t live;
        int rc;

        do {
            must_ok(xac_begin());
            x[page * (env_page() / 8)]++;
            rc = xac_end();
        } while (rc == XAC_ABORTED); /* revoked by one that comes */
        must_rc(rc, XAC_COMMITTED);
        live = env_stats().versions_live * env_page();
        most = live > most ? live : most;
    }
    return most;
}

static void
sleep_in_query(void *arg)
{
    const volatile uint64_t *x = attach(*(const int *)arg);
    uint64_t was;

    must_ok(xac_begin_query());
    was = x[0];
    word_store(&board->reading, 1);
    proc_await(&board->written, 1, 60);
    must_refuse(xac_end_query(), XAC_ECUTOFF);
    must_ok(xac_begin_query());
    must(x[0] > was);
    must_ok(xac_end_query());
    env_detach();
}

static void
die(const char *name)
{
    if (strcmp(name, "cut off") == 0)
        (void)kill(getpid(), SIGKILL);
}

static void
write_and_die(void *arg)
{
    volatile uint64_t *x = attach(*(const int *)arg);

    xac_kill_hook = die;
    for (;;)
        (void)write_all(x);
}

START_TEST(writer_dies_when_it_has_cut_off)
{
    int flags = _i == 0 ? XAC_NONDURABLE : XAC_DURABLE, status;
    pid_t reader, writer;
    volatile uint64_t *x;

    board = proc_shared(sizeof *board);
    reader = proc_spawn(sleep_in_query, &flags);
    proc_await(&board->reading, 1, 20);
    writer = proc_spawn(write_and_die, &flags);
    must(waitpid(writer, &status, 0) == writer);
    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    x = attach(flags);
    for (int i = 0; i < 4; i++)
        must(write_all(x) < LIMIT);
    must_eq(env_stats().queries_cut, 0); /* it has died before it counted */
    word_store(&board->written, 1);
    proc_join(reader);
    env_detach();
}
END_TEST

#endif /* XAC_DEBUG */

int
main(void)
{
    Suite *s = suite_create("cutoff_step");

#ifdef XAC_DEBUG
    TCase *tc = env_tcase(s, "cutoff_step", 120);

    tcase_add_loop_test(tc, writer_dies_when_it_has_cut_off, 0, 2);
#endif
    return env_main(s);
}
