/* SPDX-License-Identifier: MIT */
/*
 * xship.c -- the tool xship(1): the log of an environment for followers: sending it to a standby, receiving
 * it there, and the slots that hold it back.
 *
 * Becomes a participant to make or remove a slot, and to make the copy that a standby begins with; to list
 * slots and to send log it only looks.
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac_env.h>

#include "backup/backup.h"
#include "base/err.h"
#include "base/sys.h"
#include "checkpoint/hold.h"
#include "env/peek.h"
#include "log/slots.h"
#include "progress.h"
#include "ship/receive.h"
#include "ship/send.h"
#include "tool.h"

const char *const tool_name = "xship";

enum command {
    COMMAND_NONE = 0,
    COMMAND_SLOTS,
    COMMAND_HOLD,
    COMMAND_DROP,
    COMMAND_SEND,
    COMMAND_RECEIVE
};

struct arguments {
    enum command command;
    bool json, quiet;
    const char *slot; /* of send; NULL: the default                                */
    const char
        *through; /* command that leads to the standby; NULL: standard input and output */
    const char *dir, *name;
};

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"json", no_argument, NULL, 'j'},
    {"quiet", no_argument, NULL, 'q'},
    {"slot", required_argument, NULL, 's'},
    {"through", required_argument, NULL, 't'},
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
        "Send the log of the libxac environment in directory DIR to a standby, which receives\n"
        "it in directory STANDBY, and begins with a copy of DIR if that is empty.  Slots hold\n"
        "back log for those who follow.\n"
        "\n"
        "  slots         list them\n"
        "  hold          make one, from the present redo position on\n"
        "  drop          remove one\n"
        "  send          send log until a signal ends it\n"
        "  receive       receive log until the sender ends\n"
        "\n"
        "  -t, --through COMMAND  send: run it by the shell, with the connection as its standard\n"
        "                input and output, as in --through 'ssh HOST xship receive STANDBY'\n"
        "  -s, --slot NAME  send: the standby's slot (standby)\n"
        "  -q, --quiet   send, receive: say nothing unless something is wrong\n"
        "  -j, --json    slots: print one JSON object\n"
        "  -h, --help    this text\n"
        "  -V, --version version of libxac\n"
        "\n"
        "exit: 0 done          3 damaged\n"
        "      1 error         5 no environment\n"
        "      2 wrong usage\n",
        to);
}

/* command_of -- NONE: there is no such command. */
static enum command
command_of(const char *word)
{
    return strcmp(word, "slots") == 0     ? COMMAND_SLOTS
           : strcmp(word, "hold") == 0    ? COMMAND_HOLD
           : strcmp(word, "drop") == 0    ? COMMAND_DROP
           : strcmp(word, "send") == 0    ? COMMAND_SEND
           : strcmp(word, "receive") == 0 ? COMMAND_RECEIVE
                                          : COMMAND_NONE;
}

/* names_read -- what stands behind the options; ret false if it does not fit them. */
static bool
names_read(struct arguments *a, int n, char **word)
{
    int wanted;

    if (n == 0)
        return false;
    a->command = command_of(word[0]);
    wanted = a->command == COMMAND_HOLD || a->command == COMMAND_DROP ? 3 : 2;
    if (a->command == COMMAND_NONE || n != wanted || word[1][0] == '\0')
        return false;
    a->dir = word[1];
    a->name = n > 2 ? word[2] : NULL;
    if ((a->slot != NULL || a->through != NULL) && a->command != COMMAND_SEND)
        return false;
    if (a->quiet && a->command != COMMAND_SEND && a->command != COMMAND_RECEIVE)
        return false;
    return !a->json || a->command == COMMAND_SLOTS;
}

