/* SPDX-License-Identifier: MIT */
/*
 * look_json.c -- see look_json.h.
 */
#include <config.h>

#include "look_json.h"

static void
json_stats(struct json *j, const struct xac_stats *s)
{
    json_number(j, "commits", s->commits);
    json_number(j, "commits_read_only", s->commits_read_only);
    json_number(j, "queries", s->queries);
    json_number(j, "aborts_conflict", s->aborts_conflict);
    json_number(j, "aborts_user", s->aborts_user);
    json_number(j, "aborts_other", s->aborts_other);
    json_number(j, "traps_read", s->traps_read);
    json_number(j, "traps_write", s->traps_write);
    json_number(j, "hints", s->hints);
    json_number(j, "pages_written", s->pages_written);
    json_number(j, "log_bytes", s->log_bytes);
    json_number(j, "log_writes", s->log_writes);
    json_number(j, "log_syncs", s->log_syncs);
    json_number(j, "checkpoints", s->checkpoints);
    json_number(j, "pages_checkpointed", s->pages_checkpointed);
    json_number(j, "checkpoint_failures", s->checkpoint_failures);
    json_code(j, "checkpoint_error", (int)s->checkpoint_error);
    json_number(j, "checkpoint_error_ns", s->checkpoint_error_ns);
    json_number(j, "files", s->files);
    json_number(j, "files_forgotten", s->files_forgotten);
    json_number(j, "dead_cleaned", s->dead_cleaned);
    json_number(j, "versions_live", s->versions_live);
    json_number(j, "versions_held", s->versions_held);
    json_number(j, "frames", s->frames);
    json_number(j, "participants", s->participants);
    json_number(j, "commit_number", s->commit_number);
    json_number(j, "log_tail_lsn_bytes", s->log_tail);
    json_number(j, "log_durable_lsn_bytes", s->log_durable);
    json_number(j, "oldest_pid", s->oldest_pid);
    json_number(j, "oldest_commit", s->oldest_commit);
    json_number(j, "oldest_behind", s->oldest_behind);
    json_number(j, "oldest_age_ns", s->oldest_age_ns);
    json_number(j, "versions_oldest", s->versions_oldest);
    json_number(j, "queries_cut", s->queries_cut);
}

/* word_of -- of some; "" for a number that has none. */
static const char *
word_of(const char *const words[], size_t n, uint64_t number)
{
    return number < n ? words[number] : "";
}

#define WORD_OF(words, number) word_of(words, sizeof words / sizeof words[0], number)

const char *
look_process_word(const struct xac_party *party)
{
    static const char *const words[] = {"dead", "stopped", "running"};

    return WORD_OF(words, party->process);
}

const char *
look_kind_word(const struct xac_party *party)
{
    static const char *const words[] = {"idle",       "update",  "query",   "failed",
                                        "committing", "cut off", "snapshot"};

    return WORD_OF(words, party->kind);
}

const char *
look_engine_word(const struct xac_party *party)
{
    static const char *const words[] = {"", "uffd", "sigsegv", "thesis", "scan"};

    return WORD_OF(words, party->engine);
}

const char *
look_wait_word(const struct xac_party *party)
{
    static const char *const words[] = {"", "turn", "transaction"};

    return WORD_OF(words, party->waits_for);
}

const char *
look_conflict_word(const struct xac_party *party)
{
    static const char *const words[] = {"",           "read-write",
                                        "write-read", "write-write",
                                        "revoked",    "user",
                                        "resource",   "validation"};

    return WORD_OF(words, party->failed_kind);
}

static void
json_participants(struct json *j, const struct look *look)
{
    json_array(j, "processes");
    for (size_t i = 0; i < look->n_participants; i++) {
        const struct look_participant *p = &look->participant[i];

        json_object(j, NULL);
        json_number(j, "pid", p->pid);
        json_string(j, "state", p->process);
        json_bool(j, "is_reader", p->is_reader);
        json_number(j, "transactions_open", p->n_open);
        json_number(j, "queries_open", p->n_queries);
        json_number(j, "pages_touched", p->n_pages);
        json_number(j, "oldest_age_ns", p->age_ns);
        json_number(j, "commits", p->commits);
        json_string(j, "holds", p->holds);
        json_string(j, "waits_for", p->waits);
        json_end(j);
    }
    json_end(j);
}

