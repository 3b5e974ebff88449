/* SPDX-License-Identifier: MIT */
/*
 * look.c -- see look.h.
 */
#include <config.h>

#include "look.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/names.h"
#include "base/sys.h"
#include "env/participants.h"
#include "env/stats.h"
#include "log/logdir.h"
#include "log/recover_scan.h"
#include "log/slots.h"
#include "shared/group.h"
#include "shared/registry.h"
#include "shared/token.h"

/* A glimpse: nobody waits for what we see. */
static uint64_t
get(const _Atomic uint64_t *p)
{
    return atomic_load_explicit(p, memory_order_relaxed);
}

/* add_words -- to a list of them, as far as there is room. */
__attribute__((format(printf, 2, 3))) static void
add_words(char list[LOOK_WORDS], const char *format, ...)
{
    size_t n = strlen(list);
    va_list ap;

    if (n > 0)
        n += (size_t)snprintf(list + n, LOOK_WORDS - n, ", ");
    if (n >= LOOK_WORDS)
        return;
    va_start(ap, format);
    (void)vsnprintf(list + n, LOOK_WORDS - n, format, ap);
    va_end(ap);
}

/* ---- Participants ------------------------------------------------------------------- */

static const char *
process_words(enum xac_process_state state)
{
    return state == XAC_PROCESS_DEAD      ? "dead"
           : state == XAC_PROCESS_STOPPED ? "stopped"
                                          : "running";
}

static int
take_participants(const struct xac_env *env, struct look *out)
{
    uint64_t n = get(&env->ctl->participants.count);

    out->participant =
        (struct look_participant *)calloc(n + 1, sizeof out->participant[0]);
    if (out->participant == NULL)
        return xac_err(ENOMEM, "participants");
    for (uint32_t i = 0; i < n; i++) {
        const struct xac_participant *p = xac_participant_at(env, i);
        struct look_participant *to = &out->participant[out->n_participants];

        /* Acquire: pairs with the release in xac_registry_join. */
        if (atomic_load_explicit(&p->state, memory_order_acquire) != XAC_PART_ATTACHED)
            continue;
        to->index = i;
        to->pid = p->pid;
        to->process = process_words(xac_registry_state(env, i));
        to->is_reader = p->is_reader != 0;
        if (get(&p->log_pin) != 0)
            add_words(to->holds, "log (backup)");
        out->n_participants++;
    }
    return 0;
}

/* participant_of -- by its index in the region; NULL: it came after we looked. */
static struct look_participant *
participant_of(const struct look *look, uint32_t index)
{
    for (size_t i = 0; i < look->n_participants; i++) {
        if (look->participant[i].index == index)
            return &look->participant[i];
    }
    return NULL;
}

/* pid_of_slot -- the process that a slot belongs to; 0 unknown. */
static uint32_t
pid_of_slot(const struct xac_env *env, const struct look *look, uint64_t slot)
{
    const struct look_participant *p;

    if (slot >= look->n_slots)
        return 0;
    p = participant_of(look, xac_txn_participant(get(&xac_txn_at(env, slot)->word)));
    return p != NULL ? p->pid : 0;
}

/* add_waits -- what the transaction in a slot waits for, as far as the region says. */
static void
add_waits(const struct xac_env *env, const struct look *look, uint64_t slot,
          struct look_participant *p)
{
    const struct xac_txn *t = xac_txn_at(env, slot);
    uint64_t turn = get(&env->ctl->turn);
    uint64_t lost_to = get(&t->lost_to);

    if (turn != 0 && (turn & XAC_TURN_SLOT_MASK) == slot + 1)
        add_words(p->holds, "turn");
    else if (turn != 0 && get(&t->ticket) != 0)
        add_words(p->waits, "turn of %" PRIu32,
                  pid_of_slot(env, look, (turn & XAC_TURN_SLOT_MASK) - 1));
    if (lost_to != 0 && lost_to - 1 != slot)
        add_words(p->waits, "commit of %" PRIu32, pid_of_slot(env, look, lost_to - 1));
}

/* take_snapshot -- that the slot holds; 0: it has just been released. */
static size_t
take_snapshot(const struct xac_env *env, const struct xac_txn *t, uint64_t at_ns,
              struct look_snapshot *out)
{
    uint64_t word = get(&t->word), begin = get(&t->begin_ns), end = get(&t->expires_ns);

