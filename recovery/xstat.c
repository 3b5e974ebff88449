/* SPDX-License-Identifier: MIT */
/*
 * xstat.c -- the tool xstat(1): what a running environment is doing.
 *
 * Looks through a read-only mapping of the control region (peek.h).
 */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xac.h>

#include "base/err.h"
#include "base/sys.h"
#include "env/peek.h"
#include "look.h"
#include "look_json.h"
#include "parties.h"
#include "prometheus.h"
#include "shared/registry.h"
#include "tool.h"
#include "top.h"

const char *const tool_name = "xstat";

#define HEAD_EVERY 20 /* lines between two headings */

struct arguments {
    bool json, top, once, prometheus;
    double watch_s; /* 0: once */
    uint64_t count; /* lines, 0 without end */
    const char *dir;
};

static const struct option long_options[] = {
    {"count", required_argument, NULL, 'c'},
    {"help", no_argument, NULL, 'h'},
    {"json", no_argument, NULL, 'j'},
    {"once", no_argument, NULL, '1'},
    {"prometheus", no_argument, NULL, 'p'},
    {"top", no_argument, NULL, 't'},
    {"version", no_argument, NULL, 'V'},
    {"watch", optional_argument, NULL, 'w'},
    {NULL, 0, NULL, 0},
};

static void
usage(FILE *to)
{
    fputs(
        "usage: xstat [options] DIR\n"
        "Show what the running libxac environment in directory DIR is doing.\n"
        "\n"
        "  -w, --watch[=SECONDS]  again and again, with what happened since (1 s)\n"
        "  -c, --count N          stop after N lines\n"
        "  -t, --top              a screen of participants, times, pages and space, again\n"
        "                         and again (--watch=SECONDS, 1 s); the key q ends it\n"
        "      --once             one such screen; also if output is no terminal\n"
        "  -j, --json             one JSON object a line\n"
        "  -p, --prometheus       in the text format of Prometheus\n"
        "  -h, --help             this text\n"
        "  -V, --version          version of libxac\n"
        "\n"
        "exit: 0 shown, or nobody is attached   3 damaged master record\n"
        "      1 error                          5 no environment\n"
        "      2 wrong usage\n",
        to);
}

/* is_one_kind -- of output, and --once for that only which it is for. */
static bool
is_one_kind(const struct arguments *a)
{
    return a->json + a->top + a->prometheus <= 1 && (a->top || !a->once)
           && !(a->prometheus && (a->watch_s > 0 || a->count > 0));
}

/* arguments_read -- ret -1 to go on, or the exit code. */
static int
arguments_read(struct arguments *a, int argc, char **argv)
{
    char *end;
    int c;

    while ((c = getopt_long(argc, argv, "c:hjptVw::", long_options, NULL)) != -1) {
        switch (c) {
        case 'c':
            if (tool_number(optarg, &a->count) && a->count > 0)
                break;
            usage(stderr);
            return EXIT_USAGE;
        case 'h':
            usage(stdout);
            return EXIT_DONE;
        case 'j':
            a->json = true;
            break;
        case '1':
            a->once = true;
            break;
        case 'p':
            a->prometheus = true;
            break;
        case 't':
            a->top = true;
            break;
        case 'V':
            return tool_version();
        case 'w':
            a->watch_s = optarg == NULL ? 1 : strtod(optarg, &end);
            if (optarg == NULL
                || (*end == '\0' && a->watch_s >= 0.01 && a->watch_s < 1e6))
                break;
            usage(stderr);
            return EXIT_USAGE;
        default:
            usage(stderr);
            return EXIT_USAGE;
        }
    }
    if (optind + 1 != argc || argv[optind][0] == '\0' || !is_one_kind(a)) {
        usage(stderr);
        return EXIT_USAGE;
    }
    a->dir = argv[optind];
    return -1;
}

/* ---- Once ------------------------------------------------------------------------- */

static void
line(const char *what, uint64_t n, const char *words)
{
    printf("  %-26s %14" PRIu64 "  %s\n", what, n, words);
}

/* region_place -- where the shared memory lies. */
static const char *
region_place(const struct xac_env *env, const struct arguments *a,
             char place[2 * PATH_MAX])
{
    if (env->region[0] == '/')
        (void)snprintf(place, 2 * PATH_MAX, "%s", env->region);
    else
        (void)snprintf(place, 2 * PATH_MAX, "%s/%s", a->dir, env->region);
    return place;
}

