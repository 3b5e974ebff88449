/* SPDX-License-Identifier: MIT */
/*
 * one_mode.c [NAME=VALUE...] -- one combination of options, under everything at once.
 *
 * GOAL    no money is made or lost, nobody sees half a transaction or an old state, and what has
 *         been acknowledged survives every kill and recovery.
 * METHOD  Workers (processes, or threads with views of their own) move money between accounts, a
 *         page each, and count their transactions on two pages of their own.  One of two guards
 *         leaves only if it sees the other one.  A query adds up all accounts, sees a guard, and
 *         finds at both pages of each worker at least the number that was acknowledged before it
 *         began.  The environment goes through several lives.  A life ends with the death of all,
 *         or of one process while the others go on.  After each a fresh process recovers the
 *         environment and looks at it; then the plain file is looked at.
 * NOT HERE  Which combinations there are: check_modes.sh, which runs this for each of them.
 *
 * The settings and their values are in the table below.  XAC_SEED, XAC_LIVES.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env.h"

/* Pages: two of each worker, two guards, then the accounts. */
#define WORKERS_MAX 6
#define THREADS     2
#define ACCOUNTS    400 /* with XAC_OPT_FRAMES at its least, more than memory holds */
#define HOT         8   /* accounts that half of the transactions keep to */
#define N_PAGES     ((size_t)2 * WORKERS_MAX + 2 + ACCOUNTS)
#define TOTAL       (UINT64_C(1000) * ACCOUNTS)
#define LOG_DIR     "elsewhere"

/* ---- Settings ---------------------------------------------------------------------------- */

enum setting {
    CHECKING,
    ENGINE,
    POLICY,
    DURABLE_IS,
    FRAMES,
    IMAGES,
    LOG_CHECKSUM,
    PAGE_CHECKSUMS,
    VIEWS,
    COMPANY,
    LOG_DIRECTORY,
    RECYCLE,
    CHECKPOINTS,
    READ_AHEAD,
    N_SETTINGS
};

/* Names, and words of the values from 0 on. */
static const struct {
    const char *name;
    const char *words[6];
} settings[N_SETTINGS] = {
    [CHECKING] = {"checking", {"strict", "fast", "trusted"}},
    [ENGINE] = {"engine", {"best", "uffd", "scan", "sigsegv"}},
    [POLICY] = {"policy",
                {"oldest", "self", "selfish", "youngest", "optimistic", "serial"}},
    [DURABLE_IS] = {"durable", {"no", "yes", "delayed"}},
    [FRAMES] = {"frames", {"none", "few"}},
    [IMAGES] = {"images", {"no", "yes"}},
    [LOG_CHECKSUM] = {"checksum", {"xxh3", "md5", "sha1"}},
    [PAGE_CHECKSUMS] = {"page-checksums", {"no", "yes"}},
    [VIEWS] = {"views", {"process", "threads"}},
    [COMPANY] = {"company", {"alone", "three"}},
    [LOG_DIRECTORY] = {"log-directory", {"own", "elsewhere"}},
    [RECYCLE] = {"recycle", {"no", "yes"}},
    [CHECKPOINTS] = {"checkpoints", {"often", "rare"}},
    [READ_AHEAD] = {"read-ahead", {"system", "own"}},
};

static uint64_t chosen[N_SETTINGS] = {[IMAGES] = 1, [RECYCLE] = 1, [CHECKPOINTS] = 1};

/* choose -- take NAME=VALUE; ret false: no such setting. */
static bool
choose(const char *text)
{
    const char *value = strchr(text, '=');
    size_t length = value != NULL ? (size_t)(value - text) : 0;

    for (int s = 0; length > 0 && s < N_SETTINGS; s++) {
        if (strlen(settings[s].name) != length
            || strncmp(settings[s].name, text, length) != 0)
            continue;
        for (uint64_t i = 0; i < 6 && settings[s].words[i] != NULL; i++) {
            if (strcmp(settings[s].words[i], value + 1) == 0) {
                chosen[s] = i;
                return true;
            }
        }
    }
    return false;
}

