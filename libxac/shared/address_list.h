/* SPDX-License-Identifier: MIT */
/*
 * address_list.h -- the file xac.addresses (doc/formats.md), as one process has read it.
 *
 * WHAT      Reads the lines that were appended since it read last; finds the line of a file, and
 *           addresses that no file has; appends a line; removes those of a file.
 * NOT HERE  Which addresses a file gets (address.h).
 * OWNER     struct xac_address_list belongs to the caller; all zero means that nothing has been
 *           read.
 * LOCK      The caller holds the lock of the files: one process at a time reads or appends.
 *
 * INVARIANTS
 *   (1) While the file is short, and when lines go, it is replaced as a whole; else it grows by whole lines.  An
 *       incomplete line that a crash leaves at the end does not count, and is cut off before
 *       the next line is appended.
 *   (2) If a path has several lines, the last one counts.
 *   (3) The bytes in `text` are in the file; up to `synced` they are on disk.
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
 * Candidates for a file that has no address yet.  They are far from the addresses that the
 * kernel chooses, so that they are probably free in other programs, too.  They are divided
 * into slots; each file has the room of a slot at least.
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
 * ret  0, also if there is no file; XAC_EVERSION; XAC_EDAMAGED if lines follow one that is
 *      incomplete; EFBIG; ENOMEM; errno.  The list may be used and read again in any case.
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
 * Only the nearest file before them is asked for its present length, because the others end
 * before that one begins.
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

/*
 * xac_address_list_remove -- replace the file by one without the lines of a path; the file has been read to
 * its end.
 *
 * ret  0, also if there is none; or an error, and the file has the lines that it had.
 */
int xac_address_list_remove(struct xac_address_list *a, int dirfd, const char *path,
                            bool is_synced);

/* xac_address_list_sync -- bring this line to disk; ret 0 or an error. */
int xac_address_list_sync(struct xac_address_list *a, int dirfd,
                          const struct xac_address_line *line);

/* xac_address_list_free -- free the memory; afterwards nothing has been read. */
void xac_address_list_free(struct xac_address_list *a);

#endif /* XAC_ADDRESS_LIST_H */
