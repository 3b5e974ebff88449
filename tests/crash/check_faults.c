/* SPDX-License-Identifier: MIT */
/*
 * check_faults.c -- what a failing call means for whom.
 *
 * One process makes small and large transactions and checkpoints while one of its system
 * calls fails, or all from some moment on; another looks on.  Either the failure stays its
 * own (a transaction aborts and says why, a commit says that it is not known to be on disk,
 * a checkpoint returns the error) and everything goes on as soon as calls work again: so it
 * always is with want of room.  Or the environment is poisoned, and then everybody
 * is told, newcomers too, nothing more is acknowledged, and recovery brings back all that
 * had been.  Calls that do only a part, or are interrupted, are no failures.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/env.h"
#include "../common/sysfault.h"

#define N_PAGES     40u
#define SMALL_PAGES 5u  /* transaction n fills one of them                              */
#define LARGE_FIRST 8u  /* every third fills these                                      */
#define LARGE_PAGES 12u /* more than a quarter of the log buffer                        */
#define OTHER_PAGE  30u
#define TXNS        9u
#define TRIES       3u

struct plan {
    enum sysfault_what what;
    unsigned kinds;
    uint64_t n;
    int error;
};

/* What the processes of a round tell each other. */
struct board {
    _Atomic uint64_t acknowledged,
        tried;                      /* of the process whose calls fail              */
    _Atomic uint64_t other;         /* of the other one                             */
    _Atomic uint64_t ask, answered; /* the other one is to commit; has              */
    _Atomic uint64_t answer;        /* what its xend() said                         */
    _Atomic uint64_t ready;
    _Atomic uint64_t hit, poisoned, refused, resource, checkpoints;
    _Atomic uint64_t not_durable; /* commits that said so                         */
    char call[32]; /* that was hit                                                */
};

static struct board *board;

/* ---- The file -------------------------------------------------------------------------- */

static void
fill(unsigned char *file, unsigned page, uint64_t n)
{
    volatile uint64_t *words = (volatile uint64_t *)(void *)(file + page * env_page());

    for (size_t i = 0; i < env_page() / sizeof *words; i++)
        words[i] = n * (2 * i + 1);
}

static void
must_be(const unsigned char *file, unsigned page, uint64_t n)
{
    const uint64_t *words = (const uint64_t *)(const void *)(file + page * env_page());

    for (size_t i = 0; i < env_page() / sizeof *words; i++)
        must_eq(words[i], n * (2 * i + 1));
}

/* commit -- transaction n; ret as xend() or an error. */
static int
commit(unsigned char *file, uint64_t n)
{
    int rc = xac_begin();

    if (rc != 0)
        return rc;
    fill(file, 0, n);
    fill(file, 1 + (unsigned)(n % SMALL_PAGES), n);
    for (unsigned i = 0; n % 3 == 0 && i < LARGE_PAGES; i++)
        fill(file, LARGE_FIRST + i, n);
    return xac_end();
}

static unsigned round_no;

/* ---- Processes ------------------------------------------------------------------------- */

static unsigned char *
attach(void)
{
    must_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    must_ok(xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, 65536));
    must_ok(xac_set_option(XAC_OPT_CHECKPOINT_BYTES, 100000));
    /* In every other round the log has a disk of its own. */
    must_ok(xac_set_log_directory(round_no % 2 == 0 ? "log" : NULL));
    return (unsigned char *)env_attach(XAC_DURABLE, N_PAGES);
}

/* run_other -- commits when asked. */
static void
run_other(void *arg)
{
    unsigned char *file = attach();

    (void)arg;
    word_store(&board->ready, 1);
    for (uint64_t n = 1;; n++) {
        int rc;

        proc_await(&board->ask, n, 30);
        rc = xac_begin();
        if (rc == 0) {
            fill(file, OTHER_PAGE, n);
            rc = xac_end();
        }
        if (rc == XAC_COMMITTED)
            word_store(&board->other, n);
        word_store(&board->answer, (uint64_t)(int64_t)rc);
        word_store(&board->answered, n);
    }
}

