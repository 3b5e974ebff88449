/* SPDX-License-Identifier: MIT */
/*
 * net.h -- a connection that blocks, for the clients of dqlite and etcd.
 *
 * WHAT      Connects to an address of IPv4; sends all; receives exactly so much, through a buffer, so that an answer takes one
 *           system call.
 * ERRORS    functions return NULL, or words that stay until the next call.
 */
#ifndef XBENCH_GROUP_NET_H
#define XBENCH_GROUP_NET_H

#include <stddef.h>
#include <stdint.h>

struct group_net {
    int fd;
    size_t first, n; /* of what has come                                              */
    uint8_t come[65536];
};

/* group_net_connect -- to ADDRESS:PORT, without Nagle's delay.  out  fdp  only if NULL is returned. */
const char *group_net_connect(const char *place, int *fdp);

/* group_net_open -- the same, for what follows.  The fields are set in any case. */
const char *group_net_open(struct group_net *net, const char *place);
void group_net_close(struct group_net *net);

const char *group_net_send(struct group_net *net, const void *bytes, size_t n);

/* group_net_receive -- in  to  NULL: they are dropped. */
const char *group_net_receive(struct group_net *net, void *to, size_t n);

/* group_net_words -- for an error: what, and why. */
const char *group_net_words(const char *what, const char *why);

#endif /* XBENCH_GROUP_NET_H */