/* set_options -- values are numbered in the order of the table above. */
static void
set_options(void)
{
    bool is_often = chosen[CHECKPOINTS] == 0;

    must_ok(xSetOption(XAC_OPT_CHECKING, chosen[CHECKING]));
    must_ok(xSetOption(XAC_OPT_POLICY, chosen[POLICY]));
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, chosen[DURABLE_IS] == 2 ? 5 : 0));
    must_ok(xSetOption(XAC_OPT_FRAMES, chosen[FRAMES] != 0 ? 256 : 0));
    must_ok(xSetOption(XAC_OPT_FULL_IMAGES, chosen[IMAGES]));
    must_ok(xSetOption(XAC_OPT_CHECKSUM, chosen[LOG_CHECKSUM]));
    must_ok(xSetOption(XAC_OPT_PAGE_CHECKSUMS, chosen[PAGE_CHECKSUMS]));
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, chosen[RECYCLE]));
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, is_often ? 1 << 18 : 1 << 24));
    must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, is_often ? 1 << 17 : 0));
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, is_often ? 1 << 20 : 1 << 28));
    if (chosen[READ_AHEAD] != 0)
        must_ok(xSetOption(XAC_OPT_READ_AHEAD_BYTES, 65536));
    if (chosen[LOG_DIRECTORY] != 0)
        must_ok(xSetLogDirectory(LOG_DIR));
}

static int
flags(void)
{
    return chosen[DURABLE_IS] == 0 ? NONDURABLE : DURABLE;
}

static uint64_t
n_processes(void)
{
    return chosen[COMPANY] == 0 ? 1 : 3;
}

static uint64_t
n_workers(void)
{
    return n_processes() * (chosen[VIEWS] == 0 ? 1 : THREADS);
}

/* ---- Workers ----------------------------------------------------------------------------- */

/* Outside the library: survives the workers. */
struct board {
    _Atomic uint64_t stop;
    _Atomic uint64_t joined; /* processes that have mapped the file                     */
    _Atomic uint64_t stays;  /* 1 + the process that does not leave in this life; or 0  */
    /* Of each worker: transactions begun, told COMMITTED, and of these known to be on disk. */
    _Atomic uint64_t begun[WORKERS_MAX], committed[WORKERS_MAX], synced[WORKERS_MAX];
    _Atomic uint64_t queries, aborts;
};

static struct board *board;

struct worker {
    uint64_t number;
    uint64_t rnd;
    uint64_t *file;
};

/* guard -- one of two that are on duty (1) or not (0); at least one of them is. */
static uint64_t *
guard(uint64_t *file, uint64_t n)
{
    return env_cell(file, 2 * WORKERS_MAX + n);
}

static uint64_t *
account(uint64_t *file, uint64_t n)
{
    return env_cell(file, 2 * WORKERS_MAX + 2 + n);
}

/* announce -- say that a store follows: always if the program has promised it. */
static void
announce(struct worker *w, uint64_t *cell)
{
    if (chosen[CHECKING] == 2 || rnd_below(&w->rnd, 4) == 0)
        must_ok(setPageAccess(cell, READ_WRITE));
}

static void
add(struct worker *w, uint64_t *cell, uint64_t amount)
{
    announce(w, cell);
    *(volatile uint64_t *)cell += amount;
}

static void
pause_a_little(struct worker *w)
{
    uint64_t r = rnd_below(&w->rnd, 60);

    if (r == 0)
        proc_sleep_us(rnd_below(&w->rnd, 300));
    else if (r < 10)
        sched_yield();
}

