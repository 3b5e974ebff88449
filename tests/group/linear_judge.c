/* SPDX-License-Identifier: MIT */
/*
 * linear_judge.c -- see linear_judge.h.
 */
#include <config.h>

#include "linear_judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ERRORS_PRINTED 20
#define NOWHERE        UINT64_MAX

enum outcome {
    OPEN,
    DONE,
    UNCERTAIN,
    ABORTED
};

struct write {
    uint64_t id, begin, end;
    uint64_t place, count; /* as acknowledged                                         */
    uint64_t at;           /* in the list; NOWHERE                                   */
    uint32_t key;
    bool is_begun;
    enum outcome outcome;
};

struct read {
    enum judge_kind kind;
    unsigned node;
    uint64_t begin, end, least, n, last, count[JUDGE_KEYS];
};

/* A query that begins after that time must see so many. */
struct known {
    uint64_t time, n;
};

struct fate {
    uint64_t id;
    bool is_committed;
};

struct place {
    uint64_t place, id;
};

/* An array that grows. */
struct list {
    void *p;
    size_t n, max, size;
};

struct judge {
    struct list writes, reads, fates, places, deaths, known;
    FILE *err;
    struct judge_report *report;
};

#define AT(list, type, i) ((type *)(list).p + (i))

static const char *const names[JUDGE_WRONGS] = {
    "unreadable",
    "an acknowledged write is lost",
    "two nodes have acknowledged the same place",
    "an acknowledged write is elsewhere, or has another count",
    "a write is there twice",
    "a write is there that nobody has begun",
    "an aborted write is there",
    "a write stands before one that was acknowledged before it began",
    "a query has seen a mixture",
    "a query has seen what was begun after it",
    "a query has seen less than its token",
    "a linearizable query is stale",
    "a node has told the wrong fate",
};

const char *
judge_name(enum judge_wrong wrong)
{
    return wrong < JUDGE_WRONGS ? names[wrong] : "?";
}

__attribute__((format(printf, 3, 4))) static void
complain(struct judge *j, enum judge_wrong wrong, const char *format, ...)
{
    va_list args;

    j->report->n_wrong[wrong]++;
    if (j->report->n_errors++ >= ERRORS_PRINTED)
        return;
    fprintf(j->err, "%s: ", names[wrong]);
    va_start(args, format);
    (void)vfprintf(j->err, format, args);
    va_end(args);
    fputc('\n', j->err);
}

/* add -- one more element, of zeros. */
static void *
add(struct list *l, size_t size)
{
    if (l->n == l->max) {
        l->max = 2 * l->max + 64;
        l->p = realloc(l->p, l->max * size);
        if (l->p == NULL) {
            fprintf(stderr, "linear_judge: out of memory\n");
            exit(EXIT_FAILURE);
        }
    }
    l->size = size;
    return memset((char *)l->p + l->n++ * size, 0, size);
}

/* by_number -- every element begins with the number by which it is sorted. */
static int
by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void
sort(struct list *l)
{
    if (l->n > 1)
        qsort(l->p, l->n, l->size, by_number);
}

/* write_of -- the one with that number, or NULL; the writes are sorted. */
static struct write *
write_of(struct judge *j, uint64_t id)
{
    if (j->writes.n == 0)
        return NULL;
    return (struct write *)bsearch(&id, j->writes.p, j->writes.n, sizeof(struct write),
                                   by_number);
}

/* ---- Reading ------------------------------------------------------------------------ */

/* take_begin_or_end -- two lines, two elements: join() makes one of them. */
static bool
take_begin_or_end(struct judge *j, const char *line)
{
    struct write w = {.at = NOWHERE};
    char words[16] = "";
    int n;

    if (sscanf(line, "begin %" SCNu64 " %" SCNu32 " %" SCNu64, &w.id, &w.key, &w.begin)
        == 3) {
        w.is_begun = true;
    } else {
        n = sscanf(line, "end %" SCNu64 " %" SCNu64 " %15s %" SCNu64 " %" SCNu64, &w.id,
                   &w.end, words, &w.place, &w.count);
        w.outcome = n == 5 && strcmp(words, "done") == 0        ? DONE
                    : n == 3 && strcmp(words, "aborted") == 0   ? ABORTED
                    : n == 3 && strcmp(words, "uncertain") == 0 ? UNCERTAIN
                                                                : OPEN;
        if (w.outcome == OPEN)
            return false;
    }
    *(struct write *)add(&j->writes, sizeof w) = w;
    return w.key < JUDGE_KEYS;
}