/* is_removed -- have the files of the shared memory lost their names? */
static bool
is_removed(const struct xac_env *env)
{
    struct stat st;

    return xac_sys.fstat(env->shm.fd, &st) == 0 && st.st_nlink == 0;
}

/* print_place -- and why it does not lie where it is wanted. */
static void
print_place(const struct xac_env *env, const struct arguments *a)
{
    char place[2 * PATH_MAX];

    printf("  shared memory in %s\n", region_place(env, a, place));
    if (env->ctl->shm_error != 0)
        printf("    and not in memory (/dev/shm or XAC_SHM_DIR), where it could not be"
               " made: %s\n",
               xac_strerror(env->ctl->shm_error));
    if (is_removed(env))
        puts(
            "    its files were removed (by RemoveIPC of systemd-logind?); newcomers find"
            " them in /proc, if they may look at a participant");
    /* Relaxed: whether it is there, no more. */
    if (atomic_load_explicit(&env->ctl->versions.spill, memory_order_relaxed) != 0)
        printf("    and, for page versions that have no room there, in %s\n", a->dir);
}

/* failures -- of checkpoints, if there were any. */
static void
failures(const struct xac_stats *s)
{
    char when[40], words[200];

    if (s->checkpoint_failures == 0)
        return;
    (void)snprintf(words, sizeof words, "the last one %s: %s",
                   tool_time_words(s->checkpoint_error_ns, when),
                   xac_strerror((int)s->checkpoint_error));
    line("  that failed", s->checkpoint_failures, words);
}

/* past -- the oldest state of the history, if there is one. */
static void
past(const struct xac_env *env)
{
    const struct xac_chain *c = &env->ctl->chain;
    uint64_t ns = atomic_load_explicit(&c->past_ns, memory_order_relaxed);
    char when[40];

    /* Relaxed, all: a glimpse. */
    if (atomic_load_explicit(&env->ctl->history, memory_order_relaxed) != 0)
        printf("  history back to commit %" PRIu64 ", of %s\n",
               atomic_load_explicit(&c->past, memory_order_relaxed),
               tool_time_words(ns, when));
}

/* snapshots -- those that are held. */
static void
snapshots(const struct look *now)
{
    for (size_t i = 0; i < now->n_snapshots; i++) {
        const struct look_snapshot *s = &now->snapshot[i];

        printf("  snapshot %" PRIu64 " of commit %" PRIu64 ", for %.1f s, ", s->id,
               s->commit, (double)s->age_ns / 1e9);
        if (s->pid != 0)
            printf("process %" PRIu32 "\n", s->pid);
        else
            printf("named %s, for %.1f s more\n", s->name, (double)s->left_ns / 1e9);
    }
}

/* followers -- slots that hold log back. */
static void
followers(const struct look *now)
{
    for (size_t i = 0; i < now->n_followers; i++) {
        const struct look_follower *f = &now->follower[i];

        if (f->is_lost)
            printf("  slot %s: lost, it held back too much log\n", f->name);
        else
            printf("  slot %s: holds back %" PRIu64 " bytes of log, from LSN %" PRIu64
                   " on\n",
                   f->name, f->held, f->lsn);
    }
}

/* print_group -- a standby, or a node of a group. */
static void
print_group(const struct look_group *g)
{
    char words[80];

    if (g->role == NULL)
        return;
    printf("  %s", g->role);
    if (g->node != 0)
        printf(", node %" PRIu64 " of its group", g->node);
    printf(", generation %" PRIu64 " of the log", g->generation);
    printf("%s%s\n", g->leader[0] != '\0' ? "; leader: " : "", g->leader);
    if (g->replicated != 0) {
        (void)snprintf(words, sizeof words, "LSN, %" PRIu64 " bytes behind the synced",
                       g->behind);
        line("  on a majority up to", g->replicated, words);
    } else {
        (void)snprintf(words, sizeof words, "LSN, %" PRIu64 " bytes behind the synced",
                       g->unread);
        line("  redone up to", g->applied, words);
    }
    if (g->node != 0)
        line("  queries that wait", g->waiting, "to hear what is newest");
}

