/* SPDX-License-Identifier: MIT */
/*
 * xac.h -- libxac: transactions on memory-mapped files.
 *
 * A program maps a file and gets a pointer.  Its plain loads and stores between
 * xbegin() and xend() are one serializable transaction, across processes.  It is durable
 * if the program asks for that, and it is recovered after a crash.
 *
 *     #include <xac.h>
 *
 *     int rc = xInit("db", DURABLE);
 *     int *x = xMmap("input.db", 10 * 4096);
 *     do { xbegin(); x[0]++; } while ((rc = xend()) == ABORTED);
 *     if (rc != COMMITTED)
 *         fprintf(stderr, "%s\n", xLastError());
 *     xMunmap("input.db");
 *     xShutdown();
 *
 * The interface is that of J. Sukha, "Memory-Mapped Transactions", MIT 2005
 * ("Thesis" below), chapter 2.  This header says what the Thesis leaves open.
 *
 * CALLING RULES
 *   (1) xInit() comes before every other call, xShutdown() ends the use.  These calls use
 *       one environment at a time; xac_env.h has calls for several in one process.
 *   (2) The threads of a process share its mappings and run one transaction at a time on
 *       them; it belongs to the thread that began it.  A thread with views of its own
 *       (xView) has transactions of its own, which run beside all others.
 *   (3) The bytes of a mapped segment may be touched only between xbegin()/xend() or
 *       xbeginQuery()/xendQuery().  An access outside, behind the end of a mapping or after
 *       xMunmap(), and a store in a query stop the program (SIGABRT) with a message that
 *       names file and offset.
 *   (4) Every begin has its end.  Control leaves a transaction in no other way, except that
 *       an exception may leave the function of xTransact().  A transaction that is left
 *       open is rolled back and named on standard error when its thread calls exit() or
 *       ends.  If longjmp() has left xTransact(), the thread's next begin or xend() does
 *       that, if it notices.  If control has left a pair of xbegin() and xend(), the library
 *       takes the next xbegin() for a nested one.
 *   (5) A signal handler must not call any function here, and must not touch a segment.  It may
 *       run in the middle of xbegin() or xend(): then it must not leave by longjmp() or
 *       pthread_exit(), and a child that it makes by fork() may only call exec() and _exit().
 *       If it does more, the program is stopped with a message at its next call of the library,
 *       or when the thread ends.
 *       A thread that touches a segment must not block SIGSEGV and SIGBUS, or the system
 *       kills the process.  The program installs its own handlers of these two signals
 *       before xInit() or between transactions.  The next begin puts the library's handlers
 *       in front again; they call the program's for all other faults.  In a loop of short
 *       transactions a begin does so within 10 ms; if a transaction touches a new page
 *       before that, the process is killed.
 *   (6) System calls do not fault pages in.  read(fd, segment, n) fails with EFAULT on a
 *       page that the transaction has not touched.  Touch it first, or call
 *       setPageAccess().
 *   (7) While a file is mapped, it must not be changed, truncated or replaced without the
 *       library.  It must not be renamed between a crash and the recovery.
 *   (8) The program must not use the library's descriptors.  They have high numbers, and
 *       exec() closes them.  A program may close them all between transactions, as daemons
 *       do, and go on: the library opens its files again by name, and writes no byte to files
 *       that have got the same numbers.  If it cannot open them, calls fail with
 *       XAC_EDESCRIPTOR and xend() with XAC_ENOTDURABLE, and the program is stopped when it
 *       touches a page that cannot be shown.  No other process is disturbed.
 *   (9) fork() is allowed at any time.  The child is a new participant with the same
 *       segments.  A transaction that was open belongs to the parent only; the child's
 *       xend() for it returns XAC_EFORKED.
 *
 * MEMORY MODEL (Thesis 2.2)
 *   Committed transactions are serializable.  Every transaction sees one consistent
 *   snapshot, even if it is going to abort.  A transaction aborts only at its xend().
 *   After an abort the segments are as if the transaction had never run; local variables
 *   keep what it stored in them.
 *
 * RETURN VALUES
 *   Functions return 0 or a nonzero error code: a positive errno value or a negative
 *   XAC_E... code.  xStrerror() explains a code.  xLastError() adds file, offset and
 *   reason of this thread's latest failure.  A call that fails has changed nothing,
 *   unless its comment says otherwise.
 *
 * NAMES
 *   Each function has a name with the prefix xac_.  Most also have a short one, xName(), in the style of the
 *   Thesis; comments use it.  Define XAC_NO_SHORT_NAMES before the include to leave out the short names and the
 *   constants without prefix (READ, PENDING, ...), which other headers also use.  WORDS: doc/glossary.md.
 */
#ifndef XAC_H
#define XAC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h> /* MAP_FAILED */

#include "xac_codes.h"       /* flags, outcomes, error codes                            */
#include "xac_options.h"     /* options of xSetOption()                                 */
#include "xac_replication.h" /* tokens, and queries at other nodes                      */
#include "xac_savepoint.h"   /* parts of a transaction that are rolled back             */
#include "xac_snapshot.h"    /* states that are held                                    */
#include "xac_stats.h"       /* why a transaction aborted, counters; structures' sizes  */

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; the number is for comparisons: 2000 for 0.2.0. */
#define XAC_VERSION_MAJOR 0
#define XAC_VERSION_MINOR 2
#define XAC_VERSION_PATCH 0
#define XAC_VERSION_NUMBER \
 (XAC_VERSION_MAJOR * 1000000 + XAC_VERSION_MINOR * 1000 + XAC_VERSION_PATCH)

