/* SPDX-License-Identifier: MIT */
/*
 * version.c -- see version.h: version slots, and the lists of a page's versions.
 */
#include <config.h>

#include "store/version.h"

#include <errno.h>

#include "base/err.h"
#include "shared/env_state.h"
#include "store/outofcore.h"

#define VSLOTS_FIRST 256u /* version slots of a new store; it doubles from there ... */
#define GROW_MAX     512u /* ... until so many are added at a time, by one commit    */

XAC_SIGSAFE static uint64_t
frames_there(const struct xac_env *env)
{
    xac_assert_slow(env->ctl != NULL);
    /* Acquire: pairs with the release in grow_store. */
    return atomic_load_explicit(&env->ctl->versions.slots.count, memory_order_acquire);
}

XAC_SIGSAFE struct xac_vslot *
xac_vslot_at(const struct xac_env *env, uint64_t vslot_no)
{
    xac_assert(vslot_no != 0 && vslot_no <= frames_there(env));
    return (struct xac_vslot *)xac_array_at(&env->shm, &env->ctl->versions.slots,
                                            vslot_no - 1);
}

/*
 * grow_store -- double the number of version slots, or add GROW_MAX.
 *
 * ret  0 or errno.  Takes grow.  Restartable: count moves last.
 */
static int
grow_store(struct xac_env *env, uint64_t seen)
{
    struct xac_versions *v = &env->ctl->versions;
    uint64_t bound = xac_buffers_bound(env);
    enum xac_lock_result got = xac_lock_acquire_limited(&v->grow);
    uint64_t have, want;
    int rc = 0;

    xac_assert(!xac_lock_is_mine(&env->ctl->chain.publish));
    if (got == XAC_LOCK_TIMED_OUT)
        return ETIMEDOUT;
    if (got == XAC_LOCK_OWNER_DIED)
        xac_lock_repaired(&v->grow);
    have = frames_there(env);
    if (have > seen)
        goto out;
    want = have == 0 ? VSLOTS_FIRST : have < GROW_MAX ? have * 2 : have + GROW_MAX;
    if (have < bound && want > bound)
        want = bound; /* what is more lies on disk */
    if (want > v->frames_max)
        want = v->frames_max;
    if (want <= have) {
        rc = xac_err(ENOMEM, "version store: a participant's address space ends here");
        goto out;
    }
    xac_assert(want > have);
    xac_assert(want <= v->frames_max);
    rc = xac_array_reserve(&env->shm, &v->slots, want - 1);
    if (rc != 0)
        rc = xac_err(rc, "control region %s: growing the version store", env->region);
    else
        rc = xac_buffers_extend(env, have, want);
    xac_kill_point("grow");
    if (rc == 0)
        /* Release: pairs with the acquire in frames_there. */
        atomic_store_explicit(&v->slots.count, want, memory_order_release);
out:
    xac_lock_release(&v->grow);
    return rc;
}

int
xac_version_limit(struct xac_env *env, uint64_t frames_max)
{
    struct xac_versions *v = &env->ctl->versions;
    int rc = 0;

    xac_assert(env->ctl != NULL);
    if (xac_lock_acquire(&v->grow) == XAC_LOCK_OWNER_DIED)
        xac_lock_repaired(&v->grow);
    if (frames_there(env) > frames_max)
        rc = ENOMEM;
    else
        v->frames_max = frames_max;
    xac_assert(rc != 0 || frames_there(env) <= v->frames_max);
    xac_lock_release(&v->grow);
    return rc;
}

bool
xac_version_is_ready(const struct xac_env *env)
{
    return atomic_load_explicit(&env->buffers.n_ready, memory_order_relaxed)
           >= frames_there(env);
}

