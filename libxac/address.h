/* SPDX-License-Identifier: MIT */
/*
 * address.h -- where files are mapped: the environment remembers, so that ordinary
 * pointers stored in a segment stay valid in every process and every run.
 *
 * WHAT      While the region lives, the address stands in the file's entry; across runs it
 *           stands in the text file xac.addresses, replaced as a whole, synced before
 *           anything that could hold a pointer is committed.
 * LOCK      files (rank FILES).
 */
#ifndef XAC_ADDRESS_H
#define XAC_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

struct xac_env;

#define XAC_ADDRESSES_NAME "xac.addresses"

/*
 * xac_address_map -- reserve addresses for a file: the remembered ones if they are free,
 * else some that are likely to be free in other processes too.
 *
 * in   path    as registered
 * in   fd      of the file
 * in   length  bytes
 * ret  a private mapping of the file without access, or MAP_FAILED with errno.
 */
void *xac_address_map(struct xac_env *env, const char *path, int fd, size_t length);

/*
 * xac_address_keep -- remember where a file has been mapped, unless an address is
 * remembered already.  Files lock held.
 *
 * ret  0 or an error.
 */
int xac_address_keep(struct xac_env *env, uint32_t file, const char *path,
                     const void *base);

#endif /* XAC_ADDRESS_H */
