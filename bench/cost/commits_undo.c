/* SPDX-License-Identifier: MIT */
/*
 * commits_undo.c -- before-images, for the experiment `commits`; see bench/systems/undo.h.
 */
#include <config.h>

#include "bench/cost/commits.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/kit/util.h"
#include "bench/systems/undo.h"

static struct bench_undo undo;

int
bench_commit_undo_open(const struct bench_commit_way *way, const char *dir,
                       uint64_t n_pages, unsigned char **basep)
{
    char path[PATH_MAX];
    int rc;

    snprintf(path, sizeof path, "%s/" BENCH_COMMITS_FILE, dir);
    rc = bench_undo_open(&undo, path, n_pages * (size_t)sysconf(_SC_PAGESIZE),
                         way->is_other);
    *basep = undo.base;
    return rc;
}

int
bench_commit_undo_begin(void)
{
    return bench_undo_begin(&undo);
}

int
bench_commit_undo_commit(void)
{
    return bench_undo_commit(&undo);
}

int
bench_commit_undo_close(void)
{
    return bench_undo_close(&undo);
}

uint64_t
bench_commit_undo_syncs(void)
{
    return undo.syncs;
}

const char *
bench_commit_undo_explain(int code)
{
    return strerror(code);
}

/* child -- does what it is told to a file of n_pages, and ends; ret as waitpid(2) says. */
static int
child(const struct bench_commit_way *way, const char *dir, uint64_t n_pages,
      bool dies_within)
{
    unsigned char *base;
    int status = -1;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        int rc = bench_commit_undo_open(way, dir, n_pages, &base);

        if (rc == 0 && dies_within) {
            rc = bench_undo_begin(&undo);
            memset(base, 0xee, n_pages * (size_t)sysconf(_SC_PAGESIZE));
            (void)kill(getpid(), SIGKILL);
        }
        _exit(rc != 0 || bench_undo_close(&undo) != 0);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

int
bench_commit_undo_torn(const struct bench_commit_way *way, const char *dir,
                       uint64_t n_pages)
{
    int status = child(way, dir, n_pages, true);

    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        return bench_fail("%s: a process that was to be killed was not: %#x", way->name,
                          (unsigned)status);
    status = child(way, dir, n_pages, false);
    return status == 0 ? 0 : bench_fail("%s: recovery: %#x", way->name, (unsigned)status);
}