void
xac_version_ready(struct xac_env *env)
{
    _Atomic uint64_t *readyp = &env->buffers.n_ready;
    uint64_t ready = atomic_load_explicit(readyp, memory_order_relaxed);
    uint64_t have = frames_there(env);

    xac_assert(!xac_lock_is_mine(&env->ctl->chain.publish));
    xac_array_populate(&env->shm, &env->ctl->versions.slots, ready, have);
    /* Another thread may have seen more version slots, and been faster. */
    while (ready < have
           && !atomic_compare_exchange_weak_explicit(readyp, &ready, have,
                                                     memory_order_relaxed,
                                                     memory_order_relaxed))
        ;
}

/* claim -- take this version slot if it is free. */
static bool
claim(struct xac_env *env, uint64_t slot, uint64_t vslot_no)
{
    struct xac_vslot *f = xac_vslot_at(env, vslot_no);
    uint64_t word = atomic_load_explicit(&f->word, memory_order_relaxed);

    xac_assert(vslot_no != 0);
    xac_assert(slot <= XAC_VSLOT_LOW);
    /* Acquire: pairs with the release in give_back; the last user is done. */
    return xac_vslot_state(word) == XAC_VSLOT_FREE
           && atomic_compare_exchange_strong_explicit(
               &f->word, &word, xac_vslot_word(XAC_VSLOT_TAKEN, slot),
               memory_order_acquire, memory_order_relaxed);
}

/* take_freed -- the version slot that was freed last, if it is known and still free; or 0. */
static uint64_t
take_freed(struct xac_env *env, uint64_t slot)
{
    struct xac_buffers *b = &env->buffers;
    uint64_t n = atomic_load_explicit(&b->n_freed, memory_order_relaxed);

    while (n > 0) {
        _Atomic uint64_t *place = &b->freed[--n % XAC_FREED_MAX];
        uint64_t vslot_no = atomic_load_explicit(place, memory_order_relaxed);

        atomic_store_explicit(&b->n_freed, n, memory_order_relaxed);
        if (vslot_no == 0) /* it has gone round */
            break;
        atomic_store_explicit(place, 0, memory_order_relaxed);
        if (claim(env, slot, vslot_no))
            return vslot_no;
    }
    return 0;
}

/* try_range -- look once around the version slots from + 1 .. from + n for a free one; 0 if there is
   none. */
static uint64_t
try_range(struct xac_env *env, uint64_t slot, uint64_t from, uint64_t n)
{
    uint64_t start = atomic_load_explicit(&env->buffers.cursor, memory_order_relaxed);

    for (uint64_t i = 0; i < n; i++) {
        uint64_t vslot_no = from + (start + i) % n + 1;

        if (claim(env, slot, vslot_no)) {
            xac_assert(vslot_no > from);
            xac_assert(vslot_no <= from + n);
            atomic_store_explicit(&env->buffers.cursor, vslot_no, memory_order_relaxed);
            xac_buffers_prefault(env, vslot_no, from + n);
            return vslot_no;
        }
    }
    return 0;
}

/* try_take -- the same for the whole store of so many version slots, those in memory first. */
static uint64_t
try_take(struct xac_env *env, uint64_t slot, uint64_t have)
{
    uint64_t bound = xac_outofcore_versions(env);
    uint64_t vslot_no = take_freed(env, slot);

    if (vslot_no != 0)
        return vslot_no;
    if (bound == 0 || have <= bound)
        return try_range(env, slot, 0, have);
    vslot_no = try_range(env, slot, 0, bound);
    return vslot_no != 0 ? vslot_no : try_range(env, slot, bound, have - bound);
}

/*
 * count_down -- one version slot less is in use, or in limbo.  Not below 0: a sweep does not see what
 * others take meanwhile, and a store that seemed overfull would grow and grow.
 */
static void
count_down(_Atomic uint64_t *countp)
{
    uint64_t n = atomic_load_explicit(countp, memory_order_relaxed);

    while (n > 0
           && !atomic_compare_exchange_weak_explicit(countp, &n, n - 1,
                                                     memory_order_relaxed,
                                                     memory_order_relaxed))
        ;
}

