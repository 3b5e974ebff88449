/* SPDX-License-Identifier: MIT */
/*
 * tls.c -- see tls.h.
 */
#include <config.h>

#include "tls.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "annot.h"

static XAC_TLS void *parts[XAC_TLS_PARTS];

static pthread_key_t key; /* for its destructor; the value is the thread's `parts` */

/* free_parts -- the key's destructor.  A later one may call the library, and get new parts:
   then this one runs again. */
static void
free_parts(void *arg)
{
    void **mine = (void **)arg;

    for (int i = 0; i < XAC_TLS_PARTS; i++) {
        free(mine[i]);
        mine[i] = NULL;
    }
}

static void
make_key(void)
{
    int rc = pthread_key_create(&key, free_parts);

    xac_require(rc == 0);
}

void *
xac_tls_look(enum xac_tls_part part)
{
    return parts[part];
}

void *
xac_tls_part(enum xac_tls_part part, size_t bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int saved_errno = errno;

    if (xac_likely(parts[part] != NULL))
        return parts[part];
    (void)pthread_once(&once, make_key);
    if (pthread_setspecific(key, parts) == 0)
        parts[part] = calloc(1, bytes);
    errno = saved_errno;
    return parts[part];
}