/*
 * The version of the library in use, which may be later than that of the header: as text,
 * "0.2.0", in static storage, and as a number.  May be called at any time, before xInit() too.
 */
XAC_API const char *xac_version(void);
XAC_API unsigned xac_version_number(void);

/* ---- The Thesis' interface (Thesis tables 2.1 and sections 2.1 to 2.3) ------------ */

/*
 * Open the environment in directory `path`.  If the directory is missing it is made (its
 * parent must exist).  If other processes are attached, this one joins them.  If the last
 * ones did not shut down, the environment is recovered first.
 *
 * XAC_READONLY opens it for queries only.  Nothing is created, recovered or written; calls
 * that would write fail with XAC_EREADONLY, xMmap() with EROFS.  If others are attached, and
 * this user may write the directory and the shared memory, queries see the newest commits.
 * Otherwise they see the state at xInit(), on private copies of all mapped files, in $TMPDIR or /tmp.
 *
 * While xship(1) receives into a standby, and as long as anybody has that open, it is for queries only, whatever
 * the flags: calls that would write fail with XAC_ENOTLEADER.  If nobody has it open, only XAC_READONLY opens it.
 * The same holds in a group, on nodes that do not lead; one that stops leading ends who does not call xShutdown().
 * in   path   directory for the log and control files; copied.
 * in   flags  XAC_NONDURABLE, XAC_DURABLE or XAC_READONLY.
 * ret  0, or
 *        EINVAL          path NULL or empty, unknown flag
 *        XAC_EFILESYSTEM a network file system (XAC_ALLOW_NETWORK_FS=1 allows it)
 *        EACCES, EROFS   directory not writable for this user
 *        ENOTDIR         path is not a directory
 *        ENOSPC          no room for the control region or the log
 *        ENOTSUP         valgrind lacks an option, which xLastError() names
 *        XAC_EALREADY    the process has an environment open
 *        XAC_EMODE       live participants use the other durability mode
 *        XAC_EVERSION    control file or log of another format version
 *        XAC_EFOREIGN    a log of another environment lies in the directory
 *        XAC_EPAGESIZE   environment of a machine with another page size
 *        XAC_EDAMAGED    the log is missing, or damaged where it had been synced: see xrecover(1)
 *        XAC_EREPLACED   a file that the log names is missing, or is another file now
 *        XAC_ECOPY       a copy of an environment; log or files lie elsewhere: see xrecover(1)
 *        XAC_EINUSE      another environment has mapped a file of the log since the crash
 *        XAC_ENOTSHARED  the shared memory of live participants cannot be reached
 *        XAC_ENAMESPACE  live participants are in another PID namespace
 *        XAC_ELOCKLOST   xac.lock was removed; nobody can join until all participants end
 *        XAC_ENOTENV     a log, but no xac.master; with XAC_READONLY: no environment
 *        XAC_ENOTLEADER  a standby, into which nobody receives now: see xship(1); or a member of a group
 *      with XAC_READONLY also
 *        EAGAIN          log that was needed has been reused meanwhile: try again
 *        ENOTSUP         the log has no full images (XAC_OPT_FULL_IMAGES)
 */
XAC_API int xac_init(const char *path, int flags);

/*
 * Close the environment: unmap all segments and detach.  The last participant that leaves
 * makes a checkpoint, so that the mapped files hold everything that was committed.
 *
 * ret  0; XAC_ENOINIT; XAC_EINTXN; EBUSY if another thread has a transaction open, or views
 *      of its own (xView); XAC_EPOISONED or an errno value if the checkpoint failed.  The
 *      process is detached in this case too, and the next xInit() recovers.
 */
XAC_API int xac_shutdown(void);

/*
 * Map the first `length` bytes of file `name` as a transactional segment.
 *
 * The file is created if it is missing, and extended with zero bytes if it is shorter; that
 * disturbs no process that has mapped less of it.  Several files may be mapped, and a file
 * several times; one transaction may touch all of them.  All processes that map the file
 * in this environment share the segment.
 *
 * The environment remembers where a file was mapped first.  It maps the file there again, in
 * every process and every run, whenever those addresses are free.  So ordinary pointers
 * inside a segment stay valid.  A program that relies on this gives XAC_SAME_ADDRESS to
 * xMmapAt().
 *
 * in   name    path, relative to the current directory or absolute; copied.
 * in   length  bytes; a positive multiple of the system page size.
 * ret  page-aligned base address of `length` bytes, owned by the library until
 *      xMunmap(); or MAP_FAILED, and errno is
 *        EINVAL   name NULL or empty, not a regular file, or a file of the environment
 *                 itself (xac.*, xac-* in its directory); length 0 or not a multiple of the
 *                 page size
 *        EPERM    no xInit() yet, or inside a transaction
 *        EFBIG    more pages than a file can have (2^36), or bytes (2^63)
 *        ESTALE   the file was replaced: others have mapped another one of this name
 *        EBUSY    the file belongs to another environment, which xLastError() names: that
 *                 one has it mapped, or has crashed and is not recovered yet
 *        EIO      the environment is poisoned
 *        others   from open(2), ftruncate(2), fsync(2), mmap(2)
 */