int
xac_version_take(struct xac_env *env, uint64_t slot, uint64_t *vslot_nop)
{
    struct xac_versions *v = &env->ctl->versions;

    xac_assert(slot < atomic_load_explicit(&env->ctl->txns.count, memory_order_relaxed));
    for (;;) {
        uint64_t have = frames_there(env);
        uint64_t used = atomic_load_explicit(&v->used, memory_order_relaxed);
        /* Within a bound not before all are taken. */
        bool is_tight = used >= (xac_outofcore_is_on(env) ? have : have - have / 4);
        int rc = is_tight ? grow_store(env, have) : 0;

        /* When the store cannot grow, what is left of it will do.  Counted before: after a death
           `used` may be too high, never too low. */
        xac_count(&v->used, 1);
        *vslot_nop = try_take(env, slot, frames_there(env));
        if (*vslot_nop != 0) {
            xac_assert(*vslot_nop <= frames_there(env));
            xac_kill_point("b taken");
            return 0;
        }
        count_down(&v->used);
        if (!is_tight)
            rc = grow_store(env, have);
        if (rc != 0)
            return rc;
    }
}

void
xac_version_give_back(struct xac_env *env, uint64_t vslot_no)
{
    struct xac_vslot *f = xac_vslot_at(env, vslot_no);
    struct xac_buffers *b = &env->buffers;
    uint64_t n = atomic_load_explicit(&b->n_freed, memory_order_relaxed);
    enum xac_vslot_state state =
        xac_vslot_state(atomic_load_explicit(&f->word, memory_order_relaxed));

    xac_assert(state != XAC_VSLOT_FREE);
    if (state == XAC_VSLOT_LIMBO)
        count_down(&env->ctl->versions.limbo);
    /* Release: pairs with the acquire in try_take. */
    atomic_store_explicit(&f->word, xac_vslot_word(XAC_VSLOT_FREE, 0),
                          memory_order_release);
    count_down(&env->ctl->versions.used);
    atomic_store_explicit(&b->freed[n % XAC_FREED_MAX], vslot_no, memory_order_relaxed);
    atomic_store_explicit(&b->n_freed, n + 1, memory_order_relaxed);
}

void
xac_version_release(struct xac_env *env, uint64_t slot)
{
    uint64_t have = frames_there(env);

    xac_assert(slot <= XAC_VSLOT_LOW);
    for (uint64_t n = 1; n <= have; n++) {
        /* Relaxed: the owner is dead, nobody stores it. */
        if (atomic_load_explicit(&xac_vslot_at(env, n)->word, memory_order_relaxed)
            == xac_vslot_word(XAC_VSLOT_TAKEN, slot))
            xac_version_give_back(env, n);
    }
}

/* What a reader sees of a version slot, all from one moment. */
struct glimpse {
    uint64_t commit, next;
};

/*
 * look_at -- read a version slot that a list has led to.
 *
 * ret  false if it is not, or no longer, a version of that page.
 */
XAC_SIGSAFE static bool
look_at(const struct xac_env *env, uint64_t vslot_no, uint64_t page, struct glimpse *out)
{
    const struct xac_vslot *f = xac_vslot_at(env, vslot_no);
    /* Acquire: pairs with the release that made it a version. */
    uint64_t word = atomic_load_explicit(&f->word, memory_order_acquire);
    enum xac_vslot_state state = xac_vslot_state(word);
    bool is_right = (state == XAC_VSLOT_VERSION || state == XAC_VSLOT_LIMBO)
                    && atomic_load_explicit(&f->page, memory_order_relaxed) == page;

    xac_assert_slow(vslot_no <= frames_there(env));
    out->commit = atomic_load_explicit(&f->commit, memory_order_relaxed);
    out->next = atomic_load_explicit(&f->next, memory_order_relaxed);
    /* Pairs with the fence in the publish step: if what we read was stored by the version slot's
       next user, its word has changed, too. */
    atomic_thread_fence(memory_order_acquire);
    if (!is_right)
        return false;
    if (atomic_load_explicit(&f->word, memory_order_relaxed) == word)
        return true;
    /* Into limbo meanwhile: it keeps its number and its link. */
    return state == XAC_VSLOT_VERSION
           && xac_vslot_state(atomic_load_explicit(&f->word, memory_order_relaxed))
                  == XAC_VSLOT_LIMBO;
}

