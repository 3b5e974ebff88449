/* SPDX-License-Identifier: MIT */
/*
 * outofcore.c -- the pool that an environment's participants share: see outofcore.h.  What
 * views show of it is in outofcore_view.c.
 */
#include <config.h>

#include "store/outofcore.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xac.h>
#include <xac_frames.h>

#include "base/err.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "shared/env_state.h"
#include "shared/region.h"
#include "shared/registry.h"

/* Rounds over the pool before a page is read past it. */
#define FULL_TRIES 4

/* Seats in the pool: one for each context, and one for each process's checkpoints. */
#define SEATS_LEAST 256
#define SEATS_MOST  1024
#define SEAT_SHARE  8 /* frames for each, at the least */

/* The pool's table gets memory in parts of so many bytes, before they are touched. */
#define PART_BYTES ((uint64_t)64 << 10)

/* Descriptors for reading, by file id. */
struct xac_outofcore_files {
    struct xac_outofcore_files *older; /* freed with the others: the handler may look  */
    uint32_t n;
    int fd[]; /* << 1, + 1 if it goes past the page cache; -1 none                     */
};

XAC_SIGSAFE void
xac_outofcore_uncache(const struct xac_env *env, int fd)
{
    if (xac_outofcore_is_on(env)) /* a hint: what is dirty stays */
        (void)xac_sys.fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* ---- Reading ----------------------------------------------------------------------------- */

/* descriptor -- of a file; -1: it has not been added. */
XAC_SIGSAFE static int
descriptor(const struct xac_env *env, uint32_t file)
{
    /* Acquire: pairs with the release in xac_outofcore_add_file. */
    const struct xac_outofcore_files *t =
        atomic_load_explicit(&env->outofcore.files, memory_order_acquire);

    xac_assert_slow(file != 0);
    return t != NULL && file < t->n ? t->fd[file] : -1;
}

/* handle_of -- which file a descriptor in the table is for. */
XAC_SIGSAFE static struct xac_handle
handle_of(const struct xac_env *env, uint32_t file)
{
    const struct xac_file *f = xac_file_at(env, file);

    xac_assert(file != 0);
    return (struct xac_handle){.device = f->who.device, .inode = f->who.inode};
}

/* kept -- the descriptor in the table, opened again if the program has closed it; -1: it has
   not been added, or with errno. */
XAC_SIGSAFE static int
kept(struct xac_env *env, uint32_t file)
{
    struct xac_handle handle = handle_of(env, file);
    struct xac_outofcore_files *t;
    int fd = descriptor(env, file), direct = fd & 1;

    xac_assert(file != 0);
    if (fd < 0 || xac_handle_is_ours(fd >> 1, &handle))
        return fd;
    fd = xac_handle_again(-1, &handle, xac_env_dirfd(env),
                          (const char *)xac_shm_at(&env->shm,
                                                   xac_file_at(env, file)->path),
                          O_RDONLY | (direct != 0 ? O_DIRECT : 0));
    if (fd < 0)
        return -1;
    /* Acquire: pairs with the release in xac_outofcore_add_file. */
    t = atomic_load_explicit(&env->outofcore.files, memory_order_acquire);
    t->fd[file] = fd << 1 | direct;
    return t->fd[file];
}

/* read_file -- a page of a file, into aligned memory; ret 0 or errno. */
XAC_SIGSAFE static int
read_file(struct xac_env *env, uint64_t id, void *to)
{
    int fd = kept(env, xac_page_file(id));
    off_t offset = (off_t)(xac_page_no(id) << env->page_shift);
    ssize_t got;

    xac_assert(to != NULL);
    if (fd < 0)
        return EBADF;
    do
        got = xac_sys.pread(fd >> 1, to, env->page_size, offset);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return got < 0 ? errno : EFAULT; /* as a load from a mapping behind the end */
    memset((uint8_t *)to + got, 0, env->page_size - (size_t)got);
    if ((fd & 1) == 0) /* a hint; the page cache is not ours to fill */
        (void)xac_sys.fadvise(fd >> 1, offset, (off_t)env->page_size,
                              POSIX_FADV_DONTNEED);
    return 0;
}

/* pool_read -- for the pool: the page whose entry lies at that place. */
XAC_SIGSAFE static int
pool_read(void *arg, uint64_t place, void *data)
{
    struct xac_env *env = (struct xac_env *)arg;
    const struct xac_page *page =
        (const struct xac_page *)xac_shm_at(&env->shm, place * sizeof *page);

    xac_assert(data != NULL);
    xac_assert(place != 0);
    xac_count(&env->ctl->outofcore.reads, 1);
    return read_file(env, atomic_load_explicit(&page->id, memory_order_relaxed), data);
}

/* pool_write -- never: no page of the pool is dirty. */
XAC_SIGSAFE static int
pool_write(void *arg, uint64_t place, const void *data)
{
    (void)arg;
    (void)place;
    (void)data;
    return EROFS;
}

static struct xac_frames_io
io_of(struct xac_env *env)
{
    return (struct xac_frames_io){.read = pool_read, .write = pool_write, .arg = env};
}

int
xac_outofcore_add_file(struct xac_env *env, uint32_t file, int fd)
{
    struct xac_outofcore *o = &env->outofcore;
    struct xac_outofcore_files *old, *more;
    uint32_t n = file + 16;
    char path[64];
    int own, is_direct = 1;

    xac_assert(file != 0);
    xac_assert(fd >= 0);
    if (!xac_outofcore_is_on(env) || descriptor(env, file) >= 0)
        return 0;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    own = xac_sys.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_DIRECT, 0);
    if (own < 0) {
        is_direct = 0;
        own = xac_sys.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    }
    if (own < 0)
        return xac_err(errno, "XAC_OPT_FRAMES: opening a mapped file again");
    /* Acquire: pairs with the release below; a short section. */
    while (atomic_flag_test_and_set_explicit(&o->adding, memory_order_acquire))
        ;
    old = atomic_load_explicit(&o->files, memory_order_relaxed);
    if (old != NULL && n < old->n)
        n = old->n;
    more = (struct xac_outofcore_files *)malloc(sizeof *more + n * sizeof more->fd[0]);
    if (more != NULL && descriptor(env, file) < 0) {
        for (uint32_t i = 0; i < n; i++)
            more->fd[i] = old != NULL && i < old->n ? old->fd[i] : -1;
        xac_assert(file < n);
        more->fd[file] = own << 1 | is_direct;
        own = -1;
        more->n = n;
        more->older = old;
        /* Release: pairs with the acquire in descriptor. */
        atomic_store_explicit(&o->files, more, memory_order_release);
        old = more;
    }
    if (more != old)
        free(more);
    atomic_flag_clear_explicit(&o->adding, memory_order_release); /* pairs with above */
    if (own >= 0)
        (void)xac_sys.close(own);
    return more != NULL ? 0 : xac_err(ENOMEM, "XAC_OPT_FRAMES");
}

