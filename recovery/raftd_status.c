/* SPDX-License-Identifier: MIT */
/*
 * raftd_status.c -- see raftd_status.h.
 */
#include <config.h>

#include "raftd_status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/sys.h"
#include "tool.h"

/* How long to wait for an answer. */
#define ASK_SECONDS     10
#define COMMAND_SECONDS 60

void
raftd_status_init(struct raftd_status *s, struct raftd_group *group)
{
    *s = (struct raftd_status){.group = group, .role = "none", .state = "closed"};
    (void)pthread_mutex_init(&s->lock, NULL);
}

void
raftd_status_fini(struct raftd_status *s)
{
    (void)pthread_mutex_destroy(&s->lock);
}

uint32_t
raftd_status_leader(struct raftd_status *s, uint64_t term)
{
    uint32_t leader;

    (void)pthread_mutex_lock(&s->lock);
    leader = s->term > term ? s->leader : 0;
    (void)pthread_mutex_unlock(&s->lock);
    return leader;
}

uint64_t
raftd_status_last_node(struct raftd_status *s)
{
    uint64_t last;

    (void)pthread_mutex_lock(&s->lock);
    last = s->last_node;
    (void)pthread_mutex_unlock(&s->lock);
    return last;
}

size_t
raftd_status_text(struct raftd_status *s, char text[RAFTD_STATUS_BYTES])
{
    struct raftd_member member[RAFTD_MEMBERS_MAX];
    const struct raftd_group *g = s->group;
    unsigned members = raftd_group_members(s->group, member);
    size_t n;

    (void)pthread_mutex_lock(&s->lock);
    n = (size_t)snprintf(text, RAFTD_STATUS_BYTES,
                         "pid %d\nnode %" PRIu32 "\nrole %s\nstate %s\nterm %" PRIu64
                         "\nleader %" PRIu32 "\ngeneration %" PRIu32
                         "\nreplicated %" PRIu64 "\ndurable %" PRIu64 "\napplied %" PRIu64
                         "\nentries %" PRIu64 "\ndead %" PRIu64 "\nsnapshots %" PRIu64
                         "\ngathered %" PRIu64 "\nheld %" PRIu64 "\n",
                         (int)getpid(), g->node, s->role, s->state, s->term, s->leader,
                         s->generation, s->replicated, s->durable, s->applied, s->entries,
                         s->dead, s->snapshots, s->gathered, s->held);
    (void)pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < members; i++)
        n += (size_t)snprintf(text + n, RAFTD_STATUS_BYTES - n,
                              "member %" PRIu32 " %s %s\n", member[i].node,
                              member[i].role == RAFTD_VOTER ? "voter" : "learner",
                              member[i].address);
    xac_assert(n < RAFTD_STATUS_BYTES);
    return n;
}

void
raftd_status_address(int dirfd, const char *name, char path[64])
{
    (void)snprintf(path, 64, "/proc/%d/fd/%d/%s", (int)getpid(), dirfd, name);
}

/* ---- Asking ------------------------------------------------------------------------- */

/* receive -- all that the daemon says. */
static int
receive(int fd, char text[RAFTD_STATUS_BYTES])
{
    size_t n = 0;

    for (;;) {
        ssize_t got = recv(fd, text + n, RAFTD_STATUS_BYTES - 1 - n, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        n += (size_t)got;
        text[n] = '\0';
        if (got == 0 || n == RAFTD_STATUS_BYTES - 1)
            return n > 0 ? 0 : EPIPE;
    }
}

/* print -- line by line; the members come last. */
static void
print(const char *dir, char *text, bool is_json)
{
    struct json j = {.is_pretty = true};
    bool in_members = false;
    char *rest = NULL;

    if (is_json) {
        json_object(&j, NULL);
        json_string(&j, "directory", dir);
    }
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(line, ' ');
        uint64_t number;

        if (value == NULL)
            continue;
        *value++ = '\0';
        if (!is_json) {
            printf("%-11s %s\n", line, value);
        } else if (strcmp(line, "member") == 0) {
            if (!in_members)
                json_array(&j, "members");
            in_members = true;
            json_string(&j, NULL, value);
        } else if (tool_number(value, &number)) {
            json_number(&j, line, number);
        } else {
            json_string(&j, line, value);
        }
    }
    if (is_json && in_members)
        json_end(&j);
    if (is_json)
        json_end(&j);
}

/* connect_to -- a socket of the daemon. */
static int
connect_to(int dirfd, const char *dir, const char *name, unsigned patience_s, int *fdp)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = patience_s};
    char path[64];
    int rc = 0;

    *fdp = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fdp < 0)
        return xac_err(errno, "socket");
    raftd_status_address(dirfd, name, path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    (void)setsockopt(*fdp, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(*fdp, (const struct sockaddr *)&at, sizeof at) == 0)
        return 0;
    rc = errno;
    (void)xac_sys.close(*fdp);
    return rc == ENOENT || rc == ECONNREFUSED
               ? xac_err_whole(ECONNREFUSED, "%s: no xraftd runs there", dir)
               : xac_err(rc, "%s/%s", dir, name);
}

int
raftd_status_ask(int dirfd, const char *dir, bool is_json)
{
    char text[RAFTD_STATUS_BYTES];
    int fd, rc = connect_to(dirfd, dir, XAC_RAFTD_SOCKET, ASK_SECONDS, &fd);

    if (rc != 0)
        return rc;
    rc = receive(fd, text);
    (void)xac_sys.close(fd);
    if (rc == 0)
        print(dir, text, is_json);
    return rc;
}

int
raftd_status_command(int dirfd, const char *dir, const char *line)
{
    char text[RAFTD_STATUS_BYTES], command[RAFTD_COMMAND_BYTES + 1];
    int n = snprintf(command, sizeof command, "%s\n", line);
    int fd, code, rc = connect_to(dirfd, dir, XAC_RAFTD_CONTROL, COMMAND_SECONDS, &fd);
    char *end = NULL;

    xac_assert(n < (int)sizeof command);
    if (rc != 0)
        return rc;
    if (send(fd, command, (size_t)n, MSG_NOSIGNAL) != n)
        rc = errno;
    if (rc == 0)
        rc = receive(fd, text);
    (void)xac_sys.close(fd);
    if (rc != 0)
        return xac_err(rc, "%s: the daemon has not answered; see xraftd status", dir);
    code = (int)strtol(text, &end, 10);
    if (*end != '\n')
        return xac_err(EPROTO, "%s: the daemon", dir);
    if (code != 0)
        return xac_err_whole(code, "%s: %s", dir, end + 1);
    fputs(end + 1, stdout);
    return 0;
}
