/* SPDX-License-Identifier: MIT */
/*
 * api.c -- the public entry points: arguments, nesting, whose turn it is; no algorithms.
 *
 * Each function exists as xac_name and, as an alias, under its Thesis name.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "alloc.h"
#include "checkpoint.h"
#include "env.h"
#include "err.h"
#include "lockfile.h"
#include "master.h"
#include "recover.h"
#include "sys.h"
#include "view.h"

#define MIB ((uint64_t)1 << 20)

/* The process's environment; NULL if none is open. */
static struct xac_env *env;

/* Guards opening and closing. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

static struct xac_env_options options = {
    .checkpoint_bytes = 64 * MIB,
    .segment_bytes = 16 * MIB,
    .ring_bytes = 4 * MIB,
    .checksum = XAC_CHECKSUM_XXH3,
};

/* ---- Whose turn it is ---------------------------------------------------------------- */

static bool
is_mine(void)
{
    /* Relaxed: that it is us can only have been stored by us. */
    return pthread_equal(atomic_load_explicit(&env->ctx.owner, memory_order_relaxed),
                         pthread_self());
}

/* take_turn -- keep other threads out; ret 0, XAC_EINTXN if we have a transaction, EBUSY. */
static int
take_turn(const char *what)
{
    pthread_t none = 0;

    if (is_mine())
        return xac_err(XAC_EINTXN, "%s", what);
    /* Acquire: pairs with the release in give_turn. */
    if (!atomic_compare_exchange_strong_explicit(&env->ctx.owner, &none, pthread_self(),
                                                 memory_order_acquire,
                                                 memory_order_relaxed))
        return xac_err(EBUSY, "%s: another thread has a transaction open", what);
    return 0;
}

static void
give_turn(void)
{
    /* Release: pairs with the acquire in take_turn. */
    atomic_store_explicit(&env->ctx.owner, 0, memory_order_release);
}

/* not_open -- is there no environment? */
static int
not_open(const char *what)
{
    return env == NULL ? xac_err(XAC_ENOINIT, "%s", what) : 0;
}

/* start_call -- for calls outside transactions: take the turn, join after a fork. */
static int
start_call(const char *what)
{
    int rc = not_open(what);

    if (rc == 0)
        rc = take_turn(what);
    if (rc != 0)
        return rc;
    rc = xac_env_rejoin(env);
    if (rc != 0)
        give_turn();
    return rc;
}

/* in_txn -- is the caller inside a transaction or query of its own? */
static int
in_txn(const char *what)
{
    int rc = not_open(what);

    if (rc != 0)
        return rc;
    if (is_mine() && env->ctx.depth > 0)
        return 0;
    if (env->ctx.orphan_depth > 0)
        return xac_err(XAC_EFORKED, "%s", what);
    return xac_err(XAC_ENOTXN, "%s", what);
}

/* on_fork -- in the child, before anything else runs there. */
static void
on_fork(void)
{
    if (env == NULL)
        return;
    if (!is_mine())
        env->ctx.depth = 0; /* of a thread that does not exist here */
    xac_env_forked(env);
    give_turn();
}

static void
watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, on_fork);
}

/* ---- Opening and closing ------------------------------------------------------------- */

int
xac_init(const char *path, int flags)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct xac_env *made = NULL;
    int rc;

    if (path == NULL || *path == '\0')
        return xac_err(EINVAL, "xInit: no path");
    if (flags != XAC_NONDURABLE && flags != XAC_DURABLE)
        return xac_err(EINVAL, "xInit: unknown flags %#x", (unsigned)flags);
    (void)pthread_once(&once, watch_forks);
    (void)pthread_mutex_lock(&open_lock);
    if (env != NULL)
        rc = xac_err(XAC_EALREADY, "xInit");
    else
        rc = xac_env_open(path, flags, &options, &made);
    if (rc == 0)
        env = made;
    (void)pthread_mutex_unlock(&open_lock);
    return rc;
}

