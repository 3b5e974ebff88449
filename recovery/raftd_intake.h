/* SPDX-License-Identifier: MIT */
/*
 * raftd_intake.h -- messages of other nodes on their way to libraft: which of them get there, and when.
 *
 * WHAT      Drops a snapshot for which the log here does not reach far enough.  Holds entries back while there is no room for
 *           what they bring, and answers the leader meanwhile.
 * NOT HERE  Whether there is room (raftd_raft.h).  Whether a message can be at all (raftd_message.h).
 * OWNER     struct raftd_intake belongs to the caller.
 * THREADS   Raft's.
 *
 * INVARIANTS
 *   (1) A snapshot that comes from another node reaches libraft only if the log here has what it says: an answer to it counts
 *       towards a majority.
 *   (2) What is held are messages of one node in one term, in the order in which they have come, and nothing of them has reached
 *       libraft.  So it is as if they were still on their way.
 *   (3) While messages are held, or there is no room, libraft gets in the place of each message one without entries, which ends
 *       where the first one that is held begins, and commits nothing: the leader hears of this node, and this node of the
 *       leader, and Raft's log here stays as it is.
 *   (4) At most RAFTD_INTAKE_MOST bytes are held, in RAFTD_INTAKE_ENTRIES entries, each entry once; and one message in any case.
 *       What does not fit is dropped, as if it had been lost: the leader sends it again.
 *   (5) If there is room for some entries only, those are let go that stand before the next data file, or xac.addresses:
 *       what ends there can be in a snapshot.
 *   (6) libraft's leader sends the same entries again, with each sign of life, to a node of which it has not heard since a
 *       message was lost that it has any.  So if entries come that are held already, one is let go, a few times: the answer
 *       to it has the leader wait.
 */
#ifndef XAC_RAFTD_INTAKE_H
#define XAC_RAFTD_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <raft.h>

#include "raftd_user.h"

/* The leader has 32 entries under way to a node: as many blocks of 1 MiB, the largest of a log with segments of 16 MiB. */
#define RAFTD_INTAKE_MOST ((size_t)32 << 20)

/* A leader that is not as ours may send many more, and each takes memory beside its bytes. */
#define RAFTD_INTAKE_ENTRIES 1024u

/* Is there room for entries? */
enum raftd_room {
    RAFTD_ROOM_NONE, /* not now                                                       */
    RAFTD_ROOM_PART, /* for some: then ask again (5)                                  */
    RAFTD_ROOM_ALL
};

/* A message that is held. */
struct raftd_held;

struct raftd_intake {
    const struct raftd_raft_user *user;
    enum raftd_room (*room)(void *arg);
    void *arg;
    const uint8_t *group; /* id                                                        */
    raft_io_recv_cb recv; /* libraft's                                                 */
    struct raftd_held *first, **last;
    raft_index end; /* of the last entry that is held                                  */
    size_t bytes;   /* of all of them                                                  */
    unsigned n;     /* how many entries that is                                        */
    unsigned n_let_go; /* entries, since there was room (6)                            */
};

/* raftd_intake_init -- in  group  XAC_RAFTD_GROUP_BYTES, which stay; user  of which `has` and `put` are called: a snapshot for
   which the log does not reach is put as RAFTD_ITEM_BEHIND; room  is asked before entries are let go.  `recv` is the
   caller's to set. */
void raftd_intake_init(struct raftd_intake *in, const uint8_t *group,
                       const struct raftd_raft_user *user,
                       enum raftd_room (*room)(void *arg), void *arg);

/* raftd_intake_fini -- what is held is dropped. */
void raftd_intake_fini(struct raftd_intake *in);

/* raftd_intake_take -- a message that has come; what it has is libraft's, or gone, when this returns. */
void raftd_intake_take(struct raftd_intake *in, struct raft_io *io,
                       struct raft_message *m);

/* raftd_intake_look -- let go what is held, as far as there is room; from time to time. */
void raftd_intake_look(struct raftd_intake *in, struct raft_io *io);

#endif /* XAC_RAFTD_INTAKE_H */
