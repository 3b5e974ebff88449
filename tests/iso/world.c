/* SPDX-License-Identifier: MIT */
/*
 * world.c -- see world.h: opening, putting back, the steps.  Invariants: world_check.c.
 */
#include <config.h>

#include "world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xac.h>

#include "base/err.h"
#include "base/lockfile.h"
#include "base/sys.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/file_fds.h"
#include "commit/txn.h"
#include "env/env.h"
#include "shared/registry.h"
#include "sim.h"
#include "store/version.h"
#include "txn/reap.h"
#include "txn/conflict.h"
#include "txn/ctree.h"
#include "txn/saved.h"
#include "txn/turn.h"
#include "view/fault.h"
#include "view/view.h"
#include "world_state.h"

#define FRAMES_AT_FIRST 2
#define LOST_AT_FIRST   3 /* one short of the turn: LOST_MAX in policy_optimistic.c */

/* ---- The fault engine ------------------------------------------------------------------ */

/* Protections as the kernel would have them. */
struct ticket {
    uint8_t prot[MODEL_PAGES];
};

static int
engine_attach(struct xac_area *a)
{
    a->ticket = calloc(1, sizeof(struct ticket));
    sim_must(a->ticket != NULL && a->n_pages == MODEL_PAGES);
    return mprotect(a->base, a->length, PROT_READ | PROT_WRITE) == 0 ? 0 : errno;
}

static void
engine_detach(struct xac_area *a)
{
    free(a->ticket);
    a->ticket = NULL;
}

static int
engine_protect(struct xac_area *a, uint64_t first, uint64_t n, enum xac_protection prot)
{
    struct ticket *t = a->ticket;

    sim_must(first + n <= a->n_pages);
    memset(t->prot + first, (int)prot, n);
    return 0;
}

static int
engine_discard(struct xac_area *a, uint64_t first, uint64_t n)
{
    return madvise(a->base + first * a->page_size, n * a->page_size, MADV_DONTNEED) == 0
               ? 0
               : errno;
}

static bool
engine_is_private(const struct xac_area *a, uint64_t page_no)
{
    (void)a;
    (void)page_no;
    return true;
}

static int
engine_start(const struct xac_area_owner *owner)
{
    (void)owner;
    return 0;
}

static void
engine_stop(void)
{
}

static const struct xac_engine_maps engine_maps = {
    .is_private = engine_is_private,
};

/* In place of fault_sigsegv.c. */
const struct xac_engine xac_engine_sigsegv = {
    .name = "sigsegv", /* in XAC_ENGINE: a table, in fact */
    .maps = &engine_maps,
    .attach = engine_attach,
    .detach = engine_detach,
    .protect = engine_protect,
    .discard = engine_discard,
    .start = engine_start,
    .stop = engine_stop,
    .forked = engine_stop,
};

uint8_t
world_prot(const struct xac_view *v, int page)
{
    return ((const struct ticket *)v->area.ticket)->prot[page];
}

/* ---- System calls that would take long ------------------------------------------------- */

/* /proc/PID/stat of this process does not change in what the library looks at. */
static char stat_text[1024];
static ssize_t stat_len;
static int stat_fd = -1;
static int (*real_openat)(int, const char *, int, mode_t);
static int (*real_close)(int);
static ssize_t (*real_pread)(int, void *, size_t, off_t);
static void *(*real_mmap)(void *, size_t, int, int, int, off_t);

/* Where each participant has the control region; the last for what is outside. */
static uint8_t *region[SIM_FIBERS + 1];

#define REGION_LEAST ((size_t)1 << 32)
#define REGION_MOST  ((size_t)1 << 38)

static int
sys_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    return strncmp(path, "/proc/", 6) == 0 ? stat_fd
                                           : real_openat(dirfd, path, flags, mode);
}

static int
sys_close(int fd)
{
    return fd == stat_fd ? 0 : real_close(fd);
}

static ssize_t
sys_pread(int fd, void *buf, size_t n, off_t offset)
{
    size_t left = offset < stat_len ? (size_t)(stat_len - offset) : 0;

    if (fd != stat_fd)
        return real_pread(fd, buf, n, offset);
    n = n < left ? n : left;
    memcpy(buf, stat_text + offset, n);
    return (ssize_t)n;
}

/* sys_mmap -- notes where a guest maps the control region, before it tells us. */
static void *
sys_mmap(void *addr, size_t n, int prot, int flags, int fd, off_t offset)
{
    void *p = real_mmap(addr, n, prot, flags, fd, offset);
    int i = sim_current() < 0 ? SIM_FIBERS : sim_current();

    if (p != MAP_FAILED && n >= REGION_LEAST && n <= REGION_MOST)
        region[i] = p;
    return p;
}

