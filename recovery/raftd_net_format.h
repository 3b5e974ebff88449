/* SPDX-License-Identifier: MIT */
/*
 * raftd_net_format.h -- bytes between the daemons of a group.  Little-endian; sizes are bytes.
 *
 * A connection begins as one of xship does (ship_net_format.h), inside of TLS, if that is used:
 *
 *   node that connects                 node that listens
 *   GREETING                  ->
 *                             <-       GREETING
 *   PROOF, HELLO              ->
 *                             <-       PROOF, or one that refuses
 *   what HELLO wants         <->
 *
 * GREETING and PROOF are those of ship_net_format.h, with another magic and other labels, and with the HELLO in place of
 * the NAME.
 *
 * HELLO, 160 bytes
 *   OFFSET SIZE FIELD        MEANING
 *      0    16  group        id
 *     16     4  from         node that connects
 *     20     4  to           node that it wants to speak with
 *     24     4  want         enum raftd_want
 *     28     4  reserved     zero
 *     32   128  address      where `from` listens, HOST:PORT, and zeros behind it
 *
 * With TLS the certificate of node N has the name node-N.
 *
 * RAFT: messages of libraft from the node that connects, in RECORDs (ship_net_format.h); none come back.
 * ASK: requests of the node that connects, and an answer to each; an ASK each:
 *
 * ASK, 64 bytes
 *      0     4  magic        XAC_RAFTD_ASK_MAGIC
 *      4     4  kind         what is asked; in an answer the same
 *      8     8  serial       of the request; in an answer the same
 *     16     4  status       0; in an answer: why there is none
 *     20     4  reserved     zero
 *     24    40  value        five numbers; their meaning is of the kind
 *
 *   kind 1, RAFTD_ASK_NEWEST: up to where everything stands that was acknowledged before (raftd_reads.h); value 0 of the
 *   answer is the LSN.  status: enum raftd_ask_status; a kind that is not known: RAFTD_ASK_UNKNOWN.
 *   kind 2, RAFTD_ASK_MEMBER: is a node, value 0, one of the group?  Value 0 of the answer: 1 yes, 0 no, and never again.  Value 1
 *   is 0: a node that does not lead may ask the one that does; 1: it may not.
 *   kind 3, RAFTD_ASK_REMOVE: remove the node, value 0.  A node that leads and is to be removed lets another one lead, and answers
 *   RAFTD_ASK_NOT_NOW.  RAFTD_ASK_NEEDED: without the node no majority of the others runs.
 *   kind 4, RAFTD_ASK_TRANSFER: let the node, value 0, lead; 0: any other one.  Value 0 of the answer: the term that has ended
 *   with that; 0: the node led already.
 *
 * An ASK is valid if and only if its magic is right and what is reserved is zero.
 *
 * COPY: frames of a source and a standby (libxac/ship/wire_format.h), in RECORDs.
 *
 * HISTORY
 *   1  first format
 */
#ifndef XAC_RAFTD_NET_FORMAT_H
#define XAC_RAFTD_NET_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "raftd_format.h"

#define XAC_RAFTD_NET_MAGIC      "XRAFTN\0\1"
#define XAC_RAFTD_LABEL_CALLER   "xraftd caller's proof"
#define XAC_RAFTD_LABEL_LISTENER "xraftd listener's proof"
#define XAC_RAFTD_ASK_MAGIC      UINT32_C(0x4b534158) /* "XASK" */
#define XAC_RAFTD_ASK_VALUES     5u

/* With the 0 behind it. */
#define RAFTD_ADDRESS_BYTES 128

enum raftd_want {
    RAFTD_WANT_NOTHING = 0,
    RAFTD_WANT_RAFT = 1,
    RAFTD_WANT_ASK = 2,
    RAFTD_WANT_COPY = 3,
    RAFTD_WANTS
};

enum raftd_ask_kind {
    RAFTD_ASK_NEWEST = 1,
    RAFTD_ASK_MEMBER = 2,
    RAFTD_ASK_REMOVE = 3,
    RAFTD_ASK_TRANSFER = 4
};

enum raftd_ask_status {
    RAFTD_ASK_GOOD = 0,
    RAFTD_ASK_NOT_NOW =
        1, /* the node does not lead, or a majority has not said that it does */
    RAFTD_ASK_UNKNOWN = 2,
    RAFTD_ASK_NO_NODE = 3,   /* the node that the question is of is none, or no voter   */
    RAFTD_ASK_ALONE = 4,     /* there is no other node that could lead                */
    RAFTD_ASK_NOT_TAKEN = 5, /* no other node has begun to lead                       */
    RAFTD_ASK_UNCERTAIN = 6, /* it was begun, and may have been done                  */
    RAFTD_ASK_FAILED = 7,    /* libraft refuses it                                    */
    RAFTD_ASK_NEEDED = 8     /* without the node no majority of the others runs       */
};

struct xac_raftd_hello {
    uint8_t group[XAC_RAFTD_GROUP_BYTES];
    uint32_t from;
    uint32_t to;
    uint32_t want;
    uint32_t reserved;
    char address[RAFTD_ADDRESS_BYTES];
};
static_assert(sizeof(struct xac_raftd_hello) == 160, "format");
static_assert(offsetof(struct xac_raftd_hello, address) == 32, "format");

struct xac_raftd_ask {
    uint32_t magic;
    uint32_t kind;
    uint64_t serial;
    uint32_t status;
    uint32_t reserved;
    uint64_t value[XAC_RAFTD_ASK_VALUES];
};
static_assert(sizeof(struct xac_raftd_ask) == 64, "format");
static_assert(offsetof(struct xac_raftd_ask, value) == 24, "format");

#endif /* XAC_RAFTD_NET_FORMAT_H */
