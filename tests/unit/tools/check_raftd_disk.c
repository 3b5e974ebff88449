/* SPDX-License-Identifier: MIT */
/*
 * check_raftd_disk.c -- whether the disk takes what Raft writes (recovery/raftd_disk.h), and barriers that libraft refuses
 * (recovery/raftd_barrier.h).
 *
 * GOAL    A disk without room is told of once, when nothing has been written for a time; a slow one is not.  A node whose term
 *         or vote cannot be written ends at once.  A barrier that a node needs to lead is asked for until it is
 *         committed, and no longer than it leads; a reader's is asked for once.
 * METHOD  The test is libraft and its disk.  fallocate() fails by xac_sys.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "recovery/raftd_barrier.h"
#include "recovery/raftd_disk.h"
#include "recovery/tool.h"
#include "tests/common/env.h"

#define TERM 7

const char *const tool_name = "check_raftd_disk";

static struct {
    uv_loop_t loop;
    struct raftd_disk d;
    struct raftd_barriers b;
    struct raft raft;
    struct raft_io_append *append[4];
    unsigned n_appends, n_appended;
    int term_rv, vote_rv; /* of set_term, set_vote                                     */
    unsigned n_failed;
    int rc, no_room; /* as told; of fallocate: errno                                   */
    /* Barriers. */
    uint64_t leads;
    raft_barrier_cb cb;
    struct raft_barrier *req;
    int barrier_rv;
    unsigned n_asked, n_put;
    enum raftd_item_kind what;
    uint64_t term;
} w;

/* ---- libraft, and its disk ---------------------------------------------------------- */

static int
set_term(struct raft_io *io, raft_term term)
{
    (void)term;
    (void)snprintf(io->errmsg, sizeof io->errmsg, "no term");
    return w.term_rv;
}

static int
set_vote(struct raft_io *io, raft_id node)
{
    (void)node;
    (void)snprintf(io->errmsg, sizeof io->errmsg, "no vote");
    return w.vote_rv;
}

static int
append(struct raft_io *io, struct raft_io_append *req, const struct raft_entry entries[],
       unsigned n, raft_io_append_cb cb)
{
    (void)io;
    must(entries == NULL);
    must_eq(n, 1);
    req->cb = cb;
    w.append[w.n_appends++] = req;
    return 0;
}

/* The following are libraft's. */
enum raft_state
raft_state(struct raft *r)
{
    must(r == &w.raft);
    return RAFT_LEADER;
}

int
raft_barrier(struct raft *r, struct raft_barrier *req, raft_barrier_cb cb)
{
    must(r == &w.raft);
    w.n_asked++;
    w.req = req;
    w.cb = cb;
    return w.barrier_rv;
}

static bool
leads(const struct raftd_raft *r, uint64_t term)
{
    must(r == NULL);
    return term != 0 && term == w.leads;
}

static int
no_room(int fd, int mode, off_t offset, off_t n)
{
    (void)fd;
    (void)mode;
    (void)offset;
    must(n > 0);
    errno = w.no_room;
    return w.no_room != 0 ? -1 : 0;
}

/* ---- Who is told -------------------------------------------------------------------- */

static void
failed(void *arg, int rc)
{
    must(arg == &w);
    w.n_failed++;
    w.rc = rc;
}

static void
appended(struct raft_io_append *req, int status)
{
    must(req->data == &w);
    must_eq(status, 0);
    w.n_appended++;
}

static void
put(struct raftd_raft *r, enum raftd_item_kind what, uint64_t term)
{
    must(r == NULL);
    w.n_put++;
    w.what = what;
    w.term = term;
}

static void
begin(void)
{
    must_ok(uv_loop_init(&w.loop));
    w.d.io =
        (struct raft_io){.set_term = set_term, .set_vote = set_vote, .append = append};
    raftd_disk_watch(&w.d, &w.loop, ".", failed, &w);
    w.b = (struct raftd_barriers){
        .raft = &w.raft, .loop = &w.loop, .disk = &w.d, .leads = leads, .put = put};
    w.leads = TERM;
    xac_sys.fallocate = no_room;
}

/* pass -- the loop turns, for so long. */
static void
pass(unsigned ms)
{
    double until = env_now() + ms / 1e3;

    do {
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
        raftd_disk_look(&w.d);
        raftd_barrier_look(&w.b);
        (void)usleep(10000);
    } while (env_now() < until || w.d.is_trying);
}

static void
end(void)
{
    must_ok(uv_loop_close(&w.loop));
    must_eq(access("room", F_OK), -1);
}

/* write_entry -- libraft does. */
static void
write_entry(struct raft_io_append *req)
{
    req->data = &w;
    must_eq(w.d.io.append(&w.d.io, req, NULL, 1, appended), 0);
}

static void
finish_entry(unsigned i)
{
    w.append[i]->cb(w.append[i], 0);
}

#define SOON (RAFTD_DISK_PATIENCE_MS + 500)

/* ---- The disk ----------------------------------------------------------------------- */

