/* SPDX-License-Identifier: MIT */
/*
 * tree_op.h -- what the trees' sources share: an operation as one transaction, and keys.
 *
 * WHAT      The arguments of an operation; running its body as an update until it commits,
 *           or as a query; the order of keys.
 * NOT HERE  The calls of libxac (tree_txn.h), any tree's bytes.
 */
#ifndef TREES_TREE_OP_H
#define TREES_TREE_OP_H

#include <endian.h>
#include <string.h>

#include "tree.h"
#include "tree_txn.h"

/* Arguments of an operation, for the body that runs inside its transaction. */
struct tree_request {
    const unsigned char *key; /* what to look for; scan: from                         */
    const unsigned char *to;  /* scan: end                                            */
    const void *value;        /* insert                                               */
    int mode;                 /* insert: enum tree_mode                               */
    bool existed;             /* insert: the key was there                            */
    void *key_out;            /* where to copy the entry found, or NULL               */
    void *value_out;          /* -                                                    */
    tree_visit *visit;        /* scan                                                 */
    void *arg;                /* scan: visit's; others: whatever else they need       */
};

typedef int tree_body(void *tree, struct tree_request *r);

/* Run a body as one updating transaction, until it commits. */
static inline int
tree_update(tree_body *run, void *tree, struct tree_request *r)
{
    bool again;
    int rc;

    do {
        rc = tree_begin();
        if (rc != 0)
            return rc;
        rc = tree_end(run(tree, r), &again);
    } while (again);
    return rc;
}

/* Run a body that only reads, on a snapshot. */
static inline int
tree_query(tree_body *run, void *tree, struct tree_request *r)
{
    int rc = tree_begin_query();

    return rc != 0 ? rc : tree_end_query(run(tree, r));
}

/* First 8 bytes of a key as an integer of the same order. */
static inline __attribute__((always_inline)) uint64_t
key_word(const unsigned char *key)
{
    uint64_t w;

    memcpy(&w, key, sizeof w);
    return be64toh(w);
}

/* Order of two keys of `size` bytes: negative, 0, positive. */
static inline int
key_order(const unsigned char *a, const unsigned char *b, uint32_t size)
{
    if (size >= 8) {
        uint64_t wa = key_word(a), wb = key_word(b);

        if (wa != wb)
            return wa < wb ? -1 : 1;
        if (size == 8)
            return 0;
        return memcmp(a + 8, b + 8, size - 8);
    }
    return memcmp(a, b, size);
}

#endif /* TREES_TREE_OP_H */
