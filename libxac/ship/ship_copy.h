/* SPDX-License-Identifier: MIT */
/*
 * ship_copy.h -- the copy with which a standby begins, file by file: sent, and received.
 *
 * WHAT      Sends the files of a backup that lies in a directory; receives them in another one, and
 *           makes them a standby when all have come.  A copy that has not come whole is removed the next time.
 * NOT HERE  Making the backup (backup.h); following (send.h, receive.h).
 * OWNER     struct xac_copy_in belongs to the caller.
 * LOCK      Receiving: the gate of the directory.
 *
 * INVARIANTS
 *   (1) Nothing is made outside of the directory, and nothing in it is overwritten: a path that comes from
 *       the source is relative, has no `..`, and no component that is a symbolic link.
 *   (2) The master record comes last.  Without it the directory is no environment.
 *   (3) Only what lies in a directory with XAC_RECEIVING_NAME and without a master record is removed.
 *       That file is made, synced, when the directory is empty.
 */
#ifndef XAC_SHIP_COPY_H
#define XAC_SHIP_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "backup/backup_report.h"
#include "base/newfile.h"
#include "log/lineage.h"
#include "log/log_format.h"
#include "ship/source.h"
#include "ship/wire.h"

#define XAC_RECEIVING_NAME "xac.receiving"

/* What the standby has when it has a copy. */
struct xac_copy_sent {
    uint32_t generation; /* of its log                                                */
    uint64_t segment_bytes;
    uint64_t end_lsn; /* of its log                                                   */
};

/*
 * xac_copy_send -- all files of a full backup, and then that it is complete.
 *
 * in   dirfd     of the backup
 * in   progress  NULL: nobody wants to know
 * ret  0 or an error, words noted.
 */
int xac_copy_send(struct xac_wire *w, int dirfd, const struct xac_source *source,
                  const struct xac_backup_progress *progress, struct xac_copy_sent *out);

/* xac_copy_remove -- a directory and all that lies in it; ret 0, also if it is not there, or errno. */
int xac_copy_remove(int dirfd, const char *name);

/* A copy that is being received. */
struct xac_copy_in {
    int dirfd;
    const char *dir;
    struct xac_owner owner;
    int fd; /* file that is being written, -1                                         */
    char path[XAC_WIRE_PATH_MAX + 1]; /* its                                          */
    uint64_t length, at;              /* its length; bytes before have come           */
    uint64_t before, total;           /* bytes of the files before it; of all, about  */
    const struct xac_backup_progress *progress; /* NULL: nobody wants to know         */
};

/* xac_copy_begin -- in a directory that is empty, or has an unfinished copy, which is removed; c->progress is the
   caller's.  ret 0; EEXIST: something else lies there; errno. */
int xac_copy_begin(struct xac_copy_in *c, int dirfd, const char *dir);
void xac_copy_close(struct xac_copy_in *c);

/* xac_copy_file_begin, xac_copy_piece, xac_copy_end -- for frames of these types; ret 0; XAC_EDAMAGED: it is
   not right; errno.  After the end the directory is a standby. */
int xac_copy_file_begin(struct xac_copy_in *c, const struct xac_wire_frame *f);
int xac_copy_piece(struct xac_copy_in *c, const struct xac_wire_frame *f);
int xac_copy_end(struct xac_copy_in *c, const struct xac_wire_frame *f,
                 const uint8_t identity[16]);

#endif /* XAC_SHIP_COPY_H */
