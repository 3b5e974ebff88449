/* SPDX-License-Identifier: MIT */
/*
 * check_increment.c -- incremental backups: chains of them, restored to each of their moments.
 *
 * GOAL    what is restored from a full backup and its increments is the state of one moment
 *         during the last call, whichever way the changed pages were found; a chain that is not
 *         whole, in order and undamaged is refused in words; what was not finished is no backup.
 * METHOD  writers count their transactions together, in one cell.  What a transaction stores
 *         follows from its number alone, so the number that a restored state has says what each
 *         of its bytes must be.  Increments are made at random times meanwhile, in environments
 *         that let the log, checksums, or a comparison find the pages.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xac_env.h>

#include "env.h"
#include "tool_run.h"

#define INSIDE    ENV_DIR "/below/in.db"
#define PAGES     1024
#define N_WRITERS 2
#define N_LINKS   6

/* What decides how changed pages are found. */
enum kind {
    BY_LOG,    /* a participant maps the files all the time                             */
    RECYCLED,  /* segments are small and used again: the log does not reach back        */
    BY_SUMS,   /* checksums of pages; nobody is attached between two increments         */
    COMPARED,  /* nobody is attached between two increments                             */
    LOG_APART, /* the log in a directory of its own, and kept; frames                   */
    KINDS
};

/* What the processes share. */
struct shared {
    _Atomic uint64_t stop;
    _Atomic uint64_t kind;
    _Atomic uint64_t done; /* number of the last transaction that was acknowledged      */
};

static struct shared *sh;

static void
set_options(void)
{
    uint64_t kind = word_load(&sh->kind);

    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 1 << 18));
    if (kind == BY_SUMS)
        must_ok(xSetOption(XAC_OPT_PAGE_CHECKSUMS, 1));
    if (kind == LOG_APART) {
        must_ok(xSetLogDirectory("logs"));
        must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, 0));
    }
    if (kind == RECYCLED) {
        must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 1 << 16));
        must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 1 << 16));
    }
}

/* ---- The model -------------------------------------------------------------------- */

static size_t
words_of(size_t pages)
{
    return pages * env_page() / sizeof(uint64_t);
}

/* change -- what transaction number g does, to the files or to the model of them; cell 0 of the first
   file is left alone. */
static void
change(uint64_t g, uint64_t *in, uint64_t *out)
{
    size_t per_page = words_of(1);
    uint64_t rng = g * 2654435761u + 1;
    size_t n = 1 + rnd_below(&rng, 4);
    size_t page = 1 + rnd_below(&rng, PAGES - 1);

    for (size_t i = 0; i < n; i++) {
        uint64_t *to = rnd_below(&rng, 2) == 0 ? in : out;

        to[(1 + rnd_below(&rng, PAGES - 1)) * per_page + rnd_below(&rng, per_page)] = g;
    }
    if (g % 7 == 0) /* a page of zeros */
        memset(in + page * per_page, 0, env_page());
    /* Too much for the log, whose file of such a transaction does not stay. */
    if (g % 40 == 0 && word_load(&sh->kind) != BY_LOG)
        for (size_t i = page * per_page;
             i < words_of(PAGES) && i < (page + 40) * per_page; i++)
            out[i] = g ^ i;
}

/* must_be_state -- the files of a recovered backup are the model's, after as many transactions as they
   say; ret that number. */
static uint64_t
must_be_state(const char *dir)
{
    size_t bytes = PAGES * env_page();
    uint64_t *in = calloc(4, bytes);
    char path[64];
    uint64_t g;

    must(in != NULL);
    (void)snprintf(path, sizeof path, "%s/below/in.db", dir);
    file_read(path, 0, in, bytes);
    (void)snprintf(path, sizeof path, "%s/xac-outside/2-input.db", dir);
    file_read(path, 0, in + words_of(PAGES), bytes);
    g = in[0];
    for (uint64_t i = 1; i <= g; i++)
        change(i, in + words_of(2 * PAGES), in + words_of(3 * PAGES));
    in[words_of(2 * PAGES)] = g;
    must_eq(memcmp(in, in + words_of(2 * PAGES), 2 * bytes), 0);
    free(in);
    return g;
}

