/* SPDX-License-Identifier: MIT */
/*
 * watch_ways.c -- the ways of the experiment `watch`: see watch.h.
 */
#include <config.h>

#include "bench/cost/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libxac/base/kernel.h"

enum {
    SYNC,
    ASYNC
};

#define RANGES     64  /* of one process_madvise                                      */
#define REGIONS    512 /* of one PAGEMAP_SCAN                                         */
#define WALK_TIMES 6   /* as view_end.c: pages walked over in the time of one call     */

/* ---- What the ways have in common ------------------------------------------------------- */

/* because -- note what failed; ret errno. */
static int
because(struct bench_watch *w, const char *what)
{
    int rc = errno;

    snprintf(w->why, sizeof w->why, "%s: %s", what, strerror(rc));
    return rc;
}

static uint8_t *
page_at(const struct bench_watch *w, uint64_t page_no)
{
    return w->view + page_no * w->page_bytes;
}

/* map -- the view; without a file it is memory.  ret 0 or errno. */
static int
map(struct bench_watch *w, int prot, bool is_file)
{
    void *p = mmap(NULL, w->n_pages * w->page_bytes, prot,
                   MAP_PRIVATE | MAP_NORESERVE | (is_file ? 0 : MAP_ANONYMOUS),
                   is_file ? w->file : -1, 0);

    if (p == MAP_FAILED)
        return because(w, "mmap");
    w->view = p;
    (void)madvise(p, w->n_pages * w->page_bytes, MADV_NOHUGEPAGE);
    return 0;
}

/* find -- a page has been touched, and perhaps written. */
static void
find(struct bench_watch *w, uint64_t page_no, int what)
{
    if (w->found[page_no] == 0)
        w->order[w->n_order++] = page_no;
    w->found[page_no] |= (uint8_t)what;
}

/* commit -- written pages go into the store. */
static void
commit(struct bench_watch *w)
{
    for (uint64_t i = 0; i < w->n_order; i++) {
        uint64_t at = w->order[i] * w->page_bytes;

        if ((w->found[w->order[i]] & WATCH_WRITTEN) != 0
            && memcmp(w->store + at, w->view + at, w->page_bytes) != 0)
            memcpy(w->store + at, w->view + at, w->page_bytes);
    }
}

/* advise -- pages found, one range each, many by one call; ret 0 or errno. */
static int
advise(struct bench_watch *w, int advice)
{
    struct iovec at[RANGES];
    uint64_t n;

    for (uint64_t i = 0; i < w->n_order; i += n) {
        for (n = 0; n < RANGES && i + n < w->n_order; n++)
            at[n] = (struct iovec){page_at(w, w->order[i + n]), w->page_bytes};
        if (syscall(SYS_process_madvise, PIDFD_SELF, at, n, advice, 0)
            == (long)(n * w->page_bytes))
            continue;
        for (uint64_t k = 0; k < n; k++)
            if (madvise(at[k].iov_base, at[k].iov_len, advice) != 0)
                return errno;
    }
    return 0;
}

static int
drop_all(struct bench_watch *w)
{
    return madvise(w->view, w->n_pages * w->page_bytes, MADV_DONTNEED) == 0 ? 0 : errno;
}

/* ---- userfaultfd ------------------------------------------------------------------------ */

/* open_uffd -- ret 0 or errno. */
static int
open_uffd(struct bench_watch *w, int which)
{
    struct uffdio_api api = {
        .api = UFFD_API,
        .features = which == ASYNC ? UFFD_FEATURE_SIGBUS | UFFD_FEATURE_WP_ASYNC
                                   : UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP,
    };

    w->uffd[which] = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    if (w->uffd[which] < 0)
        return because(w, "userfaultfd");
    if (ioctl(w->uffd[which], UFFDIO_API, &api) != 0)
        return because(w, which == ASYNC ? "UFFD_FEATURE_WP_ASYNC" : "UFFDIO_API");
    return 0;
}

