/* SPDX-License-Identifier: MIT */
/*
 * check_kill.c -- SIGKILL at random moments, recovery, and nothing that was acknowledged
 * is lost.
 *
 * GOAL    with four writing processes: after any kill, 0 acknowledged commits lost, 0 half
 *         transactions visible; processes that survive a round go on without waiting for
 *         the dead.
 * METHOD  each writer owns a stretch of the file.  Its transaction n writes several pages
 *         there, with bytes made from (writer, n), and its row of a page that all writers
 *         share; in two of three it also writes what it rolls back to a savepoint; when xend() has said COMMITTED it stores n in memory that outlives it (the
 *         acknowledgement).  After each round a fresh process compares the whole file, byte
 *         by byte, with a model that has replayed transactions 1 to n, n being the number
 *         found in the file: at least the acknowledged one, at most one more.
 *         The environment lives through all rounds, so recoveries pile up.
 *
 * XAC_ROUNDS rounds (50), XAC_SEED.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "env.h"

#define N_WRITERS 4
#define STRETCH   24 /* pages a writer owns, behind the shared page */
#define N_PAGES   (1 + N_WRITERS * STRETCH)
#define WRITES    5   /* pages that a transaction changes, at most */
#define SHOW      100 /* rounds between two signs of progress */

/* The shared page: one row per writer. */
struct row {
    uint64_t number; /* of the writer's last transaction */
    uint64_t check;  /* made from it */
};

/* Outside the library: survives the writers. */
struct board {
    _Atomic uint64_t stop;
    _Atomic uint64_t acknowledged[N_WRITERS]; /* transactions told COMMITTED */
    _Atomic uint64_t aborts[N_WRITERS];
    uint64_t found[N_WRITERS]; /* by the last verification */
};

static struct board *board;

/* ---- what a transaction writes ------------------------------------------------------- */

/* One change: `len` bytes at `at` of the writer's stretch. */
struct change {
    size_t at, len;
    uint64_t salt;
};

static size_t
changes_of(uint64_t writer, uint64_t number, struct change *changes)
{
    uint64_t rnd = env_seed() + writer * 1000003 + number * 7919;
    size_t n = 2 + rnd_below(&rnd, WRITES - 1);

    for (size_t i = 0; i < n; i++) {
        bool is_large = rnd_below(&rnd, 20) == 0;

        changes[i].len = 8 + rnd_below(&rnd, is_large ? 9000 : 200);
        changes[i].at = rnd_below(&rnd, STRETCH * env_page() - changes[i].len);
        changes[i].salt = rnd_next(&rnd);
    }
    return n;
}

static void
apply(unsigned char *stretch, const struct change *change)
{
    for (size_t k = 0; k < change->len; k++)
        stretch[change->at + k] = (unsigned char)((change->salt >> (k % 8 * 8)) + k);
}

/* The first page of the file, and the stretch of a writer. */
static struct row *
row_of(unsigned char *file, uint64_t writer)
{
    return (struct row *)(void *)(file + writer * 128);
}

static unsigned char *
stretch_of(unsigned char *file, uint64_t writer)
{
    return file + (1 + writer * STRETCH) * env_page();
}

static uint64_t
check_of(uint64_t writer, uint64_t number)
{
    uint64_t rnd = number * 31 + writer;

    return rnd_next(&rnd);
}

/* Transaction `number` of a writer, on the segment or on the model. */
static void
write_all(unsigned char *file, uint64_t writer, uint64_t number)
{
    struct change changes[WRITES];
    size_t n = changes_of(writer, number, changes);
    struct row *row = row_of(file, writer);

    for (size_t i = 0; i < n / 2; i++)
        apply(stretch_of(file, writer), &changes[i]);
    row->number = number;
    row->check = check_of(writer, number);
    for (size_t i = n / 2; i < n; i++)
        apply(stretch_of(file, writer), &changes[i]);
}

/* ---- writers ---------------------------------------------------------------------------- */

static void
set_options(void)
{
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 1 << 18));
    must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 1 << 17));
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 1 << 20));
}

