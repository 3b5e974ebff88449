/* SPDX-License-Identifier: MIT */
/*
 * raftd_user.h -- whom Raft's thread tells what Raft has decided, and asks how far that is done: the hand.
 *
 * WHAT      The calls that raftd_raft.h and raftd_intake.h make.
 * NOT HERE  Items (raftd_queue.h); the hand (raftd_hand.h).
 * THREADS   Raft's.
 */
#ifndef XAC_RAFTD_USER_H
#define XAC_RAFTD_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raftd_queue.h"

/* How far is what Raft has decided done to the environment? */
enum raftd_progress {
    RAFTD_BUSY,   /* not all of it                                                    */
    RAFTD_PART,   /* all, but it ends in the middle of a file, which comes in pieces   */
    RAFTD_SETTLED /* all, and it is durable                                           */
};

/* Whom Raft tells what it has decided; called in its thread. */
struct raftd_raft_user {
    void *arg;
    /* ret 0 or ENOMEM */
    int (*put)(void *arg, const struct raftd_item *item, const void *bytes, size_t n);
    /* How far are the first n entries?  out  a  SETTLED: what is accepted with them. */
    enum raftd_progress (*progress)(void *arg, uint64_t n, struct raftd_accepted *a);
    /* Does the log here reach as far as a snapshot says? */
    bool (*has)(void *arg, const struct raftd_accepted *a);
};

#endif /* XAC_RAFTD_USER_H */
