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

#ifdef __cplusplus
}
#endif

#endif /* XAC_XAC_STATS_H */
