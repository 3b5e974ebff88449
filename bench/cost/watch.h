/* SPDX-License-Identifier: MIT */
/*
 * watch.h -- the experiment `watch`: the bare means by which a large transaction's pages can
 * be shown to it, and its read and write sets found out, without the library around them.
 *
 * WHAT      A way has a view of its own onto a store of committed pages.  It shows pages as
 *           they are touched, or ahead; at the end it says which have been touched and
 *           written, has each written one compared with the store and copied into it, and
 *           brings the view into the state in which it began.  watch.c gives orders, times
 *           and checks, watch_ways.c has the ways.
 * MISSING   What the kernel refuses is a way that says why it was not measured.
 */
#ifndef XBENCH_WATCH_H
#define XBENCH_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of a page; kept in bench_watch.found. */
enum {
    WATCH_TOUCHED = 1,
    WATCH_WRITTEN = 2
};

/* A view under one of the ways. */
struct bench_watch {
    const struct bench_way *way;
    size_t page_bytes;
    uint64_t n_pages;
    uint8_t *view;
    uint8_t *store;  /* committed pages; a shared mapping of `file`                     */
    uint8_t *found;  /* per page, for watch.c to look at after the transaction          */
    uint64_t *order; /* pages found, in the order in which they were                    */
    uint64_t n_order;
    int file;     /* a memfd                                                         */
    int uffd[2];  /* synchronous; asynchronous write-protection; -1 if not open       */
    int pagemap;  /* -1 if not open                                                   */
    char why[96]; /* it cannot be measured                                            */
};

struct bench_way {
    const char *name;
    const char *knows; /* of the sets, and when                                       */
    bool finds_reads;  /* TOUCHED is exact                                            */
    /* Make the view, all of it in the state between transactions; w->store has been
       filled.  ret 0 or errno, with w->why. */
    int (*open)(struct bench_watch *w);
    /* Before a transaction; NULL: nothing.  ret 0 or errno. */
    int (*begin)(struct bench_watch *w);
    /* In the signal handler: give the page the access; ret 0 or errno.  NULL: no traps. */
    int (*trap)(struct bench_watch *w, uint64_t page_no, bool is_write);
    /* After a transaction; ret 0 or errno. */
    int (*end)(struct bench_watch *w);
};

extern const struct bench_way bench_ways[];
extern const unsigned bench_n_ways;

/* bench_watch_close -- whatever of it has been opened. */
void bench_watch_close(struct bench_watch *w);

#endif /* XBENCH_WATCH_H */
