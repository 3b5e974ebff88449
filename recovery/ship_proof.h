/* SPDX-License-Identifier: MIT */
/*
 * ship_proof.h -- the beginning of a connection between xship serve and xship follow: each side proves itself
 * (ship_net_format.h).
 *
 * WHAT      Reads the file of the secret.  Proves it to the other side, and demands the same.  Says which slot the
 *           follower is for.
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