XAC_SIGSAFE uint64_t
xac_version_search(const struct xac_env *env, const struct xac_page *page,
                   uint64_t parent, uint64_t *commitp)
{
    uint64_t at = xac_shm_offset(&env->shm, page);
    /* Acquire: pairs with the release in the publish step; version slot and number are there. */
    uint64_t vslot_no = atomic_load_explicit(&page->head, memory_order_acquire);

    xac_assert_slow(page != NULL);
    while (vslot_no != 0) {
        struct glimpse seen;

        if (!look_at(env, vslot_no, at, &seen)) {
            /* Start over.  Acquire: pairs with the release in the publish step. */
            vslot_no = atomic_load_explicit(&page->head, memory_order_acquire);
            continue;
        }
        if (seen.commit <= parent) {
            *commitp = seen.commit;
            xac_assert_slow(seen.commit <= parent);
            return vslot_no;
        }
        vslot_no = seen.next;
    }
    *commitp = 0;
    return 0;
}

static uint64_t
commit_of(const struct xac_env *env, uint64_t vslot_no)
{
    return atomic_load_explicit(&xac_vslot_at(env, vslot_no)->commit,
                                memory_order_relaxed);
}

/* is_needed -- of a version and the number of the next newer one of its page. */
static bool
is_needed(const struct xac_needs *needs, uint64_t commit, uint64_t newer)
{
    if (newer > needs->upper)
        return true;
    for (uint32_t i = 0; i < needs->n_points; i++) {
        if (needs->point[i] >= commit && needs->point[i] < newer)
            return true;
    }
    return false;
}

/*
 * cut_older -- free the versions behind one up to `upper` that nobody needs, but no more than *leftp,
 * which falls.
 */
static void
cut_older(struct xac_env *env, uint64_t vslot_no, const struct xac_needs *needs,
          uint64_t *leftp)
{
    struct xac_vslot *f = xac_vslot_at(env, vslot_no);
    uint64_t commit = commit_of(env, vslot_no), at;

    xac_assert(commit <= needs->upper);
    while ((at = atomic_load_explicit(&f->next, memory_order_relaxed)) != 0
           && !is_needed(needs, commit_of(env, at), commit) && *leftp > 0) {
        xac_assert(commit_of(env, at) < commit);
        /* Release: pairs with the readers' loads; see invariant (4). */
        atomic_store_explicit(&f->next,
                              atomic_load_explicit(&xac_vslot_at(env, at)->next,
                                                   memory_order_relaxed),
                              memory_order_release);
        xac_kill_point("cut");
        xac_version_give_back(env, at);
        (*leftp)--;
    }
}

uint64_t
xac_version_thin(struct xac_env *env, struct xac_page *page,
                 const struct xac_needs *needs, uint64_t *leftp)
{
    uint64_t commit, n_held = 0;
    uint64_t kept = xac_version_find(env, page, needs->upper, &commit);

    xac_assert(xac_lock_is_mine(&env->ctl->chain.gc));
    xac_assert(needs->n_points <= XAC_NEEDS_POINTS);
    while (kept != 0 && *leftp > 0) {
        cut_older(env, kept, needs, leftp);
        kept = atomic_load_explicit(&xac_vslot_at(env, kept)->next, memory_order_relaxed);
        n_held += kept != 0;
    }
    return n_held;
}

void
xac_version_cut(struct xac_env *env, struct xac_page *page, uint64_t bound)
{
    struct xac_needs needs = {.upper = bound, .n_points = 0};
    uint64_t left = UINT64_MAX;

    xac_assert(page != NULL);
    (void)xac_version_thin(env, page, &needs, &left);
}