static void
sys_replace(void)
{
    if (stat_fd >= 0)
        return;
    stat_fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    sim_must(stat_fd >= 0);
    stat_len = read(stat_fd, stat_text, sizeof stat_text);
    sim_must(stat_len > 0);
    real_openat = xac_sys.openat;
    real_close = xac_sys.close;
    real_pread = xac_sys.pread;
    real_mmap = xac_sys.mmap;
    xac_sys.openat = sys_openat;
    xac_sys.close = sys_close;
    xac_sys.pread = sys_pread;
    xac_sys.mmap = sys_mmap;
}

uint64_t
world_offset(const volatile void *at)
{
    for (int i = 0; i <= SIM_FIBERS; i++) {
        if (region[i] != NULL && (const volatile uint8_t *)at >= region[i]
            && (const volatile uint8_t *)at < region[i] + REGION_LEAST)
            return (uint64_t)((const volatile uint8_t *)at - region[i]);
    }
    return 0;
}

/* ---- Members --------------------------------------------------------------------------- */

/* policy_of -- the library's number of a policy. */
static uint32_t
policy_of(enum model_policy policy)
{
    static const uint32_t kinds[] = {XAC_POLICY_OLDEST_WINS,
                                     XAC_POLICY_SELF_ABORT,
                                     XAC_POLICY_SELFISH,
                                     XAC_POLICY_YOUNGEST_WINS,
                                     XAC_POLICY_OPTIMISTIC,
                                     XAC_POLICY_SERIAL}; /* by enum model_policy */

    return kinds[policy];
}

static void
member_open(const struct world *w, struct world_member *m, uint32_t stay_mapped)
{
    struct xac_env_options options = {.checkpoint_bytes = 0,
                                      .segment_bytes = 1 << 20,
                                      .ring_bytes = 1 << 20,
                                      .policy = policy_of(w->policy),
                                      .checking = stay_mapped || w->policy == MODEL_SERIAL
                                                      ? XAC_CHECKING_FAST
                                                      : XAC_CHECKING_STRICT};
    struct xac_view_wish wish = {.offset = 0};
    char *path = NULL;

    sim_must(asprintf(&path, "%s/input.db", w->dir) > 0);
    sim_must(xac_env_open(w->dir, XAC_NONDURABLE, &options, &m->env) == 0);
    wish.length = MODEL_PAGES * m->env->page_size;
    sim_must(xac_view_open(m->env, path, &wish, &m->view) == 0);
    m->view->next = NULL;
    m->env->ctx.views = m->view;
    m->is_dead = false;
    free(path);
}

/* member_close -- the orderly way. */
static void
member_close(struct world_member *m)
{
    m->env->ctx.views = NULL;
    xac_view_close(m->env, m->view);
    sim_must(xac_env_close(m->env) == 0);
    m->env = NULL;
    m->view = NULL;
}

/* member_abandon -- free what a member has in this process; the region is left alone. */
static void
member_abandon(struct world_member *m)
{
    struct xac_env *env = m->env;

    xac_saved_end(&env->ctx);
    xac_saved_close(&env->ctx);
    m->view->hold = 0; /* it stays in the region */
    xac_view_close(env, m->view);
    if (env->ctx.blocks != NULL)
        (void)munmap(env->ctx.blocks, env->ctx.blocks_size * sizeof env->ctx.blocks[0]);
    xac_file_fds_close(env);
    xac_buffers_detach(env);
    xac_shm_detach(&env->shm);
    (void)close(env->lockfd);
    (void)close(env->masterfd);
    (void)close(env->logfd);
    (void)close(env->dirfd);
    free(env->dir);
    free(env->region);
    free(env);
    memset(m, 0, sizeof *m);
}

struct world_member *
world_watcher(struct world *w)
{
    for (int i = MODEL_ACTORS; i >= 0; i--) {
        if (w->member[i].env != NULL && !w->member[i].is_dead)
            return &w->member[i];
    }
    return NULL;
}

static uint64_t *
word_at(const struct xac_view *v, int page, bool is_last)
{
    return (uint64_t *)(void *)(v->area.base + (size_t)page * v->area.page_size
                                + (is_last ? v->area.page_size - 8 : 0));
}

/* warm_up -- a transaction that changes all pages, with a savepoint, and a checkpoint that copies them. */
static void
warm_up(struct world *w, int a, uint64_t difference)
{
    world_begin(w, a, false);
    world_savepoint(w, a, 0);
    for (int p = 0; p < MODEL_PAGES; p++) {
        (void)world_read(w, a, p, true);
        world_store(w, a, p, model_first_value(p) + difference);
    }
    sim_must(world_end(w, a));
    world_checkpoint(w, a);
}

