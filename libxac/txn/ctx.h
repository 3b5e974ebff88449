/* SPDX-License-Identifier: MIT */
/*
 * ctx.h -- contexts: what a thread knows of the transactions that it runs (struct xac_ctx,
 * env_state.h).  Most threads share the process's context; a thread with views of its own has its
 * own (thread.h).
 */
#ifndef XAC_CTX_H
#define XAC_CTX_H

#include "base/tls.h"
#include "shared/env_state.h"

/* The calling thread's own context; NULL if it shares the process's. */
extern XAC_TLS struct xac_ctx *xac_ctx_own;

/* xac_ctx_mine -- the calling thread's context: its own, or the process's. */
XAC_SIGSAFE struct xac_ctx *xac_ctx_mine(struct xac_env *env);

/* xac_ctx_open, close -- give a context a slot; take it back.  The views stay. */
int xac_ctx_open(struct xac_env *env, struct xac_ctx *ctx);
void xac_ctx_close(struct xac_env *env, struct xac_ctx *ctx);

#endif /* XAC_CTX_H */
