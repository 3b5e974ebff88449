/* SPDX-License-Identifier: MIT */
/*
 * system.h -- what a benchmark needs from a storage system.
 *
 * WHAT      One struct bench_system per rival.  A rival does its work in worker
 *           processes: the process that runs the benchmark never opens one, so that
 *           environments that allow one per process can run side by side.
 * LIFE      worker 0 calls open(first = true) and waits; the other workers call
 *           open(first = false), one after the other; all insert; they close one after the
 *           other, worker 0 last.  A process forked later opens again (first = false, alone)
 *           and checks the records.
 * THREADS   Workers are processes.  Where BENCH_THREADS is set they are the threads of one
 *           process: each has a handle, which only it uses; open() and close() of two
 *           handles never run at the same time.
 * ERRORS    int results: 0, a positive errno, or any other code of the system;
 *           explain() turns it into words.
 */
#ifndef XBENCH_SYSTEM_H
#define XBENCH_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_system;

/* Settings of one measurement, the same for all systems. */
struct bench_config {
    const struct bench_system *system; /* that is opened                               */
    const char *dir;           /* directory for the files; exists, empty at first    */
    bool durable;              /* each insert is on disk when it returns             */
    bool hints;                /* BENCH_HINTS: announce accesses to pages            */
    uint64_t count;            /* records that there will be at the end              */
    uint64_t cache_bytes;      /* page cache, of systems that have one               */
    uint64_t block_bytes;      /* page or block of the tree                          */
    uint64_t checkpoint_bytes; /* log bytes from one checkpoint to the next          */
    uint64_t log_file_bytes;   /* size of one log file                               */
    uint64_t sync_bytes;       /* sync: bytes per write                              */
};

#define BENCH_NONE UINT64_MAX /* of a counter: the system has no such thing */

/* Totals of all processes since the environment was made, or BENCH_NONE. */
struct bench_counters {
    uint64_t log_bytes; /* bytes appended to the log                                 */
    uint64_t syncs;     /* fsync, fdatasync, msync calls of the inserts              */
    uint64_t traps;     /* page faults handled by the system                         */
    uint64_t retries;   /* of transactions, besides those that insert() reports      */
};

/* Abilities of a system. */
#define BENCH_MULTI         1u  /* several processes                                   */
#define BENCH_NONDURABLE    2u  /* can run without durability                          */
#define BENCH_HINTS         4u  /* has hints that can be switched                      */
#define BENCH_KEEPS         8u  /* keeps what is inserted: find() and scan() exist     */
#define BENCH_LOCAL_COUNTS  16u /* counters() speaks of the calling process only      */
#define BENCH_THREADS       32u /* one process only; several workers are its threads   */
#define BENCH_NEVER_DURABLE 64u /* cannot run with durability                        */

/*
 * bench_visit -- called by scan() for each record in the order of keys.
 *
 * ret  0 to go on; else scan() stops and returns it.
 */
typedef int bench_visit(void *arg, const void *key, const void *value);

struct bench_system {
    const char *name;
    const char *what;    /* one line: setting by setting                           */
    const char *durably; /* how an insert becomes durable                          */
    unsigned abilities;  /* BENCH_...                                              */

    /* Make (first) or join; *handlep belongs to the process until close(). */
    int (*open)(const struct bench_config *config, bool first, void **handlep);

    /* One record, one transaction; retried until it commits, *retriesp += retries. */
    int (*insert)(void *handle, const void *key, const void *value, uint64_t *retriesp);

    /* The same, for a key that may be there already: its value is replaced. */
    int (*put)(void *handle, const void *key, const void *value, uint64_t *retriesp);

    /* value[BENCH_VALUE_BYTES]; ENOENT if the key is not there. */
    int (*find)(void *handle, const void *key, void *value);

    /* From the first record with a key that is not less, NULL: from the first of all. */
    int (*scan)(void *handle, const void *from, bench_visit *visit, void *arg);

    /*
     * All reads between the two are one read-only transaction, on one state; no insert or
     * put.  NULL: the system has no such thing, or each read stands alone anyway.
     */
    int (*begin_read)(void *handle);
    int (*end_read)(void *handle);

    /* Those of the counters that it has; NULL: it has none.  Call bench_count(). */
    int (*counters)(void *handle, struct bench_counters *out);

    /* Release the handle, also if it fails. */
    int (*close)(void *handle);

    /* Words for a code, valid until the next call. */
    const char *(*explain)(int code);

    const void *variant; /* of a source with several systems, which tells them apart  */
};

/* bench_count -- a counter that the system does not have is BENCH_NONE, or 0 retries. */
static inline int
bench_count(const struct bench_system *system, void *handle, struct bench_counters *out)
{
    *out = (struct bench_counters){BENCH_NONE, BENCH_NONE, BENCH_NONE, 0};
    return system->counters != NULL ? system->counters(handle, out) : 0;
}

/* All systems in this build, ended by NULL. */
extern const struct bench_system *const bench_systems[];

/* A system that is left out, as configure did not find its library. */
struct bench_missing {
    const char *name;
    const char *library;
};

/* All of them, ended by a NULL name. */
extern const struct bench_missing bench_missing_systems[];

/* bench_system_find -- by name, NULL if it is not in this build. */
const struct bench_system *bench_system_find(const char *name);

/* bench_systems_print -- all systems with their settings, and those that are left out. */
void bench_systems_print(void);

/* bench_system_missing -- whether a system of that name could be in another build. */
bool bench_system_missing(const char *name);

extern const struct bench_system bench_btree;
extern const struct bench_system bench_btree_serial;
extern const struct bench_system bench_btree_serial_announced;
extern const struct bench_system bench_btree_oldest_wins;
extern const struct bench_system bench_btree_declared;
extern const struct bench_system bench_btree_compiled;
extern const struct bench_system bench_btree_serial_compiled;
extern const struct bench_system bench_btree_strict;
extern const struct bench_system bench_btree_ckpt;
extern const struct bench_system bench_btree_diffs;
extern const struct bench_system bench_btree_md5;
extern const struct bench_system bench_btree_sums;
extern const struct bench_system bench_btree_two_syncs;
extern const struct bench_system bench_cobtree;
extern const struct bench_system bench_cobtree_strict;
extern const struct bench_system bench_bdb;
extern const struct bench_system bench_bdb_zero;
extern const struct bench_system bench_lmdb;
extern const struct bench_system bench_lmdb_map;
extern const struct bench_system bench_mmap;
extern const struct bench_system bench_mmap_co;
extern const struct bench_system bench_sqlite;
extern const struct bench_system bench_wiredtiger;
extern const struct bench_system bench_wiredtiger_dsync;
extern const struct bench_system bench_rocksdb;
extern const struct bench_system bench_rocksdb_nolog;
extern const struct bench_system bench_rocksdb_txn;
extern const struct bench_system bench_leveldb;
extern const struct bench_system bench_pmdk;
extern const struct bench_system bench_sync;
extern const struct bench_system bench_sync_twice;
extern const struct bench_system bench_undo_rms;
extern const struct bench_system bench_undo_rhino;

#endif /* XBENCH_SYSTEM_H */
