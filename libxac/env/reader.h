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
 *   (1) A reader writes no mapped file, with one exception: the last participant of an
 *       environment that is not durable, because otherwise its versions would be lost.
 *   (2) The last participant that is not a reader makes a checkpoint when it leaves, as the
 *       last one of all does.
 *   (3) All participants of a standby's region but its replayer (replayer.h) are readers, whatever they
 *       have asked for.
 *   (4) On the leader of a group nobody makes a checkpoint because he leaves: the daemon stays longest, and without it
 *       nothing gets a majority.
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
 * xac_reader_settle -- write committed versions to the files if no later participant will; called
 * by every participant that leaves.  Gate held.
 *
 * The last writer does it, even if readers stay, because they do not write.  A reader that is the
 * last one of all leaves it to the next recovery, from the log.  If there is no log, it writes the
 * versions that readers have held back, or says that it could not.
 * in   last  nobody else is attached
 * ret  0 or an error of the checkpoint.
 */
int xac_reader_settle(struct xac_env *env, bool last);

#endif /* XAC_READER_H */
