/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "bench/larger/hog.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/kit/util.h"

#define PAGE_BYTES    4096u
#define PAUSE_NS      UINT64_C(50000000)
#define LOOK_EVERY    64u /* pages between looks at whether to go on                     */
#define FIRST_PASS_NS UINT64_C(60000000000)

struct bench_hog_shared {
    /* Relaxed, all of them: one side says, the other looks now and then. */
    _Atomic bool is_on;
    _Atomic uint64_t passes;
    _Atomic uint64_t pages; /* touched                                                  */
    _Atomic int rc;         /* errno of what could not be had                           */
};

/* ---- Its own process ------------------------------------------------------------------- */

/* pass -- every page once. */
static void
pass(struct bench_hog_shared *s, volatile unsigned char *base, uint64_t bytes,
     bool is_file)
{
    for (uint64_t at = 0; at < bytes; at += PAGE_BYTES) {
        if (is_file)
            (void)base[at];
        else
            base[at]++;
        (void)atomic_fetch_add_explicit(&s->pages, 1, memory_order_relaxed);
        while (at / PAGE_BYTES % LOOK_EVERY == 0
               && !atomic_load_explicit(&s->is_on, memory_order_relaxed))
            bench_sleep_until(bench_now_ns() + PAUSE_NS / 10);
    }
    (void)atomic_fetch_add_explicit(&s->passes, 1, memory_order_relaxed);
}

/* touch -- until it is killed; ret errno, or not at all. */
static int
touch(struct bench_hog_shared *s, const struct bench_cgroup *g, const char *path,
      uint64_t bytes)
{
    int rc = bench_cgroup_enter(g);
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void *base;

    if (rc == 0 && path != NULL && fd < 0)
        rc = errno;
    if (rc != 0)
        return rc;
    base = path == NULL ? mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                        : mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return errno;
    if (path != NULL)
        (void)madvise(base, bytes, MADV_RANDOM);
    for (;;) {
        pass(s, base, bytes, path != NULL);
        bench_sleep_until(bench_now_ns() + PAUSE_NS);
    }
}

/* ---- The others' side --------------------------------------------------------------------- */

/* make_file -- whose pages the page cache has forgotten; ret 0 or errno. */
static int
make_file(const char *path, uint64_t bytes)
{
    int fd = bench_zero_file(path, bytes);
    int rc;

    if (fd < 0)
        return errno;
    rc = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    return rc;
}

/* await_first_pass -- ret 0, or 1 after a message. */
static int
await_first_pass(struct bench_hog *hog)
{
    uint64_t end = bench_now_ns() + FIRST_PASS_NS;

    while (atomic_load_explicit(&hog->shared->passes, memory_order_relaxed) == 0) {
        int status, rc = atomic_load_explicit(&hog->shared->rc, memory_order_relaxed);

        if (rc != 0)
            return bench_fail("memory hog: %s", strerror(rc));
        if (waitpid(hog->pid, &status, WNOHANG) == hog->pid) {
            hog->pid = 0;
            return bench_fail("memory hog: killed: more memory than its group may have");
        }
        if (bench_now_ns() > end)
            return bench_fail("memory hog: has not touched its memory within a minute");
        bench_sleep_until(bench_now_ns() + PAUSE_NS / 10);
    }
    return 0;
}

int
bench_hog_start(struct bench_hog *hog, const struct bench_cgroup *g, const char *path,
                uint64_t bytes)
{
    int rc = path == NULL ? 0 : make_file(path, bytes);

    *hog = (struct bench_hog){0};
    if (rc != 0)
        return bench_fail("memory hog: %s: %s", path, strerror(rc));
    hog->shared = mmap(NULL, sizeof *hog->shared, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (hog->shared == MAP_FAILED) {
        hog->shared = NULL;
        return bench_fail("mmap: %s", strerror(errno));
    }
    bench_hog_run(hog, true);
    hog->pid = fork();
    if (hog->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        atomic_store_explicit(&hog->shared->rc, touch(hog->shared, g, path, bytes),
                              memory_order_relaxed);
        _exit(1);
    }
    if (hog->pid < 0) {
        hog->pid = 0;
        return bench_fail("fork: %s", strerror(errno));
    }
    rc = await_first_pass(hog);
    bench_hog_run(hog, false);
    return rc;
}

void
bench_hog_run(struct bench_hog *hog, bool on)
{
    if (hog->shared != NULL)
        atomic_store_explicit(&hog->shared->is_on, on, memory_order_relaxed);
}

uint64_t
bench_hog_bytes(const struct bench_hog *hog)
{
    return hog->shared == NULL
               ? 0
               : PAGE_BYTES
                     * atomic_load_explicit(&hog->shared->pages, memory_order_relaxed);
}

void
bench_hog_stop(struct bench_hog *hog)
{
    if (hog->pid > 0) {
        (void)kill(hog->pid, SIGKILL);
        while (waitpid(hog->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (hog->shared != NULL)
        (void)munmap(hog->shared, sizeof *hog->shared);
    *hog = (struct bench_hog){0};
}
