/* SPDX-License-Identifier: MIT */
/*
 * xship.c -- the tool xship(1): the log of an environment for followers: sending it to a standby, receiving
 * it there, through a pipe or a network (ship_net.h), and the slots that hold it back.
 *
 * Becomes a participant to make or remove a slot, and to make the copy that a standby begins with; to list
 * slots and to send log it only looks.
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac_env.h>

#include "base/err.h"
#include "base/names.h"
#include "base/sys.h"
#include "checkpoint/hold.h"
#include "env/peek.h"
#include "log/slots.h"
#include "ship_net.h"
#include "ship_run.h"
#include "ship/promote.h"
#include "tool.h"

const char *const tool_name = "xship";

enum command {
    COMMAND_NONE = 0,
    COMMAND_SLOTS,
    COMMAND_HOLD,
    COMMAND_DROP,
    COMMAND_PROMOTE,
    COMMAND_SEND,
    COMMAND_RECEIVE,
    COMMAND_SERVE,
    COMMAND_FOLLOW,
    COMMAND_REWIND,
    COMMANDS
};

static const struct {
    const char *word;
    int n, most; /* words behind the options, with it                                 */
} commands[COMMANDS] = {
    [COMMAND_SLOTS] = {"slots", 2, 2},   [COMMAND_HOLD] = {"hold", 3, 3},
    [COMMAND_DROP] = {"drop", 3, 3},     [COMMAND_PROMOTE] = {"promote", 2, 2},
    [COMMAND_SEND] = {"send", 2, 2},     [COMMAND_RECEIVE] = {"receive", 2, 2},
    [COMMAND_SERVE] = {"serve", 2, 2},   [COMMAND_FOLLOW] = {"follow", 3, 3},
    [COMMAND_REWIND] = {"rewind", 2, 3},
};

struct arguments {
    enum command command;
    bool json, quiet;
    const char *slot; /* of send, follow; NULL: the default                        */
    const char
        *through; /* command that leads to the standby; NULL: standard input and output */
    const char *dir, *name;
    struct ship_net_options net; /* of serve, follow                                  */
};

/* Options without a letter. */
enum {
    OPTION_INSECURE = 1000,
    OPTION_SECRET,
    OPTION_CERT,
    OPTION_KEY,
    OPTION_CA,
    OPTION_NAME
};

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"insecure-listen", no_argument, NULL, OPTION_INSECURE},
    {"json", no_argument, NULL, 'j'},
    {"listen", required_argument, NULL, 'l'},
    {"quiet", no_argument, NULL, 'q'},
    {"secret-file", required_argument, NULL, OPTION_SECRET},
    {"slot", required_argument, NULL, 's'},
    {"through", required_argument, NULL, 't'},
    {"tls-ca", required_argument, NULL, OPTION_CA},
    {"tls-cert", required_argument, NULL, OPTION_CERT},
    {"tls-key", required_argument, NULL, OPTION_KEY},
    {"tls-name", required_argument, NULL, OPTION_NAME},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static void
usage(FILE *to)
{
    fputs(
        "usage: xship slots [options] DIR\n"
        "       xship hold DIR NAME\n"
        "       xship drop DIR NAME\n"
        "       xship send [options] DIR\n"
        "       xship receive [options] STANDBY\n"
        "       xship serve --listen ADDRESS [options] DIR\n"
        "       xship follow [options] ADDRESS STANDBY\n"
        "       xship rewind [options] [ADDRESS] DIR\n"
        "       xship promote STANDBY\n"
        "Send the log of the libxac environment in directory DIR to a standby, which receives\n"
        "it in directory STANDBY, and begins with a copy of DIR if that is empty.  Slots hold\n"
        "back log for those who follow.\n"
        "\n"
        "  slots         list them\n"
        "  hold          make one, from the present redo position on\n"
        "  drop          remove one\n"
        "  send          send log until a signal ends it\n"
        "  receive       receive log until the sender ends; programs can query the standby\n"
        "  serve         send log to all who connect, until a signal ends it\n"
        "  follow        connect, receive log, and connect again after each break\n"
        "  rewind        as follow, or receive if there is no ADDRESS; the environment DIR becomes\n"
        "                a standby of the one that was its standby and has been promoted, and gives\n"
        "                up what it has committed since\n"
        "  promote       make the standby an environment of its own\n"
        "ADDRESS is HOST:PORT or unix:PATH.\n"
        "\n"
        "  -t, --through COMMAND  send: run it by the shell, with the connection as its standard\n"
        "                input and output, as in --through 'ssh HOST xship receive STANDBY'\n"
        "  -s, --slot NAME  send, follow, rewind: the standby's slot (standby)\n"
        "  -l, --listen ADDRESS  serve: where\n"
        "  --secret-file FILE  serve, follow, rewind: both sides must have the same one\n"
        "  --tls-cert FILE, --tls-key FILE, --tls-ca FILE  serve, follow, rewind: use TLS; the own\n"
        "                certificate and key, and whose certificates count\n"
        "  --tls-name NAME  follow, rewind: the server's certificate has this name (HOST)\n"
        "  --insecure-listen  serve: also without TLS where other machines reach it\n"
        "  -q, --quiet   send, receive, serve, follow, rewind: say nothing unless something is wrong\n"
        "  -j, --json    slots: print one JSON object; serve: print one ten times a second\n"
        "                that says how far each standby is behind\n"
        "  -h, --help    this text\n"
        "  -V, --version version of libxac\n"
        "\n"
        "exit: 0 done          3 damaged\n"
        "      1 error         4 in use\n"
        "      2 wrong usage   5 no environment\n",
        to);
}