/* ask_other -- what the other one's commit says. */
static int
ask_other(void)
{
    uint64_t n = word_load(&board->ask) + 1;

    word_store(&board->ask, n);
    proc_await(&board->answered, n, 30);
    return (int)(int64_t)word_load(&board->answer);
}

/* run_newcomer -- comes when the environment is poisoned. */
static void
run_newcomer(void *arg)
{
    (void)arg;
    proc_await(&board->poisoned, 1, 60);
    must_refuse(xac_init(ENV_DIR, XAC_DURABLE), XAC_EPOISONED);
    word_store(&board->refused, 1);
}

/* must_be_poisoned -- for us, for others, and for newcomers. */
static void
must_be_poisoned(unsigned char *file)
{
    word_store(&board->poisoned, 1);
    must(commit(file, 1000) != XAC_COMMITTED);
    must_rc(xac_checkpoint(), XAC_EPOISONED);
    must_rc(ask_other(), XAC_EPOISONED);
    proc_await(&board->refused, 1, 30);
}

/* must_go_on -- as if nothing had happened. */
static void
must_go_on(unsigned char *file)
{
    uint64_t n = word_load(&board->acknowledged);

    for (unsigned i = 0; i < 4; i++) {
        word_store(&board->tried, ++n);
        must_rc(commit(file, n), XAC_COMMITTED);
        word_store(&board->acknowledged, n);
    }
    must_ok(xac_checkpoint());
    must_rc(ask_other(), XAC_COMMITTED);
}

/* is_told -- does the code say that calls failed, and that it concerns nobody else?  That the
   log was not written is no answer to a failed sync, which concerns all. */
static bool
is_told(int rc, const struct plan *p)
{
    return rc == p->error || (rc == XAC_ENOTDURABLE && p->kinds == SYSFAULT_DATA);
}

/* is_short -- has there been no room, or no answer from the medium, for a transaction? */
static bool
is_short(int rc, const struct plan *p)
{
    return rc == XAC_ABORTED || (rc == p->error && rc != XAC_COMMITTED);
}

/* try_commit -- some times; ret XAC_COMMITTED, XAC_ABORTED if room has been made for another
   attempt, XAC_EPOISONED, or what is_told. */
static int
try_commit(unsigned char *file, uint64_t n, const struct plan *p)
{
    int rc = XAC_ABORTED;

    word_store(&board->tried, n);
    for (unsigned i = 0; i < TRIES && is_short(rc, p); i++) {
        bool has_room_been_made = rc == XAC_ABORTED && i > 0;

        rc = commit(file, n);
        must(rc != XAC_ABORTED || !has_room_been_made); /* bounded: see xend() */
        if (is_short(rc, p)) {
            struct xac_conflict why;

            must_ok(xac_get_conflict(&why, sizeof why));
            must_eq(why.kind, XAC_CONFLICT_RESOURCE);
            must_eq(why.error, p->error);
            word_add(&board->resource, 1);
        }
    }
    must(rc == XAC_COMMITTED || rc == XAC_ABORTED || rc == XAC_EPOISONED
         || is_told(rc, p));
    word_add(&board->not_durable, rc == XAC_ENOTDURABLE);
    if (rc == XAC_COMMITTED)
        word_store(&board->acknowledged, n);
    return rc;
}

/* run_failing -- the process whose calls fail. */
static void
run_failing(void *arg)
{
    const struct plan *p = (const struct plan *)arg;
    unsigned char *file = attach();
    uint64_t n;
    int rc = 0;

    sysfault_arm(p->what, p->kinds, p->n, p->error);
    for (n = 1; n <= TXNS && rc != XAC_EPOISONED; n++) {
        rc = try_commit(file, n, p);
        if (rc != XAC_COMMITTED)
            break;
        if (n % 4 == 0) {
            rc = xac_checkpoint();
            must(rc == 0 || rc == XAC_EPOISONED || is_told(rc, p));
            word_add(&board->checkpoints, is_told(rc, p));
        }
    }
    /* Without these calls nothing gets to the disk. */
    if (p->what == SYSFAULT_FAIL_ALL && p->kinds != SYSFAULT_GROW
        && sysfault_hit() != NULL && rc != XAC_EPOISONED) {
        rc = try_commit(file, n, p);
        must(rc != XAC_COMMITTED);
    }
    word_store(&board->hit, sysfault_hit() != NULL);
    snprintf(board->call, sizeof board->call, "%s",
             sysfault_hit() != NULL ? sysfault_hit() : "none");
    sysfault_disarm();
    if (rc == XAC_EPOISONED || xac_checkpoint() == XAC_EPOISONED)
        must_be_poisoned(file);
    else
        must_go_on(file);
}

