/* SPDX-License-Identifier: MIT */
/*
 * locked.h -- policies that need a lock, in place of the clock of ring.c; and BP-Wrapper.
 *
 * WHAT      What these policies add to a pool (struct pool_plug): parts with a lock and a policy
 *           each, queues of hits, lists of free slots.
 * NOT       How a policy chooses: replacer.h.
 * WHERE     Parts, lists and policies in the pool's memory; the handle and the queues in that of
 *           the process.
 * THREADS   any.  A policy's state is touched under the lock of its part.
 */
#ifndef XAC_FRAMES_LOCKED_H
#define XAC_FRAMES_LOCKED_H

#include "frames/policies/replacer.h"
#include "frames/pool.h"

/*
 * A part of a pool whose policy needs a lock.  Part k of m has slots n * k / m on; its
 * policy knows them as 0 on.
 */
struct pool_part {
    alignas(FRAME_LINE) xac_shared _Atomic uint32_t lock; /* 0, or see mutex.c */
    /* Slots never used, the last ones. */
    xac_shared _Atomic uint32_t vacant;
};

/* A list of free slots. */
struct pool_free {
    alignas(FRAME_LINE) xac_shared _Atomic uint64_t head; /* stack: { tag:32 | slot+1 } */
};

/* A process's handle: where these are mapped here.  Fixed after creation. */
struct pool_locked {
    const struct policy_ops *ops;
    struct pool_part *parts;
    struct pool_free *free; /* free_lists of each part */
    /*
     * By slot: 0 it holds a page, or is vacant; else nobody but the owner of the slot uses it,
     * and in a list it is the slot below, + 2, or 1 at the bottom.
     */
    xac_shared _Atomic uint32_t *free_links;
    struct policy policies[]; /* of each part */
};

/* A hit, or an arrival, that the policy has not been told of. */
struct pool_hit {
    frame_ref ref;
    uint32_t slot;
};

/* What a user has for one part; its owner's only. */
struct pool_queue {
    uint32_t n;      /* entries, */
    uint32_t n_warm; /* of them with their neighbours in the cache */
    uint32_t n_hits; /* since the first entry, it and those that need none included */
    bool from_free;  /* the last frame that was placed came from a list */
    struct pool_hit *hits;
};

/* ---- mutex.c: a part's lock ------------------------------------------------------------ */

/* xac_frames_lock -- wait for it; sleeping or spinning as configured. */
void xac_frames_lock(struct xac_frames_user *user, uint32_t part);

/* xac_frames_trylock -- false if somebody has it. */
bool xac_frames_trylock(struct xac_frames_user *user, uint32_t part);
void xac_frames_unlock(struct xac_frames *pool, uint32_t part);

/* xac_frames_lock_owner -- number of the user who has it, or UINT32_MAX. */
uint32_t xac_frames_lock_owner(const struct xac_frames *pool, uint32_t part);

/* ---- locked.c: what fixes do; see struct pool_plug -------------------------------------- */

int xac_frames_locked_place(struct xac_frames_user *user, frame_ref mine, uint64_t page,
                            frame_ref *outp, uint32_t *freshp);
void xac_frames_locked_came(struct xac_frames_user *user, frame_ref mine);
void xac_frames_locked_lost(struct xac_frames_user *user, frame_ref mine);
void xac_frames_locked_hit(struct xac_frames_user *user, frame_ref ref);

/* xac_frames_locked_tell -- all that is queued. */
void xac_frames_locked_tell(struct xac_frames_user *user);

/* xac_frames_locked_rebuild -- nobody else is in the part: tell its policy afresh what it has. */
void xac_frames_locked_rebuild(struct xac_frames *pool, uint32_t part);

/* ---- free.c: slots that nobody uses -------------------------------------------------- */

/* xac_frames_free_push -- put a slot, with a link that is not 0, into list `list` of the part. */
void xac_frames_free_push(struct xac_frames_user *user, uint32_t part, uint32_t list,
                          uint32_t slot);

/* xac_frames_free_pop -- POLICY_NONE if it is empty; the link is still not 0. */
uint32_t xac_frames_free_pop(struct xac_frames_user *user, uint32_t part, uint32_t list);

#endif /* XAC_FRAMES_LOCKED_H */
