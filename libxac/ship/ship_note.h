/* SPDX-License-Identifier: MIT */
/*
 * ship_note.h -- xac.addresses, which is not in the log, as it comes from another place in pieces.
 *
 * WHAT      Gathers the pieces, and replaces the file with the last one.
 * NOT HERE  Frames (wire_format.h); entries of Raft's log.  What the file has (shared/address_list.h).
 * OWNER     struct xac_ship_note belongs to the caller; all zero: nothing has come.
 * THREADS   one.
 */
#ifndef XAC_SHIP_NOTE_H
#define XAC_SHIP_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xac_ship_note {
    uint8_t *bytes; /* the first `has` ones                                             */
    uint64_t has, length;
};

/*
 * xac_ship_note_piece -- the next one; with the last one the file is replaced.
 *
 * in   length  of all pieces together
 * in   offset  of this one, of n bytes; 0: another list begins
 * ret  0; EINVAL, without words: it does not go on where the one before has ended, or no list can be so; ENOMEM, errno, words
 *      noted.
 */
int xac_ship_note_piece(struct xac_ship_note *note, int dirfd, uint64_t length,
                        uint64_t offset, const void *bytes, size_t n);

/* xac_ship_note_is_whole -- is none under way? */
bool xac_ship_note_is_whole(const struct xac_ship_note *note);

void xac_ship_note_free(struct xac_ship_note *note);

#endif /* XAC_SHIP_NOTE_H */
