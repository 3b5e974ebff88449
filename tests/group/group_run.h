/* SPDX-License-Identifier: MIT */
/*
 * group_run.h -- a group of three nodes on this machine, a program that writes to the one that leads, and what it has been told.
 *
 * The nodes' directories are n1, n2, n3 in the current directory; what a daemon says is in n1.log and so on.
 */
#ifndef XAC_TEST_GROUP_RUN_H
#define XAC_TEST_GROUP_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "group_file.h"

#define GROUP_NODES 3

struct group_node {
    unsigned number;
    char dir[16];
    pid_t pid; /* of the daemon; 0: it does not run                                   */
    char within[48]; /* the network namespace of the daemon; "": that of the test     */
};

/* Where the nodes of a group are, if not at ports of 127.0.0.1, and what file they have. */
struct group_site {
    char address[GROUP_NODES][32], within[GROUP_NODES][48];
    const char *file;
    uint64_t file_bytes;
    bool is_small; /* short segments of log                                          */
};

/* What `xraftd status` says. */
struct group_status {
    char role[16], state[16];
    uint64_t generation, replicated, applied, entries, snapshots, gathered, held;
};

struct group {
    struct group_node node[GROUP_NODES];
    /* The writer. */
    pid_t writer; /* 0: none                                                          */
    unsigned writes_to; /* node                                                       */
    int out;            /* what it says                                               */
    char line[256];
    size_t n_line;
    uint64_t next; /* record                                                          */
    uint64_t n_acknowledged;
    uint64_t
        *place; /* of a record, + 1; 0: it has not been acknowledged                */
};

/* group_make -- a new group; no node runs.  group_make_small -- with short segments of log, which are soon used again. */
void group_make(struct group *g);
void group_make_small(struct group *g);

/* group_make_at -- the same, elsewhere; its file is for programs of the test's own. */
void group_make_at(struct group *g, const struct group_site *site);

void group_free(struct group *g);

/* group_free_port -- of 127.0.0.1, that is free now. */
unsigned group_free_port(void);

void group_start(struct group *g, unsigned number, const char *options);

/* group_kill -- SIGKILL the daemon of a node. */
void group_kill(struct group *g, unsigned number);

/* group_stop -- SIGTERM the daemon of a node; it must end in order. */
void group_stop(struct group *g, unsigned number);

/* group_must_run -- no daemon has ended by itself. */
void group_must_run(const struct group *g);

/* group_ask -- ret false: the daemon does not answer. */
bool group_ask(const struct group *g, unsigned number, struct group_status *out);

/* group_leader -- the node with a writable environment; 0: none. */
unsigned group_leader(const struct group *g);

/* group_await_leader -- within seconds; ret the node. */
unsigned group_await_leader(const struct group *g, double seconds);

/* group_await_acknowledged -- so many more records are; a writer is started where the leader is whenever there is none. */
void group_await_acknowledged(struct group *g, uint64_t n, double seconds);

/* group_listen -- for so long; nothing is started. */
void group_listen(struct group *g, double seconds);

/* group_kill_writer -- SIGKILL. */
void group_kill_writer(struct group *g);

/* group_await_agreement -- all nodes run, and have applied the same. */
void group_await_agreement(const struct group *g, double seconds);

/* group_must_agree -- no node runs: their files are the same, all records that were acknowledged are where they were said to
   be, and none is there twice. */
void group_must_agree(const struct group *g);

/* group_end_equal -- all nodes agree, are stopped in order, and group_must_agree(). */
void group_end_equal(struct group *g, double seconds);

/* group_query -- a program on a node sees all that is acknowledged. */
void group_query(const struct group *g, unsigned number);

/* group_end_seen -- the writer is killed, programs see the same on all nodes, and group_end_equal(). */
void group_end_seen(struct group *g, double seconds);

/* group_look_again -- a moment later; in a wait that may last until then, else the test fails with the logs, and says why. */
void group_look_again(double until, const char *why);

/* group_start_large -- one transaction of 40 MiB, in a file that is new the first time; in a process of its own, which is
   returned. */
pid_t group_start_large(const char *dir);

/* group_write_large -- the same where the leader is, until it is acknowledged. */
void group_write_large(const struct group *g);

/* group_must_be_large -- a node at rest has it. */
void group_must_be_large(const char *dir);

#endif /* XAC_TEST_GROUP_RUN_H */
