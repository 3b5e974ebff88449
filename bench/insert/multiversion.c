/* SPDX-License-Identifier: MIT */
/*
 * multiversion.c -- the experiment `multiversion`: does a cache-oblivious tree stay
 * cache-oblivious when its pages have versions (Thesis ch. 6, question 6)?
 *
 * Each tree, plain and on libxac, does the same searches and inserts.  Counted are page
 * faults, distinct pages (on libxac, without hints, each traps once in a transaction; the
 * plain build of the same source touches the same ones), and, with valgrind, misses of
 * the simulated caches, by the difference of a run with the steps and one without.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/kit/micro.h"
#include "bench/kit/options.h"
#include "bench/kit/system.h"
#include "bench/kit/worker.h"
#include "bench/kit/workload.h"
#include "bench/main/xbench.h"

/* Caches that cachegrind simulates: size, ways, line. */
#define CACHE_D1 "--D1=32768,8,64"
#define CACHE_LL "--LL=1048576,16,64"

struct options {
    struct bench_common common;
    uint64_t loaded;
    uint64_t count;
    const char *probe;    /* NULL, or the system that this process is to run          */
    const char *workload; /* of the probe                                             */
};

/* Ours trap at each page that a transaction touches, so traps count pages. */
static const struct bench_system *const systems[] = {&bench_mmap, &bench_btree_strict,
                                                     &bench_mmap_co,
                                                     &bench_cobtree_strict};
#define N_SYSTEMS (sizeof systems / sizeof systems[0])

/* What a probe found by itself. */
struct found {
    double us;     /* per step                                                        */
    double faults; /* page faults of the kernel's, per step                           */
    double traps;  /* page faults that libxac handled, per step; negative: not on it  */
};

/* What cachegrind counted. */
struct counts {
    double refs, d1, ll; /* data references, misses of the first and the last level    */
};

/* ---- The probe: one system in this process ------------------------------------------ */

/* find_workload -- by name; it is there. */
static const struct bench_workload *
find_workload(const char *name)
{
    const struct bench_workload *w = bench_workloads;

    while (w->name != NULL && strcmp(w->name, name) != 0)
        w++;
    return w;
}

/* steps -- first to end; ret 0 or a code of the system. */
static int
steps(const struct bench_job *job, const struct bench_system *system, void *handle)
{
    uint64_t retries = 0, t0, t1;
    int rc = 0;

    for (uint64_t i = 0; i < job->steps && rc == 0; i++) {
        struct bench_step step;

        job->workload->make(job, i, &step);
        rc = bench_job_do(job, system, handle, &step, &retries, &t0, &t1);
    }
    return rc;
}

/* load -- the first records; ret 0 or a code of the system. */
static int
load(const struct bench_job *job, const struct bench_system *system, void *handle)
{
    uint64_t retries = 0, t0, t1;
    int rc = 0;

    for (uint64_t i = 0; i < job->loaded && rc == 0; i++) {
        const struct bench_step step = {.kind = BENCH_STEP_INSERT, .record = i};

        rc = bench_job_do(job, system, handle, &step, &retries, &t0, &t1);
    }
    return rc;
}

/* measured -- the steps, and what they cost. */
static int
measured(const struct bench_job *job, const struct bench_system *system, void *handle,
         struct found *out)
{
    struct bench_counters c0, c1;
    struct rusage u0, u1;
    uint64_t began;
    int rc = bench_count(system, handle, &c0);

    if (rc != 0)
        return rc;
    getrusage(RUSAGE_SELF, &u0);
    began = bench_now_ns();
    rc = steps(job, system, handle);
    out->us = (double)(bench_now_ns() - began) / 1e3 / (double)job->steps;
    getrusage(RUSAGE_SELF, &u1);
    if (rc == 0)
        rc = bench_count(system, handle, &c1);
    if (rc != 0)
        return rc;
    out->faults = (double)(u1.ru_minflt + u1.ru_majflt - u0.ru_minflt - u0.ru_majflt)
                  / (double)job->steps;
    out->traps =
        c0.traps == BENCH_NONE ? -1 : (double)(c1.traps - c0.traps) / (double)job->steps;
    return 0;
}

/* probe -- open, load, do, close; ret 0, or 1 after a message. */
static int
probe(const struct options *o, const struct bench_system *system, const char *workload,
      const char *dir, struct found *out)
{
    struct bench_job job = {.workload = find_workload(workload),
                            .seed = 1,
                            .loaded = o->loaded,
                            .steps = o->count};
    const struct bench_config config = {.system = system,
                                        .dir = dir,
                                        .count = o->loaded + o->count,
                                        .block_bytes = 4096,
                                        .checkpoint_bytes = UINT64_C(256) << 20,
                                        .log_file_bytes = UINT64_C(16) << 20};
    void *handle = NULL;
    int rc = system->open(&config, true, &handle), rc2;

    if (rc != 0)
        return bench_fail("%s: %s", system->name, system->explain(rc));
    rc = load(&job, system, handle);
    if (rc == 0 && job.steps > 0)
        rc = measured(&job, system, handle, out);
    rc2 = system->close(handle);
    rc = rc != 0 ? rc : rc2;
    return rc == 0 ? 0 : bench_fail("%s: %s", system->name, system->explain(rc));
}