/* close_files -- all descriptors, and the tables. */
static void
close_files(struct xac_env *env)
{
    struct xac_outofcore *o = &env->outofcore;
    struct xac_outofcore_files *t = atomic_load_explicit(&o->files, memory_order_relaxed);

    for (uint32_t i = 0; t != NULL && i < t->n; i++) {
        struct xac_handle handle;

        if (t->fd[i] < 0)
            continue;
        handle = handle_of(env, i);
        xac_handle_close(t->fd[i] >> 1, &handle);
    }
    while (t != NULL) {
        struct xac_outofcore_files *older = t->older;

        free(t);
        t = older;
    }
    atomic_store_explicit(&o->files, NULL, memory_order_relaxed);
    xac_assert(atomic_load_explicit(&o->files, memory_order_relaxed) == NULL);
}

/* ---- One page in the pool ----------------------------------------------------------------- */

/* place_of -- a page's number in the pool. */
XAC_SIGSAFE static uint64_t
place_of(const struct xac_env *env, const struct xac_page *page)
{
    xac_assert_slow(xac_shm_offset(&env->shm, page) % sizeof *page == 0);
    return xac_shm_offset(&env->shm, page) / sizeof *page;
}

/*
 * is_backed -- has the pool's table memory for a page?  Given now if it has none: a store must
 * not run into a full file system.
 */
