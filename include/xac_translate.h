/* SPDX-License-Identifier: MIT */
/*
 * xac_translate.h -- transactions of one thread beside those of the others, at translated addresses.
 *
 * WHAT      For those who see each access before it happens and can choose its address: compilers,
 *           interpreters, language bindings.  The program knows one address of each segment, that of
 *           the process's mapping.  A translated transaction works on views of its thread alone, at
 *           other addresses; so it runs beside all others, as xView() would have it, and pointers
 *           that are stored in segments stay those of the process's mapping.
 * NOT HERE  Announcing accesses: xac_touch.h, with translated addresses.
 * VIEWS     A thread gets a view of each segment of the environment of xInit() at its first translated
 *           transaction, and of new segments at the next one.  They stay until it ends.  While
 *           it has no transaction open, they keep nobody from unmapping and from xShutdown(): then
 *           the library takes them back.
 * THREADS   Any.  Between its translated transactions a thread is like any other: its
 *           xbegin() works on the process's mappings.
 */
#ifndef XAC_TRANSLATE_H
#define XAC_TRANSLATE_H

#include <stdint.h>

#include "xac_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Begin a translated transaction, or query, of the environment of xInit().  It is ended by xend()
 * or xendQuery(); all calls of xac.h that concern transactions work on it, with addresses of its views.
 *
 * in   is_query  0: as xbegin(); else as xbeginQuery().
 * ret  as xbegin(), and
 *        XAC_EINTXN   the thread has a transaction or query open
 *        XAC_EMAPPED  the thread has views of its own by xView()
 *        EBUSY        another thread is just unmapping; try again
 *      and what xView() may fail with.
 */
XAC_API int xac_begin_translated(int is_query);

/*
 * Where in the thread's views the byte lies that the process has mapped at `addr`; inside of a
 * translated transaction.  A page of 4 KiB is never divided: all of its bytes have the same distance.
 *
 * out  placep  its address, if 0 is returned.
 * ret  0; XAC_ENOTMAPPED: in no segment; EAGAIN: neither, but the process has mapped or unmapped
 *      something since the transaction began, so that only another transaction can tell;
 *      XAC_ENOTXN.  xLastError() has no words about these: they are answers, not failures.
 */
XAC_API int xac_translate(const void *addr, void **placep);

/* The other way: the address in the process's mapping; NULL: `place` lies in no view of the
   translated transaction that the thread has open. */
XAC_API void *xac_translate_back(const void *place);

/*
 * The number of a commit: inside of a transaction or query of the environment of xInit() that of the
 * newest one that it sees, which may grow until it ends; outside of the newest one of all.
 * A program that keeps data beside the segments can tell from it whether the two belong together.
 *
 * ret  0 also if there is no environment.
 */
XAC_API uint64_t xac_position(void);

#ifdef __cplusplus
}
#endif

#endif /* XAC_TRANSLATE_H */
