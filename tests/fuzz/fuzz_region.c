/* SPDX-License-Identifier: MIT */
/*
 * fuzz_region.c -- target: a damaged control region, which somebody is about to attach or to
 * look at.
 *
 * The region is one that a process has left in the middle of its work: files, page tables,
 * transactions, versions, a log.  It is damaged in places that matter, and checked as by
 * a process that attaches; what passes is walked through as by xstat.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac.h>

#include "base/err.h"
#include "base/lockfile.h"
#include "env/peek.h"
#include "env/stats.h"
#include "shared/control_check.h"
#include "shared/layout.h"
#include "shared/region.h"
#include "target.h"

#define DIR_NAME  "regions"
#define FILE_NAME DIR_NAME "/file.db"
#define PAGES     40u
#define EDITS_MAX 16u
#define WIDEST    8u

static struct {
    uint8_t *bytes; /* of the file, mapped shared                                      */
    uint8_t *was;
    size_t size;
    int dirfd;
} region;

/* ---- Making one --------------------------------------------------------------------- */

/* leave_region -- work, and say when there is enough of it. */
_Noreturn static void
leave_region(int ready)
{
    volatile uint64_t *x;

    if (xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, 65536) != 0
        || xac_init(DIR_NAME, XAC_DURABLE) != 0)
        _exit(1);
    x = (volatile uint64_t *)xac_mmap(FILE_NAME, (size_t)PAGES * 4096);
    if (x == MAP_FAILED)
        _exit(2);
    for (unsigned n = 0; n < 6; n++) {
        if (xac_begin() != 0)
            _exit(3);
        for (unsigned p = n; p < PAGES; p += 1 + n)
            x[p * 512 + n]++;
        if (n < 5 && xac_end() != XAC_COMMITTED)
            _exit(4);
    }
    (void)write(ready, "", 1);
    for (;;)
        (void)pause();
}

/* read_region -- the file that xac.lock names. */
static void
read_region(int lockfd)
{
    char *path = xac_region_path(lockfd);
    struct stat st;
    int fd;

    fuzz_must(path != NULL);
    fd = open(path, O_RDWR | O_CLOEXEC);
    fuzz_must(fd >= 0 && fstat(fd, &st) == 0);
    region.size = (size_t)st.st_size;
    region.bytes =
        (uint8_t *)mmap(NULL, region.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    region.was = (uint8_t *)malloc(region.size);
    fuzz_must(region.bytes != MAP_FAILED && region.was != NULL);
    (void)close(fd);
    free(path);
}

static void
make(void)
{
    char where[600], byte;
    int ready[2], lockfd;
    pid_t pid;

    if (region.bytes != NULL)
        return;
    (void)snprintf(where, sizeof where, "%s", fuzz_scratch());
    fuzz_must(setenv("XAC_SHM_DIR", where, 1) == 0);
    fuzz_must(mkdir(DIR_NAME, 0700) == 0 && pipe(ready) == 0);
    pid = fork();
    if (pid == 0)
        leave_region(ready[1]);
    (void)close(ready[1]);
    fuzz_must(read(ready[0], &byte, 1) == 1);
    (void)close(ready[0]);
    fuzz_must(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    region.dirfd = open(DIR_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    lockfd = xac_lockfile_open(region.dirfd);
    fuzz_must(region.dirfd >= 0 && lockfd >= 0);
    read_region(lockfd);
    memcpy(region.was, region.bytes, region.size);
    /* From now on participant 0 is alive, as others see it. */
    fuzz_must(xac_alive_take(lockfd, 0) == 0);
}

/* ---- Damage ------------------------------------------------------------------------- */

/* element -- in one of the first elements of an array. */
static uint64_t
element(struct fuzz_input *in, const struct xac_array *a)
{
    uint64_t at = atomic_load_explicit(&a->chunk[0], memory_order_relaxed);

    return at + fuzz_below(in, 8) * a->elem_bytes + fuzz_below(in, a->elem_bytes);
}

static uint64_t
place(struct fuzz_input *in)
{
    const struct xac_control *ctl = (const struct xac_control *)(void *)region.was;
    uint64_t brk = atomic_load_explicit(&ctl->shm.brk, memory_order_relaxed);

    switch (fuzz_bytes(in, 1) % 8) {
    case 0:
    case 1:
        return fuzz_below(in, sizeof *ctl);
    case 2:
        return element(in, &ctl->participants);
    case 3:
        return element(in, &ctl->files);
    case 4:
        return element(in, &ctl->txns);
    case 5:
        return element(in, &ctl->versions.slots);
    case 6: /* chunks and counts of arrays */
        return offsetof(struct xac_control, participants)
               + fuzz_below(in, sizeof(struct xac_array) * 3);
    default:
        return fuzz_below(in, brk);
    }
}

/* look -- ret 0 or what has been found. */
static int
look(void)
{
    struct xac_stats stats;
    struct xac_env env;
    int rc;

    rc = xac_control_validate(region.bytes, region.size, "region");
    fuzz_told("checking", rc);
    rc = xac_peek_open(region.dirfd, DIR_NAME, &env);
    if (rc != ENOENT)
        fuzz_told("looking", rc);
    if (rc != 0)
        return rc;
    xac_stats_read(&env, &stats);
    (void)xac_peek_is_over(&env);
    xac_peek_close(&env);
    return 0;
}

static void
run_region(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    uint64_t at[EDITS_MAX];
    unsigned n = 0;

    make();
    for (; n < EDITS_MAX && in.left > 0; n++) {
        at[n] = place(&in);
        at[n] = at[n] + 2 * WIDEST < region.size ? at[n] / WIDEST * WIDEST : 0;
        fuzz_poke(&in, region.bytes + at[n], 2 * WIDEST, (size_t)fuzz_below(&in, WIDEST));
    }
    fuzz_must(look() == 0 || size != 0);
    while (n-- > 0)
        memcpy(region.bytes + at[n], region.was + at[n], 2 * WIDEST);
}

const struct fuzz_target fuzz_region_targets[] = {{"region", run_region}, {NULL, NULL}};
