/* SPDX-License-Identifier: MIT */
/*
 * xac.h -- libxac: transactions on memory-mapped files.
 *
 * A program maps a file and gets a pointer.  Its plain loads and stores between
 * xbegin() and xend() are one serializable transaction, across processes, durable
 * if asked for, and recovered after a crash.
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
 * ("Thesis" below), chapter 2; what it leaves open is settled here.
 *
 * CALLING RULES
 *   (1) xInit() comes before every other call, xShutdown() ends the use.  A process
 *       uses one environment at a time.
 *   (2) A process runs one transaction at a time, which belongs to the thread that
 *       began it; and besides one for each thread that has views of its own (xView).
 *   (3) The bytes of a mapped segment may be touched only between xbegin()/xend() or
 *       xbeginQuery()/xendQuery().  An access outside, behind a mapping's end or after
 *       xMunmap(), and a store in a query, stop the program (SIGABRT) with file and offset.
 *   (4) Every begin is paired with its end; control leaves a transaction no other way,
 *       but xTransact()'s function by an exception.  What is left open is rolled back and
 *       named on standard error by its thread's exit(), by the end of that thread, and, if
 *       longjmp() has left xTransact(), by the thread's next begin or xend(), where it can be.
 *       A pair of xbegin() and xend() that is left cannot be told from nesting.
 *   (5) A signal handler must not call any function here, nor touch a segment; who
 *       touches one has SIGSEGV and SIGBUS unblocked, or the system kills it.  The
 *       program's own handlers of these two are installed before xInit(), or between
 *       transactions: the next begin puts the library's in front, which calls the
 *       program's for all other faults.  In a loop of short transactions it may be one of
 *       the next 16 begins; a transaction that touches a new page before that is killed.
 *   (6) System calls do not fault pages in: read(fd, segment, n) fails with EFAULT on
 *       a page that the transaction has not touched: first that, or setPageAccess().
 *   (7) A mapped file must not be changed, truncated or replaced behind the library's
 *       back while it is mapped, nor renamed between a crash and the recovery.
 *   (8) The library's descriptors are the library's: they have high numbers and are
 *       closed by exec().  A program that closes them all between transactions (as daemons
 *       do) may go on, and no byte goes to files that get the same numbers: they are
 *       opened again by name.  Where that is not possible calls fail with XAC_EDESCRIPTOR,
 *       xend() with XAC_ENOTDURABLE, and the program is stopped when it touches a page that
 *       cannot be shown.  Nobody else is disturbed.
 *   (9) fork() is allowed at any time.  The child is a new participant with the same
 *       segments; a transaction that was open belongs to the parent only, and the
 *       child's xend() for it returns XAC_EFORKED.
 *
 * MEMORY MODEL (Thesis 2.2)
 *   Committed transactions are serializable.  Every transaction, one that is going
 *   to abort included, sees one consistent snapshot.  A transaction aborts only at
 *   its xend().  On an abort the segments are as if it had never run; local variables
 *   keep what it stored in them.
 *
 * RETURN VALUES
 *   Functions return 0 or a nonzero error code: a positive errno value or a negative
 *   XAC_E... code.  xStrerror() explains a code, xLastError() adds the particulars
 *   (file, offset, reason) of this thread's latest failure.  A call that fails has
 *   changed nothing unless its comment says otherwise.
 *
 * NAMES
 *   Each function exists as xac_name() and under its Thesis name xName().  Define
 *   XAC_NO_SHORT_NAMES before the include to leave out the Thesis names and the
 *   constants without prefix (READ, PENDING, ...), which other headers also use.
 */
#ifndef XAC_H
#define XAC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h> /* MAP_FAILED */

#include "xac_codes.h"   /* flags, outcomes, error codes                              */
#include "xac_options.h" /* options of xSetOption()                                   */
#include "xac_stats.h"   /* why a transaction aborted, counters; structures' sizes     */

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
 * The version of the library in use, which may be later than the header's: as text, "0.2.0", in
 * static storage, and as a number.  At any time, before xInit() too.
 */
XAC_API const char *xac_version(void);
XAC_API unsigned xac_version_number(void);

/* ---- The Thesis' interface (Thesis tables 2.1 and sections 2.1 to 2.3) ------------ */