XAC_API void *xac_mmap(const char *name, size_t length);

/*
 * Map a part of a file, as xMmap() maps its beginning.
 *
 * The parts that a process has mapped may overlap.  Each page is the same in all of them,
 * within a transaction too: a load through one address sees what was stored through
 * another.  A store to a page that is mapped several times costs a little more.
 *
 * The environment remembers one address for the first byte of the file, and each part is
 * mapped at its distance from there.  So pointers are valid from one part to another.  Only
 * the second mapping of a page must lie elsewhere.  The allocator works in any mapping,
 * wherever in the file it begins.
 *
 * in   offset  bytes, of the first byte mapped within the file; a multiple of the system
 *              page size.  The file is extended to offset + length if shorter.
 * in   flags   0, or XAC_SAME_ADDRESS: fail if it cannot be mapped where the pointers
 *              stored in it are valid.  If the file has never been mapped before, any
 *              address is right, and is remembered.
 * ret  as xMmap(), and
 *        EINVAL      offset not a multiple of the page size, unknown flag
 *        EADDRINUSE  XAC_SAME_ADDRESS, and the addresses are taken; xLastError() says by
 *                    what (a line of /proc/self/maps, see proc(5))
 */
XAC_API void *xac_mmap_at(const char *name, uint64_t offset, size_t length, int flags);

/*
 * Make a mapping longer or shorter.
 *
 * If it becomes longer than the file, the file is first extended with zero bytes, and this
 * is durable in a durable environment.  A file never becomes shorter.  Other mappings of
 * the file, in this process and in others, stay as they are.
 *
 * in   base    start of a mapping of this process, outside transactions.
 * in   length  bytes; a positive multiple of the system page size.
 * in   flags   0: the address stays; XAC_MAY_MOVE: it changes if there is no room for it.
 * ret  the new base address; or MAP_FAILED, nothing has changed except that the file may be
 *      longer, and errno is
 *        EINVAL      no mapping starts at base; length or flags wrong
 *        EADDRINUSE  the addresses behind it are taken; xLastError() says by what
 *        EBUSY       threads have views of it (xView)
 *        EPERM, EFBIG, EIO and others as for xMmap()
 */
XAC_API void *xac_mremap(void *base, size_t length, int flags);

/*
 * Unmap the segment of file `name`.  Committed data stay committed.
 *
 * ret  0; EINVAL (NULL or empty name); XAC_ENOINIT; XAC_EINTXN inside a transaction;
 *      XAC_ENOTMAPPED; XAC_EMAPPED: this process has mapped the file more than once, use
 *      xMunmapAt(); EBUSY: another thread has a transaction open in the process's
 *      mappings, or some thread has a view of the segment (xView).
 */
XAC_API int xac_munmap(const char *name);

/*
 * Unmap the segment that starts at `base`.
 *
 * ret  0; XAC_ENOINIT; XAC_EINTXN; XAC_ENOTMAPPED; EBUSY: threads have views of it.
 */
XAC_API int xac_munmap_at(void *base);

/*
 * Forget a file that nobody maps, before it is moved away or replaced.  The file is brought
 * up to date first, if it is there.  Recovery does not ask for it any more.  If a file is
 * removed without this call, after its last xMunmap(), the next checkpoint notices that.
 *
 * ret  0, also if the file is not known; EBUSY: it is mapped, or a query reads an older state
 *      of it; EINVAL; XAC_EINTXN; and as xCheckpoint().
 */
XAC_API int xac_forget(const char *name);

/*
 * Remove a file that nobody maps.
 *
 * All that was committed to it is in the file first; then its name goes.  When this returns 0 that
 * is durable, in a durable environment.  After a crash in the middle the file is there, whole, or it is not.
 * Files that were never mapped can be removed, too.  A file that has more names (hard links) keeps the others.
 *
 * in   name  relative to the current directory, or absolute; a regular file, not a symbolic link to one
 * ret  0, or the file is there as before:
 *        EBUSY         it is mapped, by any process (xLastError() says which), also under another
 *                      name; a query, a snapshot or XAC_OPT_HISTORY needs an older state of it;
 *                      or a backup is being made
 *        ENOENT        there is no such file
 *        EINVAL        NULL or empty; a directory or another kind of file; a symbolic link; one of
 *                      the environment's own files
 *        EACCES, EPERM, EROFS  the file or its directory may not be written, or not be read
 *        ENOTSUP       the environment is a member of a group
 *        XAC_EINUSE    it belongs to another environment
 *        XAC_EINTXN    inside of a transaction or query
 *        XAC_EREADONLY, XAC_EFORKED, XAC_ENOINIT, XAC_EPOISONED
 *      and others as xCheckpoint().  EIO with words that say so: it is removed, but perhaps not
 *      durably.  If the directory may not be written, the library has forgotten the file (xForget()).
 */
XAC_API int xac_remove(const char *name);