static bool
take_read(struct judge *j, const char *line)
{
    static const char *const kinds[JUDGE_KINDS] = {"snapshot", "token", "latest"};
    struct read r = {.kind = JUDGE_KINDS};
    char kind[16];
    int used = 0;

    if (sscanf(line,
               "read %15s %u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               "%n",
               kind, &r.node, &r.begin, &r.end, &r.least, &r.n, &r.last, &used)
        != 7)
        return false;
    for (unsigned i = 0; i < JUDGE_KEYS; i++) {
        line += used;
        if (sscanf(line, " %" SCNu64 "%n", &r.count[i], &used) != 1)
            return false;
    }
    for (unsigned i = 0; i < JUDGE_KINDS; i++) {
        if (strcmp(kind, kinds[i]) == 0)
            r.kind = (enum judge_kind)i;
    }
    if (r.kind == JUDGE_KINDS)
        return false;
    *(struct read *)add(&j->reads, sizeof r) = r;
    return true;
}

static bool
take_other(struct judge *j, const char *line)
{
    struct place at;
    struct fate f;
    unsigned node;
    uint64_t time, least;
    char words[16];

    if (sscanf(line, "order %" SCNu64 " %" SCNu64, &at.place, &at.id) == 2) {
        *(struct place *)add(&j->places, sizeof at) = at;
    } else if (sscanf(line, "fate %" SCNu64 " %15s", &f.id, words) == 2) {
        f.is_committed = strcmp(words, "committed") == 0;
        *(struct fate *)add(&j->fates, sizeof f) = f;
        return f.is_committed || strcmp(words, "lost") == 0;
    } else if (sscanf(line, "death %" SCNu64, &time) == 1) {
        *(uint64_t *)add(&j->deaths, sizeof time) = time;
    } else if (sscanf(line, "lost %u %" SCNu64 " %" SCNu64, &node, &time, &least) == 3) {
        complain(j, JUDGE_FATE,
                 "node %u says at %" PRIu64 " that the first %" PRIu64 " are lost", node,
                 time, least);
    } else {
        return false;
    }
    return true;
}

static void
take(struct judge *j, const char *line)
{
    bool is_good;

    if (strncmp(line, "begin ", 6) == 0 || strncmp(line, "end ", 4) == 0)
        is_good = take_begin_or_end(j, line);
    else if (strncmp(line, "read ", 5) == 0)
        is_good = take_read(j, line);
    else
        is_good = take_other(j, line);
    if (!is_good)
        complain(j, JUDGE_UNREADABLE, "%s", line);
}

/* join -- the begin and the end of each write. */
static void
join(struct judge *j)
{
    size_t n = 0;

    sort(&j->writes);
    for (size_t i = 0; i < j->writes.n; i++) {
        struct write w = *AT(j->writes, struct write, i);
        struct write *last = n == 0 ? NULL : AT(j->writes, struct write, n - 1);

        if (last == NULL || last->id != w.id) {
            *AT(j->writes, struct write, n++) = w;
            continue;
        }
        if (w.is_begun ? last->is_begun : last->outcome != OPEN)
            complain(j, JUDGE_UNREADABLE, "%" PRIu64 " begins or ends twice", w.id);
        if (w.is_begun) {
            last->key = w.key;
            last->begin = w.begin;
            last->is_begun = true;
        } else {
            last->outcome = w.outcome;
            last->end = w.end;
            last->place = w.place;
            last->count = w.count;
        }
    }
    j->writes.n = n;
    for (size_t i = 0; i < n; i++) {
        const struct write *w = AT(j->writes, struct write, i);

        if (!w->is_begun)
            complain(j, JUDGE_UNREADABLE, "%" PRIu64 " ends and has not begun", w->id);
        j->report->n_acknowledged += w->outcome == DONE;
        j->report->n_uncertain += w->outcome == UNCERTAIN || w->outcome == OPEN;
        j->report->n_aborted += w->outcome == ABORTED;
    }
}

/* ---- Writes ------------------------------------------------------------------------- */

/* place_all -- (2): each write knows its place; the places become 0, 1, 2 and so on. */
static void
place_all(struct judge *j)
{
    sort(&j->places);
    for (uint64_t i = 0; i < j->places.n; i++) {
        const struct place *at = AT(j->places, struct place, i);
        struct write *w = write_of(j, at->id);

        if (at->place != i)
            complain(j, JUDGE_UNREADABLE, "the list has no place %" PRIu64, i);
        if (w == NULL || !w->is_begun) {
            complain(j, JUDGE_INVENTED, "%" PRIu64 " at %" PRIu64, at->id, i);
            continue;
        }
        if (w->outcome == ABORTED)
            complain(j, JUDGE_ABORTED, "%" PRIu64 " at %" PRIu64, at->id, i);
        if (w->at != NOWHERE)
            complain(j, JUDGE_TWICE, "%" PRIu64 " at %" PRIu64 " and %" PRIu64, at->id,
                     w->at, i);
        else
            w->at = i;
    }
}

