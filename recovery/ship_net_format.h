/* SPDX-License-Identifier: MIT */
/*
 * ship_net_format.h -- bytes between xship serve and xship follow.  Little-endian; sizes are bytes.
 *
 * They lie around the frames of a source and its standby (wire_format.h), and inside of TLS, if that is used.
 *
 *   follower                           server
 *   GREETING                  ->
 *                             <-       GREETING
 *   PROOF, NAME               ->
 *                             <-       PROOF, or one that refuses
 *   RECORDs                  <->       RECORDs
 *
 * GREETING, 48 bytes
 *   OFFSET SIZE FIELD        MEANING
 *      0     8  magic        XAC_NET_MAGIC, which has the version
 *      8     4  flags        XAC_NET_SECRET: this side has a secret; else 0
 *     12     4  reserved     zero
 *     16    32  nonce        random
 *
 * PROOF, 40 bytes
 *      0     4  status       0; XAC_NET_REFUSED: the server stops here
 *      4     4  reserved     zero
 *      8    32  mac          zeros without a secret, or if it refuses; else HMAC-SHA-256, by the secret, of
 *                            a LABEL, 32 bytes; of the TLS connection its exporter value of RFC 9266, without TLS
 *                            zeros, 32 bytes; the GREETING of the follower; the GREETING of the server; the NAME
 *
 * LABEL: XAC_NET_LABEL_FOLLOWER in the proof of the follower, XAC_NET_LABEL_SERVER in that of the server, and
 * zeros behind it.  So no proof of one side is one of the other.
 *
 * NAME, 48 bytes: of the follower's slot, and zeros behind it
 *
 * RECORD
 *      0     4  length       of the bytes, at most XAC_NET_RECORD_MAX; 0: this side is there, once a second
 *      4        bytes        the next ones of the frames
 *
 * HISTORY
 *   1  first format
 */
#ifndef XAC_SHIP_NET_FORMAT_H
#define XAC_SHIP_NET_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "log/slots.h"

#define XAC_NET_MAGIC          "XSHIPN\0\1"
#define XAC_NET_MAGIC_BYTES    8u
#define XAC_NET_NONCE_BYTES    32u
#define XAC_NET_MAC_BYTES      32u
#define XAC_NET_LABEL_BYTES    32u
#define XAC_NET_LABEL_FOLLOWER "xship follower's proof"
#define XAC_NET_LABEL_SERVER   "xship server's proof"
#define XAC_NET_RECORD_MAX     (UINT32_C(1) << 16)

enum {
    XAC_NET_SECRET = 1
};
enum {
    XAC_NET_REFUSED = 1
};

struct xac_net_greeting {
    uint8_t magic[XAC_NET_MAGIC_BYTES];
    uint32_t flags;
    uint32_t reserved;
    uint8_t nonce[XAC_NET_NONCE_BYTES];
};
static_assert(sizeof(struct xac_net_greeting) == 48, "format");
static_assert(offsetof(struct xac_net_greeting, nonce) == 16, "format");

struct xac_net_proof {
    uint32_t status;
    uint32_t reserved;
    uint8_t mac[XAC_NET_MAC_BYTES];
};
static_assert(sizeof(struct xac_net_proof) == 40, "format");
static_assert(offsetof(struct xac_net_proof, mac) == 8, "format");

struct xac_net_name {
    char name[XAC_SLOT_NAME_BYTES];
};
static_assert(sizeof(struct xac_net_name) == 48, "format");

#endif /* XAC_SHIP_NET_FORMAT_H */