/* print_oldest -- the oldest reader. */
static void
print_oldest(const struct xac_stats *s)
{
    char words[80];

    if (s->oldest_pid == 0 && s->oldest_behind == 0) {
        puts("  nobody reads");
        return;
    }
    (void)snprintf(words, sizeof words,
                   "%" PRIu64 " behind, for %.1f s, process %" PRIu64, s->oldest_behind,
                   (double)s->oldest_age_ns / 1e9, s->oldest_pid);
    if (s->oldest_pid == 0)
        (void)snprintf(words, sizeof words, "%" PRIu64 " behind, a named snapshot",
                       s->oldest_behind);
    line("oldest reader sees commit", s->oldest_commit, words);
    line("  versions only for it", s->versions_oldest, "");
}

/* print_text -- totals since the region was made, and the state of the moment. */
static void
print_text(const struct arguments *a, const struct xac_env *env, const struct look *now)
{
    const struct xac_stats *s = &now->s;
    char words[80];
    int poisoned = atomic_load_explicit(&env->ctl->log.poisoned, memory_order_relaxed);

    printf("%s: %s, %" PRIu64 " participant%s\n", a->dir,
           xac_env_is_durable(env) ? "durable" : "not durable", s->participants,
           plural(s->participants));
    print_place(env, a);
    if (poisoned != 0)
        printf("  POISONED by a failed write or sync: %s; all must detach\n",
               strerror(poisoned));
    puts("since the first participant came:");
    line("commits", s->commits, "");
    line("  read-only", s->commits_read_only, "more, which changed nothing");
    line("queries", s->queries, "");
    line("  cut off", s->queries_cut, "XAC_OPT_READER_LIMIT");
    line("aborts", s->aborts_conflict + s->aborts_user + s->aborts_other, "");
    line("  for a conflict", s->aborts_conflict, "");
    line("  by xAbort()", s->aborts_user, "");
    line("  others", s->aborts_other, "want of room, or revoked");
    line("traps, first a read", s->traps_read, "");
    line("traps, first a write", s->traps_write, "");
    line("hints", s->hints, "that saved a trap");
    line("page versions published", s->pages_written, "");
    line("log", s->log_bytes, "bytes");
    line("log writes", s->log_writes, "");
    line("log syncs", s->log_syncs, "");
    line("checkpoints", s->checkpoints, "");
    line("page versions copied", s->pages_checkpointed, "by them to their files");
    failures(s);
    line("participants that died", s->dead_cleaned, "");
    puts("now:");
    line("last commit", s->commit_number, "");
    line("end of the log", s->log_tail, "LSN");
    (void)snprintf(words, sizeof words, "LSN, %" PRIu64 " bytes behind",
                   s->log_tail - s->log_durable);
    line("  synced up to", s->log_durable, words);
    print_group(&now->group);
    line("page versions", s->versions_live, "in the version store");
    line("  held for readers", s->versions_held, "");
    line("frames", s->frames, "of the version store");
    line("files", s->files, "known");
    holders_print(now->holder, now->n_holders);
    past(env);
    snapshots(now);
    followers(now);
    print_oldest(s);
    puts("threads:");
    parties_print(stdout, now, "");
}

/* ---- Again and again -------------------------------------------------------------- */

static void
print_line(const struct look *old, const struct look *new, uint64_t number)
{
    const struct xac_stats *a = &old->s;
    const struct xac_stats *b = &new->s;
    double s = (double)(new->at_ns - old->at_ns) / 1e9;

    if (number % HEAD_EVERY == 0)
        puts("  commits/s queries/s  aborts/s conflict/s  traps/s log-MB/s syncs/s"
             "  versions   held    frames oldest-s procs");
#define RATE(field) ((double)(b->field - a->field) / s)
    printf("%11.0f %9.0f %9.0f %10.0f %8.0f %8.2f %7.0f %9" PRIu64 " %6" PRIu64
           " %9" PRIu64 " %8.1f %5" PRIu64 "\n",
           RATE(commits) + RATE(commits_read_only), RATE(queries),
           RATE(aborts_conflict) + RATE(aborts_user) + RATE(aborts_other),
           RATE(aborts_conflict), RATE(traps_read) + RATE(traps_write),
           RATE(log_bytes) / 1e6, RATE(log_syncs), b->versions_live, b->versions_held,
           b->frames, (double)b->oldest_age_ns / 1e9, b->participants);
#undef RATE
    holders_print(new->holder, new->n_holders);
}

