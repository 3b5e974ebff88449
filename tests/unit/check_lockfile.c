/* SPDX-License-Identifier: MIT */
/*
 * check_lockfile.c -- byte locks: the gate keeps others out, the dead let go.
 */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "../common/recover_env.h"
#include "lockfile.h"
#include "sys.h"

static int
open_lock(void)
{
    int fd = xac_lockfile_open(s.dirfd);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    return fd;
}

START_TEST(own_byte_looks_free)
{
    int fd;

    synth_open(&s, 4096, 65536);
    fd = open_lock();
    ck_assert(!xac_alive_any(fd));
    ck_assert_int_eq(xac_alive_take(fd, 3), 0);
    ck_assert(!xac_alive_test(fd, 3));
    ck_assert(!xac_alive_any(fd));
    close(fd);
}
END_TEST

START_TEST(others_see_a_taken_byte)
{
    int a;
    int b;

    synth_open(&s, 4096, 65536);
    a = open_lock();
    b = open_lock();
    ck_assert_int_eq(xac_alive_take(a, 3), 0);
    ck_assert_int_eq(xac_alive_take(a, 1000000), 0);
    ck_assert(xac_alive_test(b, 3));
    ck_assert(!xac_alive_test(b, 2) && !xac_alive_test(b, 4));
    ck_assert(xac_alive_test(b, 1000000));
    ck_assert_int_eq(xac_alive_take(b, 3), EAGAIN);
    ck_assert_int_eq(xac_alive_take(b, 4), 0);
    xac_alive_drop(a, 3);
    ck_assert(!xac_alive_test(b, 3));
    ck_assert(xac_alive_any(b));
    xac_alive_drop(a, 1000000);
    ck_assert(!xac_alive_any(b));
    ck_assert(xac_alive_any(a));
    close(b);
    ck_assert(!xac_alive_any(a));
    close(a);
}
END_TEST

START_TEST(gate_is_no_participant)
{
    int a;
    int b;

    synth_open(&s, 4096, 65536);
    a = open_lock();
    b = open_lock();
    ck_assert_int_eq(xac_gate_enter(a), 0);
    ck_assert(!xac_alive_any(b));
    ck_assert_int_eq(xac_alive_take(b, 0), 0);
    xac_gate_leave(a);
    ck_assert_int_eq(xac_gate_enter(b), 0);
    xac_gate_leave(b);
    ck_assert(xac_alive_test(a, 0));
    close(a);
    close(b);
}
END_TEST

/* child_holds -- a child that holds gate and byte 5 and waits; ret its pid. */
static pid_t
child_holds(void)
{
    int ready[2];
    char c;
    pid_t pid;

    ck_assert_int_eq(pipe(ready), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        int fd = xac_lockfile_open(s.dirfd);

        if (xac_gate_enter(fd) != 0 || xac_alive_take(fd, 5) != 0)
            _exit(1);
        (void)!write(ready[1], "x", 1);
        for (;;)
            pause();
    }
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return pid;
}

START_TEST(death_lets_go)
{
    pid_t pid;
    int fd;

    synth_open(&s, 4096, 65536);
    fd = open_lock();
    pid = child_holds();
    ck_assert(xac_alive_test(fd, 5));
    ck_assert(xac_alive_any(fd));
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert(!xac_alive_any(fd));
    ck_assert_int_eq(xac_gate_enter(fd), 0);
    close(fd);
}
END_TEST

START_TEST(gate_is_waited_for)
{
    struct timespec a;
    struct timespec b;
    pid_t pid;
    pid_t killer;
    int fd;

    synth_open(&s, 4096, 65536);
    fd = open_lock();
    pid = child_holds();
    killer = fork();
    if (killer == 0) {
        usleep(200000);
        kill(pid, SIGKILL);
        _exit(0);
    }
    clock_gettime(CLOCK_MONOTONIC, &a);
    ck_assert_int_eq(xac_gate_enter(fd), 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    ck_assert_int_gt((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000,
                     100);
    while (wait(NULL) > 0)
        ;
    close(fd);
}
END_TEST

START_TEST(inherited_description_keeps_the_byte)
{
    int a;
    int b;
    int copy;

    synth_open(&s, 4096, 65536);
    a = open_lock();
    b = open_lock();
    ck_assert_int_eq(xac_alive_take(a, 5), 0);
    copy = dup(a);
    close(a);
    ck_assert(xac_alive_test(b, 5));
    close(copy);
    ck_assert(!xac_alive_test(b, 5));
    close(b);
}
END_TEST

static int
broken_lock(int fd, int cmd, struct flock *lk)
{
    (void)fd;
    (void)cmd;
    (void)lk;
    errno = ENOLCK;
    return -1;
}

START_TEST(nobody_is_dead_by_mistake)
{
    struct xac_sys real;
    int fd;

    synth_open(&s, 4096, 65536);
    fd = open_lock();
    real = xac_sys;
    xac_sys.lock = broken_lock;
    ck_assert(xac_alive_test(fd, 5));
    ck_assert(xac_alive_any(fd));
    ck_assert_int_eq(xac_gate_enter(fd), ENOLCK);
    ck_assert_int_eq(xac_alive_take(fd, 5), ENOLCK);
    xac_sys = real;
    close(fd);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lockfile");
    TCase *tc = recover_tcase(suite, "lockfile");

    tcase_add_test(tc, own_byte_looks_free);
    tcase_add_test(tc, others_see_a_taken_byte);
    tcase_add_test(tc, gate_is_no_participant);
    tcase_add_test(tc, death_lets_go);
    tcase_add_test(tc, gate_is_waited_for);
    tcase_add_test(tc, inherited_description_keeps_the_byte);
    tcase_add_test(tc, nobody_is_dead_by_mistake);
    return recover_main(suite);
}
