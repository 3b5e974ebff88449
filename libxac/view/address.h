/* SPDX-License-Identifier: MIT */
/*
 * address.h -- where files are mapped: the environment remembers, so that ordinary
 * pointers stored in a segment stay valid in every process and every run.
 *
 * WHAT      The address of a file is that of its first byte, even if no view shows that byte;
 *           each part is mapped at its distance from there.  While the region lives, the
 *           address is in the file's entry.  Across runs it is in a line of the text file
 *           xac.addresses (address_list.h), which is synced before anything that could hold
 *           a pointer is committed.
 * LOCK      files (rank FILES).
 */
#ifndef XAC_ADDRESS_H
#define XAC_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

struct xac_env;
struct xac_view;

/*
 * xac_address_map -- reserve addresses for a view: those of its part of the file if they are
 * free, else some that are probably free in other processes too.
 *
 * in   view     path, name, fd, first, length are set
 * in   is_same  fail if the remembered addresses are not free
 * ret  0, and view->area.base is a private mapping of that part of the file without access;
 *      EADDRINUSE (is_same), and xLastError() tells what is mapped there; errno of mmap(2).
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

/* xac_address_is_kept -- is the view at the remembered address? */
bool xac_address_is_kept(const struct xac_view *view);

/*
 * xac_address_each -- call fn for the path of every file that has been mapped.
 *
 * A process that is not attached reads without the lock; it ignores an incomplete line, which is
 * just being appended.
 *
 * ret  0, what fn returned if that was not 0, or an error.
 */
int xac_address_each(struct xac_env *env, int (*fn)(void *arg, const char *path),
                     void *arg);

#endif /* XAC_ADDRESS_H */
