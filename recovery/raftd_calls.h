/* SPDX-License-Identifier: MIT */
/*
 * raftd_calls.h -- what other threads want done in the loop.
 *
 * WHAT      A list of calls, in the order in which they have come, and a handle of the loop that is woken for them.
 * NOT HERE  What a call does (raftd_raft.h, raftd_errand.h).
 * OWNER     struct raftd_calls belongs to the caller; a call to the one who has put it, until it is taken.
 * LOCK      its mutex, for moments.
 * THREADS   raftd_calls_put(): any; the others: that of the loop.
 *
 * INVARIANTS
 *   (1) The handle is woken with the lock, and not behind raftd_calls_end(): it is never woken once it is being closed.
 */
#ifndef XAC_RAFTD_CALLS_H
#define XAC_RAFTD_CALLS_H

#include <pthread.h>
#include <stdbool.h>

#include <uv.h>

/* The first field of what is put. */
struct raftd_call {
    struct raftd_call *next;
    void (*run)(struct raftd_call *c); /* for the one that takes it                    */
};

struct raftd_calls {
    uv_async_t wake;

    pthread_mutex_t lock; /* of the following                                          */
    bool is_over; /* nothing is taken any more                                         */
    struct raftd_call *first, **last;
};

/* raftd_calls_init -- in  serve  is called in the loop when there may be some; `arg` is the data of its handle. */
void raftd_calls_init(struct raftd_calls *c, uv_loop_t *loop, uv_async_cb serve,
                      void *arg);

/* raftd_calls_put -- ret false: it is over, and the call is the caller's still. */
bool raftd_calls_put(struct raftd_calls *c, struct raftd_call *call);

/* raftd_calls_take -- the first one; NULL: there is none. */
struct raftd_call *raftd_calls_take(struct raftd_calls *c);

/* raftd_calls_end -- no more are put, and the handle is closed.  Those that have been put before may be taken still. */
void raftd_calls_end(struct raftd_calls *c);

/* raftd_calls_fini -- none is left, and the loop has ended. */
void raftd_calls_fini(struct raftd_calls *c);

#endif /* XAC_RAFTD_CALLS_H */