XAC_SIGSAFE static bool
is_backed(const struct xac_env *env, uint64_t place)
{
    const struct xac_outofcore *o = &env->outofcore;
    uint64_t entry = place * sizeof(uint64_t);
    uint64_t part = entry / PART_BYTES;
    uint64_t bit = UINT64_C(1) << part % 64;

    xac_assert(o->pool != NULL);
    xac_assert(o->backed != NULL);
    if (entry >= o->layout.table_bytes)
        return false;
    if ((atomic_load_explicit(&o->backed[part / 64], memory_order_relaxed) & bit) != 0)
        return true;
    if (!xac_handle_is_ours(o->fd, &o->handle)
        || xac_sys.fallocate(o->fd, 0,
                             (off_t)(o->layout.table_offset + part * PART_BYTES),
                             (off_t)PART_BYTES)
               != 0)
        return false;
    (void)atomic_fetch_or_explicit(&o->backed[part / 64], bit, memory_order_relaxed);
    return true;
}

/* from_pool -- a page's bytes by way of the pool; ret 0 or errno: it must be read past it. */
XAC_SIGSAFE static int
from_pool(const struct xac_env *env, struct xac_frames_user *user,
          const struct xac_page *page, uint8_t *to)
{
    struct xac_frames_pin pin;
    uint64_t place = place_of(env, page);
    int rc = is_backed(env, place) ? xac_frames_fix(user, place, 0, &pin) : ENOSPC;

    xac_assert(user != NULL);
    xac_assert(to != NULL);
    if (rc != 0)
        return rc;
    memcpy(to, pin.data, env->page_size);
    xac_frames_unfix(user, &pin);
    return 0;
}

XAC_SIGSAFE const uint8_t *
xac_outofcore_page(struct xac_ctx *ctx, uint32_t file, uint64_t page_no, int place)
{
    struct xac_env *env = ctx->env;
    const struct xac_outofcore_ctx *o = ctx->outofcore;
    uint8_t *to = o->places + (size_t)place * env->page_size;
    const struct xac_page *page =
        xac_ptab_find(&env->shm, &xac_file_at(env, file)->root, page_no);
    int rc = ENOSPC;

    xac_assert(place < XAC_PLACES);
    xac_assert(o->places != NULL);
    xac_assert(file != 0);
    xac_count(&env->ctl->outofcore.fetches, 1);
    if (page != NULL && o->user != NULL
        && atomic_load_explicit(&page->id, memory_order_relaxed) != 0)
        rc = from_pool(env, o->user, page, to);
    if (rc != 0) {
        xac_count(&env->ctl->outofcore.past, 1);
        rc = read_file(env, xac_page_id(file, page_no), to);
    }
    if (rc == 0)
        return to;
    ctx->lacking = XAC_LACKS_FILE;
    errno = rc;
    return NULL;
}

/* refresh -- a page that somebody has fixed, who is dead, or stopped behind his last look. */
static int
refresh(struct xac_env *env, uint64_t place, const uint8_t *bytes)
{
    struct xac_frames_pin pin;
    int rc = xac_frames_fix(env->outofcore.user, place, 0, &pin);

    xac_assert(env->outofcore.user != NULL);
    if (rc != 0)
        return rc;
    memcpy(pin.data, bytes, env->page_size);
    xac_frames_unfix(env->outofcore.user, &pin);
    return 0;
}

int
xac_outofcore_written(struct xac_env *env, const struct xac_page *page,
                      const uint8_t *bytes)
{
    uint64_t place;
    int rc;

    if (!xac_outofcore_is_on(env))
        return 0;
    xac_assert(xac_lock_is_mine(&env->ctl->checkpoint));
    xac_assert(bytes != NULL);
    place = place_of(env, page);
    if (!is_backed(env, place)) /* for nobody: nor is the page there */
        return 0;
    rc = xac_frames_invalidate(env->outofcore.user, place);
    if (rc == EBUSY)
        rc = refresh(env, place, bytes);
    return rc == 0 ? 0 : xac_err(rc, "checkpoint: a page that stays in its frame");
}

