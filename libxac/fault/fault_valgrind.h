/* SPDX-License-Identifier: MIT */
/*
 * fault_valgrind.h -- is this a valgrind that cannot let a fault be handled?
 *
 * WHY       Valgrind keeps registers of the program to itself between two instructions, and
 *           shows a signal handler what they were some instructions before, unless it is told
 *           otherwise.  After the handler the program goes on with these: it reads and writes
 *           other addresses than it should.  The library lives by handled faults, so it must
 *           refuse to work there.
 * METHOD    One fault whose address is in a register that has been set by the instruction
 *           before.
 */
#ifndef XAC_FAULT_VALGRIND_H
#define XAC_FAULT_VALGRIND_H

/*
 * xac_valgrind_check -- does nothing but under valgrind.  Takes SIGSEGV for a moment.
 *
 * ret  0; ENOTSUP: registers are stale after a fault, and xLastError() names the option of
 *      valgrind that is missing; errno.
 */
int xac_valgrind_check(void);

#endif /* XAC_FAULT_VALGRIND_H */
