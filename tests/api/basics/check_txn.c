/* SPDX-License-Identifier: MIT */
/*
 * check_txn.c -- what one process may expect of its transactions.
 *
 * GOAL    values, roll-back, nesting, queries, hints and counters as xac.h says, whatever
 *         the size of pages, segments and transactions.
 * METHOD  each test runs twice, NONDURABLE and DURABLE (the loop variable _i).  The
 *         files are read with read(2) after xShutdown, which must have brought them up to
 *         date.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "env.h"

#define MODE(i) ((i) == 0 ? NONDURABLE : DURABLE)

static struct xac_stats
stats(void)
{
    struct xac_stats s;

    must_ok(xStats(&s, sizeof s));
    return s;
}

static void *
map_pages(const char *name, size_t n_pages)
{
    void *base = xMmap(name, n_pages * env_page());

    if (base == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xMmap: %s", xLastError());
    return base;
}

/* A byte pattern that differs from page to page and within a page. */
static unsigned char
pattern(size_t at, uint64_t salt)
{
    return (unsigned char)((at * 31 + at / 4093 * 7 + salt) & 0xff);
}

/* ---- loads and stores ------------------------------------------------------------------ */

START_TEST(commit_shows_and_keeps_values)
{
    uint64_t *x = env_attach(MODE(_i), 10);
    size_t page = env_page() / sizeof *x;

    must_ok(xbegin());
    must_eq(x[0], 0);
    x[0] = 1;
    must_eq(x[0], 1);
    x[9 * page] = x[0] + 1;
    must_eq(x[9 * page], 2);
    must_rc(xend(), COMMITTED);
    must_ok(xbegin());
    must_eq(x[0], 1);
    must_eq(x[9 * page], 2);
    x[0]++;
    must_rc(xend(), COMMITTED);
    must_eq(env_get(x), 2);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 2);
    must_eq(file_u64(ENV_FILE, 9 * env_page()), 2);
}
END_TEST

START_TEST(remap_and_new_run_find_values)
{
    uint64_t *x = env_attach(MODE(_i), 4);

    env_put(&x[3], 33);
    must_ok(xMunmap(ENV_FILE));
    x = map_pages(ENV_FILE, 4);
    must_eq(env_get(&x[3]), 33);
    env_put(&x[3], 34);
    must_ok(xMunmap(ENV_FILE));
    x = map_pages(ENV_FILE, 2);
    must_eq(env_get(&x[3]), 34);
    env_detach();
    must_eq(file_u64(ENV_FILE, 24), 34);
    for (uint64_t run = 0; run < 5; run++) {
        x = env_attach(MODE(_i), 4);
        must_eq(env_get(&x[3]), 34 + run);
        env_put(&x[3], 35 + run);
        env_detach();
        must_eq(file_u64(ENV_FILE, 24), 35 + run);
    }
}
END_TEST

START_TEST(modes_may_change_between_runs)
{
    uint64_t *x;

    for (uint64_t run = 0; run < 6; run++) {
        x = env_attach(MODE((run + (uint64_t)_i) % 2), 1);
        must_eq(env_get(x), run);
        env_put(x, run + 1);
        env_detach();
    }
    must_eq(file_u64(ENV_FILE, 0), 6);
}
END_TEST

START_TEST(several_files_in_one_transaction)
{
    uint64_t *x[20];
    char name[32];

    must_ok(xInit(ENV_DIR, MODE(_i)));
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "file-%d.db", i);
        x[i] = map_pages(name, 1 + (size_t)i);
    }
    must_ok(xbegin());
    for (uint64_t i = 0; i < 20; i++)
        x[i][i * env_page() / 8] = 100 + i;
    must_rc(xend(), COMMITTED);
    must_ok(xbegin());
    for (uint64_t i = 0; i < 20; i++)
        x[i][i * env_page() / 8] = 200 + i;
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    must_ok(xMunmap("file-7.db"));
    env_detach();
    for (uint64_t i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "file-%d.db", (int)i);
        must_eq(file_u64(name, i * env_page()), 100 + i);
    }
}
END_TEST

/* A word that may lie anywhere, so that the compiler makes one unaligned access of it. */
struct anywhere {
    uint64_t word;
} __attribute__((packed));

