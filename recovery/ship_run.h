/* SPDX-License-Identifier: MIT */
/*
 * ship_run.h -- one connection of xship(1): sending to a standby, or receiving at one.
 *
 * WHAT      Calls ship/send.h and ship/receive.h with what a tool adds: signals, the copy that a standby begins
 *           with, progress on the terminal.
 * NOT HERE  Where the connection comes from (xship.c, ship_net.h).
 */
#ifndef XAC_SHIP_RUN_H
#define XAC_SHIP_RUN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "ship/receive.h"
#include "ship/send.h"

/* What is sent or received, and how. */
struct ship_job {
    const char *dir;
    const char *slot; /* of the standby; of a receiver: not used                       */
    bool is_quiet;
    bool rewinds; /* a receiver: receive.h                                             */
    bool is_json; /* a sender says on standard output how far the standby is behind     */
};

/* ship_is_stopped -- has a signal come? */
bool ship_is_stopped(void);

/* ship_catch_signals -- the first SIGINT, SIGTERM or SIGHUP ends in order, the second one at once. */
void ship_catch_signals(void);

/* ship_send -- as xac_send_run(), until a signal. */
int ship_send(const struct ship_job *job, int in, int out, struct xac_send_report *rep);

/* ship_receive -- as xac_receive_run(), until a signal. */
int ship_receive(const struct ship_job *job, int in, int out,
                 struct xac_receive_report *rep);

/* ship_say_sent, ship_say_received -- what a connection that has ended in order has done; nothing if it is to
   be quiet. */
void ship_say_sent(const struct ship_job *job, const struct xac_send_report *rep);
void ship_say_received(const struct ship_job *job, const struct xac_receive_report *rep);

#endif /* XAC_SHIP_RUN_H */
