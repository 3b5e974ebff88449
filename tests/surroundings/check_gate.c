/* SPDX-License-Identifier: MIT */
/*
 * check_gate.c -- who takes part, in surroundings that make this hard to tell.
 *
 * GOAL    nobody who is alive is taken for dead, nobody who is dead holds others up, and there
 *         are never two owners: the lock file removed or replaced, other PID and time
 *         namespaces, exec() inside a transaction, locks placed by a process that may only read.
 * METHOD  each test is a mistake of a user; processes see each other through one counter.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"

/* What a test and its child tell each other. */
struct words {
    _Atomic uint64_t ready;
    _Atomic uint64_t go;
};

static struct words *words;

static void
setup(void)
{
    env_setup();
    words = proc_shared(sizeof *words);
}

/* is_skipped -- for what only root may do. */
static bool
is_skipped(const char *what)
{
    if (geteuid() == 0)
        return false;
    printf("skipped: only root may %s\n", what);
    return true;
}

/* ---- The lock file --------------------------------------------------------------------- */

#define STEPS 20

/* work_and_leave -- commit, wait, commit again, leave as one should. */
static void
work_and_leave(void *arg)
{
    uint64_t *x = env_attach(XAC_DURABLE, 4);

    (void)arg;
    for (int i = 0; i < STEPS; i++)
        env_increment(x);
    word_store(&words->ready, 1);
    proc_await(&words->go, 1, 60);
    for (int i = 0; i < STEPS; i++)
        env_increment(x);
    must_ok(xac_checkpoint());
    env_detach();
}

/* must_be_refused -- xInit() and xRecover() find that others are attached. */
static void
must_be_refused(void)
{
    must_refuse(xac_init(ENV_DIR, XAC_DURABLE), XAC_ELOCKLOST);
    must(strstr(xac_last_error(), "end them") != NULL);
    must_refuse(xac_recover(ENV_DIR), XAC_ELOCKLOST);
}

START_TEST(removed_lock_file_makes_no_second_owner)
{
    pid_t pid = proc_spawn(work_and_leave, NULL);
    uint64_t *x;

    proc_await(&words->ready, 1, 20);
    must(unlink(ENV_DIR "/xac.lock") == 0);
    must_be_refused();
    word_store(&words->go, 1);
    proc_join(pid); /* works on, and leaves properly */
    x = env_attach(XAC_DURABLE, 4);
    must_eq(env_get(x), 2 * STEPS);
    env_increment(x);
    env_detach();
}
END_TEST

START_TEST(replaced_lock_file_makes_no_second_owner)
{
    pid_t pid = proc_spawn(work_and_leave, NULL);
    uint64_t *x;

    proc_await(&words->ready, 1, 20);
    file_write("new", 0, "\n", 1);
    must(rename("new", ENV_DIR "/xac.lock") == 0);
    must_be_refused();
    proc_kill(pid); /* one that is dead holds nobody up */
    x = env_attach(XAC_DURABLE, 4);
    must_eq(env_get(x), STEPS);
    env_detach();
}
END_TEST

/* notice -- the files of the directory have been put back: this process writes no more. */
static void
notice(void *arg)
{
    const struct timespec a_while = {.tv_nsec = 100000000};
    uint64_t *x = env_attach(XAC_DURABLE, 4);

    (void)arg;
    for (int i = 0; i < STEPS; i++)
        env_increment(x);
    word_store(&words->ready, 1);
    proc_await(&words->go, 1, 60);
    (void)nanosleep(&a_while, NULL);
    must_refuse(xac_begin(), XAC_ELOCKLOST);
    must(strstr(xac_last_error(), "xac.master") != NULL);
    must_refuse(xac_checkpoint(), XAC_ELOCKLOST);
    must_refuse(xac_shutdown(), XAC_ELOCKLOST);
}

START_TEST(replaced_master_record_is_noticed)
{
    pid_t pid = proc_spawn(notice, NULL);
    uint64_t *x;

    proc_await(&words->ready, 1, 20);
    must(system("cd " ENV_DIR " && cp -p xac.master m && cp -p xac.lock l"
                " && mv m xac.master && mv l xac.lock")
         == 0);
    if (_i == 1) { /* a new owner comes before the old one has noticed */
        x = env_attach(XAC_DURABLE, 4);
        must_eq(env_get(x), STEPS);
        env_increment(x);
        env_detach();
    }
    word_store(&words->go, 1);
    proc_join(pid);
    x = env_attach(XAC_DURABLE, 4);
    must_eq(env_get(x), (uint64_t)STEPS + (uint64_t)_i);
    env_detach();
}
END_TEST

/* fork_without_lock_file -- a child of a participant becomes one at its first call. */
static void
fork_without_lock_file(void *arg)
{
    (void)arg;
    must_refuse(xac_begin(), XAC_ELOCKLOST);
}

