/* SPDX-License-Identifier: MIT */
/*
 * check_full.c -- no room on the disk.
 *
 * GOAL    a commit that finds no room aborts and says so; earlier commits are intact, now
 *         and after a crash; with room again, work goes on.
 * METHOD  the environment lies on a tmpfs of a few MiB, mounted in a mount namespace of
 *         the test process (root; skipped otherwise), and a ballast file takes the rest.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"

#define N_PAGES 256
#define SMALL   "small" /* mount point */

static bool mounted;

/* A file system of `size` bytes at SMALL; ret false if that cannot be had. */
static bool
mount_small(const char *size)
{
    char options[64];

    if (mounted)
        return true;
    snprintf(options, sizeof options, "size=%s,mode=0755", size);
    if (unshare(CLONE_NEWNS) != 0
        || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
        || mkdir(SMALL, 0755) != 0 || mount("tmpfs", SMALL, "tmpfs", 0, options) != 0) {
        printf("skipped: cannot mount a small file system: %s\n", strerror(errno));
        return false;
    }
    mounted = true;
    return true;
}

/* Take all the room that is left. */
static void
fill_up(void)
{
    static char block[4096];
    int fd = open(SMALL "/ballast", O_WRONLY | O_CREAT | O_APPEND, 0644);

    must(fd >= 0);
    while (write(fd, block, sizeof block) == (ssize_t)sizeof block) {
    }
    must_eq(errno, ENOSPC);
    close(fd);
}

static void
make_room(void)
{
    must(unlink(SMALL "/ballast") == 0);
}

static uint64_t *
attach_with(const char *file, uint64_t checkpoint_bytes)
{
    uint64_t *x;

    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    must_ok(xSetOption(XAC_OPT_LOG_BUFFER_BYTES, 65536));
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, checkpoint_bytes));
    must_ok(xInit(SMALL "/db", DURABLE));
    x = xMmap(file, N_PAGES * env_page());
    if (x == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xMmap: %s", xLastError());
    return x;
}

static uint64_t *
attach(const char *file)
{
    return attach_with(file, 0);
}

/* Transaction i: its number into `n` pages; ret what xend() said, or xbegin()'s error. */
static int
commit_pages(uint64_t *x, uint64_t i, size_t n)
{
    int rc = xbegin();

    if (rc != 0)
        return rc;
    for (size_t p = 0; p < n; p++) {
        for (size_t k = 0; k < 200; k++)
            x[p * env_page() / 8 + k] = i * 1000 + k;
    }
    return xend();
}

static void
pages_must_hold(const uint64_t *x, uint64_t i, size_t n)
{
    must_ok(xbeginQuery());
    for (size_t p = 0; p < n; p++) {
        for (size_t k = 0; k < 200; k++)
            must_eq(((const volatile uint64_t *)x)[p * env_page() / 8 + k], i * 1000 + k);
    }
    must_ok(xendQuery());
}

struct full_arg {
    const char *file;  /* to map */
    size_t n_pages;    /* per transaction */
    bool go_on;        /* make room and commit more, before the crash */
    uint64_t *reached; /* shared: the last transaction that committed */
};

