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

/* Field that may be read and written only while the named lock is held. */
#define XAC_GUARDED_BY(lock)

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
