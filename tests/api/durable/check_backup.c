/* SPDX-License-Identifier: MIT */
/*
 * check_backup.c -- backups of an environment in use.
 *
 * GOAL    a backup is the state of one moment during the call, with everything that had
 *         been acknowledged before it; one that was not finished is no environment.
 * METHOD  writers move amounts between two files, one in the environment's directory and
 *         one outside, so that all cells add up to nothing, and count their commits in
 *         both; checkpoints run all the time.  The copy is recovered and looked at without
 *         the library.  Once more with log segments reused, large transactions, and a
 *         file that takes long to copy.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"

#define INSIDE    ENV_DIR "/below/in.db"
#define SLOW      ENV_DIR "/below/slow.db"
#define PAGES     512
#define N_WRITERS 3
#define BACKUPS   4

#define SLOW_BYTES ((size_t)48 << 20)

/* What the processes share. */
struct shared {
    _Atomic uint64_t stop;
    _Atomic uint64_t recycle; /* see METHOD */
    _Atomic uint64_t acked[N_WRITERS];
};

static struct shared *sh;

/* Directories of backups, to be handed to children. */
static char dir_b[] = "b";
static char dir_k[] = "k";

/* Cells 0 .. N_WRITERS - 1 of each page-sized row count; the others hold amounts. */
static size_t
cell_of(uint64_t *rng)
{
    size_t per_page = env_page() / sizeof(int64_t);

    return rnd_below(rng, PAGES) * per_page + N_WRITERS
           + rnd_below(rng, per_page - N_WRITERS);
}

/* set_options -- with recycling on, segments are needed for a short while only. */
static void
set_options(void)
{
    bool recycle = word_load(&sh->recycle) != 0;

    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, recycle ? 1 << 17 : 1 << 18));
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, recycle));
    if (!recycle)
        return;
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 1 << 16));
    must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 1 << 16));
}

/* move_many -- amounts in every cell of some pages: too much for the log buffer. */
static void
move_many(int64_t *in, int64_t *out, uint64_t *rng)
{
    size_t per_page = env_page() / sizeof(int64_t);
    size_t page = rnd_below(rng, PAGES - 8);

    for (size_t i = page * per_page; i < (page + 8) * per_page; i++) {
        int64_t n = (int64_t)rnd_below(rng, UINT64_C(1) << 40);

        if (i % per_page < N_WRITERS)
            continue;
        in[i] -= n;
        out[i] += n;
    }
}

/* writer -- number w: move amounts until told to stop. */
static void
writer(void *arg)
{
    unsigned w = (unsigned)(uintptr_t)arg;
    uint64_t rng = env_seed() + w;
    int64_t *in, *out;

    set_options();
    env_init(DURABLE);
    in = (int64_t *)xMmap(INSIDE, PAGES * env_page());
    out = (int64_t *)xMmap(ENV_FILE, PAGES * env_page());
    must(in != MAP_FAILED && out != MAP_FAILED);
    while (word_load(&sh->stop) == 0) {
        size_t a = cell_of(&rng);
        size_t b = cell_of(&rng);
        int64_t n = (int64_t)rnd_below(&rng, 1000);
        int rc;

        do {
            must_ok(xbegin());
            in[a] -= n;
            out[b] += n;
            in[w]++;
            out[w]++;
            if (word_load(&sh->recycle) != 0 && n % 4 == 0)
                move_many(in, out, &rng);
        } while ((rc = xend()) == ABORTED);
        must_eq(rc, COMMITTED);
        word_add(&sh->acked[w], 1);
    }
    env_detach();
}

/* copy_is_whole -- a recovered backup adds up and has what had been acknowledged. */
static void
copy_is_whole(const char *dir, const uint64_t *low, const uint64_t *high)
{
    size_t n = PAGES * env_page() / sizeof(int64_t);
    int64_t *cells = malloc(2 * PAGES * env_page());
    int64_t sum = 0;
    char path[64];

    must(cells != NULL);
    (void)snprintf(path, sizeof path, "%s/below/in.db", dir);
    file_read(path, 0, cells, PAGES * env_page());
    (void)snprintf(path, sizeof path, "%s/xac-outside/2-input.db", dir);
    file_read(path, 0, cells + n, PAGES * env_page());
    for (size_t i = 0; i < n; i++) {
        if (i >= N_WRITERS)
            sum += cells[i] + cells[n + i];
    }
    must_eq(sum, 0);
    for (unsigned w = 0; w < N_WRITERS; w++) {
        must_eq(cells[w], cells[n + w]);
        must((uint64_t)cells[w] >= low[w]);
        must((uint64_t)cells[w] <= high[w] + 1);
    }
    free(cells);
}

