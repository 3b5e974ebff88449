/* SPDX-License-Identifier: MIT */
/*
 * raftd_fetch.c -- see raftd_fetch.h.
 */
#include <config.h>

#include "raftd_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xac.h>

#include "base/annot.h"
#include "base/clock.h"
#include "base/newfile.h"
#include "raftd_install.h"
#include "ship/receive.h"
#include "ship/ship_copy.h"
#include "ship_relay.h"
#include "tool.h"

/* The leader is there by then, or another time. */
#define CALL_NS UINT64_C(5000000000)

/* say -- what the words noted are, unless that was said last. */
static void
say(struct raftd_fetch *f, uint32_t leader)
{
    const char *words = xac_err_text();

    if (strcmp(words, f->said) == 0)
        return;
    (void)snprintf(f->said, sizeof f->said, "%s", words);
    fprintf(stderr, "%s: from node %" PRIu32 ": %s\n", tool_name, leader, words);
}

/* is_enough -- for the receiver. */
static bool
is_enough(void *arg, uint32_t generation, uint64_t durable)
{
    struct raftd_fetch *f = (struct raftd_fetch *)arg;

    f->was_enough = f->is_enough(f->arg, generation, durable);
    return f->was_enough;
}

/* receive -- into a directory, until it is enough, or the connection breaks. */
static int
receive(struct raftd_fetch *f, uint32_t leader, const char *dir, bool is_member)
{
    struct ship_relay *relay = (struct ship_relay *)malloc(sizeof *relay);
    struct raftd_line *line = NULL;
    struct xac_receive_report rep;
    int rc = relay == NULL ? xac_err(ENOMEM, "a connection")
                           : raftd_net_call(f->net, leader, RAFTD_WANT_COPY,
                                            xac_clock_ns() + CALL_NS, &line);

    f->was_enough = false;
    if (rc == 0)
        rc = ship_relay_start(relay, &line->c);
    if (rc == 0) {
        struct xac_receive_options o = {.dir = dir,
                                        .in = relay->end,
                                        .out = relay->end,
                                        .stop = f->stop,
                                        .is_member = is_member,
                                        .is_enough = is_enough,
                                        .enough_arg = f};

        rc = xac_receive_run(&o, &rep);
        ship_relay_end(relay);
    }
    if (line != NULL)
        raftd_net_hang_up(line);
    free(relay);
    if (rc != 0)
        say(f, leader);
    return rc;
}

/* is_cut_off -- can no more log make it whole? */
static bool
is_cut_off(int rc)
{
    return rc == XAC_ECUTOFF || rc == XAC_EFOREIGN || rc == XAC_EDAMAGED
           || rc == XAC_EREPLACED || rc == EINVAL;
}

/* fetch_log -- into the standby here. */
static int
fetch_log(struct raftd_fetch *f, struct raftd_place *p, uint32_t leader)
{
    const char *dir = p->dir;
    int dirfd = p->dirfd, rc = raftd_place_close(p);

    xac_assert(!f->needs_copy);
    if (rc != 0)
        return rc;
    rc = receive(f, leader, dir, true);
    if (is_cut_off(rc)) {
        f->needs_copy = true;
        fprintf(stderr, "%s: the log that is needed is gone: a copy is made\n",
                tool_name);
    }
    return raftd_place_open(p, dirfd, dir);
}

/* install -- the copy reaches as far as it must (2). */
static int
install(struct raftd_fetch *f, struct raftd_place *p)
{
    const char *dir = p->dir;
    int dirfd = p->dirfd, rc = raftd_place_retreat(p, "a copy takes its place");

    xac_assert(f->was_enough);
    if (rc == 0)
        rc = raftd_install(dirfd, dir);
    f->needs_copy = false;
    return rc == 0 ? raftd_place_open(p, dirfd, dir) : rc;
}

/* fetch_copy -- beside the environment, and in its place when it is whole. */
static int
fetch_copy(struct raftd_fetch *f, struct raftd_place *p, uint32_t leader)
{
    char *to = NULL;
    int rc = xac_newdir_make(p->dirfd, RAFTD_COPY, p->dirfd);

    if (rc != 0 && rc != EEXIST)
        return xac_err(rc, "%s/" RAFTD_COPY, p->dir);
    if (asprintf(&to, "%s/" RAFTD_COPY, p->dir) < 0)
        return xac_err(ENOMEM, "%s", p->dir);
    rc = receive(f, leader, to, false);
    free(to);
    if (is_cut_off(rc)) /* an older copy: a new one begins the next time */
        return xac_copy_remove(p->dirfd, RAFTD_COPY);
    return rc == 0 && f->was_enough ? install(f, p) : 0;
}

int
raftd_fetch(struct raftd_fetch *f, struct raftd_place *p, uint32_t leader, bool *donep)
{
    int rc = 0;

    *donep = false;
    if (p->state == RAFTD_STANDBY && !f->needs_copy)
        rc = fetch_log(f, p, leader);
    if (rc == 0 && (p->state != RAFTD_STANDBY || f->needs_copy))
        rc = fetch_copy(f, p, leader);
    *donep = rc == 0 && f->was_enough;
    if (*donep)
        f->said[0] = '\0';
    return rc;
}