/* enlist -- have the view watched; ret 0 or errno. */
static int
enlist(struct bench_watch *w, int which, uint64_t mode)
{
    struct uffdio_register reg = {
        .range = {.start = (uint64_t)(uintptr_t)w->view,
                  .len = w->n_pages * w->page_bytes},
        .mode = mode,
    };

    return ioctl(w->uffd[which], UFFDIO_REGISTER, &reg) == 0
               ? 0
               : because(w, "UFFDIO_REGISTER");
}

/* copy -- fill absent pages from the store; ret 0 or errno. */
static int
copy(struct bench_watch *w, int which, uint64_t first, uint64_t n, bool is_writable)
{
    uint64_t done = 0, bytes = n * w->page_bytes;

    while (done < bytes) {
        struct uffdio_copy c = {
            .dst = (uint64_t)(uintptr_t)page_at(w, first) + done,
            .src = (uint64_t)(uintptr_t)w->store + first * w->page_bytes + done,
            .len = bytes - done,
            .mode = is_writable ? 0 : UFFDIO_COPY_MODE_WP,
        };

        if (ioctl(w->uffd[which], UFFDIO_COPY, &c) == 0)
            return 0;
        if (errno != EAGAIN)
            return because(w, "UFFDIO_COPY");
        done += c.copy > 0 ? (uint64_t)c.copy : 0;
    }
    return 0;
}

/* protect -- or not; ret 0 or errno. */
static int
protect(struct bench_watch *w, int which, uint64_t first, uint64_t n, bool is_on)
{
    struct uffdio_writeprotect wp = {
        .range = {.start = (uint64_t)(uintptr_t)page_at(w, first),
                  .len = n * w->page_bytes},
        .mode = is_on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
    };

    return ioctl(w->uffd[which], UFFDIO_WRITEPROTECT, &wp) == 0
               ? 0
               : because(w, "UFFDIO_WRITEPROTECT");
}

#define BOTH (UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP)

/* open_memory -- memory watched, perhaps filled; ret 0 or errno. */
static int
open_memory(struct bench_watch *w, int which, bool is_filled)
{
    int rc = open_uffd(w, which);

    if (rc == 0)
        rc = map(w, PROT_READ | PROT_WRITE, false);
    if (rc == 0)
        rc = enlist(w, which, BOTH);
    return rc == 0 && is_filled ? copy(w, which, 0, w->n_pages, false) : rc;
}

static int
traps_open(struct bench_watch *w)
{
    return open_memory(w, SYNC, false);
}

static int
stays_open(struct bench_watch *w)
{
    return open_memory(w, SYNC, true);
}

static int
traps_trap(struct bench_watch *w, uint64_t page_no, bool is_write)
{
    bool was_there = w->found[page_no] != 0;

    find(w, page_no, is_write ? WATCH_TOUCHED | WATCH_WRITTEN : WATCH_TOUCHED);
    return was_there ? protect(w, SYNC, page_no, 1, false)
                     : copy(w, SYNC, page_no, 1, is_write);
}

static int
traps_end(struct bench_watch *w)
{
    commit(w);
    return advise(w, MADV_DONTNEED);
}

static int
stays_trap(struct bench_watch *w, uint64_t page_no, bool is_write)
{
    if (!is_write)
        return EFAULT;
    find(w, page_no, WATCH_WRITTEN);
    return protect(w, SYNC, page_no, 1, false);
}

static int
stays_end(struct bench_watch *w)
{
    int rc = 0;

    commit(w);
    if (w->n_pages <= w->n_order * WALK_TIMES)
        return protect(w, SYNC, 0, w->n_pages, true);
    for (uint64_t i = 0; i < w->n_order && rc == 0; i++)
        rc = protect(w, SYNC, w->order[i], 1, true);
    return rc;
}

/* ---- Asynchronous write-protection and PAGEMAP_SCAN ---------------------------------------- */

static int
open_pagemap(struct bench_watch *w)
{
    w->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    return w->pagemap >= 0 ? 0 : because(w, "/proc/self/pagemap");
}