/*
 * Open the environment in directory `path`, creating it if missing (the last path
 * component only).  Joins who is attached; recovers first if the last users did not shut down.
 *
 * XAC_READONLY: queries only; nothing is created, recovered or written (XAC_EREADONLY; xMmap():
 * EROFS).  Who may write directory and shared memory, where somebody is attached, sees the newest
 * commits; others the state at xInit(), on private copies of all mapped files ($TMPDIR or /tmp).
 * in   path   directory for the log and control files; copied.
 * in   flags  XAC_NONDURABLE, XAC_DURABLE or XAC_READONLY.
 * ret  0, or
 *        EINVAL          path NULL or empty, unknown flag
 *        XAC_EFILESYSTEM a network file system (XAC_ALLOW_NETWORK_FS=1 allows it)
 *        EACCES, EROFS   directory not writable for this user
 *        ENOTDIR         path is not a directory
 *        ENOSPC          no room, also in the directory, for the control region or the log
 *        ENOTSUP         valgrind lacks an option, which xLastError() names
 *        XAC_EALREADY    the process has an environment open
 *        XAC_EMODE       live participants use the other durability mode
 *        XAC_EVERSION    control file or log of another format version
 *        XAC_EFOREIGN    a log of another environment lies in the directory
 *        XAC_EPAGESIZE   environment of a machine with another page size
 *        XAC_EDAMAGED    the log is missing, or damaged where it had been synced: see xrecover(1)
 *        XAC_EREPLACED   a file that the log speaks of is missing or another one
 *        XAC_ECOPY       a copy of an environment; log or files lie elsewhere: see xrecover(1)
 *        XAC_EINUSE      another environment has mapped such a file since the crash
 *        XAC_ENOTSHARED  live participants whose shared memory cannot be reached
 *        XAC_ENAMESPACE, XAC_ELOCKLOST  live participants are in another PID namespace; somebody
 *                        has removed xac.lock: nobody joins before they have ended
 *        XAC_ENOTENV     a log, but no xac.master; with XAC_READONLY: no environment
 *        XAC_READONLY: EAGAIN (log reused meanwhile); ENOTSUP (no full images)
 */
XAC_API int xac_init(const char *path, int flags);

/*
 * Close the environment: unmap all segments, detach; the last participant out
 * checkpoints, so that the mapped files hold everything that was committed.
 *
 * ret  0; XAC_ENOINIT; XAC_EINTXN; EBUSY if another thread has a transaction open, or views
 *      of its own (xView); XAC_EPOISONED or an errno value if the checkpoint failed (the
 *      process is detached all the same, and the next xInit() recovers).
 */
XAC_API int xac_shutdown(void);

/*
 * Map the first `length` bytes of file `name` as a transactional segment.
 *
 * The file is created if missing and extended with zero bytes if shorter; nobody who has
 * mapped less of it is disturbed by that.  Several files may be mapped, and a file several
 * times; one transaction may touch all of them.  The segment is shared by all processes
 * that map the file in this environment.  The environment remembers where a file was
 * mapped first and maps it there again, in every process and every run, whenever those
 * addresses are free, so that ordinary pointers inside a segment stay valid; a program
 * that relies on it says XAC_SAME_ADDRESS to xMmapAt().
 *
 * in   name    path, relative to the current directory or absolute; copied.
 * in   length  bytes; a positive multiple of the system page size.
 * ret  page-aligned base address of `length` bytes, owned by the library until
 *      xMunmap(); or MAP_FAILED, and errno is
 *        EINVAL   name NULL, empty, or of the environment's own files (xac.*, xac-* in its
 *                 directory), no regular file; length 0 or not a multiple of the page size
 *        EPERM    no xInit() yet, or inside a transaction
 *        EFBIG    more pages than a file can have (2^36), or bytes (2^63)
 *        ESTALE   the file is not the one that others have mapped (replaced)
 *        EBUSY    it belongs to another environment, which xLastError() names: one that has
 *                 it mapped, or has crashed and is still to be recovered
 *        EIO      the environment is poisoned
 *        others   from open(2), ftruncate(2), fsync(2), mmap(2)
 */
XAC_API void *xac_mmap(const char *name, size_t length);

