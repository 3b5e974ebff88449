/* SPDX-License-Identifier: MIT */
/*
 * copy.h -- copying mapped files while others may be writing them.
 *
 * WHAT      Copies bytes from one open file to another, without the holes.  A copied page may
 *           have bytes of two moments; the log has a full image of each page that was written
 *           meanwhile (backup.h, frozen.h).
 * NOT HERE  Opening, naming, syncing.
 * THREADS   Any.
 */
#ifndef XAC_COPY_H
#define XAC_COPY_H

#include <stddef.h>
#include <stdint.h>

#define XAC_COPY_CHUNK ((size_t)1 << 20)

/* One or more copies. */
struct xac_copier {
    uint8_t *chunk; /* XAC_COPY_CHUNK bytes, to be overwritten                        */
    uint64_t bytes; /* copied so far                                                  */
    /* Called for each chunk, with the bytes copied so far; may be NULL. */
    void (*progress)(void *arg, uint64_t bytes);
    void *progress_arg;
};

/*
 * xac_copy_range -- copy bytes [at, end) of a file; fewer if the file ends before.
 *
 * ret  0 or errno; EINVAL from xac_copy_file if it is no regular file.
 */
int xac_copy_range(int in, int out, uint64_t at, uint64_t end, struct xac_copier *copier);

/* xac_copy_file -- copy a whole file onto an empty one, which gets its length. */
int xac_copy_file(int in, int out, struct xac_copier *copier);

#endif /* XAC_COPY_H */
