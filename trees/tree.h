/* SPDX-License-Identifier: MIT */
/*
 * tree.h -- what the interfaces of all trees have in common.
 *
 * A tree is an ordered map from keys of one size to values of one size, inside a mapped
 * segment.  Keys are byte strings ordered by memcmp(3); integers go through
 * tree_key_u64().  Values are byte strings, of size 0 if none are wanted.
 *
 * BUILDS    One source, two builds: NAME_*() on a segment of xMmap(), every operation a
 *           transaction; NAME_serial_*() on plain mmap(2) memory, for one process, with
 *           no protection at all.  A source file compiled with TREE_SERIAL defined gets
 *           the second under the names of the first.
 * OWNER     The caller owns segment and handle.  A handle holds no memory of its own:
 *           there is no close; forget it before the segment is unmapped.
 * PROCESSES Any number, each with its own handle on its own mapping.  A handle copied by
 *           fork() works.
 *
 * TRANSACTIONS
 *   An operation called outside a transaction is one: it tries again until it commits,
 *   and in a durable environment it is on disk when the call returns.  Called inside the
 *   caller's transaction it is a part of that, so several operations take effect
 *   together or not at all; when that transaction has failed already, an updating
 *   operation may return XAC_FAILED, and the caller goes on to its xend().
 *
 * RETURN VALUES
 *   0, a positive errno value, or, in the transactional build, a code of xac.h:
 *   XAC_FAILED as above, XAC_ENOINIT, XAC_EINQUERY (an update inside a query),
 *   XAC_EPOISONED, ...; the errno value in xConflict() if a commit found no room on disk.
 *   Except where a comment says otherwise, an operation that fails has changed nothing.
 */
#ifndef TREES_TREE_H
#define TREES_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an insert does with a key that is there already. */
enum tree_mode {
    TREE_ADD = 0, /* leaves it alone and returns EEXIST                               */
    TREE_PUT = 1  /* replaces its value                                               */
};

/*
 * Called by a scan for each entry, in ascending order.
 *
 * in   arg    the caller's
 * in   key    key_size bytes inside the segment, valid during the call only
 * in   value  value_size bytes, likewise
 * ret  0 to go on; anything else ends the scan, which returns it
 */
typedef int tree_visit(void *arg, const void *key, const void *value);

/*
 * Called by a bulk load for each entry; keys must ascend.  A transaction that aborts runs
 * again, so the source has to be able to start anew.
 *
 * in   arg     the caller's
 * in   i       number of the entry: 0, 1, ...; 0 starts anew
 * out  keyp    key_size bytes, the caller's, valid until the next call
 * out  valuep  value_size bytes, likewise
 * ret  true; false: there is no entry i
 */
typedef bool tree_source(void *arg, uint64_t i, const void **keyp, const void **valuep);

/* Write `v` as an 8-byte key; byte order is integer order. */
static inline void
tree_key_u64(uint64_t v, void *key)
{
    unsigned char *p = (unsigned char *)key;

    for (int i = 7; i >= 0; i--, v >>= 8)
        p[i] = (unsigned char)v;
}

/* The integer of an 8-byte key. */
static inline uint64_t
tree_u64_key(const void *key)
{
    const unsigned char *p = (const unsigned char *)key;
    uint64_t v = 0;

    for (int i = 0; i < 8; i++)
        v = v << 8 | p[i];
    return v;
}

#endif /* TREES_TREE_H */