/* forget -- as if the member had just mapped its file. */
static void
forget(struct world_member *m)
{
    struct xac_view *v = m->view;

    if (m->env == NULL)
        return;
    (void)engine_discard(&v->area, 0, v->area.n_pages);
    (void)engine_protect(&v->area, 0, v->area.n_pages, XAC_PROT_NONE);
    memset(v->pages.at, 0, v->area.n_pages * sizeof v->pages.at[0]);
    v->pages.n_copies = 0;
    v->staying.is_alone = false;
    v->staying.retry = 0;
    m->env->buffers.cursor = 0;
    m->env->buffers.n_freed = 0; /* frames that are not there any more */
    memset(m->env->buffers.freed, 0, sizeof m->env->buffers.freed);
    m->env->ctx.alive_until = 0;
    m->env->ctx.txn->is_retry = 0;
    m->env->ctx.n_lost = LOST_AT_FIRST;
}

void
world_open(struct world *w, int n_members, enum model_policy policy, bool stay_mapped)
{
    struct xac_env *env;

    memset(w, 0, sizeof *w);
    sim_must(setenv("XAC_ENGINE", "sigsegv", 1) == 0); /* which is ours, above */
    sys_replace();
    w->dir = strdup("/dev/shm/xac-explore-XXXXXX");
    if (w->dir == NULL || mkdtemp(w->dir) == NULL) {
        free(w->dir);
        w->dir = strdup("/tmp/xac-explore-XXXXXX");
        sim_must(w->dir != NULL && mkdtemp(w->dir) != NULL);
    }
    w->n_members = n_members;
    w->policy = policy;
    for (int i = 0; i < n_members; i++)
        member_open(w, &w->member[i], stay_mapped);
    /* Somebody who looks on when all the others have died; but then nobody is alone. */
    if (!stay_mapped)
        member_open(w, &w->member[MODEL_ACTORS], false);
    /* So that each member has the memory and the descriptors that it needs. */
    for (int i = 0; i <= MODEL_ACTORS; i++) {
        if (w->member[i].env != NULL)
            warm_up(w, i, (uint64_t)i + 1);
    }
    warm_up(w, 0, 0);
    for (int i = 0; i <= MODEL_ACTORS; i++)
        forget(&w->member[i]);
    env = w->member[0].env;
    /* A store of few frames uses the same ones again and again. */
    sim_must(atomic_load(&env->ctl->versions.used) == 0);
    atomic_store(&env->ctl->versions.slots.count, FRAMES_AT_FIRST);
    w->first_number = xac_chain_commit(env);
    w->last_number = w->first_number;
    world_snapshot(w);
}

void
world_close(struct world *w)
{
    world_restore(w);
    for (int i = 0; i <= MODEL_ACTORS; i++) {
        if (w->member[i].env != NULL)
            member_close(&w->member[i]);
    }
    world_snapshot_free(w);
    world_remove(w);
}

void
world_remove(struct world *w)
{
    const struct xac_env *env = w->member[0].env;
    char *command = NULL;

    if (asprintf(&command, "rm -rf '%s' '%s' '%s.frames'", w->dir,
                 env != NULL ? env->region : w->dir, env != NULL ? env->region : w->dir)
        > 0)
        (void)!system(command);
    free(command);
    free(w->dir);
    w->dir = NULL;
}

void
world_restore(struct world *w)
{
    for (int i = 0; i <= MODEL_ACTORS; i++) {
        struct world_member *m = &w->member[i];

        if (m->env != NULL && m->is_guest)
            member_abandon(m);
        if (m->env != NULL && m->is_dead) {
            sim_must(xac_alive_take(m->env->lockfd, m->env->self) == 0);
            m->is_dead = false;
        }
        region[i] = m->env != NULL ? m->env->shm.base : NULL;
    }
    world_snapshot_restore(w);
    memset(w->state_of, 0, sizeof w->state_of);
    memset(w->held, 0, sizeof w->held);
    w->last_number = w->first_number;
}

/* ---- Steps ----------------------------------------------------------------------------- */

void
world_join(struct world *w, int a)
{
    struct world_member *m = &w->member[a];

    member_open(w, m, 1);
    m->is_guest = true;
}

void
world_leave(struct world *w, int a)
{
    member_close(&w->member[a]);
    region[a] = NULL;
}

void
world_begin(struct world *w, int a, bool is_query)
{
    struct xac_env *env = w->member[a].env;

    sim_must(xac_txn_begin(env, &env->ctx, is_query) == 0);
}