START_TEST(a_disk_without_room_is_told_of_once)
{
    struct raft_io_append req[2];

    begin();
    w.no_room = ENOSPC;
    pass(SOON);
    must_eq(w.n_failed, 0); /* there is nothing to write */
    write_entry(&req[0]);
    pass(RAFTD_DISK_PATIENCE_MS / 2);
    must_eq(w.n_failed, 0);
    pass(SOON);
    must_eq(w.n_failed, 1);
    must_eq(w.rc, ENOSPC);
    must(strstr(xLastError(), "its log has no room") != NULL);
    pass(SOON);
    must_eq(w.n_failed, 1);
    finish_entry(0);
    end();
}
END_TEST

START_TEST(a_slow_disk_is_waited_for)
{
    struct raft_io_append req[2];

    begin();
    write_entry(&req[0]);
    pass(SOON);
    must_eq(w.n_failed, 0); /* there is room */
    write_entry(&req[1]);
    w.no_room = ENOSPC;
    finish_entry(0);
    must_eq(w.n_appended, 1);
    pass(RAFTD_DISK_PATIENCE_MS / 2);
    must_eq(w.n_failed, 0); /* something has been written */
    finish_entry(1);
    pass(SOON);
    must_eq(w.n_failed, 0);
    must_eq(w.n_appended, 2);
    end();
}
END_TEST

/* must_end -- a process that writes a term or a vote, with words. */
static void
must_end(bool is_term)
{
    pid_t pid = proc_fork();
    int status;

    if (pid == 0) {
        must(freopen("words", "w", stderr) != NULL);
        (void)setvbuf(stderr, NULL, _IONBF, 0);
        if (is_term)
            (void)w.d.io.set_term(&w.d.io, TERM);
        else
            (void)w.d.io.set_vote(&w.d.io, 1);
        _exit(0);
    }
    must_eq(waitpid(pid, &status, 0), pid);
    must(WIFEXITED(status));
    must_eq(WEXITSTATUS(status), 1);
    must_ok(system(is_term ? "grep -q 'cannot be written: no term' words"
                           : "grep -q 'cannot be written: no vote' words"));
}

START_TEST(a_node_whose_vote_is_not_written_ends)
{
    begin();
    must_eq(w.d.io.set_term(&w.d.io, TERM), 0);
    must_eq(w.d.io.set_vote(&w.d.io, 1), 0);
    w.term_rv = w.vote_rv = RAFT_IOERR;
    must_end(true);
    must_end(false);
    end();
}
END_TEST

/* ---- Barriers ----------------------------------------------------------------------- */

START_TEST(a_barrier_is_asked_for_until_it_is_committed)
{
    begin();
    w.barrier_rv = RAFT_NOSPACE;
    raftd_barrier_start(&w.b, RAFTD_ITEM_BARRIER, TERM);
    must_eq(w.n_asked, 1);
    pass(3 * RAFTD_BARRIER_AGAIN_MS);
    must(w.n_asked > 1);
    w.barrier_rv = 0;
    pass(2 * RAFTD_BARRIER_AGAIN_MS);
    w.n_asked = 0;
    w.cb(w.req, RAFT_NOSPACE); /* later */
    pass(2 * RAFTD_BARRIER_AGAIN_MS);
    must_eq(w.n_asked, 1);
    must_eq(w.n_put, 0);
    w.cb(w.req, 0);
    pass(2 * RAFTD_BARRIER_AGAIN_MS);
    must_eq(w.n_asked, 1);
    must_eq(w.n_put, 1);
    must_eq(w.what, RAFTD_ITEM_BARRIER);
    must_eq(w.term, TERM);
    end();
}
END_TEST

START_TEST(a_barrier_is_not_asked_for_when_another_node_leads)
{
    begin();
    w.barrier_rv = RAFT_NOSPACE;
    raftd_barrier_start(&w.b, RAFTD_ITEM_BARRIER, TERM);
    w.leads = 0;
    pass(2 * RAFTD_BARRIER_AGAIN_MS);
    must_eq(w.n_asked, 1);
    must_eq(w.n_put, 0);
    end();
}
END_TEST

START_TEST(a_reader_is_told_that_there_is_none)
{
    begin();
    w.barrier_rv = RAFT_NOSPACE;
    raftd_barrier_start(&w.b, RAFTD_ITEM_READ, TERM);
    pass(2 * RAFTD_BARRIER_AGAIN_MS);
    must_eq(w.n_asked, 1);
    must_eq(w.n_put, 1);
    must_eq(w.what, RAFTD_ITEM_READ);
    must_eq(w.term, 0);
    end();
}
END_TEST

START_TEST(a_leader_whose_own_disk_has_no_room_ends)
{
    begin();
    w.barrier_rv = RAFT_NOSPACE;
    w.no_room = ENOSPC;
    raftd_barrier_start(&w.b, RAFTD_ITEM_BARRIER, TERM);
    pass(SOON);
    must_eq(w.n_failed, 1);
    end();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("raftd_disk");
    TCase *t = env_tcase(s, "raftd_disk", 60);

    tcase_add_test(t, a_disk_without_room_is_told_of_once);
    tcase_add_test(t, a_slow_disk_is_waited_for);
    tcase_add_test(t, a_node_whose_vote_is_not_written_ends);
    tcase_add_test(t, a_barrier_is_asked_for_until_it_is_committed);
    tcase_add_test(t, a_barrier_is_not_asked_for_when_another_node_leads);
    tcase_add_test(t, a_reader_is_told_that_there_is_none);
    tcase_add_test(t, a_leader_whose_own_disk_has_no_room_ends);
    return env_main(s);
}
