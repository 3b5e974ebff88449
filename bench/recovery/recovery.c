/* SPDX-License-Identifier: MIT */
/*
 * recovery.c -- see recovery.h: command line, rounds, report.
 */
#include <config.h>

#include "bench/recovery/recovery.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/machine.h"
#include "bench/kit/util.h"
#include "bench/kit/worker.h"
#include "bench/main/xbench.h"

#define MIB (UINT64_C(1) << 20)

/* ---- Command line ----------------------------------------------------------------- */

static void
usage(void)
{
    puts("Recover a long log, beside cat(1) of the same files; kill recoveries.\n"
         "\n"
         "  --log BYTES        of log, data files included (1G)\n"
         "  --data BYTES       of the mapped file (64M)\n"
         "  --txn-pages N      random pages changed by a transaction (16)\n"
         "  --change BYTES     of each of them (512)\n"
         "  --rounds N         cat and recovery so often, in turn (3)\n"
         "  --kills N          recoveries killed at random moments at last (20)\n"
         "  --seed N           of the random pages and moments (1)\n"
         "  --dir DIR          where to make a directory (.)\n"
         "  --json             one JSON object\n"
         "  --quiet            no progress bar\n"
         "\n"
         "BYTES may end in K, M or G.");
}

/* parse -- as bench_options_parse. */
static bool
parse(int argc, char **argv, struct bench_rec_options *o, int *statusp)
{
    const uint64_t bytes_max = UINT64_C(1) << 40;
    const struct bench_option table[] = {
        {.name = "log", .number = &o->log_bytes, .low = MIB, .high = bytes_max},
        {.name = "data", .number = &o->data_bytes, .low = MIB, .high = bytes_max},
        {.name = "txn-pages", .number = &o->txn_pages, .low = 1, .high = 1 << 20},
        {.name = "change", .number = &o->change_bytes, .low = 1, .high = 4096},
        {.name = "rounds", .number = &o->rounds, .low = 1, .high = BENCH_REC_ROUNDS_MAX},
        {.name = "kills", .number = &o->kills, .low = 0, .high = 1 << 20},
        {.name = "seed", .number = &o->seed, .low = 0, .high = UINT64_MAX},
        BENCH_OPTION_DIR(&o->common),
        {0},
    };

    *o = (struct bench_rec_options){
        .log_bytes = 1024 * MIB,
        .data_bytes = 64 * MIB,
        .txn_pages = 16,
        .change_bytes = 512,
        .rounds = 3,
        .kills = 20,
        .seed = 1,
    };
    if (!bench_options_parse(argc, argv, table, usage, &o->common, statusp))
        return false;
    *statusp = 2 * bench_options_no_quick(&o->common);
    o->data_bytes &= ~(MIB - 1);
    return *statusp == 0;
}

/* ---- What is measured ------------------------------------------------------------- */

/* log_files -- segments and data files, as glob(3) gives them. */
static int
log_files(const struct bench_rec *r, glob_t *g)
{
    char pattern[512];

    (void)snprintf(pattern, sizeof pattern, "%s/env/xac-log.*", r->dir);
    if (glob(pattern, 0, NULL, g) != 0)
        return bench_fail("%s: nothing there", pattern);
    (void)snprintf(pattern, sizeof pattern, "%s/env/xac-data.*", r->dir);
    (void)glob(pattern, GLOB_APPEND, NULL, g);
    return 0;
}

/* forget -- take the log out of the page cache; *bytesp its size. */
static int
forget(const glob_t *g, uint64_t *bytesp)
{
    *bytesp = 0;
    for (size_t i = 0; i < g->gl_pathc; i++) {
        struct stat st;
        int fd = open(g->gl_pathv[i], O_RDONLY | O_CLOEXEC);
        int failed = fd < 0 || fsync(fd) != 0 || fstat(fd, &st) != 0
                     || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0;

        if (fd >= 0)
            close(fd);
        if (failed)
            return bench_fail("%s: %s", g->gl_pathv[i], strerror(errno));
        *bytesp += (uint64_t)st.st_size;
    }
    return 0;
}

/* run_cat -- in a child: cat of all files to /dev/null. */
static void
run_cat(const glob_t *g)
{
    char **argv = (char **)calloc(g->gl_pathc + 2, sizeof argv[0]);
    char cat[] = "cat";
    int null = open("/dev/null", O_WRONLY);

    if (argv == NULL || null < 0 || dup2(null, STDOUT_FILENO) < 0)
        _exit(127);
    argv[0] = cat;
    memcpy(argv + 1, g->gl_pathv, g->gl_pathc * sizeof argv[0]);
    execvp("cat", argv);
    _exit(127);
}

