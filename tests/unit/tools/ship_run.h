/* SPDX-License-Identifier: MIT */
/*
 * ship_run.h -- a sender and a receiver of the build, connected by a socket, for the test programs of xship(1).
 *
 * Defines things, so it is included once per program.
 */
#ifndef XAC_TEST_SHIP_RUN_H
#define XAC_TEST_SHIP_RUN_H

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "tests/common/tool_run.h"

/* top -- of the build. */
static inline const char *
top(void)
{
    const char *dir = getenv("top_builddir");

    return dir != NULL ? dir : ".";
}

/* start_send -- a group of processes: the sender, and the receiver that it starts; ret the sender. */
static inline pid_t
start_send(const char *options, const char *receiver, const char *log)
{
    char command[5000];
    pid_t pid;

    (void)snprintf(
        command, sizeof command,
        "exec %s/xship send %s --through 'echo $$ >receiver; exec %s/xship receive "
        "%s' " ENV_DIR " >%s 2>&1",
        top(), options, top(), receiver, log);
    (void)unlink("receiver");
    pid = fork();
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    must(pid > 0);
    return pid;
}

/* receiver_pid -- of the receiver that has been started last; 0: none yet. */
static inline pid_t
receiver_pid(void)
{
    char text[32] = "";
    int fd = open("receiver", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!read(fd, text, sizeof text - 1);
        (void)close(fd);
    }
    return (pid_t)strtol(text, NULL, 10);
}

/* kill_sender -- ret the receiver that it had started; 0: none. */
static inline pid_t
kill_sender(pid_t send)
{
    proc_kill(send);
    /* The shell that becomes the receiver may not have come to say so. */
    for (int i = 0; i < 20 && receiver_pid() == 0; i++)
        proc_sleep_us(10000);
    return receiver_pid();
}

/* await_gone -- the receiver, which its sender has left to us. */
static inline void
await_gone(pid_t pid)
{
    for (int i = 0; i < 3000 && waitpid(pid, NULL, WNOHANG) != pid; i++) {
        if (kill(pid, 0) != 0)
            return;
        proc_sleep_us(10000);
    }
    must(kill(pid, 0) != 0);
}

/* end_send -- in order; ret the exit code. */
static inline int
end_send(pid_t pid)
{
    int status;

    must_ok(kill(pid, SIGTERM));
    status = proc_wait(pid);
    must(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* must_say -- a log of the tools has these words. */
static inline void
must_say(const char *log, const char *words)
{
    size_t n;
    int fd = open(log, O_RDONLY | O_CLOEXEC);

    must(fd >= 0);
    n = (size_t)read(fd, output, sizeof output - 1);
    output[n < sizeof output ? n : 0] = '\0';
    (void)close(fd);
    ck_says(words);
}

#endif /* XAC_TEST_SHIP_RUN_H */
