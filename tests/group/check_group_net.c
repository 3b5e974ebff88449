/* SPDX-License-Identifier: MIT */
/*
 * check_group_net.c -- xraftd: the connections between the nodes of a group.
 *
 * GOAL    Three nodes with a secret and with TLS lose nothing when the leader is killed.  A node with another secret, with
 *         no certificate or with that of another node, and one of another group are refused with words, and do no harm:
 *         the others go on, and so does the node when it is started as it should be.  Garbage at a node's port does none.
 * METHOD  Three nodes on this machine, as in check_group.
 */
#include <config.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "group_run.h"
#include "tests/common/env.h"
#include "tests/common/tls_files.h"

#define PATIENCE_S 60

static void
make_secret(const char *name, const char *text)
{
    FILE *f = fopen(name, "we");

    must(f != NULL);
    must(fputs(text, f) >= 0);
    must_ok(fclose(f));
    must_ok(chmod(name, 0600));
}

/* start -- a node with the files of a certificate, and a secret. */
static void
start(struct group *g, unsigned number, const char *who, const char *secret)
{
    char options[256];

    (void)
        snprintf(options, sizeof options,
                 "-q --secret-file %s --tls-ca ca.pem --tls-cert %s.pem --tls-key %s.key",
                 secret, who, who);
    group_start(g, number, options);
}

/* await_words -- until a node's log has them. */
static void
await_words(unsigned number, const char *words)
{
    char command[256];
    double until = env_now() + PATIENCE_S;

    (void)snprintf(command, sizeof command, "grep -qs -e '%s' n%u.log", words, number);
    while (system(command) != 0) {
        if (env_now() > until)
            env_fail(__FILE__, __LINE__, "node %u does not say: %s", number, words);
        (void)poll(NULL, 0, 50);
    }
}

/* finish -- all nodes run and agree; then they are stopped, and have what was acknowledged. */
static void
finish(struct group *g)
{
    group_await_acknowledged(g, 20, PATIENCE_S);
    group_kill_writer(g);
    group_end_equal(g, PATIENCE_S);
    group_free(g);
}

#ifdef HAVE_LIBSSL
static const char certificates[] = "authority ca; authority alien\n"
                                   "make n1 one 9 ca DNS:node-1\n"
                                   "make n2 two 9 ca DNS:node-2\n"
                                   "make n3 three 9 ca DNS:node-3\n"
                                   "make n9 nine 9 ca DNS:node-9\n"
                                   "make old three -1 ca DNS:node-3\n"
                                   "make stranger three 9 alien DNS:node-3\n";

static const char *const who[] = {"", "n1", "n2", "n3"};

START_TEST(nodes_with_tls_lose_nothing)
{
    unsigned leader;
    struct group g;

    if (!tls_files_make(certificates))
        return;
    make_secret("secret", "the secret of the group\n");
    group_make(&g);
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        start(&g, i, who[i], "secret");
    group_await_acknowledged(&g, 100, PATIENCE_S);
    leader = group_await_leader(&g, PATIENCE_S);
    group_kill(&g, leader);
    group_await_acknowledged(&g, 100, PATIENCE_S);
    start(&g, leader, who[leader], "secret");
    finish(&g);
}
END_TEST

/* What is wrong with node 3, and what the others say. */
static const struct {
    const char *who, *secret, *words;
} wrong[] = {
    {"n3", "other", "another secret"},
    {"n9", "secret", "not for its name, node-3"},
    {"old", "secret", "certificate has expired"},
    {"stranger", "secret", "unable to get local issuer certificate"},
};

START_TEST(a_node_that_does_not_prove_itself_is_refused)
{
    char pattern[256];
    struct group g;

    if (!tls_files_make(certificates))
        return;
    make_secret("secret", "the secret of the group\n");
    make_secret("other", "the secret of another group\n");
    group_make(&g);
    for (unsigned i = 1; i <= 2; i++)
        start(&g, i, who[i], "secret");
    start(&g, 3, wrong[_i].who, wrong[_i].secret);
    (void)snprintf(pattern, sizeof pattern, "refused .*%s", wrong[_i].words);
    await_words(1, pattern);
    await_words(2, pattern);
    group_await_acknowledged(&g, 50, PATIENCE_S); /* two are a majority */
    must(group_leader(&g) != 3);
    group_stop(&g, 3);
    start(&g, 3, who[3], "secret");
    finish(&g);
}
END_TEST
#endif

