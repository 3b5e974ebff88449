/* SPDX-License-Identifier: MIT */
/*
 * check_lockfile.c -- byte locks: the gate keeps others out, the dead let go.
 */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/lockfile.h"
#include "base/sys.h"
#include "env/peek.h"

#include "tests/common/recover_env.h" /* defines things that others must not see */

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

START_TEST(locks_for_reading_do_not_count)
{
    struct flock lk = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 1};
    int a, b, reader;

    synth_open(&s, 4096, 65536);
    a = open_lock();
    b = open_lock();
    reader = openat(s.dirfd, XAC_LOCK_NAME, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(reader, 0);
    ck_assert_int_eq(fcntl(reader, F_OFD_SETLK, &lk), 0);
    ck_assert(!xac_alive_any(a));
    ck_assert(!xac_alive_test(a, 3));
    lk.l_type = F_UNLCK;
    ck_assert_int_eq(fcntl(reader, F_OFD_SETLK, &lk), 0);
    ck_assert_int_eq(xac_alive_take(b, 3), 0);
    lk = (struct flock){.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 100};
    ck_assert_int_eq(fcntl(reader, F_OFD_SETLK, &lk), 0);
    ck_assert(xac_alive_any(a) && xac_alive_test(a, 3) && !xac_alive_test(a, 99));
    close(reader);
    close(b);
    close(a);
}
END_TEST

/* put_new_file -- another file gets the name of the lock file. */
static void
put_new_file(void)
{
    int fd = openat(s.dirfd, "other", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(renameat(s.dirfd, "other", s.dirfd, XAC_LOCK_NAME), 0);
}

START_TEST(gate_is_of_the_file_with_the_name)
{
    struct stat opened, named;
    pid_t pid, killer;
    int fd;

    synth_open(&s, 4096, 65536);
    pid = child_holds();
    killer = fork();
    if (killer == 0) { /* while the other waits at the gate of the file that goes */
        usleep(200000);
        put_new_file();
        kill(pid, SIGKILL);
        _exit(0);
    }
    ck_ok(xac_gate_open(s.dirfd, s.dir, &fd));
    ck_assert_int_eq(fstat(fd, &opened), 0);
    ck_assert_int_eq(fstatat(s.dirfd, XAC_LOCK_NAME, &named, 0), 0);
    ck_assert_uint_eq(opened.st_ino, named.st_ino);
    while (wait(NULL) > 0)
        ;
    close(fd);
}
END_TEST

/* replacing_lock -- takes the lock, and the file's name away. */
static int (*real_lock)(int fd, int cmd, struct flock *lk);
static unsigned n_replaced;

static int
replacing_lock(int fd, int cmd, struct flock *lk)
{
    if (cmd == F_OFD_SETLKW) {
        put_new_file();
        n_replaced++;
    }
    return real_lock(fd, cmd, lk);
}

START_TEST(gate_gives_up_on_a_file_that_is_always_replaced)
{
    int fd = -1;

    synth_open(&s, 4096, 65536);
    close(open_lock());
    real_lock = xac_sys.lock;
    xac_sys.lock = replacing_lock;
    ck_assert_int_eq(xac_gate_open(s.dirfd, s.dir, &fd), XAC_ELOCKLOST);
    ck_assert_int_eq(fd, -1);
    ck_assert_uint_gt(n_replaced, 10);
    ck_assert_ptr_nonnull(strstr(xac_err_text(), "again and again"));
    xac_sys.lock = real_lock;
}
END_TEST

START_TEST(who_may_only_read_is_told_so)
{
    struct xac_env env;
    int held, rc, status;
    pid_t pid;

    if (geteuid() != 0) {
        printf("skipped: only root may become nobody\n");
        return;
    }
    synth_open(&s, 4096, 65536);
    ck_assert_int_eq(fchmod(s.dirfd, 0755), 0);
    held = open_lock();
    for (int attached = 0; attached < 2; attached++) {
        int master = openat(s.dirfd, XAC_MASTER_NAME, O_RDWR | O_CLOEXEC);

        ck_assert_int_ge(master, 0);
        ck_assert_int_eq(fchmod(master, 0644), 0);
        if (attached)
            ck_assert_int_eq(xac_alive_take(master, 0), 0);
        pid = fork();
        if (pid == 0) {
            if (setresuid(65534, 65534, 65534) != 0)
                _exit(9);
            rc = xac_peek_open(s.dirfd, s.dir, &env);
            _exit(rc != (attached ? EACCES : ENOENT)
                  || (attached && strstr(xac_err_text(), "allowed to write") == NULL));
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        close(master);
    }
    close(held);
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
    tcase_add_test(tc, locks_for_reading_do_not_count);
    tcase_add_test(tc, gate_is_of_the_file_with_the_name);
    tcase_add_test(tc, gate_gives_up_on_a_file_that_is_always_replaced);
    tcase_add_test(tc, who_may_only_read_is_told_so);
    tcase_add_test(tc, nobody_is_dead_by_mistake);
    return recover_main(suite);
}
