/* SPDX-License-Identifier: MIT */
/*
 * recovery_log.c -- see recovery.h: the environment that is recovered, made and put back.
 */
#include <config.h>

#include "bench/recovery/recovery.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

#include "bench/kit/util.h"
#include "bench/kit/worker.h"

#define CHUNK ((size_t)1 << 20)

/* path_of -- "DIR/NAME", in a buffer of the caller's. */
static const char *
path_of(const struct bench_rec *r, const char *name, char buf[512])
{
    (void)snprintf(buf, 512, "%s/%s", r->dir, name);
    return buf;
}

/* copy_file -- a synced copy; ret 0 or 1. */
static int
copy_file(const struct bench_rec *r, const char *from_name, const char *to_name)
{
    char from[512], to[512];
    char bytes[8192];
    ssize_t n;
    int in = open(path_of(r, from_name, from), O_RDONLY | O_CLOEXEC);
    int out = open(path_of(r, to_name, to), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    int rc = in < 0 || out < 0;

    while (rc == 0 && (n = read(in, bytes, sizeof bytes)) != 0)
        rc = n < 0 || write(out, bytes, (size_t)n) != n;
    if (rc == 0)
        rc = fsync(out) != 0;
    if (rc != 0)
        rc = bench_fail("copying %s to %s: %s", from, to, strerror(errno));
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return rc;
}

/* link_all -- hard links of all data files of large transactions; those there are stay. */
static int
link_all(const struct bench_rec *r, const char *from_name, const char *to_name)
{
    char from[512], to[512], a[1024], b[1024];
    DIR *dir = opendir(path_of(r, from_name, from));
    const struct dirent *e;
    int rc = 0;

    if (dir == NULL)
        return bench_fail("%s: %s", from, strerror(errno));
    (void)path_of(r, to_name, to);
    while (rc == 0 && (e = readdir(dir)) != NULL) {
        if (strncmp(e->d_name, "xac-data.", 9) != 0)
            continue;
        (void)snprintf(a, sizeof a, "%s/%s", from, e->d_name);
        (void)snprintf(b, sizeof b, "%s/%s", to, e->d_name);
        if (link(a, b) != 0 && errno != EEXIST)
            rc = bench_fail("%s: %s", b, strerror(errno));
    }
    closedir(dir);
    return rc;
}

/* ---- The writer ------------------------------------------------------------------- */

/* store -- change bytes of random pages, in a transaction. */
static int
store(const struct bench_rec_options *o, uint8_t *base, uint64_t number)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t pages = o->data_bytes / page;
    int outcome;

    do {
        if (xac_begin() != 0)
            return bench_fail("xbegin: %s", xac_last_error());
        for (uint64_t i = 0; i < o->txn_pages; i++) {
            uint64_t key = bench_key(o->seed, number * o->txn_pages + i);
            uint64_t at = (key >> 32) % (page - o->change_bytes + 1);
            uint8_t *to = base + key % pages * page + at;

            for (uint64_t b = 0; b < o->change_bytes; b++)
                to[b] = (uint8_t)(key >> b % 8 * 8) ^ (uint8_t)b;
        }
        outcome = xac_end();
    } while (outcome == XAC_ABORTED);
    if (outcome != XAC_COMMITTED)
        return bench_fail("xend: %s", xac_last_error());
    return 0;
}

