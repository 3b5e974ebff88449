/* SPDX-License-Identifier: MIT */
/*
 * check_allocs.c -- what it means that an allocation fails.
 *
 * GOAL    whatever allocation of the library fails, once or from then on: the call says so in
 *         an error with words, or does without; no lock stays held, no block and no
 *         descriptor is lost, nothing is poisoned, and what was acknowledged is there. As soon
 *         as there is memory again everything goes on, in this process and in others.
 * METHOD  scenarios that go through the whole library; in a process of its own, the n-th
 *         allocation of a scenario fails (allocfault.h).  Another participant looks on, and
 *         a fresh process reads the files at last.  So for memory of the process, and of the
 *         control region.  The tools the same way.
 *
 * Every third point on average; XAC_STEPS_LONG=1 all of them.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/allocfault.h"
#include "../common/env.h"
#include "base/lock.h"
#include "log/master.h"
#include "log/recover_check.h"
#include "recovery/pagesums_check.h"
#include "recovery/recover.h"

#define N_PAGES     48u
#define LARGE_FIRST 8u
#define LARGE_PAGES 28u /* more than a quarter of the log buffer: into a data file      */
#define FEWER_PAGES 16u /* less                                                         */
#define OTHER_PAGE  40u
#define MORE_PAGES  600u /* of the file with a bound on memory                          */
#define FRAMES      256u

/* What processes tell each other. */
struct board {
    _Atomic uint64_t acknowledged, tried; /* of the process whose allocations fail      */
    _Atomic uint64_t other;               /* of the other one                           */
    _Atomic uint64_t ask, answered, ready;
    _Atomic uint64_t hit;
    _Atomic int64_t left; /* blocks that a run without failures leaves behind           */
    char name[32];        /* of what has failed                                         */
};

struct scenario {
    const char *name;
    bool has_other;
    const char *engine; /* NULL: as set                                                 */
    void (*prepare)(void);
    void (*act)(void);
};

struct plan {
    const struct scenario *s;
    enum allocfault_kind kind;
    uint64_t n; /* 0: none fails                                                        */
    bool for_ever;
};

static struct board *board;
static const struct plan *plan; /* of this process                                      */
static unsigned char *file;     /* as mapped; NULL: not yet                             */
static bool is_in;              /* xInit() has succeeded                                */

/* ---- Results ---------------------------------------------------------------------------- */

/* went -- did a call succeed?  If not, it must have been for lack of memory, in words. */
static bool
went(const char *call, int rc)
{
    if (rc == 0)
        return true;
    if (rc != ENOMEM && rc != ENOSPC && rc != EAGAIN)
        env_fail(__FILE__, __LINE__, "%s %" PRIu64 "%s (%s): %s: %d, %s", plan->s->name,
                 plan->n, plan->for_ever ? "+" : "",
                 allocfault_hit() != NULL ? allocfault_hit() : "none", call, rc,
                 xac_last_error());
    if (xac_last_error()[0] == '\0')
        env_fail(__FILE__, __LINE__, "%s %" PRIu64 " (%s): %s: no words", plan->s->name,
                 plan->n, allocfault_hit(), call);
    return false;
}

/* pointer_went -- the same of a call that returns a pointer. */
static void *
pointer_went(const char *call, void *p)
{
    return p != MAP_FAILED && p != NULL ? p : (went(call, errno), NULL);
}

static void
fill(unsigned char *page, uint64_t n)
{
    volatile uint64_t *words = (volatile uint64_t *)(void *)page;

    for (size_t i = 0; i < env_page() / sizeof *words; i += 8)
        words[i] = n * (2 * i + 1);
}

/* committed -- if a transaction has not, it must say why. */
static bool
committed(int rc)
{
    struct xac_conflict why;

    /* Once in a row it is tried to make room. */
    if (rc != XAC_ABORTED && went("xend", rc))
        return true;
    rc = xac_get_conflict(&why, sizeof why);
    if (rc == ENOMEM)
        return went("xConflict", rc);
    must_ok(rc);
    must_eq(why.kind, XAC_CONFLICT_RESOURCE);
    must(why.error == ENOMEM || why.error == ENOSPC);
    return false;
}

