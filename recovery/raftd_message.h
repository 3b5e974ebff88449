/* SPDX-License-Identifier: MIT */
/*
 * raftd_message.h -- messages of libraft, checked before libraft gets them.
 *
 * WHAT      Follows the bytes of a connection from message to message, and finds lengths and counts that cannot be.
 *           libraft (0.22.1) allocates what a message says, and reads as many entries as it says, behind the end of
 *           the message, too.
 * NOT HERE  Who may send messages (raftd_net.h), what they mean (libraft), what an entry is (raftd_entry.h).
 * OWNER     struct raftd_messages belongs to the caller.
 * THREADS   one.
 *
 * A message, little-endian: type, 1 byte; 7 bytes; length of the head, 8 bytes; the head; and behind the heads of two types
 * the bytes of entries, or of a snapshot, whose lengths the head has.
 *
 * INVARIANTS
 *   (1) A head has at most RAFTD_HEAD_MAX bytes, and at least those that libraft reads of its type.
 *   (2) What a head says of entries, or of a configuration, lies in the head.  Entries have 8 bytes or a multiple, and no
 *       more than an entry can have (raftd_format.h).  A snapshot is a descriptor.
 *   (3) Behind bytes that are wrong nothing is right.
 */
#ifndef XAC_RAFTD_MESSAGE_H
#define XAC_RAFTD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RAFTD_PREAMBLE_BYTES 16
#define RAFTD_HEAD_MAX       16384

struct raftd_messages {
    size_t n;      /* bytes of preamble and head that have come                        */
    uint64_t left; /* bytes behind a head that have not                               */
    bool is_wrong; /* (3)                                                             */
    uint8_t bytes[RAFTD_PREAMBLE_BYTES + RAFTD_HEAD_MAX];
};

void raftd_messages_init(struct raftd_messages *m);

/* raftd_messages_check -- the next bytes of the connection; ret false: they are wrong. */
bool raftd_messages_check(struct raftd_messages *m, const uint8_t *bytes, size_t n);

#endif /* XAC_RAFTD_MESSAGE_H */