/* json_parties -- the table of xParticipants(), its fields by their names. */
static void
json_parties(struct json *j, const struct look *look)
{
    json_array(j, "threads");
    for (size_t i = 0; i < look->n_parties; i++) {
        const struct xac_party *p = &look->party[i];

        json_object(j, NULL);
        json_number(j, "pid", p->pid);
        json_number(j, "tid", p->tid);
        json_string(j, "command", p->command);
        json_string(j, "process", look_process_word(p));
        json_bool(j, "is_reader", p->is_reader != 0);
        json_string(j, "engine", look_engine_word(p));
        json_string(j, "kind", look_kind_word(p));
        json_number(j, "age_ns", p->age_ns);
        json_number(j, "commit", p->commit);
        json_number(j, "pages_read", p->pages_read);
        json_number(j, "pages_written", p->pages_written);
        json_number(j, "versions_held", p->versions_held);
        json_number(j, "log_held", p->log_held);
        json_string(j, "waits_for", look_wait_word(p));
        json_number(j, "waits_pid", p->waits_pid);
        json_number(j, "waits_ns", p->waits_ns);
        json_string(j, "failed_kind", look_conflict_word(p));
        json_number(j, "failed_pid", p->failed_pid);
        json_number(j, "failed_ns", p->failed_ns);
        json_end(j);
    }
    json_end(j);
}

static void
json_snapshots(struct json *j, const struct look *look)
{
    json_array(j, "snapshots");
    for (size_t i = 0; i < look->n_snapshots; i++) {
        const struct look_snapshot *s = &look->snapshot[i];

        json_object(j, NULL);
        json_number(j, "id", s->id);
        json_number(j, "commit", s->commit);
        json_number(j, "pid", s->pid);
        json_string(j, "name", s->name);
        json_number(j, "age_ns", s->age_ns);
        json_number(j, "left_ns", s->left_ns);
        json_end(j);
    }
    json_end(j);
}

static void
json_followers(struct json *j, const struct look *look)
{
    json_array(j, "slots");
    for (size_t i = 0; i < look->n_followers; i++) {
        const struct look_follower *f = &look->follower[i];

        json_object(j, NULL);
        json_string(j, "name", f->name);
        json_bool(j, "lost", f->is_lost);
        json_number(j, "lsn", f->lsn);
        json_number(j, "held_bytes", f->held);
        json_end(j);
    }
    json_end(j);
}

/* json_group -- nothing, if it is neither a standby nor a node of a group. */
static void
json_group(struct json *j, const struct look_group *g)
{
    if (g->role == NULL)
        return;
    json_object(j, "replication");
    json_string(j, "role", g->role);
    json_number(j, "node", g->node);
    json_string(j, "leader", g->leader);
    json_number(j, "generation", g->generation);
    json_number(j, "replicated", g->replicated);
    json_number(j, "not_replicated_bytes", g->behind);
    json_number(j, "applied", g->applied);
    json_number(j, "not_applied_bytes", g->unread);
    json_number(j, "queries_waiting", g->waiting);
    json_end(j);
}

static void
json_hot(struct json *j, const struct look *look)
{
    json_number(j, "recent_commits", look->n_recent);
    json_array(j, "hot_pages");
    for (size_t i = 0; i < look->n_hot; i++) {
        json_object(j, NULL);
        json_string(j, "file", look->hot[i].path);
        json_number(j, "offset", look->hot[i].offset);
        json_number(j, "commits", look->hot[i].commits);
        json_end(j);
    }
    json_end(j);
}

/* json_times -- the upper ends of the buckets are 1 us, 2 us, 4 us and so on. */
static void
json_times(struct json *j, const char *key, const struct look_times *t)
{
    json_object(j, key);
    json_number(j, "count", t->count);
    json_number(j, "sum_ns", t->sum_ns);
    json_array(j, "below_us_1_2_4");
    for (unsigned i = 0; i < XAC_TIMES_BUCKETS; i++)
        json_number(j, NULL, t->n[i]);
    json_end(j);
    json_end(j);
}

static void
json_space(struct json *j, const struct look_space *p)
{
    json_object(j, "space_bytes");
    json_number(j, "log_files", p->log_files);
    json_number(j, "log_left", p->log_left);
    json_number(j, "log_since_checkpoint", p->log_behind);
    json_number(j, "files_left", p->files_left);
    json_number(j, "region", p->region);
    json_number(j, "region_most", p->region_most);
    json_number(j, "versions", p->versions);
    json_number(j, "versions_used", p->versions_used);
    json_number(j, "shared_memory_left", p->shared_left);
    json_end(j);
}

void
look_json(struct json *j, const struct look *look)
{
    json_stats(j, &look->s);
    holders_json(j, look->holder, look->n_holders);
    json_participants(j, look);
    json_snapshots(j, look);
    json_followers(j, look);
    json_group(j, &look->group);
    json_parties(j, look);
    json_hot(j, look);
    json_times(j, "commit_times", &look->commit_times);
    json_times(j, "sync_times", &look->sync_times);
    json_space(j, &look->space);
}
