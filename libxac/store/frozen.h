/* SPDX-License-Identifier: MIT */
/*
 * frozen.h -- private copies of the files of an environment, for a reader that cannot take
 * part in it.
 *
 * WHAT      Takes a copy of each mapped file.  Recovery redoes the log onto the copies
 *           instead of the files, and writes nothing else (recover.h, `frozen`).  So the
 *           copies become the state of one moment, as those of a backup do (backup.h).
 * NOT HERE  Choosing the moment, and starting again if the log has been reused (env_frozen.c).
 * OWNER     The environment, in one process; a child of fork() shares the copies.
 * THREADS   One thread fills it; then it does not change.
 *
 * INVARIANTS
 *   (1) The master record was read before the first copy was begun.
 *   (2) A copy has no name: nothing of it is left if the process dies.
 *   (3) A file that cannot be read has a copy, too, so that the log can be redone; mapping
 *       the file returns the error.
 */
#ifndef XAC_FROZEN_H
#define XAC_FROZEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/identity.h"
#include "log/log_format.h"

struct xac_frozen_file {
    char *place; /* of the original: absolute, or relative to the environment         */
    int fd;      /* the copy, for reading and writing                                 */
    int error;   /* why the original cannot be mapped; 0: it can be                  */
    struct xac_identity who; /* the original, if it could be read                     */
};

/* The copies that a frozen reader uses instead of the files. */
struct xac_frozen {
    int dirfd;                     /* the environment's directory, not owned            */
    struct xac_master_slot master; /* as it was before the first copy                   */
    struct xac_frozen_file *file;  /* sorted by place                                   */
    size_t n_files;
    uint8_t *chunk;   /* for copying                                                    */
    bool has_grown;   /* a file has been copied since this was cleared                  */
    bool is_copy;     /* of an environment: files outside are the original's            */
    bool has_base;    /* the log has differences to what the files hold                 */
    uint64_t end_lsn; /* of the log that has been redone                                */
};

/* xac_frozen_init -- nothing has been copied; ret 0 or ENOMEM.  Free it in any case. */
int xac_frozen_init(struct xac_frozen *f, int dirfd,
                    const struct xac_master_slot *master);
void xac_frozen_free(struct xac_frozen *f);

/* xac_frozen_find -- the copy of a file; NULL if there is none. */
struct xac_frozen_file *xac_frozen_find(const struct xac_frozen *f, const char *place);

/*
 * xac_frozen_take -- the copy of a file; it is made now if there is none.
 *
 * out  filep  valid until the next one is taken
 * ret  0, also if the original is not readable; ENOMEM, ENOSPC, EMFILE and other errno values.
 */
int xac_frozen_take(struct xac_frozen *f, const char *place,
                    struct xac_frozen_file **filep);

/* xac_frozen_nameless -- an empty file without a name, on disk if there is a place for it; -1
   with errno. */
int xac_frozen_nameless(void);

#endif /* XAC_FROZEN_H */
