/* SPDX-License-Identifier: MIT */
/*
 * group_run.c -- see group_run.h.
 */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/env.h"
#include "group_run.h"
#include "tests/common/tool_run.h"

#define FILE_NAME "records"

#define LOOK_MS 20

/* top -- of the build. */
static const char *
top(void)
{
    const char *dir = getenv("top_builddir");

    return dir != NULL ? dir : ".";
}

/* ---- Making ------------------------------------------------------------------------- */

/* bind_any -- a socket at a port that is free. */
static int
bind_any(unsigned *portp)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must(fd >= 0);
    must_ok(bind(fd, (const struct sockaddr *)&at, n));
    must_ok(getsockname(fd, (struct sockaddr *)&at, &n));
    *portp = ntohs(at.sin_port);
    return fd;
}

/* find_ports -- three that are free now. */
static void
find_ports(unsigned port[GROUP_NODES])
{
    int fd[GROUP_NODES];

    for (unsigned i = 0; i < GROUP_NODES; i++)
        fd[i] = bind_any(&port[i]);
    for (unsigned i = 0; i < GROUP_NODES; i++)
        (void)close(fd[i]);
}

unsigned
group_free_port(void)
{
    unsigned port;

    (void)close(bind_any(&port));
    return port;
}

/* make_environment -- with an empty file, in a process of its own. */
static void
make_environment(const char *dir, const struct group_site *site)
{
    pid_t pid = proc_fork();
    char path[64];
    int status;

    if (pid == 0) {
        must_ok(mkdir(dir, 0700));
        if (site->is_small)
            must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, 64 << 10));
        must_ok(xInit(dir, XAC_DURABLE));
        (void)snprintf(path, sizeof path, "%s/%s", dir, site->file);
        must(xMmap(path, site->file_bytes) != MAP_FAILED);
        must_ok(xShutdown());
        _exit(0);
    }
    must_eq(waitpid(pid, &status, 0), pid);
    must_eq(status, 0);
}

void
group_make_at(struct group *g, const struct group_site *site)
{
    char words[256];

    *g = (struct group){.out = -1, .next = 1};
    g->place = (uint64_t *)calloc(GROUP_RECORDS, sizeof g->place[0]);
    must(g->place != NULL);
    for (unsigned i = 0; i < GROUP_NODES; i++) {
        g->node[i].number = i + 1;
        (void)snprintf(g->node[i].dir, sizeof g->node[i].dir, "n%u", i + 1);
        memcpy(g->node[i].within, site->within[i], sizeof g->node[i].within);
    }
    make_environment("n1", site);
    (void)snprintf(words, sizeof words, "create -m %s -m %s -m %s", site->address[0],
                   site->address[1], site->address[2]);
    ck_assert_msg(tool_run("xraftd", words, "n1") == 0, "%s", output);
    for (unsigned i = 1; i < GROUP_NODES; i++) {
        (void)snprintf(words, sizeof words, "cp -a n1 %s", g->node[i].dir);
        must_ok(system(words));
        (void)snprintf(words, sizeof words, "join --node %u", i + 1);
        ck_assert_msg(tool_run("xraftd", words, g->node[i].dir) == 0, "%s", output);
    }
}

/* make_here -- at ports of this machine. */
static void
make_here(struct group *g, bool is_small)
{
    struct group_site site = {.file = FILE_NAME,
                              .file_bytes = sizeof(struct group_file),
                              .is_small = is_small};
    unsigned port[GROUP_NODES];

    find_ports(port);
    for (unsigned i = 0; i < GROUP_NODES; i++)
        (void)snprintf(site.address[i], sizeof site.address[i], "127.0.0.1:%u", port[i]);
    group_make_at(g, &site);
}

void
group_make(struct group *g)
{
    make_here(g, false);
}

void
group_make_small(struct group *g)
{
    make_here(g, true);
}

void
group_free(struct group *g)
{
    group_kill_writer(g);
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_kill(g, i);
    free(g->place);
}

/* ---- Nodes -------------------------------------------------------------------------- */

/* node_of -- by its number. */
static struct group_node *
node_of(const struct group *g, unsigned number)
{
    must(number >= 1);
    must(number <= GROUP_NODES);
    return (struct group_node *)(uintptr_t)&g->node[number - 1];
}

