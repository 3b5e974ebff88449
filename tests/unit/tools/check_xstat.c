/* SPDX-License-Identifier: MIT */
/*
 * check_xstat.c -- what xstat --top, --json and --prometheus say of participants, what they hold and
 * wait for, pages, times and space.
 *
 * Goal    The numbers are right for children that have done a known amount of work; each output is well
 *         formed; a terminal is left as it was.
 * Method  Children commit a known number of times and then hold a query, a transaction or the turn
 *         until they are killed.  The Prometheus text is read by a parser of its format here, and by
 *         promtool if there is one.
 */
#define XAC_NO_DEPRECATED
#include <config.h>

#include <poll.h>
#include <pty.h>
#include <regex.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <utmp.h>

#include "api/api.h"

#include "tests/common/recover_env.h"
#include "tests/common/tool_run.h"
#include "base/times.h"

#define COMMITS 40

/* What a child does behind its commits. */
enum then {
    QUERY,
    OPEN, /* a transaction: under the serial policy it has the turn                    */
    BEGIN /* it is blocked in xac_begin() behind the one that has the turn             */
};

static int
run(const char *arguments)
{
    return tool_run("xstat", arguments, s.dir);
}

static void
say(int ready)
{
    if (write(ready, "", 1) != 1)
        _exit(1);
}

/* work -- of a child: COMMITS transactions on page 1 of "live", every fourth one also on page 3. */
static void
work(const char *dir, bool is_durable, enum then then, int ready)
{
    char *base;

    if (xac_set_option(XAC_OPT_POLICY, XAC_POLICY_SERIAL) != 0
        || xac_init(dir, is_durable ? XAC_DURABLE : XAC_NONDURABLE) != 0
        || chdir(dir) != 0)
        _exit(1);
    base = (char *)xac_mmap("live", 4 * 4096);
    for (int i = 0; i < COMMITS && then != BEGIN; i++) {
        if (xac_begin() != 0)
            _exit(1);
        base[4096]++;
        if (i % 4 == 0)
            base[3 * 4096]++;
        if (xac_end() != XAC_COMMITTED)
            _exit(1);
    }
    if (then == BEGIN)
        say(ready);
    if ((then == QUERY ? xac_begin_query() : xac_begin()) != 0 || base[4096] == 0)
        _exit(1);
    if (then == OPEN)
        base[2 * 4096]++;
    say(ready);
    for (;;)
        pause();
}