int
xac_shutdown(void)
{
    int rc;

    (void)pthread_mutex_lock(&open_lock);
    rc = not_open("xShutdown");
    if (rc == 0)
        rc = take_turn("xShutdown");
    if (rc != 0)
        goto out;
    while (env->views != NULL) {
        struct xac_view *v = env->views;

        env->views = v->next;
        xac_view_close(env, v);
    }
    rc = xac_env_close(env);
    env = NULL;
out:
    (void)pthread_mutex_unlock(&open_lock);
    return rc;
}

/* errno_of -- what xMmap reports for an error of ours. */
static int
errno_of(int rc)
{
    switch (rc) {
    case XAC_ENOINIT:
    case XAC_EINTXN:
        return EPERM;
    case XAC_EMAPPED:
        return EEXIST;
    case XAC_EREPLACED:
        return ESTALE;
    default:
        return rc > 0 ? rc : EIO;
    }
}

/* map -- xMmap with error codes. */
static int
map(const char *name, size_t length, struct xac_view **viewp)
{
    int rc;

    if (name == NULL || *name == '\0')
        return xac_err(EINVAL, "xMmap: no file name");
    rc = start_call("xMmap");
    if (rc != 0)
        return rc;
    if (length == 0 || length % env->page_size != 0)
        rc = xac_err(EINVAL, "xMmap: length %zu is not a positive multiple of %zu",
                     length, env->page_size);
    else
        rc = xac_env_poisoned(env);
    if (rc == 0)
        rc = xac_view_open(env, name, length, viewp);
    if (rc == 0) {
        (*viewp)->next = env->views;
        env->views = *viewp;
    }
    give_turn();
    return rc;
}

void *
xac_mmap(const char *name, size_t length)
{
    struct xac_view *v = NULL;
    int rc = map(name, length, &v);

    if (rc != 0) {
        errno = errno_of(rc);
        return MAP_FAILED;
    }
    return v->base;
}

int
xac_munmap(const char *name)
{
    struct xac_view **link;
    struct xac_view *v;
    int rc;

    if (name == NULL || *name == '\0')
        return xac_err(EINVAL, "xMunmap: no file name");
    rc = start_call("xMunmap");
    if (rc != 0)
        return rc;
    v = xac_view_named(env, name);
    if (v == NULL) {
        rc = xac_err(XAC_ENOTMAPPED, "%s", name);
    } else {
        for (link = &env->views; *link != v; link = &(*link)->next)
            ;
        *link = v->next;
        xac_view_close(env, v);
    }
    give_turn();
    return rc;
}

/* ---- Transactions -------------------------------------------------------------------- */

/* begin_outermost -- a transaction or a query. */
static int
begin_outermost(bool is_query)
{
    int rc = start_call(is_query ? "xbeginQuery" : "xbegin");

    if (rc != 0)
        return rc;
    rc = xac_env_poisoned(env);
    if (rc == 0)
        rc = xac_txn_begin(env, &env->ctx, is_query);
    if (rc != 0) {
        give_turn();
        return rc;
    }
    env->ctx.depth = 1;
    env->ctx.query_depth = is_query;
    return 0;
}

int
xac_begin(void)
{
    int rc = not_open("xbegin");

    if (rc != 0)
        return rc;
    if (!is_mine())
        return begin_outermost(false);
    if (env->ctx.query_depth > 0)
        return xac_err(XAC_EINQUERY, "xbegin");
    env->ctx.depth++;
    return 0;
}

int
xac_begin_query(void)
{
    int rc = not_open("xbeginQuery");

    if (rc != 0)
        return rc;
    if (!is_mine())
        return begin_outermost(true);
    env->ctx.depth++;
    env->ctx.query_depth++;
    return 0;
}

