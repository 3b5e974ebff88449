/* SPDX-License-Identifier: MIT */
/*
 * commits_xac.c -- transactions of libxac, for the experiment `commits`.
 *
 * Log segments are large, so that no transaction is written to a data file of its own: such a commit
 * has two syncs in any case.
 */
#include <config.h>

#include "bench/cost/commits.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>
#include <xac_stats.h>

#include "bench/kit/two_syncs.h"

#define SEGMENT_BYTES \
 (UINT64_C(128) << 20) /* 16 times BENCH_COMMITS_PAGES_MAX, and more */
#define CHECKPOINT_BYTES (UINT64_C(1) << 30)

static char file[PATH_MAX];

int
bench_commit_xac_open(const struct bench_commit_way *way, const char *dir,
                      uint64_t n_pages, unsigned char **basep)
{
    char env[PATH_MAX];
    void *base;
    int rc = xac_set_option(XAC_OPT_CHECKSUM, way->checksum);

    if (way->is_other)
        bench_two_syncs();
    snprintf(env, sizeof env, "%s/env", dir);
    snprintf(file, sizeof file, "%s/" BENCH_COMMITS_FILE, dir);
    if (rc == 0)
        rc = xac_set_option(XAC_OPT_CHECKPOINT_BYTES, CHECKPOINT_BYTES);
    if (rc == 0)
        rc = xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, SEGMENT_BYTES);
    if (rc == 0)
        rc = xac_init(env, XAC_DURABLE);
    if (rc != 0)
        return rc;
    base = xac_mmap(file, n_pages * (size_t)sysconf(_SC_PAGESIZE));
    *basep = base;
    return base == MAP_FAILED ? errno : 0;
}

int
bench_commit_xac_begin(void)
{
    return xac_begin();
}

int
bench_commit_xac_commit(void)
{
    int rc = xac_end();

    return rc == XAC_COMMITTED ? 0 : rc;
}

int
bench_commit_xac_close(void)
{
    int rc = xac_munmap(file), rc2 = xac_shutdown();

    return rc != 0 ? rc : rc2;
}

uint64_t
bench_commit_xac_syncs(void)
{
    struct xac_stats stats = {0};

    (void)xac_get_stats(&stats, sizeof stats); /* fails before the opening only */
    return stats.log_syncs + bench_two_syncs_more();
}
