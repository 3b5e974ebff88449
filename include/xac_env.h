/* SPDX-License-Identifier: MIT */
/*
 * xac_env.h -- several environments in one process; xac.h has the calls for a single one.
 *
 * The calls of xac.h work on the default environment, which xInit() opens.  A library that uses
 * libxac cannot know whether the program, or another library, uses it too; so it opens an
 * environment of its own and names it in each call:
 *
 *     #include <xac_env.h>
 *
 *     struct xac_env *env = xac_open("db", NULL);
 *     int *x = xac_mmap_in(env, "input.db", 4096);
 *     xac_begin_in(env);
 *     x[0]++;
 *     rc = xac_end_in(env);
 *     xac_close(env);
 *
 * NAMES     xac_f_in(env, ...) is xac_f(...) on the environment `env`; what xac.h says of xac_f()
 *           holds, with xac_open() and xac_close() in the places of xInit() and xShutdown().
 *           XAC_ENOINIT: env is NULL.  Messages name a call as xac.h does, xbegin() for
 *           xac_begin_in().
 *
 * RULES
 *   (1) Environments of a process do not know of each other.  Each has its own directory,
 *       mappings, options, transactions and views of threads.  A file belongs to one of them.
 *   (2) A thread may have a transaction in each environment at the same time, begun and
 *       ended in any order.  They are separate transactions: each commits or aborts alone.
 *   (3) A segment may be touched only in a transaction of the environment in which it is mapped.
 *   (4) An environment is open once in a process: a second xac_open() of its directory, by the
 *       same library or by another, fails with XAC_EALREADY.  Each reserves 1 TiB of addresses, so
 *       that about a hundred can be open at the same time.
 *   (5) xLastError() and xConflict() are the thread's: they tell of its latest failing call and
 *       of the transaction that it ended last, whichever environment it was in.
 *   (6) The handlers of SIGSEGV and SIGBUS, and the engine (XAC_ENGINE), serve all environments
 *       of the process.  They are installed when the first one is opened, and given back when the
 *       last one is closed.  fork() and exit() concern all of them, as xac.h says of one.
 */
#ifndef XAC_ENV_PUBLIC_H
#define XAC_ENV_PUBLIC_H

#include "xac.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An environment that the process has open.  Not to be used after xac_close(). */
struct xac_env;

/* Room for all options, and the value of one that is not set. */
#define XAC_OPTIONS      64
#define XAC_OPTION_UNSET UINT64_MAX

/* How an environment is opened.  xac_options_init() sets all fields. */
struct xac_options {
    size_t size;               /* of this structure, bytes                              */
    int flags;                 /* as for xInit(): XAC_DURABLE unless changed            */
    int reserved;              /* 0                                                     */
    const char *log_directory; /* as for xSetLogDirectory(); NULL: no wish              */
    /* By the option's number, value[XAC_OPT_POLICY]; XAC_OPTION_UNSET: the default. */
    uint64_t value[XAC_OPTIONS];
};

/*
 * Set all fields to their defaults.  in  size  sizeof *out, so that a program and a library of
 * different versions understand each other.
 */
XAC_API void xac_options_init(struct xac_options *out, size_t size);

/*
 * Open the environment in directory `path`, as xInit() does.
 *
 * in   path     copied.
 * in   options  NULL: as xac_options_init() sets them; copied.  Options that are set by
 *               xSetOption() are those of the default environment, and do not count.
 * ret  the environment, to be closed by xac_close(); NULL, and errno is what xInit() returns: an
 *      errno value, or a negative XAC_E... code, for xStrerror().  Besides
 *        EINVAL        an option is unknown, or its value out of range; `reserved` is not 0;
 *                      `size` is none that a version of the structure can have
 *        XAC_EALREADY  the process has opened this environment already
 */
XAC_API struct xac_env *xac_open(const char *path, const struct xac_options *options);

/*
 * Close an environment, as xShutdown() does.  The others stay as they are.
 *
 * ret  as xac_shutdown(); after XAC_EINTXN and EBUSY it is still open.  XAC_ENOINIT: it is not
 *      open, as far as that can be told: a new environment may have got the address of a closed one.
 */
XAC_API int xac_close(struct xac_env *env);

/* ---- Mappings ---------------------------------------------------------------------- */

XAC_API void *xac_mmap_in(struct xac_env *env, const char *name, size_t length);
XAC_API void *xac_mmap_at_in(struct xac_env *env, const char *name, uint64_t offset,
                             size_t length, int flags);
