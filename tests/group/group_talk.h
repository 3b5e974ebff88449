/* SPDX-License-Identifier: MIT */
/*
 * group_talk.h -- programs at the nodes of a group that do what the test tells them: group_client.c says what they can do.
 *
 * A client has one command under way at a time.  It is a process of its own, which its node may kill when it is deposed: then
 * its command has no answer, and the client is started again with the next one.
 */
#ifndef XAC_TEST_GROUP_TALK_H
#define XAC_TEST_GROUP_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <xac.h>

#include "group_run.h"

struct group_client {
    char dir[16]; /* of its node                                                       */
    pid_t pid;    /* 0: it does not run                                               */
    int to, from; /* its standard input and output                                    */
    bool is_busy; /* a command is under way                                           */
    double asked; /* when, by env_now()                                               */
    char line[512];
    size_t n_line;
};

/* What a client has answered. */
enum group_answer {
    GROUP_NONE = 0,  /* none yet                                                       */
    GROUP_DONE,      /* append: last is the record, n its place, token                 */
    GROUP_UNCERTAIN, /* append: token                                                  */
    GROUP_STATE,     /* read: n, last, token                                           */
    GROUP_FATE,      /* code                                                           */
    GROUP_FAILED,    /* code                                                           */
    GROUP_GONE       /* it has been killed: nothing is known                           */
};

struct group_reply {
    enum group_answer kind;
    uint64_t n, last;
    char token[XAC_TOKEN_TEXT];
    int code;
    char words[256];
};

/* group_client_init -- for a node; it is started with its first command.  group_client_end -- whatever it does. */
void group_client_init(struct group_client *c, const struct group *g, unsigned number);
void group_client_end(struct group_client *c);

/* group_client_send -- a command, without the newline. */
void group_client_send(struct group_client *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* group_client_hear -- the answer, if it has come; else GROUP_NONE at once. */
void group_client_hear(struct group_client *c, struct group_reply *out);

/* group_client_await -- the answer; a test that waits longer than that fails. */
void group_client_await(struct group_client *c, double seconds, struct group_reply *out);

#endif /* XAC_TEST_GROUP_TALK_H */