    *out = (struct look_snapshot){.id = get(&t->snapshot), .commit = get(&t->parent)};
    out->age_ns = at_ns > begin ? at_ns - begin : 0;
    xac_txn_name(t, out->name);
    if (xac_txn_is_nobodys(word))
        out->left_ns = end > at_ns ? end - at_ns : 0;
    else
        out->pid = xac_participant_at(env, xac_txn_participant(word))->pid;
    /* Acquire: pairs with the releases of the word; what was read is that snapshot's. */
    atomic_thread_fence(memory_order_acquire);
    return get(&t->word) == word;
}

/* take_slot -- what it says of its participant. */
static void
take_slot(const struct xac_env *env, const struct look *before, struct look *out,
          uint64_t slot)
{
    const struct xac_txn *t = xac_txn_at(env, slot);
    uint64_t word = get(&t->word), begin_ns = get(&t->begin_ns);
    enum xac_txn_state state = xac_txn_state(word);
    struct look_slot *s = &out->slot[slot];
    struct look_participant *p;
    uint64_t old = 0;

    s->participant = xac_txn_participant(word);
    if (state == XAC_TXN_SNAPSHOT) {
        out->n_snapshots +=
            take_snapshot(env, t, out->at_ns, &out->snapshot[out->n_snapshots]);
        return;
    }
    s->commits = get(&t->counters.commits) + get(&t->counters.commits_read_only);
    p = state == XAC_TXN_FREE ? NULL : participant_of(out, s->participant);
    if (p == NULL)
        return;
    if (before != NULL && slot < before->n_slots)
        old = before->slot[slot].commits;
    p->commits += s->commits - old;
    add_waits(env, out, slot, p);
    if (!xac_txn_is_live(word))
        return;
    if (state == XAC_TXN_QUERY)
        p->n_queries++;
    else
        p->n_open++;
    p->n_pages += get(&t->n_entries);
    /* The clock of begin_ns is behind by a tick. */
    if (out->at_ns > begin_ns && out->at_ns - begin_ns > p->age_ns)
        p->age_ns = out->at_ns - begin_ns;
}

static void
add_times(struct look_times *to, const struct xac_times *from)
{
    to->sum_ns += get(&from->sum_ns);
    for (unsigned i = 0; i < XAC_TIMES_BUCKETS; i++) {
        uint64_t n = get(&from->n[i]);

        to->n[i] += n;
        to->count += n;
    }
}

static int
take_slots(const struct xac_env *env, const struct look *before, struct look *out)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);

    out->slot = (struct look_slot *)calloc(n + 1, sizeof out->slot[0]);
    out->snapshot = (struct look_snapshot *)calloc(n + 1, sizeof out->snapshot[0]);
    if (out->slot == NULL || out->snapshot == NULL)
        return xac_err(ENOMEM, "transaction slots");
    out->n_slots = n;
    for (uint64_t slot = 0; slot < n; slot++) {
        take_slot(env, before, out, slot);
        add_times(&out->commit_times, &xac_txn_at(env, slot)->counters.commit_times);
    }
    if (xac_env_is_durable(env))
        add_times(&out->sync_times, &env->ctl->log.sync_times);
    return 0;
}

/* take_followers -- slots of the log. */
static void
take_followers(const struct xac_env *env, struct look *out)
{
    const struct xac_log_shared *log = &env->ctl->log;

    for (size_t i = 0; i < XAC_LOG_SLOTS; i++) {
        uint64_t lsn = xac_slot_lsn(xac_slot_load(&log->followers.slot[i]));
        struct look_follower *f = &out->follower[out->n_followers];

        if (lsn == XAC_SLOT_FREE)
            continue;
        *f = (struct look_follower){.is_lost = lsn == XAC_SLOT_LOST};
        xac_slot_name(&log->followers.slot[i], f->name);
        if (!f->is_lost) {
            f->lsn = lsn;
            f->held = out->s.log_tail > lsn ? out->s.log_tail - lsn : 0;
        }
        out->n_followers++;
    }
}

/* role_of -- NULL: neither standby nor in a group. */
static const char *
role_of(const struct xac_env *env)
{
    if (xac_group_leads(env))
        return xac_group_is_deposed(env) ? "deposed" : "leader";
    if (!xac_env_is_standby(env))
        return NULL;
    return env->ctl->group.node != 0 ? "follower" : "standby";
}