/*
 * Map a part of a file, as xMmap() maps its beginning.
 *
 * The parts that a process has mapped may overlap: each page is the same in all of them,
 * within a transaction too (a store through one address is seen by the next load through
 * another).  A store to a page that is mapped several times costs a little more.  Each
 * part belongs at its distance from where the file's first byte is remembered to be, so
 * pointers hold from one part to another; the second mapping of a page must lie elsewhere.
 * The allocator's segment is a mapping, wherever in the file it begins.
 *
 * in   offset  bytes, of the first byte mapped within the file; a multiple of the system
 *              page size.  The file is extended to offset + length if shorter.
 * in   flags   0, or XAC_SAME_ADDRESS: fail rather than map it where pointers stored in
 *              it would not hold.  If the file has never been mapped before, any
 *              address is the right one, and is remembered.
 * ret  as xMmap(), and
 *        EINVAL      offset not a multiple of the page size, unknown flag
 *        EADDRINUSE  XAC_SAME_ADDRESS, and the addresses are taken; xLastError() says by
 *                    what (a line of /proc/self/maps, see proc(5))
 */
XAC_API void *xac_mmap_at(const char *name, uint64_t offset, size_t length, int flags);

/*
 * Make a mapping longer or shorter.
 *
 * If it is to reach beyond the end of the file, the file is extended with zero bytes
 * first, durably so in a durable environment.  A file never becomes shorter.  Other
 * mappings of the file, here and elsewhere, stay as they are.
 *
 * in   base    start of a mapping of this process, outside transactions.
 * in   length  bytes; a positive multiple of the system page size.
 * in   flags   0: the address stays; XAC_MAY_MOVE: it may change for want of room.
 * ret  base address from now on; or MAP_FAILED, nothing has changed (but the file may be
 *      longer), and errno is
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
 *      xMunmapAt(); EBUSY if another thread has a transaction open in the process's
 *      mappings, or any thread a view of the segment (xView).
 */
XAC_API int xac_munmap(const char *name);

/*
 * Unmap the segment that starts at `base`.
 *
 * ret  0; XAC_ENOINIT; XAC_EINTXN; XAC_ENOTMAPPED; EBUSY: threads have views of it.
 */
XAC_API int xac_munmap_at(void *base);

/*
 * Forget a file that nobody maps, before it is moved away or replaced: recovery does not ask
 * for it.  It is brought up to date first, if it is there.  (Of one that is removed after the
 * last xMunmap() the next checkpoint finds it out.)  ret 0, also if it is not known; EBUSY: it
 * is mapped, or an older state of it is being read; EINVAL; XAC_EINTXN; as xCheckpoint().
 */
XAC_API int xac_forget(const char *name);

/*
 * A view of a segment for the calling thread alone.
 *
 * The threads of a process share its mappings, so that only one of them at a time can
 * have a transaction open.  A thread that asks for views of its own has transactions of
 * its own, which run beside those of all other threads and processes and conflict with
 * them by the same rules.  From the first xView() on its transactions concern its own
 * views only: it must touch segments through the addresses returned here, and other
 * threads must not.  Ordinary pointers stored in a segment hold for the process's
 * mapping; across views use offsets from the base.
 *
 * in   base  of a segment that the process has mapped by xMmap(), outside transactions
 * ret  address of the thread's view of all of it, the same at each call; MAP_FAILED,
 *      errno is EPERM (no xInit(), or inside a transaction), EINVAL (no segment starts
 *      at base), ENOMEM, EAGAIN (no thread-specific key), EIO (environment poisoned).
 *
 * Views end with the thread (an open transaction is aborted), or by xUnview().  While
 * they last, xMunmap() of the segment and xShutdown() by another thread fail with EBUSY.
 */
XAC_API void *xac_view(void *base);

/*
 * Give up the calling thread's own view.  With its last one the thread goes back to the
 * transactions and mappings that the process shares.
 *
 * in   view  as returned by xView(), outside transactions
 * ret  0; XAC_ENOINIT; XAC_EINTXN; XAC_ENOTMAPPED.
 */
XAC_API int xac_unview(void *view);

/*
 * Begin a transaction, or a nested one, which is subsumed: it is a part of the
 * outermost transaction and takes effect or not with it.
 *
 * ret  0; XAC_ENOINIT; XAC_EINQUERY inside a query; XAC_EPOISONED; EBUSY if another
 *      thread of the process has a transaction open; ENOMEM, ENOSPC; XAC_EDESCRIPTOR.
 */
XAC_API int xac_begin(void);

