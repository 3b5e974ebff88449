/* SPDX-License-Identifier: MIT */
/*
 * texts.c -- functions of the C library that store texts: wide characters, names, addresses.
 *
 * WHAT      As noticed.c.
 */
#include <config.h>

#include <arpa/inet.h>
#include <iconv.h>
#include <limits.h>
#include <netdb.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <uchar.h>
#include <unistd.h>
#include <wchar.h>
#ifdef __GLIBC__
# include <libgen.h> /* its basename() stores */
# undef basename
#endif

#include "announce.h"

#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* formats are the program's */
#include "noticed.h"

#define TEXT(s)      xac_store(s, strlen(s) + 1)
#define STATE(state) OUT(state) /* NULL: the function's own */

/* ---- Bytes ------------------------------------------------------------------------------------- */

NOTICED(void, explicit_bzero, void *to, size_t n)
{
    xac_store(to, n);
    explicit_bzero(to, n);
}

NOTICED(void, bcopy, const void *from, void *to, size_t n)
{
    (void)xac_noticed_memmove(to, from, n);
}

NOTICED(void, swab, const void *from, void *to, ssize_t n)
{
    xac_store(to, n > 0 ? (size_t)n : 0);
    swab(from, to, n);
}

/* These are in newer C libraries only, and in libbsd. */
NOTICED(size_t, strlcpy, char *to, const char *from, size_t n)
{
    size_t length = strlen(from);

    if (n > 0) {
        size_t kept = length < n ? length : n - 1;

        (void)xac_noticed_memcpy(to, from, kept);
        xac_store(to + kept, 1);
        to[kept] = '\0';
    }
    return length;
}

NOTICED(size_t, strlcat, char *to, const char *from, size_t n)
{
    size_t length = strnlen(to, n);

    return length + xac_noticed_strlcpy(to + length, from, n - length);
}

NOTICED(char *, strtok, char *s, const char *delimiters)
{
    static __thread char *rest;

    if (s != NULL)
        rest = s;
    if (rest != NULL)
        TEXT(rest);
    return strtok_r(s, delimiters, &rest);
}

STORES(size_t, strxfrm, (char *to, const char *from, size_t n), (to, from, n),
       xac_store(to, n))
STORES(int, getsubopt, (char **sp, char *const *tokens, char **valuep),
       (sp, tokens, valuep), (OUT(sp), TEXT(*sp), OUT(valuep)))
STORES(ssize_t, getdelim, (char **linep, size_t *np, int delimiter, FILE *file),
       (linep, np, delimiter, file), (OUT(linep), OUT(np)))
STORES(int, vasprintf, (char **to, const char *format, va_list arguments),
       (to, format, arguments), OUT(to))

NOTICED(int, asprintf, char **to, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = xac_noticed_vasprintf(to, format, arguments);
    va_end(arguments);
    return length;
}

/* ---- Wide characters ------------------------------------------------------------------------- */

STORES(wchar_t *, wmemcpy, (wchar_t * to, const wchar_t *from, size_t n), (to, from, n),
       OUTS(to, n))
STORES(wchar_t *, wmemmove, (wchar_t * to, const wchar_t *from, size_t n), (to, from, n),
       OUTS(to, n))
STORES(wchar_t *, wmempcpy, (wchar_t * to, const wchar_t *from, size_t n), (to, from, n),
       OUTS(to, n))
STORES(wchar_t *, wmemset, (wchar_t * to, wchar_t c, size_t n), (to, c, n), OUTS(to, n))
STORES(wchar_t *, wcscpy, (wchar_t * to, const wchar_t *from), (to, from),
       OUTS(to, wcslen(from) + 1))
STORES(wchar_t *, wcpcpy, (wchar_t * to, const wchar_t *from), (to, from),
       OUTS(to, wcslen(from) + 1))
STORES(wchar_t *, wcsncpy, (wchar_t * to, const wchar_t *from, size_t n), (to, from, n),
       OUTS(to, n))
STORES(wchar_t *, wcpncpy, (wchar_t * to, const wchar_t *from, size_t n), (to, from, n),
       OUTS(to, n))
STORES(wchar_t *, wcscat, (wchar_t * to, const wchar_t *from), (to, from),
       OUTS(to + wcslen(to), wcslen(from) + 1))
