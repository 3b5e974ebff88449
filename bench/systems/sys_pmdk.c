/* SPDX-License-Identifier: MIT */
/*
 * sys_pmdk.c -- a small B+-tree on libpmemobj of PMDK: the floor of nondurable work.
 *
 * WHAT      Nodes of a kibibyte and values lie in the root object, each array filled from its
 *           start on; a put is a transaction of libpmemobj with an undo log of what it changes.
 *           One mutex; a reader takes it, too, and has no snapshot.  Only one process can
 *           open a pool, so several workers are threads.
 * DURABLE   never: the pool is in an ordinary file.  PMEM_IS_PMEM_FORCE makes the library
 *           flush caches as for persistent memory, where else it would call msync(2).  So it
 *           keeps what was committed if the program dies, not if the machine does.
 * SETTINGS  the file is filled with zeros first, as that of the system mmap is.
 *           POBJ_XADD_NO_SNAPSHOT for what was free before: nothing of it needs to come back.
 *           PMEM_NO_FLUSH=1 in the environment of xbench leaves the flushes out; the library
 *           reads it when the program is loaded, so it cannot be set here.
 */
#include <config.h>

#include "bench/kit/system.h"
#include "bench/kit/util.h"

#include <errno.h>
#include <libpmemobj.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEYS_MAX 62u

/* Room besides the root object: undo logs and the heap's own. */
#define POOL_EXTRA_BYTES ((size_t)64 << 20)

struct node {
    uint32_t n;
    uint32_t is_leaf;
    uint64_t next; /* leaf: number of the next one, plus 1                            */
    uint64_t key[KEYS_MAX];
    uint64_t ref[KEYS_MAX + 1]; /* numbers of children, or of values                  */
};

struct root {
    uint64_t top; /* number of the node                                               */
    uint64_t n_nodes;
    uint64_t n_values;
    uint64_t nodes_max;
    uint64_t values_max;
    struct node nodes[]; /* then the values                                           */
};