/* verify -- in a fresh process, after the crash of all. */
static void
verify(void *arg)
{
    unsigned char *file = attach();
    uint64_t n, last[SMALL_PAGES] = {0}, large;

    (void)arg;
    must_ok(xac_begin_query());
    n = *(const volatile uint64_t *)(const void *)file;
    must(n >= word_load(&board->acknowledged) && n <= word_load(&board->tried));
    for (uint64_t i = 1; i <= n; i++)
        last[i % SMALL_PAGES] = i;
    large = n - n % 3;
    must_be(file, 0, n);
    for (unsigned i = 0; i < SMALL_PAGES; i++)
        must_be(file, 1 + i, last[i]);
    for (unsigned i = 0; i < LARGE_PAGES; i++)
        must_be(file, LARGE_FIRST + i, large);
    must_be(file, OTHER_PAGE, word_load(&board->other));
    must_ok(xac_end_query());
    must_rc(commit(file, n + 1), XAC_COMMITTED);
    must_ok(xac_shutdown());
}

/* ---- Rounds ---------------------------------------------------------------------------- */

/* play -- one plan; ret whether a call was hit. */
static bool
play(struct plan p)
{
    char name[32];
    pid_t other, newcomer;

    memset((void *)board, 0, sizeof *board);
    snprintf(name, sizeof name, "r%u", round_no++);
    must(mkdir(name, 0777) == 0 && chdir(name) == 0);
    other = proc_spawn(run_other, NULL);
    newcomer = proc_spawn(run_newcomer, NULL);
    proc_await(&board->ready, 1, 30);
    proc_run(run_failing, &p);
    proc_kill(other);
    proc_kill(newcomer);
    proc_run(verify, NULL);
    must(chdir("..") == 0);
    return word_load(&board->hit) != 0;
}

/*
 * play_all -- the call to be hit is the first, second, ... `step` apart.
 *
 * out  seen  rounds in which the environment was poisoned, a transaction aborted for lack of
 *      something, a checkpoint failed, a commit was not known to be on disk
 */
static void
play_all(struct plan p, uint64_t step, unsigned seen[4])
{
    uint64_t seed = env_seed() + p.kinds + (uint64_t)p.error;
    unsigned rounds = 0;

    for (p.n = 1; play(p); p.n += 1 + rnd_below(&seed, 2 * step - 1)) {
        rounds++;
        seen[0] += word_load(&board->poisoned) != 0;
        seen[1] += word_load(&board->resource) != 0;
        seen[2] += word_load(&board->checkpoints) != 0;
        seen[3] += word_load(&board->not_durable) != 0;
    }
    printf("errno %d, %s: %u rounds; so far poisoned %u, aborted %u, no checkpoint %u, "
           "not durable %u\n",
           p.error, p.what == SYSFAULT_FAIL ? "once" : "for ever", rounds, seen[0],
           seen[1], seen[2], seen[3]);
    must(rounds > 3);
}

static uint64_t
step(void)
{
    return env_number("XAC_STEPS_LONG", 0) != 0 ? 1 : 4;
}

START_TEST(failed_sync_is_told_to_all)
{
    struct plan p = {.kinds = SYSFAULT_SYNCS, .error = EIO};
    unsigned seen[4] = {0};

    p.what = SYSFAULT_FAIL;
    play_all(p, step() / 2 + 1, seen);
    p.what = SYSFAULT_FAIL_ALL;
    play_all(p, step(), seen);
    p.error = ENOSPC; /* delayed allocation */
    play_all(p, step(), seen);
    must(seen[0] > 5 && seen[1] > 1);
}
END_TEST

