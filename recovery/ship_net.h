/* SPDX-License-Identifier: MIT */
/*
 * ship_net.h -- xship serve and xship follow: a source that standbys connect to, and a standby that connects, and
 * connects again.
 *
 * WHAT      Serves each follower in a process of its own.  Follows through every break that may mend itself.
 * NOT HERE  What is sent (ship_run.h); how a follower proves itself (ship_proof.h); signs of life (ship_relay.h).
 *
 * INVARIANTS
 *   (1) At most SHIP_STRANGERS_MAX processes of a server speak with somebody who has not yet proven himself, each
 *       for at most SHIP_STRANGER_S.  The server itself reads nothing that comes from the network.
 *   (2) A stranger learns why he is refused from nothing but the end of the connection, or a number.  The server's
 *       log says why, in at most SHIP_WORDS_MAX lines in SHIP_WORDS_S.
 *   (3) A follower that stands still keeps nobody else waiting.
 */
#ifndef XAC_SHIP_NET_H
#define XAC_SHIP_NET_H

#include <stdbool.h>

#include "ship_addr.h"
#include "ship_channel.h"
#include "ship_proof.h"
#include "ship_run.h"
#include "ship_stranger.h"

/* Until a follower connects again: it begins with the first time, which doubles up to the second. */
#define SHIP_AGAIN_MS     100
#define SHIP_AGAIN_MS_MAX 5000

/* What the user has said of a connection. */
struct ship_net_options {
    const char *address;
    const char *secret_file; /* NULL: there is none                                   */
    struct ship_tls_files tls;
    bool may_be_far; /* --insecure-listen                                             */
};

/* ship_serve -- until a signal; ret 0 or an error of the beginning, words noted. */
int ship_serve(const struct ship_job *job, const struct ship_net_options *o);

/* ship_follow -- until a signal, or an error that does not mend itself; ret 0 or the error. */
int ship_follow(const struct ship_job *job, const struct ship_net_options *o);

#endif /* XAC_SHIP_NET_H */
