/* SPDX-License-Identifier: MIT */
/*
 * ckpt_run.h -- writing pages to their files in the order of the files, neighbours by one write.
 *
 * WHAT      A call for each page costs more than its copy (the file system walks over all
 *           blocks of a large folio each time).  So a checkpoint of an environment that is not
 *           durable takes version slots in the order of their pages, and writes neighbours at once.
 *           Some thousand slots are put into order at a time, by a commit each, and these
 *           parts are merged while they are written: no commit does it all.
 * NOT HERE  Durable environments: there each page has a write of its own, so that at most one
 *           page is torn (XAC_OPT_FULL_IMAGES).
 * OWNER     The checkpoint, under its lock.
 *
 * INVARIANT
 *   (1) The pages that were added and not yet written are [first, first + n) of one file.
 */
#ifndef XAC_CKPT_RUN_H
#define XAC_CKPT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xac_env;
struct xac_page;

#define XAC_CKPT_RUN_MAX 16

/* A version slot and the page that it is a version of. */
struct xac_ckpt_place {
    uint64_t page_id, vslot;
};

/* Places in the order of their pages that have not been looked at. */
struct xac_ckpt_part {
    struct xac_ckpt_place *next, *end;
};

struct xac_ckpt_run {
    /* Of the version slots up to n_ordered, by parts; NULL: slots are taken by their numbers. */
    struct xac_ckpt_place *place;
    struct xac_ckpt_part *part;
    uint64_t n_parts, n_ordered, n_vslots;
    uint8_t *bytes; /* room for `most` pages                                          */
    uint32_t most;  /* XAC_CKPT_RUN_MAX, or 1                                         */
    uint32_t file;
    uint32_t n;
    uint64_t first;
    struct xac_page *page[XAC_CKPT_RUN_MAX]; /* the first n                            */
};

/* xac_ckpt_run_init, fini -- an empty run of the version slots 1 to n_vslots; ret 0 or ENOMEM; fini
   in both cases. */
int xac_ckpt_run_init(struct xac_ckpt_run *run, const struct xac_env *env,
                      uint64_t n_vslots);
void xac_ckpt_run_fini(struct xac_ckpt_run *run);

/* xac_ckpt_run_order -- put some more slots into order; true: all were, nothing has been done. */
bool xac_ckpt_run_order(struct xac_ckpt_run *run, const struct xac_env *env);

/* xac_ckpt_run_vslot -- the next one to be looked at, once all are in order, which is the i-th from
   1; 0: no other one holds a version. */
uint64_t xac_ckpt_run_vslot(struct xac_ckpt_run *run, uint64_t i);

/* xac_ckpt_run_takes -- can the page be added: is it the next neighbour, or the first? */
bool xac_ckpt_run_takes(const struct xac_ckpt_run *run, uint64_t page_id);

/* xac_ckpt_run_add -- a page that it takes; bytes are copied. */
void xac_ckpt_run_add(struct xac_ckpt_run *run, struct xac_page *page, uint64_t page_id,
                      const uint8_t *bytes, uint64_t page_size);

#endif /* XAC_CKPT_RUN_H */
