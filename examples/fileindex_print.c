/* SPDX-License-Identifier: MIT */
/*
 * fileindex_print.c -- see fileindex_print.h.
 */
#include <config.h>

#include "fileindex_print.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Bytes of the well-formed UTF-8 character at `p`, 0 if there is none. */
static int
utf8_length(const unsigned char *p)
{
    int n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if (p[0] > 0xf4)
        return 0;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)
        || (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

void
fi_print_json(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    putchar('"');
    while (*p != '\0') {
        int n = utf8_length(p);

        if (n == 0)
            printf("\\udc%02x", *p++);
        else if (*p < 0x20 || *p == 0x7f)
            printf("\\u%04x", *p++);
        else if (*p == '"' || *p == '\\')
            printf("\\%c", *p++);
        else
            for (; n > 0; n--)
                putchar(*p++);
    }
    putchar('"');
}

static char
type_letter(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return 'd';
    case S_IFLNK:
        return 'l';
    case S_IFCHR:
        return 'c';
    case S_IFBLK:
        return 'b';
    case S_IFIFO:
        return 'p';
    case S_IFSOCK:
        return 's';
    default:
        return '-';
    }
}

/* As ls(1) writes it, without the letters for set-id and sticky bits. */
static void
print_mode(uint32_t mode)
{
    putchar(type_letter(mode));
    for (int shift = 6; shift >= 0; shift -= 3) {
        uint32_t bits = mode >> shift;

        putchar(bits & 4 ? 'r' : '-');
        putchar(bits & 2 ? 'w' : '-');
        putchar(bits & 1 ? 'x' : '-');
    }
}

static void
print_long(const char *path, const struct fi_record *record)
{
    time_t when = (time_t)record->mtime;
    char text[40] = "?";
    struct tm tm;

    if (localtime_r(&when, &tm) != NULL)
        strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm);
    print_mode(record->mode);
    printf(" %12llu %s %s\n", (unsigned long long)record->size, text, path);
}

static void
print_object(const char *path, const struct fi_record *r)
{
    printf("{\"path\":");
    fi_print_json(path);
    printf(",\"type\":\"%c\",\"mode\":\"%04o\",\"size_bytes\":%llu", type_letter(r->mode),
           r->mode & 07777u, (unsigned long long)r->size);
    printf(",\"mtime_s\":%lld.%09u,\"ctime_s\":%lld.%09u", (long long)r->mtime,
           r->mtime_ns, (long long)r->ctime, r->ctime_ns);
    printf(",\"uid\":%u,\"gid\":%u,\"links\":%u,\"inode\":%llu,\"device\":%llu}\n",
           r->uid, r->gid, r->n_links, (unsigned long long)r->inode,
           (unsigned long long)r->device);
}

void
fi_print(enum fi_style style, const char *path, const struct fi_record *record)
{
    switch (style) {
    case FI_LONG:
        print_long(path, record);
        break;
    case FI_PATHS:
        puts(path);
        break;
    case FI_NUL:
        fwrite(path, 1, strlen(path) + 1, stdout);
        break;
    case FI_JSON:
        print_object(path, record);
        break;
    }
}
