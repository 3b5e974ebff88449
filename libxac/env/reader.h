/* SPDX-License-Identifier: MIT */
/*
 * reader.h -- what a participant for queries only may do (XAC_READONLY).
 *
 * WHAT      A reader is live or frozen.  A live one is a participant like any other, but its
 *           slots run queries only, and the files that it maps need only be readable.  As it
 *           can do all that participants do for each other (flush the log, publish for the
 *           dead), it must be allowed to write region, log and directory.  Otherwise, or
 *           if nobody is attached, the reader is frozen (env_frozen.h).
 * NOT HERE  The region and the gate (env_enter.h); which kind it is (env.c).
 * LOCK      As in env_enter.h.
 *
 * INVARIANTS
 *   (1) A reader writes no mapped file, but for the last participant of an environment that is
 *       not durable, whose versions nobody else could bring to the files.
 *   (2) The last participant that is no reader makes a checkpoint when it leaves, as the last
 *       one of all does.
 */
#ifndef XAC_READER_H
#define XAC_READER_H

#include <stdbool.h>

struct xac_env;

/* xac_reader_check_access -- may this process, if it is a reader, write where participants
   write?  Directory of the log open.  ret 0 or an error. */
int xac_reader_check_access(const struct xac_env *env);

/* xac_reader_check_writer -- ret 0, or XAC_EREADONLY if it is a reader. */
int xac_reader_check_writer(const struct xac_env *env, const char *what);

/*
 * xac_reader_settle -- bring what was committed to the files, if nobody who comes after us
 * will; by any participant that leaves.  Gate held.
 *
 * The last writer does, though readers may stay: they do not write.  A reader that is the
 * last one of all leaves that to the next who comes and has the log.  Where there is none it
 * writes what readers have held back, or says that it could not.
 * in   last  nobody else is attached
 * ret  0 or an error of the checkpoint.
 */
int xac_reader_settle(struct xac_env *env, bool last);

#endif /* XAC_READER_H */
