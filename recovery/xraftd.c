/* SPDX-License-Identifier: MIT */
/*
 * xraftd.c -- the daemon xraftd(1): a node of a group of environments that have the same log by Raft.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <xac_env.h>

#include "base/err.h"
#include "base/names.h"
#include "base/newfile.h"
#include "base/sys.h"
#include "raftd_far.h"
#include "raftd_hand.h"
#include "raftd_net.h"
#include "raftd_send.h"
#include "shared/group.h"
#include "tool.h"

const char *const tool_name = "xraftd";

/* A snapshot is taken after as much as one transaction may have. */
#define SNAPSHOT_MIB (XAC_GROUP_CHANGES_MAX >> 20)

enum command {
    COMMAND_NONE = 0,
    COMMAND_CREATE,
    COMMAND_JOIN,
    COMMAND_ADD,
    COMMAND_REMOVE,
    COMMAND_TRANSFER,
    COMMAND_START,
    COMMAND_STATUS,
    COMMANDS
};

static const char *const commands[COMMANDS] = {
    [COMMAND_CREATE] = "create",     [COMMAND_JOIN] = "join",
    [COMMAND_ADD] = "add",           [COMMAND_REMOVE] = "remove",
    [COMMAND_TRANSFER] = "transfer", [COMMAND_START] = "start",
    [COMMAND_STATUS] = "status",
};

struct arguments {
    enum command command;
    bool json, quiet;
    uint64_t node, snapshot_mib;
    unsigned n_members;
    const char *member[RAFTD_MEMBERS_MAX + 1];
    struct raftd_net_options net;
    const char *invitation; /* of join; NULL: DIR is a copy                             */
    const char *address;    /* of add                                                  */
    const char *dir;
};

/* Options without a letter. */
enum {
    OPTION_INSECURE = 1000,
    OPTION_SECRET,
    OPTION_CERT,
    OPTION_KEY,
    OPTION_CA
};

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"invitation", required_argument, NULL, 'i'},
    {"insecure-listen", no_argument, NULL, OPTION_INSECURE},
    {"json", no_argument, NULL, 'j'},
    {"member", required_argument, NULL, 'm'},
    {"node", required_argument, NULL, 'n'},
    {"quiet", no_argument, NULL, 'q'},
    {"secret-file", required_argument, NULL, OPTION_SECRET},
    {"snapshot-mib", required_argument, NULL, 's'},
    {"tls-ca", required_argument, NULL, OPTION_CA},
    {"tls-cert", required_argument, NULL, OPTION_CERT},
    {"tls-key", required_argument, NULL, OPTION_KEY},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static void
usage(FILE *to)
{
    fputs(
        "usage: xraftd create --member ADDRESS [--member ADDRESS]... DIR\n"
        "       xraftd join --node NUMBER [--invitation FILE] DIR\n"
        "       xraftd add --node NUMBER ADDRESS DIR\n"
        "       xraftd remove --node NUMBER DIR\n"
        "       xraftd transfer [--node NUMBER] DIR\n"
        "       xraftd start [options] DIR\n"
        "       xraftd status [--json] DIR\n"
        "Be a node of a group: environments with the same log, by Raft.  One of them leads, and\n"
        "programs write there.  A commit is there to stay when a majority has it.\n"
        "\n"
        "  create        make the environment in directory DIR, which nobody uses, node 1\n"
        "  join          make DIR another node: a copy of node 1 that has not been started yet; or,\n"
        "                with an invitation, an empty directory, to which everything comes\n"
        "  add           have a running group take one more node, and print the invitation for it;\n"
        "                DIR is that of the node that leads\n"
        "  remove        have a running group go on without a node; DIR is that of any node that runs\n"
        "  transfer      have another node lead, or this one, likewise\n"
        "  start         run the node until a signal ends it\n"
        "  status        ask the running node what it is\n"
        "\n"
        "  -m, --member ADDRESS  create: where node 1, 2, ... listens, HOST:PORT\n"
        "  -n, --node NUMBER  join, add, remove, transfer: which node; numbers are never used again\n"
        "  -i, --invitation FILE  join: what `xraftd add` has printed\n"
        "  -q, --quiet   start: say nothing unless something is wrong\n"
        "  -s, --snapshot-mib NUMBER  start: shorten Raft's log when so much of it has gathered (64)\n"
        "  --secret-file FILE  start: all nodes must have the same one\n"
        "  --tls-cert FILE, --tls-key FILE, --tls-ca FILE  start: use TLS; the certificate of node N\n"
        "                has the name node-N; its key, and whose certificates count\n"
        "  --insecure-listen  start: also without TLS where other machines reach it\n"
        "  -j, --json    status: print one JSON object\n"
        "  -h, --help    this text\n"
        "  -V, --version version of libxac\n"
        "\n"
        "exit: 0 done          3 damaged\n"
        "      1 error         4 in use\n"
        "      2 wrong usage   5 no environment\n",
        to);
}

