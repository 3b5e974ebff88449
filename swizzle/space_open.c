/* SPDX-License-Identifier: MIT */
/*
 * space_open.c -- see space.h: opening, closing, joining, checkpoints, counters.
 */
#include <config.h>

#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/sys.h"

#define PAGES_MAX   (SWZ_TAG - 1)
#define THREADS_MAX 60000u

/* ---- Updates and checkpoints --------------------------------------------------------- */

void
swz_update_begin(struct swz_thread *th)
{
    for (;;) {
        /* Pairs with gate_close(): one of the two sees the other's store. */
        atomic_store_explicit(&th->is_updating, true, memory_order_seq_cst);
        /* Pairs with the same. */
        if (!atomic_load_explicit(&th->space->gate, memory_order_seq_cst))
            return;
        /* Pairs with the same. */
        atomic_store_explicit(&th->is_updating, false, memory_order_release);
        /* Acquire pairs with gate_open(). */
        while (atomic_load_explicit(&th->space->gate, memory_order_acquire))
            (void)sched_yield();
    }
}

void
swz_update_end(struct swz_thread *th)
{
    /* Pairs with gate_close(): what the update has changed. */
    atomic_store_explicit(&th->is_updating, false, memory_order_release);
}

/* gate_close -- under checkpoints: no update is under way, and none begins. */
static void
gate_close(struct swz_space *s)
{
    /* Pairs with swz_update_begin(). */
    atomic_store_explicit(&s->gate, true, memory_order_seq_cst);
    for (uint32_t i = 0; i <= s->n_threads; i++) {
        struct swz_thread *th;

        /* Pairs with swz_join() and swz_leave(); looked up each time: it may leave. */
        while ((th = atomic_load_explicit(&s->threads[i], memory_order_seq_cst)) != NULL
               /* Pairs with swz_update_begin() and swz_update_end(). */
               && atomic_load_explicit(&th->is_updating, memory_order_seq_cst))
            (void)sched_yield();
    }
}

static void
gate_open(struct swz_space *s)
{
    /* Release pairs with swz_update_begin(). */
    atomic_store_explicit(&s->gate, false, memory_order_release);
}

/* write_back -- all dirty pages, and the log begins anew; no update is under way. */
static int
write_back(struct swz_space *s)
{
    int rc;

    swz_page_may_wait = true;
    rc = xac_frames_flush_all(s->keeper->user);
    swz_page_may_wait = false;
    if (rc == 0)
        rc = swz_log_write(&s->log, s->log.end); /* updates undone by nobody */
    if (rc == 0)
        rc = swz_store_sync(&s->store);
    if (rc == 0 && s->log.fd >= 0)
        rc = swz_log_begin(s);
    return rc;
}

int
swz_checkpoint(struct swz_space *s)
{
    int rc;

    (void)pthread_mutex_lock(&s->checkpoints);
    gate_close(s); /* before smo: an update may wait for that */
    (void)pthread_mutex_lock(&s->smo);
    rc = write_back(s);
    (void)pthread_mutex_unlock(&s->smo);
    gate_open(s);
    (void)pthread_mutex_unlock(&s->checkpoints);
    return rc;
}

void
swz_set_swizzling(struct swz_space *s, bool is_on)
{
    (void)pthread_mutex_lock(&s->smo);
    atomic_store_explicit(&s->is_swizzling, is_on, memory_order_relaxed);
    for (unsigned i = 0; i < SWZ_TREES && !is_on; i++) {
        struct swz_tree *t = &s->trees[i];

        /* Acquire pairs with swz_tree_create(). */
        if (!atomic_load_explicit(&t->exists, memory_order_acquire))
            continue;
        latch_take_x(&side_of(s, t->root_frame)->latch);
        swz_page_unswizzle_all(s, t->root_frame, NULL, 0);
        latch_drop(&side_of(s, t->root_frame)->latch, true);
    }
    (void)pthread_mutex_unlock(&s->smo);
}

/* ---- Threads ------------------------------------------------------------------------ */

