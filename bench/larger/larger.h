/* SPDX-License-Identifier: MIT */
/*
 * larger.h -- the experiment `larger`: what its parts share.
 *
 * WHAT      The sets of keys that are compared, behind one interface.
 */
#ifndef XBENCH_LARGER_H
#define XBENCH_LARGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/systems/tree_kind.h"

/* A set of keys of BENCH_LARGER_KEY bytes, in the file `path`. */
#define BENCH_LARGER_KEY 128u

struct bench_larger_set;

struct bench_larger_kind {
    /* All return 0, or errno, or a code of the kind; a set that could not be made is closed. */
    int (*create)(struct bench_larger_set *s);
    /* In order, without a limit of memory; NULL: by insert. */
    int (*load)(struct bench_larger_set *s, tree_source *source, void *arg);
    /* Have the page cache forget the file, and open it again; the caller's memory limit may
       have changed between the two. */
    int (*forget)(struct bench_larger_set *s);
    int (*reopen)(struct bench_larger_set *s);
    int (*insert)(struct bench_larger_set *s, const void *key);
    int (*search)(struct bench_larger_set *s, const void *key); /* ENOENT: not there */
    int (*scan)(struct bench_larger_set *s, tree_visit *visit, void *arg);
};

struct bench_larger_set {
    const struct bench_larger_kind *kind;
    const char *path;
    uint64_t count;       /* keys to come                                              */
    uint64_t block_bytes; /* 0: has none                                               */
    uint64_t pool_bytes;  /* Berkeley DB: its cache                                    */
    bool scattered;       /* B+-tree: blocks in random order                           */
    uint64_t size_bytes;  /* of the file; set by create, or by forget                  */
    const struct bench_tree_kind *tree_kind;
    union bench_tree tree;
    int fd;
    void *base; /* of a mapped tree; or the handle of another kind                     */
};

/* A tree on a plain shared mapping; `tree_kind` says which. */
extern const struct bench_larger_kind bench_larger_tree;

#ifdef HAVE_BDB
/* Berkeley DB without transactions and log, as its db_load; sys_bdb.c has it with them. */
extern const struct bench_larger_kind bench_larger_bdb;
#endif

#endif /* XBENCH_LARGER_H */
