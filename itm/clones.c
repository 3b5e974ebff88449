/* SPDX-License-Identifier: MIT */
/*
 * clones.c -- transactional versions of functions that are called through pointers.
 *
 * Each program and shared library that gcc -fgnu-tm has compiled registers a table of pairs when it is loaded.
 */
#include <config.h>

#include <pthread.h>
#include <stdlib.h>

#include "itm.h"

struct pair {
    const void *plain;
    void *clone;
};

struct table {
    struct table *next;
    struct pair *pairs; /* the program's, sorted by us */
    size_t n;
};

/* The tables, newest first. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table *tables;

static int
compare(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct pair *)a)->plain;
    uintptr_t y = (uintptr_t)((const struct pair *)b)->plain;

    return x < y ? -1 : x > y;
}

/* find -- the transactional version of a function; NULL if it has none. */
static void *
find(const void *plain)
{
    const struct pair wanted = {.plain = plain};
    const struct pair *found = NULL;

    (void)pthread_mutex_lock(&lock);
    for (const struct table *t = tables; t != NULL && found == NULL; t = t->next)
        found =
            (const struct pair *)bsearch(&wanted, t->pairs, t->n, sizeof wanted, compare);
    (void)pthread_mutex_unlock(&lock);
    return found != NULL ? found->clone : NULL;
}

void
xac_itm_clones_forked(void)
{
    (void)pthread_mutex_init(&lock, NULL); /* each change of the list is one store */
}

XAC_ITM_API void _ITM_registerTMCloneTable(void *pairs, size_t n);
void
_ITM_registerTMCloneTable(void *pairs, size_t n)
{
    struct table *t = (struct table *)malloc(sizeof *t);

    if (t == NULL)
        xac_itm_stop("no memory for the table of transactional functions");
    *t = (struct table){.pairs = (struct pair *)pairs, .n = n};
    qsort(pairs, n, sizeof(struct pair), compare);
    (void)pthread_mutex_lock(&lock);
    t->next = tables;
    tables = t;
    (void)pthread_mutex_unlock(&lock);
}

XAC_ITM_API void _ITM_deregisterTMCloneTable(void *pairs);
void
_ITM_deregisterTMCloneTable(void *pairs)
{
    struct table *gone = NULL;

    (void)pthread_mutex_lock(&lock);
    for (struct table **link = &tables; *link != NULL; link = &(*link)->next) {
        if ((*link)->pairs == pairs) {
            gone = *link;
            *link = gone->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    free(gone);
}

XAC_ITM_API void *_ITM_getTMCloneSafe(void *plain);
void *
_ITM_getTMCloneSafe(void *plain)
{
    void *clone = find(plain);

    if (clone == NULL)
        xac_itm_stop("the function at %p has no transactional version: compile it with "
                     "-fgnu-tm, and declare it transaction_safe",
                     plain);
    return clone;
}

XAC_ITM_API void *_ITM_getTMCloneOrIrrevocable(void *plain);
void *
_ITM_getTMCloneOrIrrevocable(void *plain)
{
    void *clone = find(plain);

    if (clone == NULL)
        xac_itm_go_irrevocable(xac_itm_now);
    return clone != NULL ? clone : plain;
}