/* written_at -- the write at a place, or NULL. */
static struct write *
written_at(struct judge *j, uint64_t place)
{
    return place < j->places.n ? write_of(j, AT(j->places, struct place, place)->id)
                               : NULL;
}

/* check_acknowledged -- (1) but for the counts. */
static void
check_acknowledged(struct judge *j)
{
    for (size_t i = 0; i < j->writes.n; i++) {
        const struct write *w = AT(j->writes, struct write, i), *other;

        if (w->outcome != DONE || w->at == w->place)
            continue;
        other = written_at(j, w->place);
        if (other != NULL && other->outcome == DONE && other->place == w->place)
            complain(j, JUDGE_SPLIT,
                     "%" PRIu64 " (%" PRIu64 " to %" PRIu64 ") and %" PRIu64 " (%" PRIu64
                     " to %" PRIu64 ") at %" PRIu64,
                     w->id, w->begin, w->end, other->id, other->begin, other->end,
                     w->place);
        if (w->at == NOWHERE)
            complain(j, JUDGE_LOST,
                     "%" PRIu64 ", acknowledged at %" PRIu64 " for %" PRIu64, w->id,
                     w->end, w->place);
        else
            complain(j, JUDGE_MOVED, "%" PRIu64 " at %" PRIu64 ", not %" PRIu64, w->id,
                     w->at, w->place);
    }
}

/* check_order -- (3): from the end, the earliest time at which one behind was acknowledged. */
static void
check_order(struct judge *j)
{
    const struct write *earliest = NULL;

    for (uint64_t i = j->places.n; i-- > 0;) {
        const struct write *w = written_at(j, i);

        if (w == NULL || w->at != i)
            continue;
        if (earliest != NULL && earliest->end < w->begin)
            complain(j, JUDGE_ORDER,
                     "%" PRIu64 " begins at %" PRIu64 " and stands before %" PRIu64
                     ", acknowledged at %" PRIu64,
                     w->id, w->begin, earliest->id, earliest->end);
        if (w->outcome == DONE && (earliest == NULL || w->end < earliest->end))
            earliest = w;
    }
}

static void
check_fates(struct judge *j)
{
    j->report->n_fates = j->fates.n;
    for (size_t i = 0; i < j->fates.n; i++) {
        const struct fate *f = AT(j->fates, struct fate, i);
        const struct write *w = write_of(j, f->id);

        if (f->is_committed != (w != NULL && w->at != NOWHERE))
            complain(j, JUDGE_FATE, "%" PRIu64 " is said to be %s", f->id,
                     f->is_committed ? "committed" : "lost");
    }
}

/* ---- Reads -------------------------------------------------------------------------- */

/* by_seen -- reads, by what they have seen. */
static int
by_seen(const void *a, const void *b)
{
    uint64_t x = ((const struct read *)a)->n, y = ((const struct read *)b)->n;

    return (x > y) - (x < y);
}

/* check_one -- (4), (5) and (6), beside the list up to there. */
static void
check_one(struct judge *j, const struct read *r, const uint64_t count[JUDGE_KEYS],
          const struct write *newest)
{
    uint64_t last = r->n == 0 ? 0 : AT(j->places, struct place, r->n - 1)->id;

    if (r->last != last || memcmp(r->count, count, sizeof r->count) != 0)
        complain(j, JUDGE_MIXTURE,
                 "at node %u from %" PRIu64 ": %" PRIu64 " records, the last %" PRIu64
                 ", not %" PRIu64 "%s",
                 r->node, r->begin, r->n, r->last, last,
                 r->last == last ? ", or other counters" : "");
    if (newest != NULL && newest->begin > r->end)
        complain(j, JUDGE_FUTURE,
                 "at node %u until %" PRIu64 ": %" PRIu64 ", begun at %" PRIu64, r->node,
                 r->end, newest->id, newest->begin);
    if (r->kind == JUDGE_TOKEN && r->n < r->least)
        complain(j, JUDGE_OLDER_THAN_TOKEN,
                 "at node %u from %" PRIu64 ": %" PRIu64 " records, not %" PRIu64,
                 r->node, r->begin, r->n, r->least);
}

