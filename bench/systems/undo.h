/* SPDX-License-Identifier: MIT */
/*
 * undo.h -- a store with before-images, as in RMS and Rhino (Thesis section 3.2): beside it, what
 * libxac's redo records save.
 *
 * WHAT      A file mapped shared, read-only at first.  The first store of a transaction to a page traps: the
 *           page as it is goes to a log, and the page becomes writable in its place.  A commit brings
 *           the changed pages to disk where they are, then forgets the log.  A recovery puts back
 *           the before-images of a transaction that had not committed.
 * RMS       (D. McNamee.)  The before-image is on disk before the store: the kernel may write the
 *           page at any time, so each first store waits for a sync.
 * RHINO     (Y. Saito, B. Bershad.)  The system asks before it writes a page out, so a before-image
 *           need not be on disk before that.  Linux asks nobody.  Here the images are synced
 *           once, by the commit, before the pages are.  A program that is killed loses nothing by that;
 *           a machine that fails may.  So it is a lower bound, no rival.
 * NOT HERE  Concurrency control, as in both of them: one process, one thread.
 *
 * INVARIANTS
 *   1. A record of the log counts if it has the header's epoch and its checksum is right, and so do
 *      all before it.
 *   2. RMS: a page of the file that differs from its last committed state has its before-image in
 *      the log, synced, with the header's epoch.
 *   3. The epoch becomes larger when the pages of a commit are on disk, or put back.
 */
#ifndef XBENCH_UNDO_H
#define XBENCH_UNDO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_undo {
    unsigned char *base;
    size_t size, page_bytes;
    int fd, log_fd;
    bool syncs_each; /* RMS                                                            */
    bool is_open;    /* a transaction                                                  */
    uint64_t epoch;
    uint64_t n_images; /* of the transaction                                           */
    uint64_t syncs, log_bytes, traps;
    int error; /* of the handler: the commit fails by it                               */
};

/*
 * bench_undo_open -- map `size` bytes of a file, after a recovery; the process can have one.
 *
 * in   path  the file, which is made, and filled with zeros, if it is not there; the log is path.undo
 * ret  0 or errno; nothing is open then
 */
int bench_undo_open(struct bench_undo *u, const char *path, size_t size, bool syncs_each);

/* bench_undo_begin -- from here on stores are noticed; before, they are not allowed. */
int bench_undo_begin(struct bench_undo *u);

/* bench_undo_commit -- ret 0 or errno: then recovery decides. */
int bench_undo_commit(struct bench_undo *u);

/* bench_undo_close -- ret 0 or errno. */
int bench_undo_close(struct bench_undo *u);

#endif /* XBENCH_UNDO_H */
