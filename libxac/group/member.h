/* SPDX-License-Identifier: MIT */
/*
 * member.h -- an environment as a member of a group: what the daemon of its node does to it.
 *
 * WHAT      Makes an environment a member.  Begins to lead: a generation of the log, a region whose commits wait for a
 *           majority, this process attached.  Says how far a majority is.  Ends leading: deposes, has all others
 *           detach, cuts the log where the next generation's entry says, and leaves a standby.
 * NOT HERE  Which entries are accepted, elections, connections: the daemon's.  Taking log while another node leads:
 *           a standby as any (recovery/standby.h; the daemon opens it with xac_env_options.standbyp).  Waiting for
 *           a majority (shared/group.h).
 * OWNER     The environment that xac_member_lead() and xac_member_attach() open belongs to the caller, who closes it
 *           with xac_env_close().  If nobody else takes part then, the region goes; no checkpoint is made.
 * LOCK      The gate, in the functions that take a directory.
 * THREADS   one at a time, but xac_member_raise() and xac_member_depose(): any.
 *
 * A directory is in one of three states, and each function repeats what was cut short:
 *   standby   xac.follow and xac.backup are there.  It can be opened as a standby, or begin to lead.
 *   leader    neither is there; the log's generation is the one that this node has begun.  Without a region it is
 *             known that files and master record hold nothing that a majority has not; the log may.  It is cut.
 *   between   one of the two is there: a change was cut short.  It is cut; if xac.backup is there, not behind the
 *             end that it says: an earlier attempt has begun to clear the log from there on.
 *
 * INVARIANTS
 *   (1) A generation that this node begins is begun once: its line in xac.history, with the nonce as branch, is there
 *       before its master record, and a generation that the master record has is refused.
 *   (2) It begins behind a log that ends at the cut exactly.  All of that log is in the files, synced.
 *   (3) Behind a cut nothing is left but zeros, up to the end of the last segment there is.  Else a later reader would take a block that fits there for a part of that generation.
 *   (4) The files hold nothing from behind a cut: invariant (3) of shared/group.h.  So a cut changes the log only.
 *   (5) While xac.group is there and no region, only the daemon opens the directory; and XAC_READONLY, a standby.
 *   (6) Files of a group lie in the directory of the environment: another node finds them by the same name.
 */
#ifndef XAC_MEMBER_H
#define XAC_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "log/group_note.h"
#include "log/lineage.h"
#include "shared/env_state.h"

/* Where a member is, while nobody takes part. */
struct xac_member_place {
    uint8_t identity[16];
    uint32_t page_size;
    uint32_t generation; /* of the master record                                       */
    uint64_t segment_bytes;
    uint64_t start_lsn; /* of that generation                                          */
    uint64_t redo_lsn;
    uint64_t end_lsn; /* of its last block, synced; not behind a cut that has begun */
    bool is_standby;
};

/*
 * xac_member_create -- make an environment, or a standby, in which nobody takes part, a member; it is a standby then.
 *
 * An environment of its own is recovered first.  The first node of a group is made of one; all others of copies that
 * `xship` has made of it, or of one that leads.  Killed, it is what it was, or a standby that is no member yet, and the
 * call is repeated.
 * in   note   its node is 1 to XAC_GROUP_NODE_MAX
 * out  place  NULL: not wanted
 * ret  0, also if it is this member already; EINVAL: no such node number; a mapped file lies outside of the directory;
 *      EEXIST: it is a member of another group, or as another node; XAC_ELIVE; XAC_ENOTENV; as xac_recover_dir(); words
 *      noted.
 */
int xac_member_create(const char *dir, const struct xac_group_note *note,
                      struct xac_member_place *place);

/*
 * xac_member_look -- which member it is, and where.  Nobody takes part.
 *
 * ret  0; XAC_ENOTENV: no member, or no environment; XAC_ELIVE; as xac_master_read(); errno; words noted.
 */
int xac_member_look(const char *dir, struct xac_group_note *note,
                    struct xac_member_place *place);

/*
 * xac_member_lead -- become the writer (N5): the standby is recovered, the generation begins, and there is a region
 * that others join.
 *
 * Call it when the entry of that generation is applied, its nonce is of this life of the daemon, and the daemon still
 * leads.  Nobody takes part: readers have detached, and the standby has been closed.
 * in   line     of the generation: `previous` ended at end_lsn, it begins at xac_next_start(end_lsn), in segments of the
 *               same size; its branch is the nonce of the entry
 * in   options  as of xac_env_open(); policy, size of checkpoints and so on are the region's.  NULL: the defaults
 * out  envp     open, and `replicated` is the generation's start
 * ret  0; XAC_EFOREIGN: the log does not end there, or not in that generation; EEXIST: the generation has begun
 *      already, perhaps in a former life: cut, and take another one; EINVAL: no standby, or the line is not sound;
 *      XAC_ENOTENV: no member; XAC_ELIVE: somebody takes part; as xac_env_open(); words noted.  Behind an error the
 *      directory is a standby as before, or between: look, and cut.
 */
int xac_member_lead(const char *dir, const struct xac_lineage_line *line,
                    const struct xac_env_options *options, struct xac_env **envp);

/*
 * xac_member_attach -- join those who have stayed in a region that a former life of the daemon has made, to depose it and
 * have them detach.
 *
 * ret  0; XAC_ENOTLEADER: nobody takes part; as xac_env_open(); words noted.
 */
int xac_member_attach(const char *dir, struct xac_env **envp);

/* xac_member_raise -- a majority has the log up to there (F3): the end of an accepted block, at or below what is
   written here.  Lower positions than before change nothing. */
void xac_member_raise(struct xac_env *env, uint64_t lsn);

/* xac_member_depose -- nothing begins from now on, and nothing is acknowledged but what a majority has (L1).  Also of a
   standby with readers, before this node leads.  in  leader  who leads, in words for people; "" not known */
void xac_member_depose(struct xac_env *env, const char *leader);

/*
 * xac_member_detach -- have all other participants of a deposed environment end (L3).
 *
 * For `leave_ms` they may detach by themselves.  Then those that are left are killed, stopped ones too.  What may not
 * be killed is waited for, by calling again.  A lock on a byte of the lock file counts, too.
 * in   wait_ms  return after so long at the latest
 * ret  0: this process is the only one; EBUSY: somebody is left, whom the words name; errno; words noted.
 */
int xac_member_detach(struct xac_env *env, unsigned leave_ms, unsigned wait_ms);

/*
 * xac_member_cut -- a node that has led becomes a standby: what its log has behind the cut is nobody's (L4, L5).
 *
 * The cut is the end of the accepted blocks of the generation, as far as the daemon knows them; what is accepted later
 * comes again from there.  Nobody takes part.  A standby stays as it is.
 * in   generation  of the master record
 * in   cut_lsn     the end of a block, or the generation's start
 * out  endp        where the log ends now: at the cut; or before, if it has not all; of a standby, anywhere
 * ret  0; XAC_EFOREIGN: the log is of another generation, or no block ends at the cut; XAC_EDAMAGED: files or master
 *      record hold more than that, or the log is damaged: the node needs a new copy; XAC_ENOTENV: no member; XAC_ELIVE;
 *      errno; words noted.
 */
int xac_member_cut(const char *dir, uint32_t generation, uint64_t cut_lsn,
                   uint64_t *endp);

#endif /* XAC_MEMBER_H */