static pid_t
start(bool is_durable, enum then then)
{
    int ready[2];
    char byte;
    pid_t pid;

    ck_assert_int_eq(pipe(ready), 0);
    pid = fork();
    if (pid == 0)
        work(s.dir, is_durable, then, ready[1]);
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void
end(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static void
tidy(void)
{
    ck_assert_int_eq(xac_recover(s.dir), 0); /* deletes the region */
}

/* ck_finds -- does a line of the output match? */
static void
ck_finds(const char *format, ...)
{
    char pattern[500];
    regex_t re;
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(pattern, sizeof pattern, format, ap);
    va_end(ap);
    ck_assert_int_eq(regcomp(&re, pattern, REG_EXTENDED | REG_NEWLINE | REG_NOSUB), 0);
    ck_assert_msg(regexec(&re, output, 0, NULL, 0) == 0, "no line matches %s:\n%s",
                  pattern, output);
    regfree(&re);
}

/* ---- JSON --------------------------------------------------------------------------- */

START_TEST(json_has_what_participants_did)
{
    bool is_durable = _i == 0;
    pid_t pid;

    synth_open(&s, 4096, 65536);
    pid = start(is_durable, QUERY);
    ck_assert_int_eq(run("--json"), 0);
    ck_finds(
        "\"processes\": \\[\\{\"pid\": %d, \"state\": \"running\", \"is_reader\": false,"
        " \"transactions_open\": 0, \"queries_open\": 1, .*\"commits\": %d,",
        (int)pid, COMMITS);
    ck_finds(
        "\"hot_pages\": \\[\\{\"file\": \"live\", \"offset\": 4096, \"commits\": %d\\},"
        " \\{\"file\": \"live\", \"offset\": 12288, \"commits\": %d\\}\\]",
        COMMITS, COMMITS / 4);
    ck_finds("\"commit_times\": \\{\"count\": %d, \"sum_ns\": [1-9]",
             is_durable ? COMMITS
                        : (COMMITS + XAC_COMMITS_TIMED - 1) / XAC_COMMITS_TIMED);
    ck_finds(is_durable ? "\"sync_times\": \\{\"count\": [1-9][0-9]*, \"sum_ns\": [1-9]"
                        : "\"sync_times\": \\{\"count\": 0, \"sum_ns\": 0,");
    ck_finds(is_durable ? "\"log_files\": [1-9]" : "\"log_files\": 0");
    ck_finds("\"region\": [1-9][0-9]+, \"region_most\": [1-9][0-9]+,");
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
    ck_assert_int_eq(run("--json"), 0);
    ck_finds("\"pid\": %d, \"state\": \"stopped\"", (int)pid);
    end(pid);
    ck_assert_int_eq(run("--json"), 0);
    ck_says("\"attached\": false");
    tidy();
}
END_TEST

/* check_threads -- the one has written a page, the other waits for it. */
static void
check_threads(pid_t holder, pid_t waiter)
{
    ck_finds(
        "PID +TID COMMAND +PROCESS ENGINE +KIND +AGE s +READ WRITTEN +HELD LOG HELD");
    ck_finds("^ *%d +%d [^ ]+ +running [a-z]+ +update +[0-9.]+ +[0-9]+ +1 +0 +",
             (int)holder, (int)holder);
    ck_finds("^ *%d +%d [^ ]+ +running [a-z]+ +idle .* turn of %d [0-9.]+ s *$",
             (int)waiter, (int)waiter, (int)holder);
}

START_TEST(json_says_who_waits_for_the_turn)
{
    pid_t holder, waiter;

    synth_open(&s, 4096, 65536);
    holder = start(true, OPEN);
    waiter = start(true, BEGIN);
    for (int i = 0; i < 1000; i++) { /* it has said that it is about to wait */
        ck_assert_int_eq(run("--json"), 0);
        if (strstr(output, "\"waits_for\": \"turn") != NULL)
            break;
    }
    ck_finds("\"pid\": %d, .*\"transactions_open\": 1, .*\"pages_touched\": [1-9], .*"
             "\"holds\": \"turn\", \"waits_for\": \"\"",
             (int)holder);
    ck_finds("\"pid\": %d, .*\"waits_for\": \"turn of %d\"", (int)waiter, (int)holder);
    ck_finds("\"threads\": .*\"pid\": %d, \"tid\": %d, .*\"waits_for\": \"turn\", "
             "\"waits_pid\": %d, \"waits_ns\": [1-9]",
             (int)waiter, (int)waiter, (int)holder);
    ck_assert_int_eq(run("--top --once --watch=0.1"), 0);
    ck_finds("^ *%d running +1 +0 +[1-9][0-9]* .* turn *$", (int)holder);
    ck_finds("^ *%d running .* turn of %d$", (int)waiter, (int)holder);
    check_threads(holder, waiter); /* of xParticipants() */
    ck_assert_int_eq(run(""), 0);
    check_threads(holder, waiter);
    end(holder);
    end(waiter);
    tidy();
}
END_TEST

/* hold -- of a child: two snapshots, one of which it names. */
static void
hold(const char *dir, int ready)
{
    uint64_t id;

    if (xac_set_option(XAC_OPT_HISTORY, 60) != 0 || xac_init(dir, XAC_NONDURABLE) != 0
        || xac_snapshot(&id) != 0 || xac_snapshot(&id) != 0
        || xac_snapshot_keep(id, "the \"report\"", 1000) != 0)
        _exit(1);
    say(ready);
    for (;;)
        pause();
}

START_TEST(snapshots_are_listed)
{
    int ready[2];
    char byte;
    pid_t pid;

    synth_open(&s, 4096, 65536);
    ck_assert_int_eq(pipe(ready), 0);
    pid = fork();
    if (pid == 0)
        hold(s.dir, ready[1]);
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    ck_assert_int_eq(run("--json"), 0);
    ck_finds(
        "\"snapshots\": \\[\\{\"id\": [1-9][0-9]*, \"commit\": 0, \"pid\": %d, "
        "\"name\": \"\", \"age_ns\": [0-9]+, \"left_ns\": 0\\}, \\{\"id\": [1-9][0-9]*, "
        "\"commit\": 0, \"pid\": 0, \"name\": \"the \\\\\"report\\\\\"\", "
        "\"age_ns\": [0-9]+, \"left_ns\": [1-9]",
        (int)pid);
    ck_assert_int_eq(run(""), 0);
    ck_finds("^  history back to commit 0, of 20[0-9-]+T[0-9:.]+Z$");
    ck_finds("^  snapshot [1-9][0-9]* of commit 0, for [0-9.]+ s, process %d$", (int)pid);
    ck_finds("^  snapshot [1-9][0-9]* of commit 0, for [0-9.]+ s, named the \"report\", "
             "for (9[0-9]+|1000).[0-9] s more$");
    ck_assert_int_eq(run("--prometheus"), 0);
    ck_finds("^xac_snapshots\\{.*\\} 2$");
    end(pid);
    tidy();
}
END_TEST

/* ---- Top ---------------------------------------------------------------------------- */

START_TEST(top_without_terminal_is_one_screen)
{
    pid_t pid;

    synth_open(&s, 4096, 65536);
    pid = start(true, QUERY);
    ck_assert_int_eq(run(_i == 0 ? "--top --watch=0.05" : "--top --once --watch=0.05"),
                     0);
    ck_finds(": durable, 1 participant, commit %d$", COMMITS);
    ck_finds("^per second: 0 commits,");
    ck_finds("^ *%d running +0 +1 +", (int)pid);
    ck_finds("^ *%d +4096  live$", COMMITS);
    ck_finds("^ *%d +12288  live$", COMMITS / 4);
    ck_finds("^space: .* left$");
    ck_assert_ptr_null(strchr(output, '\033'));
    ck_assert_ptr_null(strchr(output, '\1'));
    end(pid);
    tidy();
}
END_TEST

START_TEST(top_counts_times_while_it_looks)
{
    pid_t pid;

    synth_open(&s, 4096, 65536);
    pid = fork();
    if (pid == 0) {
        char *base;

        if (xac_init(s.dir, XAC_DURABLE) != 0 || chdir(s.dir) != 0)
            _exit(1);
        base = (char *)xac_mmap("live", 4096);
        for (;;) {
            if (xac_begin() != 0)
                _exit(1);
            base[0]++;
            if (xac_end() != XAC_COMMITTED)
                _exit(1);
        }
    }
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(run("--top --once --watch=0.3"), 0);
        if (strstr(output, "half below") != NULL
            && strstr(output, "half below 0 us") == NULL)
            break;
    }
    ck_finds("^per second: [1-9][0-9]* commits,");
    ck_finds("^< [0-9.]+ [um]s +[0-9]+ #+ +[0-9]+ ");
    ck_finds("^ *%d running .* [1-9][0-9]* ", (int)pid);
    end(pid);
    tidy();
}
END_TEST

/* more -- of what a terminal shows; ret false at its end. */
static bool
more(int fd, size_t *n)
{
    struct pollfd in = {.fd = fd, .events = POLLIN};
    ssize_t got;

    ck_assert_msg(poll(&in, 1, 60000) == 1, "nothing comes behind:\n%s", output);
    got = read(fd, output + *n, sizeof output - 1 - *n);
    if (got <= 0)
        return false;
    *n += (size_t)got;
    output[*n] = '\0';
    return true;
}

/* A terminal of 20 lines and 60 columns; it ends by the key q, or by a signal. */
START_TEST(top_on_a_terminal_can_be_left)
{
    struct winsize size = {.ws_row = 20, .ws_col = 60};
    struct termios before, after;
    char tool[500];
    int terminal, other, status;
    size_t n = 0, lines = 0;
    pid_t pid, top;

    synth_open(&s, 4096, 65536);
    pid = start(true, QUERY);
    (void)snprintf(tool, sizeof tool, "%s/xstat", getenv("top_builddir"));
    ck_assert_int_eq(openpty(&terminal, &other, NULL, NULL, &size), 0);
    ck_assert_int_eq(tcgetattr(other, &before), 0);
    top = fork();
    if (top == 0) {
        close(terminal);
        if (login_tty(other) == 0)
            (void)execl(tool, "xstat", "--top", "--watch=0.05", s.dir, (char *)NULL);
        _exit(127);
    }
    while (strstr(output, "\033[J") == NULL)
        ck_assert(more(terminal, &n));
    ck_says("\033[H");
    ck_says("\033[7m");
    for (const char *p = output; p < strstr(output, "\033[J"); p++)
        lines += *p == '\n';
    ck_assert_uint_le(lines, 19);
    ck_assert_int_eq(tcgetattr(other, &after), 0);
    ck_assert_uint_eq(after.c_lflag & (ICANON | ECHO), 0);
    if (_i == 0)
        ck_assert_int_eq(write(terminal, "q", 1), 1);
    else
        ck_assert_int_eq(kill(top, SIGTERM), 0);
    for (n = 0; strstr(output, "\033[?25h") == NULL;)
        ck_assert(more(terminal, &n));
    ck_assert_int_eq(waitpid(top, &status, 0), top);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
    ck_assert_int_eq(tcgetattr(other, &after), 0);
    ck_assert_uint_eq(after.c_lflag, before.c_lflag);
    close(terminal);
    close(other);
    end(pid);
    tidy();
}
END_TEST

START_TEST(options_that_exclude_each_other_are_refused)
{
    static const char *const wrong[] = {
        "--top --json",   "--top --prometheus",     "--json --prometheus",
        "--once",         "--once --json",          "--prometheus --watch",
        "--top --watch=", "--prometheus --count 2",
    };

    synth_open(&s, 4096, 65536);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(run(wrong[i]) == 2, "%s", wrong[i]);
        ck_says("usage: xstat");
    }
}
END_TEST

