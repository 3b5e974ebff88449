/* SPDX-License-Identifier: MIT */
/*
 * raftd_net.h -- connections between the nodes of a group: one listener, and lines to and from other nodes.
 *
 * WHAT      Listens where this node is said to.  Lets in nodes of the group that prove themselves, by the secret and by
 *           their certificates, and gives each line to the handler of what it wants.  Calls other nodes.
 * NOT HERE  The bytes (raftd_net_format.h); TLS, proof and addresses (ship_channel.h, ship_proof.h, ship_addr.h); what is
 *           said on a line: Raft's messages (raftd_transport.h), requests (raftd_ask.h).
 * OWNER     struct raftd_net is opaque.  A line belongs to the caller, or to its handler while that runs.
 * LOCK      its mutex, for moments.
 * THREADS   any.  One listens; each line that comes in has one of its own, in which its handler runs.
 *
 * INVARIANTS
 *   (1) Without TLS no line leads to another machine, unless the user has said that it may.
 *   (2) At most SHIP_STRANGERS_MAX threads speak with somebody who has not proven himself, each for at most
 *       SHIP_STRANGER_S; then nobody else is let in.  A stranger reaches no code but that of TLS and of the proof, which
 *       reads pieces of fixed length.  With at most SHIP_FOLLOWERS_MAX lines of nodes likewise; and a node has at most
 *       RAFTD_NET_LINES of these, so that one that is damaged keeps no other one out.
 *   (3) A stranger learns nothing but that he is refused; the daemon's log says why (ship_stranger.h).
 *   (4) A node speaks for itself only: with TLS its certificate has the name node-N.
 */
#ifndef XAC_RAFTD_NET_H
#define XAC_RAFTD_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "raftd_group.h"
#include "raftd_net_format.h"
#include "ship_channel.h"

/* A node needs three: for Raft, questions, and a copy.  Some that have broken may linger until they are noticed. */
#define RAFTD_NET_LINES 14u

struct raftd_net;

/* What the user has said of connections. */
struct raftd_net_options {
    const char *secret_file; /* NULL: there is none                                   */
    struct ship_tls_files tls;
    bool may_be_far; /* --insecure-listen                                             */
};

/* A connection to another node, which has proven itself. */
struct raftd_line {
    struct raftd_net *net;
    struct raftd_line *next, *before; /* the net's                                    */
    int fd;                           /* likewise                                     */
    struct ship_channel c;
    uint32_t node; /* at the other end                                                */
    enum raftd_want want;
    bool is_let_in;                    /* it has come from there (2)                  */
    char address[RAFTD_ADDRESS_BYTES]; /* where it listens                            */
    uint64_t serial; /* of the request asked last (raftd_ask.h)                         */
};

/* raftd_net_create -- read secret and certificates.  in  group  stays.  ret 0; as ship_secret_read() and ship_tls_open(),
   words noted. */
int raftd_net_create(const struct raftd_net_options *options, struct raftd_group *group,
                     struct raftd_net **np);

/* raftd_net_destroy -- behind raftd_net_stop(); NULL: nothing is done. */
void raftd_net_destroy(struct raftd_net *n);

/* raftd_net_serve -- who gets the lines that want this; before raftd_net_start().  When the handler returns, the
   line is closed. */
void raftd_net_serve(struct raftd_net *n, enum raftd_want want,
                     void (*handler)(void *arg, struct raftd_line *line), void *arg);

/* raftd_net_start -- listen.  ret 0; as ship_addr_listen(), words noted. */
int raftd_net_start(struct raftd_net *n);

/* raftd_net_stop -- nobody is let in any more, all lines are cut, and all threads have ended.  The owner of a line must
   notice that it is cut, and hang up. */
void raftd_net_stop(struct raftd_net *n);

/* raftd_net_is_stopping -- is it being stopped? */
bool raftd_net_is_stopping(struct raftd_net *n);

/*
 * raftd_net_call -- a line to another node.
 *
 * in   until_ns  by then it is there, or it has failed
 * ret  0; EPERM: (1); XAC_EFOREIGN: it is not who it should be, or refuses this node; ECANCELED: the net has been stopped;
 *      EINVAL: there is no such node; as ship_addr_connect() and ship_channel_open(); words noted.
 */
int raftd_net_call(struct raftd_net *n, uint32_t node, enum raftd_want want,
                   uint64_t until_ns, struct raftd_line **linep);

/* raftd_net_call_at -- likewise, where it is said to listen. */
int raftd_net_call_at(struct raftd_net *n, uint32_t node, const char *address,
                      enum raftd_want want, uint64_t until_ns, struct raftd_line **linep);

/* raftd_net_hang_up -- by the caller of raftd_net_call(). */
void raftd_net_hang_up(struct raftd_line *line);

/* raftd_net_thread -- run a function in a thread of its own, for which raftd_net_stop() waits.  ret 0; ECANCELED: the net has
   been stopped; errno; words noted. */
int raftd_net_thread(struct raftd_net *n, void (*fn)(void *arg), void *arg);

#endif /* XAC_RAFTD_NET_H */
