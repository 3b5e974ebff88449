/* SPDX-License-Identifier: MIT */
/*
 * tool.c -- see tool.h.
 */
#include <config.h>

#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xac_env.h>

#include "api/api.h"
#include "base/annot.h"
#include "base/err.h"
#include "base/sys.h"
#include "env/reader.h"
#include "log/master.h"

#define NS_PER_S UINT64_C(1000000000)

int
tool_version(void)
{
    printf("%s (libxac) %s\n", tool_name, xac_version());
    return EXIT_DONE;
}

int
tool_exit_code(int rc)
{
    switch (rc) {
    case 0:
        return EXIT_DONE;
    case XAC_EDAMAGED:
        return EXIT_DAMAGED;
    case XAC_ELIVE:
    case XAC_ELOCKLOST:
        return EXIT_LIVE;
    case XAC_ENOTENV:
        return EXIT_NOTENV;
    default:
        return EXIT_ERROR;
    }
}

int
tool_fail(const char *about, int rc)
{
    const char *words = xac_err_text();
    size_t n = strlen(about);
    bool is_named = strncmp(words, about, n) == 0 && words[n] == ':'; /* once is enough */

    fprintf(stderr, "%s: %s%s%s\n", tool_name, is_named ? "" : about,
            is_named ? "" : ": ", words[0] != '\0' ? words : xac_strerror(rc));
    return tool_exit_code(rc);
}

int
tool_flush(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "%s: writing the output failed\n", tool_name);
    return EXIT_ERROR;
}

int
tool_open_dir(const char *path, int *fdp, struct xac_master_slot *master)
{
    struct xac_master_slot unused;
    int rc;

    *fdp = xac_sys.openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (*fdp < 0)
        return xac_err(errno, "open");
    rc = xac_master_read(*fdp, master != NULL ? master : &unused);
    if (rc == ENOENT)
        rc = xac_master_missing(*fdp, false);
    if (rc != 0) {
        (void)xac_sys.close(*fdp);
        *fdp = -1;
    }
    return rc;
}

int
tool_take_part(const char *dir, const char *log_dir, const char *what,
               int (*fn)(void *arg, struct xac_env *env), void *arg)
{
    struct xac_master_slot master;
    struct xac_options options;
    struct xac_ctx *ctx;
    struct xac_env *env;
    int rc, left, fd;

    xac_options_init(&options, sizeof options);
    /* Its segments stay as they are.  Each change of their size leaves numbers out, and a program and a tool
       that take turns would soon have used up all numbers. */
    if (tool_open_dir(dir, &fd, &master) == 0) {
        options.value[XAC_OPT_LOG_SEGMENT_BYTES] = master.segment_bytes;
        (void)xac_sys.close(fd);
    }
    options.log_directory = log_dir;
    env = xac_open(dir, &options);
    if (env == NULL)
        return errno;
    rc = xac_api_start(env, what, &ctx);
    if (rc == 0) {
        rc = xac_reader_check_writer(env, what); /* of a standby everybody is a reader */
        if (rc == 0)
            rc = fn(arg, env);
        xac_api_done(ctx);
    }
    left = xac_close(env);
    return rc != 0 ? rc : left;
}

/* ---- Words ------------------------------------------------------------------------ */

bool
tool_number(const char *text, uint64_t *outp)
{
    unsigned long long v;
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    v = strtoull(text, &end, 0);
    if (*end != '\0' || errno != 0)
        return false;
    *outp = v;
    return true;
}

/* fraction -- nanoseconds from ".123"; *pp is moved behind it. */
static uint64_t
fraction(const char **pp)
{
    uint64_t ns = 0;
    uint64_t unit = NS_PER_S / 10;

    if (**pp != '.')
        return 0;
    for ((*pp)++; **pp >= '0' && **pp <= '9'; (*pp)++) {
        ns += (uint64_t)(**pp - '0') * unit;
        unit /= 10;
    }
    return ns;
}

