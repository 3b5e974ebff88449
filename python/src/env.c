/* SPDX-License-Identifier: MIT */
/*
 * env.c -- environments; see pyxac.h.
 */
#include "pyxac.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <structmember.h>

bool
env_is_open(struct py_env *self)
{
    if (self->xac != NULL)
        return turn_after_fork(self);
    xacpy_raise_text(XAC_ENOINIT, "the environment is not open");
    return false;
}

bool
env_has_block(const struct py_env *self)
{
    return self->depth > 0 && self->owner == PyThread_get_thread_ident();
}

bool
env_may_write(const struct py_env *self)
{
    return env_has_block(self) && self->n_queries == 0 && !self->is_outer_query;
}

int
env_call(struct py_env *self, int (*fn)(struct xac_env *))
{
    struct xac_env *xac = self->xac;
    int rc;

    Py_BEGIN_ALLOW_THREADS rc = fn(xac);
    Py_END_ALLOW_THREADS return rc;
}

void
env_unmap_pending(struct py_env *self)
{
    while (self->pending != NULL && self->xac != NULL) {
        struct pending *p = self->pending;
        int rc = xac_munmap_at_in(self->xac, p->base);
        if (rc == XAC_EINTXN || rc == EBUSY)
            return;
        self->pending = p->next;
        free(p);
    }
}

void
env_unmap(struct py_env *self, void *base)
{
    struct pending *p;

    if (self->xac == NULL) /* xac_close() has done it */
        return;
    p = malloc(sizeof *p);
    if (p == NULL) /* it stays mapped until the environment is closed */
        return;
    p->base = base;
    p->next = self->pending;
    self->pending = p;
    if (self->depth == 0 && !self->is_idle && self->forks == xacpy_forks)
        env_unmap_pending(self);
}

/* set_options -- from a dict of numbers.  ret false: raised. */
static bool
set_options(struct xac_options *options, PyObject *values)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    while (PyDict_Next(values, &at, &key, &value)) {
        unsigned long number = PyLong_AsUnsignedLong(key);
        unsigned long long wanted = PyLong_AsUnsignedLongLong(value);
        if (PyErr_Occurred() != NULL)
            return false;
        if (number >= XAC_OPTIONS) {
            PyErr_SetString(PyExc_ValueError, "there is no such option");
            return false;
        }
        options->value[number] = wanted;
    }
    return true;
}

static int
env_init(struct py_env *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path",          "flags",       "options",
                            "log_directory", "keeps_query", NULL};
    PyObject *path, *values;
    const char *log_directory;
    struct xac_options options;
    int flags, keeps_query;

    if (self->xac != NULL || self->path != NULL) {
        PyErr_SetString(PyExc_TypeError, "an environment is opened once");
        return -1;
    }
    xac_options_init(&options, sizeof options);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&iO!zp", names,
                                     PyUnicode_FSConverter, &path, &flags, &PyDict_Type,
                                     &values, &log_directory, &keeps_query))
        return -1;
    options.flags = flags;
    options.log_directory = log_directory;
    self->path = PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(path));
    self->arrays = PyDict_New();
    self->turn = PyThread_allocate_lock();
    self->home = PyThread_get_thread_ident();
    self->forks = xacpy_forks;
    self->keeps_query = keeps_query != 0;
    if (self->turn == NULL)
        PyErr_NoMemory();
    if (self->path == NULL || self->arrays == NULL || self->turn == NULL
        || !set_options(&options, values)) {
        Py_DECREF(path);
        return -1;
    }
    int rc = 0;
    closed_init();
    Py_BEGIN_ALLOW_THREADS self->xac = xac_open(PyBytes_AS_STRING(path), &options);
    if (self->xac == NULL)
        rc = errno;
    Py_END_ALLOW_THREADS Py_DECREF(path);
    if (rc == 0)
        rc = idle_begin(self);
    if (rc != 0) {
        xacpy_raise(rc);
        return -1;
    }
    return 0;
}

/* close_now -- with the turn in hand.  ret  as xac_close(). */
static int
close_now(struct py_env *self)
{
    env_unmap_pending(self);
    int rc = env_call(self, xac_close);

    if (rc == XAC_EINTXN || rc == EBUSY)
        return rc;
    self->xac = NULL;
    mappings_closed(self);
    while (self->pending != NULL) {
        struct pending *p = self->pending;
        self->pending = p->next;
        free(p);
    }
    return rc;
}

