/* SPDX-License-Identifier: MIT */
/*
 * version.h -- the version store: committed page contents that are not yet in their
 * files, in version slots of the buffer files (Thesis 3.2).
 *
 * WHAT      Takes and frees version slots, finds the version of a page for a commit number, and
 *           frees old versions.
 * NOT HERE  Deciding which versions are old (ctree.h), copying to the files (checkpoint.h).
 * LOCK      `grow` (rank GROW) for adding version slots.  List heads change under publish, the
 *           links behind a kept version under gc; readers take nothing.
 *
 * INVARIANTS
 *   (1) A page's list is sorted: each version's commit number is smaller than its
 *       predecessor's.
 *   (2) The word of a version slot has its state: FREE; TAKEN, with the transaction slot that
 *       took it; VERSION; LIMBO, unlinked but perhaps still being read.  The exchange that
 *       takes a version slot sets the word, so that a sweep finds those that the dead left.
 *   (3) The bytes of a version slot that holds a VERSION never change.
 *   (4) A reader may reach a version slot that has just been freed.  The word of a VERSION has
 *       its commit number, so it is never the same again: a reader compares the word before
 *       and after, and starts again if it has changed.
 */
#ifndef XAC_VERSION_H
#define XAC_VERSION_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/env_state.h"

/* xac_version_bytes -- address of a version slot's page in this process; NULL: see errno.
   xac_buffers_bytes: the same for any slot; those of the first buffer file, which is always mapped,
   are found here. */
XAC_SIGSAFE uint8_t *xac_buffers_bytes(struct xac_env *env, uint64_t vslot_no);
XAC_SIGSAFE static inline uint8_t *
xac_version_bytes(struct xac_env *env, uint64_t vslot_no)
{
    /* Acquire: pairs with the release in xac_buffers_extend. */
    uint64_t spill =
        atomic_load_explicit(&env->ctl->versions.spill, memory_order_acquire);
    uint64_t offset = (vslot_no - 1) << env->page_shift;

    xac_assert(vslot_no != 0);
    if (xac_unlikely(spill != 0 && vslot_no >= spill)
        || xac_unlikely(offset + env->page_size > env->buffers.reserve[0]))
        return xac_buffers_bytes(env, vslot_no);
    /* Relaxed: stored before anybody else has the environment. */
    return atomic_load_explicit(&env->buffers.base[0], memory_order_relaxed) + offset;
}

/* xac_vslot_at -- description of a version slot that exists. */
XAC_SIGSAFE struct xac_vslot *xac_vslot_at(const struct xac_env *env, uint64_t vslot_no);

/*
 * xac_version_is_ready -- are the descriptions of all version slots in this process's page table, so
 * that lists can be walked and changed under publish without a page fault?
 * xac_version_ready -- put those of the present version slots there; outside of publish.
 */
bool xac_version_is_ready(const struct xac_env *env);
void xac_version_ready(struct xac_env *env);

/*
 * xac_version_take -- a free version slot for transaction slot `slot`.
 *
 * ret  0; ENOSPC, ENOMEM and other errno values.
 * Takes grow if there are too few; no other lock.
 */
int xac_version_take(struct xac_env *env, uint64_t slot, uint64_t *vslot_nop);

/* xac_version_release -- the owner of a transaction slot is dead: free the version slots that
   it had TAKEN. */
void xac_version_release(struct xac_env *env, uint64_t slot);

/* xac_version_give_back -- free a version slot. */
void xac_version_give_back(struct xac_env *env, uint64_t vslot_no);

/* xac_version_find -- newest version of a page not younger than `parent`; 0: the file. */
XAC_SIGSAFE uint64_t xac_version_search(const struct xac_env *env,
                                        const struct xac_page *page, uint64_t parent,
                                        uint64_t *commitp);
XAC_SIGSAFE static inline uint64_t
xac_version_find(const struct xac_env *env, const struct xac_page *page, uint64_t parent,
                 uint64_t *commitp)
{
    *commitp = 0;
    /* Acquire: pairs with the release that unlinks the last version, which is in the file. */
    if (atomic_load_explicit(&page->head, memory_order_acquire) == 0)
        return 0;
    return xac_version_search(env, page, parent, commitp);
}

/*
 * The versions that must be kept: every version above `upper`, the newest one at or below it,
 * and for each older query the newest one at or below its parent.
 */
#define XAC_NEEDS_POINTS 64
struct xac_needs {
    uint64_t upper;
    uint32_t n_points;
    uint64_t point[XAC_NEEDS_POINTS]; /* parents of queries below upper, falling       */
};

/*
 * xac_version_thin -- free the versions of a page that no transaction needs, but no more than *leftp,
 * which falls: at 0 some may be left.  gc lock held.
 *
 * ret  how many versions below `upper` were kept for queries.
 */
uint64_t xac_version_thin(struct xac_env *env, struct xac_page *page,
                          const struct xac_needs *needs, uint64_t *leftp);

/* xac_version_cut -- the same when there are no queries below bound. */
void xac_version_cut(struct xac_env *env, struct xac_page *page, uint64_t bound);

/*
 * xac_version_count_held -- how many versions are in the store for readers only: replaced by
 * a commit up to `commit`, or copied to their files and in limbo.  Takes no lock: a list that
 * changes meanwhile is counted in part.
 *
 * in   needs  of the readers
 * in   start  the smallest of theirs
 */
