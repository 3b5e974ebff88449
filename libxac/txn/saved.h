/* SPDX-License-Identifier: MIT */
/*
 * saved.h -- the savepoints of a transaction: a stack of levels, and pages as they were.
 *
 * WHAT      Each savepoint that is not released is a level.  When a page is about to be stored to for the
 *           first time since the newest savepoint, an *image* of it is kept there.  Rolling back to a
 *           level restores, of each page, the oldest image in it and above it; releasing a level
 *           gives its images to the one below.  So a savepoint costs per page that is written after it.
 * NOT HERE  Which stores there are, and protecting and restoring pages (view_savepoint.c).
 * MEMORY    Private to the process.  With XAC_OPT_FRAMES the bytes of images lie in a file without a name,
 *           as those of spilled pages do.
 * OWNER     A context: ctx->saved, made by the first savepoint.  ctx->save_epoch is 0 in a transaction that
 *           has no savepoint yet, so that this costs nothing; else the number of the epoch.
 * THREADS   the one that has the context's turn, in the fault handler too; in a team (team.h) the one that has
 *           its lock.  Nobody stores to a page while its bytes are kept here.
 *
 * An *epoch* lasts from one savepoint, or roll-back, to the next.  A page of the write set is *open* if it
 * may be stored to without being noticed: it has been opened in this epoch.  All others are *closed*.
 *
 * INVARIANTS
 *   (1) The marks of the levels rise.  The images of a level are those from its `first` on, up to the
 *       `first` of the level above; the `first`s do not fall.
 *   (2) A page has at most one image in a level.
 *   (3) If there is a level, each open page has an image in the highest one.
 *   (4) `newest` of a page, and `older` of its images, lead through all of its images, from the
 *       newest to the oldest; 0 ends the way.
 *   (5) A page without an image in a level, or above it, is as it was at that level's savepoint; else the
 *       oldest of these images is that.
 *   (6) Each place holds the bytes of one image, or is free: in the list, or at n_places or above.
 *   (7) Once an image could not be kept (is_lost), the transaction will not commit, and there are no more
 *       savepoints and roll-backs in it.
 */
#ifndef XAC_SAVED_H
#define XAC_SAVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/env_state.h"

struct xac_saved_level {
    uint64_t mark;
    uint64_t first; /* its images lie from here on                                     */
};

struct xac_saved_image {
    uint64_t
        place; /* of its bytes, + 1; 0: it was as the transaction sees it without its own
                       stores                                                          */
    uint32_t entry; /* of its page, in the set                                         */
    uint32_t older; /* the page's image before, + 1; 0 none                            */
};

/* Of a page, by its entry in the set. */
struct xac_saved_page {
    uint64_t epoch;  /* in which it was opened last                                    */
    uint32_t newest; /* its newest image, + 1; 0 none                                  */
};

/* Memory that grows; its contents may move. */
struct xac_saved_room {
    void *at;
    size_t bytes;
};

/* The bytes of images lie in pieces of XAC_SAVED_PIECE << k pages, which do not move. */
#define XAC_SAVED_PIECE  16
#define XAC_SAVED_PIECES 32

struct xac_saved {
    struct xac_ctx *ctx;
    uint64_t epoch; /* the latest; grows from transaction to transaction               */
    bool is_lost;   /* invariant (7)                                                   */
    uint64_t n_levels, n_images, n_pages, n_opened, n_places, n_free;
    struct xac_saved_room levels, images, pages;
    struct xac_saved_room
        opened;                 /* uint32_t: entries of the pages opened in this epoch */
    struct xac_saved_room free; /* uint64_t: places below n_places                   */
    uint8_t
        *piece[XAC_SAVED_PIECES]; /* with XAC_OPT_FRAMES the first one is to read into */
    int fd;                       /* of the file; 0: none                              */
    struct xac_handle handle;
};

