/* SPDX-License-Identifier: MIT */
/*
 * ckpt_steps.h -- one checkpoint, from its begin to its end, in steps.
 *
 * WHAT      struct xac_ckpt is a checkpoint under way.  Each call does the next step of it.
 * NOT HERE  Which process does the steps, and when (checkpoint.h).
 * OWNER     The caller: one thread at a time.
 * LOCK      The caller holds the checkpoint lock in each function but xac_ckpt_free().
 *
 * The steps of xac_ckpt_begin() are l to n, those of xac_ckpt_step() the others:
 *   l  the master record is synced and read
 *   m  XCHECKPT_BEGIN is appended at LSN b; Cb := C; from here on the first change of
 *      every page is logged as a full image
 *   n  a bound is worked out below which nobody live looks, and a query is opened at it,
 *      so that it stays that way
 *   o  the newest version at or below the bound of every page goes to its file
 *   p  the files are synced
 *   q  XCHECKPT_END is appended and synced: b, and the redo position: b, or an earlier
 *      checkpoint's, since which all pages that a reader holds back have full images
 *   r  the master record names it
 *   s  those versions are unlinked, a few pages at a time, each time as an unlink
 *   t  their version slots are freed when the transactions that began before have ended
 *
 * INVARIANTS, between two calls
 *   (1) The query of step n, while there is one, holds the bound, and bound <= Cb.
 *   (2) In a durable environment the redo position is b, or before b.
 *   (3) The pages in `page` are all that have been copied: what step o has collected has been
 *       written.  The first n_unlinked of them have been unlinked.
 *   (4) Step p comes when each version slot has been looked at.
 */
#ifndef XAC_CKPT_STEPS_H
#define XAC_CKPT_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/ckpt_files.h"
#include "checkpoint/ckpt_run.h"
#include "checkpoint/ckpt_shipped.h"
#include "checkpoint/pagesums.h"
#include "log/master.h"

struct xac_env;
struct xac_page;

/* The next call of xac_ckpt_step() does these steps. */
enum xac_ckpt_phase {
    XAC_CKPT_COPY,   /* o, by many calls */
    XAC_CKPT_SYNC,   /* p                */
    XAC_CKPT_END,    /* q, r             */
    XAC_CKPT_UNLINK, /* s, by many calls */
    XAC_CKPT_SETTLE, /* t, by many calls */
    XAC_CKPT_DONE
};

/* One checkpoint under way.  It starts as zeros, but for env, is_final, and query, which is MAX. */
struct xac_ckpt {
    struct xac_env *env;
    bool is_final;
    struct xac_ckpt_shipped *shipped; /* NULL: not of a standby                       */
    enum xac_ckpt_phase phase;
    uint64_t epoch;
    struct xac_master_slot master;
    uint64_t begin_lsn;    /* b                                                   */
    uint64_t begin_commit; /* Cb                                                  */
    uint64_t data_serial;  /* data files below are of the log before b            */
    uint64_t redo_lsn;     /* b, or less if a page stays out of its file          */
    uint64_t bound;
    uint64_t query; /* slot of the query that holds the bound, or MAX      */
    struct xac_ckpt_run run;
    uint64_t n_vslots;      /* to be looked at: those there were, or had versions  */
    uint64_t next_vslot;    /* COPY: number of the next one, from 1                */
    struct xac_page **page; /* pages copied to their files                         */
    size_t n_pages, pages_size;
    size_t n_unlinked;    /* UNLINK                                              */
    uint64_t settle_goal; /* SETTLE: of xac_gc_settle                         */
    int fd;               /* COPY: of the file fd_file, unless that is 0         */
    uint32_t fd_file;
    uint32_t n_fd_writes;     /* since it was looked at                              */
    bool keeps_sums;          /* XAC_OPT_PAGE_CHECKSUMS when it began                */
    bool is_dir_synced;       /* xac_pagesums_drop: no other checkpoint removes files */
    struct xac_pagesums sums; /* of the pages copied                          */
    struct xac_ckpt_files files;
};

/* xac_ckpt_begin -- steps l to n; ret 0 or an error. */
int xac_ckpt_begin(struct xac_ckpt *r);

/*
 * xac_ckpt_step -- the step that `phase` names, or a part of it.
 *
 * in   pages_max, vslots_max  in step o: copy at most so many pages, look at so many version slots;
 *                             UINT64_MAX: step t in one piece, too
 * ret  0 or an error, after which the checkpoint cannot go on.
 */
int xac_ckpt_step(struct xac_ckpt *r, uint64_t pages_max, uint64_t vslots_max);

/* xac_ckpt_unpin -- end the query that holds the bound, if it is still there. */
void xac_ckpt_unpin(struct xac_ckpt *r);

/* xac_ckpt_free -- free the memory.  The query has ended, or is somebody else's by now. */
void xac_ckpt_free(struct xac_ckpt *r);

#endif /* XAC_CKPT_STEPS_H */
