/* SPDX-License-Identifier: MIT */
/*
 * run.c -- xbench run, xbench report: experiments that keep their results.
 *
 * WHAT      `xbench run NAME...` runs each experiment in a process of its own.  Its
 *           output goes to DIR/NAME.jsonl: first a line {"record": "run", ...} with
 *           command, version, date and machine, then the measurements, one a line, at last
 *           {"record": "end", ...} with the time that all took.
 * INVARIANT A file in DIR is whole and of a run that succeeded: it is written as
 *           NAME.jsonl.new and renamed at the end.  The file of the last run stays if the
 *           run fails.
 */
#include <config.h>

#include "bench/main/xbench.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/machine.h"
#include "bench/kit/perf.h"
#include "bench/kit/thesis.h"
#include "bench/kit/util.h"

#define OUT_DEFAULT "results"

struct run {
    bool quick;
    bool medium;
    bool is_all;
    bool perf;
    const char *out; /* as given                                                     */
    const char *dir; /* where the temporary files of experiments go                  */
    int n_extra;     /* arguments behind "--"                                        */
    char **extra;
    char command[1024];
};

static void
usage(FILE *f)
{
    fputs(
        "usage: xbench run NAME...|all [OPTION...] [-- ARG...]\n"
        "\n"
        "Runs experiments (see xbench list) and keeps what they measured: one file\n"
        "NAME.jsonl each, a JSON object per line.\n"
        "\n"
        "  --quick    small: all experiments together take less than 20 minutes\n"
        "  --medium   all experiments together take about 35 minutes; without either of\n"
        "             the two they take three hours\n"
        "  --perf     count page faults, context switches and the like, and cycles and misses\n"
        "             where the machine gives them; they stand in the last line of a result\n"
        "  --out DIR  where the results go, made if it is not there; default results\n"
        "  --dir DIR  where experiments put their files, which are removed; on the disk\n"
        "             to be measured; default the current directory\n"
        "  -- ARG...  further arguments of the experiment, behind its own\n"
        "\n"
        "Exit code 1 if an experiment fails (its result of before stays), 2 after a wrong\n"
        "argument, 3 if none fails, and a row with a line to pass has not passed it (frames,\n"
        "swizzle); its results are kept.\n",
        f);
}

/* print_head -- first line of a result: what runs, when, where. */
static void
print_head(FILE *f, const struct run *run, const struct bench_experiment *x)
{
    time_t now = time(NULL);
    struct tm tm;
    char date[40];

    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    bench_json_begin(f);
    bench_json_str(f, "record", "run");
    bench_json_str(f, "experiment", x->name);
    bench_json_str(f, "what", x->what);
    bench_json_str(f, "thesis", x->thesis);
    bench_json_bool(f, "quick", run->quick);
    bench_json_bool(f, "medium", run->medium);
    bench_json_str(f, "command", run->command);
    bench_json_str(f, "library_version", xac_version());
    bench_json_str(f, "date", date);
    bench_machine_print(f, run->dir);
    bench_json_end(f);
}

/* arguments -- those of the size that is asked for; NULL: none. */
static const char *
arguments(const struct run *run, const struct bench_experiment *x)
{
    if (run->quick)
        return x->quick;
    return run->medium && x->medium != NULL ? x->medium : x->full;
}

/* child -- in a process of its own: the experiment, its output to the file. */
static void __attribute__((noreturn))
child(const struct run *run, const struct bench_experiment *x, int fd)
{
    static char json[] = "--json";
    char *argv[64] = {json};
    int argc = 1, rc;

    for (int i = 0; i < run->n_extra && argc < 63; i++)
        argv[argc++] = run->extra[i];
    if (dup2(fd, STDOUT_FILENO) < 0 || chdir(run->dir) != 0)
        _exit(1);
    optind = 0; /* getopt(3) starts anew */
    rc = bench_experiment_call(x, arguments(run, x), argc, argv);
    fflush(stdout);
    _exit(rc);
}

