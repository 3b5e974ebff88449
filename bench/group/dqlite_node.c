/* SPDX-License-Identifier: MIT */
/*
 * dqlite_node.c -- a node of dqlite, with all settings as the library has them, but one: its connections to other nodes are made
 * here, without Nagle's delay, as a program in Go makes them.  Those of the library have it, and many a commit waits 40 ms for an
 * acknowledgement of TCP then.
 *
 *   dqlite_node ID ADDRESS DIR [LEADER]   node 1 begins a group; another one joins it as a voter, at the address of the node that
 *                                         leads; it prints "ready", and runs until SIGTERM
 */
#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <dqlite.h>

#include "dqlite_wire.h"

#define ROLE_VOTER 0

static _Noreturn void
die(const char *what, const char *why)
{
    fprintf(stderr, "dqlite_node: %s: %s\n", what, why);
    exit(1);
}

/* join -- ret NULL, or words. */
static const char *
join(const char *leader, uint64_t id, const char *address)
{
    static struct dqlite_wire w;
    const char *words = group_dqlite_open(&w, leader);

    if (words == NULL) {
        group_dqlite_begin(&w, DQLITE_ADD);
        group_dqlite_u64(&w, id);
        group_dqlite_text(&w, address);
        words = group_dqlite_call(&w);
    }
    if (words == NULL) {
        group_dqlite_begin(&w, DQLITE_ASSIGN);
        group_dqlite_u64(&w, id);
        group_dqlite_u64(&w, ROLE_VOTER);
        words = group_dqlite_call(&w);
    }
    group_dqlite_close(&w);
    return words;
}

/* connect_to -- another node, for the library. */
static int
connect_to(void *arg, const char *address, int *fdp)
{
    (void)arg;
    return group_net_connect(address, fdp) == NULL ? 0 : 1;
}

int
main(int argc, char **argv)
{
    dqlite_node *node;
    sigset_t set;
    int number;
    const char *words;

    if (argc != 4 && argc != 5) {
        fputs("usage: dqlite_node ID ADDRESS DIR [LEADER]\n", stderr);
        return 2;
    }
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL); /* also of the threads that dqlite starts */
    if (dqlite_node_create(strtoull(argv[1], NULL, 10), argv[2], argv[3], &node) != 0)
        die(argv[3], "cannot be made a node");
    if (dqlite_node_set_connect_func(node, connect_to, NULL) != 0
        || dqlite_node_set_bind_address(node, argv[2]) != 0
        || dqlite_node_start(node) != 0)
        die(argv[2], dqlite_node_errmsg(node));
    words = argc == 5 ? join(argv[4], strtoull(argv[1], NULL, 10), argv[2]) : NULL;
    if (words != NULL)
        die(argv[4], words);
    puts("ready");
    (void)fflush(stdout);
    (void)sigwait(&set, &number);
    if (dqlite_node_stop(node) != 0)
        die("stop", dqlite_node_errmsg(node));
    dqlite_node_destroy(node);
    return 0;
}