/*
 * scan -- find the pages that are there and have these properties.
 *
 * in   mask   all of these; PAGE_IS_PRESENT is one of them
 *      flags  PM_SCAN_WP_MATCHING: protect them again
 *      is_private  a page is written if it is a copy of the file's; else all found are
 * ret  0 or errno
 */
static int
scan(struct bench_watch *w, uint64_t mask, uint64_t flags, bool is_private)
{
    static struct page_region region[REGIONS];
    uint64_t at = (uint64_t)(uintptr_t)w->view, base = at;
    uint64_t end = base + w->n_pages * w->page_bytes;

    while (at < end) {
        struct pm_scan_arg a = {
            .size = sizeof a,
            .flags = flags,
            .start = at,
            .end = end,
            .vec = (uint64_t)(uintptr_t)region,
            .vec_len = REGIONS,
            .category_mask = mask,
            .return_mask = mask | PAGE_IS_FILE,
        };
        int n = ioctl(w->pagemap, (unsigned long)PAGEMAP_SCAN, &a);

        if (n < 0)
            return because(w, "PAGEMAP_SCAN");
        for (int i = 0; i < n; i++) {
            bool is_written = !is_private || (region[i].categories & PAGE_IS_FILE) == 0;

            for (uint64_t p = region[i].start; p < region[i].end; p += w->page_bytes)
                find(w, (p - base) / w->page_bytes,
                     is_written ? WATCH_TOUCHED | WATCH_WRITTEN : WATCH_TOUCHED);
        }
        at = a.walk_end;
    }
    return 0;
}

static int
scan_open(struct bench_watch *w)
{
    int rc = open_pagemap(w);

    return rc == 0 ? open_memory(w, ASYNC, true) : rc;
}

static int
scan_end(struct bench_watch *w)
{
    int rc = scan(w, PAGE_IS_PRESENT | PAGE_IS_WRITTEN, PM_SCAN_WP_MATCHING, false);

    commit(w);
    return rc;
}

/* switched -- the view goes from one kind of watching to the other; ret 0 or errno. */
static int
switched(struct bench_watch *w, int from, int to)
{
    struct uffdio_range range = {.start = (uint64_t)(uintptr_t)w->view,
                                 .len = w->n_pages * w->page_bytes};
    int rc;

    if (ioctl(w->uffd[from], UFFDIO_UNREGISTER, &range) != 0)
        return because(w, "UFFDIO_UNREGISTER");
    rc = enlist(w, to, BOTH);
    return rc == 0 ? protect(w, to, 0, w->n_pages, true) : rc;
}

static int
switch_open(struct bench_watch *w)
{
    int rc = open_pagemap(w);

    if (rc == 0)
        rc = open_uffd(w, ASYNC);
    return rc == 0 ? open_memory(w, SYNC, true) : rc;
}

static int
switch_begin(struct bench_watch *w)
{
    return switched(w, SYNC, ASYNC);
}

static int
switch_end(struct bench_watch *w)
{
    int rc = scan(w, PAGE_IS_PRESENT | PAGE_IS_WRITTEN, 0, false);

    commit(w);
    return rc == 0 ? switched(w, ASYNC, SYNC) : rc;
}

/* fill_begin -- all pages at once, so that none traps. */
static int
fill_open(struct bench_watch *w)
{
    int rc = open_pagemap(w);

    return rc == 0 ? open_memory(w, ASYNC, false) : rc;
}

static int
fill_begin(struct bench_watch *w)
{
    return copy(w, ASYNC, 0, w->n_pages, false);
}

static int
fill_end(struct bench_watch *w)
{
    int rc = scan(w, PAGE_IS_PRESENT | PAGE_IS_WRITTEN, 0, false);

    commit(w);
    return rc == 0 ? drop_all(w) : rc;
}

/* ---- Private mappings of the store, which the kernel fills -------------------------------- */

/* present_open -- registered only so that the kernel maps no neighbours of a page. */
static int
present_open(struct bench_watch *w)
{
    int rc = open_pagemap(w);

    if (rc == 0)
        rc = open_uffd(w, ASYNC);
    if (rc == 0)
        rc = map(w, PROT_READ | PROT_WRITE, true);
    return rc == 0 ? enlist(w, ASYNC, UFFDIO_REGISTER_MODE_WP) : rc;
}