/* has_net -- is anything said of connections? */
static bool
has_net(const struct arguments *a)
{
    const struct raftd_net_options *n = &a->net;

    return n->secret_file != NULL || n->tls.cert != NULL || n->tls.key != NULL
           || n->tls.ca != NULL || n->may_be_far;
}

/* fits -- do the options belong to the command? */
static bool
fits(const struct arguments *a)
{
    enum command c = a->command;

    if ((c == COMMAND_CREATE) != (a->n_members > 0) || a->n_members > RAFTD_MEMBERS_MAX)
        return false;
    if (((c == COMMAND_JOIN || c == COMMAND_ADD || c == COMMAND_REMOVE) != (a->node != 0)
         && c != COMMAND_TRANSFER)
        || a->node > XAC_GROUP_NODE_MAX)
        return false;
    if ((c == COMMAND_ADD) != (a->address != NULL)
        || (a->invitation != NULL && c != COMMAND_JOIN))
        return false;
    return (!a->json || c == COMMAND_STATUS) && (!a->quiet || c == COMMAND_START)
           && (a->snapshot_mib == 0 || c == COMMAND_START)
           && (c == COMMAND_START || !has_net(a));
}

/* words_read -- the command and the directory. */
static bool
words_read(struct arguments *a, int n, char **word)
{
    if (n < 2 || n > 3 || word[n - 1][0] == '\0')
        return false;
    for (int i = COMMAND_NONE + 1; i < COMMANDS; i++) {
        if (strcmp(word[0], commands[i]) == 0)
            a->command = (enum command)i;
    }
    a->address = n == 3 ? word[1] : NULL;
    a->dir = word[n - 1];
    return a->command != COMMAND_NONE && fits(a);
}

/* file_option -- one with a file; ret false: there is no such option. */
static bool
file_option(struct arguments *a, int c, const char *file)
{
    const char **to = c == OPTION_SECRET ? &a->net.secret_file
                      : c == OPTION_CERT ? &a->net.tls.cert
                      : c == OPTION_KEY  ? &a->net.tls.key
                      : c == OPTION_CA   ? &a->net.tls.ca
                                         : NULL;

    if (to != NULL)
        *to = file;
    return to != NULL;
}

/* arguments_read -- ret -1 to go on, or the exit code. */
static int
arguments_read(struct arguments *a, int argc, char **argv)
{
    bool is_right = true;
    int c;

    while ((c = getopt_long(argc, argv, "hi:jm:n:qs:V", long_options, NULL)) != -1) {
        switch (c) {
        case 'h':
            usage(stdout);
            return EXIT_DONE;
        case 'V':
            return tool_version();
        case 'j':
            a->json = true;
            break;
        case 'q':
            a->quiet = true;
            break;
        case 'i':
            a->invitation = optarg;
            break;
        case 'm':
            if (a->n_members <= RAFTD_MEMBERS_MAX)
                a->member[a->n_members++] = optarg;
            break;
        case 'n':
            is_right = is_right && tool_number(optarg, &a->node) && a->node > 0;
            break;
        case 's':
            is_right = is_right && tool_number(optarg, &a->snapshot_mib)
                       && a->snapshot_mib > 0 && a->snapshot_mib <= 65536;
            break;
        case OPTION_INSECURE:
            a->net.may_be_far = true;
            break;
        default:
            is_right = file_option(a, c, optarg) && is_right;
        }
    }
    if (is_right && words_read(a, argc - optind, argv + optind))
        return -1;
    usage(stderr);
    return EXIT_USAGE;
}

