/* SPDX-License-Identifier: MIT */
/*
 * top.c -- see top.h.
 *
 * A screen is made as text first.  A line that begins with HEADING is shown in reverse video.  On a
 * terminal each line is cut to its width and written over the one before, so nothing flickers.
 */
#include <config.h>

#include "top.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "env/peek.h"
#include "parties.h"
#include "tool.h"

#define HEADING '\1'
#define BAR     24 /* characters of the longest bar of a histogram                     */

/* ---- What a screen says -------------------------------------------------------------- */

/* bytes_words -- a size for people; ret buf. */
static const char *
bytes_words(double bytes, char buf[16])
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    size_t i = 0;

    for (; bytes >= 1000 && i + 1 < sizeof units / sizeof units[0]; i++)
        bytes /= 1000;
    (void)snprintf(buf, 16, i == 0 ? "%.0f %s" : "%.1f %s", bytes, units[i]);
    return buf;
}

/* time_words -- a time, a power of two of microseconds, for people; ret buf. */
static const char *
time_words(uint64_t ns, char buf[16])
{
    if (ns < 1000000)
        (void)snprintf(buf, 16, "%" PRIu64 " us", ns / 1000);
    else if (ns < 1000000000)
        (void)snprintf(buf, 16, "%.3g ms", (double)ns / 1e6);
    else
        (void)snprintf(buf, 16, "%.2g s", (double)ns / 1e9);
    return buf;
}

/* plain -- a path without characters that a terminal would obey; ret buf. */
static const char *
plain(const char *path, char buf[256])
{
    size_t n = 0;

    for (; path[n] != '\0' && n < 255; n++)
        buf[n] = (unsigned char)path[n] < 0x20 || path[n] == 0x7f ? '?' : path[n];
    buf[n] = '\0';
    return buf;
}

static void
put_rates(FILE *f, const struct look *old, const struct look *new)
{
    const struct xac_stats *a = &old->s, *b = &new->s;
    double s = (double)(new->at_ns - old->at_ns) / 1e9;
    char buf[16];

#define RATE(field) ((double)(b->field - a->field) / s)
    fprintf(f,
            "per second: %.0f commits, %.0f read-only, %.0f queries, %.0f aborts (%.0f"
            " for a conflict), %.0f traps, %.0f pages\n",
            RATE(commits), RATE(commits_read_only), RATE(queries),
            RATE(aborts_conflict) + RATE(aborts_user) + RATE(aborts_other),
            RATE(aborts_conflict), RATE(traps_read) + RATE(traps_write),
            RATE(pages_written));
    fprintf(f, "log:        %s and %.0f syncs a second",
            bytes_words(RATE(log_bytes), buf), RATE(log_syncs));
#undef RATE
    fprintf(f, "; %s not synced",
            bytes_words((double)(b->log_tail - b->log_durable), buf));
    fprintf(f, "; %s since the last checkpoint\n",
            bytes_words((double)new->space.log_behind, buf));
}

static void
put_state(FILE *f, const struct look *new)
{
    const struct look_space *p = &new->space;
    const struct xac_stats *s = &new->s;
    char a[16], b[16], c[16];

    fprintf(f,
            "versions:   %" PRIu64 " of %" PRIu64 " slots in use (%s of %s), %" PRIu64
            " kept for readers",
            s->versions_live, s->frames, bytes_words((double)p->versions_used, a),
            bytes_words((double)p->versions, b), s->versions_held);
    if (s->oldest_pid != 0)
        fprintf(f,
                "\nreaders:    process %" PRIu64 " has read for %.1f s, and is %" PRIu64
                " commits behind",
                s->oldest_pid, (double)s->oldest_age_ns / 1e9, s->oldest_behind);
    if (new->n_snapshots > 0)
        fprintf(f, "\nsnapshots:  %zu held (xstat without --top lists them)",
                new->n_snapshots);
    fprintf(f, "\nspace:      log %s, %s left; files: %s left;",
            bytes_words((double)p->log_files, a), bytes_words((double)p->log_left, b),
            bytes_words((double)p->files_left, c));
    fprintf(f, " shared memory %s of %s, %s left\n", bytes_words((double)p->region, a),
            bytes_words((double)p->region_most, b),
            bytes_words((double)p->shared_left, c));
    if (new->is_poisoned)
        fputs("POISONED by a failed write or sync; all must detach\n", f);
    if (s->checkpoint_failures != 0)
        fprintf(f, "%" PRIu64 " checkpoint%s failed, the last one: %s\n",
                s->checkpoint_failures, plural(s->checkpoint_failures),
                xac_strerror((int)s->checkpoint_error));
}