/*
 * End the innermost transaction.
 *
 * ret  outermost: XAC_COMMITTED; XAC_ABORTED, rolled back, and another attempt may succeed
 *      (xConflict() says why; a retry keeps its age, so that it cannot starve); or an errno
 *      value, rolled back, and another attempt would fail, too, unless something changes:
 *      ENOSPC, EDQUOT, ENOMEM (no room), EIO (a file could not be read) and others.
 *      xLastError() says for what; a checkpoint has been tried to make room; the age is given
 *      up.  So `while ((rc = xend()) == ABORTED)` ends.  Nested: XAC_PENDING or XAC_FAILED.
 *      Errors: XAC_ENOINIT, XAC_ENOTXN, XAC_EFORKED (see rule 9), XAC_EINQUERY (the
 *      innermost is a query), XAC_EPOISONED (the commit may or may not have reached
 *      the disk: xrecover decides), XAC_ENOTDURABLE (committed, do not repeat it; this
 *      process could not write it to the log, see xLastError(): its limits, rights or
 *      descriptors.  The next commit of any participant writes it, and so does xSync()
 *      once the cause is gone.  If others are attached, they get 200 ms to do so first).
 *      In a durable environment XAC_COMMITTED is returned only after everything that
 *      the transaction wrote and read is on disk.  With XAC_OPT_WAIT_MS also ETIMEDOUT
 *      (rolled back) and XAC_EUNCERTAIN (committed, do not repeat it; xSync() tells).
 */
XAC_API int xac_end(void);

/*
 * Ask whether the running transaction has failed already (Thesis 2.3).  The error is
 * one-sided: XAC_PENDING may turn out wrong, XAC_FAILED does not.  Under
 * XAC_POLICY_OPTIMISTIC this looks at every page that the transaction has touched.
 *
 * ret  XAC_PENDING, XAC_FAILED; XAC_ENOINIT, XAC_ENOTXN, XAC_EFORKED.
 */
XAC_API int xac_validate(void);

/*
 * Begin a query, a read-only transaction on the snapshot of this moment.  It never
 * conflicts and never aborts.  Inside a transaction it is a part of that.
 *
 * ret  as xac_begin(); a query in a query is legal.
 */
XAC_API int xac_begin_query(void);

/*
 * End the innermost query.
 *
 * ret  0; XAC_ENOINIT; XAC_ENOTXN (the innermost is no query); XAC_EFORKED;
 *      XAC_EPOISONED, XAC_ENOTDURABLE, XAC_EUNCERTAIN (durable environments: what it read
 *      did not reach the disk, or not yet).
 */
XAC_API int xac_end_query(void);

/*
 * Announce an access to the page at `addr`, which saves the trap (Thesis 2.3).  Only a
 * hint: a wrong one costs concurrency at most.  Afterwards the page may also be handed
 * to system calls.  Outside a transaction it does nothing.
 *
 * in   addr    any address inside a segment.
 * in   access  XAC_READ or XAC_READ_WRITE; in a query XAC_READ only.
 * ret  0; EINVAL; XAC_ENOINIT; XAC_ENOTMAPPED; XAC_EINQUERY.
 */
XAC_API int xac_set_page_access(void *addr, int access);

/*
 * Recover the environment in directory `path`: verify the log, bring every file that
 * was mapped to the state after the last committed transaction, and leave an empty
 * log.  May be killed at any point and run again.  xInit() does this by itself.
 *
 * ret  0 (also when there was nothing to do); EINVAL; XAC_ENOTENV; XAC_ELIVE;
 *      XAC_ELOCKLOST, XAC_EDAMAGED, XAC_EFOREIGN, XAC_EVERSION, XAC_EPAGESIZE,
 *      XAC_EREPLACED, XAC_ECOPY, XAC_EINUSE, XAC_EFILESYSTEM; errno values of the file
 *      system.  If it concerns the log nothing has been written.
 */
XAC_API int xac_recover(const char *path);

/*
 * Copy what was committed from the log to the mapped files, as far as running
 * transactions allow, and sync them; shortens recovery and lets log files go.  Runs
 * by itself when log or versions have grown by XAC_OPT_CHECKPOINT_BYTES.
 *
 * ret  0; XAC_ENOINIT; XAC_EINTXN; XAC_EPOISONED; ENOSPC and other errno values (all
 *      commits are still safe in the log); XAC_EREPLACED and errno values for a file that
 *      cannot be reached: all others have been brought up to date.
 */
XAC_API int xac_checkpoint(void);

/*
 * Wait until everything that this process has committed is on disk, and whatever others
 * committed before: for XAC_OPT_SYNC_DELAY_MS.  A transaction it is called in is no matter.
 *
 * ret  0, at once in an environment that is not durable; XAC_EPOISONED; XAC_ENOTDURABLE
 *      (see xend); XAC_ENOINIT.
 */
