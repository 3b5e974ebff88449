/* SPDX-License-Identifier: MIT */
/*
 * fault_valgrind.c -- see fault_valgrind.h.
 */
#include <config.h>

#include "fault/fault_valgrind.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/sys.h"

#define OPTION "--vex-iropt-register-updates=allregs-at-mem-access"

#if defined(__x86_64__)

/* Of the one probe. */
static char *volatile page; /* without access until its fault has come */
static sigjmp_buf back;

/* on_probe -- the fault comes first from the page; from elsewhere if registers are stale. */
XAC_SIGSAFE static void
on_probe(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    if (info->si_addr != page
        || xac_sys.mprotect(page, (size_t)sysconf(_SC_PAGESIZE), PROT_READ) != 0)
        siglongjmp(back, 1);
}

/*
 * is_stale -- load from the page; the register that says from where has just been set, and is
 * soon set again.  Valgrind translates what follows a jump as a whole; in that, it leaves out
 * what it finds to be overwritten.  If it does here, the load is from the code at 1.
 */
static bool
is_stale(void)
{
    unsigned long at = 0, loaded = 1;

    if (sigsetjmp(back, 1) != 0)
        return true;
    __asm__ volatile("leaq 1f(%%rip), %0\n\t"
                     "jmpq *%0\n"
                     "1:\tmovq %2, %0\n\t"
                     "movq (%0), %1\n\t"
                     "leaq 1b(%%rip), %0"
                     : "+&r"(at), "=&r"(loaded)
                     : "r"(page)
                     : "memory");
    return loaded != 0;
}

static int
probe(void)
{
    size_t length = (size_t)sysconf(_SC_PAGESIZE);
    struct sigaction sa, previous;
    bool is_bad;
    void *p = xac_sys.mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return xac_err(errno, "mapping a page");
    page = (char *)p;
    memset(&sa, 0, sizeof sa);
    sa.sa_sigaction = on_probe;
    sa.sa_flags = SA_SIGINFO | SA_NODEFER;
    (void)sigaction(SIGSEGV, &sa, &previous);
    is_bad = is_stale();
    (void)sigaction(SIGSEGV, &previous, NULL);
    (void)xac_sys.munmap(p, length);
    return is_bad ? xac_err(ENOTSUP, "valgrind must be run with %s", OPTION) : 0;
}

#else

static int
probe(void)
{
    return 0; /* not known elsewhere: no assembly for it */
}

#endif

int
xac_valgrind_check(void)
{
    /* Valgrind loads libraries of its own into each program that it runs. */
    const char *preload = getenv("LD_PRELOAD");

    return preload != NULL && strstr(preload, "/vgpreload_") != NULL ? probe() : 0;
}