/* write_and_take_back -- changes of another transaction, which are rolled back to a savepoint. */
static void
write_and_take_back(unsigned char *file, uint64_t writer, uint64_t number)
{
    uint64_t mark = xSavepoint();
    int rc;

    must(mark != 0);
    write_all(file, writer, number + 1000003);
    rc = xRollbackTo(mark);
    must(rc == 0 || rc == FAILED);
    if (number % 2 == 0)
        must_ok(xRelease(mark));
}

static void
write_until_killed(void *arg)
{
    uint64_t writer = *(const uint64_t *)arg;
    unsigned char *file;

    set_options();
    file = env_attach(DURABLE, N_PAGES);
    while (word_load(&board->stop) == 0) {
        uint64_t number;
        int rc;

        must_ok(xbegin());
        number = row_of(file, writer)->number + 1;
        if (number % 3 == 0)
            write_and_take_back(file, writer, number);
        write_all(file, writer, number);
        if (number % 3 == 1)
            write_and_take_back(file, writer, number);
        rc = xend();
        if (rc == ABORTED) {
            word_add(&board->aborts[writer], 1);
            continue;
        }
        must_rc(rc, COMMITTED);
        word_store(&board->acknowledged[writer], number);
        if (number % 400 == 399)
            must_ok(xCheckpoint());
    }
    env_detach();
}

/* ---- verification ------------------------------------------------------------------------- */

/* The state that the file should have; grows with what was found in it. */
static unsigned char *model;
static uint64_t model_number[N_WRITERS];

static void
advance_model(uint64_t writer, uint64_t number)
{
    while (model_number[writer] < number)
        write_all(model, writer, ++model_number[writer]);
}

/*
 * Compare what is in `file` with what was acknowledged.  Runs in a fresh process, in a
 * query, or on a copy read with read(2).
 */
static void
must_be_whole(unsigned char *file, const uint64_t *acknowledged, const char *what)
{
    for (uint64_t w = 0; w < N_WRITERS; w++) {
        const struct row *row = row_of(file, w);
        uint64_t n = row->number;

        if (n < acknowledged[w])
            env_fail(__FILE__, __LINE__,
                     "%s: lost %" PRIu64 " acknowledged commits of writer %" PRIu64, what,
                     acknowledged[w] - n, w);
        if (n > acknowledged[w] + 1 && what[0] != '*')
            env_fail(__FILE__, __LINE__,
                     "%s: writer %" PRIu64 " is at %" PRIu64 ", acknowledged %" PRIu64,
                     what, w, n, acknowledged[w]);
        if (n != 0 && row->check != check_of(w, n))
            env_fail(__FILE__, __LINE__, "%s: half a transaction: row of writer %" PRIu64,
                     what, w);
        board->found[w] = n;
        advance_model(w, n);
        for (size_t i = 0; i < STRETCH * env_page(); i++) {
            if (stretch_of(file, w)[i] != stretch_of(model, w)[i])
                env_fail(__FILE__, __LINE__,
                         "%s: half a transaction: byte %zu of writer %" PRIu64
                         " is not as after its transaction %" PRIu64,
                         what, i, w, n);
        }
    }
}

/* `while others write`: numbers may be ahead of what was acknowledged a moment ago. */
struct verification {
    uint64_t acknowledged[N_WRITERS];
    const char *what; /* '*' first: others are at work */
};

static void
verify(void *arg)
{
    const struct verification *v = arg;
    unsigned char *file;

    set_options();
    file = env_attach(DURABLE, N_PAGES);
    must_ok(xbeginQuery());
    must_be_whole(file, v->acknowledged, v->what);
    must_ok(xendQuery());
    env_detach();
}

static void
run_verification(const char *what)
{
    struct verification v = {.what = what};

    for (int w = 0; w < N_WRITERS; w++)
        v.acknowledged[w] = word_load(&board->acknowledged[w]);
    proc_run(verify, &v);
}

/* Everybody has shut down: the plain file is complete. */
static void
verify_plain_file(void)
{
    size_t size = N_PAGES * env_page();
    unsigned char *copy = malloc(size);

    must(copy != NULL);
    file_read(ENV_FILE, 0, copy, size);
    must_be_whole(copy, board->found, "plain file");
    free(copy);
}

/* ---- rounds -------------------------------------------------------------------------------- */

struct totals {
    uint64_t kills, recoveries, survivals;
    double slowest_s; /* until each survivor had committed after a kill */
};

