/* SPDX-License-Identifier: MIT */
/*
 * filesystem.h -- what the library must know of a file system: whether it keeps locks, and
 * how much memory its files may take.
 *
 * NOT HERE  The locks (lockfile.h), the files in memory (shm.h, version.h).
 * THREADS   any
 */
#ifndef XAC_FILESYSTEM_H
#define XAC_FILESYSTEM_H

#include <stdint.h>

/*
 * xac_filesystem_check -- may an environment lie here?
 *
 * Who is alive and who may recover is told by locks on bytes of a file.  On a file system of
 * the network such a lock can be lost while its owner goes on (a server that is started anew,
 * a lease that ends), or is not seen by the other machines; then a live process would be taken
 * for dead.  The variable XAC_ALLOW_NETWORK_FS=1 allows it: then the user sees to it that one
 * machine at a time uses the environment.
 *
 * in   fd    of a directory
 * in   path  for the error's words
 * ret  0; XAC_EFILESYSTEM; errno.
 */
int xac_filesystem_check(int fd, const char *path);

/*
 * xac_filesystem_share -- bytes that a file may take of the memory that its file system has:
 * a quarter of the file system's size, or of the limit of this process's memory control group
 * if that is smaller.
 *
 * ret  UINT64_MAX if the file does not lie in memory, or if nothing is known.
 */
uint64_t xac_filesystem_share(int fd);

#endif /* XAC_FILESYSTEM_H */
