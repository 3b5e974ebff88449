/* SPDX-License-Identifier: MIT */
/*
 * check_member_cut.c -- power cuts of a node of a group: while it leads, while its log is cut when it is deposed, and
 * while it begins to lead again.
 *
 * GOAL    After a power cut at any moment the node goes on by repeating what it did.  Acknowledged transactions are there.  What a
 *         majority has is there, or was not synced yet: then the standby takes it again.  Of what
 *         was cut nothing is left as soon as the directory counts as a standby.  A generation that the master record has
 *         has its line in xac.history, and is not begun again.
 * METHOD  The node of group_env.h; all that it does is recorded, and states of its disk are judged (cut_walk.h).  The
 *         daemon reads the log as it is written, as xraftd does; syncs are slow, so a majority is ahead of them.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include "tests/crash/cut_walk.h"
#include "tests/unit/group/group_env.h"
#include "ship/source.h"

enum note {
    NOTE_LEADS =
        1,        /* it begins to lead, and does                                       */
    NOTE_CUT = 2, /* the log of a deposed leader is cut                                */
    NOTE_AGAIN =
        3, /* it begins to lead again                                           */
    NOTE_ACCEPTED = 4, /* a majority has the log up to an LSN                          */
    NOTE_ACKNOWLEDGED = 5 /* so many transactions                                      */
};

/* What the child that is recorded does, and what must come of it. */
struct plan {
    uint32_t before;     /* the generation in which it had not led                      */
    uint64_t before_end; /* of it                                                      */
    uint32_t generation; /* that it has led                                            */
    uint64_t cut, kept;
    uint64_t end; /* of its log, behind the cut                                        */
    struct xac_lineage_line line; /* of the generation that begins then                */
    uint64_t led, cuts, leads; /* states: while it led; a standby then; begun again    */
    uint64_t gaps;             /* of those while it led: log was missing              */
    /* What the daemon has proposed: blocks with their data files, one behind the other. */
    size_t n_proposed;
    _Alignas(8) uint8_t proposed[(size_t)8 << 20];
};

/* In front of each of them. */
struct proposed {
    size_t block_bytes, data_bytes;
    uint64_t serial;
};

/* What has been promised by a moment of the walk. */
struct promise {
    enum note phase;
    uint64_t accepted, acknowledged;
};

static struct promise promise;
static uint64_t n_later; /* states from which the log could be cut later                */

static struct plan *plan;

/* ---- What is recorded -------------------------------------------------------------------------- */

static void
cut_once(void *arg)
{
    uint64_t end = 0;

    (void)arg;
    must_ok(xac_member_cut(ENV_DIR, (uint32_t)plan->generation, plan->cut, &end));
    must_eq(end, plan->cut);
}

static void
lead_once(void *arg)
{
    struct xac_env *env;

    (void)arg;
    must_ok(xac_member_lead(ENV_DIR, &plan->line, NULL, &env));
    _exit(0); /* as one that is killed */
}

/* room -- for n bytes more of what is proposed. */
static void *
room(size_t n)
{
    void *p = plan->proposed + plan->n_proposed;

    n = (n + 7) & ~(size_t)7;
    must(n <= sizeof plan->proposed - plan->n_proposed);
    plan->n_proposed += n;
    return p;
}

/* propose -- a block. */
static void
propose(const struct xac_followed *got)
{
    struct proposed *p = (struct proposed *)room(sizeof *p);
    void *data;

    *p = (struct proposed){.block_bytes = got->blk->length};
    memcpy(room(p->block_bytes), got->blk, p->block_bytes);
    if (got->data == NULL)
        return;
    p->data_bytes = got->data->length;
    p->serial = got->data->serial;
    data = room(p->data_bytes);
    must_eq(pread(got->datafd, data, p->data_bytes, 0), (ssize_t)p->data_bytes);
}

/* note_accepted -- in the daemon: a majority has it, for it has been proposed. */
static void
note_accepted(uint64_t lsn)
{
    static struct xac_source source;
    struct xac_followed got;

    if (source.dir == NULL) {
        must_ok(xac_source_open(&source, ENV_DIR));
        xac_source_go_ahead(&source);
        must_ok(xac_source_seek(&source, stage->line.generation, stage->line.start_lsn,
                                stage->line.segment_bytes));
    }
    while (source.follow.lsn < lsn) {
        must_ok(xac_source_next(&source, &got));
        must(got.blk != NULL);
        propose(&got);
    }
    record_note(NOTE_ACCEPTED, 0, lsn);
}

static int (*sync_file)(int fd);

static int
sync_late(int fd)
{
    proc_sleep_us(2000);
    return sync_file(fd);
}

/* make_syncs_late -- of this process. */
static void
make_syncs_late(void)
{
    sync_file = xac_sys.fdatasync;
    xac_sys.fdatasync = sync_late;
}

static void
note_acknowledged(uint64_t k)
{
    record_note(NOTE_ACKNOWLEDGED, 0, k);
}

/* record_life -- a node leads, is deposed, is cut, and leads again. */
static void
record_life(bool log_elsewhere)
{
    struct xac_member_place at;
    struct tail t;

    cut_begin();
    if (log_elsewhere)
        (void)snprintf(stage->log_dir, sizeof stage->log_dir, "%s/log", cut_root);
    plan = (struct plan *)proc_shared(sizeof *plan);
    at = make_member(10);
    plan->before = at.generation;
    plan->before_end = at.end_lsn;
    accepted_hook = note_accepted;
    acknowledged_hook = note_acknowledged;
    writer_hook = make_syncs_late;
    record_note(NOTE_LEADS, 0, 0);
    t = lead_with_tail(&at, log_elsewhere ? 250 : 30); /* segments go as a whole */
    accepted_hook = acknowledged_hook = NULL;
    writer_hook = NULL;
    plan->cut = t.cut;
    plan->kept = t.kept;
    plan->end = t.end;
    plan->generation = look().generation;
    record_note(NOTE_CUT, 0, 0);
    proc_run(cut_once, NULL);
    at = look();
    plan->line = next_line(&at);
    record_note(NOTE_AGAIN, 0, 0);
    proc_run(lead_once, NULL);
    env_drop_region(ENV_DIR);
}