/* put_group -- of a standby, or a node of a group. */
static void
put_group(FILE *f, const struct look_group *g)
{
    bool leads = g->replicated != 0;
    char buf[16], leader[256];

    if (g->role == NULL)
        return;
    fprintf(f, "%-11s %s", g->node != 0 ? "group:" : "standby:", g->role);
    if (g->node != 0)
        fprintf(f, ", node %" PRIu64, g->node);
    fprintf(f, ", generation %" PRIu64, g->generation);
    if (g->leader[0] != '\0')
        fprintf(f, "; leader: %s", plain(g->leader, leader));
    fprintf(f, "; %s %s", bytes_words((double)(leads ? g->behind : g->unread), buf),
            leads ? "not on a majority" : "not redone");
    if (g->node != 0)
        fprintf(f, "; %" PRIu64 " quer%s to hear what is newest", g->waiting,
                g->waiting == 1 ? "y waits" : "ies wait");
    fputc('\n', f);
}

/* put_bar -- one bar, with its number. */
static void
put_bar(FILE *f, uint64_t n, uint64_t most)
{
    char bar[BAR + 1];
    size_t length = most == 0 ? 0 : (size_t)((n * BAR + most - 1) / most);

    memset(bar, '#', length);
    bar[length] = '\0';
    fprintf(f, "%8" PRIu64 " %-*s", n, BAR, bar);
}

static uint64_t
most_of(const struct look_times *t)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < XAC_TIMES_BUCKETS; i++)
        most = t->n[i] > most ? t->n[i] : most;
    return most;
}

/* put_times -- two histograms side by side, the rows that either needs. */
static void
put_times(FILE *f, const struct look_times *commits, const struct look_times *syncs)
{
    unsigned first = 0, last = XAC_TIMES_BUCKETS;
    char a[16], b[20];

    while (first < XAC_TIMES_BUCKETS && commits->n[first] == 0 && syncs->n[first] == 0)
        first++;
    while (last > first && commits->n[last - 1] == 0 && syncs->n[last - 1] == 0)
        last--;
    fprintf(f, "%c%-10s %-*s %s\n", HEADING, "TIME", BAR + 9, "COMMITS", "SYNCS");
    for (unsigned i = first; i < last; i++) {
        bool is_end = i + 1 == XAC_TIMES_BUCKETS;

        (void)time_words(UINT64_C(1000) << (is_end ? i - 1 : i), a);
        (void)snprintf(b, sizeof b, "%s%s", is_end ? ">= " : "< ", a);
        fprintf(f, "%-10s ", b);
        put_bar(f, commits->n[i], most_of(commits));
        fputc(' ', f);
        put_bar(f, syncs->n[i], most_of(syncs));
        fputc('\n', f);
    }
    fprintf(f, "%-10s half below %s,", "", time_words(look_times_part(commits, 0.5), a));
    fprintf(f, " 99 of 100 below %s;", time_words(look_times_part(commits, 0.99), a));
    fprintf(f, " syncs %s,", time_words(look_times_part(syncs, 0.5), a));
    fprintf(f, " %s\n", time_words(look_times_part(syncs, 0.99), a));
}

/* by_age -- those with the oldest transaction first, then those that commit most. */
static int
by_age(const void *a, const void *b)
{
    const struct look_participant *x = (const struct look_participant *)a;
    const struct look_participant *y = (const struct look_participant *)b;

    if (x->age_ns != y->age_ns)
        return x->age_ns > y->age_ns ? -1 : 1;
    return x->commits > y->commits ? -1 : x->commits < y->commits;
}

static void
put_participants(FILE *f, struct look *new, double s)
{
    qsort(new->participant, new->n_participants, sizeof new->participant[0], by_age);
    fprintf(f, "%c%8s %-8s %5s %7s %7s %8s %10s  %-22s %s\n", HEADING, "PID", "PROCESS",
            "OPEN", "QUERIES", "PAGES", "AGE s", "COMMITS/s", "HOLDS", "WAITS FOR");
    for (size_t i = 0; i < new->n_participants; i++) {
        const struct look_participant *p = &new->participant[i];

        fprintf(f,
                "%8" PRIu32 " %-8s %5" PRIu64 " %7" PRIu64 " %7" PRIu64 " %8.1f %10.0f"
                "  %-22s %s\n",
                p->pid, p->process, p->n_open, p->n_queries, p->n_pages,
                (double)p->age_ns / 1e9, (double)p->commits / s, p->holds, p->waits);
    }
}

static void
put_hot(FILE *f, const struct look *new)
{
    char path[256];

    fprintf(f, "%c%8s %16s  %s (of the last %" PRIu64 " commits)\n", HEADING, "COMMITS",
            "OFFSET", "PAGES WRITTEN MOST", new->n_recent);
    for (size_t i = 0; i < new->n_hot; i++)
        fprintf(f, "%8" PRIu64 " %16" PRIu64 "  %s\n", new->hot[i].commits,
                new->hot[i].offset, plain(new->hot[i].path, path));
}

