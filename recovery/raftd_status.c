/* SPDX-License-Identifier: MIT */
/*
 * raftd_status.c -- see raftd_status.h.
 */
#include <config.h>

#include "raftd_status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/sys.h"
#include "tool.h"

void
raftd_status_init(struct raftd_status *s, const struct raftd_group *group)
{
    *s = (struct raftd_status){.group = group, .role = "none", .state = "closed"};
    (void)pthread_mutex_init(&s->lock, NULL);
}

void
raftd_status_fini(struct raftd_status *s)
{
    (void)pthread_mutex_destroy(&s->lock);
}

size_t
raftd_status_text(struct raftd_status *s, char text[RAFTD_STATUS_BYTES])
{
    const struct raftd_group *g = s->group;
    size_t n;

    (void)pthread_mutex_lock(&s->lock);
    n = (size_t)snprintf(text, RAFTD_STATUS_BYTES,
                         "pid %d\nnode %" PRIu32 "\nrole %s\nstate %s\nterm %" PRIu64
                         "\nleader %" PRIu32 "\ngeneration %" PRIu32
                         "\nreplicated %" PRIu64 "\ndurable %" PRIu64 "\napplied %" PRIu64
                         "\nentries %" PRIu64 "\ndead %" PRIu64 "\nsnapshots %" PRIu64
                         "\n",
                         (int)getpid(), g->node, s->role, s->state, s->term, s->leader,
                         s->generation, s->replicated, s->durable, s->applied, s->entries,
                         s->dead, s->snapshots);
    (void)pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < g->n; i++)
        n += (size_t)snprintf(text + n, RAFTD_STATUS_BYTES - n, "member %s\n",
                              g->member[i]);
    xac_assert(n < RAFTD_STATUS_BYTES);
    return n;
}

void
raftd_status_address(int dirfd, char path[64])
{
    (void)snprintf(path, 64, "/proc/%d/fd/%d/%s", (int)getpid(), dirfd, XAC_RAFTD_SOCKET);
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

int
raftd_status_ask(int dirfd, const char *dir, bool is_json)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 10};
    char text[RAFTD_STATUS_BYTES], path[64];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = 0;

    if (fd < 0)
        return xac_err(errno, "socket");
    raftd_status_address(dirfd, path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) != 0)
        rc = errno;
    if (rc == ENOENT || rc == ECONNREFUSED)
        rc = xac_err_whole(ECONNREFUSED, "%s: no xraftd runs there", dir);
    else if (rc == 0)
        rc = receive(fd, text);
    (void)xac_sys.close(fd);
    if (rc == 0)
        print(dir, text, is_json);
    return rc;
}
