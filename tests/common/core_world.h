/* SPDX-License-Identifier: MIT */
/*
 * core_world.h -- environments for tests of the core's modules, without views and faults:
 * transactions are made by hand, entry by entry.
 *
 * A process may open several environments on the same directory: each is a participant of
 * its own, with a slot and a byte of the lock file of its own, so that conflicts can be
 * played out step by step.
 */
#ifndef XAC_TEST_CORE_WORLD_H
#define XAC_TEST_CORE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "../../libxac/env/env.h"

#define WORLD_PAGES 4096u /* pages of the file, which has id 1 */

/* Open ENV_DIR as a further participant, with a file of WORLD_PAGES pages. */
struct xac_env *world_open(int flags);

/* Entry of a page in the page table. */
struct xac_page *world_page(struct xac_env *env, uint64_t page_no);

/* Begin a transaction or a query. */
void world_begin(struct xac_env *env);
void world_query(struct xac_env *env);

/* The page's entry in the running transaction's set, or NULL. */
struct xac_entry *world_entry(struct xac_env *env, uint64_t page_no);

/* Register an access; false if the transaction has failed. */
bool world_read(struct xac_env *env, uint64_t page_no);
bool world_write(struct xac_env *env, uint64_t page_no);

/* Have a new version of a page, written before, that begins with `value`. */
void world_store(struct xac_env *env, uint64_t page_no, uint64_t value);

/* PENDING to COMMITTING (false: failed); then publish; then be idle again. */
bool world_committing(struct xac_env *env);
void world_publish(struct xac_env *env);
void world_finish(struct xac_env *env);

/* All three.  ret number, or 0 if it was failed (and dropped). */
uint64_t world_commit(struct xac_env *env);

/* A whole transaction that writes one page. */
uint64_t world_put(struct xac_env *env, uint64_t page_no, uint64_t value);

/* State of the slot of the environment's context. */
enum xac_txn_state world_state(const struct xac_env *env);

/* First word of the version that belongs to a parent, 0 if that is the file. */
uint64_t world_value(struct xac_env *env, uint64_t page_no, uint64_t parent);

/* A page's list: commit numbers, newest first; ret how many; at most `most`. */
unsigned world_list(struct xac_env *env, uint64_t page_no, uint64_t *commits,
                    unsigned most);

/* Version slots in a state. */
uint64_t world_vslots(const struct xac_env *env, enum xac_vslot_state state);

#endif /* XAC_TEST_CORE_WORLD_H */