/* ---- The pool's file ------------------------------------------------------------------------ */

#define POOL_PATH_MAX (PATH_MAX + sizeof ".pool")

/* pool_path -- of a region; takes no memory, which may be wanting when it is removed. */
static const char *
pool_path(const char *region_path, char path[POOL_PATH_MAX])
{
    (void)snprintf(path, POOL_PATH_MAX, "%s.pool", region_path);
    return path;
}

static struct xac_frames_config
config_of(const struct xac_env *env)
{
    uint64_t n = env->ctl->outofcore.n_frames;
    uint64_t seats = n / SEAT_SHARE;

    xac_assert(n != 0);
    seats = seats < SEATS_LEAST ? SEATS_LEAST : seats;
    return (struct xac_frames_config){
        .n_pages = env->shm.reserve / sizeof(struct xac_page),
        .n_frames = (uint32_t)(n / 2),
        .n_users = (uint32_t)(seats > SEATS_MOST ? SEATS_MOST : seats),
        .page_bytes = (uint32_t)env->page_size,
        .full_tries = FULL_TRIES,
        .pins_max = 1,
    };
}

/* map_pool -- its file, open as o->fd; ret 0 or errno. */
static int
map_pool(struct xac_env *env)
{
    struct xac_outofcore *o = &env->outofcore;
    size_t bits =
        env->shm.reserve / sizeof(struct xac_page) * sizeof(uint64_t) / PART_BYTES;
    void *p = xac_sys.mmap(NULL, env->ctl->outofcore.pool_bytes, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_NORESERVE, o->fd, 0);

    xac_assert(o->fd >= 0);
    xac_assert(env->ctl->outofcore.pool_bytes != 0);
    if (p == MAP_FAILED)
        return errno;
    o->memory = p;
    o->backed = (_Atomic uint64_t *)calloc(bits / 64 + 1, sizeof o->backed[0]);
    xac_assert(o->memory != NULL);
    return o->backed != NULL ? 0 : ENOMEM;
}

/* back_all -- memory for all of the pool but its table and its pages, of which the table gets
   it before it is used, and a read into a page that cannot have it fails. */
static int
back_all(const struct xac_outofcore *o)
{
    uint64_t end = o->layout.table_offset + o->layout.table_bytes;

    if (xac_sys.fallocate(o->fd, 0, 0, (off_t)o->layout.table_offset) != 0
        || xac_sys.fallocate(o->fd, 0, (off_t)end, (off_t)(o->layout.data_offset - end))
               != 0)
        return errno;
    return 0;
}

int
xac_outofcore_create(struct xac_env *env, const char *region_path)
{
    struct xac_outofcore *o = &env->outofcore;
    struct xac_outofcore_shared *sh = &env->ctl->outofcore;
    struct xac_frames_config config;
    struct xac_frames_io io = io_of(env);
    struct xac_owner owner;
    char path[POOL_PATH_MAX];
    int rc;

    sh->n_frames = env->options.frames;
    if (sh->n_frames == 0)
        return 0;
    (void)pool_path(region_path, path);
    config = config_of(env);
    sh->pool_bytes = xac_frames_bytes(&config);
    rc = xac_owner_get_shared(env->dirfd, &owner);
    if (rc == 0)
        rc = xac_newfile_make(env->dirfd, path, &owner, &o->fd);
    if (rc == 0 && (o->fd = xac_handle_keep(o->fd, &o->handle)) < 0)
        rc = errno;
    if (rc == 0 && xac_sys.ftruncate(o->fd, (off_t)sh->pool_bytes) != 0)
        rc = errno;
    if (rc == 0)
        rc = map_pool(env);
    if (rc == 0)
        rc = xac_frames_create(&config, o->memory, &io, &o->pool);
    if (rc == 0)
        rc = xac_frames_get_layout(o->pool, &o->layout, sizeof o->layout);
    if (rc == 0)
        rc = back_all(o);
    if (rc != 0)
        rc = xac_err(rc, "XAC_OPT_FRAMES: %llu frames in %s",
                     (unsigned long long)sh->n_frames, path);
    xac_assert(rc != 0 || o->pool != NULL);
    return rc;
}

