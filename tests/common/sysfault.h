/* SPDX-License-Identifier: MIT */
/*
 * sysfault.h -- the n-th system call of the library does something else: the process
 * dies in it, or it fails.  For tests that are linked with the internals.
 */
#ifndef XAC_TEST_SYSFAULT_H
#define XAC_TEST_SYSFAULT_H

#include <stdbool.h>
#include <stdint.h>

enum sysfault_what {
    SYSFAULT_COUNT,    /* nothing, calls are counted                                   */
    SYSFAULT_DIE,      /* SIGKILL before call n; a write has written half of its bytes */
    SYSFAULT_FAIL,     /* call n fails                                                 */
    SYSFAULT_FAIL_ALL, /* call n and all later ones fail                               */
    SYSFAULT_SHORT,    /* write n, and all later ones, do only a part                  */
};

/* Kinds of calls: which of them count. */
enum {
    SYSFAULT_FILES = 1,  /* open, read, write, sync, truncate, rename, ...             */
    SYSFAULT_MEMORY = 2, /* mmap, mprotect, madvise                                    */
    SYSFAULT_GROW = 4,   /* fallocate                                                  */
    SYSFAULT_LOCK = 8,   /* taking and testing locks on bytes; not giving them back    */
    SYSFAULT_CLOSE = 16, /* close, munmap: done all the same when they fail            */
    SYSFAULT_EVERY = 31,
    SYSFAULT_SYNCS =
        32,             /* of files and directories; they are among the first kind, too */
    SYSFAULT_DATA = 64, /* read, write and room; the same                              */
    SYSFAULT_OPEN = 128 /* what gives a descriptor; the same                           */
};

/* What happens, when, and with which errno; installs the wrappers. */
void sysfault_arm(enum sysfault_what what, unsigned kinds, uint64_t n, int error);

/* Everything works again; counting ends. */
void sysfault_disarm(void);

/* Calls counted since sysfault_arm(). */
uint64_t sysfault_count(void);

/* Name of the call that was hit, NULL if n was not reached. */
const char *sysfault_hit(void);

#endif /* XAC_TEST_SYSFAULT_H */
