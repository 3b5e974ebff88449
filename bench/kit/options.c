/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "bench/kit/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/kit/util.h"

#define OPTIONS_MAX 24u
#define DIR_MAX     300u
#define HELP_INDENT 21u /* where the words of an option begin */

/* Codes of the common options; those of the table are their places in it, plus one. */
enum {
    OPT_HELP = 'h',
    OPT_JSON = 1000,
    OPT_QUICK,
    OPT_QUIET
};

static const struct option common_options[] = {
    {"help", no_argument, NULL, OPT_HELP},
    {"json", no_argument, NULL, OPT_JSON},
    {"quick", no_argument, NULL, OPT_QUICK},
    {"quiet", no_argument, NULL, OPT_QUIET},
};

#define N_COMMON (sizeof common_options / sizeof common_options[0])

/* The table that is read, for bench_options_help(). */
static const struct bench_option *table_read;

/* split -- "a,b,c"; ret 0, or 1 after a message. */
static int
split(const char *name, char *list, struct bench_words *words)
{
    char *save = NULL;

    words->n = 0;
    for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
        if (words->n == BENCH_NUMBERS_MAX)
            return bench_fail("--%s: more than %u in the list", name, BENCH_NUMBERS_MAX);
        words->v[words->n++] = p;
    }
    return words->n > 0 ? 0 : bench_fail("--%s: the list is empty", name);
}

/* set_numbers -- of "1,2,4"; ret 0, or 1 after a message. */
static int
set_numbers(const struct bench_option *o, char *list)
{
    struct bench_words words;
    int rc = split(o->name, list, &words);

    o->numbers->n = words.n;
    for (unsigned i = 0; i < words.n && rc == 0; i++)
        rc = bench_parse_number(o->name, words.v[i], o->low, o->high, &o->numbers->v[i]);
    return rc;
}

/* set_option -- one option of the table. */
static int
set_option(const struct bench_option *o, char *arg)
{
    if (o->flag != NULL)
        *o->flag = true;
    else if (o->constant != NULL)
        *o->constant = o->low;
    else if (o->number != NULL)
        return bench_parse_number(o->name, arg, o->low, o->high, o->number);
    else if (o->numbers != NULL)
        return set_numbers(o, arg);
    else if (o->words != NULL)
        return split(o->name, arg, o->words);
    else
        *o->text = arg;
    return 0;
}

/* set_common -- one of the common options; ret 0, or 1: getopt has said what is wrong. */
static int
set_common(struct bench_common *c, int code)
{
    switch (code) {
    case OPT_JSON:
        c->json = true;
        return 0;
    case OPT_QUICK:
        c->quick = true;
        return 0;
    case OPT_QUIET:
        c->quiet = true;
        return 0;
    default:
        return 1;
    }
}

/* check_dir -- ret 0, or 1 after a message. */
static int
check_dir(const char *dir)
{
    struct stat st;

    if (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode))
        return bench_fail("--dir %s: no such directory", dir);
    return strlen(dir) <= DIR_MAX ? 0 : bench_fail("--dir: the name is too long");
}

/* parse -- ret 0, or 1 after a message; *is_helpp: the help is asked for, nothing else was read. */
static int
parse(int argc, char **argv, const struct bench_option *table,
      struct bench_common *common, bool *is_helpp)
{
    struct option options[OPTIONS_MAX + N_COMMON + 1] = {{0}};
    int n = 0, code, rc;