static int
present_end(struct bench_watch *w)
{
    int rc = scan(w, PAGE_IS_PRESENT, 0, true);

    commit(w);
    return rc == 0 ? drop_all(w) : rc;
}

static int
populate_open(struct bench_watch *w)
{
    int rc = open_pagemap(w);

    return rc == 0 ? map(w, PROT_READ | PROT_WRITE, true) : rc;
}

static int
populate_begin(struct bench_watch *w)
{
    return madvise(w->view, w->n_pages * w->page_bytes, MADV_POPULATE_READ) == 0
               ? 0
               : because(w, "MADV_POPULATE_READ");
}

static int
guard_open(struct bench_watch *w)
{
    int rc = populate_open(w);

    if (rc == 0 && madvise(w->view, w->n_pages * w->page_bytes, MADV_GUARD_INSTALL) != 0)
        rc = because(w, "MADV_GUARD_INSTALL");
    return rc;
}

static int
guard_trap(struct bench_watch *w, uint64_t page_no, bool is_write)
{
    find(w, page_no, is_write ? WATCH_TOUCHED | WATCH_WRITTEN : WATCH_TOUCHED);
    return madvise(page_at(w, page_no), w->page_bytes, MADV_GUARD_REMOVE) == 0 ? 0
                                                                               : errno;
}

static int
guard_end(struct bench_watch *w)
{
    int rc = scan(w, PAGE_IS_PRESENT, 0, true);

    commit(w);
    return rc == 0 ? advise(w, MADV_GUARD_INSTALL) : rc;
}

static int
mprotect_open(struct bench_watch *w)
{
    return map(w, PROT_NONE, true);
}

static int
mprotect_trap(struct bench_watch *w, uint64_t page_no, bool is_write)
{
    find(w, page_no, is_write ? WATCH_TOUCHED | WATCH_WRITTEN : WATCH_TOUCHED);
    return mprotect(page_at(w, page_no), w->page_bytes,
                    is_write ? PROT_READ | PROT_WRITE : PROT_READ)
                   == 0
               ? 0
               : errno;
}

/* mprotect_end -- private copies stay; they hold what has been committed. */
static int
mprotect_end(struct bench_watch *w)
{
    commit(w);
    return mprotect(w->view, w->n_pages * w->page_bytes, PROT_NONE) == 0 ? 0 : errno;
}

/* ---- The table ----------------------------------------------------------------------------- */

const struct bench_way bench_ways[] = {
    {"traps: mprotect", "reads, writes; before", true, mprotect_open, NULL, mprotect_trap,
     mprotect_end},
    {"traps: guard pages", "reads; before. writes; after", true, guard_open, NULL,
     guard_trap, guard_end},
    {"traps: uffd", "reads, writes; before", true, traps_open, NULL, traps_trap,
     traps_end},
    {"traps: uffd, stays mapped", "writes; before", false, stays_open, NULL, stays_trap,
     stays_end},
    {"scan: stays mapped", "writes; after", false, scan_open, NULL, NULL, scan_end},
    {"scan: stays mapped, to and fro", "writes; after", false, switch_open, switch_begin,
     NULL, switch_end},
    {"scan: filled before, dropped", "writes; after", false, fill_open, fill_begin, NULL,
     fill_end},
    {"scan: populated, dropped", "writes; after", false, populate_open, populate_begin,
     NULL, present_end},
    {"scan: what is there, dropped", "reads, writes; after", true, present_open, NULL,
     NULL, present_end},
};
const unsigned bench_n_ways = sizeof bench_ways / sizeof bench_ways[0];

void
bench_watch_close(struct bench_watch *w)
{
    const int fds[] = {w->uffd[SYNC], w->uffd[ASYNC], w->pagemap};

    if (w->view != NULL)
        (void)munmap(w->view, w->n_pages * w->page_bytes);
    w->view = NULL;
    for (unsigned i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    w->uffd[SYNC] = w->uffd[ASYNC] = w->pagemap = -1;
}
