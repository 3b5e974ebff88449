/* SPDX-License-Identifier: MIT */
/*
 * recover_ahead.h -- one read at a time, which goes on while its caller works.
 *
 * WHAT      A thread, made with the first read.  The kernel does not read ahead for direct
 *           reads; without this thread, disk and processor would wait for each other.
 * NOT HERE  Deciding what to read (recover_scan).
 * OWNER     struct xac_ahead belongs to the caller.
 * THREADS   One caller.  During a read the file and the buffer belong to the thread.
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
    enum xac_ahead_state state;
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

/* xac_ahead_wait -- wait for the end of the read; ret as xac_rawfile_read. */
int xac_ahead_wait(struct xac_ahead *a, size_t *gotp);

/* xac_ahead_stop -- end the thread, if there is one; no read is under way. */
void xac_ahead_stop(struct xac_ahead *a);

#endif /* XAC_RECOVER_AHEAD_H */
