/* SPDX-License-Identifier: MIT */
/*
 * handle.h -- descriptors that the library keeps for long, in a process that may close them.
 *
 * WHAT      Programs close descriptors that are not theirs (closefrom(3) before they become a
 *           daemon) and open files of their own, which get the same numbers.  A descriptor
 *           that the library keeps is therefore moved to a high number.  Before it is
 *           written or closed, the library checks that it still belongs to the same file.
 * NOT HERE  Which file is opened again, and by which name: the owner of the descriptor knows.
 * THREADS   any.  Another thread of the program may close the descriptor between the check and
 *           the use; nothing can prevent that.
 *
 * INVARIANTS
 *   (1) No byte is written to a descriptor unless xac_handle_is_ours() has checked it since
 *       the library was entered.
 *   (2) No descriptor is closed that is not the library's.
 */
#ifndef XAC_HANDLE_H
#define XAC_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"

/* The file that a descriptor was opened for.  The owner keeps the number beside it. */
struct xac_handle {
    uint64_t device, inode;
};

/*
 * xac_handle_keep -- note the file of a new descriptor, and move it to a high number if one is
 * free.
 *
 * in   fd  the result of open(2); -1: errno is set, and stays
 * ret  the descriptor to use from now on; -1 with errno, and nothing is open.
 */
XAC_SIGSAFE int xac_handle_keep(int fd, struct xac_handle *out);

/* xac_handle_is_ours -- is the descriptor open for the same file?  Yes if the file system
   answers with an error: the next call on the descriptor will return that error. */
XAC_SIGSAFE bool xac_handle_is_ours(int fd, const struct xac_handle *h);

/* xac_handle_close -- close a descriptor, unless it is not ours any more. */
XAC_SIGSAFE void xac_handle_close(int fd, const struct xac_handle *h);

/*
 * xac_handle_again -- the descriptor, or a new one for the same file if it has been lost.
 *
 * in   dirfd, path, flags  as for openat(2)
 * ret  the descriptor to use from now on; -1 with errno, ESTALE if the name belongs to another
 *      file now.
 */
XAC_SIGSAFE int xac_handle_again(int fd, const struct xac_handle *h, int dirfd,
                                 const char *path, int flags);

#endif /* XAC_HANDLE_H */