/* ---- Processes -------------------------------------------------------------------- */

static uint64_t *
map_in(uint64_t **outp)
{
    uint64_t *in = (uint64_t *)xMmap(INSIDE, PAGES * env_page());

    *outp = (uint64_t *)xMmap(ENV_FILE, PAGES * env_page());
    must(in != MAP_FAILED && *outp != MAP_FAILED);
    return in;
}

static void
writer(void *arg)
{
    uint64_t *in, *out, g;

    (void)arg;
    set_options();
    env_init(DURABLE);
    in = map_in(&out);
    while (word_load(&sh->stop) == 0) {
        int rc;

        do {
            must_ok(xbegin());
            g = ++in[0];
            change(g, in, out);
        } while ((rc = xend()) == ABORTED);
        must_eq(rc, COMMITTED);
        for (uint64_t was = word_load(&sh->done); was < g;) {
            if (atomic_compare_exchange_weak(&sh->done, &was, g))
                break;
        }
    }
    env_detach();
}

static void
start_writers(pid_t pids[N_WRITERS])
{
    uint64_t from = word_load(&sh->done);

    word_store(&sh->stop, 0);
    for (uintptr_t w = 0; w < N_WRITERS; w++)
        pids[w] = proc_spawn(writer, NULL);
    proc_await(&sh->done, from + 20, 60);
}

static void
stop_writers(const pid_t pids[N_WRITERS])
{
    word_store(&sh->stop, 1);
    for (unsigned w = 0; w < N_WRITERS; w++)
        proc_join(pids[w]);
}

/* The files are mapped in a known order, for their names in a backup. */
static void
map_both(void *arg)
{
    uint64_t *out;

    (void)arg;
    set_options();
    env_init(DURABLE);
    (void)map_in(&out);
    env_detach();
}

static void
make_world(enum kind kind)
{
    sh = proc_shared(sizeof *sh);
    word_store(&sh->kind, kind);
    must_eq(mkdir(ENV_DIR, 0777), 0);
    must_eq(mkdir(ENV_DIR "/below", 0777), 0);
    if (kind == LOG_APART)
        must_eq(mkdir("logs", 0777), 0);
    proc_run(map_both, NULL);
}

/* ---- Chains ----------------------------------------------------------------------- */

/* names -- "b0 b1 ... bk". */
static const char *
names(unsigned k)
{
    static char text[200];
    size_t n = 0;

    for (unsigned i = 0; i <= k; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "b%u ", i);
    return text;
}

static char dir_r[] = "r";

/* open_and_close -- the first program that opens a backup recovers it. */
static void
open_and_close(void *arg)
{
    must_ok(xInit((const char *)arg, DURABLE));
    must_ok(xShutdown());
}

/* restored -- the state at the k-th backup; ret the number of its last transaction. */
static uint64_t
restored(unsigned k)
{
    char names_and_dir[220];
    uint64_t g;

    (void)snprintf(names_and_dir, sizeof names_and_dir, "%s r", names(k));
    ck_assert_msg(tool_run("xbackup", "--restore", names_and_dir) == 0, "%s", output);
    must(file_exists("r/xac.backup"));
    must(!file_exists("r/xac.unfinished"));
    if (k % 2 == 0)
        must_eq(tool_run("xrecover", "", "r"), 0);
    else
        proc_run(open_and_close, dir_r);
    must(!file_exists("r/xac.manifest"));
    must(!file_exists("r/xac.pages"));
    g = must_be_state("r");
    must_eq(system("rm -rf r"), 0);
    return g;
}

/* backup -- the k-th of the chain. */
static void
backup(unsigned k, const char *env)
{
    char dir[40];

    (void)snprintf(dir, sizeof dir, "%s b%u", env, k);
    if (k == 0) {
        must_eq(tool_run("xbackup", "--no-check", dir), 0);
    } else {
        char since[40];

        (void)snprintf(since, sizeof since, "--json --since b%u", k - 1);
        ck_assert_msg(tool_run("xbackup", since, dir) == 0, "%s", output);
    }
}

/* must_say_way -- of the last increment. */
static void
must_say_way(enum kind kind)
{
    if (kind == BY_LOG || kind == LOG_APART)
        ck_says("\"files_by_log\": 2");
    else if (kind == BY_SUMS)
        ck_says("\"files_by_checksums\": 2");
    else
        ck_says("\"files_by_comparing\": 2");
}