/* print_json -- totals; with --watch also rates since the last line. */
static void
print_json(const struct arguments *a, const struct xac_env *env, const struct look *old,
           const struct look *new)
{
    struct json j = {.is_pretty = a->watch_s == 0};
    char place[2 * PATH_MAX];

    json_object(&j, NULL);
    json_string(&j, "directory", a->dir);
    json_bool(&j, "attached", env != NULL);
    if (env != NULL) {
        json_bool(&j, "durable", xac_env_is_durable(env));
        json_string(&j, "shared_memory", region_place(env, a, place));
        json_code(&j, "shared_memory_error", env->ctl->shm_error);
        json_bool(&j, "shared_memory_removed", is_removed(env));
        json_bool(&j, "poisoned", new->is_poisoned);
        look_json(&j, new);
    }
    if (env != NULL && old != NULL) {
        double s = (double)(new->at_ns - old->at_ns) / 1e9;

        json_real(&j, "interval_s", s);
        json_real(&j, "commits_per_s", (double)(new->s.commits - old->s.commits) / s);
        json_real(&j, "aborts_conflict_per_s",
                  (double)(new->s.aborts_conflict - old->s.aborts_conflict) / s);
        json_real(&j, "log_bytes_per_s",
                  (double)(new->s.log_bytes - old->s.log_bytes) / s);
        json_real(&j, "log_syncs_per_s",
                  (double)(new->s.log_syncs - old->s.log_syncs) / s);
    }
    json_end(&j);
}

static void
nobody(const struct arguments *a)
{
    if (a->json)
        print_json(a, NULL, NULL, NULL);
    else if (a->prometheus)
        prometheus_print(a->dir, NULL, NULL);
    else
        printf("%s: nobody is attached\n", a->dir);
}

/* watch -- a line every so often, until the last participant has left; ret 0 or an error. */
static int
watch(const struct arguments *a, const struct xac_env *env)
{
    struct timespec t = {(time_t)a->watch_s,
                         (long)((a->watch_s - (double)(time_t)a->watch_s) * 1e9)};
    struct look old, new;
    int rc = look_take(env, NULL, &old);

    for (uint64_t i = 0; rc == 0 && (a->count == 0 || i < a->count); i++) {
        (void)nanosleep(&t, NULL);
        if (xac_peek_is_over(env)) {
            nobody(a);
            break;
        }
        rc = look_take(env, &old, &new);
        if (rc == 0 && a->json)
            print_json(a, env, &old, &new);
        else if (rc == 0)
            print_line(&old, &new, i);
        look_free(&old);
        old = new;
        if (fflush(stdout) != 0)
            break;
    }
    look_free(&old);
    return rc;
}

/* show_once -- ret 0 or an error. */
static int
show_once(const struct arguments *a, const struct xac_env *env)
{
    struct look now;
    int rc = look_take(env, NULL, &now);

    if (rc == 0 && a->json)
        print_json(a, env, NULL, &now);
    else if (rc == 0 && a->prometheus)
        prometheus_print(a->dir, env, &now);
    else if (rc == 0)
        print_text(a, env, &now);
    look_free(&now);
    return rc;
}

/* show_top -- ret 0 or an error. */
static int
show_top(const struct arguments *a, const struct xac_env *env)
{
    bool is_over = false;
    int rc = top_run(env, a->dir, a->watch_s > 0 ? a->watch_s : 1, a->once ? 1 : a->count,
                     &is_over);

    if (rc == 0 && is_over)
        nobody(a);
    return rc;
}

/* show -- ret an error code. */
static int
show(const struct arguments *a, int dirfd)
{
    struct xac_env env;
    int rc = xac_peek_open(dirfd, a->dir, &env);

    if (rc == ENOENT) {
        nobody(a);
        return 0;
    }
    if (rc != 0)
        return rc;
    xac_registry_identify(&env); /* so that it sees which processes are stopped */
    rc = a->top           ? show_top(a, &env)
         : a->watch_s > 0 ? watch(a, &env)
                          : show_once(a, &env);
    xac_peek_close(&env);
    return rc;
}

int
main(int argc, char **argv)
{
    struct arguments a = {.json = false};
    int rc = arguments_read(&a, argc, argv);
    int dirfd;

    if (rc >= 0)
        return rc;
    rc = tool_open_dir(a.dir, &dirfd, NULL);
    if (rc == 0)
        rc = show(&a, dirfd);
    if (dirfd >= 0)
        (void)xac_sys.close(dirfd);
    return tool_flush(rc == 0 ? EXIT_DONE : tool_fail(a.dir, rc));
}
