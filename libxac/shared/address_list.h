/* SPDX-License-Identifier: MIT */
/*
 * address_list.h -- the file xac.addresses (doc/formats.md), as one process has read it.
 *
 * WHAT      Reads what has been appended since it read last; finds a file's line, and the
 *           addresses that no file has; appends a line.
 * NOT HERE  Which addresses a file gets (address.h).
 * OWNER     struct xac_address_list belongs to the caller; all zero is one that has read
 *           nothing.
 * LOCK      The caller holds the lock of the files: one process at a time reads or appends.
 *
 * INVARIANTS
 *   (1) The file is replaced as a whole while it is short, and grows by whole lines then.  What a crash leaves of a line
 *       at its end is no line, and is cut before the next one is appended.
 *   (2) If a path has several lines, the last one counts.
 *   (3) What is in `text` is in the file; up to `synced` it is on disk.
 */
#ifndef XAC_ADDRESS_LIST_H
#define XAC_ADDRESS_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/identity.h"
#include "base/names.h"

/* The longest file: some millions of lines.  A process that maps files has it in memory. */
#define XAC_ADDRESSES_BYTES_MAX ((size_t)256 << 20)

/*
 * Candidates for a file that has no address yet: far from where the kernel puts things, so
 * that other programs are likely to have them free, too.  They come in slots, which are the
 * room that each file has at least.
 */
#define XAC_CANDIDATE_FIRST UINT64_C(0x200000000000)
#define XAC_CANDIDATE_END   UINT64_C(0x600000000000)
#define XAC_CANDIDATE_SLOT  (UINT64_C(16) << 30)
#define XAC_CANDIDATE_SLOTS \
 ((XAC_CANDIDATE_END - XAC_CANDIDATE_FIRST) / XAC_CANDIDATE_SLOT)

struct xac_address_line {
    uint64_t address;
    uint32_t path; /* where it begins in the text; it ends with a NUL                 */
    uint32_t path_len;
};

struct xac_address_list {
    struct xac_identity who; /* of the file that was read                             */
    uint64_t file_bytes;     /* its length then; 0: there is none                     */
    char *text;              /* its whole lines, each with a NUL for the newline      */
    size_t used, room;
    size_t synced;
    struct xac_address_line *line;
    uint32_t n_lines, lines_room;
    uint32_t *bucket; /* by path: number of a line, from 1; 0 none                    */
    uint32_t n_buckets;
    uint32_t slot[XAC_CANDIDATE_SLOTS]; /* a line whose address lies there, likewise  */
};

/*
 * xac_address_list_read -- read what is new.
 *
 * ret  0, also if there is no file; XAC_EVERSION; XAC_EDAMAGED if there are lines behind one
 *      that is none; EFBIG; ENOMEM; errno.  The list may be used and read again in any case.
 */
int xac_address_list_read(struct xac_address_list *a, int dirfd);

/* xac_address_list_find -- the line of a path; NULL: there is none. */
const struct xac_address_line *xac_address_list_find(const struct xac_address_list *a,
                                                     const char *path);

/* xac_address_list_path -- of a line, as stored. */
const char *xac_address_list_path(const struct xac_address_list *a,
                                  const struct xac_address_line *line);

/*
 * xac_address_list_has -- do some of these candidates, which begin with a slot, belong to a
 * file already?
 *
 * Of the files before them only the nearest is asked how long it is now: the others end before
 * that one begins.
 */
bool xac_address_list_has(const struct xac_address_list *a, int dirfd, uint64_t from,
                          uint64_t end);

/*
 * xac_address_list_add -- append a line; the file has been read to its end.
 *
 * in   is_synced  it is on disk before this returns
 * ret  0 or an error, and the file has the lines that it had.
 */
int xac_address_list_add(struct xac_address_list *a, int dirfd, const char *path,
                         uint64_t address, bool is_synced);

/* xac_address_list_sync -- that line is on disk when this returns; ret 0 or an error. */
int xac_address_list_sync(struct xac_address_list *a, int dirfd,
                          const struct xac_address_line *line);

/* xac_address_list_free -- it has read nothing. */
void xac_address_list_free(struct xac_address_list *a);

#endif /* XAC_ADDRESS_LIST_H */
