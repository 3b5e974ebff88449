/* SPDX-License-Identifier: MIT */
/*
 * check_standby_cut.c -- power cuts while a standby takes log, and while it becomes an environment of its own.
 *
 * GOAL    After a power cut at any moment no recovery says that the log is damaged; all that was acknowledged is there;
 *         nobody opens the directory to write while it is a standby; what is received then brings it to the end
 *         of the source, with the same bytes in the log.  A promotion that was cut is done, or can be done
 *         again; the environment that results has a log in which nothing looks like damage.
 * METHOD  A child takes the whole log of a source, by blocks, syncs and redo in a random order, and is promoted; all of it is recorded
 *         (record.h).  At each event the power could have failed: states of the disk are made (disk.h), and
 *         judged by a model of the source's transactions.  Of some of them the promotion is recorded and cut
 *         again.  XAC_STATES=n states, and one more in each sync of the standby.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <dirent.h>
#include <limits.h>

#include "tests/common/disk.h"
#include "tests/common/record.h"
#include "tests/unit/ship/standby_pump.h"
#include "base/names.h"
#include "log/log_name.h"
#include "log/master.h"
#include "log/recover_check.h"
#include "ship/promote.h"

#define ROOT        "disk"
#define CUT         ROOT "/" COPY
#define TRACE_BYTES ((size_t)64 << 20)
#define SEEN_SLOTS  65536u

enum note {
    NOTE_BEGUN = 1, /* the copy is there                                               */
    NOTE_TAKEN = 2, /* so many transactions are about to be taken                      */
    NOTE_ACKNOWLEDGED = 3
};

/* What has been promised by a moment of the trace. */
struct promise {
    bool has_begun;
    uint64_t taken, acknowledged;
};

/* The state that is being tried: for words, if it is wrong. */
struct at {
    uint64_t n, depth, n_syncs;
    enum disk_kind kind;
};

static struct record_trace *trace[2];
static char root[PATH_MAX];
static uint64_t all;
static struct at *at;
static uint64_t seen[SEEN_SLOTS];

/* ---- What is recorded -------------------------------------------------------------------- */

static void
copy_file(int from, int to, const char *name)
{
    static uint8_t bytes[1 << 20];
    int in = openat(from, name, O_RDONLY | O_CLOEXEC);
    int out = xac_sys.openat(to, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    uint64_t done = 0;
    ssize_t n;

    must(in >= 0 && out >= 0);
    while ((n = read(in, bytes, sizeof bytes)) > 0) {
        must_ok(xac_write_full(out, bytes, (size_t)n, done));
        done += (uint64_t)n;
    }
    must(n == 0);
    must_ok(xac_sys.fsync(out));
    (void)xac_sys.close(out);
    (void)close(in);
}

/* copy_dir -- all that lies in a directory, by calls that are recorded, synced. */
static void
copy_dir(const char *from, int parent, const char *name)
{
    int in = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC), to;
    const struct dirent *e;
    DIR *d;

    must_ok(xac_sys.mkdirat(parent, name, 0700));
    to = xac_sys.openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    must(in >= 0 && to >= 0);
    d = fdopendir(dup(in));
    must(d != NULL);
    while ((e = readdir(d)) != NULL) {
        char path[PATH_MAX];

        (void)snprintf(path, sizeof path, "%s/%s", from, e->d_name);
        if (e->d_name[0] == '.')
            continue;
        if (e->d_type == DT_DIR)
            copy_dir(path, to, e->d_name);
        else
            copy_file(in, to, e->d_name);
    }
    (void)closedir(d);
    must_ok(xac_sys.fsync(to));
    (void)xac_sys.close(to);
    (void)close(in);
}

/* take_block -- with what stands before it. */
static void
take_block(struct pump *p, const struct xac_followed *got)
{
    if (got->blk->generation != p->generation)
        must_ok(pump_turn(p, got->blk));
    if (got->data != NULL)
        must_ok(pump_data(p, got));
    must_ok(xac_standby_take(p->s, got->blk, got->blk->length));
    must_be_told_from_damage(p, got->blk->durable);
}