/* commit -- transaction n; every second one is large. */
static bool
commit(uint64_t n)
{
    unsigned pages = n % 2 == 0 ? LARGE_PAGES : FEWER_PAGES;
    int rc = xac_begin();

    if (!went("xbegin", rc))
        return false;
    word_store(&board->tried, n);
    fill(file, n);
    for (unsigned i = 0; i < pages; i++)
        fill(file + (LARGE_FIRST + i) * env_page(), n);
    memmove(file + 6 * env_page() + 64, file + 5 * env_page(), env_page() / 2);
    rc = xac_end();
    if (!committed(rc))
        return false;
    word_store(&board->acknowledged, n);
    return true;
}

static bool
commit_next(void)
{
    return commit(word_load(&board->acknowledged) + 1);
}

/* ---- Steps of scenarios -------------------------------------------------------------------- */

/* attach -- with small log segments and everything else that takes memory; ret success. */
static bool
attach_with(int flags, size_t n_pages)
{
    if (!is_in) {
        must_ok(xac_set_option(XAC_OPT_LOG_SEGMENT_BYTES, 65536));
        must_ok(xac_set_option(XAC_OPT_LOG_BUFFER_BYTES, 65536));
        must_ok(xac_set_option(XAC_OPT_PAGE_CHECKSUMS, 1));
        is_in = went("xSetLogDirectory", xac_set_log_directory("log"))
                && went("xInit", xac_init(ENV_DIR, flags));
    }
    if (is_in && file == NULL)
        file = (unsigned char *)pointer_went("xMmap",
                                             xac_mmap(ENV_FILE, n_pages * env_page()));
    return file != NULL;
}

static bool
attach(void)
{
    return attach_with(XAC_DURABLE, N_PAGES);
}

static void
detach(void)
{
    if (is_in)
        (void)went("xShutdown", xac_shutdown());
    is_in = false;
    file = NULL;
}

/* act_commits -- in and out. */
static void
act_commits(void)
{
    if (attach()) {
        for (unsigned i = 0; i < 4; i++)
            (void)commit_next();
        (void)went("xCheckpoint", xac_checkpoint());
        (void)commit_next();
        (void)went("xSync", xac_sync());
    }
    detach();
}

/* map_same -- a file at the address where it belongs, which something else has taken. */
static void
map_same(const char *name)
{
    void *p = pointer_went("xMmap", xac_mmap(name, env_page()));

    if (p == NULL)
        return;
    must_ok(xac_munmap(name));
    must(mmap(p, env_page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
              -1, 0)
         == p);
    must(xac_mmap_at(name, 0, env_page(), XAC_SAME_ADDRESS) == MAP_FAILED);
    if (errno != EADDRINUSE)
        (void)went("xMmapAt", errno);
    must(munmap(p, env_page()) == 0);
}

/* act_maps -- a second mapping of the same pages, longer, elsewhere, away. */
static void
act_maps(void)
{
    unsigned char *alias;
    void *p;

    if (!attach())
        return;
    alias = (unsigned char *)pointer_went("xMmapAt", xac_mmap_at(ENV_FILE, 4 * env_page(),
                                                                 8 * env_page(), 0));
    if (alias != NULL && went("xbegin", xac_begin())) {
        fill(alias, 7);
        fill(file + 5 * env_page(), 9);
        (void)committed(xac_end());
    }
    if (alias != NULL)
        (void)went("xMunmapAt", xac_munmap_at(alias));
    map_same("third.db");
    p = pointer_went("xMmap", xac_mmap(ENV_DIR "/second.db", 8 * env_page()));
    if (p != NULL)
        p = pointer_went("xMremap", xac_mremap(p, 16 * env_page(), XAC_MAY_MOVE));
    if (p != NULL)
        (void)went("xMunmap", xac_munmap(ENV_DIR "/second.db"));
}

static int
heap_steps(void *arg)
{
    void *base = arg;
    void *p = xac_malloc(base, 100);

    if (p == NULL)
        return errno;
    if (xac_malloc(base, 5000) == NULL || xac_root(base) == NULL)
        return errno;
    return xac_free(base, p);
}

/* act_rest -- heap, xTransact, backup, archive, figures. */
static void
act_rest(void)
{
    struct xac_stats stats;
    char **names;
    size_t n;
    void *heap;

    if (!attach())
        return;
    for (unsigned i = 0; i < 12; i++)
        (void)commit_next();
    heap = pointer_went("xMmap", xac_mmap("heap.db", 64 * env_page()));
    if (heap != NULL) {
        (void)went("xSetBackoff", xac_set_backoff(xac_backoff_none, NULL));
        (void)went("xTransact", xac_transact(heap_steps, heap));
        (void)went("xSetBackoff", xac_set_backoff(NULL, NULL));
    }
    (void)went("xCheckpoint", xac_checkpoint());
    (void)went("xCheckpoint", xac_checkpoint());
    (void)went("xBackup", xac_backup("copy"));
    if (went("xArchive", xac_archive(&names, &n)))
        free(names);
    (void)went("xStats", xac_get_stats(&stats, sizeof stats));
}