/* status -- of the running transaction. */
static int
status(void)
{
    /* Acquire: pairs with the exchange in xac_txn_fail. */
    uint64_t word = atomic_load_explicit(&env->ctx.txn->word, memory_order_acquire);

    return xac_txn_state(word) == XAC_TXN_FAILED || env->ctx.error != 0 ? XAC_FAILED
                                                                        : XAC_PENDING;
}

/* end_outermost -- the transaction or query is over. */
static int
end_outermost(void)
{
    int rc = xac_txn_end(env, &env->ctx);

    env->ctx.depth = 0;
    env->ctx.query_depth = 0;
    give_turn();
    return rc;
}

/* end_orphan -- an end for a transaction that stayed in the parent process. */
static int
end_orphan(int rc)
{
    if (rc == XAC_EFORKED)
        env->ctx.orphan_depth--;
    return rc;
}

int
xac_end(void)
{
    int rc = in_txn("xend");

    if (rc != 0)
        return end_orphan(rc);
    if (env->ctx.query_depth > 0)
        return xac_err(XAC_EINQUERY,
                       "xend: the innermost is a query, end it by xendQuery");
    if (env->ctx.depth == 1)
        return end_outermost();
    env->ctx.depth--;
    return status();
}

int
xac_end_query(void)
{
    int rc = in_txn("xendQuery");

    if (rc != 0)
        return end_orphan(rc);
    if (env->ctx.query_depth == 0)
        return xac_err(XAC_ENOTXN, "xendQuery: the innermost is no query");
    if (env->ctx.depth == 1)
        return end_outermost();
    env->ctx.depth--;
    env->ctx.query_depth--;
    return 0;
}

int
xac_validate(void)
{
    int rc = in_txn("xValidate");

    return rc != 0 ? rc : status();
}

int
xac_abort(void)
{
    uint64_t word;
    int rc = in_txn("xAbort");

    if (rc != 0)
        return rc;
    if (env->ctx.query_depth > 0)
        return xac_err(XAC_EINQUERY, "xAbort");
    word = atomic_load_explicit(&env->ctx.txn->word, memory_order_relaxed);
    (void)xac_txn_fail(env->ctx.txn, word, XAC_CONFLICT_USER, env->pid, 0);
    return 0;
}

/* hint -- setPageAccess inside a transaction. */
static int
hint(struct xac_view *v, const void *addr, bool is_write)
{
    uint64_t page_no = (uint64_t)((const uint8_t *)addr - v->base) >> env->page_shift;
    uint32_t state = v->page[page_no].state;
    int rc;

    if (is_write && env->ctx.query_depth > 0)
        return xac_err(XAC_EINQUERY, "setPageAccess: READ_WRITE");
    if (state == XAC_PAGE_DIRTY
        || (!is_write
            && (state == XAC_PAGE_READABLE || (v->is_solo && state == XAC_PAGE_ABSENT))))
        return 0;
    rc = xac_view_access(env, &env->ctx, v, page_no, is_write);
    if (rc != 0)
        return xac_err(rc, "setPageAccess");
    xac_count(&env->ctl->counters.hints, 1);
    return 0;
}

int
xac_set_page_access(void *addr, int access)
{
    struct xac_view *v;
    int rc = not_open("setPageAccess");

    if (rc != 0)
        return rc;
    if (access != XAC_READ && access != XAC_READ_WRITE)
        return xac_err(EINVAL, "setPageAccess: unknown access %d", access);
    v = xac_view_at(env, addr);
    if (v == NULL)
        return xac_err(XAC_ENOTMAPPED, "setPageAccess: address %p", addr);
    if (!is_mine() || env->ctx.depth == 0)
        return 0;
    return hint(v, addr, access == XAC_READ_WRITE);
}

