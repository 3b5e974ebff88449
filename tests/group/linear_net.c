/* SPDX-License-Identifier: MIT */
/*
 * linear_net.c -- see linear_net.h.
 */
#include <config.h>

#include "linear_net.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/common/env.h"

#define PREFIX "xlinear"

/* The namespace that forwards has number 0. */
static pid_t claimed_by;
static char
    src[PATH_MAX]; /* the source tree: a test works in a directory of its own       */

/* sh -- ret the exit code of a command. */
__attribute__((format(printf, 1, 2))) static int
sh(const char *format, ...)
{
    char command[1024];
    va_list args;

    va_start(args, format);
    must((size_t)vsnprintf(command, sizeof command, format, args) < sizeof command);
    va_end(args);
    return system(command);
}

const char *
net_claim(void)
{
    claimed_by = getpid();
    if (realpath(getenv("srcdir") != NULL ? getenv("srcdir") : ".", src) == NULL)
        return "srcdir is wrong";
    if (geteuid() != 0)
        return "only root can make network namespaces";
    if (sh("command -v ip nsenter >/dev/null") != 0)
        return "there is no ip or no nsenter";
    if (sh(". %s/bench/kit/shell.sh && remove_stale_namespaces " PREFIX, src) != 0)
        exit(EXIT_FAILURE); /* srcdir is wrong: the shell has said so */
    if (sh("ip netns add " PREFIX "-%d-0 2>/dev/null", (int)claimed_by) != 0)
        return "network namespaces cannot be made here";
    if (sh("ip -n " PREFIX "-%d-0 link add name probe type veth 2>/dev/null &&"
           "ip -n " PREFIX "-%d-0 rule add iif probe to 192.0.2.1 blackhole 2>/dev/null",
           (int)claimed_by, (int)claimed_by)
        != 0) {
        net_remove();
        return "there is no veth, or no rule of routing, here";
    }
    net_remove();
    return NULL;
}

void
net_remove(void)
{
    (void)sh(". %s/bench/kit/shell.sh; for i in 0 1 2 3; do remove_namespace " PREFIX
             "-%d-$i; done",
             src, (int)claimed_by);
}

/* Node N has 192.0.2.(4 N + 2); the other end of its cable, 4 N + 1. */
#define AT(n) (4 * (n) + 2)

void
net_make(struct net *n, struct group_site *site)
{
    int id = (int)claimed_by;

    memset(n, 0, sizeof *n);
    net_remove();
    must_ok(sh("ip netns add " PREFIX "-%d-0", id));
    must_ok(sh("nsenter --net=/run/netns/" PREFIX
               "-%d-0 sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'",
               id));
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        char *within = site->within[i - 1];

        (void)snprintf(within, sizeof site->within[0], PREFIX "-%d-%u", id, i);
        (void)snprintf(site->address[i - 1], sizeof site->address[0], "192.0.2.%u:7000",
                       AT(i));
        must_ok(sh("ip netns add %s && ip -n %s link set lo up", within, within));
        must_ok(sh("ip -n " PREFIX
                   "-%d-0 link add name to%u type veth peer name hub netns %s",
                   id, i, within));
        must_ok(sh("ip -n " PREFIX
                   "-%d-0 address add 192.0.2.%u/30 dev to%u && ip -n " PREFIX
                   "-%d-0 link set to%u up",
                   id, AT(i) - 1, i, id, i));
        must_ok(sh(
            "ip -n %s address add 192.0.2.%u/30 dev hub && ip -n %s link set hub up && "
            "ip -n %s route add default via 192.0.2.%u",
            within, AT(i), within, within, AT(i) - 1));
    }
}

/* rule -- add or delete that of a cut. */
static void
rule(const char *verb, unsigned from, unsigned to)
{
    must_ok(sh("ip -n " PREFIX "-%d-0 rule %s iif to%u to 192.0.2.%u blackhole",
               (int)claimed_by, verb, from, AT(to)));
}

void
net_cut(struct net *n, unsigned from, unsigned to)
{
    must(from >= 1 && from <= GROUP_NODES && to >= 1 && to <= GROUP_NODES);
    if (from == to || n->is_cut[from][to])
        return;
    n->is_cut[from][to] = true;
    rule("add", from, to);
}

void
net_cut_off(struct net *n, unsigned number)
{
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        net_cut(n, i, number);
        net_cut(n, number, i);
    }
}

void
net_heal(struct net *n)
{
    for (unsigned from = 1; from <= GROUP_NODES; from++) {
        for (unsigned to = 1; to <= GROUP_NODES; to++) {
            if (n->is_cut[from][to])
                rule("del", from, to);
            n->is_cut[from][to] = false;
        }
    }
}