/* count_lines -- of a file; 0 if it cannot be read. */
static unsigned
count_lines(const char *path)
{
    FILE *f = fopen(path, "re");
    unsigned n = 0;
    int c;

    while (f != NULL && (c = getc(f)) != EOF)
        n += c == '\n';
    if (f != NULL)
        fclose(f);
    return n;
}

/* measure -- run x into f; *secondsp what it took, *is_shortp whether a row has not passed its line; ret 0, or
   1 after a message. */
static int
measure(const struct run *run, const struct bench_experiment *x, FILE *f,
        double *secondsp, bool *is_shortp)
{
    struct bench_perf perf;
    uint64_t began;
    int status = 0;
    pid_t pid;

    print_head(f, run, x);
    fflush(NULL);
    if (run->perf && bench_perf_open(&perf) == 0)
        return bench_fail("--perf: perf_event_open gives no event; see "
                          "/proc/sys/kernel/perf_event_paranoid");
    began = bench_now_ns();
    pid = fork();
    if (pid == 0)
        child(run, x, fileno(f));
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    *secondsp = (double)(bench_now_ns() - began) / 1e9;
    if (pid < 0)
        return bench_fail("fork: %s", strerror(errno));
    if (WIFSIGNALED(status))
        return bench_fail("%s: died of signal %d (%s)", x->name, WTERMSIG(status),
                          strsignal(WTERMSIG(status)));
    *is_shortp = WEXITSTATUS(status) == BENCH_SHORT;
    if (WEXITSTATUS(status) != 0 && !*is_shortp)
        return bench_fail("%s: failed, with exit status %d; its results are not kept",
                          x->name, WEXITSTATUS(status));
    if (fseek(f, 0, SEEK_END) != 0)
        return bench_fail("%s: %s", x->name, strerror(errno));
    bench_json_begin(f);
    bench_json_str(f, "record", "end");
    bench_json_num(f, "seconds", *secondsp);
    if (run->perf) {
        bench_json_key(f, "perf");
        bench_perf_print(&perf, f);
        bench_perf_close(&perf);
    }
    bench_json_end(f);
    return 0;
}

/* run_one -- into a new file, which becomes the result; ret 0, BENCH_SHORT if a row has not passed its line, or
   1 after a message. */
static int
run_one(const struct run *run, const struct bench_experiment *x)
{
    bool is_short = false;
    char path[PATH_MAX], fresh[PATH_MAX + 8];
    double seconds = 0;
    FILE *f;
    int rc;

    printf("%-18s ", x->name);
    fflush(stdout);
    snprintf(path, sizeof path, "%s/%s.jsonl", run->out, x->name);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    f = fopen(fresh, "w+e");
    if (f == NULL)
        return bench_fail("%s: %s", fresh, strerror(errno));
    rc = measure(run, x, f, &seconds, &is_short);
    if (fclose(f) != 0 && rc == 0)
        rc = bench_fail("%s: %s", fresh, strerror(errno));
    if (rc == 0 && rename(fresh, path) != 0)
        rc = bench_fail("%s: %s", path, strerror(errno));
    if (rc != 0) {
        unlink(fresh);
        return rc;
    }
    printf("%7.1f s  %3u measurements in %s%s\n", seconds, count_lines(path) - 2, path,
           is_short ? "; a row has not passed its line" : "");
    fflush(stdout);
    return is_short ? BENCH_SHORT : 0;
}

