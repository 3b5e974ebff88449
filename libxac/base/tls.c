/* SPDX-License-Identifier: MIT */
/*
 * tls.c -- see tls.h.
 */
#include <config.h>

#include "base/tls.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/annot.h"

/* The thread's number; 0: it has not been asked for yet. */
static XAC_TLS uint32_t tid;

/* dlopen() has little room: clang aligns an array to 16 bytes, and a structure with one to 8. */
static XAC_TLS struct {
    void *at[XAC_TLS_PARTS];
} parts;

uint32_t
xac_tls_tid(void)
{
    if (xac_unlikely(tid == 0))
        tid = (uint32_t)syscall(SYS_gettid);
    xac_assert(tid != 0);
    return tid;
}

void
xac_tls_forked(void)
{
    tid = 0;
}

/* A key + 1 for its destructor, 0 none yet; the value is the thread's `parts`.  Relaxed:
   nothing else is published with the key. */
static _Atomic uint64_t key;

/* The function of xac_tls_on_end. */
static void (*_Atomic on_end)(void);

void
xac_tls_on_end(void (*fn)(void))
{
    /* Relaxed: nothing else is published with the function. */
    atomic_store_explicit(&on_end, fn, memory_order_relaxed);
}

/* free_parts -- the key's destructor.  A later one may call the library, and get new parts:
   then this one runs again. */
static void
free_parts(void *arg)
{
    void **mine = (void **)arg;
    void (*fn)(void) = atomic_load_explicit(&on_end, memory_order_relaxed);

    if (fn != NULL)
        fn();
    for (int i = 0; i < XAC_TLS_PARTS; i++) {
        free(mine[i]);
        mine[i] = NULL;
    }
}

/* key_get -- ret 0 or errno; no lock, for a fork beside it would leave that held. */
static int
key_get(pthread_key_t *keyp)
{
    uint64_t have = atomic_load_explicit(&key, memory_order_relaxed);
    int rc;

    if (have == 0) {
        rc = pthread_key_create(keyp, free_parts);
        if (rc != 0)
            return rc;
        if (atomic_compare_exchange_strong_explicit(&key, &have, (uint64_t)*keyp + 1,
                                                    memory_order_relaxed,
                                                    memory_order_relaxed))
            return 0;
        (void)pthread_key_delete(*keyp);
    }
    *keyp = (pthread_key_t)(have - 1);
    return 0;
}

XAC_SIGSAFE void *
xac_tls_look(enum xac_tls_part part)
{
    return parts.at[part];
}

void *
xac_tls_part(enum xac_tls_part part, size_t bytes)
{
    int saved_errno = errno;
    pthread_key_t mine;

    if (xac_likely(parts.at[part] != NULL))
        return parts.at[part];
    if (key_get(&mine) == 0 && pthread_setspecific(mine, parts.at) == 0)
        parts.at[part] = calloc(1, bytes);
    errno = saved_errno;
    return parts.at[part];
}
