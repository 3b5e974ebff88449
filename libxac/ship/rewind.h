/* SPDX-License-Identifier: MIT */
/*
 * rewind.h -- an environment of its own becomes a standby of the one that was its standby, without a full copy.
 *
 * WHAT      An old source has log behind the fork that its standby has not got before that was promoted.  Its
 *           files get from the new source what that log names (rewind_plan.h), its own log goes, and the log of the new
 *           source comes in its place, from the start of the generation on that was promoted.
 * NOT HERE  The other side (rewind_source.h).  Taking the log (receive.h).
 * OWNER     struct xac_rewind belongs to the caller.
 * LOCK      The gate of the directory, all the time.
 * THREADS   one.
 *
 * The steps, each of which may be the last one of a process or before a power cut:
 *   (1) xac.rewind says what is to be done; then xac.master goes: the directory is no environment
 *   (2) the own log goes: from the fork on, if it is kept for an archive, else all of it
 *   (3) pages, files and lengths come; all synced
 *   (4) the end of the source's log is asked for: behind it nothing is in a page that has come
 *   (5) line in xac.history, xac.backup, xac.follow, xac.master; then xac.rewind says that only log is wanting
 *   (6) log up to that end; then xac.rewind goes (receive.h)
 *
 * INVARIANTS
 *   (1) Until (1) nothing has changed: whatever is refused, the environment is as it was.
 *   (2) From (1) on nobody but a rewind uses the directory, until (6).
 *   (3) Repeated from (1), or in (6) from where the log ends, it leads to the same.
 *   (4) A page holds, from (3) on, a state that the source's log from the start of that generation leads on from: that
 *       at the fork, or a later one of the source, torn or not.
 */
#ifndef XAC_REWIND_H
#define XAC_REWIND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ship/rewind_plan.h"
#include "ship/wire.h"

struct xac_rewind {
    struct xac_wire *w;
    const _Atomic bool *stop; /* as in receive.h                                      */
    struct xac_rewind_own own;
    struct xac_rewind_theirs theirs;
    struct xac_rewind_note note;
    bool is_again;  /* xac.rewind was there: another process has begun                */
    uint64_t pages; /* that have come                                                 */
};

/* xac_rewind_own_read -- what the directory has, in which nobody takes part; in own->dir, dirfd.  ret 0; as
   xac_recover_dir(), which writes nothing; errno.  Close it in any case. */
int xac_rewind_own_read(struct xac_rewind_own *own);
void xac_rewind_own_close(struct xac_rewind_own *own);

/* xac_rewind_own_greet -- what it says of itself. */
void xac_rewind_own_greet(const struct xac_rewind_own *own, struct xac_wire_hello *hello);

/*
 * xac_rewind_open -- begin, or go on.  in rw->w, stop, own.dir, own.dirfd.
 *
 * out  hello  for the source
 * ret  0; as xac_rewind_own_read(), xac_rewind_note_read().  Close it in any case.
 */
int xac_rewind_open(struct xac_rewind *rw, struct xac_wire_hello *hello);
void xac_rewind_close(struct xac_rewind *rw);

/*
 * xac_rewind_run -- steps (1) to (5); the sides have greeted.
 *
 * ret  0: log comes next, from the start of the generation on; as xac_rewind_plan(); XAC_EFOREIGN: this source does not
 *      have that generation; XAC_EDAMAGED: what came is not right; EPIPE: the connection is cut, or `stop`; errno.
 */
int xac_rewind_run(struct xac_rewind *rw);

#endif /* XAC_REWIND_H */
