/* SPDX-License-Identifier: MIT */
/*
 * rawfile.h -- reading a file past the page cache.
 *
 * After a failed sync the page cache can hold bytes that the disk does not have.  So bytes that
 * decide about commits are read from the disk.  If the file system has no O_DIRECT, ordinary
 * reads are used.
 *
 * OWNER     struct xac_rawfile belongs to the caller; the descriptor to it.
 */
#ifndef XAC_RAWFILE_H
#define XAC_RAWFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XAC_RAWFILE_ALIGN    4096u
#define XAC_RAWFILE_NAME_MAX 8192

struct xac_rawfile {
    int dirfd; /* not owned                                                           */
    int fd;    /* -1 if closed                                                        */
    bool direct;
    uint64_t size; /* when opened, bytes                                              */
    char name[XAC_RAWFILE_NAME_MAX];
};

#define XAC_RAWFILE_CLOSED \
 {                         \
  .dirfd = -1, .fd = -1    \
 }

/* xac_rawfile_open -- ret 0 or errno (no text noted). */
int xac_rawfile_open(struct xac_rawfile *f, int dirfd, const char *name);

/*
 * xac_rawfile_read -- read up to n bytes.
 *
 * in   buf, n, offset  multiples of XAC_RAWFILE_ALIGN
 * out  gotp  bytes read, fewer than n only at the end of the file; the rest is zeroed
 * ret  0 or errno.
 */
int xac_rawfile_read(struct xac_rawfile *f, void *buf, size_t n, uint64_t offset,
                     size_t *gotp);

/* xac_rawfile_close -- close it, if it is open. */
void xac_rawfile_close(struct xac_rawfile *f);

/* xac_rawfile_buffer -- n bytes of aligned memory for free(3), or NULL. */
void *xac_rawfile_buffer(size_t n);

#endif /* XAC_RAWFILE_H */