static PyObject *
env_close(struct py_env *self, PyObject *none)
{
    (void)none;
    if (self->xac == NULL)
        Py_RETURN_NONE;
    if (!env_is_open(self))
        return NULL;
    if (env_has_block(self))
        return xacpy_raise_text(XAC_EINTXN, "close() inside of a transaction or query");
    if (!turn_take(self))
        return NULL;
    int rc = 0;
    if (self->xac != NULL && (rc = idle_end(self)) == 0) {
        rc = close_now(self);
        (void)idle_begin(self); /* if it is still open */
        if (rc != 0)
            xacpy_raise(rc);
    }
    turn_give(self);
    if (rc != 0)
        return NULL;
    Py_RETURN_NONE;
}

static void
env_dealloc(struct py_env *self)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    if (self->xac != NULL && turn_after_fork(self) && self->depth == 0) {
        if (self->is_idle)
            (void)xac_end_query_in(self->xac);
        self->is_idle = false;
        (void)close_now(self);
    }
    PyErr_Restore(type, value, traceback);
    Py_XDECREF(self->path);
    Py_XDECREF(self->arrays);
    if (self->turn != NULL && self->depth == 0)
        PyThread_free_lock(self->turn);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *
make_block(struct py_env *self, enum block_kind kind)
{
    struct py_block *block = PyObject_New(struct py_block, &py_block_type);

    if (block == NULL)
        return NULL;
    Py_INCREF(self);
    block->env = self;
    block->kind = kind;
    block->from = QUERY_NEWEST;
    block->at = 0;
    block->token = (struct xac_token){.generation = 0};
    block->wait_ms = 0;
    block->level = 0;
    block->forks = 0;
    block->outcome = NULL;
    return (PyObject *)block;
}

static PyObject *
env_transaction(struct py_env *self, PyObject *none)
{
    (void)none;
    return make_block(self, BLOCK_TRANSACTION);
}

/* read_token -- from its text; false with an error. */
static bool
read_token(PyObject *text, struct xac_token *token)
{
    const char *words = PyUnicode_AsUTF8(text);

    if (words != NULL && xac_token_parse(words, token) != 0)
        return xacpy_raise(EINVAL) != NULL;
    return words != NULL;
}

/* read_wait -- so many seconds, in milliseconds; false with an error. */
static bool
read_wait(double seconds, uint32_t *out)
{
    if (!(seconds >= 0)) {
        PyErr_SetString(PyExc_ValueError, "wait is negative, or not a number");
        return false;
    }
    *out = seconds * 1000 < UINT32_MAX ? (uint32_t)(seconds * 1000) : UINT32_MAX;
    return true;
}
static PyObject *
env_query(struct py_env *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"at", "after", "latest", "wait", NULL};
    PyObject *at = Py_None, *after = Py_None;
    struct py_block *block;
    unsigned long long id = 0;
    int latest = 0;
    double wait = 0;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O$Opd:query", names, &at, &after,
                                     &latest, &wait))
        return NULL;
    if ((at != Py_None) + (after != Py_None) + latest > 1) {
        PyErr_SetString(PyExc_ValueError, "at, after and latest exclude each other");
        return NULL;
    }
    if (at != Py_None)
        id = PyLong_AsUnsignedLongLong(at);
    if (id == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    block = (struct py_block *)make_block(self, BLOCK_QUERY);
    if (block == NULL)
        return NULL;
    block->from = at != Py_None      ? QUERY_AT
                  : after != Py_None ? QUERY_AFTER
                  : latest           ? QUERY_LATEST
                                     : QUERY_NEWEST;
    block->at = id;
    if (!read_wait(wait, &block->wait_ms)
        || (after != Py_None && !read_token(after, &block->token))) {
        Py_DECREF(block);
        return NULL;
    }
    return (PyObject *)block;
}

static PyObject *
env_token(struct py_env *self, PyObject *none)
{
    struct xac_token token = {.generation = 0};
    char text[XAC_TOKEN_TEXT];
    int rc;

    (void)none;
    if (!env_is_open(self))
        return NULL;
    rc = xac_get_token_in(self->xac, &token);
    (void)xac_token_format(&token, text, sizeof text); /* it has room */
    return rc == 0 ? PyUnicode_FromString(text) : xacpy_raise(rc);
}

