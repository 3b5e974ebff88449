/* SPDX-License-Identifier: MIT */
/*
 * uring.c -- see uring.h.  The system calls themselves, since nothing more of liburing is needed.
 */
#include <config.h>

#include "frames/uring.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"

int
xac_uring_open(struct uring *u, uint32_t n)
{
    struct io_uring_params p = {0};
    int fd = xac_sys.io_uring_setup(n, &p);
    size_t sq_bytes, cq_bytes;
    void *sqes;

    xac_assert(n > 0);
    if (fd < 0)
        return errno;
    sq_bytes = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
    cq_bytes = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    *u = (struct uring){.fd = fd,
                        .n_entries = p.sq_entries,
                        .n_queues = sq_bytes > cq_bytes ? sq_bytes : cq_bytes};
    if ((p.features & IORING_FEAT_SINGLE_MMAP) == 0) { /* before Linux 5.4 */
        (void)xac_sys.close(fd);
        return ENOSYS;
    }
    u->queues = xac_sys.mmap(NULL, u->n_queues, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQ_RING);
    sqes = xac_sys.mmap(NULL, p.sq_entries * sizeof(struct io_uring_sqe),
                        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
                        IORING_OFF_SQES);
    if (u->queues == MAP_FAILED || sqes == MAP_FAILED) {
        if (u->queues != MAP_FAILED)
            (void)xac_sys.munmap(u->queues, u->n_queues);
        (void)xac_sys.close(fd);
        return ENOMEM;
    }
    u->sqes = sqes;
    u->sq_tail = (xac_shared _Atomic uint32_t *)(u->queues + p.sq_off.tail);
    u->cq_head = (xac_shared _Atomic uint32_t *)(u->queues + p.cq_off.head);
    u->cq_tail = (xac_shared _Atomic uint32_t *)(u->queues + p.cq_off.tail);
    u->sq_array = (uint32_t *)(u->queues + p.sq_off.array);
    u->sq_mask = *(uint32_t *)(u->queues + p.sq_off.ring_mask);
    u->cq_mask = *(uint32_t *)(u->queues + p.cq_off.ring_mask);
    u->cqes = (const struct io_uring_cqe *)(u->queues + p.cq_off.cqes);
    xac_assert(u->n_entries >= n);
    return 0;
}

void
xac_uring_read(struct uring *u, int fd, void *data, uint32_t n_bytes, uint64_t offset,
               uint32_t which)
{
    uint32_t tail = atomic_load_explicit(u->sq_tail, memory_order_relaxed);
    struct io_uring_sqe *sqe = &u->sqes[tail & u->sq_mask];

    xac_assert(n_bytes > 0);
    xac_assert(which < u->n_entries);
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = IORING_OP_READ;
    sqe->fd = fd;
    sqe->addr = (uintptr_t)data;
    sqe->len = n_bytes;
    sqe->off = offset;
    sqe->user_data = which;
    u->sq_array[tail & u->sq_mask] = tail & u->sq_mask;
    /* Release pairs with the kernel's load: it sees the entry. */
    atomic_store_explicit(u->sq_tail, tail + 1, memory_order_release);
}

/* reap -- results that are there; ret how many. */
static uint32_t
reap(struct uring *u, int *results)
{
    uint32_t head = atomic_load_explicit(u->cq_head, memory_order_relaxed), n = 0;

    /* Acquire pairs with the kernel's store: the results before it. */
    for (; head != atomic_load_explicit(u->cq_tail, memory_order_acquire); head++, n++)
        results[u->cqes[head & u->cq_mask].user_data] = u->cqes[head & u->cq_mask].res;
    /* Release pairs with the kernel's load: their places may be used again. */
    atomic_store_explicit(u->cq_head, head, memory_order_release);
    xac_assert(n <= u->n_entries);
    return n;
}

int
xac_uring_wait(struct uring *u, uint32_t n, int *results)
{
    uint32_t submitted = 0, done = 0;

    xac_assert(n <= u->n_entries);
    while (done < n) {
        long rc = syscall(SYS_io_uring_enter, u->fd, n - submitted, n - done,
                          IORING_ENTER_GETEVENTS, NULL, 0);

        if (rc < 0 && submitted == 0 && errno != EINTR && errno != EAGAIN)
            return errno;
        submitted += rc > 0 ? (uint32_t)rc : 0;
        done += reap(u, results);
    }
    xac_assert(done == n);
    return 0;
}

void
xac_uring_close(struct uring *u)
{
    (void)xac_sys.munmap(u->sqes, u->n_entries * sizeof(struct io_uring_sqe));
    (void)xac_sys.munmap(u->queues, u->n_queues);
    (void)xac_sys.close(u->fd);
}