/* take_log -- all there is; `has` transactions are there. */
static void
take_log(uint64_t has, uint64_t seed)
{
    struct xac_followed got;
    struct pump p;

    must_ok(pump_open(&p));
    for (;;) {
        must_ok(xac_source_next(&p.source, &got));
        if (got.blk == NULL)
            break;
        record_note(NOTE_TAKEN, 0, has + commits_of(got.blk));
        take_block(&p, &got);
        has += commits_of(got.blk);
        if (rnd_below(&seed, 5) > 0)
            continue;
        must_ok(xac_standby_sync(p.s));
        record_note(NOTE_ACKNOWLEDGED, 0, has);
        if (rnd_below(&seed, 3) > 0)
            must_ok(xac_standby_apply(p.s));
        if (rnd_below(&seed, 3) == 0)
            must_ok(xac_standby_mark(p.s));
    }
    must_ok(xac_standby_rest(p.s));
    record_note(NOTE_ACKNOWLEDGED, 0, has);
    pump_close(&p);
}

static void
promote(const char *dir)
{
    uint32_t generation;
    uint64_t lsn;

    must_ok(xac_promote(dir, &generation, &lsn));
}

/* run -- a child: what is recorded. */
static void
run(void *arg)
{
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    record_start(trace[0], root);
    copy_dir("kept", fd, COPY);
    must_ok(xac_sys.fsync(fd));
    record_note(NOTE_BEGUN, 0, 0);
    take_log(*(const uint64_t *)arg, env_seed());
    promote(CUT);
    (void)close(fd);
}

/* ---- What is left of it -------------------------------------------------------------------- */

static void
note_damage(void *arg, const struct xac_place *place)
{
    (void)arg;
    env_fail(__FILE__, __LINE__, "%s: offset %llu: %s", place->file,
             (unsigned long long)place->offset, place->why);
}

/* must_verify -- nothing in the log of an environment looks like damage, to those who read it later. */
static void
must_verify(const char *dir)
{
    struct xac_recover_options look = {.dry_run = true};
    struct xac_check_report rep;
    struct xac_master_slot master;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must_ok(xac_master_read(fd, &master));
    must_ok(xac_check_log(fd, &master, note_damage, NULL, &rep));
    must_ok(xac_recover_dir(fd, &look, NULL, NULL));
    (void)close(fd);
}

/* is_there -- has the standby this file? */
static bool
is_there(const char *name)
{
    char path[200];

    (void)snprintf(path, sizeof path, CUT "/%s", name);
    return file_exists(path);
}

/* go_on -- a standby: what it lacks comes. */
static void
go_on(uint64_t has)
{
    struct xac_standby_place place;
    uint64_t taken = 0;
    struct pump p;

    must_ok(pump_open(&p));
    must_ok(pump(&p, UINT64_MAX, &taken));
    must_eq(has + taken, all);
    must_ok(xac_standby_rest(p.s));
    xac_standby_where(p.s, &place);
    pump_close(&p);
    (void)must_be_same_log(CUT, place.durable);
    must_eq(must_be_state(CUT IN_COPY), all);
}

