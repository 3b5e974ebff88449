/* SPDX-License-Identifier: MIT */
/*
 * outofcore.h -- data larger than memory, with a bound: XAC_OPT_FRAMES.
 *
 * WHAT      n pages of memory for pages of files, for all participants together.  One half are
 *           frames of a pool (frames/, Nb-GCLOCK, shared by all) with pages as they are in the
 *           files, read past the page cache.  One eighth holds versions; more versions lie in
 *           the second buffer file, on disk (version.h).  One eighth is for pages that views
 *           show, with a share for each context.  The rest is for the page table, states and
 *           sets.
 *           If the views of a context show more than its share, the page shown first is
 *           dropped.  If it was only read it becomes absent; it stays in the read set, so the
 *           next touch shows the same version again.  If it was written it is *spilled* to an
 *           unlinked file of the environment directory, and comes back from there.  A page in
 *           several aliases (view_alias.c) is one page of memory: it is dropped in all of them
 *           at once, and spilled to the file of the first.
 * NOT HERE  Which page is shown (view.h).  Without the option everything here is off: views
 *           show the page cache, and nothing is bounded.
 * LOCK      The process's user of the pool is used under `checkpoint`.  Joining, and giving
 *           back what a dead process had fixed, is done under `reap`.  Pages are fixed within
 *           one call only; the fault handler does it without a lock.
 *
 * INVARIANTS
 *   (1) For every live transaction that may read a page from its file, the pool has the bytes
 *       of the file.  A checkpoint that writes a page to its file takes it out of the pool, or
 *       puts the new bytes there, before it unlinks the version (checkpoint.h).  Until then no
 *       live transaction reads that page from the file, so none can bring old bytes back.
 *   (2) The number of a page in the pool is the place of its entry in the control region, so
 *       that pages of all files share one table.
 *   (3) Every page that the views of a context show is in its ring, once or more often.
 *   (4) A page that is spilled in a view has memory in an alias, or its newest bytes are in the
 *       file of the first view that shows it.
 */
#ifndef XAC_OUTOFCORE_H
#define XAC_OUTOFCORE_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/env_state.h"

struct xac_stats;
struct xac_view;

/* Fewest frames that may be asked for. */
#define XAC_OUTOFCORE_LEAST 256

/* Fewest pages that a context may show, so that one instruction can have all its pages. */
#define XAC_OUTOFCORE_SHOWN_LEAST 16

/* Places for pages that a context reads: valid until the next use of the same place. */
enum xac_outofcore_place {
    XAC_PLACE_SHOWN = 0,   /* what a page shows, or showed                            */
    XAC_PLACE_WORKING = 1, /* a working copy that is spilled                          */
    XAC_PLACE_SOURCES = 2, /* txn.c: sources of copies, from here on           */
    XAC_PLACES = 6
};

/* The pages that a context shows, and its places. */
struct xac_outofcore_ctx {
    struct xac_frames_user *user; /* NULL: none was free, reads go past the pool      */
    pid_t user_pid;               /* as in struct xac_outofcore                       */
    uint8_t *places;              /* XAC_PLACES pages                                 */
    uint64_t *ring;      /* ids of pages, in the order in which they were shown       */
    uint64_t size;       /* of the ring, a power of two                               */
    uint64_t first, end; /* numbers of those in it; taken modulo size                 */
    uint64_t limit;      /* pages that may be shown at a time                         */
};

/* xac_outofcore_is_on -- has the environment a bound? */
XAC_SIGSAFE static inline bool
xac_outofcore_is_on(const struct xac_env *env)
{
    return env->ctl->outofcore.n_frames != 0;
}

/* ---- In and out; gate held ---------------------------------------------------------- */

/* xac_outofcore_create -- make the pool of a new region, if the option says so.  ret 0 or an
   error. */
int xac_outofcore_create(struct xac_env *env, const char *region_path);