/* run_recover -- in a child. */
static void
run_recover(const struct bench_rec *r)
{
    char env[512];

    (void)snprintf(env, sizeof env, "%s/env", r->dir);
    if (xac_recover(env) == 0)
        _exit(0);
    (void)bench_fail("xRecover: %s", xac_last_error());
    _exit(1);
}

/* finish -- wait for a child; ret 0 if it exited with 0; *up what it used. */
static int
finish(pid_t pid, const char *what, struct rusage *up)
{
    int status;

    if (pid < 0 || wait4(pid, &status, 0, up) != pid)
        return bench_fail("%s: %s", what, strerror(errno));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return bench_fail("%s failed", what);
    return 0;
}

/* cpu_seconds -- of user and system. */
static double
cpu_seconds(const struct rusage *u)
{
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec)
           + (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e6;
}

/* time_child -- run one of the two in round i. */
static int
time_child(struct bench_rec *r, const glob_t *g, bool is_cat, uint64_t i)
{
    struct rusage u;
    uint64_t bytes, began;
    pid_t pid;
    int rc;

    if (forget(g, &bytes) != 0)
        return 1;
    r->log_bytes = bytes;
    began = bench_now_ns();
    pid = fork();
    if (pid == 0 && is_cat)
        run_cat(g);
    if (pid == 0)
        run_recover(r);
    rc = finish(pid, is_cat ? "cat" : "recovery", &u);
    (is_cat ? r->cat_seconds : r->recover_seconds)[i] =
        (double)(bench_now_ns() - began) / 1e9;
    if (rc != 0)
        return rc;
    (is_cat ? r->cat_cpu : r->recover_cpu)[i] = cpu_seconds(&u);
    if (!is_cat && (uint64_t)u.ru_maxrss > r->peak_kib)
        r->peak_kib = (uint64_t)u.ru_maxrss;
    return 0;
}

/* one_round -- cat, recovery, proof. */
static int
one_round(struct bench_rec *r, uint64_t i)
{
    glob_t g = {.gl_pathc = 0};
    int rc = bench_rec_reset(r);

    bench_progress("cat and recovery", i, r->options->rounds);
    if (rc == 0)
        rc = log_files(r, &g);
    if (rc == 0)
        rc = time_child(r, &g, true, i);
    if (rc == 0)
        rc = time_child(r, &g, false, i);
    globfree(&g);
    return rc == 0 ? bench_rec_verify(r) : rc;
}

/* kill_one -- a recovery, killed after a part of the time that one takes; *hitp false if it
   had come to its end. */
static int
kill_one(struct bench_rec *r, uint64_t ns, bool *hitp)
{
    struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    int status;
    pid_t pid = fork();

    if (pid == 0)
        run_recover(r);
    (void)nanosleep(&t, NULL);
    if (pid < 0 || kill(pid, SIGKILL) != 0 || waitpid(pid, &status, 0) != pid)
        return bench_fail("recovery: %s", strerror(errno));
    *hitp = WIFSIGNALED(status);
    return 0;
}

/* kill_rounds -- recoveries killed at random moments, one after the other, then a whole
   one.  One that was done before the kill is verified, and the log put back. */
static int
kill_rounds(struct bench_rec *r, double seconds)
{
    const struct bench_rec_options *o = r->options;
    struct rusage u;
    pid_t pid;
    int rc = bench_rec_reset(r);

    for (uint64_t i = 0; rc == 0 && r->n_killed < o->kills; i++) {
        uint64_t part = bench_key(o->seed + 1, i) % 1000;
        bool hit = false;

        bench_progress("killing recoveries", r->n_killed, o->kills);
        rc = kill_one(r, (uint64_t)(seconds * 1e6) * part, &hit);
        r->n_killed += hit;
        if (rc == 0 && !hit) {
            rc = bench_rec_verify(r);
            if (rc == 0)
                rc = bench_rec_reset(r);
        }
    }
    if (rc != 0)
        return rc;
    pid = fork();
    if (pid == 0)
        run_recover(r);
    rc = finish(pid, "recovery after the kills", &u);
    return rc == 0 ? bench_rec_verify(r) : rc;
}

/* measure_base -- peak size of a child that does nothing. */
static int
measure_base(struct bench_rec *r)
{
    struct rusage u;
    pid_t pid = fork();
    int rc;

    if (pid == 0)
        _exit(0);
    rc = finish(pid, "fork", &u);
    r->base_kib = rc == 0 ? (uint64_t)u.ru_maxrss : 0;
    return rc;
}

/* ---- Report ----------------------------------------------------------------------- */

