/* SPDX-License-Identifier: MIT */
/*
 * recover_scan.h -- reading the log of a stopped environment from its segments.
 *
 * WHAT      Hides segment borders, tells valid blocks from others and says in words and
 *           with file and offset why a place holds no block.
 * NOT HERE  What the records mean (recover_redo), what to do about damage (recover).
 * LOCK      The caller holds the gate.  Nothing here writes.
 */
#ifndef XAC_RECOVER_SCAN_H
#define XAC_RECOVER_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rawfile.h"
#include "log/block.h"
#include "log/log_format.h"
#include "log/recover_ahead.h"

/* A place in a file of the environment, and what is the matter there. */
struct xac_place {
    char file[64];
    uint64_t offset; /* bytes, within the file                                        */
    char why[128];
    bool is_missing; /* the file                                                      */
};

enum xac_segment_state {
    XAC_SEGMENT_UNREAD = 0,
    XAC_SEGMENT_GOOD = 1,
    XAC_SEGMENT_BAD = 2 /* its header is not right                                    */
};

struct xac_scan_segment {
    uint64_t number;
    enum xac_segment_state state;
    uint64_t
        other_bytes; /* BAD only because it is of this size; else 0                   */
};

/*
 * Files whose names begin as those of segments, and that are none: misnamed, no regular file,
 * shorter than a header, of a number beyond all positions, or far ahead of the log and without
 * a header of its.  They are left alone.
 */
struct xac_scan_strays {
    uint64_t n;
    char first[64];     /* name of one of them                                        */
    bool is_in_the_way; /* one has a number that the log would come to soon           */
};

struct xac_scan {
    int dirfd;
    struct xac_master_slot master;
    struct xac_log_id id;
    struct xac_scan_segment *segment; /* by number, from the first one needed         */
    size_t n_segments;
    uint64_t max_number; /* of all segments there are, 0 if none                  */
    struct xac_scan_strays strays;
    struct xac_rawfile file; /* segment that was read last                            */
    uint64_t file_number;    /* its number, 0 if none                                 */
    uint8_t *window;         /* bytes of the log from window_lsn                      */
    size_t window_bytes;     /* size of the window, a power of two                    */
    uint64_t window_lsn;     /* UINT64_MAX if nothing has been read                   */
    size_t window_got;       /* bytes that there are                                  */
    uint8_t *spare;          /* another one, being filled with what comes behind, ... */
    uint64_t spare_lsn;      /* ... from here; UINT64_MAX if none is                  */
    struct xac_ahead ahead;
    bool trusts_bad; /* segments with a wrong header are read, too            */
    uint8_t *block;  /* the block read last                                   */
    size_t block_size;
    void (*progress)(void *arg, uint64_t bytes); /* called for bytes read; may be NULL */
    void *progress_arg;
};

/* What was found behind the end of the log. */
struct xac_scan_found {
    uint64_t durable; /* largest `durable` of all headers                           */
    uint64_t blocks;  /* whole blocks                                               */
    uint64_t end_lsn; /* behind the last header's block, or where the search began  */
    uint32_t newer;   /* largest generation newer than the log's own, 0 if none     */
    bool any_bad;     /* a segment there has a wrong header or size                 */
};

/*
 * xac_scan_open -- list the segments.
 *
 * ret  0 or errno; close it in any case.
 */
int xac_scan_open(struct xac_scan *s, int dirfd, const struct xac_master_slot *master);
void xac_scan_close(struct xac_scan *s);

/* xac_scan_sync -- sync every segment needed, every data file, and their names; ret 0 or
   errno. */
int xac_scan_sync(struct xac_scan *s);

/*
 * xac_scan_block -- the block at lsn.
 *
 * out  blkp   the block, valid until the next call; NULL if there is no valid one
 * out  place  where it stands, and why it is none
 * ret  0; XAC_EFOREIGN, XAC_EVERSION, XAC_EPAGESIZE if a segment is of another
 *      environment; errno.
 */
int xac_scan_block(struct xac_scan *s, uint64_t lsn, const struct xac_block **blkp,
                   struct xac_place *place);

/*
 * xac_scan_search -- look for blocks from lsn to the end of all segments.
 *
 * A header with a right check counts for `durable` even if its block is not whole: the
 * number was true when the header was built.  Segments with a wrong header of their own are
 * searched like others, for blocks prove themselves.
 * ret  as xac_scan_block.
 */
int xac_scan_search(struct xac_scan *s, uint64_t lsn, struct xac_scan_found *out);

/*
 * xac_scan_next -- the first block header of this environment, of whatever generation, at
 * or behind lsn.
 *
 * out  headp  a copy of it, with its place in `lsn`; length 0 if there is none
 * ret  as xac_scan_block.
 */
int xac_scan_next(struct xac_scan *s, uint64_t lsn, struct xac_block *headp);

/*
 * xac_scan_other -- the next segment from *ip on that is right but for its size, which is not
 * the one this scan is for and none of those listed before it.
 *
 * out  ip   its place in the list; n_segments: there is none
 * ret  as xac_scan_block.
 */
int xac_scan_other(struct xac_scan *s, size_t *ip);

/* xac_scan_limit -- first LSN behind all segments. */
uint64_t xac_scan_limit(const struct xac_scan *s);

/* xac_scan_is_lost -- the master record knows of a segment, and there is none. */
bool xac_scan_is_lost(const struct xac_scan *s);

/* xac_scan_lost -- put in words that a segment is missing; ret XAC_EDAMAGED. */
int xac_scan_lost(const char *name);

/*
 * xac_scan_names -- call fn for each name in the directory that begins with prefix.
 *
 * ret  0, what fn returned if that was not 0, or errno.
 */
int xac_scan_names(int dirfd, const char *prefix, int (*fn)(void *arg, const char *name),
                   void *arg);

#endif /* XAC_RECOVER_SCAN_H */
