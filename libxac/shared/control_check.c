/* SPDX-License-Identifier: MIT */
/*
 * control_check.c -- see control_check.h.
 */
#include <config.h>

#include "shared/control_check.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include <xac.h>

#include "base/err.h"
#include "log/slots.h"
#include "shared/layout.h"
#include "shared/ptab.h"

/* Nobody maps a file by a longer path. */
#define PATH_BYTES_MAX 65536u

/* A region that is looked at.  Everything is compared with `brk`, which is read first and only
   grows: what is named later may lie behind it, and the region is read again. */
struct look {
    const struct xac_control *ctl;
    struct xac_shm shm; /* for elements of arrays that have been checked               */
    uint64_t brk;
    uint64_t nodes_left; /* of page tables: more than fit are not there                */
    uint64_t links_left; /* of lists of versions: a longer one is a circle             */
    const char *name;
};

static uint64_t
get(const _Atomic uint64_t *word)
{
    /* Acquire: pairs with the releases of those who count elements up and link nodes. */
    return atomic_load_explicit(word, memory_order_acquire);
}

static int
damaged(const struct look *l, const char *what, uint64_t value)
{
    return xac_err(XAC_EDAMAGED, "control region %s: %s %" PRIu64, l->name, what, value);
}

/* is_inside -- do so many bytes from an offset on belong to blocks that were allocated? */
static bool
is_inside(const struct look *l, uint64_t offset, uint64_t bytes)
{
    return offset >= sizeof(struct xac_control) && offset % XAC_LINE_BYTES == 0
           && offset <= l->brk && bytes <= l->brk - offset;
}

/* is_inside_or_none -- the same of what need not be there. */
static bool
is_inside_or_none(const struct look *l, uint64_t offset, uint64_t bytes)
{
    return offset == 0 || is_inside(l, offset, bytes);
}

/* is_entry_or_none -- what a link in a list of entries names, in units of 64 bytes. */
static bool
is_entry_or_none(const struct look *l, uint64_t unit)
{
    return unit <= l->brk / XAC_LINE_BYTES
           && is_inside_or_none(l, unit * XAC_LINE_BYTES, sizeof(struct xac_entry));
}

/* ---- The parts --------------------------------------------------------------------------- */

static int
check_head(const struct look *l)
{
    const struct xac_control *c = l->ctl;
    static const struct {
        size_t offset;
        enum xac_lock_rank rank;
    } locks[] = {
        {offsetof(struct xac_control, reap), XAC_RANK_REAP},
        {offsetof(struct xac_control, files_lock), XAC_RANK_FILES},
        {offsetof(struct xac_control, checkpoint), XAC_RANK_CHECKPOINT},
        {offsetof(struct xac_control, versions.grow), XAC_RANK_GROW},
        {offsetof(struct xac_control, chain.publish), XAC_RANK_PUBLISH},
        {offsetof(struct xac_control, chain.gc), XAC_RANK_GC},
    };

    if (c->page_size < 512 || (c->page_size & (c->page_size - 1)) != 0)
        return damaged(l, "page size", c->page_size);
    if (c->policy > XAC_POLICY_SERIAL)
        return damaged(l, "policy", c->policy);
    if (memchr(c->dir, '\0', sizeof c->dir) == NULL)
        return damaged(l, "path of", sizeof c->dir);
    for (size_t i = 0; i < sizeof locks / sizeof locks[0]; i++) {
        const struct xac_lock *lk =
            (const struct xac_lock *)(const void *)((const uint8_t *)c + locks[i].offset);

        if (lk->rank != (int)locks[i].rank)
            return damaged(l, "lock at offset", locks[i].offset);
    }
    return 0;
}

