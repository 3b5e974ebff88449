/* SPDX-License-Identifier: MIT */
/*
 * world_state.c -- the state of a world: copy, put back, hash; invariants.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/digest.h"
#include "checkpoint/checkpoint.h"
#include "env/env.h"
#include "shared/registry.h"
#include "sim.h"
#include "store/version.h"
#include "txn/reap.h"
#include "view/fault.h"
#include "view/view.h"
#include "world.h"
#include "world_state.h"

/* Ring entries that a run may touch, and version slots and slots that are looked at. */
#define RING_USED   128
#define FRAMES_SEEN 16
#define SLOTS_SEEN  16

/* One member's private state. */
struct private_state {
    struct xac_env env;
    struct xac_view view;
};

struct snapshot {
    uint64_t brk;
    uint8_t *bytes; /* of the region up to brk */
    struct private_state member[MODEL_ACTORS + 1];
    uint8_t *file; /* the mapped file, shared, to be written                           */
    uint64_t page; /* offset of the entry of page 0                                    */
};

/* The region's parts that a run may change, less the ring's rest. */
struct part {
    uint64_t from, to;
};

static struct xac_control *
ctl_of(const struct world *w)
{
    return w->member[0].env->ctl;
}

static void
parts_of(const struct world *w, struct part part[2])
{
    uint64_t ring = offsetof(struct xac_control, chain.ring);

    part[0] = (struct part){0, ring + RING_USED * sizeof(struct xac_ring_entry)};
    part[1] = (struct part){ring + XAC_RING_ENTRIES * sizeof(struct xac_ring_entry),
                            w->snapshot->brk};
}

static struct xac_page *
page_at(const struct world *w, int page)
{
    struct xac_env *env = w->member[0].env;
    struct xac_file *file = xac_file_at(env, 1);

    return xac_ptab_page(&env->shm, &file->root, 1, (uint64_t)page);
}

/* ---- Copy ------------------------------------------------------------------------------ */

void
world_snapshot(struct world *w)
{
    const struct xac_env *env = w->member[0].env;
    struct snapshot *s = calloc(1, sizeof *s);
    void *p;

    sim_must(s != NULL);
    w->snapshot = s;
    s->brk = atomic_load(&ctl_of(w)->shm.brk);
    s->bytes = malloc(s->brk);
    sim_must(s->bytes != NULL);
    memcpy(s->bytes, env->shm.base, s->brk);
    for (int i = 0; i <= MODEL_ACTORS; i++) {
        if (w->member[i].env == NULL)
            continue;
        s->member[i].env = *w->member[i].env;
        s->member[i].view = *w->member[i].view;
    }
    p = mmap(NULL, w->member[0].view->area.length, PROT_READ | PROT_WRITE, MAP_SHARED,
             w->member[0].view->fd, 0);
    sim_must(p != MAP_FAILED);
    s->file = p;
    s->page = xac_shm_offset(&env->shm, page_at(w, 0));
    sim_must(w->first_number + WORLD_NUMBERS < RING_USED);
}

void
world_snapshot_free(struct world *w)
{
    (void)munmap(w->snapshot->file, w->member[0].view != NULL
                                        ? w->member[0].view->area.length
                                        : MODEL_PAGES * 4096u);
    free(w->snapshot->bytes);
    free(w->snapshot);
    w->snapshot = NULL;
}

static uint64_t *
word_at(void *bytes, size_t page_size, int page, bool is_last)
{
    return (uint64_t *)(void *)((uint8_t *)bytes + (size_t)page * page_size
                                + (is_last ? page_size - 8 : 0));
}

