/* SPDX-License-Identifier: MIT */
/*
 * group_env.h -- what the test programs of groups share: an environment that is a member, a process that plays the
 * daemon of its node, and a writer that numbers its transactions.
 *
 * There is one node.  The test says what a majority has: `allow` is the position up to which the daemon raises
 * `replicated`, at most to what is written here, and what is accepted when the daemon has ended.
 * Defines things, so it is included once per program.
 */
#ifndef XAC_TEST_GROUP_ENV_H
#define XAC_TEST_GROUP_ENV_H

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/unit/ship/standby_env.h"
#include "env/env.h"
#include "group/member.h"
#include "log/master.h"
#include "log/recover_next.h"
#include "recovery/standby.h"
#include "shared/group.h"

#define FILE_IN_DIR ENV_DIR "/f"

/* What the daemon is to do. */
enum order {
    LEAD = 0,
    DEPOSE,   /* depose, have all others detach, and close                              */
    SHOW_ONLY /* depose, and stay                                                       */
};

/* What it says to those who ask. */
enum answers {
    ANSWER_NOTHING = 0,
    ANSWER_REPLICATED, /* what a majority has                                           */
    ANSWER_DURABLE     /* what is on disk here, as if a majority had it                 */
};

/* What test, daemon and writers tell each other. */
struct stage {
    _Atomic uint64_t order, leads, deposed, allow;
    _Atomic uint64_t accepted; /* a majority has it, whether the region says so or not  */
    _Atomic uint64_t durable, replicated; /* as the daemon sees them                    */
    _Atomic uint64_t started, ended, rc;  /* of a writer                                */
    _Atomic uint64_t go;
    _Atomic uint64_t
        acknowledged; /* last transaction for which xend() has returned COMMITTED */
    /* How the daemon answers those who ask what is newest; how many have asked, and how many answers there were. */
    _Atomic uint64_t answers, asked, n_answers;
    struct xac_token token; /* of a commit that the test is about                       */
    char log_dir[4200];     /* "" that of the environment                               */
    struct xac_lineage_line line;
    uint64_t leave_ms, group_wait_ms, n_lives;
};

static struct stage *stage;

static inline void
setup_group(void)
{
    setup();
    stage = (struct stage *)proc_shared(sizeof *stage);
    word_store(&stage->allow, UINT64_MAX);
    stage->leave_ms = 5000;
    stage->group_wait_ms = 20000;
    board->large_every = 0;
}

/* ---- The environment ------------------------------------------------------------------ */

/* attach -- a participant; ret its file. */
static inline uint64_t *
attach(void)
{
    uint64_t *x;

    must_ok(xSetOption(XAC_OPT_GROUP_WAIT_MS, stage->group_wait_ms));
    must_ok(xInit(ENV_DIR, DURABLE));
    x = (uint64_t *)xMmap(FILE_IN_DIR,
                          (PAGES + 1) * env_page()); /* the last page is spare */
    must(x != (uint64_t *)MAP_FAILED);
    return x;
}

/* transact -- number k; ret of xend(). */
static inline int
transact(uint64_t *x, uint64_t k)
{
    int rc;

    do {
        rc = xbegin();
        if (rc != 0)
            return rc;
        do_transaction(x, k);
        rc = xend();
    } while (rc == ABORTED);
    return rc;
}

/* found -- a child: an environment with board->n transactions. */
static inline void
found(void *arg)
{
    uint64_t *x;

    (void)arg;
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, board->segment_bytes));
    if (stage->log_dir[0] != '\0')
        must_ok(xSetLogDirectory(stage->log_dir));
    x = attach();
    for (uint64_t k = 1; k <= board->n; k++)
        must_rc(transact(x, k), COMMITTED);
    word_store(&board->written, board->n);
    must_ok(xShutdown());
}

/* a_note -- of this group, as one of its nodes. */
static inline struct xac_group_note
a_note(uint32_t node)
{
    struct xac_group_note note = {.node = node};

    memset(note.group, 0xa5, sizeof note.group);
    return note;
}

/* make_member -- with so many transactions; ret where it is. */
static inline struct xac_member_place
make_member(uint64_t n)
{
    struct xac_group_note note = a_note(1);
    struct xac_member_place place;

    board->n = n;
    proc_run(found, NULL);
    must_ok(xac_member_create(ENV_DIR, &note, &place));
    must(place.is_standby);
    must_eq(place.end_lsn, place.start_lsn);
    return place;
}

/* ---- The daemon ------------------------------------------------------------------------ */

/* For a test that notes what has been promised by then: a majority has the log up to there; transactions up to that number
   are acknowledged. */
static void (*accepted_hook)(uint64_t lsn);
static void (*acknowledged_hook)(uint64_t k);

/* For a test that changes system calls of a writer. */
static void (*writer_hook)(void);