START_TEST(unaligned_stores_cross_pages)
{
    size_t page = env_page();
    unsigned char *x = env_attach(MODE(_i), 8);
    uint64_t value = UINT64_C(0x1122334455667788), back;

    for (size_t k = 1; k < 8; k++) {
        volatile struct anywhere *cross;

        must_ok(xbegin());
        cross = (volatile struct anywhere *)(void *)(x + k * page - k);
        cross->word = value + k;
        must_rc(xend(), COMMITTED);
    }
    must_ok(xbeginQuery());
    for (size_t k = 1; k < 8; k++) {
        back = ((volatile struct anywhere *)(void *)(x + k * page - k))->word;
        must_eq(back, value + k);
    }
    must_ok(xendQuery());
    env_detach();
    for (size_t k = 1; k < 8; k++)
        must_eq(file_u64(ENV_FILE, k * page - k), value + k);
}
END_TEST

START_TEST(copies_cross_many_pages)
{
    size_t n = 100 * env_page(), len = 60 * env_page() + 777;
    unsigned char *x = env_attach(MODE(_i), 100);
    unsigned char *model = calloc(1, n), *plain = malloc(n);

    must(model != NULL && plain != NULL);
    for (size_t i = 0; i < n; i++)
        plain[i] = pattern(i, 1);
    must_ok(xbegin());
    memcpy(x + 333, plain, len);
    memcpy(model + 333, plain, len);
    must_rc(xend(), COMMITTED);
    must_ok(xbegin());
    memmove(x + 5 * env_page() + 1, x + 333, len);
    memmove(model + 5 * env_page() + 1, model + 333, len);
    memmove(x + 7, x + 9, len);
    memmove(model + 7, model + 9, len);
    must(memcmp(x, model, n) == 0);
    must_rc(xend(), COMMITTED);
    must_ok(xbegin());
    memset(x, 0xee, n);
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    must_ok(xbeginQuery());
    must(memcmp(x, model, n) == 0);
    must_ok(xendQuery());
    env_detach();
    file_read(ENV_FILE, 0, plain, n);
    must(memcmp(plain, model, n) == 0);
    free(model);
    free(plain);
}
END_TEST

START_TEST(thousand_pages_in_one_transaction)
{
    size_t page = env_page() / 8;
    uint64_t *x = env_attach(MODE(_i), 1000);

    for (uint64_t round = 1; round <= 3; round++) {
        must_ok(xbegin());
        for (uint64_t p = 0; p < 1000; p++)
            x[p * page + p % page] = round * 1000000 + p;
        if (round == 2)
            must_ok(xAbort());
        must_rc(xend(), round == 2 ? ABORTED : COMMITTED);
    }
    must_ok(xbeginQuery());
    for (uint64_t p = 0; p < 1000; p++)
        must_eq(x[p * page + p % page], 3000000 + p);
    must_ok(xendQuery());
    env_detach();
    for (uint64_t p = 0; p < 1000; p += 37)
        must_eq(file_u64(ENV_FILE, (p * page + p % page) * 8), 3000000 + p);
}
END_TEST

/* 4 GiB, of which a few pages are touched: neither memory nor disk is used up. */
START_TEST(large_sparse_segment)
{
    static const uint64_t at[] = {0,
                                  1,
                                  UINT64_C(0x7ffffff8),
                                  UINT64_C(0x80000000),
                                  UINT64_C(0xfffff000),
                                  UINT64_C(0xfffffff8)};
    size_t n_pages = (UINT64_C(4) << 30) / env_page();
    char *x = env_attach(MODE(_i), n_pages);

    must_ok(xbegin());
    for (size_t i = 0; i < 6; i++)
        *(volatile char *)(x + at[i]) = (char)(i + 1);
    must_rc(xend(), COMMITTED);
    must_ok(xMunmap(ENV_FILE));
    x = map_pages(ENV_FILE, n_pages);
    must_ok(xbeginQuery());
    for (size_t i = 0; i < 6; i++)
        must_eq(x[at[i]], i + 1);
    must_ok(xendQuery());
    env_detach();
    must_eq(file_size(ENV_FILE), UINT64_C(4) << 30);
    for (size_t i = 0; i < 6; i++) {
        char byte;

        file_read(ENV_FILE, at[i], &byte, 1);
        must_eq(byte, i + 1);
    }
    must(truncate(ENV_FILE, 0) == 0);
}
END_TEST

