/* SPDX-License-Identifier: MIT */
/*
 * look.h -- one look at a running environment, for xstat: counters, participants and what they
 * hold and wait for, the pages that are written most, times, space.
 *
 * WHAT      Reads a control region that is mapped read-only (peek.h).  Nobody is stopped meanwhile, so
 *           the numbers are of about the same moment, no more.
 * NOT HERE  Showing it: xstat.c, top.c, prometheus.c.
 * OWNER     struct look is the caller's; look_free gives back what it has.
 */
#ifndef XAC_LOOK_H
#define XAC_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xac.h>

#include "base/times.h"
#include "holders.h"
#include "shared/env_state.h"

#define LOOK_HOT   10 /* pages                                                         */
#define LOOK_WORDS 64

struct look_participant {
    uint32_t index;
    uint32_t pid; /* in its own PID namespace                                         */
    const char *process; /* "running", "stopped" or "dead"                            */
    bool is_reader;
    uint64_t n_open, n_queries; /* transactions, queries                              */
    uint64_t n_pages;           /* in the sets of its transactions                    */
    uint64_t age_ns;            /* of the oldest of them; 0 none                      */
    uint64_t commits;           /* since the look before; all, at the first look      */
    char holds[LOOK_WORDS];     /* "turn", "publish lock"; "" nothing that others need */
    char waits[LOOK_WORDS];     /* for what, and for whom; "" for nothing             */
};

struct look_page {
    uint32_t file;    /* id                                                            */
    uint64_t offset;  /* bytes, in the file                                            */
    uint64_t commits; /* of the recent ones that have written it                      */
    char path[256];   /* its end, if it is longer                                     */
};

/* Cumulative: histogram of times, see times.h. */
struct look_times {
    uint64_t sum_ns, count;
    uint64_t n[XAC_TIMES_BUCKETS];
};

/* Bytes. */
struct look_space {
    uint64_t log_files;     /* of the log on disk                                    */
    uint64_t log_left;      /* that the file system of the log has left              */
    uint64_t log_behind;    /* that a recovery would read now                        */
    uint64_t files_left;    /* of the file system of the environment's directory     */
    uint64_t region;        /* the control region                                    */
    uint64_t region_most;   /* that all participants can reach                       */
    uint64_t versions;      /* room for page versions                                */
    uint64_t versions_used; /* of it                                                 */
    uint64_t shared_left;   /* of the file system of the shared memory               */
};

/* A state that is held (xac_snapshot.h). */
struct look_snapshot {
    uint64_t id, commit; /* the number of the last commit in it                         */
    uint32_t pid;        /* of the process that holds it; 0: it has a name and a time   */
    uint64_t age_ns, left_ns;
    char name[XAC_SNAPSHOT_NAME_BYTES];
};

/* A slot of a follower of the log (log/slots.h). */
struct look_follower {
    char name[XAC_SLOT_NAME_BYTES];
    bool is_lost;
    uint64_t lsn;  /* it holds log back from here on                                  */
    uint64_t held; /* bytes of log from there to its end                              */
};

/* A standby, or a node of a group (shared/group.h). */
struct look_group {
    const char
        *role;     /* "leader", "deposed", "follower", "standby"; NULL: none of them   */
    uint64_t node; /* its number; 0: in no group                                    */
    char
        leader[XAC_GROUP_LEADER_BYTES]; /* who leads, in words; "" not known            */
    uint64_t generation;                /* of the log                                  */
    uint64_t
        replicated;   /* of a leader: a majority has the log up to here               */
    uint64_t behind;  /* bytes that are durable here, and that it has not             */
    uint64_t applied; /* of the others: redone up to here                             */
    uint64_t unread;  /* bytes that are durable here, and not redone                  */
    uint64_t waiting; /* queries that wait to hear what is newest                     */
};

/* What a slot had counted, and for whom. */
struct look_slot {
    uint32_t participant;
    uint64_t commits;
};

struct look {
    uint64_t at_ns;
    struct xac_stats s;
    bool is_poisoned;
    struct holder holder[HOLDERS_MAX];
    size_t n_holders;
    struct look_participant *participant;
    size_t n_participants;
    struct xac_party *party; /* the table of xParticipants()                           */
    size_t n_parties;
    struct look_slot *slot;
    size_t n_slots;
    struct look_snapshot *snapshot;
    size_t n_snapshots;
    struct look_follower follower[XAC_LOG_SLOTS];
    size_t n_followers;
    struct look_group group;
    struct look_page hot[LOOK_HOT];
    size_t n_hot;
    uint64_t n_recent; /* commits that `hot` is about                                 */
    struct look_times commit_times, sync_times;
    struct look_space space;
};

/*
 * look_take -- in  before  the look before, for what has happened since; NULL: there is none
 * ret  0, or an error; *out is to be freed in any case.
 */
int look_take(const struct xac_env *env, const struct look *before, struct look *out);
void look_free(struct look *look);

/* look_process_word, kind_word, engine_word, wait_word, conflict_word -- what a row of the table of
   xParticipants() says, in a word; "" for nothing. */
const char *look_process_word(const struct xac_party *party);
const char *look_kind_word(const struct xac_party *party);
const char *look_engine_word(const struct xac_party *party);
const char *look_wait_word(const struct xac_party *party);
const char *look_conflict_word(const struct xac_party *party);

/* look_times_since -- what has been added since the look before. */
struct look_times look_times_since(const struct look_times *now,
                                   const struct look_times *before);

/* look_times_part -- the end of the bucket, in ns, below which that part of the times lies (0.5: the
   median); 0: there are no times. */
uint64_t look_times_part(const struct look_times *t, double part);

#endif /* XAC_LOOK_H */