static void
acked(uint64_t out[N_WRITERS])
{
    for (unsigned w = 0; w < N_WRITERS; w++)
        out[w] = word_load(&sh->acked[w]);
}

/* The files must be mapped in a known order, for their names in the backup. */
static void
map_both(void *arg)
{
    (void)arg;
    set_options();
    env_init(DURABLE);
    must(xMmap(INSIDE, PAGES * env_page()) != MAP_FAILED);
    must(xMmap(ENV_FILE, PAGES * env_page()) != MAP_FAILED);
    if (word_load(&sh->recycle) != 0)
        must(xMmap(SLOW, SLOW_BYTES) != MAP_FAILED);
    env_detach();
}

/* make_slow -- a file without holes. */
static void
make_slow(void)
{
    char *noise = malloc(SLOW_BYTES);

    must(noise != NULL);
    memset(noise, 'x', SLOW_BYTES);
    file_write(SLOW, 0, noise, SLOW_BYTES);
    free(noise);
}

/* start_writers -- and wait until each has committed. */
static void
start_writers(pid_t pids[N_WRITERS], bool recycle)
{
    sh = proc_shared(sizeof *sh);
    word_store(&sh->recycle, recycle);
    must_eq(mkdir(ENV_DIR, 0777), 0);
    must_eq(mkdir(ENV_DIR "/below", 0777), 0);
    if (recycle)
        make_slow();
    proc_run(map_both, NULL);
    for (uintptr_t w = 0; w < N_WRITERS; w++)
        pids[w] = proc_spawn(writer, (void *)w);
    for (unsigned w = 0; w < N_WRITERS; w++)
        proc_await(&sh->acked[w], 1, 60);
}

static void
stop_writers(const pid_t pids[N_WRITERS])
{
    word_store(&sh->stop, 1);
    for (unsigned w = 0; w < N_WRITERS; w++)
        proc_join(pids[w]);
}

static void
recover_copy(void *arg)
{
    must_ok(xRecover((const char *)arg));
}

/* use_copy -- an environment like any other: the file inside can be mapped and changed. */
static void
use_copy(void *arg)
{
    char path[64];
    uint64_t *x;

    must_ok(xInit((const char *)arg, DURABLE));
    (void)snprintf(path, sizeof path, "%s/below/in.db", (const char *)arg);
    x = (uint64_t *)xMmap(path, PAGES * env_page());
    must(x != MAP_FAILED);
    env_put(x, env_get(x) + 1);
    env_put(x, env_get(x) - 1);
    must_ok(xShutdown());
}

START_TEST(backup_is_one_moment)
{
    char dir[BACKUPS][16];
    uint64_t low[BACKUPS][N_WRITERS], high[BACKUPS][N_WRITERS];
    pid_t pids[N_WRITERS];

    start_writers(pids, _i != 0);
    set_options();
    env_init(DURABLE);
    for (unsigned i = 0; i < BACKUPS; i++) {
        (void)snprintf(dir[i], sizeof dir[i], "b%u", i);
        acked(low[i]);
        must_ok(xBackup(dir[i]));
        acked(high[i]);
        must(file_exists("b0/xac.backup"));
        proc_sleep_us(20000);
    }
    stop_writers(pids);
    env_detach();
    for (unsigned i = 0; i < BACKUPS; i++) {
        proc_run(i % 2 == 0 ? recover_copy : use_copy, dir[i]);
        copy_is_whole(dir[i], low[i], high[i]);
        must(!file_exists("b0/xac.backup"));
    }
    must(word_load(&sh->acked[0]) > low[BACKUPS - 1][0]);
}
END_TEST

/* ---- Killed ----------------------------------------------------------------------- */

