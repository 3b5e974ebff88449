/* SPDX-License-Identifier: MIT */
/*
 * two_syncs.h -- commits that sync the log twice (Thesis section 5.5, point 1).
 *
 * WHAT      The Thesis asks whether a commit should rather sync its data and then its record than have a
 *           checksum that tells whether all of it is there.  The library has the checksum.  Here its table
 *           of system calls (libxac/base/sys.h) is changed in one process: a sync of a file that
 *           this thread has just written is one sync, a write of the last 512 bytes once more, and
 *           another sync.  So the device has the same work as with a commit record that comes
 *           behind its data; what is in the log is not changed.
 * NOT HERE  The checksum is still computed: `xbench checksum` says what that costs.
 * OTHERS    What a checkpoint syncs is synced twice, too; experiments have few.
 */
#ifndef XBENCH_TWO_SYNCS_H
#define XBENCH_TWO_SYNCS_H

#include <stdint.h>

/* bench_two_syncs -- from now on, in this process; before its first thread. */
void bench_two_syncs(void);

/* bench_two_syncs_more -- second syncs so far. */
uint64_t bench_two_syncs_more(void);

#endif /* XBENCH_TWO_SYNCS_H */
