/* SPDX-License-Identifier: MIT */
/*
 * experiments.c -- the table of experiments; see xbench.h for how to add one.
 */
#include <config.h>

#include "bench/main/xbench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kit/util.h"

/* The order is that of `xbench list`, of `xbench run all` and of the report. */
const struct bench_experiment bench_experiments[] = {
    {
        .name = "timer",
        .what = "delay between two looks at a clock",
        .thesis = "tables C.1, C.2, figure C-1",
        .main = bench_timer_main,
        .quick = "--quick",
    },
    {
        .name = "touch",
        .what = "a page that a transaction touches, with and without advisory functions",
        .thesis = "figures 4-2, 4-4, C-2 to C-4, table 4.2",
        .main = bench_touch_main,
        .medium = "--rounds 200",
        .quick = "--quick",
    },
    {
        .name = "touch-durable",
        .what =
            "a page that a durable transaction touches, with and without advisory functions",
        .thesis = "tables 4.7, C.5",
        .main = bench_touch_main,
        .fixed = "--durable",
        .full = "--rounds 100",
        .medium = "--rounds 30",
        .quick = "--quick",
    },
    {
        .name = "touch-stay",
        .what = "a page that a transaction touches, in a segment that stays readable",
        .thesis = "",
        .main = bench_touch_main,
        .fixed = "--stay-mapped --pages 1,16,1024",
        .full = "--rounds 1000",
        .medium = "--rounds 200",
        .quick = "--quick",
    },
    {
        .name = "touch-many",
        .what = "a transaction that touches very many random pages, under each engine",
        .thesis = "",
        .main = bench_many_main,
        .quick = "--quick",
    },
    {
        .name = "savepoints",
        .what = "savepoints in a transaction that has written few pages, and many",
        .thesis = "",
        .main = bench_savepoints_main,
        .medium = "--rounds 100",
        .quick = "--quick",
    },
    {
        .name = "handler",
        .what = "fault handlers, mmap, mprotect, userfaultfd, first accesses, copies",
        .thesis = "tables 4.3 to 4.5, C.3, C.4",
        .main = bench_handler_main,
        .quick = "--quick",
    },
    {
        .name = "watch",
        .what = "bare means to find out what a large transaction touches: traps, scans",
        .thesis = "",
        .main = bench_watch_main,
        .quick = "--quick",
    },
    {
        .name = "model",
        .what = "cost of a touched page, predicted from the operations, and measured",
        .thesis = "equations 4.1 and 4.2, table 4.6",
        .main = bench_model_main,
        .medium = "--touch-rounds 10",
        .quick = "--quick",
    },
    {
        .name = "msync",
        .what = "modified pages of a mapped file brought to disk; a file written",
        .thesis = "tables 4.8, C.6, C.7",
        .main = bench_msync_main,
        .medium = "--rounds 200",
        .quick = "--quick",
    },
    {
        .name = "commits",
        .what = "ways to commit pages: a checksum, two syncs, before-images",
        .thesis = "section 3.2; section 5.5, point 1",
        .main = bench_commits_main,
        .medium = "--rounds 20",
        .quick = "--quick",
    },
    {
        .name = "commits-ints",
        .what =
            "ways to commit pages of which an int is changed: a checksum, two syncs, before-images",
        .thesis = "section 3.2",
        .main = bench_commits_main,
        .fixed = "--ints",
        .full = "--rounds 50",
        .medium = "--rounds 20",
        .quick = "--quick",
    },
    {
        .name = "concurrency",
        .what = "independent transactions in several processes: tests A, B, C",
        .thesis = "tables 4.9, C.9",
        .main = bench_concurrency_main,
        .medium = "--count 2000",
        .quick = "--quick",
    },
    {
        .name = "concurrency-durable",
        .what = "independent durable transactions in several processes: tests A, B, C",
        .thesis = "tables 4.10, C.10",
        .main = bench_concurrency_main,
        .fixed = "--durable",
        .full = "--count 2000",
        .medium = "--count 1000",
        .quick = "--quick",
    },
    {
        .name = "insert",
        .what = "durable and nondurable inserts of random keys, one transaction each",
        .thesis = "tables 5.5, 5.6, C.11, C.12",
        .main = bench_insert_main,
        .full = "--both --hints both --slices 15 --systems "
                "btree,btree-serial-announced,btree-strict,cobtree,cobtree-strict,"
                "bdb,lmdb,sqlite,mmap,sync --count 250000",
        .medium = "--both --hints both --slices 15 --systems "
                  "btree,btree-serial-announced,btree-strict,cobtree,cobtree-strict,"
                  "bdb,lmdb,sqlite,mmap,sync --count 50000",
        .quick = "--both --procs 1,2 --count 2000 --slices 5",
    },
    {
        .name = "peers",
        .what = "nondurable inserts from empty, beside every other system",
        .thesis = "",
        .main = bench_insert_main,
        .fixed =
            "--nondurable --systems btree,btree-serial-announced,"
            "btree-serial-compiled,btree-oldest-wins,bdb,lmdb,lmdb-map,wiredtiger,rocksdb,rocksdb-nolog,"
            "rocksdb-txn,leveldb,pmdk,sqlite,mmap "
            "--over bdb,lmdb,lmdb-map,wiredtiger,rocksdb-nolog,rocksdb-txn,leveldb,pmdk",
        .full = "--procs 1,2 --count 250000",
        .medium = "--procs 1,2 --count 100000",
        .quick = "--procs 1,2 --count 5000",
    },
    {
        .name = "peers-loaded",
        .what =
            "nondurable inserts into a tree that has many records, beside the fastest systems",
        .thesis = "",
        .main = bench_insert_main,
        .fixed =
            "--nondurable --systems btree,btree-serial-announced,"
            "btree-serial-compiled,bdb,lmdb,lmdb-map,wiredtiger,rocksdb-nolog,rocksdb-txn,pmdk "
            "--over bdb,lmdb,lmdb-map,wiredtiger,rocksdb-nolog,rocksdb-txn,pmdk",
        .full = "--procs 1,2 --loaded 250000 --count 100000",
        .medium = "--procs 1,2 --loaded 100000 --count 50000",
        .quick = "--procs 1,2 --loaded 5000 --count 5000",
    },
    {
        .name = "longest",
        .what = "the longest of very many nondurable inserts",
        .thesis = "",
        .main = bench_insert_main,
        .fixed =
            "--nondurable --kth --systems btree,btree-serial-announced,"
            "btree-serial-compiled,bdb,lmdb,lmdb-map,wiredtiger,rocksdb-nolog --over lmdb-map",
        .full = "--count 1000000",
        .medium = "--count 200000",
        .quick = "--count 10000",
    },
    {
        /* The yardstick writes what our log has for an insert (`log bytes`). */
        .name = "peers-durable",
        .what = "durable inserts beside every other system, one writer and eight",
        .thesis = "",
        .main = bench_insert_main,
        .fixed = "--durable --sync-bytes 724 --systems btree,btree-oldest-wins,bdb,"
                 "bdb-zero,lmdb,lmdb-map,wiredtiger,wiredtiger-dsync,rocksdb,rocksdb-txn,"
                 "leveldb,sqlite,sync "
                 "--over bdb,bdb-zero,lmdb,wiredtiger,wiredtiger-dsync,rocksdb,leveldb",
        .full = "--procs 1,8 --count 20000",
        .medium = "--procs 1,8 --count 4000",
        .quick = "--procs 1,8 --count 400",
    },
    {
        .name = "insert-syncs",
        .what = "durable inserts: one sync and a checksum, or two syncs",
        .thesis = "section 5.5, point 1",
        .main = bench_insert_main,
        .fixed = "--durable --sync-bytes 724 --systems "
                 "btree,btree-md5,btree-two-syncs,sync,sync-twice "
                 "--over btree-two-syncs,btree-md5,sync-twice",
        .full = "--procs 1,2,8 --count 20000 --slices 15",
        .medium = "--procs 1,8 --count 4000 --slices 9",
        .quick = "--procs 1,8 --count 200 --slices 3",
    },
    {
        .name = "insert-undo",
        .what = "durable inserts: redo records, or before-images as in RMS and Rhino",
        .thesis = "section 3.2",
        .main = bench_insert_main,
        .fixed =
            "--durable --sync-bytes 724 --systems btree,undo-rms,undo-rhino,mmap,sync "
            "--over undo-rms,undo-rhino,mmap",
        .full = "--count 20000 --slices 15",
        .medium = "--count 4000 --slices 9",
        .quick = "--count 200 --slices 3",
    },
    {
        .name = "calls",
        .what = "system calls of a search, an insert, an update, counted",
        .thesis = "",
        .main = bench_calls_main,
        .fixed =
            "--nondurable --workload search,insert,ycsb-a --hints both --systems "
            "btree,btree-serial-announced,btree-serial-compiled,bdb,lmdb,lmdb-map,wiredtiger,"
            "rocksdb,rocksdb-nolog,leveldb,pmdk,sqlite",
        .full = "--loaded 100000 --count 20000",
        .medium = "--loaded 20000 --count 10000",
        .quick = "--loaded 5000 --count 2000",
    },
    {
        .name = "txn-trees",
        .what =
            "inserts into search trees on libxac, with and without the advisory function",
        .thesis = "tables 5.5, 5.6, C.11, C.12",
        .main = bench_insert_main,
        .fixed = "--both --procs 1,2 --hints both",
        .full = "--count 250000 --slices 15 --systems btree,cobtree,bdb,sync",
        .medium =
            "--count 40000 --slices 15 --systems btree,cobtree,bdb,lmdb,sqlite,sync",
        .quick = "--count 3000 --slices 5 --systems btree,cobtree,bdb,sync",
    },
    {
        .name = "kth",
        .what = "the k-th most expensive durable insert",
        .thesis = "figure 5-3",
        .main = bench_insert_main,
        .fixed = "--durable --kth --systems btree,cobtree,bdb,lmdb,sqlite,sync",
        .full = "--count 250000 --slices 15",
        .medium = "--count 50000 --slices 15",
        .quick = "--count 3000 --slices 5",
    },
    {
        .name = "logvolume",
        .what = "log that durable inserts write",
        .thesis = "section 5.5, point 4",
        .main = bench_insert_main,
        .fixed = "--durable --systems btree,cobtree,bdb,sqlite",
        .full = "--count 250000 --slices 15",
        .medium = "--count 40000 --slices 8",
        .quick = "--count 4000 --slices 4",
    },
    {
        .name = "sorted",
        .what = "inserts in ascending order of keys",
        .thesis = "table 5.3",
        .main = bench_insert_main,
        .fixed = "--nondurable --keys sorted --systems "
                 "btree,cobtree,bdb,lmdb,sqlite,mmap,mmap-co",
        .full = "--count 450000 --slices 15",
        .medium = "--count 100000 --slices 10",
        .quick = "--count 10000 --slices 5",
    },
    {
        .name = "paths",
        .what = "inserts in the order in which a walk meets the files of a system",
        .thesis = "",
        .main = bench_insert_main,
        .fixed = "--both --keys paths --systems btree,cobtree,bdb,lmdb,sqlite,mmap",
        .full = "--count 20000",
        .quick = "--count 2000 --slices 4",
    },
    {
        .name = "larger",
        .what = "trees three times as large as the memory: searches, inserts, scans",
        .thesis = "tables 5.1, 5.2",
        .main = bench_larger_main,
        .full = "--limit 32M --blocks 2K,4K,8K,16K,32K,64K,128K,256K,512K",
        .medium = "--limit 4M --blocks 2K,4K,8K,16K,32K,64K,128K,256K,512K",
        .quick = "--limit 4M --blocks 4K --searches 300",
    },
    {
        .name = "outofcore",
        .what =
            "a B+-tree larger than the memory that libxac is allowed: durable inserts,"
            " searches, a crash",
        .thesis = "ch. 6",
        .main = bench_outofcore_main,
        .full = "--data 2G --frames 256M",
        .medium = "--data 256M --frames 32M --searches 10000",
        .quick = "--quick",
    },
    {
        .name = "competition",
        .what = "libxac on the page cache and on frames, alone and beside a memory hog",
        .thesis = "section 5.5, point 3",
        .main = bench_competition_main,
        .medium = "--slices 3 --ms 500",
        .quick = "--quick",
    },
    {
        .name = "search",
        .what = "random searches in a warm tree, each a query",
        .thesis = "",
        .main = bench_insert_main,
        .fixed =
            "--nondurable --workload search --systems "
            "btree,btree-serial-compiled,cobtree,bdb,lmdb,lmdb-map,wiredtiger,rocksdb,leveldb,pmdk,"
            "sqlite,mmap,mmap-co --over bdb,lmdb,lmdb-map,wiredtiger,rocksdb",
        .full = "--loaded 100000 --count 500000 --slices 10",
        .medium = "--loaded 100000 --count 200000 --slices 10",
        .quick = "--loaded 10000 --count 50000",
    },
    {
        .name = "search-writer",
        .what = "random searches while another process, or thread, inserts",
        .thesis = "",
        .main = bench_insert_main,
        .fixed =
            "--nondurable --workload search-writer --systems "
            "btree,btree-serial-compiled,btree-oldest-wins,bdb,lmdb,lmdb-map,wiredtiger,"
            "rocksdb,leveldb,pmdk,sqlite --over bdb,lmdb,lmdb-map,wiredtiger,rocksdb",
        .full = "--loaded 100000 --count 500000",
        .medium = "--loaded 100000 --count 200000",
        .quick = "--loaded 10000 --count 20000",
    },
    {
        .name = "search-query",
        .what = "random searches in one query that has touched every page before",
        .thesis = "",
        .main = bench_insert_main,
        .fixed = "--nondurable --workload search --warm --hints both --systems "
                 "btree,btree-strict,cobtree,cobtree-strict,bdb,lmdb,sqlite,mmap,mmap-co",
        .full = "--loaded 100000 --count 10000000 --slices 10 --groups 1000000",
        .medium = "--loaded 100000 --count 2000000 --slices 10 --groups 1000000",
        .quick = "--loaded 10000 --count 500000 --slices 5 --groups 200000",
    },
    {
        .name = "search-query-cold",
        .what = "random searches in one query, first touches of pages included",
        .thesis = "",
        .main = bench_insert_main,
        .fixed = "--nondurable --workload search --hints both --systems "
                 "btree,btree-strict,cobtree,bdb,lmdb,sqlite,mmap,mmap-co",
        .full = "--loaded 100000 --count 10000000 --slices 10 --groups 1000000",
        .medium = "--loaded 100000 --count 2000000 --slices 10 --groups 1000000",
        .quick = "--loaded 10000 --count 200000 --slices 5 --groups 200000",
    },
    {
        .name = "scan",
        .what = "scans of 100 records from a random key on",
        .thesis = "",
        .main = bench_insert_main,
        .fixed = "--nondurable --workload scan --systems "
                 "btree,btree-strict,cobtree,bdb,lmdb,sqlite,mmap,mmap-co",
        .full = "--loaded 100000 --count 45000 --groups 1,5000",
        .medium = "--loaded 50000 --count 18000 --groups 1,2000",
        .quick = "--loaded 10000 --count 3000 --slices 5 --groups 1,600",
    },
    {
        .name = "ycsb",
        .what = "the mixed workloads A to F of the YCSB benchmark",
        .thesis = "",
        .main = bench_insert_main,
        .fixed =
            "--nondurable --workload ycsb-a,ycsb-b,ycsb-c,ycsb-d,ycsb-e,ycsb-f "
            "--systems btree,cobtree,bdb,lmdb,lmdb-map,wiredtiger,rocksdb,rocksdb-txn,"
            "leveldb,pmdk,sqlite,mmap --over bdb,lmdb,lmdb-map,wiredtiger,rocksdb",
        .full = "--procs 1,2 --loaded 100000 --count 90000",
        .medium = "--procs 1,2 --loaded 30000 --count 30000",
        .quick = "--procs 1,2 --loaded 3000 --count 3000 --slices 3",
    },
    {
        .name = "ycsb-reads",
        .what = "YCSB B and C, one process and two, default settings beside others'",
        .thesis = "",
        .main = bench_insert_main,
        .fixed =
            "--nondurable --workload ycsb-b,ycsb-c --procs 1,2 --systems "
            "btree,btree-serial-compiled,btree-oldest-wins,bdb,lmdb,lmdb-map,wiredtiger,"
            "rocksdb,rocksdb-nolog,pmdk "
            "--over bdb,lmdb,lmdb-map,wiredtiger,rocksdb,rocksdb-nolog",
        .full = "--loaded 100000 --count 500000",
        .medium = "--loaded 100000 --count 100000",
        .quick = "--loaded 5000 --count 20000",
    },
    {
        .name = "tpcb",
        .what = "transactions like those of TPC-B, beside Berkeley DB and SQLite",
        .thesis = "",
        .main = bench_tpcb_main,
        .medium = "--procs 1,2,8 --count 500 --slices 5",
        .quick = "--quick",
    },
    {
        .name = "tpcc",
        .what =
            "new orders and payments like those of TPC-C, beside Berkeley DB and SQLite",
        .thesis = "",
        .main = bench_tpcc_main,
        .medium = "--procs 1,2,8 --count 300 --slices 5",
        .quick = "--quick",
    },
    {
        .name = "multiversion",
        .what = "page faults, pages and cache misses of both trees, plain and on libxac",
        .thesis = "ch. 6, question 6",
        .main = bench_multiversion_main,
        .full = "--loaded 100000 --count 50000",
        .medium = "--loaded 10000 --count 5000",
        .quick = "--loaded 5000 --count 2000",
    },
    {
        .name = "transfers",
        .what = "simulated: block transfers of both trees with 1 to 8 processes",
        .thesis = "section 5.5, theory 2, 3; ch. 6, question 6",
        .main = bench_transfers_main,
        .full = "--loaded 100000 --steps 100000 --memory 1M",
        .medium = "",
        .quick = "--quick",
    },
    {
        .name = "contention",
        .what = "transactions on few pages under each policy",
        .thesis = "ch. 6, question 5",
        .main = bench_contention_main,
        .full = "--seconds-per-cell 1 --slices 10",
        .medium = "--seconds-per-cell 0.3 --slices 5",
        .quick = "--seconds-per-cell 0.1 --slices 2",
    },
    {
        .name = "backoff",
        .what = "inserts into a small tree, by policy and by the wait before a retry",
        .thesis = "section 5.5, theory 1, 2; ch. 6, questions 5, 6",
        .main = bench_backoff_main,
        .medium = "--rounds 3 --count 1000",
        .quick = "--quick",
    },
    {
        .name = "cold",
        .what = "a file that is not in the page cache, for each way to read ahead",
        .thesis = "",
        .main = bench_cold_main,
        .medium = "--data 64M --rounds 3",
        .quick = "--quick",
    },
    {
        .name = "checksum",
        .what = "the log's checksums of a page and of a small block",
        .thesis = "table C.8",
        .main = bench_checksum_main,
        .quick = "--quick",
    },
    {
        .name = "recovery",
        .what = "a long log recovered, beside cat of the same files",
        .thesis = "",
        .main = bench_recovery_main,
        .medium = "--log 256M --rounds 3 --kills 10",
        .quick = "--log 128M --rounds 2 --kills 5",
    },
    {
        .name = "backups",
        .what = "full backups, and increments of what has changed",
        .thesis = "",
        .main = bench_backups_main,
        .medium = "--data 512M --rounds 3",
        .quick = "--data 128M --rounds 2",
    },
    {
        .name = "frames",
        .what =
            "hits of page-replacement policies on a trace, and their locks by threads",
        .thesis = "",
        .main = bench_frames_main,
        .full = "--threads 2,8",
        .quick = "--threads 2,8 --policy lru,2q",
    },
    {
        .name = "processors",
        .what = "simulated: page frames and policies on up to 64 processors",
        .thesis = "",
        .main = bench_processors_main,
        .quick = "--quick",
    },
    {
        .name = "swizzle",
        .what = "trees over frames, with references between resident pages",
        .thesis = "",
        .main = bench_swizzle_main,
        .full = "--all",
        .medium = "--all --scale 10 --ms 100 --pairs 3 --seconds 2",
        .quick = "--all --quick",
    },
    {.name = NULL},
};

