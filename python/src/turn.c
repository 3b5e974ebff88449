/* SPDX-License-Identifier: MIT */
/*
 * turn.c -- which thread of the process may have a block open; see pyxac.h.
 *
 * The threads of a process share its mappings, so the library runs one transaction of them at a
 * time, and xbegin() fails with EBUSY meanwhile.  Here a thread waits instead.
 */
#include "pyxac.h"

#include <errno.h>

unsigned xacpy_forks;

bool
turn_take(struct py_env *self)
{
    if (PyThread_acquire_lock(self->turn, NOWAIT_LOCK))
        return true;
    for (;;) {
        PyLockStatus status;

        Py_BEGIN_ALLOW_THREADS status = PyThread_acquire_lock_timed(self->turn, -1, 1);
        Py_END_ALLOW_THREADS if (status == PY_LOCK_ACQUIRED) return true;
        if (PyErr_CheckSignals() != 0) /* Ctrl-C */
            return false;
    }
}

void
turn_give(struct py_env *self)
{
    PyThread_release_lock(self->turn);
}

int
idle_begin(struct py_env *self)
{
    if (!self->keeps_query || self->is_idle || self->xac == NULL)
        return 0;
    int rc = xac_begin_query_in(self->xac);
    self->is_idle = rc == 0;
    return rc;
}

int
idle_end(struct py_env *self)
{
    if (!self->keeps_query)
        return 0;
    if (PyThread_get_thread_ident() != self->home) {
        xacpy_raise_text(EBUSY,
                         "with outside='query' only the thread that has opened the "
                         "environment may use it");
        return -1;
    }
    if (self->is_idle) {
        /* What it has read may not be on disk yet: that is the next block's business. */
        self->is_idle = false;
        env_call(self, xac_end_query_in);
    }
    return 0;
}

bool
turn_after_fork(struct py_env *self)
{
    if (self->forks == xacpy_forks)
        return true;
    /* The old lock may belong to a thread that does not exist here; it is never freed. */
    PyThread_type_lock turn = PyThread_allocate_lock();
    if (turn == NULL) {
        PyErr_NoMemory();
        return false;
    }
    unsigned left = self->depth + (self->is_idle ? 1 : 0);
    self->turn = turn;
    self->forks = xacpy_forks;
    self->depth = self->n_queries = 0;
    self->is_idle = false;
    arrays_set_writable(self, false);
    self->home = PyThread_get_thread_ident();
    /* Blocks of the parent: the library returns XAC_EFORKED once for each, and forgets it. */
    for (; left > 0 && self->xac != NULL; left--)
        (void)xac_end_in(self->xac);
    (void)idle_begin(self);
    return true;
}
