/* SPDX-License-Identifier: MIT */
/*
 * handler.h -- the experiment `handler`: what the mechanisms cost by which a page can be
 * watched and shown.
 *
 * WHAT      Probes, each of which times one or more operations once per round, so that a
 *           slow moment hits all.  handler.c runs them and prints, handler_trap.c catches
 *           signals, handler_map.c has mappings and copies, handler_uffd.c userfaultfd and
 *           guard pages.
 * MISSING   What the kernel does not have is an operation that says why it was not measured,
 *           not a failure.
 */
#ifndef XBENCH_HANDLER_H
#define XBENCH_HANDLER_H

#include <stddef.h>
#include <stdint.h>

#include "bench/kit/micro.h"

#define BENCH_PAGE \
 4096u                 /* as in the Thesis; another page size is refused                */
#define BENCH_WALK 64u /* pages that the walk visits, in every so many-th round         */

enum bench_op {
    OP_TIMER,
    OP_SYSCALL,
    /* The Thesis' loop. */
    OP_SEGV_ENTER,
    OP_MMAP,
    OP_SEGV_EXIT,
    OP_SEGV_EXIT_ACCESS,
    OP_MUNMAP,
    OP_MMAP_NONE,
    /* First access. */
    OP_FIRST_READ,
    OP_FIRST_WRITE,
    OP_FIRST_READ_PRIVATE,
    OP_FIRST_WRITE_PRIVATE,
    OP_FIRST_WRITE_ANON,
    OP_MADV_DONTNEED,
    /* The walk: what our engine does to page after page. */
    OP_MPROTECT_READ,
    OP_LOAD_AFTER,
    OP_MPROTECT_WRITE,
    OP_STORE_AFTER,
    OP_MPROTECT_UPGRADE,
    OP_MPROTECT_BOTH,
    OP_MPROTECT_NONE,
    /* Copies. */
    OP_MEMCPY_FIRST,
    OP_MEMCPY_NEXT,
    OP_MEMCPY,
    OP_MEMCPY_1000,
    OP_MEMCPY_COLD,
    OP_MEMCMP,
    /* Guard pages. */
    OP_GUARD_INSTALL,
    OP_GUARD_REMOVE,
    /* userfaultfd. */
    OP_SIGBUS_ENTER,
    OP_UFFD_COPY,
    OP_SIGBUS_EXIT,
    OP_UFFD_ZEROPAGE,
    OP_UFFD_PROTECT,
    OP_UFFD_UNPROTECT,
    OP_UFFD_CONTINUE,
    OP_UFFD_MOVE,
    N_OPS
};

struct bench_op_words {
    const char *name;
    const char *what;
};
extern const struct bench_op_words bench_ops[N_OPS];

/* A run of the experiment. */
struct bench_handler {
    const char *dir;
    int fd;         /* a file of BENCH_WALK pages in dir              */
    uint64_t round; /* from 0                                         */
    struct bench_sample sample[N_OPS]; /* ticks                                         */
    const char *missing[N_OPS]; /* why there is nothing, or NULL; static          */
};

/* bench_op_add -- one time of an operation, in ticks. */
static inline void
bench_op_add(struct bench_handler *h, enum bench_op op, double ticks)
{
    bench_sample_add(&h->sample[op], ticks);
}

/*
 * A probe: what it needs, a round, and the end.
 *
 * begin, round  ret 0, or 1 after a message
 * begin         what the kernel refuses is noted in h->missing; if round cannot be run
 *               at all then, *skipp becomes true.
 */
struct bench_probe {
    int (*begin)(struct bench_handler *h, bool *skipp);
    int (*round)(struct bench_handler *h);
    void (*end)(struct bench_handler *h);
};

extern const struct bench_probe bench_probe_thesis; /* handler_map.c */
extern const struct bench_probe bench_probe_access;
extern const struct bench_probe bench_probe_walk;
extern const struct bench_probe bench_probe_copy;
extern const struct bench_probe bench_probe_guard; /* handler_uffd.c */
extern const struct bench_probe bench_probe_uffd_missing;
extern const struct bench_probe bench_probe_uffd_protect;
extern const struct bench_probe bench_probe_uffd_minor;

/* ---- Traps (handler_trap.c) ---------------------------------------------------------- */

/* Ticks of one trap. */
struct bench_trap {
    uint64_t before;  /* the access begins                                             */
    uint64_t entered; /* in the handler                                                */
    uint64_t middle;  /* noted by fix(), or `entered`                                  */
    uint64_t fixed;   /* about to leave the handler                                    */
    uint64_t after;   /* the access has been made                                      */
};

/* bench_trap_begin, end -- handlers for SIGSEGV and SIGBUS; the old ones back. */
void bench_trap_begin(void);
void bench_trap_end(void);

/*
 * bench_trap_touch -- increment the first int of a page, which must trap.
 *
 * in   fix  called in the handler: makes the access possible; ret 0 or errno
 * ret  0, or an errno: what fix said, or EIO if nothing trapped; the page may then not
 *      have been touched.
 */
int bench_trap_touch(uint8_t *page, int (*fix)(uint8_t *page), struct bench_trap *out);

/* bench_trap_note -- for fix(): out->middle is now. */
void bench_trap_note(void);

/* ---- The measurement ------------------------------------------------------------------ */

/*
 * bench_handler_measure -- all probes, so many rounds each.
 *
 * in   dir     for a file; exists
 * out  h       samples and what is missing; bench_handler_free() in both cases
 * ret  0, or 1 after a message
 */
int bench_handler_measure(struct bench_handler *h, const char *dir, uint64_t rounds);
void bench_handler_free(struct bench_handler *h);

#endif /* XBENCH_HANDLER_H */