/* ---- Probes in other processes ------------------------------------------------------- */

/* wait_for -- ret 0 if it exited with 0. */
static int
wait_for(pid_t pid)
{
    int status = 0;

    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        if (bench_interrupted())
            (void)kill(pid, SIGTERM);
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

/* run_plain -- a probe in a child; ret 0, or 1 after a message. */
static int
run_plain(const struct options *o, const struct bench_system *system,
          const char *workload, struct found *out)
{
    char dir[BENCH_DIR_BYTES];
    int fds[2], rc = bench_dir_make(&o->common, dir);
    pid_t pid;

    if (rc != 0 || pipe2(fds, O_CLOEXEC) != 0)
        return rc != 0 ? rc : bench_fail("pipe: %s", strerror(errno));
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        rc = probe(o, system, workload, dir, out);
        _exit(rc == 0 && write(fds[1], out, sizeof *out) == (ssize_t)sizeof *out ? 0 : 1);
    }
    close(fds[1]);
    rc = read(fds[0], out, sizeof *out) == (ssize_t)sizeof *out ? 0 : 1;
    close(fds[0]);
    rc |= wait_for(pid);
    rc |= bench_dir_remove(dir);
    return rc == 0 ? 0 : bench_fail("%s, %s: no result", system->name, workload);
}

/* read_counts -- the last line of cachegrind's file: summary: Ir I1mr ILmr Dr D1mr DLmr Dw
   D1mw DLmw; ret 0 or 1. */
static int
read_counts(const char *path, struct counts *out)
{
    FILE *f = fopen(path, "re");
    char line[512];
    double v[9];
    int rc = 1;

    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "summary: %lf %lf %lf %lf %lf %lf %lf %lf %lf", &v[0], &v[1],
                   &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8])
            == 9) {
            *out = (struct counts){v[3] + v[6], v[4] + v[7], v[5] + v[8]};
            rc = 0;
        }
    if (f != NULL)
        fclose(f);
    return rc;
}

/* exec_cachegrind -- in a child: this program again, as a probe. */
static void __attribute__((noreturn))
exec_cachegrind(const struct options *o, const char *name, const char *workload,
                uint64_t count, const char *dir)
{
    char out[PATH_MAX], self[PATH_MAX], loaded[32], steps_text[32];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (n < 0 || null < 0)
        _exit(127);
    self[n] = '\0';
    snprintf(out, sizeof out, "--cachegrind-out-file=%s/cachegrind", dir);
    snprintf(loaded, sizeof loaded, "%llu", (unsigned long long)o->loaded);
    snprintf(steps_text, sizeof steps_text, "%llu", (unsigned long long)count);
    (void)dup2(null, STDOUT_FILENO);
    (void)dup2(null, STDERR_FILENO); /* misses() says that there are no counts */
    /* The page faults that libxac handles need the registers of the fault, and an instruction
       to start again at: with several in a block cachegrind 3.19 loses the second fault. */
    execlp("valgrind", "valgrind", "-q", "--tool=cachegrind", "--cache-sim=yes", CACHE_D1,
           CACHE_LL, out, "--vex-iropt-register-updates=allregs-at-mem-access",
           "--vex-guest-max-insns=1", self, "multiversion", "--probe", name, "--workload",
           workload, "--loaded", loaded, "--count", steps_text, "--dir", dir,
           (char *)NULL);
    _exit(127);
}

/* run_cachegrind -- ret 0, or 1 if there are no counts. */
static int
run_cachegrind(const struct options *o, const char *name, const char *workload,
               uint64_t count, struct counts *out)
{
    char dir[BENCH_DIR_BYTES], path[PATH_MAX];
    int rc = bench_dir_make(&o->common, dir);
    pid_t pid;

    if (rc != 0)
        return rc;
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        exec_cachegrind(o, name, workload, count, dir);
    }
    rc = wait_for(pid);
    snprintf(path, sizeof path, "%s/cachegrind", dir);
    if (rc == 0)
        rc = read_counts(path, out);
    return rc | bench_dir_remove(dir);
}

