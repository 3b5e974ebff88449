/* SPDX-License-Identifier: MIT */
/*
 * frames_record.c -- the pages that inserts into our B+-tree touch, as a trace; rows bp-H1 to bp-H3
 * on it.
 *
 * Nothing of the tree takes part: its segment cannot be accessed when an insert begins, a fault notes the
 * page and lets it be used until the insert ends.  So a page counts once for each insert, in the
 * order of first touch.
 */
#include <config.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/frames/frames_table.h"
#include "bench/frames/frames_trace.h"
#include "bench/kit/util.h"
#include "bench/systems/tree_kind.h"

#define PAGE_BYTES 4096u
#define OP_PAGES   256 /* of one insert, at most */

/* What the handler needs: one recording at a time, of one thread. */
static struct {
    unsigned char *base;
    size_t size;
    uint64_t pages[OP_PAGES];
    unsigned n;
    struct sigaction before;
} recorder;

static void
on_fault(int sig, siginfo_t *info, void *context)
{
    size_t at = (size_t)((unsigned char *)info->si_addr - recorder.base);

    (void)context;
    if (at >= recorder.size || recorder.n == OP_PAGES
        || mprotect(recorder.base + at / PAGE_BYTES * PAGE_BYTES, PAGE_BYTES,
                    PROT_READ | PROT_WRITE)
               != 0) {
        (void)sigaction(sig, &recorder.before, NULL); /* it comes again, as what it is */
        return;
    }
    recorder.pages[recorder.n++] = at / PAGE_BYTES;
}

/* insert_record -- one key, and its pages; ret 0, or 1 after a message. */
static int
insert_record(union bench_tree *tree, uint64_t key, struct trace *t)
{
    unsigned char bytes[8];
    int rc;

    tree_key_u64(key, bytes);
    recorder.n = 0;
    if (mprotect(recorder.base, recorder.size, PROT_NONE) != 0)
        return bench_fail("frames: cannot protect a segment");
    rc = bench_kind_btree_serial.insert(tree, bytes, &(uint64_t[8]){key}, TREE_PUT);
    if (rc != 0)
        return bench_fail("frames: insert: %s", strerror(rc));
    for (unsigned i = 0; i < recorder.n; i++)
        if (bench_trace_add(t, recorder.pages[i]) != 0)
            return 1;
    return 0;
}

