/* SPDX-License-Identifier: MIT */
/*
 * address.h -- where files are mapped: the environment remembers, so that ordinary
 * pointers stored in a segment stay valid in every process and every run.
 *
 * WHAT      A file's address is that of its first byte, even if no view shows it; each
 *           part belongs at its distance from there.  While the region lives, the address
 *           stands in the file's entry; across runs it stands in a line of the text file
 *           xac.addresses (address_list.h), synced before anything that could hold a
 *           pointer is committed.
 * LOCK      files (rank FILES).
 */
#ifndef XAC_ADDRESS_H
#define XAC_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

struct xac_env;
struct xac_view;

/*
 * xac_address_map -- reserve addresses for a view: those where its part of the file was
 * before if they are free, else some that are likely to be free in other processes too.
 *
 * in   view     path, name, fd, first, length are set
 * in   is_same  fail rather than take others than those that are remembered
 * ret  0, and view->area.base is a private mapping of that part of the file without access;
 *      EADDRINUSE (is_same), and xLastError() tells what is in the way; errno of mmap(2).
 */
int xac_address_map(struct xac_view *view, bool is_same);

/*
 * xac_address_extend -- the same for the bytes from the view's end up to `length`, right
 * behind it.  ret 0; EADDRINUSE as above; errno of mmap(2).
 */
int xac_address_extend(const struct xac_view *view, size_t length);

/*
 * xac_address_keep -- remember where a file has been mapped, unless an address is
 * remembered already.  Files lock held.
 *
 * ret  0 or an error.
 */
int xac_address_keep(struct xac_env *env, const struct xac_view *view);

/* xac_address_is_kept -- is the view where its file belongs? */
bool xac_address_is_kept(const struct xac_view *view);

/*
 * xac_address_each -- call fn for the path of every file that has been mapped.
 *
 * Who is not attached reads without the lock: of a line that is being appended he may see a part,
 * which is no line.
 *
 * ret  0, what fn returned if that was not 0, or an error.
 */
int xac_address_each(struct xac_env *env, int (*fn)(void *arg, const char *path),
                     void *arg);

#endif /* XAC_ADDRESS_H */
