/* SPDX-License-Identifier: MIT */
/*
 * raftd_disk.c -- see raftd_disk.h.
 */
#include <config.h>

#include "raftd_disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/sys.h"
#include "tool.h"

/* A file that libraft does not know. */
#define TRIAL_NAME "room"

static_assert(offsetof(struct raftd_disk, io) == 0, "disk_of() needs it");

/* Entries that libraft has to write. */
struct append {
    struct raft_io_append req;
    struct raftd_disk *d;
    struct raft_io_append *whose; /* libraft's request                                 */
    raft_io_append_cb cb;
};

static struct raftd_disk *
disk_of(struct raft_io *io)
{
    return (struct raftd_disk *)io;
}

/* ---- Term and vote ------------------------------------------------------------------ */

/* must_write -- term or vote have been (1); ret 0. */
static int
must_write(struct raftd_disk *d, int rv)
{
    if (rv != 0)
        _exit(tool_fail(d->dir,
                        xac_err_whole(EIO, "Raft: its term or vote cannot be written: %s",
                                      d->io.errmsg)));
    return rv;
}

static int
set_term(struct raft_io *io, raft_term term)
{
    struct raftd_disk *d = disk_of(io);

    return must_write(d, d->set_term(io, term));
}

static int
set_vote(struct raft_io *io, raft_id node)
{
    struct raftd_disk *d = disk_of(io);

    return must_write(d, d->set_vote(io, node));
}

/* ---- Entries ------------------------------------------------------------------------ */

void
raftd_disk_doubt(struct raftd_disk *d)
{
    if (!d->is_in_doubt)
        d->since_ms = uv_now(d->loop);
    d->is_in_doubt = true;
}

static void
appended(struct raft_io_append *req, int status)
{
    struct append *a = (struct append *)req->data;
    struct raftd_disk *d = a->d;

    xac_assert(d->n_appends > 0);
    d->n_appends--;
    if (status == 0)
        d->is_in_doubt = false;
    if (status != 0 || d->n_appends > 0)
        raftd_disk_doubt(d);
    a->cb(a->whose, status);
    free(a);
}

static int
append(struct raft_io *io, struct raft_io_append *req, const struct raft_entry entries[],
       unsigned n, raft_io_append_cb cb)
{
    struct raftd_disk *d = disk_of(io);
    struct append *a = (struct append *)calloc(1, sizeof *a);
    int rv;

    if (a == NULL)
        return RAFT_NOMEM;
    *a = (struct append){.d = d, .whose = req, .cb = cb};
    a->req.data = a;
    d->n_appends++;
    raftd_disk_doubt(d);
    rv = d->append(io, &a->req, entries, n, appended);
    if (rv != 0) {
        d->n_appends--;
        free(a);
    }
    return rv;
}

/* ---- Room --------------------------------------------------------------------------- */

/* try_room -- in a thread of libuv: make a file as large as a segment, and remove it. */
static void
try_room(uv_work_t *trial)
{
    struct raftd_disk *d = (struct raftd_disk *)trial->data;
    char path[PATH_MAX];
    int fd;

    if ((size_t)snprintf(path, sizeof path, "%s/" TRIAL_NAME, d->dir) >= sizeof path) {
        d->rc = 0; /* libraft has made files there */
        return;
    }
    fd = xac_sys.openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        d->rc = errno;
        return;
    }
    (void)xac_sys.unlinkat(AT_FDCWD, path, 0);
    d->rc = xac_allocate(fd, 0, RAFTD_DISK_SEGMENT_BYTES);
    xac_close_fd(&fd);
}

/* tried -- in the loop's thread. */
static void
tried(uv_work_t *trial, int status)
{
    struct raftd_disk *d = (struct raftd_disk *)trial->data;

    (void)status; /* none is cancelled */
    d->is_trying = false;
    d->has_failed = d->rc != 0;
    if (d->has_failed)
        d->failed(d->arg, xac_err(d->rc, "Raft: %s: its log has no room for %u bytes",
                                  d->dir, RAFTD_DISK_SEGMENT_BYTES));
    else
        d->since_ms = uv_now(d->loop); /* libraft will find it, too */
}

void
raftd_disk_look(struct raftd_disk *d)
{
    if (d->is_in_doubt && !d->is_trying && !d->has_failed
        && uv_now(d->loop) - d->since_ms >= RAFTD_DISK_PATIENCE_MS)
        d->is_trying = uv_queue_work(d->loop, &d->trial, try_room, tried) == 0;
}

void
raftd_disk_watch(struct raftd_disk *d, uv_loop_t *loop, const char *dir,
                 void (*failed)(void *arg, int rc), void *arg)
{
    d->loop = loop;
    d->dir = dir;
    d->failed = failed;
    d->arg = arg;
    d->trial.data = d;
    d->set_term = d->io.set_term;
    d->set_vote = d->io.set_vote;
    d->append = d->io.append;
    d->io.set_term = set_term;
    d->io.set_vote = set_vote;
    d->io.append = append;
}
