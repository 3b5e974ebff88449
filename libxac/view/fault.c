/* SPDX-License-Identifier: MIT */
/*
 * fault.c -- see fault.h.
 */
#include <config.h>

#include "view/fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_EXECINFO_H
# include <execinfo.h>
#else
# include <dlfcn.h>
#endif

#include <xac.h>

#include "base/lock.h"
#include "fault/fault_signal.h"
#include "shared/env_state.h"
#include "txn/ctx.h"
#include "view/guard.h"
#include "view/view.h"

/* A message put together without stdio. */
struct message {
    char text[1024];
    size_t used;
};

XAC_SIGSAFE static void
say(struct message *m, const char *s)
{
    size_t n = strlen(s);

    if (n > sizeof m->text - m->used)
        n = sizeof m->text - m->used;
    memcpy(m->text + m->used, s, n);
    m->used += n;
    xac_assert(m->used <= sizeof m->text);
}

XAC_SIGSAFE static void
say_number(struct message *m, uint64_t v)
{
    char digits[24];
    char *p = digits + sizeof digits - 1;

    *p = '\0';
    do
        *--p = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    say(m, p);
}

/* say_process -- the words with which each message begins. */
XAC_SIGSAFE static void
say_process(struct message *m)
{
    xac_assert(m->used == 0);
    say(m, "libxac: process ");
    say_number(m, (uint64_t)getpid());
}

/* begin -- a message about an access. */
XAC_SIGSAFE static void
begin(struct message *m, bool is_write, const char *path)
{
    xac_assert(path != NULL);
    say_process(m);
    say(m, is_write ? ": store to " : ": load from ");
    say(m, path);
}

/* print -- the message, and what to do about it. */
XAC_SIGSAFE static void
print(struct message *m, const char *hint)
{
    ssize_t n;

    xac_assert(m->used > 0);
    say(m, "\nlibxac: hint: ");
    say(m, hint);
    say(m, "\n");
    n = write(STDERR_FILENO, m->text, m->used);
    (void)n;
}

XAC_SIGSAFE _Noreturn static void
stop(struct message *m, const char *hint)
{
    print(m, hint);
    abort();
}

/* start -- of the words about an access. */
XAC_SIGSAFE static void
start(struct message *m, const struct xac_view *view, const void *addr, bool is_write)
{
    xac_assert((const uint8_t *)addr >= view->area.base);
    begin(m, is_write, view->path);
    say(m, " at offset ");
    say_number(m, view->area.first * view->area.page_size
                      + (uint64_t)((const uint8_t *)addr - view->area.base));
    say(m, " ");
}

/* stop_for -- say what happened where, with which errno unless that is 0, and what to do about
   it. */
XAC_SIGSAFE _Noreturn static void
stop_for(const struct xac_view *view, const void *addr, bool is_write, const char *what,
         int error, const char *hint)
{
    struct message m = {.used = 0};

    start(&m, view, addr, is_write);
    say(&m, what);
    if (error != 0) {
        say(&m, ": ");
        say(&m, xac_strerror(error));
    }
    stop(&m, hint);
}

XAC_SIGSAFE _Noreturn void
xac_fault_stop(const struct xac_view *view, const void *addr, bool is_write,
               const char *what, const char *hint)
{
    stop_for(view, addr, is_write, what, 0, hint);
}

#ifdef HAVE_EXECINFO_H
# define FRAMES 48
# define FOUND \
  "The store is the first of these instructions, and the others have called it; "

/* name_code -- the instruction that has faulted, and those that have called it. */
XAC_SIGSAFE static void
name_code(void)
{
    void *frames[FRAMES];
    int n = backtrace(frames, FRAMES), first = 0;

    xac_assert(n >= 0 && n <= FRAMES);
    /* Before it are the functions of the fault handler. */
    for (int i = 0; i < n && first == 0; i++)
        first = frames[i] == xac_signal_code() ? i : 0;
    xac_assert(first == 0 || first < n);
    backtrace_symbols_fd(frames + first, n - first, STDERR_FILENO);
}