/* count_list -- the share of the list that begins with a version slot; 0 if none begins there. */
static uint64_t
count_list(const struct xac_env *env, uint64_t vslot_no, uint64_t commit,
           const struct xac_needs *needs)
{
    uint64_t at =
        atomic_load_explicit(&xac_vslot_at(env, vslot_no)->page, memory_order_relaxed);
    const struct xac_page *page = (const struct xac_page *)xac_shm_at(&env->shm, at);
    struct glimpse newer, seen;
    uint64_t n_held = 0;
    uint64_t left = frames_there(env); /* a damaged list may be a circle */

    /* Acquire: pairs with the release in link_version. */
    if (atomic_load_explicit(&page->head, memory_order_acquire) != vslot_no
        || !look_at(env, vslot_no, at, &newer))
        return 0;
    while (left-- > 0 && newer.next != 0 && look_at(env, newer.next, at, &seen)) {
        n_held += newer.commit <= commit && is_needed(needs, seen.commit, newer.commit);
        newer = seen;
    }
    return n_held;
}

uint64_t
xac_version_count_held(const struct xac_env *env, uint64_t commit,
                       const struct xac_needs *needs, uint64_t start)
{
    uint64_t have = frames_there(env);
    uint64_t n_held = 0;

    xac_assert(needs->n_points <= XAC_NEEDS_POINTS);
    for (uint64_t n = 1; n <= have; n++) {
        uint64_t word = atomic_load_explicit(&xac_vslot_at(env, n)->word,
                                             memory_order_acquire); /* pairs with the
                                                          stores of the word */

        if (xac_vslot_state(word) == XAC_VSLOT_VERSION)
            n_held += count_list(env, n, commit, needs);
        else if (xac_vslot_state(word) == XAC_VSLOT_LIMBO)
            n_held += (word & XAC_VSLOT_LOW) > start;
    }
    return n_held;
}

/* held_by -- is a version held back for a reader?  newer: number of the next newer one of its
   page, 0: it is the newest. */
static bool
held_by(const struct xac_reader_held *r, uint64_t seen, uint64_t newer, uint64_t commit)
{
    xac_assert(newer == 0 || seen < newer);
    if (newer == 0)
        return seen > r->parent && seen <= commit;
    return newer <= commit && seen <= r->parent && r->parent < newer;
}

/* count_page -- the list that begins with a version slot, if one does. */
static void
count_page(const struct xac_env *env, uint64_t vslot_no, uint64_t commit,
           struct xac_reader_held *held, size_t n_held)
{
    uint64_t at =
        atomic_load_explicit(&xac_vslot_at(env, vslot_no)->page, memory_order_relaxed);
    const struct xac_page *page = (const struct xac_page *)xac_shm_at(&env->shm, at);
    uint64_t left = frames_there(env); /* a damaged list may be a circle */
    struct glimpse seen = {.next = vslot_no};
    uint64_t newer = 0;

    xac_assert(held != NULL);
    /* Acquire: pairs with the release in link_version. */
    if (atomic_load_explicit(&page->head, memory_order_acquire) != vslot_no)
        return;
    while (left-- > 0 && seen.next != 0 && look_at(env, seen.next, at, &seen)) {
        for (size_t i = 0; i < n_held; i++)
            held[i].n += held_by(&held[i], seen.commit, newer, commit);
        newer = seen.commit;
    }
}

void
xac_version_count_back(const struct xac_env *env, uint64_t commit,
                       struct xac_reader_held *held, size_t n_held)
{
    uint64_t have = frames_there(env);

    xac_assert(held != NULL || n_held == 0);
    xac_assert(commit <= XAC_VSLOT_LOW);
    for (uint64_t n = 1; n <= have && n_held > 0; n++) {
        uint64_t word = atomic_load_explicit(&xac_vslot_at(env, n)->word,
                                             memory_order_acquire); /* pairs with the
                                                          stores of the word */

        if (xac_vslot_state(word) == XAC_VSLOT_VERSION)
            count_page(env, n, commit, held, n_held);
        else if (xac_vslot_state(word) == XAC_VSLOT_LIMBO)
            for (size_t i = 0; i < n_held; i++)
                held[i].n += (word & XAC_VSLOT_LOW) > held[i].start;
    }
}

