/* SPDX-License-Identifier: MIT */
/*
 * raftd_group.h -- the nodes of a group, and where its log begins: the files that xraftd keeps in the directory of a
 * member.
 *
 * WHAT      Makes a member, and reads what it is.  xac.group (log/group_note.h) says which group and which node; xac.members
 *           is the same on all nodes: where each of them listens, and where the environment's log ended when the group was
 *           made.  XAC_RAFTD_DIR holds Raft's own files, and a lock: one daemon for a directory.
 * NOT HERE  What Raft stores (raftd_raft.h).
 * OWNER     Structures belong to the caller.
 * THREADS   any.
 *
 * INVARIANTS
 *   (1) xac.members is written last, synced: without it there is no member.
 *   (2) An address is HOST:PORT.  Whether it may be one of another machine is the net's (raftd_net.h).
 *   (3) A copy of a member becomes another node only if the member has never run: a vote that was cast may not be
 *       forgotten.
 */
#ifndef XAC_RAFTD_GROUP_H
#define XAC_RAFTD_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "raftd_entry.h"
#include "raftd_net_format.h"

#define XAC_MEMBERS_NAME "xac.members"
#define XAC_RAFTD_DIR    "raft"
#define XAC_RAFTD_LOCK   "lock"

/* Three or five make sense; one is for trying. */
#define RAFTD_MEMBERS_MAX 9

struct raftd_group {
    uint8_t id[XAC_RAFTD_GROUP_BYTES];
    uint32_t node; /* this one                                                        */
    unsigned n;    /* member[i] is node i + 1                                         */
    char member[RAFTD_MEMBERS_MAX][RAFTD_ADDRESS_BYTES];
    struct raftd_accepted begin; /* what is accepted before the first entry            */
};

/* raftd_address_ok -- (2)? */
bool raftd_address_ok(const char *address);

/*
 * raftd_group_read -- of the member in a directory.
 *
 * ret  0; ENOENT: no member, words noted; XAC_EDAMAGED, XAC_EVERSION, errno, words noted.
 */
int raftd_group_read(int dirfd, const char *dir, struct raftd_group *out);

/*
 * raftd_group_create -- make the environment in a directory the first member; nobody takes part in it.
 *
 * in   g     n and member; the rest is filled in
 * in   raft  makes Raft's files, behind which xac.members comes (1)
 * ret  0; EEXIST: it is a member already; as xac_member_create(); words noted.
 */
int raftd_group_create(int dirfd, const char *dir, struct raftd_group *g,
                       int (*raft)(int dirfd, const char *dir,
                                   const struct raftd_group *g));

/* raftd_group_join -- make a copy of the first member another node.  ret 0; EINVAL: there is no such node; EBUSY: the member
   has run before it was copied; as xac_member_create(), words noted. */
int raftd_group_join(int dirfd, const char *dir, uint32_t node);

/* raftd_lock -- this process is the daemon of the directory; until the descriptor is closed.  ret 0; XAC_ELIVE; errno;
   words noted. */
int raftd_lock(int dirfd, const char *dir, int *fdp);

#endif /* XAC_RAFTD_GROUP_H */
