/* SPDX-License-Identifier: MIT */
/*
 * sys_trees.c -- our trees on a transactional segment of libxac.
 *
 * WHAT      A tree (tree_kind.h) on one segment (sys_xac.h); each insert is one
 *           transaction, which the tree repeats until it commits; each search is a query.
 * VARIANTS  One system each, at the end of this file.  An option that a variant does not name
 *           keeps the library's default: btree and cobtree name none, so they show what a
 *           newcomer gets.  The others name policy and checking.
 */
#include <config.h>

#include "bench/kit/two_syncs.h"
#include "bench/kit/util.h"
#include "bench/systems/sys_xac.h"
#include "bench/systems/tree_kind.h"

#include <errno.h>
#include <stdlib.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

/* Records visited in one query: bounds the pages that a query holds. */
#define SCAN_CHUNK 4096u

/* Bytes of log between the checkpoints of btree-ckpt. */
#define CKPT_BYTES (UINT64_C(1) << 20)

#define SETTINGS_MAX 3u

/* What a system of this file is. */
struct variant {
    const struct bench_tree_kind *kind;
    struct {
        enum xac_option option; /* 0: no more                                          */
        uint64_t value;
    } settings[SETTINGS_MAX];
    bool announces;            /* hints, whatever the command line says               */
    uint64_t checkpoint_bytes; /* instead of the command line's; 0: as it says         */
    bool syncs_twice;          /* two_syncs.h                                          */
};

struct xac_tree {
    const struct bench_tree_kind *kind;
    union bench_tree tree;
    struct xac_segment segment;
};

/* open_segment -- with the variant's options. */
static int
open_segment(struct xac_tree *x, const struct variant *v,
             const struct bench_config *config, size_t size)
{
    struct bench_config own = *config;
    int rc = 0;

    if (v->syncs_twice)
        bench_two_syncs();
    if (v->checkpoint_bytes != 0)
        own.checkpoint_bytes = v->checkpoint_bytes;
    for (unsigned i = 0; i < SETTINGS_MAX && v->settings[i].option != 0 && rc == 0; i++)
        rc = xac_set_option((int)v->settings[i].option, v->settings[i].value);
    return rc != 0 ? rc : bench_xac_open(&x->segment, &own, size);
}

/* trees_open -- segment and tree; ret 0 or a code. */
static int
trees_open(const struct bench_config *config, bool first, void **handlep)
{
    const struct variant *v = config->system->variant;
    const struct bench_tree_config sizes = {.count = config->count,
                                            .key_size = BENCH_KEY_BYTES,
                                            .value_size = BENCH_VALUE_BYTES,
                                            .block_size = (uint32_t)config->block_bytes};
    size_t size = v->kind->size(&sizes);
    struct xac_tree *x = calloc(1, sizeof *x);
    int rc;

    if (x == NULL)
        return ENOMEM;
    x->kind = v->kind;
    rc = open_segment(x, v, config, size);
    if (rc == 0) {
        if (first)
            rc = v->kind->create(&x->tree, x->segment.base, size, &sizes);
        else
            rc = v->kind->open(&x->tree, x->segment.base, size);
        if (rc != 0)
            (void)bench_xac_close(&x->segment);
    }
    if (rc != 0) {
        free(x);
        return rc;
    }
    v->kind->set_hints(&x->tree, config->hints || v->announces);
    *handlep = x;
    return 0;
}

static int
trees_close(void *handle)
{
    struct xac_tree *x = handle;
    int rc = bench_xac_close(&x->segment);

    free(x);
    return rc;
}

static int
trees_insert(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    struct xac_tree *x = handle;

    (void)retriesp; /* counted by the library */
    return x->kind->insert(&x->tree, key, value, TREE_ADD);
}

static int
trees_put(void *handle, const void *key, const void *value, uint64_t *retriesp)
{
    struct xac_tree *x = handle;

    (void)retriesp;
    return x->kind->insert(&x->tree, key, value, TREE_PUT);
}

static int
trees_find(void *handle, const void *key, void *value)
{
    struct xac_tree *x = handle;

    return x->kind->search(&x->tree, key, value);
}

/* A piece of a scan. */
struct chunk {
    bench_visit *visit;
    void *arg;
    unsigned n;    /* records seen in this query                                     */
    int rc;        /* what visit returned                                            */
    uint64_t last; /* the last key seen                                              */
};

