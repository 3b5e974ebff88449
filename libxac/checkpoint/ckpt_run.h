/* SPDX-License-Identifier: MIT */
/*
 * ckpt_run.h -- writing pages to their files in the order of the files, neighbours by one write.
 *
 * WHAT      A call for each page costs more than its copy (the file system walks over all
 *           blocks of a large folio each time).  So a checkpoint of an environment that is not
 *           durable takes version slots in the order of their pages, and writes neighbours at once.
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

struct xac_ckpt_run {
    uint64_t *
        order; /* version slots by their pages; NULL: by their numbers                  */
    uint8_t *bytes; /* room for `most` pages                                          */
    uint32_t most;  /* XAC_CKPT_RUN_MAX, or 1                                         */
    uint32_t file;
    uint32_t n;
    uint64_t first;
    struct xac_page *page[XAC_CKPT_RUN_MAX]; /* the first n                            */
};

/*
 * xac_ckpt_run_init, fini -- an empty run; if the environment is not durable, with an order of
 * the version slots that hold versions now.
 *
 * in, out  n_vslotsp  number of version slots; number of those to look at
 * ret      0 or ENOMEM; fini in both cases.
 */
int xac_ckpt_run_init(struct xac_ckpt_run *run, const struct xac_env *env,
                      uint64_t *n_vslotsp);
void xac_ckpt_run_fini(struct xac_ckpt_run *run);

/* xac_ckpt_run_vslot -- number i, from 1, of those to be looked at. */
static inline uint64_t
xac_ckpt_run_vslot(const struct xac_ckpt_run *run, uint64_t i)
{
    return run->order != NULL ? run->order[i - 1] : i;
}

/* xac_ckpt_run_takes -- can the page be added: is it the next neighbour, or the first? */
bool xac_ckpt_run_takes(const struct xac_ckpt_run *run, uint64_t page_id);

/* xac_ckpt_run_add -- a page that it takes; bytes are copied. */
void xac_ckpt_run_add(struct xac_ckpt_run *run, struct xac_page *page, uint64_t page_id,
                      const uint8_t *bytes, uint64_t page_size);

#endif /* XAC_CKPT_RUN_H */
