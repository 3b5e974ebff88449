/* SPDX-License-Identifier: MIT */
/*
 * api_token.h -- what the begins and ends of api_txn.c need of tokens.
 *
 * WHAT      Remembers for each thread what it has ended last in an environment, and its last conflict; waits for tokens.
 * NOT HERE  What a token says (shared/token.h), what is newest in a group (shared/group.h).
 * OWNER     The memory is a part of the thread (tls.h): its last ends, in XAC_TOKEN_ENVS environments.
 * THREADS   any; not the fault handler.
 */
#ifndef XAC_API_TOKEN_H
#define XAC_API_TOKEN_H

#include <stdint.h>

#include <xac.h>

#include "base/annot.h"
#include "base/tls.h"
#include "shared/env_state.h"
#include "shared/token.h"

/* A thread that ends transactions in more environments by turns has no token of the one that it used longest ago. */
#define XAC_TOKEN_ENVS 4

struct xac_api_end {
    const struct xac_env *env; /* NULL: none                                            */
    uint64_t opened_ns;        /* of it                                                 */
    uint64_t lsn;
};

/* The part of a thread: the context of what it has ended may be another thread's by the time it asks. */
struct xac_api_ends {
    struct xac_conflict conflict; /* why the last transaction aborted                   */
    struct xac_api_end last[XAC_TOKEN_ENVS];
    unsigned next; /* to be given to another environment                               */
};

/* xac_api_ends -- the calling thread's, made at its first begin; NULL: no memory. */
static inline struct xac_api_ends *
xac_api_ends(void)
{
    return (struct xac_api_ends *)xac_tls_part(XAC_TLS_ENDS, sizeof(struct xac_api_ends));
}

/* xac_api_end_find -- of that environment; NULL: none. */
static inline struct xac_api_end *
xac_api_end_find(struct xac_api_ends *t, const struct xac_env *env)
{
    for (unsigned i = 0; i < XAC_TOKEN_ENVS; i++) {
        if (t->last[i].env == env && t->last[i].opened_ns == env->opened_ns)
            return &t->last[i];
    }
    return NULL;
}

/* xac_api_ended -- the context's transaction or query is over (ended_lsn).  Without memory nothing is remembered. */
static inline void
xac_api_ended(const struct xac_ctx *ctx)
{
    struct xac_api_ends *t = xac_api_ends();
    struct xac_api_end *e;

    xac_assert(ctx->ended_lsn != XAC_ENDED_NOTHING);
    if (t == NULL)
        return;
    e = xac_api_end_find(t, ctx->env);
    if (e == NULL) {
        e = &t->last[t->next];
        t->next = (t->next + 1) % XAC_TOKEN_ENVS;
        e->env = ctx->env;
        e->opened_ns = ctx->env->opened_ns;
    }
    e->lsn = ctx->ended_lsn;
}

/* xac_api_await_token, _latest -- outside of transactions; joined after a fork.  ret 0 or what the begin returns. */
int xac_api_await_token(struct xac_env *env, const char *what,
                        const struct xac_token *token, enum xac_token_ask ask,
                        uint32_t wait_ms);
int xac_api_await_latest(struct xac_env *env, uint32_t wait_ms);

#endif /* XAC_API_TOKEN_H */
