/* SPDX-License-Identifier: MIT */
/*
 * raftd_far.h -- asking the daemon of another node what is newest, and answering questions of others.
 *
 * WHAT      Keeps a line to the node that was asked last, and asks there.  Serves lines that want ASK.
 * NOT HERE  The answers (raftd_reads.h, raftd_errand.h), lines (raftd_net.h), frames (raftd_ask.h).
 * OWNER     struct raftd_far belongs to the caller.
 * LOCK      its mutex: the line, for moments.
 * THREADS   raftd_far_ask: one; raftd_far_cut and raftd_far_serve: any.
 */
#ifndef XAC_RAFTD_FAR_H
#define XAC_RAFTD_FAR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "raftd_net.h"
#include "raftd_reads.h"

struct raftd_errands;

struct raftd_far {
    struct raftd_net *net;
    struct raftd_reads *reads;
    struct raftd_errands *errands; /* set before anything is served                    */
    pthread_mutex_t lock;
    struct raftd_line
        *line; /* NULL: none                                               */
    bool is_cut;
};

void raftd_far_init(struct raftd_far *f, struct raftd_net *net,
                    struct raftd_reads *reads);
void raftd_far_fini(struct raftd_far *f);

/* raftd_far_reads -- for raftd_reads_start(). */
struct raftd_reads_far raftd_far_reads(struct raftd_far *f);

/* raftd_far_serve -- for raftd_net_serve(): answer a node until it hangs up. */
void raftd_far_serve(void *arg, struct raftd_line *line);

#endif /* XAC_RAFTD_FAR_H */