/*
 * Rename a file that nobody maps, or move it to another directory of its file system.
 *
 * As xRemove(), but the file is there after a crash in the middle, whole, under its old or its new name.
 * It keeps its address: pointers into it stay valid.  Checksums of its pages (XAC_OPT_PAGE_CHECKSUMS)
 * begin anew, and so does an increment of a backup: it has all of the file.  A backup that was made
 * before cannot be rolled forward past the renaming (xrecover --until).
 *
 * in   from  as for xRemove()
 * in   to    a name that nothing has
 * ret  0, or as xRemove(), and
 *        EEXIST      something has the name `to`; it is left alone
 *        EINVAL      the same name twice; `to` is reserved for the environment's own files
 *        ENOENT      the directory of `to` is not there
 *        EXDEV       it lies in another file system
 *        EOPNOTSUPP  the file system cannot rename without perhaps replacing a file
 */
XAC_API int xac_rename(const char *from, const char *to);

/*
 * Make a view of a segment for the calling thread alone.
 *
 * The threads of a process share its mappings, so that only one of them at a time can
 * have a transaction open.  A thread with views of its own has transactions of its own.
 * They run beside those of all other threads and processes, and conflict with them by the
 * same rules.  From its first xView() on, the transactions of the thread work on its own
 * views only: it must touch segments through the addresses that this call returns, and
 * other threads must not use these.  Ordinary pointers stored in a segment are valid in the
 * process's mapping; across views use offsets from the base.
 *
 * in   base  of a segment that the process has mapped by xMmap(), outside transactions
 * ret  address of the thread's view of all of it, the same at each call; MAP_FAILED,
 *      errno is EPERM (no xInit(), or inside a transaction), EINVAL (no segment starts
 *      at base), ENOMEM, EAGAIN (no thread-specific key), EIO (environment poisoned).
 *
 * A view ends by xUnview() or with its thread; then a transaction that is open is aborted.
 * While it exists, xMunmap() of the segment, and xShutdown() by another thread, fail with
 * EBUSY.
 */
XAC_API void *xac_view(void *base);

/*
 * Give up a view of the calling thread.  When it has given up the last one, the thread uses
 * the shared transactions and mappings of the process again.
 *
 * in   view  as returned by xView(), outside transactions
 * ret  0; XAC_ENOINIT; XAC_EINTXN; XAC_ENOTMAPPED.
 */
XAC_API int xac_unview(void *view);

/*
 * Begin a transaction.  Inside a transaction it begins a nested one, which is a part of the
 * outermost transaction: it commits or aborts with that one.
 *
 * Under XAC_POLICY_SERIAL, the default, the outermost one waits until no other transaction of the environment
 * is open, in any process or thread; queries do not count, and do not wait.  So a thread
 * must not wait inside of its transaction for another thread or process that may call
 * xbegin(): for a child made by fork(), for a thread to join, for a lock that the other
 * one holds.  They would wait for each other for ever, or as long as XAC_OPT_WAIT_MS allows; xstat
 * names the process that has the turn.  Without XAC_OPT_WAIT_MS the wait ends after 3 s by EDEADLK
 * in two cases: the process was forked inside of the transaction that has the turn; or the thread
 * has the turn of another environment.  No transaction has begun then, and the program may try again.
 *
 * ret  0; XAC_ENOINIT; XAC_EINQUERY inside a query; XAC_EPOISONED; EBUSY if another
 *      thread of the process has a transaction open (with XAC_OPT_WAIT_MS: for so long); XAC_EINTXN: the
 *      thread has joined a transaction (xac_team.h); ETIMEDOUT, if it has waited for its turn as long
 *      as XAC_OPT_WAIT_MS allows; EDEADLK: see above; XAC_EREADONLY, XAC_ENOTLEADER; ENOMEM, ENOSPC; XAC_EDESCRIPTOR.
 */
XAC_API int xac_begin(void);

/*
 * End the innermost transaction.  EBUSY, and it stays open, while threads have joined it (xac_team.h).
 *
 * In a durable environment XAC_COMMITTED is returned only after everything that the
 * transaction wrote and read is on disk; in a group, on the disks of a majority of its nodes.
 *
 * ret  Of a nested transaction: XAC_PENDING or XAC_FAILED.  Of the outermost one:
 *        XAC_COMMITTED   it has taken effect
 *        XAC_ABORTED     rolled back; another attempt may succeed.  xConflict() says why.  A
 *                        retry keeps its age, so that it does not lose for ever.
 *        an errno value  rolled back; another attempt would fail too, unless something
 *                        changes: ENOSPC, EDQUOT, ENOMEM (no room), EIO (a file could not be read), EFBIG
 *                        (in a group: more than 64 MiB change, each page counted whole) and others.
 *                        xLastError() says what was missing.  If a checkpoint might make room, one was
 *                        tried before, and xend() returned XAC_ABORTED for that attempt, once.  So the loop
 *                        `while ((rc = xend()) == ABORTED)` ends.
 *        XAC_EPOISONED   the log could not be synced: the commit may or may not be on
 *                        disk, xrecover decides
 *        XAC_ENOTDURABLE committed, do not repeat it; but this process could not write the log because of
 *                        its limits, rights or descriptors (xLastError()).  The next commit of any
 *                        participant writes it, and xSync() does when the cause is gone.  Other participants
 *                        get 200 ms to do it first.
 *        ETIMEDOUT       rolled back; only with XAC_OPT_WAIT_MS
 *        XAC_EUNCERTAIN  do not repeat it yet.  With XAC_OPT_WAIT_MS: committed, another process is still syncing the log,
 *                        xSync() tells the result.  Or the node leads its group no more: it stays or is lost, xFate() tells
 *      Errors: XAC_ENOINIT; XAC_ENOTXN; XAC_EFORKED (rule 9); XAC_EINQUERY (the innermost is a query).
 */
