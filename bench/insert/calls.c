/* SPDX-License-Identifier: MIT */
/*
 * calls.c -- the experiment `calls`: how many system calls a step takes.
 *
 * WHAT      Each system has a process of its own, which opens it, loads records, does the steps
 *           of the workload, closes it and checks every record.  The parent traces the process
 *           and counts its calls around the steps (bench/kit/trace.h, also what counts).
 */
#include <config.h>

#include "bench/insert/insert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/kit/micro.h"
#include "bench/kit/team.h"
#include "bench/kit/trace.h"
#include "bench/kit/util.h"
#include "bench/kit/verify.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"

/* One system, traced. */
struct subject {
    const struct bench_insert_options *options;
    const struct bench_system *system;
    struct bench_config config;
    struct bench_job job;
    struct bench_trace trace;
};

/* ---- The traced process ------------------------------------------------------------- */

/* load_and_step -- what comes before; then, once the parent traces, what is counted. */
static int
load_and_step(struct subject *x, void *handle, int socket)
{
    const struct bench_job *job = &x->job;
    uint64_t retries = 0, t0, t1;
    char go;
    int rc = 0;

    for (uint64_t i = 0; i < job->loaded && rc == 0; i++) {
        const struct bench_step step = {.kind = BENCH_STEP_INSERT, .record = i};

        rc = bench_job_do(job, x->system, handle, &step, &retries, &t0, &t1);
    }
    if (rc == 0 && (write(socket, "", 1) != 1 || read(socket, &go, 1) != 1))
        return EPIPE;
    bench_trace_mark();
    for (uint64_t i = 0; i < job->steps && rc == 0; i++) {
        struct bench_step step;

        job->workload->make(job, i, &step);
        rc = bench_job_do(job, x->system, handle, &step, &retries, &t0, &t1);
    }
    bench_trace_mark();
    return rc;
}

/* check -- every record, after the system was opened again. */
static int
check(struct subject *x)
{
    void *handle = NULL;
    char text[240] = "";
    int rc, rc2;

    if (!(x->system->abilities & BENCH_KEEPS))
        return 0;
    rc = x->system->open(&x->config, false, &handle);
    if (rc != 0)
        return rc;
    rc = bench_verify(x->system, handle, &x->job, text, sizeof text);
    rc2 = x->system->close(handle);
    if (text[0] != '\0')
        (void)bench_fail("%s: %s", x->system->name, text);
    return rc != 0 ? rc : rc2;
}

/* be_traced -- exit status 0, or 1 after a message. */
static void __attribute__((noreturn)) be_traced(struct subject *x, int socket)
{
    void *handle = NULL;
    int rc = x->system->open(&x->config, true, &handle), rc2;

    if (rc == 0) {
        rc = load_and_step(x, handle, socket);
        rc2 = x->system->close(handle);
        rc = rc != 0 ? rc : rc2;
    }
    if (rc == 0)
        rc = check(x);
    if (rc != 0)
        (void)bench_fail("%s: %s", x->system->name, x->system->explain(rc));
    _exit(rc != 0);
}

/* ---- The tracer ----------------------------------------------------------------------- */

/*
 * trace -- a process that waits at its socket once it has loaded.
 *
 * ret  0 once it has ended well; 1 else, after its message or ours
 */
static int
trace(struct subject *x, pid_t pid, int socket)
{
    char loaded;
    bool is_there = read(socket, &loaded, 1) == 1; /* else it has said why not */
    int status = 0, rc = is_there ? bench_trace_seize(pid) : 0;

    if (rc == 0 && is_there && write(socket, "", 1) != 1)
        return 1;
    if (rc == 0)
        rc = bench_trace_run(&x->trace, pid, &status);
    if (rc != 0)
        return bench_fail("%s: ptrace: %s", x->system->name,
                          bench_interrupted() ? "interrupted" : strerror(rc));
    if (WIFSIGNALED(status))
        return bench_fail("%s: died of signal %d", x->system->name, WTERMSIG(status));
    return WEXITSTATUS(status) != 0;
}

/* ---- Output --------------------------------------------------------------------------- */

/* next_most -- the most frequent call of those not told yet; -1: none is left. */
static int
next_most(const struct subject *x, const bool *told)
{
    int best = -1;

    for (unsigned i = 0; i <= BENCH_TRACE_CALLS; i++)
        if (!told[i] && x->trace.calls[i] > 0
            && (best < 0 || x->trace.calls[i] > x->trace.calls[best]))
            best = (int)i;
    return best;
}

