/* SPDX-License-Identifier: MIT */
/*
 * check_group_full.c -- the disk of Raft on a node of a group is full.
 *
 * GOAL    The daemon of a node whose Raft log takes nothing ends with words, so that another node leads, and goes on when it is
 *         started with room.  A node that leads while the others have no room waits for them, and goes on by itself.
 *         Nothing that was acknowledged is lost.
 * METHOD  Raft's files of each node are in a tmpfs of their own, in a mount namespace of the test's (root; skipped
 *         otherwise), which a file fills.  Transactions of 40 MiB use up what libraft has in reserve.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group_run.h"
#include "tests/common/env.h"

#define PATIENCE_S 60
#define OPTIONS    "-q -s 1"

/* What stays free on a full disk: less than a segment of Raft's log. */
#define LEFT (1u << 20)

/* give_disks -- to Raft on all nodes, none of which has run; ret false: that is not allowed here. */
static bool
give_disks(const struct group *g)
{
    if (unshare(CLONE_NEWNS) != 0
        || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        printf("skipped: cannot mount a small file system: %s\n", strerror(errno));
        return false;
    }
    for (unsigned i = 0; i < GROUP_NODES; i++) {
        char dir[32], words[128];

        (void)snprintf(dir, sizeof dir, "%s/raft", g->node[i].dir);
        (void)snprintf(words, sizeof words, "mv %s was && mkdir %s", dir, dir);
        must_ok(system(words));
        must_ok(mount("tmpfs", dir, "tmpfs", 0, "size=256m,mode=0700"));
        (void)snprintf(words, sizeof words, "cp -a was/. %s && rm -r was", dir);
        must_ok(system(words));
    }
    return true;
}

/* begin -- a group that has written something; ret false: skipped. */
static bool
begin(struct group *g)
{
    group_make(g);
    if (!give_disks(g)) {
        group_free(g);
        return false;
    }
    for (unsigned i = 1; i <= GROUP_NODES; i++)
        group_start(g, i, OPTIONS);
    group_await_acknowledged(g, 20, PATIENCE_S);
    group_kill_writer(g);
    return true;
}

static void
ballast_path(char path[32], unsigned number)
{
    (void)snprintf(path, 32, "n%u/raft/ballast", number);
}

/* fill -- the disk of Raft on a node, but for LEFT bytes. */
static void
fill(unsigned number)
{
    struct statvfs fs;
    char path[32];
    int fd;

    ballast_path(path, number);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    must(fd >= 0);
    must_ok(fstatvfs(fd, &fs));
    must_ok(fallocate(fd, 0, 0, (off_t)(fs.f_bavail * fs.f_frsize - LEFT)));
    (void)close(fd);
}

/* write_large -- at a node. */
static pid_t
write_large(unsigned number)
{
    char dir[16];

    (void)snprintf(dir, sizeof dir, "n%u", number);
    return group_start_large(dir);
}

/* reap_writer -- committed, the node leads no more, or killed by its daemon. */
static void
reap_writer(pid_t pid)
{
    int status;

    must_eq(waitpid(pid, &status, 0), pid);
    must(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL
                             : WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 4);
}

/* has_ended -- by itself: then with exit code 1, and words. */
static bool
has_ended(struct group *g, unsigned number)
{
    struct group_node *node = &g->node[number - 1];
    char words[128];
    int status;

    if (waitpid(node->pid, &status, WNOHANG) == 0)
        return false;
    node->pid = 0;
    must(WIFEXITED(status));
    must_eq(WEXITSTATUS(status), 1);
    (void)snprintf(words, sizeof words,
                   "grep -q 'Raft: n%u/raft: its log has no room' n%u.log", number,
                   number);
    must_ok(system(words));
    return true;
}

/* make_room -- on the disk of a node; its daemon is started again if it has ended. */
static void
make_room(struct group *g, unsigned number)
{
    char path[32];

    ballast_path(path, number);
    must_ok(unlink(path));
    if (g->node[number - 1].pid == 0 || has_ended(g, number))
        group_start(g, number, OPTIONS);
}

static void
await_end(struct group *g, unsigned number)
{
    double until = env_now() + PATIENCE_S;

    while (!has_ended(g, number))
        group_look_again(until, "a node without room does not end");
}

/* await_no_leader -- no node is writable. */
static void
await_no_leader(const struct group *g)
{
    double until = env_now() + PATIENCE_S;

    while (group_leader(g) != 0)
        group_look_again(until, "the group does not stand still");
}

/* finish -- all have room, and go on. */
static void
finish(struct group *g)
{
    group_await_acknowledged(g, 20, PATIENCE_S);
    group_end_seen(g, PATIENCE_S);
    group_free(g);
}

START_TEST(another_node_leads_when_a_disk_is_full)
{
    struct group g;
    unsigned leader;
    pid_t pid;

    if (!begin(&g))
        return;
    leader = group_await_leader(&g, PATIENCE_S);
    fill(leader);
    pid = write_large(leader);
    await_end(&g, leader);
    reap_writer(pid);
    group_await_acknowledged(&g, 20, PATIENCE_S);
    group_kill_writer(&g);
    make_room(&g, leader);
    finish(&g);
}
END_TEST

/* libraft refuses all entries, since a majority has nothing in reserve. */
START_TEST(a_full_disk_does_not_lead_when_another_is_full)
{
    struct group g;
    unsigned leader, other;
    pid_t pid;

    if (!begin(&g))
        return;
    leader = group_await_leader(&g, PATIENCE_S);
    other = leader % GROUP_NODES + 1;
    fill(leader);
    fill(other);
    pid = write_large(leader);
    await_end(&g, leader);
    reap_writer(pid);
    make_room(&g, leader);
    make_room(&g, other);
    finish(&g);
}
END_TEST

START_TEST(a_leader_waits_for_the_room_of_others)
{
    struct group g;
    unsigned leader;
    pid_t pid;

    if (!begin(&g))
        return;
    leader = group_await_leader(&g, PATIENCE_S);
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        if (i != leader)
            fill(i);
    }
    pid = write_large(leader);
    await_no_leader(&g);
    reap_writer(pid);
    (void)poll(NULL, 0, 3000);
    for (unsigned i = 1; i <= GROUP_NODES; i++) {
        if (i != leader)
            make_room(&g, i);
    }
    finish(&g);
    must_ok(system("grep -q 'too few nodes have room' n[123].log"));
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("group_full");
    TCase *t = env_tcase(s, "full", 300);

    tcase_add_test(t, another_node_leads_when_a_disk_is_full);
    tcase_add_test(t, a_full_disk_does_not_lead_when_another_is_full);
    tcase_add_test(t, a_leader_waits_for_the_room_of_others);
    return env_main(s);
}
