/* SPDX-License-Identifier: MIT */
/*
 * tls.h -- storage of each thread.
 *
 * WHAT      A few words of thread-local storage (XAC_TLS), and parts on the heap that a
 *           thread gets when it first needs them, and that are freed when it ends.
 * WHY       The fault handler reads some of the words.  With the dynamic models of
 *           thread-local storage, the first access of a thread may allocate memory, which a
 *           signal handler must not do.  So all words are of the model initial-exec: they
 *           exist, zeroed, in each thread from its start, also in threads that ran before
 *           the library was loaded.  But dlopen(3) takes such storage from a small surplus
 *           that all libraries share, and fails if it is used up.  So there are few words, and
 *           larger things are parts.
 * SIGNALS   The fault handler uses words, and parts that exist; it makes none.  A thread that has never called the
 *           library has zeroed words; so the handler sees no context of its own and no lock.
 * UNLOADING The library is linked with `-z nodelete`: destructors and signal handlers need it
 *           after dlclose(3), too.
 *
 * INVARIANTS
 *   (1) All thread-local variables of the library are XAC_TLS, and take at most 128 bytes
 *       together (tests/install/check_load.sh).
 *   (2) A part belongs to one thread; nobody else reads it.
 */
#ifndef XAC_TLS_H
#define XAC_TLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/annot.h"

#define XAC_TLS _Thread_local __attribute__((tls_model("initial-exec")))

enum xac_tls_part {
    XAC_TLS_ERR,    /* err.c: the last error in words          */
    XAC_TLS_ENDS,   /* api_token.h: what it has ended last     */
    XAC_TLS_HINTS,  /* alloc.c: where memory was found last    */
    XAC_TLS_THREAD, /* team.h: what it has joined; where its stack is */
    XAC_TLS_PARTS
};

/* xac_tls_on_end -- set the function that is called when a thread with parts ends, before its
   parts are freed. */
void xac_tls_on_end(void (*fn)(void));

/*
 * xac_tls_part -- a part of the calling thread; if there is none, it is made, with zeroed bytes.
 *
 * ret  NULL if there is no memory, or no key of pthread_key_create(3).  errno is left alone.
 */
void *xac_tls_part(enum xac_tls_part part, size_t bytes);

/* xac_tls_look -- the same, but NULL if it has not been made. */
XAC_SIGSAFE void *xac_tls_look(enum xac_tls_part part);

/* xac_tls_tid -- the number that the kernel gives the calling thread.  xac_tls_forked: in a child it has another
   one. */
uint32_t xac_tls_tid(void);
void xac_tls_forked(void);

#endif /* XAC_TLS_H */
