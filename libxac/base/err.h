/* SPDX-License-Identifier: MIT */
/*
 * err.h -- errors: born in one place, explained in words.
 *
 * WHAT      Codes are those of xac.h: 0, positive errno, negative XAC_E...  Whoever
 *           finds an error calls xac_err(), which keeps the particulars for
 *           xac_last_error() and returns the code: one breakpoint catches all.
 * THREADS   any thread; the text is thread-local.  Not for the fault handler.
 */
#ifndef XAC_ERR_H
#define XAC_ERR_H

#include <stdbool.h>

#include "base/annot.h"

#define XAC_ERR_BYTES 512 /* of the words, which are a part of each thread (tls.h) */

/*
 * xac_err -- note the particulars of a failure.
 *
 * in   code  nonzero: errno value or XAC_E... code
 * in   fmt   printf format: what was being done to what, without the reason
 * ret  code
 */
int xac_err(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* xac_err_whole -- the same, but the words hold the reason already. */
int xac_err_whole(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* xac_err_text -- text noted last in this thread, "" if none. */
const char *xac_err_text(void);

/* xac_err_clear -- forget it; what has failed was an attempt. */
void xac_err_clear(void);

/* xac_say_once -- a line on standard error, which names the process, unless *has_said; for what
   no call can return. */
void xac_say_once(_Atomic bool *has_said, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif /* XAC_ERR_H */
