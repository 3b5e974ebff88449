/* SPDX-License-Identifier: MIT */
/*
 * commits.h -- the experiment `commits`: ways to make a transaction durable.
 *
 * commits.c has the command line, processes and output; the other sources have the ways.
 */
#ifndef XBENCH_COMMITS_H
#define XBENCH_COMMITS_H

#include <stdbool.h>
#include <stdint.h>

#define BENCH_COMMITS_PAGES_MAX UINT64_C(1024)
#define BENCH_COMMITS_FILE      "pages" /* in the way's directory                       */

struct bench_commit_way {
    const char *name;
    const char *what;

    /* In a process that has one way only: map n_pages pages of the file; ret 0 or a code. */
    int (*open)(const struct bench_commit_way *way, const char *dir, uint64_t n_pages,
                unsigned char **basep);
    int (*begin)(void);
    int (*commit)(void); /* the stores are on disk; ret 0 or a code                     */
    int (*close)(void);

    /* Syncs so far. */
    uint64_t (*syncs)(void);
    const char *(*explain)(int code);

    /*
     * After the close; NULL: a crash test of its own stands elsewhere.  A process stores to all
     * pages in a transaction and is killed, another one opens the file, and recovers it.
     * ret 0, or 1 after a message
     */
    int (*torn)(const struct bench_commit_way *way, const char *dir, uint64_t n_pages);

    uint64_t checksum; /* enum xac_checksum                                             */
    bool is_other; /* syncs twice; before each store                                   */
};

/* All ways, ended by a NULL name; the first one is what others are compared with. */
extern const struct bench_commit_way bench_commit_ways[];

/* commits_xac.c. */
int bench_commit_xac_open(const struct bench_commit_way *way, const char *dir,
                          uint64_t n_pages, unsigned char **basep);
int bench_commit_xac_begin(void);
int bench_commit_xac_commit(void);
int bench_commit_xac_close(void);
uint64_t bench_commit_xac_syncs(void);

/* commits_undo.c. */
int bench_commit_undo_open(const struct bench_commit_way *way, const char *dir,
                           uint64_t n_pages, unsigned char **basep);
int bench_commit_undo_begin(void);
int bench_commit_undo_commit(void);
int bench_commit_undo_close(void);
uint64_t bench_commit_undo_syncs(void);
const char *bench_commit_undo_explain(int code);
int bench_commit_undo_torn(const struct bench_commit_way *way, const char *dir,
                           uint64_t n_pages);

#endif /* XBENCH_COMMITS_H */