int
swz_join(struct swz_space *s, struct swz_thread **threadp)
{
    struct swz_thread *th = NULL;
    int rc;

    if (posix_memalign((void **)&th, alignof(struct swz_thread), sizeof *th) != 0)
        return xac_err(ENOMEM, "no memory for a thread of a space");
    memset(th, 0, sizeof *th);
    th->space = s;
    th->until_sample = SWZ_SAMPLE;
    th->record = malloc(SWZ_RECORD);
    rc = th->record == NULL ? ENOMEM : xac_frames_join(s->pool, &th->user);
    if (rc != 0) {
        free(th->record);
        free(th);
        return xac_err(rc, "no place for one more thread in a space");
    }
    for (uint32_t i = 0;; i++) {
        struct swz_thread *none = NULL;

        xac_require(i <= s->n_threads); /* there is a seat, so there is a place */
        th->number = i;
        /* Pairs with gate_close(). */
        if (atomic_compare_exchange_strong_explicit(&s->threads[i], &none, th,
                                                    memory_order_seq_cst,
                                                    memory_order_relaxed))
            break;
    }
    *threadp = th;
    return 0;
}

static void retire(struct swz_space *s, struct swz_thread *th);

void
swz_leave(struct swz_thread *th)
{
    struct swz_space *s = th->space;

    /* Nobody is looking at the threads' flags or counters meanwhile. */
    (void)pthread_mutex_lock(&s->checkpoints);
    (void)pthread_mutex_lock(&s->smo);
    retire(s, th);
    (void)pthread_mutex_unlock(&s->smo);
    (void)pthread_mutex_unlock(&s->checkpoints);
    xac_frames_leave(th->user);
    free(th->record);
    free(th);
}

int
swz_sync(struct swz_thread *th)
{
    return swz_log_sync(th->space, th->lsn);
}

int
swz_commit(struct swz_thread *th)
{
    return swz_log_write(&th->space->log, th->lsn);
}

/* ---- Opening ------------------------------------------------------------------------ */

/* tree_open -- pin the root; the layout is known to be possible. */
static int
tree_open(struct swz_space *s, unsigned tree, struct swz_thread *th, unsigned flags)
{
    struct swz_tree *t = &s->trees[tree];
    struct btree_config config = {.key_size = s->header->trees[tree].key_size,
                                  .value_size = s->header->trees[tree].value_size,
                                  .block_size = s->page_bytes};
    struct xac_frames_pin pin;
    int rc = btree_layout_set(&t->layout, &config);

    if (rc != 0)
        return xac_err(EUCLEAN, "tree %u of a space has an impossible size", tree);
    rc = xac_frames_fix(th->user, 1 + tree, flags, &pin);
    if (rc != 0)
        return rc;
    t->root = pin.data;
    t->root_frame = frame_ref_index(pin.ref);
    atomic_store_explicit(&side_of(s, t->root_frame)->flags, SIDE_ROOT,
                          memory_order_relaxed);
    return 0;
}

static void
tree_publish(struct swz_tree *t)
{
    /* Release pairs with tree_of(), no_victim() and swz_set_swizzling(). */
    atomic_store_explicit(&t->exists, true, memory_order_release);
}

/* header_check -- EUCLEAN or ENOTSUP with words; a fresh one is made of zeros. */
static int
header_check(struct swz_space *s, bool *freshp)
{
    const struct swz_header *h = s->header;

    *freshp = h->magic == 0 && h->version == 0 && h->page_bytes == 0;
    if (*freshp)
        return 0;
    if (h->magic != SWZ_MAGIC)
        return xac_err(EUCLEAN, "the file \"pages\" is not a space");
    if (h->version != SWZ_VERSION)
        return xac_err(ENOTSUP, "the space has version %u, this program knows %u",
                       h->version, SWZ_VERSION);
    if (h->page_bytes != s->page_bytes || h->n_pages > s->store.n_pages
        || h->high_water > h->n_pages)
        return xac_err(EUCLEAN, "the space has %u pages of %u bytes", h->n_pages,
                       h->page_bytes);
    return 0;
}

/* header_open -- page 0, pinned for as long as the space is open. */
static int
header_open(struct swz_space *s, struct swz_thread *th)
{
    struct xac_frames_pin pin;
    bool is_fresh = false;
    int rc = xac_frames_fix(th->user, 0, 0, &pin);

    if (rc != 0)
        return rc;
    s->header = pin.data;
    s->header_frame = frame_ref_index(pin.ref);
    rc = header_check(s, &is_fresh);
    if (rc != 0)
        return rc;
    if (is_fresh) {
        *s->header = (struct swz_header){.magic = SWZ_MAGIC,
                                         .version = SWZ_VERSION,
                                         .page_bytes = s->page_bytes,
                                         .n_pages = s->store.n_pages,
                                         .high_water = SWZ_FIRST_PAGE};
        xac_frames_mark_dirty(th->user, &pin);
    }
    for (unsigned i = 0; i < SWZ_TREES && rc == 0; i++)
        if (s->header->trees[i].key_size != 0) {
            rc = tree_open(s, i, th, 0);
            if (rc == 0)
                tree_publish(&s->trees[i]);
        }
    return rc;
}

