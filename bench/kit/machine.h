/* SPDX-License-Identifier: MIT */
/*
 * machine.h -- the machine on which is measured, for the record: what Thesis section 4.1 and
 * table 4.1 say of theirs.
 *
 * WHAT      Words of /proc and /sys.  What the kernel does not say, as of many a virtual machine,
 *           is null or "" in the record.
 * THREADS   none; one process each.
 */
#ifndef XBENCH_MACHINE_H
#define XBENCH_MACHINE_H

#include <stdio.h>

/* bench_machine_print -- JSON fields: processor, memory, the disk and file system of path, kernel, compiler. */
void bench_machine_print(FILE *f, const char *path);

/* bench_fs_name -- type of the file system that holds path, as it is mounted; static. */
const char *bench_fs_name(const char *path);

#endif /* XBENCH_MACHINE_H */