const struct bench_experiment *
bench_experiment_find(const char *name)
{
    for (const struct bench_experiment *x = bench_experiments; x->name != NULL; x++)
        if (strcmp(x->name, name) == 0)
            return x;
    return NULL;
}

/* Arguments that are put together. */
struct args {
    int n;
    char *v[128]; /* ended by NULL */
};

/* args_add -- one argument; ret 0, or 1 after a message. */
static int
args_add(struct args *a, char *arg)
{
    if (a->n + 1 >= (int)(sizeof a->v / sizeof a->v[0]))
        return bench_fail("too many arguments");
    a->v[a->n++] = arg;
    a->v[a->n] = NULL;
    return 0;
}

/* args_split -- those of a line; the copy lives until the process ends. */
static int
args_split(struct args *a, const char *line)
{
    char *copy = line == NULL ? NULL : strdup(line), *save = NULL;
    int rc = 0;

    if (line == NULL)
        return 0;
    if (copy == NULL)
        return bench_fail("out of memory");
    for (char *p = strtok_r(copy, " ", &save); p != NULL && rc == 0;
         p = strtok_r(NULL, " ", &save))
        rc = args_add(a, p);
    return rc;
}

int
bench_experiment_call(const struct bench_experiment *x, const char *more, int argc,
                      char **argv)
{
    static struct args a; /* what it points to is used until the process ends */
    char *name = strdup(x->name);
    int rc = name == NULL ? bench_fail("out of memory") : args_add(&a, name);

    if (rc == 0)
        rc = args_split(&a, x->fixed);
    if (rc == 0)
        rc = args_split(&a, more);
    for (int i = 0; i < argc && rc == 0; i++)
        rc = args_add(&a, argv[i]);
    return rc != 0 ? 2 : x->main(a.n, a.v);
}