static int
check_log(const struct look *l)
{
    const struct xac_control *c = l->ctl;
    const struct xac_log_shared *log = &c->log;
    uint64_t ring = log->ring_bytes, durable, written, tail;

    xac_assert(is_inside(l, sizeof(struct xac_control), 0));
    if ((c->flags & XAC_DURABLE) == 0)
        return 0;
    if (ring == 0 || (ring & (ring - 1)) != 0 || !is_inside(l, c->log_ring, ring))
        return damaged(l, "log buffer of", ring);
    if (log->segment_bytes < XAC_SEGMENT_HEADER
        || (log->segment_bytes & (log->segment_bytes - 1)) != 0)
        return damaged(l, "segment size", log->segment_bytes);
    if (log->page_size != c->page_size || log->generation != c->generation
        || memcmp(log->identity, c->identity, sizeof log->identity) != 0)
        return damaged(l, "log of generation", log->generation);
    if (log->flush.rank != XAC_RANK_FLUSH || log->prepare.rank != XAC_RANK_PREPARE)
        return damaged(l, "lock of the log, rank", (uint64_t)log->flush.rank);
    durable = get(&log->durable);
    written = get(&log->written);
    tail = get(&log->tail);
    if (log->start_lsn == 0 || durable < log->start_lsn || written < durable
        || tail < written || tail - durable > ring || get(&log->prepared) < tail)
        return damaged(l, "end of the log", tail);
    for (uint64_t i = 0; i < XAC_LOG_SLOTS; i++) {
        if (!xac_slot_is_sound(&log->followers.slot[i]))
            return damaged(l, "slot of a follower", i);
    }
    return 0;
}

/* check_group -- what its daemon has stored. */
static int
check_group(const struct look *l)
{
    const struct xac_control *c = l->ctl;
    const struct xac_group_shared *g = &c->group;
    uint64_t replicated = get(&g->replicated);
    /* Relaxed: one look at one word. */
    uint32_t deposed = atomic_load_explicit(&g->deposed, memory_order_relaxed);

    xac_assert(is_inside(l, sizeof(struct xac_control), 0));
    if (g->leads > 1
        || (g->leads != 0 && ((c->flags & XAC_DURABLE) == 0 || c->standby.is_one != 0)))
        return damaged(l, "leader of a group", g->leads);
    if (deposed > 1)
        return damaged(l, "deposed", deposed);
    /* `written` after it: see invariant (1) of group.h. */
    if (g->leads != 0 ? replicated < c->log.start_lsn || replicated > get(&c->log.written)
                      : replicated != 0)
        return damaged(l, "replicated up to LSN", replicated);
    return 0;
}

/* check_array -- its chunks, for as many elements as it counts. */
static int
check_array(const struct look *l, const struct xac_array *a, uint32_t elem_bytes,
            uint32_t base, const char *what)
{
    uint64_t count = get(&a->count), there = 0;

    xac_assert(elem_bytes != 0);
    xac_assert(base != 0);
    if (a->elem_bytes != elem_bytes || a->base != base)
        return damaged(l, what, a->elem_bytes);
    for (unsigned k = 0; k < XAC_ARRAY_CHUNKS; k++) {
        uint64_t at = get(&a->chunk[k]);
        uint64_t elems = k < 2 ? base : (uint64_t)base << (k - 1);

        if (elems > l->brk / elem_bytes ? at != 0
                                        : !is_inside_or_none(l, at, elems * elem_bytes))
            return damaged(l, what, at);
        if (at == 0 && there < count)
            return damaged(l, what, count);
        if (there < count)
            there += elems;
    }
    return there >= count ? 0 : damaged(l, what, count);
}

static int
check_arrays(const struct look *l)
{
    const struct xac_control *c = l->ctl;
    int rc = check_array(l, &c->participants, sizeof(struct xac_participant),
                         XAC_CONTROL_ELEMS, "participants");

    if (rc == 0)
        rc = check_array(l, &c->files, sizeof(struct xac_file), XAC_CONTROL_ELEMS,
                         "files");
    if (rc == 0)
        rc = check_array(l, &c->txns, sizeof(struct xac_txn), XAC_CONTROL_ELEMS,
                         "transactions");
    if (rc == 0)
        rc = check_array(l, &c->versions.slots, sizeof(struct xac_vslot),
                         XAC_CONTROL_VSLOTS, "frames");
    return rc;
}

