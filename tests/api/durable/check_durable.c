/* SPDX-License-Identifier: MIT */
/*
 * check_durable.c -- what was committed is there after a crash.
 *
 * GOAL    DURABLE: whatever was told COMMITTED survives the death of all processes, with
 *         any checksum, size of log, buffer and transaction, before, during and after
 *         checkpoints, and without the log files that xArchive() names.
 * METHOD  a child commits according to a plan and vanishes or is killed; the parent
 *         recovers, by xInit() or xRecover(), and compares with the plan.  Crashes of the
 *         machine are simulated in the unit tests; here only processes die.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac_env.h>

#include "env.h"

#define N_PAGES 64

/* What a child does before it vanishes. */
struct plan {
    uint64_t log_segment; /* options; 0: the default */
    uint64_t log_buffer;
    uint64_t checkpoint_bytes;
    uint64_t checksum;
    uint64_t first, last;       /* transactions to commit, [first, last) */
    uint64_t bytes;             /* that each changes */
    uint64_t checkpoint_every;  /* explicit ones; 0: none */
    _Atomic uint64_t committed; /* transactions told COMMITTED */
    _Atomic uint64_t log_bytes; /* as xStats() says in the end */
    _Atomic uint64_t checkpoints;
};

/*
 * Transaction i fills `bytes` bytes with values made from i, from a place that depends on
 * i; a model in plain memory does the same.
 */
static void
apply(unsigned char *x, uint64_t i, uint64_t bytes)
{
    size_t size = N_PAGES * env_page();
    size_t at = (size_t)(i * 2654435761u) % (size - bytes);

    for (size_t k = 0; k < bytes; k++)
        x[at + k] = (unsigned char)(i * 7 + k);
    memcpy(x, &i, sizeof i);
}

static void
commit_plan(void *arg)
{
    struct plan *plan = arg;
    struct xac_stats s;
    unsigned char *x;

    if (plan->log_segment != 0)
        must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, plan->log_segment));
    if (plan->log_buffer != 0)
        must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, plan->log_buffer));
    if (plan->checkpoint_bytes != 0)
        must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, plan->checkpoint_bytes));
    must_ok(xSetOption(XAC_OPT_CHECKSUM, plan->checksum));
    x = env_attach(DURABLE, N_PAGES);
    for (uint64_t i = plan->first; i < plan->last; i++) {
        must_ok(xbegin());
        apply(x, i, plan->bytes);
        must_rc(xend(), COMMITTED);
        word_store(&plan->committed, i);
        if (plan->checkpoint_every != 0 && i % plan->checkpoint_every == 0)
            must_ok(xCheckpoint());
    }
    must_ok(xStats(&s, sizeof s));
    word_store(&plan->log_bytes, s.log_bytes);
    word_store(&plan->checkpoints, s.checkpoints);
}

static struct plan *
make_plan(struct plan wanted)
{
    struct plan *plan = proc_shared(sizeof *plan);

    *plan = wanted;
    return plan;
}

/* The file is as after transactions [1, n) of the plan. */
static void
file_must_be(uint64_t n, uint64_t bytes)
{
    size_t size = N_PAGES * env_page();
    unsigned char *model = calloc(1, size), *found = malloc(size);

    must(model != NULL && found != NULL);
    for (uint64_t i = 1; i < n; i++)
        apply(model, i, bytes);
    file_read(ENV_FILE, 0, found, size);
    for (size_t i = 0; i < size; i++) {
        if (model[i] != found[i])
            env_fail(__FILE__, __LINE__,
                     "after %" PRIu64 " transactions: byte %zu is %d, not %d", n - 1, i,
                     found[i], model[i]);
    }
    free(model);
    free(found);
}

/* Recover by xInit(), look through the segment too, and shut down. */
static void
reopen(uint64_t n)
{
    uint64_t *x = env_attach(DURABLE, N_PAGES);

    must_eq(env_get(x), n - 1);
    env_detach();
}

/* ---- the plain case ---------------------------------------------------------------------- */

START_TEST(init_recovers_by_itself)
{
    struct plan *plan = make_plan((struct plan){.first = 1, .last = 51, .bytes = 300});

    proc_run(commit_plan, plan);
    reopen(51);
    file_must_be(51, 300);
    reopen(51);
}
END_TEST

START_TEST(recover_alone_completes_the_file)
{
    struct plan *plan = make_plan((struct plan){.first = 1, .last = 51, .bytes = 300});

    proc_run(commit_plan, plan);
    must_ok(xRecover(ENV_DIR));
    file_must_be(51, 300);
    must_ok(xRecover(ENV_DIR));
    file_must_be(51, 300);
    reopen(51);
    file_must_be(51, 300);
}
END_TEST