/* parse -- options; ret 0, 1 for --help, or 2 after a message. */
static int
parse(struct run *run, int argc, char **argv)
{
    static const struct option long_options[] = {{"quick", no_argument, NULL, 'q'},
                                                 {"medium", no_argument, NULL, 'm'},
                                                 {"out", required_argument, NULL, 'o'},
                                                 {"dir", required_argument, NULL, 'd'},
                                                 {"perf", no_argument, NULL, 'p'},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {0}};
    int code;

    bench_join_command(run->command, sizeof run->command, argc, argv);
    for (int i = 1; i < argc; i++) /* what stands behind -- is not ours */
        if (strcmp(argv[i], "--") == 0) {
            run->extra = argv + i + 1;
            run->n_extra = argc - i - 1;
            argv[i] = NULL;
            argc = i;
        }
    while ((code = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        if (code == 'h')
            return 1;
        if (code == 'q')
            run->quick = true;
        else if (code == 'm')
            run->medium = true;
        else if (code == 'p')
            run->perf = true;
        else if (code == 'o')
            run->out = optarg;
        else if (code == 'd')
            run->dir = optarg;
        else
            return 2;
    }
    if (run->quick && run->medium) {
        (void)bench_fail("--quick and --medium exclude each other");
        return 2;
    }
    if (optind == argc) {
        (void)bench_fail("run what? a name of xbench list, or all");
        return 2;
    }
    return 0;
}

/* check_names -- all are known, "all" stands alone; ret 0, or 2 after a message. */
static int
check_names(struct run *run, int n, char **names)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(names[i], "all") == 0 && n == 1)
            run->is_all = true;
        else if (bench_experiment_find(names[i]) == NULL) {
            (void)bench_fail("no experiment \"%s\"; see xbench list", names[i]);
            return 2;
        }
    }
    if (run->n_extra > 0 && (run->is_all || n > 1)) {
        (void)bench_fail("arguments behind -- go with one experiment only");
        return 2;
    }
    return 0;
}

int
bench_run_main(int argc, char **argv)
{
    struct run run = {.out = OUT_DEFAULT, .dir = "."};
    unsigned n_failed = 0, n_short = 0, n = 0;
    struct stat st;
    int rc = parse(&run, argc, argv), first = optind;

    if (rc == 1)
        usage(stdout);
    if (rc != 0)
        return rc == 1 ? 0 : 2;
    argc -= run.extra != NULL ? run.n_extra + 1 : 0;
    rc = check_names(&run, argc - first, argv + first);
    if (rc != 0)
        return rc;
    if (mkdir(run.out, 0755) != 0 && errno != EEXIST)
        return bench_fail("--out %s: %s", run.out, strerror(errno));
    if (stat(run.dir, &st) != 0 || !S_ISDIR(st.st_mode))
        return bench_fail("--dir %s: no such directory", run.dir);
    for (const struct bench_experiment *x = bench_experiments; x->name != NULL; x++) {
        bool wanted = run.is_all;

        for (int i = first; i < argc && !wanted; i++)
            wanted = strcmp(argv[i], x->name) == 0;
        if (!wanted)
            continue;
        n++;
        rc = run_one(&run, x);
        n_failed += rc != 0 && rc != BENCH_SHORT;
        n_short += rc == BENCH_SHORT;
    }
    if (n_failed > 0)
        return bench_fail("%u of %u experiments failed", n_failed, n);
    if (n_short > 0)
        printf("%u of %u experiments have rows that have not passed their lines\n",
               n_short, n);
    return n_short > 0 ? BENCH_SHORT : 0;
}

/* thesis_file -- the Thesis' numbers in a file without a name; its descriptor, or -1. */
static int
thesis_file(void)
{
    FILE *f = tmpfile();

    if (f == NULL)
        return -1;
    bench_thesis_print(f);
    return fflush(f) == 0 ? fileno(f) : -1; /* stays open for the program to come */
}

int
bench_report_main(int argc, char **argv)
{
    static char python[] = "python3", script[] = BENCH_SRCDIR "/main/report.py";
    char **v = (char **)calloc((size_t)argc + 3, sizeof v[0]);
    char thesis[40];
    int fd = thesis_file();

    if (v == NULL)
        return bench_fail("out of memory");
    if (fd < 0)
        return bench_fail("temporary file: %s", strerror(errno));
    snprintf(thesis, sizeof thesis, "--thesis=/dev/fd/%d", fd);
    v[0] = python;
    v[1] = script;
    v[2] = thesis;
    memcpy(v + 3, argv + 1, (size_t)(argc - 1) * sizeof v[0]);
    execvp(python, v);
    return bench_fail("python3: %s", strerror(errno));
}