void
group_start(struct group *g, unsigned number, const char *options)
{
    struct group_node *node = node_of(g, number);
    char command[640];

    must_eq(node->pid, 0);
    (void)snprintf(command, sizeof command,
                   "exec %s%s %s/xraftd start %s %s >>%s.log 2>&1",
                   node->within[0] != '\0' ? "nsenter --net=/run/netns/" : "",
                   node->within, top(), options, node->dir, node->dir);
    node->pid = proc_fork();
    if (node->pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
}

/* reap -- the daemon of a node; ret how it ended. */
static int
reap(struct group_node *node)
{
    int status = 0;

    must_eq(waitpid(node->pid, &status, 0), node->pid);
    node->pid = 0;
    return status;
}

void
group_kill(struct group *g, unsigned number)
{
    struct group_node *node = node_of(g, number);

    if (node->pid == 0)
        return;
    (void)kill(node->pid, SIGKILL);
    (void)reap(node);
}

/* show_logs -- of all daemons. */
static void
show_logs(void)
{
    (void)!system("for n in n1 n2 n3; do echo \"-- $n\"; tail -n 40 $n.log; done");
}

void
group_stop(struct group *g, unsigned number)
{
    struct group_node *node = node_of(g, number);
    int status;

    must(node->pid != 0);
    must_ok(kill(node->pid, SIGTERM));
    status = reap(node);
    if (status != 0)
        show_logs();
    must_eq(status, 0);
}

bool
group_ask(const struct group *g, unsigned number, struct group_status *out)
{
    const struct group_node *node = node_of(g, number);
    char *rest = NULL;

    memset(out, 0, sizeof *out);
    if (node->pid == 0 || tool_run("xraftd", "status", node->dir) != 0)
        return false;
    for (char *line = strtok_r(output, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        (void)sscanf(line, "role %15s", out->role);
        (void)sscanf(line, "state %15s", out->state);
        (void)sscanf(line, "generation %" SCNu64, &out->generation);
        (void)sscanf(line, "replicated %" SCNu64, &out->replicated);
        (void)sscanf(line, "applied %" SCNu64, &out->applied);
        (void)sscanf(line, "entries %" SCNu64, &out->entries);
        (void)sscanf(line, "snapshots %" SCNu64, &out->snapshots);
        (void)sscanf(line, "gathered %" SCNu64, &out->gathered);
        (void)sscanf(line, "held %" SCNu64, &out->held);
    }
    return true;
}

unsigned
group_leader(const struct group *g)
{
    unsigned leader = 0;
    uint64_t newest = 0;

    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        struct group_status s;

        if (group_ask(g, i, &s) && strcmp(s.state, "writable") == 0
            && s.generation > newest) {
            newest = s.generation;
            leader = i;
        }
    }
    return leader;
}

void
group_must_run(const struct group *g)
{
    for (unsigned i = 0; i < GROUP_NODES; i++) {
        int status;

        if (g->node[i].pid == 0 || waitpid(g->node[i].pid, &status, WNOHANG) == 0)
            continue;
        show_logs();
        env_fail(__FILE__, __LINE__, "node %u has ended: %d", i + 1, status);
    }
}

void
group_look_again(double until, const char *why)
{
    if (env_now() > until) {
        show_logs();
        env_fail(__FILE__, __LINE__, "%s", why);
    }
    (void)poll(NULL, 0, LOOK_MS);
}

unsigned
group_await_leader(const struct group *g, double seconds)
{
    double until = env_now() + seconds;
    unsigned leader;

    while ((leader = group_leader(g)) == 0) {
        group_must_run(g);
        group_look_again(until, "no node leads");
    }
    return leader;
}

/* ---- The writer --------------------------------------------------------------------- */

/* start_writer -- where the leader is. */
static void
start_writer(struct group *g, unsigned number)
{
    char path[4096], first[32];
    int pair[2];

    must_eq(g->writer, 0);
    must_ok(pipe2(pair, O_CLOEXEC));
    (void)snprintf(path, sizeof path, "%s/tests/group/group_writer", top());
    (void)snprintf(first, sizeof first, "%" PRIu64, g->next);
    g->writer = proc_fork();
    if (g->writer == 0) {
        (void)dup2(pair[1], STDOUT_FILENO);
        (void)execl(path, path, node_of(g, number)->dir, FILE_NAME, first, (char *)NULL);
        _exit(127);
    }
    (void)close(pair[1]);
    must_ok(fcntl(pair[0], F_SETFL, O_NONBLOCK));
    g->out = pair[0];
    g->n_line = 0;
    g->writes_to = number;
}

/* take_line -- what the writer says. */
static void
take_line(struct group *g, const char *line)
{
    uint64_t record, place;

    if (sscanf(line, "begin %" SCNu64, &record) == 1) {
        must(record < GROUP_RECORDS);
        g->next = record + 1; /* whatever becomes of it: it is not written again */
    } else if (sscanf(line, "done %" SCNu64 " %" SCNu64, &record, &place) == 2) {
        must(record < GROUP_RECORDS);
        must_eq(g->place[record], 0);
        g->place[record] = place + 1;
        g->n_acknowledged++;
    }
}

/* hear -- all that the writer has said; ret false: it has ended. */
static bool
hear(struct group *g)
{
    char c;
    ssize_t n;

    while ((n = read(g->out, &c, 1)) == 1) {
        if (c != '\n' && g->n_line + 1 < sizeof g->line) {
            g->line[g->n_line++] = c;
            continue;
        }
        g->line[g->n_line] = '\0';
        g->n_line = 0;
        take_line(g, g->line);
    }
    return n < 0 && errno == EAGAIN;
}

/* reap_writer -- it has ended, or been killed. */
static void
reap_writer(struct group *g)
{
    int status;

    (void)hear(g);
    must_eq(waitpid(g->writer, &status, 0), g->writer);
    (void)close(g->out);
    g->out = -1;
    g->writer = 0;
    /* It may end because the node does not lead, because it does not know, and killed: by this, or by the daemon. */
    if (WIFEXITED(status) && WEXITSTATUS(status) != 3 && WEXITSTATUS(status) != 4) {
        show_logs();
        env_fail(__FILE__, __LINE__, "the writer's exit code is %d", WEXITSTATUS(status));
    }
    if (WIFSIGNALED(status))
        must_eq(WTERMSIG(status), SIGKILL);
}

void
group_kill_writer(struct group *g)
{
    if (g->writer == 0)
        return;
    (void)kill(g->writer, SIGKILL);
    reap_writer(g);
}

void
group_await_acknowledged(struct group *g, uint64_t n, double seconds)
{
    double until = env_now() + seconds;
    uint64_t goal = g->n_acknowledged + n;

    while (g->n_acknowledged < goal) {
        unsigned leader = g->writer == 0 ? group_leader(g) : 0;
        struct pollfd p = {.fd = g->out, .events = POLLIN};

        group_must_run(g);
        if (leader != 0)
            start_writer(g, leader);
        if (g->writer != 0) {
            (void)poll(&p, 1, LOOK_MS);
            if (!hear(g))
                reap_writer(g);
        } else {
            (void)poll(NULL, 0, LOOK_MS);
        }
        if (env_now() > until) {
            show_logs();
            env_fail(__FILE__, __LINE__, "%" PRIu64 " acknowledged, not %" PRIu64,
                     g->n_acknowledged, goal);
        }
    }
}

void
group_listen(struct group *g, double seconds)
{
    double until = env_now() + seconds;
    struct pollfd p = {.fd = g->out, .events = POLLIN};

    while (env_now() < until) {
        (void)poll(&p, 1, LOOK_MS);
        if (g->writer != 0 && !hear(g))
            reap_writer(g);
        p.fd = g->out;
    }
}

/* ---- What must be there ------------------------------------------------------------- */

void
group_await_agreement(const struct group *g, double seconds)
{
    double until = env_now() + seconds;

    for (;;) {
        struct group_status first, s;
        unsigned n = group_ask(g, 1, &first) ? 1 : 0;

        for (unsigned i = 2; i <= GROUP_NODES; i++)
            n += group_ask(g, i, &s) && s.generation == first.generation
                 && s.replicated == first.replicated && s.applied == first.replicated;
        if (n == GROUP_NODES && first.applied == first.replicated && group_leader(g) != 0)
            return;
        group_must_run(g);
        group_look_again(until, "the nodes do not agree");
    }
}

/* must_hold -- a file that has all that was acknowledged, each record once. */
static void
must_hold(const struct group *g, const struct group_file *f)
{
    uint8_t *seen = (uint8_t *)calloc(GROUP_RECORDS, 1);
    uint64_t n_found = 0;

    must(seen != NULL);
    must(f->n < GROUP_RECORDS);
    for (uint64_t i = 0; i < f->n; i++) {
        must(f->record[i] < g->next);
        must_eq(seen[f->record[i]], 0);
        seen[f->record[i]] = 1;
    }
    for (uint64_t record = 1; record < g->next; record++) {
        if (g->place[record] == 0)
            continue;
        must(g->place[record] <= f->n);
        must_eq(f->record[g->place[record] - 1], record);
        n_found++;
    }
    must_eq(n_found, g->n_acknowledged);
    free(seen);
}

/* map_file -- of a node, at rest. */
static const struct group_file *
map_file(const struct group_node *node)
{
    char path[64];
    int fd;
    void *p;

    (void)snprintf(path, sizeof path, "%s/" FILE_NAME, node->dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    must(fd >= 0);
    p = mmap(NULL, sizeof(struct group_file), PROT_READ, MAP_SHARED, fd, 0);
    must(p != MAP_FAILED);
    (void)close(fd);
    return (const struct group_file *)p;
}

void
group_must_agree(const struct group *g)
{
    const struct group_file *first = map_file(&g->node[0]);

    must_hold(g, first);
    for (unsigned i = 0; i < GROUP_NODES; i++) {
        const struct group_file *f = map_file(&g->node[i]);

        must_eq(g->node[i].pid, 0);
        if (memcmp(first, f, sizeof *f) != 0) {
            show_logs();
            env_fail(__FILE__, __LINE__, "n1 has %" PRIu64 " records, node %u %" PRIu64,
                     first->n, i + 1, f->n);
        }
        (void)munmap((void *)(uintptr_t)f, sizeof *f);
    }
    (void)munmap((void *)(uintptr_t)first, sizeof *first);
}

void
group_query(const struct group *g, unsigned number)
{
    pid_t pid = proc_fork();
    int status;

    if (pid == 0) {
        const struct group_file *f;
        char path[64];

        must_ok(xInit(node_of(g, number)->dir, XAC_DURABLE));
        (void)snprintf(path, sizeof path, "%s/" FILE_NAME, node_of(g, number)->dir);
        f = (const struct group_file *)xMmap(path, sizeof *f);
        must((const void *)f != MAP_FAILED);
        must_ok(xbeginQuery());
        must_hold(g, f);
        must_ok(xendQuery());
        must_ok(xShutdown());
        _exit(0);
    }
    must_eq(waitpid(pid, &status, 0), pid);
    must_eq(status, 0);
}

/* ---- A large transaction ------------------------------------------------------------ */

#define LARGE_BYTES ((size_t)40 << 20)

pid_t
group_start_large(const char *dir)
{
    pid_t pid = proc_fork();
    char path[64];
    uint8_t *p;
    int rc;

    if (pid == 0) {
        rc = xInit(dir, XAC_DURABLE);
        (void)snprintf(path, sizeof path, "%s/large", dir);
        p = rc == 0 ? (uint8_t *)xMmap(path, LARGE_BYTES) : NULL;
        must((void *)p != MAP_FAILED);
        if (rc == 0)
            rc = xbegin();
        for (size_t i = 0; rc == 0 && i < LARGE_BYTES; i += 64)
            memset(p + i, (int)(1 + i / 64 % 251), 64);
        if (rc == 0)
            rc = xend();
        if (rc == XAC_ENOTLEADER || rc == XAC_EUNCERTAIN)
            _exit(4);
        must_eq(rc, COMMITTED);
        must_ok(xShutdown());
        _exit(0);
    }
    return pid;
}

void
group_write_large(const struct group *g)
{
    double until = env_now() + 120;
    int status;

    do {
        unsigned leader = group_await_leader(g, 60);
        pid_t pid = group_start_large(node_of(g, leader)->dir);

        must(env_now() < until);
        must_eq(waitpid(pid, &status, 0), pid);
        /* A leader that is too slow for its majority is deposed; the daemon kills programs that do not leave in time. */
    } while ((WIFEXITED(status) && WEXITSTATUS(status) == 4)
             || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    must_eq(status, 0);
}

void
group_must_be_large(const char *dir)
{
    char path[64];
    uint8_t *p;
    int fd;

    (void)snprintf(path, sizeof path, "%s/large", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    must(fd >= 0);
    p = (uint8_t *)mmap(NULL, LARGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    must((void *)p != MAP_FAILED);
    for (size_t i = 0; i < LARGE_BYTES; i += 64) {
        must_eq(p[i], 1 + i / 64 % 251);
        must_eq(p[i + 63], p[i]);
    }
    (void)munmap(p, LARGE_BYTES);
    (void)close(fd);
}

void
group_end_equal(struct group *g, double seconds)
{
    group_await_agreement(g, seconds);
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_stop(g, i);
    group_must_agree(g);
}

void
group_end_seen(struct group *g, double seconds)
{
    group_kill_writer(g);
    group_await_agreement(g, seconds);
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_query(g, i);
    /* The query on the leader has seen what the writer had published when it was killed, and had it committed. */
    group_end_equal(g, seconds);
}