static struct xac_frames_config
pool_config(const struct swz_config *c, uint32_t page_bytes)
{
    return (struct xac_frames_config){.n_pages = c->n_pages,
                                      .n_frames = c->n_frames,
                                      .n_users = c->n_threads + 1,
                                      .page_bytes = page_bytes,
                                      .policy = c->policy,
                                      .weight_max = c->weight_max,
                                      .full_tries = c->full_tries};
}

static bool
config_is_good(const struct swz_config *c, uint32_t page_bytes)
{
    return c->n_pages > SWZ_FIRST_PAGE && c->n_pages <= PAGES_MAX && c->n_frames >= 1
           && c->n_threads >= 1 && c->n_threads <= THREADS_MAX
           && page_bytes >= BTREE_BLOCK_MIN && page_bytes <= SWZ_PAGE_MAX
           && (page_bytes & (page_bytes - 1)) == 0;
}

/* space_open -- the parts, in order; what was opened is closed by the caller. */
static int
space_open(struct swz_space *s, const char *directory, const struct swz_config *config)
{
    struct xac_frames_config pool = pool_config(config, s->page_bytes);
    struct xac_frames_io io = {.read = swz_store_read,
                               .write = swz_store_write,
                               .arg = s};
    int rc;

    if (directory != NULL) {
        s->dir_fd =
            xac_sys.openat(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        if (s->dir_fd < 0)
            return xac_err(errno, "the directory \"%s\" cannot be opened", directory);
    }
    rc = swz_store_open(&s->store, s->dir_fd, config);
    if (rc == 0 && directory != NULL)
        rc = swz_log_recover(s);
    if (rc == 0) {
        rc = xac_frames_create(&pool, NULL, &io, &s->pool);
        if (rc != 0)
            rc = xac_err(rc, "a pool of %u frames cannot be made", config->n_frames);
    }
    if (rc != 0)
        return rc;
    s->buffers = calloc(s->pool->region->n_frames_all, sizeof *s->buffers);
    if (s->buffers == NULL)
        return xac_err(ENOMEM, "no memory for %u frames", config->n_frames);
    if (config->has_hash && swz_hash_open(s, config->n_frames) != 0)
        return xac_err(ENOMEM, "no memory for a hash table of %u frames",
                       config->n_frames);
    s->owner = swz_pool_owner;
    s->owner.arg = s;
    s->pool->owner = &s->owner;
    rc = swz_join(s, &s->keeper);
    if (rc == 0)
        rc = header_open(s, s->keeper);
    if (rc == 0)
        rc =
            write_back(s); /* a fresh header is in the file before the log counts on it */
    if (rc == 0 && directory != NULL && config->has_log)
        rc = swz_log_begin(s);
    return rc;
}

/* space_free -- whatever of it is open. */
static void
space_free(struct swz_space *s)
{
    if (s->keeper != NULL)
        swz_leave(s->keeper);
    if (s->pool != NULL)
        xac_frames_close(s->pool);
    free(s->hash);
    free(s->buffers);
    swz_log_close(&s->log);
    swz_store_close(&s->store);
    if (s->dir_fd >= 0)
        (void)xac_sys.close(s->dir_fd);
    (void)pthread_mutex_destroy(&s->smo);
    (void)pthread_mutex_destroy(&s->checkpoints);
    (void)pthread_mutex_destroy(&s->log.lock);
    free(s);
}

int
swz_open(const char *directory, const struct swz_config *config,
         struct swz_space **spacep)
{
    uint32_t page_bytes = config->page_bytes == 0 ? BTREE_PAGE : config->page_bytes;
    struct swz_space *s;
    int rc;

    if (!config_is_good(config, page_bytes))
        return xac_err(EINVAL, "a space of %u pages of %u bytes, %u frames, %u threads",
                       config->n_pages, page_bytes, config->n_frames, config->n_threads);
    s = calloc(1, sizeof *s + (config->n_threads + 1) * sizeof s->threads[0]);
    if (s == NULL)
        return xac_err(ENOMEM, "no memory for a space");
    s->dir_fd = s->store.fd = s->log.fd = -1;
    s->page_bytes = s->store.page_bytes = page_bytes;
    s->store.n_pages = config->n_pages;
    s->store.delay_ns = config->delay_ns;
    s->n_threads = config->n_threads;
    s->counts_first_fix = config->counts_first_fix;
    atomic_store_explicit(&s->is_swizzling, !config->is_plain, memory_order_relaxed);
    (void)pthread_mutex_init(&s->smo, NULL);
    (void)pthread_mutex_init(&s->checkpoints, NULL);
    (void)pthread_mutex_init(&s->log.lock, NULL);
    rc = space_open(s, directory, config);
    if (rc != 0) {
        space_free(s);
        return rc;
    }
    *spacep = s;
    return 0;
}

int
swz_close(struct swz_space *s)
{
    int rc = swz_log_error(&s->log);

    if (rc == 0)
        rc = swz_checkpoint(s);
    space_free(s);
    return rc;
}

/* ---- Creating trees ------------------------------------------------------------------ */

static int
tree_make(struct swz_thread *th, unsigned tree, uint32_t key_size, uint32_t value_size)
{
    struct swz_space *s = th->space;
    struct swz_page header = {.node = (struct btree_node *)(void *)s->header,
                              .frame = s->header_frame,
                              .is_exclusive = true};
    struct swz_page root;
    uint64_t lsn;
    int rc;

    if (s->header->trees[tree].key_size != 0)
        return xac_err(EEXIST, "tree %u of the space exists", tree);
    latch_take_x(&side_of(s, header.frame)->latch);
    s->header->trees[tree] =
        (struct swz_tree_format){.key_size = key_size, .value_size = value_size};
    rc = tree_open(s, tree, th, XAC_FRAMES_NEW);
    if (rc != 0) {
        s->header->trees[tree] = (struct swz_tree_format){0};
        latch_drop(&side_of(s, header.frame)->latch, true);
        return rc;
    }
    swz_page_fix_root(th, tree, true, &root);
    (void)node_init_at(&s->trees[tree].layout, root.node, 1 + tree, 0);
    root.node->zero = (uint16_t)tree;
    swz_log_add(th, 0, s->header, 0, sizeof *s->header);
    swz_log_add_page(th, &root);
    lsn = swz_log_append(th);
    swz_page_changed(th, &root, lsn);
    swz_page_changed(th, &header, lsn);
    page_unfix(th, &root);
    latch_drop(&side_of(s, header.frame)->latch, true);
    tree_publish(&s->trees[tree]);
    return 0;
}

int
swz_tree_create(struct swz_thread *th, unsigned tree, uint32_t key_size,
                uint32_t value_size)
{
    struct btree_config config = {.key_size = key_size,
                                  .value_size = value_size,
                                  .block_size = th->space->page_bytes};
    struct btree layout;
    int rc;

    if (tree >= SWZ_TREES || btree_layout_set(&layout, &config) != 0)
        return xac_err(EINVAL, "tree %u with keys of %u and values of %u bytes", tree,
                       key_size, value_size);
    swz_update_begin(th);
    (void)pthread_mutex_lock(&th->space->smo);
    rc = swz_log_error(&th->space->log);
    if (rc == 0)
        rc = tree_make(th, tree, key_size, value_size);
    (void)pthread_mutex_unlock(&th->space->smo);
    swz_update_end(th);
    return rc;
}

/* ---- Counters ----------------------------------------------------------------------- */

static uint64_t
load(const xac_shared _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* retire -- under smo: the thread's counters become the space's. */
static void
retire(struct swz_space *s, struct swz_thread *th)
{
    for (unsigned i = 0; i < SWZ_N_COUNTERS; i++)
        atomic_fetch_add_explicit(&s->retired.counters[i], load(&th->counters[i]),
                                  memory_order_relaxed);
    for (unsigned x = 0; x < 2; x++)
        for (unsigned w = 0; w < SWZ_WAYS; w++) {
            atomic_fetch_add_explicit(&s->retired.ticks[x][w], load(&th->ticks[x][w]),
                                      memory_order_relaxed);
            atomic_fetch_add_explicit(&s->retired.samples[x][w], load(&th->samples[x][w]),
                                      memory_order_relaxed);
        }
    /* Pairs with gate_close(). */
    atomic_store_explicit(&s->threads[th->number], NULL, memory_order_seq_cst);
}

/* counter_sum -- under smo: of those who have left, and those who are there. */
static uint64_t
counter_sum(struct swz_space *s, enum swz_counter what)
{
    uint64_t sum = load(&s->retired.counters[what]);

    for (uint32_t i = 0; i <= s->n_threads; i++) {
        /* Acquire pairs with swz_join(). */
        struct swz_thread *th =
            atomic_load_explicit(&s->threads[i], memory_order_acquire);

        if (th != NULL)
            sum += load(&th->counters[what]);
    }
    return sum;
}

/* latched_x -- writers that have gone, of all frames (latch.h). */
static uint64_t
latched_x(const struct swz_space *s)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < s->pool->region->n_frames_all; i++)
        sum += load(&side_of(s, i)->latch) / LATCH_VERSION;
    return sum;
}

