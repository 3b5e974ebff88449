/* SPDX-License-Identifier: MIT */
/*
 * check_group.c -- the environment of a group's leader (libxac/shared/group.h): what waits for a majority, and what
 * those who take part see when it leads no more.
 *
 * GOAL    Nothing is acknowledged, and nothing comes into a file, the master record or a backup, before a majority has
 *         it.  A wait ends, when the daemon deposes the environment or is silent.  Nothing begins then.
 * METHOD  A process plays the daemon.  The test says what a majority has.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <inttypes.h>

#include "group_env.h"
#include "api/api.h"
#include "backup/backup.h"
#include "ship/source.h"

/* While nothing is to happen. */
#define A_WHILE_US 150000

/* ---- Those who take part ---------------------------------------------------------------- */

static int (*sync_file)(int fd);

/* sync_held -- for fdatasync(): it ends when the test says `go`. */
static int
sync_held(int fd)
{
    word_store(&stage->started, 2);
    proc_await(&stage->go, 1, 60);
    return sync_file(fd);
}

/* commit_one -- a child: transaction number board->n; its code is stage->rc.  in  arg  not NULL: its sync waits */
static void
commit_one(void *arg)
{
    uint64_t *x = attach();
    int rc;

    sync_file = xac_sys.fdatasync;
    if (arg != NULL)
        xac_sys.fdatasync = sync_held;
    word_store(&stage->started, 1);
    rc = transact(x, board->n);
    word_store(&stage->rc, (uint64_t)(int64_t)rc);
    word_store(&stage->ended, 1);
    (void)xShutdown();
}

/* read_one -- a child: one query, which must see board->n transactions; or a transaction that only reads. */
static void
read_one(void *arg)
{
    bool is_query = arg == NULL;
    uint64_t *x = attach();

    must_ok(is_query ? xbeginQuery() : xbegin());
    must_eq(x[0], board->n);
    word_store(&stage->started, 1);
    word_store(&stage->rc, (uint64_t)(int64_t)(is_query ? xendQuery() : xend()));
    word_store(&stage->ended, 1);
    (void)xShutdown();
}

/* commit_some_late -- a child: five transactions that wait for nothing, then it waits for `go`, then xSync(). */
static void
commit_some_late(void *arg)
{
    uint64_t *x, n = board->n;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, 1));
    x = attach();
    for (uint64_t k = 1; k <= 5; k++) {
        proc_sleep_us(2000);
        must_rc(transact(x, n + k), COMMITTED);
    }
    word_store(&stage->started, 1);
    proc_await(&stage->go, 1, 60);
    word_store(&stage->rc, (uint64_t)(int64_t)xSync());
    word_store(&stage->ended, 1);
    (void)xShutdown();
}

/* begin_one -- of those, in a child; ret it. */
static pid_t
begin_one(void (*fn)(void *), void *arg)
{
    pid_t pid;

    word_store(&stage->started, 0);
    word_store(&stage->ended, 0);
    word_store(&stage->go, 0);
    pid = proc_spawn(fn, arg);
    proc_await(&stage->started, 1, 60);
    return pid;
}

/* must_wait -- it has not ended, though all of it is durable here. */
static void
must_wait(uint64_t behind)
{
    if (behind != 0)
        (void)await_durable(behind);
    proc_sleep_us(A_WHILE_US);
    must_eq(word_load(&stage->ended), 0);
}

/* must_end -- with that code. */
static void
must_end(pid_t pid, int rc)
{
    proc_await(&stage->ended, 1, 60);
    must_eq((int64_t)word_load(&stage->rc), rc);
    proc_join(pid);
}

/* ---- What waits ------------------------------------------------------------------------- */

START_TEST(commits_wait_for_a_majority)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid;
    uint64_t held;

    word_store(&board->written, 100);
    board->n = 11;
    pid = begin_one(commit_one, NULL);
    must_end(pid, COMMITTED);
    held = hold();
    board->n = 12;
    pid = begin_one(commit_one, NULL);
    must_wait(held);
    word_store(&stage->allow, UINT64_MAX);
    must_end(pid, COMMITTED);
    dethrone(daemon);
}
END_TEST

