/* SPDX-License-Identifier: MIT */
/*
 * progress.h -- a line on the terminal that says how far a tool is, how fast, and how long it will take.
 *
 * It appears once the work takes longer than PROGRESS_AFTER_NS, if standard error is a terminal (or
 * XAC_PROGRESS=1 in the environment), and is written over.
 */
#ifndef XAC_PROGRESS_H
#define XAC_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what; /* is done with the bytes: "log read"                           */
    uint64_t started_ns;
    uint64_t shown_ns; /* 0 if never */
};

/* progress_is_wanted -- ret whether to show one at all. */
bool progress_is_wanted(void);

/* progress_start -- for a piece of work, from now on. */
struct progress progress_start(const char *what);

/* progress_show -- bytes done, of so many; arg is the struct progress. */
void progress_show(void *arg, uint64_t done, uint64_t total);

/* progress_line -- words instead of bytes of a total. */
void progress_line(struct progress *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* progress_end -- take the line away. */
void progress_end(struct progress *p);

#endif /* XAC_PROGRESS_H */