/* check_list -- a page's versions, from the newest on. */
static int
check_list(struct look *l, uint64_t vslot)
{
    const struct xac_array *vslots = &l->ctl->versions.slots;

    for (uint64_t at = vslot; at != 0; l->links_left--) {
        if (at > get(&vslots->count) || l->links_left == 0)
            return damaged(l, "versions of a page, from frame", vslot);
        at =
            get(&((const struct xac_vslot *)xac_array_at(&l->shm, vslots, at - 1))->next);
    }
    return 0;
}

/* check_leaf -- entries of pages. */
static int
check_leaf(struct look *l, const struct xac_page *page, uint32_t file, uint64_t first)
{
    const uint64_t head_mask = (UINT64_C(1) << XAC_ACCESS_HEAD_BITS) - 1;
    const uint64_t owner_mask = (UINT64_C(1) << XAC_ACCESS_OWNER_BITS) - 1;

    xac_assert(file != 0);
    xac_assert(first % XAC_PTAB_LEAF_PAGES == 0);
    for (uint64_t i = 0; i < XAC_PTAB_LEAF_PAGES; i++) {
        uint64_t head = get(&page[i].head), id = get(&page[i].id);
        uint64_t access = get(&page[i].access);

        int rc = check_list(l, head);

        if (rc != 0)
            return rc;
        if (!is_entry_or_none(l, access & head_mask)
            || (access >> XAC_ACCESS_HEAD_BITS & owner_mask) > get(&l->ctl->txns.count))
            return damaged(l, "access word of a page", access);
        if (id != 0 && id != xac_page_id(file, first + i))
            return damaged(l, "page", id);
    }
    return 0;
}

/* check_node -- of a file's page table, and what is below it; level 0: a leaf. */
static int
check_node(struct look *l, uint64_t at, unsigned level, uint32_t file, uint64_t first)
{
    const _Atomic uint64_t *link;
    int rc = 0;

    xac_assert(level <= XAC_PTAB_LEVELS);
    xac_assert(file != 0);
    if (!is_inside(l, at, level == 0 ? XAC_PTAB_LEAF_BYTES : XAC_PTAB_NODE_BYTES))
        return damaged(l, "page table at offset", at);
    if (l->nodes_left-- == 0)
        return damaged(l, "page table of file", file);
    if (level == 0)
        return check_leaf(l, (const struct xac_page *)xac_shm_at(&l->shm, at), file,
                          first);
    link = (const _Atomic uint64_t *)xac_shm_at(&l->shm, at);
    for (uint64_t i = 0; i < XAC_PTAB_NODE_LINKS && rc == 0; i++) {
        uint64_t below = get(&link[i]);

        if (below != 0)
            rc = check_node(l, below, level - 1, file,
                            first + (i << xac_ptab_shift(level)));
    }
    return rc;
}

/* check_root -- a file's page table.  The check holds no lock: a checkpoint may free the table of a
   file that nobody maps, and sets its root to 0 first. */
static int
check_root(struct look *l, const struct xac_file *f, uint32_t file)
{
    uint64_t root = get(&f->root);
    uint64_t levels = root & XAC_PTAB_LEVEL_MASK;
    int rc;

    xac_assert(file != 0);
    if (root == 0)
        return 0;
    if (levels > XAC_PTAB_LEVELS)
        return damaged(l, "page table of file", file);
    rc = check_node(l, root & ~XAC_PTAB_LEVEL_MASK, (unsigned)levels, file, 0);
    return rc != 0 && get(&f->root) != root ? 0 : rc;
}

static int
check_files(struct look *l)
{
    uint64_t n = get(&l->ctl->files.count);
    int rc = 0;

    l->nodes_left = l->brk / XAC_PTAB_LEAF_BYTES;
    /* Each is in one list; while we look, some come to another one. */
    l->links_left = 2 * get(&l->ctl->versions.slots.count);
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        const struct xac_file *f =
            (const struct xac_file *)xac_array_at(&l->shm, &l->ctl->files, i);
        const char *path;

        if (f->path == 0) /* being registered, or its process has died */
            continue;
        if (f->path_len > PATH_BYTES_MAX
            || !is_inside(l, f->path, (uint64_t)f->path_len + 1))
            return damaged(l, "path of file", i + 1);
        path = (const char *)xac_shm_at(&l->shm, f->path);
        if (memchr(path, '\0', (size_t)f->path_len + 1) != path + f->path_len)
            return damaged(l, "path of file", i + 1);
        rc = check_root(l, f, (uint32_t)(i + 1));
    }
    return rc;
}

