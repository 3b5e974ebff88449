/* SPDX-License-Identifier: MIT */
/*
 * filesystem.h -- what the library must know of a file system: whether it keeps locks, and
 * how much memory its files may take.
 *
 * NOT HERE  The locks (lockfile.h), the files in memory (shm.h, version.h), how much memory there is
 *           (memory.h).
 * THREADS   any
 */
#ifndef XAC_FILESYSTEM_H
#define XAC_FILESYSTEM_H

#include <stdint.h>

/*
 * xac_filesystem_check -- may an environment lie here?
 *
 * Locks on bytes of a file tell which processes are alive and which one may recover.  On a network
 * file system such a lock can be lost while its owner goes on (the server starts again, a lease
 * ends), or other machines do not see it; then a live process would be taken for dead.  With
 * the variable XAC_ALLOW_NETWORK_FS=1 it is allowed: the user makes sure that only one machine
 * at a time uses the environment.
 *
 * in   fd    of a directory
 * in   path  for the text of the error
 * ret  0; XAC_EFILESYSTEM; errno.
 */
int xac_filesystem_check(int fd, const char *path);

/*
 * xac_filesystem_share -- how many bytes a file in memory may take: a quarter of the size of its
 * file system, or of the memory that there is (memory.h) if that is less.
 *
 * ret  UINT64_MAX if the file does not lie in memory.
 */
uint64_t xac_filesystem_share(int fd, uint64_t memory_bytes);

#endif /* XAC_FILESYSTEM_H */