/* act_frames -- more pages than may be in memory. */
static void
prepare_frames(void)
{
    must_ok(xac_set_option(XAC_OPT_FRAMES, FRAMES));
    must_ok(xac_set_option(XAC_OPT_READ_AHEAD_BYTES, 16 * env_page()));
}

static void
act_frames(void)
{
    if (!attach_with(XAC_DURABLE, MORE_PAGES))
        return;
    for (unsigned k = 0; k < 2; k++) {
        if (!went("xbegin", xac_begin()))
            continue;
        for (unsigned i = 50; i < MORE_PAGES; i += 1 + k)
            fill(file + i * env_page(), i);
        (void)committed(xac_end());
    }
    (void)commit_next();
    (void)went("xCheckpoint", xac_checkpoint());
}

/* A thread that has been started before anything fails. */
struct helper {
    pthread_t thread;
    _Atomic uint64_t go, done, view;
};
static struct helper helper;

static void *
help(void *arg)
{
    unsigned char *view;

    (void)arg;
    while (word_load(&helper.go) == 0)
        proc_sleep_us(100);
    view = (unsigned char *)pointer_went("xView", xac_view(file));
    if (view != NULL) {
        if (went("xbegin", xac_begin())) {
            fill(view + 3 * env_page(), 3);
            (void)committed(xac_end());
        }
        (void)went("xUnview", xac_unview(view));
    }
    word_store(&helper.done, 1);
    return NULL;
}

static void
prepare_thread(void)
{
    must(pthread_create(&helper.thread, NULL, help, NULL) == 0);
}

static void
act_thread(void)
{
    bool is_attached = attach();

    if (is_attached) {
        word_store(&helper.go, 1);
        (void)commit_next();
        while (word_load(&helper.done) == 0)
            proc_sleep_us(100);
    } else {
        must(pthread_cancel(helper.thread) == 0);
    }
    must(pthread_join(helper.thread, NULL) == 0);
}

static void
prepare_attached(void)
{
    must(attach());
}

/* act_child -- this is a child that has not joined: its first transaction does. */
static void
act_child(void)
{
    (void)commit_next();
    (void)commit_next();
}

/* leave_crash -- with a log to redo, and a data file. */
static void
leave_crash(void *arg)
{
    (void)arg;
    must(attach());
    must_ok(xac_checkpoint());
    for (unsigned i = 0; i < 12; i++)
        must(commit_next());
}

static void
prepare_crash(void)
{
    proc_run(leave_crash, NULL);
}

static void
ignore_damage(void *arg, const struct xac_pagesums_damage *d)
{
    (void)arg;
    env_fail(__FILE__, __LINE__, "damage in %s", d->file);
}

static void
ignore_place(void *arg, const struct xac_place *place)
{
    (void)arg;
    env_fail(__FILE__, __LINE__, "damage in %s: %s", place->file, place->why);
}