/* visit_chunk -- callback of a scan; stops it when the chunk is full. */
static int
visit_chunk(void *arg, const void *key, const void *value)
{
    struct chunk *c = arg;

    c->rc = c->visit(c->arg, key, value);
    c->last = tree_u64_key(key);
    c->n++;
    return c->rc != 0 || c->n == SCAN_CHUNK;
}

/* trees_scan -- in queries of SCAN_CHUNK. */
static int
trees_scan(void *handle, const void *from, bench_visit *visit, void *arg)
{
    struct xac_tree *x = handle;
    struct chunk c = {.visit = visit, .arg = arg};
    unsigned char next[BENCH_KEY_BYTES];
    int rc;

    do {
        c.n = 0;
        rc = x->kind->scan(&x->tree, from, visit_chunk, &c);
        if (c.rc != 0 || rc == 0 || c.n != SCAN_CHUNK)
            return c.rc != 0 ? c.rc : rc;
        tree_key_u64(c.last + 1, next);
        from = next;
    } while (c.last != UINT64_MAX);
    return 0;
}

/* What all of them have in common. */
#define TREES(...)                                                                       \
 .open = trees_open, .insert = trees_insert, .put = trees_put, .find = trees_find,       \
 .scan = trees_scan, .begin_read = bench_xac_begin_read, .end_read = bench_xac_end_read, \
 .counters = bench_xac_counters, .close = trees_close, .explain = bench_xac_explain,     \
 .variant = &(const struct variant)                                                      \
 {                                                                                       \
  __VA_ARGS__                                                                            \
 }

#define ALWAYS  (BENCH_MULTI | BENCH_KEEPS)
#define USUALLY (ALWAYS | BENCH_NONDURABLE | BENCH_HINTS)

const struct bench_system bench_btree = {
    .name = "btree",
    .what = "libxac: B+-tree of trees/btree.c, an insert a transaction; the library's "
            "default policy and checking",
    .durably = "log written and synced at each commit; nondurable: no log",
    .abilities = USUALLY,
    TREES(.kind = &bench_kind_btree_txn),
};

const struct bench_system bench_btree_serial = {
    .name = "btree-serial",
    .what = "btree with XAC_POLICY_SERIAL, XAC_CHECKING_FAST",
    .durably = "as btree",
    .abilities = USUALLY,
    TREES(.kind = &bench_kind_btree_txn,
          .settings = {{XAC_OPT_POLICY, XAC_POLICY_SERIAL},
                       {XAC_OPT_CHECKING, XAC_CHECKING_FAST}}),
};

const struct bench_system bench_btree_serial_announced = {
    .name = "btree-serial-announced",
    .what =
        "btree with XAC_POLICY_SERIAL, XAC_CHECKING_TRUSTED: every store is announced, "
        "whatever --hints says",
    .durably = "as btree",
    .abilities = ALWAYS | BENCH_NONDURABLE,
    TREES(.kind = &bench_kind_btree_txn,
          .settings = {{XAC_OPT_POLICY, XAC_POLICY_SERIAL},
                       {XAC_OPT_CHECKING, XAC_CHECKING_TRUSTED}},
          .announces = true),
};

const struct bench_system bench_btree_oldest_wins = {
    .name = "btree-oldest-wins",
    .what = "btree with XAC_POLICY_OLDEST_WINS, XAC_CHECKING_FAST",
    .durably = "as btree",
    .abilities = USUALLY,
    TREES(.kind = &bench_kind_btree_txn,
          .settings = {{XAC_OPT_POLICY, XAC_POLICY_OLDEST_WINS},
                       {XAC_OPT_CHECKING, XAC_CHECKING_FAST}}),
};

const struct bench_system bench_btree_declared = {
    .name = "btree-declared",
    .what = "btree with XAC_POLICY_OLDEST_WINS, XAC_CHECKING_TRUSTED: every store is "
            "announced, whatever --hints says",
    .durably = "as btree",
    .abilities = ALWAYS | BENCH_NONDURABLE,
    TREES(.kind = &bench_kind_btree_txn,
          .settings = {{XAC_OPT_POLICY, XAC_POLICY_OLDEST_WINS},
                       {XAC_OPT_CHECKING, XAC_CHECKING_TRUSTED}},
          .announces = true),
};

