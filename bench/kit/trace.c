/* SPDX-License-Identifier: MIT */
/*
 * trace.c -- see trace.h.
 */
#include <config.h>

#include "bench/kit/trace.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#define NAMED(call) \
 {                  \
  SYS_##call, #call \
 }

static const struct {
    long number;
    const char *name;
} names[] = {
    NAMED(brk),          NAMED(clock_nanosleep),
    NAMED(clone3),       NAMED(close),
    NAMED(fallocate),    NAMED(fcntl),
    NAMED(fdatasync),    NAMED(fstat),
    NAMED(fsync),        NAMED(ftruncate),
    NAMED(futex),        NAMED(getpid),
    NAMED(gettid),       NAMED(ioctl),
    NAMED(kill),         NAMED(lseek),
    NAMED(madvise),      NAMED(mmap),
    NAMED(mprotect),     NAMED(msync),
    NAMED(munmap),       NAMED(newfstatat),
    NAMED(openat),       NAMED(pread64),
    NAMED(preadv),       NAMED(process_madvise),
    NAMED(pwrite64),     NAMED(pwritev),
    NAMED(read),         NAMED(rseq),
    NAMED(rt_sigaction), NAMED(rt_sigprocmask),
    NAMED(rt_sigreturn), NAMED(statx),
    NAMED(sched_yield),  NAMED(sync_file_range),
    NAMED(tgkill),       NAMED(unlink),
    NAMED(write),        NAMED(writev),
};

void
bench_trace_mark(void)
{
    (void)syscall(SYS_getppid);
}

int
bench_trace_seize(pid_t pid)
{
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
    char path[64];
    struct dirent *entry;
    DIR *dir;
    int rc = 0;

    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    dir = opendir(path);
    if (dir == NULL)
        return errno;
    while (rc == 0 && (entry = readdir(dir)) != NULL) {
        pid_t thread = atoi(entry->d_name);

        if (thread > 0
            && (ptrace(PTRACE_SEIZE, thread, NULL, (void *)options) != 0
                || ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0))
            rc = errno;
    }
    closedir(dir);
    return rc;
}

/* note -- a thread of the process is at the begin or the end of a call. */
static void
note(struct bench_trace *trace, pid_t pid, pid_t thread)
{
    struct ptrace_syscall_info info = {0};
    uint64_t number;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, (void *)sizeof info, &info) <= 0
        || info.op != PTRACE_SYSCALL_INFO_ENTRY)
        return;
    number = info.entry.nr;
    if (number == SYS_getppid && thread == pid)
        trace->marks++;
    else if (trace->marks == 1 && number != SYS_restart_syscall) /* that is our doing */
        trace->calls[number < BENCH_TRACE_CALLS ? number : BENCH_TRACE_CALLS]++;
}

/* go_on -- let a stopped thread go on, to its next call as long as calls are counted. */
static void
go_on(struct bench_trace *trace, pid_t pid, pid_t thread, int status)
{
    bool is_call = WSTOPSIG(status) == (SIGTRAP | 0x80), is_event = status >> 16 != 0;
    int signal = is_call || is_event ? 0 : WSTOPSIG(status);

    if (is_call)
        note(trace, pid, thread);
    (void)ptrace(trace->marks < 2 ? PTRACE_SYSCALL : PTRACE_CONT, thread, NULL,
                 (void *)(intptr_t)signal);
}

int
bench_trace_run(struct bench_trace *trace, pid_t pid, int *statusp)
{
    pid_t thread;

    while ((thread = waitpid(-1, statusp, __WALL)) > 0) {
        if (WIFSTOPPED(*statusp))
            go_on(trace, pid, thread, *statusp);
        else if (thread == pid)
            return 0;
    }
    return errno;
}

const char *
bench_trace_name(unsigned number)
{
    static char text[16];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == (long)number)
            return names[i].name;
    snprintf(text, sizeof text, "call-%u", number);
    return text;
}
