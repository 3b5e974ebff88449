/* SPDX-License-Identifier: MIT */
/*
 * record.h -- what the library does to the files below a directory, written down call by
 * call, in one order for all processes.
 *
 * record_start() replaces the table of system calls (libxac/base/sys.h).  Every call that
 * changes a file, a name or a size below the root, and every sync, then leaves an event in
 * a trace in shared memory; the calls happen one after the other, so the order of the
 * events is theirs.  A sync is two events, since others may write meanwhile: at its end
 * everything is on the disk that had been written before its begin.  Programs add notes:
 * what they have been promised by then.  disk.h makes crash states of a trace.
 *
 * Child processes made after record_start() record into the same trace.  The recorder can
 * have a process die in its n-th call, or a sync fail.
 */
#ifndef XAC_TEST_RECORD_H
#define XAC_TEST_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum record_kind {
    RECORD_CREATE,     /* file ino2 under the name in directory ino                     */
    RECORD_MKDIR,      /* the same for a directory                                      */
    RECORD_WRITE,      /* len bytes at offset                                           */
    RECORD_SIZE,       /* the file has offset bytes now                                 */
    RECORD_RENAME,     /* of ino2: name, and behind its NUL the new one; directory ino  */
    RECORD_UNLINK,     /* name in directory ino                                         */
    RECORD_SYNC_BEGIN, /* of file or directory ino                                      */
    RECORD_SYNC_END,   /* offset: position of its begin in the trace                    */
    RECORD_SYNC_FAIL,  /* the same, but it failed: what it was to sync may be anywhere;
                          of one that only tells of an older failure there is an END    */
    RECORD_NOTE        /* ino, ino2, offset: the program's words                        */
};

/* One event; its bytes follow, names with their NUL.  The next one begins at the next
   multiple of 8. */
struct record_event {
    uint32_t kind;
    uint32_t len; /* bytes that follow                                                  */
    uint64_t ino, ino2;
    uint64_t offset;
};

struct record_trace;

/* A trace of at most `size` bytes, shared with child processes; freed by record_free(). */
struct record_trace *record_new(size_t size);
void record_free(struct record_trace *t);

/* Forget all events and files; the files only. */
void record_clear(struct record_trace *t);
void record_forget(struct record_trace *t);

/*
 * Record what happens below the directory `root` from now on; whatever lies there already
 * must have been announced with record_track().
 */
void record_start(struct record_trace *t, const char *root);

/* The plain system calls again, in this process. */
void record_stop(void);

/* Events are dropped, or kept again, in this process; all else stays as it is. */
void record_pause(bool is_paused);

/*
 * A file with this inode number is recorded, and the library is told, under another one.
 * (A crash state is made of new files, but the log knows the numbers of the old ones.)
 */
void record_track(struct record_trace *t, uint64_t real_ino, uint64_t ino);

/* New files get numbers from this one on, if they would not anyway. */
void record_reserve(struct record_trace *t, uint64_t ino);

void record_note(uint64_t a, uint64_t b, uint64_t c);

/* The number of the root. */
uint64_t record_root(const struct record_trace *t);

/* Event at a position, NULL at the end; the position behind it. */
const struct record_event *record_at(const struct record_trace *t, uint64_t position);
uint64_t record_next(const struct record_event *ev, uint64_t position);

/* Whether the trace was too small. */
bool record_is_full(const struct record_trace *t);

/*
 * In this process: SIGKILL in its n-th recorded call from now, a write half done.
 *
 * in   together  all other processes die in their next recorded call, too, until
 *                record_revive()
 */
void record_die_at(uint64_t n, bool together);

/* Nobody need die, and no failed sync is told of, any more. */
void record_revive(struct record_trace *t);

/* In this process: the n-th sync from now fails with this errno, that of a file or of a
   directory; others that run already are told at their next sync of the same, with EIO. */
void record_fail_sync(uint64_t n, int error);

/* In this process, which begins here: syncs, and the making of files, take up to this long,
   microseconds, at random. */
void record_slow(uint64_t sync_us, uint64_t seed);

/*
 * Write a trace to a file, read it back, with what belongs to it: the root and two numbers.
 * ret  false with errno.
 */
bool record_save(const struct record_trace *t, const char *path, const char *root,
                 unsigned a, uint64_t b);
bool record_load(struct record_trace *t, const char *path, char root[400], unsigned *ap,
                 uint64_t *bp);

#endif /* XAC_TEST_RECORD_H */
