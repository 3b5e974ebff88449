/* SPDX-License-Identifier: MIT */
/*
 * xac_stats.h -- why a transaction aborted, and the counters of libxac; xac.h includes it.
 *
 * STRUCTURES THAT THE LIBRARY FILLS IN.  The program passes the size of the structure, so that
 * it works with a library of another version.  New fields come at the end only.
 *
 *     struct xac_stats stats;
 *     int rc = xStats(&stats, sizeof stats);
 *
 * If the program knows fewer fields than the library, it gets those that it knows.  If it
 * knows more, the library fills the rest with zero bytes.  If the size does not hold the
 * first field, the call fails with EINVAL.
 */
#ifndef XAC_XAC_STATS_H
#define XAC_XAC_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "xac_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Why a transaction aborted. */
enum xac_conflict_kind {
    XAC_CONFLICT_NONE = 0,        /* it did not                                      */
    XAC_CONFLICT_READ_WRITE = 1,  /* we read the page, the other wrote it            */
    XAC_CONFLICT_WRITE_READ = 2,  /* we wrote the page, the other read it            */
    XAC_CONFLICT_WRITE_WRITE = 3, /* both wrote it                                   */
    XAC_CONFLICT_REVOKED = 4,     /* another process joined while the reads of this
                                     transaction were not recorded; or this process
                                     was stopped during thousands of commits         */
    XAC_CONFLICT_VALIDATION = 7,  /* optimistic: a transaction that committed before
                                     wrote a page that this one read or wrote        */
    XAC_CONFLICT_USER = 5,        /* xAbort()                                        */
    XAC_CONFLICT_RESOURCE = 6     /* no room on disk or in memory, or a page could not
                                     be read; `error` says which                     */
};

struct xac_conflict {
    int kind;             /* enum xac_conflict_kind                                  */
    int error;            /* XAC_CONFLICT_RESOURCE: the errno value                  */
    int other_pid;        /* process of the other participant, 0 if none             */
    int found_by_us;      /* 1 if this transaction found it, 0 if the other one did  */
    char file[256];       /* path, only its end if it is longer; "" if unknown       */
    uint64_t file_offset; /* bytes, of the page within the file                      */
    void *address;        /* of the page in this process, NULL if not mapped here    */
};

/*
 * Why the last transaction that the calling thread ended aborted.
 *
 * out  out   filled in; kind XAC_CONFLICT_NONE if the last one committed.
 * in   size  sizeof *out, see above.
 * ret  0; EINVAL; XAC_ENOINIT; ENOMEM: the reason could not be noted.
 */
XAC_API int xac_get_conflict(struct xac_conflict *out, size_t size);