uint64_t
world_read(struct world *w, int a, int page, bool is_write)
{
    struct world_member *m = &w->member[a];
    enum xac_protection wanted = is_write ? XAC_PROT_WRITE : XAC_PROT_READ;

    if (world_prot(m->view, page) < wanted)
        sim_must(xac_view_access(m->env, &m->env->ctx, m->view, (uint64_t)page, is_write)
                 == 0);
    /* The access that has trapped is done again and must not trap. */
    sim_must(world_prot(m->view, page) >= wanted);
    sim_must(*word_at(m->view, page, false) == *word_at(m->view, page, true));
    return *word_at(m->view, page, false);
}

void
world_store(struct world *w, int a, int page, uint64_t value)
{
    const struct xac_view *v = w->member[a].view;

    sim_must(world_prot(v, page) == XAC_PROT_WRITE);
    *word_at(v, page, false) = *word_at(v, page, true) = value;
}

bool
world_end(struct world *w, int a)
{
    struct xac_env *env = w->member[a].env;
    int rc = xac_txn_end(env, &env->ctx);

    sim_must(rc == XAC_COMMITTED || rc == XAC_ABORTED);
    return rc == XAC_COMMITTED;
}

void
world_abort(struct world *w, int a)
{
    struct xac_env *env = w->member[a].env;
    uint64_t word = atomic_load(&env->ctx.txn->word);

    (void)xac_txn_fail(env->ctx.txn, word, XAC_CONFLICT_USER, env->pid, 0);
}

void
world_gc(struct world *w, int a)
{
    struct xac_env *env = w->member[a].env;

    /* It happens at every eighth number only: use up those before with empty unlinks. */
    while (xac_chain_commit(env) % XAC_GC_EVERY != 0) {
        xac_gc_lock(env);
        xac_chain_lock(env);
        if (xac_chain_commit(env) % XAC_GC_EVERY != 0)
            xac_chain_unlink(env, NULL, 0, 0);
        xac_chain_unlock(env);
        xac_gc_unlock(env);
    }
    (void)xac_gc(env);
}

void
world_checkpoint(struct world *w, int a)
{
    int rc = xac_checkpoint_run(w->member[a].env, false);

    if (rc != 0)
        sim_fail(__FILE__, __LINE__, "checkpoint: %s", xac_err_text());
}

void
world_reap(struct world *w, int a)
{
    xac_reap_dead(w->member[a].env);
}

void
world_die(struct world *w, int a)
{
    struct world_member *m = &w->member[a];

    xac_participant_at(m->env, m->env->self)->start_time++;
    xac_alive_drop(m->env->lockfd, m->env->self);
    m->is_dead = true;
}

/* word_of -- the slot's word if it still belongs to the participant, else 0. */
static uint64_t
word_of(const struct world_member *m)
{
    uint64_t word;

    if (m->env == NULL || m->env->ctx.txn == NULL)
        return 0;
    word = atomic_load(&m->env->ctx.txn->word);
    return xac_txn_participant(word) == m->env->self ? word : 0;
}

enum model_status
world_status(const struct world *w, int a)
{
    switch (xac_txn_state(word_of(&w->member[a]))) {
    case XAC_TXN_PENDING:
        return MODEL_PENDING;
    case XAC_TXN_FAILED:
        return MODEL_FAILED;
    case XAC_TXN_QUERY:
        return MODEL_QUERY;
    default:
        return MODEL_NONE;
    }
}

bool
world_has_turn(const struct world *w, int a)
{
    const struct xac_env *env = w->member[a].env;

    return xac_turn_is_mine(env, env->ctx.slot);
}

uint64_t
world_age(const struct world *w, int a)
{
    return atomic_load(&w->member[a].env->ctx.txn->age);
}

int
world_publisher(struct world *w, const volatile void *at)
{
    const struct xac_env *env = w->member[0].env;
    uint64_t what, number;

    if (env == NULL || w->snapshot == NULL
        || world_offset(at) != offsetof(struct xac_control, chain.commit))
        return -1;
    number = atomic_load(&env->ctl->chain.commit);
    if (number == w->last_number)
        return -1;
    sim_must(number == w->last_number + 1);
    sim_must(number - w->first_number < WORLD_NUMBERS);
    w->last_number = number;
    what = atomic_load(&env->ctl->chain.publishing);
    if (what == XAC_PUBLISHING_MOVE)
        return -2;
    for (int a = 0; a < MODEL_ACTORS; a++) {
        if (w->member[a].env != NULL && w->member[a].env->ctx.slot + 1 == what)
            return a;
    }
    sim_fail(__FILE__, __LINE__, "slot %llu has published", (unsigned long long)what - 1);
}

void
world_numbered(struct world *w, uint32_t state)
{
    w->state_of[w->last_number - w->first_number] = state;
}
