/* SPDX-License-Identifier: MIT */
/*
 * check_raftd_net.c -- connections between the nodes of a group (recovery/raftd_net.h), and requests on them
 * (recovery/raftd_ask.h).
 *
 * GOAL    A node that proves itself is let in and is answered.  One with another secret, of another group, for another
 *         node, or that wants what is not there is refused; so is a stranger that sends anything else, or nothing.  None of them
 *         keeps a node from being let in.  Without TLS no other machine is called, nor listened to.
 * METHOD  Two nets in this process, at ports of 127.0.0.1.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "base/clock.h"
#include "base/err.h"
#include "recovery/raftd_ask.h"
#include "recovery/raftd_net.h"
#include "recovery/ship_stranger.h"

#define SECOND_NS UINT64_C(1000000000)

const char *const tool_name = "check_raftd_net";

/* Two nodes, as each of them knows the group. */
static struct raftd_group group[2];
static struct raftd_net *net[2];

static uint64_t
soon(void)
{
    return xac_clock_ns() + 20 * SECOND_NS;
}

/* free_port -- one that is free now. */
static unsigned
free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must_ok(bind(fd, (const struct sockaddr *)&at, n));
    must_ok(getsockname(fd, (struct sockaddr *)&at, &n));
    (void)close(fd);
    return ntohs(at.sin_port);
}

static void
make_group(void)
{
    struct raftd_group *g = &group[0];

    *g = (struct raftd_group){.id = "a group of two.",
                              .node = 1,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .n = 2};
    for (unsigned i = 0; i < 2; i++) {
        g->member[i].node = i + 1;
        (void)snprintf(g->member[i].address, sizeof g->member[i].address, "127.0.0.1:%u",
                       free_port());
    }
    group[1] = *g;
    group[1].node = 2;
}

static void
make_secret(const char *name, const char *text)
{
    FILE *f = fopen(name, "we");

    must(f != NULL);
    must(fputs(text, f) >= 0);
    must_ok(fclose(f));
    must_ok(chmod(name, 0600));
}

/* double_it -- the handler: the answer is twice the first value; kind 9 is not answered. */
static void
double_it(void *arg, struct raftd_line *line)
{
    struct xac_raftd_ask ask;
    unsigned *n_lines = (unsigned *)arg;

    must_eq(line->node, 1);
    must(strcmp(line->address, group[0].member[0].address) == 0);
    __atomic_fetch_add(n_lines, 1, __ATOMIC_RELAXED);
    while (raftd_ask_await(line, &ask, soon()) == 0) {
        uint64_t value[XAC_RAFTD_ASK_VALUES] = {2 * ask.value[0]};

        if (raftd_ask_answer(line, &ask, ask.kind == 9 ? 5 : 0, value, soon()) != 0)
            return;
    }
}

/* open_nets -- node 2 listens, node 1 calls. */
static void
open_nets(const char *secret1, const char *secret2, unsigned *n_lines)
{
    struct raftd_net_options o = {.secret_file = secret1};

    must_ok(raftd_net_create(&o, &group[0], &net[0]));
    o.secret_file = secret2;
    must_ok(raftd_net_create(&o, &group[1], &net[1]));
    raftd_net_serve(net[1], RAFTD_WANT_ASK, double_it, n_lines);
    must_ok(raftd_net_start(net[1]));
}

static void
close_nets(void)
{
    for (unsigned i = 0; i < 2; i++) {
        raftd_net_stop(net[i]);
        raftd_net_destroy(net[i]);
    }
}

/* must_answer -- node 2, on a line. */
static void
must_answer(struct raftd_line *line, uint64_t value)
{
    struct xac_raftd_ask ask = {.kind = 1, .value = {value}}, answer;

    must_ok(raftd_ask(line, &ask, &answer, soon()));
    must_eq(answer.status, 0);
    must_eq(answer.value[0], 2 * value);
}

/* must_let_in -- node 2 lets node 1 in, and answers. */
static void
must_let_in(void)
{
    struct raftd_line *line;

    must_ok(raftd_net_call(net[0], 2, RAFTD_WANT_ASK, soon(), &line));
    must_answer(line, 21);
    raftd_net_hang_up(line);
}