XAC_SIGSAFE static inline struct xac_saved_level *
xac_saved_level_at(const struct xac_saved *s, uint64_t i)
{
    xac_assert(i < s->n_levels);
    return (struct xac_saved_level *)s->levels.at + i;
}

XAC_SIGSAFE static inline struct xac_saved_image *
xac_saved_image_at(const struct xac_saved *s, uint64_t i)
{
    xac_assert(i < s->n_images);
    return (struct xac_saved_image *)s->images.at + i;
}

/* xac_saved_opened -- entry of a page that has been opened in this epoch, the first one first. */
XAC_SIGSAFE static inline uint32_t
xac_saved_opened(const struct xac_saved *s, uint64_t i)
{
    xac_assert(i < s->n_opened);
    return ((const uint32_t *)s->opened.at)[i];
}

/* xac_saved_is_open -- is the page of an entry open?  The transaction has used a savepoint. */
XAC_SIGSAFE static inline bool
xac_saved_is_open(const struct xac_ctx *ctx, uint32_t entry)
{
    const struct xac_saved *s = ctx->saved;

    xac_assert(ctx->save_epoch != 0);
    return entry < s->n_pages
           && ((const struct xac_saved_page *)s->pages.at)[entry].epoch
                  == ctx->save_epoch;
}

/* xac_saved_start -- the transaction is about to have its first savepoint.  ret 0 or errno. */
int xac_saved_start(struct xac_ctx *ctx);

/* xac_saved_reserve -- room for one more level.  ret 0 or errno. */
int xac_saved_reserve(struct xac_saved *s);

/* xac_saved_push -- a new level, for which there is room. */
void xac_saved_push(struct xac_saved *s, uint64_t mark);

/* xac_saved_find -- the level of a mark; UINT64_MAX: there is none. */
uint64_t xac_saved_find(const struct xac_saved *s, uint64_t mark);

/* xac_saved_next_epoch -- all pages are closed from now on. */
void xac_saved_next_epoch(struct xac_ctx *ctx);

/*
 * xac_saved_open -- a page is about to be stored to: it is open from now on, and has an image in the
 * highest level.
 *
 * in   bytes  the page; NULL: the transaction has not stored to it yet
 * ret  0 or errno: it is not open, and nothing has been kept.
 */
XAC_SIGSAFE int xac_saved_open(struct xac_ctx *ctx, uint32_t entry, const uint8_t *bytes);

/* xac_saved_open_again -- the same without an image, for it is being restored.  ret 0 or errno. */
int xac_saved_open_again(struct xac_ctx *ctx, uint32_t entry);

/* xac_saved_bytes -- what an image with a place holds, until the next call here; NULL with errno. */
const uint8_t *xac_saved_bytes(struct xac_saved *s, const struct xac_saved_image *image);

/* xac_saved_is_oldest -- is an image the one that rolling back to that level restores? */
static inline bool
xac_saved_is_oldest(const struct xac_saved *s, uint64_t level, uint64_t i)
{
    xac_assert(i >= xac_saved_level_at(s, level)->first);
    return xac_saved_image_at(s, i)->older <= xac_saved_level_at(s, level)->first;
}

/* xac_saved_drop -- that level has no images any more, and there is none above it: its pages have been
   restored. */
void xac_saved_drop(struct xac_saved *s, uint64_t level);

/* xac_saved_merge -- that level and those above it are gone, and what they have is the one's below. */
void xac_saved_merge(struct xac_saved *s, uint64_t level);

/* xac_saved_end -- the transaction is over; nothing, if it has used no savepoint. */
void xac_saved_end(struct xac_ctx *ctx);

/* xac_saved_forked -- in a child: the file is the parent's. */
void xac_saved_forked(struct xac_ctx *ctx);

/* xac_saved_close -- the context is given back. */
void xac_saved_close(struct xac_ctx *ctx);

/* xac_saved_assert -- stop the program unless (1) to (4) and (6) hold; of many images the first and the last
   ones are looked at. */
void xac_saved_assert(const struct xac_saved *s);

#endif /* XAC_SAVED_H */