/* act_recover -- look, look closely, recover. */
static void
act_recover(void)
{
    struct xac_pagesums_check pages = {.damage = ignore_damage};
    struct xac_recover_options look = {.dry_run = true, .pages = &pages};
    struct xac_master_slot master;
    struct xac_check_report found;
    int dirfd = open(ENV_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int logfd = open("log", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must(dirfd >= 0 && logfd >= 0);
    (void)went("dry run", xac_recover_dir(dirfd, &look, NULL, NULL));
    if (went("master", xac_master_read(dirfd, &master)))
        (void)went("check", xac_check_log(logfd, &master, ignore_place, NULL, &found));
    must(close(dirfd) == 0 && close(logfd) == 0);
    (void)went("xRecover", xac_recover(ENV_DIR));
}

static void
leave_backup(void *arg)
{
    (void)arg;
    must(attach());
    for (unsigned i = 0; i < 4; i++)
        must(commit_next());
    must_ok(xac_backup("copy"));
    must_ok(xac_shutdown());
}

static void
prepare_backup(void)
{
    proc_run(leave_backup, NULL);
}

static void
act_restore(void)
{
    struct xac_recover_options forward = {.forward = true};
    int dirfd = open("copy", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    must(dirfd >= 0);
    (void)went("restore", xac_recover_dir(dirfd, &forward, NULL, NULL));
    must(close(dirfd) == 0);
}

static const struct scenario scenarios[] = {
    {"commits", false, NULL, NULL, act_commits},
    {"commits beside another", true, NULL, NULL, act_commits},
    {"commits, engine sigsegv", false, "sigsegv", NULL, act_commits},
    {"mappings", false, NULL, NULL, act_maps},
    {"mappings beside another", true, NULL, NULL, act_maps},
    {"heap, backup, archive", true, NULL, NULL, act_rest},
    {"bounded memory", false, NULL, prepare_frames, act_frames},
    {"a thread with a view", true, NULL, prepare_thread, act_thread},
    {"a child", true, NULL, prepare_attached, act_child},
    {"recovery", false, NULL, prepare_crash, act_recover},
    {"opening after a crash", false, NULL, prepare_crash, act_commits},
    {"restore", false, NULL, prepare_backup, act_restore},
};
#define SCENARIOS (sizeof scenarios / sizeof scenarios[0])

/* ---- Processes ---------------------------------------------------------------------------- */

/* run_other -- commits when asked. */
static void
run_other(void *arg)
{
    static const struct plan none = {.s = &scenarios[0]};

    (void)arg;
    plan = &none;
    must(attach());
    word_store(&board->ready, 1);
    for (uint64_t n = 1;; n++) {
        proc_await(&board->ask, n, 60);
        must_ok(xac_begin());
        fill(file + OTHER_PAGE * env_page(), n);
        must_rc(xac_end(), XAC_COMMITTED);
        word_store(&board->other, n);
        word_store(&board->answered, n);
    }
}

static void
ask_other(void)
{
    uint64_t n = word_load(&board->ask) + 1;

    word_store(&board->ask, n);
    proc_await(&board->answered, n, 60);
}

static unsigned
count_fds(void)
{
    return (unsigned)file_count("/proc/self/fd", "");
}

/* must_go_on -- as if nothing had happened. */
static void
must_go_on(void)
{
    size_t n = plan->s->act == act_frames ? MORE_PAGES : N_PAGES;

    must(attach_with(XAC_DURABLE, n));
    for (unsigned i = 0; i < 3; i++)
        must(commit_next());
    must_ok(xac_checkpoint());
    if (plan->s->has_other)
        ask_other();
    must(commit_next());
    must_ok(xac_shutdown());
    is_in = false;
    file = NULL;
}

/* fail_and_go_on -- act, with allocations that fail, and then without. */
static void
fail_and_go_on(void)
{
    allocfault_arm(plan->kind, plan->n, plan->for_ever);
    plan->s->act();
    word_store(&board->hit, allocfault_hit() != NULL);
    snprintf(board->name, sizeof board->name, "%s",
             allocfault_hit() != NULL ? allocfault_hit() : "none");
    allocfault_disarm();
    must(xac_lock_none_held());
    must_go_on();
}

static void
run_child(void *arg)
{
    (void)arg;
    fail_and_go_on();
}

/* in_thread -- which takes with it what each thread has of its own. */
static void *
in_thread(void *arg)
{
    (void)arg;
    if (plan->s->prepare != NULL)
        plan->s->prepare();
    if (plan->s->act == act_child)
        proc_run(run_child, NULL);
    else
        fail_and_go_on();
    return NULL;
}

static void
run_failing(void *arg)
{
    pthread_t thread;
    unsigned fds;
    int64_t live, left;

    plan = (const struct plan *)arg;
    if (plan->s->engine != NULL)
        must(setenv("XAC_ENGINE", plan->s->engine, 1) == 0);
    fds = count_fds();
    live = allocfault_live();
    must(pthread_create(&thread, NULL, in_thread, NULL) == 0);
    must(pthread_join(thread, NULL) == 0);
    if (plan->s->act == act_child)
        return; /* the parent is still in it */
    left = allocfault_live() - live;
    if (plan->n == 0)
        atomic_store_explicit(&board->left, left, memory_order_relaxed);
    else if (left > atomic_load_explicit(&board->left, memory_order_relaxed))
        env_fail(__FILE__, __LINE__, "%s %" PRIu64 "%s (%s): %lld blocks lost",
                 plan->s->name, plan->n, plan->for_ever ? "+" : "", board->name,
                 (long long)left);
    if (count_fds() != fds)
        env_fail(__FILE__, __LINE__, "%s %" PRIu64 "%s (%s): %u descriptors, were %u",
                 plan->s->name, plan->n, plan->for_ever ? "+" : "", board->name,
                 count_fds(), fds);
}

/* verify -- in a fresh process. */
static void
verify(void *arg)
{
    uint64_t acknowledged = word_load(&board->acknowledged), n;

    plan = (const struct plan *)arg;
    must_ok(xac_set_option(XAC_OPT_FRAMES, 0));
    must(attach_with(XAC_DURABLE, N_PAGES));
    must_ok(xac_begin_query());
    n = *(volatile uint64_t *)(void *)file;
    must(n >= acknowledged && n <= word_load(&board->tried));
    must_eq(*(volatile uint64_t *)(void *)(file + LARGE_FIRST * env_page()), n);
    must_eq(*(volatile uint64_t *)(void *)(file + OTHER_PAGE * env_page()),
            word_load(&board->other));
    must_ok(xac_end_query());
    must(commit(n + 1));
    must_ok(xac_shutdown());
}

/* ---- Points ------------------------------------------------------------------------------- */

static void
setup(void)
{
    env_setup();
    board = (struct board *)proc_shared(sizeof *board);
}

/* must_be_empty -- nothing is left behind in shared memory. */
static void
must_be_empty(const struct plan *p, const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *e;

    must(d != NULL);
    while ((e = readdir(d)) != NULL) {
        if (e->d_name[0] != '.')
            env_fail(__FILE__, __LINE__, "%s %" PRIu64 "%s (%s): %s is left behind",
                     p->s->name, p->n, p->for_ever ? "+" : "", board->name, e->d_name);
    }
    (void)closedir(d);
}

/* play -- one point; ret whether there was one. */
static bool
play(struct plan p)
{
    static unsigned round_no;
    int64_t left = atomic_load_explicit(&board->left, memory_order_relaxed);
    char name[32], shm[600];
    pid_t other = 0;

    memset((void *)board, 0, sizeof *board);
    atomic_store_explicit(&board->left, left, memory_order_relaxed);
    (void)snprintf(name, sizeof name, "r%u", round_no++);
    must(mkdir(name, 0777) == 0 && chdir(name) == 0 && mkdir("shm", 0777) == 0);
    must(getcwd(shm, sizeof shm - 4) != NULL);
    must(setenv("XAC_SHM_DIR", strcat(shm, "/shm"), 1) == 0);
    if (p.s->has_other) {
        other = proc_spawn(run_other, NULL);
        proc_await(&board->ready, 1, 60);
    }
    proc_run(run_failing, &p);
    if (other != 0)
        proc_kill(other);
    proc_run(verify, &p);
    must_be_empty(&p, "shm");
    must(chdir("..") == 0);
    return word_load(&board->hit) != 0;
}

/* play_all -- ret points. */
static unsigned
play_all(struct plan p)
{
    uint64_t step = env_number("XAC_STEPS_LONG", 0) != 0 ? 1 : 3;
    uint64_t seed = env_seed() + p.kind * 2 + p.for_ever;
    unsigned points = 0;

    p.n = 0;
    (void)play(p);
    for (p.n = 1; play(p); p.n += 1 + rnd_below(&seed, 2 * step - 1))
        points++;
    return points;
}

START_TEST(failing_allocations_are_survived)
{
    struct plan p = {.s = &scenarios[_i]};
    unsigned points[2][2];

    for (p.kind = ALLOCFAULT_MEMORY; p.kind <= ALLOCFAULT_SHARED; p.kind++) {
        for (int k = 0; k < 2; k++) {
            p.for_ever = k == 1;
            points[p.kind][k] = play_all(p);
        }
    }
    printf(
        "%s: memory fails at %u points once, at %u for ever; in the region at %u, %u\n",
        p.s->name, points[0][0], points[0][1], points[1][0], points[1][1]);
    must(points[0][0] > 1 && points[0][1] > 1);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("allocations");
    TCase *tc = env_tcase_with(s, "allocations", 600, setup);

    env_in_memory();
    tcase_add_loop_test(tc, failing_allocations_are_survived, 0, (int)SCENARIOS);
    return env_main(s);
}