XAC_API int xac_end(void);

/*
 * Ask whether the running transaction has failed already (Thesis 2.3).  XAC_FAILED is
 * certain.  After XAC_PENDING the transaction may still fail.  Under XAC_POLICY_OPTIMISTIC
 * the call looks at every page that the transaction has touched.
 *
 * ret  XAC_PENDING, XAC_FAILED; XAC_ENOINIT, XAC_ENOTXN, XAC_EFORKED; XAC_ECUTOFF in a query that has
 *      been cut off, see xac_end_query().
 */
XAC_API int xac_validate(void);

/*
 * Begin a query, a read-only transaction on the snapshot of this moment.  It never
 * conflicts and never aborts.  Inside a transaction it is a part of that one.
 *
 * ret  as xac_begin(); a query in a query is legal.
 */
XAC_API int xac_begin_query(void);

/*
 * End the innermost query.
 *
 * A query may be cut off if the program has set XAC_OPT_READER_LIMIT: then its state is not kept any
 * more, and what it loads is not to be relied on, but it goes on to its end.  From its next trap
 * on, a page that traps shows zeros; a page that it has read before shows what it showed then, or
 * zeros, and with XAC_ENGINE_PORTABLE a newer state.  xValidate() and announcing a page tell at
 * once, the end tells in any case.  A query that is short enough, begun anew, sees the newest
 * state.
 *
 * ret  0; XAC_ENOINIT; XAC_ENOTXN (the innermost is no query); XAC_EFORKED; XAC_ECUTOFF: the
 *      query has been cut off, and is over; in durable
 *      environments XAC_EPOISONED, XAC_ENOTDURABLE, XAC_EUNCERTAIN: some of what the query
 *      has read is not on disk, or not yet; or, in a group, perhaps not on a majority of the nodes.
 */
XAC_API int xac_end_query(void);

/*
 * Announce an access to the page at `addr`, which saves the trap (Thesis 2.3).  It is only
 * a hint: the worst effect of a wrong one is an unnecessary conflict.  Afterwards the page
 * may also be given to system calls.  Outside a transaction it does nothing.
 *
 * in   addr    any address inside a segment.
 * in   access  XAC_READ or XAC_READ_WRITE; in a query XAC_READ only.
 * ret  0; EINVAL; XAC_ENOINIT; XAC_ENOTMAPPED; XAC_EINQUERY; XAC_ECUTOFF, see xac_end_query().
 */
XAC_API int xac_set_page_access(void *addr, int access);

/*
 * Recover the environment in directory `path`: verify the log, bring every file that
 * was mapped to the state after the last committed transaction, and leave an empty
 * log.  If it is killed at any point, it can be run again.  xInit() does this by itself.
 *
 * ret  0 (also when there was nothing to do); EINVAL; XAC_ENOTENV; XAC_ELIVE;
 *      XAC_ELOCKLOST, XAC_EDAMAGED, XAC_EFOREIGN, XAC_EVERSION, XAC_EPAGESIZE,
 *      XAC_EREPLACED, XAC_ECOPY, XAC_EINUSE, XAC_EFILESYSTEM; errno values of the file
 *      system.  After an error of the log nothing has been written.
 */
XAC_API int xac_recover(const char *path);

/*
 * Write what was committed to the mapped files, as far as running transactions allow, and
 * sync them.  This makes recovery shorter and releases log files.  The library does it by
 * itself when log or versions have grown by XAC_OPT_CHECKPOINT_BYTES.
 *
 * ret  0; XAC_ENOINIT; XAC_EINTXN; XAC_EPOISONED; ENOSPC and other errno values: all
 *      commits are still safe in the log; XAC_EREPLACED and errno values for a file that
 *      cannot be reached: all other files have been brought up to date.
 */
XAC_API int xac_checkpoint(void);

/*
 * Wait until everything is on disk that this process has committed, and all that others
 * committed before.  It is meant for XAC_OPT_SYNC_DELAY_MS.  It may also be called inside a
 * transaction, which it does not affect.
 *
 * ret  0, at once in an environment that is not durable; XAC_EPOISONED; XAC_ENOTDURABLE
 *      (see xend); XAC_ENOINIT.
 */
XAC_API int xac_sync(void);

/*
 * Name the log files that recovery no longer needs.  From the first call on the environment
 * does not use them again (XAC_OPT_LOG_RECYCLE); the caller removes them.  Make the first
 * call before the first backup.
 *
 * out  names  array of *count path names, one block to free(3); NULL if none.
 * out  count  number of names.
 * ret  0; EINVAL (NULL argument); XAC_ENOINIT; ENOMEM and other errno values.
 */
