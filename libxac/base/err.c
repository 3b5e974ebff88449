/* SPDX-License-Identifier: MIT */
/*
 * err.c -- see err.h.
 */
#include <config.h>

#include "base/err.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xac.h>

#include "base/lock.h"
#include "base/tls.h"

#ifdef XAC_DEBUG
void (*xac_kill_hook)(const char *name);
#endif

/* Code of the last error, if there was no memory for its particulars. */
static XAC_TLS int wordless;

/* note -- the words, of which *lengthp bytes are used; NULL: no memory, or no room behind them. */
static char *note(int code, size_t *lengthp, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

static char *
note(int code, size_t *lengthp, const char *fmt, va_list ap)
{
    char *text = (char *)xac_tls_part(XAC_TLS_ERR, XAC_ERR_BYTES);
    int n;

    xac_assert(code != 0);
    wordless = text == NULL ? code : 0;
    if (text == NULL)
        return NULL;
    n = vsnprintf(text, XAC_ERR_BYTES, fmt, ap);
    *lengthp = n < 0 ? 0 : (size_t)n;
    return n < 0 || n >= XAC_ERR_BYTES ? NULL : text;
}

int
xac_err(int code, const char *fmt, ...)
{
    size_t n = 0;
    va_list ap;
    char *text;

    va_start(ap, fmt);
    text = note(code, &n, fmt, ap);
    va_end(ap);
    if (text != NULL)
        (void)snprintf(text + n, XAC_ERR_BYTES - n, ": %s", xac_strerror(code));
    return code;
}

int
xac_err_whole(int code, const char *fmt, ...)
{
    size_t n = 0;
    va_list ap;

    va_start(ap, fmt);
    (void)note(code, &n, fmt, ap);
    va_end(ap);
    return code;
}

const char *
xac_err_text(void)
{
    const char *text = (const char *)xac_tls_look(XAC_TLS_ERR);

    if (wordless != 0)
        return xac_strerror(wordless);
    return text != NULL ? text : "";
}

void
xac_err_clear(void)
{
    char *text = (char *)xac_tls_look(XAC_TLS_ERR);

    wordless = 0;
    if (text != NULL)
        text[0] = '\0';
}

/* Texts of the codes that are our own; errno values are strerror's. */
static const struct {
    int code;
    const char *text;
} own_texts[] = {
    {XAC_COMMITTED, "success"},
    {XAC_ABORTED, "transaction aborted"},
    {XAC_PENDING, "transaction pending"},
    {XAC_FAILED, "transaction failed, it will abort"},
    {XAC_ENOINIT, "no environment is open (xInit)"},
    {XAC_EALREADY, "the process has opened the environment already"},
    {XAC_ENOTXN, "no transaction is open"},
    {XAC_EINTXN, "not allowed inside a transaction"},
    {XAC_EINQUERY, "not allowed inside a query"},
    {XAC_ENOTMAPPED, "not mapped"},
    {XAC_EMAPPED, "mapped several times in this process"},
    {XAC_EFORKED, "the transaction belongs to the parent process"},
    {XAC_EVERSION, "other format version"},
    {XAC_EFOREIGN, "belongs to another environment"},
    {XAC_EDAMAGED, "damaged where it had been synced"},
    {XAC_EPAGESIZE, "made with another page size"},
    {XAC_EPOISONED, "environment poisoned by a failed write or sync; detach all, "
                    "then recover"},
    {XAC_EMODE, "environment is open in the other durability mode"},
    {XAC_ELIVE, "environment is in use by live processes"},
    {XAC_EREPLACED, "file was replaced since the log was written"},
    {XAC_ENOTSHARED,
     "shared memory of the live participants cannot be reached from here"},
    {XAC_ENOTENV, "no environment in this directory"},
    {XAC_EINUSE, "file belongs to another environment"},
    {XAC_ECOPY, "a copy of an environment must not touch what belongs to the original"},
    {XAC_ENAMESPACE, "live participants are in another PID namespace"},
    {XAC_ELOCKLOST, "xac.lock was removed or replaced while participants are attached"},
    {XAC_EREADONLY, "opened for queries only"},
    {XAC_EUNTRUSTED, "a stranger may have made this file"},
    {XAC_EDESCRIPTOR, "the program has closed a descriptor of the library"},
    {XAC_EFILESYSTEM, "locks on this file system can be lost"},
    {XAC_ENOTDURABLE, "committed, but not known to be on disk yet"},
    {XAC_EUNCERTAIN,
     "not known yet whether it stays (XAC_OPT_WAIT_MS): xSync() or xFate() tells"},
    {XAC_ELAYOUT, "the object has another type or layout"},
    {XAC_ENOSTATE, "that state is not held"},
    {XAC_ECUTOFF, "cut off from what it needs"},
    {XAC_ENOTLEADER, "a standby: it can be queried, not written"},
    {XAC_ELOST, "lost: its generation of the log has ended before it"},
};

/* errno_text -- without a lock or memory: musl's strerror() needs neither. */
XAC_SIGSAFE static const char *
errno_text(int code)
{
#ifdef HAVE_STRERRORDESC_NP
    const char *text = strerrordesc_np(code);
#else
    const char *text = strerror(code);
#endif

    return text != NULL ? text : "unknown errno";
}

XAC_SIGSAFE const char *
xac_strerror(int code)
{
    for (size_t i = 0; i < sizeof own_texts / sizeof own_texts[0]; i++) {
        if (own_texts[i].code == code)
            return own_texts[i].text;
    }
    if (code > 0 && code < 4096)
        return errno_text(code);
    return "unknown code";
}

/* put -- write a string to stderr; a failure to complain is not worth a complaint. */
XAC_SIGSAFE static void
put(const char *s)
{
    ssize_t n = write(STDERR_FILENO, s, strlen(s));

    (void)n;
}

void
xac_say_once(_Atomic bool *has_said, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    int n;

    /* Relaxed: it guards nothing else. */
    if (atomic_exchange_explicit(has_said, true, memory_order_relaxed))
        return;
    n = snprintf(line, sizeof line, "libxac: process %ld: ", (long)getpid());
    va_start(ap, fmt);
    (void)vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
    va_end(ap);
    put(line);
    put("\n");
}

XAC_SIGSAFE void
xac_die(const char *file, int line, const char *func, const char *cond)
{
    char digits[12];
    char *p = digits + sizeof digits - 1;

    *p = '\0';
    for (unsigned v = (unsigned)line; v != 0; v /= 10)
        *--p = (char)('0' + v % 10);
    put("libxac: ");
    put(file);
    put(":");
    put(p);
    put(": ");
    put(func);
    put(": violated: ");
    put(cond);
    if (xac_half_done.is_inherited)
        put(": " XAC_INHERITED_FAULT ": " XAC_INHERITED_HINT);
    put("\n");
    abort();
}