/* move_money -- from account to account in a ring; the last one gets what the first one lost. */
static void
move_money(struct worker *w)
{
    uint64_t n = rnd_below(&w->rnd, 60) == 0 ? 120 : 2 + rnd_below(&w->rnd, 4);
    uint64_t range = rnd_below(&w->rnd, 2) == 0 ? HOT : ACCOUNTS;
    uint64_t at = rnd_below(&w->rnd, range), first = at;
    bool is_nested = rnd_below(&w->rnd, 6) == 0;

    if (is_nested)
        must_ok(xbegin());
    for (uint64_t i = 1; i < n; i++) {
        add(w, account(w->file, at), UINT64_MAX); /* takes 1 away, modulo 2^64 */
        pause_a_little(w);
        at = (at + 1 + rnd_below(&w->rnd, 7)) % range;
        add(w, account(w->file, at), 1);
    }
    add(w, account(w->file, at), 5);
    add(w, account(w->file, first), (uint64_t)-5);
    if (is_nested) {
        int rc = xend();

        must(rc == PENDING || rc == FAILED);
    }
}

/* change_guard -- one of them comes or goes, which depends on the other one. */
static void
change_guard(struct worker *w)
{
    uint64_t which = rnd_below(&w->rnd, 2);
    volatile uint64_t *it = guard(w->file, which);
    bool is_other_there = *(volatile uint64_t *)guard(w->file, 1 - which) == 1;

    pause_a_little(w);
    if (*it == 0)
        add(w, guard(w->file, which), 1);
    else if (is_other_there)
        add(w, guard(w->file, which), UINT64_MAX);
}

/* note_synced -- what has been told COMMITTED so far is on disk. */
static void
note_synced(struct worker *w)
{
    uint64_t committed = word_load(&board->committed[w->number]);

    if (chosen[DURABLE_IS] == 2 && committed % 16 != 0)
        return;
    if (chosen[DURABLE_IS] == 2)
        must_ok(xSync());
    word_store(&board->synced[w->number], committed);
}

static void
run_transaction(struct worker *w)
{
    uint64_t *mine = env_cell(w->file, 2 * w->number);
    uint64_t *again = env_cell(w->file, 2 * w->number + 1);
    bool gives_up = rnd_below(&w->rnd, 25) == 0;
    uint64_t number;
    int rc;

    must_ok(xbegin());
    number = *(volatile uint64_t *)mine + 1;
    if (!gives_up)
        word_store(&board->begun[w->number], number);
    add(w, mine, 1);
    move_money(w);
    if (rnd_below(&w->rnd, 3) == 0)
        change_guard(w);
    add(w, again, 1);
    must_eq(*(volatile uint64_t *)mine, number);
    if (gives_up)
        must_ok(xAbort());
    rc = xend();
    if (rc == ABORTED) {
        word_add(&board->aborts, 1);
        return;
    }
    must_rc(rc, COMMITTED);
    must(!gives_up);
    word_store(&board->committed[w->number], number);
    note_synced(w);
}

/* must_be_whole -- a state: at least what had been committed `least`, and all the money. */
static void
must_be_whole(uint64_t *file, const uint64_t *least, const char *what)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < WORKERS_MAX; i++) {
        uint64_t n = *env_cell(file, 2 * i), again = *env_cell(file, 2 * i + 1);

        if (n != again)
            env_fail(__FILE__, __LINE__,
                     "%s: half a transaction of worker %" PRIu64 ": %" PRIu64
                     ", %" PRIu64,
                     what, i, n, again);
        if (n < least[i])
            env_fail(__FILE__, __LINE__,
                     "%s: worker %" PRIu64 " is at %" PRIu64 ", acknowledged %" PRIu64,
                     what, i, n, least[i]);
        if (n > word_load(&board->begun[i]))
            env_fail(__FILE__, __LINE__,
                     "%s: worker %" PRIu64 " is at %" PRIu64 ", which it has not begun",
                     what, i, n);
    }
    if ((*guard(file, 0) | *guard(file, 1)) != 1)
        env_fail(__FILE__, __LINE__, "%s: guards %" PRIu64 " and %" PRIu64, what,
                 *guard(file, 0), *guard(file, 1));
    for (uint64_t i = 0; i < ACCOUNTS; i++)
        sum += *account(file, i);
    if (sum != TOTAL)
        env_fail(__FILE__, __LINE__, "%s: %" PRIu64 " in all accounts, not %" PRIu64,
                 what, sum, TOTAL);
}

