/* SPDX-License-Identifier: MIT */
/*
 * in_place.c -- see in_place.h.
 */
#include <config.h>

#include "txn/in_place.h"

#include <errno.h>
#include <string.h>

#include "store/version.h"

/* ---- The list --------------------------------------------------------------------------- */

void
xac_in_place_note(struct xac_env *env, const struct xac_txn *txn,
                  const struct xac_entry *e)
{
    struct xac_control *ctl = env->ctl;
    struct xac_page *page = xac_in_place_page(env, e->page);
    uint64_t head = atomic_load_explicit(&ctl->in_place_head, memory_order_relaxed);

    xac_assert(xac_lock_is_mine(&ctl->chain.publish));
    xac_assert(e->in_place != 0);
    xac_assert(e->vslot == 0); /* (1): no version is newer */
    xac_assert(atomic_load_explicit(&page->written, memory_order_relaxed) <= txn->number);
    /* Relaxed: the release of C comes behind it. */
    atomic_store_explicit(&page->written, txn->number, memory_order_relaxed);
    if (atomic_load_explicit(&page->in_place, memory_order_relaxed) != 0)
        return;
    if (head != e->page) { /* else we have died behind the next store */
        atomic_store_explicit(&page->next_in_place, head, memory_order_relaxed);
        xac_kill_point("f next");
        /* Release: pairs with the acquire in xac_in_place_has_pages. */
        atomic_store_explicit(&ctl->in_place_head, e->page, memory_order_release);
        xac_kill_point("f listed");
    }
    /* Release: pairs with the acquire in settle_first (in_place_settle.c). */
    atomic_store_explicit(&page->in_place, e->in_place, memory_order_release);
    xac_count(&ctl->in_place_count, 1);
    xac_kill_point("f in place");
}

/* ---- Images ------------------------------------------------------------------------------- */

/* set_image -- the word of a page; vslot 0: none. */
static void
set_image(struct xac_page *page, uint64_t vslot)
{
    uint64_t was = atomic_load_explicit(&page->image, memory_order_relaxed);

    xac_assert(vslot <= XAC_IMAGE_MASK);
    /* Release: the image is complete; or the page is as it was.  Pairs with the acquire in
       copy_newest (in_place_settle.c). */
    atomic_store_explicit(&page->image,
                          ((was >> XAC_IMAGE_BITS) + 1) << XAC_IMAGE_BITS | vslot,
                          memory_order_release);
}

int
xac_in_place_keep(struct xac_env *env, struct xac_ctx *ctx, struct xac_entry *e,
                  const uint8_t *now)
{
    struct xac_page *page = xac_in_place_page(env, e->page);
    uint8_t *keep;
    int rc;

    xac_assert(e->image == 0);
    xac_assert(now != NULL);
    xac_assert(ctx->is_in_place);
    if (atomic_load_explicit(&page->in_place, memory_order_relaxed) == 0)
        return 0;
    rc = xac_version_take(env, ctx->slot, &e->image);
    if (rc != 0)
        return rc;
    keep = xac_version_bytes(env, e->image);
    if (keep == NULL) {
        rc = errno;
        xac_version_give_back(env, e->image);
        e->image = 0;
        return rc;
    }
    xac_assert(keep != now);
    memcpy(keep, now, env->page_size);
    xac_kill_point("ip image");
    set_image(page, e->image);
    /* Pairs with the fence in copy_newest (in_place_settle.c): a process that sees a store of the program
       sees the image, too. */
    atomic_thread_fence(memory_order_release);
    xac_kill_point("ip kept");
    return 0;
}

void
xac_in_place_forget(struct xac_env *env, struct xac_entry *e)
{
    xac_assert(e->image != 0);
    xac_assert(e->page != 0);
    set_image(xac_in_place_page(env, e->page), 0);
    xac_kill_point("ip forgot");
    xac_version_give_back(env, e->image);
    e->image = 0;
}

void
xac_in_place_lose(struct xac_env *env, const struct xac_entry *e)
{
    xac_assert(e->page != 0);
    if (e->image != 0)
        set_image(xac_in_place_page(env, e->page), 0);
}