START_TEST(no_room_is_survived_or_told)
{
    static const int errors[] = {ENOSPC, EDQUOT, EFBIG};
    struct plan p = {.kinds = SYSFAULT_DATA, .error = errors[_i]};
    unsigned seen[4] = {0};

    env_without_frames("a page that cannot be read stops the program, as with mmap");
    p.what = SYSFAULT_FAIL;
    play_all(p, 2 * step(), seen);
    p.what = SYSFAULT_FAIL_ALL;
    play_all(p, 2 * step(), seen);
    /* What fails before the first byte is written never poisons.  Versions that have no room
       in memory go to disk, whatever the error is. */
    must(seen[0] == 0 && seen[1] > 0 && seen[2] > 0 && seen[3] > 0);
}
END_TEST

/* Nothing but room for more shared memory and log segments. */
START_TEST(no_room_to_grow_aborts_only)
{
    struct plan p = {.kinds = SYSFAULT_GROW, .error = ENOSPC, .what = SYSFAULT_FAIL_ALL};

    for (p.n = 1; play(p); p.n++)
        must_eq(word_load(&board->poisoned), 0);
    must(p.n > 2);
}
END_TEST

START_TEST(short_and_interrupted_calls_do_no_harm)
{
    struct plan p = {.kinds = SYSFAULT_DATA, .what = SYSFAULT_SHORT, .n = 1};

    (void)play(p);
    must_eq(word_load(&board->acknowledged), TXNS + 4);
    must_eq(word_load(&board->poisoned) + word_load(&board->resource), 0);
    p.what = SYSFAULT_FAIL;
    p.error = EINTR;
    while (play(p)) {
        if (word_load(&board->acknowledged) != TXNS + 4
            || word_load(&board->poisoned) != 0)
            env_fail(__FILE__, __LINE__, "interrupted call %" PRIu64 ", %s: a failure",
                     p.n, board->call);
        p.n += 3 * step();
    }
    must(p.n > 20);
}
END_TEST

/* ---- Accesses that cannot be served -------------------------------------------------------- */

#define FRAMES 256u
#define FRAMES_PAGES \
 100u /* more than are shown, or have versions in memory; all in the pool */

/* What a process of a bounded environment does, and which call fails in it. */
struct access {
    const char *told; /* in the message that it is stopped with                        */
    unsigned kinds;
    int error;
    bool cuts;   /* the file is cut off                                                 */
    bool stores; /* all pages, in the same transaction, before calls fail               */
    bool hints;  /* setPageAccess() in the place of a load, which returns the error     */
};

static const struct access accesses[] = {
    {.told = "page cannot be read from the file: Input/output error",
     .kinds = SYSFAULT_DATA,
     .error = EIO},
    {.told = "the file ends before it", .cuts = true},
    {.told = "stored there cannot be read again from the environment directory: "
             "Input/output error",
     .kinds = SYSFAULT_DATA,
     .error = EIO,
     .stores = true},
    {.told = "cannot be read from the file",
     .kinds = SYSFAULT_DATA,
     .error = EIO,
     .hints = true},
    {.told = "buffer file that cannot be opened or mapped: Too many open files",
     .kinds = SYSFAULT_OPEN,
     .error = EMFILE},
};
#define LACKS_VERSION 4

static void
store_all(unsigned char *file, uint64_t n)
{
    for (unsigned p = 0; p < FRAMES_PAGES; p++)
        fill(file, p, n + p);
}

static void
must_be_all(const unsigned char *file, uint64_t n)
{
    for (unsigned p = 0; p < FRAMES_PAGES; p++)
        must_be(file, p, n + p);
}

static unsigned char *
attach_bounded(void)
{
    must_ok(xac_set_option(XAC_OPT_FRAMES, FRAMES));
    return (unsigned char *)env_attach(XAC_NONDURABLE, FRAMES_PAGES);
}

static void
run_stored(void *arg)
{
    unsigned char *file = attach_bounded();

    (void)arg;
    must_ok(xac_begin());
    store_all(file, 1);
    must_rc(xac_end(), XAC_COMMITTED);
    env_detach();
}

