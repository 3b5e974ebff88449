/* SPDX-License-Identifier: MIT */
/*
 * raftd_socket.c -- see raftd_socket.h.
 */
#include <config.h>

#include "raftd_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/newfile.h"

#define BACKLOG 16

struct raftd_commander {
    uv_pipe_t pipe;
    struct raftd_socket *s;
    struct raftd_commander *next;
    char line[RAFTD_COMMAND_BYTES];
    size_t n;
    bool is_asked;  /* the user has the line                                          */
    bool is_closed; /* it has gone, or been closed                                     */
};

static void
free_handle(uv_handle_t *handle)
{
    free(handle);
}

/* ---- Status ------------------------------------------------------------------------- */

/* answer -- somebody asks how it is. */
static void
answer(uv_stream_t *pipe, int status)
{
    struct raftd_socket *s = (struct raftd_socket *)pipe->data;
    char text[RAFTD_STATUS_BYTES];
    uv_pipe_t *peer;
    uv_buf_t buf;

    if (status != 0)
        return;
    peer = (uv_pipe_t *)malloc(sizeof *peer);
    if (peer == NULL)
        return;
    (void)uv_pipe_init(pipe->loop, peer, 0);
    if (uv_accept(pipe, (uv_stream_t *)peer) == 0) {
        buf = uv_buf_init(text, (unsigned)raftd_status_text(s->status, text));
        (void)uv_try_write((uv_stream_t *)peer, &buf, 1); /* a socket has room for that */
    }
    uv_close((uv_handle_t *)peer, free_handle);
}

/* ---- Commands ----------------------------------------------------------------------- */

/* forget -- one who commands; freed when the user has answered, too. */
static void
forget(uv_handle_t *handle)
{
    struct raftd_commander *who = (struct raftd_commander *)handle->data;
    struct raftd_commander **at = &who->s->commander;

    while (*at != who)
        at = &(*at)->next;
    *at = who->next;
    free(who);
}

static void
close_commander(struct raftd_commander *who)
{
    if (!who->is_closed)
        uv_close((uv_handle_t *)&who->pipe, forget);
    who->is_closed = true;
}

static void
give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct raftd_commander *who = (struct raftd_commander *)handle->data;

    (void)suggested;
    *buf = uv_buf_init(who->line + who->n, (unsigned)(sizeof who->line - 1 - who->n));
}

/* hear -- a part of a line. */
static void
hear(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct raftd_commander *who = (struct raftd_commander *)stream->data;
    char *end;

    (void)buf;
    if (n < 0) {
        /* One who has gone and waits for nothing; else it is closed with the answer. */
        (void)uv_read_stop(stream);
        if (!who->is_asked)
            close_commander(who);
        return;
    }
    who->n += (size_t)n;
    who->line[who->n] = '\0';
    end = strchr(who->line, '\n');
    if (end == NULL && who->n + 1 < sizeof who->line)
        return;
    (void)uv_read_stop(stream);
    who->is_asked = true;
    if (end == NULL) {
        raftd_socket_answer(who, EINVAL, "too long a command");
        return;
    }
    *end = '\0';
    who->s->command(who->s->arg, who->line, who);
}

void
raftd_socket_answer(struct raftd_commander *who, int rc, const char *text)
{
    char words[RAFTD_STATUS_BYTES];
    uv_buf_t buf;
    int n = snprintf(words, sizeof words, "%d\n%s", rc, text);

    xac_assert(who->is_asked);
    if (who->is_closed)
        return; /* the loop ends */
    buf = uv_buf_init(words, n < (int)sizeof words ? (unsigned)n : sizeof words - 1);
    (void)uv_try_write((uv_stream_t *)&who->pipe, &buf, 1);
    close_commander(who);
}

/* take_commander -- somebody has connected. */
static void
take_commander(uv_stream_t *control, int status)
{
    struct raftd_socket *s = (struct raftd_socket *)control->data;
    struct raftd_commander *who;

    if (status != 0)
        return;
    who = (struct raftd_commander *)calloc(1, sizeof *who);
    if (who == NULL)
        return;
    who->s = s;
    who->next = s->commander;
    s->commander = who;
    (void)uv_pipe_init(control->loop, &who->pipe, 0);
    who->pipe.data = who;
    if (uv_accept(control, (uv_stream_t *)&who->pipe) != 0
        || uv_read_start((uv_stream_t *)&who->pipe, give_room, hear) != 0)
        close_commander(who);
}

/* ---- Listening ---------------------------------------------------------------------- */

/* listen_at -- a name in the directory. */
static int
listen_at(uv_pipe_t *pipe, int dirfd, const char *name, mode_t mode, uv_connection_cb cb)
{
    char path[64];
    int rc;

    raftd_status_address(dirfd, name, path);
    (void)unlinkat(dirfd, name, 0); /* of a former life: the lock is ours */
    rc = uv_pipe_bind(pipe, path);
    if (rc == 0)
        rc = fchmodat(dirfd, name, mode, 0) == 0 ? 0 : -errno;
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)pipe, BACKLOG, cb);
    return rc == 0 ? 0 : xac_err(-rc, "%s: listen", name);
}

int
raftd_socket_listen(struct raftd_socket *s, int dirfd)
{
    struct xac_owner owner;
    int rc = xac_owner_get(dirfd, &owner);

    if (rc != 0)
        return xac_err(rc, "%s", XAC_RAFTD_SOCKET);
    rc = listen_at(&s->pipe, dirfd, XAC_RAFTD_SOCKET, owner.mode, answer);
    return rc == 0
               ? listen_at(&s->control, dirfd, XAC_RAFTD_CONTROL, 0600, take_commander)
               : rc; /* (1) */
}

void
raftd_socket_init(struct raftd_socket *s, uv_loop_t *loop, struct raftd_status *status)
{
    *s = (struct raftd_socket){.status = status};
    (void)uv_pipe_init(loop, &s->pipe, 0);
    (void)uv_pipe_init(loop, &s->control, 0);
    s->pipe.data = s->control.data = s;
}

void
raftd_socket_close(struct raftd_socket *s)
{
    for (struct raftd_commander *who = s->commander; who != NULL; who = who->next)
        close_commander(who);
    uv_close((uv_handle_t *)&s->pipe, NULL);
    uv_close((uv_handle_t *)&s->control, NULL);
}
