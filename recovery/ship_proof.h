/* SPDX-License-Identifier: MIT */
/*
 * ship_proof.h -- the beginning of a connection between xship serve and xship follow, or between two nodes of a group: each
 * side proves itself (ship_net_format.h, raftd_net_format.h).
 *
 * WHAT      Reads the file of the secret.  Proves it to the other side, and demands the same.  Says what the side that has
 *           connected is: of a follower its slot, of a node of a group what it wants.
 * NOT HERE  TLS (ship_channel.h), what is said after that (ship_relay.h).
 * THREADS   one.
 *
 * INVARIANTS
 *   (1) Each side speaks in pieces of fixed length.  No length, no number and no word of the other side is
 *       used before its proof has been found right.
 *   (2) A proof holds for one connection: it is made of both sides' nonces, and of the TLS connection.
 *   (3) The server proves nothing to a follower that has not.
 *   (4) Proofs are compared in a time that does not depend on their bytes.
 */
#ifndef XAC_SHIP_PROOF_H
#define XAC_SHIP_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/slots.h"
#include "ship_channel.h"
#include "ship_net_format.h"

#define SHIP_SECRET_MIN 16
#define SHIP_SECRET_MAX 4096

struct ship_secret {
    size_t n; /* 0: there is none                                                     */
    uint8_t bytes[SHIP_SECRET_MAX];
};

/* ship_secret_read -- from a file; white space at its end does not count; ret 0; EACCES: others may
   read it; EINVAL: too short or too long; errno, words noted. */
int ship_secret_read(const char *file, struct ship_secret *out);

/* What the side that has connected says of itself is not longer. */
#define SHIP_ABOUT_MAX 176

/* What two programs of a kind say to each other at the beginning. */
struct ship_terms {
    const char *tool;    /* in words                                                    */
    const char *refused; /* what the side that has connected says then                */
    const char *magic; /* XAC_NET_MAGIC_BYTES of it, with the version                  */
    const char *label_follower, *label_server; /* of the proofs                       */
    size_t about_bytes;
};

/*
 * ship_proof_give -- the part of the side that has connected.
 *
 * in   about  about_bytes of it
 * ret  as ship_proof_follow()
 */
int ship_proof_give(struct ship_channel *c, const struct ship_secret *secret,
                    const struct ship_terms *terms, const void *about, uint64_t until_ns);

/*
 * ship_proof_take -- the part of the side that listens.
 *
 * in   check  of what the other side says of itself, when its proof has been found right; ret 0 or an error, words noted.
 *             The other side is told no more than that it is refused
 * out  about  about_bytes of it
 * ret  as ship_proof_serve(), and what `check` has returned
 */
int ship_proof_take(struct ship_channel *c, const struct ship_secret *secret,
                    const struct ship_terms *terms,
                    int (*check)(void *arg, const struct ship_channel *c,
                                 const void *about),
                    void *arg, void *about, uint64_t until_ns);

/*
 * ship_proof_follow -- the follower's part.
 *
 * ret  0; XAC_EFOREIGN: the secrets differ, or only one side has one, or it is no xship; as
 *      ship_channel_get(), words noted.
 */
int ship_proof_follow(struct ship_channel *c, const struct ship_secret *secret,
                      const char *slot, uint64_t until_ns);

/*
 * ship_proof_serve -- the server's part.
 *
 * out  slot  of the follower: a name that a slot can have
 * ret  0; XAC_EFOREIGN: a stranger; as ship_channel_get(), words noted.
 */
int ship_proof_serve(struct ship_channel *c, const struct ship_secret *secret,
                     char slot[XAC_SLOT_NAME_BYTES], uint64_t until_ns);

#endif /* XAC_SHIP_PROOF_H */