/* command_of -- NONE: there is no such command. */
static enum command
command_of(const char *word)
{
    for (int i = COMMAND_NONE + 1; i < COMMANDS; i++) {
        if (strcmp(word, commands[i].word) == 0)
            return (enum command)i;
    }
    return COMMAND_NONE;
}

/* connects -- does it connect to a server?  The first word behind it is the address. */
static bool
connects(const struct arguments *a)
{
    return a->command == COMMAND_FOLLOW
           || (a->command == COMMAND_REWIND && a->name != NULL);
}

/* net_fits -- options that only serve has, and what connects. */
static bool
net_fits(const struct arguments *a)
{
    const struct ship_net_options *n = &a->net;
    bool is_serve = a->command == COMMAND_SERVE, is_follow = connects(a);
    bool has_tls = n->tls.cert != NULL || n->tls.key != NULL || n->tls.ca != NULL;

    if (is_serve != (n->address != NULL && !is_follow) || (n->may_be_far && !is_serve)
        || (n->tls.name != NULL && (!is_follow || !has_tls)))
        return false;
    return is_serve || is_follow || (n->secret_file == NULL && !has_tls);
}

/* options_fit -- the command. */
static bool
options_fit(const struct arguments *a)
{
    enum command c = a->command;

    if (a->through != NULL && c != COMMAND_SEND)
        return false;
    if (a->slot != NULL && c != COMMAND_SEND && !connects(a))
        return false;
    if (a->quiet && c < COMMAND_SEND)
        return false;
    return (!a->json || c == COMMAND_SLOTS || c == COMMAND_SERVE) && net_fits(a);
}

/* names_read -- what stands behind the options; ret false if it does not fit them. */
static bool
names_read(struct arguments *a, int n, char **word)
{
    if (n == 0)
        return false;
    a->command = command_of(word[0]);
    if (a->command == COMMAND_NONE || n < commands[a->command].n
        || n > commands[a->command].most || word[1][0] == '\0')
        return false;
    a->dir = word[1];
    a->name = n > 2 ? word[2] : NULL;
    if (connects(a)) {
        if (a->net.address != NULL || word[2][0] == '\0')
            return false;
        a->net.address = word[1];
        a->dir = word[2];
    }
    return options_fit(a);
}

/* text_option -- one with an argument; ret false: there is no such option. */
static bool
text_option(struct arguments *a, int c, const char *text)
{
    const char **to = c == 's'             ? &a->slot
                      : c == 't'           ? &a->through
                      : c == 'l'           ? &a->net.address
                      : c == OPTION_SECRET ? &a->net.secret_file
                      : c == OPTION_CERT   ? &a->net.tls.cert
                      : c == OPTION_KEY    ? &a->net.tls.key
                      : c == OPTION_CA     ? &a->net.tls.ca
                      : c == OPTION_NAME   ? &a->net.tls.name
                                           : NULL;

    if (to != NULL)
        *to = text;
    return to != NULL;
}

/* arguments_read -- ret -1 to go on, or the exit code. */
static int
arguments_read(struct arguments *a, int argc, char **argv)
{
    int c;

    while ((c = getopt_long(argc, argv, "hjl:qs:t:V", long_options, NULL)) != -1) {
        switch (c) {
        case 'h':
            usage(stdout);
            return EXIT_DONE;
        case 'j':
            a->json = true;
            break;
        case 'q':
            a->quiet = true;
            break;
        case OPTION_INSECURE:
            a->net.may_be_far = true;
            break;
        case 'V':
            return tool_version();
        default:
            if (text_option(a, c, optarg))
                break;
            usage(stderr);
            return EXIT_USAGE;
        }
    }
    if (names_read(a, argc - optind, argv + optind))
        return -1;
    usage(stderr);
    return EXIT_USAGE;
}