STORES(wchar_t *, wcsncat, (wchar_t * to, const wchar_t *from, size_t n), (to, from, n),
       OUTS(to + wcslen(to), wcsnlen(from, n) + 1))
STORES(size_t, wcsxfrm, (wchar_t * to, const wchar_t *from, size_t n), (to, from, n),
       OUTS(to, n))
STORES(wchar_t *, fgetws, (wchar_t * to, int n, FILE *file), (to, n, file),
       OUTS(to, n > 0 ? (size_t)n : 0))

NOTICED(wchar_t *, wcstok, wchar_t *s, const wchar_t *delimiters, wchar_t **savep)
{
    wchar_t *at = s != NULL ? s : *savep;

    if (at != NULL)
        OUTS(at, wcslen(at) + 1);
    OUT(savep);
    return wcstok(s, delimiters, savep);
}

STORES(int, vswprintf, (wchar_t * to, size_t n, const wchar_t *format, va_list arguments),
       (to, n, format, arguments), OUTS(to, n))

NOTICED(int, swprintf, wchar_t *to, size_t n, const wchar_t *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = xac_noticed_vswprintf(to, n, format, arguments);
    va_end(arguments);
    return length;
}

/* From one encoding to another.  `to` may be NULL. */
STORES(size_t, mbstowcs, (wchar_t * to, const char *from, size_t n), (to, from, n),
       OUTS(to, n))
STORES(size_t, mbsrtowcs, (wchar_t * to, const char **fromp, size_t n, mbstate_t *state),
       (to, fromp, n, state), (OUTS(to, n), OUT(fromp), STATE(state)))
STORES(size_t, mbsnrtowcs,
       (wchar_t * to, const char **fromp, size_t from_n, size_t n, mbstate_t *state),
       (to, fromp, from_n, n, state), (OUTS(to, n), OUT(fromp), STATE(state)))
STORES(size_t, wcstombs, (char *to, const wchar_t *from, size_t n), (to, from, n),
       xac_store(to, n))
STORES(size_t, wcsrtombs, (char *to, const wchar_t **fromp, size_t n, mbstate_t *state),
       (to, fromp, n, state), (xac_store(to, n), OUT(fromp), STATE(state)))
STORES(size_t, wcsnrtombs,
       (char *to, const wchar_t **fromp, size_t from_n, size_t n, mbstate_t *state),
       (to, fromp, from_n, n, state), (xac_store(to, n), OUT(fromp), STATE(state)))
STORES_ONE(int, mbtowc, (wchar_t * to, const char *from, size_t n), (to, from, n))
STORES(size_t, mbrtowc, (wchar_t * to, const char *from, size_t n, mbstate_t *state),
       (to, from, n, state), (OUT(to), STATE(state)))
STORES(size_t, mbrtoc16, (char16_t *to, const char *from, size_t n, mbstate_t *state),
       (to, from, n, state), (OUT(to), STATE(state)))
STORES(size_t, mbrtoc32, (char32_t *to, const char *from, size_t n, mbstate_t *state),
       (to, from, n, state), (OUT(to), STATE(state)))
STORES(size_t, mbrlen, (const char *from, size_t n, mbstate_t *state), (from, n, state),
       STATE(state))
STORES(int, wctomb, (char *to, wchar_t c), (to, c), xac_store(to, MB_CUR_MAX))
STORES(size_t, wcrtomb, (char *to, wchar_t c, mbstate_t *state), (to, c, state),
       (xac_store(to, MB_CUR_MAX), STATE(state)))
STORES(size_t, c16rtomb, (char *to, char16_t c, mbstate_t *state), (to, c, state),
       (xac_store(to, MB_CUR_MAX), STATE(state)))
STORES(size_t, c32rtomb, (char *to, char32_t c, mbstate_t *state), (to, c, state),
       (xac_store(to, MB_CUR_MAX), STATE(state)))

NOTICED(size_t, iconv, iconv_t way, char **fromp, size_t *from_np, char **top, size_t *np)
{
    OUT(fromp);
    OUT(from_np);
    OUT(top);
    OUT(np);
    if (top != NULL && *top != NULL)
        xac_store(*top, *np);
    return iconv(way, fromp, from_np, top, np);
}

/* ---- Names and addresses ---------------------------------------------------------------------- */

/* f(..., to, n) */
#define NAME(type, name, parameters, arguments) \
 STORES(type, name, parameters, arguments, xac_store(to, n))

