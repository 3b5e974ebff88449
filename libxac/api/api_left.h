/* SPDX-License-Identifier: MIT */
/*
 * api_left.h -- transactions that control has left in another way than by their end.
 *
 * WHAT      An exception, or the end of the thread, unwinds the frame of xTransact(): its cleanup
 *           rolls back.  longjmp() does not: that the frame is gone is found out by
 *           the next begin or end of the thread.  A thread that ends, and exit(), roll back what
 *           is open.  What nobody has asked for is said on standard error, once.
 * NOT HERE  xbegin() and xend() that do not pair: that cannot be told from nesting; a nesting
 *           without end is said.
 * FRAMES    The frame of the outermost xTransact() is known by its address and the return
 *           address in it.  It is gone if a caller stands at its address or above it on the same
 *           stack, or if the return address is not there any more.  If neither can be seen, it
 *           counts as there.  On a stack that the program has made for itself nothing is noted.
 * OWNER     The fields of struct xac_ctx for it belong to the thread that has the turn.
 */
#ifndef XAC_API_LEFT_H
#define XAC_API_LEFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"

struct xac_ctx;
struct xac_env;

/* xac_left_prepare -- at a thread's outermost begin, and before it gets a view of its own: what is to
   be done when the thread ends.  false: no memory for that. */
bool xac_left_prepare(void);

/*
 * xac_left_enter -- xTransact() has begun; frame: __builtin_frame_address(0) of it.
 * ret  nesting outside of it, for the two others.
 */
int xac_left_enter(struct xac_env *env, const void *frame);

/*
 * xac_left_return -- the function that it has called has returned.
 *
 * ret  0; XAC_EINTXN: it has left transactions of its own open: all is rolled back.
 */
int xac_left_return(struct xac_env *env, int depth);

/* xac_left_unwind -- the function will not return: roll back; to the savepoint of that mark if it is not 0. */
void xac_left_unwind(struct xac_env *env, int depth, uint64_t mark);

/*
 * xac_left_look -- has an xTransact() been left by longjmp()?  Then roll back, and say so.
 *
 * in   frame  __builtin_frame_address(0) of the entry point that the program has called
 * ret  true if the transaction that was open is over.
 */
bool xac_left_look(struct xac_env *env, const void *frame);

/* xac_left_nested -- a nested transaction has begun. */
void xac_left_nested(const struct xac_ctx *ctx);

#endif /* XAC_API_LEFT_H */
