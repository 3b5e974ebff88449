/* SPDX-License-Identifier: MIT */
/*
 * linear_net.h -- a network between the nodes of a group that can be cut, each direction of each connection by itself.
 *
 * WHAT      A network namespace for each node, and one that forwards between them.  A cut is a rule there: what one node sends
 *           to another one is thrown away without a word.
 * NOT HERE  Nodes (group_run.h).
 * OWNER     The test.  Names contain the process that calls net_claim(), so that those of runs that were killed are found.
 * LOCK      None.
 * THREADS   One.
 */
#ifndef XAC_TEST_LINEAR_NET_H
#define XAC_TEST_LINEAR_NET_H

#include <stdbool.h>

#include "group_run.h"

struct net {
    bool is_cut[GROUP_NODES + 1][GROUP_NODES + 1]; /* [from][to], by number             */
};

/* net_claim -- this process names the namespaces of its children, and removes them; what killed runs have left goes.
   ret NULL, or why there cannot be such a network here. */
const char *net_claim(void);

/* net_remove -- with all processes in them; whatever of it there is. */
void net_remove(void);

/* net_make -- in a test.  out  site  address and namespace of each node. */
void net_make(struct net *n, struct group_site *site);

/* net_cut -- what `from` sends to `to` gets lost.  net_cut_off: nothing goes from the node, or to it.  net_heal -- all goes. */
void net_cut(struct net *n, unsigned from, unsigned to);
void net_cut_off(struct net *n, unsigned number);
void net_heal(struct net *n);

#endif /* XAC_TEST_LINEAR_NET_H */
