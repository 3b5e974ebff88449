/* SPDX-License-Identifier: MIT */
/*
 * noticed.c -- functions of the C library that store, or that hand memory to the kernel.
 *
 * WHAT      xac_noticed_f() for each f() of noticed.syms: see noticed.h.
 * NOT HERE  Numbers and time (numbers.c), texts (texts.c), results of system calls (results.c), scanf()
 *           (scanned.c), the C++ library (standard.c, streams.c).  Functions that only load: a load that is not announced traps, and is right.
 */
#include <config.h>

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "announce.h"
#include "noticed.h"

#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* formats are the program's */

/* ---- <string.h> --------------------------------------------------------------------------- */

void *
xac_noticed_memcpy(void *to, const void *from, size_t n)
{
    xac_load(from, n);
    xac_store(to, n);
    return memcpy(to, from, n);
}

void *
xac_noticed_memmove(void *to, const void *from, size_t n)
{
    xac_load(from, n);
    xac_store(to, n);
    return memmove(to, from, n);
}

void *
xac_noticed_mempcpy(void *to, const void *from, size_t n)
{
    return (char *)xac_noticed_memcpy(to, from, n) + n;
}

void *
xac_noticed_memset(void *to, int byte, size_t n)
{
    xac_store(to, n);
    return memset(to, byte, n);
}

void
xac_noticed_bzero(void *to, size_t n)
{
    (void)xac_noticed_memset(to, 0, n);
}

char *
xac_noticed_strcpy(char *to, const char *from)
{
    return (char *)xac_noticed_memcpy(to, from, strlen(from) + 1);
}

char *
xac_noticed_stpcpy(char *to, const char *from)
{
    size_t n = strlen(from);

    return (char *)xac_noticed_memcpy(to, from, n + 1) + n;
}

char *
xac_noticed_strncpy(char *to, const char *from, size_t n)
{
    xac_store(to, n);
    return strncpy(to, from, n);
}

char *
xac_noticed_stpncpy(char *to, const char *from, size_t n)
{
    xac_store(to, n);
    return stpncpy(to, from, n);
}

char *
xac_noticed_strcat(char *to, const char *from)
{
    (void)xac_noticed_strcpy(to + strlen(to), from);
    return to;
}

char *
xac_noticed_strncat(char *to, const char *from, size_t n)
{
    size_t length = strnlen(from, n);
    char *end = to + strlen(to);

    (void)xac_noticed_memcpy(end, from, length);
    xac_store(end + length, 1);
    end[length] = '\0';
    return to;
}

/* It stores a null byte behind each token. */
NOTICED(char *, strtok_r, char *s, const char *delimiters, char **savep)
{
    char *at = s != NULL ? s : *savep;

    if (at != NULL)
        xac_store(at, strlen(at) + 1);
    xac_store(savep, sizeof *savep);
    return strtok_r(s, delimiters, savep);
}

NOTICED(char *, strsep, char **restp, const char *delimiters)
{
    xac_store(restp, sizeof *restp);
    if (*restp != NULL)
        xac_store(*restp, strlen(*restp) + 1);
    return strsep(restp, delimiters);
}

NOTICED(void *, memccpy, void *to, const void *from, int last, size_t n)
{
    xac_store(to, n);
    return memccpy(to, from, last, n);
}

/* ---- <stdio.h>, <stdlib.h> ---------------------------------------------------------------- */

int
xac_noticed_vsnprintf(char *to, size_t n, const char *format, va_list arguments)
{
    va_list same;
    int length;

    va_copy(same, arguments);
    length = vsnprintf(NULL, 0, format, same);
    va_end(same);
    if (length >= 0)
        xac_store(to, (size_t)length < n ? (size_t)length + 1 : n);
    return vsnprintf(to, n, format, arguments);
}

int
xac_noticed_vsprintf(char *to, const char *format, va_list arguments)
{
    return xac_noticed_vsnprintf(to, (size_t)INT_MAX + 1, format, arguments);
}

int
xac_noticed_snprintf(char *to, size_t n, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = xac_noticed_vsnprintf(to, n, format, arguments);
    va_end(arguments);
    return length;
}

int
xac_noticed_sprintf(char *to, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = xac_noticed_vsprintf(to, format, arguments);
    va_end(arguments);
    return length;
}

NOTICED(void, qsort, void *base, size_t n, size_t size,
        int (*order)(const void *, const void *))
{
    xac_store(base, announce_product(n, size));
    qsort(base, n, size, order);
}

NOTICED(void, qsort_r, void *base, size_t n, size_t size,
        int (*order)(const void *, const void *, void *), void *arg)
{
    xac_store(base, announce_product(n, size));
    qsort_r(base, n, size, order, arg);
}

/* These may hand the buffer to the kernel, which a page without access stops with EFAULT.  So the
   pages are asked for even where loads need not be announced. */
NOTICED(size_t, fread, void *to, size_t size, size_t n, FILE *file)
{
    xac_touch_store(to, announce_product(n, size));
    return fread(to, size, n, file);
}

NOTICED(size_t, fwrite, const void *from, size_t size, size_t n, FILE *file)
{
    xac_touch_load(from, announce_product(n, size));
    return fwrite(from, size, n, file);
}

NOTICED(char *, fgets, char *to, int n, FILE *file)
{
    xac_touch_store(to, n > 0 ? (size_t)n : 0);
    return fgets(to, n, file);
}

/* It may move the line, which lies in the heap. */
NOTICED(ssize_t, getline, char **linep, size_t *np, FILE *file)
{
    xac_store(linep, sizeof *linep);
    xac_store(np, sizeof *np);
    return getline(linep, np, file);
}