#ifdef HAVE_COMPILED
const struct bench_system bench_btree_compiled = {
    .name = "btree-compiled",
    .what =
        "btree-declared compiled as by xac-cc: hooks announce every store, and no hints",
    .durably = "as btree",
    .abilities = ALWAYS | BENCH_NONDURABLE,
    TREES(.kind = &bench_kind_btree_compiled,
          .settings = {{XAC_OPT_POLICY, XAC_POLICY_OLDEST_WINS},
                       {XAC_OPT_CHECKING, XAC_CHECKING_TRUSTED}}),
};

const struct bench_system bench_btree_serial_compiled = {
    .name = "btree-serial-compiled",
    .what = "btree-serial-announced likewise",
    .durably = "as btree",
    .abilities = ALWAYS | BENCH_NONDURABLE,
    TREES(.kind = &bench_kind_btree_compiled,
          .settings = {{XAC_OPT_POLICY, XAC_POLICY_SERIAL},
                       {XAC_OPT_CHECKING, XAC_CHECKING_TRUSTED}}),
};
#endif

const struct bench_system bench_btree_strict = {
    .name = "btree-strict",
    .what = "btree with XAC_POLICY_OLDEST_WINS, XAC_CHECKING_STRICT: each transaction "
            "traps at each page, as in the Thesis",
    .durably = "as btree",
    .abilities = USUALLY,
    TREES(.kind = &bench_kind_btree_txn,
          .settings = {{XAC_OPT_POLICY, XAC_POLICY_OLDEST_WINS},
                       {XAC_OPT_CHECKING, XAC_CHECKING_STRICT}}),
};

const struct bench_system bench_btree_ckpt = {
    .name = "btree-ckpt",
    .what = "btree with a checkpoint for each MiB of log, whatever --checkpoint says",
    .durably = "as btree",
    .abilities = ALWAYS | BENCH_HINTS,
    TREES(.kind = &bench_kind_btree_txn, .checkpoint_bytes = CKPT_BYTES),
};

const struct bench_system bench_btree_sums = {
    .name = "btree-sums",
    .what = "btree-ckpt with XAC_OPT_PAGE_CHECKSUMS",
    .durably = "as btree",
    .abilities = ALWAYS | BENCH_HINTS,
    TREES(.kind = &bench_kind_btree_txn, .settings = {{XAC_OPT_PAGE_CHECKSUMS, 1}},
          .checkpoint_bytes = CKPT_BYTES),
};

const struct bench_system bench_btree_diffs = {
    .name = "btree-diffs",
    .what = "btree-ckpt with XAC_OPT_FULL_IMAGES 0: no full images in the log",
    .durably = "as btree, if pages are written as a whole",
    .abilities = ALWAYS | BENCH_HINTS,
    TREES(.kind = &bench_kind_btree_txn, .settings = {{XAC_OPT_FULL_IMAGES, 0}},
          .checkpoint_bytes = CKPT_BYTES),
};

const struct bench_system bench_btree_md5 = {
    .name = "btree-md5",
    .what = "btree with XAC_CHECKSUM_MD5, the Thesis' proposal",
    .durably = "as btree",
    .abilities = ALWAYS | BENCH_HINTS,
    TREES(.kind = &bench_kind_btree_txn,
          .settings = {{XAC_OPT_CHECKSUM, XAC_CHECKSUM_MD5}}),
};

const struct bench_system bench_btree_two_syncs = {
    .name = "btree-two-syncs",
    .what =
        "btree with two syncs at each commit, its last 512 bytes written between them",
    .durably = "log written and synced, its end written again and synced",
    .abilities = ALWAYS | BENCH_HINTS,
    TREES(.kind = &bench_kind_btree_txn, .syncs_twice = true),
};

const struct bench_system bench_cobtree = {
    .name = "cobtree",
    .what = "libxac: cache-oblivious B-tree of trees/cobtree.c, an insert a transaction; "
            "the library's default policy and checking",
    .durably = "as btree",
    .abilities = USUALLY,
    TREES(.kind = &bench_kind_cobtree_txn),
};

const struct bench_system bench_cobtree_strict = {
    .name = "cobtree-strict",
    .what = "cobtree with XAC_POLICY_OLDEST_WINS, XAC_CHECKING_STRICT",
    .durably = "as btree",
    .abilities = USUALLY,
    TREES(.kind = &bench_kind_cobtree_txn,
          .settings = {{XAC_OPT_POLICY, XAC_POLICY_OLDEST_WINS},
                       {XAC_OPT_CHECKING, XAC_CHECKING_STRICT}}),
};
