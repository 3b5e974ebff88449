/* SPDX-License-Identifier: MIT */
/*
 * world_check.c -- invariants of the shared state, after each step and at the end.
 */
#include <config.h>

#include <string.h>

#include "checkpoint/checkpoint.h"
#include "env/env.h"
#include "shared/registry.h"
#include "sim.h"
#include "store/version.h"
#include "txn/reap.h"
#include "txn/ctree.h"
#include "view/view.h"
#include "world.h"
#include "world_state.h"

#define ACCESS_MASK ((UINT64_C(1) << 30) - 1) /* see conflict.c: HEAD_MASK */

static struct xac_page *
page_at(const struct world *w, int page)
{
    struct xac_env *env = w->member[0].env;
    struct xac_file *file = xac_file_at(env, 1);

    return xac_ptab_page(&env->shm, &file->root, 1, (uint64_t)page);
}

/* check_versions -- a page's list: sorted, and what its words say. */
static void
check_versions(const struct world *w, int page)
{
    struct xac_env *env = w->member[0].env;
    const struct xac_page *pg = page_at(w, page);
    uint64_t n = atomic_load(&pg->head);
    uint64_t before = UINT64_MAX;

    while (n != 0) {
        const struct xac_vslot *f = xac_vslot_at(env, n);
        uint64_t commit = atomic_load(&f->commit);

        sim_must(xac_vslot_state(atomic_load(&f->word)) == XAC_VSLOT_VERSION
                 || atomic_load(&env->ctl->chain.publishing) == XAC_PUBLISHING_MOVE);
        sim_must(commit < before);
        sim_must(atomic_load(&f->page) == xac_shm_offset(&env->shm, pg));
        sim_must(commit <= xac_chain_commit(env)
                 || atomic_load(&env->ctl->chain.publishing) != 0);
        before = commit;
        n = atomic_load(&f->next);
    }
}

/* check_access -- one writer alone or readers only, among those who may yet commit. */
static void
check_access(const struct world *w, int page)
{
    struct xac_env *env = w->member[0].env;
    uint64_t at = atomic_load(&page_at(w, page)->access) & ACCESS_MASK;
    int readers = 0, writers = 0, all = 0;

    while (at != 0) {
        const struct xac_entry *e = xac_shm_at(&env->shm, at * 64);
        enum xac_txn_state s =
            xac_txn_state(atomic_load(&xac_txn_at(env, e->slot)->word));

        sim_must(all++ < 100);
        sim_must(e->page == xac_shm_offset(&env->shm, page_at(w, page)));
        if (s == XAC_TXN_PENDING || s == XAC_TXN_COMMITTING) {
            if ((atomic_load(&e->mode) & XAC_SET_WRITE) != 0)
                writers++;
            else
                readers++;
        }
        at = atomic_load(&e->next);
    }
    sim_must(writers == 0 || (writers == 1 && readers == 0));
}

/* bytes_at -- what a reader with that parent would be shown. */
static uint64_t
value_at(const struct world *w, int page, uint64_t parent)
{
    struct xac_env *env = w->member[0].env;
    uint64_t commit;
    uint64_t vslot = xac_version_find(env, page_at(w, page), parent, &commit);
    const uint8_t *bytes =
        vslot != 0 ? xac_version_bytes(env, vslot)
                   : w->member[0].view->file_bytes + (size_t)page * env->page_size;

    return *(const uint64_t *)(const void *)bytes;
}

/* check_live -- whatever a live transaction may yet read must be there. */
static void
check_live(const struct world *w, const struct model *m, int a)
{
    const struct xac_txn *t = w->member[a].env->ctx.txn;
    uint64_t parent = atomic_load(&t->parent), start = atomic_load(&t->start);
    uint32_t state;

    sim_must(start <= parent && parent <= w->last_number && start >= w->first_number);
    state = w->state_of[parent - w->first_number];
    for (int p = 0; p < MODEL_PAGES; p++) {
        if (value_at(w, p, parent) != m->state[state][p])
            sim_fail(
                __FILE__, __LINE__,
                "participant %c with parent %llu would read page %d as %llx, not %llx",
                'A' + a, (unsigned long long)parent, p,
                (unsigned long long)value_at(w, p, parent),
                (unsigned long long)m->state[state][p]);
    }
}

/* check_file -- what a file holds has been committed at some time. */
static void
check_file(const struct world *w, const struct model *m, int page)
{
    size_t at = (size_t)page * w->member[0].env->page_size;
    uint64_t value =
        *(const uint64_t *)(const void *)(w->member[0].view->file_bytes + at);
    uint32_t s = 0;

    while (s < m->n_states && m->state[s][page] != value)
        s++;
    if (s == m->n_states)
        sim_fail(__FILE__, __LINE__, "the file's page %d holds %llx", page,
                 (unsigned long long)value);
}