START_TEST(a_node_is_let_in_and_answered)
{
    struct xac_raftd_ask ask = {.kind = 9}, answer;
    struct raftd_line *line, *other;
    unsigned n_lines = 0;

    make_group();
    make_secret("secret", "the secret of the group\n");
    open_nets(_i == 0 ? "secret" : NULL, _i == 0 ? "secret" : NULL, &n_lines);
    must_ok(raftd_net_call(net[0], 2, RAFTD_WANT_ASK, soon(), &line));
    must_ok(raftd_net_call(net[0], 2, RAFTD_WANT_ASK, soon(), &other));
    for (uint64_t i = 0; i < 100; i++) {
        must_answer(line, i);
        must_answer(other, 1000 + i);
    }
    must_ok(raftd_ask(line, &ask, &answer, soon()));
    must_eq(answer.status, 5);
    raftd_net_hang_up(other);
    must_answer(line, 7);
    raftd_net_hang_up(line);
    must_eq(n_lines, 2);
    must_refuse(raftd_net_call(net[0], 1, RAFTD_WANT_ASK, soon(), &line), EINVAL);
    must_refuse(raftd_net_call(net[0], 3, RAFTD_WANT_ASK, soon(), &line), EINVAL);
    close_nets();
}
END_TEST

START_TEST(whoever_is_not_a_node_is_refused)
{
    struct raftd_line *line;
    unsigned n_lines = 0;
    int want = XAC_EFOREIGN;

    make_group();
    make_secret("secret", "the secret of the group");
    make_secret("other", "the secret of the groop");
    switch (_i) {
    case 0:
        open_nets("secret", "other", &n_lines);
        break;
    case 1:
        open_nets("secret", NULL, &n_lines);
        break;
    case 2:
        open_nets(NULL, "secret", &n_lines);
        break;
    case 3:
        group[0].id[3] ^= 1;
        open_nets("secret", "secret", &n_lines);
        break;
    case 4: /* it is called as node 2, and is node 3 */
        group[1].node = 3;
        memcpy(&group[1].member[2], &group[1].member[1], sizeof group[1].member[2]);
        group[1].member[2].node = 3;
        group[1].n = 3;
        open_nets("secret", "secret", &n_lines);
        break;
    case 5: /* it says that it is the one it calls */
        group[0].node = 2;
        open_nets("secret", "secret", &n_lines);
        must_refuse(raftd_net_call_at(net[0], 2, group[1].member[1].address,
                                      RAFTD_WANT_ASK, soon(), &line),
                    want);
        close_nets();
        return;
    default: /* nobody serves that */
        open_nets("secret", "secret", &n_lines);
        must_refuse(raftd_net_call(net[0], 2, RAFTD_WANT_COPY, soon(), &line), want);
        must_let_in();
        close_nets();
        return;
    }
    must_refuse(raftd_net_call(net[0], 2, RAFTD_WANT_ASK, soon(), &line), want);
    must_eq(n_lines, 0);
    close_nets();
}
END_TEST

/* connect_plainly -- to node 2. */
static int
connect_plainly(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unsigned port =
        (unsigned)strtoul(strchr(group[1].member[1].address, ':') + 1, NULL, 10);

    at.sin_port = htons((uint16_t)port);
    must_ok(connect(fd, (const struct sockaddr *)&at, sizeof at));
    return fd;
}

START_TEST(strangers_keep_nobody_out)
{
    int silent[SHIP_STRANGERS_MAX];
    unsigned char bytes[512];
    unsigned n_lines = 0;

    make_group();
    make_secret("secret", "the secret of the group");
    open_nets("secret", "secret", &n_lines);
    for (unsigned round = 0; round < 20; round++) {
        int fd = connect_plainly();
        struct pollfd p = {.fd = fd, .events = POLLIN};

        /* Garbage; and what would be huge lengths to libraft. */
        memset(bytes, round % 2 == 0 ? 0xff : (int)round, sizeof bytes);
        (void)send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
        must(poll(&p, 1, 20000) > 0); /* it is closed, and nothing is said */
        must(recv(fd, bytes, sizeof bytes, 0) <= 0);
        (void)close(fd);
    }
    must_let_in();
    for (unsigned i = 0; i < SHIP_STRANGERS_MAX - 1; i++)
        silent[i] = connect_plainly();
    must_let_in(); /* there is one more place */
    for (unsigned i = 0; i < SHIP_STRANGERS_MAX - 1; i++)
        (void)close(silent[i]);
    must_let_in();
    must_eq(n_lines, 3);
    close_nets();
}
END_TEST

