/* SPDX-License-Identifier: MIT */
/*
 * fault_valgrind.h -- does the process run under a valgrind in which faults cannot be handled?
 *
 * WHY       Without a certain option valgrind does not keep the registers of the program up to
 *           date between two instructions: a signal handler sees their values from some
 *           instructions before.  After the handler the program goes on with these, and reads
 *           and writes wrong addresses.  The library depends on handled faults, so it must
 *           refuse to work then.
 * METHOD    One fault at an address in a register that the instruction before has set.
 */
#ifndef XAC_FAULT_VALGRIND_H
#define XAC_FAULT_VALGRIND_H

/*
 * xac_valgrind_check -- does nothing without valgrind.  Takes SIGSEGV for a moment.
 *
 * ret  0; ENOTSUP: registers are stale after a fault, and xLastError() names the option of
 *      valgrind that is missing; errno.
 */
int xac_valgrind_check(void);

#endif /* XAC_FAULT_VALGRIND_H */