/* ---- Commands ----------------------------------------------------------------------- */

/* bootstrap -- Raft's first entry. */
static int
bootstrap(int dirfd, const char *dir, struct raftd_group *g)
{
    struct raftd_raft *raft;
    int rc = xac_newdir_make(dirfd, XAC_RAFTD_DIR, dirfd);

    if (rc != 0 && rc != EEXIST)
        return xac_err(rc, "%s/%s", dir, XAC_RAFTD_DIR);
    raft = raftd_raft_create(dirfd, dir, g, NULL, NULL, NULL, 0);
    if (raft == NULL)
        return xac_err(ENOMEM, "Raft");
    rc = raftd_raft_bootstrap(raft);
    raftd_raft_destroy(raft);
    return rc;
}

static int
create(const struct arguments *a, int dirfd)
{
    struct raftd_group g = {.n = a->n_members, .node = 1};
    int rc;

    for (unsigned i = 0; i < g.n; i++) {
        if (!raftd_address_ok(a->member[i]))
            return xac_err_whole(
                EINVAL,
                "%s: give HOST:PORT, where the other nodes reach this one, as "
                "192.0.2.1:7001",
                a->member[i]);
        for (unsigned k = 0; k < i; k++) {
            if (strcmp(a->member[i], a->member[k]) == 0)
                return xac_err_whole(EINVAL, "%s: two nodes cannot listen there",
                                     a->member[i]);
        }
        g.member[i].node = i + 1;
        memcpy(g.member[i].address, a->member[i], strlen(a->member[i]) + 1);
    }
    rc = raftd_group_create(dirfd, a->dir, &g, bootstrap);
    if (rc == 0)
        printf("%s is node 1 of %u; its log ends at LSN %" PRIu64 ", generation %" PRIu32
               "\n",
               a->dir, g.n, g.begin.end, g.begin.generation);
    return rc;
}

/* change -- have the daemon add a node, or remove one, or another node lead. */
static int
change(const struct arguments *a, int dirfd)
{
    char line[RAFTD_COMMAND_BYTES];

    if (a->command == COMMAND_REMOVE) {
        (void)snprintf(line, sizeof line, "remove %" PRIu64, a->node);
    } else if (a->command == COMMAND_TRANSFER) {
        (void)snprintf(line, sizeof line, "transfer %" PRIu64, a->node);
    } else {
        if (!raftd_address_ok(a->address))
            return xac_err_whole(EINVAL, "%s: give HOST:PORT", a->address);
        (void)snprintf(line, sizeof line, "add %" PRIu64 " %s", a->node, a->address);
    }
    return raftd_status_command(dirfd, a->dir, line);
}

/* status -- of the daemon; where none runs any more because the node has been removed, it says so. */
static int
status(const struct arguments *a, int dirfd)
{
    int rc = raftd_status_ask(dirfd, a->dir, a->json);
    struct raftd_group g;

    return rc == ECONNREFUSED && raftd_group_read(dirfd, a->dir, &g) == 0
               ? xac_err_whole(rc, "%s: no xraftd runs there", a->dir)
               : rc;
}

/* open_dir -- ret 0; errno, words noted. */
static int
open_dir(const char *dir, int *fdp)
{
    *fdp = xac_sys.openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return *fdp >= 0 ? 0 : xac_err(errno, "%s", dir);
}

