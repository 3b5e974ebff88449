/* SPDX-License-Identifier: MIT */
/*
 * frames_tree.c -- row nb-14: a B+-tree of 105 MB in a pool of 20 MB, the share of the papers' TPC-C,
 * looked up and changed by threads; Nb-GCLOCK against CLOCK whose misses take a lock.
 *
 * The tree is bulk-loaded and its keys stay; a change adds one to a value.  So no node splits, and
 * the nodes above the leaves need no latch.  Its file is memory: a read is a copy of a page.
 */
#include <config.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <time.h>

#include "bench/frames/frames_table.h"
#include "bench/kit/util.h"

#define NODE_BYTES  4096u
#define FANOUT      (NODE_BYTES / 16) /* key and value, or key and child */
#define TREE_BYTES  (105u << 20)
#define POOL_BYTES  (20u << 20)
#define CHANGED     5 /* one in so many is a change */
#define THREADS_MAX 32

struct node {
    struct {
        uint64_t key;
        _Atomic uint64_t value; /* or child's page */
    } entries[FANOUT];
};

struct tree {
    char *file;
    uint64_t n_leaves, n_pages, root;
    unsigned height; /* levels above the leaves */
    struct xac_frames *pool;
    _Atomic bool over;
    _Atomic uint64_t n_done, n_changes;
    _Atomic int rc;
};

static int
tree_read(void *arg, uint64_t page, void *data)
{
    struct tree *tree = arg;

    memcpy(data, tree->file + page * NODE_BYTES, NODE_BYTES);
    return 0;
}

static int
tree_write(void *arg, uint64_t page, const void *data)
{
    struct tree *tree = arg;

    /* Words: others may be adding to the page meanwhile, and will mark it again. */
    for (size_t i = 0; i < NODE_BYTES / 8; i++)
        ((_Atomic uint64_t *)(void *)(tree->file + page * NODE_BYTES))[i] =
            atomic_load_explicit(&((_Atomic uint64_t *)(uintptr_t)data)[i],
                                 memory_order_relaxed);
    return 0;
}

/* level_load -- nodes over n children from page `first` on; ret how many nodes. */
static uint64_t
level_load(struct tree *tree, uint64_t first, uint64_t n, uint64_t at, uint64_t key_step)
{
    uint64_t n_nodes = (n + FANOUT - 1) / FANOUT;

    for (uint64_t i = 0; i < n_nodes * FANOUT; i++) {
        struct node *node =
            (struct node *)(void *)(tree->file + (at + i / FANOUT) * NODE_BYTES);

        node->entries[i % FANOUT].key = i < n ? i * key_step : UINT64_MAX;
        atomic_store_explicit(&node->entries[i % FANOUT].value, i < n ? first + i : 0,
                              memory_order_relaxed);
    }
    return n_nodes;
}

/* tree_load -- leaves from page 0 on, with keys 0, 1, 2, ...; then the levels above. */
static int
tree_load(struct tree *tree)
{
    uint64_t first = 0, n, step = FANOUT;

    tree->n_leaves = TREE_BYTES / NODE_BYTES;
    tree->n_pages = tree->n_leaves + tree->n_leaves / 64;
    tree->file = calloc(tree->n_pages, NODE_BYTES);
    if (tree->file == NULL)
        return bench_fail("frames: no memory for the tree");
    for (uint64_t i = 0; i < tree->n_leaves * FANOUT; i++)
        ((struct node *)(void *)(tree->file + i / FANOUT * NODE_BYTES))
            ->entries[i % FANOUT]
            .key = i;
    n = tree->n_leaves;
    for (tree->height = 0; n > 1; tree->height++) {
        uint64_t at = first + n, n_nodes = level_load(tree, first, n, at, step);

        first = at;
        n = n_nodes;
        step *= FANOUT;
    }
    tree->root = first;
    return 0;
}