void
xac_version_unlink(struct xac_env *env, struct xac_page *page, uint64_t bound,
                   uint64_t unlink_no)
{
    _Atomic uint64_t *link = &page->head;
    uint64_t at = atomic_load_explicit(link, memory_order_relaxed);

    xac_assert(xac_lock_is_mine(&env->ctl->chain.publish));
    xac_assert(bound < unlink_no);
    while (at != 0
           && atomic_load_explicit(&xac_vslot_at(env, at)->commit, memory_order_relaxed)
                  > bound) {
        link = &xac_vslot_at(env, at)->next;
        at = atomic_load_explicit(link, memory_order_relaxed);
    }
    /* In limbo before it is off the list: a sweep, should we die, may not free it at once.
       A reader may stand on this version slot: it keeps its number and its link, and is freed
       when no transaction is left that started before the unlink. */
    for (uint64_t old = at; old != 0;) {
        struct xac_vslot *f = xac_vslot_at(env, old);
        uint64_t word = atomic_load_explicit(&f->word, memory_order_relaxed);

        if (xac_vslot_state(word) != XAC_VSLOT_LIMBO)
            xac_count(&env->ctl->versions.limbo, 1);
        atomic_store_explicit(&f->word, xac_vslot_word(XAC_VSLOT_LIMBO, unlink_no),
                              memory_order_relaxed);
        old = atomic_load_explicit(&f->next, memory_order_relaxed);
    }
    xac_kill_point("s limbo");
    /* Release: pairs with the acquire in xac_version_find; the file holds the page, and a
       sweep that does not find the version slot listed finds it in limbo. */
    atomic_store_explicit(link, 0, memory_order_release);
    xac_kill_point("s unlinked");
    xac_assert(atomic_load_explicit(link, memory_order_relaxed) == 0);
}

/* is_listed -- does the page's list reach the version slot? */
static bool
is_listed(const struct xac_env *env, uint64_t vslot_no)
{
    struct xac_vslot *f = xac_vslot_at(env, vslot_no);
    uint64_t at = atomic_load_explicit(&f->page, memory_order_relaxed);
    const struct xac_page *page = (const struct xac_page *)xac_shm_at(&env->shm, at);
    uint64_t commit;

    xac_assert(at != 0);
    return xac_version_find(env, page,
                            atomic_load_explicit(&f->commit, memory_order_relaxed),
                            &commit)
           == vslot_no;
}

/*
 * sweep_taken -- may a version slot be freed, for its taker is gone?  A reaper may be at it, and
 * another transaction have taken the version slot since: so it must be the same word as before
 * while the transaction slot is free, and is not used in between.
 */
static bool
sweep_taken(const struct xac_env *env, const struct xac_vslot *v, uint64_t word)
{
    const struct xac_txn *txn = xac_txn_at(env, word & XAC_VSLOT_LOW);
    uint64_t was = atomic_load_explicit(&txn->word, memory_order_acquire); /* pairs with
                                                                              its ends */

    return xac_txn_state(was) == XAC_TXN_FREE
           /* Acquire: pairs with the exchange in claim. */
           && atomic_load_explicit(&v->word, memory_order_acquire) == word
           && atomic_load_explicit(&txn->word, memory_order_relaxed) == was;
}

/* is_over -- may a version slot with this word, which is no VERSION, be freed? */
static bool
is_over(const struct xac_env *env, const struct xac_vslot *f, uint64_t word,
        uint64_t settled)
{
    enum xac_vslot_state state = xac_vslot_state(word);

    xac_assert(settled <= XAC_VSLOT_LOW);
    return state == XAC_VSLOT_LIMBO
               ? (word & XAC_VSLOT_LOW) <= settled
               : state == XAC_VSLOT_TAKEN && sweep_taken(env, f, word);
}

