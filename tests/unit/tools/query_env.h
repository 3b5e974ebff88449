/* SPDX-License-Identifier: MIT */
/*
 * query_env.h -- what the test programs of queries on a standby share: a source that moves money between the pages of
 * a file, and readers of the standby that add it up; and a judge, who recovers copies of the standby.
 *
 * Defines things, so it is included once per program.
 */
#ifndef XAC_TEST_QUERY_ENV_H
#define XAC_TEST_QUERY_ENV_H

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "tests/unit/tools/ship_run.h"
#include "base/err.h"
#include "recovery/recover.h"

#define ACCOUNTS 48
#define START    1000
#define COPY     "copy"
#define IN_COPY  COPY "/xac-outside/1-input.db"
#define READERS  3
#define KIB      ((uint64_t)1024)

/* A page of the file. */
struct account {
    uint64_t balance, n_changes;
    uint64_t n_transactions; /* of page 0: of the whole file */
};

/* What writer, readers and test tell each other. */
struct board {
    _Atomic uint64_t written, stop;
    _Atomic uint64_t reads, seen[READERS], at[READERS], go[READERS];
    uint64_t n, pause_us, checkpoint_every, wanted, least, pages;
    uint64_t reader_pause_us; /* between two queries of a reader                        */
};

static struct board *board;

static inline void
setup(void)
{
    env_setup();
    board = (struct board *)proc_shared(sizeof *board);
    board->checkpoint_every = 50;
    board->n = UINT64_MAX;
    board->pages = ACCOUNTS;
    env_without_frames("the standby has none");
    must_ok(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)); /* receivers are left to us */
}

static inline struct account *
account_at(uint64_t *x, size_t i)
{
    return (struct account *)(void *)env_cell(x, i);
}

/* ---- The source ------------------------------------------------------------------------- */

/* transfer -- one transaction, at both ends of a random pair. */
static inline void
transfer(uint64_t *x, uint64_t *seed)
{
    size_t a = (size_t)rnd_below(seed, ACCOUNTS), b = (size_t)rnd_below(seed, ACCOUNTS);
    uint64_t much = rnd_below(seed, 9);

    account_at(x, a)->balance -= much;
    account_at(x, b)->balance += much;
    account_at(x, a)->n_changes++;
    account_at(x, b)->n_changes++;
    account_at(x, 0)->n_transactions++;
}

/* write_on -- a child: the accounts, if they are not there; then board->n transactions, or until `stop`. */
static inline void
write_on(void *arg)
{
    uint64_t seed = env_seed(), *x, k = 0;
    int rc;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 64 * KIB));
    x = (uint64_t *)env_attach(DURABLE, board->pages);
    for (uint64_t i = 0; i <= board->n && word_load(&board->stop) == 0; i++) {
        do {
            must_ok(xbegin());
            k = account_at(x, 0)->n_transactions;
            if (account_at(x, 0)->balance == 0 && k == 0) {
                for (size_t p = 0; p < ACCOUNTS; p++)
                    account_at(x, p)->balance = START;
            } else if (i > 0) {
                transfer(x, &seed);
            }
            rc = xend();
        } while (rc == ABORTED);
        must_rc(rc, COMMITTED);
        word_store(&board->written, k + (i > 0));
        if (board->pause_us != 0)
            proc_sleep_us(board->pause_us);
        if (board->checkpoint_every != 0 && i % board->checkpoint_every == 1)
            must_ok(xCheckpoint());
    }
    env_detach();
}

/* write_n -- to its end. */
static inline void
write_n(uint64_t n)
{
    board->n = n;
    proc_run(write_on, NULL);
    board->n = UINT64_MAX;
}

/* ---- Readers ---------------------------------------------------------------------------- */

/* count -- all accounts, in an order of the seed; ret the number of transactions in that state. */
static inline uint64_t
count(uint64_t *x, uint64_t seed)
{
    uint64_t sum = 0, n_changes = 0, turn = rnd_below(&seed, ACCOUNTS);

    for (size_t i = 0; i < ACCOUNTS; i++) {
        const struct account *a = account_at(x, (i + turn) % ACCOUNTS);

        sum += a->balance;
        n_changes += a->n_changes;
    }
    if (sum != (uint64_t)ACCOUNTS * START
        || n_changes != 2 * account_at(x, 0)->n_transactions)
        env_fail(__FILE__, __LINE__, "sum %llu, %llu changes in %llu transactions",
                 (unsigned long long)sum, (unsigned long long)n_changes,
                 (unsigned long long)account_at(x, 0)->n_transactions);
    return account_at(x, 0)->n_transactions;
}