static void
backup_to_k(void *arg)
{
    (void)arg;
    env_init(DURABLE);
    must_ok(xBackup("k"));
    for (;;)
        pause();
}

/* After a kill at any moment the copy is whole or no environment. */
START_TEST(killed_backup_is_whole_or_none)
{
    uint64_t rng = env_seed();
    uint64_t none[N_WRITERS] = {0}, all[N_WRITERS];
    pid_t pids[N_WRITERS];
    unsigned n_whole = 0, n_none = 0;

    start_writers(pids, false);
    for (unsigned i = 0; i < 12; i++) {
        pid_t pid = proc_spawn(backup_to_k, NULL);

        proc_sleep_us(rnd_below(&rng, i < 6 ? 60000 : 400000));
        proc_kill(pid);
        acked(all);
        if (!file_exists("k/xac.master")) {
            if (file_exists("k"))
                must_refuse(xRecover("k"), XAC_ENOTENV);
            n_none++;
        } else {
            proc_run(recover_copy, dir_k);
            copy_is_whole("k", none, all);
            n_whole++;
        }
        must_eq(system("rm -rf k"), 0);
    }
    printf("whole %u, none %u\n", n_whole, n_none);
    stop_writers(pids);
}
END_TEST

/* ---- Arguments -------------------------------------------------------------------- */

START_TEST(arguments_are_checked)
{
    uint64_t *x;

    must_refuse(xBackup("b"), XAC_ENOINIT);
    x = env_attach(DURABLE, 4);
    must_refuse(xBackup(NULL), EINVAL);
    must_refuse(xBackup(""), EINVAL);
    must_refuse(xBackup("no/such"), ENOENT);
    must_ok(xbegin());
    must_refuse(xBackup("b"), XAC_EINTXN);
    must_rc(xend(), COMMITTED);
    must(!file_exists("b"));
    must_eq(mkdir("b", 0777), 0);
    file_write("b/something", 0, "x", 1);
    must_refuse(xBackup("b"), EEXIST);
    must(!file_exists("b/xac.master"));
    must_eq(unlink("b/something"), 0);
    env_put(x, 7);
    must_ok(xBackup("b"));
    must_refuse(xBackup("b"), EEXIST);
    env_detach();
    proc_run(recover_copy, dir_b);
    must_eq(file_u64("b/xac-outside/1-input.db", 0), 7);
}
END_TEST

START_TEST(nondurable_is_refused)
{
    (void)env_attach(NONDURABLE, 4);
    must_refuse(xBackup("b"), ENOTSUP);
    must(!file_exists("b"));
    env_detach();
}
END_TEST

/* A sparse file stays sparse; one that is no longer mapped is there. */
START_TEST(holes_and_unmapped_files_are_copied)
{
    size_t page = env_page();
    struct stat st;
    uint64_t *x;

    must_eq(mkdir(ENV_DIR, 0777), 0);
    env_init(DURABLE);
    x = (uint64_t *)xMmap(ENV_DIR "/old.db", page);
    env_put(x, 11);
    env_detach();
    env_init(DURABLE);
    x = (uint64_t *)xMmap(ENV_DIR "/sparse.db", (size_t)1 << 36);
    must(x != MAP_FAILED);
    env_put(x + ((size_t)1 << 33) - 1, 22);
    must_ok(xBackup("b"));
    env_put(x, 33);
    env_detach();
    proc_run(recover_copy, dir_b);
    must_eq(file_u64("b/old.db", 0), 11);
    must_eq(file_size("b/sparse.db"), UINT64_C(1) << 36);
    must_eq(file_u64("b/sparse.db", (UINT64_C(1) << 36) - 8), 22);
    must_eq(file_u64("b/sparse.db", 0), 0);
    must_eq(stat("b/sparse.db", &st), 0);
    must(st.st_blocks < 1024);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("backup");
    TCase *tc = env_tcase(s, "backup", 120);

    tcase_add_loop_test(tc, backup_is_one_moment, 0, 2);
    tcase_add_test(tc, killed_backup_is_whole_or_none);
    tcase_add_test(tc, arguments_are_checked);
    tcase_add_test(tc, nondurable_is_refused);
    tcase_add_test(tc, holes_and_unmapped_files_are_copied);
    return env_main(s);
}
