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

#define XAC_RAFTD_SOCKET "raft/socket"

/* The text is not longer. */
#define RAFTD_STATUS_BYTES 4096

struct raftd_status {
    pthread_mutex_t lock;
    const struct raftd_group *group;
    /* Raft's thread. */
    const char *role; /* "leader", "follower", "candidate", "none"                     */
    uint64_t term;
    uint32_t leader;  /* node; 0 not known                                             */
    uint64_t entries; /* that Raft has committed and handed out                        */
    uint64_t snapshots;
    /* The hand. */
    const char *state; /* "writable", "standby", "stray", "closed"                     */
    uint32_t generation;
    uint64_t replicated; /* accepted                                                   */
    uint64_t durable;    /* here                                                       */
    uint64_t applied;
    uint64_t dead; /* entries that did not count                                       */
};

void raftd_status_init(struct raftd_status *s, const struct raftd_group *group);
void raftd_status_fini(struct raftd_status *s);

/* raftd_status_text -- ret bytes of it. */
size_t raftd_status_text(struct raftd_status *s, char text[RAFTD_STATUS_BYTES]);

/* raftd_status_address -- the path of the socket, short enough for one, as long as dirfd is open. */
void raftd_status_address(int dirfd, char path[64]);

/*
 * raftd_status_ask -- the daemon of a directory, and print what it says.
 *
 * ret  0; ECONNREFUSED: none runs there; errno, words noted.
 */
int raftd_status_ask(int dirfd, const char *dir, bool is_json);

#endif /* XAC_RAFTD_STATUS_H */