/* Random transactions against a model in plain memory. */
START_TEST(random_transactions_follow_the_model)
{
    size_t n = 24 * env_page();
    unsigned char *x = env_attach(MODE(_i), 24);
    unsigned char *model = calloc(1, n), *trial = calloc(1, n);
    uint64_t rnd = env_seed() + (uint64_t)_i;

    must(model != NULL && trial != NULL);
    for (int t = 0; t < 400; t++) {
        bool abort_it = rnd_below(&rnd, 4) == 0;

        memcpy(trial, model, n);
        must_ok(xbegin());
        for (uint64_t op = rnd_below(&rnd, 12); op > 0; op--) {
            size_t len = 1 + rnd_below(&rnd, rnd_below(&rnd, 8) == 0 ? 9000 : 40);
            size_t at = rnd_below(&rnd, n - len);
            int byte = (int)rnd_below(&rnd, 256);

            if (rnd_below(&rnd, 3) == 0) {
                must(memcmp(x + at, trial + at, len) == 0);
            } else {
                memset(x + at, byte, len);
                memset(trial + at, byte, len);
            }
        }
        if (abort_it)
            must_ok(xAbort());
        must_rc(xend(), abort_it ? ABORTED : COMMITTED);
        if (!abort_it)
            memcpy(model, trial, n);
        if (t % 97 == 50)
            must_ok(xCheckpoint());
        if (t % 131 == 70) {
            env_detach();
            x = env_attach(MODE(_i), 24);
        }
    }
    must_ok(xbeginQuery());
    must(memcmp(x, model, n) == 0);
    must_ok(xendQuery());
    env_detach();
    file_read(ENV_FILE, 0, trial, n);
    must(memcmp(trial, model, n) == 0);
    free(model);
    free(trial);
}
END_TEST

/* ---- aborts ---------------------------------------------------------------------------------- */

START_TEST(abort_rolls_back_the_segment_only)
{
    uint64_t *x = env_attach(MODE(_i), 2);
    struct xac_conflict why;
    uint64_t attempts = 0;
    volatile uint64_t seen = 0;

    env_put(x, 10);
    must_ok(xbegin());
    attempts++;
    x[0] = 20;
    must_ok(xAbort());
    must_eq(x[0], 20);
    must_rc(xValidate(), FAILED);
    x[1] = 30;
    seen = x[0];
    must_rc(xend(), ABORTED);
    must_eq(attempts, 1);
    must_eq(seen, 20);
    must_ok(xConflict(&why, sizeof why));
    must_eq(why.kind, XAC_CONFLICT_USER);
    must_eq(env_get(&x[0]), 10);
    must_eq(env_get(&x[1]), 0);
    env_put(&x[1], 5);
    must_ok(xConflict(&why, sizeof why));
    must_eq(why.kind, XAC_CONFLICT_NONE);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 10);
    must_eq(file_u64(ENV_FILE, 8), 5);
}
END_TEST

START_TEST(nested_transactions_are_subsumed)
{
    uint64_t *x = env_attach(MODE(_i), 3);
    size_t page = env_page() / 8;

    must_ok(xbegin());
    x[0] = 1;
    must_ok(xbegin());
    x[page] = 2;
    must_rc(xValidate(), PENDING);
    must_ok(xbegin());
    must_eq(x[0] + x[page], 3);
    must_rc(xend(), PENDING);
    must_rc(xend(), PENDING);
    x[2 * page] = 3;
    must_rc(xend(), COMMITTED);
    must_eq(env_get(&x[page]), 2);

    must_ok(xbegin());
    x[0] = 100;
    must_ok(xbegin());
    x[page] = 200;
    must_ok(xAbort());
    must_rc(xend(), FAILED);
    must_eq(x[0], 100);
    must_ok(xbegin());
    must_rc(xValidate(), FAILED);
    must_rc(xend(), FAILED);
    x[2 * page] = 300;
    must_rc(xend(), ABORTED);
    must_eq(env_get(&x[0]), 1);
    must_eq(env_get(&x[page]), 2);
    must_eq(env_get(&x[2 * page]), 3);
    env_detach();
}
END_TEST

START_TEST(nesting_goes_deep)
{
    uint64_t *x = env_attach(MODE(_i), 1);

    for (int i = 0; i < 10000; i++) {
        must_ok(xbegin());
        x[0]++;
    }
    for (int i = 0; i < 9999; i++)
        must_rc(xend(), PENDING);
    must_rc(xend(), COMMITTED);
    must_eq(env_get(x), 10000);
    env_detach();
}
END_TEST

