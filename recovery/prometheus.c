/* SPDX-License-Identifier: MIT */
/*
 * prometheus.c -- see prometheus.h.
 *
 * Each metric has its HELP and TYPE once, and a label with the environment's directory, so that the
 * output for several environments can be told apart.  Units are seconds and bytes.
 */
#include <config.h>

#include "prometheus.h"

#include <inttypes.h>
#include <stdio.h>

struct out {
    const char *dir;
    const char *name; /* of the metric under way                                     */
};

/* put_label -- a value, in quotation marks. */
static void
put_label(const char *value)
{
    putchar('"');
    for (const char *p = value; *p != '\0'; p++) {
        if (*p == '\n') {
            fputs("\\n", stdout);
            continue;
        }
        if (*p == '"' || *p == '\\')
            putchar('\\');
        putchar(*p);
    }
    putchar('"');
}

static void
metric(struct out *o, const char *name, const char *type, const char *help)
{
    printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
    o->name = name;
}

/* start -- of a sample: its name and the label that all have. */
static void
start(const struct out *o, const char *suffix)
{
    printf("%s%s{environment=", o->name, suffix);
    put_label(o->dir);
}

/* value -- the sample of the metric under way; key NULL: no other label. */
static void
value(const struct out *o, const char *key, const char *label, uint64_t n)
{
    start(o, "");
    if (key != NULL) {
        printf(",%s=", key);
        put_label(label);
    }
    printf("} %" PRIu64 "\n", n);
}

static void
single(struct out *o, const char *name, const char *type, const char *help, uint64_t n)
{
    metric(o, name, type, help);
    value(o, NULL, NULL, n);
}

static void
seconds(const struct out *o, uint64_t ns)
{
    start(o, "");
    printf("} %.9g\n", (double)ns / 1e9);
}

/* histogram -- cumulative, as the format has it. */
static void
histogram(struct out *o, const char *name, const char *help, const struct look_times *t)
{
    uint64_t n = 0;

    metric(o, name, "histogram", help);
    for (unsigned i = 0; i < XAC_TIMES_BUCKETS; i++) {
        n += t->n[i];
        start(o, "_bucket");
        if (i + 1 < XAC_TIMES_BUCKETS)
            printf(",le=\"%.9g\"} %" PRIu64 "\n", (double)(UINT64_C(1000) << i) / 1e9, n);
        else
            printf(",le=\"+Inf\"} %" PRIu64 "\n", n);
    }
    start(o, "_sum");
    printf("} %.9g\n", (double)t->sum_ns / 1e9);
    start(o, "_count");
    printf("} %" PRIu64 "\n", n);
}

static void
transactions(struct out *o, const struct xac_stats *s)
{
    metric(o, "xac_commits_total", "counter", "Transactions that committed.");
    value(o, "kind", "update", s->commits);
    value(o, "kind", "read_only", s->commits_read_only);
    single(o, "xac_queries_total", "counter", "Queries that ended.", s->queries);
    metric(o, "xac_aborts_total", "counter", "Transactions that aborted.");
    value(o, "reason", "conflict", s->aborts_conflict);
    value(o, "reason", "user", s->aborts_user);
    value(o, "reason", "other", s->aborts_other);
    metric(o, "xac_traps_total", "counter", "Faults handled, by the first access.");
    value(o, "access", "read", s->traps_read);
    value(o, "access", "write", s->traps_write);
    single(o, "xac_hints_total", "counter", "Announcements that saved a trap.", s->hints);
    single(o, "xac_pages_written_total", "counter", "Page versions published.",
           s->pages_written);
    single(o, "xac_commit_number", "gauge", "Number of the last commit.",
           s->commit_number);
}

static void
the_log(struct out *o, const struct look *look, bool is_durable)
{
    const struct xac_stats *s = &look->s;

    single(o, "xac_log_bytes_total", "counter", "Bytes appended to the log.",
           s->log_bytes);
    single(o, "xac_log_writes_total", "counter", "Write calls on the log.",
           s->log_writes);
    single(o, "xac_log_syncs_total", "counter", "Syncs of the log.", s->log_syncs);
    single(o, "xac_log_unsynced_bytes", "gauge", "Appended, and not yet synced.",
           s->log_tail - s->log_durable);
    single(o, "xac_log_poisoned", "gauge", "1 if a write or sync of the log has failed.",
           look->is_poisoned);
    single(o, "xac_checkpoints_total", "counter", "Checkpoints completed.",
           s->checkpoints);
    single(o, "xac_checkpoint_failures_total", "counter",
           "Checkpoints that failed or left out a file.", s->checkpoint_failures);
    single(o, "xac_pages_checkpointed_total", "counter",
           "Page versions copied to their files.", s->pages_checkpointed);
    histogram(o, "xac_commit_seconds",
              is_durable ? "Time of xend() of commits that changed something."
                         : "Time of xend() of one in 16 commits that changed something.",
              &look->commit_times);
    histogram(o, "xac_log_sync_seconds", "Time of the syncs of the log.",
              &look->sync_times);
}

