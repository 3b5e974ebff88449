/* SPDX-License-Identifier: MIT */
/*
 * handle.h -- descriptors that the library keeps for long, in a process that may close them.
 *
 * WHAT      Programs close descriptors that are not theirs (closefrom(3) before they become a
 *           daemon) and open files of their own, which get the same numbers.  A descriptor
 *           that the library keeps is therefore moved to a high number, and whether it still
 *           is the library's file is asked before it is written, and before it is closed.
 * NOT HERE  What is opened again, and by which name: whoever owns the descriptor.
 * THREADS   any.  Between the question and the use another thread of the program may close
 *           the descriptor: nothing helps against that.
 *
 * INVARIANTS
 *   (1) No byte is written to a descriptor that xac_handle_is_ours() has not been asked about
 *       since the library was entered.
 *   (2) No descriptor is closed that is not the library's.
 */
#ifndef XAC_HANDLE_H
#define XAC_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"

/* Which file a descriptor has been opened for.  The number is kept beside it. */
struct xac_handle {
    uint64_t device, inode;
};

/*
 * xac_handle_keep -- note which file a new descriptor is for, and move it to a high number if
 * there is one.
 *
 * in   fd  what open has returned; -1: errno is set, and stays
 * ret  the descriptor to be used from now on; -1 with errno, and nothing is open.
 */
XAC_SIGSAFE int xac_handle_keep(int fd, struct xac_handle *out);

/* xac_handle_is_ours -- is the descriptor open, for that very file?  Where its file system has
   an error for an answer, it is taken for ours: the next call on it will tell. */
XAC_SIGSAFE bool xac_handle_is_ours(int fd, const struct xac_handle *h);

/* xac_handle_close -- close a descriptor, unless it is not ours any more. */
XAC_SIGSAFE void xac_handle_close(int fd, const struct xac_handle *h);

/*
 * xac_handle_again -- the descriptor, or a new one for the same file if it has been lost.
 *
 * in   dirfd, path, flags  as for openat(2)
 * ret  the descriptor to be used from now on; -1 with errno, ESTALE if another file lies
 *      there now.
 */
XAC_SIGSAFE int xac_handle_again(int fd, const struct xac_handle *h, int dirfd,
                                 const char *path, int flags);

#endif /* XAC_HANDLE_H */