void
world_check(const struct world *w, const struct model *m, uint32_t is_within)
{
    const struct xac_env *env = w->member[0].env;

    sim_must(atomic_load(&env->ctl->chain.mark) <= xac_chain_commit(env));
    /* It may drift, but a store that seems to be full would grow and grow. */
    sim_must(atomic_load(&env->ctl->versions.used)
             <= atomic_load(&env->ctl->versions.slots.count));
    for (int p = 0; p < MODEL_PAGES; p++) {
        check_versions(w, p);
        check_access(w, p);
        check_file(w, m, p);
    }
    for (int a = 0; a < MODEL_ACTORS; a++) {
        enum model_status status;
        const char *wrong;

        if (w->member[a].env == NULL || w->member[a].is_dead || (is_within >> a & 1) != 0
            || !m->actor[a].is_open)
            continue;
        status = world_status(w, a);
        sim_must(status != MODEL_NONE);
        check_live(w, m, a);
        wrong = model_status(m, a, status);
        if (wrong == NULL)
            wrong = model_judge(m, a, status);
        if (wrong != NULL)
            sim_fail(__FILE__, __LINE__, "participant %c: %s", 'A' + a, wrong);
    }
}

/* check_idle -- slots and access lists are empty. */
static void
check_idle(const struct world *w)
{
    struct xac_env *env = w->member[0].env;
    uint64_t n = atomic_load(&env->ctl->txns.count);

    for (uint64_t i = 0; i < n; i++) {
        const struct xac_txn *t = xac_txn_at(env, i);
        enum xac_txn_state s = xac_txn_state(atomic_load(&t->word));

        sim_must(s == XAC_TXN_FREE || s == XAC_TXN_IDLE);
        sim_must(atomic_load(&t->n_entries) == 0 && t->n_written == 0);
        sim_must(atomic_load(&t->reads_unknown) == 0);
    }
    for (int p = 0; p < MODEL_PAGES; p++)
        sim_must(atomic_load(&page_at(w, p)->access) == 0);
    sim_must(atomic_load(&env->ctl->chain.publishing) == 0);
}

/* check_held -- after the dead have been cleaned up: no snapshot is held by one of them. */
static void
check_held(const struct world *w)
{
    struct xac_env *env = w->member[0].env;
    uint64_t n = atomic_load(&env->ctl->txns.count);

    for (uint64_t i = 0; i < n; i++) {
        uint64_t word = atomic_load(&xac_txn_at(env, i)->word);

        for (int a = 0; a < MODEL_ACTORS; a++)
            sim_must(xac_txn_state(word) != XAC_TXN_SNAPSHOT || !w->member[a].is_dead
                     || xac_txn_participant(word) != w->member[a].env->self);
    }
}

/* check_frames -- every version slot in use is some page's only version; ret how many. */
static uint64_t
check_frames(const struct world *w)
{
    struct xac_env *env = w->member[0].env;
    uint64_t n = atomic_load(&env->ctl->versions.slots.count);
    uint64_t used = 0, heads = 0;

    for (uint64_t i = 1; i <= n; i++)
        used +=
            xac_vslot_state(atomic_load(&xac_vslot_at(env, i)->word)) != XAC_VSLOT_FREE;
    for (int p = 0; p < MODEL_PAGES; p++) {
        uint64_t head = atomic_load(&page_at(w, p)->head);

        heads += head != 0;
        sim_must(head == 0 || atomic_load(&xac_vslot_at(env, head)->next) == 0);
    }
    if (used != heads)
        sim_fail(__FILE__, __LINE__, "%llu frames in use for %llu pages",
                 (unsigned long long)used, (unsigned long long)heads);
    return used;
}

void
world_check_end(struct world *w, const struct model *m)
{
    struct world_member *me = world_watcher(w);
    bool somebody_died = false;
    int a = (int)(me - w->member);

    for (int i = 0; i < MODEL_ACTORS; i++)
        somebody_died |= w->member[i].is_dead;
    if (somebody_died)
        world_reap(w, a);
    check_held(w);
    world_let_all_go(w, a);
    check_idle(w);
    world_gc(w, a);
    /* What queries held back is left to be swept when it is worth it. */
    xac_gc_lock(me->env);
    xac_version_sweep(me->env, xac_chain_commit(me->env), me->env->ctl->chain.settled);
    xac_gc_unlock(me->env);
    (void)check_frames(w);
    for (int p = 0; p < MODEL_PAGES; p++)
        sim_must(value_at(w, p, xac_chain_commit(me->env))
                 == m->state[m->n_states - 1][p]);
    world_checkpoint(w, a);
    sim_must(check_frames(w) == 0);
    sim_must(atomic_load(&me->env->ctl->versions.limbo) == 0);
    for (int p = 0; p < MODEL_PAGES; p++) {
        const uint8_t *bytes = me->view->file_bytes + (size_t)p * me->env->page_size;

        sim_must(atomic_load(&page_at(w, p)->head) == 0);
        sim_must(*(const uint64_t *)(const void *)bytes == m->state[m->n_states - 1][p]);
        sim_must(memcmp(bytes, bytes + me->env->page_size - 8, 8) == 0);
    }
    check_idle(w);
}
