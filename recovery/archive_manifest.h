/* SPDX-License-Identifier: MIT */
/*
 * archive_manifest.h -- what an archive holds: objects, and the manifests that name them (doc/archive.md).
 *
 * WHAT      The list of an archive's objects in memory; writing a manifest; reading those that count.
 * NOT HERE  Where objects lie (archive_store.h), making them (archive_ship.h).
 * OWNER     struct archive belongs to the caller; it owns its strings.
 * THREADS   one.
 *
 * A manifest is text: lines of words, the last of which is the digest of those before.  A *full* one names
 * all objects there are; each later one names those that have come since the one that it follows.
 *
 * INVARIANTS
 *   (1) What no manifest names that the newest one leads to is not in the archive.
 *   (2) A manifest has the number and the SHA-256 of the one that it follows.
 *   (3) Objects stand in the order in which they were made, so pieces of log ascend.
 *   (4) Names have no character but letters, digits, and . _ - and begin with no dot.
 */
#ifndef XAC_ARCHIVE_MANIFEST_H
#define XAC_ARCHIVE_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive_store.h"
#include "log/lineage.h"

#define ARCHIVE_SHA_BYTES 32

/* What a name begins with; objects of other names are not ours. */
#define ARCHIVE_MANIFEST "manifest."
#define ARCHIVE_CLAIM    "claim."

/* Length and digests of an object. */
struct archive_sum {
    uint64_t length;
    uint64_t xxh; /* XXH3-64                                                          */
    uint8_t sha[ARCHIVE_SHA_BYTES];
};

enum archive_kind {
    ARCHIVE_LOG,    /* blocks of one generation, one behind the other                  */
    ARCHIVE_DATA,   /* data file of a large transaction                                */
    ARCHIVE_NOTE,   /* a file of the environment that is not in the log                */
    ARCHIVE_FILE,   /* a file of a backup                                              */
    ARCHIVE_BACKUP, /* a backup, whose files stand before it; no object                */
    ARCHIVE_KINDS
};

struct archive_object {
    enum archive_kind kind;
    char *name; /* owned; NULL of a backup                                            */
    char *path; /* in the environment, of a note; in the backup, of a file; else NULL  */
    struct archive_sum sum;
    uint32_t generation; /* of log, data, backup                                      */
    uint64_t start;  /* LSN: of log; of the block that names the data; redo of a backup */
    uint64_t end;    /* LSN: of log; of a backup and its files, from where it is whole */
    uint64_t serial; /* of data                                                   */
    uint64_t segment_bytes; /* of log and backups                                     */
    /* The log goes on from there; 0: log before it is missing. */
    uint32_t previous_generation;
    uint64_t previous_end;
    uint64_t time_ns; /* of the last commit in it, 0 none; of a backup                */
};

struct archive {
    uint8_t identity[16]; /* of the environment                                       */
    uint32_t page_size;   /* 0: nothing has been archived                             */
    uint64_t number;      /* of the newest manifest, 0 none                           */
    uint8_t sha[ARCHIVE_SHA_BYTES]; /* of it                                          */
    uint64_t time_ns;               /* of it                                          */
    uint64_t full_number, full_time_ns; /* of the last full one                       */
    /* Where the log goes on: behind the last piece; generation 0: nowhere. */
    struct xac_lineage_line at;
    uint64_t at_lsn;
    struct archive_object *object;
    size_t n, room;
    size_t n_named; /* by manifests                                                   */
};

void archive_free(struct archive *a);

/* archive_sum_of -- of a file of the stage or elsewhere; ret 0 or errno. */
int archive_sum_of(int fd, struct archive_sum *out);

/* archive_sum_is_same -- are they those of the same bytes? */
bool archive_sum_is_same(const struct archive_sum *a, const struct archive_sum *b);

/* archive_add -- an object behind the others; NULL: out of memory, noted.  name and path are copied. */
struct archive_object *archive_add(struct archive *a, const struct archive_object *o);

/* archive_name_ok -- can an object have this name (4)? */
bool archive_name_ok(const char *name);

/*
 * archive_write -- the text of the next manifest, malloc'ed.
 *
 * in   number   of it; it follows a->number
 * in   is_full  it names all objects; else those from n_named on
 * ret  0 or ENOMEM.
 */
int archive_write(const struct archive *a, uint64_t number, uint64_t time_ns,
                  bool is_full, char **textp, size_t *np);

/* archive_manifest_name -- of a number; archive_manifest_named -- is it the name of one? */
void archive_manifest_name(char name[ARCHIVE_NAME_MAX], uint64_t number);
bool archive_manifest_named(const char *name, uint64_t *numberp);

/*
 * archive_read -- all that the newest manifest leads to.
 *
 * in   newest  its number; 0: there is none
 * ret  0; XAC_EDAMAGED: a manifest is missing or wrong, words name it; XAC_EVERSION; others of
 *      archive_store_get().  Free *a in any case.
 */
int archive_read(struct archive *a, struct archive_store *s, uint64_t newest);

/* archive_newest -- number of the newest manifest in a store; 0 none; ret as archive_store_list(). */
int archive_newest(struct archive_store *s, uint64_t *numberp);

#endif /* XAC_ARCHIVE_MANIFEST_H */