/* Crash, go on, crash, go on: each run starts where the last one had got. */
START_TEST(crashes_in_a_row)
{
    for (uint64_t run = 0; run < 10; run++) {
        proc_run(commit_plan, make_plan((struct plan){.first = 1 + 20 * run,
                                                      .last = 21 + 20 * run,
                                                      .log_segment = 65536,
                                                      .bytes = 500}));
        if (run % 3 == 2) {
            must_ok(xRecover(ENV_DIR));
            file_must_be(21 + 20 * run, 500);
        }
    }
    reopen(201);
    file_must_be(201, 500);
}
END_TEST

START_TEST(killed_at_a_random_moment)
{
    uint64_t rnd = env_seed(), next = 1;

    for (int round = 0; round < 10; round++) {
        struct plan *plan = make_plan((struct plan){.first = next,
                                                    .last = UINT64_MAX,
                                                    .log_segment = 65536,
                                                    .checkpoint_bytes = 200000,
                                                    .checkpoint_every = 40,
                                                    .bytes = 900});
        pid_t child = proc_spawn(commit_plan, plan);
        uint64_t found, acknowledged;

        proc_await(&plan->committed, next, 20);
        proc_sleep_us(rnd_below(&rnd, 60000));
        proc_kill(child);
        acknowledged = word_load(&plan->committed);
        must_ok(xRecover(ENV_DIR));
        found = file_u64(ENV_FILE, 0);
        must(found == acknowledged || found == acknowledged + 1);
        file_must_be(found + 1, 900);
        next = found + 1;
    }
    printf("killed_at_a_random_moment: %" PRIu64 " transactions\n", next - 1);
}
END_TEST

/* ---- sizes and checksums -------------------------------------------------------------------- */

static const struct {
    const char *what;
    struct plan plan;
} shapes[] = {
    {"md5", {.checksum = XAC_CHECKSUM_MD5, .first = 1, .last = 101, .bytes = 1000}},
    {"sha1", {.checksum = XAC_CHECKSUM_SHA1, .first = 1, .last = 101, .bytes = 1000}},
    {"small segments", {.log_segment = 65536, .first = 1, .last = 301, .bytes = 3000}},
    {"small segments and buffer",
     {.log_segment = 65536, .log_buffer = 65536, .first = 1, .last = 301, .bytes = 5000}},
    {"automatic checkpoints",
     {.log_segment = 65536,
      .checkpoint_bytes = 40000,
      .first = 1,
      .last = 401,
      .bytes = 3000}},
    {"explicit checkpoints",
     {.log_segment = 65536,
      .checkpoint_every = 17,
      .first = 1,
      .last = 301,
      .bytes = 700}},
    {"transactions larger than the buffer",
     {.log_buffer = 65536, .first = 1, .last = 31, .bytes = 200000}},
    {"large transactions and checkpoints",
     {.log_segment = 65536,
      .log_buffer = 65536,
      .checkpoint_every = 7,
      .checksum = XAC_CHECKSUM_SHA1,
      .first = 1,
      .last = 31,
      .bytes = 150000}},
    {"one byte", {.first = 1, .last = 201, .bytes = 1}},
};

START_TEST(all_shapes_survive)
{
    struct plan *plan = make_plan(shapes[_i].plan);

    proc_run(commit_plan, plan);
    printf("%s: %" PRIu64 " log bytes, %" PRIu64 " checkpoints\n", shapes[_i].what,
           word_load(&plan->log_bytes), word_load(&plan->checkpoints));
    if (plan->checkpoint_bytes != 0 || plan->checkpoint_every != 0)
        must(word_load(&plan->checkpoints) >= 2);
    must_ok(xRecover(ENV_DIR));
    file_must_be(plan->last, plan->bytes);
    reopen(plan->last);
    file_must_be(plan->last, plan->bytes);
}
END_TEST

/* near_byte -- byte i of transaction n; the log cannot make noise shorter. */
static unsigned char
near_byte(uint64_t n, size_t i)
{
    uint64_t state = n * 1000000 + i / 8;

    return (unsigned char)(rnd_next(&state) >> (i % 8 * 8)) | 1;
}

/*
 * Blocks of every size about a quarter of the log buffer, where transactions begin to be
 * large: four pages, stored for the first time, the last one in part.
 */
