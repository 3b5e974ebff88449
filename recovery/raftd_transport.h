/* SPDX-License-Identifier: MIT */
/*
 * raftd_transport.h -- libraft's connections over those of the group (raftd_net.h).
 *
 * WHAT      Is a transport of libraft.  libraft gets one end of a socket pair, as a stream of its loop; a thread carries
 *           the bytes between the other end and the other node (ship_relay.h), in records, and checks what comes
 *           (raftd_message.h).
 * NOT HERE  Calling, listening, proof (raftd_net.h).
 * OWNER     struct raftd_transport belongs to the caller, and stays until raftd_net_stop() has returned.
 * LOCK      its mutex, for moments.
 * THREADS   libraft's, which is that of the loop; and those of the net.
 *
 * INVARIANTS
 *   (1) Nothing that the loop calls waits: other nodes are called in threads.
 *   (2) libraft is told once of each connection that it has asked for, and of none when it has ended.
 *   (3) Bytes of another node reach libraft after they have been found right.
 */
#ifndef XAC_RAFTD_TRANSPORT_H
#define XAC_RAFTD_TRANSPORT_H

#include <pthread.h>
#include <stdbool.h>

#include <raft.h>
#include <raft/uv.h>

#include "raftd_net.h"

/* An attempt to connect, or a stream that has come. */
struct raftd_arrival;

struct raftd_transport {
    struct raftd_net
        *net; /* NULL: nothing connects: only Raft's files are made         */
    struct raft_uv_transport *uv;
    uv_loop_t *loop;
    uv_async_t wake;
    /* The loop's. */
    raft_uv_accept_cb accept;
    raft_uv_transport_close_cb closed;
    struct raftd_arrival
        *asked; /* libraft waits for them                               */

    pthread_mutex_t lock; /* of the following                                         */
    bool is_closed;       /* the loop is told no more                                  */
    struct raftd_arrival *first, **last; /* for the loop                                */
};

/* raftd_transport_init -- fills in *uv, for raft_uv_init().  in  net  NULL or created, not started.  ret 0 or errno, words
   noted. */
int raftd_transport_init(struct raftd_transport *t, struct raft_uv_transport *uv,
                         uv_loop_t *loop, struct raftd_net *net);

/* raftd_transport_fini -- behind the loop's end, and raftd_net_stop(). */
void raftd_transport_fini(struct raftd_transport *t);

#endif /* XAC_RAFTD_TRANSPORT_H */