static void
run_query(struct worker *w)
{
    uint64_t least[WORKERS_MAX];

    for (int i = 0; i < WORKERS_MAX; i++)
        least[i] = word_load(&board->committed[i]);
    must_ok(xbeginQuery());
    must_be_whole(w->file, least, "query");
    must_ok(xendQuery());
    word_add(&board->queries, 1);
}

/* open_file -- become a participant and map the file. */
static uint64_t *
open_file(void)
{
    uint64_t *file;

    set_options();
    must_ok(xInit(ENV_DIR, flags()));
    file = xMmap(ENV_FILE, N_PAGES * env_page());
    if (file == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xMmap: %s", xLastError());
    return file;
}

/* come_back -- leave the environment and join it again. */
static void
come_back(struct worker *w)
{
    if (chosen[VIEWS] != 0 /* other threads are at work */
        || w->number + 1 == word_load(&board->stays))
        return;
    env_detach();
    w->file = open_file();
}

static void *
work(void *arg)
{
    struct worker *w = arg;
    uint64_t *base = w->file;

    if (chosen[VIEWS] != 0) {
        w->file = xView(base);
        if (w->file == MAP_FAILED)
            env_fail(__FILE__, __LINE__, "xView: %s", xLastError());
    }
    while (word_load(&board->stop) == 0) {
        if (rnd_below(&w->rnd, 12) == 0)
            run_query(w);
        else
            run_transaction(w);
        if (rnd_below(&w->rnd, 300) == 0)
            must_ok(xCheckpoint());
        if (rnd_below(&w->rnd, 60) == 0)
            come_back(w);
    }
    if (chosen[VIEWS] != 0)
        must_ok(xUnview(w->file));
    return NULL;
}

/* run_process -- the workers of one process, until told to stop. */
static void
run_process(void *arg)
{
    uint64_t process = *(const uint64_t *)arg;
    uint64_t n = chosen[VIEWS] == 0 ? 1 : THREADS;
    struct worker w[THREADS];
    pthread_t thread[THREADS];
    uint64_t *file = open_file();

    for (uint64_t i = 0; i < n; i++)
        w[i] = (struct worker){.number = process * n + i,
                               .rnd = env_seed() + process * n + i,
                               .file = file};
    word_add(&board->joined, 1);
    if (n == 1) {
        work(&w[0]);
    } else {
        for (uint64_t i = 0; i < n; i++)
            must(pthread_create(&thread[i], NULL, work, &w[i]) == 0);
        for (uint64_t i = 0; i < n; i++)
            must(pthread_join(thread[i], NULL) == 0);
    }
    env_detach();
}

/* ---- Lives ------------------------------------------------------------------------------- */

static void
fill_accounts(void *arg)
{
    uint64_t *file;
    int rc;

    (void)arg;
    file = open_file();
    do {
        must_ok(xbegin());
        must_ok(setPageAccess(guard(file, 0), READ_WRITE));
        *guard(file, 0) = 1;
        for (uint64_t i = 0; i < ACCOUNTS; i++) {
            must_ok(setPageAccess(account(file, i), READ_WRITE));
            *account(file, i) = TOTAL / ACCOUNTS;
        }
        rc = xend();
    } while (rc == ABORTED);
    must_rc(rc, COMMITTED);
    env_detach();
}

/* least_of -- what must be found of each worker after a life. */
static void
least_of(bool all_died, uint64_t least[WORKERS_MAX])
{
    for (int i = 0; i < WORKERS_MAX; i++)
        least[i] =
            all_died ? word_load(&board->synced[i]) : word_load(&board->committed[i]);
}

/* look -- in a fresh process: join or recover, and take what is found for acknowledged. */
static void
look(void *arg)
{
    const bool *all_died = arg;
    uint64_t least[WORKERS_MAX];
    uint64_t *file = open_file();

    least_of(*all_died, least);
    must_ok(xbeginQuery());
    must_be_whole(file, least, *all_died ? "after all were killed" : "afterwards");
    for (uint64_t i = 0; i < WORKERS_MAX; i++) {
        uint64_t n = *env_cell(file, 2 * i);

        word_store(&board->begun[i], n);
        word_store(&board->committed[i], n);
        word_store(&board->synced[i], n);
    }
    must_ok(xendQuery());
    env_detach();
}

/* look_at_plain_file -- everybody has shut down: the file has it all. */
static void
look_at_plain_file(void)
{
    uint64_t *copy = malloc(N_PAGES * env_page());
    uint64_t least[WORKERS_MAX];

    must(copy != NULL);
    least_of(false, least);
    file_read(ENV_FILE, 0, copy, N_PAGES * env_page());
    must_be_whole(copy, least, "plain file");
    free(copy);
}

/* await_work -- each worker but those of process `dead` has committed a few more. */
static void
await_work(uint64_t dead, uint64_t more)
{
    uint64_t each = chosen[VIEWS] == 0 ? 1 : THREADS;

    for (uint64_t i = 0; i < n_workers(); i++) {
        if (i / each != dead)
            proc_await(&board->committed[i], word_load(&board->committed[i]) + more, 60);
    }
}

/*
 * live -- start the processes, let them work, and end them: by killing all of them, if the
 * environment survives that, or one while the others go on and end by themselves.
 */
static void
live(uint64_t life, uint64_t *rnd)
{
    static uint64_t number[] = {0, 1, 2};
    uint64_t n = n_processes(), victim = life % n;
    bool all_died = flags() == DURABLE && life % 2 == 0;
    bool one_dies = !all_died && n > 1;
    pid_t pid[3];

    word_store(&board->stop, 0);
    word_store(&board->joined, 0);
    /* Were all others away when one dies, nobody would be left to know what it has committed. */
    word_store(&board->stays, one_dies ? 1 + (victim + 1) % n : 0);
    for (uint64_t i = 0; i < n; i++) {
        pid[i] = proc_spawn(run_process, &number[i]);
        if (life % 2 == 1) { /* one by one, while others are at work */
            proc_await(&board->joined, i + 1, 60);
            proc_sleep_us(rnd_below(rnd, 30000));
        }
    }
    proc_await(&board->joined, n, 60);
    await_work(n, 8);
    proc_sleep_us(rnd_below(rnd, 300000));
    for (uint64_t i = 0; i < n; i++) {
        if (all_died || (one_dies && i == victim))
            must(kill(pid[i], SIGKILL) == 0);
    }
    if (one_dies) {
        (void)proc_wait(pid[victim]);
        await_work(victim, 4);
    }
    word_store(&board->stop, 1);
    for (uint64_t i = 0; i < n; i++) {
        if (all_died)
            (void)proc_wait(pid[i]);
        else if (!one_dies || i != victim)
            proc_join(pid[i]);
    }
    proc_run(look, &all_died);
    look_at_plain_file();
}

START_TEST(lose_nothing_and_see_nothing_half)
{
    static const char *const engines[] = {"", "uffd", "scan", "sigsegv"};
    uint64_t rnd = env_seed(), lives = env_number("XAC_LIVES", 3);

    must(setenv("XAC_ENGINE", engines[chosen[ENGINE]], 1) == 0);
    board = proc_shared(sizeof *board);
    proc_run(fill_accounts, NULL);
    for (uint64_t life = 0; life < lives; life++)
        live(life, &rnd);
    printf("%" PRIu64 " aborts, %" PRIu64 " queries, commits:", word_load(&board->aborts),
           word_load(&board->queries));
    for (uint64_t i = 0; i < n_workers(); i++)
        printf(" %" PRIu64, word_load(&board->committed[i]));
    printf("\n");
}
END_TEST

int
main(int argc, char **argv)
{
    Suite *s = suite_create("one_mode");
    TCase *tc = env_tcase(s, "mode", 100);

    for (int i = 1; i < argc; i++) {
        if (!choose(argv[i])) {
            fprintf(stderr, "one_mode: %s: no such setting\n", argv[i]);
            return EXIT_FAILURE;
        }
    }
    tcase_add_test(tc, lose_nothing_and_see_nothing_half);
    return env_main(s);
}