static PyObject *
env_fate(struct py_env *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"token", "wait", NULL};
    struct xac_token token;
    struct xac_env *xac;
    PyObject *text;
    uint32_t wait_ms;
    double wait = 0;
    int rc;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|d:fate", names, &text, &wait)
        || !read_wait(wait, &wait_ms) || !read_token(text, &token) || !env_is_open(self))
        return NULL;
    xac = self->xac;
    Py_BEGIN_ALLOW_THREADS rc = xac_fate_in(xac, &token, wait_ms);
    Py_END_ALLOW_THREADS switch (rc)
    {
    case XAC_COMMITTED:
        Py_RETURN_TRUE;
    case XAC_ELOST:
        Py_RETURN_FALSE;
    case XAC_EUNCERTAIN:
        Py_RETURN_NONE;
    default:
        return xacpy_raise(rc);
    }
}

/* step_out -- take the turn among the threads, with no query kept open; false with an error.  step_in -- the way
   back. */
static bool
step_out(struct py_env *self)
{
    if (!turn_take(self))
        return false;
    /* It may have been closed while we waited. */
    if (env_is_open(self) && idle_end(self) == 0)
        return true;
    turn_give(self);
    return false;
}

static void
step_in(struct py_env *self)
{
    (void)idle_begin(self);
    turn_give(self);
}

/* ---- Snapshots ---------------------------------------------------------------------- */

static PyObject *
env_snapshot(struct py_env *self, PyObject *none)
{
    uint64_t id;
    bool is_within;
    int rc;

    (void)none;
    if (!env_is_open(self))
        return NULL;
    is_within = env_has_block(self);
    if (!is_within && !step_out(self))
        return NULL;
    rc = xac_snapshot_in(self->xac, &id);
    if (!is_within)
        step_in(self);
    return rc == 0 ? PyLong_FromUnsignedLongLong(id) : xacpy_raise(rc);
}

static PyObject *
env_release(struct py_env *self, PyObject *args)
{
    unsigned long long id;
    int rc;

    if (!PyArg_ParseTuple(args, "K:release", &id) || !env_is_open(self))
        return NULL;
    rc = xac_snapshot_release_in(self->xac, id);
    if (rc != 0)
        return xacpy_raise(rc);
    Py_RETURN_NONE;
}

static PyObject *
env_keep(struct py_env *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"id", "name", "seconds", NULL};
    unsigned long long id;
    long long seconds;
    const char *name;
    int rc;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "KsL:keep", names, &id, &name,
                                     &seconds)
        || !env_is_open(self))
        return NULL;
    if (seconds < 0 || seconds > UINT_MAX) {
        PyErr_SetString(PyExc_ValueError, "seconds is negative, or too large");
        return NULL;
    }
    rc = xac_snapshot_keep_in(self->xac, id, name, (unsigned)seconds);
    if (rc != 0)
        return xacpy_raise(rc);
    Py_RETURN_NONE;
}

static PyObject *
env_find(struct py_env *self, PyObject *args)
{
    const char *name;
    uint64_t id;
    int rc;

    if (!PyArg_ParseTuple(args, "s:find", &name) || !env_is_open(self))
        return NULL;
    rc = xac_snapshot_find_in(self->xac, name, &id);
    return rc == 0 ? PyLong_FromUnsignedLongLong(id) : xacpy_raise(rc);
}

/* ---- Savepoints --------------------------------------------------------------------- */

/* in_transaction -- has the thread a transaction open, and no query inside of it?  false with an error. */
static bool
in_transaction(struct py_env *self)
{
    if (!env_is_open(self))
        return false;
    if (env_has_block(self) && !self->is_outer_query && self->n_queries == 0)
        return true;
    xacpy_raise_text(XAC_ENOTXN, "savepoints are for transactions");
    return false;
}

static PyObject *
env_savepoint(struct py_env *self, PyObject *none)
{
    uint64_t mark;

    (void)none;
    if (!in_transaction(self))
        return NULL;
    mark = xac_savepoint_in(self->xac);
    return mark != 0 ? PyLong_FromUnsignedLongLong(mark) : xacpy_raise(errno);
}