/* arguments_read -- ret -1 to go on, or the exit code. */
static int
arguments_read(struct arguments *a, int argc, char **argv)
{
    int c;

    while ((c = getopt_long(argc, argv, "hjqs:t:V", long_options, NULL)) != -1) {
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
        case 's':
            a->slot = optarg;
            break;
        case 't':
            a->through = optarg;
            break;
        case 'V':
            return tool_version();
        default:
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

static _Atomic bool is_told_to_stop;

static void
stop(int signal)
{
    (void)signal;
    /* relaxed: nothing else is handed over. */
    atomic_store_explicit(&is_told_to_stop, true, memory_order_relaxed);
}

/* catch_signals -- the first SIGINT, SIGTERM or SIGHUP ends in order, the second one at once. */
static void
catch_signals(void)
{
    struct sigaction act = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};

    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
    (void)sigaction(SIGHUP, &act, NULL);
    act = (struct sigaction){.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &act, NULL);
}

/* make_slot -- one that has been lost is made anew; another one stays, and holds back enough. */
static int
make_slot(struct xac_env *env, const char *slot)
{
    const struct xac_log_slot *was;
    uint64_t lsn;
    int rc = xac_hold_make(env, slot, &lsn);

    if (rc != EEXIST)
        return rc;
    was = xac_slots_find(&env->ctl->log.followers, slot);
    if (was != NULL && xac_slot_lsn(xac_slot_load(was)) != XAC_SLOT_LOST)
        return 0;
    rc = xac_hold_drop(env, slot);
    return rc == 0 || rc == ENOENT ? xac_hold_make(env, slot, &lsn) : rc;
}

/* A copy that is to be made. */
struct copy {
    bool is_shown;
    const char *slot, *to;
};

/* copy -- slot and backup, as a participant. */
static int
copy(void *arg, struct xac_env *env)
{
    const struct copy *c = (const struct copy *)arg;
    struct progress shown = progress_start("files and log copied");
    struct xac_backup_progress progress = {.fn = progress_show, .arg = &shown};
    int rc = make_slot(env, c->slot);

    if (rc == 0)
        rc = xac_backup_run(env, c->to, NULL, c->is_shown ? &progress : NULL, NULL);
    progress_end(&shown);
    return rc;
}

/* make_copy -- for struct xac_send_options. */
static int
make_copy(void *arg, const char *slot, const char *to)
{
    const struct arguments *a = (const struct arguments *)arg;
    struct copy c = {.is_shown = !a->quiet && progress_is_wanted(),
                     .slot = slot,
                     .to = to};

    return tool_take_part(a->dir, NULL, "xship", copy, &c);
}

/* show_lag -- a line on the terminal, once the work takes longer. */
static void
show_lag(void *arg, const struct xac_send_lag *lag)
{
    struct progress *shown = (struct progress *)arg;

    progress_line(shown, "standby %" PRIu64 " bytes, %.1f s behind", lag->bytes,
                  (double)lag->ns / 1e9);
}

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

/* send_log -- until a signal. */
static int
send_log(const struct arguments *a)
{
    struct progress copied = progress_start("copy sent"), shown = progress_start("");
    struct xac_backup_progress progress = {.fn = progress_show, .arg = &copied};
    bool is_shown = !a->quiet && progress_is_wanted();
    struct xac_send_options o = {.dir = a->dir,
                                 .slot = a->slot != NULL ? a->slot : "standby",
                                 .in = STDIN_FILENO,
                                 .out = STDOUT_FILENO,
                                 .stop = &is_told_to_stop,
                                 .copy = make_copy,
                                 .copy_arg = (void *)(uintptr_t)a,
                                 .progress = is_shown ? &progress : NULL,
                                 .lag = is_shown ? show_lag : NULL,
                                 .lag_arg = &shown};
    struct xac_send_report rep;
    pid_t pid = 0;
    int rc =
        a->through != NULL ? start_command(a->through, &o.in, &pid) : must_be_connected();

    if (rc != 0)
        return rc;
    if (pid != 0)
        o.out = o.in;
    rc = xac_send_run(&o, &rep);
    progress_end(&copied);
    progress_end(&shown);
    if (pid != 0) {
        (void)close(o.in);
        rc = end_command(a->through, pid, rc);
    }
    if (rc == 0 && !a->quiet)
        fprintf(stderr,
                "%s: %" PRIu64 " block%s of log sent; the standby has all up to LSN "
                "%" PRIu64 "\n",
                tool_name, rep.blocks, plural(rep.blocks), rep.acknowledged);
    return rc;
}

/* receive_log -- until the source ends, or a signal. */
static int
receive_log(const struct arguments *a)
{
    struct xac_receive_options o = {.dir = a->dir,
                                    .in = STDIN_FILENO,
                                    .out = STDOUT_FILENO,
                                    .stop = &is_told_to_stop};
    struct xac_receive_report rep;
    int rc = must_be_connected();

    if (rc != 0)
        return rc;
    rc = xac_receive_run(&o, &rep);
    if (rc == 0 && !a->quiet)
        fprintf(stderr,
                "%s: %" PRIu64 " transaction%s received; %s has all up to LSN %" PRIu64
                "\n",
                tool_name, rep.transactions, plural(rep.transactions), a->dir,
                rep.durable);
    return rc;
}

/* work -- what the arguments say. */
static int
work(const struct arguments *a)
{
    int fd, rc;

    if (a->command == COMMAND_RECEIVE || a->command == COMMAND_SEND)
        catch_signals();
    if (a->command == COMMAND_RECEIVE)
        return receive_log(a);
    /* Before a new environment is made where there is none. */
    rc = tool_open_dir(a->dir, &fd, NULL);
    if (rc != 0)
        return rc;
    if (a->command == COMMAND_SLOTS)
        rc = list(a, fd);
    else if (a->command == COMMAND_SEND)
        rc = send_log(a);
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
