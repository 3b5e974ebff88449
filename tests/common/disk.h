/* SPDX-License-Identifier: MIT */
/*
 * disk.h -- what a power cut can leave of a recorded run (record.h).
 *
 * The disk follows a trace event by event.  Synced changes are *durable*; those made
 * since to a file, its size, or the names in a directory, is *pending*: the disk
 * may have any of it.  The rules:
 *   (1) A sector of DISK_SECTOR bytes holds its bytes as they were after some prefix of the
 *       pending writes to it, each sector after a prefix of its own: writes are lost, torn
 *       and reordered, but what one sync made durable stays.
 *   (2) A size is that after some prefix of the file's pending changes of size.  What lies
 *       within the size and was not written is zero.
 *   (3) Of a directory's pending changes any subset may be missing.  A rename is one change.
 *   (4) One sector with a pending write may hold garbage; in the log only those bytes of it
 *       that change (doc/formats.md: a repeated byte is trusted).
 *   (5) What a failed sync was to make durable stays pending, also when a later sync
 *       succeeds, until it is written again: bytes, or a name.
 * A file is there if a directory that is there has a name for it.
 */
#ifndef XAC_TEST_DISK_H
#define XAC_TEST_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

#define DISK_SECTOR 512u

/* Kinds of crash states. */
enum disk_kind {
    DISK_KEEP,     /* everything is there, as after a kill                             */
    DISK_DROP,     /* nothing pending is there                                         */
    DISK_PREFIX,   /* in order, up to some moment                                      */
    DISK_NO_DATA,  /* names and sizes, but no bytes                                    */
    DISK_NO_NAMES, /* bytes, but no names and sizes                                    */
    DISK_FILE_OLD, /* all but one file or directory                                    */
    DISK_FILE_NEW, /* one file or directory only                                       */
    DISK_SECTOR_OLD, /* all but one sector                                               */
    DISK_SECTOR_NEW, /* bytes of one sector only                                         */
    DISK_RANDOM,  /* any sectors, any names                                           */
    DISK_GARBAGE, /* the same, and one sector is garbage                              */
    DISK_KINDS
};

extern const char *const disk_kind_name[DISK_KINDS];

struct disk;
struct disk_state;

/* An empty root directory, its number in the trace. */
struct disk *disk_new(uint64_t root_ino);
void disk_free(struct disk *d);

/* Pages of the user's files (those whose names do not begin with "xac") are written as a
   whole: not torn, and no garbage in them. */
void disk_set_atomic_pages(struct disk *d, bool is_atomic);

/* What happens next; events in the order of the trace. */
void disk_follow(struct disk *d, const struct record_event *ev, uint64_t position);

/* Changes that are pending; 0: all states are the same. */
uint64_t disk_pending(const struct disk *d);

/*
 * A crash state; the same seed gives the same one.  NULL if there is none of the kind (no
 * pending write for garbage).
 */
struct disk_state *disk_crash(const struct disk *d, enum disk_kind kind, uint64_t seed);
void disk_state_free(struct disk_state *s);

/* Until now a state refers to bytes of its disk; now the disk may be freed. */
void disk_state_detach(struct disk_state *s);

/* Two states with the same hash are the same. */
uint64_t disk_state_hash(const struct disk_state *s);

/*
 * Make the directory `root`, which is emptied first, what the state says; new files are
 * announced to the recorder under their old numbers.
 */
void disk_state_write(const struct disk_state *s, const char *root,
                      struct record_trace *t);

/* A disk on which the state is durable. */
struct disk *disk_of_state(const struct disk_state *s);

/* Remove what is in a directory. */
void disk_empty_dir(const char *path);

#endif /* XAC_TEST_DISK_H */
