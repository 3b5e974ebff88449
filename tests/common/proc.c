/* SPDX-License-Identifier: MIT */
/*
 * proc.c -- child processes of tests, and the one way to fail: see env.h.
 */
#include <config.h>

#include "env.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILD_FAILED 97 /* exit status of a child in which something did not hold */

static bool in_child;

void
env_fail(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (in_child) {
        dprintf(STDERR_FILENO, "%s:%d: in child %ld: %s\n", file, line, (long)getpid(),
                text);
        _exit(CHILD_FAILED);
    }
    ck_abort_msg("%s:%d: %s", file, line, text);
    abort(); /* not reached: Check ends the test */
}

void
proc_end_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(CHILD_FAILED);
}

pid_t
proc_fork(void)
{
    pid_t parent = getpid();
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid < 0)
        env_fail(__FILE__, __LINE__, "fork: %s", strerror(errno));
    if (pid == 0) {
        in_child = true;
        proc_end_with(parent);
    }
    return pid;
}

pid_t
proc_spawn(void (*fn)(void *), void *arg)
{
    pid_t pid = proc_fork();

    if (pid != 0)
        return pid;
    fn(arg);
    fflush(NULL);
    _exit(0);
}

int
proc_wait(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) != pid) {
        if (errno != EINTR)
            env_fail(__FILE__, __LINE__, "waitpid: %s", strerror(errno));
    }
    return status;
}

void
proc_join(pid_t pid)
{
    int status = proc_wait(pid);

    if (WIFSIGNALED(status))
        env_fail(__FILE__, __LINE__, "child %ld died of signal %d (%s)", (long)pid,
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        env_fail(__FILE__, __LINE__, "child %ld exited with %d%s", (long)pid,
                 WEXITSTATUS(status),
                 WEXITSTATUS(status) == CHILD_FAILED ? ": see its message above" : "");
}

void
proc_run(void (*fn)(void *), void *arg)
{
    proc_join(proc_spawn(fn, arg));
}

struct capture {
    void (*fn)(void *);
    void *arg;
    int fd;
};

static void
capture_child(void *arg)
{
    struct capture *c = arg;

    if (dup2(c->fd, STDOUT_FILENO) < 0 || dup2(c->fd, STDERR_FILENO) < 0)
        _exit(CHILD_FAILED);
    close(c->fd);
    c->fn(c->arg);
}

int
proc_capture(void (*fn)(void *), void *arg, char *text, size_t size)
{
    int pipe_fd[2];
    struct capture c = {.fn = fn, .arg = arg};
    size_t used = 0;
    char buf[512];
    ssize_t got;
    pid_t pid;

    must(pipe(pipe_fd) == 0);
    c.fd = pipe_fd[1];
    pid = proc_spawn(capture_child, &c);
    close(pipe_fd[1]);
    while ((got = read(pipe_fd[0], buf, sizeof buf)) > 0) {
        size_t n = (size_t)got < size - 1 - used ? (size_t)got : size - 1 - used;

        memcpy(text + used, buf, n);
        used += n;
    }
    text[used] = '\0';
    close(pipe_fd[0]);
    return proc_wait(pid);
}

void
proc_kill(pid_t pid)
{
    kill(pid, SIGKILL);
    (void)proc_wait(pid);
}

void *
proc_shared(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    must(p != MAP_FAILED);
    return p;
}

void
proc_sleep_us(uint64_t us)
{
    struct timespec ts = {.tv_sec = (time_t)(us / 1000000),
                          .tv_nsec = (long)(us % 1000000) * 1000};

    while (nanosleep(&ts, &ts) != 0 && errno == EINTR) {
    }
}

bool
proc_any_failed(void)
{
    siginfo_t info = {.si_pid = 0};

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0
           && (info.si_code == CLD_EXITED ? info.si_status == CHILD_FAILED
                                          : info.si_status == SIGABRT);
}

void
proc_await(const _Atomic uint64_t *word, uint64_t value, double limit_s)
{
    double end = env_now() + limit_s;

    for (unsigned i = 0; word_load(word) < value; i++) {
        if (i % 100 == 99 && proc_any_failed())
            env_fail(__FILE__, __LINE__, "a child failed: see its message above");
        if (env_now() > end) {
            env_fail(__FILE__, __LINE__,
                     "waited %.1f s for %llu, got no further than %llu", limit_s,
                     (unsigned long long)value, (unsigned long long)word_load(word));
        }
        proc_sleep_us(200);
    }
}
