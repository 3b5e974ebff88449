/* SPDX-License-Identifier: MIT */
/*
 * lineage.h -- the file XAC_LINEAGE_NAME, xac.history: which generations the log has had, and of which branch.
 *
 * WHAT      A line for each generation: where it begins, where the one before ended, and its branch, 16
 *           random bytes.  Generation numbers alone do not tell logs apart: two copies of an environment
 *           that are recovered both go on with the same number.
 * NOT HERE  States of the past for queries (txn/history.h); deciding when a generation begins (recover).
 * OWNER     struct xac_lineage belongs to the caller.
 * LOCK      Writing: the gate.  Reading: none, for the file is replaced as a whole.
 * THREADS   any; not the fault handler.
 *
 * INVARIANTS
 *   (1) The line of a generation is durable before the master record of that generation is written.  A
 *       line of a newer generation than the master record's does not count.
 *   (2) A recovery keeps the branch.  In a backup, in a copy, and without a file, it draws a new one.  A
 *       standby has the lines of its source.
 *   (3) Generations ascend.  The file has at most XAC_LINEAGE_LINES lines, the last ones.
 *
 * A file that is not right counts as none: a new branch is safe, for its followers begin anew.
 */
#ifndef XAC_LINEAGE_H
#define XAC_LINEAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/log_format.h"

#define XAC_LINEAGE_NAME  "xac.history"
#define XAC_LINEAGE_LINES 1000
#define XAC_BRANCH_BYTES  16

struct xac_lineage_line {
    uint32_t generation;
    uint32_t previous;  /* generation                                                */
    uint64_t start_lsn; /* it begins here                                            */
    uint64_t end_lsn;   /* `previous` ends here: what is behind belongs to nobody    */
    uint64_t segment_bytes;
    uint8_t branch[XAC_BRANCH_BYTES];
};

struct xac_lineage {
    size_t n;
    struct xac_lineage_line line[XAC_LINEAGE_LINES];
};

/* xac_lineage_read -- in  newest  generation of the master record: later lines do not count.  ret 0, also if
   there is no file, or a wrong one: no lines; ENOMEM; errno with words. */
int xac_lineage_read(int dirfd, uint32_t newest, struct xac_lineage *out);

/*
 * xac_lineage_add -- note the generation that is about to begin, durably.
 *
 * in   line        all but the branch
 * in   new_branch  draw one; else it is that of the last line
 * ret  0, also if the disk is full: then the generation has no line; errno with words.
 */
int xac_lineage_add(int dirfd, const struct xac_lineage_line *line, bool new_branch);

/* xac_lineage_copy -- note a generation of the source that a standby is about to follow, with its
   branch; likewise durable.  ret 0 or errno with words. */
int xac_lineage_copy(int dirfd, const struct xac_lineage_line *line);

/* xac_lineage_is_sound -- can a log have had such a generation? */
bool xac_lineage_is_sound(const struct xac_lineage_line *l);

/* xac_lineage_of -- the line of a generation; xac_lineage_behind -- the line of the generation that
   follows it.  NULL: there is none. */
const struct xac_lineage_line *xac_lineage_of(const struct xac_lineage *l,
                                              uint32_t generation);
const struct xac_lineage_line *xac_lineage_behind(const struct xac_lineage *l,
                                                  uint32_t generation);

/*
 * xac_lineage_fits -- can a log that ends at an LSN in a generation go on with the log of this lineage?
 *
 * in   last      of that log: its generation, and the branch
 * in   end_lsn   of that log
 * out  fork_lsn  if it does not fit: where the two part, as far as that is known; 0: not at all
 */
bool xac_lineage_fits(const struct xac_lineage *l, const struct xac_lineage_line *last,
                      uint64_t end_lsn, uint64_t *fork_lsn);

/*
 * xac_lineage_fork -- where another log has parted from this one.
 *
 * in   theirs, last, end_lsn  lineage of that log, its last generation, and where it ends
 * out  behind    the generation of this log behind the last one that both have: the fork is its end_lsn.  Generation 0:
 *                this log has none
 * out  theirs_end  where the other log ends the last generation that both have
 * ret  false: they have none in common, as far as both lineages tell.
 */
bool xac_lineage_fork(const struct xac_lineage *l, const struct xac_lineage *theirs,
                      uint32_t last, uint64_t end_lsn, struct xac_lineage_line *behind,
                      uint64_t *theirs_end);

#endif /* XAC_LINEAGE_H */
