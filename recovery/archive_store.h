/* SPDX-License-Identifier: MIT */
/*
 * archive_store.h -- where an archive lies: a directory, or what rclone(1) reaches.
 *
 * WHAT      Lists, puts, gets and removes objects: files with plain names, all in one place.
 * NOT HERE  What they hold (archive_manifest.h).
 * OWNER     struct archive_store belongs to the caller.
 * THREADS   one.
 *
 * INVARIANTS
 *   (1) In a directory an object gets its name when it is whole and synced, and the name is synced before
 *       archive_store_put() returns.
 *   (2) An object that is there is not overwritten.
 *   (3) rclone runs without a shell, and dies with us.
 */
#ifndef XAC_ARCHIVE_STORE_H
#define XAC_ARCHIVE_STORE_H

#include <stdbool.h>
#include <stdint.h>

/* The longest name of an object. */
#define ARCHIVE_NAME_MAX 200

struct archive_store {
    const char *dest; /* as the user calls it                                         */
    int dirfd;        /* the directory; -1: rclone reaches it                         */
    int stagefd;      /* what is to be put is made there; -1: nothing is              */
    char *stage;      /* its path                                                     */
    const _Atomic bool *stop; /* set by a signal: rclone is to end; NULL: never       */
};

/* archive_store_is_remote -- is it "remote:path", and no directory?  As rclone has it: a colon comes before
   the first slash. */
bool archive_store_is_remote(const char *dest);

/* archive_store_open -- ret 0, or errno with words.  Close it in any case. */
int archive_store_open(struct archive_store *s, const char *dest);
void archive_store_close(struct archive_store *s);

/*
 * archive_store_stage -- make the place where objects are made before they are put, empty.
 *
 * It lies in the directory, so that putting is renaming; for rclone in `local`.
 * in   name  of it, the caller's own
 */
int archive_store_stage(struct archive_store *s, int localfd, const char *local,
                        const char *name);

/* archive_store_list -- call fn for each object; ret 0, or what fn returned, or errno with words. */
int archive_store_list(struct archive_store *s, int (*fn)(void *arg, const char *name),
                       void *arg);

/*
 * archive_store_put -- a synced file of the stage becomes an object.
 *
 * ret  0, and the file may be gone; EEXIST: there is such an object (2); errno with words.
 */
int archive_store_put(struct archive_store *s, const char *from, const char *name);

/* archive_store_get -- write the bytes of an object to an empty file; ret 0; ENOENT; errno, with words. */
int archive_store_get(struct archive_store *s, const char *name, int out);

/* archive_store_remove -- ret 0, also if it is not there; errno with words. */
int archive_store_remove(struct archive_store *s, const char *name);

#endif /* XAC_ARCHIVE_STORE_H */