/* The pool of this process, and its handles. */
static struct {
    PMEMobjpool *pool;
    struct root *root;
    unsigned char *values;
    unsigned users;
    pthread_mutex_t lock; /* the tree                                                 */
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Open, close ------------------------------------------------------------------ */

/* open_pool -- make it, or open it. */
static int
open_pool(const char *path, size_t bytes, bool first)
{
    int fd;

    setenv("PMEM_IS_PMEM_FORCE", "1", 1);
    if (first) {
        fd = bench_zero_file(path, bytes);
        if (fd < 0)
            return errno;
        close(fd);
        shared.pool = pmemobj_create(path, "xbench", 0, 0644); /* the file as it is */
    } else
        shared.pool = pmemobj_open(path, "xbench");
    return shared.pool != NULL ? 0 : EIO;
}

/* open_tree -- the first one makes it empty; no crash is waited for here. */
static int
open_tree(const struct bench_config *config, bool first)
{
    uint64_t values_max = config->count + 1000;
    uint64_t nodes_max = values_max / (KEYS_MAX / 2) * 2 + 64;
    size_t bytes = sizeof(struct root) + nodes_max * sizeof(struct node)
                   + values_max * BENCH_VALUE_BYTES;
    char path[PATH_MAX];
    PMEMoid oid;
    int rc;

    snprintf(path, sizeof path, "%s/pool", config->dir);
    rc = open_pool(path, bytes + bytes / 8 + POOL_EXTRA_BYTES, first);
    if (rc != 0)
        return rc;
    oid = pmemobj_root(shared.pool, bytes);
    if (OID_IS_NULL(oid))
        return EIO;
    shared.root = pmemobj_direct(oid);
    shared.values = (unsigned char *)&shared.root->nodes[nodes_max];
    if (first) {
        shared.root->nodes[0].is_leaf = 1;
        shared.root->n_nodes = 1;
        shared.root->nodes_max = nodes_max;
        shared.root->values_max = values_max;
        pmemobj_persist(shared.pool, shared.root,
                        sizeof(struct root) + sizeof(struct node));
    }
    return 0;
}

static int
pmdk_close(void *handle)
{
    (void)handle;
    if (--shared.users == 0 && shared.pool != NULL) {
        pmemobj_close(shared.pool);
        shared.pool = NULL;
    }
    return 0;
}

static int
pmdk_open(const struct bench_config *config, bool first, void **handlep)
{
    int rc = shared.users++ == 0 ? open_tree(config, first) : 0;

    if (rc != 0) {
        (void)pmdk_close(NULL);
        return rc;
    }
    *handlep = &shared;
    return 0;
}

/* ---- The tree; the caller has the lock -------------------------------------------- */

static struct node *
node_at(uint64_t number)
{
    return &shared.root->nodes[number];
}

static unsigned char *
value_at(uint64_t number)
{
    return shared.values + number * BENCH_VALUE_BYTES;
}

/* keep -- in a transaction: an abort brings these bytes back.  Jumps if there is no memory. */
static void
keep(const void *p, size_t bytes)
{
    (void)pmemobj_tx_add_range_direct(p, bytes);
}

/* is_fresh -- in a transaction: the bytes will be written; an abort need not restore them. */
static void
is_fresh(const void *p, size_t bytes)
{
    (void)pmemobj_tx_xadd_range_direct(p, bytes, POBJ_XADD_NO_SNAPSHOT);
}

/* n_below -- keys of a node that are less than key, or, with `equal`, not greater. */
static unsigned
n_below(const struct node *node, uint64_t key, bool equal)
{
    unsigned low = 0, high = node->n;

    while (low < high) {
        unsigned mid = (low + high) / 2;

        if (node->key[mid] < key || (equal && node->key[mid] == key))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* leaf_of -- the leaf where a key is, or would be. */
static struct node *
leaf_of(uint64_t key)
{
    struct node *node = node_at(shared.root->top);

    while (!node->is_leaf)
        node = node_at(node->ref[n_below(node, key, true)]);
    return node;
}

/* new_node -- its number. */
static uint64_t
new_node(bool is_leaf)
{
    struct root *root = shared.root;
    struct node *node = node_at(root->n_nodes);

    if (root->n_nodes == root->nodes_max)
        pmemobj_tx_abort(ENOSPC);
    keep(&root->n_nodes, sizeof root->n_nodes);
    is_fresh(node, sizeof *node);
    node->n = 0;
    node->is_leaf = is_leaf;
    node->next = 0;
    return root->n_nodes++;
}

/* open_gap -- in a node that is not full: room for key[at] and ref[ref_at]. */
static void
open_gap(struct node *node, unsigned at, unsigned ref_at)
{
    unsigned n_refs = node->n + !node->is_leaf;

    keep(&node->n, sizeof node->n);
    keep(&node->key[at], (node->n - at + 1) * sizeof node->key[0]);
    keep(&node->ref[ref_at], (n_refs - ref_at + 1) * sizeof node->ref[0]);
    memmove(&node->key[at + 1], &node->key[at], (node->n - at) * sizeof node->key[0]);
    memmove(&node->ref[ref_at + 1], &node->ref[ref_at],
            (n_refs - ref_at) * sizeof node->ref[0]);
    node->n++;
}

/* split -- child `at` of a parent that is not full: its upper half becomes a new child. */
static void
split(struct node *parent, unsigned at)
{
    struct node *low = node_at(parent->ref[at]);
    unsigned half = low->n / 2;
    unsigned from = low->is_leaf ? half : half + 1; /* an inner key goes up, not over */
    uint64_t key = low->key[half], number = new_node(low->is_leaf != 0);
    struct node *high = node_at(number);

    high->n = low->n - from;
    memcpy(high->key, &low->key[from], high->n * sizeof high->key[0]);
    memcpy(high->ref, &low->ref[from], (high->n + !low->is_leaf) * sizeof high->ref[0]);
    keep(low, offsetof(struct node, key));
    low->n = half;
    if (low->is_leaf) {
        high->next = low->next;
        low->next = number + 1;
    }
    open_gap(parent, at, at + 1);
    parent->key[at] = key;
    parent->ref[at + 1] = number;
}

/* leaf_with_room -- where a key is or would be; full nodes on the way are split. */
static struct node *
leaf_with_room(uint64_t key)
{
    struct root *root = shared.root;
    struct node *node = node_at(root->top);

    if (node->n == KEYS_MAX) {
        uint64_t number = new_node(false);

        node = node_at(number);
        node->ref[0] = root->top;
        keep(&root->top, sizeof root->top);
        root->top = number;
        split(node, 0);
    }
    while (!node->is_leaf) {
        unsigned at = n_below(node, key, true);

        if (node_at(node->ref[at])->n == KEYS_MAX) {
            split(node, at);
            at = n_below(node, key, true);
        }
        node = node_at(node->ref[at]);
    }
    return node;
}

/* write_record -- in a transaction; ret 0 or EEXIST. */
static int
write_record(uint64_t key, const void *value, bool add)
{
    struct root *root = shared.root;
    struct node *leaf = leaf_with_room(key);
    unsigned at = n_below(leaf, key, false);
    bool is_there = at < leaf->n && leaf->key[at] == key;
    uint64_t number = is_there ? leaf->ref[at] : root->n_values;

    if (is_there && add)
        return EEXIST;
    if (is_there)
        keep(value_at(number), BENCH_VALUE_BYTES);
    else {
        if (number == root->values_max)
            pmemobj_tx_abort(ENOSPC);
        is_fresh(value_at(number), BENCH_VALUE_BYTES);
        keep(&root->n_values, sizeof root->n_values);
        root->n_values++;
        open_gap(leaf, at, at);
        leaf->key[at] = key;
        leaf->ref[at] = number;
    }
    memcpy(value_at(number), value, BENCH_VALUE_BYTES);
    return 0;
}

/* transaction -- ret 0, EEXIST, or an error of the library, after which nothing is changed. */
static int
transaction(uint64_t key, const void *value, bool add)
{
    jmp_buf env;
    int rc, rc2;

    if (setjmp(env) != 0)
        return pmemobj_tx_end(); /* it has aborted */
    rc = pmemobj_tx_begin(shared.pool, env, TX_PARAM_NONE, TX_PARAM_NONE);
    if (rc == 0) {
        rc = write_record(key, value, add);
        pmemobj_tx_commit();
    }
    rc2 = pmemobj_tx_end();
    return rc != 0 ? rc : rc2;
}

/* ---- The system ------------------------------------------------------------------- */

/* put -- a transaction, alone. */
static int
put(const void *key, const void *value, bool add)
{
    int rc;

    pthread_mutex_lock(&shared.lock);
    rc = transaction(bench_key_decode(key), value, add);
    pthread_mutex_unlock(&shared.lock);
    return rc;
}

static int
pmdk_insert(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    (void)handle;
    (void)retriesp; /* one writer at a time: nothing to retry */
    return put(key, value, true);
}

static int
pmdk_put(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    (void)handle;
    (void)retriesp;
    return put(key, value, false);
}

static int
pmdk_find(void *handle, const void *key, void *value)
{
    uint64_t number = bench_key_decode(key);
    const struct node *leaf;
    unsigned at;
    int rc = ENOENT;

    (void)handle;
    pthread_mutex_lock(&shared.lock);
    leaf = leaf_of(number);
    at = n_below(leaf, number, false);
    if (at < leaf->n && leaf->key[at] == number) {
        memcpy(value, value_at(leaf->ref[at]), BENCH_VALUE_BYTES);
        rc = 0;
    }
    pthread_mutex_unlock(&shared.lock);
    return rc;
}

static int
pmdk_scan(void *handle, const void *from, bench_visit *visit, void *arg)
{
    uint64_t number = from != NULL ? bench_key_decode(from) : 0;
    unsigned char key[BENCH_KEY_BYTES];
    const struct node *leaf;
    unsigned at;
    int rc = 0;

    (void)handle;
    pthread_mutex_lock(&shared.lock);
    leaf = leaf_of(number);
    at = n_below(leaf, number, false);
    for (;;) {
        for (; rc == 0 && at < leaf->n; at++) {
            bench_key_encode(leaf->key[at], key);
            rc = visit(arg, key, value_at(leaf->ref[at]));
        }
        if (rc != 0 || leaf->next == 0)
            break;
        leaf = node_at(leaf->next - 1);
        at = 0;
    }
    pthread_mutex_unlock(&shared.lock);
    return rc;
}

static const char *
pmdk_explain(int code)
{
    return code == EIO ? pmemobj_errormsg() : strerror(code);
}

const struct bench_system bench_pmdk = {
    .name = "pmdk",
    .what =
        "a B+-tree on libpmemobj, one mutex, no snapshots; PMEM_IS_PMEM_FORCE=1, its file "
        "filled with zeros first",
    .durably = "never",
    .abilities = BENCH_THREADS | BENCH_NONDURABLE | BENCH_NEVER_DURABLE | BENCH_KEEPS,
    .open = pmdk_open,
    .insert = pmdk_insert,
    .put = pmdk_put,
    .find = pmdk_find,
    .scan = pmdk_scan,
    .close = pmdk_close,
    .explain = pmdk_explain,
};