static PyObject *
env_roll_back_to(struct py_env *self, PyObject *args)
{
    unsigned long long mark;
    int rc;

    if (!PyArg_ParseTuple(args, "K:_roll_back_to", &mark) || !in_transaction(self))
        return NULL;
    rc = xac_rollback_to_in(self->xac, mark);
    if (rc != 0 && rc != XAC_FAILED) /* which is for the end of the transaction to tell */
        return xacpy_raise(rc);
    Py_RETURN_NONE;
}

static PyObject *
env_release_mark(struct py_env *self, PyObject *args)
{
    unsigned long long mark;
    int rc;

    if (!PyArg_ParseTuple(args, "K:_release_mark", &mark) || !in_transaction(self))
        return NULL;
    rc = xac_release_in(self->xac, mark);
    if (rc != 0)
        return xacpy_raise(rc);
    Py_RETURN_NONE;
}

/* ---- Changes ------------------------------------------------------------------------ */

/* add_change -- for xac_diff(): one more item of a list; stops if there is no memory for it. */
static int
add_change(void *arg, const struct xac_change *c)
{
    PyObject *item =
        Py_BuildValue("(O&KKy#y#)", PyUnicode_DecodeFSDefault, c->file,
                      (unsigned long long)c->offset, (unsigned long long)c->length,
                      (const char *)c->before, (Py_ssize_t)c->length,
                      (const char *)c->after, (Py_ssize_t)c->length);
    int rc = item != NULL ? PyList_Append((PyObject *)arg, item) : -1;

    Py_XDECREF(item);
    return rc;
}

static PyObject *
env_diff(struct py_env *self, PyObject *args)
{
    unsigned long long from, to;
    PyObject *list;
    int rc;

    if (!PyArg_ParseTuple(args, "KK:diff", &from, &to) || !env_is_open(self))
        return NULL;
    if (env_has_block(self))
        return xacpy_raise_text(XAC_EINTXN, "diff() inside of a transaction or query");
    list = PyList_New(0);
    if (list == NULL || !step_out(self)) {
        Py_XDECREF(list);
        return NULL;
    }
    rc = xac_diff_in(self->xac, from, to, add_change, list);
    step_in(self);
    if (rc == 0 && !PyErr_Occurred())
        return list;
    Py_DECREF(list);
    return PyErr_Occurred() ? NULL : xacpy_raise(rc);
}

/* outside -- call a function of the library that may wait for the disk. */
static PyObject *
outside(struct py_env *self, int (*fn)(struct xac_env *))
{
    if (!env_is_open(self))
        return NULL;
    if (!env_has_block(self) && idle_end(self) != 0)
        return NULL;
    int rc = env_call(self, fn);
    if (!env_has_block(self))
        (void)idle_begin(self);
    if (rc != 0)
        return xacpy_raise(rc);
    Py_RETURN_NONE;
}

static PyObject *
env_checkpoint(struct py_env *self, PyObject *none)
{
    (void)none;
    return outside(self, xac_checkpoint_in);
}

static PyObject *
env_sync(struct py_env *self, PyObject *none)
{
    (void)none;
    return outside(self, xac_sync_in);
}