static void
commit_near_the_limit(void *arg)
{
    const uint64_t all = 31 * 4;
    unsigned char *x;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 65536));
    must_ok(xSetOption(XAC_OPT_CHECKSUM, XAC_CHECKSUM_SHA1));
    x = env_attach(DURABLE, all);
    for (uint64_t i = 0; i < 31; i++) {
        size_t n = 3 * env_page() + 3792 + 8 * i;

        must_ok(xbegin());
        for (size_t k = 0; k < n; k++)
            x[4 * i * env_page() + k] = near_byte(i, k);
        must_rc(xend(), COMMITTED);
    }
}

START_TEST(sizes_about_a_quarter_of_the_buffer)
{
    proc_run(commit_near_the_limit, NULL);
    must_ok(xRecover(ENV_DIR));
    for (uint64_t i = 0; i < 31; i++) {
        size_t n = 3 * env_page() + 3792 + 8 * i;
        unsigned char ends[2];

        file_read(ENV_FILE, 4 * i * env_page() + n - 1, ends, 2);
        must_eq(ends[0], near_byte(i, n - 1));
        must_eq(ends[1], 0);
    }
}
END_TEST

/* The checksum may change from one transaction to the next. */
static void
change_checksums(void *arg)
{
    unsigned char *x;

    (void)arg;
    x = env_attach(DURABLE, N_PAGES);
    for (uint64_t i = 1; i < 31; i++) {
        must_ok(xSetOption(XAC_OPT_CHECKSUM, i % 3));
        must_ok(xbegin());
        apply(x, i, 100);
        must_rc(xend(), COMMITTED);
    }
}

START_TEST(checksums_may_be_mixed)
{
    proc_run(change_checksums, NULL);
    must_ok(xRecover(ENV_DIR));
    file_must_be(31, 100);
}
END_TEST

/* Small changes must not cost whole pages of log. */
START_TEST(small_changes_make_a_small_log)
{
    struct plan *plan = make_plan((struct plan){.first = 1, .last = 1001, .bytes = 16});

    proc_run(commit_plan, plan);
    printf("16 bytes per transaction: %" PRIu64 " log bytes per transaction\n",
           word_load(&plan->log_bytes) / 1000);
    must(word_load(&plan->log_bytes) < 1000 * 256 + N_PAGES * (env_page() + 256));
    must_ok(xRecover(ENV_DIR));
    file_must_be(1001, 16);
}
END_TEST

/* ---- many files -------------------------------------------------------------------------------- */

#define N_FILES 40

static void
commit_to_many_files(void *arg)
{
    uint64_t *x[N_FILES];
    char name[64];

    (void)arg;
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    must_ok(xInit(ENV_DIR, DURABLE));
    for (int i = 0; i < N_FILES; i++) {
        snprintf(name, sizeof name, i % 2 ? "many-%d.db" : "./many-%d.db", i);
        x[i] = xMmap(name, 2 * env_page());
        must(x[i] != MAP_FAILED);
    }
    for (uint64_t round = 1; round <= 5; round++) {
        must_ok(xbegin());
        for (uint64_t i = 0; i < N_FILES; i++)
            x[i][i] = round * 100 + i;
        must_rc(xend(), COMMITTED);
        if (round == 3) {
            must_ok(xCheckpoint());
            must_ok(xMunmap("many-7.db"));
            x[7] = xMmap("many-7.db", 3 * env_page());
            must(x[7] != MAP_FAILED);
        }
    }
}

/* Relative names mean the directory of then: recovery finds the files from elsewhere. */
START_TEST(many_files_are_recovered)
{
    char here[4096], env_path[sizeof here + 8], name[64];

    must(getcwd(here, sizeof here) != NULL);
    snprintf(env_path, sizeof env_path, "%s/%s", here, ENV_DIR);
    proc_run(commit_to_many_files, NULL);
    must(chdir("/") == 0);
    must_ok(xRecover(env_path));
    must(chdir(here) == 0);
    for (uint64_t i = 0; i < N_FILES; i++) {
        snprintf(name, sizeof name, "many-%d.db", (int)i);
        must_eq(file_u64(name, 8 * i), 500 + i);
    }
    must_eq(file_size("many-7.db"), 3 * env_page());
}
END_TEST

/* ---- archive -------------------------------------------------------------------------------------- */

static size_t
count_logs(void)
{
    return file_count(ENV_DIR, "xac-log.");
}

