/* SPDX-License-Identifier: MIT */
/*
 * top.h -- xstat --top: a screen of what a running environment is doing, again and again.
 */
#ifndef XAC_TOP_H
#define XAC_TOP_H

#include "look.h"

/*
 * top_run -- show screens until the key q, a signal that ends programs, or the last participant
 * leaves.  If standard output is no terminal, or once is asked for, it prints one screen as text.
 *
 * in   count  screens, 0 without end
 * ret  0 or an error.  *is_over is true if nobody is attached any more.
 */
int top_run(const struct xac_env *env, const char *dir, double interval_s, uint64_t count,
            bool *is_over);

#endif /* XAC_TOP_H */
