/* SPDX-License-Identifier: MIT */
/*
 * sys_xac.c -- see sys_xac.h.
 */
#include <config.h>

#include "bench/systems/sys_xac.h"

#include <errno.h>
#include <stdio.h>

#define XAC_NO_SHORT_NAMES
#include <xac.h>

int
bench_xac_open(struct xac_segment *s, const struct bench_config *config, size_t size)
{
    char env[PATH_MAX];
    int rc;

    snprintf(env, sizeof env, "%s/env", config->dir);
    snprintf(s->file, sizeof s->file, "%s/insert.tree", config->dir);
    rc = xac_set_option(XAC_OPT_CHECKPOINT_BYTES, config->checkpoint_bytes);
    if (rc == 0)
        rc = xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, config->log_file_bytes);
    if (rc == 0)
        rc = xac_init(env, config->durable ? XAC_DURABLE : XAC_NONDURABLE);
    if (rc != 0)
        return rc;
    s->base = xac_mmap(s->file, size);
    if (s->base != MAP_FAILED)
        return 0;
    rc = errno;
    (void)xac_shutdown();
    return rc;
}

int
bench_xac_close(struct xac_segment *s)
{
    int rc = xac_munmap(s->file);
    int rc2 = xac_shutdown();

    return rc != 0 ? rc : rc2;
}

int
bench_xac_counters(void *handle, struct bench_counters *out)
{
    struct xac_stats st;
    int rc = xac_get_stats(&st, sizeof st);

    (void)handle;
    if (rc != 0)
        return rc;
    out->log_bytes = st.log_bytes;
    out->syncs = st.log_syncs;
    out->traps = st.traps_read + st.traps_write;
    out->retries = st.aborts_conflict + st.aborts_other;
    return 0;
}

const char *
bench_xac_explain(int code)
{
    static char text[600];
    const char *more = xac_last_error();

    snprintf(text, sizeof text, "%s%s%s", xac_strerror(code), *more != '\0' ? ": " : "",
             more);
    return text;
}

int
bench_xac_begin_read(void *handle)
{
    (void)handle;
    return xac_begin_query();
}

int
bench_xac_end_read(void *handle)
{
    (void)handle;
    return xac_end_query();
}
