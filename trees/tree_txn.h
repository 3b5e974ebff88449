/* SPDX-License-Identifier: MIT */
/*
 * tree_txn.h -- the whole difference between a serial and a transactional tree.
 *
 * WHAT      Begin, end, and the page hint.  With TREE_SERIAL they vanish.  A build that
 *           defines TREE_HINTS_GIVEN, too, has hints of its own (xactree_build.h).
 * NOT HERE  Retries are the loop around tree_begin() and tree_end() in the tree's source.
 *
 * A body that runs between tree_begin() and tree_end() may run several times: it starts
 * from its arguments each time, and what it leaves in local variables counts only after
 * the last time.
 */
#ifndef TREES_TREE_TXN_H
#define TREES_TREE_TXN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef TREE_SERIAL

# include <xac.h>

# define TREE_READ       XAC_READ
# define TREE_READ_WRITE XAC_READ_WRITE

/* ret 0 or an error of xbegin(). */
static inline int
tree_begin(void)
{
    return xbegin();
}

/*
 * tree_end -- end a transaction.
 *
 * in   result  what the body returned
 * out  againp  true: it aborted, run the body again
 * ret  result if the transaction committed or is pending inside another; XAC_FAILED in
 *      one that will abort; an error of xend(), which trying again does not help
 */
static inline int
tree_end(int result, bool *againp)
{
    int rc = xend();

    *againp = rc == XAC_ABORTED;
    return rc == XAC_COMMITTED || rc == XAC_PENDING ? result : rc;
}

/* ret 0 or an error of xbeginQuery(). */
static inline int
tree_begin_query(void)
{
    return xbeginQuery();
}

/* ret result, or an error of xendQuery(). */
static inline int
tree_end_query(int result)
{
    int rc = xendQuery();

    return rc != 0 ? rc : result;
}

/* Announce an access to the page at `addr`.  Only a hint: its outcome does not matter. */
static inline void
tree_hint(bool on, const void *addr, int access)
{
    if (on)
        (void)setPageAccess((void *)(uintptr_t)addr, access);
}

/* The same for all pages of a range. */
static inline void
tree_hint_range(bool on, const void *addr, size_t length, int access)
{
    if (on)
        (void)setRangeAccess((void *)(uintptr_t)addr, length, access);
}

#else

# define TREE_READ       1
# define TREE_READ_WRITE 3

static inline int
tree_begin(void)
{
    return 0;
}

static inline int
tree_end(int result, bool *againp)
{
    *againp = false;
    return result;
}

static inline int
tree_begin_query(void)
{
    return 0;
}

static inline int
tree_end_query(int result)
{
    return result;
}

# ifndef TREE_HINTS_GIVEN
static inline void
tree_hint(bool on, const void *addr, int access)
{
    (void)on;
    (void)addr;
    (void)access;
}

static inline void
tree_hint_range(bool on, const void *addr, size_t length, int access)
{
    (void)on;
    (void)addr;
    (void)length;
    (void)access;
}
# endif /* TREE_HINTS_GIVEN */

#endif /* TREE_SERIAL */
#endif /* TREES_TREE_TXN_H */
