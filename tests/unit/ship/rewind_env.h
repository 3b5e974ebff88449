/* SPDX-License-Identifier: MIT */
/*
 * rewind_env.h -- what the test programs of rewinds share: two environments that have parted, writers whose transactions can
 * be done again, and a connection by which the old one becomes a standby of the new one.
 *
 * The old source is OLD, its standby, which is promoted, NEW.  Both have the files f and g in the directory.  Transaction k
 * of a side is a function of k and of a number that is the side's; the first word of f is k.
 * Defines things, so it is included once per program.
 */
#ifndef XAC_TEST_REWIND_ENV_H
#define XAC_TEST_REWIND_ENV_H

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "standby_pump.h"
#include "base/names.h"
#include "checkpoint/hold.h"
#include "log/master.h"
#include "log/slots.h"
#include "ship/promote.h"
#include "ship/receive.h"
#include "ship/send.h"

#define OLD      ENV_DIR
#define NEW      COPY
#define F_PAGES  48
#define G_PAGES  40 /* at the most */
#define STEP_MAX 400

/* One transaction, so that it can be done again. */
struct step {
    uint64_t salt, g_pages;
    bool is_large, walks;
};

/* What is shared with children. */
struct scene {
    struct step step[2][STEP_MAX]; /* of OLD, and of NEW                               */
    uint64_t n[2];                 /* how many                                         */
    char log_dir[4200];            /* of OLD; "" in its own directory                  */
    _Atomic bool stop;             /* the source ends                                  */
    _Atomic uint64_t source_rc;
    char words[600];
};

/* A run of a writer. */
struct session {
    int side;
    uint64_t n, g_pages;
    uint64_t checkpoint_every, large_every;
    const char
        *extra; /* a file that is mapped, too, and gets its name as contents; NULL */
    bool dies;  /* all processes do, and nothing is written any more           */
    bool recycles;
    bool walks; /* one page after the other, each of f once                           */
    uint64_t pause_us; /* between transactions                                         */
};

static struct scene *scene;

static const char *const side_dir[2] = {OLD, NEW};

static inline void
setup_scene(void)
{
    setup();
    scene = (struct scene *)proc_shared(sizeof *scene);
    (void)signal(SIGPIPE, SIG_IGN);
}

/* ---- Transactions ------------------------------------------------------------------------ */

/* move_bytes -- of a page that one transaction in three fills: within it, and to another one that is changed with it.  So
   the log has XCOPY. */
static inline void
move_bytes(uint64_t *f, uint64_t *g, uint64_t k, const struct step *s, uint64_t *seed)
{
    uint64_t *page = env_cell(f, 1);

    if (k % 3 == 1) {
        for (size_t w = 0; w < env_page() / 8; w++)
            page[w] = rnd_next(seed);
    } else if (k % 3 == 2) {
        memmove(page + 8, page, env_page() / 2);
    } else {
        memcpy(env_cell(g, rnd_below(seed, s->g_pages)) + 16, page + 8, env_page() / 2);
        page[0] = rnd_next(seed);
    }
}

/* change -- transaction k, on mappings or on memory; differences, whole pages, and bytes that come from other pages. */
static inline void
change(uint64_t *f, uint64_t *g, uint64_t k, const struct step *s)
{
    uint64_t seed = k * 7919 + s->salt * 1000003;
    size_t words = env_page() / 8;

    f[0] = k;
    if (s->walks) {
        env_cell(f, 1 + k % (F_PAGES - 1))[rnd_below(&seed, words)] = rnd_next(&seed);
        return;
    }
    for (uint64_t i = 0; i < (s->is_large ? 2 * F_PAGES : 1 + k % 3); i++) {
        uint64_t *page = env_cell(f, 1 + rnd_below(&seed, F_PAGES - 1));

        for (size_t w = 0; w < (s->is_large ? words : 4); w++)
            page[s->is_large ? w : rnd_below(&seed, words)] = rnd_next(&seed);
    }
    env_cell(g, rnd_below(&seed, s->g_pages))[rnd_below(&seed, words)] = rnd_next(&seed);
    move_bytes(f, g, k, s, &seed);
}

static inline void *
map(const char *dir, const char *name, uint64_t pages)
{
    char path[100];
    void *x;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    x = xMmap(path, pages * env_page());
    if (x == MAP_FAILED)
        env_fail(__FILE__, __LINE__, "xMmap %s: %s", path, xLastError());
    return x;
}

static inline void
commit_extra(char *x, const char *text)
{
    int rc;

    do {
        must_ok(xbegin());
        (void)snprintf(x, 100, "%s", text);
        rc = xend();
    } while (rc == ABORTED);
    must_rc(rc, COMMITTED);
}