/* is_of_source -- does the standby stand in a generation that the source has?  A backup has no line of its own. */
static bool
is_of_source(void)
{
    struct xac_lineage_line last = {.generation = 0}, line;
    struct xac_master_slot m;
    struct xac_source source;
    struct xac_lineage *l = (struct xac_lineage *)malloc(sizeof *l);
    int fd = open(CUT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must_ok(xac_master_read(fd, &m));
    must_ok(xac_lineage_read(fd, m.generation, l));
    (void)close(fd);
    if (xac_lineage_of(l, m.generation) != NULL)
        last = *xac_lineage_of(l, m.generation);
    free(l);
    must_ok(xac_source_open(&source, ENV_DIR));
    must_ok(xac_source_line(&source, m.generation, &line));
    xac_source_close(&source);
    return line.generation == m.generation
           && (last.generation == 0
               || memcmp(line.branch, last.branch, sizeof line.branch) == 0);
}

/* judge_state -- what lies in the root; ret whether there is log behind its end. */
static bool
judge_state(const struct promise *p, uint64_t depth)
{
    struct xac_recover_options look = {.dry_run = true};
    int fd = open(CUT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct xac_recover_report rep;
    uint64_t has;

    must(fd >= 0);
    must_ok(xac_recover_dir(fd, &look, &rep, NULL));
    if (is_there(XAC_FOLLOW_NAME))
        must_refuse(xac_recover_dir(fd, NULL, NULL, NULL), XAC_ENOTLEADER);
    (void)close(fd);
    has = judge(CUT);
    must(has >= p->acknowledged && has <= p->taken);
    must_verify("judged");
    must(!file_exists("judged/" XAC_FOLLOW_NAME));
    must(!file_exists("judged/" XAC_RECEIVED_NAME));
    if (is_there(XAC_FOLLOW_NAME) && is_of_source())
        go_on(has);
    else if (depth == 0) /* all was there before it was promoted */
        must_eq(has, all);
    return rep.discarded_blocks > 0;
}

/* ---- Cuts ------------------------------------------------------------------------------------ */

/* is_new -- has no such state been tried? */
static bool
is_new(const struct disk_state *s, const struct promise *p)
{
    uint64_t h = (disk_state_hash(s) ^ (p->acknowledged << 20) ^ p->taken) | 1;

    for (size_t i = 0; i < SEEN_SLOTS; i++) {
        uint64_t *slot = &seen[(h + i) % SEEN_SLOTS];

        if (*slot == h)
            return false;
        if (*slot == 0) {
            *slot = h;
            return true;
        }
    }
    return true;
}

static void walk(struct disk *d, struct promise p, uint64_t depth, uint64_t states,
                 uint64_t *seedp);

/* cut_promotion -- of a state: it is recorded, and cut, too. */
static void
cut_promotion(const struct disk_state *s, const struct promise *p, uint64_t *seedp)
{
    record_start(trace[1], root);
    record_clear(trace[1]);
    disk_state_write(s, root, trace[1]);
    if (is_there(XAC_FOLLOW_NAME)) {
        record_pause(false);
        promote(CUT);
        record_pause(true);
        walk(disk_of_state(s), *p, 1, 20, seedp);
    }
    record_start(trace[0], root);
    record_pause(true);
}

static void
try_state(const struct disk_state *s, const struct promise *p, uint64_t depth,
          uint64_t *seedp)
{
    bool is_torn;

    at->n++;
    at->depth = depth;
    disk_state_write(s, root, trace[depth]);
    is_torn = judge_state(p, depth);
    if (depth == 0 && rnd_below(seedp, is_torn ? 2 : 25) == 0)
        cut_promotion(s, p, seedp);
}

/* cut_at -- power is cut now. */
static void
cut_at(const struct disk *d, unsigned kind, const struct promise *p, uint64_t depth,
       uint64_t *seedp)
{
    struct disk_state *s;

    at->kind = (enum disk_kind)kind;
    s = disk_crash(d, (enum disk_kind)kind, rnd_next(seedp));
    if (s != NULL && is_new(s, p))
        try_state(s, p, depth, seedp);
    if (s != NULL)
        disk_state_free(s);
}

/* cut_sync -- power is cut when a sync has begun, and has not ended: for each one of the standby. */
static void
cut_sync(const struct disk *d, const struct promise *p, uint64_t *seedp)
{
    if (rnd_below(seedp, ENV_DEAR) > 0)
        return;
    at->n_syncs++;
    cut_at(d, rnd_below(seedp, 2) == 0 ? DISK_DROP : DISK_RANDOM, p, 0, seedp);
}

/* walk -- power is cut at each event; about so many states are tried, and those of cut_sync(). */
static void
walk(struct disk *d, struct promise p, uint64_t depth, uint64_t states, uint64_t *seedp)
{
    const struct record_trace *t = trace[depth];
    const struct record_event *ev;
    uint64_t n = 1;

    for (uint64_t pos = 0; (ev = record_at(t, pos)) != NULL; pos = record_next(ev, pos))
        n = ev->kind == RECORD_NOTE && ev->ino == NOTE_BEGUN ? 1 : n + 1;
    for (uint64_t pos = 0; (ev = record_at(t, pos)) != NULL; pos = record_next(ev, pos)) {
        if (ev->kind != RECORD_NOTE)
            disk_follow(d, ev, pos);
        else if (ev->ino == NOTE_BEGUN)
            p.has_begun = true;
        else if (ev->ino == NOTE_TAKEN)
            p.taken = ev->offset;
        else
            p.acknowledged = ev->offset;
        if (p.has_begun && ev->kind == RECORD_SYNC_BEGIN && depth == 0)
            cut_sync(d, &p, seedp);
        if (!p.has_begun || ev->kind == RECORD_SYNC_BEGIN)
            continue;
        for (unsigned kind = 0; kind < DISK_KINDS; kind++) {
            if (rnd_below(seedp, n * DISK_KINDS) < states)
                cut_at(d, kind, &p, depth, seedp);
        }
    }
    disk_free(d);
}

/* walk_all -- a child. */
static void
walk_all(void *arg)
{
    struct promise p = {.taken = *(const uint64_t *)arg,
                        .acknowledged = *(const uint64_t *)arg};
    uint64_t seed = env_seed() ^ 77;

    record_start(trace[0], root);
    record_pause(true);
    walk(disk_new(record_root(trace[0])), p, 0, env_number("XAC_STATES", 300 / ENV_DEAR),
         &seed);
    must(at->n > 20);
    must(at->n_syncs > 20 / ENV_DEAR);
}

/* record_and_cut -- a standby with `has` transactions, of a source with `all`. */
static void
record_and_cut(uint64_t has)
{
    struct pump p;
    int status;

    must_ok(pump_open(&p)); /* a backup becomes a standby */
    pump_close(&p);
    run_shell("mv " COPY " kept && mkdir " ROOT);
    must(realpath(ROOT, root) != NULL);
    standby_dir = CUT;
    at = (struct at *)proc_shared(sizeof *at);
    for (int i = 0; i < 2; i++)
        trace[i] = record_new(TRACE_BYTES);
    record_clear(trace[0]);
    proc_run(run, &has);
    must(!record_is_full(trace[0]));
    status = proc_wait(proc_spawn(walk_all, &has));
    if (status != 0)
        env_fail(__FILE__, __LINE__, "state %llu, %s, depth %llu",
                 (unsigned long long)at->n, disk_kind_name[at->kind],
                 (unsigned long long)at->depth);
    printf("%llu power cuts of standbys, %llu syncs\n", (unsigned long long)at->n,
           (unsigned long long)at->n_syncs);
    record_free(trace[0]);
    record_free(trace[1]);
}

START_TEST(commits)
{
    board->large_every = 0;
    board->checkpoint_every = 0;
    make_copy(10, 5);
    write_n(40);
    all = 55;
    record_and_cut(10);
}
END_TEST

START_TEST(checkpoints_and_data_files)
{
    board->large_every = 9;
    board->checkpoint_every = 11;
    make_copy(10, 5);
    write_n(40);
    all = 55;
    record_and_cut(10);
}
END_TEST

START_TEST(generations)
{
    board->large_every = 13;
    board->checkpoint_every = 7;
    make_copy(10, 5);
    write_n(15);
    board->segment_bytes = 128 * KIB;
    board->leaves = true;
    write_n(15);
    write_n(15);
    all = 60;
    record_and_cut(10);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("standby_cut");
    TCase *t = env_tcase_with(s, "standby_cut", 600, setup);

    env_in_memory();
    tcase_add_test(t, commits);
    tcase_add_test(t, checkpoints_and_data_files);
    tcase_add_test(t, generations);
    return env_main(s);
}
