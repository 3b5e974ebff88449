/* SPDX-License-Identifier: MIT */
/*
 * raftd_send.c -- see raftd_send.h.
 */
#include <config.h>

#include "raftd_send.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/sys.h"
#include "log/slots.h"
#include "ship_relay.h"
#include "tool.h"

/* So long a slot stays when its line has ended; in steps, between which it is looked whether the daemon ends. */
#define KEEP_MS 60000
#define STEP_MS 100

/* So long a process may take to end when its line has. */
#define END_MS 2000

#define SLOT_BYTES 16

/* ---- Processes of xship ------------------------------------------------------------- */

/* xship_path -- beside this program, or wherever PATH has it. */
static void
xship_path(char out[PATH_MAX])
{
    char self[PATH_MAX - 16];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    if (slash != NULL)
        *slash = '\0';
    (void)snprintf(out, PATH_MAX, "%s/xship", self);
    if (slash == NULL || access(out, X_OK) != 0)
        (void)snprintf(out, PATH_MAX, "xship");
}

/* start -- with a descriptor as its standard input and output, or without; ret a pid or -1, words noted. */
static pid_t
start(char *const *argv, int fd)
{
    char path[PATH_MAX];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, pipes;
    pid_t pid = -1;
    int rc;

    xship_path(path);
    (void)sigemptyset(&none);
    (void)sigemptyset(&pipes);
    (void)sigaddset(&pipes, SIGPIPE);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &pipes);
    if (fd >= 0) {
        (void)posix_spawn_file_actions_adddup2(&files, fd, STDIN_FILENO);
        (void)posix_spawn_file_actions_adddup2(&files, fd, STDOUT_FILENO);
    } else {
        (void)posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null",
                                               O_WRONLY, 0);
        (void)posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null",
                                               O_WRONLY, 0);
    }
    rc = posix_spawnp(&pid, path, &files, &attr, argv, environ);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&files);
    if (rc == 0)
        return pid;
    (void)xac_err(rc, "%s: start", path);
    return -1;
}

/* reap -- it has been started; after so long it is killed. */
static void
reap(pid_t pid, unsigned ms)
{
    int status;

    xac_assert(pid > 0);
    for (unsigned at = 0; at < ms; at += STEP_MS) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return;
        (void)poll(NULL, 0, STEP_MS);
    }
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
}

static void
slot_name(uint32_t node, char out[SLOT_BYTES])
{
    (void)snprintf(out, SLOT_BYTES, "node-%" PRIu32, node);
}

/* do_slot -- `hold` or `drop`; whether there was one is all the same. */
static void
do_slot(const struct raftd_send *s, const char *what, const char *slot)
{
    char *argv[] = {(char *)(uintptr_t) "xship", (char *)(uintptr_t)what,
                    (char *)(uintptr_t)s->dir, (char *)(uintptr_t)slot, NULL};
    pid_t pid = start(argv, -1);

    if (pid > 0)
        reap(pid, KEEP_MS);
}

/* ---- A line ------------------------------------------------------------------------- */

/* send_on -- a line, until it ends. */
static void
send_on(const struct raftd_send *s, struct raftd_line *line, const char *slot)
{
    struct ship_relay *relay = (struct ship_relay *)malloc(sizeof *relay);
    char *argv[] = {(char *)(uintptr_t) "xship",
                    (char *)(uintptr_t) "send",
                    (char *)(uintptr_t) "--quiet",
                    (char *)(uintptr_t) "--slot",
                    (char *)(uintptr_t)slot,
                    (char *)(uintptr_t)s->dir,
                    NULL};
    pid_t pid;

    if (relay == NULL || ship_relay_open(relay, &line->c) != 0) {
        free(relay);
        return;
    }
    pid = start(argv, relay->end);
    (void)close(relay->end); /* now it is only the process's */
    if (pid < 0)
        fprintf(stderr, "%s: node %" PRIu32 ": %s\n", tool_name, line->node,
                xac_err_text());
    ship_relay_carry(relay);
    if (pid > 0)
        reap(pid, END_MS); /* (1) */
    free(relay);
}

/* come -- one line more of a node; ret how many it has had. */
static uint32_t
come(struct raftd_send *s, uint32_t node)
{
    uint32_t n;

    xac_assert(node <= XAC_GROUP_NODE_MAX);
    (void)pthread_mutex_lock(&s->lock);
    s->n_now[node]++;
    n = ++s->n_lines[node];
    (void)pthread_mutex_unlock(&s->lock);
    return n;
}

/* has_come_again -- has the node had a later line? */
static bool
has_come_again(struct raftd_send *s, uint32_t node, uint32_t number)
{
    bool has;

    (void)pthread_mutex_lock(&s->lock);
    has = s->n_lines[node] != number;
    (void)pthread_mutex_unlock(&s->lock);
    return has;
}

/* keep -- the slot for a while; ret false: it may be needed again. */
static bool
keep(struct raftd_send *s, uint32_t node, uint32_t number)
{
    for (unsigned ms = 0; ms < KEEP_MS; ms += STEP_MS) {
        if (raftd_net_is_stopping(s->net) || has_come_again(s, node, number))
            return false;
        (void)poll(NULL, 0, STEP_MS);
    }
    return true;
}

/* serve -- a node that is behind. */
static void
serve(void *arg, struct raftd_line *line)
{
    struct raftd_send *s = (struct raftd_send *)arg;
    uint32_t number = come(s, line->node);
    char slot[SLOT_BYTES];

    slot_name(line->node, slot);
    do_slot(s, "hold", slot);
    send_on(s, line, slot);
    if (keep(s, line->node, number))
        do_slot(s, "drop", slot);
    (void)pthread_mutex_lock(&s->lock);
    s->n_now[line->node]--;
    (void)pthread_mutex_unlock(&s->lock);
}

/* is_needed -- is or was there just a line of the node? */
static bool
is_needed(struct raftd_send *s, uint32_t node)
{
    bool is;

    (void)pthread_mutex_lock(&s->lock);
    is = s->n_now[node] > 0;
    (void)pthread_mutex_unlock(&s->lock);
    return is;
}

/* clean -- slots with the names of nodes. */
static void
clean(void *arg)
{
    struct raftd_send *s = (struct raftd_send *)arg;
    struct xac_log_followers f = {.wakes = 0};
    int dirfd = xac_sys.openat(AT_FDCWD, s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int rc = dirfd < 0 ? errno : xac_slots_read(dirfd, &f);

    if (dirfd >= 0)
        (void)xac_sys.close(dirfd);
    for (uint32_t node = 1; rc == 0 && node <= XAC_GROUP_NODE_MAX; node++) {
        char slot[SLOT_BYTES];

        slot_name(node, slot);
        if (xac_slots_find(&f, slot) != NULL && !is_needed(s, node))
            do_slot(s, "drop", slot);
    }
}

void
raftd_send_clean(struct raftd_send *s)
{
    (void)raftd_net_thread(s->net, clean, s);
}

void
raftd_send_init(struct raftd_send *s, struct raftd_net *net, const char *dir)
{
    *s = (struct raftd_send){.dir = dir, .net = net};
    (void)pthread_mutex_init(&s->lock, NULL);
    raftd_net_serve(net, RAFTD_WANT_COPY, serve, s);
}

void
raftd_send_fini(struct raftd_send *s)
{
    (void)pthread_mutex_destroy(&s->lock);
}