/* check_holds -- which files a participant maps. */
static int
check_holds(const struct look *l, uint64_t i)
{
    const struct xac_participant *p =
        (const struct xac_participant *)xac_array_at(&l->shm, &l->ctl->participants, i);
    uint64_t most = l->brk / sizeof(struct xac_hold);

    for (uint64_t at = p->holds; at != 0; most--) {
        const struct xac_hold *h;

        if (most == 0 || !is_inside(l, at, sizeof *h))
            return damaged(l, "files of participant", i);
        h = (const struct xac_hold *)xac_shm_at(&l->shm, at);
        if (h->file == 0 || h->file > get(&l->ctl->files.count)
            || !is_inside_or_none(l, h->prev, sizeof *h))
            return damaged(l, "file of participant", i);
        at = h->next;
    }
    return 0;
}

/* check_index -- chains of files that are found by path or inode; there is no end to one that
   comes back to itself. */
XAC_UNGUARDED static int
check_index(const struct look *l)
{
    uint64_t word = l->ctl->file_index.buckets, n_files = get(&l->ctl->files.count);
    uint64_t at = word & ~XAC_FILE_INDEX_SIZE_MASK;
    uint64_t size = word & XAC_FILE_INDEX_SIZE_MASK;
    uint64_t steps = 0;
    const uint32_t *bucket;

    if (word == 0)
        return 0;
    if (size > 40 || !is_inside(l, at, (UINT64_C(8) << size)))
        return damaged(l, "index of files at offset", at);
    bucket = (const uint32_t *)xac_shm_at(&l->shm, at);
    for (uint64_t i = 0; i < UINT64_C(2) << size; i++) {
        bool is_path = i < UINT64_C(1) << size;

        for (uint64_t id = bucket[i]; id != 0;) {
            const struct xac_file *f;

            if (id > n_files || steps++ > 2 * n_files)
                return damaged(l, "index of files: file", id);
            f = (const struct xac_file *)xac_array_at(&l->shm, &l->ctl->files, id - 1);
            id = is_path ? f->next_by_path : f->next_by_inode;
        }
    }
    return 0;
}

/* check_set -- entries of a transaction. */
static int
check_set(const struct look *l, uint64_t slot, const struct xac_txn *txn)
{
    uint64_t n = get(&txn->n_entries);
    uint64_t n_slots = get(&l->ctl->txns.count);
    uint64_t most = l->brk / sizeof(struct xac_set_block);
    uint64_t at = txn->first_block;

    for (; at != 0; most--) {
        const struct xac_set_block *b;

        if (most == 0 || !is_inside(l, at, sizeof *b))
            return damaged(l, "set of transaction", slot);
        b = (const struct xac_set_block *)xac_shm_at(&l->shm, at);
        for (unsigned i = 0; i < XAC_SET_BLOCK_ENTRIES && n > 0; i++, n--) {
            const struct xac_entry *e = &b->entry[i];

            if (!is_entry_or_none(l, get(&e->next))
                || !is_inside_or_none(l, e->page, sizeof(struct xac_page))
                || e->slot > n_slots)
                return damaged(l, "set of transaction", slot);
        }
        at = b->next;
    }
    return n == 0 ? 0 : damaged(l, "set of transaction", slot);
}

