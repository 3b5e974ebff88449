/* SPDX-License-Identifier: MIT */
/*
 * raftd_disk.h -- does the disk take what Raft writes?
 *
 * WHAT      Is the raft_io of libraft, and says when Raft can write no more here: libraft tries again and again, without a
 *           word, and a node that leads would stand in the way of those that have room.
 * NOT HERE  What ends then (raftd_raft.h).  The environment's own files (raftd_place.h).
 * OWNER     struct raftd_disk belongs to the caller, and stays until the loop has ended.
 * THREADS   the loop's.  A thread of libuv tries whether there is room.
 *
 * INVARIANTS
 *   (1) A node whose term or vote cannot be written ends at once, as if it were killed: libraft would go on with them, and after
 *       its next start the node would not know of them, and could vote twice in one term.
 *   (2) A disk that is only slow does not end a node: there is no room when libraft has written nothing for a time though there
 *       was something to write, and then a file as large as a segment of its log cannot be made.
 */
#ifndef XAC_RAFTD_DISK_H
#define XAC_RAFTD_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include <raft.h>
#include <raft/uv.h>

/* libraft makes segments of that size. */
#define RAFTD_DISK_SEGMENT_BYTES (8u << 20)

/* Nothing is written for so long before it is tried whether there is room. */
#define RAFTD_DISK_PATIENCE_MS 2000

struct raftd_disk {
    struct raft_io io; /* the first field                                              */
    uv_loop_t *loop;
    const char *dir;
    /* Told once, in the loop's thread: rc, with its words noted. */
    void (*failed)(void *arg, int rc);
    void *arg;
    /* libraft's. */
    int (*set_term)(struct raft_io *io, raft_term term);
    int (*set_vote)(struct raft_io *io, raft_id node);
    int (*append)(struct raft_io *io, struct raft_io_append *req,
                  const struct raft_entry entries[], unsigned n, raft_io_append_cb cb);
    bool has_failed; /* `failed` has been told                                        */
    unsigned n_appends; /* under way                                                   */
    bool is_in_doubt;
    uint64_t since_ms; /* nothing has been written, if is_in_doubt                     */
    uv_work_t trial;
    bool is_trying;
    int rc; /* of the trial: errno                                                     */
};

/* raftd_disk_watch -- from now on.  in  io  made by raft_uv_init(); the other fields 0.  dir  Raft's, which stays. */
void raftd_disk_watch(struct raftd_disk *d, uv_loop_t *loop, const char *dir,
                      void (*failed)(void *arg, int rc), void *arg);

/* raftd_disk_doubt -- libraft has refused an entry. */
void raftd_disk_doubt(struct raftd_disk *d);

/* raftd_disk_look -- once in each turn of the loop. */
void raftd_disk_look(struct raftd_disk *d);

#endif /* XAC_RAFTD_DISK_H */