int
xac_set_range_access(void *addr, size_t length, int access)
{
    uint8_t *at = (uint8_t *)addr;
    struct xac_view *v;
    int rc = xac_set_page_access(addr, access); /* checks all but the length */

    if (rc != 0)
        return rc;
    v = xac_view_at(env, addr);
    if (length == 0 || length > (size_t)(v->base + v->length - at))
        return xac_err(EINVAL, "setRangeAccess: %zu bytes at %p", length, addr);
    for (at += env->page_size - (size_t)(at - v->base) % env->page_size;
         rc == 0 && at < (uint8_t *)addr + length; at += env->page_size)
        rc = xac_set_page_access(at, access);
    return rc;
}

int
xac_get_conflict(struct xac_conflict *out)
{
    int rc = not_open("xConflict");

    if (rc != 0)
        return rc;
    if (out == NULL)
        return xac_err(EINVAL, "xConflict: NULL");
    *out = env->ctx.conflict;
    return 0;
}

/* ---- The log --------------------------------------------------------------------------- */

/* recover_in -- recover the environment in an open directory. */
static int
recover_in(int dirfd, const char *path)
{
    struct xac_master_slot master;
    int lockfd, rc;

    rc = xac_master_read(dirfd, &master);
    if (rc != 0)
        return rc == ENOENT ? xac_err(XAC_ENOTENV, "%s", path) : rc;
    lockfd = xac_lockfile_open(dirfd);
    if (lockfd < 0)
        return xac_err(errno, "%s/%s", path, XAC_LOCK_NAME);
    rc = xac_gate_enter(lockfd);
    if (rc != 0) {
        rc = xac_err(rc, "gate of %s", path);
    } else {
        struct xac_recover_options how = {.dry_run = false};

        rc = xac_alive_any(lockfd) ? xac_err(XAC_ELIVE, "%s", path)
                                   : xac_recover_dir(dirfd, &how, NULL, NULL);
        if (rc == 0)
            xac_env_clear_region(dirfd, lockfd);
        xac_gate_leave(lockfd);
    }
    (void)xac_sys.close(lockfd);
    return rc;
}

int
xac_recover(const char *path)
{
    int dirfd, rc;

    if (path == NULL || *path == '\0')
        return xac_err(EINVAL, "xRecover: no path");
    dirfd = xac_sys.openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (dirfd < 0)
        return xac_err(errno, "%s", path);
    rc = recover_in(dirfd, path);
    (void)xac_sys.close(dirfd);
    return rc;
}

int
xac_checkpoint(void)
{
    int rc = start_call("xCheckpoint");

    if (rc != 0)
        return rc;
    rc = xac_checkpoint_run(env, false);
    give_turn();
    return rc;
}

int
xac_archive(char ***names, size_t *count)
{
    int rc;

    if (names == NULL || count == NULL)
        return xac_err(EINVAL, "xArchive: NULL");
    rc = start_call("xArchive");
    if (rc != 0)
        return rc;
    rc = xac_archive_names(env, names, count);
    give_turn();
    return rc;
}

/* ---- Information and options ------------------------------------------------------------ */

const char *
xac_last_error(void)
{
    return xac_err_text();
}

static uint64_t
get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* stats_of_log -- the log's share of xStats(). */
static void
stats_of_log(struct xac_stats *out)
{
    const struct xac_log_shared *log = &env->ctl->log;

    if (!xac_env_is_durable(env))
        return;
    out->log_tail = get(&log->tail);
    out->log_durable = get(&log->durable);
    out->log_bytes = out->log_tail - log->start_lsn;
    out->log_writes = get(&log->n_writes);
    out->log_syncs = get(&log->n_syncs);
}