/* check_ring -- what recent commits have written. */
static int
check_ring(const struct look *l)
{
    for (uint64_t i = 0; i < XAC_RING_ENTRIES; i++) {
        const struct xac_ring_entry *r = &l->ctl->chain.ring[i];
        uint32_t n = atomic_load_explicit(&r->n_pages, memory_order_relaxed);

        if (get(&r->number) == 0 || n == XAC_RING_ALL)
            continue;
        if (n > XAC_RING_PAGES)
            return damaged(l, "pages of a commit in entry", i);
        for (uint32_t k = 0; k < n; k++) {
            if (!is_inside(l, get(&r->page[k]), sizeof(struct xac_page)))
                return damaged(l, "page of a commit in entry", i);
        }
    }
    return 0;
}

XAC_UNGUARDED static int
check_txns(const struct look *l)
{
    const struct xac_control *c = l->ctl;
    uint64_t publishing = get(&c->chain.publishing), turn = get(&c->turn);
    uint64_t n = get(&c->txns.count);
    int rc = 0;

    if (publishing > n && publishing != XAC_PUBLISHING_MOVE)
        return damaged(l, "publishing transaction", publishing);
    if ((turn & XAC_TURN_SLOT_MASK) > n)
        return damaged(l, "turn of transaction", turn);
    if (c->chain.unlink.n_pages > XAC_UNLINK_PAGES)
        return damaged(l, "move of pages", c->chain.unlink.n_pages);
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        const struct xac_txn *txn =
            (const struct xac_txn *)xac_array_at(&l->shm, &c->txns, i);
        uint64_t word = get(&txn->word);

        if (xac_txn_state(word) > XAC_TXN_CUT
            || (xac_txn_state(word) != XAC_TXN_FREE && !xac_txn_is_nobodys(word)
                && xac_txn_participant(word) >= get(&c->participants.count)))
            return damaged(l, "state of transaction", i);
        if (!is_inside_or_none(l, txn->record, txn->record_size))
            return damaged(l, "log record of transaction", i);
        rc = check_set(l, i, txn);
    }
    return rc;
}

/* check_frames -- descriptions of versions. */
static int
check_frames(const struct look *l)
{
    const struct xac_versions *v = &l->ctl->versions;
    uint64_t n = get(&v->slots.count), spill = get(&v->spill);

    if (spill > get(&v->slots.count) + 1)
        return damaged(l, "first frame of the second buffer file", spill);
    for (uint64_t i = 0; i < n; i++) {
        const struct xac_vslot *f =
            (const struct xac_vslot *)xac_array_at(&l->shm, &v->slots, i);
        uint64_t state = xac_vslot_state(get(&f->word));
        uint64_t next = get(&f->next), page = get(&f->page);

        if (state > XAC_VSLOT_LIMBO || next > get(&v->slots.count)
            || (page == 0 && state == XAC_VSLOT_VERSION)
            || !is_inside_or_none(l, page, sizeof(struct xac_page)))
            return damaged(l, "frame", i + 1);
    }
    return 0;
}

/* ---- The whole ---------------------------------------------------------------------------- */

int
xac_control_validate(const void *region, uint64_t bytes, const char *name)
{
    struct look l = {.ctl = (const struct xac_control *)region, .name = name};
    int rc;

    xac_assert(region != NULL);
    if (bytes < sizeof *l.ctl)
        return damaged(&l, "length", bytes);
    l.brk = get(&l.ctl->shm.brk);
    l.shm = (struct xac_shm){.base = (uint8_t *)(uintptr_t)region,
                             .reserve = (size_t)bytes,
                             .fd = -1};
    if (!xac_shm_is_sound(&l.shm, sizeof *l.ctl, l.brk))
        return damaged(&l, "allocated up to", l.brk);
    rc = check_head(&l);
    if (rc == 0)
        rc = check_arrays(&l);
    if (rc == 0)
        rc = check_log(&l);
    if (rc == 0)
        rc = check_group(&l);
    if (rc == 0)
        rc = check_files(&l);
    for (uint64_t i = 0; rc == 0 && i < get(&l.ctl->participants.count); i++)
        rc = check_holds(&l, i);
    if (rc == 0)
        rc = check_index(&l);
    if (rc == 0)
        rc = check_ring(&l);
    if (rc == 0)
        rc = check_txns(&l);
    if (rc == 0)
        rc = check_frames(&l);
    return rc;
}
