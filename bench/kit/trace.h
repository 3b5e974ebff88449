/* SPDX-License-Identifier: MIT */
/*
 * trace.h -- which system calls a process makes.
 *
 * WHAT      Traces a process (ptrace) to its end, and counts the calls of all its threads between two
 *           marks of its first thread.
 * COUNTED   What enters the kernel by a system call: also the return from a signal's handler,
 *           which a trap has.  A page fault that the kernel handles by itself is none, and
 *           neither is a look at the clock in the vDSO.
 * NOT HERE  Times: a traced call is slow.
 */
#ifndef BENCH_TRACE_H
#define BENCH_TRACE_H

#include <stdint.h>
#include <sys/types.h>

#define BENCH_TRACE_CALLS 512u /* numbers of system calls that are told apart */

struct bench_trace {
    uint64_t calls[BENCH_TRACE_CALLS + 1]; /* the last one: numbers above              */
    unsigned marks; /* that the process has set: 1 while its calls count */
};

/* bench_trace_mark -- in the traced process: calls count from here on, or no more.  It is a call of
   getppid(), which nobody else makes. */
void bench_trace_mark(void);

/* bench_trace_seize -- stop a child with all threads that it has; those to come are traced by
   themselves.  ret 0 or errno */
int bench_trace_seize(pid_t pid);

/*
 * bench_trace_run -- let a seized child go on to its end, from stop to stop.
 *
 * out  trace    zeros before
 * out  statusp  as from waitpid(2)
 * ret  0, or errno of waitpid(2)
 */
int bench_trace_run(struct bench_trace *trace, pid_t pid, int *statusp);

/* bench_trace_name -- of a call; in static storage, until the next call. */
const char *bench_trace_name(unsigned number);

#endif /* BENCH_TRACE_H */
