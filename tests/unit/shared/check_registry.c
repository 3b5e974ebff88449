/* SPDX-License-Identifier: MIT */
/*
 * check_registry.c -- who is alive: oneself, a live process, a killed one, a zombie, a
 * reused process id, closed descriptors; places of participants; files.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/core_world.h"
#include "tests/common/env.h"
#include "base/sys.h"
#include "checkpoint/file_fds.h"
#include "shared/registry.h"
#include "txn/reap.h"
#include "view/file_register.h"

static struct xac_env *env;

static void
open_world(void)
{
    env = world_open(XAC_NONDURABLE);
}

/* A child that has joined. */
struct child {
    _Atomic uint64_t index1; /* its index + 1 */
    _Atomic uint64_t stop;
    uint32_t may_close; /* closes its descriptor of the lock file */
};

static struct child *child;

static void
join_and_wait(void *arg)
{
    struct xac_env *mine = world_open(XAC_NONDURABLE);

    (void)arg;
    if (child->may_close != 0)
        must(close(mine->lockfd) == 0);
    word_store(&child->index1, mine->self + 1);
    proc_await(&child->stop, 1, 30);
    if (child->may_close == 0)
        must_eq(xac_env_close(mine), 0);
}

static pid_t
spawn_child(bool may_close)
{
    pid_t pid;

    child = proc_shared(sizeof *child);
    child->may_close = may_close;
    pid = proc_spawn(join_and_wait, NULL);
    proc_await(&child->index1, 1, 10);
    return pid;
}

static uint32_t
child_index(void)
{
    return (uint32_t)word_load(&child->index1) - 1;
}

START_TEST(tell_live_from_gone)
{
    pid_t pid = spawn_child(false);

    must(xac_registry_alive(env, env->self));
    must(xac_registry_alive(env, child_index()));
    must_eq(xac_registry_attached(env), 2);
    word_store(&child->stop, 1);
    proc_join(pid);
    must(!xac_registry_alive(env, child_index()));
    must_eq(xac_registry_attached(env), 1);
}
END_TEST

