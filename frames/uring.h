/* SPDX-License-Identifier: MIT */
/*
 * uring.h -- as much of io_uring as reading several pages at once needs.
 *
 * THREADS   one at a time.  Not after fork(): the ring is the parent's.
 */
#ifndef XAC_FRAMES_URING_H
#define XAC_FRAMES_URING_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/annot.h"

struct io_uring_sqe;
struct io_uring_cqe;

struct uring {
    int fd;
    uint32_t n_entries;
    char *queues; /* both rings, one mapping */
    size_t n_queues;
    struct io_uring_sqe *sqes;
    xac_shared _Atomic uint32_t *sq_tail, *cq_head, *cq_tail; /* shared with the kernel */
    uint32_t *sq_array, sq_mask, cq_mask;
    const struct io_uring_cqe *cqes;
};

/* xac_uring_open -- for n reads at a time, a power of two; ENOSYS and others: there is none. */
int xac_uring_open(struct uring *u, uint32_t n);

/* xac_uring_read -- queue one read; `which` comes back with its result. */
void xac_uring_read(struct uring *u, int fd, void *data, uint32_t n_bytes,
                    uint64_t offset, uint32_t which);

/*
 * xac_uring_wait -- submit what is queued and wait for all n.
 *
 * out  results  by `which`: bytes read, or a negative errno value
 * ret  0, or errno: nothing was submitted, and the ring is of no use any more
 */
int xac_uring_wait(struct uring *u, uint32_t n, int *results);

void xac_uring_close(struct uring *u);

#endif /* XAC_FRAMES_URING_H */
