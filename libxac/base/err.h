/* SPDX-License-Identifier: MIT */
/*
 * err.h -- errors: made in one place, with a text for the user.
 *
 * WHAT      Codes are those of xac.h: 0, positive errno, negative XAC_E...  A function that
 *           finds an error calls xac_err(), which keeps the text for xac_last_error() and
 *           returns the code.  So one breakpoint catches all errors.
 * THREADS   any thread; the text is thread-local.  Not for the fault handler.
 */
#ifndef XAC_ERR_H
#define XAC_ERR_H

#include <stdbool.h>

#include "base/annot.h"

#define XAC_ERR_BYTES 512 /* of the words, which are a part of each thread (tls.h) */

/*
 * xac_err -- note the text of a failure.
 *
 * in   code  nonzero: errno value or XAC_E... code
 * in   fmt   printf format: what was being done to what, without the reason
 * ret  code
 */
int xac_err(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* xac_err_whole -- the same, but the text already contains the reason. */
int xac_err_whole(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* xac_err_text -- text noted last in this thread, "" if none. */
const char *xac_err_text(void);

/* xac_err_clear -- forget the text: only an attempt has failed. */
void xac_err_clear(void);

/* xac_say_once -- print a line on standard error that names the process, unless *has_said is set.
   For messages that no call can return. */
void xac_say_once(_Atomic bool *has_said, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif /* XAC_ERR_H */
