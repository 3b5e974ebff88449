/* SPDX-License-Identifier: MIT */
/*
 * group_power.c -- see group_power.h.
 */
#include <config.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "group_power.h"
#include "log/log_name.h"
#include "shared/layout.h"
#include "tests/common/env.h"

/* A disk loses whole sectors. */
#define SECTOR 512

bool
group_log_of(const struct group *g, unsigned number, struct group_log *out)
{
    const char *dir = g->node[number - 1].dir;
    const struct xac_control *c;
    char path[4200];
    bool is_leader;
    int fd;

    env_region(dir, path);
    fd = path[0] == '/' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    c = (const struct xac_control *)mmap(NULL, sizeof *c, PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
    must((const void *)c != MAP_FAILED);
    is_leader = c->magic == XAC_CONTROL_MAGIC && c->group.leads != 0;
    *out = (struct group_log){.segment_bytes = c->log.segment_bytes};
    /* In this order: one that moves meanwhile is not in front of the other. */
    out->durable = atomic_load_explicit(&c->log.durable, memory_order_acquire);
    out->written = atomic_load_explicit(&c->log.written, memory_order_acquire);
    out->tail = atomic_load_explicit(&c->log.tail, memory_order_acquire);
    (void)munmap((void *)(uintptr_t)c, sizeof *c);
    return is_leader;
}

/* lose -- a part of the log that lies in one sector. */
static void
lose(const char *dir, const struct group_log *log, uint64_t from, uint64_t to)
{
    static const uint8_t zeros[SECTOR]; /* as the segment was made                      */
    char path[XAC_LOG_NAME_MAX + 64];
    int fd;

    (void)snprintf(path, sizeof path, "%s/", dir);
    xac_log_segment_name(path + strlen(path),
                         xac_log_segment_of(from, log->segment_bytes));
    fd = open(path, O_WRONLY | O_CLOEXEC);
    must(fd >= 0);
    must_eq(pwrite(fd, zeros, to - from,
                   (off_t)(XAC_SEGMENT_HEADER + from % log->segment_bytes)),
            (ssize_t)(to - from));
    (void)close(fd);
}

uint64_t
group_cut_power(struct group *g, unsigned number, enum group_loss loss, uint64_t *seed)
{
    const char *dir = g->node[number - 1].dir;
    struct group_log log;

    if (g->writer != 0 && g->writes_to == number)
        group_kill_writer(g);
    group_kill(g, number);
    if (!group_log_of(g, number, &log))
        return 0;
    for (uint64_t at = log.durable; loss != GROUP_LOSES_NOTHING && at < log.tail;) {
        uint64_t next = (at & ~(uint64_t)(SECTOR - 1)) + SECTOR;

        if (next > log.tail)
            next = log.tail;
        if (loss == GROUP_LOSES_ALL || rnd_below(seed, 2) == 0)
            lose(dir, &log, at, next);
        at = next;
    }
    if (loss != GROUP_LOSES_NOTHING)
        env_drop_region(dir);
    return log.written - log.durable;
}
