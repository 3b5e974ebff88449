/* SPDX-License-Identifier: MIT */
/*
 * scanned.c -- scanf() and its kin.
 *
 * WHAT      As noticed.c.  Each conversion of the format says how much it stores.
 * LENGTHS   A text without a width has as many characters as what is read, which is known for sscanf()
 *           only.  From a file it may have LONGEST of them, and what is beyond is not announced.
 */
#include <config.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "announce.h"

#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* formats are the program's */

#define LONGEST 65536

/* One conversion of a format. */
struct conversion {
    char kind;     /* 'd', 's', ... */
    char length;   /* 'H' for hh, 'q' for ll */
    bool is_kept;  /* not %*d */
    bool is_taken; /* %ms: the function allocates the text */
    size_t width;  /* 0: none */
};

/* set_end -- behind a set of characters, as that of %[]a-z]. */
static const char *
set_end(const char *f)
{
    if (*f == '^')
        f++;
    if (*f == ']')
        f++;
    while (*f != '\0' && *f != ']')
        f++;
    return f;
}

/* conversion_read -- what follows a '%'; ret what follows it. */
static const char *
conversion_read(struct conversion *c, const char *f)
{
    *c = (struct conversion){.is_kept = true};
    if (*f == '*') {
        c->is_kept = false;
        f++;
    }
    for (; isdigit((unsigned char)*f); f++)
        c->width = c->width * 10 + (size_t)(*f - '0');
    for (; *f != '\0' && strchr("'mhlqLjzt", *f) != NULL; f++) {
        if (*f == 'm')
            c->is_taken = true;
        else if (*f != '\'')
            c->length = *f != c->length ? *f : *f == 'h' ? 'H' : 'q';
    }
    c->kind = *f;
    if (*f == '[')
        f = set_end(f + 1);
    return *f != '\0' ? f + 1 : f;
}

/* object_size -- bytes of a number. */
static size_t
object_size(const struct conversion *c)
{
    bool is_fraction = strchr("aAeEfFgG", c->kind) != NULL;

    if (c->kind == 'p')
        return sizeof(void *);
    switch (c->length) {
    case 'H':
        return sizeof(char);
    case 'h':
        return sizeof(short);
    case 'l':
        return is_fraction ? sizeof(double) : sizeof(long);
    case 'q':
    case 'L':
        return is_fraction ? sizeof(long double) : sizeof(long long);
    case 'j':
        return sizeof(intmax_t);
    case 'z':
        return sizeof(size_t);
    case 't':
        return sizeof(ptrdiff_t);
    default:
        return is_fraction ? sizeof(float) : sizeof(int);
    }
}

/* bytes_stored -- by a conversion, of at most so many characters. */
static size_t
bytes_stored(const struct conversion *c, size_t n_max)
{
    bool is_wide = c->length == 'l' || c->kind == 'S' || c->kind == 'C';
    size_t size = is_wide ? sizeof(wchar_t) : sizeof(char);

    if (strchr("sS[cC", c->kind) == NULL)
        return object_size(c);
    if (c->is_taken)
        return sizeof(char *);
    if (c->kind == 'c' || c->kind == 'C')
        return (c->width != 0 ? c->width : 1) * size;
    return ((c->width != 0 ? c->width : n_max) + 1) * size;
}

static void
announce(const char *format, va_list arguments, size_t n_max)
{
    struct conversion c;

    for (const char *f = format; *f != '\0';) {
        if (*f++ != '%')
            continue;
        if (*f == '%') {
            f++;
            continue;
        }
        f = conversion_read(&c, f);
        if (c.kind == '\0' || !c.is_kept)
            continue;
        xac_store(va_arg(arguments, void *), bytes_stored(&c, n_max));
    }
}

#define SCANS(name, parameters, arguments_of, n_max)                      \
 NOTICED(int, v##name, parameters, const char *format, va_list arguments) \
 {                                                                        \
  va_list same;                                                           \
                                                                          \
  va_copy(same, arguments);                                               \
  announce(format, same, n_max);                                          \
  va_end(same);                                                           \
  return v##name(arguments_of, format, arguments);                        \
 }                                                                        \
 NOTICED(int, name, parameters, const char *format, ...)                  \
 {                                                                        \
  va_list arguments;                                                      \
  int n;                                                                  \
                                                                          \
  va_start(arguments, format);                                            \
  n = xac_noticed_v##name(arguments_of, format, arguments);               \
  va_end(arguments);                                                      \
  return n;                                                               \
 }

SCANS(sscanf, const char *s, s, strlen(s))
SCANS(fscanf, FILE *file, file, LONGEST)

NOTICED(int, vscanf, const char *format, va_list arguments)
{
    return xac_noticed_vfscanf(stdin, format, arguments);
}

NOTICED(int, scanf, const char *format, ...)
{
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = xac_noticed_vfscanf(stdin, format, arguments);
    va_end(arguments);
    return n;
}

/* What the headers of glibc call instead. */
#define STANDARD_TOO(name)                    \
 ALSO(xac_noticed___isoc99_##name, name);     \
 ALSO(xac_noticed___isoc99_v##name, v##name); \
 ALSO(xac_noticed___isoc23_##name, name);     \
 ALSO(xac_noticed___isoc23_v##name, v##name);

STANDARD_TOO(sscanf)
STANDARD_TOO(fscanf)
STANDARD_TOO(scanf)
