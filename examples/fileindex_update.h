/* SPDX-License-Identifier: MIT */
/*
 * fileindex_update.h -- make an index agree with the disk, in parallel processes.
 *
 * The sorted paths of the disk are cut into chunks.  A process takes a chunk, reads what
 * the index has in the same range of paths, in one query, compares, and writes the
 * differences in transactions of FI_BATCH paths.  Ranges do not overlap, and each process
 * starts in a part of its own, so that conflicts are few.
 */
#ifndef FILEINDEX_UPDATE_H
#define FILEINDEX_UPDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "fileindex_walk.h"

#define FI_CHUNK     512u /* paths of the disk in a chunk                              */
#define FI_BATCH     64u  /* paths changed in one transaction                          */
#define FI_PROCS_MAX 64u

struct fi_segment {
    void *base;    /* of the mapped index file                                        */
    uint64_t size; /* bytes                                                           */
};

struct fi_counts {
    uint64_t added;   /* paths that the index did not have                            */
    uint64_t changed; /* paths with another record before                             */
    uint64_t removed; /* paths that are not on the disk any more                      */
    uint64_t same;
    uint64_t failed; /* paths whose record could not be read; left as they were       */
};

/*
 * Bring the part of the index that is `dir` and below up to date.  Called by a process
 * that has the environment and the segment open and no transaction running.
 *
 * in   dir       the directory that was listed
 * in   tree      what was found there
 * in   n_procs   processes to start, 1 to FI_PROCS_MAX
 * in   progress  show how far it is on stderr, if it takes longer than 2 s
 * out  counts    what was done, also if it ended early
 * ret  0; ENOSPC (index full); ECHILD (a process died); a code of btree.h.  Batches that
 *      were committed before stay.
 */
int fi_update(const struct fi_segment *segment, const char *dir,
              const struct fi_tree *tree, unsigned n_procs, bool progress,
              struct fi_counts *counts);

#endif /* FILEINDEX_UPDATE_H */