/* read_all -- ret behind the last block that is handed out. */
static uint64_t
read_all(struct xac_source *s, uint64_t lsn)
{
    struct xac_followed got;

    for (;;) {
        must_ok(xac_source_next(s, &got));
        if (got.blk == NULL)
            return lsn;
        lsn = got.blk->lsn + got.blk->length;
    }
}

START_TEST(a_majority_may_have_it_before_the_disk_does)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid;
    struct xac_source all, ahead;
    uint64_t held, written, read;

    word_store(&board->written, 100);
    board->n = 11;
    pid = begin_one(commit_one, stage);
    proc_await(&stage->started, 2, 60);
    must_wait(0);
    held = word_load(&stage->durable);
    proc_await(&stage->accepted, held + 1, 60);
    must_eq(word_load(&stage->replicated), held); /* xac_group_bound() */
    must_ok(xac_source_open(&all, ENV_DIR));
    must_ok(xac_source_open(&ahead, ENV_DIR));
    xac_source_go_ahead(&ahead);
    must_ok(xac_source_seek(&all, stage->line.generation, stage->line.start_lsn, 0));
    must_ok(xac_source_seek(&ahead, stage->line.generation, stage->line.start_lsn, 0));
    written = read_all(&ahead, stage->line.start_lsn);
    must(written > held);
    must_eq(read_all(&all, stage->line.start_lsn), held);
    word_store(&stage->go, 1);
    must_end(pid, COMMITTED);
    read = read_all(&all, held);
    must(read >= written);
    proc_await(&stage->durable, read, 60); /* the daemon looks again in a moment */
    must_eq(word_load(&stage->durable), read);
    dethrone(daemon);
    xac_source_close(&all);
    xac_source_close(&ahead);
}
END_TEST

START_TEST(readers_wait_for_what_they_have_seen)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), first, pid;
    uint64_t held = hold();

    word_store(&board->written, 100);
    board->n = 11;
    first = begin_one(commit_one, NULL);
    must_wait(held);
    for (uintptr_t i = 0; i < 2; i++) {
        word_store(&stage->allow, held);
        pid = begin_one(read_one, (void *)i);
        must_wait(0);
        if (i == 0)
            proc_kill(pid);
    }
    word_store(&stage->allow, UINT64_MAX);
    must_end(pid, 0);
    proc_join(first);
    dethrone(daemon);
}
END_TEST

START_TEST(delayed_commits_wait_for_nothing_but_a_sync_does)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid;

    word_store(&board->written, 100);
    (void)hold();
    board->n = 10;
    pid = begin_one(commit_some_late, NULL); /* they return */
    word_store(&stage->go, 1);
    must_wait(0);
    word_store(&stage->allow, UINT64_MAX);
    must_end(pid, 0);
    dethrone(daemon);
}
END_TEST

/* limited -- a child: with XAC_OPT_WAIT_MS. */
static void
limited(void *arg)
{
    uint64_t *x;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_WAIT_MS, 200));
    x = attach();
    must_rc(transact(x, board->n), XAC_EUNCERTAIN);
    must(strstr(xLastError(), "a majority of the group") != NULL);
    must_ok(xShutdown());
}

START_TEST(a_limit_ends_the_wait)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at);

    word_store(&board->written, 100);
    (void)hold();
    board->n = 11;
    proc_run(limited, NULL);
    must_eq(word_load(&stage->deposed), 0);
    dethrone(daemon);
}
END_TEST

/* ---- Deposed ---------------------------------------------------------------------------- */

/* must_be_over -- nothing begins any more; in a process that has it open. */
static void
must_be_over(uint64_t *x)
{
    must_refuse(xbegin(), XAC_ENOTLEADER);
    must(strstr(xLastError(), "node 2 at 127.0.0.1:7002") != NULL);
    must_refuse(xbeginQuery(), XAC_ENOTLEADER);
    must_refuse(xCheckpoint(), XAC_ENOTLEADER);
    must(x != NULL);
}

/* A transaction; a query; a transaction that traps; one that asks. */
static int way;