/* ---- Making and removing ---------------------------------------------------------- */

/* change -- as a participant. */
static int
change(void *arg, struct xac_env *env)
{
    const struct arguments *a = (const struct arguments *)arg;
    uint64_t lsn;
    int rc;

    if (a->command != COMMAND_HOLD)
        return xac_hold_drop(env, a->name);
    rc = xac_hold_make(env, a->name, &lsn);
    if (rc == 0)
        printf("slot %s holds log back from LSN %" PRIu64 " on\n", a->name, lsn);
    return rc;
}

/* ---- Listing ---------------------------------------------------------------------- */

static void
say_slot(struct json *j, bool is_json, const struct xac_log_slot *slot)
{
    uint64_t lsn = xac_slot_lsn(xac_slot_load(slot));
    char name[XAC_SLOT_NAME_BYTES];
    bool is_lost = lsn == XAC_SLOT_LOST;

    xac_slot_name(slot, name);
    if (is_json) {
        json_object(j, NULL);
        json_string(j, "name", name);
        json_bool(j, "lost", is_lost);
        json_number(j, "lsn", is_lost ? 0 : lsn);
        json_end(j);
    } else if (is_lost) {
        printf("%s: lost, it held back more than XAC_OPT_LOG_KEEP_BYTES\n", name);
    } else {
        printf("%s: holds log back from LSN %" PRIu64 " on\n", name, lsn);
    }
}

static void
say_slots(const struct arguments *a, const struct xac_log_followers *f)
{
    struct json j = {.is_pretty = true};

    if (a->json) {
        json_object(&j, NULL);
        json_string(&j, "directory", a->dir);
        json_array(&j, "slots");
    }
    for (size_t i = 0; i < XAC_LOG_SLOTS; i++) {
        if (xac_slot_lsn(xac_slot_load(&f->slot[i])) != XAC_SLOT_FREE)
            say_slot(&j, a->json, &f->slot[i]);
    }
    if (a->json) {
        json_end(&j);
        json_end(&j);
    }
}

/* list -- as the region has them; as the file has them if nobody is attached. */
static int
list(const struct arguments *a, int dirfd)
{
    struct xac_log_followers f = {.wakes = 0};
    struct xac_env env;
    int rc = xac_peek_open(dirfd, a->dir, &env);

    if (rc == 0) {
        if (xac_env_is_durable(&env))
            say_slots(a, &env.ctl->log.followers);
        else
            say_slots(a, &f);
        xac_peek_close(&env);
        return 0;
    }
    if (rc != ENOENT)
        return rc;
    rc = xac_slots_read(dirfd, &f);
    if (rc == 0)
        say_slots(a, &f);
    return rc;
}

/* ---- Sending and receiving -------------------------------------------------------- */

/* start_command -- with one end of the connection; *fdp is the other one. */
static int
start_command(const char *command, int *fdp, pid_t *pidp)
{
    int end[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end) != 0)
        return xac_err(errno, "a connection to %s", command);
    *pidp = fork();
    if (*pidp == 0) {
        (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        if (dup2(end[1], STDIN_FILENO) >= 0 && dup2(end[1], STDOUT_FILENO) >= 0)
            (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    (void)close(end[1]);
    *fdp = end[0];
    if (*pidp > 0)
        return 0;
    (void)close(end[0]);
    return xac_err(errno, "%s: start", command);
}

/* end_command -- wait for it; ret what it has failed with, if nothing else has. */
static int
end_command(const char *command, pid_t pid, int rc)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0 || (rc != 0 && rc != EPIPE))
        return rc;
    if (WIFSIGNALED(status))
        return xac_err(EPIPE, "%s: ended by signal %d", command, WTERMSIG(status));
    return xac_err(EPIPE, "%s: exit code %d", command, WEXITSTATUS(status));
}

/* must_be_connected -- nobody types frames. */
static int
must_be_connected(void)
{
    return isatty(STDIN_FILENO) || isatty(STDOUT_FILENO)
               ? xac_err(ENOTTY, "standard input and output must lead to the other side "
                                 "(--through, or see xship(1))")
               : 0;
}