void
world_snapshot_restore(struct world *w)
{
    const struct snapshot *s = w->snapshot;
    uint8_t *base = w->member[0].env->shm.base;
    uint64_t brk = atomic_load(&ctl_of(w)->shm.brk);
    struct part part[2];

    parts_of(w, part);
    if (brk > s->brk)
        memset(base + s->brk, 0, brk - s->brk); /* as fresh from the file */
    for (int i = 0; i < 2; i++)
        memcpy(base + part[i].from, s->bytes + part[i].from, part[i].to - part[i].from);
    for (int i = 0; i <= MODEL_ACTORS; i++) {
        struct xac_env *env = w->member[i].env;
        struct xac_view *v = w->member[i].view;
        bool had_copies;

        if (env == NULL)
            continue;
        had_copies = v->pages.n_copies != 0;
        world_saved_restore(&w->member[i]);
        *env = s->member[i].env;
        *v = s->member[i].view;
        for (int p = 0; p < MODEL_PAGES; p++)
            had_copies |= v->pages.at[p].copy != XAC_COPY_NONE;
        memset(v->pages.at, 0, v->area.n_pages * sizeof v->pages.at[0]);
        (void)v->area.ops->protect(&v->area, 0, v->area.n_pages, XAC_PROT_NONE);
        if (had_copies)
            (void)v->area.ops->discard(&v->area, 0, v->area.n_pages);
    }
    for (int p = 0; p < MODEL_PAGES; p++) {
        size_t size = w->member[0].env->page_size;

        *word_at(s->file, size, p, false) = *word_at(s->file, size, p, true) =
            model_first_value(p);
    }
}

/* ---- Hash ------------------------------------------------------------------------------ */

/* What counts of a member's private state. */
struct private_digest {
    uint64_t n_entries, alone_epoch, n_lost, cursor, freed, parts[10];
    struct xac_view_page page[MODEL_PAGES];
    uint64_t word[MODEL_PAGES][2];
    uint8_t prot[MODEL_PAGES];
};

static uint64_t
hash_member(const struct world_member *m, uint64_t seed)
{
    const struct xac_ctx *ctx = &m->env->ctx;
    const struct xac_view *v = m->view;
    struct private_digest d;

    memset(&d, 0, sizeof d);
    d.n_entries = ctx->n_entries;
    d.alone_epoch = ctx->alone_epoch;
    d.cursor = m->env->buffers.cursor;
    d.freed = xac_xxh64(m->env->buffers.freed, sizeof m->env->buffers.freed)
              + m->env->buffers.n_freed;
    d.n_lost = ctx->n_lost;
    d.parts[0] = ctx->is_query | (uint64_t)ctx->saw_dead << 1
                 | (uint64_t)v->staying.is_alone << 2 | (uint64_t)m->is_dead << 3
                 | (uint64_t)m->is_guest << 4;
    d.parts[1] = v->staying.epoch;
    d.parts[2] = v->staying.retry;
    d.parts[3] = v->pages.n_copies;
    d.parts[4] = v->pages.low;
    d.parts[5] = v->pages.high;
    d.parts[6] = m->env->ctx.alive_until;
    d.parts[7] = m->env->ctx.alive_last;
    d.parts[8] = v->staying.shown;
    d.parts[9] = ctx->is_at | (uint64_t)ctx->keeps << 1
                 | (uint64_t)v->staying.is_kept << 2 | (uint64_t)v->staying.n_warm << 3;
    memcpy(d.page, v->pages.at, sizeof d.page);
    for (int p = 0; p < MODEL_PAGES; p++) {
        d.prot[p] = world_prot(v, p);
        d.word[p][0] = *word_at(v->area.base, v->area.page_size, p, false);
        d.word[p][1] = *word_at(v->area.base, v->area.page_size, p, true);
    }
    return world_saved_hash(m, seed * 31 + xac_xxh64(&d, sizeof d));
}

uint64_t
world_hash(const struct world *w, uint64_t seed)
{
    struct xac_env *env = w->member[0].env;
    uint64_t h = seed, n = atomic_load(&env->ctl->versions.slots.count);
    struct xac_rare_counters counters = env->ctl->counters;
    uint64_t word[2];
    struct part part[2];

    parts_of(w, part);
    part[1].to = atomic_load(&env->ctl->shm.brk);
    memset(&env->ctl->counters, 0, sizeof counters); /* statistics do not matter */
    for (uint64_t slot = 0; slot < atomic_load(&env->ctl->txns.count); slot++)
        memset(&xac_txn_at(env, slot)->counters, 0, sizeof(struct xac_counters));
    for (int i = 0; i < 2; i++)
        h = h * 31 + xac_xxh64(env->shm.base + part[i].from, part[i].to - part[i].from);
    env->ctl->counters = counters;
    for (int i = 0; i <= MODEL_ACTORS; i++) {
        if (w->member[i].env != NULL && w->member[i].view != NULL)
            h = hash_member(&w->member[i], h);
    }
    for (uint64_t f = 1; f <= n; f++) {
        uint8_t *bytes = xac_version_bytes(env, f);

        word[0] = *word_at(bytes, env->page_size, 0, false);
        word[1] = *word_at(bytes, env->page_size, 0, true);
        h = h * 31 + xac_xxh64(word, sizeof word);
    }
    for (int p = 0; p < MODEL_PAGES; p++)
        h = h * 31 + *word_at(w->snapshot->file, env->page_size, p, false);
    return h;
}

