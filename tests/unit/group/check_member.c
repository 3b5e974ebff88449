/* SPDX-License-Identifier: MIT */
/*
 * check_member.c -- an environment as a member of a group (libxac/group/member.h): becoming one, beginning to lead,
 * having others detach, cutting the log.
 *
 * GOAL    Behind a cut nothing is left that anybody could take for log, and the files are as at the cut.  What a
 *         majority has is never lost, what is cut is never seen again.  A node that is killed, or whose power fails,
 *         at any step of a change goes on by repeating it.
 * METHOD  A process plays the daemon.  A writer numbers its transactions, so that each state is known.
 *
 * XAC_ROUNDS=n  terms of the random test.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include "group_env.h"
#include "tests/common/sysfault.h"
#include "base/annot.h"
#include "ship/promote.h"

/* ---- Cutting ------------------------------------------------------------------------------ */

START_TEST(a_tail_is_cut)
{
    struct tail t;
    struct xac_member_place at;

    board->large_every = _i == 1 ? 7 : 0;
    t = make_tail(_i == 2 ? 0 : 30);
    must_eq(must_be_state(FILE_IN_DIR) <= t.kept, 1);
    if (_i == 1)
        must(file_count(ENV_DIR, "xac-data.") > 2);
    at = cut_at(t.cut);
    must_eq(at.end_lsn, t.cut);
    must_be_zeros(t.cut, at.segment_bytes);
    if (_i == 1)
        must(file_count(ENV_DIR, "xac-data.") <= 2); /* 7 and 14 */
    must_have(t.kept);
    must_eq(look().end_lsn, t.cut);
    go_on(&at, t.kept + 1);
}
END_TEST

