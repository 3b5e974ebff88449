/* SPDX-License-Identifier: MIT */
/*
 * changed.h -- which pages committed transactions have changed, as the log says.
 *
 * WHAT      Reads the log of the present generation between two positions, and sets a bit for
 *           each page that a transaction there has changed.
 * NOT HERE  Whether the log may be asked for a file at all (backup_files).
 * OWNER     struct xac_changed belongs to the caller; starts as zeros.
 * LOCK      None.  The caller's log_pin keeps segments and data files that are still there.
 *
 * INVARIANTS
 *   (1) If is_known, every page that has a record in a block of a transaction from `from` on and
 *       before `to` has its bit set.
 */
#ifndef XAC_CHANGED_H
#define XAC_CHANGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xac_master_slot;

/* The pages of one file. */
struct xac_changed_file {
    uint64_t *bits;
    size_t words;
};

struct xac_changed {
    struct xac_changed_file *file; /* by id                                           */
    size_t n_files;
    bool is_check; /* only to see whether the log is right: no bits                  */
    bool is_known;
    char why[256];       /* if it is not                                             */
    uint64_t read_bytes; /* of the log                                                */
};

/*
 * xac_changed_read -- read the log.
 *
 * in   logfd     directory of the log
 * in   master    of the log; blocks from `from` on are durable up to `to`
 * in   from, to  where blocks begin
 * ret  0, known or not; ENOMEM; errno.  Free it in any case.
 */
int xac_changed_read(struct xac_changed *c, int logfd,
                     const struct xac_master_slot *master, uint64_t from, uint64_t to);

/* xac_changed_has -- has a page among [page, page + n) changed? */
bool xac_changed_has(const struct xac_changed *c, uint32_t file, uint64_t page,
                     uint64_t n);

void xac_changed_free(struct xac_changed *c);

#endif /* XAC_CHANGED_H */
