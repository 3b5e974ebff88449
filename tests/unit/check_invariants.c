/* SPDX-License-Identifier: MIT */
/*
 * check_invariants.c -- the xac_<module>_assert() functions find what breaks an invariant.
 *
 * GOAL    each passes on what is sound, and stops the program when a numbered invariant of its
 *         header does not hold.
 * METHOD  a table of damages.  Each is done in a child, which asks before and after.  It must die
 *         by SIGABRT, after the first question, and name the file of the function that was asked.
 *         Invariants that cannot be told from one look (what was before; which thread may do what) have no
 *         damage here.
 */
#include <config.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frames/pool.h"
#include "heap/alloc_heap.h"
#include "log/block.h"
#include "log/log.h"
#include "shared/registry.h"
#include "store/version.h"
#include "tests/common/core_world.h"
#include "tests/common/env.h"
#include "txn/ctree.h"
#include "txn/slot.h"
#include "view/view.h"

struct damage {
    const char *what;
    void (*setup)(void); /* something sound */
    void (*ask)(void);
    void (*do_it)(void);
    const char *file; /* that the message must name */
};

static void
set(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t
get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* ---- Page table, versions, chain, transaction ------------------------------------------ */

static struct xac_env *env;
static _Atomic uint64_t *root;
static struct xac_page *page;   /* with three versions */
static struct xac_vslot *vslot; /* the newest of them  */
static uint64_t newest;

/* world_make -- a page with versions 1, 2 and 4; a transaction that reads one page and writes one. */
static void
world_make(void)
{
    env = world_open(XAC_NONDURABLE);
    world_put(env, 1, 10);
    world_put(env, 1, 20);
    world_put(env, 2, 30);
    world_put(env, 1, 40);
    root = &xac_file_at(env, 1)->root;
    page = world_page(env, 1);
    newest = get(&page->head);
    vslot = xac_vslot_at(env, newest);
    world_begin(env);
    must(world_read(env, 3));
    must(world_write(env, 1));
}

static struct xac_vslot *
older(void)
{
    return xac_vslot_at(env, get(&vslot->next));
}

static void
ask_ptab(void)
{
    xac_ptab_assert(&env->shm, root, 1);
}

static void
ask_version(void)
{
    if (!xac_lock_is_mine(&env->ctl->chain.gc))
        must_eq(xac_lock_acquire(&env->ctl->chain.gc), XAC_LOCK_OK);
    for (uint64_t turn = 0; turn < 4; turn++) /* all of the first 256 */
        xac_version_assert(env, turn);
}

static void
ask_chain(void)
{
    xac_chain_assert(env);
}

static void
ask_chain_in_gc(void)
{
    if (!xac_lock_is_mine(&env->ctl->chain.gc))
        must_eq(xac_lock_acquire(&env->ctl->chain.gc), XAC_LOCK_OK);
    xac_chain_assert(env);
}

static void
ask_chain_in_publish(void)
{
    if (!xac_lock_is_mine(&env->ctl->chain.publish))
        must_eq(xac_lock_acquire(&env->ctl->chain.publish), XAC_LOCK_OK);
    xac_chain_assert(env);
}

static void
ask_txn(void)
{
    xac_txn_assert(&env->ctx);
}

static struct xac_ring_entry *
last_in_ring(void)
{
    return &env->ctl->chain.ring[xac_chain_commit(env) % XAC_RING_ENTRIES];
}

static uint64_t
txn_word(enum xac_txn_state state, uint32_t participant)
{
    return xac_txn_word(xac_txn_serial(get(&env->ctx.txn->word)), participant, state);
}

#define DAMAGE(name, statement) \
 static void name(void)         \
 {                              \
  statement;                    \
 }

DAMAGE(too_many_levels, set(root, get(root) | XAC_PTAB_LEVEL_MASK))
DAMAGE(root_nowhere, set(root, get(&env->ctl->shm.brk)))
DAMAGE(other_page, set(&page->id, get(&page->id) + 1))
DAMAGE(other_file, set(&page->id, xac_page_id(2, 1)))
DAMAGE(version_without_id, set(&page->id, 0))

DAMAGE(unsorted, set(&vslot->word, xac_vslot_word(XAC_VSLOT_VERSION, 1));
       set(&vslot->commit, 1))
DAMAGE(circle, set(&older()->next, newest))
DAMAGE(other_list, set(&older()->page, get(&older()->page) + sizeof *page))
DAMAGE(taken_in_a_list, set(&older()->word, xac_vslot_word(XAC_VSLOT_TAKEN, 0)))
DAMAGE(no_state, set(&vslot->word, UINT64_C(9) << 56))
DAMAGE(free_of_somebody, set(&vslot->word, xac_vslot_word(XAC_VSLOT_FREE, 1)))
DAMAGE(taken_by_nobody,
       set(&vslot->word, xac_vslot_word(XAC_VSLOT_TAKEN, get(&env->ctl->txns.count))))
DAMAGE(from_the_future, set(&vslot->word, xac_vslot_word(XAC_VSLOT_VERSION, 90)))
DAMAGE(other_number, set(&vslot->commit, 3))
DAMAGE(next_nowhere, set(&vslot->next, UINT32_MAX))

DAMAGE(mark_above, set(&env->ctl->chain.mark, xac_chain_commit(env) + 1))
DAMAGE(ring_of_another, set(&last_in_ring()->number, xac_chain_commit(env) + 1))
DAMAGE(ring_ahead, set(&last_in_ring()->number, xac_chain_commit(env) + XAC_RING_ENTRIES))
DAMAGE(ring_of_too_many, atomic_store_explicit(&last_in_ring()->n_pages,
                                               XAC_RING_PAGES + 1, memory_order_relaxed))
DAMAGE(gc_ahead, env->ctl->chain.gc_done = xac_chain_commit(env) + 1)
DAMAGE(settled_ahead, env->ctl->chain.settled = xac_chain_commit(env) + 1)
DAMAGE(left_publishing, set(&env->ctl->chain.publishing, 1))

DAMAGE(slot_of_another,
       set(&env->ctx.txn->word, txn_word(XAC_TXN_PENDING, env->self + 1)))
DAMAGE(slot_free, set(&env->ctx.txn->word, txn_word(XAC_TXN_FREE, env->self)))
DAMAGE(slot_of_no_state, set(&env->ctx.txn->word, txn_word(XAC_TXN_CUT, env->self) + 1))
DAMAGE(slot_idle_with_set, set(&env->ctx.txn->word, txn_word(XAC_TXN_IDLE, env->self)))
DAMAGE(start_moved, set(&env->ctx.txn->start, get(&env->ctx.txn->parent) + 1))
DAMAGE(parent_back, set(&env->ctx.txn->parent, 0))
DAMAGE(parent_ahead, set(&env->ctx.txn->next, 99); set(&env->ctx.txn->parent, 99))
DAMAGE(next_behind, set(&env->ctx.txn->next, 0))
DAMAGE(entry_lost, set(&env->ctx.txn->n_entries, 1))
DAMAGE(entry_of_another, xac_set_entry(&env->ctx, 1)->slot++)
DAMAGE(entry_of_no_page, xac_set_entry(&env->ctx, 0)->page = 0)
DAMAGE(block_lost, env->ctx.txn->first_block = 0)
DAMAGE(block_of_another, env->ctx.txn->first_block += XAC_LINE_BYTES)
DAMAGE(version_of_a_read, xac_set_entry(&env->ctx, 0)->vslot = 1)
DAMAGE(too_many_written, env->ctx.txn->n_written = 3)

/* ---- Views ---------------------------------------------------------------------------------- */

#define VIEW_PAGES 4u

static struct xac_view view, alias; /* of the first pages of the file */
static struct xac_view_page known[2][VIEW_PAGES];

/* view_make -- views that are aliases.  Page 1 is readable in the first, and page 2 dirty in both. */
static void
view_make(void)
{
    world_make();
    view = (struct xac_view){.env = env,
                             .ctx = &env->ctx,
                             .next = &alias,
                             .file = 1,
                             .pages = {.at = known[0], .high = VIEW_PAGES},
                             .aliases = (struct xac_aliases *)&known,
                             .area = {.page_size = env_page(),
                                      .n_pages = VIEW_PAGES,
                                      .memory = -1}};
    view.area.base = (uint8_t *)calloc(VIEW_PAGES, env_page());
    must(view.area.base != NULL);
    memcpy(view.area.base + env_page(), xac_version_bytes(env, newest), env_page());
    view.pages.at[1] = (struct xac_view_page){.state = XAC_PAGE_READABLE, .entry = 2};
    view.pages.at[2] =
        (struct xac_view_page){.state = XAC_PAGE_DIRTY, .copy = XAC_COPY_SHARED};
    alias = view;
    alias.next = NULL;
    alias.pages.at = known[1];
    alias.pages.at[2] = view.pages.at[2];
    env->ctx.views = &view;
}

/* idle_make -- the same outside a transaction: page 1 is readable, for the process is alone. */
static void
idle_make(void)
{
    view_make();
    view.staying.is_alone = true;
    view.pages.at[1].entry = 0;
    view.pages.at[2] = (struct xac_view_page){.state = XAC_PAGE_WARM};
    view.staying.n_warm = 1;
    view.staying.warm[0] = 2;
}

static void
ask_view(void)
{
    xac_view_assert(&view, true);
}

static void
ask_idle_view(void)
{
    xac_view_assert(&view, false);
}

DAMAGE(dirty_outside, view.pages.at[1].state = XAC_PAGE_DIRTY)
DAMAGE(spilled_outside, view.pages.at[1].state = XAC_PAGE_SPILLED)
DAMAGE(readable_beside_others, view.staying.is_alone = false)
DAMAGE(in_a_set_outside, view.pages.at[1].entry = 1)
DAMAGE(shared_outside, view.pages.at[0].copy = XAC_COPY_SHARED)
DAMAGE(readable_in_shared_memory, view.area.memory = 3)
DAMAGE(too_many_warm, view.staying.n_warm = XAC_WARM_MAX + 1)
DAMAGE(warm_without_access, view.pages.at[2].state = XAC_PAGE_ABSENT)
DAMAGE(copy_of_no_commit, view.pages.at[0].copy = XAC_COPY_OF(xac_chain_commit(env) + 1))
DAMAGE(other_bytes, view.area.base[env_page()] ^= 1)
DAMAGE(readable_in_an_alias, alias.pages.at[2].state = XAC_PAGE_READABLE)
DAMAGE(two_working_copies, alias.pages.at[2].copy = XAC_COPY_UNKNOWN)
DAMAGE(shared_but_clean, view.pages.at[2].state = XAC_PAGE_ABSENT)
DAMAGE(entry_behind_the_set, view.pages.at[1].entry = 3)
DAMAGE(hidden_beside_others, view.pages.at[0].state = XAC_PAGE_HIDDEN)

/* ---- The log ---------------------------------------------------------------------------------- */

#define RING ((uint64_t)65536)

static struct xac_log_shared *sh;
static struct xac_log the_log;

/* log_make -- one block that is not on disk yet, near the end of the ring: it goes round it. */
static void
log_make(void)
{
    struct xac_log_id id = {.generation = 1};
    uint64_t buf[64];
    struct xac_block *blk = (struct xac_block *)(void *)buf;
    uint64_t start = 3 * RING - 16;
    struct xac_builder b;

    sh = (struct xac_log_shared *)calloc(1, sizeof *sh);
    must(sh != NULL);
    *sh = (struct xac_log_shared){.generation = 1,
                                  .page_size = (uint32_t)env_page(),
                                  .segment_bytes = RING,
                                  .ring_bytes = RING,
                                  .start_lsn = start};
    must_eq(xac_lock_init(&sh->flush, XAC_RANK_FLUSH), 0);
    xac_builder_init(&b, buf, sizeof buf);
    must(xac_put_txn(&b, XAC_XBEGIN, 1));
    must_eq(xac_block_close(&b, id, XAC_CHECKSUM_XXH3), 0);
    xac_block_seal(blk, start, start, 1);
    the_log = (struct xac_log){.sh = sh, .ring = (uint8_t *)calloc(1, RING)};
    must(the_log.ring != NULL);
    memcpy(the_log.ring + RING - 16, blk, 16);
    memcpy(the_log.ring, (uint8_t *)blk + 16, blk->length - 16);
    set(&sh->durable, start);
    set(&sh->written, start);
    set(&sh->tail, start + blk->length);
    set(&sh->prepared, 4 * RING);
}

static void
ask_log(void)
{
    xac_log_assert(&the_log);
}

static void
ask_log_flushing(void)
{
    if (!xac_lock_is_mine(&sh->flush))
        must_eq(xac_lock_acquire(&sh->flush), XAC_LOCK_OK);
    xac_log_assert(&the_log);
}

DAMAGE(durable_before_start, set(&sh->durable, sh->start_lsn - 8))
DAMAGE(durable_behind_written, set(&sh->durable, get(&sh->written) + 8))
DAMAGE(written_behind_tail, set(&sh->written, get(&sh->tail) + 8))
DAMAGE(tail_too_far, set(&sh->tail, get(&sh->durable) + RING + 8))
DAMAGE(not_prepared, set(&sh->prepared, get(&sh->tail) - 8))
DAMAGE(tail_unaligned, set(&sh->tail, get(&sh->tail) - 1))
DAMAGE(ring_of_no_size, sh->ring_bytes = RING - 1)
DAMAGE(segment_of_no_size, sh->segment_bytes = RING + 4096)
DAMAGE(start_unaligned, sh->start_lsn -= 4)
DAMAGE(bytes_changed, the_log.ring[8] ^= 1)
DAMAGE(block_behind_tail, set(&sh->tail, get(&sh->durable) + 64))
DAMAGE(started_too_far, the_log.started = get(&sh->tail) + 8)
DAMAGE(segment_in_the_wrong_place, the_log.seg_no[0] = 3)

/* ---- A chunk of a heap ---------------------------------------------------------------------------- */

static const struct xac_classes classes = {.count = 3,
                                           .n_runs = 1,
                                           .size = {16, 512, 2048},
                                           .slots = {250, 8, 2}};
static struct xac_heap heap = {.classes = &classes};
static struct xac_chunk chunk;
static struct xac_chunk_entry entry;

/* heap_make -- a chunk of 60 pages: header, a run, slots, three pages. */
static void
heap_make(void)
{
    chunk = (struct xac_chunk){.magic = XAC_HEAP_CHUNK_MAGIC,
                               .present = 60,
                               .longest = 54,
                               .rooms = ~UINT64_C(0),
                               .used = UINT64_C(0x3f) | ~UINT64_C(0) << 60};
    chunk.slab[0].kind = XAC_SLAB_HEADER;
    chunk.slab[1] = (struct xac_slab){.kind = XAC_SLAB_RUN};
    chunk.slab[2] = (struct xac_slab){.kind = XAC_SLAB_SLOTS, .class = 1, .bits = 5};
    chunk.slab[3] = (struct xac_slab){.kind = XAC_SLAB_PAGES, .bits = 3};
    chunk.slab[4].kind = chunk.slab[5].kind = XAC_SLAB_MORE;
    entry = (struct xac_chunk_entry){.state = XAC_CHUNK_PAGED,
                                     .rooms = chunk.rooms,
                                     .longest = chunk.longest};
}

static void
ask_heap(void)
{
    xac_heap_assert(&heap, &chunk, &entry);
}

DAMAGE(used_but_free, chunk.used |= UINT64_C(1) << 6)
DAMAGE(free_but_used, chunk.used &= ~UINT64_C(2))
DAMAGE(free_behind_the_end, chunk.used &= ~(UINT64_C(1) << 60))
DAMAGE(two_headers, chunk.slab[1].kind = XAC_SLAB_HEADER)
DAMAGE(header_elsewhere, chunk.header = 1)
DAMAGE(no_magic, chunk.magic = 0)
DAMAGE(rooms_too_few, chunk.rooms = entry.rooms = ~UINT64_C(1))
DAMAGE(longest_too_short, chunk.longest = entry.longest = 53)
DAMAGE(entry_has_other_rooms, entry.rooms ^= 1)
DAMAGE(entry_has_other_longest, entry.longest++)
DAMAGE(entry_is_free, entry.state = XAC_CHUNK_FREE)
DAMAGE(run_of_no_class, chunk.slab[1].class = 1)
DAMAGE(slot_behind_the_last, chunk.slab[2].bits |= 1u << 8)
DAMAGE(pages_of_none, chunk.slab[3].bits = 0)
DAMAGE(page_of_no_kind, chunk.slab[5].kind = XAC_SLAB_META + 1)

/* ---- A pool of frames --------------------------------------------------------------------------------- */

static struct xac_frames *pool;
static struct xac_frames_user *user;
static struct xac_frames_pin pin;

/* pool_make -- three pages, one of them fixed. */
static void
pool_make(void)
{
    struct xac_frames_config config = {.n_pages = 32,
                                       .n_frames = 8,
                                       .n_users = 2,
                                       .pins_max = 4};
    struct xac_frames_pin other;

    must_eq(xac_frames_create(&config, NULL, NULL, &pool), 0);
    must_eq(xac_frames_join(pool, &user), 0);
    must_eq(xac_frames_fix(user, 5, 0, &pin), 0);
    for (uint64_t i = 6; i < 8; i++) {
        must_eq(xac_frames_fix(user, i, 0, &other), 0);
        xac_frames_unfix(user, &other);
    }
}

static void
ask_pool(void)
{
    xac_pool_assert(pool);
}

static void
ask_user(void)
{
    xac_pool_user_assert(user);
}

static struct frame *
fixed(void)
{
    return pool_frame(pool, pin.ref);
}

DAMAGE(too_many_vacant,
       atomic_store_explicit(&pool->region->vacant, 9, memory_order_relaxed))
DAMAGE(slot_of_no_frame, set(ring_slot(pool, 1), frame_ref_make(1, 99)))
DAMAGE(table_names_another, set(&pool->table[6], pin.ref))
DAMAGE(page_that_is_none, set(&fixed()->page_id, 32))
DAMAGE(flushing_unpinned, set(&fixed()->state, frame_state_make(pin.ref, FRAME_FLUSHING)))
DAMAGE(too_many_descriptors, pool->region->n_frames_all++)
DAMAGE(spare_that_is_none, pool->seats[1].spare = 99)
DAMAGE(buffer_that_is_none,
       atomic_store_explicit(&fixed()->data, 99, memory_order_relaxed))
DAMAGE(too_many_buffers,
       atomic_store_explicit(&pool->region->buffers_used, 99, memory_order_relaxed))
DAMAGE(pin_lost, set(&fixed()->state, frame_state_make(pin.ref, 0)))
DAMAGE(gone_though_fixed, set(&fixed()->state, frame_state_make(pin.ref, FRAME_GONE)))
DAMAGE(next_life_though_fixed,
       set(&fixed()->state, (pin.ref & ~(uint64_t)UINT32_MAX) + (UINT64_C(1) << 32) + 1))
DAMAGE(own_spare_that_is_none, user->seat->spare = 99)
DAMAGE(seat_not_taken,
       atomic_store_explicit(&user->seat->taken, SEAT_FREE, memory_order_relaxed))

/* ---- All of them --------------------------------------------------------------------------------------- */

#define PTAB(what, do_it)                            \
 {                                                   \
  what, world_make, ask_ptab, do_it, "ptab_assert.c" \
 }
#define VSTORE(what, do_it)                                \
 {                                                         \
  what, world_make, ask_version, do_it, "version_assert.c" \
 }
#define CHAIN(what, ask, do_it)                \
 {                                             \
  what, world_make, ask, do_it, "txn_assert.c" \
 }
#define TXN(what, do_it)                           \
 {                                                 \
  what, world_make, ask_txn, do_it, "txn_assert.c" \
 }
#define LOG(what, do_it)                         \
 {                                               \
  what, log_make, ask_log, do_it, "log_assert.c" \
 }
#define FLUSH(what, do_it)                                \
 {                                                        \
  what, log_make, ask_log_flushing, do_it, "log_assert.c" \
 }
#define HEAP(what, do_it)                            \
 {                                                   \
  what, heap_make, ask_heap, do_it, "alloc_assert.c" \
 }
#define POOL(what, do_it)                           \
 {                                                  \
  what, pool_make, ask_pool, do_it, "pool_assert.c" \
 }
#define USER(what, do_it)                           \
 {                                                  \
  what, pool_make, ask_user, do_it, "pool_assert.c" \
 }

#define VIEW(what, do_it)                           \
 {                                                  \
  what, view_make, ask_view, do_it, "view_assert.c" \
 }
#define IDLE(what, do_it)                                \
 {                                                       \
  what, idle_make, ask_idle_view, do_it, "view_assert.c" \
 }

static const struct damage damages[] = {
    IDLE("(1) dirty", dirty_outside),
    IDLE("(1) spilled", spilled_outside),
    IDLE("(1) readable", readable_beside_others),
    IDLE("(1) entry", in_a_set_outside),
    IDLE("(1) shared", shared_outside),
    IDLE("(1) warm", warm_without_access),
    IDLE("warm", too_many_warm),
    IDLE("(5)", readable_in_shared_memory),
    VIEW("(2)", copy_of_no_commit),
    VIEW("(3)", other_bytes),
    VIEW("(4) readable", readable_in_an_alias),
    VIEW("(4) copies", two_working_copies),
    VIEW("(4) clean", shared_but_clean),
    VIEW("entry", entry_behind_the_set),
    VIEW("hidden", hidden_beside_others),
    PTAB("(1) levels", too_many_levels),
    PTAB("(1) root", root_nowhere),
    PTAB("(2) page", other_page),
    PTAB("(2) file", other_file),
    PTAB("(3)", version_without_id),
    VSTORE("(1) unsorted", unsorted),
    VSTORE("(1) circle", circle),
    VSTORE("(1) page", other_list),
    VSTORE("(2) in a list", taken_in_a_list),
    VSTORE("(2) no state", no_state),
    VSTORE("(2) free", free_of_somebody),
    VSTORE("(2) taken", taken_by_nobody),
    VSTORE("(2) future", from_the_future),
    VSTORE("(4)", other_number),
    VSTORE("next", next_nowhere),
    CHAIN("(5)", ask_chain, mark_above),
    CHAIN("(2) place", ask_chain, ring_of_another),
    CHAIN("(2) ahead", ask_chain, ring_ahead),
    CHAIN("ring", ask_chain, ring_of_too_many),
    CHAIN("gc", ask_chain_in_gc, gc_ahead),
    CHAIN("settled", ask_chain_in_gc, settled_ahead),
    CHAIN("(4)", ask_chain_in_publish, left_publishing),
    TXN("(1) participant", slot_of_another),
    TXN("(1) free", slot_free),
    TXN("(1) state", slot_of_no_state),
    TXN("(1) idle", slot_idle_with_set),
    TXN("(2) start", start_moved),
    TXN("(2) parent", parent_back),
    TXN("(2) parent of ctree.h", parent_ahead),
    TXN("(3)", next_behind),
    TXN("(4) entries", entry_lost),
    TXN("(4) slot", entry_of_another),
    TXN("(4) page", entry_of_no_page),
    TXN("(4) block", block_lost),
    TXN("(4) other block", block_of_another),
    TXN("written", version_of_a_read),
    TXN("too many", too_many_written),
    LOG("(1) start", durable_before_start),
    LOG("(1) durable", durable_behind_written),
    LOG("(1) written", written_behind_tail),
    LOG("(1) ring", tail_too_far),
    LOG("(4)", not_prepared),
    LOG("tail", tail_unaligned),
    LOG("ring", ring_of_no_size),
    LOG("segments", segment_of_no_size),
    LOG("start", start_unaligned),
    FLUSH("(3) bytes", bytes_changed),
    FLUSH("(3) end", block_behind_tail),
    FLUSH("started", started_too_far),
    FLUSH("places", segment_in_the_wrong_place),
    HEAP("(2) used", used_but_free),
    HEAP("(2) free", free_but_used),
    HEAP("(2) end", free_behind_the_end),
    HEAP("(1) headers", two_headers),
    HEAP("(1) header", header_elsewhere),
    HEAP("magic", no_magic),
    HEAP("(4) rooms", rooms_too_few),
    HEAP("(4) longest", longest_too_short),
    HEAP("(3) rooms", entry_has_other_rooms),
    HEAP("(3) longest", entry_has_other_longest),
    HEAP("(3) state", entry_is_free),
    HEAP("class", run_of_no_class),
    HEAP("slots", slot_behind_the_last),
    HEAP("pages", pages_of_none),
    HEAP("kind", page_of_no_kind),
    POOL("P1", slot_of_no_frame),
    POOL("P2", too_many_vacant),
    POOL("P3 table", table_names_another),
    POOL("P3 page", page_that_is_none),
    POOL("F5", flushing_unpinned),
    POOL("F2 data", buffer_that_is_none),
    POOL("P6 descriptors", too_many_descriptors),
    POOL("P6 spare", spare_that_is_none),
    POOL("P6 buffers", too_many_buffers),
    USER("F2 pin", pin_lost),
    USER("F2 gone", gone_though_fixed),
    USER("F2 life", next_life_though_fixed),
    USER("P6 spare", own_spare_that_is_none),
    USER("seat", seat_not_taken),
};

/* child -- asks, damages, says so, and asks again. */
_Noreturn static void
child(const struct damage *d, int to)
{
    must(dup2(to, STDERR_FILENO) >= 0);
    d->setup();
    for (int i = 0; i < 2; i++)
        d->ask();
    must(write(to, "sound\n", 6) == 6);
    d->do_it();
    d->ask();
    _exit(0);
}

/* must_end -- the child's status, and all that it has said. */
static void
must_end(const struct damage *d, pid_t pid, int from)
{
    char text[4096] = "";
    size_t n = 0;
    ssize_t got;
    int status;

    while (n < sizeof text - 1 && (got = read(from, text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    must_eq(waitpid(pid, &status, 0), pid);
    if (strncmp(text, "sound\n", 6) != 0)
        env_fail(__FILE__, __LINE__, "%s: not sound at first: %s", d->what, text);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        env_fail(__FILE__, __LINE__, "%s: not found: %s", d->what, text);
    if (strstr(text, d->file) == NULL)
        env_fail(__FILE__, __LINE__, "%s: not found by %s: %s", d->what, d->file, text);
}

START_TEST(find_what_breaks_an_invariant)
{
    const struct damage *d = &damages[_i];
    int fds[2];
    pid_t pid;

    must(pipe2(fds, O_CLOEXEC) == 0);
    pid = fork();
    must(pid >= 0);
    if (pid == 0)
        child(d, fds[1]);
    must(close(fds[1]) == 0);
    must_end(d, pid, fds[0]);
    must(close(fds[0]) == 0);
}
END_TEST

/* What xac_txn_may_become() says is the picture in slot.h. */
START_TEST(allow_the_edges_of_the_picture_only)
{
    static const char allowed[][9] = {
        [XAC_TXN_FREE] = {[XAC_TXN_IDLE] = 1},
        [XAC_TXN_IDLE] = {[XAC_TXN_PENDING] = 1,
                          [XAC_TXN_QUERY] = 1,
                          [XAC_TXN_SNAPSHOT] = 1,
                          [XAC_TXN_FREE] = 1},
        [XAC_TXN_PENDING] = {[XAC_TXN_COMMITTING] = 1,
                             [XAC_TXN_FAILED] = 1,
                             [XAC_TXN_PUBLISHED] = 1,
                             [XAC_TXN_IDLE] = 1,
                             [XAC_TXN_FREE] = 1},
        [XAC_TXN_FAILED] = {[XAC_TXN_IDLE] = 1, [XAC_TXN_FREE] = 1},
        [XAC_TXN_COMMITTING] = {[XAC_TXN_PUBLISHED] = 1, [XAC_TXN_FAILED] = 1},
        [XAC_TXN_PUBLISHED] = {[XAC_TXN_IDLE] = 1, [XAC_TXN_FREE] = 1},
        [XAC_TXN_QUERY] = {[XAC_TXN_IDLE] = 1, [XAC_TXN_FREE] = 1, [XAC_TXN_CUT] = 1},
        [XAC_TXN_SNAPSHOT] = {[XAC_TXN_FREE] = 1},
        [XAC_TXN_CUT] = {[XAC_TXN_IDLE] = 1, [XAC_TXN_FREE] = 1},
    };

    for (unsigned from = XAC_TXN_FREE; from <= XAC_TXN_CUT; from++) {
        for (unsigned to = XAC_TXN_FREE; to <= XAC_TXN_CUT; to++)
            must_eq(xac_txn_may_become((enum xac_txn_state)from, (enum xac_txn_state)to),
                    allowed[from][to] != 0);
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("invariants");
    TCase *tc = env_tcase(s, "invariants", 60);

    tcase_add_loop_test(tc, find_what_breaks_an_invariant, 0,
                        sizeof damages / sizeof damages[0]);
    tcase_add_test(tc, allow_the_edges_of_the_picture_only);
    return env_main(s);
}