/* Counters of the environment (all participants, since the region was created). */
struct xac_stats {
    uint64_t commits;            /* transactions that wrote and committed             */
    uint64_t commits_read_only;  /* committed without having changed anything         */
    uint64_t queries;            /* queries ended                                     */
    uint64_t aborts_conflict;    /* aborted for a conflict                            */
    uint64_t aborts_user;        /* aborted by xAbort()                               */
    uint64_t aborts_other;       /* aborted: no room, or revoked                      */
    uint64_t traps_read;         /* faults handled, first access a read               */
    uint64_t traps_write;        /* faults handled, first access a write              */
    uint64_t hints;              /* setPageAccess() calls that did the work of a trap */
    uint64_t pages_written;      /* page versions published                           */
    uint64_t log_bytes;          /* appended to the log                               */
    uint64_t log_writes;         /* write calls on the log                            */
    uint64_t log_syncs;          /* fdatasync calls on the log                        */
    uint64_t checkpoints;        /* completed                                         */
    uint64_t pages_checkpointed; /* page versions copied to their files               */
    uint64_t dead_cleaned;       /* participants that died and were reaped            */
    uint64_t versions_live;      /* page versions in the version store now            */
    uint64_t frames;             /* version slots that the version store has now      */
    uint64_t participants;       /* attached now                                      */
    uint64_t commit_number;      /* number of the last published commit               */
    uint64_t log_tail;           /* LSN, bytes: end of the log                        */
    uint64_t log_durable;        /* LSN, bytes: synced up to here                     */
    /* The oldest snapshot that is read, and how many versions are kept for it.  If the number of
       versions grows, this is the reason.  A running checkpoint counts as a query of its process. */
    uint64_t oldest_pid;      /* process that reads it; 0: no snapshot is read, or
                            (oldest_behind is not 0) a named one is held                 */
    uint64_t oldest_commit;   /* number of the last commit that it sees              */
    uint64_t oldest_behind;   /* commits published since                             */
    uint64_t oldest_age_ns;   /* since its transaction or query began; within 10 ms  */
    uint64_t versions_held;   /* versions that are kept only because they are read: they
                                 are replaced by newer ones, or copied to their files */
    uint64_t versions_oldest; /* of these, kept only for the oldest snapshot         */
    uint64_t engine; /* enum xac_engine_kind: how this process notices accesses   */
    /* errno value: why an engine in use is not the wanted one */
    uint64_t engine_error;
    /* Of XAC_OPT_FRAMES, see doc/frames.md. */
    uint64_t frames_bound, frames_hits, frames_misses, frames_on_disk;
    uint64_t pages_dropped, pages_spilled, pages_fetched_back;
    /* Checkpoints that failed or left out a file, with code and time (ns since 1970) of the last
       one; files that are known, and files that are forgotten (removed, replaced, xForget()). */
    int64_t checkpoint_error;
    uint64_t checkpoint_failures, checkpoint_error_ns, files, files_forgotten;
    uint64_t reader; /* enum xac_reader_kind; FROZEN: log_tail is the moment        */
    uint64_t queries_cut; /* queries that were cut off: XAC_OPT_READER_LIMIT          */
};

/* How a process notices the first access to a page: `engine` above.  XAC_OPT_ENGINE chooses
   BEST or PORTABLE; UFFD, SIGSEGV and SCAN have names for the variable XAC_ENGINE, for tests. */
enum xac_engine_kind {
    XAC_ENGINE_BEST = 0,    /* for XAC_OPT_ENGINE: UFFD, else SIGSEGV                  */
    XAC_ENGINE_UFFD = 1,    /* userfaultfd(2); Linux 5.11 or later                     */
    XAC_ENGINE_SIGSEGV = 2, /* mprotect(2)                                             */
    XAC_ENGINE_PORTABLE = XAC_ENGINE_SIGSEGV, /* for XAC_OPT_ENGINE                    */
    XAC_ENGINE_THESIS = 3, /* of the benchmarks only: an mmap(2) for each page         */
    XAC_ENGINE_SCAN = 4    /* UFFD, without traps for stores where that can be; 6.7   */
};

/*
 * Read the counters.
 *
 * out  out   filled in.  No lock is taken, so the fields may be of different moments.
 * in   size  sizeof *out, see above.
 * ret  0; EINVAL; XAC_ENOINIT.
 * If an older snapshot is read, the time it takes grows with `frames`.
 */
XAC_API int xac_get_stats(struct xac_stats *out, size_t size);

#ifndef XAC_NO_SHORT_NAMES
XAC_API int xConflict(struct xac_conflict *out, size_t size);
XAC_API int xStats(struct xac_stats *out, size_t size);
#endif

/* ---- The table of participants ----------------------------------------------------- */

/* What a participant's thread is doing. */
enum xac_party_kind {
    XAC_PARTY_IDLE = 0,       /* no transaction is open                              */
    XAC_PARTY_UPDATE = 1,     /* a transaction                                       */
    XAC_PARTY_QUERY = 2,      /* a query; a running checkpoint counts as one         */
    XAC_PARTY_FAILED = 3,     /* a transaction that has failed, and goes on until its
                                 xend()                                              */
    XAC_PARTY_COMMITTING = 4, /* a transaction in its xend()                         */
    XAC_PARTY_CUT = 5,        /* a query that has been cut off: XAC_OPT_READER_LIMIT */
    XAC_PARTY_SNAPSHOT = 6    /* no thread: a snapshot that the process has taken
                                 (xac_snapshot.h), and that has no name              */
};