/* ---- Prometheus --------------------------------------------------------------------- */

#define NAME "[a-zA-Z_:][a-zA-Z0-9_:]*"

/* What the parser has seen last. */
static struct {
    char name[200], type[200];
    bool has_help;
    double last, count; /* of a histogram: the last bucket, the count                 */
    unsigned n_metrics, n_samples;
} seen;

/* matches -- a whole line, with up to 3 parts. */
static bool
matches(const char *line, const char *pattern, char part[3][200])
{
    regmatch_t m[4];
    regex_t re;
    bool is_match;

    ck_assert_int_eq(regcomp(&re, pattern, REG_EXTENDED), 0);
    is_match = regexec(&re, line, 4, m, 0) == 0;
    for (int i = 0; is_match && i < 3; i++) {
        part[i][0] = '\0';
        if (m[i + 1].rm_so >= 0)
            (void)snprintf(part[i], 200, "%.*s", (int)(m[i + 1].rm_eo - m[i + 1].rm_so),
                           line + m[i + 1].rm_so);
    }
    regfree(&re);
    return is_match;
}

/* parse_sample -- "name{labels} value": of the metric under way. */
static void
parse_sample(const char *line)
{
    static const char labels[] =
        "(" NAME ")\\{(" NAME "=\"([^\"\\\\\n]|\\\\[\\\\\"n])*\","
        "?)+\\} ([0-9.e+-]+)$";
    char part[3][200], *suffix;
    double value = strtod(strrchr(line, ' '), NULL);

    ck_assert_msg(matches(line, labels, part), "no sample: %s", line);
    ck_assert_msg(strncmp(part[0], seen.name, strlen(seen.name)) == 0,
                  "%s among the samples of %s", part[0], seen.name);
    suffix = part[0] + strlen(seen.name);
    seen.n_samples++;
    if (strcmp(seen.type, "histogram") != 0) {
        ck_assert_str_eq(suffix, "");
        return;
    }
    if (strcmp(suffix, "_bucket") == 0) {
        ck_assert_ptr_nonnull(strstr(line, ",le=\""));
        ck_assert_msg(value >= seen.last, "buckets are cumulative: %s", line);
        seen.last = value;
    } else if (strcmp(suffix, "_count") == 0) {
        ck_assert_msg(value == seen.last, "the last bucket holds all: %s", line);
        seen.count = value;
    } else {
        ck_assert_str_eq(suffix, "_sum");
    }
}