/* roll_forward -- a copy of before, of no group, with the log of now beside it; ret how many transactions its file has then. */
static uint64_t
roll_forward(void)
{
    static const struct xac_recover_options all = {.promotes = true, .forward = true};
    struct xac_recover_report rep;
    int fd;

    run_shell("rm -rf rolled && cp -a before rolled && rm rolled/xac.group && "
              "for f in " ENV_DIR "/xac-log.* " ENV_DIR "/xac-data.*; do "
              "[ ! -e $f ] || cp -a $f rolled/; done");
    fd = open("rolled", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(fd >= 0);
    must_ok(xac_recover_dir(fd, &all, &rep, NULL));
    (void)close(fd);
    return must_be_state("rolled/f");
}

/* The generation that was cut is not the last one, so nothing but its zeros says where it ends. */
START_TEST(a_cut_log_is_rolled_forward)
{
    struct xac_member_place at;
    struct tail t;
    uint64_t end = 0;

    board->large_every = _i == 0 ? 0 : 6;
    at = make_member(10);
    run_shell("cp -a " ENV_DIR " before");
    t = lead_with_tail(&at, 30);
    must_ok(xac_member_cut(ENV_DIR, look().generation, t.cut, &end));
    must_eq(roll_forward(), t.kept);
    at = look();
    go_on(&at, t.kept + 2);
    must_eq(roll_forward(), t.kept + 2);
}
END_TEST

START_TEST(a_cut_falls_between_blocks)
{
    struct tail t = make_tail(10);
    struct xac_member_place before = look();
    struct image *im = image_take(ENV_DIR);
    uint64_t end = 5;

    must_refuse(xac_member_cut(ENV_DIR, before.generation, t.cut + 8, &end),
                XAC_EFOREIGN);
    must_refuse(xac_member_cut(ENV_DIR, before.generation + 1, t.cut, &end),
                XAC_EFOREIGN);
    must_refuse(xac_member_cut(ENV_DIR, before.generation, before.redo_lsn - 8, &end),
                XAC_EDAMAGED);
    must_eq(end, 5);
    must_unchanged(im, ENV_DIR);
    image_free(im);
    must_ok(xac_member_cut(ENV_DIR, before.generation, t.cut, &end));
    must_eq(end, t.cut);
    im = image_take(ENV_DIR);
    must_ok(xac_member_cut(ENV_DIR, before.generation, t.cut, &end)); /* again */
    must_eq(end, t.cut);
    must_unchanged(im, ENV_DIR);
    image_free(im);
}
END_TEST

START_TEST(a_log_that_ends_before_the_cut_is_no_error_but_damage_is)
{
    struct tail t = make_tail(10);
    struct xac_member_place at = look();
    char name[XAC_LOG_NAME_MAX + sizeof ENV_DIR] = ENV_DIR "/";
    uint64_t end = 0, offset;
    uint8_t none[64] = {0}, kept[64];

    xac_log_segment_name(name + strlen(name),
                         xac_log_segment_of(t.end, at.segment_bytes));
    offset = XAC_SEGMENT_HEADER + t.end % at.segment_bytes;
    /* The end of the last block has not come to the disk. */
    file_write(name, offset - 64, none, 64);
    at = look();
    must_ok(xac_member_cut(ENV_DIR, at.generation, t.end, &end));
    must(end >= t.cut && end < t.end);
    must_eq(at.end_lsn, end);
    must_be_zeros(end, at.segment_bytes);
    /* In the middle of what had been synced. */
    (void)system("rm -rf " ENV_DIR);
    t = make_tail(10);
    at = look();
    xac_log_segment_name(name + strlen(ENV_DIR "/"),
                         xac_log_segment_of(t.cut - 8, at.segment_bytes));
    offset = XAC_SEGMENT_HEADER + (t.cut - 8) % at.segment_bytes;
    file_read(name, offset, kept, 8);
    kept[0] ^= 1;
    file_write(name, offset, kept, 8);
    must_refuse(xac_member_cut(ENV_DIR, at.generation, t.end, &end), XAC_EDAMAGED);
}
END_TEST

/* ---- Killed ------------------------------------------------------------------------------- */

/* What is done until somebody kills it. */
struct deed {
    void (*fn)(void);
    uint64_t n;        /* it dies in its n-th system call; 0: at a kill point           */
    const char *point; /* that one                                                     */
};

static struct deed deed;
static uint64_t cut_lsn, cut_generation;
static struct xac_lineage_line lead_line;

static void
do_cut(void)
{
    uint64_t end;

    must_ok(xac_member_cut(ENV_DIR, (uint32_t)cut_generation, cut_lsn, &end));
    must_eq(end, cut_lsn);
}

static void
do_lead(void)
{
    struct xac_env *env;

    must_ok(xac_member_lead(ENV_DIR, &lead_line, NULL, &env));
    _exit(0); /* as one who is killed, too */
}

static void
do_create(void)
{
    struct xac_group_note note = a_note(1);

    must_ok(xac_member_create(ENV_DIR, &note, NULL));
}

#ifdef XAC_DEBUG
static void
meet(const char *name)
{
    if (strcmp(name, deed.point) == 0)
        (void)kill(getpid(), SIGKILL);
}
#endif

static void
do_deed(void *arg)
{
    (void)arg;
#ifdef XAC_DEBUG
    if (deed.n == 0)
        xac_kill_hook = meet;
#endif
    if (deed.n != 0)
        sysfault_arm(SYSFAULT_DIE, SYSFAULT_FILES | SYSFAULT_GROW, deed.n, 0);
    deed.fn();
    sysfault_disarm();
}

/* try_deed -- ret true: it has been killed. */
static bool
try_deed(void)
{
    int status = proc_wait(proc_spawn(do_deed, NULL));

    must(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

/* put_back -- the directory as it was kept. */
static void
put_back(void)
{
    env_drop_region(ENV_DIR);
    run_shell("rm -rf " ENV_DIR " && cp -a kept " ENV_DIR);
}

/* keep -- the directory for all rounds. */
static void
keep(void)
{
    run_shell("rm -rf kept && cp -a " ENV_DIR " kept");
    put_back(); /* copied, as in each round: a copy has another inode */
}

/* after_cut -- the cut is done again by the next daemon, and has worked. */
static void
after_cut(uint64_t kept)
{
    struct xac_member_place at = cut_at(cut_lsn);

    must_eq(at.end_lsn, cut_lsn);
    must_be_zeros(cut_lsn, at.segment_bytes);
    must_have(kept);
}

/* judge_lead -- whatever a former life has left, the node goes on behind the same log. */
static void
judge_lead(uint64_t kept)
{
    struct xac_member_place at = look();

    if (!at.is_standby)
        at = cut_at(lead_line.start_lsn);
    must(at.generation == lead_line.previous || at.generation == lead_line.generation);
    must_eq(at.end_lsn, at.generation == lead_line.previous ? lead_line.end_lsn
                                                            : lead_line.start_lsn);
    must_have(kept);
    go_on(&at, kept + 1);
}

START_TEST(a_killed_cut_is_done_again)
{
    struct tail t = make_tail(30);
    uint64_t step = getenv("XAC_STEPS_LONG") != NULL ? 1 : 3, n = 1;

    cut_lsn = t.cut;
    cut_generation = look().generation;
    keep();
    deed = (struct deed){.fn = do_cut};
    for (bool is_killed = true; is_killed; n += step) {
        put_back();
        deed.n = n;
        is_killed = try_deed();
        if (is_killed && n % 2 == 0) { /* and once more */
            deed.n = n / 2 + 1;
            (void)try_deed();
        }
        /* What lies behind a cut that has begun may have been cleared. */
        must_eq(look().end_lsn, file_exists(ENV_DIR "/" XAC_BACKUP_NAME) ? t.cut : t.end);
        after_cut(t.kept);
    }
    must(n > 20);
}
END_TEST

START_TEST(a_failed_cut_is_done_again)
{
    struct tail t = make_tail(30);
    bool is_hit = true;
    uint64_t n = 0;

    cut_lsn = t.cut;
    cut_generation = look().generation;
    keep();
    while (is_hit) {
        uint64_t end = 0;
        int rc;

        put_back();
        env_stale_message();
        sysfault_arm(SYSFAULT_FAIL, _i == 0 ? SYSFAULT_SYNCS : SYSFAULT_DATA, ++n, EIO);
        rc = xac_member_cut(ENV_DIR, (uint32_t)cut_generation, cut_lsn, &end);
        is_hit = sysfault_hit() != NULL;
        sysfault_disarm();
        if (is_hit && _i == 0)
            must_eq(rc, EIO);
        must(rc == 0 ? end == cut_lsn : end == 0);
        after_cut(t.kept);
    }
    must(n > 5);
}
END_TEST

START_TEST(a_killed_beginning_is_done_again)
{
    struct tail t = make_tail(5);
    uint64_t step = getenv("XAC_STEPS_LONG") != NULL ? 1 : 7, n = 1;
    struct xac_member_place at = cut_at(t.cut);

    lead_line = next_line(&at);
    keep();
    deed = (struct deed){.fn = do_lead};
    for (bool is_killed = true; is_killed; n += step) {
        put_back();
        deed.n = n;
        is_killed = try_deed();
        judge_lead(t.kept);
    }
    must(n > 40);
}
END_TEST

START_TEST(a_killed_creation_is_done_again)
{
    uint64_t n = 1;

    board->n = 10;
    proc_run(found, NULL);
    word_store(&board->written, 1000);
    keep();
    deed = (struct deed){.fn = do_create};
    for (bool is_killed = true; is_killed; n += 5) {
        struct xac_member_place at;

        put_back();
        deed.n = n;
        is_killed = try_deed();
        deed.n = UINT64_MAX;
        must(!try_deed());
        at = look();
        must(at.is_standby);
        must_eq(at.end_lsn, at.start_lsn);
        must_have(10);
    }
    must(n > 30);
}
END_TEST

#ifdef XAC_DEBUG
START_TEST(killed_at_each_step_it_is_done_again)
{
    static const char *const steps[] = {"stand backup", "cut data", "cut behind"};
    static const char *const leads[] = {"recovered files", "recovered history",
                                        "recovered master", "recovered backup",
                                        "recovered follow"};
    struct tail t = make_tail(30);
    struct xac_member_place at;

    cut_lsn = t.cut;
    cut_generation = look().generation;
    keep();
    deed = (struct deed){.fn = do_cut};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        put_back();
        deed.point = steps[i];
        must(try_deed());
        after_cut(t.kept);
    }
    at = look();
    lead_line = next_line(&at);
    keep();
    deed = (struct deed){.fn = do_lead};
    for (size_t i = 0; i < sizeof leads / sizeof leads[0]; i++) {
        put_back();
        deed.point = leads[i];
        must(try_deed());
        judge_lead(t.kept);
    }
    run_shell("rm -rf " ENV_DIR);
    board->n = 10;
    proc_run(found, NULL);
    word_store(&board->written, 1000);
    keep();
    deed = (struct deed){.fn = do_create, .point = "create recovered"};
    must(try_deed());
    do_create();
    must(look().is_standby);
}
END_TEST
#endif

/* ---- Beginning to lead ---------------------------------------------------------------------- */

START_TEST(only_the_next_generation_begins)
{
    struct tail t = make_tail(10);
    struct xac_member_place at = look();
    struct xac_lineage_line line = next_line(&at), right;
    struct xac_env *env;
    struct image *im;

    must_refuse(xac_member_lead(ENV_DIR, &line, NULL, &env), EINVAL); /* not cut */
    at = cut_at(t.cut);
    right = line = next_line(&at);
    im = image_take(ENV_DIR);
    line.end_lsn += 8;
    must_refuse(xac_member_lead(ENV_DIR, &line, NULL, &env), XAC_EFOREIGN);
    line = right;
    line.start_lsn += 8;
    must_refuse(xac_member_lead(ENV_DIR, &line, NULL, &env), EINVAL);
    line = right;
    line.previous--;
    must_refuse(xac_member_lead(ENV_DIR, &line, NULL, &env), XAC_EFOREIGN);
    line = right;
    line.generation--;
    line.previous--;
    must_refuse(xac_member_lead(ENV_DIR, &line, NULL, &env), EEXIST);
    line = right;
    line.segment_bytes *= 2;
    must_refuse(xac_member_lead(ENV_DIR, &line, NULL, &env), XAC_EDAMAGED);
    must_unchanged(im, ENV_DIR);
    image_free(im);
    go_on(&at, t.kept + 1);
}
END_TEST

/* leads_twice -- a child: while the daemon leads nobody else does. */
static void
leads_twice(void *arg)
{
    const struct xac_lineage_line *line = (const struct xac_lineage_line *)arg;
    struct xac_group_note note;
    struct xac_member_place at;
    struct xac_env *env;
    uint64_t end;

    must_refuse(xac_member_lead(ENV_DIR, line, NULL, &env), XAC_ELIVE);
    must_refuse(xac_member_look(ENV_DIR, &note, &at), XAC_ELIVE);
    must_refuse(xac_member_cut(ENV_DIR, line->generation, line->start_lsn, &end),
                XAC_ELIVE);
}

START_TEST(one_leads)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at);

    word_store(&board->written, 1000);
    proc_run(leads_twice, &stage->line);
    dethrone(daemon);
}
END_TEST