void
xac_fault_prepare(void)
{
    void *frames[1];

    (void)backtrace(frames, 1);
}
#else
# define FOUND "The store is this instruction; "

/* name_code -- the instruction that has faulted: file(+0xoffset), for a C library that knows no more. */
XAC_SIGSAFE static void
name_code(void)
{
    const char *code = (const char *)xac_signal_code();
    struct message m = {.used = 0};
    Dl_info info;
    ssize_t n;

    if (code == NULL || dladdr(code, &info) == 0)
        return;
    say(&m, info.dli_fname);
    say(&m, "(+0x");
    for (int shift = 60; shift >= 0; shift -= 4) {
        char digit[2] = {
            "0123456789abcdef"[(uintptr_t)(code - (const char *)info.dli_fbase) >> shift
                               & 15],
            '\0'};

        say(&m, digit);
    }
    say(&m, ")\n");
    n = write(STDERR_FILENO, m.text, m.used);
    (void)n;
}

void
xac_fault_prepare(void)
{
}
#endif

XAC_SIGSAFE _Noreturn void
xac_fault_unannounced(const struct xac_view *view, const void *addr)
{
    struct message m = {.used = 0};

    xac_assert(view->env->options.announces != 0);
    xac_assert(xac_env_checking(view->env) != XAC_CHECKING_TRUSTED);
    xac_assert(view->ctx->txn != NULL);
    start(&m, view, addr, true);
    say(&m, "was not announced");
    print(
        &m,
        "XAC_CHECKING_TRUSTED promises setPageAccess() or setRangeAccess() with READ_WRITE "
        "before each store.  " FOUND "addr2line(1) finds the lines");
    name_code();
    abort();
}

#define UNSERVED "cannot be served: "

/* What an access lacks, and what to do about it. */
static const struct {
    const char *what, *hint;
} lacks[] = {
    [XAC_LACKS_MEMORY] = {UNSERVED "no memory or mappings",
                          "raise vm.max_map_count or the limit of memory, or touch fewer "
                          "pages in one transaction"},
    [XAC_LACKS_FILE] = {UNSERVED "its page cannot be read from the file",
                        "is the disk damaged?"},
    [XAC_LACKS_SPILLED] = {UNSERVED "what the transaction stored there cannot be read "
                                    "again from the environment directory",
                           "is the disk damaged?"},
    [XAC_LACKS_VERSION] = {UNSERVED "its version lies in a buffer file that cannot be "
                                    "opened or mapped",
                           "raise the limit of descriptors, or of addresses"},
    [XAC_LACKS_REGION] = {UNSERVED "no room in the control region to record it",
                          "make room in /dev/shm, or touch fewer pages in one "
                          "transaction"},
    [XAC_LACKS_SAVED] =
        {UNSERVED "no room to keep the page as it was at a savepoint",
         "raise the limit of memory; with XAC_OPT_FRAMES make room in the "
         "environment directory"},
};

XAC_SIGSAFE const char *
xac_fault_lacks(const struct xac_ctx *ctx)
{
    return lacks[ctx->lacking].what + sizeof UNSERVED - 1;
}

XAC_SIGSAFE _Noreturn void
xac_fault_unserved(const struct xac_view *view, const void *addr, bool is_write, int rc)
{
    int lacking = view->ctx->lacking;

    if (rc == EBADF)
        xac_fault_stop(view, addr, is_write, UNSERVED "a descriptor is missing",
                       "has the program closed descriptors that are not its own?");
    if (lacking == XAC_LACKS_FILE && rc == EFAULT)
        xac_fault_stop(view, addr, is_write, UNSERVED "the file ends before it",
                       "has somebody made the file shorter than its mapping?");
    stop_for(view, addr, is_write, lacks[lacking].what, rc, lacks[lacking].hint);
}