static void
commit_until_full(void *arg)
{
    const struct full_arg *a = arg;
    uint64_t *x = attach(a->file);
    struct xac_conflict why;
    uint64_t i;
    int rc = COMMITTED;

    must_rc(commit_pages(x, 1, a->n_pages), COMMITTED);
    fill_up();
    for (i = 2; i < 100000 && rc == COMMITTED; i++) {
        rc = commit_pages(x, i, a->n_pages);
        if (rc == COMMITTED)
            *a->reached = i;
    }
    must_rc(rc, ENOSPC);
    must(strstr(xLastError(), "/" SMALL "/db") != NULL); /* where there is no room */
    must(strstr(xLastError(), " bytes") != NULL);        /* for what */
    must_ok(xConflict(&why, sizeof why));
    must_eq(why.kind, XAC_CONFLICT_RESOURCE);
    must_eq(why.error, ENOSPC);
    pages_must_hold(x, *a->reached, a->n_pages);
    must_refuse(commit_pages(x, 99, a->n_pages), ENOSPC);
    pages_must_hold(x, *a->reached, a->n_pages);
    if (!a->go_on)
        return;
    make_room();
    for (uint64_t k = 0; k < 20; k++) {
        must_rc(commit_pages(x, 500 + k, a->n_pages), COMMITTED);
        *a->reached = 500 + k;
    }
    must_ok(xCheckpoint());
    must_rc(commit_pages(x, 600, a->n_pages), COMMITTED);
    *a->reached = 600;
}

static void
check_after_crash(void *arg)
{
    const struct full_arg *a = arg;
    uint64_t *x = attach(a->file);

    pages_must_hold(x, *a->reached, a->n_pages);
    must_rc(commit_pages(x, 700, a->n_pages), COMMITTED);
    must_ok(xShutdown());
    must_eq(file_u64(a->file, 8), 700001);
}

static void
run_full(struct full_arg a)
{
    a.reached = proc_shared(sizeof *a.reached);
    *a.reached = 1;
    proc_run(commit_until_full, &a);
    printf("%zu pages per transaction: full after %" PRIu64 "\n", a.n_pages, *a.reached);
    if (!a.go_on)
        make_room();
    proc_run(check_after_crash, &a);
    must(umount(SMALL) == 0);
}

START_TEST(full_disk_aborts_the_commit)
{
    if (mount_small("4m"))
        run_full((struct full_arg){.file = ENV_FILE, .n_pages = 3, .go_on = _i == 1});
}
END_TEST

START_TEST(full_disk_aborts_a_large_commit)
{
    env_without_frames("versions take room on the full disk, too");
    if (mount_small("8m"))
        run_full((struct full_arg){.file = ENV_FILE, .n_pages = 200, .go_on = _i == 1});
}
END_TEST

/*
 * The checkpoint finds no room for the mapped file, while the log has all it needs.  A limit
 * on the size of files stands in for the full disk.  (tmpfs would not do: it takes room
 * for a hole as soon as it is read.)
 */
