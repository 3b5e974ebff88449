/* SPDX-License-Identifier: MIT */
/*
 * member_dir.h -- the directory of a member in which nobody takes part, with its gate; and where its log ends.
 *
 * OWNER     struct xac_member belongs to the caller.
 * LOCK      The gate, from xac_member_open() to xac_member_close().
 */
#ifndef XAC_MEMBER_DIR_H
#define XAC_MEMBER_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "log/group_note.h"
#include "log/log_format.h"

struct xac_member {
    const char *dir; /* its path; the caller's                                         */
    int dirfd, lockfd, logfd;
    bool is_member;
    struct xac_group_note note; /* if it is                                            */
    struct xac_master_slot master;
    bool is_backup, is_follower; /* xac.backup, xac.follow: both, a standby            */
};

/* xac_member_open -- ret 0, also if it is no member; XAC_ELIVE; XAC_ENOTENV; errno; words noted.  Close it in any
   case. */
int xac_member_open(struct xac_member *m, const char *dir);
void xac_member_close(struct xac_member *m);

/* xac_member_read_notes -- what it is by now; ret 0 or errno, words noted. */
int xac_member_read_notes(struct xac_member *m);

/* xac_member_is_one -- ret 0; XAC_ENOTENV, words noted. */
int xac_member_is_one(const struct xac_member *m);

/* xac_member_end -- behind the last valid block of its log, which is synced; of one that has led, not behind a cut that
   has begun.  ret 0 or as xac_scan_block(); errno, words noted. */
int xac_member_end(const struct xac_member *m, uint64_t *endp);

/* xac_member_noted_end -- of one that has led: an attempt to cut its log has begun, and may have cleared what lies behind that
   cut: *lsnp is not behind it then.  ret 0 or errno, words noted. */
int xac_member_noted_end(const struct xac_member *m, uint64_t *lsnp);

/* xac_member_note_end -- xac.backup says that its log ends there, unless it says already where; ret 0 or errno, words
   noted. */
int xac_member_note_end(const struct xac_member *m, uint64_t end_lsn);

/* xac_member_stand -- from now on it is a standby whose log ends there; ret 0 or errno, words noted. */
int xac_member_stand(const struct xac_member *m, uint64_t end_lsn);

#endif /* XAC_MEMBER_DIR_H */