XAC_API void *xac_mremap_in(struct xac_env *env, void *base, size_t length, int flags);
XAC_API int xac_munmap_in(struct xac_env *env, const char *name);
XAC_API int xac_munmap_at_in(struct xac_env *env, void *base);
XAC_API int xac_forget_in(struct xac_env *env, const char *name);
XAC_API int xac_remove_in(struct xac_env *env, const char *name);
XAC_API int xac_rename_in(struct xac_env *env, const char *from, const char *to);
XAC_API void *xac_view_in(struct xac_env *env, void *base);
XAC_API int xac_unview_in(struct xac_env *env, void *view);

/* ---- Transactions ------------------------------------------------------------------ */

XAC_API int xac_begin_in(struct xac_env *env);
XAC_API int xac_end_in(struct xac_env *env);
XAC_API int xac_begin_query_in(struct xac_env *env);
XAC_API int xac_begin_query_at_in(struct xac_env *env, uint64_t state);
XAC_API int xac_begin_query_after_in(struct xac_env *env, const struct xac_token *token,
                                     uint32_t wait_ms);
XAC_API int xac_begin_query_latest_in(struct xac_env *env, uint32_t wait_ms);
XAC_API int xac_end_query_in(struct xac_env *env);
XAC_API int xac_get_token_in(struct xac_env *env, struct xac_token *token);
XAC_API int xac_fate_in(struct xac_env *env, const struct xac_token *token,
                        uint32_t wait_ms);
XAC_API int xac_snapshot_in(struct xac_env *env, uint64_t *id);
XAC_API int xac_snapshot_release_in(struct xac_env *env, uint64_t id);
XAC_API int xac_snapshot_keep_in(struct xac_env *env, uint64_t id, const char *name,
                                 uint32_t seconds);
XAC_API int xac_diff_in(struct xac_env *env, uint64_t from, uint64_t to,
                        int (*fn)(void *arg, const struct xac_change *change), void *arg);
XAC_API int xac_snapshot_find_in(struct xac_env *env, const char *name, uint64_t *id);
XAC_API int xac_validate_in(struct xac_env *env);
XAC_API int xac_abort_in(struct xac_env *env);
XAC_API uint64_t xac_savepoint_in(struct xac_env *env);
XAC_API int xac_rollback_to_in(struct xac_env *env, uint64_t mark);
XAC_API int xac_release_in(struct xac_env *env, uint64_t mark);
XAC_API int xac_transact_in(struct xac_env *env, int (*fn)(void *arg), void *arg);
XAC_API int xac_set_page_access_in(struct xac_env *env, void *addr, int access);
XAC_API int xac_set_range_access_in(struct xac_env *env, void *addr, size_t length,
                                    int access);

/* xac_set_backoff() is for the default environment; the others do not change. */
XAC_API int xac_set_backoff_in(struct xac_env *env,
                               void (*fn)(void *arg, unsigned attempts), void *arg);

/* ---- Allocator --------------------------------------------------------------------- */

XAC_API void *xac_malloc_in(struct xac_env *env, void *base, size_t size);
XAC_API int xac_free_in(struct xac_env *env, void *base, void *p);
XAC_API void *xac_aligned_alloc_in(struct xac_env *env, void *base, size_t alignment,
                                   size_t size);
XAC_API void *xac_realloc_in(struct xac_env *env, void *base, void *p, size_t size);
XAC_API size_t xac_usable_size_in(struct xac_env *env, void *base, const void *p);
XAC_API void *xac_root_in(struct xac_env *env, void *base);
XAC_API int xac_heap_check_in(struct xac_env *env, void *base,
                              struct xac_heap_totals *out, size_t size);

/*
 * Find the segment that an address lies in, among those of the transactions and queries that the
 * calling thread has open.  An allocator that stores only an address can find its heap by it.
 *
 * out  envp  the environment of the segment; may be NULL.
 * ret  the start of the segment: what the functions above want as `base`; or NULL, and errno is
 *      EPERM: the thread has no transaction open; EINVAL: the address is in none of its segments.
 */
XAC_API void *xac_segment_of(const void *address, struct xac_env **envp);

/* ---- The rest ---------------------------------------------------------------------- */

XAC_API int xac_checkpoint_in(struct xac_env *env);
XAC_API int xac_sync_in(struct xac_env *env);
XAC_API int xac_archive_in(struct xac_env *env, char ***names, size_t *count);
XAC_API int xac_backup_in(struct xac_env *env, const char *dir);
XAC_API int xac_backup_since_in(struct xac_env *env, const char *dir, const char *base);
XAC_API int xac_get_stats_in(struct xac_env *env, struct xac_stats *out, size_t size);

XAC_API int xac_participants_in(struct xac_env *env,
                                int (*fn)(void *arg, const struct xac_party *party),
                                void *arg, size_t size);

/* Set an option that may be set while an environment is open; EBUSY for the others. */
XAC_API int xac_set_option_in(struct xac_env *env, int option, uint64_t value);

#ifdef __cplusplus
}
#endif

#endif /* XAC_ENV_PUBLIC_H */