int
xac_get_stats(struct xac_stats *out)
{
    const struct xac_counters *n;
    int rc = not_open("xStats");

    if (rc == 0 && env->is_forked) {
        rc = start_call("xStats"); /* joins */
        if (rc == 0)
            give_turn();
    }
    if (rc != 0)
        return rc;
    if (out == NULL)
        return xac_err(EINVAL, "xStats: NULL");
    n = &env->ctl->counters;
    *out = (struct xac_stats){
        .commits = get(&n->commits),
        .commits_read_only = get(&n->commits_read_only),
        .queries = get(&n->queries),
        .aborts_conflict = get(&n->aborts_conflict),
        .aborts_user = get(&n->aborts_user),
        .aborts_other = get(&n->aborts_other),
        .traps_read = get(&n->traps_read),
        .traps_write = get(&n->traps_write),
        .hints = get(&n->hints),
        .pages_written = get(&n->pages_written),
        .checkpoints = get(&n->checkpoints),
        .pages_checkpointed = get(&n->pages_checkpointed),
        .dead_cleaned = get(&n->dead_cleaned),
        .versions_live = get(&env->ctl->versions.used),
        .frames = get(&env->ctl->versions.frames.count),
        .participants = xac_registry_attached(env),
        .commit_number = xac_chain_commit(env),
    };
    stats_of_log(out);
    return 0;
}

static bool
is_power_of_two_within(uint64_t v, uint64_t least, uint64_t most)
{
    return v >= least && v <= most && (v & (v - 1)) == 0;
}

/* set_now -- an option that may change while the environment is open. */
static int
set_now(int option, uint64_t value)
{
    if (option == XAC_OPT_STAY_MAPPED) {
        if (env != NULL && is_mine())
            return xac_err(XAC_EINTXN, "xSetOption: option %d", option);
        options.stay_mapped = (uint32_t)value;
        if (env != NULL)
            env->options.stay_mapped = (uint32_t)value;
    } else if (option == XAC_OPT_CHECKSUM) {
        options.checksum = (uint32_t)value;
        if (env != NULL && env->ctl != NULL)
            atomic_store_explicit(&env->ctl->checksum, (uint32_t)value,
                                  memory_order_relaxed);
    } else {
        options.checkpoint_bytes = value;
        if (env != NULL && env->ctl != NULL)
            atomic_store_explicit(&env->ctl->checkpoint_bytes, value,
                                  memory_order_relaxed);
    }
    return 0;
}

int
xac_set_option(int option, uint64_t value)
{
    bool is_valid = false;

    switch (option) {
    case XAC_OPT_CHECKSUM:
        is_valid = value <= XAC_CHECKSUM_SHA1;
        break;
    case XAC_OPT_CHECKPOINT_BYTES:
        is_valid = true;
        break;
    case XAC_OPT_STAY_MAPPED:
        is_valid = value <= 1;
        break;
    case XAC_OPT_POLICY:
        is_valid = value <= XAC_POLICY_OPTIMISTIC;
        break;
    case XAC_OPT_LOG_SEGMENT_BYTES:
    case XAC_OPT_LOG_BUFFER_BYTES:
        is_valid = is_power_of_two_within(value, MIB / 16, 1024 * MIB);
        break;
    default:
        return xac_err(EINVAL, "xSetOption: unknown option %d", option);
    }
    if (!is_valid)
        return xac_err(EINVAL, "xSetOption: option %d, value %llu", option,
                       (unsigned long long)value);
    if (option != XAC_OPT_LOG_SEGMENT_BYTES && option != XAC_OPT_LOG_BUFFER_BYTES
        && option != XAC_OPT_POLICY)
        return set_now(option, value);
    if (env != NULL)
        return xac_err(EBUSY, "xSetOption: option %d must be set before xInit", option);
    if (option == XAC_OPT_LOG_SEGMENT_BYTES)
        options.segment_bytes = value;
    else if (option == XAC_OPT_LOG_BUFFER_BYTES)
        options.ring_bytes = value;
    else
        options.policy = (uint32_t)value;
    return 0;
}

/* ---- Allocator -------------------------------------------------------------------------- */