/* ---- System calls ------------------------------------------------------------------------- */

NOTICED(ssize_t, read, int fd, void *to, size_t n)
{
    xac_touch_store(to, n);
    return read(fd, to, n);
}

NOTICED(ssize_t, pread, int fd, void *to, size_t n, off_t offset)
{
    xac_touch_store(to, n);
    return pread(fd, to, n, offset);
}

NOTICED(ssize_t, recv, int fd, void *to, size_t n, int flags)
{
    xac_touch_store(to, n);
    return recv(fd, to, n, flags);
}

NOTICED(ssize_t, write, int fd, const void *from, size_t n)
{
    xac_touch_load(from, n);
    return write(fd, from, n);
}

NOTICED(ssize_t, pwrite, int fd, const void *from, size_t n, off_t offset)
{
    xac_touch_load(from, n);
    return pwrite(fd, from, n, offset);
}

NOTICED(ssize_t, send, int fd, const void *from, size_t n, int flags)
{
    xac_touch_load(from, n);
    return send(fd, from, n, flags);
}

NOTICED(ssize_t, recvfrom, int fd, void *to, size_t n, int flags, struct sockaddr *from,
        socklen_t *lengthp)
{
    xac_touch_store(to, n);
    xac_touch_store(lengthp, sizeof *lengthp);
    if (lengthp != NULL)
        xac_touch_store(from, *lengthp);
    return recvfrom(fd, to, n, flags, from, lengthp);
}

NOTICED(ssize_t, sendto, int fd, const void *from, size_t n, int flags,
        const struct sockaddr *to, socklen_t length)
{
    xac_touch_load(from, n);
    xac_touch_load(to, length);
    return sendto(fd, from, n, flags, to, length);
}

NOTICED(ssize_t, getrandom, void *to, size_t n, unsigned flags)
{
    xac_touch_store(to, n);
    return getrandom(to, n, flags);
}

NOTICED(int, getentropy, void *to, size_t n)
{
    xac_touch_store(to, n);
    return getentropy(to, n);
}

NOTICED(ssize_t, readlink, const char *path, char *to, size_t n)
{
    xac_touch_store(to, n);
    return readlink(path, to, n);
}

/* touch_parts -- the buffers of a call, and where they are said to lie. */
static void
touch_parts(const struct iovec *parts, size_t n, void (*touch)(const void *, size_t))
{
    xac_touch_load(parts, announce_product(n, sizeof *parts));
    for (size_t i = 0; i < n; i++)
        touch(parts[i].iov_base, parts[i].iov_len);
}

/* f(fd, parts, n, ...); a number that is negative is the kernel's to refuse. */
#define OF_PARTS(name, touch, parameters, ...)                  \
 ssize_t xac_noticed_##name parameters;                         \
 ssize_t xac_noticed_##name parameters                          \
 {                                                              \
  touch_parts(parts, n > 0 ? (size_t)n : 0, xac_touch_##touch); \
  return name(__VA_ARGS__);                                     \
 }

OF_PARTS(readv, store, (int fd, const struct iovec *parts, int n), fd, parts, n)
OF_PARTS(writev, load, (int fd, const struct iovec *parts, int n), fd, parts, n)
OF_PARTS(preadv, store, (int fd, const struct iovec *parts, int n, off_t offset), fd,
         parts, n, offset)
OF_PARTS(pwritev, load, (int fd, const struct iovec *parts, int n, off_t offset), fd,
         parts, n, offset)

#ifdef __GLIBC__
OF_PARTS(preadv2, store,
         (int fd, const struct iovec *parts, int n, off_t offset, int flags), fd, parts,
         n, offset, flags)
OF_PARTS(pwritev2, load,
         (int fd, const struct iovec *parts, int n, off_t offset, int flags), fd, parts,
         n, offset, flags)
ALSO(xac_noticed_preadv64v2, preadv2);
ALSO(xac_noticed_pwritev64v2, pwritev2);
#endif

/* touch_message -- a message's header, name and control bytes are stored, or only loaded. */
static void
touch_message(const struct msghdr *m, void (*touch)(const void *, size_t))
{
    touch(m, sizeof *m);
    touch(m->msg_name, m->msg_namelen);
    touch(m->msg_control, m->msg_controllen);
    touch_parts(m->msg_iov, m->msg_iovlen, touch);
}

NOTICED(ssize_t, recvmsg, int fd, struct msghdr *message, int flags)
{
    touch_message(message, xac_touch_store);
    return recvmsg(fd, message, flags);
}

#ifdef __GLIBC__
NOTICED(int, recvmmsg, int fd, struct mmsghdr *messages, unsigned n, int flags,
        struct timespec *limit)
{
    for (unsigned i = 0; i < n; i++)
        touch_message(&messages[i].msg_hdr, xac_touch_store);
    OUTS(messages, n);
    OUT(limit);
    return recvmmsg(fd, messages, n, flags, limit);
}
#endif

NOTICED(ssize_t, sendmsg, int fd, const struct msghdr *message, int flags)
{
    touch_message(message, xac_touch_load);
    return sendmsg(fd, message, flags);
}

ALSO(__tsan_memcpy, memcpy);
ALSO(__tsan_memmove, memmove);
ALSO(__tsan_memset, memset);
ALSO(xac_noticed___mempcpy, mempcpy);
ALSO(xac_noticed___stpcpy, stpcpy);
ALSO(xac_noticed___strtok_r, strtok_r);
ALSO(xac_noticed_pread64, pread);
ALSO(xac_noticed_preadv64, preadv);
ALSO(xac_noticed_pwrite64, pwrite);
ALSO(xac_noticed_pwritev64, pwritev);
