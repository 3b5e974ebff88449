/* SPDX-License-Identifier: MIT */
/*
 * raftd_files.h -- the data files that a node has, so that one that is lost while its daemon is down is noticed.
 *
 * WHAT      Keeps a list of the data files and their lengths, XAC_NODE_FILES_NAME (doc/formats.md), while the node is a standby, and
 *           compares when its daemon starts.  Redo would make a file that is missing anew, of zeros but for what the log has: as a
 *           backup may lack a file that is younger.
 * NOT HERE  Bytes that have changed: checksums of pages tell (checkpoint/pagesums.h).
 * OWNER     struct raftd_files belongs to the caller; all zero: nothing has been read.
 * THREADS   one.
 *
 * INVARIANTS
 *   (1) A file in the list was there, as long as that, and on disk, after the node had begun to be a standby; the library never makes one
 *       shorter there.  A file that came, or grew, since is not in the list as it is; a power cut may take that back.
 *   (2) What the log has forgotten is not in the list.
 *   (3) While the node leads there is no list: its programs may remove a file that they have unmapped.
 */
#ifndef XAC_RAFTD_FILES_H
#define XAC_RAFTD_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XAC_NODE_FILES_NAME "xac.node-files"

struct xac_standby;

struct raftd_file {
    char *path; /* in the directory                                                    */
    uint64_t length;
};

struct raftd_files {
    struct raftd_file *file; /* by path, each once                                     */
    size_t n, room;
    uint64_t changes; /* of xac_standby_file_changes(), as noted last; 0: not yet      */
};

/* raftd_files_check -- read the list, if there is one: are all of them there?  ret 0; XAC_EREPLACED: one is missing; XAC_EDAMAGED:
   one is too short, or the list is not so; errno; words noted. */
int raftd_files_check(struct raftd_files *f, int dirfd, const char *dir);

/* raftd_files_note -- write the list, if something has changed in which files there are.  in  is_whole  in any case: lengths may
   have changed.  ret 0 or errno, words noted. */
int raftd_files_note(struct raftd_files *f, int dirfd, const struct xac_standby *s,
                     bool is_whole);

/* raftd_files_drop -- there is none (3); ret 0 or errno, words noted. */
int raftd_files_drop(struct raftd_files *f, int dirfd);

void raftd_files_free(struct raftd_files *f);

#endif /* XAC_RAFTD_FILES_H */