START_TEST(chain_restores_to_each_moment)
{
    enum kind kind = (enum kind)_i;
    bool is_held = kind == BY_LOG || kind == RECYCLED || kind == LOG_APART;
    uint64_t rng = env_seed(), low[N_LINKS + 1], high[N_LINKS + 1];
    pid_t pids[N_WRITERS];

    make_world(kind);
    start_writers(pids);
    for (unsigned k = 0; k <= N_LINKS; k++) {
        low[k] = word_load(&sh->done);
        if (k > 0 && kind == RECYCLED)
            proc_await(&sh->done, low[k] + 600, 60);
        else
            proc_await(&sh->done, low[k] + 1 + rnd_below(&rng, 200), 60);
        if (!is_held)
            stop_writers(pids);
        low[k] = word_load(&sh->done);
        backup(k, ENV_DIR);
        high[k] = word_load(&sh->done);
        if (k > 0)
            must_say_way(kind);
        if (!is_held)
            start_writers(pids);
    }
    stop_writers(pids);
    must_eq(tool_run("xbackup", "--verify", names(N_LINKS)), 0);
    for (unsigned k = 0; k <= N_LINKS; k++) {
        uint64_t g = restored(k);

        must(g >= low[k]);
        must(g <= high[k] + N_WRITERS);
    }
}
END_TEST

/* ---- Files that come and go ------------------------------------------------------- */

static uint64_t *
map_pages(const char *path, size_t pages)
{
    uint64_t *x = (uint64_t *)xMmap(path, pages * env_page());

    must(x != MAP_FAILED);
    return x;
}

/* New, grown, removed and replaced files, and a file that comes back. */
START_TEST(files_come_grow_and_go)
{
    uint64_t *a, *b;
    char *old = calloc(1, 4 * env_page());

    must_eq(mkdir(ENV_DIR, 0777), 0);
    env_init(DURABLE);
    a = map_pages(ENV_DIR "/a", 4);
    b = map_pages(ENV_DIR "/b", 600);
    env_put(a, 1);
    env_put(b + words_of(599), 2);
    must_ok(xBackup("b0"));
    must_ok(xMunmap(ENV_DIR "/a"));
    must_ok(xForget(ENV_DIR "/a"));
    must_eq(unlink(ENV_DIR "/a"), 0);
    must_ok(xMunmap(ENV_DIR "/b"));
    b = map_pages(ENV_DIR "/b", 1500);
    env_put(b + words_of(1499), 3);
    must_ok(xBackupSince("b1", "b0"));
    memset(old, 'x', 4 * env_page());
    file_write(ENV_DIR "/a", 0, old, 4 * env_page()); /* by other means */
    a = map_pages(ENV_DIR "/a", 4);
    env_put(a, 4);
    must_ok(xBackupSince("b2", "b1"));
    must_ok(xMunmap(ENV_DIR "/a"));
    file_write(ENV_DIR "/a", env_page(), "hello", 5); /* by other means: same file */
    a = map_pages(ENV_DIR "/a", 4);
    must_ok(xBackupSince("b3", "b2"));
    env_detach();
    free(old);

    must_eq(tool_run("xbackup", "--verify", "b0 b1 b2 b3"), 0);
    must_eq(tool_run("xbackup", "--restore --recover", "b0 b1 r1"), 0);
    must(!file_exists("r1/a"));
    must_eq(file_size("r1/b"), 1500 * env_page());
    must_eq(file_u64("r1/b", 599 * env_page()), 2);
    must_eq(file_u64("r1/b", 1499 * env_page()), 3);
    must_eq(tool_run("xbackup", "--restore --recover", "b0 b1 b2 r2"), 0);
    must_eq(file_u64("r2/a", 0), 4);
    must_eq(file_u64("r2/a", 8), UINT64_C(0x7878787878787878));
    must_eq(tool_run("xbackup", "--restore --recover", "b0 b1 b2 b3 r3"), 0);
    must_eq(file_u64("r3/a", env_page()), UINT64_C(0x7878786f6c6c6568));
    must_eq(file_u64("r3/a", 0), 4);
}
END_TEST