static PyObject *
env_refresh(struct py_env *self, PyObject *none)
{
    (void)none;
    if (!env_is_open(self))
        return NULL;
    if (env_has_block(self))
        return xacpy_raise_text(XAC_EINTXN, "refresh() inside of a transaction or query");
    if (!turn_take(self))
        return NULL;
    int rc = self->xac != NULL ? idle_end(self) : 0;
    if (rc == 0) {
        env_unmap_pending(self);
        rc = idle_begin(self);
        if (rc != 0)
            xacpy_raise(rc);
    }
    turn_give(self);
    if (rc != 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
env_backup(struct py_env *self, PyObject *args, PyObject *named)
{
    static char *names[] = {"directory", "since", NULL};
    PyObject *path = NULL, *base = NULL, *since = NULL;
    int rc;

    if (!env_is_open(self)
        || !PyArg_ParseTupleAndKeywords(args, named, "O&|O:backup", names,
                                        PyUnicode_FSConverter, &path, &since))
        return NULL;
    if ((since != NULL && since != Py_None && PyUnicode_FSConverter(since, &base) == 0)
        || (!env_has_block(self) && idle_end(self) != 0)) {
        Py_DECREF(path);
        Py_XDECREF(base);
        return NULL;
    }
    struct xac_env *xac = self->xac;
    Py_BEGIN_ALLOW_THREADS rc =
        base == NULL
            ? xac_backup_in(xac, PyBytes_AS_STRING(path))
            : xac_backup_since_in(xac, PyBytes_AS_STRING(path), PyBytes_AS_STRING(base));
    Py_END_ALLOW_THREADS Py_DECREF(path);
    Py_XDECREF(base);
    if (!env_has_block(self))
        (void)idle_begin(self);
    if (rc != 0)
        return xacpy_raise(rc);
    Py_RETURN_NONE;
}

/* call_with_names -- a call that takes the name of a file, or two: bytes, which are freed; to is NULL for one. */
static PyObject *
call_with_names(struct py_env *self, int (*one)(struct xac_env *, const char *),
                int (*two)(struct xac_env *, const char *, const char *), PyObject *from,
                PyObject *to)
{
    int rc = env_has_block(self) ? 0 : idle_end(self);

    if (rc == 0) {
        struct xac_env *xac = self->xac;
        const char *name = PyBytes_AS_STRING(from);
        const char *other = to != NULL ? PyBytes_AS_STRING(to) : NULL;

        Py_BEGIN_ALLOW_THREADS rc =
            other == NULL ? one(xac, name) : two(xac, name, other);
        Py_END_ALLOW_THREADS if (!env_has_block(self))(void) idle_begin(self);
        if (rc != 0)
            xacpy_raise(rc);
    }
    Py_DECREF(from);
    Py_XDECREF(to);
    if (rc != 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
env_forget(struct py_env *self, PyObject *arg)
{
    PyObject *path;

    if (!env_is_open(self) || PyUnicode_FSConverter(arg, &path) == 0)
        return NULL;
    return call_with_names(self, xac_forget_in, NULL, path, NULL);
}

static PyObject *
env_remove(struct py_env *self, PyObject *arg)
{
    PyObject *path;

    if (!env_is_open(self) || PyUnicode_FSConverter(arg, &path) == 0)
        return NULL;
    return call_with_names(self, xac_remove_in, NULL, path, NULL);
}

static PyObject *
env_rename(struct py_env *self, PyObject *args)
{
    PyObject *from = NULL, *to = NULL;

    if (!env_is_open(self)
        || !PyArg_ParseTuple(args, "O&O&:rename", PyUnicode_FSConverter, &from,
                             PyUnicode_FSConverter, &to))
        return NULL;
    return call_with_names(self, NULL, xac_rename_in, from, to);
}

static PyObject *
env_in_transaction(struct py_env *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(self->forks == xacpy_forks && env_has_block(self)
                           && !self->is_outer_query);
}

static PyObject *
env_may_read(struct py_env *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(
        self->xac != NULL && self->forks == xacpy_forks
        && (env_has_block(self)
            || (self->is_idle && self->home == PyThread_get_thread_ident())));
}

static PyObject *
env_busy_here(struct py_env *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(self->forks == xacpy_forks && env_has_block(self));
}

static PyObject *
env_busy(struct py_env *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(self->depth > 0 && self->forks == xacpy_forks);
}

static PyObject *
env_closed(struct py_env *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(self->xac == NULL);
}

static PyMethodDef methods[] = {
    {"transaction", (PyCFunction)env_transaction, METH_NOARGS,
     "transaction()\n--\n\nA transaction, for a `with` statement.\n\n"
     "It commits when the block ends, and is rolled back if an exception leaves it.  "
     "Raises\nConflict if another transaction was in its way; atomic() tries again.  "
     "Inside of\nanother transaction it is a part of that one."},
    {"query", (PyCFunction)(void (*)(void))env_query, METH_VARARGS | METH_KEYWORDS,
     "query(at=None, *, after=None, latest=False, wait=0)\n--\n\nA query, for a `with` statement: it sees the state of one moment, "
     "and never fails.\n\nArrays are read-only in it.  `at` is the number of a snapshot, at_commit() or at_time().  At a standby,\n"
     "or a node of a group: `after` is a token, which it sees; with `latest` it sees all that was acknowledged\nbefore.  "
     "For these it waits up to `wait` seconds."},
    {"token", (PyCFunction)env_token, METH_NOARGS,
     "token()\n--\n\nThe token, a str, of what this thread has ended last: of its commit, or of what it has seen.\n"
     "In a query, of what that sees."},
    {"fate", (PyCFunction)(void (*)(void))env_fate, METH_VARARGS | METH_KEYWORDS,
     "fate(token, wait=0)\n--\n\nWhat has become of a token: True, it stays; False, it is lost; None, it is not known here, "
     "or not yet."},
    {"snapshot", (PyCFunction)env_snapshot, METH_NOARGS,
     "snapshot()\n--\n\nHold the present state (in a query, its state); return a number by "
     "which all\nprocesses can query it."},
    {"release_snapshot", (PyCFunction)env_release, METH_VARARGS,
     "release_snapshot(id)\n--\n\nRelease a snapshot of any process."},
    {"keep_snapshot", (PyCFunction)(void (*)(void))env_keep, METH_VARARGS | METH_KEYWORDS,
     "keep_snapshot(id, name, seconds)\n--\n\nHave a snapshot outlive its process: a name and "
     "a time to live."},
    {"find_snapshot", (PyCFunction)env_find, METH_VARARGS,
     "find_snapshot(name)\n--\n\nThe number of the snapshot that has been given the name."},
    {"_savepoint", (PyCFunction)env_savepoint, METH_NOARGS,
     "_savepoint()\n--\n\nTake a savepoint; return its mark."},
    {"_roll_back_to", (PyCFunction)env_roll_back_to, METH_VARARGS,
     "_roll_back_to(mark)\n--\n\nUndo all stores since the savepoint."},
    {"_release_mark", (PyCFunction)env_release_mark, METH_VARARGS,
     "_release_mark(mark)\n--\n\nForget the savepoint."},
    {"diff", (PyCFunction)env_diff, METH_VARARGS,
     "diff(from, to)\n--\n\nWhat differs between two states (snapshots, at_commit(), "
     "at_time()), in the files\nthat are mapped here: a list of (file, offset, length, "
     "before, after)."},
    {"checkpoint", (PyCFunction)env_checkpoint, METH_NOARGS,
     "checkpoint()\n--\n\nWrite what was committed to the mapped files."},
    {"sync", (PyCFunction)env_sync, METH_NOARGS,
     "sync()\n--\n\nWait until all commits of this process are on disk (option "
     "sync_delay_ms)."},
    {"refresh", (PyCFunction)env_refresh, METH_NOARGS,
     "refresh()\n--\n\nWith outside='query': from now on see what others have committed "
     "until now."},
    {"backup", (PyCFunction)(void (*)(void))env_backup, METH_VARARGS | METH_KEYWORDS,
     "backup(directory, since=None)\n--\n\nCopy the environment while others go on committing; "
     "or what has changed since\nthe backup in another directory."},
    {"forget", (PyCFunction)env_forget, METH_O,
     "forget(name)\n--\n\nForget a file that nobody maps, before it is moved or removed."},
    {"remove", (PyCFunction)env_remove, METH_O,
     "remove(name)\n--\n\nRemove a file that nobody maps."},
    {"rename", (PyCFunction)env_rename, METH_VARARGS,
     "rename(old, new, /)\n--\n\nRename a file that nobody maps, within its file system; replaces "
     "nothing."},
    {"stats", (PyCFunction)env_stats, METH_NOARGS,
     "stats()\n--\n\nThe counters of the environment, as a dict."},
    {"participants", (PyCFunction)env_participants, METH_NOARGS,
     "participants()\n--\n\nWhat each thread that takes part does, holds back and waits for: a "
     "list of dicts,\nwith the names of struct xac_party."},
    {"close", (PyCFunction)env_close, METH_NOARGS,
     "close()\n--\n\nClose the environment.  Its arrays must not be used any more."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"in_transaction", (getter)env_in_transaction, NULL,
     "Has this thread a transaction open?", NULL},
    {"readable", (getter)env_may_read, NULL,
     "May this thread read arrays now, in a transaction or query?", NULL},
    {"busy_here", (getter)env_busy_here, NULL,
     "Has this thread a transaction or query open?", NULL},
    {"busy", (getter)env_busy, NULL,
     "Has some thread of this process a transaction or query open?", NULL},
    {"closed", (getter)env_closed, NULL, "Is it closed?", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"path", T_OBJECT, offsetof(struct py_env, path), READONLY, "Its directory."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject py_env_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "xac._xac.Env",
    .tp_doc = "An environment; xac.Env is made of it.",
    .tp_basicsize = sizeof(struct py_env),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)env_init,
    .tp_dealloc = (destructor)env_dealloc,
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_members = members,
};