static void
parse_line(const char *line)
{
    char part[3][200];

    if (matches(line, "^# HELP (" NAME ") (.+)$", part)) {
        (void)snprintf(seen.name, sizeof seen.name, "%s", part[0]);
        seen.has_help = true;
        seen.last = 0;
        return;
    }
    if (matches(line, "^# TYPE (" NAME ") (counter|gauge|histogram)$", part)) {
        ck_assert(seen.has_help);
        ck_assert_str_eq(part[0], seen.name);
        (void)snprintf(seen.type, sizeof seen.type, "%s", part[1]);
        ck_assert_msg((strcmp(part[1], "counter") == 0)
                          == (strlen(part[0]) > 6
                              && strcmp(part[0] + strlen(part[0]) - 6, "_total") == 0),
                      "counters, and no others, end in _total: %s", line);
        seen.has_help = false;
        seen.n_metrics++;
        return;
    }
    ck_assert_msg(line[0] != '#', "neither HELP nor TYPE: %s", line);
    parse_sample(line);
}

/* ask_promtool -- if there is one. */
static void
ask_promtool(const char *text)
{
    FILE *p;

    if (system("command -v promtool >/dev/null 2>&1") != 0)
        return;
    p = popen("promtool check metrics", "we");
    ck_assert_ptr_nonnull(p);
    ck_assert_int_ge(fputs(text, p), 0);
    ck_assert_int_eq(pclose(p), 0);
}