/* overtaken -- a child: deposed while it is open. */
static void
overtaken(void *arg)
{
    uint64_t *x = attach();
    struct xac_conflict why;
    bool is_query = way == 1;

    (void)arg;
    must_ok(is_query ? xbeginQuery() : xbegin());
    must_eq(x[0], 10);
    if (!is_query)
        do_transaction(x, 11);
    word_store(&stage->started, 1);
    proc_await(&stage->deposed, 1, 60);
    if (is_query) {
        must_ok(xendQuery()); /* a majority had what it has seen */
    } else {
        if (way == 2) { /* a trap notices it */
            *env_cell(x, PAGES) = 1;
            must_ok(xbegin());
            must_rc(xend(), FAILED);
        }
        if (way == 3)
            must_rc(xValidate(), FAILED);
        must_rc(xend(), ABORTED);
        must_ok(xConflict(&why, sizeof why));
        must_eq(why.kind, XAC_CONFLICT_RESOURCE);
        must_eq(why.error, XAC_ENOTLEADER);
    }
    must_be_over(x);
    word_store(&stage->ended, 1);
    must_ok(xShutdown());
}

/* refused -- a child: nobody joins a deposed environment. */
static void
refused(void *arg)
{
    (void)arg;
    must_refuse(xInit(ENV_DIR, DURABLE), XAC_ENOTLEADER);
    must(strstr(xLastError(), "does not lead") != NULL);
    must_refuse(xInit(ENV_DIR, XAC_READONLY), XAC_ENOTLEADER);
}

START_TEST(what_is_open_ends_when_deposed)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid;

    way = _i;
    pid = begin_one(overtaken, NULL);

    word_store(&board->written, 100);
    word_store(&stage->order, SHOW_ONLY);
    proc_await(&stage->ended, 1, 60);
    proc_run(refused, NULL);
    dethrone(daemon);
    proc_join(pid);
    at = cut_at(look().end_lsn);
    must_have(10);
}
END_TEST

START_TEST(what_waits_becomes_uncertain)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid, reader;
    uint64_t held = hold();

    word_store(&board->written, 100);
    board->n = 11;
    pid = begin_one(commit_one, NULL);
    must_wait(held);
    word_store(&stage->started, 0);
    reader = proc_spawn(read_one, NULL);
    proc_await(&stage->started, 1, 60);
    proc_sleep_us(20000);
    dethrone(daemon);
    must_end(pid, XAC_EUNCERTAIN);
    must(strstr(xac_strerror(XAC_EUNCERTAIN), "committed") == NULL); /* nobody says so */
    proc_join(reader);
    must_eq((int64_t)word_load(&stage->rc), XAC_EUNCERTAIN); /* of the later one */
    at = cut_at(held);
    must_eq(at.end_lsn, held);
    must_have(10);
}
END_TEST

/* silent -- a child: its commit waits for a daemon that does not answer. */
static void
silent(void *arg)
{
    uint64_t *x = attach();
    double begin = env_now();

    (void)arg;
    word_store(&stage->started, 1);
    proc_await(&stage->go, 1, 60);
    must_rc(transact(x, board->n), XAC_EUNCERTAIN);
    must(env_now() - begin > 0.25 && env_now() - begin < 20);
    must_refuse(xbegin(), XAC_ENOTLEADER);
    must_refuse(xbeginQuery(), XAC_ENOTLEADER);
    must_ok(xShutdown());
}

START_TEST(a_silent_daemon_is_deposed)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid;
    struct xac_env *env;
    uint64_t held;

    word_store(&board->written, 100);
    stage->group_wait_ms = 300;
    held = hold();
    board->n = 11;
    pid = begin_one(silent, NULL);
    if (_i == 0)
        must_ok(kill(daemon, SIGSTOP));
    else
        proc_kill(daemon);
    word_store(&stage->go, 1);
    proc_join(pid);
    if (_i == 0) {
        must_ok(kill(daemon, SIGCONT));
        dethrone(daemon);
    } else { /* the last one has left: the next daemon cuts the log */
        must_refuse(xac_member_attach(ENV_DIR, &env), XAC_ENOTLEADER);
    }
    at = cut_at(held);
    must_have(10);
}
END_TEST

