/* SPDX-License-Identifier: MIT */
/*
 * fileindex_walk.h -- the paths of a directory tree, sorted, and their records.
 *
 * Paths longer than the system's PATH_MAX are reached piece by piece.
 */
#ifndef FILEINDEX_WALK_H
#define FILEINDEX_WALK_H

#include <stdbool.h>
#include <stddef.h>

#include "fileindex_paths.h"

/* Texts, each allocated, in an array that grows. */
struct fi_list {
    char **paths;
    size_t n, room;
};

/* What was found under a directory. */
struct fi_tree {
    struct fi_list found;      /* the directory and everything below, bytewise order  */
    struct fi_list unreadable; /* directories that could not be listed                */
};

/* Append a copy of `length` bytes.  ret 0 or ENOMEM. */
int fi_list_add(struct fi_list *list, const char *text, size_t length);

void fi_list_free(struct fi_list *list);

/*
 * List a directory tree.  A directory that cannot be read is warned of on stderr.
 *
 * in   dir      absolute path without "/" at the end, except "/"
 * in   one_fs   do not go into other file systems
 * out  tree     to be freed with fi_tree_free() in any case
 * ret  0; errno value if `dir` itself cannot be listed; ENOMEM
 */
int fi_tree_list(const char *dir, bool one_fs, struct fi_tree *tree);

void fi_tree_free(struct fi_tree *tree);

/* Record of the file at a path, links not followed.  ret 0 or errno value. */
int fi_record_read(const char *path, struct fi_record *record);

#endif /* FILEINDEX_WALK_H */
