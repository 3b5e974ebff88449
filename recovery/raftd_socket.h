/* SPDX-License-Identifier: MIT */
/*
 * raftd_socket.h -- the socket at which a running node says how it is.
 *
 * WHAT      Listens in the directory of the member, and answers everybody who connects with the text of the status.
 * NOT HERE  The text, and asking for it (raftd_status.h).
 * OWNER     struct raftd_socket belongs to the caller, and stays until the loop has ended.
 * THREADS   that of the loop.
 */
#ifndef XAC_RAFTD_SOCKET_H
#define XAC_RAFTD_SOCKET_H

#include <uv.h>

#include "raftd_status.h"

struct raftd_socket {
    uv_pipe_t pipe;
    struct raftd_status *status;
};

/* raftd_socket_init -- a handle of the loop, which raftd_socket_close() closes. */
void raftd_socket_init(struct raftd_socket *s, uv_loop_t *loop,
                       struct raftd_status *status);
void raftd_socket_close(struct raftd_socket *s);

/* raftd_socket_listen -- this process is the daemon of the directory.  ret 0 or errno, words noted. */
int raftd_socket_listen(struct raftd_socket *s, int dirfd);

#endif /* XAC_RAFTD_SOCKET_H */
