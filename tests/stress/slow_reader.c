/* SPDX-License-Identifier: MIT */
/*
 * slow_reader.c -- a query that sleeps beside a writer that does not stop, under XAC_OPT_READER_LIMIT.
 *
 * GOAL    However much is written meanwhile, the version store stays below the limit, and the query
 *         ends with XAC_ECUTOFF in words.  Without a limit the store grows with what is written.
 * METHOD  A child reads a page in a query, and sleeps until all is written.  The test writes all
 *         pages again and again, PER_TXN in a transaction, and asks for the store's size after
 *         each.  It prints the size, and the bytes that all shared memory of the environment
 *         takes, ten times.
 *
 * slow_reader [--durable] [--limit MIB] [--pages N] [--write MIB] [--seconds N]
 *   a limit of so many MiB (64; 0: none), N pages (65536), and so much to write in all (512 MiB), as
 *   fast as it goes, or evenly in so many seconds.
 * Exit code 1 if the store has not stayed below the limit, or the query does not end as it should.
 */
#include <config.h>

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "env.h"

#define MIB     ((uint64_t)1 << 20)
#define PER_TXN 64u
#define LINES   10u

struct board {
    _Atomic uint64_t reading, written;
};

static struct board *board;
static int mode = XAC_NONDURABLE;
static uint64_t limit = 64 * MIB, n_pages = 65536, to_write = 512 * MIB;
static double seconds;

static volatile uint64_t *
attach(void)
{
    must_ok(xac_set_option(XAC_OPT_READER_LIMIT, limit));
    if (limit != 0)
        must_ok(xac_set_option(XAC_OPT_CHECKPOINT_BYTES, limit / 4));
    return (volatile uint64_t *)env_attach(mode, n_pages);
}

static void
sleep_in_query(void *arg)
{
    const volatile uint64_t *x = attach();
    double began;
    int rc;

    (void)arg;
    must_ok(xac_begin_query());
    must_eq(x[0], 0);
    began = env_now();
    word_store(&board->reading, 1);
    proc_await(&board->written, 1, 36000);
    rc = xac_end_query();
    printf("the query has slept for %.0f s; its end: %s\n", env_now() - began,
           rc == 0 ? "success" : xac_last_error());
    must_rc(rc, limit == 0 ? 0 : XAC_ECUTOFF);
    must_ok(xac_begin_query());
    must(x[0] > 0);
    must_ok(xac_end_query());
    env_detach();
}

/* print_sizes -- after so many bytes. */
static void
print_sizes(double began, uint64_t written, uint64_t most)
{
    struct xac_stats s = env_stats();

    printf("%6.1f s: %8" PRIu64 " MiB written, %6" PRIu64
           " commits; the store %7.1f MiB, at most "
           "%7.1f, in frames %7.1f; cut off: %" PRIu64 "\n",
           env_now() - began, written / MIB, s.commits,
           (double)(s.versions_live * env_page()) / (double)MIB,
           (double)most / (double)MIB, (double)(s.frames * env_page()) / (double)MIB,
           s.queries_cut);
    (void)fflush(stdout);
}

/* keep_pace -- wait until it is time for so many bytes. */
static void
keep_pace(double began, uint64_t written)
{
    double ahead = began + seconds * (double)written / (double)to_write - env_now();

    if (ahead > 0)
        proc_sleep_us((uint64_t)(ahead * 1e6));
}

/* write_on -- ret the most bytes that the store has had. */
static uint64_t
write_on(volatile uint64_t *x)
{
    uint64_t page = 0, value = 1, most = 0, next = to_write / LINES;
    double began = env_now();

    for (uint64_t written = 0; written < to_write; written += PER_TXN * env_page()) {
        uint64_t live;

        must_ok(xac_begin());
        for (unsigned i = 0; i < PER_TXN; i++) {
            x[page * (env_page() / 8)] = value;
            page = page + 1 < n_pages ? page + 1 : 0;
            value += page == 0;
        }
        must_rc(xac_end(), XAC_COMMITTED);
        keep_pace(began, written);
        live = env_stats().versions_live * env_page();
        most = live > most ? live : most;
        if (written >= next) {
            print_sizes(began, written, most);
            next += to_write / LINES;
        }
    }
    print_sizes(began, to_write, most);
    return most;
}

static int
run(void)
{
    volatile uint64_t *x;
    uint64_t most;
    pid_t child;

    board = proc_shared(sizeof *board);
    child = proc_spawn(sleep_in_query, NULL);
    x = attach();
    proc_await(&board->reading, 1, 60);
    most = write_on(x);
    word_store(&board->written, 1);
    proc_join(child);
    env_detach();
    if (limit != 0 && most >= limit) {
        printf("the store had %" PRIu64 " bytes, the limit is %" PRIu64 "\n", most,
               limit);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
    static const struct option options[] = {
        {"durable", no_argument, NULL, 'd'},
        {"limit", required_argument, NULL, 'l'},
        {"pages", required_argument, NULL, 'p'},
        {"write", required_argument, NULL, 'w'},
        {"seconds", required_argument, NULL, 's'},
        {0},
    };
    int c, rc;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'd')
            mode = XAC_DURABLE;
        else if (c == 'l')
            limit = strtoul(optarg, NULL, 0) * MIB;
        else if (c == 'p')
            n_pages = strtoul(optarg, NULL, 0);
        else if (c == 'w')
            to_write = strtoul(optarg, NULL, 0) * MIB;
        else if (c == 's')
            seconds = strtod(optarg, NULL);
        else
            return 2;
    }
    if (n_pages < PER_TXN || to_write < LINES * PER_TXN * env_page()) {
        fprintf(stderr, "slow_reader: at least %u pages, and %u pages to write\n",
                PER_TXN, LINES * PER_TXN);
        return 2;
    }
    env_open();
    rc = run();
    env_close();
    return rc;
}