static void
versions(struct out *o, const struct look *look)
{
    const struct xac_stats *s = &look->s;

    single(o, "xac_versions", "gauge", "Page versions in the version store.",
           s->versions_live);
    single(o, "xac_versions_held", "gauge", "Of these, kept only for readers.",
           s->versions_held);
    single(o, "xac_version_slots", "gauge", "Room in the version store, in pages.",
           s->frames);
    metric(o, "xac_oldest_snapshot_seconds", "gauge",
           "Age of the oldest snapshot that is read; 0: none.");
    seconds(o, s->oldest_age_ns);
    single(o, "xac_oldest_snapshot_commits_behind", "gauge",
           "Commits published since that snapshot.", s->oldest_behind);
    single(o, "xac_snapshots", "gauge", "Snapshots that are held.", look->n_snapshots);
    single(o, "xac_files", "gauge", "Files known.", s->files);
}

/* followers -- slots of the log. */
static void
followers(struct out *o, const struct look *look)
{
    uint64_t lost = 0, held = 0;

    for (size_t i = 0; i < look->n_followers; i++) {
        lost += look->follower[i].is_lost;
        if (look->follower[i].held > held)
            held = look->follower[i].held;
    }
    single(o, "xac_log_slots", "gauge", "Slots of followers of the log.",
           look->n_followers);
    single(o, "xac_log_slots_lost", "gauge", "Of these, lost.", lost);
    single(o, "xac_log_slot_held_bytes", "gauge",
           "Log that is held back by the slot that is farthest behind.", held);
}

/* group -- of a standby, or a node of a group. */
static void
group(struct out *o, const struct look_group *g)
{
    static const char *const roles[] = {"leader", "deposed", "follower", "standby"};

    if (g->role == NULL)
        return;
    metric(o, "xac_replication_role", "gauge", "1 for what it is.");
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        value(o, "role", roles[i], strcmp(g->role, roles[i]) == 0);
    single(o, "xac_replication_generation", "gauge", "Generation of the log.",
           g->generation);
    single(o, "xac_not_replicated_bytes", "gauge",
           "Log that is durable here, and not on a majority; of a leader.", g->behind);
    single(o, "xac_not_applied_bytes", "gauge",
           "Log that is durable here, and not redone; of the others.", g->unread);
    single(o, "xac_latest_queries_waiting", "gauge",
           "Queries that wait to hear what is newest in the group.", g->waiting);
}

static void
space(struct out *o, const struct look_space *p)
{
    metric(o, "xac_space_used_bytes", "gauge", "Space in use.");
    value(o, "what", "log", p->log_files);
    value(o, "what", "region", p->region);
    value(o, "what", "versions", p->versions_used);
    metric(o, "xac_space_left_bytes", "gauge", "Space left on a file system.");
    value(o, "what", "log", p->log_left);
    value(o, "what", "files", p->files_left);
    value(o, "what", "shared_memory", p->shared_left);
    single(o, "xac_recovery_bytes", "gauge", "Log that a recovery would read now.",
           p->log_behind);
}

static void
participants(struct out *o, const struct look *look)
{
    static const char *const states[] = {"running", "stopped", "dead"};

    metric(o, "xac_participants", "gauge", "Processes attached, by their state.");
    for (unsigned k = 0; k < sizeof states / sizeof states[0]; k++) {
        uint64_t n = 0;

        for (size_t i = 0; i < look->n_participants; i++)
            n += look->participant[i].process[0] == states[k][0];
        value(o, "state", states[k], n);
    }
    single(o, "xac_participants_died_total", "counter",
           "Participants that died and were cleaned up after.", look->s.dead_cleaned);
    metric(o, "xac_lock_held_seconds", "gauge",
           "Locks that one process holds for long while others wait, and the turn.");
    for (size_t i = 0; i < look->n_holders; i++) {
        start(o, "");
        fputs(",lock=", stdout);
        put_label(look->holder[i].name);
        printf(",pid=\"%" PRIu32 "\"} %.9g\n", look->holder[i].pid,
               (double)look->holder[i].held_ns / 1e9);
    }
}

void
prometheus_print(const char *dir, const struct xac_env *env, const struct look *look)
{
    struct out o = {.dir = dir};

    single(&o, "xac_up", "gauge", "1 if a process is attached.", look != NULL);
    if (look == NULL)
        return;
    participants(&o, look);
    transactions(&o, &look->s);
    the_log(&o, look, xac_env_is_durable(env));
    versions(&o, look);
    followers(&o, look);
    group(&o, &look->group);
    space(&o, &look->space);
}
