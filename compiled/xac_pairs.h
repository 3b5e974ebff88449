/* SPDX-License-Identifier: MIT */
/*
 * xac_pairs.h -- have clang check that each begin of a transaction has its end.
 *
 * GOAL    Rule (4) of xac.h, "Every begin has its end", is checked on every path of every
 *         function, without running it (Thesis A.1, point 5).
 * DESIGN  For clang's thread safety analysis a transaction is something that is acquired and
 *         released.  This header declares the functions once more and says so; the program
 *         is not changed.  It looks at one function at a time.  Usage, see doc/debugging.md:
 *
 *             clang -fsyntax-only -Wthread-safety -include xac_pairs.h SOURCE
 *
 *         With -DXAC_PAIRS_TESTED a transaction counts as begun only where the program has
 *         found that the begin returned 0; and each begin must be tested.
 */
#ifndef XAC_PAIRS_H
#define XAC_PAIRS_H

#ifndef __clang__
# error "xac_pairs.h is for clang -fsyntax-only -Wthread-safety"
#endif

/* Something that one can be in, before its first declaration. */
struct __attribute__((capability("environment"))) xac_env;

#include <xac.h>
#include <xac_env.h>
#include <xac_snapshot.h>

#ifdef XAC_PAIRS_TESTED
# define XAC_PAIRS_BEGIN(what) \
  __attribute__((warn_unused_result, try_acquire_capability(0, what)))
# define XAC_PAIRS_BEGIN_QUERY(what) \
  __attribute__((warn_unused_result, try_acquire_shared_capability(0, what)))
#else
# define XAC_PAIRS_BEGIN(what)       __attribute__((acquire_capability(what)))
# define XAC_PAIRS_BEGIN_QUERY(what) __attribute__((acquire_shared_capability(what)))
#endif
#define XAC_PAIRS_END(what)       __attribute__((release_capability(what)))
#define XAC_PAIRS_END_QUERY(what) __attribute__((release_shared_capability(what)))

#ifdef __cplusplus
extern "C" {
#endif

/* What the calls without an environment are in.  Nothing defines or uses them. */
struct __attribute__((capability("transaction"))) xac_pairs;
extern struct xac_pairs xac_transaction, xac_query;

int xac_begin(void) XAC_PAIRS_BEGIN(xac_transaction);
int xac_end(void) XAC_PAIRS_END(xac_transaction);
int xac_begin_query(void) XAC_PAIRS_BEGIN(xac_query);
int xac_begin_query_at(uint64_t state) XAC_PAIRS_BEGIN(xac_query);
int xac_begin_query_after(const struct xac_token *token, uint32_t wait_ms)
    XAC_PAIRS_BEGIN(xac_query);
int xac_begin_query_latest(uint32_t wait_ms) XAC_PAIRS_BEGIN(xac_query);
int xac_end_query(void) XAC_PAIRS_END(xac_query);

int xac_begin_in(struct xac_env *env) XAC_PAIRS_BEGIN(env);
int xac_end_in(struct xac_env *env) XAC_PAIRS_END(env);
int xac_begin_query_in(struct xac_env *env) XAC_PAIRS_BEGIN_QUERY(env);
int xac_begin_query_at_in(struct xac_env *env, uint64_t state) XAC_PAIRS_BEGIN_QUERY(env);
int xac_begin_query_after_in(struct xac_env *env, const struct xac_token *token,
                             uint32_t wait_ms) XAC_PAIRS_BEGIN_QUERY(env);
int xac_begin_query_latest_in(struct xac_env *env, uint32_t wait_ms)
    XAC_PAIRS_BEGIN_QUERY(env);
int xac_end_query_in(struct xac_env *env) XAC_PAIRS_END_QUERY(env);

#ifndef XAC_NO_SHORT_NAMES
int xbegin(void) XAC_PAIRS_BEGIN(xac_transaction);
int xend(void) XAC_PAIRS_END(xac_transaction);
int xbeginQuery(void) XAC_PAIRS_BEGIN(xac_query);
int xbeginQueryAt(uint64_t state) XAC_PAIRS_BEGIN(xac_query);
int xbeginQueryAfter(const struct xac_token *token, uint32_t wait_ms)
    XAC_PAIRS_BEGIN(xac_query);
int xbeginQueryLatest(uint32_t wait_ms) XAC_PAIRS_BEGIN(xac_query);
int xendQuery(void) XAC_PAIRS_END(xac_query);
#endif

#ifdef __cplusplus
}
#endif

#endif