/* ---- What is refused -------------------------------------------------------------- */

/* make_chain -- b0 to bn of an environment with one file. */
static uint64_t *
make_chain(unsigned n)
{
    uint64_t *x = env_attach(DURABLE, 8);
    char dir[8], base[8];

    env_put(x, 100);
    must_ok(xBackup("b0"));
    for (unsigned k = 1; k <= n; k++) {
        env_put(env_cell(x, k % 8), 100 + k);
        (void)snprintf(dir, sizeof dir, "b%u", k);
        (void)snprintf(base, sizeof base, "b%u", k - 1);
        must_ok(xBackupSince(dir, base));
    }
    return x;
}

START_TEST(chain_must_be_whole_and_in_order)
{
    uint64_t *x = make_chain(3);

    env_put(x, 1);
    must_ok(xBackup("other"));
    env_detach();
    must_eq(tool_run("xbackup", "--restore", "b0 b2 r"), 1);
    ck_says("a backup is missing between b0");
    must_eq(tool_run("xbackup", "--restore", "b0 b2 b1 r"), 1);
    ck_says("wrong order: b2 is the increment of b1, not of b0");
    must_eq(tool_run("xbackup", "--restore", "b1 b2 r"), 1);
    ck_says("a backup is missing before b1");
    must_eq(tool_run("xbackup", "--restore", "b0 other r"), 1);
    ck_says("other is a full backup");
    must_eq(tool_run("xbackup", "--restore", "other b1 r"), 1);
    ck_says("a backup is missing between other");
    must_eq(tool_run("xbackup", "--restore", "b0 " ENV_DIR " r"), 5);
    ck_says("an environment and no backup");
    must_eq(tool_run("xbackup", "--restore", "b0 b1 b1 r"), 1);
    must_eq(tool_run("xbackup", "--restore", "b0"), 2);
    must(!file_exists("r"));
    must_eq(mkdir("r", 0777), 0);
    file_write("r/mine", 0, "x", 1);
    must_eq(tool_run("xbackup", "--restore", "b0 b1 r"), 1);
    ck_says("r: holds mine already");
    must_eq(unlink("r/mine"), 0);
    must_eq(tool_run("xbackup", "--restore", "b0 b1 r"), 0);
    must_eq(tool_run("xbackup", "--restore", "b0 b1 r"), 1);
    must_eq(tool_run("xbackup", "--verify", "b2 b3"), 0);
    must_eq(tool_run("xbackup", "--verify", "b0 b3"), 1);
}
END_TEST

static void
another_environment(void *arg)
{
    struct xac_env *env = xac_open("env2", NULL);

    (void)arg;
    must(env != NULL);
    must(xac_mmap_in(env, "env2/f", 4 * env_page()) != MAP_FAILED);
    must_eq(xac_backup_since_in(env, "c", "b0"), XAC_EFOREIGN);
    must_ok(xac_backup_in(env, "c0"));
    must_ok(xac_backup_since_in(env, "c1", "c0"));
    must_ok(xac_close(env));
}