START_TEST(fork_does_not_pass_a_removed_lock_file)
{
    uint64_t *x = env_attach(XAC_DURABLE, 4);

    env_increment(x);
    must(unlink(ENV_DIR "/xac.lock") == 0);
    proc_run(fork_without_lock_file, NULL);
    env_increment(x);
    env_detach();
    x = env_attach(XAC_DURABLE, 4);
    must_eq(env_get(x), 2);
    env_detach();
}
END_TEST

/* mode_of -- of a file; the lock file is nobody's who may not write the directory. */
static unsigned
mode_of(const char *path)
{
    struct stat st;

    must(stat(path, &st) == 0);
    return st.st_mode & 0777;
}

START_TEST(lock_file_is_for_those_who_may_write)
{
    static const unsigned modes[][2] = {{0700, 0600}, {0755, 0600}, {0775, 0660},
                                        {0777, 0666}, {0750, 0600}, {0770, 0660}};

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        must(mkdir(ENV_DIR, 0777) == 0 && chmod(ENV_DIR, modes[i][0]) == 0);
        env_init(XAC_NONDURABLE);
        must_eq(mode_of(ENV_DIR "/xac.lock"), modes[i][1]);
        env_detach();
        /* One of an older version is narrowed. */
        must(chmod(ENV_DIR "/xac.master", modes[i][1]) == 0);
        must(chmod(ENV_DIR "/xac.lock", 0666) == 0);
        env_init(XAC_NONDURABLE);
        must_eq(mode_of(ENV_DIR "/xac.lock"), modes[i][1]);
        env_detach();
        must(system("rm -r " ENV_DIR) == 0);
    }
}
END_TEST

static void
become_nobody(void)
{
    must(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
}

/* lock_what_i_may -- as nobody: a lock for reading on all of each file that can be opened. */
static void
lock_what_i_may(void *arg)
{
    static const char *const files[] = {ENV_DIR "/xac.lock", ENV_DIR "/xac.master"};
    struct flock lk = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

    (void)arg;
    become_nobody();
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        int fd = open(files[i], O_RDONLY | O_CLOEXEC);

        if (fd >= 0)
            must(fcntl(fd, F_OFD_SETLK, &lk) == 0);
    }
    must_refuse(xac_init(ENV_DIR, XAC_DURABLE), EACCES);
    must(strstr(xac_last_error(), "write the directory") != NULL);
    word_store(&words->ready, 1);
    for (;;)
        proc_sleep_us(1000000);
}

START_TEST(readers_hold_nobody_up)
{
    uint64_t *x;
    pid_t pid;

    if (is_skipped("become nobody"))
        return;
    x = env_attach(XAC_DURABLE, 4);
    env_increment(x);
    env_detach();
    must(chmod(ENV_DIR "/xac.master", 0644) == 0 && chmod(ENV_DIR, 0755) == 0);
    pid = proc_spawn(lock_what_i_may, NULL);
    proc_await(&words->ready, 1, 20);
    must_ok(xac_recover(ENV_DIR)); /* nobody is attached: not held up, not misled */
    x = env_attach(XAC_DURABLE, 4);
    env_increment(x);
    must_eq(env_get(x), 2);
    env_detach();
    proc_kill(pid);
}
END_TEST

/* ---- Namespaces ------------------------------------------------------------------------ */

/* unshared -- whether the children of this process are in a new namespace from now on. */
static bool
unshared(int what)
{
    if (unshare(what) == 0)
        return true;
    printf("skipped: unshare: %s\n", strerror(errno));
    return false;
}

/* must_be_from_elsewhere -- fork a child, in the new namespace, that has fn() return this.  Not
   proc_spawn(), which wants to know its parent. */
