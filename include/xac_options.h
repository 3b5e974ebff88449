/* SPDX-License-Identifier: MIT */
/*
 * xac_options.h -- options of libxac, for xSetOption(); xac.h includes it.
 */
#ifndef XAC_OPTIONS_H
#define XAC_OPTIONS_H

#include <stdint.h>

#include "xac_api.h"

/*
 * Options, for xSetOption().  The last lines of each comment say which values an option takes,
 * what it is if nobody sets it, when it may be set and whom it concerns; doc/options.md has all
 * of them in a table.  "All, from the first participant": the process that opens the environment
 * while no other has it open sets it for all.
 */
enum xac_option {
    /* The checksum of blocks of the log that are written from now on.
       Values: enum xac_checksum.  Default: XAC_CHECKSUM_XXH3.  Set: any time.  Concerns:
       all. */
    XAC_OPT_CHECKSUM = 1,
    /* So many bytes of log, or of page versions, bring a checkpoint; with 0 none comes by itself.
       A checkpoint for the log starts two segments earlier (a quarter of the bytes at most) and
       keeps pace with commits.  If the bytes are eight segments or more, the log on disk stays
       below them and one segment, except for:
       - what the oldest reader, a backup or a file out of reach holds back;
       - up to five data files of large transactions;
       - what others commit while the process is stopped that makes a checkpoint: as much
         again at the most.
       In a nondurable environment page versions may be four times as many bytes, up to a
       sixteenth of the memory that there is for the process that makes the checkpoint: that of
       the machine, or the least limit of its control groups.
       Values: bytes, any number.  Default: 256 MiB.  Set: any time.  Concerns: all. */
    XAC_OPT_CHECKPOINT_BYTES = 2,
    /* The size of a segment of the log.  It takes effect when the environment is made or has been
       recovered.  The first segment takes 64 KiB on disk and grows as it is used.  The log buffer
       in shared memory has a quarter of a segment, but at least 1 MiB.  A transaction that
       needs more than a quarter of the buffer is written to a data file of its own.
       Values: bytes, 64 KiB to 1 GiB, a power of two.  Default: 16 MiB.  Set: before
       xInit().  Concerns: all, from the first participant. */
    XAC_OPT_LOG_SEGMENT_BYTES = 3,
    /* Deprecated: the size of the log buffer; a power of two, 64 KiB to 1 GiB.  0, the default: it
       follows from the size of a segment. */
    XAC_OPT_LOG_BUFFER_BYTES XAC_DEPRECATED = 4,
    /* Deprecated: 0 sets XAC_OPT_CHECKING to STRICT; 1 sets it to FAST, and leaves TRUSTED. */
    XAC_OPT_STAY_MAPPED XAC_DEPRECATED = 5,
    /* What happens when two transactions want the same page: one of them fails, or one waits for the
       other.  By default transactions that are no queries run one after the other.  A program in which they
       are long, or wait for something while they are open, sets another policy; doc/policies.md says which.
       Values: enum xac_policy_kind.  Default: XAC_POLICY_SERIAL.  Set: before xInit().
       Concerns: all, from the first participant. */
    XAC_OPT_POLICY = 6,
    /* So long may a commit of this process stay unsynced.  0: xend() returns when the commit is on
       disk.  Otherwise xend() and xendQuery() return before, and xSync() waits.  If the machine
       fails, or if all participants die, commits that are not on disk are lost: always the
       newest ones, so that a prefix of the commits survives.  They are at most as many as fit into
       the log buffer (XAC_OPT_LOG_SEGMENT_BYTES) and, while commits go on, no more than
       those of so many milliseconds.  A process that dies alone loses nothing.
       No thread runs for it.  A commit that finds the time up syncs; so do commits of other
       processes that wait, a full log buffer, xCheckpoint() and xShutdown().  If no more commits
       come, call xSync().
       Values: milliseconds, 0 to 3,600,000.  Default: 0.  Set: any time.  Concerns: this
       process. */
    XAC_OPT_SYNC_DELAY_MS = 7,
    /* 1: log segments that are no longer needed are used again for new ones, and data files of
       large transactions are removed, so that the log on disk is bounded
       (XAC_OPT_CHECKPOINT_BYTES).  0: they are kept until somebody removes them.  With a backup
       they bring back any moment since then.  The environment remembers it for all participants
       and later runs, as the file xac.log-kept beside the log.  The last setting counts, also
       one before xInit().  If nobody sets it, log is used again until the first xArchive(), or
       the first xarchive(1) with a destination, and kept from then on.  ENOSPC and other
       errno values if that cannot be noted.
       Values: 0 or 1.  Default: not set.  Set: any time.  Concerns: all. */
    XAC_OPT_LOG_RECYCLE = 8,
    /* 1: a checkpoint keeps the checksum (XXH3, 64 bits) of each page that it copies to its
       file, in a file of the environment directory for each mapped file, 32 bytes a page.
       `xrecover --check` compares the files with them, which finds what the medium has
       done to them.  It adds a write and a sync for each file to a checkpoint.  0: none are
       kept, and those of a file are removed before it is written.  Pages that have not been
       changed since the option was set have none.  Only durable environments keep them.
       It takes effect at the next checkpoint.
       Values: 0 or 1.  Default: 0.  Set: any time.  Concerns: all. */
    XAC_OPT_PAGE_CHECKSUMS = 9,
    /* 1: the first change of a page since the last checkpoint began is logged as an image of
       the whole page.  From it recovery repairs a page that was torn while a checkpoint
       wrote it.  0: it is logged as a difference, like all other changes.  This makes the log
       shorter, and presumes that file system and device write every page of a mapped file as
       a whole: when the power or the system fails, the page is the old or the new one, and can
       be read.  Where that holds, nothing is lost.  Where it does not hold, a page that was
       being written may have bytes of both, which nobody notices, or may be unreadable.
       (A death of processes alone tears no page.)
       Disks with sectors of 512 bytes, and file systems that write in place on them, do
       not promise it.  An NVMe namespace whose AWUPF covers a page, with partitions and
       blocks so aligned, does; so does a file system that never writes in place.
       xBackup() needs the images, because it copies files while they are written: ENOTSUP.
       Recovery reads the log twice.
       Values: 0 or 1.  Default: 1.  Set: before xInit().  Concerns: all, from the first
       participant. */
    XAC_OPT_FULL_IMAGES = 10,
    /* Deprecated: enum xac_declared.  XAC_DECLARED_TRUSTED sets XAC_OPT_CHECKING to TRUSTED.
       XAC_DECLARED_CHECKED is the promise of TRUSTED, and a store that breaks it stops the
       program.  If XAC_OPT_CHECKING is set too, XAC_OPT_CHECKING counts. */
    XAC_OPT_DECLARED XAC_DEPRECATED = 11,
    /* A bound, in pages, on the memory that all participants together use for pages of the mapped
       files.  0: there is no bound.  See doc/frames.md.  xInit() fails with ENOTSUP if the
       engine is the portable one, xMmap() for a second mapping of a page before Linux 6.4.
       Values: pages, 256 to 1,073,741,823, or 0.  Default: 0.  Set: before xInit().
       Concerns: all, from the first participant.  Variable: XAC_FRAMES. */
    XAC_OPT_FRAMES = 12,
    /* So many bytes are read ahead of pages that are touched in order.  A page that is touched
       otherwise is read alone.  Set it for random accesses to files larger than memory.  It works
       without XAC_OPT_FRAMES, and not with XAC_ENGINE_PORTABLE.  The default,
       XAC_READ_AHEAD_SYSTEM, reads around each page, as far as the device is set to.
       Values: bytes, 0 to 1 GiB, or XAC_READ_AHEAD_SYSTEM.  Default:
       XAC_READ_AHEAD_SYSTEM.  Set: before xInit().  Concerns: this process.  Variable:
       XAC_READ_AHEAD. */
    XAC_OPT_READ_AHEAD_BYTES = 13,
    /* Permissions of the files that the library makes for the environment, as for chmod(2):
       0600, and reading, or reading and writing, for the group and for others.  The umask does
       not matter.  0: owner and group are those of the directory; users that may write in the
       directory may read and write the files, and nobody else may.  A sticky directory counts
       as not writable.  Locks and shared memory, which all participants write, are only for
       users that may write.  New data files in the directory get the permissions too, as
       far as the umask leaves them.  See doc/security.md.  The permissions are kept with the
       environment, as the mode of xac.master, and 0 leaves them as they are.  The first participant
       must own that file.
       Values: permissions.  Default: 0.  Set: before xInit().  Concerns: all, from the
       first participant. */
    XAC_OPT_MODE = 14,
    /* So long may an outermost xend() or xendQuery() of this process wait for other participants:
       for locks that they hold, for one that is writing or syncing the log, and for
       the turn.  0: there is no limit.  Without a limit it waits as long as a participant is stopped
       (SIGSTOP, a debugger) or very slow while it holds one of these; xstat names that
       participant.  When the time is over,
         xend() returns ETIMEDOUT    the transaction has been rolled back; it may be tried again
                XAC_EUNCERTAIN       it has committed, and is not known to be on disk, nor is all
                                     that it read: xSync() tells, and waits for it
       So long may an outermost xbegin() wait for its turn (enum xac_policy_kind); then it returns
       ETIMEDOUT, and no transaction has begun.  With a limit, xbegin() and xbeginQuery() also wait while another
       thread has a transaction open in the mappings of the process, and return EBUSY when the time is over; without,
       they return EBUSY at once.  Where the one that has the turn may be waiting for the
       thread, xbegin() waits for 3 s without a limit, too: see there, EDEADLK.
       Own writes and syncs are not waits.  The wait of xbegin() for an older
       transaction (at most 1.28 s) counts, too, and ends without an error.  Not limited: faults, a step of
       a checkpoint, and all other calls.  xTransact() returns either code and does not try again;
       xTransactLimited() (xac_limits.h) has a limit for itself.
       Values: milliseconds, 0 to 3,600,000.  Default: 0.  Set: any time.  Concerns: this
       process. */
    XAC_OPT_WAIT_MS = 15,
    /* How closely the library watches what the program does with its pages.  TRUSTED is chosen
       before xInit(), and kept.
       Values: enum xac_checking.  Default: XAC_CHECKING_FAST.  Set: outside of
       transactions.  Concerns: this process.  Variable: XAC_CHECKING (counts more). */
    XAC_OPT_CHECKING = 16,
    /* How the process notices accesses to pages.  XAC_ENGINE_BEST: by what works best on this
       system, userfaultfd(2) where it may be used.  XAC_ENGINE_PORTABLE: by mprotect(2), which works
       everywhere, and which XAC_ENGINE_BEST takes where nothing better works; `engine` and
       `engine_error` of xStats() tell.  One engine serves all environments of a process: the
       environment that is opened while the process has no other one open chooses it.
       Values: XAC_ENGINE_BEST or XAC_ENGINE_PORTABLE.  Default: XAC_ENGINE_BEST.  Set:
       before xInit().  Concerns: this process.  Variable: XAC_ENGINE (counts more). */
    XAC_OPT_ENGINE = 17,
    /* The states of the last so many seconds stay, and xbeginQueryAt() can query each of them
       (xac_snapshot.h).  XAC_HISTORY_COMMITS(n) and XAC_HISTORY_BYTES(n) are windows of n commit numbers,
       and of n bytes of page versions.  A checkpoint takes numbers, too: one for each 256 pages that it
       writes, or fewer.  The window is kept to within 1/64 of it, or more.  All versions
       made in it stay in the version store, and checkpoints write to the files no state later than its
       beginning, so that the log of that time stays, too.  The history begins anew when the
       environment is opened by a first participant.
       Values: seconds, any number.  Default: 0.  Set: before xInit().  Concerns: all,
       from the first participant. */
    XAC_OPT_HISTORY = 18,
    /* 1: every thread of the process may touch the segments while a transaction or query is open, as if it
       had called xJoin().  For libraries that start threads by themselves: OpenMP, BLAS,
       parallel algorithms of C++.  The program promises that they are done with the segments when
       it calls xend(); a thread that touches them later stops the program.  Races between the
       threads are the program's, as with plain memory.  Not with XAC_CHECKING_TRUSTED: stores of
       threads that make no call cannot be announced (xInit() returns EINVAL).  With
       XAC_ENGINE_PORTABLE it needs /proc/self/mem (ENOTSUP).
       Values: 0 or 1.  Default: 0.  Set: before xInit().  Concerns: this process. */
    XAC_OPT_TEAM = 19,
    /* The page versions that queries hold back are to take less than so many bytes, so that a query
       that lasts for hours does not make the shared memory grow without end.  A query holds back
       the versions that it needs though others have replaced them, and all that are younger than
       its state, because checkpoints cannot copy those to their files.  The oldest query is cut off
       when it holds back half of the limit, and no transaction is older than it; the other half is
       for what is written until a checkpoint has copied what it held back.  See xendQuery() for
       what it is told, and for what its loads see.  Choose four times XAC_OPT_CHECKPOINT_BYTES
       or more: as long as no checkpoint is due, versions are kept without any query.  Transactions
       that are no queries are not cut off.
       0: no query is.
       Values: bytes, 1 MiB or more, or 0.  Default: 0.  Set: any time.  Concerns: all. */
    XAC_OPT_READER_LIMIT = 21,
    /* A follower of the log has a slot, which holds back the log that it has not got yet: segments
       and data files are not used again or removed.  When a slot holds back more than so many
       bytes of log, the next checkpoint marks it as lost, so that a follower that is
       gone does not fill the disk.  It gets XAC_ECUTOFF and begins anew from a backup.
       0: an eighth of the file system of the log.
       Values: bytes, 64 KiB or more, or 0.  Default: 0.  Set: any time.  Concerns: all.
       */
    XAC_OPT_LOG_KEEP_BYTES = 22,
    /* On the node that leads a group a commit waits until a majority of the nodes has it.  If for so long
       nothing comes to a majority, while somebody waits, the node leads no more: those that wait get
       XAC_EUNCERTAIN, and nothing begins (XAC_ENOTLEADER).  Without a group it has no effect.
       Values: milliseconds, 100 to 3,600,000.  Default: 5,000.  Set: any time.  Concerns:
       this process. */
    XAC_OPT_GROUP_WAIT_MS = 23
};

