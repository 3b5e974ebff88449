/* SPDX-License-Identifier: MIT */
/*
 * xac_replication.h -- what a program has seen or committed at one node of a group, or at a source, and what it
 * finds at another; xac.h includes it.
 *
 * A token names a state of the log: everything up to the end of a commit.  A program sends it to another one on
 * another machine, as bytes or as text.  That one begins a query that sees at least that state:
 *
 *     struct xac_token token;                      at the node that leads
 *     if (xend() == COMMITTED)
 *         xToken(&token);
 *     ...
 *     if (xbeginQueryAfter(&token, 1000) == 0) {    at a node that follows, or at a standby
 *         ...
 *         xendQuery();
 *     }
 *
 * A token costs nothing until it is asked for.  It is good for ever, wherever the log of the environment is: behind a
 * crash, at another leader, in a restored backup.
 *
 * What a begin promises, and what it waits for (doc/replication.md has the steps):
 *   xbeginQuery()        one state of the log, at a standby or follower perhaps an old one.  It waits for nothing.
 *   xbeginQueryAfter()   a state that has all up to a token.  It waits until redo has come there.
 *   xbeginQueryLatest()  a state that has all that was acknowledged anywhere before the call, and all that a query had
 *                        seen that has ended before.  In a group it waits for a majority.
 *
 * THREADS   Any.
 */
#ifndef XAC_XAC_REPLICATION_H
#define XAC_XAC_REPLICATION_H

#include <stddef.h>
#include <stdint.h>

#include "xac_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A place in the log.  Its bytes may be copied to other machines, on which an environment with the same log can be
 * opened.  Zeros are the token of nothing: every state has it.
 */
struct xac_token {
    uint64_t generation; /* of the log                                                  */
    uint64_t lsn;        /* everything before this position                             */
    uint64_t branch;     /* by which generations with the same number are told apart    */
};

/* Room for a token as text, with the NUL. */
#define XAC_TOKEN_TEXT 64

/*
 * Get a token.
 *
 * Inside of a query: of the state that the query sees.  Otherwise of what the thread has ended last in the environment:
 * of its commit; or, if it has only read, of what it has seen.  That may be a little more than was seen, if many commits have
 * come since.  A commit that may be lost, because xend() has returned XAC_EUNCERTAIN, XAC_ENOTDURABLE or XAC_EPOISONED, has
 * its token, too.  Ask before xShutdown().
 *
 * out  token  if 0 is returned
 * ret  0; EINVAL; XAC_ENOINIT; XAC_EINTXN inside of a transaction that is no query; XAC_ENOSTATE: the thread has ended nothing
 *      there; ENOTSUP: the environment is not durable, or a reader has opened it that does not take part.
 */
XAC_API int xac_get_token(struct xac_token *token);

/*
 * Ask what has become of the state of a token.
 *
 * Any node can be asked, or a standby, or the environment itself after a crash, now or later: all give the same
 * answer once they know.
 *
 * in   wait_ms  how long to wait for an answer; 0: not at all
 * ret  0 or XAC_COMMITTED: it stays, in a group on a majority of the nodes.
 *      XAC_ELOST: it is not a part of the log, and will never be: its generation has ended before.
 *      XAC_EUNCERTAIN: it is not known here, or not yet: the log here does not reach as far, or xac.history does not
 *      tell of that generation any more.  Ask later, or elsewhere.
 *      EINVAL; XAC_ENOINIT; ENOTSUP as xToken(); ENOMEM and other errno values.
 */
XAC_API int xac_fate(const struct xac_token *token, uint32_t wait_ms);

/*
 * Begin a query that sees at least the state of a token.
 *
 * It waits until that has been redone here, without keeping anybody else out.  Then it is a query as xbeginQuery() begins
 * it, and is ended by xendQuery().
 *
 * in   wait_ms  how long to wait for it; 0: not at all
 * ret  as xac_begin_query(), and
 *        XAC_EINTXN    inside of a transaction or query
 *        XAC_ELOST     the state of the token is not a part of this log, and will never be
 *        XAC_ENOSTATE  xac.history does not tell of the generation of the token any more
 *        ETIMEDOUT     it is not here yet, or the process that commits it stands still
 *        EINVAL; ENOTSUP as xToken()
 */
XAC_API int xac_begin_query_after(const struct xac_token *token, uint32_t wait_ms);

/*
 * Begin a query that sees everything that was acknowledged before this call, at any node: a linearizable one.
 *
 * In a group the node that leads has a majority say that it still leads; a node that follows asks it, and waits until all that it
 * has told is redone here.  One answer serves all that have asked before.  In an environment that nobody replicates, and at
 * the source of a standby, it is the same as xbeginQuery().
 *
 * in   wait_ms  how long to wait for a majority, and for redo; 0: not at all, which in a group is never enough
 * ret  as xac_begin_query(), and
 *        XAC_EINTXN      inside of a transaction or query
 *        XAC_ENOTLEADER  a standby does not know what is newest at its source; or this node is about to begin or to end leading
 *        ETIMEDOUT       no majority has answered, redo has not come as far, or a process that commits stands still
 *        ENOTSUP         a reader that does not take part
 */
XAC_API int xac_begin_query_latest(uint32_t wait_ms);

/*
 * Write a token as text: letters, digits and two points, without blanks.
 *
 * in   size  bytes at `text`, XAC_TOKEN_TEXT at least
 * ret  0; EINVAL.
 */
XAC_API int xac_token_format(const struct xac_token *token, char *text, size_t size);

/*
 * Read a token from such a text.
 *
 * out  token  if 0 is returned
 * ret  0; EINVAL: it is none.
 */
XAC_API int xac_token_parse(const char *text, struct xac_token *token);

#ifndef XAC_NO_SHORT_NAMES
XAC_API int xToken(struct xac_token *token);
XAC_API int xFate(const struct xac_token *token, uint32_t wait_ms);
XAC_API int xbeginQueryAfter(const struct xac_token *token, uint32_t wait_ms);
XAC_API int xbeginQueryLatest(uint32_t wait_ms);
XAC_API int xTokenFormat(const struct xac_token *token, char *text, size_t size);
XAC_API int xTokenParse(const char *text, struct xac_token *token);
#endif

#ifdef __cplusplus
}
#endif

#endif /* XAC_XAC_REPLICATION_H */