/* misses -- per step, of simulated caches; negative numbers without valgrind. */
static struct counts
misses(const struct options *o, const char *name, const char *workload)
{
    struct counts with, without, none = {-1, -1, -1};
    double n = (double)o->count;

    if (run_cachegrind(o, name, workload, 0, &without) != 0
        || run_cachegrind(o, name, workload, o->count, &with) != 0) {
        (void)bench_fail("multiversion: no misses of %s: valgrind is not there, or does "
                         "not run it",
                         name);
        return none;
    }
    return (struct counts){(with.refs - without.refs) / n, (with.d1 - without.d1) / n,
                           (with.ll - without.ll) / n};
}

/* ---- Report --------------------------------------------------------------------------- */

static void
print(const struct options *o, const struct bench_system *system, const char *workload,
      const struct found *f, const struct counts *c)
{
    bool is_co = system == &bench_mmap_co || system == &bench_cobtree_strict;
    bool is_plain = system == &bench_mmap || system == &bench_mmap_co;
    const char *tree = is_co ? "cobtree" : "btree";
    const char *build = is_plain ? "serial" : "transactional";

    if (!o->common.json) {
        printf("%-8s %-14s %-8s %10.2f %8.2f %8.2f %10.0f %10.1f %10.1f\n", tree, build,
               workload, f->us, f->faults, f->traps, c->refs, c->d1, c->ll);
        fflush(stdout);
        return;
    }
    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "multiversion");
    bench_json_str(stdout, "tree", tree);
    bench_json_str(stdout, "build", build);
    bench_json_str(stdout, "workload", workload);
    bench_json_num(stdout, "us_per_step", f->us);
    bench_json_num(stdout, "page_faults_per_step", f->faults);
    bench_json_num(stdout, "distinct_pages_per_step", f->traps);
    bench_json_num(stdout, "data_references_per_step", c->refs);
    bench_json_num(stdout, "d1_misses_per_step", c->d1);
    bench_json_num(stdout, "ll_misses_per_step", c->ll);
    bench_json_u64(stdout, "loaded", o->loaded);
    bench_json_u64(stdout, "count", o->count);
    bench_json_end(stdout);
}

static void
usage(void)
{
    puts("Searches and inserts in both trees, plain and on libxac (nondurable, without\n"
         "hints): page faults of the kernel, distinct pages of a transaction, and with\n"
         "valgrind misses of simulated caches (32 KiB, and 1 MiB as the last level).\n"
         "Negative: does not apply, or valgrind is not there.\n"
         "\n"
         "  --loaded N   records there before; default 20000\n"
         "  --count N    searches, inserts; default 10000\n"
         "  --dir DIR    where the trees go; default the current directory\n"
         "  --json, --quiet, --help");
}

/* run_all -- ret exit status. */
static int
run_all(const struct options *o)
{
    static const char *const workloads[] = {"search", "insert"};
    int rc = 0;

    bench_catch_signals();
    bench_progress_enable(o->common.quiet);
    if (!o->common.json)
        printf("%-8s %-14s %-8s %10s %8s %8s %10s %10s %10s\n", "tree", "build", "steps",
               "us/step", "faults", "pages", "data refs", "D1 misses", "LL misses");
    for (unsigned i = 0; i < 2 * N_SYSTEMS && rc == 0; i++) {
        const struct bench_system *system = systems[i % N_SYSTEMS];
        struct counts counts;
        struct found found;

        if (bench_interrupted())
            return bench_fail("interrupted");
        bench_progress(system->name, i, 2 * N_SYSTEMS);
        rc = run_plain(o, system, workloads[i / N_SYSTEMS], &found);
        if (rc != 0)
            break;
        counts = misses(o, system->name, workloads[i / N_SYSTEMS]);
        bench_progress_clear();
        print(o, system, workloads[i / N_SYSTEMS], &found, &counts);
    }
    return rc;
}

int
bench_multiversion_main(int argc, char **argv)
{
    static struct options o = {.loaded = 20000, .count = 10000, .workload = "search"};
    const struct bench_option table[] = {
        {.name = "loaded", .number = &o.loaded, .low = 1, .high = 1 << 30},
        {.name = "count", .number = &o.count, .high = 1 << 30},
        {.name = "probe", .text = &o.probe},
        {.name = "workload", .text = &o.workload},
        BENCH_OPTION_DIR(&o.common),
        {0},
    };
    struct found found;
    int rc;

    if (!bench_options_parse(argc, argv, table, usage, &o.common, &rc))
        return rc;
    if (o.probe == NULL && o.count == 0)
        return 2 * bench_fail("--count 0: nothing to measure");
    if (o.probe == NULL)
        return run_all(&o);
    if (find_workload(o.workload)->name == NULL)
        return 2 * bench_fail("--workload %s: there is no such workload", o.workload);
    for (unsigned i = 0; i < N_SYSTEMS; i++)
        if (strcmp(systems[i]->name, o.probe) == 0)
            return probe(&o, systems[i], o.workload, o.common.dir, &found);
    return 2 * bench_fail("--probe %s: no such system here", o.probe);
}
