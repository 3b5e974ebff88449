/* SPDX-License-Identifier: MIT */
/*
 * raftd_group.h -- the nodes of a group, and where its log begins: the files that xraftd keeps in the directory of a
 * member.
 *
 * WHAT      Makes a member, and reads what it is.  xac.group (log/group_note.h) says which group and which node; xac.members
 *           says which nodes there are, where each of them listens, and where the environment's log ended when the group was
 *           made: it is what Raft's configuration says, as far as this node knows.  XAC_RAFTD_DIR holds Raft's own files, and a lock: one daemon for a directory.
 * NOT HERE  What Raft stores (raftd_raft.h).
 * OWNER     Structures belong to the caller.
 * LOCK      raftd_group.lock, for moments.
 * THREADS   any.
 *
 * INVARIANTS
 *   (1) xac.members is written last, synced: without it there is no member.
 *   (2) An address is HOST:PORT.  Whether it may be one of another machine is the net's (raftd_net.h).
 *   (3) A copy of a member becomes another node only if the member has never run: a vote that was cast may not be
 *       forgotten.
 *   (4) A node that is added later begins without an environment.
 *   (5) A member that has an environment has Raft's files, which have its vote: else it does not start.
 *   (6) Raft's files are those of this node: XAC_RAFTD_DIR has an xac.group of its own, from the first start on.  With the vote of
 *       another node this one could vote twice in a term.
 */
#ifndef XAC_RAFTD_GROUP_H
#define XAC_RAFTD_GROUP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "raftd_entry.h"
#include "raftd_net_format.h"

#define XAC_MEMBERS_NAME "xac.members"
#define XAC_RAFTD_DIR    "raft"
#define XAC_RAFTD_LOCK   "lock"

/* Three or five make sense; one is for trying. */
#define RAFTD_MEMBERS_MAX 9

/* What Raft has a node for. */
enum raftd_role {
    RAFTD_VOTER,  /* it counts for majorities                                         */
    RAFTD_LEARNER /* it gets the log, and does not count yet                          */
};

struct raftd_member {
    uint32_t node;
    enum raftd_role role;
    char address[RAFTD_ADDRESS_BYTES];
};

struct raftd_group {
    uint8_t id[XAC_RAFTD_GROUP_BYTES];
    uint32_t node;               /* this one                                          */
    struct raftd_accepted begin; /* what is accepted before the first entry            */

    pthread_mutex_t lock; /* of the following, while a daemon runs                     */
    unsigned n;
    struct raftd_member member[RAFTD_MEMBERS_MAX]; /* numbers ascend                   */
};

/* raftd_group_address -- where a node listens; ret false: it is none of the group. */
bool raftd_group_address(struct raftd_group *g, uint32_t node,
                         char out[RAFTD_ADDRESS_BYTES]);

/* raftd_group_members -- ret how many. */
unsigned raftd_group_members(struct raftd_group *g,
                             struct raftd_member out[RAFTD_MEMBERS_MAX]);

/* raftd_group_set -- the nodes of the group are these from now on.  ret false: no group can be so (a node that is damaged may say
   anything), and nothing has changed: this node could not read its file at the next start. */
bool raftd_group_set(struct raftd_group *g, const struct raftd_member *member,
                     unsigned n);

/* raftd_group_write -- to XAC_MEMBERS_NAME.  ret 0 or errno, words noted. */
int raftd_group_write(int dirfd, const char *dir, struct raftd_group *g);

/* raftd_group_text -- what that has, with which a new node begins; ret bytes. */
#define RAFTD_GROUP_BYTES 2048
size_t raftd_group_text(struct raftd_group *g, char text[RAFTD_GROUP_BYTES]);

/*
 * raftd_group_invitation -- what `xraftd add` has printed for a node.
 *
 * in   file  its path
 * ret  0; EINVAL: the file is not so, or has no such node; errno; words noted.
 */
int raftd_group_invitation(const char *file, uint32_t node, struct raftd_group *out);

/* raftd_group_invited -- make an empty directory that node of the group: what it has comes when it is started.  ret 0; EEXIST:
   something else lies there; errno; words noted. */
int raftd_group_invited(int dirfd, const char *dir, struct raftd_group *g);

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
                       int (*raft)(int dirfd, const char *dir, struct raftd_group *g));

/* raftd_group_join -- make a copy of the first member another node.  ret 0; EINVAL: there is no such node; EBUSY: the member
   has run before it was copied; as xac_member_create(), words noted. */
int raftd_group_join(int dirfd, const char *dir, uint32_t node);

/* raftd_group_remembers -- (5)?  ret 0; XAC_EDAMAGED; errno; words noted. */
int raftd_group_remembers(int dirfd, const char *dir, uint32_t node);

/* raftd_group_bind -- (6).  Raft's files of a node that has never been started, or only by a version that did not note that,
   become those of this one.  The caller has the lock.  ret 0; XAC_EDAMAGED: they are another node's; errno; words noted. */
int raftd_group_bind(int dirfd, const char *dir, const struct raftd_group *g);

/* raftd_lock -- this process is the daemon of the directory; until the descriptor is closed.  ret 0; XAC_ELIVE; errno;
   words noted. */
int raftd_lock(int dirfd, const char *dir, int *fdp);

#endif /* XAC_RAFTD_GROUP_H */