static void
print_json(const struct bench_rec *r, double cat, double recover)
{
    const struct bench_rec_options *o = r->options;

    bench_json_begin(stdout);
    bench_json_str(stdout, "experiment", "recovery");
    bench_json_str(stdout, "file_system", bench_fs_name(o->common.dir));
    bench_json_u64(stdout, "log_bytes", r->log_bytes);
    bench_json_u64(stdout, "data_bytes", o->data_bytes);
    bench_json_u64(stdout, "txn_pages", o->txn_pages);
    bench_json_u64(stdout, "change_bytes", o->change_bytes);
    bench_json_u64(stdout, "seed", o->seed);
    bench_json_nums(stdout, "cat_seconds", r->cat_seconds, o->rounds);
    bench_json_nums(stdout, "recovery_seconds", r->recover_seconds, o->rounds);
    bench_json_nums(stdout, "write_seconds", r->write_seconds, r->n_writes);
    bench_json_nums(stdout, "cat_cpu_seconds", r->cat_cpu, o->rounds);
    bench_json_nums(stdout, "recovery_cpu_seconds", r->recover_cpu, o->rounds);
    bench_json_num(stdout, "cat_mb_per_s", (double)r->log_bytes / 1e6 / cat);
    bench_json_num(stdout, "recovery_mb_per_s", (double)r->log_bytes / 1e6 / recover);
    bench_json_u64(stdout, "recovery_peak_kib", r->peak_kib);
    bench_json_u64(stdout, "idle_process_kib", r->base_kib);
    bench_json_u64(stdout, "killed_at_work", r->n_killed);
    bench_json_bool(stdout, "right", true);
    bench_json_end(stdout);
}

static void
print_text(const struct bench_rec *r, double cat, double recover)
{
    const struct bench_rec_options *o = r->options;
    double mb = (double)r->log_bytes / 1e6;

    printf("log %.0f MB, mapped file %.0f MB, transactions of %llu pages with %llu bytes "
           "each, %s, medians of %llu rounds\n",
           mb, (double)o->data_bytes / 1e6, (unsigned long long)o->txn_pages,
           (unsigned long long)o->change_bytes, bench_fs_name(o->common.dir),
           (unsigned long long)o->rounds);
    printf("  cat       %8.0f MB/s  %6.2f s, of processor time %.2f s\n", mb / cat, cat,
           bench_median(r->cat_cpu, o->rounds));
    printf(
        "  write               %6.2f s: the mapped file, by the page, and synced, as a "
        "recovery must\n",
        bench_median(r->write_seconds, r->n_writes));
    printf(
        "  recovery  %8.0f MB/s  %6.2f s, of processor time %.2f s: %.2f of cat's rate\n",
        mb / recover, recover, bench_median(r->recover_cpu, o->rounds), cat / recover);
    printf(
        "  peak memory of a recovery %.1f MiB, of a process that does nothing %.1f MiB\n",
        (double)r->peak_kib / 1024, (double)r->base_kib / 1024);
    printf("  killed %llu recoveries at work; the next one was right\n",
           (unsigned long long)r->n_killed);
}

/* run -- the whole, in a directory that is there; ret 0, or 1 after a message. */
static int
run(struct bench_rec *r)
{
    const struct bench_rec_options *o = r->options;
    double cat, recover;
    int rc = measure_base(r);

    if (rc == 0)
        rc = bench_rec_make(r);
    for (uint64_t i = 0; rc == 0 && i < o->rounds; i++)
        rc = bench_interrupted() ? bench_fail("interrupted") : one_round(r, i);
    if (rc != 0)
        return rc;
    cat = bench_median(r->cat_seconds, o->rounds);
    recover = bench_median(r->recover_seconds, o->rounds);
    rc = kill_rounds(r, recover);
    bench_progress_clear();
    if (rc == 0)
        (o->common.json ? print_json : print_text)(r, cat, recover);
    return rc;
}

int
bench_recovery_main(int argc, char **argv)
{
    static struct bench_rec_options o;
    static struct bench_rec r;
    int rc;

    if (!parse(argc, argv, &o, &rc))
        return rc;
    r.options = &o;
    bench_catch_signals();
    bench_progress_enable(o.common.quiet);
    (void)snprintf(r.dir, sizeof r.dir, "%s/xbench-XXXXXX", o.common.dir);
    if (mkdtemp(r.dir) == NULL)
        return bench_fail("%s: %s", r.dir, strerror(errno));
    rc = run(&r);
    if (bench_remove_tree(r.dir) != 0)
        rc = bench_fail("%s: cannot be removed: %s", r.dir, strerror(errno));
    return rc;
}