/* run_query -- what is committed from now on stays a version. */
static void
run_query(void *arg)
{
    (void)arg;
    (void)attach_bounded();
    must_ok(xac_begin_query());
    word_store(&board->ready, 1);
    proc_sleep_us(100000000);
}

/* run_storing -- so that there are versions of all pages, in both buffer files. */
static void
run_storing(void *arg)
{
    unsigned char *file = attach_bounded();

    (void)arg;
    must_ok(xac_begin());
    store_all(file, 2);
    must_rc(xac_end(), XAC_COMMITTED);
    must(env_stats().frames_on_disk > 0);
    env_detach();
}

static void
run_access(void *arg)
{
    const struct access *a = (const struct access *)arg;
    unsigned char *file = attach_bounded();

    if (a->cuts)
        must_eq(truncate(ENV_FILE, 0), 0);
    must_ok(xac_begin());
    if (a->stores)
        store_all(file, 3);
    if (a->error != 0)
        sysfault_arm(SYSFAULT_FAIL_ALL, a->kinds, 1, a->error);
    if (a->hints) {
        must_rc(xac_set_page_access(file, XAC_READ), EIO);
        sysfault_disarm();
        must(strstr(xac_last_error(), a->told) != NULL);
        must_rc(xac_end(), EIO);
        must(strstr(xac_last_error(), a->told) != NULL);
        (void)fputs(a->told, stderr);
        abort();
    }
    for (unsigned p = 0; p < FRAMES_PAGES; p++)
        (void)((volatile unsigned char *)file)[p * env_page()];
    sysfault_disarm();
}

START_TEST(who_cannot_be_served_is_told_why)
{
    const struct access *a = &accesses[_i];
    char text[2048], *at;
    pid_t other = 0;
    int status;

    proc_run(run_stored, NULL);
    if (_i == LACKS_VERSION) {
        other = proc_spawn(run_query, NULL);
        proc_await(&board->ready, 1, 30);
        proc_run(run_storing, NULL);
    }
    status = proc_capture(run_access, (void *)(uintptr_t)a, text, sizeof text);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT
        || strstr(text, a->told) == NULL)
        env_fail(__FILE__, __LINE__, "status %d, not told \"%s\": %s", status, a->told,
                 text);
    at = strstr(text, ENV_FILE);
    must(a->hints || (at != NULL && strstr(at, " at offset ") != NULL));
    if (other != 0)
        proc_kill(other);
}
END_TEST

/* No room to spill: the pages stay in memory, and the transaction commits. */
START_TEST(pages_that_cannot_be_spilled_stay)
{
    unsigned char *file;

    proc_run(run_stored, NULL);
    file = attach_bounded();
    must_ok(xac_begin_query());
    must_be_all(file, 1);
    must_rc(xac_end_query(), XAC_COMMITTED);
    must_ok(xac_begin());
    sysfault_arm(SYSFAULT_FAIL_ALL, SYSFAULT_DATA, 1, ENOSPC);
    store_all(file, 4);
    must_be_all(file, 4);
    must(sysfault_hit() != NULL);
    sysfault_disarm();
    must_eq(env_stats().pages_spilled, 0);
    must_rc(xac_end(), XAC_COMMITTED);
    must_ok(xac_begin_query());
    must_be_all(file, 4);
    must_rc(xac_end_query(), XAC_COMMITTED);
    env_detach();
}
END_TEST

/* A board for each test: what an earlier one said on its own is not to be taken for news. */
static void
setup(void)
{
    board = (struct board *)proc_shared(sizeof *board);
}

int
main(void)
{
    Suite *s = suite_create("faults");
    TCase *tc = env_tcase(s, "faults", 600);

    env_in_memory();
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, failed_sync_is_told_to_all);
    tcase_add_loop_test(tc, no_room_is_survived_or_told, 0, 3);
    tcase_add_test(tc, no_room_to_grow_aborts_only);
    tcase_add_test(tc, short_and_interrupted_calls_do_no_harm);
    tc = env_tcase(s, "accesses", 120);
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_loop_test(tc, who_cannot_be_served_is_told_why, 0,
                        (int)(sizeof accesses / sizeof accesses[0]));
    tcase_add_test(tc, pages_that_cannot_be_spilled_stay);
    return env_main(s);
}