static void
limit_file_size(uint64_t bytes)
{
    struct rlimit limit;

    must(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes;
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void
checkpoint_beyond_the_limit(void *arg)
{
    size_t word = 150 * env_page() / 8;
    const uint64_t *crash = arg;
    uint64_t *x;

    must(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
    must_ok(xSetOption(XAC_OPT_CHECKPOINT_BYTES, 0));
    x = env_attach(DURABLE, N_PAGES);
    env_put(&x[0], 1);
    env_put(&x[word], 2);
    limit_file_size(128 * env_page());
    must_refuse(xCheckpoint(), EFBIG);
    must_eq(env_get(&x[word]), 2);
    env_put(&x[1], 3);
    must_refuse(xCheckpoint(), EFBIG);
    must_eq(env_get(&x[word]), 2);
    must_eq(env_get(&x[1]), 3);
    if (*crash == 1)
        return;
    limit_file_size(RLIM_INFINITY);
    must_ok(xCheckpoint());
    must_eq(file_u64(ENV_FILE, 8 * word), 2);
    env_put(&x[2], 4);
    env_detach();
}

START_TEST(failed_checkpoint_loses_nothing)
{
    uint64_t *crash = proc_shared(sizeof *crash);

    *crash = (uint64_t)_i;
    proc_run(checkpoint_beyond_the_limit, crash);
    if (_i == 1)
        must_ok(xRecover(ENV_DIR));
    must_eq(file_u64(ENV_FILE, 0), 1);
    must_eq(file_u64(ENV_FILE, 8), 3);
    must_eq(file_u64(ENV_FILE, 16), _i == 1 ? 0 : 4);
    must_eq(file_u64(ENV_FILE, 150 * env_page()), 2);
}
END_TEST

/*
 * Log that a checkpoint lets go is written over: on a disk that holds a few segments commits go
 * on for ever, though none is due by the bytes logged.
 */
START_TEST(full_disk_is_helped_by_a_checkpoint)
{
    uint64_t n_aborts = 0;
    struct xac_conflict why;
    uint64_t *x;

    env_without_frames("versions take room on the full disk, too");
    if (!mount_small("4m"))
        return;
    must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, 1));
    x = attach_with("full.db", UINT64_C(1) << 30);
    /* Some segments, of which one is in use at a time. */
    for (uint64_t i = 1; i < 60; i++)
        must_rc(commit_pages(x, i, 3), COMMITTED);
    fill_up();
    for (uint64_t i = 60; i < 1000; i++) {
        int rc = commit_pages(x, i, 3);

        if (rc == ABORTED) { /* once, and for this reason */
            must_ok(xConflict(&why, sizeof why));
            must_eq(why.kind, XAC_CONFLICT_RESOURCE);
            n_aborts++;
            rc = commit_pages(x, i, 3);
        }
        must_rc(rc, COMMITTED);
    }
    must(n_aborts > 5);
    pages_must_hold(x, 999, 3);
    must_ok(xShutdown());
    must(umount(SMALL) == 0);
}
END_TEST

/*
 * A transaction that never fits: the library tries a checkpoint first, so that xend() says once that
 * another attempt may succeed; the next time it says what is lacking.  A loop until then ends.
 */
START_TEST(transaction_larger_than_the_disk)
{
    uint64_t *x, n_aborts;
    int rc;

    env_without_frames("versions take room on the full disk, too");
    if (!mount_small("4m"))
        return;
    x = attach_with("full.db", UINT64_C(1) << 30);
    must_rc(commit_pages(x, 1, 3), COMMITTED);
    fill_up();
    for (uint64_t i = 2; i < 5; i++) {
        n_aborts = 0;
        while ((rc = commit_pages(x, i, 250)) == ABORTED)
            n_aborts++;
        must_rc(rc, ENOSPC);
        must_eq(n_aborts, 1);
        must(strstr(xLastError(), " bytes") != NULL);
        pages_must_hold(x, 1, 3);
    }
    make_room();
    must_rc(commit_pages(x, 5, 3), COMMITTED);
    must_ok(xShutdown());
    must(umount(SMALL) == 0);
}
END_TEST

/* No room even for the first log segment, which begins small: nothing is left behind that stands in the way. */
START_TEST(full_disk_refuses_init)
{
    uint64_t *x;

    if (!mount_small("1m"))
        return;
    fill_up();
    must_refuse(xInit(SMALL "/db", DURABLE), ENOSPC);
    must_refuse(xInit(SMALL "/db", DURABLE), ENOSPC);
    make_room();
    x = attach(ENV_FILE);
    must_rc(commit_pages(x, 1, 1), COMMITTED);
    must_ok(xShutdown());
    must_eq(file_u64(ENV_FILE, 8), 1001);
    must(umount(SMALL) == 0);
}
END_TEST

static Suite *
full_suite(void)
{
    Suite *s = suite_create("full");
    TCase *tc = env_tcase(s, "full disk", 60);

    tcase_add_loop_test(tc, full_disk_aborts_the_commit, 0, 2);
    tcase_add_loop_test(tc, full_disk_aborts_a_large_commit, 0, 2);
    tcase_add_test(tc, full_disk_is_helped_by_a_checkpoint);
    tcase_add_test(tc, transaction_larger_than_the_disk);
    tcase_add_loop_test(tc, failed_checkpoint_loses_nothing, 0, 2);
    tcase_add_test(tc, full_disk_refuses_init);
    return s;
}

int
main(void)
{
    return env_main(full_suite());
}