/* walk -- the list from its beginning, and look at what has seen so much of it; also the counts of (1). */
static void
walk(struct judge *j)
{
    uint64_t count[JUDGE_KEYS] = {0};
    const struct write *newest = NULL;
    size_t k = 0;

    if (j->reads.n > 1)
        qsort(j->reads.p, j->reads.n, sizeof(struct read), by_seen);
    for (uint64_t i = 0;; i++) {
        const struct write *w;

        for (; k < j->reads.n && AT(j->reads, struct read, k)->n == i; k++)
            check_one(j, AT(j->reads, struct read, k), count, newest);
        if (i == j->places.n)
            break;
        w = written_at(j, i);
        if (w == NULL)
            continue;
        count[w->key]++;
        if (w->outcome == DONE && w->at == i && w->count != count[w->key])
            complain(j, JUDGE_MOVED,
                     "%" PRIu64 " has the count %" PRIu64 ", not %" PRIu64, w->id,
                     count[w->key], w->count);
        if (newest == NULL || w->begin > newest->begin)
            newest = w;
    }
    for (; k < j->reads.n; k++) {
        const struct read *r = AT(j->reads, struct read, k);

        complain(j, JUDGE_LOST, "node %u has seen %" PRIu64 " of %zu", r->node, r->n,
                 j->places.n);
    }
}

/* learn -- what must be seen behind which time. */
static void
learn(struct judge *j)
{
    uint64_t most = 0;

    for (size_t i = 0; i < j->writes.n; i++) {
        const struct write *w = AT(j->writes, struct write, i);

        if (w->outcome == DONE)
            *(struct known *)add(&j->known, sizeof(struct known)) =
                (struct known){.time = w->end, .n = w->place + 1};
    }
    for (size_t i = 0; i < j->reads.n; i++) {
        const struct read *r = AT(j->reads, struct read, i);

        *(struct known *)add(&j->known, sizeof(struct known)) =
            (struct known){.time = r->end, .n = r->n};
        j->report->n_reads[r->kind]++;
    }
    sort(&j->known);
    for (size_t i = 0; i < j->known.n; i++) {
        struct known *k = AT(j->known, struct known, i);

        most = k->n > most ? k->n : most;
        k->n = most;
    }
}

/* known_before -- the least that one who begins then must see. */
static uint64_t
known_before(struct judge *j, uint64_t time)
{
    size_t low = 0, high = j->known.n;

    while (
        low
        < high) { /* all before low are earlier than the time, all from high on are not */
        size_t middle = low + (high - low) / 2;

        if (AT(j->known, struct known, middle)->time < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? 0 : AT(j->known, struct known, low - 1)->n;
}

/* check_latest -- (7). */
static void
check_latest(struct judge *j)
{
    for (size_t i = 0; i < j->reads.n; i++) {
        const struct read *r = AT(j->reads, struct read, i);
        uint64_t least = known_before(j, r->begin);

        if (r->kind == JUDGE_LATEST && r->n < least)
            complain(j, JUDGE_STALE,
                     "at node %u from %" PRIu64 " to %" PRIu64 ": %" PRIu64
                     " records, not %" PRIu64,
                     r->node, r->begin, r->end, r->n, least);
    }
}

/* ---- Deaths ------------------------------------------------------------------------- */

/* measure -- how long nothing was acknowledged behind each death. */
static void
measure(struct judge *j)
{
    struct list waits = {.p = NULL};

    for (size_t i = 0; i < j->deaths.n; i++) {
        uint64_t died = *AT(j->deaths, uint64_t, i), first = UINT64_MAX;

        for (size_t k = 0; k < j->writes.n; k++) {
            const struct write *w = AT(j->writes, struct write, k);

            if (w->outcome == DONE && w->begin > died && w->end < first)
                first = w->end;
        }
        if (first != UINT64_MAX)
            *(uint64_t *)add(&waits, sizeof first) = first - died;
    }
    sort(&waits);
    j->report->n_deaths = waits.n;
    if (waits.n > 0) {
        j->report->wait_ns_median = *AT(waits, uint64_t, waits.n / 2);
        j->report->wait_ns_max = *AT(waits, uint64_t, waits.n - 1);
    }
    free(waits.p);
}

void
judge_history(FILE *history, FILE *err, struct judge_report *out)
{
    struct judge j = {.err = err, .report = out};
    char line[1024];

    memset(out, 0, sizeof *out);
    while (fgets(line, sizeof line, history) != NULL) {
        if (strchr(line, '\n') == NULL) {
            complain(&j, JUDGE_UNREADABLE, "a line has no end: %s", line);
            break;
        }
        line[strcspn(line, "\n")] = '\0';
        take(&j, line);
    }
    join(&j);
    place_all(&j);
    check_acknowledged(&j);
    check_order(&j);
    check_fates(&j);
    walk(&j);
    learn(&j);
    check_latest(&j);
    measure(&j);
    free(j.writes.p);
    free(j.reads.p);
    free(j.fates.p);
    free(j.places.p);
    free(j.deaths.p);
    free(j.known.p);
}