/* job_of -- what is to be sent or received. */
static struct ship_job
job_of(const struct arguments *a)
{
    return (struct ship_job){.dir = a->dir,
                             .slot = a->slot != NULL ? a->slot : "standby",
                             .is_quiet = a->quiet,
                             .rewinds = a->command == COMMAND_REWIND,
                             .is_json = a->json};
}

/* send_log -- until a signal. */
static int
send_log(const struct arguments *a)
{
    struct ship_job job = job_of(a);
    struct xac_send_report rep;
    int in = STDIN_FILENO, out = STDOUT_FILENO;
    pid_t pid = 0;
    int rc =
        a->through != NULL ? start_command(a->through, &in, &pid) : must_be_connected();

    if (rc != 0)
        return rc;
    if (pid != 0)
        out = in;
    rc = ship_send(&job, in, out, &rep);
    if (pid != 0) {
        (void)close(in);
        rc = end_command(a->through, pid, rc);
    }
    if (rc == 0)
        ship_say_sent(&job, &rep);
    return rc;
}

/* receive_log -- until the source ends, or a signal. */
static int
receive_log(const struct arguments *a)
{
    struct ship_job job = job_of(a);
    struct xac_receive_report rep;
    int rc = must_be_connected();

    if (rc != 0)
        return rc;
    rc = ship_receive(&job, STDIN_FILENO, STDOUT_FILENO, &rep);
    if (rc == 0)
        ship_say_received(&job, &rep);
    return rc;
}

/* serve_log -- until a signal. */
static int
serve_log(const struct arguments *a)
{
    struct ship_job job = job_of(a);

    return ship_serve(&job, &a->net);
}

/* follow_log -- likewise. */
static int
follow_log(const struct arguments *a)
{
    struct ship_job job = job_of(a);

    if (!xac_slot_name_ok(job.slot))
        return xac_err_whole(EINVAL,
                             "slot \"%s\": a name has 1 to %u letters, digits, and . _ -",
                             job.slot, XAC_SLOT_NAME_BYTES - 1);
    return ship_follow(&job, &a->net);
}

/* may_rewind -- rewind makes no directory, and no copy; whether the environment may be rewound is asked later. */
static int
may_rewind(const char *dir)
{
    char path[PATH_MAX];
    int fd, rc = tool_open_dir(dir, &fd, NULL);

    if (rc == 0)
        return xac_sys.close(fd) == 0 ? 0 : xac_err(errno, "%s: close", dir);
    (void)snprintf(path, sizeof path, "%s/%s", dir, XAC_REWIND_NAME);
    return rc == XAC_ENOTENV && access(path, F_OK) == 0 ? 0 : rc; /* it goes on */
}

/* promote -- the standby becomes an environment of its own. */
static int
promote(const struct arguments *a)
{
    uint32_t generation;
    uint64_t lsn;
    int rc = xac_promote(a->dir, &generation, &lsn);

    if (rc == 0)
        printf("%s is an environment of its own: it has all up to LSN %" PRIu64
               " of its source, and begins generation %" PRIu32 "\n",
               a->dir, lsn, generation);
    return rc;
}

/* work -- what the arguments say. */
static int
work(const struct arguments *a)
{
    int fd, rc;

    if (a->command >= COMMAND_SEND)
        ship_catch_signals();
    rc = a->command == COMMAND_REWIND ? may_rewind(a->dir) : 0;
    if (rc != 0)
        return rc;
    if (connects(a))
        return follow_log(a);
    if (a->command == COMMAND_RECEIVE || a->command == COMMAND_REWIND)
        return receive_log(a);
    if (a->command == COMMAND_PROMOTE)
        return promote(a);
    /* Before a new environment is made where there is none. */
    rc = tool_open_dir(a->dir, &fd, NULL);
    if (rc != 0)
        return rc;
    if (a->command == COMMAND_SLOTS)
        rc = list(a, fd);
    else if (a->command == COMMAND_SEND)
        rc = send_log(a);
    else if (a->command == COMMAND_SERVE)
        rc = serve_log(a);
    else
        rc = tool_take_part(a->dir, NULL, "xship", change, (void *)(uintptr_t)a);
    (void)xac_sys.close(fd);
    return rc;
}

int
main(int argc, char **argv)
{
    struct arguments a = {.json = false};
    int rc = arguments_read(&a, argc, argv);

    if (rc >= 0)
        return rc;
    rc = work(&a);
    return tool_flush(rc == 0 ? EXIT_DONE : tool_fail(a.dir, rc));
}
