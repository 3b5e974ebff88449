/* SPDX-License-Identifier: MIT */
/*
 * fileindex_paths.h -- paths of any length as fixed-size keys of a B+-tree.
 *
 * A key has 127 bytes of text, filled up with zero bytes, and one byte that says what the
 * entry is.  No path holds a zero byte, so keys are in the order of the paths.
 *
 *   /short/path                            ENTRY  the record of a path of up to 127 bytes
 *   /first/127/bytes/of/a/longer/pa        LINK   `group` of all longer paths that begin so
 *   \0 <group: 8 bytes> th/and/so/on       ENTRY  what follows, 118 bytes at a time
 *   \0 <group: 8 bytes> first 118 bytes    LINK   ... or a group again
 *   \0 <0>                                 ENTRY  the last group number given away
 *
 * Nothing is cut off and nothing is hashed: two paths never share an entry, and a walk
 * that follows each link where it meets it sees all paths in order.
 *
 * The functions may be called inside a transaction of the caller's, and fi_put() and
 * fi_remove() must be: they are several operations each.  They return codes of btree.h.
 */
#ifndef FILEINDEX_PATHS_H
#define FILEINDEX_PATHS_H

#include <stdint.h>

#include "btree.h"

#define FI_KEY_SIZE 128u

/* What is known about a path: a value of the tree. */
struct fi_record {
    uint64_t size;     /* bytes                                                       */
    int64_t mtime;     /* seconds since 1970                                          */
    int64_t ctime;     /* -                                                           */
    uint32_t mtime_ns; /* nanoseconds                                                 */
    uint32_t ctime_ns; /* -                                                           */
    uint32_t mode;     /* as in struct stat; 0 in a link                              */
    uint32_t uid;
    uint32_t gid;
    uint32_t n_links;
    uint64_t inode; /* in a link: its group                                           */
    uint64_t device;
};

/* Entries of the tree by kind, counted by fi_count_keys(). */
struct fi_keys {
    uint64_t paths;   /* records                                                      */
    uint64_t links;   /* links to groups                                              */
    uint64_t longest; /* bytes of the longest path                                    */
};

/*
 * Called for each path in ascending order.
 *
 * in   path    NUL-terminated, valid during the call only
 * in   record  likewise
 * ret  0 to go on; anything else ends the walk, which returns it
 */
typedef int fi_visit(void *arg, const char *path, const struct fi_record *record);

/* Entries that a path of this length takes at most. */
uint64_t fi_keys_of(uint64_t length);

/* Add a path or replace its record. */
int fi_put(struct btree *t, const char *path, const struct fi_record *record);

/* Take a path out.  ret ENOENT if it is not there. */
int fi_remove(struct btree *t, const char *path);

/*
 * Visit the paths that are not less than `from`, one snapshot, ascending bytewise order.
 *
 * in   from  any text; "" is the beginning
 * ret  0; what `visit` returned; ENOMEM
 */
int fi_walk(struct btree *t, const char *from, fi_visit *visit, void *arg);

/* Count what a walk over everything meets.  ret as fi_walk(). */
int fi_count_keys(struct btree *t, struct fi_keys *keys);

#endif /* FILEINDEX_PATHS_H */