START_TEST(base_must_be_one_of_this_environment)
{
    uint64_t *x = make_chain(1);

    must_refuse(xBackupSince(NULL, "b0"), EINVAL);
    must_refuse(xBackupSince("c", NULL), EINVAL);
    must_refuse(xBackupSince("c", ""), EINVAL);
    must_refuse(xBackupSince("c", "none"), ENOENT);
    must_refuse(xBackupSince("c", ENV_DIR), XAC_ENOTENV);
    must_refuse(xBackupSince("b1", "b0"), EEXIST);
    must_ok(xbegin());
    must_refuse(xBackupSince("c", "b0"), XAC_EINTXN);
    must_rc(xend(), COMMITTED);
    must(!file_exists("c"));
    proc_run(another_environment, NULL);
    must(!file_exists("c"));
    must_eq(tool_run("xbackup", "--restore", "b0 c1 r"), 1);
    ck_says("the backup of another environment than b0");
    /* One that has been moved is the same; one that has been recovered is none. */
    must_eq(mkdir("far", 0777), 0);
    must_eq(rename("b1", "far/b"), 0);
    env_put(x, 7);
    must_ok(xBackupSince("b2", "far/b"));
    must_eq(tool_run("xbackup", "--restore", "b0 far/b b2 r"), 0);
    must_eq(tool_run("xbackup", "--restore", "b0 far/b r1"), 0);
    /* What was restored stands for its last increment. */
    must_eq(tool_run("xbackup", "--restore --recover", "r1 b2 r2"), 0);
    must_eq(file_u64("r2/xac-outside/1-input.db", 0), 7);
    must_eq(link("b0/xac.manifest", "list"), 0);
    must_eq(tool_run("xrecover", "", "b0"), 0);
    must(!file_exists("b0/xac.manifest"));
    must_refuse(xBackupSince("c", "b0"), XAC_ENOTENV);
    /* As if recovery had died before it took the list away, or had been that of a library that knows of none. */
    must_eq(link("list", "b0/xac.manifest"), 0);
    must_refuse(xBackupSince("c", "b0"), XAC_ENOTENV);
    must(strstr(xLastError(), "has been recovered") != NULL);
    env_detach();
}
END_TEST

/* An increment is no environment, for any tool or call. */
START_TEST(increment_is_no_environment)
{
    (void)make_chain(1);
    env_detach();
    must_refuse(xRecover("b1"), XAC_ENOTENV);
    must_refuse(xInit("b1", DURABLE), XAC_ENOTENV);
    must_eq(tool_run("xrecover", "", "b1"), 5);
    ck_says("an increment of a backup");
    must_eq(tool_run("xbackup", "", "b1 c"), 5);
    must(!file_exists("b1/xac.master"));
    must(!file_exists("b1/xac.backup"));
}
END_TEST

START_TEST(nondurable_and_without_images_are_refused)
{
    (void)env_attach(NONDURABLE, 4);
    must_refuse(xBackupSince("b", "b0"), ENOTSUP);
    env_detach();
}
END_TEST

/* ---- Damage ----------------------------------------------------------------------- */

/* flip -- one bit of a file. */
static void
flip(const char *path, uint64_t offset)
{
    uint8_t byte;

    file_read(path, offset, &byte, 1);
    byte ^= 16;
    file_write(path, offset, &byte, 1);
}

/* must_find -- restore and verify name file and offset. */
static void
must_find(const char *words)
{
    must_eq(tool_run("xbackup", "--verify", "b0 b1 b2"), 3);
    ck_says(words);
    must_eq(tool_run("xbackup", "--restore", "b0 b1 b2 r"), 3);
    ck_says(words);
    must(!file_exists("r/xac.master"));
    if (file_exists("r")) {
        must(file_exists("r/xac.unfinished"));
        must_eq(tool_run("xbackup", "--verify", "r"), 5);
        ck_says("not finished");
        must_eq(tool_run("xrecover", "", "r"), 5);
        ck_says("not finished");
    }
    must_eq(system("rm -rf r"), 0);
}

START_TEST(damage_is_named)
{
    uint64_t *x = make_chain(1), length;
    char words[100];

    env_put(env_cell(x, 5), 9);
    env_put(env_cell(x, 3), 9);
    must_ok(xBackupSince("b2", "b1"));
    env_detach();
    must_eq(tool_run("xbackup", "--verify", "b0 b1 b2"), 0);

    flip("b2/xac.changed", env_page() + 77);
    (void)snprintf(words, sizeof words, "b2/xac.changed: offset %zu: checksum of page 5",
                   env_page());
    must_find(words);
    flip("b2/xac.changed", env_page() + 77);

    flip("b0/xac-outside/1-input.db", 3);
    must_find("b0/xac-outside/1-input.db: offset 0: checksum of page 0");
    flip("b0/xac-outside/1-input.db", 3);

    flip("b2/xac.pages", 40);
    must_find("xac.");
    flip("b2/xac.pages", 40);

    flip("b2/xac.manifest", 300);
    must_find("b2/xac.manifest: offset 0: checksum of the head");
    flip("b2/xac.manifest", 300);
    flip("b2/xac.manifest", 1030);
    must_find("b2/xac.manifest: offset 512: checksum of table and runs");
    flip("b2/xac.manifest", 1030);

    /* Longer than any memory: the head is looked at first. */
    length = file_size("b2/xac.manifest");
    must_eq(truncate("b2/xac.manifest", (off_t)1 << 40), 0);
    must_find("b2/xac.manifest: offset 120: another length than its parts have");
    must_eq(truncate("b2/xac.manifest", (off_t)length), 0);

    must_eq(truncate("b2/xac.changed", (off_t)env_page()), 0);
    must_find(words);
    must_eq(unlink("b2/xac.changed"), 0);
    must_find("b2/xac.changed: open");
}
END_TEST