NAME(char *, getcwd, (char *to, size_t n), (to, n))
NAME(int, gethostname, (char *to, size_t n), (to, n))
NAME(int, getdomainname, (char *to, size_t n), (to, n))
NAME(int, getlogin_r, (char *to, size_t n), (to, n))
NAME(int, ttyname_r, (int fd, char *to, size_t n), (fd, to, n))
NAME(int, ptsname_r, (int fd, char *to, size_t n), (fd, to, n))
NAME(size_t, confstr, (int which, char *to, size_t n), (which, to, n))
NAME(size_t, regerror, (int error, const regex_t *r, char *to, size_t n),
     (error, r, to, n))
STORES(char *, realpath, (const char *path, char *to), (path, to),
       xac_store(to, PATH_MAX))
STORES(char *, ctermid, (char *to), (to), xac_store(to, L_ctermid))
STORES(int, mkstemp, (char *to), (to), TEXT(to))
STORES(int, mkstemps, (char *to, int length), (to, length), TEXT(to))
STORES(int, mkostemp, (char *to, int flags), (to, flags), TEXT(to))
STORES(int, mkostemps, (char *to, int length, int flags), (to, length, flags), TEXT(to))
STORES(char *, mkdtemp, (char *to), (to), TEXT(to))
STORES(char *, dirname, (char *to), (to), to != NULL ? TEXT(to) : (void)0)
STORES(int, regexec,
       (const regex_t *r, const char *s, size_t n, regmatch_t *to, int flags),
       (r, s, n, to, flags), OUTS(to, n))
ALSO(xac_noticed_mkstemp64, mkstemp);
ALSO(xac_noticed_mkstemps64, mkstemps);
ALSO(xac_noticed_mkostemp64, mkostemp);
ALSO(xac_noticed_mkostemps64, mkostemps);

STORES(int, inet_pton, (int family, const char *from, void *to), (family, from, to),
       xac_store(to,
                 family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr)))
STORES_ONE(int, inet_aton, (const char *from, struct in_addr *to), (from, to))
STORES(const char *, inet_ntop, (int family, const void *from, char *to, socklen_t n),
       (family, from, to, n), xac_store(to, n))
STORES(int, getnameinfo,
       (const struct sockaddr *a, socklen_t length, char *host, socklen_t host_n,
        char *service, socklen_t service_n, int flags),
       (a, length, host, host_n, service, service_n, flags),
       (xac_store(host, host_n), xac_store(service, service_n)))
STORES_ONE(int, getaddrinfo,
           (const char *host, const char *service, const struct addrinfo *hints,
            struct addrinfo **to),
           (host, service, hints, to))

#ifdef __GLIBC__
STORES(char *, strerror_r, (int error, char *to, size_t n), (error, to, n),
       xac_store(to, n))
int xpg_strerror_r(int error, char *to, size_t n) __asm__("__xpg_strerror_r");
STORES(int, xpg_strerror_r, (int error, char *to, size_t n), (error, to, n),
       xac_store(to, n))
ALSO(xac_noticed___xpg_strerror_r, xpg_strerror_r);
char *xpg_basename(char *to) __asm__("__xpg_basename");
STORES(char *, xpg_basename, (char *to), (to), to != NULL ? TEXT(to) : (void)0)
ALSO(xac_noticed___xpg_basename, xpg_basename);
STORES(char *, gcvt, (double x, int n, char *to), (x, n, to),
       xac_store(to, (size_t)(n > 0 ? n : 0) + 16))
STORES(char *, fgets_unlocked, (char *to, int n, FILE *file), (to, n, file),
       xac_touch_store(to, n > 0 ? (size_t)n : 0))
STORES(size_t, fread_unlocked, (void *to, size_t size, size_t n, FILE *file),
       (to, size, n, file), xac_touch_store(to, announce_product(n, size)))
STORES(size_t, fwrite_unlocked, (const void *from, size_t size, size_t n, FILE *file),
       (from, size, n, file), xac_touch_load(from, announce_product(n, size)))
STORES(wchar_t *, fgetws_unlocked, (wchar_t * to, int n, FILE *file), (to, n, file),
       OUTS(to, n > 0 ? (size_t)n : 0))
# if __GLIBC_PREREQ(2, 36)
NOTICED(void, arc4random_buf, void *to, size_t n)
{
    xac_store(to, n);
    arc4random_buf(to, n);
}
# endif
#endif