bool
tool_time(const char *text, uint64_t *time_nsp)
{
    struct tm tm = {.tm_isdst = -1};
    const char *p;
    uint64_t ns;
    time_t t;

    if (text[0] == '@') {
        unsigned long long s;
        char *end;

        s = strtoull(text + 1, &end, 10);
        p = end;
        ns = fraction(&p);
        *time_nsp = s * NS_PER_S + ns;
        return end != text + 1 && *p == '\0' && s < UINT64_MAX / NS_PER_S - 1;
    }
    p = strptime(text, "%Y-%m-%d", &tm);
    if (p == NULL || (*p != ' ' && *p != 'T'))
        return false;
    p = strptime(p + 1, "%H:%M:%S", &tm);
    if (p == NULL)
        return false;
    ns = fraction(&p);
    if (*p == 'Z') {
        t = timegm(&tm);
        p++;
    } else {
        t = mktime(&tm);
    }
    *time_nsp = (uint64_t)t * NS_PER_S + ns;
    return t >= 0 && *p == '\0';
}

bool
tool_until(const char *text, uint64_t *lsnp, uint64_t *time_nsp)
{
    *lsnp = *time_nsp = 0;
    if (strcmp(text, "end") == 0)
        return true;
    if (tool_number(text, lsnp) ? *lsnp != 0
                                : tool_time(text, time_nsp) && *time_nsp != 0)
        return true;
    fprintf(stderr,
            "%s: --until %s: an LSN, \"end\", @SECONDS or \"YYYY-MM-DD HH:MM:SS\" is "
            "wanted\n",
            tool_name, text);
    return false;
}

const char *
tool_time_words(uint64_t time_ns, char buf[40])
{
    time_t t = (time_t)(time_ns / NS_PER_S);
    struct tm tm;
    size_t n;

    (void)gmtime_r(&t, &tm);
    n = strftime(buf, 24, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(buf + n, 40 - n, ".%06uZ", (unsigned)(time_ns % NS_PER_S / 1000));
    return buf;
}

/* ---- JSON ------------------------------------------------------------------------- */

static void
put_string(const char *value)
{
    putchar('"');
    for (const unsigned char *p = (const unsigned char *)value; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\')
            printf("\\%c", *p);
        else if (*p < 0x20)
            printf("\\u%04x", *p);
        else
            putchar(*p);
    }
    putchar('"');
}

/* member -- what comes before a value: comma, line, key. */
static void
member(struct json *j, const char *key)
{
    if (j->depth == 0)
        return;
    if (!j->is_first[j->depth])
        putchar(',');
    if (j->is_pretty && j->depth == 1)
        fputs("\n  ", stdout);
    else if (!j->is_first[j->depth])
        putchar(' ');
    j->is_first[j->depth] = false;
    if (key != NULL) {
        put_string(key);
        fputs(": ", stdout);
    }
}

static void
opened(struct json *j, const char *key, char begin, char end)
{
    member(j, key);
    putchar(begin);
    j->depth++;
    xac_assert(j->depth < JSON_DEPTH);
    j->is_first[j->depth] = true;
    j->end[j->depth] = end;
}

void
json_object(struct json *j, const char *key)
{
    opened(j, key, '{', '}');
}

void
json_array(struct json *j, const char *key)
{
    opened(j, key, '[', ']');
}

void
json_end(struct json *j)
{
    if (j->is_pretty && j->depth == 1)
        putchar('\n');
    putchar(j->end[j->depth]);
    j->depth--;
    if (j->depth == 0)
        putchar('\n');
}

void
json_string(struct json *j, const char *key, const char *value)
{
    member(j, key);
    put_string(value);
}

void
json_number(struct json *j, const char *key, uint64_t value)
{
    member(j, key);
    printf("%" PRIu64, value);
}

void
json_code(struct json *j, const char *key, int value)
{
    member(j, key);
    printf("%d", value);
}

void
json_real(struct json *j, const char *key, double value)
{
    member(j, key);
    printf("%.6g", value);
}

void
json_bool(struct json *j, const char *key, bool value)
{
    member(j, key);
    fputs(value ? "true" : "false", stdout);
}
