/* SPDX-License-Identifier: MIT */
/*
 * xship.c -- the tool xship(1): the log of an environment for followers.  So far: the slots that hold log
 * back for them.
 *
 * Becomes a participant to make or remove a slot; to list them it only looks.
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include <xac_env.h>

#include "api/api.h"
#include "base/err.h"
#include "base/sys.h"
#include "checkpoint/hold.h"
#include "env/peek.h"
#include "log/slots.h"
#include "tool.h"

const char *const tool_name = "xship";

enum command {
    COMMAND_NONE = 0,
    COMMAND_SLOTS,
    COMMAND_HOLD,
    COMMAND_DROP
};

struct arguments {
    enum command command;
    bool json;
    const char *dir, *name;
};

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"json", no_argument, NULL, 'j'},
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
        "Slots hold back the log of the libxac environment in directory DIR for those who\n"
        "follow it.\n"
        "\n"
        "  slots         list them\n"
        "  hold          make one, from the present redo position on\n"
        "  drop          remove one\n"
        "\n"
        "  -j, --json    print one JSON object\n"
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
    return strcmp(word, "slots") == 0  ? COMMAND_SLOTS
           : strcmp(word, "hold") == 0 ? COMMAND_HOLD
           : strcmp(word, "drop") == 0 ? COMMAND_DROP
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
    wanted = a->command == COMMAND_SLOTS ? 2 : 3;
    if (a->command == COMMAND_NONE || n != wanted || word[1][0] == '\0')
        return false;
    a->dir = word[1];
    a->name = n > 2 ? word[2] : NULL;
    return !a->json || a->command == COMMAND_SLOTS;
}

/* arguments_read -- ret -1 to go on, or the exit code. */
static int
arguments_read(struct arguments *a, int argc, char **argv)
{
    int c;

    while ((c = getopt_long(argc, argv, "hjV", long_options, NULL)) != -1) {
        switch (c) {
        case 'h':
            usage(stdout);
            return EXIT_DONE;
        case 'j':
            a->json = true;
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
change(const struct arguments *a)
{
    struct xac_options options;
    struct xac_ctx *ctx;
    struct xac_env *env;
    uint64_t lsn;
    int rc, left;

    xac_options_init(&options, sizeof options);
    env = xac_open(a->dir, &options);
    if (env == NULL)
        return errno;
    rc = xac_api_start(env, "xship", &ctx);
    if (rc == 0) {
        if (a->command == COMMAND_HOLD)
            rc = xac_hold_make(env, a->name, &lsn);
        else
            rc = xac_hold_drop(env, a->name);
        xac_api_done(ctx);
    }
    if (rc == 0 && a->command == COMMAND_HOLD)
        printf("slot %s holds log back from LSN %" PRIu64 " on\n", a->name, lsn);
    left = xac_close(env);
    return rc != 0 ? rc : left;
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

/* work -- what the arguments say. */
static int
work(const struct arguments *a)
{
    int fd;
    /* Before a new environment is made where there is none. */
    int rc = tool_open_dir(a->dir, &fd, NULL);

    if (rc != 0)
        return rc;
    if (a->command == COMMAND_SLOTS)
        rc = list(a, fd);
    else
        rc = change(a);
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
