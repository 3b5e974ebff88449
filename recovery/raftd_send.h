/* SPDX-License-Identifier: MIT */
/*
 * raftd_send.h -- the leader gives its log, and a copy, to a node that is far behind.
 *
 * WHAT      For each line that wants COPY runs xship(1) in a process of its own: `xship hold`, which makes a slot named
 *           node-N, and `xship send`.  The slot holds back log for a while when the line has ended, so a node whose line has
 *           broken goes on; then it is removed.
 * NOT HERE  Receiving (raftd_fetch.h).
 * OWNER     struct raftd_send belongs to the caller, and stays until raftd_net_stop() has returned.
 * LOCK      its mutex, for moments.
 * THREADS   that of the line.
 *
 * INVARIANTS
 *   (1) A process that sends ends with its line: nothing is left of a node that has stopped.
 *   (2) It makes the copy as a participant, so it leaves, or is killed, when this node ceases to lead.  Of a node that does
 *       not lead it sends nothing.
 */
#ifndef XAC_RAFTD_SEND_H
#define XAC_RAFTD_SEND_H

#include <pthread.h>
#include <stdint.h>

#include "log/group_note.h"
#include "raftd_net.h"

struct raftd_send {
    const char *dir;
    struct raftd_net *net;
    pthread_mutex_t lock;
    uint32_t n_lines[XAC_GROUP_NODE_MAX + 1]; /* that a node has had                   */
    uint32_t n_now[XAC_GROUP_NODE_MAX + 1];   /* whose slot it has, or may still have   */
};

/* raftd_send_init -- serve those lines; before raftd_net_start(). */
void raftd_send_init(struct raftd_send *s, struct raftd_net *net, const char *dir);
void raftd_send_fini(struct raftd_send *s);

/* raftd_send_clean -- this node leads: remove slots that a former life of the daemon has left. */
void raftd_send_clean(struct raftd_send *s);

#endif /* XAC_RAFTD_SEND_H */
