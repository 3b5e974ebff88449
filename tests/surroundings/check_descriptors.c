/* SPDX-License-Identifier: MIT */
/*
 * check_descriptors.c -- programs that close descriptors which are not theirs.
 *
 * GOAL    Whatever gets the numbers of the library's descriptors keeps every byte; commits go
 *         on, or fail with an error; what was acknowledged is there; others notice nothing.
 * METHOD  close_range(2) over all but the standard ones, then as many files of the program's
 *         own as there were numbers, at these very numbers.
 */
#include <config.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"

#define PAGES     32
#define NUMBERS   1024
#define OWN_BYTES 4096

static const char *const engines[] = {"sigsegv", "uffd", "scan"};

#define N_ENGINES 3

/* ---- Files of the program -------------------------------------------------------------- */

static bool was_open[NUMBERS];

static void
own_name(char *name, size_t size, int fd)
{
    (void)snprintf(name, size, "own-%d", fd);
}

/* lose_all -- close everything; if asked, every number that was in use is a file of ours. */
static void
lose_all(bool is_reused)
{
    char bytes[OWN_BYTES], name[32];

    memset(bytes, 'u', sizeof bytes);
    for (int fd = 3; fd < NUMBERS; fd++)
        was_open[fd] = fcntl(fd, F_GETFD) >= 0;
    must(close_range(3, ~0u, 0) == 0);
    for (int fd = 3; fd < NUMBERS && is_reused; fd++) {
        int got;

        if (!was_open[fd])
            continue;
        own_name(name, sizeof name, fd);
        got = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
        must(got >= 0 && write(got, bytes, sizeof bytes) == (ssize_t)sizeof bytes);
        if (got != fd)
            must(dup2(got, fd) == fd && close(got) == 0);
    }
}

/* own_files_are_whole -- byte for byte, and open still. */
static void
own_files_are_whole(bool is_reused)
{
    char name[32];

    for (int fd = 3; fd < NUMBERS && is_reused; fd++) {
        char bytes[OWN_BYTES + 1];
        struct stat st;

        if (!was_open[fd])
            continue;
        own_name(name, sizeof name, fd);
        must(fstat(fd, &st) == 0 && st.st_size == OWN_BYTES);
        must(pread(fd, bytes, sizeof bytes, 0) == OWN_BYTES);
        for (int i = 0; i < OWN_BYTES; i++)
            must(bytes[i] == 'u');
        must(unlink(name) == 0);
    }
}

/* ---- One program ------------------------------------------------------------------------ */

struct how {
    const char *engine;
    int flags;
    bool is_reused;
    bool is_declared;
    bool has_other;
    _Atomic uint64_t acknowledged, go;
};

/* put -- one transaction; ret what xend() says. */
static int
put(uint64_t *base, uint64_t value)
{
    int rc = xbegin();

    if (rc != 0)
        return rc;
    for (uint64_t p = 0; p < PAGES; p += 5) {
        must_ok(setPageAccess(env_cell(base, p), XAC_READ_WRITE));
        *env_cell(base, p) = value;
    }
    return xend();
}

static void
work(void *arg)
{
    struct how *how = arg;
    uint64_t *base;

    if (how->has_other)
        proc_await(&how->go, 1, 30);
    must(setenv("XAC_ENGINE", how->engine, 1) == 0);
    if (how->is_declared)
        env_checking = XAC_CHECKING_TRUSTED;
    base = env_attach(how->flags, PAGES);
    for (uint64_t n = 1; n <= 20; n++) {
        must_rc(put(base, n), XAC_COMMITTED);
        word_store(&how->acknowledged, n);
    }
    for (int round = 0; round < 3; round++) {
        lose_all(how->is_reused);
        for (uint64_t n = 1; n <= 20; n++) {
            uint64_t value = word_load(&how->acknowledged) + 1;

            must_rc(put(base, value), XAC_COMMITTED);
            word_store(&how->acknowledged, value);
            if (n == 10)
                must_ok(xCheckpoint());
        }
        must_ok(xbeginQuery());
        for (uint64_t p = 0; p < PAGES; p++)
            must_eq(*env_cell(base, p),
                    p % 5 == 0 ? word_load(&how->acknowledged) : (uint64_t)0);
        must_ok(xendQuery());
    }
    if (!how->has_other)
        env_detach();
    own_files_are_whole(how->is_reused);
}