/* move_on -- a child: commits while `replicated` moves in steps that are shorter than the limit. */
static void
move_on(void *arg)
{
    uint64_t *x = attach();

    (void)arg;
    word_store(&stage->started, 1);
    for (uint64_t k = board->n; k < board->n + 5; k++)
        must_rc(transact(x, k), COMMITTED);
    word_store(&stage->ended, 1);
    must_ok(xShutdown());
}

START_TEST(a_slow_majority_is_none_that_is_silent)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid;

    word_store(&board->written, 100);
    stage->group_wait_ms = 1000;
    board->n = 11;
    (void)hold();
    pid = begin_one(move_on, NULL);
    while (word_load(&stage->ended)
           == 0) { /* each commit waits for a part of the limit */
        proc_sleep_us(300000);
        word_store(&stage->allow, word_load(&stage->durable));
    }
    proc_join(pid);
    dethrone(daemon);
}
END_TEST

/* ---- Files and master record -------------------------------------------------------------- */

/* checkpoint_late -- a child: commits that a majority does not have, then a checkpoint. */
static void
checkpoint_late(void *arg)
{
    uint64_t *x, n = board->n;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, 1));
    must_ok(xSetOption(XAC_OPT_PAGE_CHECKSUMS, 1));
    x = attach();
    for (uint64_t k = 1; k <= 5; k++) {
        proc_sleep_us(2000);
        must_rc(transact(x, n + k), COMMITTED);
    }
    word_store(&stage->started, 1);
    word_store(&stage->rc, (uint64_t)(int64_t)xCheckpoint());
    word_store(&stage->ended, 1);
    (void)xShutdown();
}

/* read_master -- the master record must not know of anything beyond what a majority has. */
static struct xac_master_slot
read_master(void)
{
    struct xac_master_slot m = read_slot();

    must(m.end_lsn_after <= word_load(&stage->replicated));
    must(m.redo_lsn <= word_load(&stage->replicated));
    return m;
}

START_TEST(a_checkpoint_writes_what_a_majority_has)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid;
    uint64_t held = hold(), begun;
    uint32_t generation = read_master().generation;

    word_store(&board->written, 100);
    board->n = 10;
    pid = begin_one(checkpoint_late, NULL);
    must_wait(held);
    must_eq(must_be_state(FILE_IN_DIR),
            10); /* 11 to 15 are durable here, and only here */
    must(!file_exists(ENV_DIR "/xac.pages"));
    must_eq(read_master().begin_lsn, 0);
    if (_i > 0) { /* its begin comes to a majority, and so do the transactions */
        begun = word_load(&stage->durable);
        word_store(&stage->allow, begun);
        (void)await_durable(begun); /* its end is on disk here */
        must_wait(0);
        must_eq(must_be_state(FILE_IN_DIR), 15);
        must_eq(read_master().begin_lsn, 0);
        held = begun;
    }
    dethrone(daemon);
    must_end(pid, XAC_EUNCERTAIN);
    must_eq(read_master().generation, generation);
    at = cut_at(held);
    must_eq(at.end_lsn, held);
    must_eq(must_be_state(FILE_IN_DIR), _i == 0 ? 10 : 15);
    must_have(_i == 0 ? 10 : 15);
}
END_TEST

START_TEST(a_checkpoint_is_completed_by_a_majority)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid;
    uint64_t held = hold();

    word_store(&board->written, 100);
    board->n = 10;
    pid = begin_one(checkpoint_late, NULL);
    must_wait(held);
    word_store(&stage->allow, UINT64_MAX);
    must_end(pid, 0);
    must_eq(must_be_state(FILE_IN_DIR), 15);
    must(read_master().begin_lsn >= held);
    dethrone(daemon);
}
END_TEST

/* commit_meanwhile -- a child: a transaction that no majority has, while a backup is made. */
static void
commit_meanwhile(void *arg)
{
    uint64_t *x;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, 1));
    x = attach();
    word_store(&board->at, 1);
    proc_await(&stage->go, 1, 60);
    must_rc(transact(x, 11), COMMITTED);
    word_store(&board->at, 2);
}