/* run_session -- a child. */
static inline void
run_session(void *arg)
{
    const struct session *s = (const struct session *)arg;
    const char *dir = side_dir[s->side];
    uint64_t *f, *g, k = scene->n[s->side];

    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, board->segment_bytes));
    if (!s->recycles)
        must_ok(xSetOption(XAC_OPT_LOG_RECYCLE, 0));
    if (s->side == 0 && scene->log_dir[0] != '\0')
        must_ok(xSetLogDirectory(scene->log_dir));
    must_ok(xInit(dir, DURABLE));
    f = (uint64_t *)map(dir, "f", F_PAGES);
    g = (uint64_t *)map(dir, "g", s->g_pages);
    if (s->extra != NULL)
        commit_extra((char *)map(dir, s->extra, 3), s->side == 0 ? "old" : "new");
    for (uint64_t i = 0; i < s->n; i++) {
        struct step *step = &scene->step[s->side][++k];
        int rc;

        must(k < STEP_MAX);
        *step = (struct step){.salt = (uint64_t)s->side,
                              .g_pages = s->g_pages,
                              .is_large = s->large_every != 0 && k % s->large_every == 0,
                              .walks = s->walks};
        do {
            must_ok(xbegin());
            change(f, g, k, step);
            rc = xend();
        } while (rc == ABORTED);
        must_rc(rc, COMMITTED);
        if (s->checkpoint_every != 0 && k % s->checkpoint_every == 0)
            must_ok(xCheckpoint());
        if (s->pause_us != 0)
            proc_sleep_us(s->pause_us);
    }
    scene->n[s->side] = k;
    word_store(&board->written, k);
    if (!s->dies)
        must_ok(xShutdown());
}

static inline void
session(struct session s)
{
    proc_run(run_session, &s);
}

/* back_up -- a child: what the standby begins with. */
static inline void
back_up(void *arg)
{
    (void)arg;
    must_ok(xSetOption(XAC_OPT_LOG_SEGMENT_BYTES, board->segment_bytes));
    must_ok(xInit(OLD, DURABLE));
    must_ok(xBackup(NEW));
    (void)unlink(NEW "/xac.log-kept");
    must_ok(xShutdown());
}

/* part -- OLD with some transactions, some of them after the copy, all of which its standby has; that is promoted.  ret the
   LSN of the fork. */
static inline uint64_t
part(struct session first)
{
    uint32_t generation;
    uint64_t lsn;

    session(first);
    proc_run(back_up, NULL);
    session(first);
    (void)follow_on();
    memcpy(scene->step[1], scene->step[0], sizeof scene->step[0]);
    scene->n[1] = scene->n[0];
    must_ok(xac_promote(NEW, &generation, &lsn));
    return lsn;
}

/* ---- The judge ----------------------------------------------------------------------------- */

/* must_be_as -- both files of a directory are as the transactions of a side leave them; ret how many these are. */
static inline uint64_t
must_be_as(const char *dir, int side)
{
    uint64_t *file[2], *model[2];
    const char *names[2] = {"f", "g"};
    uint64_t k;

    for (int i = 0; i < 2; i++) {
        char path[100];
        uint64_t bytes, room = (i == 0 ? F_PAGES : G_PAGES) * env_page();

        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        file[i] = (uint64_t *)calloc(1, room);
        model[i] = (uint64_t *)calloc(1, room);
        bytes = file_size(path);
        must(bytes <= room);
        file_read(path, 0, file[i], bytes);
    }
    k = file[0][0];
    must(k <= scene->n[side]);
    for (uint64_t i = 1; i <= k; i++)
        change(model[0], model[1], i, &scene->step[side][i]);
    for (size_t i = 0; i < F_PAGES + G_PAGES; i++) {
        bool is_f = i < F_PAGES;
        size_t page = is_f ? i : i - F_PAGES;

        if (memcmp(env_cell(file[!is_f], page), env_cell(model[!is_f], page), env_page())
            != 0)
            env_fail(__FILE__, __LINE__,
                     "%s/%s: page %zu is not as transaction %llu leaves it", dir,
                     names[!is_f], page, (unsigned long long)k);
    }
    for (int i = 0; i < 2; i++) {
        free(file[i]);
        free(model[i]);
    }
    return k;
}

/* must_be_same -- a file of both. */
static inline void
must_be_same(const char *name)
{
    char command[200];

    (void)snprintf(command, sizeof command, "cmp " OLD "/%s " NEW "/%s", name, name);
    run_shell(command);
}

/* must_have_all -- OLD is as NEW, which nobody has open. */
static inline void
must_have_all(void)
{
    must_eq(must_be_as(NEW, 1), scene->n[1]);
    must_eq(must_be_as(OLD, 1), scene->n[1]);
    must_be_same("f");
    must_be_same("g");
}

