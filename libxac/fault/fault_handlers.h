/* SPDX-License-Identifier: MIT */
/*
 * fault_handlers.h -- the process's handlers of SIGSEGV and SIGBUS: ours in front, the program's
 * behind it.
 *
 * WHAT      Installs our handler, notices when the program has put another one in its place, puts
 *           ours in front again, and calls the program's handler for each fault that is not
 *           ours, as the system would: with its mask, SA_NODEFER and SA_RESETHAND.
 * LEVELS    A handler that was installed over ours may have noted ours as the one to call next,
 *           or to put back.  So ours is a different function each time that it is put in front,
 *           and each of these functions has a handler behind it: the first one the handler from
 *           before xInit(), the second one the handler that came after that, and so on.
 * EXCEPTION A handler without SA_ONSTACK runs on the thread's signal stack too, if the thread has
 *           one, because ours calls it.
 * NOT HERE  Which faults are ours, and when to look: fault_signal.h.
 * LOCK      One thread at a time calls start, stop and retake; the handlers take none.
 *
 * INVARIANTS
 *   (1) A level that is installed, or was, has a handler behind it, which may be the default.
 *   (2) A description of a program's handler is never changed or freed.
 */
#ifndef XAC_FAULT_HANDLERS_H
#define XAC_FAULT_HANDLERS_H

#include <signal.h>
#include <stdbool.h>

#include "base/annot.h"

/* Handles a fault, and returns true if it was ours. */
typedef bool (*xac_fault_fn)(int sig, siginfo_t *info, void *context);

/* xac_handlers_start, stop -- become the handler of SIGSEGV, and SIGBUS if asked for; give it
   back, unless a handler is installed that may call ours.  ret 0 or errno. */
int xac_handlers_start(bool with_sigbus, xac_fault_fn fn);
void xac_handlers_stop(void);

/* xac_handlers_hold -- are our handlers still in front?  One system call for each signal.  Any
   thread. */
bool xac_handlers_hold(void);

/* xac_handlers_retake -- put ours in front again where they are not.  ret 0 or errno. */
int xac_handlers_retake(void);

#endif /* XAC_FAULT_HANDLERS_H */