/* take_group -- of a durable environment. */
static void
take_group(const struct xac_env *env, struct look_group *out)
{
    uint64_t answered = xac_group_answered(env), asked = xac_group_asked(env);
    uint64_t at = xac_group_leads(env) ? xac_group_replicated(env)
                                       : get(&env->ctl->standby.applied);
    uint64_t durable = get(&env->ctl->log.durable), left;
    struct xac_token token;

    *out = (struct look_group){.role = role_of(env), .node = env->ctl->group.node};
    if (out->role == NULL)
        return;
    xac_group_leader(env, out->leader);
    xac_token_of(env, 0, &token);
    out->generation = token.generation;
    left = durable > at ? durable - at : 0;
    if (xac_group_leads(env)) {
        out->replicated = at;
        out->behind = left;
    } else {
        out->applied = at;
        out->unread = left;
    }
    out->waiting = asked > answered ? asked - answered : 0;
}

/* add_holders -- locks that are held for long, at their participants. */
static void
add_holders(struct look *out)
{
    for (size_t i = 0; i < out->n_holders; i++) {
        const struct holder *h = &out->holder[i];

        for (size_t k = 0; k < out->n_participants && h->tid != 0; k++) {
            if (out->participant[k].pid == h->pid)
                add_words(out->participant[k].holds, "%s lock %.1f s", h->name,
                          (double)h->held_ns / 1e9);
        }
    }
}