START_TEST(members_are_made_once)
{
    struct xac_group_note note = a_note(0), other = a_note(1);
    uint64_t generation = 0, lsn;
    struct xac_member_place at;

    must_refuse(xac_member_create(ENV_DIR, &other, &at), ENOENT);
    must_refuse(xac_member_create(ENV_DIR, &note, &at), EINVAL);
    (void)make_member(10);
    word_store(&board->written, 1000);
    must_ok(xac_member_create(ENV_DIR, &other, &at));
    must_eq(at.end_lsn, look().end_lsn);
    other.node = 2;
    must_refuse(xac_member_create(ENV_DIR, &other, &at), EEXIST);
    must_refuse(xac_promote(ENV_DIR, (uint32_t *)&generation, &lsn), XAC_ENOTLEADER);
    must_have(10);
}
END_TEST

/* maps_outside -- a child: an environment with a file that lies elsewhere. */
static void
maps_outside(void *arg)
{
    (void)arg;
    (void)env_attach(DURABLE, PAGES);
    env_detach();
}

START_TEST(files_outside_are_refused)
{
    struct xac_group_note note = a_note(1);

    proc_run(maps_outside, NULL);
    must_refuse(xac_member_create(ENV_DIR, &note, NULL), EINVAL);
    must(strstr(xac_err_text(), "the files of a group lie in the directory") != NULL);
    must(!file_exists(ENV_DIR "/" XAC_GROUP_NAME));
    proc_run(maps_outside, NULL); /* it is as it was */
}
END_TEST