START_TEST(query_within_a_transaction_sees_its_stores)
{
    uint64_t *x = env_attach(MODE(_i), 2);

    must_ok(xbegin());
    x[0] = 5;
    must_ok(xbeginQuery());
    must_eq(x[0], 5);
    must_eq(x[env_page() / 8], 0);
    must_ok(xendQuery());
    x[0]++;
    x[env_page() / 8] = 1;
    must_rc(xend(), COMMITTED);
    must_eq(env_get(x), 6);
    env_detach();
}
END_TEST

/* ---- what is published ------------------------------------------------------------------------ */

START_TEST(empty_transactions_commit)
{
    struct xac_stats before, after;

    (void)env_attach(MODE(_i), 1);
    before = stats();
    for (int i = 0; i < 100; i++) {
        must_ok(xbegin());
        must_rc(xend(), COMMITTED);
    }
    after = stats();
    must_eq(after.commits, before.commits);
    must_eq(after.commits_read_only, before.commits_read_only + 100);
    must_eq(after.pages_written, before.pages_written);
    must_eq(after.log_bytes, before.log_bytes);
    must_eq(after.log_syncs, before.log_syncs);
    env_detach();
}
END_TEST

START_TEST(reading_publishes_nothing)
{
    uint64_t *x = env_attach(MODE(_i), 10);
    struct xac_stats before, after;
    uint64_t sum = 0;

    env_put(x, 3);
    before = stats();
    for (int i = 0; i < 10; i++) {
        must_ok(xbegin());
        for (size_t p = 0; p < 10; p++)
            sum += *(volatile uint64_t *)&x[p * env_page() / 8];
        must_rc(xend(), COMMITTED);
    }
    after = stats();
    must_eq(sum, 30);
    must_eq(after.commits, before.commits);
    must_eq(after.commits_read_only, before.commits_read_only + 10);
    must_eq(after.commit_number, before.commit_number);
    must_eq(after.log_bytes, before.log_bytes);
    env_detach();
}
END_TEST

START_TEST(storing_the_same_value_publishes_nothing)
{
    uint64_t *x = env_attach(MODE(_i), 3);
    size_t page = env_page() / 8;
    struct xac_stats before, after;

    env_put(x, 3);
    before = stats();
    must_ok(xbegin());
    *(volatile uint64_t *)&x[0] = 3;
    *(volatile uint64_t *)&x[page] = 0;
    x[2 * page] = 9;
    x[2 * page] = 0;
    must_rc(xend(), COMMITTED);
    after = stats();
    must_eq(after.commits, before.commits);
    must_eq(after.commits_read_only, before.commits_read_only + 1);
    must_eq(after.pages_written, before.pages_written);
    must_eq(after.commit_number, before.commit_number);
    must_eq(after.log_bytes, before.log_bytes);

    must_ok(xbegin());
    *(volatile uint64_t *)&x[0] = 3;
    x[page] = 1;
    must_rc(xend(), COMMITTED);
    after = stats();
    must_eq(after.commits, before.commits + 1);
    must_eq(after.pages_written, before.pages_written + 1);
    env_detach();
}
END_TEST

START_TEST(counters_count)
{
    uint64_t *x = env_attach(MODE(_i), 4);
    size_t page = env_page() / 8;
    struct xac_stats before = stats(), after;

    must_eq(before.participants, 1);
    must_ok(xbegin());
    x[0] = 1;
    x[page] = 1;
    x[2 * page] = 1;
    must_rc(xend(), COMMITTED);
    must_ok(xbegin());
    x[0] = 2;
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    must_eq(env_get(x), 1);
    after = stats();
    must_eq(after.commits, before.commits + 1);
    must_eq(after.pages_written, before.pages_written + 3);
    must_eq(after.aborts_user, before.aborts_user + 1);
    must_eq(after.aborts_conflict, before.aborts_conflict);
    must_eq(after.queries, before.queries + 1);
    must(after.commit_number > before.commit_number);
    if (_i == 1) {
        must(after.log_bytes > before.log_bytes);
        must(after.log_syncs > before.log_syncs);
        must(after.log_writes > before.log_writes);
        must(after.log_durable >= after.log_tail);
    } else {
        must_eq(after.log_syncs, 0);
    }
    must_ok(xCheckpoint());
    must(stats().checkpoints > after.checkpoints);
    env_detach();
}
END_TEST

/* ---- traps and hints --------------------------------------------------------------------------- */

/* loads_noticed -- a companion, beside which no page stays readable: not under an eager policy. */
static pid_t
loads_noticed(int mode, size_t n_pages)
{
    env_let_overlap();
    return env_companion(mode, n_pages);
}