    *common = (struct bench_common){.dir = "."};
    bench_join_command(common->command, sizeof common->command, argc, argv);
    for (; table[n].name != NULL && n < (int)OPTIONS_MAX; n++) {
        bool is_bare = table[n].flag != NULL || table[n].constant != NULL;

        options[n] = (struct option){.name = table[n].name,
                                     .has_arg = is_bare ? no_argument : required_argument,
                                     .val = n + 1};
    }
    memcpy(options + n, common_options, sizeof common_options);
    while ((code = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        *is_helpp = code == OPT_HELP;
        if (*is_helpp)
            return 0;
        rc = code >= 1 && code <= n ? set_option(&table[code - 1], optarg)
                                    : set_common(common, code);
        if (rc != 0)
            return rc;
    }
    if (optind < argc)
        return bench_fail("%s: unexpected argument \"%s\"", argv[0], argv[optind]);
    return check_dir(common->dir);
}

int
bench_options_no_quick(const struct bench_common *common)
{
    return common->quick ? bench_fail("--quick: this experiment has no such option") : 0;
}

/* ---- Help ---------------------------------------------------------------------------- */

/* value_number -- as it would be given: bytes as 4K, 256M. */
static void
value_number(uint64_t v, bool is_bytes, char *out, size_t n)
{
    static const char units[] = "\0KMG";
    unsigned unit = 0;

    while (is_bytes && v != 0 && v % 1024 == 0 && unit < 3) {
        v /= 1024;
        unit++;
    }
    (void)snprintf(out, n, "%llu%.1s", (unsigned long long)v, units + unit);
}

/* value_list -- its items, with commas; "" if it has none. */
static void
value_list(const struct bench_option *o, bool is_bytes, char *out, size_t n)
{
    unsigned n_items = o->numbers != NULL ? o->numbers->n : o->words->n;
    char number[24];
    size_t used = 0;

    for (unsigned i = 0; i < n_items && used < n; i++) {
        if (o->numbers != NULL)
            value_number(o->numbers->v[i], is_bytes, number, sizeof number);
        used += (size_t)snprintf(out + used, n - used, "%s%s", i == 0 ? "" : ",",
                                 o->numbers != NULL ? number : o->words->v[i]);
    }
}

/* value -- what an option has now, in words that follow its own; "" if nothing. */
static void
value(const struct bench_option *o, const struct bench_help *h, char *out, size_t n)
{
    bool is_bytes = h->arg != NULL && strcmp(h->arg, "BYTES") == 0;

    out[0] = '\0';
    if (o->flag != NULL)
        (void)snprintf(out, n, "%s", *o->flag ? "always set" : "");
    else if (o->constant != NULL)
        (void)snprintf(out, n, "%s", *o->constant == o->low ? "the default" : "");
    else if (o->number != NULL && *o->number >= o->low && *o->number <= o->high)
        value_number(*o->number, is_bytes, out, n);
    else if (o->numbers != NULL || o->words != NULL)
        value_list(o, is_bytes, out, n);
    else if (o->text != NULL && *o->text != NULL)
        (void)snprintf(out, n, "%s", *o->text);
    if (out[0] == '\0' && h->unset != NULL)
        (void)snprintf(out, n, "%s", h->unset);
}

/* find -- an option of the table that is read; NULL: it has none of that name. */
static const struct bench_option *
find(const char *name)
{
    const struct bench_option *o = table_read;

    while (o->name != NULL && strcmp(o->name, name) != 0)
        o++;
    return o->name != NULL ? o : NULL;
}

/* help_line -- one option, its words, and what holds if it is not given. */
static void
help_line(const struct bench_help *h)
{
    const struct bench_option *o = find(h->name);
    char line[2000], now[1000] = "";
    int n =
        snprintf(line, sizeof line, "  --%s %s", h->name, h->arg != NULL ? h->arg : "");

    n = n < (int)HELP_INDENT - 1 ? (int)HELP_INDENT - 1 : n;
    printf("%-*s ", n, line);
    if (o != NULL)
        value(o, h, now, sizeof now);
    (void)snprintf(line, sizeof line, "%s%s%s", h->what,
                   now[0] == '\0'   ? ""
                   : h->arg == NULL ? "; "
                                    : "; default ",
                   now);
    bench_wrap(stdout, line, (unsigned)n + 1, HELP_INDENT);
}

void
bench_options_help(const struct bench_help *list)
{
    static const struct bench_help
        dir = {.name = "dir",
               .arg = "DIR",
               .what = "where the files go, in a directory that is removed at the end"},
        rest[] = {{.name = "json", .what = "one JSON object a measurement, not a table"},
                  {.name = "quiet", .what = "no progress bar"},
                  {.name = "help", .what = "this"},
                  {0}};

    for (const struct bench_help *h = list; h->name != NULL; h++)
        help_line(h);
    if (find(dir.name) != NULL)
        help_line(&dir);
    for (const struct bench_help *h = rest; h->name != NULL; h++)
        help_line(h);
}

bool
bench_options_parse(int argc, char **argv, const struct bench_option *table,
                    void (*usage)(void), struct bench_common *common, int *statusp)
{
    bool is_help = false;

    table_read = table;
    *statusp = 2 * parse(argc, argv, table, common, &is_help);
    if (is_help) {
        printf("usage: xbench %s [OPTION...]\n\n", argv[0]);
        usage();
    }
    return !is_help && *statusp == 0;
}