/* print -- a row, or an object; the calls by their frequency. */
static void
print(const struct subject *x)
{
    const struct bench_insert_options *o = x->options;
    const char *separator = "";
    bool told[BENCH_TRACE_CALLS + 1] = {false};
    double thousands = (double)x->job.steps / 1e3;
    uint64_t all = 0;
    FILE *f = stdout;
    int i;

    for (i = 0; i <= (int)BENCH_TRACE_CALLS; i++)
        all += x->trace.calls[i];
    if (o->common.json) {
        bench_json_begin(f);
        bench_json_str(f, "experiment", o->name);
        bench_json_str(f, "workload", x->job.workload->name);
        bench_json_str(f, "system", x->system->name);
        bench_json_bool(f, "durable", x->config.durable);
        bench_json_bool(f, "hints", x->config.hints);
        bench_json_u64(f, "loaded", x->job.loaded);
        bench_json_u64(f, "count", x->job.steps);
        bench_json_num(f, "calls_per_1000_steps", (double)all / thousands);
        bench_json_key(f, "calls_per_1000_steps_by_name");
        fputc('{', f);
    } else
        printf("%-22s %-8s %-8s %-5s %10.1f  ", x->system->name, x->job.workload->name,
               x->config.durable ? "yes" : "no",
               !(x->system->abilities & BENCH_HINTS) ? "-"
               : x->config.hints                     ? "on"
                                                     : "off",
               (double)all / thousands);
    while ((i = next_most(x, told)) >= 0) {
        told[i] = true;
        printf(o->common.json ? "%s\"%s\": %.6g" : "%s%s %.1f", separator,
               bench_trace_name((unsigned)i), (double)x->trace.calls[i] / thousands);
        separator = ", ";
    }
    if (o->common.json) {
        fputc('}', f);
        bench_json_end(f);
    } else
        putchar('\n');
    fflush(f);
}

/* ---- The experiment -------------------------------------------------------------------- */

/* count_calls -- of one system; ret 0, or 1 after a message. */
static int
count_calls(const struct bench_insert_options *o, const struct bench_job *job,
            const struct bench_system *system, bool durable, bool hints)
{
    struct subject x = {.options = o, .system = system, .job = *job};
    char dir[BENCH_DIR_BYTES];
    int socket, rc = bench_dir_make(&o->common, dir);
    pid_t pid;

    if (rc != 0)
        return rc;
    x.config = bench_insert_config(o, job, system, dir, durable, hints);
    bench_progress(system->name, 0, 1);
    pid = bench_team_fork(&socket, 1);
    if (pid == 0)
        be_traced(&x, socket);
    rc = pid < 0 ? 1 : trace(&x, pid, socket);
    if (socket >= 0)
        close(socket);
    bench_progress_clear();
    if (rc == 0)
        print(&x);
    if (bench_dir_remove(dir) != 0)
        rc = 1;
    return rc;
}

/* count_hints -- with the hints of the command line, if it has any. */
static int
count_hints(const struct bench_insert_options *o, const struct bench_job *job,
            const struct bench_system *system, bool durable)
{
    bool has_hints = (system->abilities & BENCH_HINTS) != 0;
    int rc = 0;

    if (!bench_insert_can_run(system, job->workload, durable, 1))
        return 0;
    if (!has_hints || o->hints_on)
        rc = count_calls(o, job, system, durable, has_hints);
    if (rc == 0 && has_hints && o->hints_off)
        rc = count_calls(o, job, system, durable, false);
    return rc;
}

/* count_all -- of a workload. */
static int
count_all(const struct bench_insert_options *o, const struct bench_workload *workload)
{
    struct bench_job job = bench_insert_job(o, workload);
    int rc = 0;

    for (unsigned i = 0; i < o->n_systems && rc == 0; i++) {
        if (o->durabilities & BENCH_DURABLE)
            rc = count_hints(o, &job, o->systems[i], true);
        if (rc == 0 && o->durabilities & BENCH_NOT_DURABLE)
            rc = count_hints(o, &job, o->systems[i], false);
    }
    return rc;
}

int
bench_calls_main(int argc, char **argv)
{
    static struct bench_insert_options o;
    int rc = 0;

    if (!bench_insert_parse(argc, argv, &o, &rc))
        return rc;
    if (o.procs.n != 1 || o.procs.v[0] != 1 || o.groups.n != 1 || o.groups.v[0] != 1) {
        (void)bench_fail("calls: one process, and no --groups");
        return 2;
    }
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    if (!o.common.json)
        printf("%-22s %-8s %-8s %-5s %10s  %s\n", "system", "workload", "durable",
               "hints", "calls/1000", "which, for 1,000 steps");
    for (unsigned i = 0; i < o.n_workloads && rc == 0; i++)
        rc = o.workloads[i]->has_writer
                 ? bench_fail("calls: %s has several processes", o.workloads[i]->name)
                 : count_all(&o, o.workloads[i]);
    free(o.ranks);
    return rc;
}