/* ---- Detaching ------------------------------------------------------------------------------ */

/* stays -- a child: does not look at what happens. */
static void
stays(void *arg)
{
    (void)arg;
    (void)attach();
    word_add(&stage->started, 1);
    for (;;)
        proc_sleep_us(100000);
}

/* leaves -- a child: as soon as nothing begins. */
static void
leaves(void *arg)
{
    uint64_t *x = attach();

    (void)arg;
    word_add(&stage->started, 1);
    while (xbeginQuery() == 0) {
        (void)x[0];
        (void)xendQuery();
        proc_sleep_us(1000);
    }
    must_ok(xShutdown());
}

START_TEST(those_who_stay_are_killed)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid[3];
    double begin;
    int status;

    word_store(&board->written, 1000);
    stage->leave_ms = 1500;
    pid[0] = proc_spawn(stays, NULL);
    pid[1] = proc_spawn(stays, NULL);
    pid[2] = proc_spawn(leaves, NULL);
    proc_await(&stage->started, 3, 60);
    must_ok(kill(pid[1], SIGSTOP));
    begin = env_now();
    dethrone(daemon);
    must(env_now() - begin > 1.4);
    for (int i = 0; i < 2; i++) {
        status = proc_wait(pid[i]);
        must(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    proc_join(pid[2]);
    at = cut_at(look().end_lsn);
    must_have(10);
}
END_TEST

/* next_daemon -- a child: the former one has died, and somebody has stayed. */
static void
next_daemon(void *arg)
{
    struct xac_env *env;

    (void)arg;
    must_ok(xac_member_attach(ENV_DIR, &env));
    must(xac_group_leads(env));
    xac_member_depose(env, "");
    must_refuse(xac_member_detach(env, 60000, 100), EBUSY);
    must(strstr(xac_err_text(), "process") != NULL);
    must_ok(xac_member_detach(env, 0, 30000));
    must_ok(xac_env_close(env));
}

START_TEST(the_next_daemon_ends_what_is_left)
{
    struct xac_member_place at = make_member(10);
    pid_t daemon = lead(&at), pid = proc_spawn(stays, NULL);

    word_store(&board->written, 1000);
    proc_await(&stage->started, 1, 60);
    proc_kill(daemon);
    proc_run(next_daemon, NULL);
    (void)proc_wait(pid);
    at = cut_at(look().end_lsn);
    must_have(10);
}
END_TEST

/* ---- Term after term ------------------------------------------------------------------------ */

/* write_on -- a child: numbers its transactions until it is deposed. */
static void
write_on(void *arg)
{
    uint64_t *x = attach(), k = env_get(x);
    int rc = 0;

    (void)arg;
    while (rc == 0) {
        k++;
        rc = transact(x, k);
        if (rc == 0)
            word_store(&stage->acknowledged, k);
        if (rc == 0 && k % 17 == 0)
            rc = xCheckpoint();
    }
    must(rc == XAC_ENOTLEADER || rc == XAC_EUNCERTAIN);
    must_ok(xShutdown());
}

/* end_term -- by deposing, or by the death of daemon, or of all. */
static void
end_term(pid_t daemon, pid_t writer, uint64_t how)
{
    if (how == 0) {
        dethrone(daemon);
        proc_join(writer);
        return;
    }
    if (how == 1) /* together, or the writer waits for its limit */
        (void)kill(writer, SIGKILL);
    proc_kill(daemon);
    (void)proc_wait(writer);
}

/* any_cut -- at or behind what a majority has: how much more it has accepted is up to chance. */
static uint64_t
any_cut(uint64_t accepted, uint64_t *seed)
{
    struct xac_member_place at = look();
    const struct xac_block *blk = NULL;
    struct xac_master_slot m = read_slot();
    uint64_t lsn = at.redo_lsn, cut = accepted;
    struct xac_place place;
    struct xac_scan scan;
    int fd = open(ENV_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must_ok(xac_scan_open(&scan, fd, &m));
    for (;;) {
        must_ok(xac_scan_block(&scan, lsn, &blk, &place));
        if (blk == NULL)
            break;
        lsn += blk->length;
        if (lsn > cut && rnd_below(seed, 3) == 0)
            cut = lsn;
        else if (lsn > cut)
            break;
    }
    xac_scan_close(&scan);
    (void)close(fd);
    return cut;
}

START_TEST(acknowledged_transactions_stay_term_after_term)
{
    uint64_t seed = env_seed() + (uint64_t)_i, rounds = env_number("XAC_ROUNDS", 12);
    struct xac_member_place at;

    board->large_every = 13;
    at = make_member(5);
    word_store(&board->written, 1000000);
    word_store(&stage->acknowledged, 5);
    stage->group_wait_ms = 500;
    for (uint64_t i = 0; i < rounds; i++) {
        pid_t daemon = lead(&at), writer = proc_spawn(write_on, NULL);
        uint64_t cut, has;

        proc_sleep_us(20000 + rnd_below(&seed, 100000));
        if (rnd_below(&seed, 2) == 0) {
            (void)hold();
            proc_sleep_us(rnd_below(&seed, 50000));
        }
        end_term(daemon, writer, rnd_below(&seed, 3));
        cut = any_cut(word_load(&stage->accepted), &seed);
        at = cut_at(cut);
        must_eq(at.end_lsn, cut);
        must_be_zeros(cut, at.segment_bytes);
        has = state_of();
        must(has >= word_load(&stage->acknowledged));
        word_store(&stage->acknowledged, has);
        at = look();
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("member");
    TCase *t = env_tcase_with(s, "member", 300, setup_group);

    env_in_memory();
    tcase_add_loop_test(t, a_tail_is_cut, 0, 3);
    tcase_add_loop_test(t, a_cut_log_is_rolled_forward, 0, 2);
    tcase_add_test(t, a_cut_falls_between_blocks);
    tcase_add_test(t, a_log_that_ends_before_the_cut_is_no_error_but_damage_is);
    tcase_add_test(t, a_killed_cut_is_done_again);
    tcase_add_loop_test(t, a_failed_cut_is_done_again, 0, 2);
    tcase_add_test(t, a_killed_beginning_is_done_again);
    tcase_add_test(t, a_killed_creation_is_done_again);
#ifdef XAC_DEBUG
    tcase_add_test(t, killed_at_each_step_it_is_done_again);
#endif
    tcase_add_test(t, only_the_next_generation_begins);
    tcase_add_test(t, one_leads);
    tcase_add_test(t, members_are_made_once);
    tcase_add_test(t, files_outside_are_refused);
    tcase_add_test(t, those_who_stay_are_killed);
    tcase_add_test(t, the_next_daemon_ends_what_is_left);
    tcase_add_loop_test(t, acknowledged_transactions_stay_term_after_term, 0, 2);
    return env_main(s);
}