/* raise_all -- what the test allows. */
static inline void
raise_all(struct xac_env *env)
{
    uint64_t written = atomic_load(&env->ctl->log.written);
    uint64_t allow = word_load(&stage->allow);

    allow = allow < written ? allow : written;
    if (allow > word_load(&stage->accepted)) {
        word_store(&stage->accepted,
                   allow); /* before: it may die right behind the raise */
        if (accepted_hook != NULL)
            accepted_hook(allow);
    }
    xac_member_raise(env, allow);
    word_store(&stage->durable, atomic_load(&env->ctl->log.durable));
    word_store(&stage->replicated, xac_group_bound(env));
}

/* answer_all -- who has asked, as the test says. */
static inline void
answer_all(struct xac_env *env)
{
    uint64_t how = word_load(&stage->answers), n = xac_group_asked(env);

    word_store(&stage->asked, n);
    if (how == ANSWER_NOTHING || n == xac_group_answered(env))
        return;
    word_add(&stage->n_answers, 1);
    xac_group_answer(env, n,
                     how == ANSWER_REPLICATED ? xac_group_bound(env)
                                              : atomic_load(&env->ctl->log.durable));
}

/* daemon_on -- a child: leads until it is told otherwise. */
static inline void
daemon_on(void *arg)
{
    struct xac_lineage_line line = stage->line;
    struct xac_env *env;

    (void)arg;
    must_ok(xac_member_lead(ENV_DIR, &line, NULL, &env));
    must_eq(xac_group_bound(env), line.start_lsn);
    word_store(&stage->accepted, line.start_lsn);
    word_store(&stage->leads, 1);
    while (word_load(&stage->order) == LEAD) {
        raise_all(env);
        answer_all(env);
        proc_sleep_us(200);
    }
    xac_member_depose(env, "node 2 at 127.0.0.1:7002");
    word_store(&stage->deposed, 1);
    while (word_load(&stage->order) == SHOW_ONLY)
        proc_sleep_us(200);
    must_ok(xac_member_detach(env, (unsigned)stage->leave_ms, 30000));
    must_ok(xac_env_close(env));
}

/* next_line -- of the generation behind that place. */
static inline struct xac_lineage_line
next_line(const struct xac_member_place *at)
{
    struct xac_lineage_line line = {.generation = at->generation + 1,
                                    .previous = at->generation,
                                    .end_lsn = at->end_lsn,
                                    .start_lsn = xac_next_start(at->end_lsn),
                                    .segment_bytes = at->segment_bytes};

    memset(line.branch, (int)(0x10 + at->generation), sizeof line.branch);
    return line;
}

/* lead -- ret the daemon, which leads. */
static inline pid_t
lead(const struct xac_member_place *at)
{
    pid_t pid;

    stage->line = next_line(at);
    word_store(&stage->order, LEAD);
    word_store(&stage->leads, 0);
    word_store(&stage->deposed, 0);
    word_store(&stage->allow, UINT64_MAX);
    pid = proc_spawn(daemon_on, NULL);
    proc_await(&stage->leads, 1, 60);
    return pid;
}

/* hold -- from now on no majority has more than it has now; ret that position. */
static inline uint64_t
hold(void)
{
    uint64_t at = word_load(&stage->replicated);

    must(at != 0);
    word_store(&stage->allow, at);
    proc_sleep_us(5000); /* what the daemon has just read */
    at = word_load(&stage->replicated);
    word_store(&stage->allow, at);
    return at;
}

/* await_durable -- until more is on disk here than an LSN; ret up to where. */
static inline uint64_t
await_durable(uint64_t lsn)
{
    proc_await(&stage->durable, lsn + 1, 60);
    return word_load(&stage->durable);
}

/* dethrone -- the daemon deposes, all detach, and it ends. */
static inline void
dethrone(pid_t daemon)
{
    word_store(&stage->order, DEPOSE);
    proc_join(daemon);
}

/* look -- where the member is. */
static inline struct xac_member_place
look(void)
{
    struct xac_member_place at;
    struct xac_group_note note;

    must_ok(xac_member_look(ENV_DIR, &note, &at));
    must_eq(note.node, 1);
    return at;
}

