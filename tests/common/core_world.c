/* SPDX-License-Identifier: MIT */
/*
 * core_world.c -- see core_world.h.
 */
#include <config.h>

#include "core_world.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/env.h"
#include "base/err.h"
#include "commit/txn.h"
#include "shared/registry.h"
#include "txn/conflict.h"
#include "txn/ctree.h"
#include "txn/drop.h"
#include "view/file_register.h"

static const struct xac_env_options options = {
    .checkpoint_bytes = 0,
    .segment_bytes = 65536,
    .ring_bytes = 65536,
};

struct xac_env *
world_open(int flags)
{
    struct xac_env *env = NULL;
    uint64_t hold;
    uint32_t id;
    int rc = xac_env_open(ENV_DIR, flags, &options, &env);
    int fd;

    if (rc != 0)
        env_fail(__FILE__, __LINE__, "opening: %d, %s", rc, xac_err_text());
    fd = open(ENV_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    must(fd >= 0);
    must(ftruncate(fd, (off_t)(WORLD_PAGES * env_page())) == 0);
    must_eq(xac_registry_file(env, "../" ENV_FILE, fd, WORLD_PAGES * env_page(), &id,
                              &hold),
            0);
    must_eq(id, 1);
    must(close(fd) == 0);
    return env;
}

struct xac_page *
world_page(struct xac_env *env, uint64_t page_no)
{
    struct xac_page *page =
        xac_ptab_page(&env->shm, &xac_file_at(env, 1)->root, 1, page_no);

    must(page != NULL);
    return page;
}

void
world_begin(struct xac_env *env)
{
    must_eq(xac_txn_begin(env, &env->ctx, false), 0);
}

void
world_query(struct xac_env *env)
{
    must_eq(xac_txn_begin(env, &env->ctx, true), 0);
}

struct xac_entry *
world_entry(struct xac_env *env, uint64_t page_no)
{
    uint64_t at = xac_shm_offset(&env->shm, world_page(env, page_no));

    for (uint64_t i = 0; i < env->ctx.n_entries; i++) {
        struct xac_entry *e = xac_set_entry(&env->ctx, i);

        if (e->page == at)
            return e;
    }
    return NULL;
}

static bool
enter(struct xac_env *env, uint64_t page_no, uint32_t mode)
{
    struct xac_entry *e = world_entry(env, page_no);
    uint64_t index;

    if (e == NULL)
        e = xac_set_add(env, &env->ctx, world_page(env, page_no), mode, &index);
    must(e != NULL);
    return xac_conflict_enter(env, &env->ctx, e, mode);
}

bool
world_read(struct xac_env *env, uint64_t page_no)
{
    return enter(env, page_no, XAC_SET_READ);
}

bool
world_write(struct xac_env *env, uint64_t page_no)
{
    return enter(env, page_no, XAC_SET_READ | XAC_SET_WRITE);
}

void
world_store(struct xac_env *env, uint64_t page_no, uint64_t value)
{
    struct xac_entry *e = world_entry(env, page_no);
    uint8_t *bytes;

    must(e != NULL);
    if (e->vslot == 0) {
        must_eq(xac_version_take(env, env->ctx.slot, &e->vslot), 0);
        env->ctx.txn->n_written++;
    }
    bytes = xac_version_bytes(env, e->vslot);
    must(bytes != NULL);
    memcpy(bytes, &value, sizeof value);
}

bool
world_committing(struct xac_env *env)
{
    uint64_t word = atomic_load_explicit(&env->ctx.txn->word, memory_order_acquire);

    return xac_txn_state(word) == XAC_TXN_PENDING
           && atomic_compare_exchange_strong_explicit(
               &env->ctx.txn->word, &word,
               xac_txn_word(xac_txn_serial(word), env->self, XAC_TXN_COMMITTING),
               memory_order_acq_rel, memory_order_relaxed);
}

void
world_publish(struct xac_env *env)
{
    uint64_t word = atomic_load_explicit(&env->ctx.txn->word, memory_order_acquire);
    enum xac_publish_result r;

    do {
        xac_chain_populate(env);
        r = xac_chain_publish(env, env->ctx.slot, xac_txn_serial(word));
    } while (r == XAC_PUBLISH_ROOM && !xac_version_is_ready(env)); /* it has grown */
    must_eq(r, XAC_PUBLISH_DONE);
}

void
world_finish(struct xac_env *env)
{
    xac_txn_drop(env, env->ctx.slot, env->ctx.slot, XAC_TXN_IDLE);
    env->ctx.n_entries = 0;
    env->ctx.n_blocks = 0;
    env->ctx.saw_dead = false;
}

uint64_t
world_commit(struct xac_env *env)
{
    uint64_t number = 0;

    if (world_committing(env)) {
        world_publish(env);
        number = env->ctx.txn->number;
    }
    world_finish(env);
    return number;
}

uint64_t
world_put(struct xac_env *env, uint64_t page_no, uint64_t value)
{
    world_begin(env);
    must(world_write(env, page_no));
    world_store(env, page_no, value);
    return world_commit(env);
}

enum xac_txn_state
world_state(const struct xac_env *env)
{
    return xac_txn_state(atomic_load_explicit(&env->ctx.txn->word, memory_order_acquire));
}

uint64_t
world_value(struct xac_env *env, uint64_t page_no, uint64_t parent)
{
    uint64_t commit, value;
    uint64_t vslot = xac_version_find(env, world_page(env, page_no), parent, &commit);

    if (vslot == 0)
        return 0;
    must(xac_version_bytes(env, vslot) != NULL);
    memcpy(&value, xac_version_bytes(env, vslot), sizeof value);
    return value;
}

unsigned
world_list(struct xac_env *env, uint64_t page_no, uint64_t *commits, unsigned most)
{
    uint64_t at =
        atomic_load_explicit(&world_page(env, page_no)->head, memory_order_acquire);
    unsigned n = 0;

    while (at != 0) {
        const struct xac_vslot *f = xac_vslot_at(env, at);

        must(n < most);
        commits[n] = atomic_load_explicit(&f->commit, memory_order_relaxed);
        must(n == 0 || commits[n] < commits[n - 1]); /* sorted */
        n++;
        at = atomic_load_explicit(&f->next, memory_order_acquire);
    }
    return n;
}

uint64_t
world_vslots(const struct xac_env *env, enum xac_vslot_state state)
{
    uint64_t have =
        atomic_load_explicit(&env->ctl->versions.slots.count, memory_order_acquire);
    uint64_t n = 0;

    for (uint64_t f = 1; f <= have; f++) {
        n += xac_vslot_state(
                 atomic_load_explicit(&xac_vslot_at(env, f)->word, memory_order_relaxed))
             == state;
    }
    return n;
}