int
xac_outofcore_attach(struct xac_env *env, const char *region_path)
{
    struct xac_outofcore *o = &env->outofcore;
    struct xac_frames_io io = io_of(env);
    char path[POOL_PATH_MAX];
    struct stat st;
    int rc;

    if (!xac_outofcore_is_on(env))
        return 0;
    (void)pool_path(region_path, path);
    rc = xac_region_open(env->dirfd, path, &o->fd);
    if (rc == 0 && (o->fd = xac_handle_keep(o->fd, &o->handle)) < 0)
        rc = errno;
    if (rc == 0 && xac_sys.fstat(o->fd, &st) != 0)
        rc = errno;
    if (rc == 0 && (uint64_t)st.st_size < env->ctl->outofcore.pool_bytes)
        rc = XAC_EDAMAGED;
    if (rc == 0)
        rc = map_pool(env);
    if (rc == 0)
        rc = xac_frames_attach(o->memory, &io, &o->pool);
    if (rc == 0)
        rc = xac_frames_get_layout(o->pool, &o->layout, sizeof o->layout);
    if (rc == ENOENT)
        rc = xac_err(XAC_ENOTSHARED, "%s" XAC_REGION_GONE, path);
    else if (rc != 0)
        rc = xac_err(rc, "XAC_OPT_FRAMES: pool %s", path);
    xac_assert(rc != 0 || o->pool != NULL);
    return rc;
}

/* leave -- a seat; in a child it is the parent's, and only its handle is given up. */
static void
leave(struct xac_frames_user *user, pid_t pid)
{
    if (user != NULL && pid == getpid())
        xac_frames_leave(user);
    else
        free(user); /* as it was made, see user_make() */
}

void
xac_outofcore_detach(struct xac_env *env)
{
    struct xac_outofcore *o = &env->outofcore;

    leave(o->user, o->user_pid);
    o->user = NULL;
    close_files(env);
    if (o->pool != NULL)
        xac_frames_close(o->pool);
    o->pool = NULL;
    free(o->backed);
    o->backed = NULL;
    if (o->memory != NULL)
        (void)xac_sys.munmap(o->memory, env->ctl->outofcore.pool_bytes);
    o->memory = NULL;
    if (o->fd > 0)
        xac_handle_close(o->fd, &o->handle);
    o->fd = 0;
    xac_assert(o->pool == NULL);
    xac_assert(o->memory == NULL);
}

void
xac_outofcore_remove(int dirfd, const char *region_path)
{
    char path[POOL_PATH_MAX];

    (void)xac_sys.unlinkat(dirfd, pool_path(region_path, path), 0);
}

/* ---- Who takes part --------------------------------------------------------------------------- */

/* join -- a seat of our own in the pool; ret 0 or errno. */
static int
join(struct xac_env *env, struct xac_frames_user **userp, pid_t *pidp)
{
    xac_assert(env->outofcore.pool != NULL);
    *userp = NULL;
    *pidp = getpid();
    return xac_frames_join(env->outofcore.pool, userp);
}

int
xac_outofcore_join(struct xac_env *env)
{
    struct xac_outofcore *o = &env->outofcore;
    sigset_t signals;
    int rc;

    if (!xac_outofcore_is_on(env))
        return 0;
    /* Who had our pid before us is dead.  Under reap, so that nobody who has seen it free
       gives back what is ours from now on; our entry is there already. */
    xac_signals_block(&signals);
    if (xac_lock_acquire(&env->ctl->reap) == XAC_LOCK_OWNER_DIED)
        xac_lock_repaired(&env->ctl->reap);
    (void)xac_frames_reap(o->pool, (int32_t)getpid());
    xac_assert(o->user == NULL);
    rc = join(env, &o->user, &o->user_pid);
    xac_lock_release(&env->ctl->reap);
    xac_signals_restore(&signals);
    return rc == 0 ? 0
                   : xac_err(rc,
                             "XAC_OPT_FRAMES: %llu frames are too few for so many "
                             "processes",
                             (unsigned long long)env->ctl->outofcore.n_frames);
}