XAC_API int xac_sync(void);

/*
 * Name the log files that recovery no longer needs.  From the first call on the environment
 * keeps them until they are removed (XAC_OPT_LOG_RECYCLE): call it before the first backup.
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
 * The copy holds the mapped files, those of earlier runs included that the environment
 * remembers, and as much log as recovery needs: what was committed before the call is in
 * it, and of what commits meanwhile a part that some moment during the call has seen.  It
 * recovers like any other environment, by xrecover(1) or the first xInit() in it; mapped
 * files that lie outside the environment's directory are found in it, in the directory
 * xac-outside, and go wherever the user puts them after that.  With log files that have
 * been archived since, it can be restored to a later moment (xrecover --until).
 *
 * in   dir  made if missing; must be empty otherwise.
 * ret  0; EINVAL; XAC_ENOINIT; XAC_EINTXN; XAC_EPOISONED; ENOTSUP (not durable); EEXIST
 *      (not empty); ENOSPC and other errno values: what has been copied by then is no
 *      environment, and is left to be removed.
 * No lock is held while copying; xArchive() does not name what an unfinished copy needs.
 */
XAC_API int xac_backup(const char *dir);

/* Text for an error code or an outcome; never NULL, static storage. */
XAC_API const char *xac_strerror(int code);

/*
 * Particulars of the latest failure of a libxac call in this thread, for example
 * "xac-log.00000003: damaged at offset 81920: checksum".  Empty if there was none.
 * Storage of the thread, valid until its next failing call.
 */
XAC_API const char *xac_last_error(void);

/*
 * Roll back: the outermost xend() will return XAC_ABORTED, or an errno value if something
 * was lacking besides.  The transaction goes on until then and sees what it saw.
 *
 * ret  0; XAC_ENOINIT; XAC_ENOTXN; XAC_EINQUERY (a query has nothing to roll back).
 */
XAC_API int xac_abort(void);

/*
 * Announce accesses to all pages of a range, as setPageAccess() does for one.  Afterwards
 * the range may be handed to read(2), write(2) and other system calls until the
 * transaction ends.
 *
 * in   addr, length  bytes, inside one segment; length at least 1
 * in   access        XAC_READ or XAC_READ_WRITE; in a query XAC_READ only.
 * ret  as xac_set_page_access().
 */
XAC_API int xac_set_range_access(void *addr, size_t length, int access);

/*
 * Run a function as a transaction, again and again while xend() returns XAC_ABORTED, waiting
 * between the attempts as xac_set_backoff() says.  Inside a transaction it is a part of that and runs
 * once.
 *
 * in   fn   called with arg; may run several times, so it must not keep results of a run
 *           that failed.  Returns 0 to commit, anything else to roll back and give up.
 *           A C++ exception, pthread_exit() and cancellation may leave it: that rolls back
 *           (nested: the outermost will abort).  longjmp() must not (rule 4).
 * ret  0 committed (nested: done); what fn returned if not 0; XAC_FAILED (nested, and the
 *      outermost will abort); errors of xbegin() and xend(); XAC_EINTXN: fn has not ended
 *      what it began, and it is rolled back.  Give fn's own results a range apart from these.
 */
XAC_API int xac_transact(int (*fn)(void *arg), void *arg);

/*
 * Choose how xTransact() waits before another attempt, in all threads of the process.  Each
 * pair of fn and arg takes a few bytes for good.
 *
 * in   fn   called with arg and the number of attempts so far, from 1; NULL for the
 *           default: give up the processor at first, then sleep a random time whose
 *           bound doubles up to 10 ms.  xac_backoff_none() tries again at once.
 * ret  0; ENOMEM.
 */
XAC_API int xac_set_backoff(void (*fn)(void *arg, unsigned attempts), void *arg);

/* A back-off that does not wait. */
XAC_API void xac_backoff_none(void *arg, unsigned attempts);

/* Set an option of xac_options.h.
   ret 0; EINVAL (unknown option, value out of range); EBUSY (too late for it); XAC_EINTXN.  */
XAC_API int xac_set_option(int option, uint64_t value);

