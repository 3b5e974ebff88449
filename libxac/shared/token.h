/* SPDX-License-Identifier: MIT */
/*
 * token.h -- states of the log that are named by generation and LSN: which one a region is at, and whether it has
 * another one.
 *
 * WHAT      Says which generation of the log a region is of, and how far it shows the log; makes tokens of positions; finds out by
 *           xac.history whether the state of a token is there, will come, or never will; waits for it.
 * NOT HERE  Which position a transaction has seen or made (commit/txn.h); the thread's last one (api/api_token.c); xac.history
 *           (log/lineage.h).
 * OWNER     struct xac_generations lies in the control region.
 * LOCK      none.
 * THREADS   any, none of the functions in the fault handler; xac_token_turn: the replayer's.
 *
 * The position of a region is up to where it shows the log: of a writer `tail`, of a standby `applied`.
 *
 * INVARIANTS
 *   (1) Positions ascend from one generation to the next: all of one lie at or before the start of the next one.
 *   (2) A region's generation is noted before its position comes to the start of that.  So who reads the position first, and
 *       then the generation, never takes a position for one of an earlier generation.
 *   (3) A standby's generation is noted when everything before it is redone; a writer's log has all of its generation, and its
 *       recovery has redone all before.  So the state of a token of an earlier generation is there if that generation has not
 *       ended before it.
 */
#ifndef XAC_TOKEN_H
#define XAC_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include <xac.h>

#include "log/lineage.h"
#include "shared/env_state.h"

/* xac_token_turn -- another generation begins, or the first one of a new region; noted once. */
void xac_token_turn(struct xac_env *env, const struct xac_lineage_line *line);

/* xac_token_check -- has the environment tokens?  ret 0 or ENOTSUP with words. */
int xac_token_check(const struct xac_env *env, const char *what);

/* xac_token_of -- of everything before a position that the region has; below its first one: of that. */
void xac_token_of(const struct xac_env *env, uint64_t lsn, struct xac_token *out);

/* What is asked of a token. */
enum xac_token_ask {
    XAC_TOKEN_SEEN, /* is it in the log here?  At a standby queries that begin now see it; at a writer they
                       do when it is published, too: xac_txn_await_shown() (commit/txn.h) */
    XAC_TOKEN_STAYS /* is it there to stay, in a group on a majority?                   */
};

/*
 * xac_token_look -- now.
 *
 * ret  0: yes; EAGAIN: not yet; without words.  XAC_ELOST: never; XAC_ENOSTATE: xac.history does not tell; ENOMEM, errno;
 *      with words.
 */
int xac_token_look(struct xac_env *env, const struct xac_token *token,
                   enum xac_token_ask ask);

/* xac_token_await -- until it is yes, at most for so long; no lock is held.  ret as xac_token_look(), but ETIMEDOUT for EAGAIN,
   with words; XAC_ENOTLEADER: the environment has been deposed, and it is not yes. */
int xac_token_await(struct xac_env *env, const struct xac_token *token,
                    enum xac_token_ask ask, uint32_t wait_ms);

#endif /* XAC_TOKEN_H */