/* Values of XAC_OPT_HISTORY that are no seconds. */
#define XAC_HISTORY_COMMITS(n) ((UINT64_C(1) << 62) + (uint64_t)(n))
#define XAC_HISTORY_BYTES(n)   ((UINT64_C(2) << 62) + (uint64_t)(n))

#define XAC_READ_AHEAD_SYSTEM UINT64_MAX

/*
 * How closely accesses are watched.  Under each of them transactions are isolated and atomic, if
 * the program keeps the rules of xac.h (and, for TRUSTED, its promise).  They differ in how soon the
 * library notices a program that breaks the rules, and in what an access costs.
 */
enum xac_checking {
    /* Each transaction traps at its first load and at its first store of each page.  So every
       access outside of a transaction stops the program at once, and so does every store in
       a query.  Use it for tests and to find mistakes. */
    XAC_CHECKING_STRICT = 0,
    /* Pages stay readable from one transaction to the next, so that most loads do not trap.
       While the process is the only participant and has no thread with views of its own (xView()),
       all pages that it has touched stay readable, up to a sixteenth of the memory that there
       is: that of the machine, or the least limit of the control groups that the process was in
       at xInit().  Beside others, the pages that its queries have read stay readable until a
       transaction begins that is not a query (not with XAC_ENGINE_PORTABLE); all together keep
       an eighth of that memory at most.

       Compared with STRICT, while pages stay readable:
       - A load outside of a transaction, or in a thread that has no transaction, may not be
         noticed.  It may see any state, or a mixture of several.
       - A store outside of a transaction, or in a query, still stops the program, but perhaps
         only at the next xbegin(), or at the end of the query.  It is never committed.  What
         another thread stores while a transaction is open may be taken for a store of that
         transaction.
       - When another process calls xInit(), or a thread of this process gets its first
         view, the transaction that is running aborts once (XAC_CONFLICT_REVOKED), also if it
         only reads.  The library does not know what it has read.  A program that tries again
         when xend() returns ABORTED needs no change.

       Nothing else is given up.  The same is committed, and other processes never see
       a difference. */
    XAC_CHECKING_FAST = 1,
    /* As FAST; besides, the program promises to announce every store: by setPageAccess() or
       setRangeAccess() with XAC_READ_WRITE, in its transaction and before the store.  xMalloc(),
       xFree() and xRoot() announce theirs.  While the process is alone, pages that it has
       written stay writable (not with XAC_ENGINE_PORTABLE, nor with XAC_OPT_FRAMES).

       A store that was not announced may not be noticed.  Then its transaction does not commit
       it, and an abort does not roll it back.  The loads of this process may see it, until the
       page is dropped, or until a later transaction announces the page and commits it.  In an
       environment that is not durable, under XAC_POLICY_SERIAL, others may see it, too.
       XAC_CHECKING=strict or =fast finds such stores: the program stops there. */
    XAC_CHECKING_TRUSTED = 2
};