/* keep_expected -- write what is committed to an ordinary file. */
static int
keep_expected(const struct bench_rec *r, const uint8_t *base)
{
    uint64_t n = r->options->data_bytes;
    uint8_t *chunk = (uint8_t *)malloc(CHUNK);
    char path[512];
    int fd = open(path_of(r, "expected", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    int rc = fd < 0 || chunk == NULL || xac_begin_query() != 0;

    for (uint64_t at = 0; rc == 0 && at < n; at += CHUNK) {
        size_t here = n - at < CHUNK ? (size_t)(n - at) : CHUNK;

        memcpy(chunk, base + at, here);
        rc = write(fd, chunk, here) != (ssize_t)here;
    }
    if (rc == 0)
        rc = xac_end_query() != 0 || fsync(fd) != 0;
    if (fd >= 0)
        close(fd);
    free(chunk);
    return rc == 0 ? 0 : bench_fail("%s: %s", path, strerror(errno));
}

/* write_log -- in a process of its own: transactions until the log is long enough. */
static int
write_log(const struct bench_rec *r)
{
    const struct bench_rec_options *o = r->options;
    struct xac_stats stats = {.log_bytes = 0};
    char env[512], file[512];
    uint8_t *base;

    if (xac_set_option(XAC_OPT_CHECKPOINT_BYTES, 0) != 0
        || xac_init(path_of(r, "env", env), XAC_DURABLE) != 0)
        return bench_fail("xInit: %s", xac_last_error());
    base = (uint8_t *)xac_mmap(path_of(r, "env/mapped", file), o->data_bytes);
    if (base == MAP_FAILED)
        return bench_fail("xMmap: %s", xac_last_error());
    for (uint64_t i = 0; stats.log_bytes < o->log_bytes; i++) {
        if (store(o, base, i) != 0)
            return 1;
        (void)xac_get_stats(&stats, sizeof stats);
        bench_progress("writing the log", stats.log_bytes, o->log_bytes);
        if (bench_interrupted())
            return bench_fail("interrupted");
    }
    if (keep_expected(r, base) != 0)
        return 1;
    return kill(getpid(), SIGKILL);
}

int
bench_rec_make(struct bench_rec *r)
{
    char path[512];
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(write_log(r));
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return bench_fail("fork: %s", strerror(errno));
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        return bench_fail("the writer did not come to its end");
    if (mkdir(path_of(r, "saved", path), 0755) != 0)
        return bench_fail("%s: %s", path, strerror(errno));
    /* Recovery writes over the master record and removes data files, nothing else. */
    if (copy_file(r, "env/xac.master", "saved/xac.master") != 0)
        return 1;
    return link_all(r, "env", "saved");
}

/* ---- Between rounds --------------------------------------------------------------- */

/*
 * spoil -- fill the pages that were written with bytes that were not, so that a recovery
 * that redoes nothing cannot look right.  It takes the time that a recovery, too, needs
 * for writing and syncing the file.
 */
static int
spoil(struct bench_rec *r)
{
    uint64_t began = bench_now_ns();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *bytes = (uint8_t *)malloc(2 * page);
    char a[512], b[512];
    int expected = open(path_of(r, "expected", a), O_RDONLY | O_CLOEXEC);
    int mapped = open(path_of(r, "env/mapped", b), O_WRONLY | O_CLOEXEC);
    int rc = expected < 0 || mapped < 0 || bytes == NULL;

    if (rc == 0) {
        memset(bytes, 0, page);
        memset(bytes + page, 0xee, page);
    }
    for (uint64_t at = 0; rc == 0 && at < r->options->data_bytes; at += page) {
        uint8_t got[65536];

        rc = pread(expected, got, page, (off_t)at) != (ssize_t)page;
        if (rc == 0)
            rc = pwrite(mapped, bytes + (memcmp(got, bytes, page) != 0 ? page : 0), page,
                        (off_t)at)
                 != (ssize_t)page;
    }
    if (rc == 0)
        rc = fsync(mapped) != 0;
    if (expected >= 0)
        close(expected);
    if (mapped >= 0)
        close(mapped);
    free(bytes);
    if (rc == 0 && r->n_writes < r->options->rounds)
        r->write_seconds[r->n_writes++] = (double)(bench_now_ns() - began) / 1e9;
    return rc == 0 ? 0 : bench_fail("%s: %s", b, strerror(errno));
}

int
bench_rec_reset(struct bench_rec *r)
{
    int rc = copy_file(r, "saved/xac.master", "env/xac.master");

    if (rc == 0)
        rc = link_all(r, "saved", "env");
    return rc == 0 ? spoil(r) : rc;
}

int
bench_rec_verify(struct bench_rec *r)
{
    static uint8_t a[1 << 16], b[1 << 16];
    char path_a[512], path_b[512];
    int expected = open(path_of(r, "expected", path_a), O_RDONLY | O_CLOEXEC);
    int mapped = open(path_of(r, "env/mapped", path_b), O_RDONLY | O_CLOEXEC);
    int rc = expected < 0 || mapped < 0;
    uint64_t at = 0;

    if (rc != 0)
        rc = bench_fail("%s: %s", path_b, strerror(errno));
    while (rc == 0 && at < r->options->data_bytes) {
        ssize_t n = read(expected, a, sizeof a);

        if (n <= 0 || read(mapped, b, (size_t)n) != n || memcmp(a, b, (size_t)n) != 0)
            rc = bench_fail("%s is not what was committed, near offset %llu", path_b,
                            (unsigned long long)at);
        at += (uint64_t)(n > 0 ? n : 0);
    }
    if (expected >= 0)
        close(expected);
    if (mapped >= 0)
        close(mapped);
    return rc;
}