XAC_SIGSAFE _Noreturn void
xac_fault_foreign(const struct xac_view *view, const void *addr, bool is_write)
{
    const struct xac_ctx *mine = xac_ctx_mine(view->env);
    /* Relaxed: that it is us can only have been stored by us. */
    pthread_t owner = atomic_load_explicit(&view->ctx->owner, memory_order_relaxed);

    if (mine->is_translated && view->origin == NULL)
        xac_fault_stop(
            view, addr, is_write, "that is not translated, in a translated transaction",
            "in a block of libxac-itm: by code that is not compiled for it, "
            "such as a function declared transaction_pure; else xac_translate.h");
    if (mine != view->ctx && view->origin == NULL)
        xac_fault_stop(view, addr, is_write, "by a thread that has views of its own",
                       "use the address that xView() has returned to this thread");
    if (mine != view->ctx)
        xac_fault_stop(view, addr, is_write, "in another thread's view",
                       "each thread asks xView() for a view of its own");
    if (owner == 0 || pthread_equal(owner, pthread_self()))
        xac_fault_stop(view, addr, is_write, "outside a transaction",
                       "put the access between xbegin() and xend(); is a begin whose "
                       "error was not looked at missing?  Blocks of gcc -fgnu-tm need "
                       "libxac-itm: with gcc's own libitm they are no transactions here");
    xac_fault_stop(view, addr, is_write, "by a thread that has no transaction",
                   "only the thread that called xbegin() may touch the segment, unless "
                   "others join it, or each has a view of its own: see xJoin(), "
                   "XAC_OPT_TEAM, xView()");
}

_Noreturn void
xac_fault_stray(const struct xac_view *view, uint64_t page_no, const uint8_t *was,
                bool in_query)
{
    const uint8_t *at = view->area.base + page_no * view->area.page_size;

    xac_assert(page_no < view->area.n_pages);
    for (size_t i = 0; i + 1 < view->area.page_size && *at == was[i]; i++)
        at++;
    if (in_query)
        xac_fault_stop(view, at, true, "was inside a query",
                       "xbeginQuery() promises not to write; use xbegin()");
    xac_fault_stop(
        view, at, true, "was outside a transaction",
        "put the access between xbegin() and xend(); it has not been committed");
}

/* name_of -- a path's last part. */
XAC_SIGSAFE static const char *
name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* say_missed -- by how much an access has missed a mapping, and of which file. */
XAC_SIGSAFE static void
say_missed(struct message *m, const struct xac_guard_hit *hit)
{
    say(m, ": the address is ");
    say_number(m, hit->distance);
    say(m, hit->what == XAC_ASTRAY_BEHIND ? " bytes behind the end of the "
                                          : " bytes before the start of the ");
    say(m, hit->is_clone ? "view of " : "mapping of ");
    say(m, name_of(hit->path));
    say(m, " (");
    say_number(m, hit->length);
    say(m, " bytes)");
}

XAC_SIGSAFE void
xac_fault_astray(const void *addr, bool is_unmapped, bool is_write)
{
    static const char *const hint[] = {
        [XAC_ASTRAY_BEHIND] =
            "does an index run past the end of an array? xMremap() makes "
            "a mapping longer",
        [XAC_ASTRAY_BEFORE] = "does an index or a pointer run below the start?",
        [XAC_ASTRAY_GONE] =
            "a pointer has been kept for too long; map the file again, or "
            "unmap it later"};
    struct message m = {.used = 0};
    struct xac_guard_hit hit;

    /* The view, and what xend() points at, are not the child's: it may be at any address. */
    if (xac_half_done.is_inherited) {
        say_process(&m);
        say(&m, ": " XAC_INHERITED_FAULT);
        stop(&m, XAC_INHERITED_HINT);
    }
    if (!xac_guard_find(addr, is_unmapped, &hit))
        return;
    begin(&m, is_write, hit.path);
    if (hit.offset >= 0) {
        say(&m, " at offset ");
        say_number(&m, (uint64_t)hit.offset);
    }
    if (hit.what == XAC_ASTRAY_GONE) {
        say(&m, ": ");
        say(&m, name_of(hit.path));
        say(&m, " ");
        say(&m, hit.fate);
    } else {
        say_missed(&m, &hit);
    }
    stop(&m, hint[hit.what]);
}