/* heap_view -- the view of a segment by its start, for a caller inside a transaction. */
static int
heap_view(const char *what, const void *base, bool is_change, struct xac_view **viewp)
{
    int rc = in_txn(what);

    if (rc != 0)
        return rc;
    if (is_change && env->ctx.query_depth > 0)
        return xac_err(XAC_EINQUERY, "%s", what);
    *viewp = xac_view_at(env, base);
    if (*viewp == NULL || (*viewp)->base != base)
        return xac_err(XAC_ENOTMAPPED, "%s: no segment starts at %p", what, base);
    return 0;
}

/* heap_address -- what xMalloc and xRoot return. */
static void *
heap_address(int rc, void *address)
{
    if (rc == 0)
        return address;
    if (rc == XAC_ENOTMAPPED)
        errno = EINVAL;
    else if (rc == XAC_ENOTXN || rc == XAC_EINQUERY || rc == XAC_EFORKED)
        errno = EPERM;
    else
        errno = errno_of(rc);
    return NULL;
}

void *
xac_malloc(void *base, size_t size)
{
    struct xac_view *v;
    void *address = NULL;
    int rc = heap_view("xMalloc", base, true, &v);

    if (rc == 0)
        rc = xac_alloc_take(env, v, size, &address);
    return heap_address(rc, address);
}

int
xac_free(void *base, void *p)
{
    struct xac_view *v;
    int rc = heap_view("xFree", base, true, &v);

    return rc != 0 || p == NULL ? rc : xac_alloc_give(env, v, p);
}

void *
xac_root(void *base)
{
    struct xac_view *v;
    void *address = NULL;
    int rc = heap_view("xRoot", base, false, &v);

    if (rc == 0)
        rc = xac_alloc_root(env, v, &address);
    return heap_address(rc, address);
}

int
xac_heap_check(void *base, struct xac_heap_totals *out)
{
    struct xac_view *v;
    int rc = heap_view("xHeapCheck", base, false, &v);

    return rc != 0 ? rc : xac_alloc_check(env, v, out);
}

/* ---- Thesis names ------------------------------------------------------------------------ */

#define ALIAS_OF(name) __attribute__((alias(#name)))

int xInit(const char *path, int flags) ALIAS_OF(xac_init);
int xShutdown(void) ALIAS_OF(xac_shutdown);
void *xMmap(const char *name, size_t length) ALIAS_OF(xac_mmap);
int xMunmap(const char *name) ALIAS_OF(xac_munmap);
int xbegin(void) ALIAS_OF(xac_begin);
int xend(void) ALIAS_OF(xac_end);
int xValidate(void) ALIAS_OF(xac_validate);
int xbeginQuery(void) ALIAS_OF(xac_begin_query);
int xendQuery(void) ALIAS_OF(xac_end_query);
int setPageAccess(void *addr, int access) ALIAS_OF(xac_set_page_access);
int xRecover(const char *path) ALIAS_OF(xac_recover);
int xCheckpoint(void) ALIAS_OF(xac_checkpoint);
int xArchive(char ***names, size_t *count) ALIAS_OF(xac_archive);
const char *xLastError(void) ALIAS_OF(xac_last_error);
int setRangeAccess(void *addr, size_t length, int access) ALIAS_OF(xac_set_range_access);
int xAbort(void) ALIAS_OF(xac_abort);
int xConflict(struct xac_conflict *out) ALIAS_OF(xac_get_conflict);
int xStats(struct xac_stats *out) ALIAS_OF(xac_get_stats);
int xSetOption(int option, uint64_t value) ALIAS_OF(xac_set_option);
void *xMalloc(void *base, size_t size) ALIAS_OF(xac_malloc);
int xFree(void *base, void *p) ALIAS_OF(xac_free);
void *xRoot(void *base) ALIAS_OF(xac_root);
int xHeapCheck(void *base, struct xac_heap_totals *out) ALIAS_OF(xac_heap_check);

const char *
xStrerror(int code)
{
    return xac_strerror(code); /* defined in err.c, so no alias */
}