void
swz_get_stats(const struct swz_space *space, struct swz_stats *statsp)
{
    struct swz_space *s = (struct swz_space *)(uintptr_t)space;

    (void)pthread_mutex_lock(&s->smo);
    *statsp =
        (struct swz_stats){.fixes_root = counter_sum(s, SWZ_FIXES_ROOT),
                           .fixes_swizzled = counter_sum(s, SWZ_FIXES_SWIZZLED),
                           .lookups = counter_sum(s, SWZ_LOOKUPS),
                           .misses = counter_sum(s, SWZ_MISSES),
                           .swizzles = counter_sum(s, SWZ_SWIZZLES),
                           .rereads_failed = counter_sum(s, SWZ_REREADS_FAILED),
                           .latched_x = latched_x(s),
                           .peeks_failed = counter_sum(s, SWZ_PEEKS_FAILED),
                           .unswizzles = load(&s->events[SWZ_UNSWIZZLES]),
                           .refused_latch = load(&s->events[SWZ_REFUSED_LATCH]),
                           .refused_children = load(&s->events[SWZ_REFUSED_CHILDREN]),
                           .refused_parent = load(&s->events[SWZ_REFUSED_PARENT]),
                           .refused_moved = load(&s->events[SWZ_REFUSED_MOVED]),
                           .sweeps = load(&s->events[SWZ_SWEEPS]),
                           .sweep_evictions = load(&s->events[SWZ_SWEEP_EVICTIONS]),
                           .structural = load(&s->events[SWZ_STRUCTURAL]),
                           .log_bytes = load(&s->events[SWZ_LOG_BYTES]),
                           .log_syncs = load(&s->events[SWZ_LOG_SYNCS])};
    (void)pthread_mutex_unlock(&s->smo);
}

