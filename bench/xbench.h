/* SPDX-License-Identifier: MIT */
/*
 * xbench.h -- experiments: one function each, listed in the table of xbench.c.
 */
#ifndef XBENCH_XBENCH_H
#define XBENCH_XBENCH_H

/*
 * bench_insert_main -- the experiment `insert`.
 *
 * in   argc, argv  from the name of the experiment on, as main() gets them
 * ret  exit status: 0 all measured and verified, 1 a failure, 2 a wrong argument
 */
int bench_insert_main(int argc, char **argv);

/* bench_contention_main -- the experiment `contention`; as above. */
int bench_contention_main(int argc, char **argv);

/* bench_recovery_main -- the experiment `recovery`; as above. */
int bench_recovery_main(int argc, char **argv);

/* bench_checksum_main -- the experiment `checksum`. */
int bench_checksum_main(int argc, char **argv);

/* bench_frames_main -- the experiment `frames`; as above. */
int bench_frames_main(int argc, char **argv);

#endif /* XBENCH_XBENCH_H */
