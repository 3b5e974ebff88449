/* SPDX-License-Identifier: MIT */
/*
 * pagesums_check.h -- comparing the mapped files with the checksums of their pages
 * (pagesums.h), to find damage to the medium.
 *
 * WHAT      Reads all xac-sums files and, past the page cache, the pages that have entries.
 * NOT HERE  Which pages recovery would write: the caller knows.
 * LOCK      The caller holds the gate.  Nothing here writes.
 */
#ifndef XAC_PAGESUMS_CHECK_H
#define XAC_PAGESUMS_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "log/log_format.h"

enum xac_pagesums_damage_kind {
    XAC_PAGESUMS_PAGE,   /* the page has another checksum                             */
    XAC_PAGESUMS_UNREAD, /* the page cannot be read: found is errno                   */
    XAC_PAGESUMS_HEADER  /* of the file with checksums: its header, nothing is checked*/
};

struct xac_pagesums_damage {
    enum xac_pagesums_damage_kind kind;
    const char *file; /* path; relative ones from the environment's directory         */
    uint64_t page;
    uint64_t offset; /* bytes, within the file                                        */
    uint64_t expected, found;
};

struct xac_pagesums_check {
    /* Called for each damage; *d is valid only during the call. */
    void (*damage)(void *arg, const struct xac_pagesums_damage *d);
    void *arg;

    /* The outcome. */
    uint64_t files;   /* compared                                                     */
    uint64_t skipped; /* files that are gone, or another one has their name           */
    uint64_t pages;   /* compared                                                     */
    uint64_t lost; /* not compared: the entry is not valid, as a power cut can leave it */
    uint64_t damages;
};

/* Would recovery write that page?  For xac_pagesums_verify. */
typedef bool (*xac_pagesums_redone_fn)(void *arg, uint64_t inode, uint64_t page);

/*
 * xac_pagesums_verify -- compare all files of which checksums are kept.
 *
 * in   end_lsn  end of the log; entries from behind it belong to another copy of the
 *               environment, and are ignored
 * ret  0, damaged or not; ENOMEM; errno.
 */
int xac_pagesums_verify(int dirfd, const struct xac_master_slot *master, uint64_t end_lsn,
                        xac_pagesums_redone_fn is_redone, void *redone_arg,
                        struct xac_pagesums_check *c);

#endif /* XAC_PAGESUMS_CHECK_H */