/* copying -- the backup copies files: from now on no majority has more, and one transaction comes. */
static void
copying(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    (void)done;
    (void)total;
    if (word_load(&stage->go) != 0)
        return;
    (void)hold();
    word_store(&stage->go, 1);
    proc_await(&board->at, 2, 60);
}

/* back_up -- a child. */
static void
back_up(void *arg)
{
    struct xac_backup_progress progress = {.fn = copying};
    struct xac_backup_report rep;

    (void)arg;
    (void)attach();
    word_store(&stage->started, 1);
    word_store(&stage->rc, (uint64_t)(int64_t)xac_backup_run(xac_api_env, "backup", NULL,
                                                             &progress, &rep));
    word_store(&stage->ended, 1);
    (void)xShutdown();
}

START_TEST(a_backup_has_what_a_majority_has)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid, writer = proc_spawn(commit_meanwhile, NULL);

    word_store(&board->written, 100);
    proc_await(&board->at, 1, 60);
    pid = begin_one(back_up, NULL);
    proc_await(&board->at, 2, 60);
    must_wait(word_load(&stage->allow));
    must(!file_exists("backup/" XAC_MASTER_NAME));
    word_store(&stage->allow, UINT64_MAX);
    must_end(pid, 0);
    proc_join(writer);
    must(file_exists("backup/" XAC_MASTER_NAME));
    must(!file_exists("backup/" XAC_GROUP_NAME));
    dethrone(daemon);
}
END_TEST

/* ---- Followers of the log ----------------------------------------------------------------- */

START_TEST(the_log_is_handed_out_as_far_as_a_majority_has_it)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid;
    uint64_t held = hold(), start = stage->line.start_lsn;
    uint32_t generation = stage->line.generation;
    struct xac_source all, ahead;

    word_store(&board->written, 100);
    board->n = 11;
    pid = begin_one(commit_one, NULL);
    must_wait(held);
    must_ok(xac_source_open(&all, ENV_DIR));
    must_ok(xac_source_open(&ahead, ENV_DIR));
    xac_source_go_ahead(&ahead);
    must_ok(xac_source_seek(&all, generation, start, 0));
    must_ok(xac_source_seek(&ahead, generation, start, 0));
    must_eq(read_all(&all, start), held);
    must_eq(read_all(&ahead, start), word_load(&stage->durable));
    word_store(&stage->allow, UINT64_MAX);
    while (read_all(&all, held) == held)
        xac_source_wait(&all, 1000);
    must_end(pid, COMMITTED);
    dethrone(daemon);
    xac_source_close(&all);
    xac_source_close(&ahead);
    /* Of its end nothing is known now. */
    must_ok(xac_source_open(&all, ENV_DIR));
    must_refuse(xac_source_seek(&all, generation, start, 0), XAC_ENOTLEADER);
    xac_source_close(&all);
}
END_TEST

/* ---- What is refused ---------------------------------------------------------------------- */

/* strangers -- a child: nobody writes without the daemon. */
static void
strangers(void *arg)
{
    (void)arg;
    must_refuse(xInit(ENV_DIR, DURABLE), XAC_ENOTLEADER);
    must(strstr(xLastError(), "member of a group") != NULL);
    must_refuse(xac_recover(ENV_DIR), XAC_ENOTLEADER);
}

/* reads -- a child: the standby as it is. */
static void
reads(void *arg)
{
    uint64_t *x;
    int rc = xInit(ENV_DIR, XAC_READONLY);

    if (arg != NULL) {
        must_rc(rc, XAC_ENOTLEADER);
        return;
    }
    must_ok(rc);
    x = (uint64_t *)xMmap(FILE_IN_DIR, PAGES * env_page());
    must(x != MAP_FAILED);
    must_eq(env_get(x), 10);
    must_ok(xShutdown());
}

/* outside -- a child: files lie in the directory, and keep their names. */
static void
outside(void *arg)
{
    uint64_t *x = attach();

    (void)arg;
    must_eq(env_get(x), 10);
    must(xMmap("elsewhere", env_page()) == MAP_FAILED);
    must_eq(errno, EINVAL);
    must(strstr(xLastError(), "the files of a group lie in the directory") != NULL);
    must_ok(xMunmap(FILE_IN_DIR));
    must_refuse(xRename(FILE_IN_DIR, ENV_DIR "/g"), ENOTSUP);
    must_refuse(xRemove(FILE_IN_DIR), ENOTSUP);
    must_ok(xShutdown());
}