/*
 * The log lies in another directory, on a disk of its own perhaps (Thesis 4.3): its segments
 * and the data files of large transactions; all else stays with the environment.
 *
 * Call it before xInit().  An environment that has no log yet makes the directory, if it is
 * missing, and remembers it: later calls of xInit(), and the tools, find it by themselves.
 * For an environment whose log is elsewhere already it says where that lies *now*, after
 * the directory has been moved as a whole; a log that lies with its environment stays there.
 * One directory serves one environment.
 *
 * in   path  copied; NULL: no wish, as at the start
 * ret  0; EBUSY: after xInit(); EINVAL: empty, or has a newline; ENAMETOOLONG; ENOMEM.
 * What xInit() says of it: ENOENT: not there, or without the mark of a log directory (not
 * mounted?); XAC_EFOREIGN: that of another environment; EINVAL: the log lies with the
 * environment; EBUSY: those who are attached have it elsewhere.
 */
XAC_API int xac_set_log_directory(const char *path);

/* ---- Allocator --------------------------------------------------------------------- */

/*
 * A heap inside a mapped segment, for data structures that come and go.  It lies in the
 * segment itself and changes with the running transaction: an abort undoes allocations,
 * a commit makes them as durable as the data.  A segment used as a heap belongs to the
 * allocator as a whole; the program touches what it has allocated, and the root area.
 *
 * A segment that is all zero bytes becomes a heap with the first xMalloc() or xRoot(); one
 * that holds anything else is never taken.  When the file is mapped longer than before,
 * the heap uses the new space as soon as it needs it, if that is zero bytes; others that
 * still map less go on with what they see.
 *
 * Processes and threads that allocate at the same time normally get memory from different
 * pages and do not conflict, and neither do releases; allocations of one page conflict
 * like any data.  Up to the page size divided by 8, an allocation or its release changes
 * one page, the one the memory is in.
 *
 * Addresses differ between processes and runs: what is stored inside the segment should be
 * distances from its base.
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
 *        EINVAL  base is not the start of a segment; the segment is no heap and not blank,
 *                or has less than 4 pages
 *        EPERM   not inside a transaction, or inside a query, or no xInit() yet
 *        EIO     the heap is damaged, or of another version or page size
 *      xLastError() has the words.
 */
XAC_API void *xac_malloc(void *base, size_t size);

/*
 * Free memory that came from xMalloc() on the same segment, inside a transaction.
 *
 * in   p  the address, or NULL: nothing happens.
 * ret  0; EINVAL (no allocation begins there, as far as that can be told, or it is free
 *      already); XAC_ENOINIT, XAC_ENOTXN, XAC_EINQUERY, XAC_ENOTMAPPED, XAC_EFORKED;
 *      XAC_EDAMAGED, XAC_EVERSION, XAC_EPAGESIZE.
 */
XAC_API int xac_free(void *base, void *p);

/*
 * Where a program finds its data again: XAC_ROOT_SIZE bytes of its own in the heap, zero
 * at first.  Inside a transaction or a query; in a query a blank segment stays blank.
 *
 * ret  64-byte aligned address; or NULL and errno as for xMalloc().
 */
XAC_API void *xac_root(void *base);

/* What xHeapCheck() found; bytes == bytes_used + bytes_free + bytes_own. */
struct xac_heap_totals {
    uint64_t bytes;       /* of the heap, which may be shorter than the segment         */
    uint64_t bytes_used;  /* in allocations, sizes rounded up as they are               */
    uint64_t bytes_free;  /* available, be it for allocations of certain sizes          */
    uint64_t bytes_own;   /* headers, directory, odds and ends                          */
    uint64_t allocations; /* number                                                     */
    uint64_t
        largest_free; /* bytes: the largest allocation that fits in one piece       */
};

/*
 * Prove a heap sound: every page accounted for once, no overlaps, all counts and bits as
 * they should be, free space merged.  Inside a transaction or, better, a query; reads all
 * of the heap's own data.
 *
 * out  out   filled in if the heap is sound (all 0 for a blank segment); may be NULL.
 * in   size  sizeof *out, see xac_stats.h; of no matter if out is NULL.
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
XAC_API const char *xStrerror(int code);
XAC_API const char *xLastError(void);
XAC_API int setRangeAccess(void *addr, size_t length, int access);
XAC_API int xTransact(int (*fn)(void *arg), void *arg);
XAC_API int xAbort(void);
XAC_API int xSetOption(int option, uint64_t value);
XAC_API int xSetLogDirectory(const char *path);
XAC_API void *xMalloc(void *base, size_t size);
XAC_API int xFree(void *base, void *p);
XAC_API void *xRoot(void *base);
XAC_API int xHeapCheck(void *base, struct xac_heap_totals *out, size_t size);
#endif

#ifdef __cplusplus
}
#endif

#endif /* XAC_H */