/* All of these writers commit again, soon. */
static void
survivors_must_go_on(const bool *alive, struct totals *totals)
{
    double start = env_now(), took;

    for (int w = 0; w < N_WRITERS; w++) {
        if (!alive[w])
            continue;
        proc_await(&board->acknowledged[w], word_load(&board->acknowledged[w]) + 3, 2.0);
        totals->survivals++;
    }
    took = env_now() - start;
    if (took > totals->slowest_s)
        totals->slowest_s = took;
}

static void
play_round(uint64_t round, uint64_t *rnd, struct totals *totals)
{
    static uint64_t writers[N_WRITERS] = {0, 1, 2, 3};
    uint64_t n_victims = round % 3 == 0 ? N_WRITERS : 1 + rnd_below(rnd, 2);
    bool alive[N_WRITERS] = {true, true, true, true};
    uint64_t was[N_WRITERS];
    pid_t pid[N_WRITERS];

    word_store(&board->stop, 0);
    for (int w = 0; w < N_WRITERS; w++) {
        was[w] = word_load(&board->acknowledged[w]);
        pid[w] = proc_spawn(write_until_killed, &writers[w]);
    }
    for (int w = 0; w < N_WRITERS; w++)
        proc_await(&board->acknowledged[w], was[w] + 2, 20);
    proc_sleep_us(rnd_below(rnd, 80000));

    for (uint64_t k = 0; k < n_victims; k++) {
        int w = (int)((round + k) % N_WRITERS);

        must(kill(pid[w], SIGKILL) == 0);
        alive[w] = false;
        totals->kills++;
        if (rnd_below(rnd, 2) == 0)
            proc_sleep_us(rnd_below(rnd, 2000));
    }
    for (int w = 0; w < N_WRITERS; w++) {
        if (!alive[w])
            (void)proc_wait(pid[w]);
    }
    if (n_victims < N_WRITERS) {
        survivors_must_go_on(alive, totals);
        run_verification("* beside survivors");
    }
    /* Every other time those who are left die as well, else they shut down. */
    word_store(&board->stop, round % 2 == 0 ? 0 : 1);
    for (int w = 0; w < N_WRITERS; w++) {
        if (!alive[w])
            continue;
        if (round % 2 == 0) {
            proc_kill(pid[w]);
            totals->kills++;
        } else {
            proc_join(pid[w]);
        }
    }
    totals->recoveries += n_victims == N_WRITERS || round % 2 == 0;
    run_verification(n_victims == N_WRITERS ? "after all were killed"
                                            : "after the round");
    verify_plain_file();
    for (int w = 0; w < N_WRITERS; w++)
        word_store(&board->acknowledged[w], board->found[w]);
}

START_TEST(lose_nothing_that_was_acknowledged)
{
    uint64_t rounds = env_number("XAC_ROUNDS", 50);
    uint64_t rnd = env_seed(), n_commits = 0, n_aborts = 0;
    struct totals totals = {0};
    double start = env_now();

    board = proc_shared(sizeof *board);
    model = calloc(N_PAGES, env_page());
    must(model != NULL);
    for (uint64_t round = 0; round < rounds; round++) {
        play_round(round, &rnd, &totals);
        if (round % SHOW == SHOW - 1)
            printf("%" PRIu64 " rounds, %" PRIu64 " kills, %.1f s\n", round + 1,
                   totals.kills, env_now() - start);
    }
    for (int w = 0; w < N_WRITERS; w++) {
        n_commits += board->found[w];
        n_aborts += word_load(&board->aborts[w]);
    }
    printf("%" PRIu64 " rounds, %" PRIu64 " kills, %" PRIu64 " recoveries, %" PRIu64
           " commits, %" PRIu64 " aborts, %.1f s\n"
           "acknowledged commits lost: 0, half transactions visible: 0\n"
           "survivors went on %" PRIu64 " times, at the latest after %.3f s\n",
           rounds, totals.kills, totals.recoveries, n_commits, n_aborts,
           env_now() - start, totals.survivals, totals.slowest_s);
}
END_TEST

static Suite *
kill_suite(void)
{
    Suite *s = suite_create("kill");
    TCase *tc = env_tcase(s, "kill", 1200);

    tcase_add_test(tc, lose_nothing_that_was_acknowledged);
    return s;
}

int
main(void)
{
    return env_main(kill_suite());
}
