/* SPDX-License-Identifier: MIT */
/*
 * fileindex_update.c -- see fileindex_update.h.
 */
#include <config.h>

#include "fileindex_update.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <xac.h>

/* A part of the chunks: one process starts here, others help when theirs is done. */
struct part {
    _Atomic size_t next; /* chunk to be taken next                                    */
    size_t end;          /* first chunk of the next part                              */
};

/* Counters in memory that all processes share.  Only sums: relaxed order will do. */
struct shared {
    _Atomic uint64_t done; /* paths of the disk dealt with                            */
    _Atomic uint64_t added, changed, removed, same, failed;
    _Atomic int error; /* the first one                                               */
    struct part parts[FI_PROCS_MAX];
};

struct job {
    const struct fi_segment *segment;
    const char *dir;
    const struct fi_tree *tree;
    unsigned n_procs;
    struct shared *shared;
};

/* What the index has in a chunk's range. */
struct known {
    const struct job *job;
    const char *end; /* the range ends before this path                               */
    struct fi_list paths;
    struct fi_record *records;
    size_t room;
};

enum change {
    PUT,
    REMOVE
};

/* Changes that are going to be one transaction. */
struct batch {
    struct btree *t;
    unsigned n;
    struct {
        enum change change;
        const char *path;
        struct fi_record record;
    } changes[FI_BATCH];
};

static void
add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* Whether a path is `dir` or below. */
static bool
is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    if (strcmp(dir, "/") == 0)
        return true;
    return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* ---- Writing ----------------------------------------------------------------------- */

/* Make the batch's changes inside a transaction. */
static int
batch_apply(struct batch *b)
{
    int rc = 0;

    for (unsigned i = 0; i < b->n && rc == 0; i++) {
        if (b->changes[i].change == PUT)
            rc = fi_put(b->t, b->changes[i].path, &b->changes[i].record);
        else
            rc = fi_remove(b->t, b->changes[i].path);
        if (rc == ENOENT)
            rc = 0; /* another update removed it */
    }
    return rc;
}

/* Commit the batch as one transaction and empty it. */
static int
batch_commit(struct batch *b)
{
    int rc = 0, end = ABORTED;

    while (b->n > 0 && end == ABORTED && (rc == 0 || rc == XAC_FAILED)) {
        rc = xbegin();
        if (rc != 0)
            return rc;
        rc = batch_apply(b);
        if (rc != 0 && rc != XAC_FAILED)
            (void)xAbort();
        end = xend();
    }
    b->n = 0;
    if (rc != 0 && rc != XAC_FAILED)
        return rc;
    return end == ABORTED ? 0 : end;
}

static int
batch_add(struct batch *b, enum change change, const char *path,
          const struct fi_record *record)
{
    b->changes[b->n].change = change;
    b->changes[b->n].path = path;
    if (record != NULL)
        b->changes[b->n].record = *record;
    b->n++;
    return b->n == FI_BATCH ? batch_commit(b) : 0;
}

/* ---- Comparing --------------------------------------------------------------------- */

/* Note an entry of the index; ends at the end of the range. */
static int
known_add(void *arg, const char *path, const struct fi_record *record)
{
    struct known *k = arg;
    int rc;

    if (strcmp(path, k->end) >= 0)
        return ECANCELED;
    if (!is_below(path, k->job->dir))
        return 0;
    if (k->paths.n == k->room) {
        size_t room = k->room > 0 ? 2 * k->room : FI_CHUNK;
        struct fi_record *records = realloc(k->records, room * sizeof *records);

        if (records == NULL)
            return ENOMEM;
        k->records = records;
        k->room = room;
    }
    k->records[k->paths.n] = *record;
    rc = fi_list_add(&k->paths, path, strlen(path));
    return rc;
}

/* An entry that the disk does not have, or so it seems. */
static int
merge_removed(const struct job *job, struct batch *b, const char *path)
{
    const struct fi_list *unreadable = &job->tree->unreadable;

    for (size_t i = 0; i < unreadable->n; i++)
        if (is_below(path, unreadable->paths[i]))
            return 0; /* nobody knows */
    add(&job->shared->removed, 1);
    return batch_add(b, REMOVE, path, NULL);
}

/* A path of the disk; `old` is its record in the index, or NULL. */
static int
merge_found(const struct job *job, struct batch *b, const char *path,
            const struct fi_record *old)
{
    struct shared *s = job->shared;
    struct fi_record record;
    int rc = fi_record_read(path, &record);

    add(&s->done, 1);
    if (rc == ENOENT || rc == ENOTDIR) /* it went away since it was listed */
        return old != NULL ? merge_removed(job, b, path) : 0;
    if (rc != 0) {
        fprintf(stderr, "fileindex: %s: %s\n", path, strerror(rc));
        add(&s->failed, 1);
        return 0;
    }
    if (old != NULL && memcmp(old, &record, sizeof record) == 0) {
        add(&s->same, 1);
        return 0;
    }
    add(old == NULL ? &s->added : &s->changed, 1);
    return batch_add(b, PUT, path, &record);
}