START_TEST(tell_stopped_killed_and_zombie)
{
    pid_t pid = spawn_child(false);
    int status;

    must_eq(xac_registry_state(env, child_index()), XAC_PROCESS_RUNNING);
    must(kill(pid, SIGSTOP) == 0);
    must(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
    must_eq(xac_registry_state(env, child_index()), XAC_PROCESS_STOPPED);
    must(xac_registry_alive(env, child_index())); /* stopped is alive */
    must(kill(pid, SIGCONT) == 0);
    must(waitpid(pid, &status, WCONTINUED) == pid && WIFCONTINUED(status));
    while (xac_registry_state(env, child_index()) == XAC_PROCESS_STOPPED)
        proc_sleep_us(100); /* it has been told, but not got a processor yet */
    must(kill(pid, SIGKILL) == 0);
    siginfo_t info;
    must(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
    must(!xac_registry_alive(env, child_index())); /* a zombie is dead */
    (void)proc_wait(pid);
    must(!xac_registry_alive(env, child_index()));
    must_eq(xac_registry_attached(env), 2); /* until cleaned up after */
    xac_reap_dead(env);
    must_eq(xac_registry_attached(env), 1);
}
END_TEST

START_TEST(tell_a_reused_process_id)
{
    pid_t pid = spawn_child(false);
    struct xac_participant *p = xac_participant_at(env, child_index());
    uint64_t start = p->start_time;

    must(start != 0);
    must_eq(p->pid, pid);
    p->start_time = start - 1; /* another process had this id before */
    must(!xac_registry_alive(env, child_index()));
    p->start_time = start;
    must(xac_registry_alive(env, child_index()));
    word_store(&child->stop, 1);
    proc_join(pid);
}
END_TEST

START_TEST(believe_the_process_rather_than_its_byte)
{
    pid_t pid = spawn_child(true); /* as daemons do: all descriptors closed */
    struct xac_participant *p = xac_participant_at(env, child_index());

    must(xac_registry_alive(env, child_index()));
    /* From another PID namespace only the byte is to be seen, and it is free. */
    p->pid_namespace++;
    must(!xac_registry_alive(env, child_index()));
    p->pid_namespace--;
    proc_kill(pid);
    must(!xac_registry_alive(env, child_index()));
}
END_TEST

START_TEST(believe_the_byte_of_other_namespaces)
{
    pid_t pid = spawn_child(false);
    struct xac_participant *p = xac_participant_at(env, child_index());

    p->pid_namespace++;
    p->pid = 1 << 30; /* means nothing here */
    must(xac_registry_alive(env, child_index()));
    proc_kill(pid);
    must(!xac_registry_alive(env, child_index()));
}
END_TEST

START_TEST(compare_no_start_times_across_time_namespaces)
{
    pid_t pid = spawn_child(false);
    struct xac_participant *p = xac_participant_at(env, child_index());

    p->time_namespace++;
    p->start_time += 1000; /* as it was to be seen from there */
    must(xac_registry_alive(env, child_index()));
    must(kill(pid, SIGSTOP) == 0);
    while (xac_registry_state(env, child_index()) != XAC_PROCESS_STOPPED)
        proc_sleep_us(100);
    proc_kill(pid);
    must(!xac_registry_alive(env, child_index()));
}
END_TEST

/* ---- exec() -------------------------------------------------------------------------------- */

/* join_and_exec -- leave the library behind in another program, or in this one again. */
static void
join_and_exec(void *arg)
{
    struct xac_env *mine = world_open(XAC_NONDURABLE);

    word_store(&child->index1, mine->self + 1);
    if (arg != NULL)
        execl("/proc/self/exe", "check_registry", "--join", (char *)NULL);
    execlp("sleep", "sleep", "1000", (char *)NULL);
    must(false);
}

static void
await_death(uint32_t index)
{
    double end = env_now() + 10;

    while (xac_registry_alive(env, index) && env_now() < end)
        proc_sleep_us(100);
    must(!xac_registry_alive(env, index));
}

START_TEST(exec_is_a_death)
{
    struct xac_participant *p;
    pid_t pid;

    child = proc_shared(sizeof *child);
    pid = proc_spawn(join_and_exec, NULL);
    proc_await(&child->index1, 1, 10);
    await_death(child_index());
    p = xac_participant_at(env, child_index());
    must_eq(p->pid, pid);
    must(kill(pid, 0) == 0); /* the process is there still */
    xac_reap_dead(env);
    must_eq(xac_registry_attached(env), 1);
    proc_kill(pid);
}
END_TEST

START_TEST(exec_and_joining_again_is_a_death_and_a_birth)
{
    pid_t pid;
    uint64_t n = 0;

    child = proc_shared(sizeof *child);
    pid = proc_spawn(join_and_exec, child);
    proc_await(&child->index1, 1, 10);
    for (int i = 0; i < 10000 && n < 3; i++) { /* it comes a second time */
        n = atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);
        proc_sleep_us(1000);
    }
    must_eq(n, 3);
    await_death(child_index());
    must(xac_registry_alive(env, 2));
    must_eq(xac_participant_at(env, 2)->pid, pid);
    proc_kill(pid);
    must(!xac_registry_alive(env, 2));
}
END_TEST

static int (*real_openat)(int dirfd, const char *path, int flags, mode_t mode);

static int
without_proc(int dirfd, const char *path, int flags, mode_t mode)
{
    if (path[0] == '/' && path[1] == 'p') {
        errno = ENOENT;
        return -1;
    }
    return real_openat(dirfd, path, flags, mode);
}

START_TEST(do_without_proc)
{
    pid_t pid = spawn_child(false);

    real_openat = xac_sys.openat;
    xac_sys.openat = without_proc;
    must(xac_registry_alive(env, child_index()));
    proc_kill(pid);
    must(!xac_registry_alive(env, child_index()));
}
END_TEST

START_TEST(use_places_again)
{
    uint32_t index[5];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 5; i++) {
            pid_t pid = spawn_child(false);

            index[i] = child_index();
            must(i == 0 || index[i] == index[0]);
            if (i % 2 == 0) {
                proc_kill(pid);
                xac_reap_dead(env);
            } else {
                word_store(&child->stop, 1);
                proc_join(pid);
            }
        }
    }
    must_eq(atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed), 2);
    must_eq(atomic_load_explicit(&env->ctl->txns.count, memory_order_relaxed), 2);
}
END_TEST

START_TEST(give_a_dead_place_to_nobody_before_cleaning)
{
    pid_t first = spawn_child(false), second;
    uint32_t index = child_index();
    struct child *kept = child;

    proc_kill(first);
    /* Joining cleans up; but the place was still taken when the second one looked. */
    second = spawn_child(false);
    must(child_index() != index);
    must_eq(atomic_load_explicit(&xac_participant_at(env, index)->state,
                                 memory_order_relaxed),
            XAC_PART_FREE);
    (void)kept;
    word_store(&child->stop, 1);
    proc_join(second);
}
END_TEST

/* ---- files -------------------------------------------------------------------------------- */