void
xac_outofcore_reap(struct xac_env *env, uint32_t participant)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);
    uint32_t pid = xac_participant_at(env, participant)->pid;

    xac_assert(pid != 0);
    xac_assert(participant != env->self);
    if (!xac_outofcore_is_on(env) || env->outofcore.pool == NULL)
        return;
    for (uint32_t i = 0; i < n; i++) {
        const struct xac_participant *p = xac_participant_at(env, i);

        /* The process with this pid now has given back by itself what there was. */
        if (i != participant && p->pid == pid
            && atomic_load_explicit(&p->state, memory_order_relaxed) == XAC_PART_ATTACHED)
            return;
    }
    (void)xac_frames_reap(env->outofcore.pool, (int32_t)pid);
}

/* forget -- what a context has, and its seat. */
static void
forget(struct xac_outofcore_ctx *o, size_t page_size)
{
    leave(o->user, o->user_pid);
    if (o->places != NULL)
        (void)xac_sys.munmap(o->places, XAC_PLACES * page_size);
    free(o->ring);
    free(o);
}

int
xac_outofcore_open(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t shown = env->ctl->outofcore.n_frames / 8 + XAC_OUTOFCORE_SHOWN_LEAST;
    struct xac_outofcore_ctx *o;
    void *p;

    xac_outofcore_close(ctx); /* the parent's, after a fork */
    if (!xac_outofcore_is_on(env))
        return 0;
    o = (struct xac_outofcore_ctx *)calloc(1, sizeof *o);
    if (o == NULL)
        return xac_err(ENOMEM, "XAC_OPT_FRAMES");
    o->size = 64;
    while (o->size < 2 * shown)
        o->size *= 2;
    o->ring = (uint64_t *)calloc(o->size, sizeof o->ring[0]);
    p = xac_sys.mmap(NULL, XAC_PLACES * env->page_size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    o->places = p == MAP_FAILED ? NULL : (uint8_t *)p;
    if (o->ring == NULL || o->places == NULL) {
        forget(o, env->page_size);
        return xac_err(ENOMEM, "XAC_OPT_FRAMES");
    }
    o->limit = XAC_OUTOFCORE_SHOWN_LEAST;
    (void)join(env, &o->user, &o->user_pid); /* without a seat it reads past the pool */
    xac_assert((o->size & (o->size - 1)) == 0);
    xac_assert(o->limit <= o->size / 2);
    ctx->outofcore = o;
    return 0;
}

void
xac_outofcore_close(struct xac_ctx *ctx)
{
    if (ctx->outofcore != NULL)
        forget(ctx->outofcore, ctx->env->page_size);
    ctx->outofcore = NULL;
    xac_assert(ctx->outofcore == NULL);
}

/* ---- For xStats() --------------------------------------------------------------------------------- */

void
xac_outofcore_stats(const struct xac_env *env, struct xac_stats *out)
{
    const struct xac_outofcore_shared *sh = &env->ctl->outofcore;
    uint64_t have =
        atomic_load_explicit(&env->ctl->versions.slots.count, memory_order_relaxed);
    uint64_t spill =
        atomic_load_explicit(&env->ctl->versions.spill, memory_order_relaxed);
    uint64_t fetches = atomic_load_explicit(&sh->fetches, memory_order_relaxed);
    uint64_t past = atomic_load_explicit(&sh->past, memory_order_relaxed);

    out->frames_bound = sh->n_frames;
    out->frames_misses = atomic_load_explicit(&sh->reads, memory_order_relaxed) + past;
    out->frames_hits = fetches > out->frames_misses ? fetches - out->frames_misses : 0;
    out->pages_dropped = atomic_load_explicit(&sh->dropped, memory_order_relaxed);
    out->pages_spilled = atomic_load_explicit(&sh->spilled, memory_order_relaxed);
    out->pages_fetched_back =
        atomic_load_explicit(&sh->fetched_back, memory_order_relaxed);
    out->frames_on_disk = spill != 0 && spill <= have ? have + 1 - spill : 0;
}
