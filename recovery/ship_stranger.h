/* SPDX-License-Identifier: MIT */
/*
 * ship_stranger.h -- those who connect and have not proven themselves yet: how many there may be, for how long, and what is
 * said of them.
 *
 * WHAT      Says in words who is at the other end, and why he was refused, but not more often than a reader can take.
 * NOT HERE  The proof (ship_proof.h).  Counting them: ship_serve.c, and in a group raftd_net.h.
 * OWNER     struct ship_words belongs to the caller.
 * LOCK      The caller's.
 * THREADS   one at a time.
 *
 * INVARIANTS
 *   (1) At most SHIP_WORDS_MAX lines in SHIP_WORDS_S; then how many more there were.
 */
#ifndef XAC_SHIP_STRANGER_H
#define XAC_SHIP_STRANGER_H

#include <stdint.h>

#define SHIP_STRANGERS_MAX 64
#define SHIP_STRANGER_S    10
#define SHIP_FOLLOWERS_MAX 128
#define SHIP_WORDS_MAX     10
#define SHIP_WORDS_S       10

#define SHIP_PEER_BYTES 80

struct ship_words {
    uint64_t window_ns; /* words are counted from then on                              */
    unsigned n_said, n_unsaid;
};

/* ship_peer_words -- who is at the other end of a socket. */
void ship_peer_words(int fd, char out[SHIP_PEER_BYTES]);

/* ship_say_refused -- on standard error, unless too much has been said (1). */
void ship_say_refused(struct ship_words *w, const char *peer, const char *words);

#endif /* XAC_SHIP_STRANGER_H */