void
swz_thread_counts(const struct swz_thread *th, uint64_t *fixesp, uint64_t *missesp)
{
    *fixesp = load(&th->counters[SWZ_FIXES_SWIZZLED]) + load(&th->counters[SWZ_LOOKUPS]);
    *missesp = load(&th->counters[SWZ_MISSES]);
}

void
swz_get_times(const struct swz_space *space, struct swz_times *timesp)
{
    struct swz_space *s = (struct swz_space *)(uintptr_t)space;

    (void)pthread_mutex_lock(&s->smo);
    for (unsigned x = 0; x < 2; x++)
        for (unsigned w = 0; w < SWZ_WAYS; w++) {
            timesp->ticks[x][w] = load(&s->retired.ticks[x][w]);
            timesp->n[x][w] = load(&s->retired.samples[x][w]);
            for (uint32_t i = 0; i <= s->n_threads; i++) {
                /* Acquire pairs with swz_join(). */
                struct swz_thread *th =
                    atomic_load_explicit(&s->threads[i], memory_order_acquire);

                timesp->ticks[x][w] += th != NULL ? load(&th->ticks[x][w]) : 0;
                timesp->n[x][w] += th != NULL ? load(&th->samples[x][w]) : 0;
            }
        }
    (void)pthread_mutex_unlock(&s->smo);
}

void
swz_get_pool_stats(const struct swz_space *space, struct xac_frames_stats *statsp)
{
    xac_frames_get_stats(space->pool, statsp, sizeof *statsp);
}
