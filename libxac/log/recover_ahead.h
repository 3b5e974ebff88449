/* SPDX-License-Identifier: MIT */
/*
 * recover_ahead.h -- one read at a time that goes on while its caller works.
 *
 * WHAT      A thread of its own, made with the first read; a direct read has no
 *           readahead by the kernel, and one after the other the disk and the processor
 *           would wait for each other.
 * NOT HERE  What is read when (recover_scan).
 * OWNER     struct xac_ahead belongs to the caller.
 * THREADS   One caller.  While a read is under way the file and the buffer are the
 *           thread's.
 */
#ifndef XAC_RECOVER_AHEAD_H
#define XAC_RECOVER_AHEAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/annot.h"
#include "base/rawfile.h"

enum xac_ahead_state {
    XAC_AHEAD_IDLE = 0,
    XAC_AHEAD_READING = 1,
    XAC_AHEAD_DONE = 2, /* and not waited for yet                                     */
    XAC_AHEAD_STOP = 3
};

struct xac_ahead {
    bool is_made; /* the thread is there                                              */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum xac_ahead_state state XAC_GUARDED_BY(lock);
    struct xac_rawfile *file;
    void *buf;
    size_t n;
    uint64_t offset;
    size_t got;
    int rc;
};

/*
 * xac_ahead_start -- begin to read; as xac_rawfile_read.
 *
 * No read is under way.  ret false if there can be no thread: nothing has begun.
 */
bool xac_ahead_start(struct xac_ahead *a, struct xac_rawfile *file, void *buf, size_t n,
                     uint64_t offset);

/* xac_ahead_wait -- the end of the read that has been started; ret as xac_rawfile_read. */
int xac_ahead_wait(struct xac_ahead *a, size_t *gotp);

/* xac_ahead_stop -- end the thread, if there is one; no read is under way. */
void xac_ahead_stop(struct xac_ahead *a);

#endif /* XAC_RECOVER_AHEAD_H */
