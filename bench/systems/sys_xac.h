/* SPDX-License-Identifier: MIT */
/*
 * sys_xac.h -- an environment of libxac with one segment, for the trees on it.
 *
 * WHAT      Opening, mapping, closing; counters and words of the library.
 * DURABLE   xInit(DURABLE): the log is on disk before a transaction's end returns.
 * NOT       xInit(NONDURABLE): no log at all.
 */
#ifndef XBENCH_SYS_XAC_H
#define XBENCH_SYS_XAC_H

#include <limits.h>

#include "bench/kit/system.h"

struct xac_segment {
    char file[PATH_MAX];
    void *base;
};

/* bench_xac_open -- `size` bytes of a file; ret 0 or a code, and nothing is open. */
int bench_xac_open(struct xac_segment *s, const struct bench_config *config, size_t size);

/* bench_xac_close -- unmap and shut down; ret 0 or a code. */
int bench_xac_close(struct xac_segment *s);

/* counters and explain of struct bench_system. */
int bench_xac_counters(void *handle, struct bench_counters *out);
const char *bench_xac_explain(int code);

/* begin_read and end_read likewise: a query. */
int bench_xac_begin_read(void *handle);
int bench_xac_end_read(void *handle);

#endif /* XBENCH_SYS_XAC_H */