/* look -- a newcomer sees what has been acknowledged. */
static void
look(void *arg)
{
    const struct how *how = arg;
    uint64_t *base = env_attach(how->flags, PAGES);

    for (uint64_t p = 0; p < PAGES; p += 5)
        must_eq(env_get(env_cell(base, p)), word_load(&how->acknowledged));
    env_detach();
}

START_TEST(commits_go_on_after_all_descriptors_were_closed)
{
    struct how *how = proc_shared(sizeof *how);

    how->engine = engines[_i % N_ENGINES];
    how->flags = _i / N_ENGINES % 2 == 0 ? DURABLE : NONDURABLE;
    how->is_reused = _i / N_ENGINES / 2 % 2 == 0;
    how->is_declared = _i / N_ENGINES / 4 == 1;
    proc_run(work, how);
    must_eq(word_load(&how->acknowledged), 80);
    proc_run(look, how);
}
END_TEST

/* Another participant sees every commit, goes on when the first one dies, and is not
   poisoned. */
START_TEST(others_notice_nothing)
{
    struct how *how = proc_shared(sizeof *how);
    uint64_t *base;
    pid_t pid;

    how->engine = engines[_i % N_ENGINES];
    how->flags = _i / N_ENGINES == 0 ? DURABLE : NONDURABLE;
    how->is_reused = true;
    how->has_other = true;
    pid = proc_spawn(work, how);
    base = env_attach(how->flags, PAGES);
    word_store(&how->go, 1);
    proc_join(pid);
    must_eq(word_load(&how->acknowledged), 80);
    must_eq(env_get(base), 80);
    env_put(base, 81);
    must_ok(xCheckpoint());
    env_detach();
    must_eq(file_u64(ENV_FILE, 0), 81);
}
END_TEST

static void
lose_inside(void *arg)
{
    struct how *how = arg;
    uint64_t *base;

    must(setenv("XAC_ENGINE", how->engine, 1) == 0);
    base = env_attach(how->flags, PAGES);
    for (uint64_t p = 0; p < PAGES; p++)
        env_put(env_cell(base, p), p);
    must_ok(xbegin());
    for (uint64_t p = 0; p < PAGES; p += 2) {
        must_eq(*env_cell(base, p), p);
        if (p % 4 == 0)
            *env_cell(base, p) = 1000 + p;
    }
    lose_all(true);
    for (uint64_t p = 0; p < PAGES; p++) {
        must_eq(*env_cell(base, p), p % 4 == 0 ? 1000 + p : p);
        if (p % 4 == 1 || p % 8 == 2) /* new ones, and some that had been loaded */
            *env_cell(base, p) = 1000 + p;
    }
    must_rc(xend(), XAC_COMMITTED);
    must_ok(xbegin());
    for (uint64_t p = 0; p < PAGES; p++)
        *env_cell(base, p) = 5;
    must_ok(xAbort());
    must_rc(xend(), XAC_ABORTED);
    must_ok(xbeginQuery());
    for (uint64_t p = 0; p < PAGES; p++)
        must_eq(*env_cell(base, p), p % 4 <= 1 || p % 8 == 2 ? 1000 + p : p);
    must_ok(xendQuery());
    env_detach();
    own_files_are_whole(true);
    for (uint64_t p = 0; p < PAGES; p++)
        must_eq(file_u64(ENV_FILE, p * env_page()),
                p % 4 <= 1 || p % 8 == 2 ? 1000 + p : p);
}

