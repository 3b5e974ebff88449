/* SPDX-License-Identifier: MIT */
/*
 * raftd_socket.h -- the sockets of a running node: at one it says how it is, at the other it takes commands.
 *
 * WHAT      Listens in the directory of the member.  Answers everybody who connects to XAC_RAFTD_SOCKET with the text of the
 *           status; hands each line that comes at XAC_RAFTD_CONTROL to the user, who answers it.
 * NOT HERE  The texts (raftd_status.h), what a command does (raftd_raft.c).
 * OWNER     struct raftd_socket belongs to the caller, and stays until the loop has ended.
 * THREADS   that of the loop.
 *
 * INVARIANTS
 *   (1) The sockets have the mode of the environment's files, but only the owner commands.
 *   (2) A command is one line of less than RAFTD_COMMAND_BYTES.  It is answered once.
 */
#ifndef XAC_RAFTD_SOCKET_H
#define XAC_RAFTD_SOCKET_H

#include <uv.h>

#include "raftd_status.h"

/* One who commands. */
struct raftd_commander;

struct raftd_socket {
    uv_pipe_t pipe, control;
    struct raftd_status *status;
    void (*command)(void *arg, char *line, struct raftd_commander *who);
    void *arg;
    struct raftd_commander *commander; /* all of them                                 */
};

/* raftd_socket_init -- handles of the loop, which raftd_socket_close() closes. */
void raftd_socket_init(struct raftd_socket *s, uv_loop_t *loop,
                       struct raftd_status *status);
void raftd_socket_close(struct raftd_socket *s);

/* raftd_socket_listen -- this process is the daemon of the directory.  ret 0 or errno, words noted. */
int raftd_socket_listen(struct raftd_socket *s, int dirfd);

/* raftd_socket_answer -- a command: rc 0 and what was asked for, or an error and words. */
void raftd_socket_answer(struct raftd_commander *who, int rc, const char *text);

#endif /* XAC_RAFTD_SOCKET_H */