/* ---- What is left of it -------------------------------------------------------------------------- */

static void
take_note(const struct record_event *note)
{
    if (note->ino == NOTE_ACCEPTED)
        promise.accepted = note->offset;
    else if (note->ino == NOTE_ACKNOWLEDGED)
        promise.acknowledged = note->offset;
    else
        promise = (struct promise){.phase = (enum note)note->ino, .acknowledged = 10};
}

/* give_missing -- to a standby: what a majority has and its log lacks. */
static void
give_missing(struct xac_standby *s)
{
    struct xac_standby_place is;

    xac_standby_where(s, &is);
    for (size_t at = 0; at < plan->n_proposed;) {
        const struct proposed *p =
            (const struct proposed *)(const void *)(plan->proposed + at);
        const struct xac_block *blk = (const struct xac_block *)(const void *)(p + 1);
        const uint8_t *data = (const uint8_t *)blk + ((p->block_bytes + 7) & ~(size_t)7);

        at = (size_t)(data - plan->proposed) + ((p->data_bytes + 7) & ~(size_t)7);
        if (blk->lsn < is.durable || blk->lsn >= promise.accepted)
            continue;
        if (p->data_bytes > 0)
            must_ok(xac_standby_data(s, p->serial, 0, data, p->data_bytes));
        must_ok(xac_standby_take(s, blk, p->block_bytes));
    }
    must_ok(xac_standby_sync(s));
}

/* judge_led -- it is not known here what of the log counts: the daemon says up to where a majority has it. */
static void
judge_led(void)
{
    struct xac_member_place at = look();
    uint64_t has;

    if (!at.is_standby)
        at = cut_at(at.generation == plan->before     ? plan->before_end
                    : promise.accepted > at.start_lsn ? promise.accepted
                                                      : at.start_lsn);
    must(at.generation == plan->before || at.generation == plan->generation);
    must_be_zeros(at.end_lsn, at.segment_bytes);
    has = state_of();
    must(has >= promise.acknowledged && has <= plan->kept);
    plan->led += at.generation == plan->generation;
    if (at.end_lsn >= promise.accepted)
        return;
    must_eq(at.generation, plan->generation);
    plan->gaps++;
    must(state_with(give_missing) >= has);
    must_eq(look().end_lsn, promise.accepted);
}

/* judge_cut -- in the generation in which it has led before: a standby, or cut again. */
static struct xac_member_place
judge_cut(void)
{
    struct xac_member_place at = look();

    must_eq(at.generation, plan->generation);
    if (at.is_standby) {
        /* The daemon does not cut it again. */
        must_be_zeros(plan->cut, at.segment_bytes);
        plan->cuts++;
    } else {
        at = cut_at(plan->cut);
        must_be_zeros(plan->cut, at.segment_bytes);
    }
    must_eq(at.end_lsn, plan->cut);
    must_have(plan->kept);
    return at;
}

/* judge_later_cut -- more was accepted after all: what has been cleared is no damage, and comes again. */
static void
judge_later_cut(void)
{
    struct xac_member_place at = cut_at(plan->end);

    must(at.end_lsn >= plan->cut);
    must_be_zeros(at.end_lsn, at.segment_bytes);
    must(state_of() >= plan->kept);
}

/* judge_lead -- the generation has begun, or begins now. */
static void
judge_lead(void)
{
    struct xac_member_place at = look();

    if (at.generation == plan->generation) {
        at = judge_cut();
    } else {
        struct xac_env *env;

        must_eq(at.generation, plan->line.generation);
        must_have_line(&plan->line);
        must(xac_member_lead(ENV_DIR, &plan->line, NULL, &env) != 0); /* not twice */
        at = cut_at(plan->line.start_lsn);
        must_eq(at.end_lsn, plan->line.start_lsn);
        must_have(plan->kept);
        plan->leads++;
    }
    if (plan->leads % 4 == 0)
        go_on(&at, plan->kept + 1);
}

static void
judge_state(void)
{
    if (promise.phase == NOTE_LEADS)
        judge_led();
    else if (promise.phase == NOTE_CUT && !look().is_standby && n_later++ % 2 == 0)
        judge_later_cut();
    else if (promise.phase == NOTE_CUT)
        (void)judge_cut();
    else
        judge_lead();
    env_drop_region(ENV_DIR);
}

START_TEST(a_node_is_cut_and_leads_again)
{
    uint64_t n;

    board->large_every = _i == 1 ? 9 : 0;
    record_life(_i == 2);
    n = cut_walk((_i == 2 ? 1200 : 400) / ENV_DEAR, take_note, judge_state);
    printf(
        "%llu states: %llu while it led, %llu of them with a gap, %llu cut, %llu begun "
        "again\n",
        (unsigned long long)n, (unsigned long long)plan->led,
        (unsigned long long)plan->gaps, (unsigned long long)plan->cuts,
        (unsigned long long)plan->leads);
    must(plan->led > 20 / ENV_DEAR && plan->cuts > 2 && plan->leads > 2);
    must(plan->gaps > 0);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("member_cut");
    TCase *t = env_tcase_with(s, "member_cut", 600, setup_group);

    env_in_memory();
    tcase_add_loop_test(t, a_node_is_cut_and_leads_again, 0, 3);
    return env_main(s);
}
