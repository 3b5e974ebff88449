/* SPDX-License-Identifier: MIT */
/*
 * annot.h -- annotations and checks that a reader, a script or the compiler uses.
 */
#ifndef XAC_ANNOT_H
#define XAC_ANNOT_H

#include <stddef.h>

/*
 * Field touched by other threads or processes without a lock; only through
 * <stdatomic.h> with a named memory order and a "pairs with" comment.
 */
#define xac_shared

/*
 * May run inside the fault handler: calls only other XAC_SIGSAFE functions, atomics,
 * memcpy and the system calls listed in libxac/README.md.
 */
#define XAC_SIGSAFE

/*
 * Locks, for clang's analysis (scripts/check_guards).  A field with XAC_GUARDED_BY is read and
 * written only while the lock is held.  A function with XAC_REQUIRES is called only while it is held;
 * XAC_ACQUIRE takes it, XAC_RELEASE releases it, XAC_TRY_ACQUIRE has taken it if it returns this result.
 * XAC_UNGUARDED is not analysed: the bodies of functions that lock, and what clang cannot follow.
 * The names are those of the ranked locks (lock.h).  In C the analysis cannot name a field of the same
 * structure, so a name means the lock of any environment.
 */
#if defined(__clang__) && defined(XAC_CHECK_GUARDS)
# define XAC_GUARDED_BY(lock) __attribute__((guarded_by(xac_held_##lock)))
# define XAC_REQUIRES(lock)   __attribute__((requires_capability(xac_held_##lock)))
# define XAC_ACQUIRE(lock)    __attribute__((acquire_capability(xac_held_##lock)))
# define XAC_RELEASE(lock)    __attribute__((release_capability(xac_held_##lock)))
# define XAC_TRY_ACQUIRE(result, lock) \
  __attribute__((try_acquire_capability(result, xac_held_##lock)))
# define XAC_UNGUARDED __attribute__((no_thread_safety_analysis))
struct __attribute__((capability("lock"))) xac_held {
    int unused;
};
extern struct xac_held xac_held_reap, xac_held_checkpoint, xac_held_files;
extern struct xac_held xac_held_flush, xac_held_prepare, xac_held_gc;
extern struct xac_held xac_held_grow, xac_held_publish;
#else
# define XAC_GUARDED_BY(lock)
# define XAC_REQUIRES(lock)
# define XAC_ACQUIRE(lock)
# define XAC_RELEASE(lock)
# define XAC_TRY_ACQUIRE(result, lock)
# define XAC_UNGUARDED
#endif

/*
 * A function that reads memory while others may store there.  Its caller uses the result only if a
 * version is the same before and after.  The thread sanitizer does not report it.
 */
#define XAC_RACY __attribute__((no_sanitize("thread")))

/* The first field of a cache line.  Fields that one process stores all the time do not lie in
   the cache lines that others read. */
#define XAC_LINE_BYTES 64
#define XAC_LINE       _Alignas(XAC_LINE_BYTES)

/* Expected outcome, for the few branches on a transaction's fast path. */
#define xac_likely(c)   __builtin_expect(!!(c), 1)
#define xac_unlikely(c) __builtin_expect(!!(c), 0)

/*
 * Three kinds of check.
 *   xac_assert(c)       programmer error; on unless NDEBUG.
 *   xac_assert_slow(c)  walks a structure; on only with --enable-debug.
 *   xac_require(c)      shared or on-disk state is wrong; always on, aborts.
 * A disabled check still compiles its operand, inside sizeof, and never evaluates it.
 */
#define xac_checked(c, text) ((c) ? (void)0 : xac_die(__FILE__, __LINE__, __func__, text))
#define xac_require(c)       xac_checked(c, #c)
#ifdef NDEBUG
# define xac_assert(c) ((void)sizeof((c) ? 1 : 0))
#else
# define xac_assert(c) xac_checked(c, # c)
#endif
#ifdef XAC_DEBUG
# define xac_assert_slow(c) xac_checked(c, # c)
#else
# define xac_assert_slow(c) ((void)sizeof((c) ? 1 : 0))
#endif

/* A call that is made in debug builds only: of an xac_<module>_assert(), which walks a
   structure. */
#ifdef XAC_DEBUG
# define xac_debug(call) (call)
#else
# define xac_debug(call) ((void)sizeof((call), 0))
#endif

/*
 * A place at which a test may kill the process or inspect it (debug builds only).
 * The names are the steps of doc/ARCHITECTURE.md: a to k of a commit, l to t of a
 * checkpoint.
 */
#ifdef XAC_DEBUG
extern void (*xac_kill_hook)(const char *name);
# define xac_kill_point(name) (xac_kill_hook != NULL ? xac_kill_hook(name) : (void)0)
#else
# define xac_kill_point(name) ((void)0)
#endif

/* Print the failed condition to stderr, async-signal-safely, and abort(). */
XAC_SIGSAFE _Noreturn void xac_die(const char *file, int line, const char *func,
                                   const char *cond);

#endif /* XAC_ANNOT_H */