XAC_API int xac_archive(char ***names, size_t *count);

/* ---- Our additions ---------------------------------------------------------------- */

/*
 * Copy the environment to directory `dir` while others keep committing.
 *
 * The copy holds the mapped files, also those of earlier runs that the environment
 * remembers, and as much log as recovery needs.  It is the state of one moment during the
 * call: everything that was committed before the call is in it.  It recovers like any
 * other environment, by xrecover(1) or by the first xInit() in it.  Mapped files that lie
 * outside the environment's directory are copied to its directory xac-outside; the user
 * moves them to their place.  With log files that have been archived since, the copy can
 * be restored to a later moment (xrecover --until).
 *
 * in   dir  made if it is missing; otherwise it must be empty.
 * ret  0; EINVAL; XAC_ENOINIT; XAC_EINTXN; XAC_EPOISONED; ENOTSUP (not durable); EEXIST
 *      (not empty); ENOSPC and other errno values: what has been copied is not an
 *      environment, and the caller removes it.
 * No lock is held while copying.  xArchive() does not name files that an unfinished copy
 * needs.
 */
XAC_API int xac_backup(const char *dir);

/*
 * Back up to directory `dir` what has changed since the backup in directory `base`, while others
 * keep committing: an increment.
 *
 * The base is a backup that xBackup() has made, or itself such an increment.  It may have been moved
 * to any place, but it must not have been recovered or rolled forward.  A full backup and the
 * increments that follow, each of the one before it, are made into a backup of the moment of the last
 * one by xbackup(1) --restore.
 *
 * Only pages that have changed are copied, and as much log as recovery needs.  They are read
 * from the log if the environment has been in use without a break since the base and the log
 * since then is still there; else the files are read, but for pages whose checksum the environment
 * keeps (XAC_OPT_PAGE_CHECKSUMS), and compared with checksums that the base has.  If
 * a file was written by other means than libxac, while somebody had it mapped, the log does not tell
 * of it.
 *
 * in   dir   made if it is missing; otherwise it must be empty.
 * in   base  directory of the backup before
 * ret  0; as xBackup(), and XAC_ENOTENV (the base is no backup, or was not finished, or has
 *      been recovered); XAC_EFOREIGN (it is one of another environment); XAC_EDAMAGED (its list of
 *      pages is damaged); XAC_EVERSION: make a full backup.
 * No lock is held while copying.
 */
XAC_API int xac_backup_since(const char *dir, const char *base);

/* Text for an error code or an outcome; never NULL, static storage. */
XAC_API const char *xac_strerror(int code);

/*
 * Text about the latest failure of a libxac call in this thread, for example
 * "xac-log.00000003: damaged at offset 81920: checksum"; empty if no call has failed.  It
 * belongs to the thread and is valid until its next call that fails.
 */
XAC_API const char *xac_last_error(void);

/*
 * Roll back: the outermost xend() will return XAC_ABORTED, or an errno value if there was
 * no room too.  Until then the transaction goes on and sees the same snapshot.
 *
 * ret  0; XAC_ENOINIT; XAC_ENOTXN; XAC_EINQUERY (a query has nothing to roll back).
 */
XAC_API int xac_abort(void);

/*
 * Announce accesses to all pages of a range, as setPageAccess() does for one.  Afterwards,
 * until the transaction ends or the next savepoint or roll-back (xSavepoint), the range may be
 * given to read(2), write(2) and other system calls.
 *
 * in   addr, length  bytes, inside one segment; length at least 1
 * in   access        XAC_READ or XAC_READ_WRITE; in a query XAC_READ only.
 * ret  as xac_set_page_access().
 */
XAC_API int xac_set_range_access(void *addr, size_t length, int access);

/*
 * Run a function as a transaction, and again as long as others make it abort.  Between the
 * attempts it waits as xac_set_backoff() says.  Inside a transaction the function is a part
 * of that one and runs once, behind a savepoint (xSavepoint): if it fails, only what it has done
 * is rolled back, and the transaction goes on.
 *
 * in   fn   called with arg; may run several times, so it must not keep results of a run
 *           that failed.  It returns 0 to commit, another value to roll back and give up.
 *           A C++ exception, pthread_exit() and cancellation may leave it; then the
 *           transaction is rolled back, likewise.  longjmp() must not leave it (rule 4).
 * ret  0: committed (nested: done); what fn returned if not 0; XAC_ABORTED: fn has called
 *      xAbort() and returned 0; XAC_FAILED: nested, and the outermost will abort; errors of
 *      xbegin() and xend(); XAC_EINTXN: fn began a transaction and did not end it, all is
 *      rolled back; nested, EINVAL: fn has released a savepoint from outside of it, or rolled back to
 *      one; ENOMEM and other errno values: no room for the savepoint, or not all could be rolled back,
 *      and the outermost will abort.  fn's own results should be different from these.
 */
XAC_API int xac_transact(int (*fn)(void *arg), void *arg);