/* Compare found[from, to) with what is known of the same range, both in order. */
static int
merge(const struct job *job, struct batch *b, size_t from, size_t to,
      const struct known *k)
{
    char *const *found = job->tree->found.paths;
    size_t i = 0;
    int rc = 0;

    while (rc == 0 && (from < to || i < k->paths.n)) {
        int order = from == to        ? 1
                    : i == k->paths.n ? -1
                                      : strcmp(found[from], k->paths.paths[i]);

        if (order > 0)
            rc = merge_removed(job, b, k->paths.paths[i++]);
        else if (order < 0)
            rc = merge_found(job, b, found[from++], NULL);
        else
            rc = merge_found(job, b, found[from++], &k->records[i++]);
    }
    return rc == 0 ? batch_commit(b) : rc;
}

/* One chunk: what the index knows of it, what the disk says, and the difference. */
static int
chunk_update(const struct job *job, struct batch *b, size_t chunk)
{
    const struct fi_list *found = &job->tree->found;
    size_t from = chunk * FI_CHUNK, to = from + FI_CHUNK;
    struct known k = {.job = job};
    char *beyond = NULL;
    int rc;

    if (asprintf(&beyond, "%s0", strcmp(job->dir, "/") == 0 ? "" : job->dir) < 0)
        return ENOMEM; /* '0' is what follows '/' */
    if (to > found->n)
        to = found->n;
    k.end = to < found->n ? found->paths[to] : beyond;
    rc = fi_walk(b->t, found->paths[from], known_add, &k);
    if (rc == 0 || rc == ECANCELED)
        rc = merge(job, b, from, to, &k);
    b->n = 0;
    fi_list_free(&k.paths);
    free(k.records);
    free(beyond);
    return rc;
}

/* ---- Processes --------------------------------------------------------------------- */

/* Take a chunk from one's own part, or from another's.  ret false: none is left. */
static bool
chunk_take(const struct job *job, unsigned me, size_t *chunkp)
{
    for (unsigned i = 0; i < job->n_procs; i++) {
        struct part *part = &job->shared->parts[(me + i) % job->n_procs];

        *chunkp = atomic_fetch_add_explicit(&part->next, 1, memory_order_relaxed);
        if (*chunkp < part->end)
            return true;
    }
    return false;
}

/* The life of a worker. */
static int
worker_run(const struct job *job, unsigned me)
{
    struct batch *b = calloc(1, sizeof *b);
    struct btree t;
    size_t chunk;
    int rc = b != NULL ? btree_open(&t, job->segment->base, job->segment->size) : ENOMEM;

    if (rc != 0) {
        free(b);
        return rc;
    }
    b->t = &t;
    t.hints = true;
    while (rc == 0 && chunk_take(job, me, &chunk)
           && atomic_load_explicit(&job->shared->error, memory_order_relaxed) == 0)
        rc = chunk_update(job, b, chunk);
    free(b);
    return rc;
}

static pid_t
worker_start(const struct job *job, unsigned me)
{
    pid_t parent = getpid(), pid = fork();
    int rc, none = 0;

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    rc = worker_run(job, me);
    if (rc == 0)
        rc = xShutdown();
    if (rc != 0)
        atomic_compare_exchange_strong_explicit(&job->shared->error, &none, rc,
                                                memory_order_relaxed,
                                                memory_order_relaxed);
    _exit(rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static double
now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Wait for all workers, with a line on stderr meanwhile. */
static int
workers_wait(const struct job *job, unsigned n, bool progress)
{
    const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    double start = now();
    bool shown = false;
    int rc = 0;

    while (n > 0) {
        int status;
        pid_t pid = waitpid(-1, &status, progress ? WNOHANG : 0);

        if (pid > 0) {
            n--;
            if (!WIFEXITED(status))
                rc = ECHILD;
            continue;
        }
        if (pid < 0 && errno != EINTR)
            return errno;
        if (progress && now() - start > 2) {
            fprintf(stderr, "\r%llu of %zu paths",
                    (unsigned long long)atomic_load_explicit(&job->shared->done,
                                                             memory_order_relaxed),
                    job->tree->found.n);
            shown = true;
        }
        nanosleep(&pause, NULL);
    }
    if (shown)
        fprintf(stderr, "\r\033[K");
    return rc;
}

/* Divide the chunks, one part for each process. */
static void
parts_make(const struct job *job)
{
    size_t n_chunks = (job->tree->found.n + FI_CHUNK - 1) / FI_CHUNK;

    for (unsigned i = 0; i < job->n_procs; i++) {
        job->shared->parts[i].next = n_chunks * i / job->n_procs;
        job->shared->parts[i].end = n_chunks * (i + 1) / job->n_procs;
    }
}

int
fi_update(const struct fi_segment *segment, const char *dir, const struct fi_tree *tree,
          unsigned n_procs, bool progress, struct fi_counts *counts)
{
    struct shared *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct job job = {segment, dir, tree, n_procs, s};
    unsigned started = 0;
    int rc = 0, waited;

    *counts = (struct fi_counts){0};
    if (s == MAP_FAILED)
        return errno;
    parts_make(&job);
    fflush(NULL);
    while (rc == 0 && started < n_procs) {
        if (worker_start(&job, started) < 0)
            rc = errno;
        else
            started++;
    }
    if (rc != 0)
        s->error = rc;
    waited = workers_wait(&job, started, progress);
    if (s->error != 0)
        rc = s->error;
    else if (rc == 0)
        rc = waited;
    *counts = (struct fi_counts){s->added, s->changed, s->removed, s->same, s->failed};
    munmap(s, sizeof *s);
    return rc;
}