/* ---- Pages that are written most ----------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* ring_pages -- of one recent commit; ret how many, 0 also if the entry is being written. */
static size_t
ring_pages(const struct xac_ring_entry *r, uint64_t page[XAC_RING_PAGES])
{
    /* Acquire: pairs with the release of the one that fills the entry (ctree.c). */
    uint64_t number = atomic_load_explicit(&r->number, memory_order_acquire);
    uint32_t n = atomic_load_explicit(&r->n_pages, memory_order_relaxed);

    if (number == 0 || n > XAC_RING_PAGES || r->is_unlink != 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        page[i] = get(&r->page[i]);
    /* Acquire: pairs with the release behind which it is filled again. */
    atomic_thread_fence(memory_order_acquire);
    return get(&r->number) == number ? n : 0;
}

/* name_page -- file and offset of an entry of the page table; false if it has gone. */
static bool
name_page(const struct xac_env *env, uint64_t at, struct look_page *out)
{
    uint64_t size = xac_shm_size(&env->shm), id;
    const struct xac_file *f;

    if (at == 0 || at + sizeof(struct xac_page) > size)
        return false;
    id = get(&((const struct xac_page *)xac_shm_at(&env->shm, at))->id);
    out->file = xac_page_file(id);
    out->offset = xac_page_no(id) * env->page_size;
    if (out->file == 0 || out->file > get(&env->ctl->files.count))
        return false;
    f = xac_file_at(env, out->file);
    if (atomic_load_explicit(&f->state, memory_order_relaxed) != XAC_FILE_KNOWN
        || f->path == 0 || f->path + f->path_len >= size)
        return false;
    (void)snprintf(out->path, sizeof out->path, "%s",
                   xac_file_path(env, out->file)
                       + (f->path_len < sizeof out->path
                              ? 0
                              : f->path_len - (sizeof out->path - 1)));
    return true;
}

/* insert_hot -- if it belongs to those written most. */
static void
insert_hot(const struct xac_env *env, struct look *out, uint64_t at, uint64_t commits)
{
    struct look_page page = {.commits = commits};
    size_t i = out->n_hot;

    if ((i == LOOK_HOT && out->hot[i - 1].commits >= commits)
        || !name_page(env, at, &page))
        return;
    if (i == LOOK_HOT)
        i--;
    else
        out->n_hot++;
    for (; i > 0 && out->hot[i - 1].commits < commits; i--)
        out->hot[i] = out->hot[i - 1];
    out->hot[i] = page;
}

static int
take_hot(const struct xac_env *env, struct look *out)
{
    const struct xac_ring_entry *ring = env->ctl->chain.ring;
    uint64_t *page =
        (uint64_t *)calloc((size_t)XAC_RING_ENTRIES * XAC_RING_PAGES, sizeof page[0]);
    size_t n = 0, run;

    if (page == NULL)
        return xac_err(ENOMEM, "pages");
    for (unsigned i = 0; i < XAC_RING_ENTRIES; i++) {
        size_t more = ring_pages(&ring[i], page + n);

        n += more;
        out->n_recent += more > 0;
    }
    qsort(page, n, sizeof page[0], compare);
    for (size_t i = 0; i < n; i += run) {
        for (run = 1; i + run < n && page[i + run] == page[i]; run++)
            ;
        insert_hot(env, out, page[i], run);
    }
    free(page);
    return 0;
}

/* ---- Space -------------------------------------------------------------------------- */

struct summed {
    int fd;
    uint64_t bytes;
};

/* add_file -- for xac_scan_names. */
static int
add_file(void *arg, const char *name)
{
    struct summed *sum = (struct summed *)arg;
    struct stat st;

    if (fstatat(sum->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        sum->bytes += (uint64_t)st.st_blocks * 512;
    return 0;
}

/* left_on -- bytes that the file system of a descriptor has left for this user. */
static uint64_t
left_on(int fd)
{
    struct statvfs v;

    return fstatvfs(fd, &v) == 0 ? (uint64_t)v.f_bavail * v.f_frsize : 0;
}

/* log_fd -- the log's directory, to be closed; -1 if it cannot be opened. */
static int
log_fd(const struct xac_env *env)
{
    char *path = NULL;
    int fd;

    if (xac_logdir_noted(env->dirfd, &path) != 0)
        return -1;
    fd = xac_sys.openat(env->dirfd, path != NULL ? path : ".",
                        O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    free(path);
    return fd;
}

static void
take_space(const struct xac_env *env, struct look *out)
{
    struct summed sum = {.fd = log_fd(env)};

    if (sum.fd >= 0) {
        (void)xac_scan_names(sum.fd, XAC_LOG_PREFIX, add_file, &sum);
        (void)xac_scan_names(sum.fd, XAC_DATA_PREFIX, add_file, &sum);
        out->space.log_left = left_on(sum.fd);
        (void)xac_sys.close(sum.fd);
    }
    out->space.log_files = sum.bytes;
    if (xac_env_is_durable(env))
        out->space.log_behind = out->s.log_tail - get(&env->ctl->chain.begin_lsn);
    out->space.files_left = left_on(env->dirfd);
    out->space.region = xac_shm_size(&env->shm);
    out->space.region_most = get(&env->ctl->shm.extent) >> 32 << 20;
    out->space.versions = out->s.frames * env->page_size;
    out->space.versions_used = out->s.versions_live * env->page_size;
    out->space.shared_left = left_on(env->shm.fd);
}

/* ---- All of it ----------------------------------------------------------------------- */

int
look_take(const struct xac_env *env, const struct look *before, struct look *out)
{
    int rc;

    *out = (struct look){.at_ns = xac_clock_ns()};
    xac_stats_read(env, &out->s);
    out->is_poisoned =
        atomic_load_explicit(&env->ctl->log.poisoned, memory_order_relaxed) != 0;
    rc = take_participants(env, out);
    if (rc == 0)
        rc = take_slots(env, before, out);
    if (rc == 0)
        rc = take_hot(env, out);
    if (rc == 0)
        rc = xac_participants_read(env, &out->party, &out->n_parties);
    if (xac_env_is_durable(env)) {
        take_followers(env, out);
        take_group(env, &out->group);
    }
    take_space(env, out);
    /* Last, since it may wait for a moment. */
    out->n_holders = holders_take(env, out->holder);
    add_holders(out);
    return rc;
}

void
look_free(struct look *look)
{
    free(look->participant);
    free(look->slot);
    free(look->snapshot);
    free(look->party);
    *look = (struct look){.at_ns = 0};
}

struct look_times
look_times_since(const struct look_times *now, const struct look_times *before)
{
    struct look_times t = {.sum_ns = now->sum_ns - before->sum_ns,
                           .count = now->count - before->count};

    for (unsigned i = 0; i < XAC_TIMES_BUCKETS; i++)
        t.n[i] = now->n[i] - before->n[i];
    return t;
}

uint64_t
look_times_part(const struct look_times *t, double part)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < XAC_TIMES_BUCKETS; i++) {
        n += t->n[i];
        if (t->n[i] > 0 && (double)n >= part * (double)t->count)
            return UINT64_C(1000) << i;
    }
    return 0;
}
