/* SPDX-License-Identifier: MIT */
/*
 * api_token.h -- what the begins and ends of api_txn.c need of tokens.
 *
 * WHAT      Remembers for each thread what it has ended last in an environment; waits for tokens.
 * NOT HERE  What a token says (shared/token.h), what is newest in a group (shared/group.h).
 * OWNER     The memory is a part of the thread (tls.h): its last ends, in XAC_TOKEN_ENVS environments.
 * THREADS   any; not the fault handler.
 */
#ifndef XAC_API_TOKEN_H
#define XAC_API_TOKEN_H

#include <stdint.h>

#include "shared/token.h"

/* A thread that ends transactions in more environments by turns has no token of the one that it used longest ago. */
#define XAC_TOKEN_ENVS 4

/* xac_api_ended -- the context's transaction or query is over (ended_lsn).  Without memory nothing is remembered. */
void xac_api_ended(const struct xac_ctx *ctx);

/* xac_api_await_token, _latest -- outside of transactions; joined after a fork.  ret 0 or what the begin returns. */
int xac_api_await_token(struct xac_env *env, const char *what,
                        const struct xac_token *token, enum xac_token_ask ask,
                        uint32_t wait_ms);
int xac_api_await_latest(struct xac_env *env, uint32_t wait_ms);

#endif /* XAC_API_TOKEN_H */
