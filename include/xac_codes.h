/* SPDX-License-Identifier: MIT */
/*
 * xac_codes.h -- flags, outcomes and error codes of libxac.  xac.h includes it and says what
 * they mean for each function.
 */
#ifndef XAC_CODES_H
#define XAC_CODES_H

/* Flags of xInit().  The participants of one environment must agree. */
#define XAC_NONDURABLE 0 /* nothing is promised after a crash                       */
#define XAC_DURABLE    1 /* a committed transaction survives a crash or power cut   */
#define XAC_READONLY   2 /* queries only; allowed in both kinds of environment      */

/* What xInit(path, XAC_READONLY) has become: `reader` in struct xac_stats. */
enum xac_reader_kind {
    XAC_READER_NONE = 0,  /* opened for transactions                                */
    XAC_READER_LIVE = 1,  /* takes part; each query sees what has been committed    */
    XAC_READER_FROZEN = 2 /* all queries see the state at xInit()                   */
};

/* Outcomes of xend() and xValidate().  No error code has the same value.  If a transaction could
   not commit because there was no room, for example, xend() returns an errno value. */
#define XAC_COMMITTED 0     /* the outermost transaction took effect                */
#define XAC_ABORTED   10001 /* the outermost transaction left no trace; try again   */
#define XAC_PENDING   10002 /* nested or running: no conflict found so far          */
#define XAC_FAILED    10003 /* nested or running: the outermost xend() will abort   */

/* Flags of xMmapAt() and xMremap(). */
#define XAC_SAME_ADDRESS 1 /* fail if the remembered addresses are not free         */
#define XAC_MAY_MOVE     2 /* use another address if there is no room at this one   */

/* Kinds of access for setPageAccess(). */
#define XAC_READ       1
#define XAC_READ_WRITE 3

/*
 * Error codes of our own.  Positive codes are errno values.
 */
enum xac_error {
    XAC_ENOINIT = -31001,     /* no xInit() before, or after xShutdown()              */
    XAC_EALREADY = -31002,    /* the process has opened this environment already      */
    XAC_ENOTXN = -31003,      /* xend() without xbegin(), and the like                */
    XAC_EINTXN = -31004,      /* not allowed inside a transaction                     */
    XAC_EINQUERY = -31005,    /* a transaction nested in a query                      */
    XAC_ENOTMAPPED = -31006,  /* no such segment, or address outside every segment    */
    XAC_EMAPPED = -31007,     /* the file is mapped several times: use xMunmapAt()    */
    XAC_EFORKED = -31008,     /* the transaction belongs to the parent process        */
    XAC_EVERSION = -31009,    /* written by another format version of the library     */
    XAC_EFOREIGN = -31010,    /* a log or control file of another environment         */
    XAC_EDAMAGED = -31011,    /* bytes that had been synced are wrong now             */
    XAC_EPAGESIZE = -31012,   /* written on a machine with another page size          */
    XAC_EPOISONED = -31013,   /* a write or sync failed; all must detach and recover  */
    XAC_EMODE = -31014,       /* participants disagree on DURABLE or NONDURABLE       */
    XAC_ELIVE = -31015,       /* the environment is in use by live processes          */
    XAC_EREPLACED = -31016,   /* the file is not the one that the log names           */
    XAC_ENOTSHARED = -31017,  /* the shared memory of live participants cannot be
                                reached: removed, or in another mount namespace      */
    XAC_ENOTENV = -31018,     /* the directory holds no environment                   */
    XAC_EINUSE = -31019,      /* the file belongs to another environment              */
    XAC_ECOPY = -31020,       /* a copy of an environment must not touch files of the
                                original                                             */
    XAC_ENAMESPACE = -31021,  /* live participants are in another PID namespace       */
    XAC_ELOCKLOST = -31022,   /* xac.lock was removed or replaced while participants
                                are attached                                         */
    XAC_EREADONLY = -31023,   /* opened for queries only                              */
    XAC_EUNTRUSTED = -31024,  /* a file of the library that another user may have made */
    XAC_EDESCRIPTOR = -31025, /* the program has closed a descriptor of the library  */
    XAC_EFILESYSTEM = -31026, /* locks on this file system can be lost               */
    XAC_ENOTDURABLE = -31027, /* committed, but not known to be on disk yet: this
                                process cannot write the log                         */
    XAC_EUNCERTAIN = -31028,  /* not known yet whether it stays: committed, and another
                                process is syncing the log, see XAC_OPT_WAIT_MS; or
                                it may be lost, since the node leads its group no more */
    XAC_ELAYOUT = -31029,  /* an object in a heap has another type or layout: xac.hpp */
    XAC_ENOSTATE = -31030, /* that state is not held: xac_snapshot.h                 */
    XAC_ECUTOFF = -31032,  /* the query was cut off: XAC_OPT_READER_LIMIT; the log that a
                              follower needs is gone: XAC_OPT_LOG_KEEP_BYTES          */
    XAC_ENOTLEADER =
        -31033, /* a standby of another environment: queries only; xship(1); or
                              a group's node that does not lead                      */
    XAC_ELOST =
        -31034 /* a state that the log does not have, and never will: xac_replication.h */
};

#endif /* XAC_CODES_H */