START_TEST(a_node_has_so_many_lines_and_no_more)
{
    struct xac_raftd_ask ask = {.kind = 1}, answer;
    struct raftd_line *line[RAFTD_NET_LINES], *more;
    unsigned n_lines = 0;
    int rc;

    make_group();
    open_nets(NULL, NULL, &n_lines);
    for (unsigned i = 0; i < RAFTD_NET_LINES; i++) {
        must_ok(raftd_net_call(net[0], 2, RAFTD_WANT_ASK, soon(), &line[i]));
        must_answer(line[i], i);
    }
    must_ok(raftd_net_call(net[0], 2, RAFTD_WANT_ASK, soon(), &more)); /* it is proven */
    must(raftd_ask(more, &ask, &answer, soon()) != 0);
    raftd_net_hang_up(more);
    must_answer(line[0], 7);
    raftd_net_hang_up(line[0]);
    do { /* until node 2 has noticed */
        must_ok(raftd_net_call(net[0], 2, RAFTD_WANT_ASK, soon(), &more));
        rc = raftd_ask(more, &ask, &answer, soon());
        raftd_net_hang_up(more);
    } while (rc != 0);
    for (unsigned i = 1; i < RAFTD_NET_LINES; i++)
        raftd_net_hang_up(line[i]);
    must_eq(n_lines, RAFTD_NET_LINES + 1);
    close_nets();
}
END_TEST

START_TEST(a_net_that_is_stopped_cuts_its_lines)
{
    struct xac_raftd_ask ask = {.kind = 1}, answer;
    struct raftd_line *line;
    unsigned n_lines = 0;

    make_group();
    open_nets(NULL, NULL, &n_lines);
    must_ok(raftd_net_call(net[0], 2, RAFTD_WANT_ASK, soon(), &line));
    must_answer(line, 1);
    raftd_net_stop(net[1]); /* its handler returns */
    must_rc(raftd_ask(line, &ask, &answer, soon()), EPIPE);
    raftd_net_hang_up(line);
    must(raftd_net_call(net[0], 2, RAFTD_WANT_ASK, soon(), &line) == ECONNREFUSED);
    raftd_net_stop(net[0]);
    must_refuse(raftd_net_thread(net[0], NULL, NULL), ECANCELED);
    raftd_net_destroy(net[0]);
    raftd_net_destroy(net[1]);
}
END_TEST

START_TEST(no_other_machine_without_tls)
{
    struct raftd_net_options o = {.secret_file = NULL};
    struct raftd_line *line;

    make_group();
    (void)snprintf(group[0].member[0].address, sizeof group[0].member[0].address,
                   "0.0.0.0:%u", free_port());
    /* Of the addresses that documents use (RFC 5737): nobody is there. */
    (void)snprintf(group[0].member[1].address, sizeof group[0].member[1].address,
                   "192.0.2.1:7001");
    must_ok(raftd_net_create(&o, &group[0], &net[0]));
    must_refuse(raftd_net_start(net[0]), EPERM);
    must(strstr(xac_err_text(), "--insecure-listen") != NULL);
    must_refuse(raftd_net_call(net[0], 2, RAFTD_WANT_ASK, soon(), &line), EPERM);
    raftd_net_stop(net[0]);
    raftd_net_destroy(net[0]);
    o.may_be_far = true;
    must_ok(raftd_net_create(&o, &group[0], &net[0]));
    must_ok(raftd_net_start(net[0]));
    raftd_net_stop(net[0]);
    raftd_net_destroy(net[0]);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("raftd_net");
    TCase *t = env_tcase(s, "raftd_net", 120);

    tcase_add_loop_test(t, a_node_is_let_in_and_answered, 0, 2);
    tcase_add_loop_test(t, whoever_is_not_a_node_is_refused, 0, 7);
    tcase_add_test(t, strangers_keep_nobody_out);
    tcase_add_test(t, a_node_has_so_many_lines_and_no_more);
    tcase_add_test(t, a_net_that_is_stopped_cuts_its_lines);
    tcase_add_test(t, no_other_machine_without_tls);
    return env_main(s);
}
