/* SPDX-License-Identifier: MIT */
/*
 * xac_options.h -- options of libxac, for xSetOption(); xac.h includes it.
 */
#ifndef XAC_OPTIONS_H
#define XAC_OPTIONS_H

#include <stdint.h>

/* Of constants that go away with the next name of the library; doc/compatibility.md. */
#ifdef XAC_NO_DEPRECATED
# define XAC_DEPRECATED
#else
# define XAC_DEPRECATED __attribute__((deprecated))
#endif

/* Options.  Unless it says otherwise, set them before xInit(). */
enum xac_option {
    /* enum xac_checksum; for blocks written from now on, any time. */
    XAC_OPT_CHECKSUM = 1,
    /* Bytes of log or versions for which there is a checkpoint; 0 never.  By the log it starts
       two segments earlier (a quarter of the bytes at most) and keeps pace with commits.  So
       the log on disk stays below these bytes and one segment, if they are eight segments or
       more, but for: what the oldest reader, a backup or a file out of reach holds back; up to
       five data files of large transactions; and what others commit when the process that is
       at a checkpoint stops to do so, as much again at the most.
       Default 256 MiB. */
    XAC_OPT_CHECKPOINT_BYTES = 2,
    /* Size of a log segment, bytes, 64 KiB to 1 GiB, a power of two.  Takes effect when
       the environment is made or has been recovered.  The first one takes 64 KiB on disk
       and grows as it is used.  Default 16 MiB. */
    XAC_OPT_LOG_SEGMENT_BYTES = 3,
    /* Size of the log buffer in shared memory, bytes, 64 KiB to 1 GiB, a power of two.
       Takes effect for the first participant.  Default 4 MiB. */
    XAC_OPT_LOG_BUFFER_BYTES = 4,
    /* Deprecated: 0 sets XAC_OPT_CHECKING to STRICT; 1 sets it to FAST, and leaves TRUSTED. */
    XAC_OPT_STAY_MAPPED XAC_DEPRECATED = 5,
    /* enum xac_policy_kind, the first participant's.  Default XAC_POLICY_OLDEST_WINS. */
    XAC_OPT_POLICY = 6,
    /* Milliseconds, at most 3,600,000, that a commit of this process may stay unsynced;
       0: xend() returns when the commit is on disk.  Otherwise xend(), xendQuery() return
       before, and xSync() waits.  What is not on disk is lost if the machine fails or all
       participants die (a process that dies alone loses nothing), always the newest
       commits, so that a prefix of them survives: at most XAC_OPT_LOG_BUFFER_BYTES of
       log, and while commits go on, no more than those of so many milliseconds.  No
       thread runs for it: a commit that finds the time up syncs, as do commits of other
       processes that wait, a full log buffer, xCheckpoint() and xShutdown().  If commits
       stop coming, call xSync().  Any time.  Default 0. */
    XAC_OPT_SYNC_DELAY_MS = 7,
    /* 1: log segments that are no longer needed are reused for new ones, and data files of large
       transactions are removed, so that the log on disk is bounded
       (XAC_OPT_CHECKPOINT_BYTES).  0: they are kept until somebody removes them: with a backup
       they bring back any moment since.  The environment remembers it for all participants
       and later runs, as the file xac.log-kept beside the log; the last setting counts, also
       one before xInit().  If nobody sets it, log is reused until the first xArchive(), or
       xarchive(1) with a destination, and kept from then on.  Any time.  ENOSPC and other errno values if that cannot be noted. */
    XAC_OPT_LOG_RECYCLE = 8,
    /* 1: a checkpoint keeps the checksum (XXH3, 64 bits) of each page that it copies to its
       file, in a file of the environment directory for each mapped file, 32 bytes a page;
       `xrecover --check` compares the files with them, which finds what the medium has
       done to them.  It adds a write and a sync for each file to a checkpoint.  0: none are
       kept, and those of a file are removed before it is written.  Pages that have not been
       changed since the option was set have none.  Only durable environments keep them.
       Any time, from the next checkpoint on; concerns all participants.  Default 0. */
    XAC_OPT_PAGE_CHECKSUMS = 9,
    /* 1: the first change of a page since the last checkpoint began is logged as an image of
       the whole page, from which recovery repairs a page that was torn while a checkpoint
       wrote it.  0: as a difference, like all others, which makes the log shorter.
       That presumes that file system and device write every page of a mapped file, a
       write of one page at a multiple of its size, as a whole: when power fails, or the
       system does, it is the old or the new one, and reads as such.  Then it loses
       nothing; else a page that was being written is left with bytes of both, which
       nothing finds, or cannot be read.  (A death of processes alone tears nothing.)
       Disks with sectors of 512 bytes, and file systems that write in place on them, do
       not promise it; an NVMe namespace whose AWUPF covers a page, with partitions and
       blocks so aligned, or a file system that never writes in place, does.
       xBackup() needs the images, for it copies files while they are written: ENOTSUP.
       Recovery reads the log twice.  Before xInit(); the first participant's.  Default 1. */
    XAC_OPT_FULL_IMAGES = 10,
    /* Deprecated: enum xac_declared.  XAC_DECLARED_TRUSTED sets XAC_OPT_CHECKING to TRUSTED.
       XAC_DECLARED_CHECKED is the promise of TRUSTED, and a store that breaks it stops the
       program.  If XAC_OPT_CHECKING is set too, XAC_OPT_CHECKING counts. */
    XAC_OPT_DECLARED XAC_DEPRECATED = 11,
    /* Pages of memory, at least 256, for all that participants have of their files, 0: no
       bound; see doc/frames.md.  ENOTSUP: engines but uffd and scan; two mappings of a page
       before Linux 6.4.  Before xInit(); for the first participant.  Default 0. */
    XAC_OPT_FRAMES = 12,
    /* Bytes, at most 1 GiB, that are read ahead of pages touched in order; a page touched
       otherwise is read alone: for random accesses to files larger than memory.  With the
       engine uffd, without XAC_OPT_FRAMES.  Before xInit(); this process's.  Default
       XAC_READ_AHEAD_SYSTEM: around each page, as far as the device is set to. */
    XAC_OPT_READ_AHEAD_BYTES = 13,
    /* Permissions of the files that the library makes for the environment, as for chmod(2):
       0600 and reading, or reading and writing, for group and others; the umask does not
       matter.  0: owner and group are the directory's, and whoever may write in the directory
       may read and write them, nobody else; a sticky directory counts as not writable.  What
       all participants write (locks, shared memory) is for those who may write only.  New
       data files in the directory get it, too, beside what the umask leaves.  See
       doc/security.md.  Before xInit(); kept with the environment (as the mode of
       xac.master); for the first participant, who must own that file.  Default 0: as kept. */
    XAC_OPT_MODE = 14,
    /* Milliseconds, at most 3,600,000, that an outermost xend() or xendQuery() of this process
       waits in all for locks of others, for whoever syncs the log, and for the token; 0: for
       ever.  A participant that is stopped (SIGSTOP, a debugger) or very slow while it holds one
       is waited for otherwise; xstat names it.  When the time is over,
         xend() returns ETIMEDOUT    the transaction has been rolled back; it may be tried again
                XAC_EUNCERTAIN       it has committed, and is not known to be on disk, nor is all
                                     that it read: xSync() tells, and waits for it
       Own writes and syncs are not waits.  Not limited: xbegin() (at most 1.28 s for an older
       transaction, and for the token), faults, a step of a checkpoint, and all other calls.
       xTransact() returns either code and does not try again.  Any time.  Default 0. */
    XAC_OPT_WAIT_MS = 15,
    /* enum xac_checking: how closely the library watches what the program does with its
       pages.  The variable XAC_CHECKING of the environment (strict, fast or trusted) counts
       more than what the program sets.  Outside a transaction, but TRUSTED before xInit()
       only; concerns this process.  Default XAC_CHECKING_FAST. */
    XAC_OPT_CHECKING = 16
};

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
       all pages that it has touched stay readable, up to 65,536 of each mapping.  Beside
       others, the pages that its queries have read stay readable until a transaction begins
       that is not a query (not with the engine "portable").

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

       Nothing else is given up.  What is committed is the same, and other processes never see
       a difference. */
    XAC_CHECKING_FAST = 1,
    /* As FAST; besides, the program promises to announce every store: by setPageAccess() or
       setRangeAccess() with XAC_READ_WRITE, in its transaction and before the store.  xMalloc(),
       xFree() and xRoot() announce theirs.  While the process is alone, pages that it has
       written stay writable (not with the engine "portable", nor with XAC_OPT_FRAMES).

       A store that was not announced may not be noticed.  Then its transaction does not commit
       it, and an abort does not roll it back.  The loads of this process may see it, until the
       page is dropped, or until a later transaction announces the page and commits it.
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
   does one win whose process is stopped or dead. */
enum xac_policy_kind {
    XAC_POLICY_OLDEST_WINS = 0,   /* the older one survives; a retry keeps its age, and
                                     xbegin() puts it off until the older one is over
                                     (10 ms at first, later 1.28 s at most), so nobody
                                     starves and retries are few: the default        */
    XAC_POLICY_SELF_ABORT = 1,    /* whoever discovers the conflict fails            */
    XAC_POLICY_SELFISH = 2,       /* whoever discovers it wins                       */
    XAC_POLICY_YOUNGEST_WINS = 3, /* the younger one survives                        */
    XAC_POLICY_OPTIMISTIC = 4     /* no checks while running: a transaction sees the
                                     snapshot of its begin and is validated at xend();
                                     after a few lost races it gets a token in which it
                                     cannot lose                                     */
};

/* Checksums of log blocks. */
enum xac_checksum {
    XAC_CHECKSUM_XXH3 = 0, /* 64 bits, fast: the default                             */
    XAC_CHECKSUM_MD5 = 1,  /* the Thesis' proposal                                   */
    XAC_CHECKSUM_SHA1 = 2
};

#endif /* XAC_OPTIONS_H */