/* What has been stored is kept, what has been loaded is still watched for stores. */
START_TEST(transactions_go_on_after_all_descriptors_were_closed)
{
    struct how how = {.engine = engines[_i % N_ENGINES],
                      .flags = _i / N_ENGINES == 0 ? DURABLE : NONDURABLE};

    proc_run(lose_inside, &how);
}
END_TEST

/* ---- What cannot be opened again --------------------------------------------------------- */

static void
lose_the_directory(void *arg)
{
    uint64_t *base = env_attach(DURABLE, PAGES);
    int rc;

    (void)arg;
    env_put(base, 1);
    must(rename(ENV_DIR, "elsewhere") == 0);
    lose_all(true);
    proc_sleep_us(100000);
    rc = put(base, 2);
    must(rc == XAC_EDESCRIPTOR || rc == XAC_ENOTDURABLE);
    must_refuse(xbegin(), XAC_EDESCRIPTOR);
    must_refuse(xCheckpoint(), XAC_EDESCRIPTOR);
    must_refuse(xShutdown(), XAC_EDESCRIPTOR);
    own_files_are_whole(true);
    must_rc(xbegin(), XAC_ENOINIT);
}

/* The directory has gone: an error, and no abort; nothing acknowledged is lost. */
START_TEST(shutdown_after_the_directory_was_moved)
{
    uint64_t *base;

    proc_run(lose_the_directory, NULL);
    must(rename("elsewhere", ENV_DIR) == 0);
    base = env_attach(DURABLE, PAGES);
    must(env_get(base) >= 1);
    env_detach();
}
END_TEST

/* newcomer -- finds nobody attached, recovers, commits, and goes. */
static void
newcomer(void *arg)
{
    uint64_t *base = env_attach(DURABLE, PAGES);

    (void)arg;
    must_eq(env_get(base), 1);
    env_put(base, 100);
    env_detach();
}

static void
go_on_when_told(void *arg)
{
    _Atomic uint64_t *turn = arg;
    uint64_t *base = env_attach(DURABLE, PAGES);

    env_put(base, 1);
    lose_all(false);
    word_store(turn, 1);
    proc_await(turn, 2, 30);
    proc_sleep_us(100000); /* a begin looks at the descriptors 50 times a second */
    for (uint64_t n = 2; n < 5; n++) {
        int rc = put(base, n);

        must(rc == XAC_EDESCRIPTOR || rc == XAC_ENOTDURABLE || rc == XAC_ABORTED);
    }
    must_refuse(xbegin(), XAC_EDESCRIPTOR);
    must_refuse(xShutdown(), XAC_EDESCRIPTOR);
}

/* Who has lost its byte may have been taken for gone, if the lock file does not lead to its
   region any more: then it must not write. */
START_TEST(who_was_taken_for_gone_writes_nothing)
{
    _Atomic uint64_t *turn = proc_shared(sizeof *turn);
    pid_t pid = proc_spawn(go_on_when_told, turn);
    uint64_t *base;

    proc_await(turn, 1, 30);
    must(truncate(ENV_DIR "/xac.lock", 0) == 0);
    proc_run(newcomer, NULL);
    word_store(turn, 2);
    proc_join(pid);
    base = env_attach(DURABLE, PAGES);
    must_eq(env_get(base), 100);
    env_detach();
}
END_TEST

static Suite *
descriptors_suite(void)
{
    Suite *s = suite_create("descriptors");
    TCase *tc = env_tcase(s, "closed", 120);

    tcase_add_loop_test(tc, commits_go_on_after_all_descriptors_were_closed, 0,
                        N_ENGINES * 8);
    tcase_add_loop_test(tc, others_notice_nothing, 0, N_ENGINES * 2);
    tcase_add_loop_test(tc, transactions_go_on_after_all_descriptors_were_closed, 0,
                        N_ENGINES * 2);
    tc = env_tcase(s, "lost", 60);
    tcase_add_test(tc, shutdown_after_the_directory_was_moved);
    tcase_add_test(tc, who_was_taken_for_gone_writes_nothing);
    return s;
}

int
main(void)
{
    return env_main(descriptors_suite());
}