/* open_member -- or any environment. */
static int
open_member(const struct arguments *a, int *fdp)
{
    int rc = open_dir(a->dir, fdp);

    if (rc != 0 || faccessat(*fdp, XAC_GROUP_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return rc; /* a new node has no environment yet */
    (void)xac_sys.close(*fdp);
    return tool_open_dir(a->dir, fdp, NULL);
}

/* accept_invitation -- in an empty directory, which is made. */
static int
accept_invitation(const struct arguments *a)
{
    struct raftd_group g;
    int dirfd, rc = raftd_group_invitation(a->invitation, (uint32_t)a->node, &g);

    if (rc == 0 && xac_sys.mkdirat(AT_FDCWD, a->dir, 0700) != 0 && errno != EEXIST)
        rc = xac_err(errno, "%s", a->dir);
    if (rc == 0)
        rc = open_dir(a->dir, &dirfd);
    if (rc != 0)
        return rc;
    rc = raftd_group_invited(dirfd, a->dir, &g);
    (void)xac_sys.close(dirfd);
    return rc;
}

/* run -- the node. */
static int
run(const struct arguments *a, int dirfd, struct raftd_group *g)
{
    uint64_t mib = a->snapshot_mib != 0 ? a->snapshot_mib : SNAPSHOT_MIB;
    struct raftd_reads_far asks;
    struct raftd_raft_user user;
    struct raftd_raft *raft = NULL;
    struct raftd_net *net = NULL;
    struct raftd_status status;
    struct raftd_hand hand;
    struct raftd_far far;
    struct raftd_send send;
    int rc = raftd_net_create(&a->net, g, &net);

    raftd_status_init(&status, g);
    raftd_hand_init(&hand, g, net, dirfd, a->dir, &status);
    if (net != NULL)
        raftd_send_init(&send, net, a->dir);
    hand.send = net != NULL ? &send : NULL;
    hand.is_quiet = a->quiet;
    user = raftd_hand_user(&hand);
    raftd_far_init(&far, net, &hand.reads);
    asks = raftd_far_reads(&far);
    if (rc == 0)
        raftd_net_serve(net, RAFTD_WANT_ASK, raftd_far_serve, &far);
    if (rc == 0)
        raft = raftd_raft_create(dirfd, a->dir, g, net, &user, &status, mib << 20);
    if (rc == 0 && raft == NULL)
        rc = xac_err(ENOMEM, "Raft");
    if (rc == 0) {
        far.errands = raftd_raft_errands(raft);
        rc = raftd_hand_start(&hand, raft, &asks);
    }
    if (rc == 0)
        rc = raftd_raft_run(raft);
    if (rc != 0)
        (void)tool_fail(a->dir, rc);
    raftd_hand_stop(&hand); /* with it its line to another node */
    if (net != NULL)
        raftd_net_stop(net);
    raftd_far_fini(&far);
    raftd_hand_fini(&hand);
    if (raft != NULL)
        raftd_raft_destroy(raft);
    if (net != NULL)
        raftd_send_fini(&send);
    raftd_net_destroy(net);
    raftd_status_fini(&status);
    return tool_exit_code(rc);
}

/* start -- ret the exit code. */
static int
start(const struct arguments *a, int dirfd)
{
    struct raftd_group g;
    int lockfd = -1, code;
    int rc = raftd_group_read(dirfd, a->dir, &g);

    if (rc == 0)
        rc = raftd_lock(dirfd, a->dir, &lockfd);
    if (rc == 0)
        rc = raftd_group_remembers(dirfd, a->dir, g.node);
    if (rc == 0)
        rc = raftd_group_bind(dirfd, a->dir, &g);
    if (rc != 0)
        return tool_fail(a->dir, rc);
    (void)signal(SIGPIPE, SIG_IGN);
    code = run(a, dirfd, &g);
    (void)xac_sys.close(lockfd);
    return code;
}

int
main(int argc, char **argv)
{
    struct arguments a = {.command = COMMAND_NONE};
    int dirfd, rc, code = arguments_read(&a, argc, argv);

    if (code >= 0)
        return tool_flush(code);
    if (a.invitation != NULL) {
        rc = accept_invitation(&a);
        return rc != 0 ? tool_fail(a.dir, rc) : EXIT_DONE;
    }
    rc = open_member(&a, &dirfd);
    if (rc != 0)
        return tool_fail(a.dir, rc);
    switch (a.command) {
    case COMMAND_CREATE:
        rc = create(&a, dirfd);
        break;
    case COMMAND_JOIN:
        rc = raftd_group_join(dirfd, a.dir, (uint32_t)a.node);
        break;
    case COMMAND_ADD:
    case COMMAND_REMOVE:
    case COMMAND_TRANSFER:
        rc = change(&a, dirfd);
        break;
    case COMMAND_STATUS:
        rc = status(&a, dirfd);
        break;
    default:
        return start(&a, dirfd);
    }
    (void)xac_sys.close(dirfd);
    return rc != 0 ? tool_fail(a.dir, rc) : tool_flush(EXIT_DONE);
}