/*
 * Choose how xTransact() waits before another attempt, in all threads of the process.  Each
 * new pair of fn and arg takes a few bytes, which are never freed.
 *
 * in   fn   called with arg and the number of attempts so far, from 1.  NULL is the
 *           default: it first gives up the processor, later it sleeps a random time; the
 *           bound of this time doubles up to 10 ms.  xac_backoff_none() does not wait.
 * ret  0; ENOMEM.
 */
XAC_API int xac_set_backoff(void (*fn)(void *arg, unsigned attempts), void *arg);

/* A back-off that does not wait. */
XAC_API void xac_backoff_none(void *arg, unsigned attempts);

/* Set an option of xac_options.h.
   ret 0; EINVAL (unknown option, value out of range); EBUSY (too late for it); XAC_EINTXN.  */
XAC_API int xac_set_option(int option, uint64_t value);

/*
 * Put the log into another directory, for example on a disk of its own (Thesis 4.3): its
 * segments and the data files of large transactions.  All else stays with the environment.
 *
 * Call it before xInit().  If the environment has no log yet, xInit() makes the directory if
 * it is missing, and the environment remembers it: later calls of xInit(), and the tools,
 * find it without help.  If the log already lies in another directory, and this directory
 * has been moved as a whole, the call says where it is now.  A log that lies with its
 * environment stays there.  One directory belongs to one environment.
 *
 * in   path  copied; NULL: no directory is asked for, as at the start
 * ret  0; EBUSY: after xInit(); EINVAL: empty, or has a newline; ENAMETOOLONG; ENOMEM.
 * xInit() then returns ENOENT: the directory does not exist or has no mark of a log
 * directory (is its disk mounted?); XAC_EFOREIGN: it belongs to another environment; EINVAL:
 * the log lies with the environment; EBUSY: those that are attached use another directory.
 */
XAC_API int xac_set_log_directory(const char *path);

/*
 * Be told how far a recovery is, by xInit(), xac_open() or xRecover() of this process.  It may take
 * long after a crash: it reads and redoes the log since the last checkpoint.
 *
 * in   fn   called with arg, the bytes of log that are done and how many there are, by the thread
 *           that has made the call; many times in a second while log is read.  It must not call
 *           the library, and must not leave by longjmp() or an exception.  NULL: nobody is told.
 */
XAC_API void xac_set_recovery_progress(void (*fn)(void *arg, uint64_t done,
                                                  uint64_t total),
                                       void *arg);

/* ---- Allocator --------------------------------------------------------------------- */

/*
 * A heap inside a mapped segment.  It lies in the segment itself and changes with the
 * running transaction: an abort undoes allocations, a commit makes them as durable as the
 * data.  A segment used as a heap belongs to the allocator as a whole.  The program touches
 * only what it has allocated, and the root area.
 *
 * A segment that is all zero bytes becomes a heap with the first xMalloc() or xRoot().  One
 * that holds other bytes is never used as a heap.  When the file is mapped longer than
 * before, the heap uses the new space as soon as it needs it, if it is zero bytes.
 * Processes that still map less of it go on with the part that they map.
 *
 * Processes and threads that allocate at the same time normally get memory from different
 * pages and do not conflict; the same is true for frees.  Allocations in one page conflict
 * like other data.  An allocation of up to one eighth of the page size, and its free, change
 * one page, the one that the memory is in.
 *
 * A heap may contain ordinary pointers.  They are valid where the segment is mapped at its
 * remembered address (xMmap, XAC_SAME_ADDRESS).  If it may be mapped elsewhere, and in views
 * of threads, use distances from its base.
 */

#define XAC_ROOT_SIZE 256 /* bytes of the root area */

/*
 * Allocate memory in a segment, inside a transaction.
 *
 * in   base  start of a mapped segment.
 * in   size  bytes; 0 counts as 1.
 * ret  16-byte aligned memory, its contents undefined, the caller's until xFree(); or
 *      NULL, and errno is
 *        ENOMEM  no room in the segment
 *        EINVAL  base is not the start of a segment; the segment is neither a heap nor all
 *                zero bytes; it has less than 4 pages
 *        EPERM   not inside a transaction, or inside a query, or no xInit() yet
 *        EIO     the heap is damaged, or of another version or page size
 *      xLastError() says more.
 */
XAC_API void *xac_malloc(void *base, size_t size);

/*
 * Free memory that came from xMalloc() on the same segment, inside a transaction.
 *
 * in   p  the address, or NULL: nothing happens.
 * ret  0; EINVAL: no allocation begins there, if that can be seen, or it is free
 *      already; XAC_ENOINIT, XAC_ENOTXN, XAC_EINQUERY, XAC_ENOTMAPPED, XAC_EFORKED;
 *      XAC_EDAMAGED, XAC_EVERSION, XAC_EPAGESIZE.
 */
XAC_API int xac_free(void *base, void *p);

/*
 * Allocate aligned memory in a segment, inside a transaction.  An alignment above 16 takes at
 * least an eighth of a page.
 *
 * in   alignment  bytes; a power of two, at most the page size.
 * ret  as xMalloc(), so aligned, and to 16 bytes; EINVAL also: not such an alignment.
 */
XAC_API void *xac_aligned_alloc(void *base, size_t alignment, size_t size);