/* Commit, checkpoint, commit more, delete what xArchive() names, commit more, vanish. */
static void
commit_and_archive(void *arg)
{
    _Atomic uint64_t *n_names = arg;
    unsigned char *x;
    uint64_t i = 1;
    char **names;
    size_t count;

    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    x = env_attach(DURABLE, N_PAGES);
    for (int part = 0; part < 4; part++) {
        for (int k = 0; k < 60; k++, i++) {
            must_ok(xbegin());
            apply(x, i, 4000);
            must_rc(xend(), COMMITTED);
        }
        if (part == 1)
            must_ok(xCheckpoint());
        if (part == 0 || part == 2) {
            must_ok(xArchive(&names, &count));
            must((names == NULL) == (count == 0));
            for (size_t n = 0; n < count; n++) {
                must(strstr(names[n], "xac-log.") != NULL);
                must(unlink(names[n]) == 0);
            }
            if (part == 2)
                word_store(n_names, count);
            free(names);
        }
    }
}

START_TEST(archived_logs_are_not_needed)
{
    _Atomic uint64_t *n_names = proc_shared(sizeof *n_names);

    proc_run(commit_and_archive, n_names);
    printf("archived_logs_are_not_needed: %" PRIu64 " named and deleted, %zu left\n",
           word_load(n_names), count_logs());
    must_ok(xRecover(ENV_DIR));
    file_must_be(241, 4000);
    reopen(241);
}
END_TEST

START_TEST(fresh_environment_has_nothing_to_archive)
{
    char **names = (char **)1;
    size_t count = 99;

    (void)env_attach(DURABLE, 1);
    must_ok(xArchive(&names, &count));
    must(names == NULL);
    must_eq(count, 0);
    env_detach();
}
END_TEST

/* However long it runs, checkpoints keep the number of log files that are needed down. */
static void
count_needed_logs(void *arg)
{
    struct plan plan = {.log_segment = 65536,
                        .checkpoint_bytes = 200000,
                        .first = 1,
                        .last = 1501,
                        .bytes = 4000};
    size_t count;
    char **names;

    commit_plan(&plan);
    must_ok(xArchive(&names, &count));
    free(names);
    *(_Atomic uint64_t *)arg = count_logs() - count;
}

START_TEST(needed_logs_do_not_pile_up)
{
    _Atomic uint64_t *n_logs = proc_shared(sizeof *n_logs);

    proc_run(count_needed_logs, n_logs);
    printf("needed_logs_do_not_pile_up: %" PRIu64 " of 64 KiB after 6 MB of log\n",
           word_load(n_logs));
    must(word_load(n_logs) < 20);
    must_ok(xRecover(ENV_DIR));
    file_must_be(1501, 4000);
}
END_TEST

/* ---- what crash leaves of others -------------------------------------------------------------------- */

/* One transaction open, one aborted: nothing of either is there later. */
static void
leave_work_undone(void *arg)
{
    uint64_t *x = env_attach(DURABLE, N_PAGES);
    size_t page = env_page() / sizeof *x;

    (void)arg;
    env_put(&x[0], 1);
    must_ok(xbegin());
    x[page] = 2;
    must_ok(xAbort());
    must_rc(xend(), ABORTED);
    must_ok(xCheckpoint());
    must_ok(xbegin());
    x[0] = 3;
    x[2 * page] = 3;
    raise(SIGKILL);
}

START_TEST(nothing_uncommitted_survives)
{
    int status = proc_wait(proc_spawn(leave_work_undone, NULL));

    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    must_eq(file_u64(ENV_FILE, env_page()), 0);
    must_eq(file_u64(ENV_FILE, 2 * env_page()), 0);
    must_ok(xRecover(ENV_DIR));
    must_eq(file_u64(ENV_FILE, 0), 1);
    must_eq(file_u64(ENV_FILE, env_page()), 0);
    must_eq(file_u64(ENV_FILE, 2 * env_page()), 0);
}
END_TEST

/* A crash in DURABLE mode is made good also if the next run is NONDURABLE. */
START_TEST(nondurable_run_recovers_too)
{
    uint64_t *x;

    proc_run(commit_plan, make_plan((struct plan){.first = 1, .last = 51, .bytes = 300}));
    x = env_attach(NONDURABLE, N_PAGES);
    must_eq(env_get(x), 50);
    env_put(x, 77);
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 77);
    x = env_attach(DURABLE, N_PAGES);
    must_eq(env_get(x), 77);
    env_detach();
}
END_TEST

/* Two recover at once: one does it, the other waits or finds it done. */
static void
open_and_look(void *arg)
{
    uint64_t *x = env_attach(DURABLE, N_PAGES);

    (void)arg;
    must_eq(env_get(x), 200);
    env_detach();
}

