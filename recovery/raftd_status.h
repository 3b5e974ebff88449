/* SPDX-License-Identifier: MIT */
/*
 * raftd_status.h -- what xraftd says of itself: kept while it runs, and asked for by `xraftd status`.
 *
 * WHAT      The threads of the daemon store what they know.  A program that connects to the Unix socket
 *           XAC_RAFTD_SOCKET in the directory gets it as lines of text, `name value`.
 * NOT HERE  Rights: the socket has owner and mode of the environment's files.
 * LOCK      its own mutex, for moments.
 * THREADS   any.
 */
#ifndef XAC_RAFTD_STATUS_H
#define XAC_RAFTD_STATUS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raftd_group.h"

#define XAC_RAFTD_SOCKET  "raft/socket"
#define XAC_RAFTD_CONTROL "raft/control"

/* A command is shorter. */
#define RAFTD_COMMAND_BYTES 256

/* The text is not longer. */
#define RAFTD_STATUS_BYTES 4096

struct raftd_status {
    pthread_mutex_t lock;
    struct raftd_group *group;
    /* Raft's thread. */
    const char *role; /* "leader", "follower", "candidate", "none"                     */
    uint64_t term;
    uint32_t leader;  /* node; 0 not known                                             */
    uint64_t entries; /* that Raft has committed and handed out                        */
    uint64_t snapshots;
    uint64_t gathered; /* bytes of entries since the last one                         */
    uint64_t held;     /* bytes of entries that are held back                          */
    /* The hand. */
    const char *state; /* "writable", "standby", "stray", "closed"                     */
    uint32_t generation;
    uint64_t replicated; /* accepted                                                   */
    uint64_t durable;    /* here                                                       */
    uint64_t applied;
    uint64_t dead; /* entries that did not count                                       */
    uint64_t
        last_node; /* the highest number that a node has had, but for those of the beginning */
};

void raftd_status_init(struct raftd_status *s, struct raftd_group *group);
void raftd_status_fini(struct raftd_status *s);

/* raftd_status_leader -- the node that leads, as far as Raft here knows, if the term is later than that one; 0: none. */
uint32_t raftd_status_leader(struct raftd_status *s, uint64_t term);

/* raftd_status_last_node -- the highest number that has been used, as far as this node knows. */
uint64_t raftd_status_last_node(struct raftd_status *s);

/* raftd_status_text -- ret bytes of it. */
size_t raftd_status_text(struct raftd_status *s, char text[RAFTD_STATUS_BYTES]);

/* raftd_status_address -- the path of a socket in the directory, short enough for one, as long as dirfd is open. */
void raftd_status_address(int dirfd, const char *name, char path[64]);

/*
 * raftd_status_ask -- the daemon of a directory, and print what it says.
 *
 * ret  0; ECONNREFUSED: none runs there; errno, words noted.
 */
int raftd_status_ask(int dirfd, const char *dir, bool is_json);

/*
 * raftd_status_command -- have the daemon of a directory do something, and print what it says then.
 *
 * in   line  of the command, without the newline
 * ret  0; ECONNREFUSED: none runs there; what the daemon has returned; errno, words noted.
 */
int raftd_status_command(int dirfd, const char *dir, const char *line);

#endif /* XAC_RAFTD_STATUS_H */