/* xac_outofcore_attach -- map the pool of an existing region; detach.  ret 0 or an error. */
int xac_outofcore_attach(struct xac_env *env, const char *region_path);
void xac_outofcore_detach(struct xac_env *env);

/* xac_outofcore_join -- take part, after xac_registry_join; ret 0 or an error. */
int xac_outofcore_join(struct xac_env *env);

/* xac_outofcore_remove -- delete the pool's file of a region; a missing one is fine. */
void xac_outofcore_remove(int dirfd, const char *region_path);

/* xac_outofcore_reap -- give back what a dead participant's process had fixed; reap held. */
void xac_outofcore_reap(struct xac_env *env, uint32_t participant);

/* xac_outofcore_open, close -- a context's part.  ret 0 or an error. */
int xac_outofcore_open(struct xac_env *env, struct xac_ctx *ctx);
void xac_outofcore_close(struct xac_ctx *ctx);

/* xac_outofcore_add_file -- pages of a registered file, open as fd, can be read from now on.
   ret 0 or an error. */
int xac_outofcore_add_file(struct xac_env *env, uint32_t file, int fd);

/* ---- Pages of files ------------------------------------------------------------------- */

/*
 * xac_outofcore_page -- a page as it is in its file, in one of the context's places.
 *
 * The caller's transaction is live, and reads this page from the file (invariant 1).
 * ret  NULL with errno.
 */
XAC_SIGSAFE const uint8_t *xac_outofcore_page(struct xac_ctx *ctx, uint32_t file,
                                              uint64_t page_no, int place);

/* xac_outofcore_written -- the file has these bytes of a page now; checkpoint held.  ret 0 or an
   error: the version must not be unlinked. */
int xac_outofcore_written(struct xac_env *env, const struct xac_page *page,
                          const uint8_t *bytes);

/* ---- Versions -------------------------------------------------------------------------- */

/* xac_outofcore_versions -- most version slots of the first buffer file; 0: no bound. */
static inline uint64_t
xac_outofcore_versions(const struct xac_env *env)
{
    return env->ctl->outofcore.n_frames / 8;
}

/* xac_outofcore_uncache -- a file has been synced: tell the page cache to forget it. */
XAC_SIGSAFE void xac_outofcore_uncache(const struct xac_env *env, int fd);

/* ---- Pages that views show ------------------------------------------------------------- */

/* xac_outofcore_begin -- an outermost transaction begins: compute the context's share. */
void xac_outofcore_begin(struct xac_ctx *ctx);

/* xac_outofcore_shown -- a page has just got memory; others may be dropped for it.  ret 0 or
   errno. */
XAC_SIGSAFE int xac_outofcore_shown(struct xac_view *view, uint64_t page_no);

/* xac_outofcore_back -- bring a spilled page back, dirty and writable.  ret 0 or errno. */
XAC_SIGSAFE int xac_outofcore_back(struct xac_view *view, uint64_t page_no);

/* xac_outofcore_spilled -- the bytes of a page that is spilled, here or in an alias, in
   XAC_PLACE_WORKING; NULL with errno. */
XAC_SIGSAFE const uint8_t *xac_outofcore_spilled(struct xac_view *view, uint64_t page_no);

/* xac_outofcore_spill_again -- have a page that is spilled, here or in an alias, hold these bytes.  ret 0 or
   errno. */
int xac_outofcore_spill_again(const struct xac_view *view, uint64_t page_no,
                              const uint8_t *bytes);

/* xac_outofcore_end -- the transaction is over: nothing is spilled, and unless pages stay
   readable, nothing shown. */
void xac_outofcore_end(struct xac_ctx *ctx);

/* xac_outofcore_drop_file -- close the temporary file of a view, if it has one. */
void xac_outofcore_drop_file(struct xac_view *view);

/* ---- For xStats() ---------------------------------------------------------------------- */

void xac_outofcore_stats(const struct xac_env *env, struct xac_stats *out);

#endif /* XAC_OUTOFCORE_H */