START_TEST(many_open_at_once_after_a_crash)
{
    pid_t pid[8];

    proc_run(commit_plan,
             make_plan((struct plan){.first = 1, .last = 201, .bytes = 3000}));
    for (int i = 0; i < 8; i++)
        pid[i] = proc_spawn(open_and_look, NULL);
    for (int i = 0; i < 8; i++)
        proc_join(pid[i]);
    file_must_be(201, 3000);
}
END_TEST

/*
 * The dead processes' shared memory is of no use to anybody: recovery gives it back.  Its
 * name is in the lock file (doc/formats.md).
 */
START_TEST(recovery_gives_shared_memory_back)
{
    char region[4200];

    proc_run(commit_plan, make_plan((struct plan){.first = 1, .last = 51, .bytes = 300}));
    env_region(ENV_DIR, region);
    must(file_exists(region));
    if (_i == 0)
        must_ok(xRecover(ENV_DIR));
    else
        reopen(51);
    must(!file_exists(region));
    file_must_be(51, 300);
}
END_TEST

/* What a recovery has told. */
struct told {
    uint64_t calls, done, total;
};

static void
note_progress(void *arg, uint64_t done, uint64_t total)
{
    struct told *told = arg;

    must(done <= total);
    must(done >= told->done);
    told->calls++;
    told->done = done;
    told->total = total;
}

/* _i: 0 by xInit(), 1 by xac_open(), 2 by xRecover(); 3 nobody asks any more. */
START_TEST(recovery_tells_how_far_it_is)
{
    struct told told = {.calls = 0};
    struct plan *plan = make_plan((struct plan){.first = 1, .last = 201, .bytes = 20000});

    proc_run(commit_plan, plan);
    xSetRecoveryProgress(note_progress, &told);
    if (_i == 3)
        xSetRecoveryProgress(NULL, NULL);
    if (_i == 1) {
        struct xac_env *env = xac_open(ENV_DIR, NULL);

        must(env != NULL);
        must_ok(xac_close(env));
    } else if (_i == 0) {
        reopen(201);
    } else {
        must_ok(xRecover(ENV_DIR));
    }
    if (_i == 3) {
        must_eq(told.calls, 0);
    } else {
        must(told.calls > 1);
        must_eq(told.done, told.total);
        must(told.total >= plan->log_bytes);
    }
    file_must_be(201, 20000);
}
END_TEST

/* Recovery itself is killed, over and over, then completes. */
static void
recover_once(void *arg)
{
    (void)arg;
    must_ok(xRecover(ENV_DIR));
}

START_TEST(recovery_may_be_killed_and_run_again)
{
    uint64_t rnd = env_seed();

    proc_run(commit_plan,
             make_plan((struct plan){
                 .first = 1, .last = 301, .bytes = 20000, .checkpoint_every = 100}));
    for (int i = 0; i < 25; i++) {
        pid_t child = proc_spawn(recover_once, NULL);

        proc_sleep_us(rnd_below(&rnd, 4000));
        proc_kill(child);
    }
    must_ok(xRecover(ENV_DIR));
    file_must_be(301, 20000);
}
END_TEST

static Suite *
durable_suite(void)
{
    Suite *s = suite_create("durable");
    TCase *tc = env_tcase(s, "crash", 60);

    tcase_add_test(tc, init_recovers_by_itself);
    tcase_add_test(tc, recover_alone_completes_the_file);
    tcase_add_test(tc, crashes_in_a_row);
    tcase_add_test(tc, killed_at_a_random_moment);
    tcase_add_test(tc, nothing_uncommitted_survives);
    tcase_add_test(tc, nondurable_run_recovers_too);
    tcase_add_test(tc, many_open_at_once_after_a_crash);
    tcase_add_test(tc, recovery_may_be_killed_and_run_again);
    tcase_add_loop_test(tc, recovery_tells_how_far_it_is, 0, 4);
    tcase_add_loop_test(tc, recovery_gives_shared_memory_back, 0, 2);

    tc = env_tcase(s, "shapes", 60);
    tcase_add_loop_test(tc, all_shapes_survive, 0, sizeof shapes / sizeof *shapes);
    tcase_add_test(tc, sizes_about_a_quarter_of_the_buffer);
    tcase_add_test(tc, checksums_may_be_mixed);
    tcase_add_test(tc, small_changes_make_a_small_log);
    tcase_add_test(tc, many_files_are_recovered);

    tc = env_tcase(s, "archive", 60);
    tcase_add_test(tc, archived_logs_are_not_needed);
    tcase_add_test(tc, fresh_environment_has_nothing_to_archive);
    tcase_add_test(tc, needed_logs_do_not_pile_up);
    return s;
}

int
main(void)
{
    return env_main(durable_suite());
}