/* attach -- to the standby, as soon as one can be opened; ret its file. */
static inline uint64_t *
attach(void)
{
    uint64_t *x;
    int rc = 0;

    for (int i = 0; i < 600 && !file_exists(COPY "/xac.history"); i++)
        proc_sleep_us(20000);
    for (int i = 0; i < 600 && (i == 0 || rc == XAC_ENOTLEADER || rc == XAC_ENOTENV);
         i++) {
        rc = xInit(COPY, DURABLE);
        if (rc != 0)
            proc_sleep_us(20000);
    }
    must_rc(rc, 0);
    x = (uint64_t *)xMmap(IN_COPY, ACCOUNTS * env_page());
    must(x != (uint64_t *)MAP_FAILED);
    return x;
}

/* query -- once; ret its state. */
static inline uint64_t
query(uint64_t *x, uint64_t seed)
{
    uint64_t k;

    must_ok(xbeginQuery());
    k = count(x, seed);
    must_ok(xendQuery());
    return k;
}

/* read_on -- a child: queries until all have read enough, and `stop` or not. */
static inline void
read_on(void *arg)
{
    uint64_t me = (uint64_t)(uintptr_t)arg, *x = attach(), k, seen = 0;

    for (uint64_t i = 0;
         atomic_load(&board->reads) < board->wanted || seen < board->least; i++) {
        k = query(x, i + me);
        must(k >= seen);
        seen = k;
        word_store(&board->seen[me], k);
        (void)atomic_fetch_add(&board->reads, ACCOUNTS);
        if (i % 64 == 0) {
            must_refuse(xbegin(), XAC_ENOTLEADER);
            must(strstr(xLastError(), "it can be queried, not written") != NULL);
        }
        if (board->reader_pause_us != 0)
            proc_sleep_us(board->reader_pause_us);
    }
    must_ok(xMunmap(IN_COPY));
    must_ok(xShutdown());
}

/* await_seen -- until a reader has seen that many transactions. */
static inline void
await_seen(size_t reader, uint64_t k)
{
    for (int i = 0; i < 9000 && word_load(&board->seen[reader]) < k; i++)
        proc_sleep_us(10000);
    if (word_load(&board->seen[reader]) < k) {
        (void)system("tail -n 5 log sender.log");
        env_fail(__FILE__, __LINE__, "reader %zu does not come to %llu, it sees %llu",
                 reader, (unsigned long long)k,
                 (unsigned long long)word_load(&board->seen[reader]));
    }
}

/* read_state -- a child: what the recovered copy has. */
static inline void
read_state(void *arg)
{
    uint64_t *x = (uint64_t *)calloc(ACCOUNTS, env_page());

    (void)arg;
    file_read("judged/xac-outside/1-input.db", 0, x, ACCOUNTS * env_page());
    word_store(&board->seen[0], count(x, 0));
    free(x);
}

/* judge -- recover a copy of the standby, in which nobody writes now; ret its state. */
static inline uint64_t
judge(void)
{
    static const struct xac_recover_options promote = {.promotes = true};
    int fd;

    must_eq(system("rm -rf judged && cp -a " COPY " judged"), 0);
    fd = open("judged", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(fd >= 0);
    must_ok(xac_recover_dir(fd, &promote, NULL, NULL));
    (void)close(fd);
    proc_run(read_state, NULL);
    return word_load(&board->seen[0]);
}

/* read_long -- a child: one query, whose state stays while go says nothing. */
static inline void
read_long(void *arg)
{
    uint64_t me = (uint64_t)(uintptr_t)arg, *x = attach(), k;

    must_ok(xbeginQuery());
    k = account_at(x, 0)->n_transactions;
    word_store(&board->seen[me], k);
    for (uint64_t i = 1; word_load(&board->go[me]) == 0; i++) {
        /* Pages that it has not looked at yet, too. */
        (void)account_at(x, 1 + (size_t)(i % (ACCOUNTS / 2)))->balance;
        word_store(&board->at[me], i);
        proc_sleep_us(20000);
    }
    must_eq(count(x, 1), k);
    must_ok(xendQuery());
    word_store(&board->at[me], UINT64_MAX);
    must(query(x, 2) >= k);
    must_ok(xMunmap(IN_COPY));
    must_ok(xShutdown());
}

#endif /* XAC_TEST_QUERY_ENV_H */
