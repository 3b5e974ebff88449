/* SPDX-License-Identifier: MIT */
/*
 * api_token.c -- entry points for tokens: see api.h.  The begins that wait for one are in api_txn.c.
 */
#include <config.h>

#include "api/api_token.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xac.h>
#include <xac_env.h>

#include "api/api.h"
#include "commit/txn.h"
#include "shared/group.h"

/* ---- What a thread has ended last ------------------------------------------------------ */

/* last_lsn -- ret 0, or XAC_ENOSTATE with words. */
static int
last_lsn(const struct xac_env *env, uint64_t *lsnp)
{
    struct xac_api_ends *t = (struct xac_api_ends *)xac_tls_look(XAC_TLS_ENDS);
    const struct xac_api_end *e = t != NULL ? xac_api_end_find(t, env) : NULL;

    if (e == NULL)
        return xac_err(XAC_ENOSTATE, "xToken: this thread has ended no transaction in %s",
                       env->dir);
    *lsnp = e->lsn;
    return 0;
}

/* ---- Entry points ----------------------------------------------------------------------- */

/* start -- an environment that has tokens, and an argument; a child joins first. */
static int
start(struct xac_env *env, const char *what, const void *argument)
{
    int rc = xac_api_opened(env, what);

    if (rc == 0 && argument == NULL)
        rc = xac_err(EINVAL, "%s: no token", what);
    if (rc == 0)
        rc = xac_token_check(env, what);
    return rc == 0 ? xac_env_rejoin(env) : rc;
}

int
xac_get_token_in(struct xac_env *env, struct xac_token *token)
{
    const struct xac_ctx *ctx;
    uint64_t lsn = 0;
    int rc = start(env, "xToken", token);

    if (rc != 0)
        return rc;
    ctx = xac_ctx_mine(env);
    if (!xac_api_is_mine(ctx) || ctx->depth == 0)
        rc = last_lsn(env, &lsn);
    else if (ctx->is_query)
        lsn = xac_txn_seen_lsn(env, ctx);
    else
        rc = xac_err(XAC_EINTXN, "xToken: the transaction is not committed yet");
    if (rc == 0)
        xac_token_of(env, lsn, token);
    return rc;
}

int
xac_api_await_token(struct xac_env *env, const char *what, const struct xac_token *token,
                    enum xac_token_ask ask, uint32_t wait_ms)
{
    uint64_t until_ns = xac_group_patience(wait_ms).until_ns;
    int rc = start(env, what, token);

    if (rc == 0)
        rc = xac_token_await(env, token, ask, wait_ms);
    /* The log of a writer has it; what a standby has redone is published. */
    if (rc == 0 && ask == XAC_TOKEN_SEEN && !xac_env_is_standby(env))
        rc = xac_txn_await_shown(env, token->lsn, until_ns);
    return rc;
}

int
xac_api_await_latest(struct xac_env *env, uint32_t wait_ms)
{
    uint64_t until_ns = xac_group_patience(wait_ms).until_ns;
    int rc =
        env->reader == XAC_READER_FROZEN ? xac_token_check(env, "xbeginQueryLatest") : 0;

    if (rc == 0)
        rc = xac_env_rejoin(env);
    if (rc == 0)
        rc = xac_group_latest(env, wait_ms);
    /* All that a majority has, other nodes may have shown. */
    if (rc == 0 && xac_group_leads(env))
        rc = xac_txn_await_shown(env, xac_group_replicated(env), until_ns);
    return rc;
}

int
xac_fate_in(struct xac_env *env, const struct xac_token *token, uint32_t wait_ms)
{
    int rc = xac_api_await_token(env, "xFate", token, XAC_TOKEN_STAYS, wait_ms);

    /* With the words of why. */
    return rc == ETIMEDOUT || rc == XAC_ENOSTATE || rc == XAC_ENOTLEADER ? XAC_EUNCERTAIN
                                                                         : rc;
}

/* ---- As text ---------------------------------------------------------------------------- */

/* 20 digits, 20 digits, 16 digits, two points and the NUL. */
_Static_assert(20 + 20 + 16 + 2 + 1 <= XAC_TOKEN_TEXT, "it has room");

int
xac_token_format(const struct xac_token *token, char *text, size_t size)
{
    if (token == NULL || text == NULL || size < XAC_TOKEN_TEXT)
        return xac_err(EINVAL, "xTokenFormat: no token, or no room for %d bytes",
                       XAC_TOKEN_TEXT);
    (void)snprintf(text, size, "%" PRIu64 ".%" PRIu64 ".%016" PRIx64, token->generation,
                   token->lsn, token->branch);
    return 0;
}

int
xac_token_parse(const char *text, struct xac_token *token)
{
    struct xac_token t;
    char again[XAC_TOKEN_TEXT];

    if (text == NULL || token == NULL)
        return xac_err(EINVAL, "xTokenParse: NULL");
    /* What is written again as it was read is as it should be: no signs, blanks, or numbers that are too large. */
    if (strlen(text) >= sizeof again
        || sscanf(text, "%20" SCNu64 ".%20" SCNu64 ".%16" SCNx64, &t.generation, &t.lsn,
                  &t.branch)
               != 3
        || xac_token_format(&t, again, sizeof again) != 0 || strcmp(text, again) != 0)
        return xac_err(EINVAL, "xTokenParse: \"%.*s\": not a token", XAC_TOKEN_TEXT,
                       text);
    *token = t;
    return 0;
}

/* ---- On the default environment, and short names ------------------------------------------ */

int
xac_get_token(struct xac_token *token)
{
    return xac_get_token_in(xac_api_env, token);
}

int
xac_fate(const struct xac_token *token, uint32_t wait_ms)
{
    return xac_fate_in(xac_api_env, token, wait_ms);
}

int xToken(struct xac_token *token) XAC_ALIAS_OF(xac_get_token);
int xFate(const struct xac_token *token, uint32_t wait_ms) XAC_ALIAS_OF(xac_fate);
int xTokenFormat(const struct xac_token *token, char *text, size_t size)
    XAC_ALIAS_OF(xac_token_format);
int xTokenParse(const char *text, struct xac_token *token) XAC_ALIAS_OF(xac_token_parse);