/* ---- Points ---------------------------------------------------------------------------- */

#define FIELD(type, name)     \
 {                            \
  offsetof(type, name), #name \
 }

struct field {
    uint64_t offset;
    const char *name;
};

static const struct field control_fields[] = {
    FIELD(struct xac_control, chain.commit), FIELD(struct xac_control, chain.publishing),
    FIELD(struct xac_control, chain.mark),   FIELD(struct xac_control, chain.publish),
    FIELD(struct xac_control, chain.gc),     FIELD(struct xac_control, reap),
    FIELD(struct xac_control, checkpoint),   FIELD(struct xac_control, versions.grow),
    FIELD(struct xac_control, alone),        FIELD(struct xac_control, turn),
    FIELD(struct xac_control, next_ticket),  FIELD(struct xac_control, chain.past),
};
static const struct field txn_fields[] = {
    FIELD(struct xac_txn, word),          FIELD(struct xac_txn, parent),
    FIELD(struct xac_txn, start),         FIELD(struct xac_txn, age),
    FIELD(struct xac_txn, reads_unknown), FIELD(struct xac_txn, n_entries),
    FIELD(struct xac_txn, ticket),        FIELD(struct xac_txn, snapshot),
};
static const struct field page_fields[] = {
    FIELD(struct xac_page, access),
    FIELD(struct xac_page, head),
    FIELD(struct xac_page, id),
};
static const struct field frame_fields[] = {
    FIELD(struct xac_vslot, word),
    FIELD(struct xac_vslot, next),
    FIELD(struct xac_vslot, commit),
};

/* An array in the region whose elements have fields that matter. */
struct place {
    const char *name;
    uint64_t base, elem_bytes, n;
    const struct field *field;
    size_t n_fields;
};

#define N_OF(a) (sizeof(a) / sizeof *(a))

static const struct field *
find_field(const struct world *w, uint64_t at, struct place *found)
{
    const struct xac_control *ctl = ctl_of(w);
    const struct place places[] = {
        {"", 0, sizeof *ctl, 1, control_fields, N_OF(control_fields)},
        {"txn", atomic_load(&ctl->txns.chunk[0]), sizeof(struct xac_txn), SLOTS_SEEN,
         txn_fields, N_OF(txn_fields)},
        {"page", w->snapshot->page, sizeof(struct xac_page), MODEL_PAGES, page_fields,
         N_OF(page_fields)},
        {"frame", atomic_load(&ctl->versions.slots.chunk[0]), sizeof(struct xac_vslot),
         FRAMES_SEEN, frame_fields, N_OF(frame_fields)},
    };

    for (size_t i = 0; i < N_OF(places); i++) {
        const struct place *p = &places[i];

        if (at < p->base || at >= p->base + p->n * p->elem_bytes)
            continue;
        *found = *p;
        for (size_t k = 0; k < p->n_fields; k++) {
            if ((at - p->base) % p->elem_bytes == p->field[k].offset)
                return &p->field[k];
        }
    }
    return NULL;
}

bool
world_is_point(const struct world *w, const volatile void *at)
{
    uint64_t offset = world_offset(at);
    struct place p;

    return offset != 0 && find_field(w, offset, &p) != NULL;
}

const char *
world_name(const struct world *w, const volatile void *at, char *buf)
{
    uint64_t offset = world_offset(at);
    struct place p;
    const struct field *f = offset == 0 ? NULL : find_field(w, offset, &p);

    if (f == NULL)
        return "?";
    if (p.n == 1)
        return f->name;
    (void)sprintf(buf, "%s[%llu].%s", p.name,
                  (unsigned long long)((offset - p.base) / p.elem_bytes), f->name);
    return buf;
}