START_TEST(first_write_is_one_trap)
{
    pid_t companion = loads_noticed(MODE(_i), 8);
    uint64_t *x = env_attach(MODE(_i), 8);
    size_t page = env_page() / 8;
    struct xac_stats before, after;

    must_ok(xbegin());
    before = stats();
    for (size_t p = 0; p < 8; p++) {
        *(volatile uint64_t *)&x[p * page] = 1;
        *(volatile uint64_t *)&x[p * page + 1] = x[p * page];
    }
    after = stats();
    must_rc(xend(), COMMITTED);
    must_eq(after.traps_write, before.traps_write + 8);
    must_eq(after.traps_read, before.traps_read);
    proc_kill(companion);
    env_detach();
}
END_TEST

START_TEST(read_then_write_is_two_traps)
{
    pid_t companion = loads_noticed(MODE(_i), 2);
    uint64_t *x = env_attach(MODE(_i), 2);
    struct xac_stats before, middle, after;
    uint64_t sum;

    must_ok(xbegin());
    before = stats();
    sum = *(volatile uint64_t *)&x[0];
    sum += *(volatile uint64_t *)&x[1];
    middle = stats();
    *(volatile uint64_t *)&x[2] = sum + 1;
    *(volatile uint64_t *)&x[3] = sum + 1;
    after = stats();
    must_rc(xend(), COMMITTED);
    must_eq(middle.traps_read + middle.traps_write,
            before.traps_read + before.traps_write + 1);
    must_eq(middle.traps_read, before.traps_read + 1);
    must_eq(after.traps_read + after.traps_write,
            before.traps_read + before.traps_write + 2);
    proc_kill(companion);
    env_detach();
}
END_TEST

START_TEST(right_hints_save_traps)
{
    pid_t companion = loads_noticed(MODE(_i), 4);
    uint64_t *x = env_attach(MODE(_i), 4);
    size_t page = env_page() / 8;
    struct xac_stats before, after;

    must_ok(xbegin());
    before = stats();
    must_ok(setPageAccess(&x[0], READ_WRITE));
    must_ok(setPageAccess(&x[page + 17], READ));
    *(volatile uint64_t *)&x[5] = 5;
    must_eq(*(volatile uint64_t *)&x[page], 0);
    after = stats();
    must_eq(after.hints, before.hints + 2);
    must_eq(after.traps_read, before.traps_read);
    must_eq(after.traps_write, before.traps_write);
    must_rc(xend(), COMMITTED);

    must_ok(xbeginQuery());
    before = stats();
    must_ok(setPageAccess(&x[2 * page], READ));
    must_eq(*(volatile uint64_t *)&x[2 * page], 0);
    after = stats();
    must_eq(after.traps_read, before.traps_read);
    must_ok(xendQuery());
    must_eq(env_get(&x[5]), 5);
    proc_kill(companion);
    env_detach();
}
END_TEST

START_TEST(wrong_hints_do_no_harm)
{
    uint64_t *x = env_attach(MODE(_i), 4);
    size_t page = env_page() / 8;
    struct xac_stats before;

    must_ok(setPageAccess(&x[0], READ_WRITE));
    must_ok(setPageAccess(&x[0], READ));
    must_ok(xbegin());
    must_ok(setPageAccess(&x[0], READ));
    *(volatile uint64_t *)&x[0] = 1;
    must_ok(setPageAccess(&x[0], READ));
    *(volatile uint64_t *)&x[1] = 2;
    must_ok(setPageAccess(&x[0], READ_WRITE));
    must_eq(x[0] + x[1], 3);
    must_ok(setPageAccess(&x[page], READ_WRITE));
    must_ok(setPageAccess(&x[2 * page], READ_WRITE));
    must_eq(*(volatile uint64_t *)&x[2 * page], 0);
    must_ok(setPageAccess(&x[3 * page], READ));
    must_rc(xend(), COMMITTED);
    must_eq(env_get(&x[1]), 2);
    before = stats();
    must_ok(xbegin());
    must_ok(setPageAccess(&x[page], READ_WRITE));
    must_rc(xend(), COMMITTED);
    must_eq(stats().pages_written, before.pages_written);
    must_ok(xbegin());
    must_ok(setPageAccess(&x[page], READ_WRITE));
    x[page] = 4;
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    must_eq(env_get(&x[page]), 0);
    env_detach();
}
END_TEST