static void
must_be_from_elsewhere(int (*fn)(void))
{
    int status;
    pid_t pid = fork();

    must(pid >= 0);
    if (pid == 0) {
        int rc = fn();

        printf("from another PID namespace: %d, %s\n", rc, xac_last_error());
        fflush(stdout);
        _exit(rc == XAC_ENAMESPACE && strstr(xac_last_error(), "PID namespace") != NULL
                  ? 0
                  : 1);
    }
    status = proc_wait(pid);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int
join(void)
{
    return xac_init(ENV_DIR, XAC_NONDURABLE);
}

/* in_other_pid_namespace -- the attempt to join, from a child in a namespace of its own. */
static void
in_other_pid_namespace(void *arg)
{
    (void)arg;
    if (unshared(CLONE_NEWPID))
        must_be_from_elsewhere(join);
}

START_TEST(other_pid_namespace_is_refused)
{
    pid_t pid = env_companion(XAC_NONDURABLE, 4);
    uint64_t *x;

    if (is_skipped("make namespaces")) {
        proc_kill(pid);
        return;
    }
    proc_run(in_other_pid_namespace, NULL);
    x = env_attach(XAC_NONDURABLE, 4); /* from within its own one may */
    env_increment(x);
    must_eq(env_stats().participants, 2);
    env_detach();
    proc_kill(pid);
}
END_TEST

START_TEST(fork_into_another_pid_namespace_is_refused)
{
    uint64_t *x;

    if (is_skipped("make namespaces"))
        return;
    x = env_attach(XAC_NONDURABLE, 4);
    env_increment(x);
    if (unshared(CLONE_NEWPID))
        must_be_from_elsewhere(xac_begin);
    env_increment(x);
    must_eq(env_get(x), 2);
    env_detach();
}
END_TEST

/* hold_page -- a transaction that has written, and ends when it is told. */
static void
hold_page(void *arg)
{
    uint64_t *x = env_attach(XAC_NONDURABLE, 4);

    (void)arg;
    must_ok(xac_begin());
    *(volatile uint64_t *)x += 1;
    word_store(&words->ready, 1);
    proc_await(&words->go, 1, 60);
    must_eq(xac_end(), XAC_COMMITTED);
    env_detach();
}

/* meet_from_another_time -- the oldest wins, if it is taken for alive. */
static void
meet_from_another_time(void *arg)
{
    uint64_t *x = env_attach(XAC_NONDURABLE, 4);

    (void)arg;
    must_ok(xac_begin());
    *(volatile uint64_t *)x += 1;
    must_eq(xac_end(), XAC_ABORTED);
    must_eq(env_stats().dead_cleaned, 0);
    must_eq(env_stats().participants, 2);
    word_store(&words->go, 1);
    env_increment(x);
    must_eq(env_get(x), 2);
    env_detach();
}

static void
in_another_time(void *arg)
{
    static const char offset[] = "boottime 1000 0\n";
    int fd;

    (void)arg;
    if (!unshared(CLONE_NEWTIME)) {
        word_store(&words->go, 1);
        return;
    }
    fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    must(fd >= 0 && write(fd, offset, sizeof offset - 1) == sizeof offset - 1);
    must(close(fd) == 0);
    proc_run(meet_from_another_time, NULL);
}

START_TEST(other_time_namespace_is_alive)
{
    pid_t pid;

    if (is_skipped("make namespaces"))
        return;
    must_ok(xac_set_option(XAC_OPT_POLICY, XAC_POLICY_OLDEST_WINS));
    pid = proc_spawn(hold_page, NULL);
    proc_await(&words->ready, 1, 20);
    proc_run(in_another_time, NULL);
    proc_join(pid);
}
END_TEST

/* ---- exec() ---------------------------------------------------------------------------- */

/* go_on_as_another -- a transaction that has written is left by exec(). */
static void
go_on_as_another(void *arg)
{
    uint64_t *x = env_attach(XAC_NONDURABLE, 4);

    (void)arg;
    must_ok(xac_begin());
    *(volatile uint64_t *)x = 1000;
    word_store(&words->ready, 1);
    execlp("sleep", "sleep", "1000", (char *)NULL);
    must(false);
}

/* await_exec -- until the process has another program. */
static void
await_exec(pid_t pid)
{
    char path[64], name[16] = "";

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    for (int i = 0; i < 10000 && strcmp(name, "sleep\n") != 0; i++) {
        FILE *f = fopen(path, "r");

        must(f != NULL);
        if (fgets(name, sizeof name, f) == NULL)
            name[0] = '\0';
        fclose(f);
        proc_sleep_us(1000);
    }
    must(strcmp(name, "sleep\n") == 0);
}

START_TEST(exec_ends_the_transaction)
{
    pid_t pid, companion;
    uint64_t *x;
    int rc = XAC_ABORTED, tries = 0;

    must_ok(xac_set_option(XAC_OPT_POLICY, XAC_POLICY_OLDEST_WINS));
    companion = env_companion(XAC_NONDURABLE, 4); /* the region lives on */
    pid = proc_spawn(go_on_as_another, NULL);
    proc_await(&words->ready, 1, 20);
    await_exec(pid);
    x = env_attach(XAC_NONDURABLE, 4);
    for (; rc == XAC_ABORTED && tries < 3; tries++) {
        must_ok(xac_begin());
        *(volatile uint64_t *)x += 1;
        rc = xac_end();
    }
    must_eq(rc, XAC_COMMITTED);
    must_eq(env_get(x), 1);
    must_eq(env_stats().participants, 2);
    env_detach();
    proc_kill(pid);
    proc_kill(companion);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("gate");
    TCase *tc = env_tcase_with(s, "lock file", 60, setup);

    tcase_add_test(tc, removed_lock_file_makes_no_second_owner);
    tcase_add_test(tc, replaced_lock_file_makes_no_second_owner);
    tcase_add_loop_test(tc, replaced_master_record_is_noticed, 0, 2);
    tcase_add_test(tc, fork_does_not_pass_a_removed_lock_file);
    tcase_add_test(tc, lock_file_is_for_those_who_may_write);
    tcase_add_test(tc, readers_hold_nobody_up);
    tc = env_tcase_with(s, "namespaces", 60, setup);
    tcase_add_test(tc, other_pid_namespace_is_refused);
    tcase_add_test(tc, fork_into_another_pid_namespace_is_refused);
    tcase_add_test(tc, other_time_namespace_is_alive);
    tc = env_tcase_with(s, "exec", 60, setup);
    tcase_add_test(tc, exec_ends_the_transaction);
    return env_main(s);
}
