/* SPDX-License-Identifier: MIT */
/*
 * raftd_entry.h -- entries that xraftd puts into Raft's log (raftd_format.h): made, checked, and accepted or not.
 *
 * WHAT      Makes entries, and reads them back.  Says of each whether it counts.  That follows from the entries before it
 *           only, so all nodes say the same.
 * NOT HERE  Raft (raftd_raft.h); what is done with an entry that counts (raftd_place.h).
 * OWNER     Structures and bytes belong to the caller.
 * THREADS   any.
 *
 * INVARIANTS
 *   (1) Nothing of an entry but its checksums is used before it has been found valid, as raftd_format.h has it.
 *   (2) An OPEN counts if its generation is the next one, and its cut is the end of what has been accepted.  All else
 *       counts if it has the generation and the nonce of the last OPEN that counted, and the LSN of that end.
 *   (3) So a generation has one writer.  What a deposed one has proposed may still be committed by Raft.  It counts before the
 *       next OPEN, and never behind it.
 *   (4) Pieces of a data file count in order and without a gap, before the block that names it.
 *   (5) A NODE counts always: which number it has used does not depend on the log.
 */
#ifndef XAC_RAFTD_ENTRY_H
#define XAC_RAFTD_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raftd_format.h"

/* A valid entry. */
struct raftd_entry {
    enum raftd_kind kind;
    uint32_t generation;
    uint64_t lsn;
    uint8_t nonce[XAC_RAFTD_NONCE_BYTES];
    const void
        *body; /* 8-aligned if the entry is; NULL: it is not asked for             */
    size_t n;
    uint64_t end; /* BATCH: behind its last block; else lsn                           */
};

/* What has been accepted. */
struct raftd_accepted {
    uint32_t generation;
    uint32_t node; /* its writer; 0: it is older than the group                        */
    uint64_t start, end;
    uint64_t cut; /* where the generation before ends                                 */
    uint64_t segment_bytes;
    uint8_t nonce[XAC_RAFTD_NONCE_BYTES];
    uint64_t last_node; /* the highest number that a NODE has had                       */
    uint64_t serial,
        data_end; /* pieces of a data file up to there; data_end 0: none    */
};

/* raftd_entry_bytes -- of an entry with a body of n bytes. */
size_t raftd_entry_bytes(size_t n);

/* raftd_entry_body -- where the body of an entry stands. */
void *raftd_entry_body(void *entry);

/* raftd_entry_seal -- the body is there: make the head, and the zeros behind.  Of `e` kind, generation, lsn, nonce and n
   count. */
void raftd_entry_seal(void *entry, const struct raftd_entry *e);

/*
 * raftd_entry_read -- find an entry in bytes that Raft hands out.
 *
 * in   bytes  8-aligned; nothing about them is known
 * out  out    good as long as the bytes
 * ret  0; XAC_EDAMAGED, XAC_EVERSION, with words.
 */
int raftd_entry_read(const void *bytes, size_t n, struct raftd_entry *out);

/* raftd_entry_begins_file -- does a data file begin with it, or xac.addresses?  Of an entry that nobody has looked at. */
bool raftd_entry_begins_file(const void *bytes, size_t n);

/* raftd_entry_accept -- does the entry count (2)?  Then it is a part of what is accepted. */
bool raftd_entry_accept(struct raftd_accepted *a, const struct raftd_entry *e);

/*
 * raftd_accepted_is_in -- is all of that in a log of that generation, which is durable up to `end`?
 *
 * in   has_led  the node has led in that generation: the log may reach further, and is cut then
 */
bool raftd_accepted_is_in(const struct raftd_accepted *a, uint32_t generation,
                          uint64_t end, bool has_led);

/* raftd_descriptor_make, _read -- what is accepted, as a snapshot of Raft.  ret 0; XAC_EDAMAGED, XAC_EVERSION,
   XAC_EFOREIGN: of another group, with words. */
void raftd_descriptor_make(const struct raftd_accepted *a,
                           const uint8_t group[XAC_RAFTD_GROUP_BYTES],
                           struct xac_raftd_descriptor *out);
int raftd_descriptor_read(const void *bytes, size_t n,
                          const uint8_t group[XAC_RAFTD_GROUP_BYTES],
                          struct raftd_accepted *out);

#endif /* XAC_RAFTD_ENTRY_H */
