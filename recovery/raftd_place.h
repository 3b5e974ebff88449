/* SPDX-License-Identifier: MIT */
/*
 * raftd_place.h -- the environment of a member, as the daemon of its node has it.
 *
 * WHAT      Opens it as a standby, takes accepted log into it, begins to lead, deposes it, and cuts its log.
 * NOT HERE  What is accepted (raftd_entry.h), and when this node leads (raftd_hand.h).  How it is done: group/member.h,
 *           recovery/standby.h.
 * OWNER     struct raftd_place belongs to the caller.
 * THREADS   one; raftd_place_has(): any.
 *
 * INVARIANTS
 *   (1) Only accepted log is taken, in order, and only what the log here does not have.
 *   (2) The log is cut only where an accepted OPEN says, or at the end of all that Raft had committed before a barrier
 *       of this node or the end of this node's leading: never at what this life has only heard so far.
 *   (3) Before this node leads, and when it has led, no other process is attached.
 *   (4) A standby is not opened while one of its data files is missing or too short (raftd_files.h).
 *   (5) `durable` is on disk here: also of a leader, which hears that a majority has its log perhaps before that.
 */
#ifndef XAC_RAFTD_PLACE_H
#define XAC_RAFTD_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raftd_entry.h"
#include "raftd_files.h"
#include "ship/ship_note.h"

struct xac_env;
struct xac_standby;

enum raftd_state {
    RAFTD_CLOSED,
    RAFTD_STANDBY, /* takes log                                                       */
    RAFTD_LEADER,  /* has begun `generation`, and others write                        */
    RAFTD_STRAY,   /* has led in `generation`: its log may have a tail that is nobody's */
    RAFTD_EMPTY    /* nothing has come yet                                              */
};

struct raftd_place {
    const char *dir;
    int dirfd;
    enum raftd_state state;
    struct xac_env *env;   /* STANDBY, LEADER                                          */
    struct xac_standby *s; /* STANDBY                                                 */
    uint32_t generation;   /* of the log                                              */
    uint64_t end;          /* of the log, STRAY: or further; LEADER: replicated        */
    uint64_t durable, applied; /* (5); STRAY: durable is `end`                         */
    bool has_news; /* something has been taken since it was settled                    */
    bool needs_mark; /* something has been settled since it was marked as durable     */
    uint64_t marked_ns; /* when                                                       */
    struct raftd_files files;  /* STANDBY                                              */
    struct xac_ship_note note; /* xac.addresses, piece by piece                       */
};

/* raftd_place_open -- as it is in its directory: STANDBY, STRAY or EMPTY.  Programs that a former life of the daemon has let write
   must leave first.  ret 0; as raftd_files_check(), xac_env_open() and xac_member_detach(), words noted.  Close it in any
   case. */
int raftd_place_open(struct raftd_place *p, int dirfd, const char *dir);

/* raftd_place_close -- STANDBY: what has come is in the files; LEADER: as it is. */
int raftd_place_close(struct raftd_place *p);

/* raftd_place_take -- STANDBY: an accepted BATCH, DATA or NOTE (1).  ret 0; as xac_standby_take(), words noted. */
int raftd_place_take(struct raftd_place *p, const struct raftd_entry *e);

/* raftd_place_is_full -- it is time to settle. */
bool raftd_place_is_full(const struct raftd_place *p);

/* raftd_place_settle -- STANDBY: what has been taken is durable and redone.  ret 0 or an error, words noted. */
int raftd_place_settle(struct raftd_place *p);

/*
 * raftd_place_turn -- STANDBY: another node has begun a generation.
 *
 * in   a     what is accepted, up to its OPEN
 * in   wait  called while old queries hold it up; true: go on waiting
 * ret  0; XAC_EFOREIGN: the log here does not end where the OPEN says; ECANCELED: no longer waited; others, words noted.
 */
int raftd_place_turn(struct raftd_place *p, const struct raftd_accepted *a,
                     bool (*wait)(void *arg), void *arg);

/*
 * raftd_place_cut -- STRAY: the log ends there, and the member is a standby (2).  If it has not all of that, it ends before,
 * as `end` says then: what it lacks is to be taken.
 *
 * in   end  of `generation`
 * ret  0; as xac_member_cut(), words noted.
 */
int raftd_place_cut(struct raftd_place *p, uint64_t end);

/* raftd_place_lead -- STANDBY: this node is the writer of the generation that has just been accepted.  Readers leave, or are
   killed.  ret 0: LEADER; as xac_member_lead(), words noted: CLOSED. */
int raftd_place_lead(struct raftd_place *p, const struct raftd_accepted *a);

/* raftd_place_retreat -- STANDBY: with all readers, who are told why; CLOSED then.  Other states stay.  ret 0; as
   xac_member_detach(), words noted. */
int raftd_place_retreat(struct raftd_place *p, const char *why);

/* raftd_place_raise -- LEADER: a majority has the log up to there. */
void raftd_place_raise(struct raftd_place *p, uint64_t end);

/* raftd_place_look -- LEADER: bring `durable` up to date; other states stay. */
void raftd_place_look(struct raftd_place *p);

/* raftd_place_has -- LEADER: is what counts up to there on disk here?  Any thread, as long as it leads. */
bool raftd_place_has(const struct raftd_place *p, uint64_t end);

/* raftd_place_is_deposed -- LEADER: a process has waited so long for a majority that it has deposed the environment. */
bool raftd_place_is_deposed(const struct raftd_place *p);

/* raftd_place_leave -- LEADER: this node leads no more; all others detach, or are killed.  in  leader  in words, "" not known.
   ret 0: STRAY; errno, words noted. */
int raftd_place_leave(struct raftd_place *p, const char *leader);

#endif /* XAC_RAFTD_PLACE_H */