/* entry_of -- the last entry with a key that is not above. */
static unsigned
entry_of(const struct node *node, uint64_t key)
{
    unsigned low = 0, high = FANOUT - 1;

    while (low < high) {
        unsigned middle = (low + high + 1) / 2;

        if (node->entries[middle].key <= key)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* operate -- from the root down, child before the parent is given back; ret 0 or errno. */
static int
operate(struct tree *tree, struct xac_frames_user *user, uint64_t key, bool change)
{
    struct xac_frames_pin pin, child;
    struct node *node;
    unsigned i;
    int rc = xac_frames_fix(user, tree->root, 0, &pin);

    for (unsigned level = 0; level < tree->height && rc == 0; level++) {
        node = pin.data;
        rc =
            xac_frames_fix(user,
                           atomic_load_explicit(&node->entries[entry_of(node, key)].value,
                                                memory_order_relaxed),
                           0, &child);
        xac_frames_unfix(user, &pin);
        pin = child;
    }
    if (rc != 0)
        return rc;
    node = pin.data;
    i = entry_of(node, key);
    if (node->entries[i].key != key)
        rc = -1;
    if (change) {
        atomic_fetch_add_explicit(&node->entries[i].value, 1, memory_order_relaxed);
        xac_frames_mark_dirty(user, &pin);
    }
    xac_frames_unfix(user, &pin);
    return rc;
}

struct member {
    struct tree *tree;
    pthread_t thread;
    uint64_t seed;
};

static void *
member_run(void *arg)
{
    struct member *m = arg;
    struct tree *tree = m->tree;
    struct xac_frames_user *user;
    uint64_t n = 0, n_changes = 0;
    int rc = xac_frames_join(tree->pool, &user);

    if (rc != 0) {
        atomic_store_explicit(&tree->rc, rc, memory_order_relaxed);
        return NULL;
    }
    for (; rc == 0 && !atomic_load_explicit(&tree->over, memory_order_relaxed); n++) {
        uint64_t x = bench_key(m->seed, n);
        double u = (double)(x >> 11) / (double)(UINT64_C(1) << 53);
        /* Skewed as TPC-C's tables are, spread over the leaves. */
        uint64_t leaf = (uint64_t)((double)tree->n_leaves * pow(u, 1 / 0.14));
        bool change = x % CHANGED == 0;

        leaf = leaf * 40503 % tree->n_leaves;
        rc = operate(tree, user, leaf * FANOUT + x / CHANGED % FANOUT, change);
        n_changes += change && rc == 0;
    }
    atomic_fetch_add_explicit(&tree->n_done, n, memory_order_relaxed);
    atomic_fetch_add_explicit(&tree->n_changes, n_changes, memory_order_relaxed);
    if (rc != 0)
        atomic_store_explicit(&tree->rc, rc, memory_order_relaxed);
    xac_frames_leave(user);
    return NULL;
}

/* tree_sum -- of all values in the file. */
static uint64_t
tree_sum(const struct tree *tree)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < tree->n_leaves * FANOUT; i++)
        sum += atomic_load_explicit(&((struct node *)(void *)(tree->file
                                                              + i / FANOUT * NODE_BYTES))
                                         ->entries[i % FANOUT]
                                         .value,
                                    memory_order_relaxed);
    return sum;
}

/* tree_end -- all changes are in the file. */
static int
tree_end(struct tree *tree)
{
    struct xac_frames_user *user;
    int rc = atomic_load_explicit(&tree->rc, memory_order_relaxed);

    if (rc == 0)
        rc = xac_frames_join(tree->pool, &user);
    if (rc == 0) {
        rc = xac_frames_flush_all(user);
        xac_frames_leave(user);
    }
    xac_frames_close(tree->pool);
    if (rc != 0)
        return bench_fail("frames: tree: %s", rc < 0 ? "a key is missing" : strerror(rc));
    return tree_sum(tree) == atomic_load_explicit(&tree->n_changes, memory_order_relaxed)
               ? 0
               : bench_fail("frames: tree: a change is lost");
}