/* make_screen -- ret the text, to be freed; NULL: no memory. */
static char *
make_screen(const struct xac_env *env, const char *dir, const struct look *old,
            struct look *new)
{
    struct look_times commits = look_times_since(&new->commit_times, &old->commit_times);
    struct look_times syncs = look_times_since(&new->sync_times, &old->sync_times);
    double s = (double)(new->at_ns - old->at_ns) / 1e9;
    char *text = NULL, path[256], now[16];
    time_t t = time(NULL);
    struct tm tm;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    if (f == NULL)
        return NULL;
    (void)strftime(now, sizeof now, "%H:%M:%S", localtime_r(&t, &tm));
    fprintf(f, "xstat %s  %s: %s, %" PRIu64 " participant%s, commit %" PRIu64 "\n", now,
            plain(dir, path), xac_env_is_durable(env) ? "durable" : "not durable",
            new->s.participants, plural(new->s.participants), new->s.commit_number);
    put_rates(f, old, new);
    put_state(f, new);
    put_group(f, &new->group);
    put_times(f, &commits, &syncs);
    put_participants(f, new, s);
    parties_print(f, new, (const char[]){HEADING, 0});
    put_hot(f, new);
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- The terminal -------------------------------------------------------------------- */

static volatile sig_atomic_t is_ended;

static void
end(int signal)
{
    (void)signal;
    is_ended = 1;
}

/* put_screen -- on a terminal, at most its size. */
static void
put_screen(const char *text)
{
    struct winsize w = {.ws_row = 0};
    size_t rows, columns, row = 0;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_row == 0 || w.ws_col == 0)
        w = (struct winsize){.ws_row = 24, .ws_col = 80};
    rows = w.ws_row;
    columns = w.ws_col;
    fputs("\033[H", stdout);
    for (const char *p = text; *p != '\0' && row < rows; row++) {
        bool is_heading = *p == HEADING;
        size_t length = strcspn(p += is_heading, "\n");
        int shown = (int)(length < columns ? length : columns);

        if (row > 0)
            fputs("\r\n", stdout);
        printf("%s%.*s\033[K%s", is_heading ? "\033[7m" : "", shown, p,
               is_heading ? "\033[m" : "");
        p += length + (p[length] == '\n');
    }
    fputs("\033[J", stdout);
}

static void
put_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text != HEADING)
            putchar(*text);
    }
}

/* terminal_begin -- keys come at once and unseen, the cursor is hidden; ret whether to undo it. */
static bool
terminal_begin(struct termios *before)
{
    struct sigaction act = {.sa_handler = end};
    struct termios keys;

    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, before) != 0)
        return false;
    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
    (void)sigaction(SIGHUP, &act, NULL);
    keys = *before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    fputs("\033[?25l\033[2J", stdout);
    return true;
}

static void
terminal_end(const struct termios *before)
{
    fputs("\033[?25h\r\n", stdout);
    (void)fflush(stdout);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, before);
}

/* pause_for -- wait; ret false if the user wants to leave. */
static bool
pause_for(double s, bool has_keys)
{
    struct pollfd in = {.fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN};
    int n = poll(&in, 1, (int)(s * 1000));
    char key;

    if (is_ended != 0)
        return false;
    if (n > 0 && read(STDIN_FILENO, &key, 1) == 1)
        return key != 'q' && key != 'Q';
    return n <= 0 || (in.revents & POLLHUP) == 0;
}

/* run -- screens; ret 0 or an error. */
static int
run(const struct xac_env *env, const char *dir, double interval_s, uint64_t count,
    bool is_screen, bool has_keys, bool *is_over)
{
    struct look old, new;
    int rc = look_take(env, NULL, &old);

    for (uint64_t i = 0; rc == 0 && (count == 0 || i < count); i++) {
        char *text;

        if (!pause_for(interval_s, has_keys))
            break;
        *is_over = xac_peek_is_over(env);
        if (*is_over)
            break;
        rc = look_take(env, &old, &new);
        text = rc == 0 ? make_screen(env, dir, &old, &new) : NULL;
        if (rc == 0 && text == NULL)
            rc = xac_err(ENOMEM, "the screen");
        if (rc == 0)
            (is_screen ? put_screen : put_text)(text);
        free(text);
        look_free(&old);
        old = new;
        if (fflush(stdout) != 0)
            break;
    }
    look_free(&old);
    return rc;
}

int
top_run(const struct xac_env *env, const char *dir, double interval_s, uint64_t count,
        bool *is_over)
{
    bool is_screen = count != 1 && isatty(STDOUT_FILENO);
    struct termios before;
    bool has_keys;
    int rc;

    if (!is_screen)
        return run(env, dir, interval_s, 1, false, false, is_over);
    has_keys = terminal_begin(&before);
    rc = run(env, dir, interval_s, count, true, has_keys, is_over);
    if (has_keys)
        terminal_end(&before);
    return rc;
}
