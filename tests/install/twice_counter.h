/* SPDX-License-Identifier: MIT */
/*
 * twice_counter.h -- a counter in a file, as a library that happens to use libxac.
 *
 * check_twice.sh makes two shared objects of twice_counter.c.  Each has one object of this type,
 * `counter`, by which the program twice.c uses it.
 */
#ifndef XAC_TWICE_COUNTER_H
#define XAC_TWICE_COUNTER_H

struct counter {
    /* Open the counter in directory `dir`, durable or not; ret 0 or an error. */
    int (*open)(const char *dir, int is_durable);
    int (*close)(void);
    /* Add 1 and call fn, which may be NULL, in one transaction.  ret the sum; < 0 an error. */
    long (*add)(long (*fn)(void));
    /* Is there nothing but what this library has done: so many commits, no conflicts?  ret 0. */
    int (*check)(unsigned long n_commits);
    /* Provoke an error; ret libxac's words for it. */
    const char *(*fail)(void);
    /* Where the counter lies in memory. */
    volatile long *(*address)(void);
};

#endif /* XAC_TWICE_COUNTER_H */