START_TEST(prometheus_is_well_formed)
{
    static char text[sizeof output];
    pid_t pid;

    synth_open(&s, 4096, 65536);
    ck_assert_int_eq(run("--prometheus"), 0);
    ck_finds("^xac_up\\{environment=\"[^\"]*\"\\} 0$");
    pid = start(true, QUERY);
    ck_assert_int_eq(run("--prometheus"), 0);
    ck_finds("^xac_up\\{environment=\"%s\"\\} 1$", s.dir);
    ck_finds("^xac_participants\\{.*,state=\"running\"\\} 1$");
    ck_finds("^xac_commits_total\\{.*,kind=\"update\"\\} %d$", COMMITS);
    ck_finds("^xac_commit_seconds_count\\{.*\\} %d$", COMMITS);
    ck_finds("^xac_log_sync_seconds_bucket\\{.*,le=\"\\+Inf\"\\} [1-9]");
    memcpy(text, output, sizeof text);
    for (char *rest = output, *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (rest != NULL)
            parse_line(line);
    }
    ck_assert_uint_gt(seen.n_metrics, 20);
    ck_assert_uint_gt(seen.n_samples, 60);
    ck_assert(seen.count > 0);
    ask_promtool(text);
    end(pid);
    tidy();
}
END_TEST

/* ---- Histograms --------------------------------------------------------------------- */

START_TEST(times_fall_into_their_buckets)
{
    static const struct {
        uint64_t ns;
        unsigned bucket;
    } is[] = {
        {0, 0},           {999, 0},         {1000, 1},
        {1999, 1},        {2000, 2},        {3999, 2},
        {4000, 3},        {1023999, 10},    {1024000, 11},
        {4194303999, 22}, {4194304000, 23}, {UINT64_MAX, XAC_TIMES_BUCKETS - 1},
    };
    struct xac_times t = {.sum_ns = 0};

    for (size_t i = 0; i < sizeof is / sizeof is[0]; i++)
        ck_assert_uint_eq(xac_times_bucket(is[i].ns), is[i].bucket);
    xac_times_add(&t, 1500);
    xac_times_add(&t, 1700);
    ck_assert_uint_eq(atomic_load(&t.n[1]), 2);
    ck_assert_uint_eq(atomic_load(&t.sum_ns), 3200);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("xstat");
    TCase *tc = recover_tcase(suite, "xstat");
    TCase *times = tcase_create("times");

    suite_add_tcase(suite, times);
    tcase_add_loop_test(tc, json_has_what_participants_did, 0, 2);
    tcase_add_test(tc, json_says_who_waits_for_the_turn);
    tcase_add_test(tc, snapshots_are_listed);
    tcase_add_loop_test(tc, top_without_terminal_is_one_screen, 0, 2);
    tcase_add_test(tc, top_counts_times_while_it_looks);
    tcase_add_loop_test(tc, top_on_a_terminal_can_be_left, 0, 2);
    tcase_add_test(tc, options_that_exclude_each_other_are_refused);
    tcase_add_test(tc, prometheus_is_well_formed);
    tcase_add_test(times, times_fall_into_their_buckets);
    return recover_main(suite);
}
