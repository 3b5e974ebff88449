/* SPDX-License-Identifier: MIT */
/*
 * world_state.h -- what world.c and world_state.c share: the state in memory and its copy.
 */
#ifndef XAC_TEST_WORLD_STATE_H
#define XAC_TEST_WORLD_STATE_H

#include <stdint.h>

#include "world.h"

struct xac_view;

/* world_prot -- protection of a page in the engine's table. */
uint8_t world_prot(const struct xac_view *v, int page);

/* world_offset -- in the control region, of an address in anybody's mapping; 0: none. */
uint64_t world_offset(const volatile void *at);

/* world_watcher -- somebody attached and alive, rather one who takes no part. */
struct world_member *world_watcher(struct world *w);

/* Savepoints of a member: none, as when it began; and its part of the hash. */
void world_saved_restore(struct world_member *m);
uint64_t world_saved_hash(const struct world_member *m, uint64_t seed);

void world_snapshot(struct world *w);
void world_snapshot_restore(struct world *w);
void world_snapshot_free(struct world *w);

#endif /* XAC_TEST_WORLD_STATE_H */
