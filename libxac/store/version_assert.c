/* SPDX-License-Identifier: MIT */
/*
 * version_assert.c -- whether the version store is sound: see the invariants of version.h.
 *
 * The caller holds gc, under which nobody takes a version out of a list.  Others publish
 * meanwhile: they put new versions in front of the lists, and a version that is linked has its
 * number and its page.
 */
#include <config.h>

#include "shared/env_state.h"
#include "store/version.h"

#define LOOK_AT 64 /* version slots that one call looks at */

static uint64_t
get(const _Atomic uint64_t *word)
{
    /* Acquire: pairs with the releases of those who link versions and move C. */
    return atomic_load_explicit(word, memory_order_acquire);
}

/* list_assert -- a page's versions from this one on, which heads them or did. */
static void
list_assert(const struct xac_env *env, uint64_t vslot_no, uint64_t page)
{
    uint64_t left = get(&env->ctl->versions.slots.count);
    uint64_t newer = UINT64_MAX;

    for (uint64_t at = vslot_no; at != 0; left--) {
        const struct xac_vslot *v = xac_vslot_at(env, at);
        enum xac_vslot_state state = xac_vslot_state(get(&v->word));

        xac_require(left > 0);                /* (1): the list is no circle */
        xac_require(get(&v->commit) < newer); /* (1) */
        xac_require(get(&v->page) == page);
        /* Limbo: the process that has unlinked it has died, and nobody has published since. */
        xac_require(state == XAC_VSLOT_VERSION || state == XAC_VSLOT_LIMBO); /* (2) */
        newer = get(&v->commit);
        at = get(&v->next);
    }
}

/* vslot_assert -- what a word says is possible. */
static void
vslot_assert(const struct xac_env *env, uint64_t vslot_no)
{
    const struct xac_vslot *v = xac_vslot_at(env, vslot_no);
    uint64_t word = get(&v->word);
    uint64_t low = word & XAC_VSLOT_LOW;
    uint64_t page = get(&v->page);
    enum xac_vslot_state state = xac_vslot_state(word);

    xac_require(state <= XAC_VSLOT_LIMBO); /* (2) */
    if (state == XAC_VSLOT_FREE)
        xac_require(low == 0); /* (2) */
    if (state == XAC_VSLOT_TAKEN)
        xac_require(low < get(&env->ctl->txns.count)); /* (2) */
    if (state != XAC_VSLOT_VERSION && state != XAC_VSLOT_LIMBO)
        return;
    /* What is being published just now has the number that C will have. */
    xac_require(low <= get(&env->ctl->chain.commit) + 1);
    xac_require(state == XAC_VSLOT_LIMBO || low == get(&v->commit)); /* (4) */
    xac_require(get(&v->next) <= get(&env->ctl->versions.slots.count));
    if (state == XAC_VSLOT_VERSION
        && get(&((const struct xac_page *)xac_shm_at(&env->shm, page))->head) == vslot_no)
        list_assert(env, vslot_no, page);
}

void
xac_version_assert(const struct xac_env *env, uint64_t turn)
{
    uint64_t have = get(&env->ctl->versions.slots.count);

    xac_require(xac_lock_is_mine(&env->ctl->chain.gc));
    for (uint64_t i = 0; i < have && i < LOOK_AT; i++)
        vslot_assert(env, (turn * LOOK_AT + i) % have + 1);
}