/*
 * Make an allocation larger or smaller, inside a transaction.  It keeps its contents, as far as
 * they fit, and may get another address.  An alignment above 16 is then lost.
 *
 * in   p     from xMalloc() on the same segment, or NULL: as xMalloc().
 * in   size  bytes; 0 counts as 1.
 * ret  as xMalloc(); EINVAL also: no allocation begins at p.  After NULL the allocation is still
 *      there, as it was.
 */
XAC_API void *xac_realloc(void *base, void *p, size_t size);

/*
 * How many bytes of an allocation the program may use: what it asked for, or more.  Inside a
 * transaction or a query.
 *
 * ret  bytes; 0 if p is NULL, or if errno is set as by xMalloc(), EINVAL also: no allocation
 *      begins at p.
 */
XAC_API size_t xac_usable_size(void *base, const void *p);

/*
 * The root area: XAC_ROOT_SIZE bytes of the heap that belong to the program, zero at first.
 * From there it finds its data again.  Call it inside a transaction or a query; a query does
 * not make a heap of a segment of zero bytes.
 *
 * ret  64-byte aligned address; or NULL and errno as for xMalloc().
 */
XAC_API void *xac_root(void *base);

/*
 * Hash bytes, for hash tables in a heap: the same in each process, version of the library and
 * machine.  It is XXH3 with 64 bits and seed 0, which does not resist an attacker who chooses keys.
 * May be called at any time.
 */
XAC_API uint64_t xac_hash(const void *data, size_t length);

/* What xHeapCheck() found; bytes == bytes_used + bytes_free + bytes_own. */
struct xac_heap_totals {
    uint64_t bytes;       /* of the heap, which may be shorter than the segment         */
    uint64_t bytes_used;  /* in allocations, sizes rounded up as they are               */
    uint64_t bytes_free;  /* available, perhaps only for certain sizes                  */
    uint64_t bytes_own;   /* headers, directory, gaps                                   */
    uint64_t allocations; /* number                                                     */
    uint64_t
        largest_free; /* bytes: the largest allocation that fits in one piece       */
};

/*
 * Check a whole heap: each page belongs to one thing, nothing overlaps, all counts and bits
 * are right, free space is merged.  Call it inside a transaction or, better, a query.  It
 * reads all of the heap's own data.
 *
 * out  out   filled in if the heap is right (all 0 for a segment of zero bytes); may be NULL.
 * in   size  sizeof *out, see xac_stats.h; ignored if out is NULL.
 * ret  0; XAC_EDAMAGED, and xLastError() tells the first violation; errors as xFree().
 */
XAC_API int xac_heap_check(void *base, struct xac_heap_totals *out, size_t size);

/* ---- Thesis names ----------------------------------------------------------------- */

#ifndef XAC_NO_SHORT_NAMES
# define NONDURABLE XAC_NONDURABLE
# define DURABLE    XAC_DURABLE
# define COMMITTED  XAC_COMMITTED
# define ABORTED    XAC_ABORTED
# define PENDING    XAC_PENDING
# define FAILED     XAC_FAILED
# define READ       XAC_READ
# define READ_WRITE XAC_READ_WRITE

XAC_API int xInit(const char *path, int flags);
XAC_API int xShutdown(void);
XAC_API void *xMmap(const char *name, size_t length);
XAC_API int xMunmap(const char *name);
XAC_API void *xMmapAt(const char *name, uint64_t offset, size_t length, int flags);
XAC_API void *xMremap(void *base, size_t length, int flags);
XAC_API int xMunmapAt(void *base);
XAC_API int xForget(const char *name);
XAC_API int xRemove(const char *name);
XAC_API int xRename(const char *from, const char *to);
XAC_API void *xView(void *base);
XAC_API int xUnview(void *view);
XAC_API int xbegin(void);
XAC_API int xend(void);
XAC_API int xValidate(void);
XAC_API int xbeginQuery(void);
XAC_API int xendQuery(void);
XAC_API int setPageAccess(void *addr, int access);
XAC_API int xRecover(const char *path);
XAC_API int xCheckpoint(void);
XAC_API int xSync(void);
XAC_API int xArchive(char ***names, size_t *count);
XAC_API int xBackup(const char *dir);
XAC_API int xBackupSince(const char *dir, const char *base);
XAC_API const char *xStrerror(int code);
XAC_API const char *xLastError(void);
XAC_API int setRangeAccess(void *addr, size_t length, int access);
XAC_API int xTransact(int (*fn)(void *arg), void *arg);
XAC_API int xAbort(void);
XAC_API int xSetOption(int option, uint64_t value);
XAC_API int xSetLogDirectory(const char *path);
XAC_API void xSetRecoveryProgress(void (*fn)(void *arg, uint64_t done, uint64_t total),
                                  void *arg);
XAC_API void *xMalloc(void *base, size_t size);
XAC_API int xFree(void *base, void *p);
XAC_API void *xAlignedAlloc(void *base, size_t alignment, size_t size);
XAC_API void *xRealloc(void *base, void *p, size_t size);
XAC_API size_t xUsableSize(void *base, const void *p);
XAC_API void *xRoot(void *base);
XAC_API int xHeapCheck(void *base, struct xac_heap_totals *out, size_t size);
#endif

#ifdef __cplusplus
}
#endif

#endif /* XAC_H */
