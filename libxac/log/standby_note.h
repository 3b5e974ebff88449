/* SPDX-License-Identifier: MIT */
/*
 * standby_note.h -- the file that tells a standby from a backup: xac.follow (doc/formats.md).
 *
 * WHAT      It is there from the end of the first copy until the standby is promoted.  While it is there, nothing but
 *           a promotion makes an environment of its own of the directory.
 * NOT HERE  What a standby has, and where its files are: backup_note.h, as of a backup.
 *
 * INVARIANT
 *   (1) The file is durable before the master record is there (of a new copy), and goes after all else that a
 *       promotion does.
 */
#ifndef XAC_STANDBY_NOTE_H
#define XAC_STANDBY_NOTE_H

/* xac_standby_note_write -- make it, synced, if it is not there; ret 0 or errno, with words. */
int xac_standby_note_write(int dirfd);

/* xac_standby_note_remove -- and xac.received before it; ret 0, also if it was not there, or errno, with words. */
int xac_standby_note_remove(int dirfd);

/* xac_standby_note_refuse -- ret 0; XAC_ENOTLEADER with words, if it is there; errno. */
int xac_standby_note_refuse(int dirfd);

#endif /* XAC_STANDBY_NOTE_H */
