/* SPDX-License-Identifier: MIT */
/*
 * stamp.h -- containers that are changed by language transactions, and loads for them: a sorted list,
 * a red-black tree, a hash table, and reservations of travels, in the manner of STAMP's vacation.
 *
 * They know nothing of libxac but its allocator.  With STAMP_VOLATILE memory is that of malloc(3),
 * and the program is for gcc's own libitm.  One thread makes a world; then threads and processes
 * make steps; each keeps a struct stamp_net of what it has added, and the sums must be right.
 */
#ifndef XAC_STAMP_H
#define XAC_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stamp_load {
    STAMP_LIST,
    STAMP_TREE,
    STAMP_HASH,
    STAMP_VACATION,
    STAMP_LOADS
};

/* What one thread has added, less what it has removed. */
struct stamp_net {
    int64_t n;   /* elements                                      */
    int64_t sum; /* of their keys; vacation: reservations' prices */
    uint64_t steps;
    uint64_t hits; /* of lookups                                   */
};

struct stamp_world;

extern const char *const stamp_names[STAMP_LOADS];

/* stamp_create -- in the segment `base`; NULL with STAMP_VOLATILE.  stamp_find: made by another
   process. */
struct stamp_world *stamp_create(void *base);
struct stamp_world *stamp_find(void *base);

/* stamp_step -- one operation, chosen by *rnd: half of them look only.  May be called in a block. */
__attribute__((transaction_safe)) void stamp_step(struct stamp_world *w,
                                                  enum stamp_load load, uint64_t *rnd,
                                                  struct stamp_net *net);

/* stamp_wrong -- walk it all: NULL if it is sound and holds `net`, else what is wrong. */
const char *stamp_wrong(const struct stamp_world *w, enum stamp_load load,
                        const struct stamp_net *net);

#endif /* XAC_STAMP_H */
