/* SPDX-License-Identifier: MIT */
/*
 * block.c -- transactions and queries as context managers; see pyxac.h.
 *
 * A nested block is a part of the outermost one, as in the library.
 */
#include "pyxac.h"

#include <errno.h>

/* begin_waiting -- a query that waits for the state that it is to see. */
static int
begin_waiting(const struct py_block *self, struct xac_env *xac)
{
    int rc;

    Py_BEGIN_ALLOW_THREADS rc =
        self->from == QUERY_AFTER
            ? xac_begin_query_after_in(xac, &self->token, self->wait_ms)
            : xac_begin_query_latest_in(xac, self->wait_ms);
    Py_END_ALLOW_THREADS return rc;
}

/* begin_now -- the library's begin; an outermost one may wait for other processes. */
static int
begin_now(const struct py_block *self)
{
    struct py_env *env = self->env;
    enum block_kind kind = self->kind;

    if (self->from == QUERY_AT) /* never waits */
        return xac_begin_query_at_in(env->xac, self->at);
    if (self->from != QUERY_NEWEST)
        return begin_waiting(self, env->xac);
    if (env->depth > 0) /* likewise */
        return kind == BLOCK_QUERY ? xac_begin_query_in(env->xac)
                                   : xac_begin_in(env->xac);
    return env_call(env, kind == BLOCK_QUERY ? xac_begin_query_in : xac_begin_in);
}

/* begin_outermost -- take the turn among the threads, and begin. */
static bool
begin_outermost(const struct py_block *self)
{
    struct py_env *env = self->env;

    if (!turn_take(env))
        return false;
    /* It may have been closed while we waited. */
    if (!env_is_open(env) || idle_end(env) != 0) {
        turn_give(env);
        return false;
    }
    env_unmap_pending(env);
    int rc = begin_now(self);
    if (rc != 0) {
        (void)idle_begin(env);
        turn_give(env);
        xacpy_raise(rc);
        return false;
    }
    env->owner = PyThread_get_thread_ident();
    env->is_outer_query = self->kind == BLOCK_QUERY;
    env->is_abort_wanted = env->is_broken = false;
    return true;
}

static PyObject *
block_enter(struct py_block *self, PyObject *none)
{
    struct py_env *env = self->env;

    (void)none;
    if (self->level != 0 || self->outcome != NULL)
        return xacpy_raise_text(XAC_EINTXN, "a block is entered once: make a new one");
    if (!env_is_open(env))
        return NULL;
    if (env_has_block(env)) {
        int rc = begin_now(self);
        if (rc != 0)
            return xacpy_raise(rc);
    } else if (!begin_outermost(self)) {
        return NULL;
    }
    self->level = ++env->depth;
    self->forks = env->forks;
    if (self->kind == BLOCK_QUERY)
        env->n_queries++;
    if (env->depth == 1 || self->kind == BLOCK_QUERY)
        arrays_set_writable(env, env_may_write(env));
    Py_INCREF(self);
    return (PyObject *)self;
}

/* end_one -- end the innermost block of the library.  ret  as xac_end(). */
static int
end_one(struct py_env *env)
{
    bool is_query = env->n_queries > 0;
    bool is_outermost = env->depth == 1;
    int (*end)(struct xac_env *) = is_query ? xac_end_query_in : xac_end_in;

    if (is_query)
        env->n_queries--;
    if (is_outermost)
        arrays_set_writable(env, false);
    else if (is_query)
        arrays_set_writable(env, env->n_queries == 0 && !env->is_outer_query);
    int rc = is_outermost ? env_call(env, end) : end(env->xac);
    env->depth--;
    if (is_outermost) {
        env_unmap_pending(env);
        (void)idle_begin(env);
        turn_give(env);
    }
    return rc;
}

/* raise_outcome -- what the end of a block means for the program.  ret true: no exception. */
static bool
raise_outcome(const struct py_env *env, int rc, bool is_outermost)
{
    if (rc == XAC_COMMITTED || rc == XAC_PENDING)
        return true;
    if (rc != XAC_ABORTED && rc != XAC_FAILED) {
        xacpy_raise(rc);
        return false;
    }
    if (env->is_abort_wanted)
        return true;
    if (env->is_broken && is_outermost) {
        PyErr_SetString(py_rolled_back,
                        "the transaction was rolled back: an exception had left a block "
                        "inside of it");
        return false;
    }
    xacpy_raise_conflict();
    return false;
}

