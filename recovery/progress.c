/* SPDX-License-Identifier: MIT */
/*
 * progress.c -- see progress.h.
 */
#include <config.h>

#include "progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tool.h"

#define PROGRESS_AFTER_NS      1000000000u
#define PROGRESS_EVERY_NS      200000000u
#define PROGRESS_LINE_AFTER_NS 2000000000u

/* is_forced -- by XAC_PROGRESS=1: at once, each time, and on lines of their own. */
static bool
is_forced(void)
{
    const char *wish = getenv("XAC_PROGRESS");

    return wish != NULL && strcmp(wish, "1") == 0;
}

bool
progress_is_wanted(void)
{
    return is_forced() || isatty(STDERR_FILENO);
}

struct progress
progress_start(const char *what)
{
    return (struct progress){.what = what, .started_ns = xac_clock_ns()};
}

/* left_words -- how long the rest will take, at the rate so far; ret buf. */
static const char *
left_words(double s, char buf[32])
{
    if (s < 99.5)
        (void)snprintf(buf, 32, "%.0f s", s);
    else if (s < 99.5 * 60)
        (void)snprintf(buf, 32, "%.0f min", s / 60);
    else
        (void)snprintf(buf, 32, "%.1f h", s / 3600);
    return buf;
}

void
progress_show(void *arg, uint64_t done, uint64_t total)
{
    struct progress *p = (struct progress *)arg;
    uint64_t now = xac_clock_ns();
    double s = (double)(now - p->started_ns) / 1e9;
    char left[32];

    if (!is_forced()
        && (now - p->started_ns < PROGRESS_AFTER_NS
            || now - p->shown_ns < PROGRESS_EVERY_NS))
        return;
    p->shown_ns = now;
    fprintf(stderr, "%s%s: %" PRIu64 " of %" PRIu64 " MiB of %s (%d%%)",
            is_forced() ? "" : "\r", tool_name, done >> 20, total >> 20, p->what,
            total == 0 ? 100 : (int)((double)done * 100 / (double)total));
    if (done > 0 && s > 0)
        fprintf(stderr, ", %.1f MB/s, %s left", (double)done / s / 1e6,
                left_words((double)(total - done) * s / (double)done, left));
    fputs(is_forced() ? "\n" : "\033[K", stderr);
    (void)fflush(stderr);
}

void
progress_line(struct progress *p, const char *fmt, ...)
{
    uint64_t now = xac_clock_ns();
    va_list words;

    if (!is_forced() && now - p->started_ns < PROGRESS_LINE_AFTER_NS)
        return;
    p->shown_ns = now;
    fprintf(stderr, "%s%s: ", is_forced() ? "" : "\r", tool_name);
    va_start(words, fmt);
    (void)vfprintf(stderr, fmt, words);
    va_end(words);
    fputs(is_forced() ? "\n" : "\033[K", stderr);
    (void)fflush(stderr);
}

void
progress_end(struct progress *p)
{
    if (p->shown_ns != 0 && !is_forced())
        fputs("\r\033[K", stderr);
    p->shown_ns = 0;
}
