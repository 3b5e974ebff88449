/* SPDX-License-Identifier: MIT */
/*
 * in_place_settle.c -- see in_place_settle.h.
 */
#include <config.h>

#include "txn/in_place_settle.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "store/version.h"
#include "txn/alone.h"
#include "txn/ctree.h"
#include "txn/in_place.h"

/* take_out -- the first page of the list has a version.  Publish held. */
static void
take_out(struct xac_env *env, struct xac_page *page)
{
    struct xac_control *ctl = env->ctl;

    xac_assert(xac_lock_is_mine(&ctl->chain.publish));
    xac_assert(xac_in_place_has_pages(env));
    /* Relaxed, both: publish is given back behind it. */
    if (atomic_load_explicit(&page->in_place, memory_order_relaxed) != 0) {
        atomic_store_explicit(&page->in_place, 0, memory_order_relaxed);
        (void)atomic_fetch_sub_explicit(&ctl->in_place_count, 1, memory_order_relaxed);
    }
    xac_kill_point("ip out");
    /* Release: pairs with the acquire in xac_in_place_has_pages. */
    atomic_store_explicit(&ctl->in_place_head,
                          atomic_load_explicit(&page->next_in_place,
                                               memory_order_relaxed),
                          memory_order_release);
}

/* has_images -- may images count, or has their transaction been published? */
static bool
has_images(const struct xac_env *env)
{
    uint64_t slot = atomic_load_explicit(&env->ctl->in_place_slot, memory_order_relaxed);

    /* Acquire: pairs with the release of the state. */
    return slot != 0
           && xac_txn_state(atomic_load_explicit(&xac_txn_at(env, slot - 1)->word,
                                                 memory_order_acquire))
                  != XAC_TXN_PUBLISHED;
}

/* copy_newest -- the newest committed contents of a page of the list; ret 0 or errno. */
static int
copy_newest(struct xac_env *env, const struct xac_page *page, uint64_t place, bool has,
            uint8_t *to)
{
    const uint8_t *file = xac_buffers_in_place(env), *from;
    uint64_t image, again;

    xac_assert(place != 0);
    xac_assert(to != NULL);
    if (file == NULL)
        return errno;
    do {
        /* Acquire: pairs with the release in set_image. */
        image = atomic_load_explicit(&page->image, memory_order_acquire);
        from = has && (image & XAC_IMAGE_MASK) != 0
                   ? xac_version_bytes(env, image & XAC_IMAGE_MASK)
                   : file + ((place - 1) << env->page_shift);
        if (from == NULL)
            return errno;
        memcpy(to, from, env->page_size);
        /* Pairs with the release in xac_in_place_keep. */
        atomic_thread_fence(memory_order_acquire);
        again = atomic_load_explicit(&page->image, memory_order_relaxed);
    } while (again != image);
    return 0;
}

/* link -- a version slot with a copy is the page's newest version.  Publish held.  ret false: it has one
   of that commit. */
static bool
link_copy(struct xac_env *env, struct xac_page *page, uint64_t vslot)
{
    struct xac_vslot *f = xac_vslot_at(env, vslot);
    uint64_t written = atomic_load_explicit(&page->written, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&page->head, memory_order_relaxed);

    xac_assert(xac_lock_is_mine(&env->ctl->chain.publish));
    xac_assert(vslot != 0);
    xac_assert(vslot != head);
    xac_assert(written <= xac_chain_commit(env));
    if (head != 0
        && atomic_load_explicit(&xac_vslot_at(env, head)->commit, memory_order_relaxed)
               >= written)
        return false;
    /* Pairs with the fence of readers that still stand on the version slot's last user. */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&f->next, head, memory_order_relaxed);
    atomic_store_explicit(&f->commit, written, memory_order_relaxed);
    atomic_store_explicit(&f->page, xac_shm_offset(&env->shm, page),
                          memory_order_relaxed);
    /* Release: pairs with the acquire in sweeps. */
    atomic_store_explicit(&f->word, xac_vslot_word(XAC_VSLOT_VERSION, written),
                          memory_order_release);
    xac_kill_point("ip version");
    /* Release: pairs with the acquire in xac_version_find. */
    atomic_store_explicit(&page->head, vslot, memory_order_release);
    xac_kill_point("ip linked");
    return true;
}

/* settle_first -- make a version of the first page of the list, if it has one; ret 0 or errno. */
static int
settle_first(struct xac_env *env, uint64_t slot, bool has)
{
    struct xac_control *ctl = env->ctl;
    /* Acquire: pairs with the release in xac_in_place_note. */
    uint64_t at = atomic_load_explicit(&ctl->in_place_head, memory_order_acquire);
    struct xac_page *page = xac_in_place_page(env, at);
    uint64_t place, written, vslot = 0;
    uint8_t *bytes;
    bool is_linked = false;
    int rc;

    xac_assert(at != 0);
    xac_assert(!xac_lock_is_mine(&ctl->chain.publish));
    /* Acquire: pairs with the release in xac_in_place_note. */
    place = atomic_load_explicit(&page->in_place, memory_order_acquire);
    written = atomic_load_explicit(&page->written, memory_order_relaxed);
    rc = xac_version_take(env, slot, &vslot);
    if (rc != 0)
        return rc;
    bytes = xac_version_bytes(env, vslot);
    rc = bytes == NULL ? errno
         : place != 0  ? copy_newest(env, page, place, has, bytes)
                       : 0;
    if (rc == 0) {
        xac_version_ready(env);
        xac_chain_lock(env);
        /* If it has changed, it is the first page of the list once more. */
        if (atomic_load_explicit(&ctl->in_place_head, memory_order_relaxed) == at
            && atomic_load_explicit(&page->in_place, memory_order_relaxed) == place
            && atomic_load_explicit(&page->written, memory_order_relaxed) == written) {
            is_linked = place != 0 && link_copy(env, page, vslot);
            take_out(env, page);
        }
        xac_chain_unlock(env);
    }
    if (!is_linked)
        xac_version_give_back(env, vslot);
    /* The process that updated in place has emptied the list, too, and has removed the file. */
    return rc != 0 && !xac_in_place_has_pages(env) ? 0 : rc;
}

int
xac_in_place_settle(struct xac_env *env, uint64_t slot, uint64_t most)
{
    bool has = has_images(env);
    int rc = 0;

    xac_assert(!xac_lock_is_mine(&env->ctl->chain.publish));
    xac_buffers_in_place_hold(env);
    for (uint64_t i = 0; i < most && rc == 0 && xac_in_place_has_pages(env); i++)
        rc = settle_first(env, slot, has);
    xac_buffers_in_place_release(env);
    return rc == 0
               ? 0
               : xac_err(rc, "making versions of the pages of a process that was alone");
}

int
xac_in_place_admit(struct xac_env *env, uint64_t slot, bool is_thread)
{
    int rc;

    if (!xac_in_place_may(env))
        return 0;
    /* First of all: until then somebody may begin to update in place. */
    xac_alone_revoke(env);
    if (atomic_load_explicit(&env->ctl->in_place_slot, memory_order_relaxed) == 0)
        return 0;
    rc = xac_in_place_settle(env, slot, UINT64_MAX);
    xac_assert(rc != 0 || !xac_in_place_has_pages(env)); /* (4) */
    if (rc == 0 && !is_thread) /* who comes after us may find another file of that name */
        xac_buffers_in_place_drop(env);
    return rc;
}
