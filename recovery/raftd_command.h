/* SPDX-License-Identifier: MIT */
/*
 * raftd_command.h -- the commands of users: add a node, remove one, let another one lead.
 *
 * WHAT      Carries those that only the node that leads can do to it, wherever they are given, until it has done what they say;
 *           and says in words what has become of them.
 * NOT HERE  Questions and answers (raftd_errand.h).  Decisions (raftd_decide.h).  Whom the command comes from
 *           (raftd_socket.h).
 * OWNER     A command that is under way, of the thread that carries it.
 * THREADS   raftd_command_take(): that of the loop.
 */
#ifndef XAC_RAFTD_COMMAND_H
#define XAC_RAFTD_COMMAND_H

struct raftd_commander;

/* raftd_command_take -- for struct raftd_socket; arg is a struct raftd_errands: "remove NODE" and "transfer NODE", 0 for any, at
   whichever node; what raftd_decide_command() knows, at the node that leads.  The commander is answered when it is done. */
void raftd_command_take(void *arg, char *line, struct raftd_commander *who);

#endif /* XAC_RAFTD_COMMAND_H */