/* State of a process. */
enum xac_party_process {
    XAC_PARTY_DEAD = 0, /* it has not been cleaned up after yet                       */
    XAC_PARTY_STOPPED = 1,
    XAC_PARTY_RUNNING = 2 /* or sleeping                                              */
};

/* What a thread waits for. */
enum xac_party_wait {
    XAC_PARTY_NOTHING = 0,
    XAC_PARTY_TURN = 1, /* its turn (XAC_POLICY_SERIAL, XAC_POLICY_OPTIMISTIC)        */
    XAC_PARTY_OLDER = 2 /* an older transaction that it has lost to                   */
};

/* One row of the table: a participant's thread, or its snapshot.  Threads of a process that have no views of their own
   (xView()) run their transactions one after the other, and share a row. */
struct xac_party {
    uint64_t pid;           /* process                                               */
    uint64_t tid;           /* thread that has begun the last transaction; 0 none    */
    char command[16];       /* name of the process, as ps(1) has it; "" unknown      */
    uint64_t process;       /* enum xac_party_process                                */
    uint64_t is_reader;     /* 1: it has opened with XAC_READONLY                    */
    uint64_t engine;        /* enum xac_engine_kind                                  */
    uint64_t kind;          /* enum xac_party_kind; the next five are 0 if IDLE      */
    uint64_t age_ns;        /* since it has begun; within 10 ms                      */
    uint64_t commit;        /* number of the last commit that it sees                */
    uint64_t pages_read;    /* that it has read and not written, as far as that is
                               noticed: most loads do not trap (XAC_CHECKING_FAST)   */
    uint64_t pages_written; /* that it has stored to, as far as they are known before
                               its end                                               */
    uint64_t versions_held; /* that it holds back, as XAC_OPT_READER_LIMIT counts them;
                               0 if CUT                                              */
    uint64_t log_held;      /* bytes of log that cannot be let go as long as its
                               transaction, or its backup, is under way; at least: what
                               is older than about 1,000 commits is not known        */
    uint64_t waits_for;     /* enum xac_party_wait                                   */
    uint64_t waits_pid;     /* process that it waits for; 0 unknown                  */
    uint64_t waits_ns;      /* since it waits                                        */
    uint64_t failed_kind;   /* why its last transaction that failed did so: enum
                               xac_conflict_kind, as xConflict() tells it; 0: none has */
    uint64_t failed_pid;    /* process that made it fail; 0 unknown                  */
    uint64_t failed_ns;     /* since that transaction ended                          */
};

/*
 * Show the participants, what each is doing, and which process it waits for: one call of `fn` for each row.
 * xstat(1) shows the same of any running environment.  It disturbs nobody, and takes a moment: what
 * is shown of one row may be over when the next one is shown.  May be called at any time, inside
 * transactions too.
 *
 * in   fn    called in this thread, with `arg` and a row that is valid until it returns; it may call
 *            the library.  A result other than 0 ends the walk.
 * in   size  sizeof(struct xac_party), see above.
 * ret  0; what fn has returned; EINVAL: fn is NULL, or the size does not hold the first field;
 *      XAC_ENOINIT; ENOMEM.  There are no rows if the environment has been opened as it was at one
 *      moment (XAC_READER_FROZEN).
 */
XAC_API int xac_participants(int (*fn)(void *arg, const struct xac_party *party),
                             void *arg, size_t size);
XAC_API int xParticipants(int (*fn)(void *arg, const struct xac_party *party), void *arg,
                          size_t size);

#ifdef __cplusplus
}
#endif

#endif /* XAC_XAC_STATS_H */