/* Values of the deprecated XAC_OPT_DECLARED. */
enum xac_declared {
    XAC_DECLARED_NONE XAC_DEPRECATED = 0,
    XAC_DECLARED_TRUSTED XAC_DEPRECATED = 1,
    XAC_DECLARED_CHECKED XAC_DEPRECATED = 2
};

/* What happens when two transactions want the same page (Thesis 3.3).  Under none of them
   does a transaction win if its process is stopped or dead. */
enum xac_policy_kind {
    XAC_POLICY_OLDEST_WINS = 0,   /* the older one survives; a retry keeps its age, and
                                     xbegin() puts it off until the older one is over
                                     (10 ms at first, later 1.28 s at most), so nobody
                                     starves and retries are few                     */
    XAC_POLICY_SELF_ABORT = 1,    /* the one that discovers the conflict fails        */
    XAC_POLICY_SELFISH = 2,       /* the one that discovers it wins                   */
    XAC_POLICY_YOUNGEST_WINS = 3, /* the younger one survives                        */
    XAC_POLICY_OPTIMISTIC = 4,    /* no checks while running: a transaction sees the
                                     snapshot of its begin and is validated at xend();
                                     after a few lost races it waits for its turn, in
                                     which it cannot lose                            */
    XAC_POLICY_SERIAL = 5 /* one writer at a time: xbegin() waits for its turn, which
                                     lasts until xend() has committed; nobody loses, unless
                                     its process is stopped in its turn; queries do not
                                     wait: the default.  xbegin() waits for ever if the one
                                     that has the turn waits for it: see xbegin()    */
};

/* Checksums of log blocks. */
enum xac_checksum {
    XAC_CHECKSUM_XXH3 = 0, /* 64 bits, fast: the default                             */
    XAC_CHECKSUM_MD5 = 1,  /* the Thesis' proposal                                   */
    XAC_CHECKSUM_SHA1 = 2
};

#endif /* XAC_OPTIONS_H */