START_TEST(nobody_writes_without_the_daemon)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon;

    word_store(&board->written, 100);
    proc_run(strangers, NULL);
    proc_run(reads, NULL);
    daemon = lead(&at);
    proc_run(outside, NULL);
    dethrone(daemon);
    proc_run(strangers, NULL);
    proc_run(reads, &at); /* what its log ends with is not known to have a majority */
    at = cut_at(look().end_lsn);
    proc_run(reads, NULL);
}
END_TEST

/* ---- Large transactions --------------------------------------------------------------------- */

#define LARGE_IN_DIR ENV_DIR "/large"

/* change -- a child: transactions that change as many pages as a group takes, or one more. */
static void
change(void *arg)
{
    uint64_t *x = attach(), most = XAC_GROUP_CHANGES_MAX / env_page();
    char *large = (char *)xMmap(LARGE_IN_DIR, (most + 1) * env_page());

    (void)arg;
    must(large != MAP_FAILED);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t n = i == 1 ? most : most + 1;

        must_ok(xbegin());
        x[0]++;
        for (uint64_t page = 1; page < n; page++) /* with that of x */
            large[page * env_page()]++;
        if (i == 1) {
            must_rc(xend(), COMMITTED);
            continue;
        }
        must_refuse(xend(), EFBIG);
        must(strstr(xLastError(), "more than 64 MiB") != NULL);
        must(strstr(xLastError(), "the most that a group takes at once; rolled back")
             != NULL);
    }
    must_eq(env_get(x), 11);
    must_ok(xbeginQuery());
    for (uint64_t page = 1; page <= most; page++)
        must_eq(large[page * env_page()], page < most);
    must_ok(xendQuery());
    must_rc(transact(x, 11), COMMITTED);
    must_ok(xShutdown());
}

START_TEST(a_group_refuses_what_is_too_large_for_it)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at);

    proc_run(change, NULL);
    dethrone(daemon);
}
END_TEST

/* alone -- a child: an environment that is in no group takes them. */
static void
alone(void *arg)
{
    uint64_t most = XAC_GROUP_CHANGES_MAX / env_page();
    char *large;

    (void)arg;
    must_ok(xInit("alone", DURABLE));
    large = (char *)xMmap("large", (most + 1) * env_page());
    must(large != MAP_FAILED);
    must_ok(xbegin());
    for (uint64_t page = 0; page <= most; page++)
        large[page * env_page()]++;
    must_rc(xend(), COMMITTED);
    must_ok(xShutdown());
}

START_TEST(without_a_group_it_is_not_too_large)
{
    proc_run(alone, NULL);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("group");
    TCase *t = env_tcase_with(s, "group", 120, setup_group);

    env_in_memory();
    tcase_add_test(t, commits_wait_for_a_majority);
    tcase_add_test(t, a_majority_may_have_it_before_the_disk_does);
    tcase_add_test(t, readers_wait_for_what_they_have_seen);
    tcase_add_test(t, delayed_commits_wait_for_nothing_but_a_sync_does);
    tcase_add_test(t, a_limit_ends_the_wait);
    tcase_add_loop_test(t, what_is_open_ends_when_deposed, 0, 4);
    tcase_add_test(t, what_waits_becomes_uncertain);
    tcase_add_loop_test(t, a_silent_daemon_is_deposed, 0, 2);
    tcase_add_test(t, a_slow_majority_is_none_that_is_silent);
    tcase_add_loop_test(t, a_checkpoint_writes_what_a_majority_has, 0, 2);
    tcase_add_test(t, a_checkpoint_is_completed_by_a_majority);
    tcase_add_test(t, a_backup_has_what_a_majority_has);
    tcase_add_test(t, the_log_is_handed_out_as_far_as_a_majority_has_it);
    tcase_add_test(t, nobody_writes_without_the_daemon);
    tcase_add_test(t, a_group_refuses_what_is_too_large_for_it);
    tcase_add_test(t, without_a_group_it_is_not_too_large);
    return env_main(s);
}