/* read_slot -- the master record. */
static inline struct xac_master_slot
read_slot(void)
{
    struct xac_master_slot m;
    int fd = open(ENV_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must(fd >= 0);
    must_ok(xac_master_read(fd, &m));
    (void)close(fd);
    return m;
}

/* cut_at -- where the log ends then; it is a standby. */
static inline struct xac_member_place
cut_at(uint64_t lsn)
{
    struct xac_member_place at = look();
    uint64_t end = 0;

    must_ok(xac_member_cut(ENV_DIR, at.generation, lsn, &end));
    at = look();
    must(at.is_standby);
    must_eq(at.end_lsn, end);
    return at;
}

/* state_with -- the standby takes what it is given, and redoes its log; ret how many transactions its file has then.  in  give  NULL:
   nothing comes */
static inline uint64_t
state_with(void (*give)(struct xac_standby *s))
{
    struct xac_standby *s;
    int lockfd, dirfd = open(ENV_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must(dirfd >= 0);
    must_ok(xac_standby_lock(dirfd, ENV_DIR, &lockfd));
    must_ok(xac_standby_start(dirfd, ENV_DIR, &s));
    if (give != NULL)
        give(s);
    must_ok(xac_standby_rest(s));
    xac_standby_close(s);
    (void)close(lockfd);
    (void)close(dirfd);
    return must_be_state(FILE_IN_DIR);
}

static inline uint64_t
state_of(void)
{
    return state_with(NULL);
}

/* must_have -- they are k. */
static inline void
must_have(uint64_t k)
{
    must_eq(state_of(), k);
}

/* must_be_zeros -- the log from an LSN on, in all segments there are. */
static inline void
must_be_zeros(uint64_t lsn, uint64_t segment_bytes)
{
    uint64_t number = lsn / segment_bytes + 1;
    const char *dir = stage->log_dir[0] != '\0' ? stage->log_dir : ENV_DIR;
    char name[XAC_LOG_NAME_MAX + sizeof stage->log_dir];
    uint8_t *bytes = (uint8_t *)malloc(segment_bytes);

    for (uint64_t n = number; n < number + 8; n++) {
        uint64_t from = n == number ? lsn % segment_bytes : 0;

        (void)snprintf(name, sizeof name, "%s/", dir);
        xac_log_segment_name(name + strlen(name), n);
        if (!file_exists(name))
            continue;
        file_read(name, XAC_SEGMENT_HEADER + from, bytes, segment_bytes - from);
        for (uint64_t i = 0; i < segment_bytes - from; i++) {
            if (bytes[i] != 0)
                env_fail(__FILE__, __LINE__, "%s: byte %llu behind the cut is %u", name,
                         (unsigned long long)i, bytes[i]);
        }
    }
    free(bytes);
}

/* ---- A log with a tail -------------------------------------------------------------------- */

/* What a log has that is to be cut. */
struct tail {
    uint64_t cut; /* a majority has it up to here: `kept` transactions               */
    uint64_t end; /* durable here                                                   */
    uint64_t kept;
};

/* write_tail -- a child: transactions behind board->n that wait for nothing. */
static inline void
write_tail(void *arg)
{
    uint64_t *x, n = board->n, more = (uint64_t)(uintptr_t)arg;

    must_ok(xSetOption(XAC_OPT_SYNC_DELAY_MS, 1));
    x = attach();
    for (uint64_t k = n + 1; k <= n + more; k++) {
        must_rc(transact(x, k), COMMITTED);
        proc_sleep_us(1500);
    }
    /* Without xShutdown(), which would wait for a majority. */
}

/* write_majority -- a child: transactions up to that number, all acknowledged. */
static inline void
write_majority(void *arg)
{
    uint64_t *x = attach(), last = (uint64_t)(uintptr_t)arg;

    if (writer_hook != NULL)
        writer_hook();
    for (uint64_t k = env_get(x) + 1; k <= last; k++) {
        must_rc(transact(x, k), COMMITTED);
        if (acknowledged_hook != NULL)
            acknowledged_hook(k);
    }
    must_ok(xShutdown());
}

/* lead_with_tail -- a member that has 10 transactions leads: it has 20 with a majority then, and as many more without. */
static inline struct tail
lead_with_tail(const struct xac_member_place *at, uint64_t more)
{
    struct tail t = {.kept = 20};
    pid_t daemon;

    word_store(&board->written, 1000);
    daemon = lead(at);
    proc_run(write_majority, (void *)20);
    proc_sleep_us(5000);
    t.cut = hold();
    board->n = 20;
    if (more > 0)
        proc_run(write_tail, (void *)(uintptr_t)more);
    dethrone(daemon);
    t.end = look().end_lsn;
    must(more == 0 ? t.end == t.cut : t.end > t.cut);
    return t;
}

/* make_tail -- the same, of a new member. */
static inline struct tail
make_tail(uint64_t more)
{
    struct xac_member_place at = make_member(10);

    return lead_with_tail(&at, more);
}

/* must_have_line -- xac.history says of the generation that begins what its entry says. */
static inline void
must_have_line(const struct xac_lineage_line *line)
{
    struct xac_lineage *l = (struct xac_lineage *)malloc(sizeof *l);
    const struct xac_lineage_line *is;
    int fd = open(ENV_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must_ok(xac_lineage_read(fd, line->generation, l));
    is = xac_lineage_of(l, line->generation);
    must(is != NULL);
    must(memcmp(is, line, sizeof *is) == 0);
    free(l);
    (void)close(fd);
}

/* go_on -- lead from there, with one transaction more; the node has k of them then. */
static inline void
go_on(const struct xac_member_place *at, uint64_t k)
{
    pid_t daemon = lead(at);

    must_have_line(&stage->line);
    proc_run(write_majority, (void *)(uintptr_t)k);
    dethrone(daemon);
    *(struct xac_member_place *)(uintptr_t)at = cut_at(look().end_lsn);
    must_have(k);
}

#endif /* XAC_TEST_GROUP_ENV_H */