/* Rule (6): a system call does not fault a page in, a hint does. */
START_TEST(system_calls_need_a_touched_page)
{
    pid_t companion = loads_noticed(MODE(_i), 3);
    size_t page = env_page();
    char *x = env_attach(MODE(_i), 3);
    int fd;

    file_write("plain", 0, "abcdefgh", 8);
    fd = open("plain", O_RDWR);
    must(fd >= 0);
    must_ok(xbegin());
    must(pread(fd, x, 8, 0) == -1 && errno == EFAULT);
    must(pwrite(fd, x + page, 8, 0) == -1 && errno == EFAULT);
    must_ok(setPageAccess(x, READ_WRITE));
    must_eq(pread(fd, x, 8, 0), 8);
    must(memcmp(x, "abcdefgh", 8) == 0);
    must_ok(setPageAccess(x + page, READ));
    must_eq(pwrite(fd, x + page, 2, 0), 2);
    must_rc(xend(), COMMITTED);
    must_ok(xbegin());
    must(x[0] == 'a');
    must_eq(pwrite(fd, x, 4, 4), 4);
    must_rc(xend(), COMMITTED);
    close(fd);
    proc_kill(companion);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 0x6867666564636261);
    must_eq(file_u64("plain", 0), 0x6463626164630000);
}
END_TEST

/* A long series of small commits: what is kept must not grow with their number. */
START_TEST(versions_do_not_pile_up)
{
    uint64_t *x = env_attach(MODE(_i), 8);
    size_t page = env_page() / 8;
    struct xac_stats middle;
    int n = _i == 0 ? 20000 : 1600;

    for (int i = 0; i < n / 2; i++)
        env_put(&x[(size_t)(i % 8) * page], (uint64_t)i + 1);
    middle = stats();
    for (int i = n / 2; i < n; i++)
        env_put(&x[(size_t)(i % 8) * page], (uint64_t)i + 1);
    must(stats().frames <= middle.frames);
    must(stats().versions_live < 200);
    env_detach();
    must_eq(file_u64(ENV_FILE, 7 * env_page()), n);
}
END_TEST

static Suite *
txn_suite(void)
{
    Suite *s = suite_create("txn");
    TCase *tc = env_tcase(s, "values", 60);

    tcase_add_loop_test(tc, commit_shows_and_keeps_values, 0, 2);
    tcase_add_loop_test(tc, remap_and_new_run_find_values, 0, 2);
    tcase_add_loop_test(tc, modes_may_change_between_runs, 0, 2);
    tcase_add_loop_test(tc, several_files_in_one_transaction, 0, 2);
    tcase_add_loop_test(tc, unaligned_stores_cross_pages, 0, 2);
    tcase_add_loop_test(tc, copies_cross_many_pages, 0, 2);
    tcase_add_loop_test(tc, thousand_pages_in_one_transaction, 0, 2);
    tcase_add_loop_test(tc, large_sparse_segment, 0, 2);
    tcase_add_loop_test(tc, random_transactions_follow_the_model, 0, 2);

    tc = env_tcase(s, "aborts", 20);
    tcase_add_loop_test(tc, abort_rolls_back_the_segment_only, 0, 2);
    tcase_add_loop_test(tc, nested_transactions_are_subsumed, 0, 2);
    tcase_add_loop_test(tc, nesting_goes_deep, 0, 2);
    tcase_add_loop_test(tc, query_within_a_transaction_sees_its_stores, 0, 2);

    tc = env_tcase(s, "published", 20);
    tcase_add_loop_test(tc, empty_transactions_commit, 0, 2);
    tcase_add_loop_test(tc, reading_publishes_nothing, 0, 2);
    tcase_add_loop_test(tc, storing_the_same_value_publishes_nothing, 0, 2);
    tcase_add_loop_test(tc, counters_count, 0, 2);

    tc = env_tcase(s, "traps", 60);
    tcase_add_loop_test(tc, first_write_is_one_trap, 0, 2);
    tcase_add_loop_test(tc, read_then_write_is_two_traps, 0, 2);
    tcase_add_loop_test(tc, right_hints_save_traps, 0, 2);
    tcase_add_loop_test(tc, wrong_hints_do_no_harm, 0, 2);
    tcase_add_loop_test(tc, system_calls_need_a_touched_page, 0, 2);
    tcase_add_loop_test(tc, versions_do_not_pile_up, 0, 2);
    return s;
}

int
main(void)
{
    return env_main(txn_suite());
}