int
bench_trace_record(struct trace *t, uint64_t n_inserts, uint64_t seed)
{
    struct bench_tree_config config = {.count = 2 * n_inserts,
                                       .key_size = 8,
                                       .value_size = 64,
                                       .block_size = PAGE_BYTES};
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    union bench_tree tree;
    int rc;

    *t = (struct trace){.n = 0};
    recorder.size = bench_kind_btree_serial.size(&config);
    recorder.base = mmap(NULL, recorder.size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (recorder.base == MAP_FAILED)
        return bench_fail("frames: no memory for a tree");
    rc = bench_kind_btree_serial.create(&tree, recorder.base, recorder.size, &config);
    rc = rc != 0 ? bench_fail("frames: no tree: %s", strerror(rc))
                 : sigaction(SIGSEGV, &action, &recorder.before);
    for (uint64_t i = 0; i < n_inserts && rc == 0; i++) {
        uint64_t key = bench_trace_random(&seed) % (4 * n_inserts);

        rc = insert_record(&tree, key, t);
    }
    (void)sigaction(SIGSEGV, &recorder.before, NULL);
    (void)munmap(recorder.base, recorder.size);
    return rc;
}

int
bench_trace_write(const struct trace *t, const char *name)
{
    FILE *f = fopen(name, "w");
    bool ok = f != NULL;

    for (size_t i = 0; i < t->n && ok; i++)
        ok = fprintf(f, "%llu\n", (unsigned long long)t->pages[i]) > 0;
    if (f != NULL && fclose(f) != 0)
        ok = false;
    return ok ? 0 : bench_fail("%s: cannot be written", name);
}

/* ---- bp-H1 to bp-H3 -------------------------------------------------------------------- */

#define INSERTS 200000
#define USERS   16
#define LISTS   8 /* of eight frames each */
#define FRAMES  4096

/* What the wrapper changes, in points, at most, of all policies. */
struct change {
    double one, many, lists[2], fewer[2];
    int rc; /* 1: a play has failed */
};

static double
play(struct change *w, const struct trace *t, const struct xac_frames_config *c,
     unsigned n_users)
{
    uint64_t hits = 0;

    w->rc = bench_trace_play(t, c, n_users, 0, &hits) != 0 ? 1 : w->rc;
    return 100 * (double)hits / (double)t->n;
}

/* batches_change -- of one policy in so many frames. */
static void
batches_change(struct change *w, const struct trace *t, uint32_t policy,
               uint32_t n_frames)
{
    struct xac_frames_config c = {.policy = policy, .n_frames = n_frames};
    double hits = play(w, t, &c, 1);

    c.batch_queue = BENCH_BATCH_QUEUE;
    c.batch_threshold = BENCH_BATCH_TRY;
    w->one = fmax(w->one, fabs(play(w, t, &c, 1) - hits));
    w->many = fmax(w->many, fabs(play(w, t, &c, USERS) - hits));
}

/* lists_change -- lists that hold 1/64 of the frames; and beside as many frames fewer. */
static void
lists_change(struct change *w, const struct trace *t, uint32_t policy)
{
    struct xac_frames_config plain = {.policy = policy, .n_frames = FRAMES};
    struct xac_frames_config c = plain, fewer = plain;
    double hits = play(w, t, &plain, 1);

    c.batch_queue = BENCH_BATCH_QUEUE;
    c.batch_threshold = BENCH_BATCH_TRY;
    c.free_lists = LISTS;
    for (int i = 0; i < 2; i++) {
        unsigned n_users = i == 0 ? 1 : USERS;
        double lists = play(w, t, &c, n_users);

        fewer.n_frames = FRAMES - LISTS * LISTS - n_users * BENCH_BATCH_QUEUE;
        w->lists[i] = fmax(w->lists[i], hits - lists);
        w->fewer[i] = fmax(w->fewer[i], play(w, t, &fewer, 1) - lists);
    }
}

int
bench_row_recorded(struct table *t)
{
    static const uint32_t policies[] = {XAC_FRAMES_LRU, XAC_FRAMES_2Q, XAC_FRAMES_LIRS,
                                        XAC_FRAMES_MQ};
    struct change c = {.fewer = {-100, -100}}, lirs = c;
    struct trace trace;
    int rc = bench_trace_record(&trace, INSERTS, 1);

    for (int p = 0; p < 4 && rc == 0; p++) {
        batches_change(&c, &trace, policies[p], FRAMES / 4);
        batches_change(&c, &trace, policies[p], FRAMES);
        lists_change(policies[p] == XAC_FRAMES_LIRS ? &lirs : &c, &trace, policies[p]);
        rc = c.rc + lirs.rc;
    }
    if (rc == 0)
        bench_row(
            t, "bp-H1",
            "our B+-tree's inserts, LRU, 2Q, LIRS, MQ: what the wrapper changes",
            "T1 nothing; T16 <= 0.05 points; lists (but LIRS) <= 0.5, and <= 0.1 "
            "below as many frames fewer",
            ROW_IF(c.one == 0 && c.many <= 0.05 && fmax(c.lists[0], c.lists[1]) <= 0.5
                   && fmax(c.fewer[0], c.fewer[1]) <= 0.1),
            "%zu references to %llu pages, 1024 and 4096 frames: T1 %.4f, T16 %.4f; lists T1 "
            "%.3f, T16 %.3f worse (against fewer frames %.3f, %.3f); LIRS %.3f, %.3f",
            trace.n, (unsigned long long)trace.page_max + 1, c.one, c.many, c.lists[0],
            c.lists[1], c.fewer[0], c.fewer[1], lirs.lists[0], lirs.lists[1]);
    free(trace.pages);
    return rc;
}