static int
register_file(struct xac_env *e, const char *path, uint64_t length, uint32_t *idp)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char *stored = realpath(path, NULL);
    uint64_t hold;
    int rc;

    must(fd >= 0);
    must(stored != NULL);
    rc = xac_registry_file(e, stored, fd, length, idp, &hold);
    must(close(fd) == 0);
    free(stored);
    return rc;
}

START_TEST(know_files_by_inode_and_path)
{
    struct xac_env *other = world_open(XAC_NONDURABLE);
    uint32_t a, b, again;

    must_eq(register_file(env, "a", 4096, &a), 0);
    must_eq(register_file(env, "b", 8192, &b), 0);
    must_eq(a, 2);
    must_eq(b, 3);
    must_eq(register_file(other, "a", 16384, &again), 0);
    must_eq(again, a);
    must_eq(atomic_load_explicit(&xac_file_at(env, a)->length, memory_order_relaxed),
            16384);
    must_eq(register_file(env, "a", 4096, &again), 0); /* never shorter */
    must_eq(atomic_load_explicit(&xac_file_at(env, a)->length, memory_order_relaxed),
            16384);
    must(link("b", "c") == 0);
    must_eq(register_file(env, "c", 8192, &again), 0); /* another name of it */
    must_eq(again, b);
    must(rename("b", "a") == 0);
    must_eq(register_file(env, "a", 4096, &again), XAC_EREPLACED);
    must_eq(xac_env_close(other), 0);
}
END_TEST

static struct xac_sys real;

static int
statx_born_later(int dirfd, const char *path, int flags, unsigned mask, struct statx *out)
{
    int rc = real.statx(dirfd, path, flags, mask, out);

    out->stx_btime.tv_sec++;
    return rc;
}

/* A file that has got the inode number of one that was removed. */
START_TEST(know_files_by_birth)
{
    int fd = open("b", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct xac_identity who;
    uint64_t hold;
    uint32_t b, again;

    must_eq(xac_identity_of(fd, &who), 0);
    must_eq(xac_registry_file(env, "../b", fd, 4096, &b, &hold), 0);
    real = xac_sys;
    xac_sys.statx = statx_born_later;
    if (who.birth_ns != 0) {
        errno = 0;
        must_eq(xac_file_fd(env, b), -1);
        must_eq(errno, ESTALE);
        must_eq(xac_registry_file(env, "../b", fd, 4096, &again, &hold), XAC_EREPLACED);
    }
    xac_sys = real;
    must(xac_file_fd(env, b) >= 0);
    must_eq(xac_registry_file(env, "../b", fd, 4096, &again, &hold), 0);
    must_eq(again, b);
    must(close(fd) == 0);
}
END_TEST

START_TEST(register_many_files)
{
    char name[16];
    uint32_t id;

    for (uint32_t i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "f%u", i);
        must_eq(register_file(env, name, 4096, &id), 0);
        must_eq(id, i + 2);
    }
    must_eq(register_file(env, "f7", 4096, &id), 0);
    must_eq(id, 9);
}
END_TEST

/* join_again -- the program that join_and_exec() goes on with. */
static _Noreturn void
join_again(void)
{
    (void)world_open(XAC_NONDURABLE);
    for (;;)
        proc_sleep_us(1000000);
}

int
main(int argc, char **argv)
{
    Suite *s;
    TCase *tc;

    if (argc > 1 && strcmp(argv[1], "--join") == 0)
        join_again();
    s = suite_create("registry");
    tc = env_tcase(s, "registry", 60);

    tcase_add_checked_fixture(tc, open_world, NULL);
    tcase_add_test(tc, tell_live_from_gone);
    tcase_add_test(tc, tell_stopped_killed_and_zombie);
    tcase_add_test(tc, tell_a_reused_process_id);
    tcase_add_test(tc, believe_the_process_rather_than_its_byte);
    tcase_add_test(tc, believe_the_byte_of_other_namespaces);
    tcase_add_test(tc, compare_no_start_times_across_time_namespaces);
    tcase_add_test(tc, exec_is_a_death);
    tcase_add_test(tc, exec_and_joining_again_is_a_death_and_a_birth);
    tcase_add_test(tc, do_without_proc);
    tcase_add_test(tc, use_places_again);
    tcase_add_test(tc, give_a_dead_place_to_nobody_before_cleaning);
    tcase_add_test(tc, know_files_by_inode_and_path);
    tcase_add_test(tc, know_files_by_birth);
    tcase_add_test(tc, register_many_files);
    return env_main(s);
}