/* port_of -- where a node listens. */
static unsigned
port_of(const struct group *g, unsigned number)
{
    char path[64], line[256];
    unsigned node, port = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/xac.members", g->node[0].dir);
    f = fopen(path, "re");
    must(f != NULL);
    while (port == 0 && fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "node %u 127.0.0.1:%u", &node, &port) == 2 && node != number)
            port = 0;
    }
    must_ok(fclose(f));
    must(port != 0);
    return port;
}

/* send_garbage -- to a port; it is closed. */
static void
send_garbage(unsigned port, const void *bytes, size_t n)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char answer[64];

    must_ok(connect(fd, (const struct sockaddr *)&at, sizeof at));
    (void)send(fd, bytes, n, MSG_NOSIGNAL);
    must(poll(&p, 1, 20000) > 0);
    must(recv(fd, answer, sizeof answer, 0) <= 0);
    (void)close(fd);
}

START_TEST(garbage_at_a_port_does_no_harm)
{
    /* The handshake of libraft's own transport, and then a message of 2^40 bytes. */
    static const uint64_t raft[] = {1, 2, 16, 0, 0, 1, UINT64_C(1) << 40};
    static const uint8_t ones[64] = {0xff, 0xff, 0xff, 0xff, 0xff};
    struct group g;

    make_secret("secret", "the secret of the group\n");
    group_make(&g);
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_start(&g, i, "-q --secret-file secret");
    group_await_acknowledged(&g, 50, PATIENCE_S);
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        for (unsigned k = 0; k < 8; k++) {
            send_garbage(port_of(&g, i), raft, sizeof raft);
            send_garbage(port_of(&g, i), ones, sizeof ones);
        }
        await_words(i, "refused .*no xraftd of this version");
    }
    finish(&g);
}
END_TEST

START_TEST(a_node_of_another_group_is_refused)
{
    struct group g;

    group_make(&g);
    must_ok(system("mkdir kept; cp n3/xac.group n3/xac.members kept"));
    must_ok(system("sed -i 's/^group .*/group 0123456789abcdef0123456789abcdef/' "
                   "n3/xac.group n3/xac.members"));
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_start(&g, i, "-q");
    await_words(1, "refused .*it is of another group");
    await_words(3, "refused .*it is of another group");
    group_await_acknowledged(&g, 50, PATIENCE_S);
    must(group_leader(&g) != 3);
    group_stop(&g, 3);
    must_ok(system("cp kept/* n3; cp kept/xac.group n3/raft"));
    group_start(&g, 3, "-q");
    finish(&g);
}
END_TEST

START_TEST(other_machines_are_reached_only_by_tls)
{
    struct group g;

    group_make(&g);
    must_ok(system("sed -i 's/^node 1 127[^:]*/node 1 0.0.0.0/' n1/xac.members"));
    must(system("$top_builddir/xraftd start n1 >far.log 2>&1") != 0);
    must_ok(system("grep -q 'other machines would reach this address' far.log"));
    group_free(&g);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("group_net");
    TCase *t = env_tcase(s, "group_net", 300);

#ifdef HAVE_LIBSSL
    tcase_add_test(t, nodes_with_tls_lose_nothing);
    tcase_add_loop_test(t, a_node_that_does_not_prove_itself_is_refused, 0,
                        (int)(sizeof wrong / sizeof wrong[0]));
#endif
    tcase_add_test(t, garbage_at_a_port_does_no_harm);
    tcase_add_test(t, a_node_of_another_group_is_refused);
    tcase_add_test(t, other_machines_are_reached_only_by_tls);
    return env_main(s);
}