/* leave -- end the block, and those that are open inside of it. */
static int
leave(struct py_block *self, bool is_failed)
{
    struct py_env *env = self->env;
    int rc;

    while (env->depth > self->level) { /* a generator that was left open, for example */
        is_failed = true;
        (void)end_one(env);
    }
    if (is_failed && !env->is_outer_query && env->n_queries == 0)
        (void)xac_abort_in(env->xac);
    if (is_failed && env->depth > 1 && self->kind == BLOCK_TRANSACTION)
        env->is_broken = true;
    rc = end_one(env);
    self->level = 0;
    return rc;
}

static void
set_outcome(struct py_block *self, PyObject *outcome)
{
    PyObject *old = self->outcome;

    Py_INCREF(outcome);
    self->outcome = outcome;
    Py_XDECREF(old);
}

static PyObject *
block_exit(struct py_block *self, PyObject *args)
{
    PyObject *type, *value, *traceback;
    struct py_env *env = self->env;

    if (!PyArg_ParseTuple(args, "OOO", &type, &value, &traceback))
        return NULL;
    if (self->level == 0)
        return xacpy_raise_text(
            XAC_ENOTXN, "the block is not open: a block around it has ended before");
    if (!env_is_open(env))
        return NULL;
    if (self->forks != env->forks) {
        set_outcome(self, Py_False);
        self->level = 0;
        if (type != Py_None)
            Py_RETURN_FALSE;
        return xacpy_raise_text(XAC_EFORKED,
                                "the transaction belongs to the parent process");
    }
    if (!env_has_block(env))
        return xacpy_raise_text(XAC_ENOTXN, "the block belongs to another thread");
    set_outcome(self, Py_False);
    if (self->level > env->depth) {
        self->level = 0;
        return xacpy_raise_text(
            XAC_ENOTXN, "the block is not open: a block around it has ended before");
    }
    bool is_outermost = self->level == 1;
    bool is_forgotten = env->depth > self->level;
    int rc = leave(self, type != Py_None);
    if (type != Py_None)
        Py_RETURN_FALSE;
    if (is_forgotten)
        return xacpy_raise_text(XAC_EINTXN,
                                "a block inside of this one was still open; the "
                                "transaction was rolled back");
    if (!raise_outcome(env, rc, is_outermost))
        return NULL;
    if (rc == XAC_COMMITTED || rc == XAC_PENDING)
        set_outcome(self, Py_True);
    Py_RETURN_FALSE;
}

static PyObject *
block_abort(struct py_block *self, PyObject *none)
{
    (void)none;
    if (!env_is_open(self->env))
        return NULL;
    if (self->level == 0 || !env_has_block(self->env) || self->kind == BLOCK_QUERY)
        return xacpy_raise_text(XAC_ENOTXN, "abort() is for a transaction that is open");
    int rc = xac_abort_in(self->env->xac);
    if (rc != 0)
        return xacpy_raise(rc);
    self->env->is_abort_wanted = true;
    Py_RETURN_NONE;
}

static PyObject *
block_committed(struct py_block *self, void *closure)
{
    PyObject *outcome = self->outcome != NULL ? self->outcome : Py_None;

    (void)closure;
    Py_INCREF(outcome);
    return outcome;
}

/* A block that nobody refers to any more cannot end otherwise: __enter__() was called by hand, or an
   exception has come between the end of the body and __exit__(). */
static void
roll_back_forgotten(struct py_block *self)
{
    struct py_env *env = self->env;
    PyObject *type, *value, *traceback;

    if (self->level == 0 || env->xac == NULL || self->forks != xacpy_forks
        || env->forks != xacpy_forks || !env_has_block(env) || self->level > env->depth)
        return;
    PyErr_Fetch(&type, &value, &traceback);
    (void)leave(self, true);
    PyErr_Restore(type, value, traceback);
}

static void
block_dealloc(struct py_block *self)
{
    roll_back_forgotten(self);
    Py_XDECREF(self->outcome);
    Py_XDECREF(self->env);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"__enter__", (PyCFunction)block_enter, METH_NOARGS, "Begin the block."},
    {"__exit__", (PyCFunction)block_exit, METH_VARARGS,
     "End the block: commit, or roll back if an exception leaves it."},
    {"abort", (PyCFunction)block_abort, METH_NOARGS,
     "abort()\n--\n\nRoll the whole transaction back when its outermost block ends.  That "
     "raises\nno exception; `committed` is False then."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"committed", (getter)block_committed, NULL,
     "None before the block has ended; then whether it has taken effect (of a nested "
     "block:\nwhether it still may).",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject py_block_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "xac._xac.Block",
    .tp_doc = "A transaction or a query, for a `with` statement.",
    .tp_basicsize = sizeof(struct py_block),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = (destructor)block_dealloc,
    .tp_methods = methods,
    .tp_getset = properties,
};
