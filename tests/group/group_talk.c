/* SPDX-License-Identifier: MIT */
/*
 * group_talk.c -- see group_talk.h.
 */
#include <config.h>

#include "group_talk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/env.h"

#define FILE_NAME "records"
#define LOOK_MS   5

void
group_client_init(struct group_client *c, const struct group *g, unsigned number)
{
    must(number >= 1 && number <= GROUP_NODES);
    *c = (struct group_client){.to = -1, .from = -1};
    memcpy(c->dir, g->node[number - 1].dir, sizeof c->dir);
}

/* start -- the process. */
static void
start(struct group_client *c)
{
    const char *top = getenv("top_builddir");
    char path[4096];
    int in[2], out[2];

    must_ok(pipe2(in, O_CLOEXEC));
    must_ok(pipe2(out, O_CLOEXEC));
    (void)snprintf(path, sizeof path, "%s/tests/group/group_client",
                   top != NULL ? top : ".");
    c->pid = proc_fork();
    if (c->pid == 0) {
        (void)dup2(in[0], STDIN_FILENO);
        (void)dup2(out[1], STDOUT_FILENO);
        (void)execl(path, path, c->dir, FILE_NAME, (char *)NULL);
        _exit(127);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    must_ok(fcntl(out[0], F_SETFL, O_NONBLOCK));
    c->to = in[1];
    c->from = out[0];
    c->n_line = 0;
}

/* reap -- it has ended, or been killed: by this, or by its node. */
static void
reap(struct group_client *c)
{
    int status;

    must_eq(waitpid(c->pid, &status, 0), c->pid);
    (void)close(c->to);
    (void)close(c->from);
    c->to = c->from = -1;
    c->pid = 0;
    c->is_busy = false;
    if (WIFSIGNALED(status))
        must_eq(WTERMSIG(status), SIGKILL);
    else
        must_eq(WEXITSTATUS(status), 0);
}

void
group_client_end(struct group_client *c)
{
    if (c->pid == 0)
        return;
    (void)kill(c->pid, SIGKILL);
    reap(c);
}

void
group_client_send(struct group_client *c, const char *format, ...)
{
    char line[512];
    va_list args;
    size_t n;

    must(!c->is_busy);
    va_start(args, format);
    n = (size_t)vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    must(n < sizeof line - 1);
    line[n++] = '\n';
    for (int i = 0; i < 2; i++) { /* it may have been killed since the last one */
        if (c->pid == 0)
            start(c);
        if (write(c->to, line, n) == (ssize_t)n)
            break;
        must_eq(errno, EPIPE);
        reap(c);
    }
    c->is_busy = true;
    c->asked = env_now();
}

/* parse -- a whole line. */
static void
parse(const char *line, struct group_reply *out)
{
    *out = (struct group_reply){.kind = GROUP_FAILED};
    if (sscanf(line, "done %" SCNu64 " %" SCNu64 " %63s", &out->last, &out->n, out->token)
        == 3)
        out->kind = GROUP_DONE;
    else if (sscanf(line, "uncertain %63s", out->token) == 1)
        out->kind = GROUP_UNCERTAIN;
    else if (sscanf(line, "state %" SCNu64 " %" SCNu64 " %63s", &out->n, &out->last,
                    out->token)
             == 3)
        out->kind = GROUP_STATE;
    else if (sscanf(line, "fate %d", &out->code) == 1)
        out->kind = GROUP_FATE;
    else if (sscanf(line, "failed %d %255[^\n]", &out->code, out->words) < 1)
        env_fail(__FILE__, __LINE__, "a client says: %s", line);
}

void
group_client_hear(struct group_client *c, struct group_reply *out)
{
    ssize_t n = 1;
    char byte;

    must(c->is_busy);
    out->kind = GROUP_NONE;
    while (out->kind == GROUP_NONE && (n = read(c->from, &byte, 1)) == 1) {
        if (byte != '\n') {
            must(c->n_line + 1 < sizeof c->line);
            c->line[c->n_line++] = byte;
            continue;
        }
        c->line[c->n_line] = '\0';
        c->n_line = 0;
        c->is_busy = false;
        parse(c->line, out);
    }
    if (n == 0) {
        reap(c);
        out->kind = GROUP_GONE;
    }
}

void
group_client_await(struct group_client *c, double seconds, struct group_reply *out)
{
    double until = env_now() + seconds;
    struct pollfd p = {.events = POLLIN};

    for (;;) {
        p.fd = c->from;
        group_client_hear(c, out);
        if (out->kind != GROUP_NONE)
            return;
        if (env_now() > until)
            env_fail(__FILE__, __LINE__, "a client at %s does not answer", c->dir);
        (void)poll(&p, 1, LOOK_MS);
    }
}