uint64_t xac_version_count_held(const struct xac_env *env, uint64_t commit,
                                const struct xac_needs *needs, uint64_t start);

/* A state that is read, and how many versions are held back for it. */
struct xac_reader_held {
    uint64_t parent, start; /* see struct xac_txn                                      */
    uint64_t n;
};

/*
 * xac_version_count_back -- how many versions each of some readers holds back: those that it needs
 * though a commit up to `commit` has replaced them, those that lie in limbo for it, and those that
 * are younger than its state, so that no checkpoint may copy them to their files.  Adds to `n`.
 * Takes no lock, as above.
 */
void xac_version_count_back(const struct xac_env *env, uint64_t commit,
                            struct xac_reader_held *held, size_t n_held);

/*
 * xac_version_unlink -- take all versions at or below bound out of the page's list.  They go into
 * limbo under the number of the unlink.  Publish and gc held; may be repeated.
 */
void xac_version_unlink(struct xac_env *env, struct xac_page *page, uint64_t bound,
                        uint64_t unlink_no);

/*
 * xac_version_sweep_some -- a part of a sweep: free what nobody needs behind VERSION ones, TAKEN ones
 * of slots that are not live, and LIMBO ones of unlinks up to `settled`.  gc lock held, and
 * repaired if a holder has died: no version slot is cut off a list and not freed.
 *
 * Each version slot is looked at once, and frees what lies directly behind it on its page's list: no
 * list is walked from its head, however long it is.  Looking at one and freeing one count as 1 of
 * `work`.
 *
 * in   from  number of the first version slot
 * ret  the next one: more than there are when the sweep is over
 */
uint64_t xac_version_sweep_some(struct xac_env *env, const struct xac_needs *needs,
                                uint64_t settled, uint64_t from, uint64_t work);

/*
 * xac_version_sweep_for -- walk all version slots, in one piece, for a dead holder of gc may have left
 * any: thin every page, free TAKEN ones of slots that are not live, free VERSION ones that
 * no list reaches, free LIMBO ones of unlinks up to `settled`.  gc lock held; corrects `used`.
 */
void xac_version_sweep_for(struct xac_env *env, const struct xac_needs *needs,
                           uint64_t settled);

/* xac_version_sweep -- the same when there are no queries below bound. */
void xac_version_sweep(struct xac_env *env, uint64_t bound, uint64_t settled);

/*
 * xac_version_limit -- set the number of version slots beyond which the store does not grow; may
 * be more than before.  Takes grow.  ret 0; ENOMEM if the store is larger already.
 */
int xac_version_limit(struct xac_env *env, uint64_t frames_max);

/*
 * xac_version_assert -- stop the program unless (1), (2) and (4) hold for 64 version slots, others
 * for each `turn`, and for the lists that they head.  Gc held.  (3) cannot be told: nobody knows
 * what the bytes were.
 */
void xac_version_assert(const struct xac_env *env, uint64_t turn);

/*
 * Buffer files: create or open; ret 0 or errno.  region_path is the path of the control region.
 * A process that attaches lowers the limit of the store to the addresses that it has.
 */
int xac_buffers_create(struct xac_env *env, const char *region_path);
int xac_buffers_attach(struct xac_env *env, const char *region_path);
/* xac_buffers_reach -- version slots that this process has addresses for. */
uint64_t xac_buffers_reach(const struct xac_env *env);
void xac_buffers_detach(struct xac_env *env);
/* xac_buffers_bound -- version slots that the first file may have: by its share of memory, and by
   XAC_OPT_FRAMES. */
uint64_t xac_buffers_bound(const struct xac_env *env);
/*
 * xac_buffers_extend -- back version slots have + 1 .. want with disk space, in the second file
 * if the first one has its bound or cannot grow.  Grow held.  ret 0 or errno.
 */
int xac_buffers_extend(struct xac_env *env, uint64_t have, uint64_t want);
/* xac_buffers_prefault -- give memory to a version slot that is about to be written, and to those
   behind it, by one system call instead of many page faults. */
void xac_buffers_prefault(struct xac_env *env, uint64_t vslot_no, uint64_t have);
/*
 * The in-place file (in_place.h).
 * xac_buffers_in_place       its bytes, mapped if they are not yet; NULL with errno
 * xac_buffers_in_place_make  a new, empty file in the place of an older one; ret 0 or errno
 * xac_buffers_in_place_grow  it is so many pages long; ret its descriptor, -1 with errno
 * xac_buffers_in_place_hold  it stays mapped in this process, for one that copies from it, until
 * xac_buffers_in_place_release
 * xac_buffers_in_place_drop  waits for these; then it is not mapped here, and has no name
 * xac_buffers_in_place_forked  in a child: it is not mapped here
 */
const uint8_t *xac_buffers_in_place(struct xac_env *env);
int xac_buffers_in_place_make(struct xac_env *env);
int xac_buffers_in_place_grow(struct xac_env *env, uint64_t n_pages);
void xac_buffers_in_place_hold(struct xac_env *env);
void xac_buffers_in_place_release(struct xac_env *env);
void xac_buffers_in_place_forked(struct xac_env *env);
void xac_buffers_in_place_drop(struct xac_env *env);
/* xac_buffers_remove -- delete the files beside a region; missing ones are fine.
   xac_buffers_remove_second -- the one in the environment's directory, dirfd. */
void xac_buffers_remove(int dirfd, const char *region_path);
void xac_buffers_remove_second(int dirfd, const char *region_path);

#endif /* XAC_VERSION_H */
