/* SPDX-License-Identifier: MIT */
/*
 * ship_relay.h -- a thread that carries the frames of a source or a standby (ship/wire.h) over a connection, in records
 * (ship_net_format.h).
 *
 * WHAT      The caller gets one end of a socket pair, which is like the connection itself.  The thread takes bytes
 *           there and sends them, and gives what has come.  Once a second it says that it is there; if the other side
 *           says nothing for SHIP_SILENCE_S, it cuts the connection.
 * NOT HERE  The beginning of a connection (ship_proof.h).
 * OWNER     struct ship_relay belongs to the caller; between start and end it must not move.
 * THREADS   start and end: one; or open and carry: one, which is the relay's own thread then.  The relay's own thread
 *           calls nothing of libxac but the clock.
 *
 * INVARIANTS
 *   (1) While the process stands still, it says nothing: so the other side notices.
 *   (2) Silence is counted only while there is room for what may come: a slow disk here is no silence there.
 *   (3) No length that has come is used before it has been checked.
 *   (4) What the caller has written before it closed its end is sent, unless the connection is cut.
 */
#ifndef XAC_SHIP_RELAY_H
#define XAC_SHIP_RELAY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ship_channel.h"
#include "ship_net_format.h"

/* A dead peer is noticed after so long; then what has been sent may wait so long to be read. */
#define SHIP_SILENCE_S 10
#define SHIP_LINGER_S  5

/* A record on its way. */
struct ship_record {
    uint8_t bytes[sizeof(uint32_t) + XAC_NET_RECORD_MAX];
    size_t at, n; /* [at, n) are to be handed on                                       */
};

struct ship_relay {
    struct ship_channel *c;
    int end;   /* the caller's                                                        */
    int local; /* the thread's end of the pair                                        */
    pthread_t thread;
    struct ship_record out, in;
    size_t head_n; /* bytes of the head of `in` that have come                    */
    uint8_t head[sizeof(uint32_t)];
    size_t left;        /* bytes of that record that have not come                     */
    uint64_t beat_ns;   /* something was put into `out` last                          */
    uint64_t heard_ns;  /* something has come last, or could not come (2)              */
    bool is_local_over; /* the caller has closed its end, and its bytes are taken      */
    bool is_deaf;       /* the caller takes no more                                    */
    bool is_mute;       /* the connection takes no more; it may still give             */
    bool is_over;       /* the connection gives no more                                */
    const char *why;    /* it has been cut here; NULL: it has not.  Read after the end */
    /* Of bytes that have come, before the caller gets them: false cuts the connection; NULL: all are right. */
    bool (*check)(void *arg, const uint8_t *bytes, size_t n);
    void *check_arg;
};

/* ship_thread_start -- a thread that gets no signal: they are the caller's.  ret 0 or errno, words noted. */
int ship_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);

/* ship_relay_open -- the pair, and no thread yet; then r->end is the caller's, and `check` may be set.  ret 0 or errno,
   words noted. */
int ship_relay_open(struct ship_relay *r, struct ship_channel *c);

/* ship_relay_carry -- in this thread, until one side has gone.  The owner of r->end closes it. */
void ship_relay_carry(struct ship_relay *r);

/* ship_relay_start -- ret 0 or errno, words noted; then r->end is the caller's. */
int ship_relay_start(struct ship_relay *r, struct ship_channel *c);

/* ship_relay_end -- close r->end, wait until all has been sent, and for the thread. */
void ship_relay_end(struct ship_relay *r);

#endif /* XAC_SHIP_RELAY_H */