static inline bool
old_has(const char *name)
{
    char path[100];

    (void)snprintf(path, sizeof path, OLD "/%s", name);
    return file_exists(path);
}

/* ---- The connection ------------------------------------------------------------------------- */

static int link_end[2];
static const char *source_dir = NEW;

static inline int
link_copy(void *arg, const char *slot, const char *to)
{
    (void)arg;
    (void)slot;
    (void)to;
    return xac_err(ENOSYS, "no copy in this test");
}

/* link_hold -- as xship makes it, unless it is there. */
static inline int
link_hold(void *arg, const char *slot)
{
    struct xac_log_followers f = {.wakes = 0};
    struct xac_options o;
    struct xac_env *env;
    uint64_t lsn;
    int rc, fd = open(source_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)arg;
    must_ok(xac_slots_read(fd, &f));
    (void)close(fd);
    if (xac_slots_find(&f, slot) != NULL)
        return 0;
    xac_options_init(&o, sizeof o);
    o.value[XAC_OPT_LOG_SEGMENT_BYTES] = board->segment_bytes;
    env = xac_open(source_dir, &o);
    must(env != NULL);
    rc = xac_hold_make(env, slot, &lsn);
    must_ok(xac_close(env));
    return rc;
}

/* link_stop -- the standby has all. */
static inline void
link_stop(void *arg, const struct xac_send_lag *lag)
{
    (void)arg;
    if (lag->bytes == 0)
        atomic_store(&scene->stop, true);
}

/* The source writes slowly to the connection: each piece is taken before the next one is there. */
static bool is_source_slow;

static ssize_t (*link_plain_write)(int fd, const void *buf, size_t n);

static inline ssize_t
link_slow_write(int fd, const void *buf, size_t n)
{
    proc_sleep_us(1000);
    return link_plain_write(fd, buf, n < 1000 ? n : 1000);
}

/* run_source -- a child. */
static inline void
run_source(void *arg)
{
    struct xac_send_options o = {.dir = source_dir,
                                 .slot = "old",
                                 .in = link_end[0],
                                 .out = link_end[0],
                                 .stop = &scene->stop,
                                 .copy = link_copy,
                                 .hold = link_hold,
                                 .lag = link_stop,
                                 .lag_ms = 1};
    struct xac_send_report rep;

    (void)arg;
    (void)close(link_end[1]);
    if (is_source_slow) {
        link_plain_write = xac_sys.write;
        xac_sys.write = link_slow_write;
    }
    word_store(&scene->source_rc, (uint64_t)(uint32_t)xac_send_run(&o, &rep));
    (void)snprintf(scene->words, sizeof scene->words, "%s", xac_err_text());
}

/* link_start -- ret the process of the source. */
static inline pid_t
link_start(void)
{
    pid_t pid;

    must_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link_end));
    atomic_store(&scene->stop, false);
    pid = proc_spawn(run_source, NULL);
    (void)close(link_end[0]);
    return pid;
}

static inline void
link_finish(pid_t pid)
{
    (void)close(link_end[1]);
    proc_join(pid);
}

/* receive -- into OLD until it has all; ret as xac_receive_run(). */
static inline int
receive(bool rewinds, struct xac_receive_report *rep)
{
    struct xac_receive_options o = {.dir = OLD, .rewinds = rewinds};

    o.in = o.out = link_end[1];
    return xac_receive_run(&o, rep);
}

/* rewind_old -- in this process; ret as xac_receive_run(), words noted. */
static inline int
rewind_old(struct xac_receive_report *rep)
{
    pid_t pid = link_start();
    int rc = receive(true, rep);

    link_finish(pid);
    return rc;
}

/* follow_new -- likewise, as any standby. */
static inline int
follow_new(void)
{
    struct xac_receive_report rep;
    pid_t pid = link_start();
    int rc = receive(false, &rep);

    link_finish(pid);
    return rc;
}

/* must_be_whole -- OLD, which has no xac.rewind any more, is as some number of transactions leaves it; ret that number. */
static inline uint64_t
must_be_whole(void)
{
    uint32_t generation;
    uint64_t lsn;

    run_shell("rm -rf judged && mkdir judged && cp -a " OLD "/. judged");
    must_ok(xac_promote("judged", &generation, &lsn));
    return must_be_as("judged", 1);
}

/* must_rewind -- and it is as NEW then. */
static inline void
must_rewind(void)
{
    struct xac_receive_report rep;

    must_ok(rewind_old(&rep));
    must(old_has(XAC_FOLLOW_NAME) && !old_has(XAC_REWIND_NAME));
    must_have_all();
}

#endif /* XAC_TEST_REWIND_ENV_H */