/* tree_measure -- out operations per second, in thousands; of the same seed, on the same keys. */
static int
tree_measure(struct tree *tree, uint32_t policy, unsigned n_threads, double seconds,
             uint64_t seed, double *kops)
{
    struct xac_frames_config c = {.n_pages = tree->n_pages,
                                  .n_frames = POOL_BYTES / NODE_BYTES,
                                  .n_users = THREADS_MAX + 1,
                                  .page_bytes = NODE_BYTES,
                                  .policy = policy};
    struct xac_frames_io io = {.read = tree_read, .write = tree_write, .arg = tree};
    struct timespec time = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)(fmod(seconds, 1) * 1e9)};
    struct member members[THREADS_MAX];
    uint64_t begin, done;
    unsigned n = 0;
    int rc = xac_frames_create(&c, NULL, &io, &tree->pool);

    if (rc != 0)
        return bench_fail("frames: no pool: %s", strerror(rc));
    atomic_store_explicit(&tree->over, false, memory_order_relaxed);
    done = atomic_load_explicit(&tree->n_done, memory_order_relaxed);
    begin = bench_now_ns();
    for (; n < n_threads; n++) {
        members[n] = (struct member){.tree = tree, .seed = seed * THREADS_MAX + n};
        rc = pthread_create(&members[n].thread, NULL, member_run, &members[n]);
        if (rc != 0) {
            atomic_store_explicit(&tree->rc, rc, memory_order_relaxed);
            break;
        }
    }
    (void)nanosleep(&time, NULL);
    atomic_store_explicit(&tree->over, true, memory_order_relaxed);
    for (unsigned i = 0; i < n; i++)
        (void)pthread_join(members[i].thread, NULL);
    *kops = (double)(atomic_load_explicit(&tree->n_done, memory_order_relaxed) - done)
            * 1e6 / (double)(bench_now_ns() - begin);
    return tree_end(tree);
}

int
bench_row_tree(struct table *t)
{
    static const unsigned threads[] = {1, 2, 8, 32};
    static const uint32_t policies[] = {XAC_FRAMES_NB_GCLOCK, XAC_FRAMES_CLOCK};
    struct tree tree = {0};
    double kops[2][4], ratio[4];
    int rc = tree_load(&tree);

    for (int k = 0; k < 4 && rc == 0; k++) {
        double got[2][LOAD_ROUNDS_MAX], ratios[LOAD_ROUNDS_MAX];

        for (unsigned round = 0; round < t->rounds && rc == 0; round++)
            for (unsigned i = 0; i < 2 && rc == 0; i++) {
                unsigned p = (i + round) % 2;

                rc = tree_measure(&tree, policies[p], threads[k], 2 * t->seconds,
                                  1 + round, &got[p][round]);
            }
        for (unsigned round = 0; round < t->rounds && rc == 0; round++)
            ratios[round] = got[0][round] / got[1][round];
        for (int p = 0; p < 2 && rc == 0; p++)
            kops[p][k] = bench_median(got[p], t->rounds);
        ratio[k] = rc == 0 ? bench_median(ratios, t->rounds) : 0;
    }
    free(tree.file);
    if (rc != 0)
        return rc;
    bench_row(
        t, "nb-14",
        "B+-tree of 105 MB in 20 MB of frames, a fifth of the operations changes",
        "nb >= 0.9 x clock with a lock on misses at T1, T2, T8; >= 1.0 x at T32",
        ROW_IF(ratio[0] >= 0.9 && ratio[1] >= 0.9 && ratio[2] >= 0.9 && ratio[3] >= 1.0),
        "kops/s nb %.0f %.0f %.0f %.0f, clock %.0f %.0f %.0f %.0f: %.2f %.2f %.2f %.2f x",
        kops[0][0], kops[0][1], kops[0][2], kops[0][3], kops[1][0], kops[1][1],
        kops[1][2], kops[1][3], ratio[0], ratio[1], ratio[2], ratio[3]);
    return 0;
}
