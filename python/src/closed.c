/* SPDX-License-Identifier: MIT */
/*
 * closed.c -- mappings of a closed environment, while arrays still refer to them; see pyxac.h.
 *
 * The library unmaps all files when it closes an environment.  Something else might be mapped at
 * their addresses later, and an array that the program has kept would show it, or store into it.
 * So the addresses stay reserved, without access, as long as something refers to them, and an
 * access ends the process with words that say why.
 *
 * The library maps a file where it was mapped first.  So that an environment can be opened again,
 * the reservations are lifted while a file is mapped or becomes longer, and what is free
 * afterwards is reserved again.  An old array may then lie over the new mapping of its file, where
 * the library sees to its accesses.
 *
 * SIGNALS  on_fault() reads the places at any time.  So places are never freed, but used again; the
 *          length of one is stored last, and is 0 while there is nothing to be found.
 */
#include "pyxac.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
# define MAP_FIXED_NOREPLACE 0x100000 /* glibc before 2.27 */
#endif

struct closed_place {
    _Atomic uintptr_t base;
    _Atomic size_t
        length;     /* bytes reserved; 0: nothing is                              */
    size_t wanted;  /* bytes to reserve; 0: the place is not used                  */
    char name[256]; /* of the file; the end of it if it is longer                 */
    struct closed_place *next;
};

static struct closed_place *_Atomic places;
static struct sigaction behind; /* the handler that was there before ours */

/* put -- add words, and return where the next ones go. */
static char *
put(char *at, const char *words)
{
    size_t n = strlen(words);

    memcpy(at, words, n);
    return at + n;
}

static char *
put_number(char *at, uint64_t value)
{
    char digits[24];
    char *p = digits + sizeof digits - 1;

    *p = '\0';
    do
        *--p = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    return put(at, p);
}

/* stop -- say what has been touched, and end the process.  Calls nothing but what a handler may. */
static void
stop(const struct closed_place *place, uint64_t offset)
{
    char text[sizeof place->name + 512];
    char *at = put(text, "xac: process ");

    at = put_number(at, (uint64_t)getpid());
    at = put(at, ": access to ");
    at = put(at, place->name);
    at = put(at, " at offset ");
    at = put_number(at, offset);
    at = put(
        at,
        " after its environment was closed\nxac: hint: an array, or a view of one, has "
        "outlived env.close() or the end of `with xac.Env(...)`; copy what is "
        "needed later: array.copy() in a transaction or query\n");
    ssize_t n = write(STDERR_FILENO, text, (size_t)(at - text));
    (void)n;
    abort();
}

/* on_fault -- is it at a place of a closed environment?  Else it is for the handler behind. */
static void
on_fault(int sig, siginfo_t *info, void *context)
{
    uintptr_t address = (uintptr_t)info->si_addr;

    /* Acquire: pairs with the release in new_place. */
    for (const struct closed_place *p =
             atomic_load_explicit(&places, memory_order_acquire);
         p != NULL && info->si_code == SEGV_ACCERR; p = p->next) {
        /* Acquire: pairs with the release in reserve. */
        size_t length = atomic_load_explicit(&p->length, memory_order_acquire);
        uintptr_t base = atomic_load_explicit(&p->base, memory_order_relaxed);
        if (address - base < length)
            stop(p, address - base);
    }
    if ((behind.sa_flags & SA_SIGINFO) != 0)
        behind.sa_sigaction(sig, info, context);
    else if (behind.sa_handler != SIG_DFL && behind.sa_handler != SIG_IGN)
        behind.sa_handler(sig);
    else if (info->si_code > 0) /* it comes again, and ends the process */
        (void)signal(sig, SIG_DFL);
    else if (behind.sa_handler == SIG_DFL) { /* kill(2): it does not come again */
        (void)signal(sig, SIG_DFL);
        (void)raise(sig);
    }
}

void
closed_init(void)
{
    static bool is_installed;
    struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_ONSTACK};

    if (is_installed)
        return;
    is_installed = true;
    sa.sa_sigaction = on_fault;
    (void)sigfillset(&sa.sa_mask);
    (void)sigaction(SIGSEGV, NULL, &behind); /* before ours may call it */
    (void)sigaction(SIGSEGV, &sa, NULL);
}

/* reserve -- if the addresses are free. */
static void
reserve(struct closed_place *p)
{
    void *base = (void *)atomic_load_explicit(&p->base, memory_order_relaxed);
    void *got =
        mmap(base, p->wanted, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (got == base) /* release: pairs with the acquire in on_fault */
        atomic_store_explicit(&p->length, p->wanted, memory_order_release);
    else if (got != MAP_FAILED) /* a kernel before 4.17 */
        (void)munmap(got, p->wanted);
}

/* lift -- let the addresses go. */
static void
lift(struct closed_place *p)
{
    size_t length = atomic_exchange_explicit(&p->length, 0, memory_order_relaxed);

    if (length != 0)
        (void)munmap((void *)atomic_load_explicit(&p->base, memory_order_relaxed),
                     length);
}

/* new_place -- one that is not used; NULL: no memory. */
static struct closed_place *
new_place(void)
{
    struct closed_place *p = atomic_load_explicit(&places, memory_order_relaxed);

    while (p != NULL && p->wanted != 0)
        p = p->next;
    if (p != NULL)
        return p;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->next = atomic_load_explicit(&places, memory_order_relaxed);
    /* Release: pairs with the acquire in on_fault. */
    atomic_store_explicit(&places, p, memory_order_release);
    return p;
}

struct closed_place *
closed_add(void *base, size_t length, const char *name)
{
    struct closed_place *p = new_place();
    size_t n = strlen(name);

    if (p == NULL)
        return NULL;
    atomic_store_explicit(&p->base, (uintptr_t)base, memory_order_relaxed);
    (void)snprintf(p->name, sizeof p->name, "%s",
                   n < sizeof p->name ? name : name + n - (sizeof p->name - 1));
    p->wanted = length;
    reserve(p);
    return p;
}

void
closed_remove(struct closed_place *p)
{
    lift(p);
    p->wanted = 0;
}

void
closed_lift(void)
{
    for (struct closed_place *p = atomic_load_explicit(&places, memory_order_relaxed);
         p != NULL; p = p->next)
        lift(p);
}

void
closed_reserve(void)
{
    for (struct closed_place *p = atomic_load_explicit(&places, memory_order_relaxed);
         p != NULL; p = p->next) {
        if (p->wanted != 0)
            reserve(p);
    }
}