/* The log of an increment, and the checksums of a base that an increment is made of. */
START_TEST(damaged_log_and_list_are_named)
{
    uint64_t *x = make_chain(1);
    const struct dirent *e;
    char path[300] = "", segment[280] = "";
    DIR *d = opendir("b1");

    must(d != NULL);
    while ((e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, "xac-log.", 8) == 0)
            (void)snprintf(segment, sizeof segment, "%s", e->d_name);
    }
    (void)closedir(d);
    (void)snprintf(path, sizeof path, "b0/%s", "xac.pages");
    flip(path, 0);
    must_refuse(xBackupSince("c", "b0"), XAC_EDAMAGED);
    must(strstr(xLastError(), "b0/xac.pages: offset 0") != NULL);
    must(!file_exists("c/xac.manifest"));
    must(file_exists("c/xac.unfinished"));
    must_refuse(xBackupSince("d", "c"), XAC_ENOTENV);
    flip(path, 0);
    env_put(x, 1);
    env_detach();
    (void)snprintf(path, sizeof path, "b1/%s", segment);
    must_eq(tool_run("xbackup", "--restore", "b0 b1 r"), 0);
    must_eq(unlink(path), 0);
    must_eq(tool_run("xbackup", "--verify", "b0 b1"), 3);
    ck_says(path);
    must_eq(tool_run("xbackup", "--restore", "b0 b1 r2"), 3);
    must(!file_exists("r2/xac.master"));
}
END_TEST

/* ---- Killed ----------------------------------------------------------------------- */

static void
increment_to_k(void *arg)
{
    (void)arg;
    env_init(DURABLE);
    must_ok(xBackupSince("k", "b0"));
    for (;;)
        pause();
}

START_TEST(killed_increment_is_whole_or_none)
{
    uint64_t rng = env_seed();
    unsigned n_whole = 0, n_none = 0;
    pid_t pids[N_WRITERS];

    make_world(BY_LOG);
    start_writers(pids);
    backup(0, ENV_DIR);
    for (unsigned i = 0; i < 16; i++) {
        pid_t pid = proc_spawn(increment_to_k, NULL);

        proc_sleep_us(rnd_below(&rng, i < 8 ? 40000 : 400000));
        proc_kill(pid);
        if (file_exists("k/xac.manifest")) {
            must(!file_exists("k/xac.unfinished"));
            must_eq(tool_run("xbackup", "--restore --recover", "b0 k r"), 0);
            (void)must_be_state("r");
            n_whole++;
        } else {
            if (file_exists("k"))
                must_eq(tool_run("xbackup", "--verify", "b0 k"), 5);
            n_none++;
        }
        must_eq(system("rm -rf k r"), 0);
    }
    printf("whole %u, none %u\n", n_whole, n_none);
    stop_writers(pids);
}
END_TEST

/* ---- main ------------------------------------------------------------------------- */

int
main(void)
{
    Suite *s = suite_create("increments");
    TCase *tc = env_tcase(s, "increments", 300);

    tcase_add_loop_test(tc, chain_restores_to_each_moment, 0, KINDS);
    tcase_add_test(tc, files_come_grow_and_go);
    tcase_add_test(tc, chain_must_be_whole_and_in_order);
    tcase_add_test(tc, base_must_be_one_of_this_environment);
    tcase_add_test(tc, increment_is_no_environment);
    tcase_add_test(tc, nondurable_and_without_images_are_refused);
    tcase_add_test(tc, damage_is_named);
    tcase_add_test(tc, damaged_log_and_list_are_named);
    tcase_add_test(tc, killed_increment_is_whole_or_none);
    return env_main(s);
}