uint64_t
xac_version_sweep_some(struct xac_env *env, const struct xac_needs *needs,
                       uint64_t settled, uint64_t from, uint64_t work)
{
    uint64_t have = frames_there(env);

    xac_assert(xac_lock_is_mine(&env->ctl->chain.gc));
    xac_assert(needs->n_points <= XAC_NEEDS_POINTS);
    for (; work > 0 && from <= have; from += work > 0) {
        struct xac_vslot *f = xac_vslot_at(env, from);
        /* Acquire: pairs with the stores of the word. */
        uint64_t word = atomic_load_explicit(&f->word, memory_order_acquire);

        work--;
        if (xac_vslot_state(word) == XAC_VSLOT_VERSION) {
            if ((word & XAC_VSLOT_LOW) <= needs->upper)
                cut_older(env, from, needs, &work);
        } else if (is_over(env, f, word, settled)) {
            xac_version_give_back(env, from);
        }
    }
    xac_kill_point("sweep");
    return from;
}

/*
 * thin_all -- every page that has versions up to `upper`: by each of these that is still there.  The
 * first one thins the page, and then only the versions that somebody needs are left.  (Not by the
 * version slot that heads the list: pages that are written all the time have another head before
 * the loop comes to it.)
 */
static void
thin_all(struct xac_env *env, const struct xac_needs *needs)
{
    uint64_t have = frames_there(env), left = UINT64_MAX;

    xac_assert(needs->n_points <= XAC_NEEDS_POINTS);
    for (uint64_t n = 1; n <= have; n++) {
        struct xac_vslot *f = xac_vslot_at(env, n);
        uint64_t word = atomic_load_explicit(&f->word, memory_order_acquire); /* pairs
                                                        with the stores of the word */
        uint64_t page;

        if (xac_vslot_state(word) != XAC_VSLOT_VERSION
            || (word & XAC_VSLOT_LOW) > needs->upper)
            continue;
        page = atomic_load_explicit(&f->page, memory_order_relaxed);
        (void)xac_version_thin(env, (struct xac_page *)xac_shm_at(&env->shm, page), needs,
                               &left);
    }
}

void
xac_version_sweep_for(struct xac_env *env, const struct xac_needs *needs,
                      uint64_t settled)
{
    struct xac_versions *v = &env->ctl->versions;
    uint64_t have = frames_there(env);
    uint64_t used = 0, limbo = 0;

    xac_assert(xac_lock_is_mine(&env->ctl->chain.gc));
    thin_all(env, needs); /* then few are left below upper, each to be looked for */
    for (uint64_t n = 1; n <= have; n++) {
        struct xac_vslot *f = xac_vslot_at(env, n);
        uint64_t word = atomic_load_explicit(&f->word, memory_order_acquire); /* pairs
                                                        with the stores of the word */
        enum xac_vslot_state state = xac_vslot_state(word);

        if (state == XAC_VSLOT_FREE)
            continue;
        if (state == XAC_VSLOT_VERSION
                ? (word & XAC_VSLOT_LOW) <= needs->upper && !is_listed(env, n)
                : is_over(env, f, word, settled)) {
            xac_version_give_back(env, n);
        } else {
            used++;
            limbo += state == XAC_VSLOT_LIMBO;
        }
    }
    xac_kill_point("sweep");
    atomic_store_explicit(&v->used, used, memory_order_relaxed);
    atomic_store_explicit(&v->limbo, limbo, memory_order_relaxed);
    xac_assert(used <= have);
    xac_assert(limbo <= used);
}

void
xac_version_sweep(struct xac_env *env, uint64_t bound, uint64_t settled)
{
    struct xac_needs needs = {.upper = bound, .n_points = 0};

    xac_version_sweep_for(env, &needs, settled);
}
