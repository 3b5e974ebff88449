/* SPDX-License-Identifier: MIT */
/*
 * group_note.h -- the file that makes an environment a member of a group: xac.group (doc/formats.md).
 *
 * WHAT      It names the group and the node.  While it is there, nobody writes without the daemon of the node: it is
 *           the daemon that begins to lead, and takes log as a standby while another node leads.
 * NOT HERE  What members do (group/member.h); whether this one leads now: the control region says so.
 *
 * INVARIANTS
 *   (1) The file is replaced as a whole, and durable before the first entry is accepted.
 *   (2) While it is there, no recovery, promotion or restore makes an environment of its own of the directory.
 *   (3) A node that has been removed from its group stays so: nobody reads its log, which is old.
 */
#ifndef XAC_GROUP_NOTE_H
#define XAC_GROUP_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/names.h"

#define XAC_GROUP_ID_BYTES 16
#define XAC_GROUP_NODE_MAX 255 /* node numbers are 1 to this, and never used again     */

struct xac_group_note {
    uint8_t group[XAC_GROUP_ID_BYTES]; /* random, the same on all nodes                */
    uint32_t node;                     /* this one                                     */
    bool is_removed;                   /* it is a node of the group no more            */
};

/* xac_group_note_read -- ret 0; ENOENT without words: no member; XAC_EDAMAGED, XAC_EVERSION, errno with words. */
int xac_group_note_read(int dirfd, struct xac_group_note *out);

/* xac_group_note_write -- make it, synced; ret 0; EEXIST if there is one of another node, or of one that has been removed; errno;
   words noted. */
int xac_group_note_write(int dirfd, const struct xac_group_note *note);

/* xac_group_note_remove -- the node has been removed from its group (3); ret 0; as xac_group_note_read(), errno, words noted. */
int xac_group_note_remove(int dirfd);

/* xac_group_note_refuse -- ret 0; XAC_ENOTLEADER with words, if it is there; errno. */
int xac_group_note_refuse(int dirfd);

/* xac_group_note_refuse_tail -- may all that the log has be read?  Not of a member that has been removed (3), leads, or has led: a
   majority may not have the end of it.  ret 0; XAC_ENOTLEADER with words; errno. */
int xac_group_note_refuse_tail(int dirfd);

#endif /* XAC_GROUP_NOTE_H */
