/* SPDX-License-Identifier: MIT */
/*
 * raftd_socket.c -- see raftd_socket.h.
 */
#include <config.h>

#include "raftd_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/newfile.h"

#define BACKLOG 16

static void
free_handle(uv_handle_t *handle)
{
    free(handle);
}

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

int
raftd_socket_listen(struct raftd_socket *s, int dirfd)
{
    struct xac_owner owner;
    char path[64];
    int rc = xac_owner_get(dirfd, &owner);

    if (rc != 0)
        return xac_err(rc, "%s", XAC_RAFTD_SOCKET);
    raftd_status_address(dirfd, path);
    (void)unlinkat(dirfd, XAC_RAFTD_SOCKET, 0); /* of a former life: the lock is ours */
    rc = uv_pipe_bind(&s->pipe, path);
    if (rc == 0)
        rc = fchmodat(dirfd, XAC_RAFTD_SOCKET, owner.mode, 0) == 0 ? 0 : -errno;
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&s->pipe, BACKLOG, answer);
    return rc == 0 ? 0 : xac_err(-rc, "%s: listen", XAC_RAFTD_SOCKET);
}

void
raftd_socket_init(struct raftd_socket *s, uv_loop_t *loop, struct raftd_status *status)
{
    s->status = status;
    (void)uv_pipe_init(loop, &s->pipe, 0);
    s->pipe.data = s;
}

void
raftd_socket_close(struct raftd_socket *s)
{
    uv_close((uv_handle_t *)&s->pipe, NULL);
}
